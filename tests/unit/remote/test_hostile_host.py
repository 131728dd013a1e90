"""A host with a trusted key that sends anything, as much as it likes: the screen goes on, and believes nothing about
other hosts; a command ends in time, and says what is missing."""

import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from itertools import count
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentwatch.contracts.shapes import Fields, Handoff
from agentwatch.delegation.events import Event, Gone, Ran, Seen, Unreadable
from agentwatch.remote.host import MOST_NEWS, RemoteHost, RemoteSource
from agentwatch.remote.log import MOST, memory_size
from agentwatch.remote.pipe import Change, Link, LinkState, Receive
from agentwatch.remote.protocol import (
    EARLIEST,
    LATEST,
    PROTOCOL,
    Beat,
    Entry,
    Frame,
    Hello,
    Observed,
    Reply,
    Result,
    Standing,
    Watch,
    Workspace,
    sign_frame,
    unpack_frame,
)
from agentwatch.sources import Batch, Health
from tests.unit.delegation.asking import request, requested, session
from tests.unit.delegation.events import BROKEN, handoff
from tests.unit.remote.between import KEY, NOON, pair
from tests.unit.remote.test_protocol import any_of

NUMBERS = st.sampled_from([0, 1, 2, 3, -1, 1 << 62, -(1 << 62)])
TIMES = st.sampled_from([0.0, 1.7e9, EARLIEST, LATEST, 1e300, float("inf"), float("nan")])


def frames(epoch: str, workspace: str) -> st.SearchStrategy[Any]:
    """Return all frames that the host may send."""
    names, epochs = st.sampled_from([workspace, "another", "../../etc", ""]), st.sampled_from([epoch, "another"])
    about = {"workspace": names, "epoch": epochs, "after": NUMBERS, "upto": NUMBERS}
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
def test_no_message_of_a_host_ends_the_screen(data):
    host, screen = pair()
    for frame in data.draw(st.lists(frames(host.epoch, host.part.workspace.id), min_size=1, max_size=6)):
        # A frame counts only with the echo of the screen's last message.
        echo = {screen.host.screen: screen.host.steady()}
        said = frame.model_copy(update={"echo": echo}) if isinstance(frame, Beat | Hello) else frame
        screen.link.receive(sign_frame(said, KEY))
        host.time.at += 1
        screen.host.tick()
    assert isinstance(screen.document()["tasks"], list)
    assert screen.host.why_lost


def seen(seq: int, document: Fields, name: object = "a") -> Seen:
    return Seen(seq, NOON, f"{name}.json", f"{seq:064x}", document)


def test_a_greeting_that_takes_much_memory_is_not_heard():
    host, screen = pair()
    host.see([seen(1, handoff("a"))])
    screen.exchange()
    before = screen.document()
    echo = {screen.host.screen: screen.host.steady()}
    for number, name in ((30_000, "x"), (2, "x" * (5 << 20))):
        many = tuple(Workspace(id=f"{one:x}", path="", name=name) for one in range(number))
        flood = host.hello().model_copy(update={"epoch": "flood", "workspaces": many, "echo": echo})
        with suppress(ValueError):
            screen.link.receive(sign_frame(flood, KEY))
        screen.exchange()
    assert [task["task_id"] for task in before["tasks"]] == ["a"]
    assert screen.document() == before
    assert screen.host.hello is not None
    assert screen.host.hello.epoch == host.epoch


# Without an end


def hello(epoch: str, **more: Any) -> Hello:
    who = {"protocol": PROTOCOL, "agentwatch": "1", "host": "b", "host_key": KEY.public.text}
    return Hello(**who, epoch=epoch, began_at=NOON, now=time.time(), **more)


