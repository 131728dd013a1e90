"""`init --remove` after an older agentwatch was set up here: nothing of either stays, and all of the user's does."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from agentwatch.cli import run
from tests.homes import live_in

OWN = {
    "CLAUDE.md": "# Ours\n",
    ".mcp.json": '{"mcpServers": {"other": {"command": "other"}}}\n',
    ".claude/settings.json": '{"model": "small"}\n',
}


def files(workspace: Path) -> dict[str, str]:
    return {str(path.relative_to(workspace)): path.read_text() for path in workspace.rglob("*") if path.is_file()}


def write(workspace: Path, texts: dict[str, str]) -> None:
    for name, text in texts.items():
        (workspace / name).parent.mkdir(exist_ok=True)
        (workspace / name).write_text(text)


@pytest.mark.parametrize("own", [{}, OWN], ids=["nothing of the user", "files of the user"])
@pytest.mark.parametrize("backup", ["kept", "gone"])
def test_an_older_launcher_is_removed_and_not_restored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, own: dict[str, str], backup: str
) -> None:
    live_in(tmp_path / "home", monkeypatch)
    workspace = tmp_path / "shop"
    workspace.mkdir()
    write(workspace, own)
    init = ["init", "--agent", "claude-code", str(workspace)]
    assert run([*init, "--write"]) == 0
    older = {name: text.replace(sys.executable, "/gone/bin/python") for name, text in files(workspace).items()}
    write(workspace, older)
    for path in workspace.rglob("*.agentwatch.bak") if backup == "gone" else ():
        path.unlink()
    assert run([*init, "--write"]) == 0
    assert "/gone/bin" not in (workspace / ".mcp.json").read_text()
    assert run([*init, "--remove", "--write"]) == 0
    left = files(workspace)
    assert left.keys() == own.keys()
    assert not [name for name, text in left.items() if "agentwatch" in text]
    if backup == "kept":
        assert left == own
