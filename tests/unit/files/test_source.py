"""A source at work on real files: what it emits, how it is, how it ends."""

from __future__ import annotations

import os
import queue
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from agentwatch.background import Pace
from agentwatch.delegation.events import Seen
from agentwatch.sources import Batch
from agentwatch.sources.files import watcher as watcher_module
from agentwatch.sources.files.inotify_backend import InotifyBackend
from agentwatch.sources.files.scan import FolderListing, list_directory
from agentwatch.sources.files.settings import FilesSettings
from agentwatch.sources.files.source import FilesSource
from agentwatch.sources.files.watch import Backend, Changes, PollingBackend, WatchError
from agentwatch.sources.files.watchfiles_backend import WatchfilesBackend
from tests.unit.files.watching import (
    HALF,
    OTHER,
    PATIENCE,
    QUICK,
    Receiver,
    descriptors,
    on_disk,
    packet,
    read_document,
    watching,
)


def no_backend(root: str, settings: FilesSettings) -> Backend:
    raise WatchError("Polling, for this test")


def inotify(root: str, settings: FilesSettings) -> Backend:
    return InotifyBackend(root)


def watchfiles(root: str, settings: FilesSettings) -> Backend:
    return WatchfilesBackend(root)


EVERY_WAY = pytest.mark.parametrize("way", [inotify, watchfiles, no_backend])

Way = Callable[[str, FilesSettings], Backend]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "workspace"
    root.mkdir()
    return root


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@EVERY_WAY
def test_create_rewrite_rename_and_delete_are_followed(root: Path, way: Way) -> None:
    write(root / "a" / "old.json", packet("old"))
    with watching(root, QUICK, way) as receiver:
        receiver.until_present("a/old.json")
        write(root / "a" / "x.json", packet("x"))
        receiver.until_present("a/old.json", "a/x.json")
        write(root / "a" / "x.json", packet("rewritten"))
        receiver.until(lambda it: it.kinds("a/x.json") == ["Seen", "Seen"])
        (root / "a" / "x.json").rename(root / "a" / "y.json")
        receiver.until_present("a/old.json", "a/y.json")
        (root / "a" / "y.json").unlink()
        receiver.until_present("a/old.json")
        shutil.rmtree(root / "a")
        receiver.until_present()
        write(root / "b" / "c" / "z.json", packet("z"))
        receiver.until_present("b/c/z.json")


@EVERY_WAY
def test_a_half_written_file_is_seen_once_whole(root: Path, way: Way) -> None:
    with watching(root, FilesSettings(settle_seconds=PATIENCE * 10), way) as receiver:
        with (root / "x.json").open("w") as file:
            file.write(HALF)
            file.flush()
            write(root / "later.json", packet("later"))
            receiver.until_present("later.json")
            file.write('lf"}')
        receiver.until_present("later.json", "x.json")
    assert receiver.kinds("x.json") == ["Seen"]


@EVERY_WAY
def test_a_half_written_file_that_stays_so_is_shown_as_broken(root: Path, way: Way) -> None:
    with watching(root, QUICK, way) as receiver:
        write(root / "x.json", HALF)
        receiver.until_present("x.json")
    (seen,) = receiver.events
    assert isinstance(seen, Seen)
    assert seen.incomplete


@EVERY_WAY
def test_a_root_moved_away_and_back_is_followed(root: Path, way: Way) -> None:
    write(root / "a" / "x.json", packet("x"))
    with watching(root, QUICK, way) as receiver:
        receiver.until_present("a/x.json")
        root.rename(root.parent / "away")
        receiver.until(lambda it: not it.present and it.mode == "degraded")
        assert receiver.detail == "The workspace is gone (No such file or directory): waiting for it to return"
        (root.parent / "away").rename(root)
        receiver.until(lambda it: "a/x.json" in it.present and it.mode in ("live", "polling"))
        write(root / "a" / "y.json", packet("y"))
        receiver.until_present("a/x.json", "a/y.json")


