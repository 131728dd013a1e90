"""What a look at a file gives: when it is emitted, withheld, taken back."""

from __future__ import annotations

import math
import os
import stat
import time
from collections.abc import Iterable
from pathlib import Path

import pytest

from agentwatch.contracts.shapes import Finding, Reading, Severity
from agentwatch.delegation.events import Event, Gone, Seen, Unreadable
from agentwatch.sources.files import catalogue as catalogue_module
from agentwatch.sources.files import documents as documents_module
from agentwatch.sources.files import read as read_module
from agentwatch.sources.files import scan as scan_module
from agentwatch.sources.files.catalogue import Catalogue
from agentwatch.sources.files.documents import Documents, Reader
from agentwatch.sources.files.read import FileRefusedError, FileText
from agentwatch.sources.files.rules import CHANGING
from agentwatch.sources.files.settings import FilesSettings
from agentwatch.sources.files.source import ContentStore
from tests.unit.files.watching import HALF, OTHER, packet, read_document


class Clock:
    """Stands in for the module `time`; it moves only when it is told to."""

    def __init__(self) -> None:
        self.passed = 0.0
        self._began = time.time()

    def monotonic(self) -> float:
        return self.passed

    def time(self) -> float:
        return self._began + self.passed

    def time_ns(self) -> int:
        return int(self.time() * 1e9)


class Look:
    """A catalogue of a directory, looked at as the test says."""

    def __init__(self, root: Path, clock: Clock, reader: Reader = read_document) -> None:
        self.root = root
        self.clock = clock
        self.watched: list[str] = []
        self.unwatched: list[str] = []
        self.contents = ContentStore(str(root))
        settings = FilesSettings(max_bytes=10_000)
        self.documents = Documents(str(root), settings, reader, self.contents.put)
        self.catalogue = Catalogue(
            str(root), settings.pruned, self.documents, watch=self.watched.append, unwatch=self.unwatched.append
        )

    def scan(self) -> list[str]:
        self.catalogue.scan()
        return self.drained()

    def at(self, *paths: str) -> list[str]:
        self.catalogue.mark_changed(paths)
        return self.drained()

    def sweep(self) -> list[str]:
        for _ in self.catalogue.sweeping():
            pass
        return self.drained()

    def after(self, seconds: float) -> list[str]:
        self.clock.passed += seconds
        self.catalogue.mark_due(self.clock.monotonic())
        return self.drained()

    def observed(self) -> list[Event]:
        events: list[Event] = []
        while self.catalogue.waiting:
            events += self.catalogue.drain(self.clock.monotonic() + 1)
        return events

    def drained(self) -> list[str]:
        return [brief(event) for event in self.observed()]


def brief(event: Event) -> str:
    if isinstance(event, Seen):
        return f"{'half ' if event.incomplete else ''}{event.path}"
    if isinstance(event, Unreadable):
        return f"{event.finding.rule} {event.path}"
    assert isinstance(event, Gone)
    return f"gone {event.path}"


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(catalogue_module, "time", clock)
    monkeypatch.setattr(documents_module, "time", clock)
    return clock


