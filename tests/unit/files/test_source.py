"""A source at work on real files: what it emits, how it is, how it ends; and looking at a workspace once."""

from __future__ import annotations

import errno
import os
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from agentwatch.config import Settings
from agentwatch.contracts.shapes import Document
from agentwatch.delegation.events import Event, Gone, Seen, Unreadable
from agentwatch.errors import WorkspaceError
from agentwatch.sources import Batch
from agentwatch.sources.files import source as source_module
from agentwatch.sources.files.source import FilesSource
from agentwatch.sources.files.watcher import Changes, Watcher
from tests.unit.files.watching import (
    EVERY_WAY,
    HALF,
    OTHER,
    PATIENCE,
    POLLING,
    Receiver,
    descriptors,
    on_disk,
    packet,
    read_document,
    watching,
    write,
)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "workspace"
    root.mkdir()
    return root


def moved_in(path: Path, *texts: str) -> None:
    """A directory with these files, made elsewhere, takes the place of another."""
    for text in texts:
        write(path.parent.parent / "made" / f"{text}.json", packet(text))
    if path.exists():
        path.rename(path.parent.parent / f"away{time.monotonic_ns()}")
    (path.parent.parent / "made").rename(path)


def swap_for_link(path: Path) -> None:
    path.rename(path.parent.parent / "behind")
    path.symlink_to(path.parent.parent / "behind")
    (path.parent.parent / "behind" / "x.json").write_text(packet("secret"))


CHANGES: list[tuple[str, Callable[[Path], object]]] = [
    ("a file", lambda root: write(root / "a" / "x.json", packet("x"))),
    ("rewritten", lambda root: write(root / "a" / "x.json", packet("y"))),
    ("renamed", lambda root: (root / "a" / "x.json").rename(root / "a" / "y.json")),
    ("deep", lambda root: write(root / "b" / "c" / "z.json", packet("z"))),
    ("directory renamed", lambda root: (root / "b").rename(root / "d")),
    ("directory deleted", lambda root: shutil.rmtree(root / "a")),
    ("pruned", lambda root: shutil.copytree(root / "d", root / "p" / "node_modules")),
    ("links", lambda root: [(root / name).symlink_to(to) for name, to in (("l", "/"), ("m", "."), ("n.json", "d"))]),
    ("exchanged", lambda root: moved_in(root / "d", "one", "two")),
    ("exchanged again", lambda root: moved_in(root / "d", "two", "three")),
    ("file in it", lambda root: write(root / "d" / "four.json", packet("four"))),
    ("swapped for a link", lambda root: swap_for_link(root / "d")),
    ("file for directory", lambda root: write(root / "e.json", packet("e"))),
    ("first gone", lambda root: (root / "e.json").unlink()),
    ("directory for file", lambda root: write(root / "e.json" / "f.json", packet("f"))),
    ("and back", lambda root: (shutil.rmtree(root / "e.json"), write(root / "e.json", packet("e")))),
]


@EVERY_WAY
def test_after_each_change_of_the_workspace_what_is_told_is_what_is_there(root: Path, settings: Settings) -> None:
    with watching(root, settings) as receiver:
        for what, change in CHANGES:
            change(root)
            expected = {path: digest for path, digest in on_disk(root).items() if "node_modules" not in path}
            receiver.until(lambda it: it.present == expected)  # noqa: B023
            assert receiver.mode in ("live", "polling"), what


@EVERY_WAY
def test_a_half_written_file_is_seen_once_whole(root: Path, settings: Settings) -> None:
    with watching(root, settings, PATIENCE * 10) as receiver:
        with (root / "x.json").open("w") as file:
            file.write(HALF)
            file.flush()
            write(root / "later.json", packet("later"))
            receiver.until_present("later.json")
            file.write('lf"}')
        receiver.until_present("later.json", "x.json")
    assert receiver.kinds("x.json") == ["Seen"]


@EVERY_WAY
def test_a_half_written_file_that_stays_so_is_shown_as_broken(root: Path, settings: Settings) -> None:
    with watching(root, settings) as receiver:
        write(root / "x.json", HALF)
        receiver.until_present("x.json")
    (seen,) = receiver.events
    assert isinstance(seen, Seen)
    assert seen.incomplete


