"""The wheel holds all files that run, and starts beside another package's source or in a hostile workspace."""

import json
import os
import subprocess
import sys
import venv
import zipfile
from importlib.resources import files
from pathlib import Path

import pydantic
import pytest

import agentwatch

ROOT = Path(__file__).parents[2]
HOMES = ("HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME")
PACKAGES = Path(pydantic.__file__).parents[1]
"""The directory with all dependencies of agentwatch, as nothing is fetched."""


def built(project: Path, out: Path) -> Path:
    # Without isolation nothing is fetched: hatchling is a test dependency.
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(out), str(project)]
    subprocess.run(command, check=True, capture_output=True)
    return next(out.glob("*.whl"))


@pytest.fixture(scope="session")
def wheel(tmp_path_factory):
    return zipfile.ZipFile(built(ROOT, tmp_path_factory.mktemp("wheel")))


def test_the_wheel_is_the_package_its_themes_and_its_command(wheel):
    names = set(wheel.namelist())
    package = {
        f"agentwatch/{path.relative_to(ROOT / 'tui/agentwatch').as_posix()}"
        for path in (ROOT / "tui/agentwatch").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    themes = {f"agentwatch/themes/{path.name}" for path in (ROOT / "themes").glob("*.toml")}
    assert themes
    assert package | themes | {"agentwatch/py.typed"} <= names
    assert {name.split("/")[0] for name in names if ".dist-info/" not in name} == {"agentwatch"}
    entry_points = next(name for name in names if name.endswith("entry_points.txt"))
    assert b"agentwatch = agentwatch.__main__:main" in wheel.read(entry_points)


# A source in a package of its own


def block(name: str) -> str:
    """Return a file of the example project in the manual."""
    text = (files(agentwatch) / "manual" / "source.md").read_text("utf-8")
    return text.split(f"<!-- {name} -->\n")[1].split(f"<!-- /{name} -->")[0].partition("\n")[2].rsplit("```", 1)[0]


def test_sessions_that_another_package_reads_are_shown(tmp_path, wheel):
    (tmp_path / "agentwatch_scribe.py").write_text(block("a source of your own"), "utf-8")
    (tmp_path / "pyproject.toml").write_text(block("pyproject.toml"), "utf-8")
    site, wheels = str(tmp_path / "site"), [str(wheel.filename), str(built(tmp_path, tmp_path / "dist"))]
    install = ["-m", "pip", "install", "--quiet", "--no-deps", "--no-compile", "--no-index", "--target", site, *wheels]
    environment = {**os.environ, **dict.fromkeys(HOMES, str(tmp_path / "home")), "PYTHONPATH": site}

    def run(*words: str) -> str:
        command = [sys.executable, *words]
        return subprocess.run(
            command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, check=True
        ).stdout.decode()

    run(*install)
    assert site in run("-c", "import agentwatch; print(agentwatch.__file__)")
    kept = {"began": 100.0, "last": 200.0, "asked": "Go."}
    (tmp_path / ".scribe").mkdir()
    for name, more in (("lead", {}), ("one", {"parent": "lead", "state": "done", "answer": "Done."})):
        (tmp_path / ".scribe" / f"{name}.json").write_text(json.dumps(kept | more), "utf-8")
    told = json.loads(run("-m", "agentwatch", "tree", "--json"))
    assert [(one["task_id"], one["parent_id"], one["state"]) for one in told["tasks"]] == [
        ("lead", None, "working"),
        ("one", "lead", "completed"),
    ]
    sources = json.loads(run("-m", "agentwatch", "sources", "--json"))["sources"]
    (scribe,) = (one for one in sources if one["source"] == "scribe")
    assert (scribe["sessions"], scribe["children"], scribe["skipped"]) == (1, 1, "")


# Files that `init` writes

VERSION = f"python{sys.version_info.major}.{sys.version_info.minor}"
SITE = f"lib/{VERSION}/site-packages"
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


class Installed:
    """A wheel below `root`, in an environment of its own or `for_the_user`, and a workspace with files of `init`."""

    def __init__(self, root: Path, wheel: zipfile.ZipFile, *, for_the_user: bool):
        self.root, self.workspace, self.traces = root, root / "shop", root / "traces"
        self.site = root / "python" / SITE
        own = {}
        if for_the_user:
            python, own = Path(sys.base_prefix) / "bin" / VERSION, {"PYTHONUSERBASE": str(root / "python")}
        else:
            venv.create(root / "python", symlinks=True)
            python = root / "python" / "bin" / "python"
        wheel.extractall(self.site)
        (self.site / "needed.pth").write_text(f"{PACKAGES}\n", "utf-8")
        self.workspace.mkdir()
        words = ["-m", "agentwatch", "init", "--write", "--agent", "claude-code", "--", "shop"]
        # Here the operator runs `init`, with an environment of his own.
        done = self.run([str(python), *words], root, own)
        assert done.returncode == 0, done.stderr + done.stdout

    def take_over(self) -> dict[str, str]:
        """Fill the workspace with modules that leave a trace, and return an environment that names it everywhere."""
        self.traces.mkdir()
        evil = f"open({str(self.traces)!r} + '/' + __name__, 'w').close()\nraise SystemExit(9)\n"
        for directory in (self.workspace, self.workspace / SITE):
            for module in MODULES:
                (directory / f"{module}.py").parent.mkdir(parents=True, exist_ok=True)
                (directory / f"{module}.py").write_text(evil, "utf-8")
        # This imitates a workspace that is itself installed in this Python for development.
        (self.site / "shop.pth").write_text(f"{self.workspace}\n", "utf-8")
        named = ("PYTHONPATH", "PYTHONHOME", "PYTHONUSERBASE", "PYTHONPLATLIBDIR")
        read = ("PYTHONSTARTUP", "PYTHONINSPECT")
        return dict.fromkeys(named, str(self.workspace)) | dict.fromkeys(read, str(self.workspace / "json.py"))

    def run(
        self, command: list[str], directory: Path, environment: dict[str, str], given: str = ""
    ) -> subprocess.CompletedProcess[str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
        own = {"HOME": str(self.root / "home"), "XDG_STATE_HOME": str(self.root / "state")}
        env = kept | own | environment
        return subprocess.run(
            command, cwd=directory, env=env, input=given, capture_output=True, text=True, timeout=120, check=False
        )


@pytest.mark.parametrize("for_the_user", [False, True])
def test_no_module_of_the_workspace_runs_in_our_place(tmp_path, wheel, for_the_user):
    installed = Installed(tmp_path, wheel, for_the_user=for_the_user)
    workspace = installed.workspace
    hooks = json.loads((workspace / ".claude/settings.json").read_text("utf-8"))["hooks"]
    server = json.loads((workspace / ".mcp.json").read_text("utf-8"))["mcpServers"]["agentwatch"]
    environment = installed.take_over()
    payload = {"session_id": "s", "hook_event_name": "SubagentStop", "cwd": str(workspace), "agent_id": "a"}
    command = [server["command"], *server["args"]]
    # A wrong home stops some commands before they can run a module, so the variables are also tried one by one.
    for variables in ({}, {"PYTHONPATH": environment["PYTHONPATH"]}, environment):
        # Most events have the same command.
        for line in {groups[0]["hooks"][0]["command"] for groups in hooks.values()}:
            done = installed.run(["sh", "-c", line], workspace, variables, json.dumps(payload))
            assert (done.returncode, done.stderr) == (0, "")
            json.loads(done.stdout)
        done = installed.run(command, workspace, variables, json.dumps(HELLO) + "\n")
        assert json.loads(done.stdout)["result"]["serverInfo"]["name"] == "agentwatch", done.stderr
        done = installed.run([*command[:-1], "wait", "--timeout", "0", "--", "--yes"], workspace, variables)
        assert (done.returncode, json.loads(done.stdout)["pending"]) == (3, True)
        assert list(installed.traces.iterdir()) == []
