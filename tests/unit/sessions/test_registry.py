"""Which readers there are: each once its program has a store, and nothing is loaded for the others."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from agentwatch.sources.sessions import registry
from agentwatch.sources.sessions.registry import Registry
from tests.unit.opencode.program import Program

VARIABLES = {
    "CLAUDE_CONFIG_DIR": "claude-code",
    "CODEX_HOME": "codex",
    "QWEN_RUNTIME_DIR": "qwen-code",
    "QWEN_HOME": "qwen-code",
    "COPILOT_HOME": "copilot",
    "GEMINI_CLI_HOME": "gemini",
}
"""By the variable that says where a program keeps its sessions: the name of the reader."""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for variable in (*VARIABLES, "XDG_DATA_HOME", "XDG_CONFIG_HOME", "OPENCODE_DB", "KILO_DB", "PI_CODING_AGENT_DIR"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir()
    return tmp_path / "home"


def opened(readers: Registry, *known: str) -> list[str]:
    def broken(name: str, error: Exception) -> None:
        raise AssertionError(name) from error

    return [reader.name for reader in readers.open(known, broken)]


def test_a_reader_comes_once_its_program_has_a_store(home: Path, tmp_path: Path) -> None:
    readers = Registry(tmp_path)
    assert opened(readers) == ["claude-code"]
    (home / ".codex").mkdir()
    (home / ".qwen").mkdir()
    assert opened(readers, "claude-code") == ["codex", "qwen-code"]
    assert opened(readers, "claude-code", "codex", "qwen-code") == []


@pytest.mark.parametrize("variable", VARIABLES)
def test_a_program_may_keep_its_sessions_elsewhere(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    assert home.is_dir()
    # Gemini CLI is told of another home.
    directory = tmp_path / "elsewhere" / (".gemini" if variable == "GEMINI_CLI_HOME" else "")
    directory.mkdir(parents=True)
    monkeypatch.setenv(variable, str(tmp_path / "elsewhere"))
    assert VARIABLES[variable] in opened(Registry(tmp_path))
    (place,) = registry.looked_in()[VARIABLES[variable]]
    assert place.parent == directory


def test_programs_that_are_not_understood_are_named_with_where_they_lie(home: Path, tmp_path: Path) -> None:
    assert registry.not_understood(tmp_path) == {}
    goose, cursor, crush = home / ".local/share/goose/sessions", home / ".cursor/chats", tmp_path / ".crush/crush.db"
    for place in (goose, cursor, crush):
        place.mkdir(parents=True)
    assert registry.not_understood(tmp_path) == {"crush": [crush], "cursor": [cursor], "goose": [goose]}


@pytest.mark.parametrize(
    "storage",
    [
        ".config/Code - Insiders/User/globalStorage/kilocode.kilo-code",
        ".vscode-server-insiders/data/User/globalStorage/rooveterinaryinc.roo-cline",
    ],
)
@pytest.mark.skipif(sys.platform == "darwin", reason="settings lie elsewhere there")
def test_an_editor_with_tasks_has_a_reader(home: Path, tmp_path: Path, storage: str) -> None:
    (home / storage / "tasks").mkdir(parents=True)
    assert opened(Registry(tmp_path)) == ["claude-code", "roo"]


@pytest.mark.parametrize("way", ["home", "XDG_DATA_HOME", "OPENCODE_DB"])
def test_a_database_has_a_reader_wherever_it_lies(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    share = home / ".local" / "share" if way == "home" else tmp_path / "elsewhere"
    database = share / "opencode" / "opencode.db"
    database.parent.mkdir(parents=True)
    Program(database, tmp_path).close()
    if way != "home":
        monkeypatch.setenv(way, str(share if way == "XDG_DATA_HOME" else database))
    assert opened(Registry(tmp_path)) == ["claude-code", "opencode"]
