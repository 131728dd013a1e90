"""The operator's editor: which command, and that no file name becomes one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from agentwatch.app.editor import edit, editor_command


@pytest.mark.parametrize(
    ("environment", "configured", "command"),
    [
        ({"VISUAL": "code --wait", "EDITOR": "vi"}, "nano", ["code", "--wait"]),
        ({"EDITOR": "vi"}, "nano", ["vi"]),
        ({"VISUAL": "", "EDITOR": ""}, "'my editor' -n", ["my editor", "-n"]),
        ({}, "nano", ["nano"]),
    ],
)
def test_the_environment_beats_the_configuration(
    environment: dict[str, str], configured: str | None, command: list[str]
) -> None:
    assert editor_command(configured, environment) == command


@pytest.fixture
def git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """An environment in which git's files are ours, and the folder is a repository that sets an editor."""
    subprocess.run(["git", "init", "-q", tmp_path / "shop"], check=True)
    subprocess.run(["git", "-C", tmp_path / "shop", "config", "core.editor", "touch owned"], check=True)
    monkeypatch.chdir(tmp_path / "shop")
    files = {"GIT_CONFIG_GLOBAL": str(tmp_path / "user"), "GIT_CONFIG_SYSTEM": str(tmp_path / "machine")}
    (tmp_path / "bin").mkdir()
    return {"PATH": os.environ["PATH"], "HOME": str(tmp_path), **files}


def test_without_one_it_is_that_of_git_but_never_of_the_repository(git: dict[str, str]) -> None:
    assert "owned" not in editor_command(None, git)
    Path(git["GIT_CONFIG_SYSTEM"]).write_text("[core]\n\teditor = nano\n")
    assert editor_command(None, git) == ["nano"]
    Path(git["GIT_CONFIG_GLOBAL"]).write_text("[core]\n\teditor = code --wait\n")
    assert editor_command(None, git) == ["code", "--wait"]
    assert editor_command(None, {**git, "GIT_DIR": ".git", "GIT_EDITOR": "true"}) == ["code", "--wait"]
    assert editor_command("kak", git) == ["kak"]


def test_where_nothing_is_set_it_is_vi_if_there_is_one(git: dict[str, str], tmp_path: Path) -> None:
    # Here is no git, either.
    nowhere = {**git, "PATH": str(tmp_path / "bin")}
    assert editor_command(None, nowhere) == []
    vi = tmp_path / "bin" / "vi"
    vi.write_text("#!/bin/sh\n")
    vi.chmod(0o755)
    assert editor_command(None, nowhere) == ["vi"]


def test_a_command_with_an_open_quotation_mark_is_refused() -> None:
    with pytest.raises(ValueError, match="closing"):
        editor_command("vi 'x", {})


def test_the_file_is_one_argument_and_never_a_command(tmp_path: Path) -> None:
    seen = tmp_path / "seen.txt"
    script = f"import sys, pathlib; pathlib.Path({str(seen)!r}).write_text(repr(sys.argv[1:])); sys.exit(3)"
    file = tmp_path / "-rf $(touch owned); x.md"
    assert edit([sys.executable, "-c", script], file) == 3
    assert seen.read_text("utf-8") == repr([str(file)])


def test_an_editor_that_is_not_there_raises(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        edit([str(tmp_path / "none")], tmp_path / "x.md")
