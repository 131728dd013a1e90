"""The tasks of Roo Code: what their history items and messages come to, and files that are replaced as a whole."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from agentwatch.sources.roo import RooReader
from tests.unit.roo.storage import Storage

SETTINGS = "Library/Application Support" if sys.platform == "darwin" else ".config"


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    return Storage(tmp_path)


@pytest.mark.parametrize(
    "place",
    [
        "{settings}/Code/User/globalStorage/rooveterinaryinc.roo-cline",
        "{settings}/An editor of tomorrow/User/globalStorage/made.of-roo",
        ".vscode-server/data/User/globalStorage/rooveterinaryinc.roo-cline",
        ".local/share/code-server/User/globalStorage/kilocode.kilo-code",
        ".vscode-mock/global-storage",
    ],
)
def test_the_storages_of_all_editors_are_found(
    storage: Storage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    reader = editors(storage, tmp_path, monkeypatch)
    path = tmp_path / place.format(settings=SETTINGS)
    path.parent.mkdir(parents=True)
    storage.item("one")
    storage.messages("one")
    storage.path.rename(path)
    assert [change.key for change in reader.read(10)] == ["one"]
    assert [found.place for found in reader.found()] == [str(path)]


def editors(storage: Storage, home: Path, monkeypatch: pytest.MonkeyPatch) -> RooReader:
    """A reader of all that is in a home."""
    monkeypatch.setattr(Path, "home", lambda: home)
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    return RooReader(storage.workspace)
