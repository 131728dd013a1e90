"""The promises of every link, whatever carries the messages: those who use one need not know which it is."""

import asyncio
import json
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from agentwatch.composition import desk_of
from agentwatch.config import Settings
from agentwatch.delegation.events import Tick
from agentwatch.monitor import Monitor
from agentwatch.remote import pipe
from agentwatch.remote.pipe import Link, LinkState, stay_connected
from agentwatch.remote.protocol import Outcome
from agentwatch.remote.relay import Relay, Relayed
from agentwatch.sources.files.source import FilesSource
from agentwatch.view.document import tree_document
from tests.broker import running
from tests.unit.decisions.made import KIM
from tests.unit.remote.between import Seen, until
from tests.unit.remote.links import Heard, Nats, Pipes, Start, Way, bridge_in, starting, through_ssh
from tests.unit.remote.sshd import Sshd, needs_sshd

PACKET = '{"task_id": "%s", "objective": "count the seeds", "acceptance_criteria": ["done"], "scope": {"in": ["a"]}}'
LARGE = bytes(range(256)) * 3072
started = pytest.fixture(starting)


@pytest.fixture(scope="module")
def broker(tmp_path_factory):
    yield from running(tmp_path_factory.mktemp("broker"))


@pytest.fixture(scope="module")
def sshd(tmp_path_factory):
    place = tmp_path_factory.mktemp("sshd")
    there = Sshd(place / "there", path=f"{bridge_in(place)}:/usr/bin:/bin")
    yield there
    there.stop()


@pytest.fixture(autouse=True)
def hurried(monkeypatch):
    """Nobody waits long before he connects again."""
    monkeypatch.setattr(pipe, "FIRST_PAUSE", 0.02)
    monkeypatch.setattr(pipe, "LONGEST_PAUSE", 0.1)


@pytest.fixture(params=["pipes", pytest.param("ssh", marks=[needs_sshd, pytest.mark.slow]), "nats"])
def way(request, tmp_path):
    made: Way
    match request.param:
        case "pipes":
            made = Pipes(tmp_path)
        case "ssh":
            made = through_ssh(request.getfixturevalue("sshd"), tmp_path)
        case _:
            made = Nats(request.getfixturevalue("broker"))
    yield made
    made.stop()


def connected(way: Way, started: Start) -> tuple[Heard, Link, Heard]:
    """The ears of the relay; a link, and the ears of its screen, once each has heard the other."""
    hears, link = started(way.end), way.link()
    shown = started(link)
    meet(way, hears, link, shown, b"0")
    shown.is_up()
    return hears, link, shown


def meet(way: Way, hears: Heard, link: Link, shown: Heard, name: bytes):
    """Say something until both have heard it: what is said right after a cut may be lost."""

    def have_met() -> bool:
        link.send(b"a screen " + name)
        way.end.send(b"a relay " + name, link.screen)
        time.sleep(0.05)
        return b"a screen " + name in hears.messages and b"a relay " + name in shown.messages

    until(have_met, lambda: (hears.states, shown.states))


def said(heard: Heard) -> list[bytes]:
    return [one for one in heard.messages if not one.startswith((b"a screen", b"a relay"))]


def test_messages_of_any_size_arrive_whole_and_in_their_order(way, started):
    hears, link, shown = connected(way, started)
    messages = [*(b"%d" % number for number in range(50)), LARGE, os.urandom(200_000), b"the end"]
    for message in messages:
        link.send(message)
        way.end.send(message, link.screen)
    hears.has(b"the end")
    shown.has(b"the end")
    assert said(hears) == said(shown) == messages


def test_a_cut_is_told_and_the_link_is_up_again_by_itself(way, started):
    hears, link, shown = connected(way, started)
    for number in (b"1", b"2"):
        count = len(shown.states)
        way.cut()
        shown.until(lambda count=count: any(not one.up for one in shown.states[count:]))  # type: ignore[misc]
        down = next(one for one in shown.states[count:] if not one.up)
        assert down.words
        assert not down.fatal
        meet(way, hears, link, shown, number)
        shown.is_up()
    # A message that was cut in the middle is none.
    assert not said(hears)
    assert not said(shown)


def test_what_is_said_while_nobody_is_there_holds_nobody_up(way, started):
    link = way.link()
    link.send(b"before it began")
    began = time.monotonic()
    hears = started(way.end)
    for _ in range(100):
        way.end.send(LARGE[:10_000], link.screen)
    shown = started(link)
    for _ in range(100):
        link.send(LARGE[:10_000])
    assert time.monotonic() - began < 5
    meet(way, hears, link, shown, b"1")
    link.stop()
    link.send(b"when it has ended")
    way.end.stop()
    way.end.send(b"when it has ended", link.screen)


@contextmanager
def relaying(way: Way, workspace: Path) -> Iterator[Monitor]:
    """A relay that tells what is seen in a workspace."""
    desk = partial(desk_of, workspace, Settings())
    monitor = Monitor(workspace, Settings(), FilesSource(workspace), time.time, open_desk=desk)
    ready, relays = threading.Event(), list[Relay]()

    async def run():
        relays.append(Relay([Relayed("shop", monitor)], way.end, KIM, host="build1"))
        loops.append(asyncio.get_running_loop())
        ready.set()
        await relays[0].run()

    loops: list[asyncio.AbstractEventLoop] = []
    thread = threading.Thread(target=lambda: asyncio.run(run()))
    thread.start()
    ready.wait()
    try:
        yield monitor
    finally:
        loops[0].call_soon_threadsafe(relays[0].end)
        thread.join()


def test_after_any_cut_the_screen_shows_what_the_host_does(way, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    workspace = tmp_path / "shop"
    workspace.mkdir()
    seen = Seen(way.link())
    with relaying(way, workspace) as monitor:
        seen.look()
        for number in range(3):
            (workspace / f"{number}.handoff.json").write_text(PACKET % f"a.{number}")
            if number:
                way.cut()
            (workspace / f"more-{number}.handoff.json").write_text(PACKET % f"b.{number}")
            seen.until(lambda number=number: len(seen.tree.tasks) == 2 * number + 2 and seen.is_live)  # type: ignore[misc]

        def is_same() -> bool:
            monitor.tree.apply(Tick(0, time.time()))
            here = seen.document("/w")["tasks"]
            return json.loads(json.dumps(tree_document(monitor.tree, "/w")["tasks"])) == here  # type: ignore[no-any-return]

        seen.until(is_same)
        way.cut()

        digest = seen.tree.tasks["a.0"].attempts[0].handoff
        assert digest is not None
        seen.until(lambda: seen.source.ask("text", digest.digest) == PACKET % "a.0")
        assert seen.source.content(digest.digest) == PACKET % "a.0"
        result = seen.host.decide(seen.source.workspace_id, "request" + "x" * 300_000)
        assert result is not None
        assert result.outcome is Outcome.REFUSED
    seen.source.stop()


def test_who_asks_for_it_connects_without_a_pause():
    stopped, again, tries = threading.Event(), threading.Event(), list[float]()

    def connect() -> LinkState:
        tries.append(time.monotonic())
        again.set()
        if len(tries) == 4:
            stopped.set()
        return LinkState(up=False)

    stay_connected(connect, lambda _: None, stopped, again)
    assert tries[-1] - tries[0] < 1.0
