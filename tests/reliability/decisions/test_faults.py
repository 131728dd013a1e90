"""Every system call fails in turn, once and for good: what is said stays true, and pressing again is always right."""

import errno
import shutil
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import TypeVar, cast

import pytest

from agentwatch.decisions.delivery import CLAIM, Claim, Mirror, ReceiptBook, mirror_missing
from agentwatch.decisions.errors import DecisionError, KeyMissingError, LedgerError, NotRecordedError, UncertainError
from agentwatch.decisions.keys import Keys
from agentwatch.decisions.ledger import DecisionMade, Ledger
from agentwatch.delegation.decision import Stage
from agentwatch.disk import Disk
from tests.reliability.decisions.disks import Failing
from tests.unit.decisions.made import QUICK, Operator

ERRORS = (errno.EIO, errno.ENOSPC, errno.EACCES)


Outcome = TypeVar("Outcome")


def outcome_of(do: Callable[[], Outcome]) -> Outcome | DecisionError:
    """The outcome, or the error in words."""
    try:
        return do()
    except DecisionError as error:
        return error


def cases(do: Callable[[Disk, int], object]) -> list[Failing]:
    """The disks that fail at each call that `do` makes on a sound one, in each way. `do` gets a fresh number, too."""
    counting = Failing()
    do(counting, -1)
    assert counting.count
    return [
        Failing(at, number, for_good=for_good)
        for at in range(1, counting.count + 1)
        for number in ERRORS
        for for_good in (False, True)
    ]


@pytest.fixture
def prepared(tmp_path):
    """An operator with one decision, of long ago."""
    operator = Operator(tmp_path / "prepared")
    operator.decide("before", created_at=datetime(2020, 1, 1, tzinfo=UTC))
    return operator


def fresh(prepared: Operator, number: int, disk: Disk, *, with_ledger: bool = True) -> Operator:
    """The same operator in another workspace, with one decision or none, on a disk that fails from now on."""
    root = prepared.root.parent / f"case-{number}"
    shutil.copytree(prepared.configuration, root / "configuration")
    operator = Operator(root)
    if with_ledger:
        operator.decide("before")
    return Operator(root, disk)


@pytest.mark.parametrize("with_ledger", [True, False], ids=["another one", "the very first"])
def test_a_decision(prepared, with_ledger):
    def do(disk: Disk, number: int) -> Operator:
        operator = fresh(prepared, number, disk, with_ledger=with_ledger)
        operator.decide("now")
        return operator

    outcomes = set()
    for number, disk in enumerate(cases(do)):
        operator = fresh(prepared, number, disk, with_ledger=with_ledger)
        outcome = outcome_of(lambda operator=operator: operator.decide("now"))
        if not isinstance(outcome, DecisionMade):
            assert isinstance(outcome, NotRecordedError | UncertainError | LedgerError)
            assert any(advice in str(outcome) for advice in ("check", "free space", "writable", "look at", "end it"))
        chain = operator.chain()
        there = [entry.record.task_id for entry in chain.entries]
        before = ["before"] if with_ledger else []
        assert chain.problems == ()
        assert there in (before, [*before, "now"])
        if isinstance(outcome, DecisionMade):
            assert there == [*before, "now"]
        elif isinstance(outcome, NotRecordedError):
            assert there == before
        # When the disk is well again, the same press counts once.
        again = Operator(operator.root).decide("now")
        assert again.doubt is None
        assert again.fresh is (there == before)
        assert [entry.record.task_id for entry in operator.chain().entries] == [*before, "now"]
        outcomes.add((type(outcome), isinstance(outcome, DecisionMade) and outcome.doubt is not None))
        shutil.rmtree(operator.root)
    # Each of them happens: recorded, recorded with a doubt, not recorded, and nobody can tell.
    assert {(DecisionMade, False), (DecisionMade, True), (NotRecordedError, False), (UncertainError, False)} <= outcomes


def test_delivery_fails_in_words_and_is_made_up_for(prepared):
    chain, (decision_id, entry) = prepared.chain(), next(iter(prepared.chain().latest.items()))

    def do(disk: Disk, number: int) -> Mirror:
        workspace = prepared.root.parent / f"workspace-{number}"
        workspace.mkdir(exist_ok=True)
        # The disk of the ledger is well.
        ledger = SimpleNamespace(disk=disk, workspace_id=prepared.workspace_id, bytes_of=prepared.ledger.bytes_of)
        return mirror_missing(workspace, cast("Ledger", ledger), chain, prepared.trust)

    for number, disk in enumerate(cases(do)):
        mirror = do(disk, number)
        assert mirror.pending == ((decision_id,) if mirror.reason else ())
        workspace = prepared.root.parent / f"workspace-{number}"
        place = workspace / ".agentwatch" / "decisions"
        if not mirror.pending:
            names = {f"{decision_id}.json", f"{decision_id}.md"}
            assert {path.name for path in place.iterdir() if not path.name.startswith(".")} == names
        assert do(QUICK, number) == Mirror()
        assert (place / f"{decision_id}.json").read_bytes() == prepared.ledger.bytes_of(entry)
        shutil.rmtree(workspace)


@pytest.mark.parametrize("stage", [CLAIM, "read.wait"])
def test_a_receipt_is_told_somewhere_or_refused_in_words(prepared, stage):
    record = prepared.chain().entries[0].record

    def root_of(number: int) -> Path:
        return prepared.root.parent / f"receipts-{number}"

    def book(number: int, disk: Disk) -> ReceiptBook:
        return ReceiptBook(root_of(number) / "workspace", root_of(number) / "state", disk)

    def do(disk: Disk, number: int) -> Claim | DecisionError:
        (root_of(number) / "workspace").mkdir(parents=True)
        return outcome_of(lambda: book(number, disk).mark(record.decision_id, stage, "one", since=record.created_at))

    for number, disk in enumerate(cases(do)):
        outcome = do(disk, number)
        won = isinstance(outcome, Claim) and outcome.won
        assert won or "can be written" in str(outcome)
        if won:
            assert book(number, QUICK).read([record])[record.decision_id][-1].stage is Stage.READ
            # Of two that claim one wins at most.
            again = book(number, QUICK).mark(record.decision_id, stage, "two", since=record.created_at)
            assert not again.won or stage != CLAIM
        shutil.rmtree(root_of(number))


def test_a_key_is_made_or_replaced_without_losing_one(prepared):
    def root_of(number: int) -> Path:
        root = prepared.root.parent / f"keys-{number}"
        shutil.copytree(prepared.configuration, root)
        return root

    def rotate(disk: Disk, number: int):
        Keys(root_of(number), disk).rotate()

    def create(disk: Disk, number: int):
        Keys(prepared.root.parent / f"new-{number}", disk).create()

    old = prepared.keys.show()
    for number, disk in enumerate(cases(rotate)):
        root = root_of(number)
        outcome = outcome_of(Keys(root, disk).rotate)
        assert not isinstance(outcome, DecisionError) or str(root) in str(outcome)
        keys = Keys(root, QUICK)
        current = keys.load().public
        assert old.keyid in keys.trust().signing
        assert keys.trust().keys[-1].public == current == keys.show()
        # The decisions of before stay valid.
        assert prepared.ledger.read(keys.trust()).problems == ()
        shutil.rmtree(root)
    for number, disk in enumerate(cases(create)):
        root = prepared.root.parent / f"new-{number}"
        assert not isinstance(outcome_of(Keys(root, disk).create), KeyMissingError)
        keys = Keys(root, QUICK)
        made = keys.create()
        assert keys.load().public == made.public == keys.show()
        shutil.rmtree(root, ignore_errors=True)
