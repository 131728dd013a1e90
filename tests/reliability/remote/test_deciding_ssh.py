"""Decisions through a real ssh, with relays and connections killed while they are under way: once or not at all."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from agentwatch.decisions.envelope import SigningKey
from agentwatch.decisions.errors import DecisionError
from agentwatch.decisions.keys import Role
from agentwatch.decisions.record import Record, Subject
from agentwatch.decisions.service import DecisionService
from agentwatch.delegation.decision import Action
from agentwatch.remote import host as module
from agentwatch.remote.desk import RemoteDesk
from agentwatch.state import workspace_id
from tests.reliability.remote.test_deciding import ROUNDS, Said, told_the_truth
from tests.unit.decisions.made import KIM, NOON, at
from tests.unit.remote.far import ALICE, Host, keys_of
from tests.unit.remote.seen import until
from tests.unit.remote.sshd import BIN, SeenBySsh, Sshd, needs_sshd
from tests.wrong_clock import WrongClock

HERE = max(2, ROUNDS // 6)
HOUR = 3600.0


@pytest.fixture
def clock(tmp_path: Path) -> WrongClock:
    """By which the host goes."""
    return WrongClock(tmp_path / "clock")


@pytest.fixture
def sshd(tmp_path: Path, clock: WrongClock) -> Iterator[Sshd]:
    running = Sshd(tmp_path / "there", path=f"{clock.install(tmp_path / 'bin')}:{BIN}:/usr/bin:/bin")
    yield running
    running.stop()


class Screen(SeenBySsh):
    """Of one operator, through an ssh of its own."""

    def __init__(self, sshd: Sshd, workspace: Path, root: Path, key: SigningKey) -> None:
        super().__init__(sshd, workspace)
        keys_of(root / "configuration", key)
        self.desk = RemoteDesk(
            self.host,
            lambda: self.source.workspace_id,
            Path("/ssh:build1:/shop"),
            state=root / "state",
            configuration=root / "configuration",
        )

    def subject(self, task_id: str) -> Subject:
        until(lambda: task_id in self.tree.tasks)
        return self.desk.subject(self.tree.tasks[task_id])

    def decide(self, subject: Subject, said: Said) -> None:
        try:
            self.desk.decide(subject, said.action, note="", returned=lambda: None)
        except DecisionError as error:
            said.hear(error)
        else:
            said.hear(None)

    def end_of(self, subject: Subject, said: Said) -> None:
        """To decide the same again is safe, until it is known."""

        def is_known() -> bool:
            if said.word == "unknown":
                self.decide(subject, said)
            return said.word != "unknown"

        until(lambda: self.host.lost_since is None)
        until(is_known)


@needs_sshd
def test_whatever_is_killed_one_decision_is_recorded_or_none_and_both_are_told_which(
    sshd: Sshd, clock: WrongClock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "ANSWER_SECONDS", 2.0)
    monkeypatch.setattr(module, "AGAIN_SECONDS", 0.3)
    there = Host(tmp_path)
    for number in range(HERE):
        there.fail(f"t{number}")
    desk = DecisionService(
        there.workspace,
        state=sshd.home / "state" / "agentwatch" / workspace_id(there.workspace),
        configuration=sshd.home / "config" / "agentwatch",
    )
    desk.keys.create()
    for key, name in ((KIM, "kim"), (ALICE, "alice")):
        with at(NOON.replace(year=2020)):
            desk.keys.trust_other(Role.OPERATOR, key.public, name)
    screens = [Screen(sshd, there.workspace, tmp_path / name, key) for name, key in (("kim", KIM), ("alice", ALICE))]
    dice, words = random.Random(0), list[str]()
    try:
        for screen in screens:
            until(lambda screen=screen: len(screen.tree.tasks) >= HERE and screen.host.lost_since is None)
        for number in range(HERE):
            said = [Said(dice.choice((Action.RETRY, Action.ABORT))) for _ in screens]
            subjects = [screen.subject(f"t{number}") for screen in screens]
            threads = [
                threading.Thread(target=screen.decide, args=(subject, one))
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
            chain = desk.read()
            assert chain.problems == ()
            records: list[Record] = [entry.record for entry in chain.entries]
            told_the_truth([one for one in records if one.task_id == f"t{number}"], said)
            words += [one.word for one in said]
    finally:
        for screen in screens:
            screen.source.stop()
    print(f"{HERE} rounds through ssh:", {word: words.count(word) for word in sorted(set(words))})
