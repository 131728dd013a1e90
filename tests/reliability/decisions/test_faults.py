"""Each system call fails in turn, once or from then on: messages stay true, and a second try is always right."""

import errno
import os
import shutil
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import pytest

from agentwatch.decisions.delivery import CLAIM, Claim, Mirror, ReceiptBook, deliver_missing
from agentwatch.decisions.errors import DecisionError, KeyMissingError, LedgerError, NotRecordedError, UncertainError
from agentwatch.decisions.keys import Keys
from agentwatch.decisions.ledger import DecisionMade, Ledger
from agentwatch.decisions.record import Record
from agentwatch.delegation.decision import RequestStage, Stage
from agentwatch.disk import Disk
from agentwatch.requests.store import RequestError
from tests.unit.decisions.made import QUICK, Operator, Quick
from tests.unit.requests.asked import Place, request

ERRORS = (errno.EIO, errno.ENOSPC, errno.EACCES)
CALLS = "open close read write fsync link rename unlink mkdir stat fstat listdir flock".split()  # noqa: SIM905


class Failing(Quick):
    """The `at`-th call fails with `number`, and with `for_good` all later calls, too. 0 only counts the calls."""

    def __init__(self, at: int = 0, number: int = errno.EIO, *, for_good: bool = False):
        self.count = 0
        for name in CALLS:
            setattr(self, name, self._failing(getattr(QUICK, name), name, at, number, for_good))

    def _failing(self, call: Callable[..., Any], name: str, at: int, number: int, for_good: bool) -> Callable[..., Any]:
        def do(*arguments: Any, **named: Any) -> Any:
            self.count += 1
            if at and (self.count == at or (for_good and self.count > at)):
                if name == "close":
                    # The system closes the descriptor even if it reports an error.
                    call(*arguments, **named)
                raise OSError(number, os.strerror(number))
            return call(*arguments, **named)

        return do


Outcome = TypeVar("Outcome")


def outcome_of(do: Callable[[], Outcome]) -> Outcome | DecisionError:
    """Return the outcome, or the error."""
    try:
        return do()
    except DecisionError as error:
        return error


def cases(do: Callable[[Disk, int], object]) -> list[Failing]:
    """Return a disk for each call that `do` makes and each way to fail at it. `do` also gets a number of its own."""
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
    """Return an operator with one decision from long ago."""
    operator = Operator(tmp_path / "prepared")
    operator.decide("before", created_at=datetime(2020, 1, 1, tzinfo=UTC))
    return operator


def fresh(prepared: Operator, number: int, disk: Disk, *, with_ledger: bool = True) -> Operator:
    """Return the operator in another workspace, with one decision or none, on a disk that may fail from now on."""
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
        # On a sound disk the same action records the decision once.
        again = Operator(operator.root).decide("now")
        assert again.doubt is None
        assert again.fresh is (there == before)
        assert [entry.record.task_id for entry in operator.chain().entries] == [*before, "now"]
        outcomes.add((type(outcome), isinstance(outcome, DecisionMade) and outcome.doubt is not None))
        shutil.rmtree(operator.root)
    # Each of these happens: recorded, recorded with a doubt, not recorded, and uncertain.
    assert {(DecisionMade, False), (DecisionMade, True), (NotRecordedError, False), (UncertainError, False)} <= outcomes


def test_a_failed_delivery_is_explained_and_made_later(prepared):
    chain, (decision_id, entry) = prepared.chain(), next(iter(prepared.chain().latest.items()))

    def do(disk: Disk, number: int) -> Mirror:
        workspace = prepared.root.parent / f"workspace-{number}"
        workspace.mkdir(exist_ok=True)
        ledger = Ledger(prepared.state, prepared.workspace_id, disk)
        return deliver_missing(workspace, ledger, chain, prepared.trust)

    for number, disk in enumerate(cases(do)):
        mirror = do(disk, number)
        assert mirror.pending == ((decision_id,) if mirror.reason else ())
        workspace = prepared.root.parent / f"workspace-{number}"
        place = workspace / ".agentwatch" / "decisions"
        if not mirror.pending:
            names = {f"{decision_id}.json", f"{decision_id}.md"}
            assert {path.name for path in place.iterdir() if not path.name.startswith(".")} == names
        assert do(QUICK, number) == Mirror()
        assert (place / f"{decision_id}.json").read_bytes() == prepared.ledger.read_bytes(entry)
        shutil.rmtree(workspace)