@EVERY_WAY
def test_a_root_that_goes_comes_or_is_exchanged_is_followed(root: Path, settings: Settings) -> None:
    away, gone = root.parent / "away", "The workspace is no directory any more: waiting for it to return"
    write(root / "a" / "x.json", packet("x"))
    write(root.parent / "other" / "y.json", packet("y"))
    with watching(root, settings) as receiver:
        receiver.until_present("a/x.json")
        for make_again in (lambda: away.rename(root), lambda: write(root / "a" / "x.json", packet("x"))):
            root.rename(away)
            receiver.until(lambda it: not it.present and (it.mode, it.detail) == ("degraded", gone))
            make_again()
            receiver.until(lambda it: "a/x.json" in it.present and it.mode in ("live", "polling"))
            write(root / "a" / "y.json", packet("y"))
            receiver.until_present("a/x.json", "a/y.json")
            shutil.rmtree(away, ignore_errors=True)
        root.rename(away)
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
        receiver.until(lambda it: "no directory any more" in it.detail)
        root.unlink()
        root.touch()
        receiver.until(lambda it: "no directory any more" in it.detail)
        assert receiver.present == {}
        root.unlink()
        (root.parent / "away").rename(root)
        receiver.until_present("x.json")


def test_a_root_whose_parent_was_exchanged_is_followed(root: Path) -> None:
    write(root / "a" / "x.json", packet("x"))
    write(root.parent / "other" / "a" / "y.json", packet("y"))
    with watching(root / "a") as receiver:
        receiver.until_present("x.json")
        root.rename(root.parent / "away")
        (root.parent / "other").rename(root)
        # No event tells of it: nothing happened to the directory itself.
        receiver.until_present("y.json")
        write(root / "a" / "z.json", packet("z"))
        receiver.until_present("y.json", "z.json")


def test_a_root_that_is_not_there_yet_is_waited_for_and_one_given_as_a_link_is_watched_where_it_leads(
    root: Path,
) -> None:
    (root.parent / "link").symlink_to("workspace")
    source, receiver = FilesSource(root.parent / "link", read_document=read_document), Receiver()
    root.rmdir()
    source.start(receiver)
    try:
        receiver.until(lambda it: it.mode == "degraded")
        write(root / "x.json", packet("x"))
        receiver.until_present("x.json")
    finally:
        source.stop()


def test_the_first_batch_is_empty_and_says_starting_and_the_last_of_the_scan_says_live(root: Path) -> None:
    for number in range(50):
        write(root / f"{number}.json", packet(str(number)))
    with watching(root) as receiver:
        pass
    assert (receiver.batches[0].health.mode, receiver.batches[0].events) == ("starting", ())
    health = receiver.batches[-1].health
    assert (health.mode, health.detail) == ("live", "Changes are seen as they happen")


