"""Whether the program of a session is known to be gone, so that nobody can answer its requests."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from agentwatch.delegation.events import Ran
from agentwatch.delegation.tree import Tree
from agentwatch.sources.sessions.processes import Processes, is_on_local_disk, sees_all_processes
from tests.unit.claude_code import building
from tests.unit.claude_code.building import SESSION, register
from tests.unit.sessions.store import Store

GONE = True if sees_all_processes() else None
"""True if a missing process is surely gone; None if another container may have it."""
NAMESPACE = int("".join(filter(str.isdigit, str(Path("/proc/self/ns/pid").readlink())))) if GONE is not None else 0

on_linux = pytest.mark.skipif(sys.platform != "linux", reason="it is read from /proc")


@pytest.fixture
def gone_pid():
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


@on_linux
@pytest.mark.parametrize(
    ("keys", "gone"),
    [
        ({}, False),
        ({"procStart": "1"}, GONE),
        ({"procStart": "boot:1", "pidNs": NAMESPACE}, True),
        ({"procStart": "1", "pidDomain": sys.platform}, True),
        ({"procStart": "boot:1", "pidNs": NAMESPACE + 1}, None),
        ({"procStart": "1", "pidDomain": "elsewhere"}, None),
        ({"sessionId": "another"}, None),
    ],
)
def test_a_process_is_known_by_its_number_and_its_start(tmp_path, keys, gone):
    register(tmp_path, os.getpid(), **keys)
    processes = Processes(tmp_path / "sessions")
    processes.refresh()
    assert processes.program_of(SESSION).gone is gone
    register(tmp_path, 2, pidDomain="elsewhere")
    processes.refresh()
    assert processes.program_of(SESSION).gone is (False if gone is False else None), "of that one nothing is known"


def test_a_process_that_was_seen_to_run_has_ended_with_its_file(tmp_path):
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    path = register(tmp_path, process.pid)
    processes = Processes(tmp_path / "sessions")
    processes.refresh()
    assert processes.program_of(SESSION).gone is False
    path.unlink()
    process.communicate(b"\n")
    processes.refresh()
    assert processes.program_of(SESSION).gone is True


@on_linux
@pytest.mark.parametrize(
    ("kind", "is_here"),
    [("ext4", True), ("fuse.fuse-overlayfs", True), ("nfs4", False), ("virtiofs", False), ("fuse.sshfs", False)],
)
def test_only_a_file_system_of_this_machine_tells_of_processes(tmp_path, monkeypatch, kind, is_here):
    device = tmp_path.stat().st_dev
    mounts = f"30 1 {os.major(device)}:{os.minor(device)} / /home rw,relatime shared:1 - {kind} host:/home rw\n"
    monkeypatch.setattr(Path, "read_text", lambda *_: "29 1 0:9999 / / rw - nfs4 x rw\n" + mounts)
    is_on_local_disk.cache_clear()
    try:
        assert is_on_local_disk(tmp_path) == is_here
    finally:
        is_on_local_disk.cache_clear()


def test_a_lock_of_copilot_shows_its_process(tmp_path, gone_pid):
    store = Store("copilot", tmp_path)
    store.finish()
    (events,) = (path for path in store.place.rglob("events.jsonl") if path.parent.name != "second")
    leave = {"requestId": "r", "permissionRequest": {"kind": "shell", "fullCommandText": "ls"}}
    asked = {"type": "permission.requested", "id": "p", "timestamp": "2026-11-22T13:00:00.000Z", "data": leave}
    with events.open("a") as file:
        file.write(f"{json.dumps(asked)}\n")
    os.utime(events, (1.0, 1.0))

    def told(pid: int, began: float) -> tuple[bool | None, str]:
        lock = events.with_name(f"inuse.{pid}.lock")
        lock.touch()
        os.utime(lock, (began, began))
        watch = store.watch()
        watch.look()
        run = next(ran.run for ran in watch.runs.values() if ran.run and ran.run.session_id == events.parent.name)
        lock.unlink()
        return run.process_gone, run.waiting

    assert told(os.getpid(), 1.0) == (False, "a permission: shell ls")
    assert told(gone_pid, 1.0) == (GONE, "" if GONE else "a permission: shell ls")
    # The record is older than this process, so another process left it behind.
    assert told(os.getpid(), 4e9) == (True, "")


def test_a_killed_session_asks_until_another_process_goes_on(tmp_path, gone_pid):
    store = building.Store(tmp_path)
    log = store.session()
    log.asked("Go.")
    log.delegated("t1", "Test it.")
    store.agent("a1", building.meta("t1")).asked("Test it.")
    store.save()
    path = register(store.home, os.getpid())
    reader, tree = store.reader(), Tree()

    def asked() -> dict[str | None, str | None]:
        for change in reader.read(60.0):
            tree.add_events([Ran(1, change.run.updated_at, change.key, change.run)])
        tree.finish_batch()
        return {task.agent: task.ask for task in tree.asking_tasks()}

    assert asked() == {}
    path.unlink()
    path = register(store.home, gone_pid, pidDomain=sys.platform)
    assert asked() == {}, "its files were written a moment ago"
    for file in store.files:
        os.utime(file, (1e9, 1e9))
    said = "process gone, and 1 task below had not ended: resume the session in its own program, or abort?"
    assert asked() == {None: said}
    path.unlink()
    # The session is now in another process, which started after the last sign of life of the child.
    path = register(store.home, os.getpid(), startedAt=(tree.tasks[SESSION].updated_at + 5) * 1000)
    assert asked() == {None: said}
    register(store.home, os.getpid())
    assert asked() == {}
