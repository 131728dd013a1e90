"""A host whose key is trusted, and that says whatever it likes: the screen goes on, and believes of others nothing."""

from contextlib import suppress
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from agentwatch.delegation.events import Gone
from agentwatch.remote.protocol import EARLIEST, LATEST, Beat, Entry, Hello, Observed, Reply, Result, Workspace, signed
from tests.unit.delegation.events import Recorder, handoff
from tests.unit.remote.between import KEY, pair
from tests.unit.remote.shapes import any_of

NUMBERS = st.sampled_from([0, 1, 2, 3, -1, 1 << 62, -(1 << 62)])
TIMES = st.sampled_from([0.0, 1.7e9, EARLIEST, LATEST, 1e300, float("inf"), float("nan")])


def frames(epoch: str, workspace: str) -> st.SearchStrategy[Any]:
    """All that it may say."""
    names, epochs = st.sampled_from([workspace, "another", "../../etc", ""]), st.sampled_from([epoch, "another"])
    about: Any = {"workspace": names, "epoch": epochs, "after": NUMBERS, "upto": NUMBERS}
    entries = st.lists(any_of(Entry), max_size=3).map(tuple)
    parts = st.sampled_from([0, 1, 2, 1 << 62])
    return st.one_of(
        st.builds(Observed, **about, part=st.sampled_from([0, 1, 2]), parts=parts, entries=entries),
        st.builds(Observed, **about, entries=st.just((Entry(gone=Gone(1, 1e300, "a")),))),
        st.builds(Beat, epoch=epochs, now=TIMES, seqs=st.dictionaries(names, NUMBERS, max_size=2)),
        any_of(Hello),
        any_of(Result),
        any_of(Reply),
    )


@given(st.data())
def test_whatever_a_host_says_the_screen_goes_on(data):
    host, screen = pair()
    screen.exchange()
    for frame in data.draw(st.lists(frames(host.epoch, host.part.workspace.id), min_size=1, max_size=6)):
        # Only the echo of what was just said counts.
        echo = {screen.host.screen: screen.host.steady()}
        said = frame.model_copy(update={"echo": echo}) if isinstance(frame, Beat | Hello) else frame
        screen.host._receive(signed(said, KEY))
        host.time.at += 1
        screen.host.tick()
    assert isinstance(screen.document()["tasks"], list)
    assert screen.host.why


def test_a_greeting_that_takes_much_memory_is_not_heard():
    host, screen = pair()
    host.see([Recorder().seen("a.json", handoff("a"))])
    screen.exchange()
    before = screen.document()
    sent = screen.host.steady()
    for count, name in ((30_000, "x"), (2, "x" * (5 << 20))):
        many = tuple(Workspace(id=f"{number:x}", path="", name=name) for number in range(count))
        hello = host._hello().model_copy(
            update={"epoch": "flood", "workspaces": many, "echo": {screen.host.screen: sent}}
        )
        with suppress(ValueError):
            screen.host._receive(signed(hello, KEY))
        screen.exchange()
    assert [task["task_id"] for task in before["tasks"]] == ["a"]
    assert screen.document() == before
    assert screen.host._epoch == host.epoch
