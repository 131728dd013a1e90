"""`agentwatch log --follow` as a person or a script runs it: history first, then each change, and a quiet end."""

import json
import os
import signal
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from threading import Timer
from typing import Any
from unittest.mock import patch

import pytest

from agentwatch.cli import run
from tests.journeys.made import handoff, returned
from tests.terminal.emulator import DEADLINE, Terminal, agentwatch

DONE = {"state": "SUCCESS", "summary": "Done.", "more": ""}


@pytest.fixture
def workspace(tmp_path):
    """Return a workspace with a handoff, and the file that its returns claim: a false claim would be a change, too."""
    workspace = tmp_path / "shop"
    (workspace / "docs").mkdir(parents=True)
    (workspace / "docs" / "api.md").touch()
    (workspace / "api.handoff.json").write_text(handoff(), "utf-8")
    return workspace


@pytest.fixture
def environment(tmp_path):
    return {**os.environ, "XDG_STATE_HOME": str(tmp_path / "state"), "PYTHONUTF8": "1"}


class Following:
    """The command while it runs; its lines come through a pipe."""

    def __init__(self, process: subprocess.Popen[str]):
        self.process = process

    def change(self) -> dict[str, Any]:
        """Return the next change, as soon as it is printed."""
        assert self.process.stdout is not None
        late = Timer(DEADLINE, self.process.kill)
        late.start()
        line = self.process.stdout.readline()
        late.cancel()
        change: dict[str, Any] = json.loads(line)
        return change

    def tells(self, *changes: tuple[str, str | None, str | None]):
        """Check the next changes: the task, and its state before and after."""
        told = [self.change() for _ in changes]
        assert [(one["task_id"], one["before"], one["after"]) for one in told] == [*changes]

    def end(self, number: signal.Signals = signal.SIGINT) -> tuple[int, str]:
        """End the command; return its exit code and errors, and check that it printed nothing more."""
        self.process.send_signal(number)
        printed, complained = self.process.communicate(timeout=DEADLINE)
        assert printed == ""
        return self.process.returncode, complained


@contextmanager
def follow(workspace: Path, environment: Mapping[str, str]) -> Iterator[Following]:
    """Follow the changes until the block ends, which interrupts the command."""
    command = agentwatch("log", "--follow", "--json", workspace)
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as process:
        try:
            yield (following := Following(process))
            assert process.poll() is not None or following.end() == (130, "")
        finally:
            process.kill()


def watch(workspace: Path, environment: Mapping[str, str]):
    """Watch the workspace on a screen, and write the return meanwhile."""
    with Terminal(agentwatch(workspace), environment={"XDG_STATE_HOME": environment["XDG_STATE_HOME"]}) as terminal:
        terminal.wait_for(r"○ shop\.api")
        (workspace / "api.return.md").write_text(returned(), "utf-8")
        terminal.wait_for(r"✗ shop\.api")
        terminal.press("q")
        assert terminal.wait_until_exit() == 0


def tree_of(directory: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in directory.rglob("*") if path.is_file()}


BEGUN = ("shop.api", None, "submitted")
ENDED = ("shop.api", "submitted", "failed")


def test_recorded_changes_come_first_then_each_new_one(workspace, environment):
    watch(workspace, environment)
    with follow(workspace, environment) as following:
        following.tells(BEGUN, ENDED)
        (workspace / "ui.handoff.json").write_text(handoff("shop.ui"), "utf-8")
        following.tells(("shop.ui", None, "submitted"))
        (workspace / "ui.return.md").write_text(returned(task_id="shop.ui", **DONE), "utf-8")
        following.tells(("shop.ui", "submitted", "completed"))
        # A task stays when its files are removed, here as on the screen.
        (workspace / "ui.handoff.json").unlink()
        (workspace / "ui.return.md").unlink()
        (workspace / "api.return.md").rename(workspace / "api.return-2.md")
        (workspace / "new.handoff.json").write_text(handoff("new"), "utf-8")
        following.tells(("new", None, "submitted"))


def test_a_claim_that_becomes_false_and_true_again_is_a_change(workspace, environment):
    made = workspace / "made.md"
    made.write_text("made")
    (workspace / "api.return.md").write_text(returned(evidence="made.md - read", created="- made.md", **DONE), "utf-8")
    with follow(workspace, environment) as following:
        following.tells(BEGUN, ("shop.api", "submitted", "completed"))
        made.unlink()
        change = following.change()
        assert (change["before"], change["after"], change["contradicted"]) == ("completed", "completed", True)
        assert "a claim is false: made.md" in change["reason"]
        made.write_text("made")
        change = following.change()
        assert (change["after"], change["contradicted"]) == ("completed", False)
        assert change["reason"] == "a claim was false, and none is any more"


def test_following_needs_no_history_and_writes_nothing(workspace, environment):
    before = tree_of(workspace.parent)
    with follow(workspace, environment) as following:
        following.tells(BEGUN)
        assert following.end(signal.SIGTERM) == (-signal.SIGTERM, "")
    assert tree_of(workspace.parent) == before


def test_a_decision_is_printed_in_its_place(workspace, environment, tmp_path):
    environment |= {"XDG_CONFIG_HOME": str(tmp_path / "config")}
    watch(workspace, environment)
    with follow(workspace, environment) as following:
        following.tells(BEGUN, ENDED)
        with patch.dict(os.environ, environment):
            assert run(["decide", "shop.api", str(workspace), "--retry", "--yes"]) == 0
        following.tells(decided := ("shop.api", "failed", "retrying"))
    with follow(workspace, environment) as following:
        following.tells(BEGUN, ENDED, decided)


def test_following_ends_when_nobody_reads_any_more(workspace, environment):
    command = agentwatch("log", "--follow", workspace)
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert b"Z  first look: 1 task, oldest 20" in process.stdout.readline()
        process.stdout.close()
        assert process.wait(DEADLINE) == 0
        assert process.stderr.read() == b""
