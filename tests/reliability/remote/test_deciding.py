"""Decisions over a network that loses, doubles, delays, reorders, replays and forges, to relays and from screens that
are killed: one is recorded or none, and what everybody is told is so."""

import os
import random
import signal
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from queue import Empty, Queue
from typing import Any

import pytest

from agentwatch.delegation.decision import Action
from agentwatch.disk import Disk
from agentwatch.remote.desk import RemoteDesk
from agentwatch.remote.protocol import Outcome, Result
from tests.unit.decisions.made import KIM, NOON, Quick
from tests.unit.remote.far import ALICE, STRANGER, Host, Line, Said, told_the_truth

ROUNDS = int(os.environ.get("AGENTWATCH_ROUNDS", "12"))
PER_HOST = 50
"""Tasks that one host has: it reads all of them at once."""
HOUR = timedelta(hours=1)


class Network(Line):
    """Carries each message never, once or several times, late, in any order; and now and then what it has seen before,
    or has made up."""

    def __init__(self, host: Host, dice: random.Random):
        super().__init__(host)
        self.dice = dice
        self.calm = False
        self.skew = timedelta()
        self.seen: list[str] = []
        self._guard = threading.Lock()
        self._air: list[threading.Thread] = []

    @property
    def now(self) -> float:
        return (self.host.now + self.skew).timestamp()

    def decide(self, workspace: str, request: str) -> Result | None:
        said = Queue[Result]()
        end = time.monotonic() + 0.2
        while time.monotonic() < end:
            self.send(request, said)
            with suppress(Empty):
                if (result := said.get(timeout=0.04)).outcome.is_final:
                    return result
        return None

    def send(self, request: str, said: Queue[Result]):
        with self._guard:
            self.seen.append(request)
            texts = [request] * (1 if self.calm else self.dice.choice((0, 1, 1, 2, 3)))
            if not self.calm and self.dice.random() < 0.3:
                texts.append(self.dice.choice(self.seen))
            if not self.calm and self.dice.random() < 0.3:
                texts.append(self.forged(request))
            for text in texts:
                late = 0.0 if self.calm else self.dice.random() * 0.05
                answers = 1 if self.calm else self.dice.choice((0, 1, 1, 2))
                to = said if text == request else Queue[Result]()
                self._air.append(threading.Thread(target=self._carry, args=(text, late, answers, to), daemon=True))
                self._air[-1].start()

    def forged(self, text: str) -> str:
        """As somebody who has no key would make it of what was seen."""
        index = self.dice.randrange(len(text))
        return self.dice.choice(
            (
                text[:index] + chr(ord(text[index]) ^ 1) + text[index + 1 :],
                text[:index],
                self.host.signed("t0", Action.ABORT, STRANGER, note=""),
                self.host.signed("t0", Action.ABORT, STRANGER, note="").replace(
                    STRANGER.public.keyid, KIM.public.keyid
                ),
            )
        )

    def _carry(self, text: str, late: float, answers: int, to: Queue[Result]):
        time.sleep(late)
        result = self.host.record(text)
        for _ in range(answers):
            time.sleep(late / 2)
            to.put(result)

    def settle(self):
        """All that is under way arrives."""
        while self._air:
            with self._guard:
                under_way, self._air = self._air, []
            for thread in under_way:
                thread.join(30)
                assert not thread.is_alive()