@EVERY_WAY
def test_a_root_removed_and_made_again_is_followed(root: Path, way: Way) -> None:
    write(root / "a" / "x.json", packet("x"))
    with watching(root, QUICK, way) as receiver:
        receiver.until_present("a/x.json")
        shutil.rmtree(root)
        receiver.until(lambda it: not it.present and it.mode == "degraded")
        write(root / "a" / "x.json", packet("x"))
        receiver.until_present("a/x.json")
        write(root / "a" / "y.json", packet("y"))
        receiver.until_present("a/x.json", "a/y.json")


@EVERY_WAY
def test_a_root_exchanged_at_once_for_another_is_followed(root: Path, way: Way) -> None:
    write(root / "x.json", packet("x"))
    write(root.parent / "other" / "y.json", packet("y"))
    with watching(root, QUICK, way) as receiver:
        receiver.until_present("x.json")
        root.rename(root.parent / "away")
        (root.parent / "other").rename(root)
        receiver.until_present("y.json")
        write(root / "z.json", packet("z"))
        receiver.until_present("y.json", "z.json")


def test_a_root_replaced_by_a_link_or_a_file_is_not_followed(root: Path) -> None:
    write(root / "x.json", packet("x"))
    with watching(root) as receiver:
        receiver.until_present("x.json")
        root.rename(root.parent / "away")
        root.symlink_to("away")
        receiver.until(lambda it: "replaced by a symbolic link" in it.detail)
        root.unlink()
        root.touch()
        receiver.until(lambda it: "replaced by a file" in it.detail)
        assert receiver.present == {}
        root.unlink()
        (root.parent / "away").rename(root)
        receiver.until_present("x.json")


def test_a_root_that_is_not_there_yet_is_waited_for(root: Path) -> None:
    root.rmdir()
    receiver = Receiver()
    source = FilesSource(root, QUICK, read_document=read_document)
    source.start(receiver)
    try:
        receiver.until(lambda it: it.mode == "degraded")
        write(root / "x.json", packet("x"))
        receiver.until_present("x.json")
    finally:
        source.stop()


def test_a_root_given_as_a_link_is_watched_where_it_leads(root: Path) -> None:
    (root.parent / "link").symlink_to("workspace")
    with watching(root.parent / "link") as receiver:
        write(root / "x.json", packet("x"))
        receiver.until_present("x.json")


def test_the_first_batch_is_empty_and_says_starting_and_the_last_of_the_scan_says_live(root: Path) -> None:
    for number in range(50):
        write(root / f"{number}.json", packet(str(number)))
    with watching(root) as receiver:
        pass
    assert (receiver.batches[0].health.mode, receiver.batches[0].events) == ("starting", ())
    health = receiver.batches[-1].health
    assert (health.mode, health.detail, health.directories, health.files) == (
        "live",
        "Changes are seen as they happen",
        1,
        50,
    )


def test_a_restart_gives_the_same_observations_with_the_same_numbers(root: Path) -> None:
    for number in range(30):
        write(root / f"{number % 7}" / f"{number}.json", packet(str(number)))
        os.utime(root / f"{number % 7}" / f"{number}.json", (1000 + number % 3, 1000 + number % 3))
    runs = []
    for _ in range(2):
        with watching(root) as receiver:
            runs.append([(item.seq, getattr(item, "path", "")) for item in receiver.events])
    assert len(runs[0]) == 30
    assert runs[0] == runs[1]


def test_the_numbers_go_on_without_gaps(root: Path) -> None:
    write(root / "a.json", packet("a"))
    with watching(root) as receiver:
        for number in range(20):
            write(root / f"{number}.json", packet(str(number)))
        (root / "a.json").unlink()
        receiver.until(lambda it: len(it.events) == 22)
    assert [item.seq for item in receiver.events] == list(range(1, 23))


