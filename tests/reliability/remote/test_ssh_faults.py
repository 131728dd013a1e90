"""Whatever is killed, cut or stopped while agents write: in the end the screen shows what the host says of itself."""

from __future__ import annotations

import json
import os
import random
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from tests.unit.remote.sshd import BIN, SeenBySsh, Sshd, needs_sshd
from tests.wrong_clock import WrongClock

ROUNDS: Final = int(os.environ.get("AGENTWATCH_ROUNDS", "1"))
FAULTS: Final = ("ssh killed", "relay killed", "relay stopped", "cut while much is told", "clock wrong for a while")
HOUR: Final = 3600.0

RETURN: Final = """## Summary
Counted the seeds.

## Status
{status}

## Errors
- {words}
"""


@pytest.fixture(scope="module")
def clock(tmp_path_factory: pytest.TempPathFactory) -> WrongClock:
    """By which the host goes."""
    return WrongClock(tmp_path_factory.mktemp("clock") / "ahead")


@pytest.fixture(scope="module")
def sshd(tmp_path_factory: pytest.TempPathFactory, clock: WrongClock) -> Iterator[Sshd]:
    place = tmp_path_factory.mktemp("sshd")
    running = Sshd(place / "there", path=f"{clock.install(place / 'bin')}:{BIN}:/usr/bin:/bin")
    yield running
    running.stop()


class Agents:
    """They write, rewrite, delete and rename what they hand over."""

    def __init__(self, workspace: Path, seed: int) -> None:
        self.workspace = workspace
        self.random = random.Random(seed)

    def write(self, count: int) -> None:
        for _ in range(count):
            name = self.random.choice("abcdefgh")
            packet, returned = self.workspace / f"{name}.handoff.json", self.workspace / f"{name}.return.md"
            match self.random.randrange(6):
                case 0 | 1:
                    task_id = name if name < "c" else f"a.{name}"
                    attempt, items = self.random.randrange(1, 3), [f"- [ ] step {self.random.randrange(9)}"]
                    fields = {"task_id": task_id, "objective": "count", "attempt": attempt, "todos": items}
                    _write(packet, json.dumps(fields))
                case 2 | 3:
                    status = self.random.choice(["SUCCESS", "PARTIAL", "FAILED"])
                    _write(returned, RETURN.format(status=status, words=self.random.random()))
                case 4:
                    self.random.choice([packet, returned]).unlink(missing_ok=True)
                case 5:
                    if packet.exists():
                        packet.rename(self.workspace / f"{self.random.choice('abcdefgh')}.handoff.json")


def _write(path: Path, text: str) -> None:
    beside = path.with_suffix(".tmp")
    beside.write_text(text)
    beside.rename(path)


def plain(document: dict[str, Any]) -> dict[str, Any]:
    """Without what is the operator's own, and what only who was there a minute ago knows."""
    document = json.loads(json.dumps(document))
    document["summary"] = {key: value for key, value in document["summary"].items() if key not in _OWN}
    for task in document["tasks"]:
        for key in _OWN:
            task.pop(key, None)
    for key in ("host", "hosts", "worktrees"):
        document.pop(key, None)
    return document


_OWN: Final = ("seen", "unseen", "host")


@needs_sshd
@pytest.mark.parametrize("seed", range(ROUNDS))
def test_the_screen_shows_what_the_host_says_after_whatever_was_killed(
    sshd: Sshd, clock: WrongClock, tmp_path: Path, seed: int
) -> None:
    agents, seen = Agents(tmp_path, seed), SeenBySsh(sshd, tmp_path)
    agents.write(10)
    try:
        seen.until(lambda: seen.health.mode == "live")
        for fault in FAULTS:
            agents.write(5)
            happen(fault, seen, sshd, agents, clock)
            agents.write(5)
            settle(seen, sshd, tmp_path)
    finally:
        seen.source.stop()


def happen(fault: str, seen: SeenBySsh, sshd: Sshd, agents: Agents, clock: WrongClock) -> None:
    process = seen.link._process
    relays = sshd.relays()
    if fault == "clock wrong for a while":
        clock.set(agents.random.choice((-HOUR, HOUR)))
        agents.write(5)
        time.sleep(agents.random.uniform(0.0, 0.5))
        # What it has dated meanwhile it reads anew.
        clock.set(0)
    if fault == "cut while much is told":
        agents.write(100)
    if fault.startswith(("relay", "clock")):
        for pid in relays:
            os.kill(pid, signal.SIGSTOP if fault == "relay stopped" else signal.SIGKILL)
        if fault == "relay stopped":
            agents.write(5)
            time.sleep(agents.random.uniform(0.0, 0.5))
            for pid in relays:
                os.kill(pid, signal.SIGCONT)
    elif process is not None:
        time.sleep(agents.random.uniform(0.0, 0.2))
        os.kill(process.pid, signal.SIGKILL)


def settle(seen: SeenBySsh, sshd: Sshd, workspace: Path) -> None:
    """Wait until the two say the same."""

    def is_same() -> bool:
        if seen.health.mode == "live" and seen.tree.lost_since is None:
            documents[:] = [plain(sshd.document(workspace)), plain(seen.document(str(workspace)))]
        return len(documents) == 2 and documents[0] == documents[1]

    documents: list[dict[str, Any]] = []
    try:
        seen.until(is_same)
    except AssertionError:
        if len(documents) == 2:
            assert documents[1] == documents[0]
        raise
