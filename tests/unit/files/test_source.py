"""A source at work on real files: its events, its health, its end; and the system's events behind it."""

import errno
import os
import shutil
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from agentwatch.delegation.events import Gone, Seen, Unreadable
from agentwatch.errors import WorkspaceError
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
def inotify():
    return pytest.importorskip("inotify_simple", reason="only Linux has it").INotify


@pytest.fixture
def root(tmp_path):
    root = tmp_path / "workspace"
    root.mkdir()
    return root


def until(holds: Callable[[], object]):
    end = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.01)


def moved_in(path: Path, *texts: str):
    """Replace a directory by another one with these files, made elsewhere."""
    for text in texts:
        write(path.parent.parent / "made" / f"{text}.json", packet(text))
    if path.exists():
        path.rename(path.parent.parent / f"away{time.monotonic_ns()}")
    (path.parent.parent / "made").rename(path)


def swap_for_link(path: Path):
    path.rename(path.parent.parent / "behind")
    path.symlink_to(path.parent.parent / "behind")
    (path.parent.parent / "behind" / "x.json").write_text(packet("secret"))


CHANGES = [
    lambda root: write(root / "a" / "x.json", packet("x")),
    lambda root: write(root / "a" / "x.json", packet("y")),
    lambda root: write(root / "a2" / "x.json", packet("z")),
    lambda root: (root / "a" / "x.json").rename(root / "a" / "y.json"),
    lambda root: write(root / "b" / "c" / "z.json", packet("z")),
    lambda root: (root / "b").rename(root / "d"),
    lambda root: shutil.rmtree(root / "a"),
    lambda root: shutil.copytree(root / "d", root / "p" / "node_modules"),
    lambda root: [(root / name).symlink_to(to) for name, to in (("l", "/"), ("m", "."), ("n.json", "d"))],
    lambda root: moved_in(root / "d", "one", "two"),
    lambda root: moved_in(root / "d", "two", "three"),
    lambda root: write(root / "d" / "four.json", packet("four")),
    lambda root: swap_for_link(root / "d"),
    lambda root: write(root / "e.json", packet("e")),
    lambda root: (root / "e.json").unlink(),
    lambda root: write(root / "e.json" / "f.json", packet("f")),
    lambda root: (shutil.rmtree(root / "e.json"), write(root / "e.json", packet("e"))),
]


@EVERY_WAY
def test_after_each_change_the_events_agree_with_the_disk(root, settings):
    with watching(root, settings) as receiver:
        for change in CHANGES:
            change(root)
            expected = {path: digest for path, digest in on_disk(root).items() if "node_modules" not in path}
            receiver.until(lambda it: it.present == expected)  # noqa: B023
            assert receiver.mode in ("live", "polling")


@EVERY_WAY
def test_a_half_written_file_that_stays_so_is_shown_as_broken(root, settings):
    with watching(root, settings) as receiver:
        write(root / "x.json", HALF)
        receiver.until_present("x.json")
    (seen,) = receiver.events
    assert isinstance(seen, Seen)
    assert seen.incomplete


GONE = "The workspace is no directory any more: waiting for it to return"


@EVERY_WAY
def test_a_root_that_goes_comes_or_is_exchanged_is_followed(root, settings):
    away, other = root.parent / "away", root.parent / "other"
    write(root / "a" / "x.json", packet("x"))
    write(other / "a" / "y.json", packet("y"))
    (root.parent / "link").symlink_to("workspace/a")
    with watching(root, settings) as receiver, watching(root.parent / "link", settings) as below:
        for come_back in (lambda: away.rename(root), lambda: write(root / "a" / "x.json", packet("x"))):
            receiver.until_present("a/x.json")
            root.rename(away)
            # A link or a file in its place is not the workspace.
            for take_its_place in (lambda: root.symlink_to("away"), root.touch):
                take_its_place()
                receiver.until(lambda it: not it.present and (it.mode, it.detail) == ("degraded", GONE))
                root.unlink()
            come_back()
            receiver.until(lambda it: "a/x.json" in it.present and it.mode in ("live", "polling"))
            write(root / "a" / "z.json", packet("z"))
            receiver.until_present("a/x.json", "a/z.json")
            (root / "a" / "z.json").unlink()
            shutil.rmtree(away, ignore_errors=True)
        root.rename(away)
        other.rename(root)
        # Nothing happened to the directory `a` itself, so a watch there gets no event about it.
        for seen, place in ((receiver, "a/"), (below, "")):
            seen.until_present(f"{place}y.json")
        write(root / "a" / "w.json", packet("w"))
        for seen, place in ((receiver, "a/"), (below, "")):
            seen.until_present(f"{place}y.json", f"{place}w.json")


