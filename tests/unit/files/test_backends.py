"""What every way to wait for changes must do; and what only one of them can."""

from __future__ import annotations

import errno
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from agentwatch.sources.files import inotify_backend, watchfiles_backend
from agentwatch.sources.files.inotify_backend import InotifyBackend
from agentwatch.sources.files.settings import FilesSettings
from agentwatch.sources.files.watch import Backend, Changes, PollingBackend, WatchError, open_backend
from agentwatch.sources.files.watchfiles_backend import WatchfilesBackend
from tests.unit.files.watching import PATIENCE, descriptors

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="inotify is a part of Linux")

BACKENDS = pytest.mark.parametrize("open_it", [InotifyBackend, WatchfilesBackend])


@pytest.fixture
def backend(open_it: Callable[[str], Backend], tmp_path: Path) -> Iterator[Backend]:
    opened = open_it(str(tmp_path))
    opened.watch("")
    settle(opened)
    yield opened
    opened.close()


def settle(backend: Backend) -> None:
    """Take what is there, so that what comes next is new."""
    while (changes := backend.wait(0.05)).paths or changes.lost:
        continue


def until(backend: Backend, condition: Callable[[set[str]], bool]) -> set[str]:
    """Wait until the paths reported so far meet the condition, or it is said that some were lost."""
    paths: set[str] = set()
    deadline = time.monotonic() + PATIENCE
    while not condition(paths):
        assert time.monotonic() < deadline, f"only {sorted(paths)} were reported"
        changes = backend.wait(0.1)
        paths |= changes.paths
        if changes.lost:
            break
    return paths


