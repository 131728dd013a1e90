"""Decisions through a real ssh, with relays and connections killed while they are under way: once or not at all."""

import os
import random
import signal
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest

from agentwatch.decisions.envelope import SigningKey
from agentwatch.decisions.record import Subject
from agentwatch.delegation.decision import Action
from agentwatch.remote import host as module
from tests.reliability.remote.test_deciding import ROUNDS
from tests.unit.decisions.made import KIM
from tests.unit.remote.between import until
from tests.unit.remote.far import ALICE, Host, Said, desk_of, told_the_truth
from tests.unit.remote.sshd import BIN, SeenBySsh, Sshd, needs_sshd
from tests.wrong_clock import WrongClock

HERE = max(2, ROUNDS // 6)
HOUR = 3600.0


@pytest.fixture
def clock(tmp_path):
    """By which the host goes."""
    return WrongClock(tmp_path / "clock")


@pytest.fixture
def sshd(tmp_path, clock):
    running = Sshd(tmp_path / "there", path=f"{clock.install(tmp_path / 'bin')}:{BIN}:/usr/bin:/bin")
    yield running
    running.stop()


class Screen(SeenBySsh):
    """Of one operator, through an ssh of its own."""

    def __init__(self, sshd: Sshd, workspace: Path, root: Path, key: SigningKey):
        super().__init__(sshd, workspace)
        self.desk = desk_of(self.host, lambda: self.source.workspace_id, root, key)

    def end_of(self, subject: Subject, said: Said):
        """To decide the same again is safe, until it is known."""

        def is_known() -> bool:
            if said.word == "unknown":
                said.decide(self.desk, subject)
            return said.word != "unknown"

        until(lambda: self.host.lost_since is None)
        until(is_known)


@needs_sshd
def test_whatever_is_killed_both_are_told_what_is_recorded(sshd, clock, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "ANSWER_SECONDS", 2.0)
    monkeypatch.setattr(module, "AGAIN_SECONDS", 0.3)
    there = Host(tmp_path, home=sshd.home)
    for number in range(HERE):
        there.fail(f"t{number}")
    screens = [Screen(sshd, there.workspace, tmp_path / name, key) for name, key in (("kim", KIM), ("alice", ALICE))]
    dice = random.Random(0)
    try:
        for screen in screens:
            until(lambda screen=screen: len(screen.tree.tasks) >= HERE and screen.host.lost_since is None)
        for number in range(HERE):
            said = [Said(dice.choice((Action.RETRY, Action.ABORT))) for _ in screens]
            subjects = [screen.desk.subject(screen.tree.tasks[f"t{number}"]) for screen in screens]
            threads = [
                threading.Thread(target=one.decide, args=(screen.desk, subject))
                for screen, subject, one in zip(screens, subjects, said, strict=True)
            ]
            for thread in threads:
                thread.start()
            if dice.random() < 0.4:
                # Somebody sets the clock of the host, by an hour, while it is decided.
                clock.set(dice.choice((-HOUR, 0.0, HOUR)))
            time.sleep(dice.random() * 0.3)
            process = dice.choice(screens).link._process
            victims = sshd.relays() if dice.random() < 0.7 or process is None else [process.pid]
            for victim in dice.sample(victims, min(len(victims), dice.choice((1, 2)))):
                with suppress(ProcessLookupError):
                    os.kill(victim, signal.SIGKILL)
            for thread in threads:
                thread.join()
            for screen, subject, one in zip(screens, subjects, said, strict=True):
                screen.end_of(subject, one)
            assert there.chain().problems == ()
            told_the_truth([one for one in there.records() if one.task_id == f"t{number}"], said)
    finally:
        for screen in screens:
            screen.source.stop()
