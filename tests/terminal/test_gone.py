"""The terminal goes away: whatever the program does just then, it ends and gives up what it held."""

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from agentwatch.state import is_shown
from tests.homes import state_in
from tests.terminal.emulator import Terminal, agentwatch
from tests.terminal.test_command import FAILED, PACKET

ROUNDS = int(os.environ.get("AGENTWATCH_HANGUPS", "1"))
"""How often each of these is tried."""


@pytest.fixture
def workspace(tmp_path):
    """Enough that a whole screen is drawn at each key."""
    place = tmp_path / "shop"
    place.mkdir()
    for number in range(60):
        packet = PACKET | {"task_id": f"shop.{number}"}
        (place / f"{number}.handoff.json").write_text(json.dumps(packet), "utf-8")
    (place / "1.return.md").write_text(FAILED.replace("shop.api", "shop.1"), "utf-8")
    return place


@pytest.fixture
def environment(tmp_path):
    editor = tmp_path / "editor"
    # One that outlives its terminal.
    editor.write_text(f"#!/bin/sh\ntrap '' HUP\ntouch {tmp_path}/editing\nsleep 5\n", "utf-8")
    editor.chmod(0o755)
    names = {"HOME": "home", "XDG_STATE_HOME": "state", "XDG_CONFIG_HOME": "config", "XDG_DATA_HOME": "data"}
    return {name: str(tmp_path / place) for name, place in names.items()} | {"EDITOR": str(editor)}


def nothing(_terminal: Terminal, _workspace: Path):
    """Only start."""


def paint(terminal: Terminal, _workspace: Path):
    """Nobody reads what is drawn: the terminal fills up, and then whoever draws waits."""
    terminal.wait_for(r"○ shop\.2")
    for _ in range(150):
        terminal.press("jjjkkk?\x1b")
        time.sleep(0.01)


def decide(terminal: Terminal, _workspace: Path):
    terminal.wait_for(r"✗ shop\.1")
    terminal.press("nr")
    terminal.wait_for(r"╔═ ◆ ↻ Retry")


def edit(terminal: Terminal, workspace: Path):
    terminal.wait_for(r"○ shop\.2")
    terminal.press("o")
    terminal.wait_until((workspace.parent / "editing").exists)


@pytest.mark.parametrize("does", [nothing, paint, decide, edit], ids=lambda does: does.__name__)
@pytest.mark.parametrize("how", ["closed", "closed unheard"])
def test_a_terminal_that_goes_ends_the_screen(workspace, environment, does, how):
    """Unheard is what a program below `nohup`, or one that another program has made leader of nothing, gets of it."""
    command = agentwatch(workspace)
    if how == "closed unheard":
        command = ["sh", "-c", 'trap "" HUP; exec "$@"', "sh", *command]
    for _ in range(ROUNDS):
        (workspace.parent / "editing").unlink(missing_ok=True)
        with Terminal(command, columns=140, lines=40, environment=environment) as terminal:
            does(terminal, workspace)
            terminal.hang_up()
            terminal.wait_until_gone()
    left_free(workspace, environment)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("does", [paint, edit], ids=lambda does: does.__name__)
def test_a_signal_ends_a_screen_that_nobody_reads(workspace, environment, does, number):
    with Terminal(agentwatch(workspace), columns=140, lines=40, environment=environment) as terminal:
        does(terminal, workspace)
        terminal.signal(number)
        if does is edit:
            # An editor is waited for no longer, and whoever reads has the terminal back.
            terminal.wait_until_exit()
            assert b"\x1b[?1049l" in terminal.written.rpartition(b"\x1b[?1049h")[2]
        else:
            terminal.wait_until_gone()
    left_free(workspace, environment)


def test_a_demo_that_loses_its_terminal_leaves_nothing_behind(tmp_path, environment):
    command = agentwatch("demo", "--speed", "40")
    with Terminal(command, columns=140, lines=40, environment=environment) as one:
        one.wait_for(r"■ payments")
        for _ in range(60):
            one.press("jk?\x1b")
            time.sleep(0.01)
        one.hang_up()
        one.wait_until_gone()
    assert list((tmp_path / "state" / "agentwatch" / "temporary").iterdir()) == []


@pytest.mark.parametrize("words", [["log", "--follow"], ["wait", "shop.1", "--timeout=60"]])
def test_other_commands_end_with_their_terminal_too(workspace, environment, words):
    with Terminal(agentwatch(workspace), columns=140, lines=40, environment=environment) as terminal:
        terminal.wait_for(r"✗ shop\.1")
        terminal.press("q")
        assert terminal.wait_until_exit() == 0
    with Terminal(agentwatch(*words, workspace), columns=140, lines=40, environment=environment) as terminal:
        if words[0] != "wait":
            terminal.wait_until_written(b"first look")
        terminal.hang_up()
        terminal.wait_until_gone()


def left_free(workspace: Path, environment: dict[str, str]):
    """Nobody holds a lock: somebody else can decide."""
    assert not is_shown(state_in(environment, workspace))
    command = agentwatch("decide", "shop.1", workspace, "--abort", "--yes")
    told = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=30, env={**os.environ, **environment}
    )
    assert told.returncode == 0, told.stderr
