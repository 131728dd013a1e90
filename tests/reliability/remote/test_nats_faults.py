"""Two operators and a host over a real NATS server while the connections between them fail: decisions are recorded at
most once, everybody is told the truth, and in the end all see the same."""

import json
import os
import random
import shutil
import subprocess
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from agentwatch.delegation.decision import Action
from agentwatch.remote.nats import Login, NatsHub
from agentwatch.remote.nats_accounts import format_accounts
from tests.broker import Broker, Wire
from tests.unit.remote.between import Seen, until
from tests.unit.remote.far import OPERATORS, Host, Said, told_the_truth
from tests.wrong_clock import WrongClock

ROUNDS = int(os.environ.get("AGENTWATCH_ROUNDS", "1"))
PER_FLEET = 10
"""Rounds in one fleet; several fleets run at the same time with `-n`."""
SECONDS = 90.0
HOUR = 3600.0


class Machine(Host):
    """A host with agents, a relay that can be killed, and a clock that is ahead by so many seconds."""

    def __init__(self, root: Path, ahead: float):
        home = root / "home"
        super().__init__(root, home=home)
        names = {"HOME": "", "XDG_STATE_HOME": "state", "XDG_DATA_HOME": "data", "XDG_CONFIG_HOME": "config"}
        self.environment = os.environ | {name: str(home / place) for name, place in names.items()}
        self.clock, self.ahead, self.url = WrongClock(root / "clock"), ahead, ""
        self.clock.set(ahead)

    def start(self):
        words = [*self.clock.command, "relay", "--nats", self.url, str(self.workspace)]
        quiet = subprocess.DEVNULL
        self._relay = subprocess.Popen(words, env=self.environment, stdout=quiet, stderr=quiet)

    def kill(self):
        self._relay.kill()
        self._relay.wait(20)

    def tree(self) -> list[dict[str, Any]]:
        words = [*self.clock.command, "tree", "--json", str(self.workspace)]
        printed = subprocess.run(words, env=self.environment, capture_output=True, check=False)
        return json.loads(printed.stdout)["tasks"]  # type: ignore[no-any-return]


class Operator:
    """An operator on another machine, with a screen."""

    def __init__(self, url: str, machine: Machine, name: str):
        self.ahead, key = 0.0, machine.keys[name]
        link = NatsHub(url, Login(key)).link(machine.key.public)
        clock, own_key = lambda: time.time() + self.ahead, lambda: key.public.text
        self.seen = Seen(link, machine.key.public, clock=clock, own_key=own_key)
        self.desk = machine.operator(self.seen.host, lambda: self.seen.source.workspace_id, name)
        self.seen.look()

    def has(self, task: str) -> bool:
        """Whether the screen shows the return of a task."""
        return any(one["task_id"] == task and one["reported_state"] for one in self.seen.document()["tasks"])

    def decide(self, task: str, said: Said):
        """Decide as a person does: again, as long as it is unknown whether the decision was recorded."""
        subject, end = self.desk.subject(self.seen.tree.tasks[task]), time.monotonic() + SECONDS
        while time.monotonic() < end:
            said.decide(self.desk, subject)
            # If a clock was changed during the decision, it is not recorded, and a person decides again.
            if said.word not in ("unknown", "not sent") and "set the clocks" not in said.word:
                return
            time.sleep(0.2)

    def sees(self, there: list[dict[str, Any]]) -> bool:
        """Whether the screen shows the same tasks as the host."""
        return [task | {"host": None} for task in self.seen.document()["tasks"]] == there


class Fleet:
    """The machine, two operators, and a server between them with the accounts that `fleet config` prints."""

    def __init__(self, root: Path, ahead: float):
        self.machine = Machine(root / "build1", ahead)
        names = [(name, self.machine.keys[name].public) for name in OPERATORS]
        text = format_accounts(names, [("build1", self.machine.key.public)])
        self.kim = Login(self.machine.keys["kim"])
        self.broker = Broker(root / "broker", text).start().make_store(self.kim)
        self.wire, self.there = Wire(self.broker), Wire(self.broker)
        self.machine.url = self.there.url
        self.machine.start()
        self.operators = [Operator(self.wire.url, self.machine, name) for name in OPERATORS]

    def stop(self):
        for one in self.operators:
            one.seen.source.stop()
        self.machine.kill()
        self.wire.stop()
        self.there.stop()
        self.broker.stop()

    # Faults

    def kill_broker(self):
        self.broker.kill()
        time.sleep(random.uniform(0, 1))
        self.broker.start()

    def wipe_broker(self):
        self.broker.kill()
        shutil.rmtree(self.broker.store)
        self.broker.start()
        self.broker.make_store(self.kim)

    def kill_relay(self):
        self.machine.kill()
        self.machine.start()

    def cut(self):
        """Break the connections, in the middle of their messages."""
        for wire in (self.wire, self.there):
            wire.cut()
            time.sleep(random.uniform(0, 0.3))

    def set_the_screens_clocks(self):
        for one in self.operators:
            one.ahead = random.choice((-HOUR, 0, HOUR))


FAULTS = ("kill_broker", "wipe_broker", "kill_relay", "set_the_screens_clocks", "cut")


@pytest.fixture
def fleet(tmp_path, start):
    """Return a fleet whose host has a clock that is an hour ahead, an hour behind, or right."""
    fleet = Fleet(tmp_path, (HOUR, -HOUR, 0.0)[start // PER_FLEET % 3])
    yield fleet
    fleet.stop()


@pytest.mark.parametrize("start", range(0, ROUNDS, PER_FLEET))
def test_each_decision_counts_once_whatever_fails(fleet, start):
    machine, operators = fleet.machine, fleet.operators
    faults = FAULTS * min(PER_FLEET, ROUNDS - start)
    for number, fault in enumerate(faults):
        task, said = f"t{number}", [Said(Action.RETRY), Said(Action.ABORT)]
        machine.fail(task)
        until(lambda: all(one.has(task) for one in operators), lambda: (fault, [one.seen.health for one in operators]))  # noqa: B023
        deciding = [
            threading.Thread(target=one.decide, args=(task, told)) for one, told in zip(operators, said, strict=True)
        ]
        for one in deciding:
            one.start()
        time.sleep(random.uniform(0, 0.2))
        getattr(fleet, fault)()
        for one in deciding:
            one.join()
        told_the_truth(machine, task, said)
        # An operator may see the other's decision before sending one.
        words = {"otherwise" if "already decided" in one.word else one.word for one in said}
        assert words == {"recorded", "otherwise"}, (fault, [one.word for one in said])
    # There are no other records, and once the clocks agree, all operators see the same as the host.
    tasks = machine.tree()
    assert len(machine.records()) == len(tasks) == len(faults)
    for operator in operators:
        operator.ahead = machine.ahead
        until(lambda: operator.sees(tasks), lambda: (operator.seen.document(), tasks))  # noqa: B023
