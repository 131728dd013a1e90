"""The screen in a real terminal: from the first key, through a shell's ctrl+z, until the terminal is closed."""

import os
import re
import shlex
import signal
import sqlite3
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from unittest.mock import patch

import pytest

from agentwatch.cli import run
from agentwatch.state import is_shown
from tests.homes import state_in
from tests.journeys.made import handoff, returned
from tests.terminal.emulator import Terminal, agentwatch

ROUNDS = int(os.environ.get("AGENTWATCH_HANGUPS", "1"))
"""How often each test of a hang-up closes a terminal."""


def fill(place: Path, *names: str):
    for name in names:
        (place / f"{name}.handoff.json").write_text(handoff(name), "utf-8")


def fail(place: Path, name: str = "shop.api"):
    (place / f"{name}.return.md").write_text(returned(task_id=name), "utf-8")


@pytest.fixture
def workspace(tmp_path):
    (place := tmp_path / "shop").mkdir()
    fill(place, "shop.api")
    return place


@pytest.fixture
def large(workspace):
    """Return a workspace with so many tasks that each key draws a whole screen; one task has failed."""
    fill(workspace, *(f"k{number}" for number in range(60)))
    fail(workspace)
    return workspace


def leave(terminal: Terminal):
    terminal.press("q")
    assert terminal.wait_until_exit() == 0


# From the first key on

NEVER_OPEN = """
import sys, threading
from agentwatch.app.app import AgentwatchApp, Opening
from agentwatch.app.terminal import run_app
from agentwatch.config import Settings
sys.exit(run_app(AgentwatchApp(Opening(Settings(), "shop/", threading.Event().wait))))
"""

NO_KEYS = """
import sys
from agentwatch.__main__ import main
from agentwatch.app.terminal import Terminal
def read(terminal):
    raise RuntimeError("no more keys")
Terminal.run_input_thread = read
main()
"""


def test_a_filter_is_typed_before_anything_is_drawn(large):
    with Terminal(agentwatch(large), columns=100) as terminal:
        # The terminal is not set up yet, so enter arrives as a line feed.
        terminal.press("/k58\r")
        terminal.wait_for(r"^ / k58 .*1 found")
        terminal.wait_for(r"^▌ .*k58 ")
        leave(terminal)


@pytest.mark.parametrize("keys", ["q", "\x03", "j\x03", "/q\x03"])
def test_quitting_before_there_is_a_monitor_does_not_wait(keys):
    with Terminal([sys.executable, "-c", NEVER_OPEN]) as terminal:
        terminal.wait_for("○ starting")
        terminal.press(keys)
        assert terminal.wait_until_exit() == 0


def test_quitting_does_not_wait_for_the_history(workspace, tmp_path):
    environment = {"XDG_STATE_HOME": str(tmp_path / "state")}
    directory = state_in(environment, workspace)
    directory.mkdir(parents=True)
    with (
        closing(sqlite3.connect(directory / "history.db", isolation_level=None)) as other,
        Terminal(agentwatch(workspace), environment=environment) as terminal,
    ):
        other.execute("BEGIN EXCLUSIVE")
        terminal.wait_for("agentwatch")
        leave(terminal)


def test_a_byte_that_is_no_text_is_no_key_and_is_seen_in_a_text(large):
    with Terminal(agentwatch(large), columns=100) as terminal:
        terminal.press("\udcff")
        terminal.wait_for(r"^▌ .*shop\.api ")
        terminal.press("\udcc3")
        terminal.press("/k\udcff")
        terminal.wait_for(r"^ / k� ")
        terminal.press("\x7f5\udce1")
        terminal.press("\x7f8")
        terminal.wait_for(r"^ / k58 .*1 found")
        terminal.press("\r")
        leave(terminal)


def test_a_screen_that_ends_by_an_error_says_so_by_its_exit_code(workspace):
    with Terminal([sys.executable, "-c", NO_KEYS, str(workspace)]) as terminal:
        assert terminal.wait_until_exit() == 1
        assert b"no more keys" in terminal.written


def test_the_screen_follows_files_and_gives_the_terminal_back(workspace):
    with Terminal(agentwatch(workspace), columns=140, lines=40) as terminal:
        terminal.wait_for(r"○ shop\.api")
        fail(workspace)
        terminal.wait_for(r"✗ shop\.api.*NEEDS YOU")
        terminal.wait_for("The migration timed out")
        leave(terminal)
        # The alternate screen is closed and the cursor is visible again.
        assert terminal.written.rstrip().rfind(b"\x1b[?1049l") > terminal.written.rfind(b"\x1b[?1049h")
        assert b"\x1b[?25h" in terminal.written[-200:]


