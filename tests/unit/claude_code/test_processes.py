"""Whether the program of a session is known to be gone."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from agentwatch.delegation.events import Ran
from agentwatch.delegation.tree import Tree
from agentwatch.sources.claude_code.claude_code_reader import wait_in
from agentwatch.sources.sessions import processes as processes_module
from agentwatch.sources.sessions.processes import Processes
from tests.unit.claude_code.building import SESSION, Store, meta, register


@pytest.fixture
def gone_pid() -> int:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def look(home: Path) -> bool | None:
    processes = Processes(home / "sessions", wait_in)
    processes.look()
    return processes.of(SESSION).gone


def test_without_a_file_nothing_is_known_unless_it_was_there(tmp_path: Path) -> None:
    assert look(tmp_path) is None
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    path = register(tmp_path, process.pid)
    processes = Processes(tmp_path / "sessions", wait_in)
    processes.look()
    path.unlink()
    process.communicate(b"\n")
    processes.look()
    assert processes.of(SESSION).gone is True


def test_a_number_that_names_no_domain_is_believed_where_all_processes_are_seen_or_if_it_ran_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes_module, "sees_all", lambda: False)
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    register(tmp_path, process.pid)
    watched = Processes(tmp_path / "sessions", wait_in)
    watched.look()
    assert watched.of(SESSION).gone is False
    process.communicate(b"\n")
    assert watched.of(SESSION).gone is True
    assert look(tmp_path) is None, "in another container it may run all the same"
    monkeypatch.setattr(processes_module, "sees_all", lambda: True)
    assert look(tmp_path) is True
    monkeypatch.setattr(processes_module, "is_of_this_system", lambda _: False)
    assert look(tmp_path) is None, "another machine may run it"


def test_a_child_whose_process_is_killed_asks_until_another_one_goes_on(tmp_path: Path, gone_pid: int) -> None:
    store = Store(tmp_path)
    log = store.session()
    log.asked("Go.")
    log.delegated("t1", "Test it.")
    store.agent("a1", meta("t1")).asked("Test it.")
    store.save()
    path = register(store.home, os.getpid())
    reader, tree = store.reader(), Tree()

    def asked() -> dict[str | None, str | None]:
        for change in reader.read(60.0):
            assert change.run is not None
            tree.add([Ran(1, change.run.updated_at, change.key, change.run)])
        tree.settle()
        return {task.agent: task.ask for task in tree.asking()}

    assert asked() == {}
    path.unlink()
    path = register(store.home, gone_pid)
    assert asked() == {}, "its files were written a moment ago"
    for file in store.files:
        os.utime(file, (1e9, 1e9))
    said = "process gone, and 1 task below had not ended: resume the session in its own program, or abort?"
    assert asked() == {None: said}
    path.unlink()
    # The same session in another process, which cannot have run what was heard of before it began.
    path = register(store.home, os.getpid(), startedAt=(tree.tasks[SESSION].updated_at + 5) * 1000)
    assert asked() == {None: said}
    register(store.home, os.getpid())
    assert asked() == {}


@pytest.mark.skipif(sys.platform != "linux", reason="mounts are read from /proc")
@pytest.mark.parametrize(
    ("kind", "is_here"),
    [("ext4", True), ("fuse.fuse-overlayfs", True), ("nfs4", False), ("virtiofs", False), ("fuse.sshfs", False)],
)
def test_only_a_file_system_of_this_machine_tells_of_its_processes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, is_here: bool
) -> None:
    device = tmp_path.stat().st_dev
    mounts = f"30 1 {os.major(device)}:{os.minor(device)} / /home rw,relatime shared:1 - {kind} host:/home rw\n"
    monkeypatch.setattr(Path, "read_text", lambda *_: "29 1 0:9999 / / rw - nfs4 x rw\n" + mounts)
    processes_module.is_of_this_system.cache_clear()
    try:
        assert processes_module.is_of_this_system(tmp_path) == is_here
    finally:
        processes_module.is_of_this_system.cache_clear()