def test_a_storm_is_rested_in_and_ends_with_what_the_files_hold(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rests = []

    class Exhausted(Pace):
        @property
        def rest(self) -> float:
            rests.append(self)
            return 0.02

    monkeypatch.setattr(watcher_module, "Pace", Exhausted)
    with watching(root) as receiver:
        for number in range(500):
            write(root / f"{number % 5}.json", packet(str(number)))
        receiver.until(lambda it: it.present == on_disk(root))
    assert rests


def test_the_text_of_an_observation_can_be_had(root: Path) -> None:
    write(root / "a.json", packet("a"))
    receiver = Receiver()
    source = FilesSource(root, QUICK, read_document=read_document)
    source.start(receiver)
    receiver.until_present("a.json")
    first = receiver.present["a.json"]
    write(root / "a.json", packet("b"))
    receiver.until(lambda it: it.present["a.json"] != first)
    source.stop()
    assert source.content(first) == packet("a")
    assert source.content(receiver.present["a.json"]) == packet("b")
    assert source.content("unknown") is None


def test_files_that_are_not_ours_give_no_observation(root: Path) -> None:
    write(root / "package.json", OTHER)
    with watching(root) as receiver:
        write(root / "package.json", OTHER + " ")
        write(root / "README.md", "# Read me")
        write(root / "x.json", packet("x"))
        receiver.until_present("x.json")
    assert len(receiver.events) == 1


def test_where_events_cannot_be_had_polling_says_why(root: Path) -> None:
    with watching(root, QUICK, no_backend) as receiver:
        assert (receiver.mode, receiver.detail) == ("polling", "Polling, for this test")


class Faulty(InotifyBackend):
    """Runs into the limit at some directory, or while waiting."""

    def watch(self, path: str) -> None:
        if path == "c":
            raise WatchError("Polling, because the limit is reached")
        super().watch(path)

    def wait(self, timeout: float) -> Changes:
        changes = super().wait(timeout)
        if "stop.json" in changes.paths:
            raise WatchError("Polling, because waiting failed")
        return changes


def test_at_the_limit_of_watches_it_goes_on_by_polling(root: Path) -> None:
    with watching(root, QUICK, lambda root, _settings: Faulty(root)) as receiver:
        assert receiver.mode == "live"
        for name in "abcd":
            write(root / name / "x.json", packet(name))
        receiver.until_present("a/x.json", "b/x.json", "c/x.json", "d/x.json")
        receiver.until(lambda it: it.detail == "Polling, because the limit is reached")
        write(root / "d" / "y.json", packet("y"))
        receiver.until(lambda it: "d/y.json" in it.present)


def test_at_the_limit_of_watches_during_the_first_scan_it_goes_on_by_polling(root: Path) -> None:
    for name in "abcd":
        write(root / name / "x.json", packet(name))
    with watching(root, QUICK, lambda root, _settings: Faulty(root)) as receiver:
        assert (receiver.mode, receiver.detail) == ("polling", "Polling, because the limit is reached")
        write(root / "d" / "y.json", packet("y"))
        receiver.until(lambda it: len(it.present) == 5)
    assert all(batch.health.mode != "degraded" for batch in receiver.batches)


def test_when_waiting_fails_it_goes_on_by_polling(root: Path) -> None:
    with watching(root, QUICK, lambda root, _settings: Faulty(root)) as receiver:
        write(root / "stop.json", packet("x"))
        receiver.until_present("stop.json")
        receiver.until(lambda it: it.detail == "Polling, because waiting failed")


class Told(PollingBackend):
    """Reports what the test tells it to, and nothing else. A wait ends when something was told."""

    polls = False

    def __init__(self) -> None:
        super().__init__()
        self.changes: queue.SimpleQueue[Changes] = queue.SimpleQueue()

    def wait(self, timeout: float) -> Changes:
        try:
            return self.changes.get(timeout=timeout)
        except queue.Empty:
            return Changes()

    def wake(self) -> None:
        self.changes.put(Changes())


@pytest.fixture
def rare_sweeps(monkeypatch: pytest.MonkeyPatch) -> None:
    """After the sweeps that a start brings along, there is none unless something is said to be lost."""
    for name in ("_IDLE_SECONDS", "_LONGEST_SECONDS", "_ACTIVE_SECONDS"):
        monkeypatch.setattr(f"agentwatch.sources.files.watcher.{name}", 1000.0)


@contextmanager
def watching_told(root: Path) -> Iterator[tuple[Receiver, Told]]:
    """A source whose backend tells what the test says, after everything at the start has been compared."""
    backend = Told()
    with watching(root, QUICK, lambda _root, _settings: backend) as receiver:
        write(root / "first.json", packet("first"))
        backend.changes.put(Changes(lost=True))
        receiver.until(lambda it: "first.json" in it.present)
        yield receiver, backend


@pytest.mark.usefixtures("rare_sweeps")
def test_after_a_loss_everything_is_compared_with_the_disk(root: Path) -> None:
    with watching_told(root) as (receiver, backend):
        write(root / "a" / "x.json", packet("x"))
        backend.changes.put(Changes(lost=True))
        receiver.until_present("first.json", "a/x.json")


@pytest.mark.usefixtures("rare_sweeps")
def test_a_burst_is_taken_for_a_loss(root: Path) -> None:
    with watching_told(root) as (receiver, backend):
        write(root / "a" / "x.json", packet("x"))
        backend.changes.put(Changes(frozenset(f"b/{number}.json" for number in range(1_000))))
        receiver.until_present("first.json", "a/x.json")


@pytest.mark.usefixtures("rare_sweeps")
def test_not_having_waited_in_time_is_taken_for_a_loss(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with watching_told(root) as (receiver, _):
        monkeypatch.setattr("agentwatch.sources.files.watcher._STALL_SECONDS", -1.0)
        write(root / "a" / "x.json", packet("x"))
        receiver.until_present("first.json", "a/x.json")


@pytest.mark.usefixtures("rare_sweeps")
def test_around_an_event_its_directory_is_compared_with_the_disk(root: Path) -> None:
    with watching_told(root) as (receiver, backend):
        write(root / "a" / "x.json", packet("x"))
        backend.changes.put(Changes(frozenset({"package.json"})))
        receiver.until_present("first.json", "a/x.json")


def test_what_no_event_told_is_found_in_the_end(root: Path) -> None:
    with watching_told(root) as (receiver, _):
        write(root / "a" / "x.json", packet("x"))
        receiver.until_present("first.json", "a/x.json")


@pytest.mark.usefixtures("rare_sweeps")
def test_a_half_written_file_is_looked_at_again_without_any_event(root: Path) -> None:
    with watching(root) as receiver:
        write(root / "x.json", HALF)
        receiver.until_present("x.json")


@pytest.mark.usefixtures("rare_sweeps")
def test_a_root_whose_parent_was_exchanged_is_followed(root: Path) -> None:
    write(root / "a" / "x.json", packet("x"))
    write(root.parent / "other" / "a" / "y.json", packet("y"))
    outer = root / "a"
    with watching(outer) as receiver:
        receiver.until_present("x.json")
        root.rename(root.parent / "away")
        (root.parent / "other").rename(root)
        # No event tells of it: nothing happened to the directory itself.
        receiver.until_present("y.json")
        write(outer / "z.json", packet("z"))
        receiver.until_present("y.json", "z.json")


def test_a_removed_root_is_told_with_the_event_and_not_with_the_next_look(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agentwatch.sources.files.watcher._ROOT_SECONDS", (1000.0, 1000.0))
    with watching(root) as receiver:
        root.rmdir()
        receiver.until(lambda it: it.mode == "degraded")


def test_a_file_that_breaks_the_reader_does_not_end_the_watching(root: Path) -> None:
    with watching(root) as receiver:
        write(root / "a.return.json", "BREAK")
        receiver.until(lambda it: it.kinds("a.return.json") == ["Unreadable"])
        assert receiver.mode == "degraded"
        assert "agentwatch itself failed on this file" in receiver.detail
        write(root / "b.json", packet("b"))
        receiver.until_present("b.json")


def test_a_fault_of_the_watching_itself_is_told_and_survived(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Failing(InotifyBackend):
        def wait(self, timeout: float) -> Changes:
            changes = super().wait(timeout)
            if "fail.json" in changes.paths:
                raise ZeroDivisionError("by zero")
            return changes

    monkeypatch.setattr("agentwatch.sources.files.watcher._RESTART_SECONDS", 0.05)
    with watching(root, QUICK, lambda root, _settings: Failing(root)) as receiver:
        write(root / "fail.json", packet("x"))
        receiver.until_present("fail.json")
        receiver.until(lambda it: it.mode == "live")
    told = [batch.health.detail for batch in receiver.batches if batch.health.mode == "degraded"]
    assert set(told) == {"Watching failed and is tried again (ZeroDivisionError: by zero)"}


def test_a_directory_that_cannot_be_listed_is_named_in_the_health(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real_open = os.open

    def refusing_open(path: str, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        if str(path).endswith("/shut"):
            raise PermissionError(13, "Permission denied")
        return real_open(path, flags, mode, dir_fd=dir_fd)

    monkeypatch.setattr(os, "open", refusing_open)
    (root / "shut").mkdir()
    receiver = Receiver()
    source = FilesSource(root, QUICK, read_document=read_document)
    source.start(receiver)
    try:
        receiver.until(lambda it: it.mode == "degraded")
        assert receiver.detail == "shut: cannot be listed: Permission denied"
        assert receiver.batches[-1].health.problems == (("files", str(root / "shut"), receiver.detail),)
    finally:
        source.stop()


def test_nobody_listening_any_more_ends_the_source(root: Path) -> None:
    def closed(batch: Batch) -> None:
        raise RuntimeError("Event loop is closed")

    others = threads()
    source = FilesSource(root, QUICK, read_document=read_document)
    source.start(closed)
    deadline = time.monotonic() + PATIENCE
    while threads() - others:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    source.stop()


@EVERY_WAY
def test_nothing_is_emitted_and_nothing_is_left_open_after_stopping(root: Path, way: Way) -> None:
    write(root / "x.json", packet("x"))
    before, others = descriptors(), threads()
    with watching(root, QUICK, way) as receiver:
        receiver.until_present("x.json")
    assert not threads() - others
    batches = len(receiver.batches)
    write(root / "y.json", packet("y"))
    deadline = time.monotonic() + PATIENCE
    while descriptors() > before:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert len(receiver.batches) == batches


def test_stopping_before_starting_and_twice_is_harmless(root: Path) -> None:
    source = FilesSource(root, QUICK, read_document=read_document)
    source.stop()
    source.start(Receiver())
    source.stop()
    source.stop()


def test_stopping_interrupts_the_reading_of_a_scan(root: Path) -> None:
    for number in range(300):
        write(root / f"{number}.json", packet(str(number)))
    reading = threading.Event()

    def slow(text: str, path: str) -> None:
        reading.set()
        time.sleep(0.02)

    stop_when(reading, FilesSource(root, QUICK, read_document=slow))


def test_stopping_interrupts_the_walk_of_a_scan(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(300):
        (root / str(number)).mkdir()
    walking = threading.Event()

    def slow(path: str, is_pruned: Callable[[str], bool]) -> FolderListing:
        walking.set()
        time.sleep(0.02)
        return list_directory(path, is_pruned)

    monkeypatch.setattr("agentwatch.sources.files.scan.list_directory", slow)
    stop_when(walking, FilesSource(root, QUICK, read_document=read_document))


def stop_when(busy: threading.Event, source: FilesSource) -> None:
    """Stop a source in the middle of something that would take six seconds; it has to be over with the stopping."""
    others = threads()
    source.start(Receiver())
    assert busy.wait(PATIENCE)
    source.stop()
    assert not threads() - others


def threads() -> set[threading.Thread]:
    """The threads of sources that run now: another test's may still be about to end."""
    return {thread for thread in threading.enumerate() if thread.name == "agentwatch-files"}
