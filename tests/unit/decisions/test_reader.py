"""The agents' side: a decision is verified or not there yet, from the ledger or from the mirror, and never guessed."""

import errno
import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from agentwatch.decisions.delivery import CLAIM, Claim, ReceiptBook, ReceiptError, deliver_missing
from agentwatch.decisions.ledger import ProblemKind
from agentwatch.decisions.reader import MIRROR, LookupResult, Question, Reader, question_about
from agentwatch.decisions.record import Params, Record, format_time
from agentwatch.delegation.decision import Action, Receipt, Stage
from agentwatch.delegation.tree import Tree
from tests.unit.decisions.made import NOON, QUICK, RETURN, Closed, Operator, at, record
from tests.unit.decisions.test_ledger import disk, error

PLACE = Path(".agentwatch") / "decisions"
PUBLIC = "AGENTWATCH_PUBLIC_KEY"
ABOUT_A = Question("a")


@pytest.fixture
def operator(tmp_path):
    return Operator(tmp_path)


def decide(operator: Operator, task: str, **changes: Any) -> Record:
    made = operator.decide(task, **changes)
    deliver_missing(operator.workspace, operator.ledger, operator.chain(), operator.trust)
    return made.record


def outside(operator: Operator, **changes: Any) -> Reader:
    """Return the reader of an agent that can see the ledger."""
    values: dict[str, Any] = {"state": operator.state, "configuration": operator.configuration, "environment": {}}
    return Reader(operator.workspace, "wait", **(values | {"disk": QUICK} | changes))


def inside(operator: Operator, **changes: Any) -> Reader:
    """Return the reader of an agent in a sandbox that shows only the workspace."""
    nowhere = operator.root / "nowhere"
    values = {"environment": {PUBLIC: operator.key.public.text}, "state": nowhere, "configuration": nowhere}
    return outside(operator, **(values | changes))


@pytest.mark.parametrize("how", ["gone", "closed", "never there"])
def test_with_the_private_key_only_the_ledger_counts(operator, how):
    """The operator may have decided the opposite since, and an agent may have kept an old copy in the workspace."""
    made, changes = decide(operator, "a"), dict[str, Any]()
    if how == "gone":
        operator.ledger.directory.rename(operator.root / "lost")
    elif how == "closed":
        changes = {"state": operator.state, "disk": Closed(operator.ledger.directory, errno.EACCES)}
    else:
        changes = {"state": operator.root / "new"}
    found = outside(operator, **changes).find(ABOUT_A)
    assert found.any_record is None
    assert "is gone or cannot be read: put it back, or decide again" in found.refused[0].message
    # In a sandbox that has the public key only, the ledger is hidden, and the mirror counts.
    found = inside(operator, **changes).find(ABOUT_A)
    assert (found.record, found.place) == (made, MIRROR)


def test_a_decision_that_was_carried_out_answers_no_more(operator):
    called = decide(operator, "a", action=Action.ESCALATE, params=Params(mode="fitter")).decision_id
    question = Question("a", 1, (RETURN,), over=frozenset({called}))
    readers = outside(operator), inside(operator)
    assert [one.find(question).any_record for one in readers] == [None, None]
    after = decide(operator, "a", subject=operator.subject("a")._replace(after=called))
    assert after.after == called
    # Only a call for the fitter ends this way: naming another decision in a handoff does not remove it.
    again = question._replace(over=frozenset({called, after.decision_id}))
    assert [one.find(asked).record for one in readers for asked in (question, again)] == [after] * 4
    assert outside(operator).find(question._replace(carried_out=frozenset({after.decision_id}))).any_record is None


def test_a_program_gets_only_its_own_task_of_a_shared_id(operator):
    made = decide(operator, "a#codex")
    found = [outside(operator).find(Question("a", program=name)).record for name in ("codex", "qwen-code", "")]
    assert found == [made, None, None]