class Flood(Link):
    """A host that says who it is, lives, and sends `more` without an end."""

    def __init__(self, more: Callable[[int], bytes | Frame]):
        self.more, self.over = more, threading.Event()
        self.echo: dict[str, float] = {}

    def start(self, receive: Receive, change: Change):
        self.receive = receive
        change(LinkState(up=True))
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def send(self, message: bytes, to: str = ""):
        if isinstance(frame := unpack_frame(message), Watch):
            self.echo = {frame.screen: frame.sent}

    def run(self):
        shop = (Workspace(id="shop", path="/w", name="shop"),)
        for number in count():
            if self.over.wait(0.001):
                return
            alive = hello("e", workspaces=shop, echo=self.echo), Beat(epoch="e", now=time.time(), echo=self.echo)
            for said in (*(alive if number % 8 == 0 else ()), self.more(number)):
                self.receive(said if isinstance(said, bytes) else sign_frame(said, KEY))

    def stop(self):
        self.over.set()
        self.thread.join()


def scanned(more: Callable[[int], bytes | Frame], *, hurry: float) -> tuple[Batch, RemoteSource]:
    """Return a command's news of this host, and its source; its clock is faster by `hurry`."""
    host = RemoteHost(Flood(more), "build1", key=KEY.public, steady=lambda: time.monotonic() * hurry)
    source = RemoteSource(host)
    try:
        return source.scan(), source
    finally:
        source.stop()


def telling(make: Callable[[int], Event], each: int, parts: int = 1 << 40) -> Callable[[int], Frame]:
    """Return so many parts, each with so many entries; the last part says that it is complete."""

    def more(number: int) -> Frame:
        if number >= parts:
            return Beat(epoch="e", now=time.time())
        made: list[Event | Standing] = [make(seq) for seq in range(10 + number * each, 10 + (number + 1) * each)]
        made += [Standing(Health("live", ""), settled=True)] * (number == parts - 1)
        entries = tuple(Entry.model_construct(**{type(one).__name__.lower(): one}) for one in made)
        return Observed(workspace="shop", epoch="e", after=0, upto=9, part=number, parts=parts, entries=entries)

    return more


@pytest.mark.parametrize(
    ("make", "each", "kind"),
    [
        (lambda seq: seen(seq, handoff(f"t{seq}"), seq), 500, "tasks"),
        (lambda seq: Ran(seq, NOON, f"{seq}", session()), 1_500, "runs"),
        (lambda seq: requested(request(seq), seq), 20, "requests"),
        (lambda seq: seen(seq, Handoff(f"t{seq}", "x" * (4 << 20)), seq), 1, "MiB"),
    ],
)
def test_events_beyond_a_limit_are_dropped_with_a_notice(make, each, kind):
    most = MOST[kind] // (1 if kind != "MiB" else 4 << 20)
    batch, source = scanned(telling(make, each, most // each + 3), hurry=0.2)  # a busy machine has the time, too
    assert source.log.amounts[kind] <= MOST[kind]
    assert len(batch.events) <= MOST["runs"] + 1
    assert batch.health.mode == "degraded"
    assert any("build1 sends more than" in str(one) and kind in str(one) for one in batch.health.problems)


@pytest.mark.parametrize(
    "more",
    [
        lambda _: os.urandom(1 << 16),
        lambda number: Beat(epoch="e", now=time.time(), echo={str(one): NOON for one in range(number % 1_000)}),
        lambda number: hello(f"e{number}"),
        telling(lambda seq: seen(seq, handoff("a")), 100),
    ],
)
def test_a_command_ends_in_its_time_while_more_comes(more):
    batch, source = scanned(more, hurry=20)
    assert len(batch.events) < 1_000
    assert len(source.log.events()) < 1_000


def test_after_a_flood_of_news_the_tree_is_made_anew():
    """A tree that remembers would keep every file that is gone again."""
    host, screen = pair()
    host.see([seen(1, handoff("a"))])
    screen.exchange()
    for seq in range(2, 140):
        # In the log each event replaces the one before.
        host.see([Unreadable(seq, NOON + seq, "b.json", replace(BROKEN, message=f"{seq} {'x' * (2 << 20)}"))])
        screen.exchange()
    held = [0]
    for batch in screen.batches:
        size = sum(memory_size(one) for one in batch.events if isinstance(one, Unreadable))
        held.append(size if batch.starts_over else held[-1] + size)
    assert max(held) < 1.1 * MOST_NEWS
    assert any(batch.starts_over for batch in screen.batches)
