"""Temporary directories of ours lie where no agent can write, and none outlives its process for long."""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from agentwatch.disk import Directory
from agentwatch.state import scratch_directory

HOLDER = """
import sys
from agentwatch.state import scratch_directory
with scratch_directory() as place:
    (place / "file").touch()
    print(place, flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return tmp_path / "agentwatch"


def test_only_the_user_may_enter_and_it_is_gone_at_the_end(state: Path) -> None:
    with suppress(KeyError), scratch_directory() as place:
        (place / "file").touch()
        assert place.is_relative_to(state)
        assert [path.stat().st_mode & 0o777 for path in (place, place.parent, state)] == [0o700] * 3
        raise KeyError
    assert list(state.rglob("*")) == [place.parent]


def test_what_is_gone_already_is_no_error(state: Path) -> None:
    with scratch_directory() as place:
        shutil.rmtree(place)
    assert list(state.rglob("*")) == [place.parent]


def test_what_a_killed_process_left_goes_and_no_other(state: Path, tmp_path: Path) -> None:
    begun = [subprocess.Popen([sys.executable, "-c", HOLDER], stdin=-1, stdout=-1, text=True) for _ in range(2)]
    held, left = (Path(process.stdout.readline().strip()) for process in begun if process.stdout)
    begun[1].send_signal(signal.SIGKILL)
    begun[1].communicate()
    (tmp_path / "of others").mkdir()
    (tmp_path / "of others" / "file").touch()
    link = left.parent / "link"
    link.symlink_to(tmp_path / "of others")
    for path in (held, left):
        os.utime(path, (0, 0))
    with scratch_directory() as place:
        assert {path.name for path in place.parent.iterdir()} == {held.name, place.name, "link"}
    assert (held / "file").exists()
    assert (link / "file").exists()
    begun[0].communicate("")
    assert list(left.parent.iterdir()) == [link]


def test_one_that_was_made_just_now_stays(state: Path) -> None:
    new = state / "temporary" / "new"
    new.mkdir(parents=True)
    with scratch_directory():
        assert new.exists()


def test_a_lock_of_somebody_who_only_reads_holds_nobody_up(state: Path) -> None:
    with scratch_directory() as place, Directory.open(place.parent) as parent:
        fcntl.flock(parent.descriptor, fcntl.LOCK_EX)
        with scratch_directory() as other:
            assert other.exists()


@pytest.mark.parametrize("state_home", ["missing/deep", "file/inside"])
def test_a_place_that_cannot_be_made_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, state_home: str
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / state_home))
    if state_home.startswith("file"):
        with pytest.raises(OSError), scratch_directory():  # noqa: PT011
            pass
    else:
        with scratch_directory() as place:
            assert place.exists()
