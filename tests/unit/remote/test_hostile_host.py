"""A host whose key is trusted, and that says whatever it likes: the screen goes on, and believes of others nothing."""

from __future__ import annotations

from typing import Any, get_args

from agentwatch.remote.codec import EARLIEST, LATEST
from agentwatch.remote.frames import (
    PROTOCOL,
    Beat,
    Hello,
    Item,
    Mark,
    Observed,
    Reply,
    Reset,
    Result,
    Standing,
    Workspace,
    to_bytes,
)
from agentwatch.remote.observed import Told
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.delegation.events import Recorder, handoff
from tests.unit.remote.between import SIGNER, pair
from tests.unit.remote.shapes import TEXTS, any_of

NUMBERS = st.sampled_from([0, 1, 2, 3, -1, 1 << 62, -(1 << 62)])
TIMES = st.sampled_from([0.0, 1.7e9, EARLIEST, LATEST])


def frames(epoch: str, workspace: str) -> st.SearchStrategy[Any]:
    """What it may say."""
    names, epochs = st.sampled_from([workspace, "another", "../../etc", ""]), st.sampled_from([epoch, "another"])
    items = st.builds(Item, NUMBERS, NUMBERS, st.sampled_from(get_args(Told)).flatmap(any_of))
    marks = st.dictionaries(names, st.builds(Mark, NUMBERS, TEXTS, NUMBERS), max_size=2)
    return st.one_of(
        st.builds(Observed, names, epochs, NUMBERS, NUMBERS, TIMES, st.lists(items, max_size=3).map(tuple)),
        st.builds(Reset, names, epochs, NUMBERS),
        any_of(Standing).map(lambda one: one._replace(epoch=epoch, workspace=workspace)),
        st.builds(Beat, epochs, TIMES, marks, st.just({})),
        any_of(Hello).map(lambda one: one._replace(protocol=PROTOCOL)),
        any_of(Result),
        any_of(Reply),
    )


@given(st.data())
def test_whatever_a_host_says_the_screen_goes_on(data: st.DataObject) -> None:
    host, screen = pair()
    screen.exchange()
    for frame in data.draw(st.lists(frames(host.epoch, host.part.workspace.id), min_size=1, max_size=6)):
        # Only the echo of what was just said counts.
        echo = {screen.host.screen: max(screen.host.pulse._sent, default=0.0)}
        said = frame._replace(echo=echo) if isinstance(frame, Beat) else frame
        screen.host._take(SIGNER.wrap(to_bytes(said)))
        host.time.at += 1
        screen.host.tick()
    assert isinstance(screen.document()["tasks"], list)
    assert screen.host.why


def test_what_one_host_says_of_the_workspace_of_another_changes_nothing_there() -> None:
    (liar, here), (other, there) = pair(), pair()
    see = Recorder().seen
    other.see([see("a.json", handoff("a"))])
    there.exchange()
    here.exchange()
    name, epoch = other.part.workspace.id, other.epoch
    before = there.document()
    lies = [Reset(name, epoch, 9), Observed(name, epoch, 0, 9, 0.0, (Item(9, 0, see("b.json", handoff("b"))),))]
    for lie in lies:
        here.host._take(SIGNER.wrap(to_bytes(lie)))
        here.host.tick()
    assert (there.document(), here.document()["tasks"]) == (before, liar.document()["tasks"])


def test_a_greeting_that_takes_more_memory_than_its_bytes_say_is_not_heard() -> None:
    host, screen = pair()
    host.see([Recorder().seen("a.json", handoff("a"))])
    screen.exchange()
    before = screen.document()
    many = tuple(Workspace(f"{number:x}", "", "") for number in range(30_000))
    hello = Hello(PROTOCOL, "1", "b", SIGNER.public.text, "flood", screen.time.at, screen.time.at, many)
    screen.host._take(SIGNER.wrap(to_bytes(hello)))
    screen.host._take(SIGNER.wrap(to_bytes(Beat("flood", screen.time.at, {}, {}))))
    screen.exchange()
    assert [task["task_id"] for task in before["tasks"]] == ["a"]
    assert screen.document() == before
    assert "flood" not in screen.host._epochs