def test_two_operators_over_a_bad_network_get_the_truth(tmp_path):
    for number in range(-(-ROUNDS // PER_HOST)):
        rounds = min(PER_HOST, ROUNDS - number * PER_HOST)
        over_a_bad_network(tmp_path / str(number), rounds, random.Random(number))


def over_a_bad_network(root: Path, rounds: int, dice: random.Random):
    host = Host(root / "host")
    for number in range(rounds):
        host.fail(f"t{number}")
    host.monitor()
    network = Network(host, dice)
    desks = [network.desk(root / "kim"), network.desk(root / "alice", ALICE)]
    for number in range(rounds):
        said = [Said(dice.choice((Action.RETRY, Action.ABORT))) for _ in desks]
        host.now, network.skew = NOON + number * HOUR, timedelta()
        if dice.random() < 0.15:
            # The operators' machines do not know the host's clock.
            network.skew = dice.choice((-HOUR, HOUR))
        threads = [
            threading.Thread(target=decide, args=(host, desk, f"t{number}", one))
            for desk, one in zip(desks, said, strict=True)
        ]
        for thread in threads:
            thread.start()
        if dice.random() < 0.2:
            path = host.workspace / f"t{number}-1.return.md"
            path.write_text(path.read_text() + "\n")
        for thread in threads:
            thread.join()
        network.settle()
        network.calm, network.skew = True, timedelta()
        for desk, one in zip(desks, said, strict=True):
            if one.word == "unknown":
                # To decide the same again is safe.
                decide(host, desk, f"t{number}", one)
                network.settle()
        network.calm = False
        told_the_truth([one for one in host.records() if one.task_id == f"t{number}"], said)
    # The network was restored from an old backup: everything comes once more, today and in an hour.
    before = host.records()
    for moment in (host.now, host.now + HOUR, host.now - 3 * HOUR):
        host.now = moment
        for text in dice.sample(network.seen, len(network.seen)):
            network._carry(text, 0.0, 1, Queue())
    assert host.records() == before
    assert host.chain().problems == ()
    # Nothing is in the ledger that neither of them has signed.
    sent = set(network.seen)
    assert all(record.signed_request in sent for record in before)
    assert {record.operator for record in before} <= {"kim", "alice"}


def decide(host: Host, desk: RemoteDesk, task_id: str, said: Said):
    said.decide(desk, desk.subject(host.monitor().tree.tasks[task_id]))


# Killed at each step


class Deadly(Quick):
    """Ends its process, as kill -9 does, before call number `at` to the system, or right behind it."""

    def __init__(self, at: int, *, behind: bool):
        self.left, self.behind = at, behind

    def __getattribute__(self, name: str) -> Any:
        call = super().__getattribute__(name)
        if name not in _DEADLY:
            return call

        def counted(*given: Any, **more: Any) -> Any:
            self.left -= 1
            if self.left == 0 and not self.behind:
                os.kill(os.getpid(), signal.SIGKILL)
            done = call(*given, **more)
            if self.left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return done

        return counted


_DEADLY = frozenset({"write", "link", "rename", "unlink", "mkdir", "fsync", "flock"})
"""These change something, or let others do so."""


_PATIENCE = 60
"""Seconds in which a process has been killed or has ended."""


def killed(do: Callable[[Disk], None], at: int, *, behind: bool) -> bool:
    """Whether doing this in a process of its own was cut off there."""
    child = os.fork()
    if child == 0:
        # What a thread of another test holds, nobody gives back here.
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(_PATIENCE)
        try:
            do(Deadly(at, behind=behind))
        finally:
            os._exit(0)
    _, status = os.waitpid(child, 0)
    assert not os.WIFSIGNALED(status) or os.WTERMSIG(status) == signal.SIGKILL, "it was held up"
    return os.WIFSIGNALED(status)


@pytest.mark.parametrize("behind", [False, True])
@pytest.mark.parametrize("outcome", [Outcome.RECORDED, Outcome.DECIDED_OTHERWISE])
def test_a_relay_that_is_killed_gives_the_same_answer_later(tmp_path, behind, outcome):
    at, cut = 0, True
    while cut:
        at += 1
        host = Host(tmp_path / f"{at}")
        host.fail()
        if outcome is Outcome.DECIDED_OTHERWISE:
            host.record(host.signed(key=ALICE))
        text = host.signed(action=Action.ABORT, note="")
        host.monitor()

        def record(disk: Disk, host: Host = host, text: str = text):
            host.disk = disk
            host.forget()
            host.record(text)

        cut = killed(record, at, behind=behind)
        host.forget()
        result = host.record(text)
        assert result.outcome is outcome, at
        assert host.record(text).outcome is outcome
        assert len(host.records()) == 1
        assert host.chain().problems == ()
        # And it gets to the agents.
        desk = host.open_desk()
        desk.mirror()
        (record_there,) = host.records()
        copy = host.workspace / ".agentwatch" / "decisions" / f"{record_there.decision_id}.json"
        assert copy.read_bytes() == desk.ledger.bytes_of(host.chain().entries[0])
    assert at > 5
