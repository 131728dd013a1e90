"""A command is run to its end, in bounds of time and memory, whatever it does."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

import pytest

from agentwatch.evidence.plumbing import Output, TooSlowError, run


def ran(command: list[str], directory: Path, seconds: float) -> Output:
    return run(command, directory=str(directory), seconds=seconds, max_bytes=1 << 20)


def sh(script: str) -> list[str]:
    return ["sh", "-c", script]


def is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


def test_code_and_words_come_back(tmp_path: Path) -> None:
    output = ran(sh("printf 'a\\377b'; pwd >&2; exit 7"), tmp_path, 30)
    assert (output.code, output.text) == (7, b"a\xffb")


def test_what_a_command_leaves_running_may_have_the_last_word(tmp_path: Path) -> None:
    output = ran(sh("(sleep 0.2; echo the last word) &"), tmp_path, 30)
    assert output.text == b"the last word\n"


def test_a_command_that_closes_its_streams_is_waited_for_all_the_same(tmp_path: Path) -> None:
    output = ran(sh("exec >&- 2>&-; sleep 0.2; exit 3"), tmp_path, 30)
    assert output.code == 3
    with pytest.raises(TooSlowError):
        ran(sh("exec >&- 2>&-; exec sleep 60"), tmp_path, 0.3)


def test_one_that_does_not_end_is_ended_with_its_children(tmp_path: Path) -> None:
    with pytest.raises(TooSlowError):
        ran(sh("trap '' TERM INT HUP; sleep 60 & echo $! > child; wait"), tmp_path, 1)
    child = int((tmp_path / "child").read_text())
    end = time.monotonic() + 30
    while is_running(child):
        assert time.monotonic() < end


@pytest.mark.filterwarnings("ignore:subprocess .* is still running:ResourceWarning")
def test_one_that_cannot_be_ended_is_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a wrapper that became another user: it is told that it did not end, and nobody waits for it."""
    groups = []

    def refused(group: int, _number: int) -> None:
        groups.append(group)
        raise PermissionError

    monkeypatch.setattr(os, "killpg", refused)
    with pytest.raises(TooSlowError):
        ran([sys.executable, "-c", "import time; time.sleep(2.5)"], tmp_path, 0.1)
    os.kill(groups[0], signal.SIGKILL)
    os.waitpid(groups[0], 0)
