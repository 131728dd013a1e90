"""What cannot be told by looking at files is not kept."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from agentwatch.composition import scanned
from agentwatch.config import Settings
from agentwatch.kept import looks
from agentwatch.kept.noted import Looks
from agentwatch.sources.sessions import where
from tests.homes import live_in
from tests.unit.agents.documents import packet


@pytest.fixture
def noted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Looks]:
    live_in(tmp_path, monkeypatch)
    made = Looks()
    looks.begin(made)
    yield made
    looks.begin(None)


def test_what_lies_on_this_machine_may_be_kept(tmp_path: Path, noted: Looks) -> None:
    (tmp_path / "api.handoff.json").write_text(packet())
    scanned(tmp_path, Settings())
    assert noted.spoilt == ""
    assert all(condition() for condition in noted.conditions)


def test_where_other_machines_write_nothing_is_kept(
    tmp_path: Path, noted: Looks, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The attributes of a file there are those of a while ago.
    monkeypatch.setattr(where, "is_of_this_system", lambda _: False)
    scanned(tmp_path, Settings())
    assert not all(condition() for condition in noted.conditions)