@pytest.mark.parametrize(("task", "is_final", "holds"), [("a", True, True), ("a", False, False), ("b", True, False)])
def test_only_an_abort_answers_the_final_report(operator, task, is_final, holds):
    decide(operator, "a", action=Action.ABORT)
    decide(operator, "b")
    found = outside(operator).find(Question(task, 1, ("0" * 64,), is_final=is_final))
    assert (found.record is not None) is holds


def test_without_a_key_no_decision_can_be_verified(operator):
    decide(operator, "a")
    blind = inside(operator, environment={})
    assert blind.find(ABOUT_A).refused
    for path in (operator.workspace / PLACE).iterdir():
        path.unlink()
    found = blind.find(ABOUT_A)
    assert (found.any_record, found.refused, PUBLIC in found.detail) == (None, (), True)


def test_hidden_keys_do_not_hide_those_that_were_given(operator):
    made = decide(operator, "a")
    operator.keys.directory.chmod(0o777)
    assert outside(operator).find(ABOUT_A).refused
    given = outside(operator, environment={PUBLIC: operator.key.public.text})
    assert given.find(ABOUT_A).record == made


def test_a_workspace_that_is_mounted_elsewhere_can_be_named(operator):
    made, mounted, nowhere = decide(operator, "a"), operator.root / "mounted", operator.root / "nowhere"
    operator.workspace.rename(mounted)
    environment = {PUBLIC: operator.key.public.text}
    reader = Reader(mounted, state=nowhere, configuration=nowhere, environment=environment)
    found = reader.find(ABOUT_A)
    assert (found.any_record, bool(found.refused)) == (None, True)
    environment |= {"AGENTWATCH_WORKSPACE_ID": operator.workspace_id}
    assert Reader(mounted, state=nowhere, environment=environment).find(ABOUT_A).record == made


def test_an_unreadable_workspace_is_reported(operator):
    decide(operator, "a")
    (operator.workspace / ".agentwatch").rename(operator.root / "elsewhere")
    (operator.workspace / ".agentwatch").symlink_to(operator.root / "elsewhere")
    (problem,) = inside(operator).find(ABOUT_A).refused
    assert (problem.kind, "is a link or no directory" in problem.message) == (ProblemKind.UNREADABLE, True)


def waited(reader: Reader, limit: float, happens: dict[float, Callable[[], object]]) -> tuple[LookupResult, float]:
    """Return the outcome of a wait for the task `a` and its seconds, while these acts happen at their times."""
    now = 0.0

    def sleep(seconds: float):
        nonlocal now
        assert 0 < seconds <= 0.2
        now += seconds
        for moment in [one for one in happens if one <= now]:
            happens.pop(moment)()

    return reader.wait(ABOUT_A, limit, lambda: now, sleep), now


@pytest.mark.parametrize("side", [outside, inside])
def test_waiting_ends_with_the_decision_and_with_no_fake(operator, side):
    decide(operator, "other")
    for limit in (3, 0):
        found, seconds = waited(side(operator), limit, {})
        assert (found.any_record, found.refused, seconds) == (None, (), pytest.approx(limit)), "neither yes nor no"
    fake = operator.workspace / PLACE / f"{operator.subject('a').decision_id}.json"
    happens = {1.0: lambda: fake.write_text("{}"), 4.0: lambda: decide(operator, "a")}
    found, seconds = waited(side(operator), 60, happens)
    assert (found.record is not None, seconds) == (True, pytest.approx(4.2, abs=0.21))


def test_an_agent_that_cannot_write_still_gets_the_decision(tmp_path):
    (tmp_path / ".agentwatch").touch()
    reader = Reader(tmp_path, "wait", state=tmp_path / ".agentwatch" / "state", configuration=tmp_path)
    made = record(params=Params(handoff="{}"))
    assert reader.write_handoff(made) is None
    assert "can be written" in (reader.write_receipt(LookupResult(MIRROR, made), "agent") or "")
    reader.write_receipt(reader.find(Question(None, decision_id=made.decision_id)), "agent", Stage.ACTED)


