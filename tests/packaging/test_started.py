"""The lines of `init` start agentwatch and nothing else, however it was installed, in a workspace that would like to
run in its place."""

import json
import os
import subprocess
import sys
import venv
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pydantic
import pytest

ROOT = Path(__file__).parents[2]
SECONDS = 120
PACKAGES = Path(pydantic.__file__).parents[1]
"""All that agentwatch needs is there, as nothing is fetched."""

SITE = f"lib/python{sys.version_info.major}.{sys.version_info.minor}/site-packages"
MODULES = (
    "agentwatch", "agentwatch/__init__", "agentwatch/__main__", "argparse", "asyncio", "encodings", "gc", "json", "mcp",
    "mcp_types", "os", "pathlib", "pydantic", "secrets", "site", "sitecustomize", "textual", "types",
    "typing", "usercustomize",
)  # fmt: skip
HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}},
}


@dataclass
class Installed:
    """An interpreter that has agentwatch, and what it needs to be told for that."""

    python: str
    environment: dict[str, str]
    site: Path
    """Where a .pth file is heard."""


def in_venv(root: Path, wheel: zipfile.ZipFile) -> Installed:
    venv.create(root / "venv", symlinks=True)
    site = root / "venv" / SITE
    wheel.extractall(site)
    (site / "needed.pth").write_text(f"{PACKAGES}\n", "utf-8")
    return Installed(str(root / "venv" / "bin" / "python"), {}, site)


def for_the_user(root: Path, wheel: zipfile.ZipFile) -> Installed:
    site = root / "user" / SITE
    wheel.extractall(site)
    (site / "needed.pth").write_text(f"{PACKAGES}\n", "utf-8")
    base = str(Path(sys.base_prefix) / "bin" / f"python{sys.version_info.major}.{sys.version_info.minor}")
    return Installed(base, {"PYTHONUSERBASE": str(root / "user")}, site)


WAYS = [in_venv, for_the_user]


@dataclass
class Place:
    """A workspace that is hostile, and what `init` has written into it."""

    root: Path
    installed: Installed

    @property
    def workspace(self) -> Path:
        return self.root / "shop"

    @property
    def traces(self) -> Path:
        return self.root / "traces"

    def init(self, *words: str):
        """The operator does this, with an environment of his own."""
        self.workspace.mkdir()
        command = [self.installed.python, "-m", "agentwatch", "init", "--write", "--agent", "claude-code", "--", "shop"]
        done = self.run(command, self.root, self.installed.environment)
        assert done.returncode == 0, done.stderr + done.stdout

    def take_over(self) -> dict[str, str]:
        """Fill the workspace with modules that leave a trace. Returns an environment that names it everywhere."""
        self.traces.mkdir()
        evil = f"open({str(self.traces)!r} + '/' + __name__, 'w').close()\nraise SystemExit(9)\n"
        for directory in (self.workspace, self.workspace / SITE):
            for module in MODULES:
                (directory / f"{module}.py").parent.mkdir(parents=True, exist_ok=True)
                (directory / f"{module}.py").write_text(evil, "utf-8")
        # As it is where the workspace itself is installed there to work on.
        (self.installed.site / "shop.pth").write_text(f"{self.workspace}\n", "utf-8")
        named = ("PYTHONPATH", "PYTHONHOME", "PYTHONUSERBASE", "PYTHONPLATLIBDIR")
        files = ("PYTHONSTARTUP", "PYTHONINSPECT")
        return dict.fromkeys(named, str(self.workspace)) | dict.fromkeys(files, str(self.workspace / "json.py"))

    def run(
        self, command: list[str], directory: Path, environment: Mapping[str, str], given: str = ""
    ) -> subprocess.CompletedProcess[str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
        own = {"HOME": str(self.root / "home"), "XDG_STATE_HOME": str(self.root / "state")}
        return subprocess.run(
            command,
            cwd=directory,
            env=kept | own | {"PYTHONDONTWRITEBYTECODE": "1"} | dict(environment),
            input=given,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )


@pytest.fixture(params=WAYS, ids=lambda way: way.__name__)
def place(request, tmp_path, wheel):
    made = Place(tmp_path, request.param(tmp_path, wheel))
    made.init()
    return made


def test_no_module_of_the_workspace_runs_in_our_place(place):
    hooks = json.loads((place.workspace / ".claude/settings.json").read_text("utf-8"))["hooks"]
    server = json.loads((place.workspace / ".mcp.json").read_text("utf-8"))["mcpServers"]["agentwatch"]
    environment = place.take_over()
    payload = {"session_id": "s", "hook_event_name": "SubagentStop", "cwd": str(place.workspace), "agent_id": "a"}
    command = [server["command"], *server["args"]]
    # A wrong home stops other forms before they can run a module, so each of these is tried by itself, too.
    for variables in ({}, {"PYTHONPATH": environment["PYTHONPATH"]}, environment):
        # Most events have the same one.
        for line in {groups[0]["hooks"][0]["command"] for groups in hooks.values()}:
            done = place.run(["sh", "-c", line], place.workspace, variables, json.dumps(payload))
            assert (done.returncode, done.stderr) == (0, "")
            json.loads(done.stdout)
        done = place.run(command, place.workspace, variables, json.dumps(HELLO) + "\n")
        assert json.loads(done.stdout)["result"]["serverInfo"]["name"] == "agentwatch", done.stderr
        done = place.run([*command[:-1], "wait", "--timeout", "0", "--", "--yes"], place.workspace, variables)
        assert (done.returncode, json.loads(done.stdout)["pending"]) == (3, True)
        assert list(place.traces.iterdir()) == []
