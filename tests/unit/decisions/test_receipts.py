"""How far a decision has got: told once, by whom and when, and claims told apart from what was seen."""

from __future__ import annotations

import errno
import json
import os
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from agentwatch.decisions.receipts import Claim, ReceiptBook, ReceiptError
from agentwatch.decisions.record import Record, written
from agentwatch.delegation.decision import Receipt, Stage
from agentwatch.disk import Disk
from tests.unit.decisions.made import NOON, QUICK, record
from tests.unit.decisions.test_ledger import failing

RECORD = record()
ID = RECORD.decision_id
NOW = "2030-01-01T12:00:00Z"


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    place = tmp_path / "workspace"
    place.mkdir()
    return place


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return tmp_path / "state"


def claims_of(workspace: Path) -> Path:
    place = workspace / ".agentwatch" / "receipts"
    place.mkdir(parents=True)
    return place


def of(book: ReceiptBook, one: Record) -> tuple[Receipt, ...]:
    return book.read([one])[one.decision_id]


def sandboxed(workspace: Path, state: Path) -> ReceiptBook:
    """For an agent that may write into the workspace only."""

    class Sandbox(type(QUICK)):  # type: ignore[misc]
        def open(self, path: Any, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
            if dir_fd is None and Path(path).is_relative_to(state):
                raise OSError(errno.EROFS, "Read-only file system")
            return os.open(path, flags, mode, dir_fd=dir_fd)

    return ReceiptBook(workspace, state, Sandbox())


def test_stages_follow_one_another(workspace: Path, state: Path) -> None:
    book = ReceiptBook(workspace, state, QUICK)
    book.mark(ID, Stage.ACTED, "agentwatch", now=NOON)
    book.mark(ID, Stage.DELIVERED, "agentwatch", now=NOON)
    book.mark(ID, Stage.READ, "orchestrator", reader="wait", now=NOON)
    book.mark(ID, Stage.READ, "a server", reader="mcp", now=NOON + timedelta(seconds=1))
    receipts = of(book, RECORD)
    assert [one.stage for one in receipts] == list(Stage)
    assert receipts[-2:] == (
        Receipt(Stage.READ, NOON.timestamp(), "orchestrator"),
        Receipt(Stage.ACTED, NOON.timestamp(), "agentwatch", claimed=True),
    )
    assert of(book, RECORD) == receipts
    assert sorted(path.name for path in (state / "receipts").iterdir()) == [
        f"{ID}.acted.json",
        f"{ID}.delivered.json",
        f"{ID}.read.mcp.json",
        f"{ID}.read.wait.json",
    ]
    assert list(workspace.iterdir()) == []


def test_an_agent_in_a_sandbox_can_claim_and_it_is_labelled_so(workspace: Path, state: Path) -> None:
    sandboxed(workspace, state).mark(ID, Stage.READ, "agent", reader="wait", now=NOON)
    assert (workspace / ".agentwatch" / ".gitignore").exists()
    book = ReceiptBook(workspace, state, QUICK)
    assert of(book, RECORD)[-1] == Receipt(Stage.READ, NOON.timestamp(), "agent", claimed=True)
    # What agentwatch saw itself comes before a claim of the same stage.
    book.mark(ID, Stage.READ, "hook", reader="hook", now=NOON + timedelta(seconds=1))
    assert of(book, RECORD)[-1] == Receipt(Stage.READ, NOON.timestamp() + 1, "hook")


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{}",
        b"[]",
        b"[" * 5_000,
        b'{"by": 1, "at": "2030-01-01T12:00:00Z"}',
        b'{"by": "x", "at": null}',
        b'{"by": "x", "at": "whenever"}',
        b"x" * 10_000,
        b"\xff",
    ],
)
def test_a_claim_that_says_nothing_is_none(workspace: Path, state: Path, content: bytes) -> None:
    place = claims_of(workspace)
    (place / f"{ID}.read.json").write_bytes(content)
    assert of(ReceiptBook(workspace, state), RECORD)[-1].stage is Stage.RECORDED


def test_who_claims_to_have_acted_has_read_and_no_more(workspace: Path, state: Path) -> None:
    (claims_of(workspace) / f"{ID}.acted.json").write_text(json.dumps({"by": "agentwatch", "at": NOW}))
    told = of(ReceiptBook(workspace, state), RECORD)[-1]
    assert told == Receipt(Stage.READ, NOON.timestamp(), "agentwatch", claimed=True)


@pytest.mark.parametrize("stage", ["delivered", "read", "acted", "claim"])
def test_a_receipt_that_is_older_than_its_decision_is_refused(workspace: Path, state: Path, stage: str) -> None:
    (state / "receipts").mkdir(parents=True)
    for place in (claims_of(workspace), state / "receipts"):
        (place / f"{ID}.{stage}.json").write_text(json.dumps({"by": "x", "at": "2030-01-01T11:59:59Z"}))
    assert of(ReceiptBook(workspace, state), RECORD)[-1].stage is Stage.RECORDED


def test_an_attempt_that_is_decided_anew_has_receipts_of_its_own(workspace: Path, state: Path) -> None:
    """The id is the same: whoever read, acted on or claimed the decision that has expired did so with that one."""
    book, later = ReceiptBook(workspace, state, QUICK), NOON + timedelta(days=8)
    anew = record(created_at=written(later))
    assert anew.decision_id == ID
    for now, since in ((NOON, NOW), (later, anew.created_at)):
        for stage in (Stage.DELIVERED, Stage.READ, Stage.ACTED):
            book.mark(ID, stage, "x", reader="hook-claude", now=now, since=since)
        assert book.claim(ID, "one", now, since=since) == Claim(won=True, by="one", at=since, proof=True)
        assert not book.claim(ID, "two", now, since=since).won
    told = of(ReceiptBook(workspace, state), anew)
    assert {one.at for one in told} == {later.timestamp()}
    assert {one.stage for one in told} == set(Stage)


