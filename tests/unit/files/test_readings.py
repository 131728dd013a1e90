"""A file that has not changed is not read again, and what is seen is the same as if it was."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from agentwatch.contracts.shapes import Reading
from agentwatch.delegation.observation import Observation
from agentwatch.kept import index
from agentwatch.sources.files.readings import Readings
from agentwatch.sources.files.source import FilesSource
from tests.homes import live_in
from tests.unit.files.watching import HALF, OTHER, QUICK, packet, read_document

OLD = 0.06
"""Seconds after which a file's next change shows in its attributes for sure."""


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    live_in(tmp_path, monkeypatch)
    monkeypatch.setattr(index, "WORTH", 1)
    made = tmp_path / "work"
    made.mkdir()
    return made


def look(root: Path, *, max_bytes: int = QUICK.max_bytes, readings: bool = True) -> tuple[list[Observation], list[str]]:
    """What is seen, and which files were read for that."""
    read: list[str] = []

    def reader(text: str, path: str) -> Reading | None:
        read.append(path)
        return read_document(text, path)

    kept = Readings(str(root), QUICK.pruned, max_bytes) if readings else None
    settings = QUICK._replace(max_bytes=max_bytes)
    batch = FilesSource(root, settings, read_document=reader, readings=kept).scan()
    if kept is not None:
        kept.save()
    return list(batch.observations), sorted(set(read))


def test_what_was_read_is_not_read_again(root: Path) -> None:
    (root / "a.handoff.json").write_text(packet("a"))
    (root / "bad.handoff.json").write_bytes(packet("b").encode() + b"\xff")
    (root / "half.return.md").write_text(HALF)
    (root / "note.md").write_text("# Note\n")
    time.sleep(OLD)
    seen, read = look(root)
    assert read == ["a.handoff.json", "bad.handoff.json", "half.return.md", "note.md"]
    again = look(root)
    assert again[1] == []
    assert again[0] == seen == look(root, readings=False)[0]


def test_only_what_has_changed_is_read(root: Path) -> None:
    for name in "abc":
        (root / f"{name}.handoff.json").write_text(packet(name))
    time.sleep(OLD)
    look(root)
    (root / "b.handoff.json").write_text(packet("x"))
    (root / "a.handoff.json").unlink()
    (root / "c.handoff.json").rename(root / "d.handoff.json")
    seen, read = look(root)
    assert read == ["b.handoff.json", "d.handoff.json"]
    assert seen == look(root, readings=False)[0]


def test_a_file_that_keeps_its_size_and_its_time_is_read_again(root: Path) -> None:
    path = root / "a.handoff.json"
    path.write_text(packet("a"))
    time.sleep(OLD)
    look(root)
    before = path.stat()
    path.write_text(packet("b"))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert path.stat().st_size == before.st_size
    seen, read = look(root)
    assert read == ["a.handoff.json"]
    assert seen == look(root, readings=False)[0]


def test_what_changed_just_now_is_read_again(root: Path) -> None:
    """The next change may leave its attributes as they are."""
    (root / "a.handoff.json").write_text(packet("a"))
    look(root)
    assert look(root)[1] == ["a.handoff.json"]
    at = time.time() + 60
    os.utime(root / "a.handoff.json", (at, at))
    time.sleep(OLD)
    look(root)
    assert look(root)[1] == ["a.handoff.json"]


def test_a_file_that_is_too_large_by_now_is_refused(root: Path) -> None:
    (root / "a.handoff.json").write_text(packet("a"))
    time.sleep(OLD)
    look(root)
    small = look(root, max_bytes=10)
    assert small == look(root, max_bytes=10, readings=False)
    assert "more" not in small[1]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read_any_more_is_not_known(root: Path) -> None:
    path = root / "a.handoff.json"
    path.write_text(packet("a"))
    time.sleep(OLD)
    look(root)
    path.chmod(0)
    assert look(root)[0] == look(root, readings=False)[0]


def test_the_text_of_a_file_that_was_not_read_is_there(root: Path) -> None:
    (root / "a.handoff.json").write_text(packet("a"))
    time.sleep(OLD)
    look(root)
    kept = Readings(str(root), QUICK.pruned, QUICK.max_bytes)
    source = FilesSource(root, QUICK, read_document=read_document, readings=kept)
    (seen,) = source.scan().observations
    digest = getattr(seen, "digest", "")
    assert source.content(digest) == packet("a")
    assert source.holds("a.handoff.json", digest)
    assert not source.holds("b.handoff.json", digest)
    (root / "a.handoff.json").write_text(OTHER)
    assert source.content(digest) is None