def test_a_task_that_is_not_seen_yet_can_be_asked_about(operator):
    assert question_about(Tree(), "x", None) == Question("x")
    assert question_about(Tree(), "x", 3) == Question("x", 3)
    old = decide(operator, "a", expires_at=NOON - timedelta(days=3_650))
    found = outside(operator).find(ABOUT_A)
    assert (found.record, found.expired) == (None, old)


# How far a decision has got

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
    """Return the directory that agents write in, with these receipts of the decision."""
    place = workspace / ".agentwatch" / "receipts"
    place.mkdir(parents=True)
    for kind, text in files.items():
        (place / f"{ID}.{kind}.json").write_text(text)
    return place


def told(book: ReceiptBook) -> tuple[Receipt, ...]:
    return book.read([RECORD])[ID]


def sandboxed(workspace: Path) -> ReceiptBook:
    """Return the receipts as used by an agent that may write into the workspace only."""
    state = workspace.parent / "state"
    return ReceiptBook(workspace, state, Closed(state, errno.EROFS))


def claim(book: ReceiptBook, by: str, decision_id: str = ID) -> tuple[bool, str]:
    """Return whether the claim won, and the name of the winner."""
    claimed = book.write_receipt(decision_id, CLAIM, by, since=NOW)
    assert isinstance(claimed, Claim)
    return claimed.won, claimed.by


def test_the_first_to_tell_a_stage_is_believed(book):
    for stage in (Stage.ACTED, Stage.DELIVERED):
        book.write_receipt(ID, stage, "agentwatch", since=NOW)
    book.write_receipt(ID, "read.wait", "orchestrator", since=NOW)
    with at(NOON + timedelta(seconds=1)):
        book.write_receipt(ID, "read.mcp", "a server", since=NOW)
        book.write_receipt(ID, Stage.DELIVERED, "again", since=NOW)
    receipts = told(book)
    assert [one.stage for one in receipts] == list(Stage)
    assert [one.by for one in receipts] == ["ada", "agentwatch", "orchestrator", "agentwatch"]
    # `acted` stays a claim until a later event shows that the decision was carried out.
    assert [one.claimed for one in receipts] == [False, False, False, True]
    assert {one.at for one in receipts} == {NOON.timestamp()}


def test_an_agent_claims_and_what_was_seen_comes_first(book, workspace):
    inside = sandboxed(workspace)
    inside.write_receipt(ID, "read.wait", "agent", since=NOW)
    assert told(book)[-1] == Receipt(Stage.READ, NOON.timestamp(), "agent", claimed=True)
    with at(NOON + timedelta(seconds=1)):
        book.write_receipt(ID, "read.hook", "hook", since=NOW)
    assert told(book)[-1] == Receipt(Stage.READ, NOON.timestamp() + 1, "hook")
    # A private receipt cannot be written there.
    with pytest.raises(ReceiptError, match="can be written"):
        inside.write_receipt(ID, Stage.DELIVERED, "x", since=NOW, private=True)
    assert len(list((workspace / ".agentwatch" / "receipts").iterdir())) == 1


@pytest.mark.parametrize(("kind", "by"), [("acted", ""), ("claim", "agent")])
def test_receipts_of_agents_only_show_that_they_have_read(book, workspace, kind, by):
    claims_of(workspace, **{kind: json.dumps({"by": "agent", "at": NOW})})
    assert (told(book)[-1].stage, told(book)[-1].taken_by) == (Stage.READ, by)


@pytest.mark.parametrize(
    ("kind", "content"),
    [
        *((kind, {"by": "x", "at": "2030-01-01T11:59:59Z"}) for kind in ("read", "claim")),
        ("unknown", {"by": "x", "at": NOW}),
        *(("read", content) for content in ({"by": 1, "at": NOW}, {"by": "x", "at": "whenever"}, {"at": NOW}, [])),
        ("read", "x" * 10_000),
    ],
)
def test_invalid_receipts_of_agents_do_not_count(book, workspace, kind, content):
    claims_of(workspace, **{kind: json.dumps(content)})
    assert told(book)[-1].stage is Stage.RECORDED


