"""Decisions over a network that loses, doubles, delays, reorders, replays and forges, and over ssh, with relays and
screens that are killed: at most one is recorded, and every operator is told the truth."""

import errno
import os
import random
import signal
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from functools import partial
from pathlib import Path
from queue import Empty, Queue
from typing import Any

import pytest

from agentwatch.decisions.record import Subject
from agentwatch.delegation.decision import Action
from agentwatch.remote.desk import RemoteDesk
from agentwatch.remote.host import RemoteHost
from agentwatch.remote.pipe import ProcessLink
from agentwatch.remote.protocol import Outcome, Result
from tests.unit.decisions.made import NOON, QUICK, Quick
from tests.unit.remote.between import Seen, until
from tests.unit.remote.far import OPERATORS, Host, Line, Said, told_the_truth
from tests.unit.remote.sshd import BIN, Sshd, needs_sshd
from tests.wrong_clock import WrongClock

ROUNDS = int(os.environ.get("AGENTWATCH_ROUNDS", "12"))
PER_HOST = 50
"""Tasks on one host, which reads all of them at once."""
HOUR = timedelta(hours=1)


def decide_all(desks: list[RemoteDesk], subjects: list[Subject], dice: random.Random) -> tuple[list[Said], Any]:
    """Let each operator decide at the same time; return their answers, and a function that waits for them."""
    said = [Said(dice.choice((Action.RETRY, Action.ABORT))) for _ in desks]
    deciding = zip(said, desks, subjects, strict=True)
    threads = [threading.Thread(target=one.decide, args=given) for one, *given in deciding]
    for thread in threads:
        thread.start()
    return said, lambda: [thread.join() for thread in threads]


class Network(Line):
    """Carries each message never, once or several times, late, in any order; now and then also an old message or a
    forged one."""

    def __init__(self, host: Host, dice: random.Random):
        super().__init__(host)
        self.dice = dice
        self.calm = False
        self.skew = timedelta()
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
            self.sent.append(request)
            if self.calm:
                self.carry(request, 0.0, 1, said)
                return
            texts = [request] * self.dice.choice((0, 1, 1, 2, 3))
            if self.dice.random() < 0.3:
                texts.append(self.dice.choice(self.sent))
            if self.dice.random() < 0.3:
                texts.append(self.forged(request))
            for text in texts:
                late, answers = self.dice.random() * 0.05, self.dice.choice((0, 1, 1, 2))
                to = said if text == request else Queue[Result]()
                self._air.append(threading.Thread(target=self.carry, args=(text, late, answers, to), daemon=True))
                self._air[-1].start()

    def forged(self, text: str) -> str:
        """Return a message as a forger without a key could make it from a message that was sent."""
        index = self.dice.randrange(len(text))
        strange = self.host.signed("t0", Action.ABORT, "stranger")
        stranger, kim = (self.host.keys[name].public.keyid for name in ("stranger", "kim"))
        changed = text[:index] + chr(ord(text[index]) ^ 1) + text[index + 1 :]
        return self.dice.choice((changed, text[:index], strange, strange.replace(stranger, kim)))

    def carry(self, text: str, late: float, answers: int, to: Queue[Result]):
        time.sleep(late)
        result = self.host.record(text)
        for _ in range(answers):
            time.sleep(late / 2)
            to.put(result)

    def settle(self):
        """Wait until all messages under way have arrived."""
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
    host = Host(root)
    for number in range(rounds):
        host.fail(f"t{number}")
    host.monitor()
    network = Network(host, dice)
    desks = [network.desk(name) for name in OPERATORS]
    for number in range(rounds):
        task = f"t{number}"
        host.now, network.skew = NOON + number * HOUR, timedelta()
        if dice.random() < 0.15:
            # The clocks of the operators' machines differ from the host's.
            network.skew = dice.choice((-HOUR, HOUR))
        said, join = decide_all(desks, [host.subject(task)] * 2, dice)
        if dice.random() < 0.2:
            path = host.workspace / f"{task}-1.return.md"
            path.write_text(path.read_text() + "\n")
        join()
        network.settle()
        network.calm, network.skew = True, timedelta()
        for desk, one in zip(desks, said, strict=True):
            if one.word == "unknown":
                # Making the same decision again is safe.
                one.decide(desk, host.subject(task))
                network.settle()
        network.calm = False
        told_the_truth(host, task, said)
    # The network is restored from an old backup: all messages come once more, at three different times.
    before = host.records()
    for moment in (host.now, host.now + HOUR, host.now - 3 * HOUR):
        host.now = moment
        for text in dice.sample(network.sent, len(network.sent)):
            network.carry(text, 0.0, 1, Queue())
    assert host.records() == before
    assert host.chain().problems == ()
    # The ledger holds only requests that one of the operators has signed.
    assert {record.signed_request for record in before} <= set(network.sent)


