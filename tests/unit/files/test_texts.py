"""The text of a file that is as it was is known without opening it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from agentwatch.kept import index
from agentwatch.sources.files import documents
from agentwatch.sources.files.read import FileText, read_file
from agentwatch.sources.files.source import FilesSource
from agentwatch.sources.files.texts import Texts
from tests.homes import live_in
from tests.unit.agents.documents import packet

Look = Callable[[], tuple[set[str], list[str]]]


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    live_in(tmp_path, monkeypatch)
    monkeypatch.setattr(index, "WORTH", 1)
    shop = tmp_path / "shop"
    shop.mkdir()
    put(shop / "handoff.json", packet())
    put(shop / "note.md", "# Note\n")
    return shop


@pytest.fixture
def look(shop: Path, monkeypatch: pytest.MonkeyPatch) -> Look:
    """Looks once as those do who look for a task. Returns what was opened, and all texts."""
    opened, told = set[str](), list[str]()

    def reading(root: str, path: str, max_bytes: int) -> FileText:
        opened.add(path)
        return read_file(root, path, max_bytes)

    def looked() -> tuple[set[str], list[str]]:
        opened.clear()
        told.clear()
        texts = Texts(str(shop), [], 10**6)
        FilesSource(shop, read_document=lambda text, _: told.append(text), texts=texts).scan()
        texts.save()
        return set(opened), sorted(told)

    monkeypatch.setattr(documents, "read_file", reading)
    return looked


def put(path: Path, text: str) -> None:
    """Write a file that is not young any more, as far as its own time tells, and has rested."""
    path.write_text(text)
    os.utime(path, (1_700_000_000, 1_700_000_000))


def rest(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing was changed a moment ago."""
    monkeypatch.setattr("agentwatch.sources.files.texts.is_young", lambda *_: False)


def test_a_file_that_is_as_it_was_is_not_opened(shop: Path, look: Look, monkeypatch: pytest.MonkeyPatch) -> None:
    rest(monkeypatch)
    opened, told = look()
    assert opened == {"handoff.json", "note.md"}
    assert look() == (set(), told)
    put(shop / "note.md", "# Another\n")
    opened, told = look()
    assert opened == {"note.md"}
    assert "# Another\n" in told


def test_what_was_changed_a_moment_ago_is_read_again(look: Look) -> None:
    assert look() == look()


@pytest.mark.parametrize(
    ("name", "text"), [("package.json", json.dumps({"name": "shop", "secret": "x"})), ("long.md", "# Long\n" * 10_000)]
)
def test_what_can_be_no_document_or_is_long_is_not_kept(
    shop: Path, look: Look, monkeypatch: pytest.MonkeyPatch, name: str, text: str
) -> None:
    rest(monkeypatch)
    put(shop / name, text)
    look()
    assert look()[0] == {name}
