"""A command that has nothing to do leaves no trace: asked for help, wrong usage, missing directories."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from unittest.mock import patch

import pytest

from agentwatch.__main__ import main
from tests.homes import live_in

COMMANDS = (
    *("ack", "answer", "attest", "check", "claim", "completion", "decide", "demo", "doctor", "fleet", "help", "hook"),
    *("init", "keys", "log", "mcp", "pending", "relay", "replay", "report", "rules", "schema", "sources", "tree"),
    *("verify", "wait", ""),
)
WRONG = (
    *(("completion", "ksh"), ("decide",), ("decide", "a.b", "--retry", "--abort"), ("doctor", "--creds", "x")),
    *(
        ("fleet", "init"),
        ("help", "nothing"),
        ("init", "--agent", "nobody"),
        ("keys", "nothing"),
        ("keys", "trust", "x"),
    ),
    *(
        ("log", "--since", "never"),
        ("nothing",),
        ("pending", "--since", "1h"),
        ("relay",),
        ("relay", "--stdio", "--creds", "x"),
    ),
    *(("rules", "--explain", "nothing"), ("schema", "nothing"), ("tree", "--since", "1h"), ("wait",)),
    ("tree", "--where", "since:x"),
)
ABSENT = "absent/directory"
MISSING = (
    *(
        (command, ABSENT)
        for command in ("check", "doctor", "init", "log", "mcp", "pending", "report", "sources", "tree")
    ),
    *((command, "a.b", ABSENT) for command in ("ack", "attest", "claim", "wait")),
    *(("answer", "0123", ABSENT, "--deny"), ("decide", "a.b", ABSENT, "--abort", "--yes")),
    *(("init", ABSENT, "--write"), ("pending", "--json", ABSENT), ("tree", "--json", ABSENT), ("report", ".", ABSENT)),
    *(("relay", "--nats", "nats://127.0.0.1:1", ABSENT), ("replay", ABSENT), ("verify", ABSENT), (ABSENT,)),
)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The home of a user, who is in an empty directory in it."""
    (tmp_path / "here").mkdir()
    live_in(tmp_path, monkeypatch)
    for name in ("cache", "config", "data", "runtime"):
        monkeypatch.setenv(f"XDG_{name.upper()}_{'DIR' if name == 'runtime' else 'HOME'}", str(tmp_path / name))
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setattr(sys, "stdin", StringIO())
    yield tmp_path
    # A command does without.
    gc.enable()


def ended(words: tuple[str, ...]) -> int | str | None:
    """The exit code of a command line, by the way that the installed command goes."""
    with patch.object(sys, "argv", ["agentwatch", *words]), pytest.raises(SystemExit) as end:
        main()
    return end.value.code


def left_in(place: Path) -> list[Path]:
    return sorted({*place.rglob("*")} - {place / "here"})


@pytest.mark.parametrize("command", COMMANDS)
def test_help_writes_nothing(place: Path, command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert ended((*command.split(), "--help")) == 0
    assert "usage: agentwatch" in capsys.readouterr().out
    assert left_in(place) == []


@pytest.mark.parametrize("words", WRONG, ids=" ".join)
def test_wrong_usage_writes_nothing(place: Path, words: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert ended(words) not in (0, None)
    assert capsys.readouterr().err.startswith("agentwatch: ")
    assert left_in(place) == []


@pytest.mark.parametrize("words", MISSING, ids=" ".join)
def test_a_missing_directory_leads_to_no_file(
    place: Path, words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert ended(words) not in (0, None)
    assert capsys.readouterr().err
    assert left_in(place) == []
