"""Which sessions are those of a workspace, and where they are looked for."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from agentwatch.sources.sessions import store as sessions_store
from tests.unit.claude_code.building import SESSION, Store


def test_small_sessions_are_told_of_before_a_newer_large_one_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(tmp_path)
    for number in range(3):
        store.session(f"small-{number}").asked(f"small thing {number}")
    large = store.session()
    large.asked("a large thing")
    for number in range(1_000):
        large.said(f"step {number} " + "x" * 2_000)
    store.save()
    for log in store.logs:
        os.utime(log.path, (1_000, 2_000 if log is large else 1_000))
    monkeypatch.setattr(sessions_store, "LARGE", 100_000)
    reader = store.reader()
    told: list[str] = []
    while reader.progress.done < reader.progress.total or not told:
        told += [change.run.session_id for change in reader.read(0.0) if change.run is not None]
    assert sorted(told[:3]) == ["small-0", "small-1", "small-2"]
    assert len(told) > 4, "the large one also by its beginning, until all of it is read"
    assert set(told[3:]) == {SESSION}