# Killed at each step


class Dead(Quick):
    """From call number `at` on, every call fails without a change, as if the process had been killed with -9 there."""

    def __init__(self, at: int):
        self.left = at
        for name in ("write", "link", "rename", "unlink", "mkdir", "fsync", "flock"):
            setattr(self, name, partial(self.do, getattr(QUICK, name)))

    def do(self, call: Callable[..., Any], *given: Any, **more: Any) -> Any:
        self.left -= 1
        if self.left <= 0:
            raise OSError(errno.EIO, "dead")
        return call(*given, **more)


@pytest.mark.parametrize("outcome", [Outcome.RECORDED, Outcome.DECIDED_OTHERWISE])
def test_a_relay_that_is_killed_gives_the_same_answer_later(tmp_path, outcome):
    at, disk = 0, Dead(0)
    while disk.left <= 0:
        at += 1
        host = Host(tmp_path / f"{at}")
        host.fail()
        if outcome is Outcome.DECIDED_OTHERWISE:
            host.record(host.signed(by="alice"))
        text = host.signed(action=Action.ABORT)
        host.disk = disk = Dead(at)
        host.forget()
        host.record(text)
        host.disk = QUICK
        host.forget()
        assert [host.record(text).outcome for _ in range(2)] == [outcome] * 2, at
        (made,) = host.records()
        assert host.chain().problems == ()
        # The decision reaches the agents, too.
        desk = host.open_desk()
        desk.update_mirror()
        copy = host.workspace / ".agentwatch" / "decisions" / f"{made.decision_id}.json"
        assert copy.read_bytes() == desk.ledger.read_bytes(host.chain().entries[0])
    assert at > 5


# Through ssh


class Hurried(RemoteHost):
    answer_seconds = 2.0
    again_seconds = 0.3


class Screen(Seen):
    """The screen of one operator, through an ssh of its own."""

    host_of = Hurried

    def __init__(self, sshd: Sshd, there: Host, name: str):
        link = ProcessLink(sshd.address("/anywhere"), [str(there.workspace)], program=sshd.program)
        super().__init__(link)
        self.desk = there.operator(self.host, lambda: self.source.workspace_id, name)
        self.look()

    def end_of(self, subject: Subject, said: Said):
        """Make the same decision again, which is safe, until its outcome is known."""

        def is_known() -> bool:
            if said.word == "unknown":
                said.decide(self.desk, subject)
            return said.word != "unknown"

        until(lambda: self.host.lost_since is None)
        until(is_known)


@needs_sshd
def test_both_operators_get_the_truth_whatever_is_killed(tmp_path):
    rounds, dice = max(2, ROUNDS // 6), random.Random(0)
    clock = WrongClock(tmp_path / "clock")
    sshd = Sshd(tmp_path / "there", path=f"{clock.install(tmp_path / 'bin')}:{BIN}:/usr/bin:/bin")
    there = Host(tmp_path, home=sshd.home)
    for number in range(rounds):
        there.fail(f"t{number}")
    screens = [Screen(sshd, there, name) for name in OPERATORS]
    desks = [screen.desk for screen in screens]
    try:
        for screen in screens:
            until(lambda screen=screen: len(screen.tree.tasks) >= rounds and screen.host.lost_since is None)
        for number in range(rounds):
            task = f"t{number}"
            subjects = [screen.desk.subject(screen.tree.tasks[task]) for screen in screens]
            said, join = decide_all(desks, subjects, dice)
            if dice.random() < 0.4:
                # The clock of the host is changed by an hour during the decision.
                clock.set(dice.choice((-3600.0, 0.0, 3600.0)))
            time.sleep(dice.random() * 0.3)
            victims = sshd.relays() if dice.random() < 0.7 else sshd.clients()
            for victim in dice.sample(victims, min(len(victims), dice.choice((1, 2)))):
                with suppress(ProcessLookupError):
                    os.kill(victim, signal.SIGKILL)
            join()
            for screen, subject, one in zip(screens, subjects, said, strict=True):
                screen.end_of(subject, one)
            assert there.chain().problems == ()
            told_the_truth(there, task, said)
    finally:
        for screen in screens:
            screen.source.stop()
        sshd.stop()
