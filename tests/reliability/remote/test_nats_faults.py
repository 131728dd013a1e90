"""Two operators and a host over a real NATS server, while everything between them fails: decisions are recorded once or
not at all, everybody is told what is so, and afterwards all see the same."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import threading
import time
from collections import deque
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from nats.aio.client import Client

from agentwatch.decisions.errors import DecisionError, UncertainError, UnreachableError
from agentwatch.decisions.keys import Keys, Role
from agentwatch.decisions.ledger import Ledger
from agentwatch.delegation.decision import Action
from agentwatch.remote.desk import RemoteDesk
from agentwatch.remote.nats import Login, NatsHub, asked
from agentwatch.remote.nats_accounts import accounts, host_of, host_subject, screen_subject, store_subject
from agentwatch.remote.protocol import Observed, signed
from agentwatch.state import workspace_id
from tests.broker import Broker, Wire, new_key
from tests.reliability.commands.stage import HANDOFF, returned
from tests.unit.decisions.made import at
from tests.unit.remote.seen import Seen, until
from tests.wrong_clock import WrongClock

ROUNDS = int(os.environ.get("AGENTWATCH_ROUNDS", "1"))
PER_FLEET = 10
"""Rounds in one fleet; several run beside each other with `-n`."""
SECONDS = 90.0
HOUR = 3600.0
LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)
OF_CLOCKS = "set the clocks"


class Machine:
    """A host with agents, a relay that can be killed, and a clock that is ahead by so many seconds."""

    def __init__(self, root: Path, ahead: float) -> None:
        self.workspace, self.configuration = root / "shop", root / "config"
        self.workspace.mkdir(parents=True)
        self.environment = os.environ | {
            "HOME": str(root / "home"),
            "XDG_STATE_HOME": str(root / "state"),
            "XDG_DATA_HOME": str(root / "data"),
            "XDG_CONFIG_HOME": str(self.configuration),
        }
        self.state = root / "state" / "agentwatch" / workspace_id(self.workspace)
        self.keys = Keys(self.configuration / "agentwatch")
        self.key = self.keys.create()
        self.clock, self.ahead = WrongClock(root / "clock"), ahead
        self.clock.set(ahead)
        self.url = ""
        self._relay: subprocess.Popen[bytes] | None = None

    def run(self, *words: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [*self.clock.command, *words],
            env=self.environment,
            stdout=subprocess.PIPE if "--json" in words else subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def start(self) -> None:
        self._relay = self.run("relay", "--nats", self.url, str(self.workspace))

    def kill(self, how: signal.Signals = signal.SIGKILL) -> None:
        if self._relay is not None:
            self._relay.send_signal(how)
            self._relay.wait(20)
            self._relay = None

    def fail(self, number: int) -> str:
        """A task that was handed out, and came back with an error. Returns its id."""
        task = f"t{number}"
        self._write(f"{task}.handoff.json", json.dumps(HANDOFF | {"task_id": task}))
        self._write(f"{task}.return.md", returned(f"Number {number}.").replace("task_id: shop.api", f"task_id: {task}"))
        return task

    def _write(self, name: str, text: str) -> None:
        """A file with the time of this machine."""
        beside = self.workspace / f"{name}.new"
        beside.write_text(text, "utf-8")
        os.utime(beside, (time.time() + self.ahead,) * 2)
        beside.rename(self.workspace / name)

    def tree(self) -> list[dict[str, Any]]:
        with self.run("tree", "--json", str(self.workspace)) as printing:
            assert printing.stdout is not None
            tasks: list[dict[str, Any]] = json.load(printing.stdout)["tasks"]
        return tasks

    def records(self) -> list[Any]:
        if not self.state.exists():
            return []
        return [
            entry.record for entry in Ledger(self.state, workspace_id(self.workspace)).read(self.keys.trust()).entries
        ]


class Operator:
    """Somebody on another machine, and what their screen shows."""

    def __init__(self, root: Path, machine: Machine) -> None:
        self.keys = Keys(root / "config")
        self.key = self.keys.create()
        self.machine, self.root = machine, root
        self.ahead = 0.0
        """Seconds by which the clock here is."""
        self.seen: Seen

    def look(self, url: str) -> None:
        link = NatsHub(url, Login(self.key)).link(self.machine.key.public)
        self.seen = Seen(link, self.machine.key.public, clock=lambda: time.time() + self.ahead)
        place = self.root / "place"
        self.desk = RemoteDesk(
            self.seen.host,
            lambda: self.seen.source.workspace_id,
            place,
            state=self.root / "state",
            configuration=self.root / "config",
        )
        self.seen.look()

    def has(self, task: str) -> bool:
        """Whether the screen shows what came back of a task."""
        known = self.seen.tree.tasks.get(task)
        return known is not None and known.latest is not None and known.latest.returned is not None

    def tasks(self) -> list[dict[str, Any]]:
        return [task | {"host": None} for task in self.seen.document("/w")["tasks"]]

    def decide(self, task: str, action: Action, told: dict[str, str]) -> None:
        """Decide as a person does: again, while nobody knows whether it was recorded."""
        subject = self.desk.subject(self.seen.tree.tasks[task])
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            try:
                made = self.desk.decide(subject, action, returned=lambda: subject.return_sha256, note="x")
            except (UncertainError, UnreachableError):
                time.sleep(0.2)
            except DecisionError as error:
                # A clock was set while it was under way: then it is not recorded, and a person decides again.
                is_recorded = any((one.task_id, one.action) == (task, action) for one in self.machine.records())
                if OF_CLOCKS in str(error) and not is_recorded:
                    time.sleep(0.2)
                    continue
                told[action] = f"{type(error).__name__}: {error}"
                return
            else:
                told[action] = f"recorded {made.record.decision_id}"
                return
        told[action] = "never told"


class Spy(NatsHub):
    """Somebody who hears what everybody says to everybody."""

    def __init__(self, url: str, login: Login) -> None:
        super().__init__(url, login)
        self._subject = "agentwatch.>"
        self.heard = deque[tuple[str, bytes]](maxlen=400)
        self._thread.start()

    async def _hear(self, message: Any) -> None:
        self.heard.append((message.subject, message.data))


class Fleet:
    """The machine, two operators, and a server between them with the accounts that are printed."""

    def __init__(self, root: Path, ahead: float) -> None:
        self.root = root
        self.machine = Machine(root / "build1", ahead)
        self.operators = [Operator(root / name, self.machine) for name in ("kim", "alex")]
        self.eve = new_key()
        for one, name in zip(self.operators, ("kim", "alex"), strict=True):
            with at(LONG_AGO):
                self.machine.keys.trust_other(Role.OPERATOR, one.key.public, name)
        names = [(str(number), one.key.public) for number, one in enumerate(self.operators)]
        text = accounts(names, [("build1", self.machine.key.public), ("eve", self.eve.public)])
        self.broker = Broker(root / "broker", text).start().make_store(Login(self.operators[0].key))
        self.wire, self.there = Wire(self.broker), Wire(self.broker)
        self.machine.url = self.there.url
        self.machine.start()
        for one in self.operators:
            one.look(self.wire.url)
        self.spy = Spy(self.broker.url, Login(self.operators[0].key))
        self.heard = self.spy.heard

    def stop(self) -> None:
        for one in self.operators:
            one.seen.source.stop()
        self.machine.kill()
        self.spy.link(self.machine.key.public).stop()
        self.wire.stop()
        self.there.stop()
        self.broker.stop()

    # What can go wrong

    def kill_broker(self) -> None:
        self.broker.kill()
        time.sleep(random.uniform(0, 1))
        self.broker.start()

    def restore_broker(self) -> None:
        """What it had some time ago is what it has."""
        self.broker.kill()
        old, now = self.root / "old", self.broker.store
        if old.exists():
            shutil.rmtree(now)
            shutil.copytree(old, now)
        else:
            shutil.copytree(now, old)
        self.broker.start()

    def wipe_broker(self) -> None:
        self.broker.kill()
        shutil.rmtree(self.broker.store)
        self.broker.start()
        self.broker.make_store(Login(self.operators[0].key))

    def kill_relay(self) -> None:
        self.machine.kill()
        self.machine.start()

    def kill_both(self) -> None:
        self.machine.kill()
        self.kill_broker()
        self.machine.start()

    def cut_screens(self) -> None:
        self._cut(self.wire)

    def cut_relay(self) -> None:
        self._cut(self.there)

    def _cut(self, wire: Wire) -> None:
        """The connections break, in the middle of what they carry."""
        wire.cut(random.randrange(3000))
        time.sleep(random.uniform(0, 0.3))
        wire.mend()

    def replay(self) -> None:
        """All that was said lately is delivered again, doubled and in any order, requests for decisions, too."""

        async def again(client: Client) -> None:
            for subject, data in random.sample(list(self.heard), len(self.heard)) * 2:
                await client.publish(subject, data)
            await client.flush()

        asked(self.broker.url, Login(self.operators[0].key), again)

    def forge(self) -> None:
        """Frames and decisions of somebody with another key, and true ones that were changed."""
        host, screens = host_of(self.machine.key.public), [one.seen.host.screen for one in self.operators]

        async def lie(client: Client) -> None:
            name = self.operators[0].seen.source.workspace_id
            reset = signed(Observed(workspace=name, epoch="0" * 16, after=0, upto=99, parts=1), self.eve)
            lies = [(screen_subject(host, screen), reset) for screen in screens] + [(store_subject(host), reset)]
            lies += [
                (host_subject(host), b'={"kind":"decide","screen":"s","workspace":"%s","request":"x"}' % name.encode())
            ]
            lies += [(host_subject(host), b"junk")]
            for subject, data in list(self.heard)[-50:]:
                changed = bytearray(data)
                changed[random.randrange(len(changed))] ^= 1 << random.randrange(8)
                lies.append((subject, bytes(changed)))
            for subject, data in lies:
                await client.publish(subject, data)
            await client.flush()

        asked(self.broker.url, Login(self.operators[1].key), lie)

    def speak_for_another(self) -> None:
        """A sandbox with a key of its own says something for the host, and has the server say something."""
        host = host_of(self.machine.key.public)

        async def speak(client: Client) -> None:
            own = store_subject(host_of(self.eve.public))
            for subject in (
                store_subject(host),
                screen_subject(host, self.operators[0].seen.host.screen),
                host_subject(host),
            ):
                await client.publish(subject, b"evil")
                await client.publish(own, b"evil", reply=subject)
            await client.flush()

        asked(self.broker.url, Login(self.eve), speak)

    def set_the_screens_clocks(self) -> None:
        for one in self.operators:
            one.ahead = random.choice((-HOUR, 0, HOUR))

    def nothing(self) -> None:
        """All goes well."""


FAULTS = (
    *("nothing", "kill_broker", "restore_broker", "wipe_broker", "kill_relay", "kill_both", "set_the_screens_clocks"),
    *("cut_screens", "cut_relay", "replay", "forge", "speak_for_another"),
)


@pytest.fixture
def fleet(tmp_path: Path, start: int) -> Iterator[Fleet]:
    """Its host goes by a clock that is an hour ahead, or behind, or right."""
    fleet = Fleet(tmp_path, (HOUR, -HOUR, 0.0)[start // PER_FLEET % 3])
    yield fleet
    fleet.stop()


@pytest.mark.parametrize("start", range(0, ROUNDS, PER_FLEET))
def test_whatever_fails_each_decision_counts_once_and_everybody_is_told_the_truth(fleet: Fleet, start: int) -> None:
    machine, operators = fleet.machine, fleet.operators
    faults = FAULTS * min(PER_FLEET, ROUNDS - start)
    for number, fault in enumerate(faults):
        told = both_decide(fleet, machine.fail(number), fault)
        records = [record for record in machine.records() if record.task_id == f"t{number}"]
        assert len(records) == 1, (fault, told, records)
        holds, other = records[0].action, Action.ABORT if records[0].action == Action.RETRY else Action.RETRY
        assert told[holds] == f"recorded {records[0].decision_id}", (fault, told)
        assert "that holds" in told[other], (fault, told)
    # Nothing was recorded besides, and all see what the host sees, once the clocks agree on what time it is.
    for one in operators:
        one.ahead = machine.ahead
    assert len(machine.records()) == len(faults)
    assert len(machine.tree()) == len(faults)
    until(lambda: not differences(operators, machine), lambda: differences(operators, machine))


def both_decide(fleet: Fleet, task: str, fault: str) -> dict[str, str]:
    """Both operators decide about a task at once while something fails. Returns what each was told."""
    operators, told = fleet.operators, dict[str, str]()
    until(lambda: all(one.has(task) for one in operators), lambda: (fault, [one.seen.health for one in operators]))
    deciding = [
        threading.Thread(target=one.decide, args=(task, action, told))
        for one, action in zip(operators, (Action.RETRY, Action.ABORT), strict=True)
    ]
    for one in deciding:
        one.start()
    time.sleep(random.uniform(0, 0.2))
    getattr(fleet, fault)()
    for one in deciding:
        one.join()
    return told


def differences(operators: list[Operator], machine: Machine) -> list[object]:
    """What some screens show otherwise: the task, the key, what they say and what the host says."""
    there = machine.tree()
    found: list[object] = []
    for one in operators:
        tasks = one.tasks()
        found += [len(tasks)] * (len(tasks) != len(there))
        for here, task in zip(tasks, there, strict=False):
            found += [(here["task_id"], key, here[key], task[key]) for key in here if here[key] != task[key]]
    return found[:8]
