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


@pytest.mark.parametrize("option", ["--version", "--help"])
def test_version_and_help_load_no_library(option: str) -> None:
    run = (
        f"sys.argv = ['agentwatch', {option!r}]\n"
        "from agentwatch.__main__ import main\n"
        "try: main()\n"
        "except SystemExit: pass"
    )
    assert loaded(run, *HEAVY, "dataclasses", "pathlib", "shutil") == set()


def test_version_does_not_even_load_the_argument_parser() -> None:
    run = "sys.argv = ['agentwatch', '--version']\nfrom agentwatch.__main__ import main\nmain()"
    assert loaded(run, "argparse") == set()


def test_a_first_frame_waits_for_no_tree_and_no_monitor() -> None:
    packages = ("contracts", "delegation", "evidence", "history", "sources")
    names = ("app.notifying", "app.screens", "composition", "monitor", "view.words", *packages)
    statements = "import agentwatch.app.run, agentwatch.app.opening\nassert 'json' not in sys.modules"
    assert loaded(statements, *(f"agentwatch.{name}" for name in names), "sqlite3", "pydantic") == set()


def test_what_follows_a_first_frame_waits_for_nothing_that_reads_documents_or_sessions() -> None:
    statements = "import agentwatch.monitor, agentwatch.app.run, agentwatch.app.screens.main"
    names = (
        "contracts.json_returns",
        "contracts.reading",
        "sources.sessions.reader",
        "history.database",
        "decisions.ledger",
    )
    modules = [f"agentwatch.{name}" for name in names]
    assert loaded(f"{statements}\nassert 'json' not in sys.modules", *modules, "sqlite3", "pydantic") == set()


def test_the_headless_faces_load_no_screen() -> None:
    names = ("cli.log", "cli.sources", "cli.tree", "cli.check", "monitor", "sources.files.source")
    statements = "import " + ", ".join(f"agentwatch.{name}" for name in names)
    assert loaded(statements, "textual", "rich") == set()


def test_looking_once_loads_no_event_loop_no_database_and_no_reader_of_a_program_that_is_not_there() -> None:
    programs = [
        f"agentwatch.sources.{name}.{name}_reader"
        for name in ("claude_code", "codex", "copilot", "gemini", "opencode", "qwen", "roo")
    ]
    statements = "import agentwatch.composition, agentwatch.cli.tree"
    assert loaded(statements, "asyncio", "sqlite3", "tomllib", "importlib.metadata", *programs) == set()


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
        f"with redirect_stdout(printed): run(['tree', '--json', {str(store.workspace)!r}])\n"
        "import json\nsummary = json.loads(printed.getvalue())['summary']\n"
        "assert summary['by_state'] == {'completed': 2}, summary"
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


def test_the_commands_about_decisions_load_no_screen() -> None:
    names = ["decide", "doctor", "keys", "pending", "verify", "wait"]
    statements = "import " + ", ".join(f"agentwatch.cli.{name}" for name in names)
    assert loaded(statements, "textual", "rich") == set()


def test_only_the_server_loads_the_sdk_and_nothing_for_agents_loads_a_screen() -> None:
    hook = ["hook.command", "hook.permission", "hook.asked", "hook.following"]
    names = [*hook, "setup.command", "server.waiting", "server.submitting", "server.judging"]
    statements = "import " + ", ".join(f"agentwatch.agents.{name}" for name in names)
    assert loaded(statements, "textual", "rich", "mcp", "mcp_types") == set()


def test_the_help_of_a_command_about_decisions_loads_no_library() -> None:
    run = (
        "sys.argv = ['agentwatch', 'decide', '--help']\n"
        "from agentwatch.__main__ import main\n"
        "try: main()\n"
        "except SystemExit: pass"
    )
    assert loaded(run, *HEAVY, "cryptography") == set()


def test_the_tree_needs_no_library_at_all() -> None:
    assert loaded("import agentwatch.delegation.tree, agentwatch.view.document", *HEAVY) == set()


def test_nothing_that_signs_is_loaded_before_something_is_signed() -> None:
    statements = "import agentwatch.decisions.desk, agentwatch.decisions.reader, agentwatch.decisions.policy"
    assert loaded(statements, "cryptography", "keyring", *HEAVY) == set()


def test_the_screen_appears_before_the_models_of_the_contracts_are_loaded() -> None:
    modules = "agentwatch.app.run, agentwatch.monitor, agentwatch.sources.files.source, agentwatch.requests.codex"
    assert loaded(f"import {modules}", "pydantic", "websockets") == set()
