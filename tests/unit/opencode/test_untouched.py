"""The program never notices that it is read, and finds its files as it left them."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from agentwatch.delegation.events import RunState
from tests.unit.opencode.program import Program, fresh, reading

ROOT = Path(__file__).parents[3]
is_linux = sys.platform == "linux"


def state_of(directory: Path) -> dict[str, tuple[bytes, int]]:
    """Every file with its bytes and the time of its last change."""
    return {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in directory.iterdir()}


@contextmanager
def running(database: Path, workspace: Path, journal: str, seconds: float) -> Iterator[subprocess.Popen[str]]:
    arguments = [str(database), str(workspace), journal, str(seconds)]
    with subprocess.Popen(
        [sys.executable, "-m", "tests.unit.opencode.writer", *arguments],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        try:
            yield process
        finally:
            process.kill()


@pytest.mark.slow
def test_a_program_that_writes_all_the_time_is_never_kept_waiting(database, workspace):
    watched = reading(workspace, database)
    with running(database, workspace, "wal", 3) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        reads = 0
        os.set_blocking(process.stdout.fileno(), False)
        while not (line := process.stdout.readline()):
            watched.read(0.05)
            reads += 1
        assert line.split()[0] == "0"
        assert reads > 20
        assert watched.read() == fresh(workspace, database)
        assert watched.reader.trouble is None
    watched.reader.close()


def test_a_program_that_ends_beside_us_takes_its_log_with_it(program, database, workspace):
    program.session()
    watched = reading(workspace, database)
    assert len(watched.read()) == 1
    program.close()
    assert [path.name for path in database.parent.iterdir()] == ["opencode.db"]
    assert len(watched.read()) == 1
    assert [path.name for path in database.parent.iterdir()] == ["opencode.db"]
    watched.reader.close()


@pytest.mark.parametrize("left", [(), ("-wal", "-shm")])
@pytest.mark.parametrize("journal", ["wal", "delete"])
def test_what_no_program_has_open_is_read_without_a_trace(tmp_path, database, workspace, journal, left):
    program = Program(tmp_path / "running.db", workspace, journal=journal)
    root = program.session()
    program.answer(root, "Done.")
    if not left:
        program.close()
    for suffix in ("", *left):
        if (tmp_path / f"running.db{suffix}").exists():
            shutil.copyfile(tmp_path / f"running.db{suffix}", f"{database}{suffix}")
    program.close()
    before = state_of(database.parent)
    watched = reading(workspace, database)
    assert watched.read()[root].state is RunState.ENDED
    assert watched.said(root) == "Done."
    watched.reader.close()
    assert watched.reader.trouble is None
    assert state_of(database.parent) == before


@pytest.mark.skipif(not is_linux, reason="only Linux tells who holds a lock")
def test_a_killed_program_is_known_to_be_gone_unless_another_machine_may_run_it(database, workspace, monkeypatch):
    watched = reading(workspace, database)
    with running(database, workspace, "wal", 0.1) as process:
        assert process.stdout is not None
        process.stdout.readline()
        working = {key for key, run in watched.read().items() if run.state is RunState.WORKING}
        assert working == {key for key, run in watched.runs.items() if run.parent_session is None}
        assert {watched.runs[key].process_gone for key in working} == {None}
        process.send_signal(signal.SIGKILL)
        process.wait()
        watched.read()
        assert {watched.runs[key].process_gone for key in working} == {True}
        assert {watched.runs[key].state for key in working} == {RunState.WORKING}
        monkeypatch.setattr("agentwatch.sources.opencode.is_of_this_system", lambda _: False)
        watched.read()
        assert {watched.runs[key].process_gone for key in working} == {None}
    watched.reader.close()
