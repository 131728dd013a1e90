"""The two ends of a decision: an orchestrator that hands off and waits, and an operator at a screen in a pty.

Neither knows of the other: what goes between them are the files of the workspace and the decisions.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from agentwatch.errors import ExitCode
from agentwatch.state import state_directory
from tests.terminal.emulator import DEADLINE, Terminal, agentwatch

RECORD = "\x13"


class Orchestrator:
    """What an agent does that delegates: it writes handoffs and returns, and has `agentwatch wait` tell it what to do.

    Everything lies below `root`; the workspace is called `shop`.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self.workspace = root / "shop"
        (self.workspace / "docs").mkdir(parents=True)
        (self.workspace / "docs" / "api.md").write_text("# The design\n", "utf-8")
        directories = {"HOME": "home", "XDG_STATE_HOME": "state", "XDG_CONFIG_HOME": "config", "XDG_DATA_HOME": "data"}
        self.environment = {name: str(root / directory) for name, directory in directories.items()}
        self._waits = ThreadPoolExecutor()

    def hand_off(self, packet: str) -> str:
        """Write a handoff, to where the one before it was. Returns the id of its task."""
        task_id: str = json.loads(packet)["task_id"]
        self._write(f"{task_id}.handoff.json", packet)
        return task_id

    def give_back(self, task_id: str, returned: str) -> None:
        """Write the return of a child, to where the one before it was."""
        self._write(f"{task_id}.return.{'json' if returned.startswith('{') else 'md'}", returned)

    def wait(self, task_id: str) -> Future[dict[str, Any]]:
        """Begin to wait for the decision about a task, as often as it takes."""
        return self._waits.submit(self._decision, task_id)

    def has_receipt(self, decision_id: str, stage: str) -> bool:
        """Whether agentwatch has told that a decision has got so far."""
        receipts = state_directory(self.workspace, self.environment) / "receipts"
        return any(receipts.glob(f"{decision_id}.{stage}*.json"))

    def recorded(self) -> list[str]:
        """The names of the ledger's files."""
        return sorted(path.name for path in state_directory(self.workspace, self.environment).glob("decisions/*.json"))

    def run(self, *words: str | Path) -> subprocess.CompletedProcess[str]:
        """Run another command about the workspace to its end."""
        environment = {**os.environ, **self.environment}
        return subprocess.run(
            agentwatch(*words), capture_output=True, text=True, check=False, timeout=DEADLINE, env=environment
        )

    def _decision(self, task_id: str) -> dict[str, Any]:
        end = time.monotonic() + DEADLINE
        while time.monotonic() < end:
            told = self.run("wait", task_id, self.workspace, "--json", "--timeout", "5")
            if told.returncode not in (ExitCode.PENDING, ExitCode.REFUSED, ExitCode.UNASKED):
                assert told.returncode == 0, told.stderr
                decision: dict[str, Any] = json.loads(told.stdout)
                return decision
        raise AssertionError(f"nobody decided about {task_id}")

    def _write(self, name: str, text: str) -> None:
        """As agents should: whole."""
        (self._root / "writing").write_text(text, "utf-8")
        (self._root / "writing").replace(self.workspace / name)


class Operator:
    """Who sits at the screen: presses keys, and believes what it shows."""

    def __init__(self, terminal: Terminal) -> None:
        self.terminal = terminal
        self.press = terminal.press
        self.sees = terminal.wait_for

    def opens(self, key: str, title: str) -> None:
        """Begin to decide about the selected task. Before the last line of the frame is there, no key is heard."""
        self.press(key)
        self.sees(rf"╔═ ◆ {title} ═")
        self.sees(r"^║ [◌○◆] ")

    def records(self) -> None:
        """Record what the dialog shows, as soon as it can be."""
        self.sees(r"◆ ctrl\+s records this decision")
        self.press(RECORD)
        self.sees(r"^ agentwatch ")

    def told(self, waiting: Future[dict[str, Any]]) -> dict[str, Any]:
        """What the orchestrator was told; the screen goes on meanwhile."""
        self.terminal.wait_until(waiting.done, "the orchestrator was told nothing")
        return waiting.result()

    def leaves(self, key: str = "q") -> None:
        self.press(key)
        assert self.terminal.wait_until_exit() == 0


@contextmanager
def screen(orchestrator: Orchestrator, columns: int = 140, lines: int = 40) -> Iterator[Operator]:
    """An operator who watches the workspace of an orchestrator."""
    command = agentwatch(orchestrator.workspace)
    with Terminal(command, columns=columns, lines=lines, environment=orchestrator.environment) as terminal:
        yield Operator(terminal)
