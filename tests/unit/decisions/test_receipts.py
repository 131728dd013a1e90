"""How far a decision has got: told once, by whom and when, and claims told apart from what was seen."""

import errno
import json
import os
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from agentwatch.decisions.delivery import CLAIM, Claim, ReceiptBook, ReceiptError
from agentwatch.decisions.record import written
from agentwatch.delegation.decision import Receipt, Stage
from tests.unit.decisions.made import NOON, QUICK, at, record
from tests.unit.decisions.test_ledger import failing

RECORD = record()
ID = RECORD.decision_id
NOW = "2030-01-01T12:00:00Z"


@pytest.fixture(autouse=True)
def _noon():
    with at(NOON):
        yield


@pytest.fixture
def workspace(tmp_path):
    place = tmp_path / "workspace"
    place.mkdir()
    return place


@pytest.fixture
def book(workspace):
    return ReceiptBook(workspace, workspace.parent / "state", QUICK)


def claims_of(workspace: Path, **files: str) -> Path:
    """The directory that agents write in, with receipts of the decision."""
    place = workspace / ".agentwatch" / "receipts"
    place.mkdir(parents=True)
    for kind, text in files.items():
        (place / f"{ID}.{kind}.json").write_text(text)
    return place


def told(book: ReceiptBook) -> tuple[Receipt, ...]:
    return book.read([RECORD])[ID]


