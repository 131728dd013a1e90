"""Looking at a workspace once."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from agentwatch.contracts.shapes import Reading
from agentwatch.delegation.events import Seen, Unreadable
from agentwatch.errors import WorkspaceError
from agentwatch.sources.files.settings import FilesSettings
from agentwatch.sources.files.source import FilesSource
from tests.unit.files.watching import HALF, OTHER, PATIENCE, QUICK, packet, read_document


def test_everything_that_is_there_is_observed(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "x.json").write_text(packet("x"))
    (tmp_path / "package.json").write_text(OTHER)
    (tmp_path / "return.json").write_bytes(b"x" * 2_000_000)
    batch = FilesSource(tmp_path, QUICK, read_document=read_document).scan()
    assert sorted((type(item).__name__, getattr(item, "path", "")) for item in batch.events) == [
        ("Seen", "a/x.json"),
        ("Unreadable", "return.json"),
    ]
    # What has the name of a return and cannot be read is a problem.
    assert batch.health.mode == "degraded"


def test_a_file_that_is_just_being_written_is_waited_for(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text(HALF)
    half_read = threading.Event()

    def reader(text: str, path: str) -> Reading | None:
        half_read.set()
        return read_document(text, path)

    def complete() -> None:
        assert half_read.wait(PATIENCE)
        (tmp_path / "x.json").write_text(packet("x"))

    writer = threading.Thread(target=complete)
    writer.start()
    batch = FilesSource(tmp_path, FilesSettings(settle_seconds=PATIENCE), read_document=reader).scan()
    writer.join()
    (seen,) = batch.events
    assert isinstance(seen, Seen)
    assert not seen.incomplete


def test_a_file_that_stays_half_written_is_broken(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text(HALF)
    (seen,) = FilesSource(tmp_path, QUICK, read_document=read_document).scan().events
    assert isinstance(seen, Seen)
    assert seen.incomplete


@pytest.mark.parametrize("name", ["missing", "file"])
def test_what_is_no_directory_is_a_workspace_error(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(WorkspaceError, match="is no directory"):
        FilesSource(tmp_path / name).scan()


def test_what_holds_nothing_of_its_name_is_said_of_the_file(tmp_path: Path) -> None:
    for name in ("a.handoff.json", "a.return.json", "b.todos.md"):
        (tmp_path / name).write_text("{}" if name.endswith("json") else "Go on.")
    made = {one.path: one for one in FilesSource(tmp_path, FilesSettings(settle_seconds=0)).scan().events}
    assert isinstance(made["a.handoff.json"], Unreadable)
    assert made["a.handoff.json"].finding.rule == "DOC012"
    assert isinstance(made["b.todos.md"], Unreadable)
    assert made["b.todos.md"].finding.rule == "DOC013"
    assert isinstance(made["a.return.json"], Seen)
