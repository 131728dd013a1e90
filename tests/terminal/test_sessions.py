"""Agents' sessions through the command: stores where the programs keep them, real processes that read them."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.terminal.emulator import Terminal, agentwatch
from tests.unit.opencode.program import Program
from tests.unit.sessions.store import packet, report

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    (tmp_path / "shop").mkdir()
    return tmp_path / "shop"


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Runs the command with all that an agent program knows of its place set to directories of the test."""
    home = tmp_path / "home"
    home.mkdir()
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith(("XDG_", "OPENCODE", "KILO"))},
        "HOME": str(home),
        "XDG_STATE_HOME": str(tmp_path / "state"),
        "XDG_CONFIG_HOME": str(tmp_path / "config"),
        "XDG_DATA_HOME": str(tmp_path / "share"),
        "CLAUDE_CONFIG_DIR": str(tmp_path / "claude"),
        "CODEX_HOME": str(tmp_path / "codex"),
    }

    def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            agentwatch(*arguments), capture_output=True, text=True, check=True, env=environment, cwd=home
        )

    return run


def opencode(tmp_path: Path, workspace: Path) -> str:
    """A session of long ago with one child that is done."""
    directory = tmp_path / "share" / "opencode"
    directory.mkdir(parents=True)
    program = Program(directory / "opencode.db", workspace)
    program.now -= 40 * 86_400_000
    main = program.session(title="Build the cart")
    message = program.begin(main)
    child, _ = program.delegate(main, message, packet("cart.page"))
    program.answer(child, report())
    program.finish(main, message)
    program.close()
    return main


def test_sessions_are_exported_and_replayed_anywhere(run: Run, tmp_path: Path, workspace: Path) -> None:
    opencode(tmp_path, workspace)
    file = tmp_path / "session.jsonl"
    assert run("log", "--export", file, workspace).stdout.startswith("2 observations in ")
    with Terminal(agentwatch("replay", file, "--speed", "8"), columns=120) as terminal:
        terminal.wait_for(r"^ REPLAY .*at the end.* 4 of 4")
        terminal.wait_for(r"✓ cart\.page")
        terminal.press(",,")
        terminal.wait_for(r"◐ cart\.page")
        terminal.press("]")
        terminal.wait_for(r"✓ cart\.page")
        terminal.press("j3")
        terminal.wait_for(r"Do cart\.page")
        terminal.press("q")
        assert terminal.wait_until_exit() == 0