def sandboxed(workspace: Path) -> ReceiptBook:
    """For an agent that may write into the workspace only."""
    state = workspace.parent / "state"

    class Sandbox(type(QUICK)):  # type: ignore[misc]
        def open(self, path: Any, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
            if dir_fd is None and Path(path).is_relative_to(state):
                raise OSError(errno.EROFS, "Read-only file system")
            return os.open(path, flags, mode, dir_fd=dir_fd)

    return ReceiptBook(workspace, state, Sandbox())


def test_the_first_to_tell_a_stage_is_believed(book, workspace):
    for stage in (Stage.ACTED, Stage.DELIVERED):
        book.mark(ID, stage, "agentwatch", since=NOW)
    book.mark(ID, "read.wait", "orchestrator", since=NOW)
    with at(NOON + timedelta(seconds=1)):
        book.mark(ID, "read.mcp", "a server", since=NOW)
        book.mark(ID, Stage.DELIVERED, "again", since=NOW)
    receipts = told(book)
    assert [one.stage for one in receipts] == list(Stage)
    assert [one.by for one in receipts] == ["ada", "agentwatch", "orchestrator", "agentwatch"]
    # Only what comes after an action shows it.
    assert [one.claimed for one in receipts] == [False, False, False, True]
    assert {one.at for one in receipts} == {NOON.timestamp()}
    names = sorted(path.name for path in (workspace.parent / "state" / "receipts").iterdir())
    assert names == [f"{ID}.{kind}.json" for kind in ("acted", "delivered", "read.mcp", "read.wait")]


def test_an_agent_claims_and_what_was_seen_comes_first(book, workspace):
    inside = sandboxed(workspace)
    inside.mark(ID, "read.wait", "agent", since=NOW)
    assert told(book)[-1] == Receipt(Stage.READ, NOON.timestamp(), "agent", claimed=True)
    with at(NOON + timedelta(seconds=1)):
        book.mark(ID, "read.hook", "hook", since=NOW)
    assert told(book)[-1] == Receipt(Stage.READ, NOON.timestamp() + 1, "hook")
    # Nothing private gets there.
    with pytest.raises(ReceiptError, match="can be written"):
        inside.mark(ID, Stage.DELIVERED, "x", since=NOW, private=True)
    assert len(list((workspace / ".agentwatch" / "receipts").iterdir())) == 1


@pytest.mark.parametrize(
    ("kind", "content", "stage"),
    [
        ("acted", {"by": "agentwatch", "at": NOW}, Stage.READ),
        ("claim", {"by": "agent", "at": NOW}, Stage.READ),
        ("read", {"by": "x", "at": "2030-01-01T11:59:59Z"}, Stage.RECORDED),
        ("claim", {"by": "x", "at": "2030-01-01T11:59:59Z"}, Stage.RECORDED),
        ("read", {"by": 1, "at": NOW}, Stage.RECORDED),
        ("read", {"by": "x", "at": "whenever"}, Stage.RECORDED),
        ("read", {"at": NOW}, Stage.RECORDED),
        ("read", [], Stage.RECORDED),
        ("read", "x" * 10_000, Stage.RECORDED),
        ("unknown", {"by": "x", "at": NOW}, Stage.RECORDED),
    ],
)
def test_what_agents_write_is_that_they_have_read(book, workspace, kind, content, stage):
    claims_of(workspace, **{kind: json.dumps(content)})
    assert told(book)[-1].stage is stage
    assert told(book)[-1].taken_by == ("agent" if kind == "claim" and stage is Stage.READ else "")


def test_what_is_decided_anew_has_its_own_receipts(book):
    """The id is the same: whoever read, acted on or claimed the decision that has expired did so with that one."""
    later = NOON + timedelta(days=8)
    anew = record(created_at=written(later))
    assert anew.decision_id == ID
    for now, since in ((NOON, NOW), (later, anew.created_at)):
        with at(now):
            for stage in (Stage.DELIVERED, "read.hook-claude", Stage.ACTED):
                book.mark(ID, stage, "x", since=since)
            assert book.mark(ID, CLAIM, "one", since=since) == Claim(won=True, by="one", at=since)
            assert not book.mark(ID, CLAIM, "two", since=since).won
    receipts = book.read([anew])[ID]
    assert {(one.stage, one.at) for one in receipts} == {(stage, later.timestamp()) for stage in Stage}


def test_nothing_is_written_into_a_workspace_that_is_only_read(workspace):
    book = ReceiptBook(workspace, workspace.parent / "state", QUICK, read_only=True)
    with pytest.raises(ReceiptError, match="told to write nothing"):
        book.mark(ID, Stage.READ, "x", inside=True, since=NOW)
    book.mark(ID, Stage.READ, "x", since=NOW)
    assert told(book)[-1] == Receipt(Stage.READ, NOON.timestamp(), "x")
    assert book.mark(ID, CLAIM, "one", since=NOW) == Claim(won=True, by="one", at=NOW)
    assert list(workspace.iterdir()) == []


def test_a_link_in_the_place_of_the_claims_is_not_followed(book, workspace):
    outside = workspace.parent / "outside"
    outside.mkdir()
    (outside / f"{ID}.acted.json").write_text("{}")
    (workspace / ".agentwatch").mkdir()
    (workspace / ".agentwatch" / "receipts").symlink_to(outside)
    assert told(book)[-1].stage is Stage.RECORDED
    with pytest.raises(ReceiptError, match="remove it"):
        sandboxed(workspace).mark(ID, Stage.READ, "agent", since=NOW)
    assert len(list(outside.iterdir())) == 1


def test_where_nothing_can_be_written_it_is_said(workspace):
    book = ReceiptBook(workspace, workspace.parent / "state", failing(mkdir=errno.EROFS))
    for stage in (Stage.READ, CLAIM):
        with pytest.raises(ReceiptError, match=r"the decision holds.*make it writable"):
            book.mark(ID, stage, "agent", since=NOW)


def test_exactly_one_claims(book):
    with ThreadPoolExecutor(16) as pool:
        claims = list(pool.map(lambda number: book.mark(ID, CLAIM, f"agent {number}", since=NOW), range(64)))
    (winner,) = [one for one in claims if one.won]
    assert {(one.by, one.at) for one in claims} == {(winner.by, NOW)}
    # It is known to be read, not yet to be done.
    assert told(book)[-1].stage is Stage.READ


def test_one_inside_a_sandbox_and_one_outside_never_both_win(book, workspace):
    inside = sandboxed(workspace)
    assert inside.mark(ID, CLAIM, "inside", since=NOW) == Claim(won=True, by="inside", at=NOW)
    assert book.mark(ID, CLAIM, "outside", since=NOW) == Claim(won=False, by="inside", at=NOW)
    other = record(task_id="other").decision_id
    assert book.mark(other, CLAIM, "outside", since=NOW) == Claim(won=True, by="outside", at=NOW)
    assert not inside.mark(other, CLAIM, "inside", since=NOW).won


def test_nobody_wins_where_an_agent_has_taken_both_names(book, workspace):
    old = json.dumps({"by": "x", "at": "2030-01-01T11:00:00Z"})
    claims_of(workspace, **{"claim": old, "claim.20300101t120000z": old})
    assert not book.mark(ID, CLAIM, "one", since=NOW).won


def test_without_a_workspace_the_state_directory_decides(book, workspace):
    (workspace / ".agentwatch").write_text("in the way")
    assert book.mark(ID, CLAIM, "one", since=NOW) == Claim(won=True, by="one", at=NOW)
    assert book.mark(ID, CLAIM, "two", since=NOW) == Claim(won=False, by="one", at=NOW)