@pytest.mark.parametrize("stage", [CLAIM, "read.wait"])
def test_a_receipt_is_written_somewhere_or_refused_in_words(prepared, stage):
    record = prepared.chain().entries[0].record

    def mark(number: int, disk: Disk, by: str = "one") -> Claim | DecisionError:
        root = prepared.root.parent / f"receipts-{number}"
        (root / "workspace").mkdir(parents=True, exist_ok=True)
        book = ReceiptBook(root / "workspace", root / "state", disk)
        outcome = outcome_of(lambda: book.write_receipt(record.decision_id, stage, by, since=record.created_at))
        assert isinstance(outcome, Claim) or "can be written" in str(outcome)
        return outcome

    for number, disk in enumerate(cases(lambda disk, number: mark(number, disk))):
        outcome = mark(number, disk)
        root = prepared.root.parent / f"receipts-{number}"
        if isinstance(outcome, Claim):
            assert outcome.won
            told = ReceiptBook(root / "workspace", root / "state", QUICK).read([record])
            assert told[record.decision_id][-1].stage is Stage.READ
            # At most one of two claims wins.
            again = mark(number, QUICK, "two")
            assert stage != CLAIM or (isinstance(again, Claim) and not again.won)
        shutil.rmtree(root)


def test_a_key_is_made_or_replaced_without_losing_one(prepared):
    def copied(number: int) -> Path:
        return Path(shutil.copytree(prepared.configuration, prepared.root.parent / f"keys-{number}"))

    def new(number: int) -> Path:
        return prepared.root.parent / f"new-{number}"

    old = prepared.keys.show()
    for number, disk in enumerate(cases(lambda disk, number: Keys(copied(number), disk).rotate())):
        root = copied(number)
        outcome = outcome_of(Keys(root, disk).rotate)
        assert not isinstance(outcome, DecisionError) or str(root) in str(outcome)
        keys = Keys(root, QUICK)
        assert keys.load().public == keys.trust().keys[-1].public == keys.show()
        assert old.keyid in keys.trust().signers
        # Earlier decisions stay valid.
        assert prepared.ledger.read(keys.trust()).problems == ()
        shutil.rmtree(root)
    for number, disk in enumerate(cases(lambda disk, number: Keys(new(number), disk).create())):
        assert not isinstance(outcome_of(Keys(new(number), disk).create), KeyMissingError)
        keys = Keys(new(number), QUICK)
        made = keys.create()
        assert keys.load().public == made.public == keys.show()
        shutil.rmtree(new(number), ignore_errors=True)


# A request and its answer


def took(place: Place, disk: Disk) -> Record | None:
    """Return the record that a holder on this disk gets. The operator's disk is sound."""
    asked, holder = request(place.workspace), place.holder(disk=disk)
    try:
        with holder.store.offer(asked) as offer:
            place.answer(asked)
            record = holder.take_answer(offer)
            if record is not None:
                assert record.decision_id == asked.request_id
                holder.record_delivered(record)
                offer.end(RequestStage.DELIVERED, by=record.operator)
            else:
                assert holder.trouble or not offer.is_unreplaced()
    except RequestError:
        record = None
    # The file that is left is valid, and nobody holds the request any more.
    left = place.store.find(asked.request_id)
    assert place.store.problems == []
    assert left is None or not left.is_open
    if record is not None:
        with place.store.offer(asked) as again:
            assert place.holder().take_answer(again) is None
    return record


def test_an_answer_is_given_to_its_request_once_or_not_at_all(tmp_path):
    counts = {True: 0, False: 0}
    for number, disk in enumerate(cases(lambda disk, _: took(Place(tmp_path / "sound"), disk))):
        if number % 10 == 0:
            place = Place(tmp_path / f"{number}")
        counts[took(place, disk) is not None] += 1
    assert min(counts.values()) > 20