def test_a_new_decision_has_its_own_receipts(book):
    """The id is the same, but receipts and claims of the expired decision do not count for the new one."""
    later = NOON + timedelta(days=8)
    anew = record(created_at=format_time(later))
    assert anew.decision_id == ID
    for now, since in ((NOON, NOW), (later, anew.created_at)):
        with at(now):
            for stage in (Stage.DELIVERED, "read.hook-claude", Stage.ACTED):
                book.write_receipt(ID, stage, "x", since=since)
            claims = [book.write_receipt(ID, CLAIM, by, since=since) for by in ("one", "two")]
            assert claims == [Claim(won, "one", since) for won in (True, False)]
    receipts = book.read([anew])[ID]
    assert {(one.stage, one.at) for one in receipts} == {(stage, later.timestamp()) for stage in Stage}


def test_nothing_is_written_into_a_workspace_that_is_only_read(workspace):
    book = ReceiptBook(workspace, workspace.parent / "state", QUICK, read_only=True)
    with pytest.raises(ReceiptError, match="told to write nothing"):
        book.write_receipt(ID, Stage.READ, "x", inside=True, since=NOW)
    book.write_receipt(ID, Stage.READ, "x", since=NOW)
    assert told(book)[-1] == Receipt(Stage.READ, NOON.timestamp(), "x")
    assert claim(book, "one") == (True, "one")
    assert list(workspace.iterdir()) == []


def test_a_link_in_the_place_of_the_claims_is_not_followed(book, workspace):
    outside = workspace.parent / "outside"
    outside.mkdir()
    (outside / f"{ID}.acted.json").write_text("{}")
    (workspace / ".agentwatch").mkdir()
    (workspace / ".agentwatch" / "receipts").symlink_to(outside)
    assert told(book)[-1].stage is Stage.RECORDED
    with pytest.raises(ReceiptError, match="remove it"):
        sandboxed(workspace).write_receipt(ID, Stage.READ, "agent", since=NOW)
    assert len(list(outside.iterdir())) == 1


def test_a_receipt_that_cannot_be_written_is_an_error(workspace):
    book = ReceiptBook(workspace, workspace.parent / "state", disk(mkdir=error(errno.EROFS)))
    for stage in (Stage.READ, CLAIM):
        with pytest.raises(ReceiptError, match=r"the decision holds.*make it writable"):
            book.write_receipt(ID, stage, "agent", since=NOW)


def test_exactly_one_claims(book):
    with ThreadPoolExecutor(16) as pool:
        claims = list(pool.map(lambda number: claim(book, f"agent {number}"), range(64)))
    (winner,) = [by for won, by in claims if won]
    assert {by for _, by in claims} == {winner}
    # The decision is known to be read, and not yet to be carried out.
    assert told(book)[-1].stage is Stage.READ


def test_one_inside_a_sandbox_and_one_outside_never_both_win(book, workspace):
    inside, other = sandboxed(workspace), record(task_id="other").decision_id
    assert [claim(inside, "inside"), claim(book, "outside")] == [(True, "inside"), (False, "inside")]
    assert claim(book, "outside", other) == (True, "outside")
    assert claim(inside, "inside", other)[0] is False


def test_nobody_wins_if_an_agent_has_taken_both_names(book, workspace):
    old = json.dumps({"by": "x", "at": "2030-01-01T11:00:00Z"})
    claims_of(workspace, **{"claim": old, "claim.20300101t120000z": old})
    assert claim(book, "one")[0] is False


def test_without_a_workspace_the_state_directory_decides(book, workspace):
    (workspace / ".agentwatch").write_text("in the way")
    assert [claim(book, "one"), claim(book, "two")] == [(True, "one"), (False, "one")]
