"""ctrl+z in a shell: the terminal is the shell's; `fg` brings back a screen that knows what has happened meanwhile."""

import json
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from agentwatch.state import is_shown
from tests.homes import state_in
from tests.terminal.emulator import Terminal, agentwatch
from tests.terminal.test_command import FAILED, PACKET

CTRL_Z = "\x1a"


@pytest.fixture
def workspace(tmp_path):
    place = tmp_path / "shop"
    place.mkdir()
    (place / "api.handoff.json").write_text(json.dumps(PACKET), "utf-8")
    return place


@contextmanager
def shell(workspace: Path) -> Iterator[Terminal]:
    """An interactive shell in which agentwatch shows the workspace, and its one task is seen."""
    environment = {"PS1": "SHELL> ", "HOME": str(workspace.parent)}
    with Terminal(["bash", "--norc", "-i"], environment=environment) as terminal:
        terminal.wait_for("SHELL>")
        # What is typed is echoed: no word of it is waited for.
        terminal.press(f"clear; {shlex.join(agentwatch(workspace))}\r")
        terminal.wait_for(r"[◐○✗] shop\.api")
        yield terminal
        terminal.press("\x1b\x1b\x1bq")


def suspend(terminal: Terminal):
    terminal.press(CTRL_Z)
    terminal.wait_for(r"^SHELL>")
    terminal.press("clear; stty -a; echo jobs: $(jobs -s | wc -l)\r")
    shown = terminal.wait_for(r"^jobs: 1$")
    assert " icanon " in shown
    assert " -echo " not in shown


def test_what_happens_meanwhile_is_there_after_fg(workspace):
    with shell(workspace) as terminal:
        state = state_in(terminal.environment, workspace)
        assert is_shown(state)
        suspend(terminal)
        assert not is_shown(state), "a hook that waits for the operator would wait in vain"
        (workspace / "api.return.md").write_text(FAILED, "utf-8")
        terminal.press("clear; fg\r")
        terminal.wait_for(r"(?s)agentwatch  shop/.*✗ .*NEEDS YOU.*Needs you.*\? keys")
        assert is_shown(state)


def test_the_shell_may_wake_it_in_the_background_first(workspace):
    with shell(workspace) as terminal:
        suspend(terminal)
        terminal.press("clear; bg; sleep 0.5; echo back: $?\r")
        assert "shop.api" not in terminal.wait_for(r"^back: 0$")
        terminal.press("clear; fg\r")
        terminal.wait_for(r"[◐○] shop\.api")


def test_a_dialog_and_what_is_written_in_it_stay(workspace):
    (workspace / "api.return.md").write_text(FAILED, "utf-8")
    with shell(workspace) as terminal:
        terminal.wait_for("NEEDS YOU")
        terminal.press("r")
        terminal.wait_for("records this decision")
        terminal.press("mind the gap")
        terminal.wait_for("mind the gap")
        suspend(terminal)
        # The key that decides counts no sooner after it than when the dialog opens.
        terminal.press("clear; fg\r")
        terminal.wait_for("read it first")
        terminal.wait_for("mind the gap")
