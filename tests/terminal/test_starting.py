"""Keys that are pressed as soon as the command is typed: they count, from the first one on. Whatever else is."""

import json
import sqlite3
import sys
from contextlib import closing

import pytest

from tests.homes import state_in
from tests.terminal.emulator import Terminal, agentwatch
from tests.terminal.test_command import PACKET

NEVER_OPEN = """
import sys, threading
from agentwatch.app.app import AgentwatchApp, Opening
from agentwatch.app.terminal import run
from agentwatch.config import Settings
sys.exit(run(AgentwatchApp(Opening(Settings(), "shop/", threading.Event().wait))))
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


@pytest.fixture
def workspace(tmp_path):
    for number in range(300):
        packet = json.dumps({**PACKET, "task_id": f"k{number}"})
        (tmp_path / f"k{number}.handoff.json").write_text(packet, "utf-8")
    return tmp_path


def test_a_filter_is_typed_before_anything_is_drawn(workspace):
    with Terminal(agentwatch(workspace), columns=100) as terminal:
        # Nobody has told the terminal yet what enter is to be: it comes as a line feed.
        terminal.press("/k298\r")
        terminal.wait_for(r"^ / k298 .*1 found")
        terminal.wait_for(r"^▌ .*k298 ")
        terminal.press("q")
        assert terminal.wait_until_exit() == 0


@pytest.mark.parametrize("keys", ["q", "\x03", "j\x03"])
def test_who_leaves_before_there_is_a_monitor_waits_for_nothing(keys):
    with Terminal([sys.executable, "-c", NEVER_OPEN]) as terminal:
        terminal.wait_for("○ starting")
        terminal.press(keys)
        assert terminal.wait_until_exit() == 0


def test_who_leaves_does_not_wait_for_the_history(workspace, tmp_path):
    environment = {"XDG_STATE_HOME": str(tmp_path / "state")}
    directory = state_in(environment, workspace)
    directory.mkdir(parents=True)
    with (
        closing(sqlite3.connect(directory / "history.db", isolation_level=None)) as other,
        Terminal(agentwatch(workspace), environment=environment) as terminal,
    ):
        other.execute("BEGIN EXCLUSIVE")
        terminal.wait_for("agentwatch")
        terminal.press("q")
        assert terminal.wait_until_exit() == 0


def test_a_byte_that_is_no_text_is_no_key_and_is_seen_in_a_text(workspace):
    with Terminal(agentwatch(workspace), columns=100) as terminal:
        terminal.press("\udcff")
        terminal.wait_for(r"^▌ .*k299 ")
        terminal.press("\udcc3")
        terminal.press("/k\udcff")
        terminal.wait_for(r"^ / k� ")
        terminal.press("\x7f29\udce1")
        terminal.press("\x7f8")
        terminal.wait_for(r"^ / k298 .*1 found")
        terminal.press("\r")
        terminal.press("q")
        assert terminal.wait_until_exit() == 0


def test_a_screen_that_ends_by_an_error_says_so_by_its_exit_code(workspace):
    with Terminal([sys.executable, "-c", NO_KEYS, str(workspace)]) as terminal:
        assert terminal.wait_until_exit() == 1
        assert b"no more keys" in terminal.written
