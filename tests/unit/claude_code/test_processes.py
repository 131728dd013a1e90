"""Whether the program of a session is known to be gone."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from agentwatch.sources.claude_code.claude_code_reader import wait_in
from agentwatch.sources.sessions.processes import Processes
from tests.unit.claude_code.building import SESSION, Store, register


@pytest.fixture
def gone_pid() -> int:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def look(home: Path) -> bool | None:
    processes = Processes(home, wait_in)
    processes.look()
    return processes.of(SESSION).gone


def test_a_process_that_runs_is_not_gone(tmp_path: Path) -> None:
    register(tmp_path, os.getpid())
    assert look(tmp_path) is False


def test_a_process_that_left_its_file_behind_is_gone(tmp_path: Path, gone_pid: int) -> None:
    register(tmp_path, gone_pid)
    assert look(tmp_path) is True


@pytest.mark.skipif(sys.platform != "linux", reason="start times are read from /proc")
def test_another_process_under_the_same_number_does_not_count(tmp_path: Path) -> None:
    register(tmp_path, os.getpid(), procStart="1")
    assert look(tmp_path) is True
    start = Path("/proc/self/stat").read_bytes().rpartition(b")")[2].split()[19].decode()
    register(tmp_path, os.getpid(), procStart=start)
    assert look(tmp_path) is False


def test_a_process_of_another_machine_or_container_is_unknown(tmp_path: Path, gone_pid: int) -> None:
    register(tmp_path, gone_pid, pidDomain="elsewhere")
    assert look(tmp_path) is None


def test_without_a_file_nothing_is_known_unless_it_was_there(tmp_path: Path) -> None:
    assert look(tmp_path) is None
    path = register(tmp_path, os.getpid())
    processes = Processes(tmp_path, wait_in)
    processes.look()
    path.unlink()
    processes.look()
    assert processes.of(SESSION).gone is True


@pytest.mark.parametrize("content", ["", "[]", "{", '{"pid": "1", "sessionId": 2}', '{"pid": 0}'])
def test_a_file_of_another_kind_says_nothing(tmp_path: Path, content: str) -> None:
    register(tmp_path, 1).write_text(content)
    assert look(tmp_path) is None


def test_a_working_run_of_a_process_that_is_gone_says_so(tmp_path: Path, gone_pid: int) -> None:
    store = Store(tmp_path)
    log = store.session()
    log.asked("Go.")
    store.save()
    register(store.home, gone_pid)
    reader = store.reader()
    (change,) = reader.read(60.0)
    assert change.run is not None
    assert change.run.process_gone is None, "it was written to a moment ago"
    os.utime(log.path, (1e9, 1e9))
    (change,) = reader.read(60.0)
    assert change.run is not None
    assert change.run.process_gone is True
