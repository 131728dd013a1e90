"""A file that is read again is shown, withheld, taken back, or refused."""

import errno
import os
import time
from pathlib import Path

import pytest

from agentwatch.config import Settings
from agentwatch.delegation.events import Event, Seen, Unreadable
from agentwatch.disk import DISK, Disk
from agentwatch.sources.files import source as documents_module
from agentwatch.sources.files.source import WorkspaceFiles
from tests.unit.files.watching import HALF, OTHER, packet, read_document, write

A, B = packet("a"), packet("b")
LARGE = "x" * 10_001


class Clock:
    """Replaces the module `time`; it moves only when the test moves it."""

    def __init__(self):
        self.passed = 0.0
        self.began = time.time()

    def monotonic(self) -> float:
        return self.passed

    def time(self) -> float:
        return self.began + self.passed

    def time_ns(self) -> int:
        return int(self.time() * 1e9)


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(documents_module, "time", clock)
    return clock


@pytest.fixture
def documents(tmp_path):
    return WorkspaceFiles(str(tmp_path), Settings(max_bytes=10_000), read_document, None)


def brief(event: Event) -> str:
    if isinstance(event, Seen):
        return "half" if event.incomplete else "seen"
    return event.finding.rule if isinstance(event, Unreadable) else type(event).__name__.lower()


def read(documents: WorkspaceFiles, path: str) -> str:
    documents.read(path)
    events, documents.events = documents.events, []
    return " ".join(map(brief, events))


# For each step, a text to write, seconds to wait, or None to delete the file, and the events that follow.
STEPS = {
    "written again as it was": ("a.json", [(A, "seen"), (A, ""), (B, "seen")]),
    "half, then whole": ("a.json", [(HALF, ""), (A, "seen"), (10, "")]),
    "half, and stays so": ("a.json", [(HALF, ""), (1.5, ""), (1, "half"), (10, "")]),
    "half, and grows": ("a.json", [(HALF, ""), (1.5, ""), (HALF + "x", ""), (1.5, ""), (1, "half")]),
    "known, rewritten in pieces": ("a.json", [(A, "seen"), ("", ""), (HALF, ""), (B, "seen"), (10, "")]),
    "known, half, as before": ("a.json", [(A, "seen"), (HALF, ""), (A, ""), (10, "")]),
    "becomes something else": ("a.json", [(A, "seen"), (OTHER, ""), (1.5, ""), (1, "gone"), (A, "seen")]),
    "half, then deleted": ("a.json", [(HALF, ""), (None, ""), (10, "")]),
    "deleted and made again": ("a.json", [(A, "seen"), (None, "gone"), (A, "seen")]),
    "large, of any name": ("data.json", [(LARGE, ""), (None, "")]),
    "large, then right": ("x.handoff.json", [(LARGE, "SRC004"), (LARGE, ""), (A, "seen")]),
    "large, then not ours": ("returns/x.json", [(LARGE, "SRC004"), (OTHER, "gone")]),
    "seen, then large": ("x.json", [(A, "seen"), (LARGE, "SRC004"), (None, "gone")]),
    "seen, then large, then as before": ("x.json", [(A, "seen"), (LARGE, "SRC004"), (A, "seen")]),
    "breaks the reader": ("a.return.json", [("BREAK", "SRC008"), ("BREAK", ""), (A, "seen")]),
    "not ours": ("package.json", [(OTHER, ""), (OTHER + " ", ""), (None, "")]),
}


@pytest.mark.parametrize(("name", "steps"), STEPS.values(), ids=STEPS)
def test_each_step_of_a_file_has_its_events(tmp_path, clock, documents, name, steps):
    told = []
    for step, _ in steps:
        if step is None:
            (tmp_path / name).unlink()
        elif isinstance(step, str):
            write(tmp_path / name, step)
        else:
            clock.passed += step
        told.append(read(documents, name))
        assert step != "BREAK" or documents.unread
    assert told == [expected for _, expected in steps]
    assert not documents.withheld


def aged(path: Path, text: str):
    write(path, text)
    os.utime(path, (100, 100))


def test_a_broken_file_that_has_rested_is_shown_at_once(tmp_path, clock, documents):
    aged(tmp_path / "a.json", HALF)
    assert read(documents, "a.json") == ""
    clock.passed = 100.0
    assert read(WorkspaceFiles(str(tmp_path), Settings(), read_document, None), "a.json") == "half"


def test_a_rewrite_that_restores_size_and_mtime_is_noticed(tmp_path, clock, documents):
    clock.passed = 1.0
    for text in (A, B):
        aged(tmp_path / "a.json", text)
        assert read(documents, "a.json") == "seen"
    assert not documents.may_have_changed("a.json", documents.status("a.json"))


def test_a_file_that_changes_all_the_time_is_shown_later(tmp_path, clock, documents):
    write(tmp_path / "return.json", A)

    class Growing(Disk):
        def read(self, descriptor, length):
            with (tmp_path / "return.json").open("a") as file:
                file.write(" ")
            return os.read(descriptor, length)

    documents.disk = Growing()
    assert read(documents, "return.json") == ""
    assert set(documents.withheld) == {"return.json"}
    clock.passed = 2.1
    assert read(documents, "return.json") == "SRC007"
    documents.disk = DISK
    assert read(documents, "return.json") == "seen"


def test_a_file_out_of_reach_for_a_moment_is_read_later(tmp_path, documents):
    class Full(Disk):
        def open(self, path, *arguments, **options):
            raise OSError(errno.EMFILE, "Too many open files")

    for text, disk, events in ((A, DISK, "seen"), (B, Full(), "SRC005"), (B, DISK, "seen")):
        write(tmp_path / "x.return.json", text)
        documents.disk = disk
        assert read(documents, "x.return.json") == events
        assert bool(documents.unread) == (events == "SRC005")


def test_the_text_of_a_version_is_kept_or_read_from_its_file(tmp_path, documents):
    documents.most_text_bytes = 3 * len(A)
    for name, text in [("a.json", A), ("b.json", B), *(("c.json", packet(str(number))) for number in range(5))]:
        write(tmp_path / name, text)
        documents.read(name)
    digests = [one.digest for one in documents.events if isinstance(one, Seen)]
    write(tmp_path / "b.json", OTHER)
    kept = [documents.content(digest) for digest in digests]
    assert kept == [A, None, None, None, packet("2"), packet("3"), packet("4")]
    (tmp_path / "a.json").unlink()
    assert documents.content(digests[0]) is None