def test_what_may_not_write_into_the_workspace_says_so(workspace: Path, state: Path) -> None:
    book = ReceiptBook(workspace, state, QUICK, read_only=True)
    with pytest.raises(ReceiptError, match="told to write nothing"):
        book.mark(ID, Stage.READ, "x", inside=True)
    book.mark(ID, Stage.READ, "x", now=NOON)
    assert of(book, RECORD)[-1] == Receipt(Stage.READ, NOON.timestamp(), "x")
    assert book.claim(ID, "one", NOON) == Claim(won=True, by="one", at=NOW, proof=True)
    assert list(workspace.iterdir()) == []


@pytest.mark.parametrize(("at", "won"), [(NOW, False), ("whenever", False), ("2030-01-01T11:59:59Z", True)])
def test_who_claimed_in_a_workspace_that_may_not_be_written_any_more_is_heard(
    workspace: Path, state: Path, at: str, *, won: bool
) -> None:
    (claims_of(workspace) / f"{ID}.claim.json").write_text(json.dumps({"by": "inside", "at": at}))
    assert ReceiptBook(workspace, state, QUICK, read_only=True).claim(ID, "one", NOON, since=NOW).won is won


@pytest.mark.parametrize(("before", "stage"), [(199, Stage.READ), (200, Stage.RECORDED)])
def test_only_so_many_receipts_of_a_decision_are_looked_at(
    workspace: Path, state: Path, before: int, stage: Stage
) -> None:
    place = claims_of(workspace)
    for number in range(before):
        (place / f"{ID}.read.{number:03}.json").write_text("{}")
    (place / f"{ID}.read.{before:03}.json").write_text(json.dumps({"by": "x", "at": NOW}))
    assert of(ReceiptBook(workspace, state), RECORD)[-1].stage is stage


def test_a_link_in_the_place_of_the_claims_is_not_followed(workspace: Path, state: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / f"{ID}.acted.json").write_text("{}")
    (workspace / ".agentwatch").mkdir()
    (workspace / ".agentwatch" / "receipts").symlink_to(outside)
    assert of(ReceiptBook(workspace, state), RECORD)[-1].stage is Stage.RECORDED
    with pytest.raises(ReceiptError, match="remove it"):
        sandboxed(workspace, state).mark(ID, Stage.READ, "agent")
    assert len(list(outside.iterdir())) == 1


def nowhere() -> Disk:
    return failing(mkdir=errno.EROFS)


def test_where_nothing_can_be_written_it_is_said(workspace: Path, state: Path) -> None:
    book = ReceiptBook(workspace, state, nowhere())
    with pytest.raises(ReceiptError, match=r"no receipt can be written.*the decision itself is not touched"):
        book.mark(ID, Stage.READ, "agent")
    with pytest.raises(ReceiptError, match=r"nobody can claim.*make it writable"):
        book.claim(ID, "agent")


def test_exactly_one_claims(workspace: Path, state: Path) -> None:
    def claim(number: int) -> Claim:
        return ReceiptBook(workspace, state, QUICK).claim(ID, f"agent {number}", NOON)

    with ThreadPoolExecutor(16) as pool:
        claims = list(pool.map(claim, range(64)))
    winners = [one for one in claims if one.won]
    assert len(winners) == 1
    assert {(one.by, one.at) for one in claims} == {(winners[0].by, NOW)}
    assert winners[0].proof
    # It is known to be read, not yet to be done.
    assert of(ReceiptBook(workspace, state), RECORD)[-1].stage is Stage.READ


def test_one_inside_a_sandbox_and_one_outside_never_both_win(workspace: Path, state: Path) -> None:
    inside, outside = sandboxed(workspace, state), ReceiptBook(workspace, state, QUICK)
    assert inside.claim(ID, "inside", NOON) == Claim(won=True, by="inside", at=NOW, proof=False)
    assert outside.claim(ID, "outside") == Claim(won=False, by="inside", at=NOW, proof=False)
    other = record(task_id="other").decision_id
    assert outside.claim(other, "outside", NOON) == Claim(won=True, by="outside", at=NOW, proof=True)
    assert not inside.claim(other, "inside").won


def test_who_is_inside_of_a_sandbox_only_claims_even_where_a_state_directory_can_be_written(
    workspace: Path, state: Path
) -> None:
    book = ReceiptBook(workspace, state, QUICK)
    book.mark(ID, Stage.READ, "a", reader="wait", inside=True, now=NOON)
    assert of(book, RECORD)[-1].claimed
    assert not state.exists()


def test_without_a_workspace_to_write_the_state_directory_decides(workspace: Path, state: Path) -> None:
    (workspace / ".agentwatch").write_text("in the way")
    book = ReceiptBook(workspace, state, QUICK)
    assert book.claim(ID, "one", NOON) == Claim(won=True, by="one", at=NOW, proof=True)
    assert book.claim(ID, "two") == Claim(won=False, by="one", at=NOW, proof=True)


def test_what_killed_writers_left_is_tidied(workspace: Path, state: Path) -> None:
    book = ReceiptBook(workspace, state, QUICK)
    book.tidy()
    book.mark(ID, Stage.DELIVERED, "agentwatch")
    old = state / "receipts" / ".writing-0"
    old.write_text("half")
    os.utime(old, (1_000, 1_000))
    book.tidy()
    assert not old.exists()
