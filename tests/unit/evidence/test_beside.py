"""Another process reads files, too: what is seen is the same, whatever becomes of it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from agentwatch.contracts.shapes import Reading
from agentwatch.delegation.observation import Observation
from agentwatch.evidence import beside, second
from agentwatch.evidence.beside import Beside
from agentwatch.evidence.claims import Told, told_in
from agentwatch.evidence.one_look import OneLook
from agentwatch.sources.files import readings as module
from agentwatch.sources.files.readings import Readings
from agentwatch.sources.files.settings import FilesSettings
from agentwatch.sources.files.source import FilesSource
from tests.homes import live_in
from tests.unit.agents.documents import packet, returned

FILES = 300
SETTINGS = FilesSettings()
PATIENCE = 20.0
SLOW = 10
"""The file that takes as long as another process takes to begin."""


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    live_in(tmp_path, monkeypatch)
    monkeypatch.setattr(module, "MANY", 10)
    monkeypatch.setattr(module, "_MISSES", 3)
    monkeypatch.setattr(module, "has_two_cores", lambda: True)
    # As where threads run, which depends on how the tests do.
    monkeypatch.setattr(beside, "may_fork", lambda: False)
    made = tmp_path / "work"
    made.mkdir()
    for number in range(FILES // 2):
        (made / f"t{number}.handoff.json").write_text(packet())
        (made / f"t{number}.return.md").write_text(returned("SUCCESS"))
    (made / "note\udcff.md").write_text("# Note\n")
    (made / "bad.return.md").write_bytes(returned("SUCCESS").encode() + b"\xff")
    time.sleep(0.06)
    return made


def arrives(made: Beside) -> None:
    until = time.monotonic() + PATIENCE
    while not made._arrived and made._thread.is_alive() and time.monotonic() < until:
        time.sleep(0.01)


class Look:
    """One look at a workspace, the processes that were begun for it, and what was read here."""

    def __init__(self, root: Path, begin: Callable[..., Any] | None = Beside, *, is_ready: bool = False) -> None:
        self.one_look = OneLook(root)
        self.begun: list[Beside] = []
        self.here: list[str] = []
        self.told: dict[str, tuple[str, Told]] = {}

        def beginning(*job: Any) -> Beside:
            assert begin is not None
            self.begun.append(begin(*job, tells=True))
            return self.begun[-1]

        def reader(text: str, path: str) -> Reading | None:
            self.here.append(path)
            if begin is Beside and len(self.here) == SLOW:
                arrives(self.begun[0])
            return self.one_look.read(text, path)

        def take(name: str, text: str, told: Told) -> None:
            self.told[name] = text, told

        kept = Readings(
            str(root),
            SETTINGS.pruned,
            SETTINGS.max_bytes,
            begin=None if begin is None else beginning,
            take=take,
            is_ready=is_ready,
        )
        source = FilesSource(root, SETTINGS, read_document=reader, readings=kept)
        self.observations: list[Observation] = list(source.scan().observations)
        self.texts = [source.content(getattr(one, "digest", "")) for one in self.observations]


@pytest.fixture
def alone(root: Path) -> Iterator[Look]:
    return Look(root, None)


def test_two_read_and_see_the_same(root: Path, alone: Look) -> None:
    both = Look(root)
    assert both.observations == alone.observations
    assert both.texts == alone.texts
    assert len(both.here) < len(alone.here)
    assert both.told
    assert all(told == told_in(text, name) for name, (text, told) in both.told.items())
    (begun,) = both.begun
    assert begun._process.poll() is not None


_IN_A_PROCESS_WITHOUT_THREADS = """\
from pathlib import Path
from agentwatch.sources.files import readings as module
from tests.unit.evidence.test_beside import Look
module.MANY, module._MISSES, module.has_two_cores = 10, 3, lambda: True
look = Look(Path({root!r}))
(begun,) = look.begun
assert type(begun._process).__name__ == "Forked"
begun._process.wait(20)
assert begun._process.poll()
assert look.told and len(look.here) < {files}
print(ascii(look.observations))
"""


def test_where_no_thread_runs_a_copy_of_this_process_reads_and_sees_the_same(root: Path, alone: Look) -> None:
    program = _IN_A_PROCESS_WITHOUT_THREADS.format(root=str(root), files=len(alone.here))
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout == ascii(alone.observations) + "\n"


def ready(*job: Any, **more: Any) -> Beside:
    return Beside(*job, **more, begun=second.begin())


def held_up(*job: Any, **more: Any) -> Beside:
    process = second.begin()
    process.send_signal(signal.SIGSTOP)
    return Beside(*job, **more, begun=process)


def gone(*job: Any, **more: Any) -> Beside:
    process = second.begin()
    process.kill()
    process.wait()
    return Beside(*job, **more, begun=process)


def test_one_that_has_begun_already_reads_the_first_files_alone(
    root: Path, alone: Look, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(beside, "_FIRST_SECONDS", PATIENCE)
    look = Look(root, ready, is_ready=True)
    assert look.observations == alone.observations
    assert look.texts == alone.texts
    assert look.here == []
    assert look.begun[0]._process.poll() is not None


@pytest.mark.parametrize("begin", [held_up, gone])
def test_one_that_has_begun_and_says_nothing_is_waited_for_no_longer_than_the_first_files_may_take(
    root: Path, alone: Look, begin: Callable[..., Beside]
) -> None:
    look = Look(root, begin, is_ready=True)
    assert (look.observations, look.here) == (alone.observations, alone.here)
    assert look.begun[0]._process.poll() is not None


def test_one_that_has_begun_ends_where_nothing_has_to_be_read(root: Path) -> None:
    process = second.begin()
    made = Readings(str(root), SETTINGS.pruned, SETTINGS.max_bytes, begin=partial(Beside, begun=process), is_ready=True)
    made.load([])
    made.end()
    assert process.poll() is not None


def test_a_process_that_cannot_be_begun_changes_nothing(root: Path, alone: Look) -> None:
    def refused(*_job: Any, **_more: Any) -> Beside:
        raise PermissionError(1, "Operation not permitted")

    look = Look(root, refused)
    assert (look.observations, look.here) == (alone.observations, alone.here)


def test_there_is_one_at_a_time(root: Path) -> None:
    first = Beside(str(root), SETTINGS.max_bytes, "", ["t0.return.md"])
    with pytest.raises(BlockingIOError):
        Beside(str(root), SETTINGS.max_bytes, "", ["t0.return.md"])
    first.end()
    first.end()
    Beside(str(root), SETTINGS.max_bytes, "", ["t0.return.md"]).end()


def test_where_none_can_be_begun_the_next_one_may(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(sys, "executable", str(root / "nothing"))
        with pytest.raises(FileNotFoundError):
            Beside(str(root), SETTINGS.max_bytes, "", ["t0.return.md"])
    Beside(str(root), SETTINGS.max_bytes, "", ["t0.return.md"]).end()


@pytest.mark.parametrize("is_ready", [False, True], ids=["begins", "has begun"])
def test_where_no_thread_can_be_started_it_is_ended_and_this_one_reads_alone(
    root: Path, alone: Look, is_ready: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    processes: list[subprocess.Popen[bytes]] = []

    def begin() -> subprocess.Popen[bytes]:
        processes.append(second.begin())
        return processes[-1]

    def refused(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    def begun(*job: Any, **more: Any) -> Beside:
        return Beside(*job, **more, begun=begin() if is_ready else None)

    monkeypatch.setattr(beside, "begin", begin)
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refused)
        look = Look(root, begun, is_ready=is_ready)
    assert (look.observations, look.here) == (alone.observations, alone.here)
    (process,) = processes
    assert process.returncode is not None
    Beside(str(root), SETTINGS.max_bytes, "", ["t0.return.md"]).end()


def stopped(*job: Any, **more: Any) -> Beside:
    made = Beside(*job, **more)
    made._process.send_signal(signal.SIGSTOP)
    return made


def killed(*job: Any, **more: Any) -> Beside:
    made = Beside(*job, **more)
    made._process.kill()
    return made


def killed_in_the_middle(*job: Any, **more: Any) -> Beside:
    made = Beside(*job, **more)
    arrives(made)
    made._process.kill()
    return made


@pytest.mark.parametrize("begin", [stopped, killed, killed_in_the_middle])
def test_a_process_that_ends_early_or_is_held_up_changes_nothing(
    root: Path, alone: Look, begin: Callable[..., Beside]
) -> None:
    look = Look(root, begin)
    assert look.observations == alone.observations
    assert look.begun[0]._process.poll() is not None


@pytest.mark.parametrize("said", [b"", b"\1", b"\5\0\0\0\0\0\0\0ab", b"\2\0\0\0\0\0\0\0ab", b"\xff" * 9], ids=repr)
def test_a_process_that_says_something_else_changes_nothing(
    root: Path, alone: Look, said: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(second, "_MAIN", f"import sys; sys.stdin.read(); sys.stdout.buffer.write({said!r})")
    assert Look(root).observations == alone.observations


def test_a_file_that_changes_after_it_was_read_beside_is_as_it_was_when_the_workspace_was_walked(root: Path) -> None:
    paths = [f"t{number}.return.md" for number in range(FILES // 4, FILES // 2)]
    before = {one.path: one for one in Look(root, None).observations}

    def waits(where: str, max_bytes: int, beginning: str, left: Sequence[str], **more: Any) -> Beside:
        made = Beside(where, max_bytes, beginning, left, **more)
        made._process.wait(PATIENCE)
        for path in paths:
            (root / path).write_text(returned("ERROR"))
        return made

    look, after = Look(root, waits), Look(root, None)
    assert look.told
    # But for the time, and the place in the order.
    assert all(getattr(one, "digest", None) == getattr(before[one.path], "digest", None) for one in look.observations)
    for path, text in zip((one.path for one in look.observations), look.texts, strict=True):
        assert path not in paths or text == returned("SUCCESS")
    changed = {one.path for one in after.observations if one.digest != before[one.path].digest}
    assert changed == set(paths)


def test_nobody_is_left_behind_when_the_first_is_killed(root: Path) -> None:
    program = (
        "import sys, time; from agentwatch.evidence.beside import Beside\n"
        f"made = Beside({str(root)!r}, 1000000, '', ['t0.return.md'] * 200_000)\n"
        "while not made._arrived: time.sleep(0.01)\n"
        "print(made._process.pid, flush=True); time.sleep(60)\n"
    )
    first = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert first.stdout is not None
    second = int(first.stdout.readline())
    first.kill()
    first.wait()
    first.stdout.close()
    until = time.monotonic() + PATIENCE
    while _runs(second) and time.monotonic() < until:
        time.sleep(0.02)
    assert not _runs(second)


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    try:
        return ") Z " not in Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False


def test_one_that_waits_for_its_job_is_not_left_behind() -> None:
    program = (
        "import atexit, os\n"
        "def look():\n"
        "    try: os.waitpid(-1, os.WNOHANG)\n"
        "    except ChildProcessError: print('none')\n"
        "atexit.register(look)\n"
        "from agentwatch.evidence import second\n"
        "second.begin()\n"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert (ran.stdout, ran.stderr) == ("none\n", "")