# Output besides the screen

BLUR = "\x1b[O"
ASKED = rb"\x1b\]777;notify;agentwatch shop;([^;\x00-\x1f\x7f]*)\x1b\\"
TITLE = rb"\x1b\]0;([^;\x00-\x1f\x7f]*)\x1b\\"


def test_a_window_without_the_focus_is_notified_once(workspace):
    with Terminal(agentwatch(workspace), columns=140, lines=40) as terminal:
        terminal.wait_for(r"○ shop\.api")
        terminal.wait_until_written(TITLE)
        assert re.findall(TITLE, terminal.written) == [b"agentwatch: shop"]
        terminal.press(BLUR)
        fail(workspace)
        terminal.wait_until_written(ASKED)
        assert re.findall(TITLE, terminal.written)[-1] == b"(1) agentwatch: shop"
        # The task still waits, and the screen shows it in any case.
        terminal.wait_for(r"Needs you .*shop\.api.* ([4-9]|\d\d+)s")
        leave(terminal)
        told = [b"shop.api needs you: retry? the child recommends it, 1 retry left"]
        assert re.findall(ASKED, terminal.written) == told
        # Textual sets the shape of the mouse pointer by a sequence that ends with a bell; this is not counted.
        assert re.sub(rb"\x1b\]22;[a-z-]*\x07", b"", terminal.written).count(b"\x07") == 1
        assert terminal.written.startswith(b"\x1b[22;0t")
        assert terminal.written.endswith(b"\x1b]0;\x1b\\\x1b[23;0t")


def test_foreign_sequences_never_reach_the_terminal(workspace):
    evil = "\x1b]52;c;ZXZpbA==\x07\x1b]0;owned\x07\x1b[2J\x9b31m\u202e[@click=app.quit]x[/] [/]"
    packet = handoff(f"shop.api {evil}", f"Build it. {evil}", mode=f"code {evil}")
    (workspace / "evil.handoff.json").write_text(packet, "utf-8")
    (workspace / "evil.return.md").write_text(returned(summary=f"It timed out {evil}."), "utf-8")
    nameless = returned().replace("task_id: shop.api\n", "")
    (workspace / "\x1b]0;name\x07.return.md").write_text(nameless, "utf-8")
    with Terminal(agentwatch(workspace), columns=140, lines=40) as terminal:
        terminal.wait_for("✗")
        for key in "123456jjjkk":
            terminal.press(key)
        # The notification names the task, whose name is here the name of a file.
        terminal.press(BLUR)
        (workspace / "\x1b]0;a;b\x07.return.md").write_text(f"{nameless}\nattempt: 1\n", "utf-8")
        terminal.wait_until_written("\x1b]777;notify;agentwatch shop;␛]0,a,b␇ needs you".encode())
        leave(terminal)
        assert "\u202e".encode() not in terminal.written
        assert b"\xc2\x9b" not in terminal.written
        # The program's own sequences besides colours, cursor and modes: its title, notifications, the pointer's shape.
        ours = rb"(?:0;|0;(?:\(\d+\) )?agentwatch: shop|777;notify;agentwatch shop;[^;\x00-\x1f]*|22;[a-z-]*)"
        commands = re.findall(rb"\x1b[\]PX^_](.*?)(?:\x07|\x1b\\)", terminal.written, re.DOTALL)
        assert commands
        assert [command for command in commands if not re.fullmatch(ours, command)] == []


# ctrl+z in a shell returns the terminal to the shell; `fg` brings back a screen that shows the changes meanwhile


@contextmanager
def shell(workspace: Path) -> Iterator[Terminal]:
    """Run an interactive shell in which agentwatch shows the only task of the workspace."""
    environment = {"PS1": "SHELL> ", "HOME": str(workspace.parent)}
    with Terminal(["bash", "--norc", "-i"], environment=environment) as terminal:
        terminal.wait_for("SHELL>")
        # Typed words are echoed, so tests must not wait for any of them.
        terminal.press(f"clear; {shlex.join(agentwatch(workspace))}\r")
        terminal.wait_for(r"[◐○✗] shop\.api")
        yield terminal
        terminal.press("\x1b\x1b\x1bq")


def suspend(terminal: Terminal):
    terminal.press("\x1a")
    terminal.wait_for(r"^SHELL>")
    terminal.press("clear; stty -a; echo jobs: $(jobs -s | wc -l)\r")
    shown = terminal.wait_for(r"^jobs: 1$")
    assert " icanon " in shown
    assert " -echo " not in shown


