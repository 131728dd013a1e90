"""Which sessions are those of a workspace, and where they are looked for."""

from __future__ import annotations

import os
import unicodedata
from pathlib import Path

import pytest

from agentwatch.delegation.run import RunState
from agentwatch.sources.claude_code.claude_code_reader import ClaudeCodeReader
from agentwatch.sources.sessions import store as sessions_store
from agentwatch.sources.sessions.reader import Change
from agentwatch.sources.sessions.store import slug
from tests.unit.claude_code.building import SESSION, Store, meta, packet


def sessions(store: Store) -> list[str]:
    return list(store.runs())


@pytest.mark.parametrize(
    ("directory", "name"),
    [
        ("/home/me/a_b.c", "-home-me-a-b-c"),
        ("/srv/héé", "-srv-h--"),
        (unicodedata.normalize("NFD", "/srv/é"), "-srv--"),
        ("/x/𝄞", "-x-" + "-"),
    ],
)
def test_every_other_character_becomes_a_hyphen(directory: str, name: str) -> None:
    assert slug(directory) == name


def test_a_store_that_is_not_there_is_no_trouble(tmp_path: Path) -> None:
    reader = ClaudeCodeReader(tmp_path, home=tmp_path / "none")
    assert list(reader.read(1.0)) == []
    assert reader.trouble is None
    assert list(reader.found()) == []
    (tmp_path / "none" / "projects").mkdir(parents=True)
    (found,) = reader.found()
    assert (found.sessions, found.skipped) == (0, "no session of this workspace is there")


def test_small_sessions_are_told_of_before_a_newer_large_one_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(tmp_path)
    for number in range(3):
        store.session(f"small-{number}").asked(f"small thing {number}")
    large = store.session()
    large.asked("a large thing")
    for number in range(200):
        large.said(f"step {number} " + "x" * 2_000)
    store.save()
    for log in store.logs:
        os.utime(log.path, (1_000, 2_000 if log is large else 1_000))
    monkeypatch.setattr(sessions_store, "LARGE", 100_000)
    reader = store.reader()
    told: list[str] = []
    while reader.progress.done < reader.progress.total or not told:
        told += [change.run.session_id for change in reader.read(0.0) if change.run is not None]
    # The large one by its beginning, until all of it is read.
    assert sorted(told[:4]) == [SESSION, "small-0", "small-1", "small-2"]
    assert set(told[4:]) == {SESSION}


def test_agents_are_told_of_before_the_large_transcript_of_their_session_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(tmp_path)
    session = store.session()
    session.asked("a large thing")
    for number in range(3):
        agent = store.agent(f"a{number}", meta(f"toolu_{number}"))
        agent.asked(packet(f"t{number}"))
        session.delegated(f"toolu_{number}", packet(f"t{number}"))
    for number in range(2_000):
        session.said(f"step {number} " + "x" * 200)
    session.got("toolu_1", "no such type", error=True)
    store.save()
    monkeypatch.setattr(sessions_store, "LARGE", 100_000)
    reader = store.reader()
    told = [change.run for change in reader.read(0.0) if change.run is not None]
    while not told:
        told = [change.run for change in reader.read(0.0) if change.run is not None]
    assert reader.progress.done < reader.progress.total
    assert [run.session_id for run in told] == [SESSION, "a0", "a1", "a2"]
    assert {run.parent_session for run in told[1:]} == {SESSION}
    later: list[Change] = []
    while not later:
        later = list(reader.read(0.0))
    states = {change.run.session_id: change.run.state for change in later if change.run is not None}
    assert (states[SESSION], states["a1"]) == (RunState.ENDED, RunState.FAILED)


def test_agents_of_a_recent_large_session_are_told_of_before_old_sessions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(tmp_path)
    old = store.session("old")
    old.asked("an old thing")
    large = store.session()
    large.asked("a large thing")
    store.agent("a1").asked("its part")
    for number in range(2_000):
        large.said(f"step {number} " + "x" * 200)
    store.save()
    os.utime(old.path, (1_000, 1_000))
    monkeypatch.setattr(sessions_store, "LARGE", 100_000)
    reader = store.reader()
    told: list[str] = []
    while reader.progress.done < reader.progress.total or not told:
        told += [change.run.session_id for change in reader.read(0.0) if change.run is not None]
    assert told == [SESSION, "a1", "old", SESSION]
