"""Whatever cannot be read, every command says so: in words, in JSON and in its exit code."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest

from agentwatch.agents.documents import EXAMPLES
from agentwatch.cli import run
from agentwatch.state import HISTORY, state_directory
from tests.closing import closed
from tests.homes import live_in


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A workspace with one task, which was handed off, of a user who has no programs."""
    live_in(tmp_path, monkeypatch)
    place = tmp_path / "shop"
    place.mkdir()
    (place / "job.handoff.md").write_text(f"```json\n{EXAMPLES['handoff-packet']}\n```\n")
    return place


def _database(tmp_path: Path) -> Path:
    place = tmp_path / ".local" / "share" / "opencode"
    place.mkdir(parents=True)
    return place / "opencode.db"


@contextmanager
def corrupt_database(workspace: Path) -> Iterator[None]:
    _database(workspace.parent).write_bytes(os.urandom(8192))
    yield


@contextmanager
def closed_store(workspace: Path) -> Iterator[None]:
    place = workspace.parent / ".claude" / "projects"
    place.mkdir(parents=True)
    with closed(place):
        yield


@contextmanager
def closed_directory(workspace: Path) -> Iterator[None]:
    (workspace / "specs").mkdir()
    with closed(workspace / "specs"):
        yield


@contextmanager
def corrupt_history(workspace: Path) -> Iterator[None]:
    state = state_directory(workspace)
    state.mkdir(parents=True)
    (state / HISTORY).write_bytes(b"broken" * 1000)
    yield


@contextmanager
def closed_state(workspace: Path) -> Iterator[None]:
    state = state_directory(workspace)
    state.mkdir(parents=True)
    with closed(state):
        yield


@contextmanager
def closed_ledger(workspace: Path) -> Iterator[None]:
    ledger = state_directory(workspace) / "decisions"
    ledger.mkdir(parents=True)
    with closed(ledger):
        yield


Trouble = Callable[[Path], AbstractContextManager[None]]

OF_SESSIONS: list[tuple[str, Trouble]] = [
    ("opencode", corrupt_database),
    ("claude-code", closed_store),
]
OF_FILES: list[tuple[str, Trouble]] = [
    ("files", closed_directory),
]
OF_OURS: list[tuple[str, Trouble]] = [
    ("history", corrupt_history),
    ("history", closed_state),
    ("decisions", closed_ledger),
]


def named(rows: list[tuple[str, Trouble]]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize(("source", "trouble"), rows, ids=[trouble.__name__ for _, trouble in rows])


def asked(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = run(words)
    out, err = capsys.readouterr()
    return code, out, err


def document(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, dict[str, Any]]:
    code, out, _ = asked(capsys, *words)
    return code, json.loads(out)


@named(OF_SESSIONS + OF_FILES + OF_OURS)
def test_tree_pending_and_report_say_what_they_could_not_see(
    workspace: Path, capsys: pytest.CaptureFixture[str], source: str, trouble: Trouble
) -> None:
    place = str(workspace)
    for words in (["tree", "--fail", place], ["pending", place], ["report", place]):
        assert asked(capsys, *words)[::2] == (0, "")
    assert asked(capsys, "pending", place)[1] == "nothing needs you\n"
    assert "Nothing needs a human" in asked(capsys, "report", place)[1]
    with trouble(workspace):
        for words, expected in (["tree", place], 0), (["tree", "--fail", place], 1), (["report", place], 1):
            code, _, err = asked(capsys, *words)
            assert code == expected, words
            assert "not all can be seen: " in err, words
        code, out, err = asked(capsys, "pending", place)
        assert (code, out) == (1, "nothing that can be seen needs you\n")
        assert "not all can be seen: " in err
        for words, expected in (["tree", "--json", place], 0), (["pending", "--json", place], 1):
            code, told = document(capsys, *words)
            assert (code, told["complete"]) == (expected, False)
            assert source in {problem["source"] for problem in told["problems"]}
            assert all(problem.keys() == {"source", "place", "message"} for problem in told["problems"])
        code, told = document(capsys, "report", "--format", "json", place)
        assert (code, told["complete"], bool(told["problems"])) == (1, False, True)
        assert "could not be read" in told["verdict"]
        for format_ in ("md", "html"):
            assert "Could not be read" in asked(capsys, "report", "--format", format_, place)[1]
    for words in (["tree", "--json", place], ["pending", "--json", place]):
        if source == "files":
            assert document(capsys, *words)[1]["problems"] == []