@pytest.fixture
def aside(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory outside the workspace, on the same disk."""
    return tmp_path_factory.mktemp("aside")


@pytest.fixture
def look(tmp_path: Path, clock: Clock) -> Look:
    return Look(tmp_path, clock)


def write(root: Path, name: str, text: str, mtime: float | None = None) -> None:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    if mtime is not None:
        os.utime(path, (mtime, mtime))


def test_a_scan_sees_documents_in_the_order_they_were_written(look: Look, tmp_path: Path) -> None:
    for name, mtime in (("a/late.json", 300), ("z.json", 100), ("b/middle.json", 200), ("b/same.json", 200)):
        write(tmp_path, name, packet(name), mtime)
    write(tmp_path, "package.json", OTHER, 50)
    look.catalogue.scan()
    seen = look.observed()
    assert [brief(item) for item in seen] == ["z.json", "b/middle.json", "b/same.json", "a/late.json"]
    assert [(item.seq, item.at) for item in seen] == [(1, 100), (2, 200), (3, 200), (4, 300)]


def test_a_file_from_the_future_is_observed_now(look: Look, tmp_path: Path) -> None:
    write(tmp_path, "a.json", packet("a"), mtime=look.clock.time() + 10_000)
    look.catalogue.scan()
    assert look.observed()[0].at == look.clock.time()


def test_every_directory_is_watched_before_it_is_listed(
    look: Look, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a/b", "c"):
        (tmp_path / name).mkdir(parents=True)
    listed: list[bool] = []
    real_scandir = os.scandir

    def checking_scandir(path: int) -> object:
        directory = str(Path(f"/proc/self/fd/{path}").readlink())
        listed.append(directory.removeprefix(str(tmp_path)).lstrip("/") in look.watched)
        return real_scandir(path)

    monkeypatch.setattr(os, "scandir", checking_scandir)
    look.scan()
    assert listed == [True] * 4


def test_the_same_content_written_again_is_no_observation(look: Look, tmp_path: Path) -> None:
    write(tmp_path, "a.json", packet("a"))
    assert look.scan() == ["a.json"]
    write(tmp_path, "new.tmp", packet("a"))
    (tmp_path / "new.tmp").rename(tmp_path / "a.json")
    assert look.at("a.json") == []
    assert look.sweep() == []


def test_an_unchanged_file_is_not_read_again(look: Look, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, "a.json", packet("a"))
    write(tmp_path, "package.json", OTHER)
    look.clock.passed = 1.0
    look.scan()
    monkeypatch.setattr(documents_module, "read_file", None)
    assert look.sweep() == look.at("a.json", "package.json") == []


def test_a_rewrite_of_the_same_size_that_restores_the_mtime_is_noticed(look: Look, tmp_path: Path) -> None:
    write(tmp_path, "a.json", packet("a"), mtime=100)
    look.clock.passed = 1.0
    look.scan()
    write(tmp_path, "a.json", packet("b"), mtime=100)
    assert look.sweep() == ["a.json"]


def stop_the_kernels_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every change within the test happen in one tick: the stamps stay as they are."""

    def stamped(status: os.stat_result) -> int:
        size = status.st_size if stat.S_ISREG(status.st_mode) else 0
        return (size << 64) | status.st_ino

    for module in (catalogue_module, documents_module, read_module, scan_module):
        monkeypatch.setattr(module, "fingerprint", stamped)


def test_a_change_within_the_tick_of_the_clock_is_noticed_later(
    look: Look, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stop_the_kernels_clock(monkeypatch)
    write(tmp_path, "a.json", packet("a"))
    look.scan()
    write(tmp_path, "a.json", packet("b"))
    write(tmp_path, "new.json", packet("new"))
    look.clock.passed = 1.0
    assert sorted(look.sweep()) == ["a.json", "new.json"]
    # From now on the stamps are old enough to be believed.
    write(tmp_path, "a.json", packet("c"))
    write(tmp_path, "newer.json", packet("newer"))
    assert look.sweep() == []


def test_a_half_written_new_file_is_withheld_until_it_is_whole(look: Look, tmp_path: Path) -> None:
    look.scan()
    write(tmp_path, "a.json", HALF)
    assert look.at("a.json") == []
    write(tmp_path, "a.json", packet("a"))
    assert look.at("a.json") == ["a.json"]
    assert look.after(10) == []


def test_a_half_written_file_that_rests_is_shown_as_broken(look: Look, tmp_path: Path) -> None:
    look.scan()
    write(tmp_path, "a.json", HALF)
    assert look.at("a.json") == []
    assert look.after(1.5) == []
    assert look.after(1.0) == ["half a.json"]
    assert look.after(10) == []


def test_a_file_that_keeps_growing_is_withheld_all_the_time(look: Look, tmp_path: Path) -> None:
    look.scan()
    for length in range(5, 12):
        write(tmp_path, "a.json", packet("a" * 20)[: length + 10])
        assert look.at("a.json") == []
        assert look.after(1.5) == []
    assert look.after(1.0) == ["half a.json"]


def test_the_last_good_content_stays_while_a_known_file_is_rewritten(look: Look, tmp_path: Path) -> None:
    write(tmp_path, "a.json", packet("a"))
    look.scan()
    write(tmp_path, "a.json", "")
    assert look.at("a.json") == []
    write(tmp_path, "a.json", HALF)
    assert look.at("a.json") == []
    write(tmp_path, "a.json", packet("b"))
    assert look.at("a.json") == ["a.json"]
    assert look.after(10) == []


def test_a_known_file_that_is_half_written_and_then_as_before_was_never_away(look: Look, tmp_path: Path) -> None:
    write(tmp_path, "a.json", packet("a"))
    look.scan()
    write(tmp_path, "a.json", HALF)
    assert look.at("a.json") == []
    write(tmp_path, "a.json", packet("a"))
    assert look.at("a.json") == []
    assert look.after(10) == []


def test_a_broken_file_that_was_at_rest_before_the_scan_is_shown_at_once(look: Look, tmp_path: Path) -> None:
    write(tmp_path, "a.json", HALF)
    look.clock.passed = 100.0
    assert look.scan() == ["half a.json"]


def test_a_broken_file_written_just_before_the_scan_is_withheld(look: Look, tmp_path: Path) -> None:
    write(tmp_path, "a.json", HALF, mtime=100)
    look.clock.passed = 0.5
    assert look.scan() == []
    assert look.after(2) == ["half a.json"]


def test_a_document_that_becomes_something_else_is_gone_after_a_while(look: Look, tmp_path: Path) -> None:
    write(tmp_path, "a.json", packet("a"))
    look.scan()
    write(tmp_path, "a.json", OTHER)
    assert look.at("a.json") == []
    assert look.after(1.5) == []
    assert look.after(1.0) == ["gone a.json"]
    write(tmp_path, "a.json", packet("a"))
    assert look.at("a.json") == ["a.json"]


def test_a_withheld_file_that_is_deleted_is_forgotten(look: Look, tmp_path: Path) -> None:
    look.scan()
    write(tmp_path, "a.json", HALF)
    look.at("a.json")
    (tmp_path / "a.json").unlink()
    assert look.at("a.json") == []
    assert look.documents.next_due == math.inf
    assert look.after(10) == []


def test_a_rename_is_gone_and_seen_in_this_order(look: Look, tmp_path: Path) -> None:
    write(tmp_path, "b.json", packet("a"))
    look.scan()
    (tmp_path / "b.json").rename(tmp_path / "a.json")
    assert look.at("a.json", "b.json") == ["gone b.json", "a.json"]


def test_a_deleted_directory_takes_everything_below_along(look: Look, tmp_path: Path, aside: Path) -> None:
    for name in ("a/x.json", "a/b/y.json", "a/b/c/z.json", "other.json"):
        write(tmp_path, name, packet(name))
    look.scan()
    (tmp_path / "a").rename(aside / "away")
    assert look.at("a") == ["gone a/b/c/z.json", "gone a/b/y.json", "gone a/x.json"]
    assert set(look.unwatched) == {"a", "a/b", "a/b/c"}
    assert (look.catalogue.directories, look.catalogue.files) == (1, 1)


def test_a_renamed_directory_is_found_under_its_new_name(look: Look, tmp_path: Path) -> None:
    write(tmp_path, "a/b/x.json", packet("x"))
    look.scan()
    (tmp_path / "a").rename(tmp_path / "c")
    assert look.sweep() == ["gone a/b/x.json", "c/b/x.json"]


def test_a_directory_replaced_by_another_is_compared_file_by_file(look: Look, tmp_path: Path, aside: Path) -> None:
    for name in ("a/same.json", "a/gone.json", "a/b/same.json", "a/b/gone.json"):
        write(tmp_path, name, packet(name))
    for name in ("same.json", "b/same.json"):
        write(aside / "new", name, packet(f"a/{name}"))
    for name in ("other.json", "b/other.json"):
        write(tmp_path / "a", name, packet("one"))
        write(aside / "new", name, packet("two"))
    look.scan()
    (tmp_path / "a").rename(aside / "old")
    (aside / "new").rename(tmp_path / "a")
    assert sorted(look.at("a")) == ["a/b/other.json", "a/other.json", "gone a/b/gone.json", "gone a/gone.json"]
    assert [look.watched.count(name) for name in ("a", "a/b")] == [2, 2]


def test_a_file_replaced_without_an_event_of_its_own_is_found_with_its_directory(look: Look, tmp_path: Path) -> None:
    write(tmp_path, "a.json", packet("a"))
    look.scan()
    write(tmp_path, "new.tmp", packet("b"))
    (tmp_path / "new.tmp").rename(tmp_path / "a.json")
    assert look.at("") == ["a.json"]


def test_a_directory_swapped_for_a_link_is_gone(look: Look, tmp_path: Path, aside: Path) -> None:
    write(tmp_path, "a/b/x.json", packet("x"))
    look.scan()
    (tmp_path / "a").rename(aside / "away")
    (tmp_path / "a").symlink_to(aside / "away")
    # The event names the file, which can still be reached through the link.
    write(aside / "away", "b/x.json", packet("y"))
    assert look.at("a/b/x.json") == ["gone a/b/x.json"]
    assert look.catalogue.directories == 1


def test_a_file_that_becomes_a_directory_is_gone_and_the_directory_is_scanned(look: Look, tmp_path: Path) -> None:
    write(tmp_path, "x.json", packet("x"))
    look.scan()
    (tmp_path / "x.json").unlink()
    write(tmp_path, "x.json/y.json", packet("y"))
    assert look.at("x.json") == ["gone x.json", "x.json/y.json"]
    (tmp_path / "x.json" / "y.json").unlink()
    (tmp_path / "x.json").rmdir()
    write(tmp_path, "x.json", packet("x"))
    assert look.at("x.json") == ["gone x.json/y.json", "x.json"]


def test_a_known_directory_that_an_event_names_is_watched_anew(look: Look, tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    look.scan()
    # It may have been deleted and made again in between, and got the same inode.
    look.at("a")
    assert look.watched == ["", "a", "a"]


def test_what_happens_in_pruned_and_unknown_directories_is_ignored(look: Look, tmp_path: Path) -> None:
    look.scan()
    write(tmp_path, "node_modules/a/x.json", packet("x"))
    assert look.at("node_modules", "node_modules/a", "node_modules/a/x.json") == []
    assert look.watched == [""]


def test_a_root_that_is_a_link_by_now_is_not_followed(tmp_path: Path, clock: Clock) -> None:
    write(tmp_path, "real/x.json", packet("x"))
    (tmp_path / "link").symlink_to("real")
    look = Look(tmp_path / "link", clock)
    assert look.scan() == look.at("") == look.at("x.json") == []
    assert look.catalogue.directories == 0


def test_a_root_swapped_for_a_link_is_gone(tmp_path: Path, clock: Clock) -> None:
    write(tmp_path, "root/x.json", packet("x"))
    write(tmp_path, "other/y.json", packet("y"))
    look = Look(tmp_path / "root", clock)
    look.scan()
    (tmp_path / "root").rename(tmp_path / "away")
    (tmp_path / "root").symlink_to("other")
    assert look.at("") == ["gone x.json"]
    assert (look.catalogue.directories, look.catalogue.files) == (0, 0)


def test_links_inside_the_workspace_have_no_effect(look: Look, tmp_path: Path) -> None:
    write(tmp_path, "a/x.json", packet("x"))
    look.scan()
    (tmp_path / "everything").symlink_to("/")
    (tmp_path / "myself").symlink_to(".")
    (tmp_path / "a" / "link.json").symlink_to("x.json")
    assert look.at("everything", "myself", "a/link.json", "myself/a/x.json", "myself/a") == []
    assert look.sweep() == []
    assert set(look.watched) == {"", "a"}


@pytest.mark.parametrize("name", ["x.handoff.json", "return.md", "todos.md", "returns/x.json"])
def test_a_handoff_like_file_that_cannot_be_read_is_told_once(look: Look, tmp_path: Path, name: str) -> None:
    write(tmp_path, name, "x" * 10_001)
    assert look.scan() == [f"SRC004 {name}"]
    assert look.sweep() == look.at(name) == []
    write(tmp_path, name, packet("x"))
    assert look.at(name) == [name]


def test_another_file_that_cannot_be_read_is_ignored(look: Look, tmp_path: Path) -> None:
    write(tmp_path, "data.json", "x" * 10_001)
    os.mkfifo(tmp_path / "pipe.md")
    assert look.scan() == look.sweep() == []


def test_a_known_document_that_cannot_be_read_any_more_is_told_whatever_its_name(look: Look, tmp_path: Path) -> None:
    write(tmp_path, "x.json", packet("x"))
    look.scan()
    (tmp_path / "x.json").unlink()
    os.mkfifo(tmp_path / "x.json")
    assert look.at("x.json") == ["SRC001 x.json"]
    (tmp_path / "x.json").unlink()
    assert look.at("x.json") == ["gone x.json"]


def test_an_unreadable_file_that_turns_out_not_to_be_ours_is_gone(look: Look, tmp_path: Path) -> None:
    write(tmp_path, "return.json", "x" * 10_001)
    assert look.scan() == ["SRC004 return.json"]
    write(tmp_path, "return.json", OTHER)
    assert look.at("return.json") == ["gone return.json"]


def test_a_file_behind_a_shut_directory_is_told_and_seen_again_later(
    look: Look, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, "a/x.json", packet("x"))
    look.scan()
    real_lstat = os.lstat

    def refusing_lstat(path: str) -> os.stat_result:
        if path.endswith("/x.json"):
            raise PermissionError(13, "Permission denied")
        return real_lstat(path)

    with monkeypatch.context() as shut:
        shut.setattr(os, "lstat", refusing_lstat)
        assert look.sweep() == ["SRC005 a/x.json"]
        assert look.sweep() == []
    assert look.sweep() == ["a/x.json"]


def test_a_file_that_could_not_be_read_for_a_moment_is_read_later(
    look: Look, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, "x.return.json", packet("x"))
    real_open = os.open

    def refusing_open(path: str, flags: int, *, dir_fd: int | None = None) -> int:
        if path == "x.return.json":
            raise OSError(24, "Too many open files")
        return real_open(path, flags, dir_fd=dir_fd)

    with monkeypatch.context() as full:
        full.setattr(os, "open", refusing_open)
        assert look.scan() == ["SRC005 x.return.json"]
    assert look.sweep() == ["x.return.json"]


def test_a_scan_of_what_is_known_finds_what_is_gone_and_what_is_new(look: Look, tmp_path: Path, aside: Path) -> None:
    for name in ("a/b/x.json", "c/y.json", "d/z.json"):
        write(tmp_path, name, packet(name))
    look.scan()
    (tmp_path / "a").rename(aside / "a")
    (tmp_path / "c" / "y.json").unlink()
    write(tmp_path, "e/new.json", packet("new"))
    assert look.scan() == ["gone a/b/x.json", "gone c/y.json", "e/new.json"]
    assert (look.catalogue.directories, look.catalogue.files) == (4, 2)
    assert set(look.unwatched) == {"a", "a/b"}


def test_a_directory_that_cannot_be_listed_is_remembered_and_tried_again(
    look: Look, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, "a/x.json", packet("x"))
    real_open = os.open

    def refusing_open(path: str, flags: int, *, dir_fd: int | None = None) -> int:
        if path.endswith("/a"):
            raise OSError(24, "Too many open files")
        return real_open(path, flags, dir_fd=dir_fd)

    with monkeypatch.context() as shut:
        shut.setattr(os, "open", refusing_open)
        assert look.scan() == look.sweep() == []
        assert look.catalogue.unlisted == {"a": "Too many open files"}
    assert look.sweep() == ["a/x.json"]
    assert look.catalogue.unlisted == {}


def test_bytes_that_are_not_utf8_are_a_finding_of_the_document(tmp_path: Path, clock: Clock) -> None:
    def reader(text: str, path: str) -> Reading | None:
        reading = read_document('{"task_id": "x"}', path)
        assert reading is not None
        own = Finding("DOC003", Severity.WARNING, "told by the contract") if path.endswith("json.json") else None
        return Reading(reading.document, (own,) if own else ())

    look = Look(tmp_path, clock, reader)
    for name in ("plain.md", "json.json"):
        (tmp_path / name).write_bytes(b"\xff")
    look.catalogue.scan()
    found = {
        item.path: [finding.rule for finding in item.findings] for item in look.observed() if isinstance(item, Seen)
    }
    assert found == {"plain.md": ["SRC006"], "json.json": ["DOC003"]}


@pytest.mark.parametrize(
    "name", [b"line\nbreak.json", b"\x1b[31mred.json", b"caf\xe9.json", "bidi\u202e.json".encode()]
)
def test_any_file_name_is_observed_under_a_path_that_can_be_encoded(look: Look, tmp_path: Path, name: bytes) -> None:
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/" + name)).write_text(packet("x"))
    (path,) = look.scan()
    assert path.encode()
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/" + name)).unlink()
    assert look.sweep() == [f"gone {path}"]


def test_a_file_that_breaks_the_reader_is_set_aside_until_it_changes(look: Look, tmp_path: Path) -> None:
    write(tmp_path, "a.return.json", "BREAK", mtime=100)
    write(tmp_path, "b.json", packet("b"), mtime=200)
    assert look.scan() == ["SRC008 a.return.json", "b.json"]
    assert look.sweep() == []
    write(tmp_path, "a.return.json", packet("a"))
    assert look.at("a.return.json") == ["a.return.json"]


def test_a_file_that_changes_during_every_look_is_told_after_a_while(
    look: Look, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, "return.json", packet("x"))
    with monkeypatch.context() as busy:
        real_read = os.read

        def growing_read(descriptor: int, length: int) -> bytes:
            with (tmp_path / "return.json").open("a") as file:
                file.write(" ")
            return real_read(descriptor, length)

        busy.setattr(os, "read", growing_read)
        assert look.scan() == []
        assert look.after(0.2) == []
        assert look.after(2.0) == ["SRC007 return.json"]
    assert look.sweep() == ["return.json"]


def test_a_known_file_that_changed_for_a_moment_is_looked_at_twice_more_and_not_all_the_time(
    look: Look, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, "a.json", packet("a"))
    look.scan()

    def changing(root: str, relative: str, max_bytes: int) -> FileText:
        raise FileRefusedError(CHANGING, lasting=False)

    os.utime(tmp_path / "a.json", (1, 1))
    with monkeypatch.context() as busy:
        busy.setattr(documents_module, "read_file", changing)
        assert look.at("a.json") == []
    assert look.after(0.2) == []
    assert look.documents.next_due == pytest.approx(2.0)
    assert look.after(2.0) == []
    assert look.documents.next_due == math.inf


def test_the_text_of_what_was_seen_is_kept(look: Look, tmp_path: Path) -> None:
    write(tmp_path, "a.json", packet("a"))
    write(tmp_path, "package.json", OTHER)
    look.catalogue.scan()
    (seen,) = look.observed()
    assert isinstance(seen, Seen)
    write(tmp_path, "a.json", packet("b"))
    look.at("a.json")
    assert look.contents.get(seen.digest) == packet("a")


def test_what_the_events_missed_is_found_around_them(look: Look, tmp_path: Path) -> None:
    look.scan()
    write(tmp_path, "a/x.json", packet("x"))
    write(tmp_path, "y.json", packet("y"))
    look.catalogue.mark_around({"y.json"})
    assert sorted(look.drained()) == ["a/x.json", "y.json"]


def test_draining_ends_at_its_deadline_and_goes_on_later(look: Look, tmp_path: Path) -> None:
    for number in range(5):
        write(tmp_path, f"{number}.json", packet(str(number)), mtime=100 + number)
    look.catalogue.scan()
    drained: list[Iterable[Event]] = []
    while look.catalogue.waiting:
        drained.append(look.catalogue.drain(deadline=0.0))
    assert [[brief(item) for item in part] for part in drained] == [[f"{number}.json"] for number in range(5)]


def test_when_the_root_is_gone_so_is_everything(look: Look, tmp_path: Path) -> None:
    write(tmp_path, "a/x.json", packet("x"))
    write(tmp_path, "y.json", packet("y"))
    look.scan()
    assert [brief(item) for item in look.catalogue.forget_all()] == ["gone a/x.json", "gone y.json"]
    assert (look.catalogue.directories, look.catalogue.files) == (0, 0)
    assert sorted(look.scan()) == ["a/x.json", "y.json"]


def test_in_a_storm_files_are_looked_at_as_they_were_last_changed_and_each_stands_back_once(look: Look) -> None:
    at = 1_000_000_000

    def changed(name: str) -> None:
        nonlocal at
        at += 1_000
        (look.root / name).write_text(packet(f"{name}{at}"), "utf-8")
        os.utime(look.root / name, (at, at))
        look.catalogue.mark_changed([name], first=False)

    look.scan()
    for name in ("a.json", "b.json", "c.json", "a.json", "d.json", "a.json"):
        changed(name)
    assert look.drained() == ["b.json", "c.json", "a.json", "d.json"]
    assert look.drained() == []