@BACKENDS
def test_files_that_are_written_replaced_and_deleted_are_reported(backend: Backend, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("one")
    until(backend, lambda paths: "a.json" in paths)
    settle(backend)
    (tmp_path / "a.json").write_text("two")
    until(backend, lambda paths: "a.json" in paths)
    settle(backend)
    (tmp_path / "a.json.tmp").write_text("three")
    (tmp_path / "a.json.tmp").rename(tmp_path / "a.json")
    until(backend, lambda paths: "a.json" in paths)
    settle(backend)
    (tmp_path / "a.json").unlink()
    until(backend, lambda paths: "a.json" in paths)


@BACKENDS
def test_directories_that_come_and_go_are_reported(backend: Backend, tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    until(backend, lambda paths: "a" in paths)
    settle(backend)
    (tmp_path / "a").rename(tmp_path / "b")
    until(backend, lambda paths: {"a", "b"} <= paths)
    settle(backend)
    (tmp_path / "b").rmdir()
    until(backend, lambda paths: "b" in paths)


@BACKENDS
def test_only_what_lies_right_in_a_watched_directory_is_reported(backend: Backend, tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    settle(backend)
    backend.watch("a")
    settle(backend)
    (tmp_path / "a" / "b" / "deep.json").touch()
    (tmp_path / "a" / "x.json").touch()
    assert until(backend, lambda paths: "a/x.json" in paths) <= {"a/x.json"}


@BACKENDS
def test_a_directory_watched_later_is_reported_from_then_on(backend: Backend, tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    settle(backend)
    backend.watch("a")
    backend.watch("not there")
    settle(backend)
    (tmp_path / "a" / "x.json").touch()
    until(backend, lambda paths: "a/x.json" in paths)


@BACKENDS
def test_a_directory_made_again_is_reported_after_it_was_watched_again(backend: Backend, tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    backend.watch("a")
    settle(backend)
    (tmp_path / "a").rmdir()
    (tmp_path / "a").mkdir()
    until(backend, lambda paths: "a" in paths)
    backend.watch("a")
    settle(backend)
    (tmp_path / "a" / "x.json").touch()
    until(backend, lambda paths: "a/x.json" in paths)


@BACKENDS
def test_a_moved_directory_is_reported_under_its_new_name(backend: Backend, tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    backend.watch("a")
    settle(backend)
    (tmp_path / "a").rename(tmp_path / "b")
    # In both orders: the kernel gives the same watch for the same directory.
    backend.watch("b")
    backend.unwatch("a")
    settle(backend)
    (tmp_path / "b" / "x.json").touch()
    until(backend, lambda paths: "b/x.json" in paths)


def test_inotify_forgets_a_directory_that_another_took_the_place_of(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    aside = tmp_path_factory.mktemp("aside")
    (tmp_path / "a").mkdir()
    backend = InotifyBackend(str(tmp_path))
    backend.watch("a")
    (tmp_path / "a").rename(aside / "a")
    (tmp_path / "a").mkdir()
    backend.watch("a")
    settle(backend)
    (aside / "a" / "x.json").touch()
    assert backend.wait(0.1) == Changes()
    (tmp_path / "a" / "y.json").touch()
    until(backend, lambda paths: paths == {"a/y.json"})
    backend.close()


@BACKENDS
def test_reading_causes_no_event(backend: Backend, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("one")
    settle(backend)
    (tmp_path / "a.json").read_text()
    list(tmp_path.iterdir())
    assert backend.wait(0.1) == Changes()


@BACKENDS
def test_a_name_that_is_not_utf8_does_not_end_the_watching(backend: Backend, tmp_path: Path) -> None:
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff.json")).touch()
    settle(backend)
    (tmp_path / "a.json").touch()
    until(backend, lambda paths: "a.json" in paths)


@BACKENDS
def test_a_wait_without_changes_ends_in_time(backend: Backend) -> None:
    began = time.monotonic()
    assert backend.wait(0.0) == backend.wait(0.05) == Changes()
    assert time.monotonic() - began < PATIENCE


@BACKENDS
def test_waking_ends_a_wait_and_every_later_one(backend: Backend) -> None:
    thread = threading.Timer(0.05, backend.wake)
    thread.start()
    began = time.monotonic()
    backend.wait(10 * PATIENCE)
    backend.wait(10 * PATIENCE)
    assert time.monotonic() - began < PATIENCE
    thread.join()


@BACKENDS
def test_closing_gives_back_every_descriptor_and_waking_afterwards_is_harmless(
    open_it: Callable[[str], Backend], tmp_path: Path
) -> None:
    before = descriptors()
    for _ in range(3):
        backend = open_it(str(tmp_path))
        backend.watch("")
        settle(backend)
        backend.close()
        backend.close()
        backend.wake()
    deadline = time.monotonic() + PATIENCE
    while descriptors() > before:
        # watchfiles ends its thread, and closes what that holds, in its own time.
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_polling_reports_nothing_and_can_be_woken() -> None:
    backend = PollingBackend()
    backend.watch("")
    assert backend.wait(0.0) == Changes()
    backend.wake()
    assert backend.wait(10 * PATIENCE) == Changes()
    backend.unwatch("")
    backend.close()


def test_inotify_knows_when_the_queue_ran_over(tmp_path: Path) -> None:
    limit = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text())
    if limit > 100_000:
        pytest.skip(f"the queue of this machine holds {limit} events: filling it takes too long")
    backend = InotifyBackend(str(tmp_path))
    backend.watch("")
    names = [f"{number}.json" for number in range(100)]
    # Two events a file and round that cannot be merged, because the name is always another.
    for _ in range(limit // len(names) // 2 + 2):
        for name in names:
            os.close(os.open(tmp_path / name, os.O_CREAT | os.O_WRONLY))
            os.unlink(tmp_path / name)  # noqa: PTH108  twice as fast, and there are many
    lost = False
    while not lost and (changes := backend.wait(0.0)) != Changes():
        lost = changes.lost
    backend.close()
    assert lost


def test_inotify_only_says_that_there_was_something_with_other_files(tmp_path: Path) -> None:
    backend = InotifyBackend(str(tmp_path))
    backend.watch("")
    (tmp_path / "build.log").write_text("noise")
    assert backend.wait(10.0) == Changes(others=True)
    (tmp_path / "a.json").touch()
    assert backend.wait(10.0) == Changes(frozenset({"a.json"}))
    backend.close()


def test_inotify_does_not_follow_a_root_that_is_a_link_by_now(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    backend = InotifyBackend(str(tmp_path / "link"))
    backend.watch("")
    (tmp_path / "real" / "a.json").touch()
    assert backend.wait(0.0) == Changes()
    backend.close()


def test_at_the_limit_of_watches_inotify_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    backend = InotifyBackend(str(tmp_path))
    monkeypatch.setattr(inotify_backend, "_last_error", lambda: OSError(errno.ENOSPC, "No space left on device"))
    with pytest.raises(WatchError, match=r"^Polling, because .*No space left.* Raise fs.inotify.max_user_watches"):
        backend.watch("not there")
    backend.close()


def test_at_the_limit_of_instances_inotify_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Full:
        def inotify_init1(self, flags: int) -> int:
            return -1

    monkeypatch.setattr(inotify_backend, "_libc", Full())
    with pytest.raises(WatchError, match=r"max_user_instances"):
        InotifyBackend(str(tmp_path))


def test_at_the_limit_of_watches_watchfiles_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*paths: str, **options: object) -> Iterator[set[object]]:
        raise OSError(errno.ENOSPC, "OS file watch limit reached.")
        yield set()

    monkeypatch.setattr(watchfiles_backend, "watch", full)
    backend = WatchfilesBackend(str(tmp_path))
    backend.watch("")
    with pytest.raises(WatchError, match=r"^Polling, because .*No space left"):
        backend.wait(1.0)
    backend.close()


def test_watchfiles_says_that_something_may_be_lost_whenever_it_was_built_anew(tmp_path: Path) -> None:
    backend = WatchfilesBackend(str(tmp_path))
    backend.watch("")
    assert backend.wait(PATIENCE).lost
    (tmp_path / "a").mkdir()
    backend.watch("a")
    deadline = time.monotonic() + PATIENCE
    while not backend.wait(0.1).lost:
        assert time.monotonic() < deadline
    backend.close()


def test_watchfiles_waits_for_a_root_that_is_not_there(tmp_path: Path) -> None:
    backend = WatchfilesBackend(str(tmp_path / "later"))
    backend.watch("")
    settle(backend)
    assert backend.wait(0.01) == Changes()
    backend.close()


def test_on_linux_inotify_is_taken(tmp_path: Path) -> None:
    backend = open_backend(str(tmp_path), FilesSettings())
    assert isinstance(backend, InotifyBackend)
    backend.close()


def test_elsewhere_watchfiles_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    assert isinstance(open_backend(str(tmp_path), FilesSettings()), WatchfilesBackend)


def test_polling_can_be_configured(tmp_path: Path) -> None:
    with pytest.raises(WatchError, match="as configured"):
        open_backend(str(tmp_path), FilesSettings(force_polling=True))


@pytest.mark.parametrize(
    ("value", "forced"), [("1", True), ("yes", True), ("", False), ("false", False), ("Disabled", False)]
)
def test_the_variable_of_watchfiles_forces_polling(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: str, forced: bool
) -> None:
    monkeypatch.setenv("WATCHFILES_FORCE_POLLING", value)
    if forced:
        with pytest.raises(WatchError, match="WATCHFILES_FORCE_POLLING"):
            open_backend(str(tmp_path), FilesSettings())
    else:
        open_backend(str(tmp_path), FilesSettings()).close()
