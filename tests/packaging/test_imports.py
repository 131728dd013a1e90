"""Nothing is imported before it is used: what a command costs is what it needs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.agents.claude import Claude
from tests.unit.agents.documents import packet, returned
from tests.unit.claude_code.building import Store, meta

HEAVY = ("textual", "rich", "inotify_simple", "pydantic", "websockets")


def loaded(statements: str, *modules: str) -> set[str]:
    """Which of the modules a fresh interpreter has loaded after some statements."""
    script = f"import sys\n{statements}\nimport json\nprint(json.dumps([m for m in {modules!r} if m in sys.modules]))"
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(json.loads(result.stdout.splitlines()[-1]))


def called(*words: str) -> str:
    """The statements of a command that ends at once."""
    given = ["agentwatch", *words]
    return f"sys.argv = {given!r}\nfrom agentwatch.__main__ import main\ntry: main()\nexcept SystemExit: pass"


def ours(package: str, *names: str) -> list[str]:
    return [f"agentwatch.{package}{'.' * bool(package)}{name}" for name in names]


NO_JSON = "\nassert 'json' not in sys.modules"
SCREEN = ["textual", "rich"]
READERS = [
    *(f"agentwatch.sources.{name}.{name}_reader" for name in ("claude_code", "codex", "opencode")),
    *(f"agentwatch.sources.{name}" for name in ("copilot", "gemini", "qwen", "roo")),
]
HOOK = ("hook.command", "hook.held", "hook.requests")
SERVER = ("setup", "documents")
FRAME = ("app.notifying", "app.screens", "composition", "monitor", "view.words")
DOCUMENTS = ("contracts.json_returns", "contracts.reading", "sources.sessions.reader", "history.database")
BARE: dict[str, tuple[str, list[str]]] = {
    "--version": (called("--version"), [*HEAVY, "dataclasses", "pathlib", "shutil", "argparse"]),
    "--help": (called("--help"), [*HEAVY, "dataclasses", "pathlib"]),
    "the first frame": (
        "import agentwatch.app.run" + NO_JSON,
        [*ours("", *FRAME, "contracts", "delegation", "evidence", "history", "sources"), "sqlite3", "pydantic"],
    ),
    "behind the first frame": (
        "import agentwatch.monitor, agentwatch.app.run, agentwatch.app.screens.main" + NO_JSON,
        [*ours("", *DOCUMENTS, "decisions.ledger"), "sqlite3", "pydantic"],
    ),
    "what a screen watches": (
        "import agentwatch.app.run, agentwatch.monitor, agentwatch.sources.files.source, agentwatch.requests.codex",
        ["websockets"],
    ),
    "commands": (
        "import " + ", ".join(ours("cli", "log", "sources", "tree", "check", "decide", "doctor", "keys", "pending")),
        SCREEN,
    ),
    "looking once": (
        "import agentwatch.composition, agentwatch.cli.tree",
        ["asyncio", "sqlite3", "tomllib", "importlib.metadata", *READERS],
    ),
    "for agents": ("import " + ", ".join(ours("agents", *HOOK, *SERVER)), [*SCREEN, "mcp", "mcp_types"]),
    "the tree": ("import agentwatch.delegation.tree, agentwatch.cli.tree", [*HEAVY]),
    "before something is signed": (
        "import agentwatch.decisions.service, agentwatch.decisions.reader, agentwatch.decisions.policy",
        ["cryptography", *SCREEN, "inotify_simple", "websockets"],
    ),
}


@pytest.mark.parametrize("name", BARE)
def test_nothing_is_loaded_before_it_is_needed(name: str) -> None:
    statements, modules = BARE[name]
    assert loaded(statements, *modules) == set()


def test_a_session_whose_texts_follow_no_contract_is_read_without_the_models_of_the_contracts(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    store.workspace.mkdir(parents=True)
    session = store.session()
    session.asked("Do it.")
    session.delegated("toolu_1", 'Mend `f`. The settings are {"retries": 3}.')
    store.agent("a1", meta("toolu_1")).said("## What I did\n\nMended it: {}.\n\n## Status of the tests\n\nAll green.")
    session.returned("toolu_1", "a1", "Mended it.")
    session.said("All done.")
    store.save()
    run = (
        "import io, os\nfrom contextlib import redirect_stdout\n"
        f"os.environ |= {{'CLAUDE_CONFIG_DIR': {str(store.home)!r}, 'XDG_STATE_HOME': {str(tmp_path)!r}}}\n"
        "from agentwatch.cli import run\nprinted = io.StringIO()\n"
        f"with redirect_stdout(printed): run(['tree', {str(store.workspace)!r}])\n"
        "assert 'Do it.' in printed.getvalue()"
    )
    assert loaded(run, *HEAVY) == set()


def test_no_model_is_loaded_of_a_contract_that_is_not_met(tmp_path: Path) -> None:
    workspace = tmp_path / "shop"
    workspace.mkdir()
    (workspace / "api.handoff.json").write_text(packet(), "utf-8")
    (workspace / "api.return.md").write_text(returned("SUCCESS"), "utf-8")
    run = (
        "import io, os\nfrom contextlib import redirect_stdout\n"
        f"os.environ |= {{'HOME': {str(tmp_path)!r}, 'XDG_STATE_HOME': {str(tmp_path)!r}}}\n"
        "from agentwatch.cli import run\nprinted = io.StringIO()\n"
        f"with redirect_stdout(printed): run(['tree', '--json', {str(workspace)!r}])\n"
        "import json\ntask, = json.loads(printed.getvalue())['tasks']\n"
        "assert task['state'] == 'completed' and task['claims'], task"
    )
    names = ("handoff", "json_returns", "return_format")
    met = {f"agentwatch.contracts.{name}" for name in ("handoff", "return_format")}
    assert loaded(run, *(f"agentwatch.contracts.{name}" for name in names)) == met


@pytest.mark.parametrize("event", ["SubagentStop", "PostToolUse"])
def test_a_hook_about_a_child_that_returned_well_loads_nothing_of_decisions(tmp_path: Path, event: str) -> None:
    workspace = tmp_path / "shop"
    workspace.mkdir()
    claude = Claude(tmp_path / "home", workspace, "Mend it.")
    claude.write_transcript()
    payload = claude.stop("Mended it.") if event == "SubagentStop" else claude.came_back("Mended it.")
    run = (
        "import io, os\n"
        f"os.environ |= {{'HOME': {str(tmp_path)!r}, 'XDG_STATE_HOME': {str(tmp_path)!r}}}\n"
        f"sys.stdin = io.TextIOWrapper(io.BytesIO({json.dumps(payload).encode()!r}))\n"
        "from agentwatch.cli import run\nassert run(['hook']) == 0"
    )
    names = (
        "cli.wait",
        "decisions.ledger",
        "decisions.reader",
        "delegation.tree",
        "evidence.inspector",
        "sources.claude_code.claude_code_reader",
        "sources.files.source",
    )
    assert loaded(run, *HEAVY, *(f"agentwatch.{name}" for name in names)) == set()
