"""The databases of a user are found where the programs keep them."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentwatch.sources.sessions.registry import databases


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    for variable in ("XDG_DATA_HOME", "OPENCODE_DB", "KILO_DB"):
        monkeypatch.delenv(variable, raising=False)


def make(*paths: Path) -> None:
    for path in paths:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()


def test_each_program_and_each_of_its_channels_is_a_source_of_its_own(tmp_path: Path) -> None:
    share = tmp_path / ".local" / "share"
    make(share / "opencode" / "opencode.db", share / "opencode" / "opencode-dev.db", share / "kilo" / "kilo.db")
    make(share / "kilo" / "opencode-dev.db", share / "opencode" / "opencode.db-wal", share / "opencode" / "other.db")
    assert list(databases().items()) == [
        ("opencode", share / "opencode" / "opencode.db"),
        ("opencode-dev", share / "opencode" / "opencode-dev.db"),
        ("kilo", share / "kilo" / "kilo.db"),
        ("kilo-opencode-dev", share / "kilo" / "opencode-dev.db"),
    ]


def test_the_environment_says_where_else_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data, other = tmp_path / "data", tmp_path / "other" / "mine.db"
    make(data / "opencode" / "opencode.db", data / "kilo" / "team.db", other)
    for variable, value in {"XDG_DATA_HOME": str(data), "OPENCODE_DB": str(other), "KILO_DB": "team.db"}.items():
        monkeypatch.setenv(variable, value)
    assert list(databases().items()) == [
        ("opencode", data / "opencode" / "opencode.db"),
        ("opencode-mine", other),
        ("kilo-team", data / "kilo" / "team.db"),
    ]
