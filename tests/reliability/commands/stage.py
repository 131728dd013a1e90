"""A workspace with a task that failed, and the commands about it as real processes with directories of their own."""

from __future__ import annotations

import json
import os
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from hashlib import sha256
from io import StringIO
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

from agentwatch.cli import run
from agentwatch.decisions.keys import Keys
from tests.homes import state_in
from tests.unit.agents import documents

TASK = "shop.api"
HANDOFF = json.loads(documents.packet(TASK))


def returned(summary: str = "The migration timed out.") -> str:
    return documents.returned("ERROR", summary, f"task_id: {TASK}\n")


@dataclass
class Stage:
    """A workspace, all of whose files lie below `root`. `environment` holds additional variables of its processes."""

    root: Path
    environment: dict[str, str] = field(default_factory=dict)

    def __post_init__(self):
        self.workspace.mkdir(parents=True)
        (self.workspace / "api.handoff.json").write_text(json.dumps(HANDOFF, indent=2), "utf-8")
        self.give_back(returned())
        self.environment |= {
            "HOME": str(self.root / "home"),
            "XDG_DATA_HOME": str(self.root / "data"),
            "XDG_STATE_HOME": str(self.root / "state"),
            "XDG_CONFIG_HOME": str(self.root / "config"),
            "PYTHONUTF8": "1",
        }

    @property
    def workspace(self) -> Path:
        return self.root / "shop"

    @property
    def state(self) -> Path:
        return state_in(self.environment, self.workspace)

    @property
    def mirror(self) -> Path:
        return self.workspace / ".agentwatch" / "decisions"

    @property
    def keys(self) -> Keys:
        return Keys(self.root / "config" / "agentwatch")

    def give_back(self, text: str):
        """Write the return in one step, as agents should."""
        (self.root / "writing").write_text(text, "utf-8")
        (self.root / "writing").replace(self.workspace / "api.return.md")

    def digest(self) -> str:
        return sha256((self.workspace / "api.return.md").read_bytes()).hexdigest()

    def run(self, *words: str | Path, **environment: str) -> Ran:
        """Run a command to its end, in this process, as starting another takes longer than the command."""
        out, err = StringIO(), StringIO()
        with (
            patch.dict(os.environ, self.environment | environment),
            patch.object(sys, "stdin", StringIO()),
            redirect_stdout(out),
            redirect_stderr(err),
        ):
            code = run([*map(str, words)])
        return Ran(code, out.getvalue(), err.getvalue())

    def decide(self, *words: str) -> Ran:
        return self.run("decide", *words, "--yes", "--", TASK, self.workspace)

    def wait(self) -> Ran:
        return self.run("wait", TASK, self.workspace, "--timeout=0", "--json")

    def recorded(self) -> list[str]:
        """Return the names of the ledger's files."""
        return sorted(path.name for path in (self.state / "decisions").glob("*.json"))


class Ran(NamedTuple):
    """The exit code and the output of a command."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)
