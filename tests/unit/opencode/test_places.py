"""The databases of a user are found where the programs keep them."""

from __future__ import annotations

from pathlib import Path

from agentwatch.sources.opencode.places import find_stores


def make(*paths: Path) -> None:
    for path in paths:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()


def test_nothing_is_found_where_nothing_is(tmp_path: Path) -> None:
    assert find_stores({}, tmp_path) == []


def test_each_program_and_each_of_its_channels_is_a_source_of_its_own(tmp_path: Path) -> None:
    share = tmp_path / ".local" / "share"
    make(share / "opencode" / "opencode.db", share / "opencode" / "opencode-dev.db", share / "kilo" / "kilo.db")
    make(share / "kilo" / "opencode-dev.db", share / "opencode" / "opencode.db-wal", share / "opencode" / "other.db")
    assert [(store.name, store.database.relative_to(share).as_posix()) for store in find_stores({}, tmp_path)] == [
        ("opencode", "opencode/opencode.db"),
        ("opencode-dev", "opencode/opencode-dev.db"),
        ("kilo", "kilo/kilo.db"),
        ("kilo-opencode-dev", "kilo/opencode-dev.db"),
    ]


def test_the_environment_says_where_else_they_are(tmp_path: Path) -> None:
    data, other = tmp_path / "data", tmp_path / "other" / "mine.db"
    make(data / "opencode" / "opencode.db", data / "kilo" / "team.db", other)
    environment = {"XDG_DATA_HOME": str(data), "OPENCODE_DB": str(other), "KILO_DB": "team.db"}
    assert [(store.name, store.database) for store in find_stores(environment, tmp_path)] == [
        ("opencode", data / "opencode" / "opencode.db"),
        ("opencode-mine", other),
        ("kilo-team", data / "kilo" / "team.db"),
    ]


def test_a_relative_data_directory_is_none(tmp_path: Path) -> None:
    make(tmp_path / ".local" / "share" / "kilo" / "kilo.db")
    environment = {"XDG_DATA_HOME": "somewhere", "KILO_DB": ":memory:"}
    assert [store.name for store in find_stores(environment, tmp_path)] == ["kilo"]
