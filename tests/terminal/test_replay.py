"""A session that was watched is exported and replayed in a real terminal."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.terminal.emulator import Terminal, agentwatch
from tests.terminal.test_command import FAILED, PACKET


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    return {"XDG_STATE_HOME": str(tmp_path / "state")}


@pytest.fixture
def watched(tmp_path: Path, environment: dict[str, str]) -> Path:
    """A workspace whose task was handed off and failed while it was watched, and which is empty by now."""
    workspace = tmp_path / "shop"
    workspace.mkdir()
    (workspace / "api.handoff.json").write_text(json.dumps(PACKET), "utf-8")
    with Terminal(agentwatch(workspace), environment=environment) as terminal:
        terminal.wait_for(r"○ shop\.api")
        (workspace / "api.return.md").write_text(FAILED, "utf-8")
        terminal.wait_for(r"✗ shop\.api")
        terminal.press("q")
        assert terminal.wait_until_exit() == 0
    for path in workspace.iterdir():
        if path.is_file():
            path.unlink()
    return workspace


def run(*arguments: str | Path, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    command = agentwatch(*arguments)
    return subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **environment})


def check_replay(terminal: Terminal) -> None:
    """Back and forth through the two observations of the session."""
    terminal.wait_for(r"^ REPLAY .*2 of 2")
    # The bar may be a moment ahead of the tree.
    terminal.wait_for(r"✗ shop\.api")
    terminal.press(",")
    terminal.wait_for(r"○ shop\.api")
    terminal.wait_for(r"^ REPLAY  ‖ paused")
    terminal.press(".")
    terminal.wait_for(r"✗ shop\.api")
    terminal.press("\r")
    terminal.wait_for(r"Raise the time-out\.")
    assert terminal.text().startswith(" REPLAY ")
    assert "live" not in terminal.text().splitlines()[1]
    terminal.press("\x1b")
    terminal.wait_for(r"enter open")
    terminal.press("q")
    assert terminal.wait_until_exit() == 0


def test_a_history_is_exported_and_replayed(watched: Path, environment: dict[str, str], tmp_path: Path) -> None:
    assert run("log", "--export", tmp_path / "x.jsonl", watched, environment=environment).returncode == 0
    with Terminal(agentwatch("replay", tmp_path / "x.jsonl", "--speed", "8"), environment=environment) as terminal:
        check_replay(terminal)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "the following arguments are required: FILE"),
        (["--speed", "0", "x.jsonl"], "a speed of 0.0 cannot be played"),
        (["x.jsonl"], "x.jsonl: cannot be read (No such file or directory)"),
        (["."], "cannot be read (Is a directory)"),
    ],
)
def test_what_cannot_be_replayed_is_told(arguments: list[str], words: str, tmp_path: Path) -> None:
    command = ["sh", "-c", 'cd "$0" && exec "$@"', str(tmp_path), *agentwatch("replay", *arguments)]
    with Terminal(command, columns=160) as terminal:
        assert terminal.wait_until_exit() == 2
        assert words in terminal.text().replace("\n", "")
