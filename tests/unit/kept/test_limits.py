"""What cannot be told by looking at files is not kept."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from agentwatch.composition import scanned
from agentwatch.config import Settings
from agentwatch.contracts.shapes import Handoff
from agentwatch.kept import keeping, looks
from agentwatch.kept.answers import key_of, place_of
from agentwatch.kept.keeping import keep, prepare, put
from agentwatch.kept.noted import Looks
from agentwatch.sources.files.dating import Dating
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


def test_what_arrives_and_counts_from_this_look_on_is_not_kept(tmp_path: Path, noted: Looks) -> None:
    dating = Dating()
    dating.looked(2_000.0)
    handoff = Handoff("t", "Build it.")
    assert dating.at("new.json", "d1", 2_500.0, handoff, 3_000.0) == 2_500.0
    assert noted.spoilt == ""
    assert dating.at("moved.json", "d2", 1_000.0, handoff, 3_000.0) == 3_000.0
    assert noted.spoilt != ""


def test_that_something_is_missing_behind_a_link_is_noted(tmp_path: Path, noted: Looks) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    looked = Looks()
    for path in (tmp_path / "real", tmp_path / "link"):
        looked.note_now(str(path), follows=False)
        looked.note_now(str(path / "api.py"), follows=True)
    looked.leave_out_implied()
    assert list(looked.followed) == [str(tmp_path / "link" / "api.py")]


def test_a_file_that_says_it_is_from_1970_is_as_young_as_its_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    live_in(tmp_path, monkeypatch)
    old, place = tmp_path / "old.json", place_of(b"key")
    old.write_text("{}")
    os.utime(old, (0, 0))
    for began, is_kept in ((time.time(), False), (time.time() + 60, True)):
        made = Looks()
        made.note_now(str(old), follows=True)
        made.is_told = True
        monkeypatch.setattr(time, "time", lambda began=began: began + 1)
        prepare(place)
        keep(place, b"key", (0, b"said", b""), made, began)
        assert Path(place).exists() == is_kept


def test_how_it_was_called_is_part_of_the_question(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = set()
    for name in ("/a/agentwatch", "/b/agentwatch"):
        monkeypatch.setattr(sys, "argv", [name])
        keys.add(key_of(["pending"]))
    assert len(keys) == 2


def test_of_too_much_what_nobody_has_asked_for_longest_is_taken_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    live_in(tmp_path, monkeypatch)
    monkeypatch.setattr(keeping, "_MOST_FILES", 3)
    places = [Path(place_of(bytes([number]))) for number in range(5)]
    for number, place in enumerate(places):
        put(str(place), b"x")
        os.utime(place, (number, number))
    monkeypatch.setattr(keeping, "_MOST_FILES", 2)
    put(str(places[0]), b"x")
    assert [place.exists() for place in places] == [True, False, False, False, True]