def test_changes_during_ctrl_z_are_there_after_fg(workspace):
    with shell(workspace) as terminal:
        state = state_in(terminal.environment, workspace)
        assert is_shown(state)
        suspend(terminal)
        assert not is_shown(state), "a hook that waits for the operator would wait in vain"
        fail(workspace)
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
    fail(workspace)
    with shell(workspace) as terminal:
        terminal.wait_for("NEEDS YOU")
        terminal.press("r")
        terminal.wait_for("records this decision")
        terminal.press("mind the gap")
        terminal.wait_for("mind the gap")
        suspend(terminal)
        # After `fg` the key that decides is ignored for as long as after the dialog opens.
        terminal.press("clear; fg\r")
        terminal.wait_for("read it first")
        terminal.wait_for("mind the gap")


# When the terminal is closed, the program ends and releases its locks, whatever it does at that moment


@pytest.fixture
def environment(tmp_path):
    editor = tmp_path / "editor"
    # This editor outlives its terminal.
    editor.write_text(f"#!/bin/sh\ntrap '' HUP\ntouch {tmp_path}/editing\nsleep 5\n", "utf-8")
    editor.chmod(0o755)
    names = ("HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME")
    return {name: str(tmp_path / name) for name in names} | {"EDITOR": str(editor)}


def nothing(_terminal: Terminal, _workspace: Path):
    """Do nothing after the start."""


def paint(terminal: Terminal, _workspace: Path):
    """Draw without reading the output: the terminal's buffer fills up, and then drawing blocks."""
    terminal.wait_for(r"✗ shop\.api")
    for _ in range(60):
        terminal.press("jk?\x1b")
        time.sleep(0.01)


def decide(terminal: Terminal, _workspace: Path):
    terminal.wait_for(r"✗ shop\.api")
    terminal.press("nr")
    terminal.wait_for(r"╔═ ◆ ↻ Retry")


def edit(terminal: Terminal, workspace: Path):
    terminal.wait_for(r"✗ shop\.api")
    terminal.press("o")
    terminal.wait_until((workspace.parent / "editing").exists)


@pytest.mark.parametrize("does", [nothing, paint, decide, edit], ids=lambda does: does.__name__)
@pytest.mark.parametrize("how", ["closed", "closed unheard"])
def test_a_terminal_that_goes_ends_the_screen(large, environment, does, how):
    """A program below `nohup` does not hear the hang-up, nor does one that is no longer leader of its session."""
    command = agentwatch(large)
    if how == "closed unheard":
        command = ["sh", "-c", 'trap "" HUP; exec "$@"', "sh", *command]
    for _ in range(ROUNDS):
        (large.parent / "editing").unlink(missing_ok=True)
        with Terminal(command, environment=environment) as terminal:
            does(terminal, large)
            terminal.hang_up()
            terminal.wait_until_gone()
    left_free(large, environment)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("does", [paint, edit], ids=lambda does: does.__name__)
def test_a_signal_ends_a_screen_that_nobody_reads(large, environment, does, number):
    with Terminal(agentwatch(large), environment=environment) as terminal:
        does(terminal, large)
        terminal.signal(number)
        if does is edit:
            # The screen no longer waits for an editor, and gives the terminal back if somebody reads from it.
            terminal.wait_until_exit()
            assert b"\x1b[?1049l" in terminal.written.rpartition(b"\x1b[?1049h")[2]
        else:
            terminal.wait_until_gone()
    left_free(large, environment)


def test_an_interrupt_gives_the_terminal_back(workspace):
    with Terminal(agentwatch(workspace)) as terminal:
        terminal.wait_for(r"○ shop\.api")
        terminal.signal(signal.SIGINT)
        terminal.wait_until_exit()
        assert b"\x1b[?1049l" in terminal.written


@pytest.mark.parametrize("words", [["log", "--follow"], ["wait", "shop.api", "--timeout=60"]])
def test_other_commands_end_with_their_terminal_too(large, environment, words):
    with Terminal(agentwatch(*words, large), environment=environment) as terminal:
        if words[0] != "wait":
            terminal.wait_until_written(b"first look")
        terminal.hang_up()
        terminal.wait_until_gone()


def left_free(workspace: Path, environment: dict[str, str]):
    """Check that no lock is held, so that this process can decide."""
    assert not is_shown(state_in(environment, workspace))
    with patch.dict(os.environ, environment):
        assert run(["decide", "shop.api", str(workspace), "--abort", "--yes"]) == 0
