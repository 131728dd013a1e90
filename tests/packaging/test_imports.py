"""Modules are imported only when they are used, so that a command costs no more than it needs."""

import json
import subprocess
import sys

import pytest

from tests.unit.agents.claude import Claude

SCREEN = ("textual", "rich")
HEAVY = (*SCREEN, "inotify_simple", "pydantic", "websockets")


def loaded(statements: str, *modules: str) -> list[str]:
    """Return which modules a fresh interpreter has loaded after these statements; `.name` means `agentwatch.name`."""
    names = [f"agentwatch{name}" if name.startswith(".") else name for name in modules]
    script = f"{statements}\nimport sys\nprint(*[m for m in {names!r} if m in sys.modules])"
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return result.stdout.splitlines()[-1].split()


def called(word: str) -> str:
    """Return the statements of a command that ends at once."""
    given = ["agentwatch", word]
    return (
        f"import sys\nsys.argv = {given!r}\nfrom agentwatch.__main__ import main\ntry: main()\nexcept SystemExit: pass"
    )


NO_JSON = "\nimport sys\nassert 'json' not in sys.modules"
READERS = (
    *(f".sources.{name}.{name}_reader" for name in ("claude_code", "codex", "opencode")),
    *(f".sources.{name}" for name in ("copilot", "gemini", "qwen", "roo")),
)
FACES = ("agents", "log", "sources", "tree", "check", "decide", "doctor", "keys", "pending")
BARE = {
    "--version": (called("--version"), (*HEAVY, "dataclasses", "pathlib", "shutil", "argparse")),
    "--help": (called("--help"), (*HEAVY, "dataclasses", "pathlib")),
    "the first frame": (
        "import agentwatch.app.app" + NO_JSON,
        (
            ".app.notifying", ".app.screens", ".composition", ".monitor", ".view.words", ".contracts", ".delegation",
            ".evidence", ".history", ".sources", "sqlite3", "pydantic",
        ),
    ),
    "behind the first frame": (
        "import agentwatch.monitor, agentwatch.app.app, agentwatch.app.screens.main" + NO_JSON,
        (
            ".contracts.json_returns", ".contracts.reading", ".sources.sessions.reader", ".history.store",
            ".decisions.ledger", "sqlite3", "pydantic",
        ),
    ),
    "what a screen watches": (
        "import agentwatch.app.app, agentwatch.monitor, agentwatch.sources.files.source, agentwatch.requests.codex",
        ("websockets",),
    ),
    "commands": ("import " + ", ".join(f"agentwatch.cli.{name}" for name in FACES), SCREEN),
    "looking once": (
        "import agentwatch.composition, agentwatch.cli.tree",
        ("asyncio", "sqlite3", "tomllib", "importlib.metadata", *READERS),
    ),
    "for agents": (
        "from agentwatch.agents import documents, setup\nfrom agentwatch.agents.hook import child, held, requests",
        (*SCREEN, "mcp", "mcp_types"),
    ),
    "before a request is offered": (
        "import agentwatch.cli.agents, agentwatch.agents.hook.requests",
        (
            *HEAVY, "pydantic_core", ".contracts", ".decisions.record", ".decisions.ledger", ".delegation.events",
            ".requests.holding", ".sources.files",
        ),
    ),
    "the tree": ("import agentwatch.delegation.tree, agentwatch.cli.tree", HEAVY),
    "before something is signed": (
        "import agentwatch.decisions.service, agentwatch.decisions.reader, agentwatch.decisions.policy",
        ("cryptography", *SCREEN, "inotify_simple", "websockets"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BARE)
def test_nothing_is_loaded_before_it_is_needed(name):
    statements, modules = BARE[name]
    assert loaded(statements, *modules) == []


@pytest.mark.parametrize("event", ["SubagentStop", "PostToolUse"])
def test_a_hook_about_a_good_return_loads_nothing_of_decisions(tmp_path, event):
    workspace = tmp_path / "shop"
    workspace.mkdir()
    claude = Claude(tmp_path / "home", workspace, "Mend it.")
    claude.write_transcript()
    payload = claude.stop("Mended it.") if event == "SubagentStop" else claude.came_back("Mended it.")
    run = (
        "import io, os, sys\n"
        f"os.environ |= {{'HOME': {str(tmp_path)!r}, 'XDG_STATE_HOME': {str(tmp_path)!r}}}\n"
        f"sys.stdin = io.TextIOWrapper(io.BytesIO({json.dumps(payload).encode()!r}))\n"
        "from agentwatch.cli import run\nassert run(['hook']) == 0"
    )
    names = (
        ".cli.wait", ".decisions.ledger", ".decisions.reader", ".delegation.tree", ".evidence.inspector",
        ".sources.claude_code.claude_code_reader", ".sources.files.source",
    )  # fmt: skip
    assert loaded(run, *HEAVY, *names) == []
