"""A host that says more than it may, without an end: a command ends in its time, and says what is missing."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest
from tests.broker import Broker, running
from tests.unit.delegation.events import BROKEN, handoff
from tests.unit.remote.between import KEY, pair
from tests.unit.remote.links import Nats, Pipes, Way

from agentwatch.cli import run as run_command
from agentwatch.contracts.shapes import Handoff
from agentwatch.delegation.events import Ran, Requested, Seen, Unreadable
from agentwatch.delegation.request import Request, RequestKind
from agentwatch.delegation.run import Run, RunState
from agentwatch.remote.host import MOST_NEWS, RemoteHost, RemoteSource
from agentwatch.remote.log import MOST, weight
from agentwatch.remote.protocol import (
    PROTOCOL,
    Beat,
    Entry,
    Frame,
    Hello,
    Observation,
    Observed,
    Standing,
    Watch,
    Workspace,
    signed,
    unpack,
)
from agentwatch.sources import Batch, Health

NOW: Final = 1_700_000_000.0
SHOP: Final = "shop"


def task(seq: int) -> Observation:
    return Seen(seq, NOW, f"{seq}.json", f"{seq:064x}", handoff(f"t{seq}"))


def version(seq: int) -> Observation:
    """Of one file, again and again another document."""
    return Seen(seq, NOW, "a.json", f"{seq:064x}", handoff("a"))


def large(seq: int) -> Observation:
    return Seen(seq, NOW, f"{seq}.json", f"{seq:064x}", Handoff(f"t{seq}", "x" * (4 << 20)))


def run(seq: int) -> Observation:
    place = f"/{seq}.jsonl"
    who = {"source": "s", "session_id": str(seq), "parent_session": None, "state": RunState.ENDED, "place": place}
    return Ran(seq, NOW, f"s:{place}", Run(**who, started_at=NOW, updated_at=NOW))  # type: ignore[arg-type]


def request(seq: int) -> Observation:
    name = f"{seq:032x}"
    what = {"kind": RequestKind.PERMISSION, "tool": "Bash", "input": "{}", "input_sha256": "0" * 64, "shown": "ls"}
    asked = Request(request_id=name, source="s", session_id="1", nonce="n", asked_at=NOW, **what)  # type: ignore[arg-type]
    return Requested(seq, NOW, name, asked)


def said(frame: Frame) -> bytes:
    return signed(frame, KEY)


def hello(epoch: str = "e", **more: Any) -> Hello:
    who = {"protocol": PROTOCOL, "agentwatch": "1", "host": "b", "host_key": KEY.public.text, "epoch": epoch}
    return Hello(**who, began_at=NOW, now=time.time(), **more)


class Flood:
    """A relay that says who it is, answers who asks whether it lives, and says `more` without an end."""

    def __init__(self, way: Way, more: Callable[[int], bytes]) -> None:
        self.way, self.more = way, more
        self.echo: dict[str, float] = {}
        self.over = threading.Event()
        way.end.start(self.hear, lambda _state: None)
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def hear(self, message: bytes) -> None:
        frame = unpack(message)
        if isinstance(frame, Watch):
            self.echo = {frame.screen: frame.sent}

    def send(self, message: bytes) -> None:
        for screen in [*self.echo]:
            self.way.end.send(message, screen)

    def run(self) -> None:
        number = 0
        asked = f"/{getattr(self.way.end, 'port', '')}"
        shops = (Workspace(id=SHOP, path="/w", name=SHOP, asked=(asked,)),)
        while not self.over.wait(0.001):
            if not self.echo:
                continue
            if number % 8 == 0:
                self.send(said(hello(workspaces=shops, echo=self.echo)))
                self.send(said(Beat(epoch="e", now=time.time(), echo=self.echo)))
            self.send(self.more(number))
            number += 1

    def stop(self) -> None:
        self.over.set()
        self.thread.join()


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    yield from running(tmp_path_factory.mktemp("broker"))


@pytest.fixture(params=["pipes", "nats"])
def way(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Way]:
    made = Pipes(tmp_path) if request.param == "pipes" else Nats(request.getfixturevalue("broker"))
    yield made
    made.stop()


def scanned(way: Way, more: Callable[[int], bytes], *, hurry: float = 1) -> tuple[Batch, RemoteSource]:
    """What a command is told of this host, by a clock that hurries."""
    flood = Flood(way, more)
    host = RemoteHost(way.link(), "build1", key=KEY.public, steady=lambda: time.monotonic() * hurry)
    source = RemoteSource(host)
    try:
        return source.scan(), source
    finally:
        source.stop()
        flood.stop()


def telling(make: Callable[[int], Observation], each: int, parts: int = 1 << 40) -> Callable[[int], bytes]:
    """So many parts of everything, with so many entries each; the last one says that this is all."""
    settled = Entry(standing=Standing(Health("live", ""), settled=True))

    def more(number: int) -> bytes:
        if number >= parts:
            return said(Beat(epoch="e", now=time.time()))
        made = (make(seq) for seq in range(10 + number * each, 10 + (number + 1) * each))
        entries = [Entry(**{type(one).__name__.lower(): one}) for one in made]  # type: ignore[arg-type]
        entries += [settled] * (number == parts - 1)
        about = {"workspace": SHOP, "epoch": "e", "after": 0, "upto": 9}
        return said(Observed(**about, part=number, parts=parts, entries=tuple(entries)))

    return more


@pytest.mark.parametrize("way", ["pipes"], indirect=True)  # NATS drops what comes too fast before it is counted
@pytest.mark.parametrize(
    ("make", "each", "kind"),
    [(task, 500, "tasks"), (run, 1_500, "runs"), (request, 20, "requests"), (large, 1, "MiB")],
)
def test_what_exceeds_a_limit_is_dropped_and_said(
    way: Way, make: Callable[[int], Observation], each: int, kind: str
) -> None:
    most = MOST[kind] // (1 if kind != "MiB" else 4 << 20)
    batch, source = scanned(way, telling(make, each, most // each + 3), hurry=0.2)  # a busy machine has the time, too
    assert source.log.held[kind] <= MOST[kind]
    assert len(batch.events) <= MOST["runs"] + 1
    assert batch.health.mode == "degraded"
    assert any("build1 sends more than" in str(one) and kind in str(one) for one in batch.health.problems)


def garbage(_number: int) -> bytes:
    return os.urandom(1 << 16)


def beat(number: int) -> bytes:
    return said(Beat(epoch="e", now=time.time(), echo={str(one): NOW for one in range(number % 1_000)}))


def another(number: int) -> bytes:
    return said(hello(f"e{number}"))


@pytest.mark.parametrize("more", [garbage, beat, another, telling(version, 100)])
def test_a_command_ends_in_its_time_while_more_comes(way: Way, more: Callable[[int], bytes]) -> None:
    batch, source = scanned(way, more, hurry=20)
    assert len(batch.events) < 1_000
    assert len(source.log.events()) < 1_000


def test_the_tree_of_a_host_that_floods_is_not_complete(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for variable in ("HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(variable, str(tmp_path / "operator"))
    way = Pipes(tmp_path)
    (tmp_path / "no-ssh").rename(tmp_path / "ssh")
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    flood = Flood(way, telling(request, 20, 53))
    run_command(["tree", "--json", f"ssh://127.0.0.1/{way.end.port}"])
    flood.stop()
    way.stop()
    tree = json.loads(capsys.readouterr().out)
    assert tree["complete"] is False
    assert any("sends more than 1,000 requests" in one["message"] for one in tree["problems"])


def test_of_a_flood_of_news_the_tree_is_made_anew_before_it_fills_the_memory() -> None:
    """Of what is gone again, a tree that remembers would hold everything."""
    host, screen = pair()
    host.see([Seen(1, NOW, "a.json", "1" * 64, handoff("a"))])
    screen.exchange()
    for seq in range(2, 200):
        # In the log each takes the place of the one before.
        host.see([Unreadable(seq, NOW + seq, "b.json", replace(BROKEN, message=f"{seq} {'x' * (2 << 20)}"))])
        screen.exchange()
    held = [0]
    for batch in screen.batches:
        size = sum(weight(one) for one in batch.events if isinstance(one, Unreadable))
        held.append(size if batch.anew else held[-1] + size)
    assert max(held) < 1.1 * MOST_NEWS
    assert any(batch.anew for batch in screen.batches)
