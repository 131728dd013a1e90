"""Writes sessions of Claude Code from lists of deeds, one agent after the other, and reads the resulting tasks."""

import json
import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from tests.goldens.world import run
from tests.unit.claude_code.building import Log, Store, meta, packet, returned

MOVED = (
    "Command did not complete within its 120s timeout and was moved to the background (ID: b1). Output is being written"
    " to: /tmp/b1.output. You will be notified when it completes."
)
REFUSED = "The user doesn't want to proceed with this tool use. The tool use was rejected."

Deed = Sequence[Any]


def tasks_of(workspace: Path) -> dict[str, dict[str, Any]]:
    """Return the tasks that `agentwatch tree PATH --json` prints, by their ids."""
    printed = json.loads(run("tree", str(workspace), "--json").out)
    return {task["task_id"]: task for task in printed["tasks"]}


class Session(Store):
    """A session in a workspace whose agents work one after the other; each record takes a second."""

    def __init__(self, home: Path, workspace: Path):
        super().__init__(workspace)
        self.workspace, self.home = workspace, home / ".claude"
        self.time = datetime.fromtimestamp(int(time.time()), UTC) - timedelta(seconds=80_000)
        self._main = self.session()
        self._main.asked("Build the shop.")

    @property
    def files(self) -> dict[Path, bytes]:
        return {path: data.replace(b"$WS", bytes(self.workspace)) for path, data in super().files.items()}

    def task(
        self,
        task_id: str,
        deeds: Sequence[Deed],
        text: str,
        *,
        criteria: Sequence[str] = (),
        meanwhile: Sequence[Deed] = (),
        by_parent: Sequence[Deed] = (),
    ):
        """Add an agent that gets a task, does the deeds and returns the text. Another agent does the deeds of
        `meanwhile` at the same time, and the session itself those of `by_parent`."""
        wanted = {"success_criteria": list(criteria)} if criteria else {}
        prompts = [packet(task_id, **wanted), packet(f"{task_id}.other")][: 2 if meanwhile else 1]
        agents = {f"a{len(self.logs) + number}": prompt for number, prompt in enumerate(prompts)}
        logs = list[Log]()
        for agent, prompt in agents.items():
            self._main.delegated(f"call_{agent}", prompt)
            logs.append(self.agent(agent, meta(f"call_{agent}")))
            logs[-1].asked(prompt)
        for log, done in ((logs[0], deeds), (self._main, by_parent), (logs[-1], meanwhile)):
            for deed in done:
                _do(log, f"toolu_{self.new_id()}", *deed)
        for agent, log, said in zip(agents, logs, (text, returned()), strict=False):
            log.said(said)
            self._main.returned(f"call_{agent}", agent, said)


def _do(log: Log, call: str, kind: str, *what: Any):
    if kind in ("wrote", "used"):
        tool, given, how = (what[0], what[1], "") if kind == "used" else (what[1], {"file_path": what[0]}, what[2])
        log.used(tool, call, **given)
        failed = {"refused": REFUSED, "failed": "Error: no such text"}.get(how)
        log.got(call, failed or "ok", error=failed is not None)
        return
    cwd = {"cwd": what[3]} if len(what) > 3 else {}
    log.answered({"type": "tool_use", "id": call, "name": "Bash", "input": {"command": what[0]}}, **cwd)
    if kind == "ran" and what[1] == 0:
        log.got(call, what[2], stdout=what[2], stderr="", interrupted=False)
    elif kind == "ran":
        log.got(call, f"Exit code {what[1]}\n{what[2]}", error=True)
    elif kind != "open":
        words = {"refused": REFUSED, "moved": MOVED}.get(kind, "Command running in background with ID: b1")
        log.got(call, words, error=kind == "refused")