def test_observations_are_numbered_as_they_were_written(root):
    for number in range(30):
        write(root / f"{number % 7}" / f"{number}.json", packet(str(number)))
        os.utime(root / f"{number % 7}" / f"{number}.json", (1000 - number // 3, 1000 - number // 3))
    expected = sorted((1000 - number // 3, f"{number % 7}/{number}.json") for number in range(30))

    def read_slowly(text, path):
        time.sleep(0.01)
        return read_document(text, path)

    # While the first look lasts, the source is not live.
    with watching(root, reader=read_slowly) as receiver:
        assert [(item.at, item.path) for item in receiver.events if isinstance(item, Seen)] == expected
        assert (receiver.batches[0].health.mode, receiver.batches[0].events) == ("starting", ())
        assert (receiver.mode, receiver.detail) == ("live", "Changes are seen as they happen")
        write(root / "new.json", packet("new"))
        receiver.until(lambda it: len(it.events) == 31)
    assert [item.seq for item in receiver.events] == list(range(1, 32))


def test_the_file_that_was_written_first_is_read_first(root):
    is_held, free = threading.Event(), threading.Event()

    def holding(text, path):
        if path == "hold.json":
            is_held.set()
            free.wait(PATIENCE)
        return read_document(text, path)

    names = [f"{number % 7}{kind}.json" for number in range(20) for kind in "ba"]
    with watching(root, reader=holding) as receiver:
        write(root / "hold.json", packet("hold"))
        assert is_held.wait(PATIENCE)
        for number, name in enumerate(names):
            write(root / name, packet(str(number)))
            os.utime(root / name, (1000 + number, 1000 + number))
        free.set()
        receiver.until(lambda it: it.present == on_disk(root))
    assert [one.path for one in receiver.events if isinstance(one, Seen) and one.path in names] == names[-14:]


@pytest.mark.parametrize("fails", [False, True])
def test_a_loss_and_a_fault_of_the_watching_are_survived(root, inotify, monkeypatch, fails):
    real_read = inotify.read

    def read(self, timeout):
        events = real_read(self, timeout)
        if fails and any(one.name == "x.json" for one in events):
            raise ZeroDivisionError("by zero")
        return [one._replace(mask=flags.Q_OVERFLOW, name="") if one.name == "x.json" else one for one in events]

    flags = pytest.importorskip("inotify_simple").flags
    monkeypatch.setattr(inotify, "read", read)
    with watching(root) as receiver:
        write(root / "x.json", packet("x"))
        receiver.until_present("x.json")
        receiver.until(lambda it: it.mode == "live")
    told = {batch.health.detail for batch in receiver.batches if batch.health.mode == "degraded"}
    assert told == ({"Watching failed and is tried again (ZeroDivisionError: by zero)"} if fails else set())


LIMIT = "Polling, because the system gives no more file watches (No space left on device). Raise fs.inotify."


def test_at_the_limit_of_watches_it_goes_on_by_polling(root, inotify, monkeypatch):
    real = inotify.add_watch

    def limited(self, path, mask):
        if path.endswith("/c"):
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(self, path, mask)

    monkeypatch.setattr(inotify, "add_watch", limited)
    with watching(root) as receiver:
        for name in "abcd":
            write(root / name / "x.json", packet(name))
        receiver.until_present("a/x.json", "b/x.json", "c/x.json", "d/x.json")
        receiver.until(lambda it: it.mode == "polling" and it.detail.startswith(LIMIT))
        write(root / "d" / "y.json", packet("y"))
        receiver.until(lambda it: "d/y.json" in it.present)
    assert all(batch.health.mode != "degraded" for batch in receiver.batches)


def test_a_watch_of_the_root_that_died_is_renewed(root, inotify, monkeypatch):
    real, kill = inotify.add_watch, list[Callable[[], None]]()
    is_refused = threading.Event()

    def refusing(self, path, mask):
        if is_refused.is_set():
            # This is as if the directory had been made anew at this moment, with the old inode.
            is_refused.clear()
            raise FileNotFoundError(errno.ENOENT, "No such file or directory")
        watch = real(self, path, mask)
        kill.append(lambda: self.rm_watch(watch))
        return watch

    monkeypatch.setattr(inotify, "add_watch", refusing)
    with watching(root) as receiver:
        is_refused.set()
        kill[0]()
        until(lambda: not is_refused.is_set())
        write(root / "x.json", packet("x"))
        receiver.until_present("x.json")


def test_a_directory_that_cannot_be_listed_keeps_its_files(root, monkeypatch):
    write(root / "shut" / "x.json", packet("x"))
    real_open = os.open
    is_shut = threading.Event()

    def refusing_open(path, flags, mode=0o777, *, dir_fd=None):
        if str(path).endswith("/shut") and is_shut.is_set():
            raise PermissionError(13, "Permission denied")
        return real_open(path, flags, mode, dir_fd=dir_fd)

    monkeypatch.setattr(os, "open", refusing_open)
    with watching(root, POLLING) as receiver:
        assert receiver.detail == "Polling, as configured"
        is_shut.set()
        receiver.until(lambda it: it.detail == "shut: cannot be listed: Permission denied")
        assert receiver.batches[-1].health.problems == (("files", str(root / "shut"), receiver.detail),)
        receiver.until_present("shut/x.json")
        is_shut.clear()
        receiver.until(lambda it: it.mode == "polling")


def test_nobody_listening_any_more_ends_the_source(root):
    def closed(batch):
        raise RuntimeError("Event loop is closed")

    others, source = threads(), FilesSource(root, read_document=read_document)
    source.start(closed)
    until(lambda: not threads() - others)
    source.stop()


@EVERY_WAY
def test_after_stopping_nothing_is_emitted_or_left_open(root, settings):
    write(root / "x.json", packet("x"))
    before, others, receiver = descriptors(), threads(), Receiver()
    source = FilesSource(root, settings, read_document=read_document)
    source.stop()
    source.start(receiver)
    receiver.until_present("x.json")
    source.stop()
    source.stop()
    assert not threads() - others
    batches = len(receiver.batches)
    write(root / "y.json", packet("y"))
    assert descriptors() <= before
    assert len(receiver.batches) == batches


@pytest.mark.parametrize("during", ["reading", "walk"])
def test_stopping_interrupts_a_first_look(root, monkeypatch, during):
    for number in range(300):
        write(root / f"{number}" / "x.json", packet(str(number)))
    is_busy, scandir = threading.Event(), os.scandir

    def slow(*arguments):
        is_busy.set()
        time.sleep(0.02)
        return scandir(*arguments) if during == "walk" else None  # type: ignore[call-overload]

    if during == "walk":
        monkeypatch.setattr(os, "scandir", slow)
    others = threads()
    source = FilesSource(root, read_document=slow if during == "reading" else read_document)
    source.start(Receiver())
    assert is_busy.wait(PATIENCE)
    source.stop()
    assert not threads() - others


def threads() -> set[threading.Thread]:
    """Return the threads of sources that run now, as another test's threads may still be about to end."""
    return {thread for thread in threading.enumerate() if thread.name == "agentwatch-files"}


def test_a_second_look_emits_only_changes(root):
    def brief(events):
        return [f"{type(one).__name__} {one.path}" for one in events if isinstance(one, Seen | Gone | Unreadable)]

    for name in ("a/x.json", "c/y.json", "d/z.json"):
        write(root / name, packet(name))
        os.utime(root / name, (100, 100))
    write(root / "package.json", OTHER)
    (root / "return.json").write_bytes(b"x" * 2_000_000)
    source = FilesSource(root, read_document=read_document)
    batch = source.scan()
    assert brief(batch.events) == ["Seen a/x.json", "Seen c/y.json", "Seen d/z.json", "Unreadable return.json"]
    # A file that is named as a return and cannot be read is a problem.
    assert batch.health.mode == "degraded"
    shutil.rmtree(root / "a")
    (root / "c" / "y.json").unlink()
    (root / "return.json").unlink()
    write(root / "e" / "half.json", HALF)
    os.utime(root / "e" / "half.json", (4_000_000_000, 4_000_000_000))
    batch = source.scan()
    # A file with a time in the future counts as observed now.
    assert all(abs(one.at - time.time()) < PATIENCE for one in batch.events if isinstance(one, Seen))
    assert brief(batch.events) == ["Gone a/x.json", "Gone c/y.json", "Gone return.json", "Seen e/half.json"]
    assert batch.health.mode == "live"


def test_looking_once_waits_for_a_file_being_written(root):
    write(root / "x.json", HALF)
    half_read = threading.Event()

    def reader(text, path):
        half_read.set()
        return read_document(text, path)

    def complete():
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


def test_a_workspace_that_is_no_directory_is_an_error(tmp_path):
    with pytest.raises(WorkspaceError, match="is no directory"):
        FilesSource(tmp_path / "missing").scan()


# Waiting for events of the system


@pytest.fixture
def watcher(tmp_path, inotify):
    watcher = Watcher(str(tmp_path))
    watcher.watch("")
    yield watcher
    watcher.close()


def told(watcher: Watcher) -> set[str]:
    """Return the paths of all changes, until none comes any more."""
    paths: set[str] = set()
    while (changes := watcher.wait(0.05)) != Changes():
        paths |= changes.paths
    return paths


ACTS = [
    (lambda root: (root / "a.json").write_text("one"), {"a.json"}),
    (lambda root: (root / "a.json").chmod(0o600), {"a.json"}),
    (lambda root: (root / "a.json").read_text(), set()),
    (lambda root: list(root.iterdir()), set()),
    (lambda root: (root / "build.log").write_text("noise"), set()),
    (lambda root: (root / os.fsdecode(b"\xff.json")).touch(), {"\udcff.json"}),
    (lambda root: (root / "d").mkdir(), {"d"}),
    (lambda root: (root / "d" / "unwatched.json").touch(), set()),
]


def test_each_change_in_a_watched_directory_is_reported(watcher, tmp_path):
    for act, expected in ACTS:
        act(tmp_path)
        assert told(watcher) == expected


def test_waking_ends_a_wait_at_once(watcher):
    began = time.monotonic()
    assert watcher.wait(0.0) == watcher.wait(0.01) == Changes()
    watcher.wake()
    thread = threading.Timer(0.05, watcher.wake)
    thread.start()
    assert watcher.wait(10 * PATIENCE) == watcher.wait(10 * PATIENCE) == Changes()
    assert time.monotonic() - began < PATIENCE
    thread.join()


def test_without_inotify_it_says_that_there_was_a_change(tmp_path):
    watcher = Watcher(str(tmp_path))
    watcher.has_inotify = False
    watcher.watch("")

    def is_told():
        write(tmp_path / "a.return.md", "x")
        return watcher.wait(0.2) == Changes(lost=True)

    until(is_told)
    watcher.close()
