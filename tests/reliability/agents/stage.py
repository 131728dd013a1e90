"""An empty workspace with directories of its own, the server and the operator's commands as real processes."""

import os
import re
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mcp import Client, StdioServerParameters, stdio_client

from tests.homes import state_in

SECONDS = 60
"""The time that a process may take on a machine under load; nothing is measured by it."""


@dataclass(frozen=True)
class Ran:
    """How a command ended and what it said."""

    code: int
    out: str
    err: str


@dataclass
class Stage:
    """Everything lies below `root`."""

    root: Path

    def __post_init__(self):
        (self.workspace / "docs").mkdir(parents=True)
        (self.workspace / "docs" / "api.md").write_text("The design.\n", "utf-8")
        self.configure("")

    @property
    def workspace(self) -> Path:
        return self.root / "shop"

    @property
    def state(self) -> Path:
        return state_in(self.environment, self.workspace)

    @property
    def environment(self) -> dict[str, str]:
        return {
            "HOME": str(self.root / "home"),
            "XDG_STATE_HOME": str(self.root / "state"),
            "XDG_CONFIG_HOME": str(self.root / "config"),
            "PYTHONUTF8": "1",
        }

    def configure(self, text: str):
        """Write the operator's settings."""
        directory = self.root / "config" / "agentwatch"
        directory.mkdir(parents=True, exist_ok=True)
        (directory / "config.toml").write_text(text, "utf-8")

    def run(self, *words: str | Path, given: str = "", environment: dict[str, str] | None = None) -> Ran:
        """Run a command to its end; `given` is its standard input."""
        done = subprocess.run(
            [sys.executable, "-m", "agentwatch", *map(str, words)],
            input=given,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
            env={**os.environ, **self.environment, **(environment or {})},
        )
        assert "Traceback" not in done.stderr, done.stderr
        return Ran(done.returncode, done.stdout, done.stderr)

    def decide(self, task_id: str, *words: str) -> str:
        """Decide in another process, as the operator does. Returns the decision id."""
        ran = self.run("decide", *words, "--yes", "--", task_id, self.workspace)
        assert ran.code == 0, ran.err
        found = re.search(r"decision ([0-9a-f]{32})$", ran.out, re.MULTILINE)
        assert found is not None, ran.out
        return found[1]

    def receipts(self, decision_id: str) -> list[str]:
        """The receipts of a decision, such as `read.mcp`."""
        names = (self.state / "receipts").glob(f"{decision_id}.*.json")
        return sorted(name.name.removeprefix(f"{decision_id}.").removesuffix(".json") for name in names)

    @asynccontextmanager
    async def client(self) -> AsyncIterator[Client]:
        """The SDK's own client, talking to a server of this workspace over standard input and output."""
        server = StdioServerParameters(
            command=sys.executable, args=["-m", "agentwatch", "mcp", str(self.workspace)], env=self.environment
        )
        async with Client(stdio_client(server)) as client:
            yield client


async def call(client: Client, name: str, **arguments: object) -> dict[str, Any]:
    """Call a tool that succeeds; its structured output."""
    result = await client.call_tool(name, dict(arguments), read_timeout_seconds=SECONDS)
    assert not result.is_error, result.content
    found = result.structured_content
    assert isinstance(found, dict)
    return found