def test_observations_are_numbered_as_they_were_written_and_without_gaps(root: Path) -> None:
    for number in range(30):
        write(root / f"{number % 7}" / f"{number}.json", packet(str(number)))
        os.utime(root / f"{number % 7}" / f"{number}.json", (1000 - number // 3, 1000 - number // 3))
    expected = sorted((1000 - number // 3, f"{number % 7}/{number}.json") for number in range(30))
    for _ in range(2):
        with watching(root) as receiver:
            assert [(item.at, item.path) for item in receiver.events if isinstance(item, Seen)] == expected
            write(root / "new.json", packet("new"))
            receiver.until(lambda it: len(it.events) == 31)
            (root / "new.json").unlink()
            receiver.until(lambda it: len(it.events) == 32)
        assert [item.seq for item in receiver.events] == list(range(1, 33))


def test_a_file_from_the_future_is_observed_now(root: Path) -> None:
    write(root / "a.json", packet("a"))
    os.utime(root / "a.json", (4_000_000_000, 4_000_000_000))
    (seen,) = FilesSource(root, read_document=read_document).scan().events
    assert abs(seen.at - time.time()) < PATIENCE


def test_of_many_changes_at_once_the_first_written_is_read_first(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hold, is_held, free, real_wait = *(threading.Event() for _ in range(3)), Watcher.wait

    def wait(watcher: Watcher, timeout: float) -> Changes:
        if hold.is_set():
            is_held.set()
            free.wait(PATIENCE)
        return real_wait(watcher, min(timeout, 0.05))

    monkeypatch.setattr(Watcher, "wait", wait)
    names = [f"{number % 7}{kind}.json" for number in range(20) for kind in "ba"]
    with watching(root) as receiver:
        hold.set()
        assert is_held.wait(PATIENCE)
        for number, name in enumerate(names):
            write(root / name, packet(str(number)))
            os.utime(root / name, (1000 + number, 1000 + number))
        free.set()
        receiver.until(lambda it: it.present == on_disk(root))
    assert [item.path for item in receiver.events if isinstance(item, Seen)] == names[-14:]


@pytest.fixture
def events(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str, Callable[[], Changes]], None]]:
    """Has something else happen when a file of this name is told of."""
    real_wait = Watcher.wait
    acts: dict[str, Callable[[], Changes]] = {}

    def wait(watcher: Watcher, timeout: float) -> Changes:
        changes = real_wait(watcher, timeout)
        act = next((acts[path] for path in changes.paths if path in acts), None)
        return changes if act is None else act()

    monkeypatch.setattr(Watcher, "wait", wait)
    return lambda name, act: acts.update({name: act})  # type: ignore[return-value]


def test_after_a_loss_everything_is_compared_with_the_disk(
    root: Path, events: Callable[[str, Callable[[], Changes]], None]
) -> None:
    events("lost.json", lambda: Changes(lost=True))
    with watching(root) as receiver:
        write(root / "lost.json", packet("x"))
        receiver.until_present("lost.json")


def test_a_fault_of_the_watching_itself_is_told_and_survived(
    root: Path, events: Callable[[str, Callable[[], Changes]], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> Changes:
        raise ZeroDivisionError("by zero")

    events("fail.json", fail)
    monkeypatch.setattr(source_module, "_RESTART_SECONDS", 0.05)
    with watching(root) as receiver:
        write(root / "fail.json", packet("x"))
        receiver.until_present("fail.json")
        receiver.until(lambda it: it.mode == "live")
    told = {batch.health.detail for batch in receiver.batches if batch.health.mode == "degraded"}
    assert told == {"Watching failed and is tried again (ZeroDivisionError: by zero)"}


@pytest.mark.parametrize("comes_later", [False, True])
def test_at_the_limit_of_watches_it_goes_on_by_polling(
    root: Path, monkeypatch: pytest.MonkeyPatch, comes_later: bool
) -> None:
    inotify = pytest.importorskip("inotify_simple").INotify
    real = inotify.add_watch

    def limited(self: object, path: str, mask: int) -> object:
        if path.endswith("/c"):
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(self, path, mask)

    monkeypatch.setattr(inotify, "add_watch", limited)
    if not comes_later:
        (root / "c").mkdir()
    with watching(root) as receiver:
        for name in "abcd":
            write(root / name / "x.json", packet(name))
        receiver.until_present("a/x.json", "b/x.json", "c/x.json", "d/x.json")
        receiver.until(lambda it: it.mode == "polling" and "fs.inotify.max_user_watches" in it.detail)
        write(root / "d" / "y.json", packet("y"))
        receiver.until(lambda it: "d/y.json" in it.present)
    assert all(batch.health.mode != "degraded" for batch in receiver.batches)


def test_a_watch_of_the_root_that_died_is_renewed(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inotify = pytest.importorskip("inotify_simple").INotify
    real, kill = inotify.add_watch, list[Callable[[], None]]()
    is_refused = threading.Event()

    def refusing(self: Any, path: str, mask: int) -> int:
        if is_refused.is_set():
            # As if the directory was made anew in this moment, with the inode of the one before.
            is_refused.clear()
            raise FileNotFoundError(errno.ENOENT, "No such file or directory")
        watch: int = real(self, path, mask)
        kill.append(lambda: self.rm_watch(watch))
        return watch

    monkeypatch.setattr(inotify, "add_watch", refusing)
    with watching(root) as receiver:
        is_refused.set()
        kill[0]()
        deadline = time.monotonic() + PATIENCE
        while is_refused.is_set():
            assert time.monotonic() < deadline
            time.sleep(0.01)
        write(root / "x.json", packet("x"))
        receiver.until_present("x.json")


def test_polling_as_configured_says_so(root: Path) -> None:
    with watching(root, POLLING) as receiver:
        assert (receiver.mode, receiver.detail) == ("polling", "Polling, as configured")


def test_a_file_that_breaks_the_reader_does_not_end_the_watching(root: Path) -> None:
    with watching(root) as receiver:
        write(root / "a.return.json", "BREAK")
        receiver.until(lambda it: it.kinds("a.return.json") == ["Unreadable"])
        assert receiver.mode == "degraded"
        assert "agentwatch itself failed on this file" in receiver.detail
        write(root / "b.json", packet("b"))
        receiver.until_present("b.json")


def test_a_directory_that_cannot_be_listed_is_named_and_its_files_stay_until_they_are_gone(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(root / "shut" / "x.json", packet("x"))
    real_open = os.open
    is_shut = threading.Event()

    def refusing_open(path: str, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        if str(path).endswith("/shut") and is_shut.is_set():
            raise PermissionError(13, "Permission denied")
        return real_open(path, flags, mode, dir_fd=dir_fd)

    monkeypatch.setattr(os, "open", refusing_open)
    with watching(root, POLLING) as receiver:
        is_shut.set()
        receiver.until(lambda it: it.detail == "shut: cannot be listed: Permission denied")
        assert receiver.batches[-1].health.problems == (("files", str(root / "shut"), receiver.detail),)
        receiver.until_present("shut/x.json")
        is_shut.clear()
        receiver.until(lambda it: it.mode == "polling")


def test_nobody_listening_any_more_ends_the_source(root: Path) -> None:
    def closed(batch: Batch) -> None:
        raise RuntimeError("Event loop is closed")

    others, source = threads(), FilesSource(root, read_document=read_document)
    source.start(closed)
    deadline = time.monotonic() + PATIENCE
    while threads() - others:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    source.stop()


@EVERY_WAY
def test_nothing_is_emitted_and_nothing_is_left_open_after_stopping(root: Path, settings: Settings) -> None:
    write(root / "x.json", packet("x"))
    before, others = descriptors(), threads()
    with watching(root, settings) as receiver:
        receiver.until_present("x.json")
    assert not threads() - others
    batches = len(receiver.batches)
    write(root / "y.json", packet("y"))
    assert (descriptors(), len(receiver.batches)) == (before, batches)


def test_stopping_before_starting_and_twice_is_harmless(root: Path) -> None:
    source = FilesSource(root, read_document=read_document)
    source.stop()
    source.start(Receiver())
    source.stop()
    source.stop()


@pytest.mark.parametrize("during", ["reading", "walk"])
def test_stopping_interrupts_a_first_look(root: Path, monkeypatch: pytest.MonkeyPatch, during: str) -> None:
    for number in range(300):
        write(root / f"{number}" / "x.json", packet(str(number)))
    is_busy, scandir = threading.Event(), os.scandir

    def slow(*arguments: object) -> object:
        is_busy.set()
        time.sleep(0.02)
        return scandir(*arguments) if during == "walk" else None  # type: ignore[call-overload]

    if during == "walk":
        monkeypatch.setattr(os, "scandir", slow)
    others = threads()
    source = FilesSource(root, read_document=slow if during == "reading" else read_document)  # type: ignore[arg-type]
    source.start(Receiver())
    assert is_busy.wait(PATIENCE)
    source.stop()
    assert not threads() - others


def threads() -> set[threading.Thread]:
    """The threads of sources that run now: another test's may still be about to end."""
    return {thread for thread in threading.enumerate() if thread.name == "agentwatch-files"}


def test_looking_once_observes_everything_and_looking_again_what_has_changed(root: Path) -> None:
    def brief(events: tuple[Event, ...]) -> list[str]:
        return [f"{type(one).__name__} {one.path}" for one in events if isinstance(one, Seen | Gone | Unreadable)]

    for name in ("a/x.json", "c/y.json", "d/z.json"):
        write(root / name, packet(name))
        os.utime(root / name, (100, 100))
    write(root / "package.json", OTHER)
    (root / "return.json").write_bytes(b"x" * 2_000_000)
    source = FilesSource(root, read_document=read_document)
    batch = source.scan()
    assert brief(batch.events) == ["Seen a/x.json", "Seen c/y.json", "Seen d/z.json", "Unreadable return.json"]
    # What has the name of a return and cannot be read is a problem.
    assert batch.health.mode == "degraded"
    shutil.rmtree(root / "a")
    (root / "c" / "y.json").unlink()
    (root / "return.json").unlink()
    write(root / "e" / "half.json", HALF)
    batch = source.scan()
    assert brief(batch.events) == ["Gone a/x.json", "Gone c/y.json", "Gone return.json", "Seen e/half.json"]
    assert batch.health.mode == "live"


def test_looking_once_waits_for_a_file_that_is_just_being_written(root: Path) -> None:
    write(root / "x.json", HALF)
    half_read = threading.Event()

    def reader(text: str, path: str) -> Document | None:
        half_read.set()
        return read_document(text, path)

    def complete() -> None:
        assert half_read.wait(PATIENCE)
        write(root / "x.json", packet("x"))

    writer = threading.Thread(target=complete)
    writer.start()
    source = FilesSource(root, read_document=reader)
    source.settle_seconds = PATIENCE
    (seen,) = source.scan().events
    writer.join()
    assert isinstance(seen, Seen)
    assert not seen.incomplete


@pytest.mark.parametrize("name", ["missing", "file"])
def test_what_is_no_directory_is_a_workspace_error(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(WorkspaceError, match="is no directory"):
        FilesSource(tmp_path / name).scan()


def test_what_holds_nothing_of_its_name_is_said_of_the_file(root: Path) -> None:
    for name in ("a.handoff.json", "a.return.json", "b.todos.md"):
        write(root / name, "{}" if name.endswith("json") else "Go on.")
    made = {one.path: one for one in FilesSource(root).scan().events}
    findings = {path: one.finding.rule for path, one in made.items() if isinstance(one, Unreadable)}
    assert findings == {"a.handoff.json": "DOC012", "b.todos.md": "DOC013"}
    assert isinstance(made["a.return.json"], Seen)
