"""States, what they ask of the operator, and the arithmetic of retries."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.unit.delegation.observations import BROKEN, Recorder, handoff, meta, outline, returned, tree_of

from agentwatch.contracts.shapes import Contract, Finding, Return, Severity
from agentwatch.delegation.claims import Claim, Verdict
from agentwatch.delegation.decision import Action, Decision, Receipt, Stage
from agentwatch.delegation.observation import Decided, Gone, Seen, Tick, Unreadable
from agentwatch.delegation.task import State
from agentwatch.view.document import tree_document


@pytest.mark.parametrize("outcome", ["completed", "partial", "blocked", "failed", "working"])
def test_a_task_has_the_state_its_return_says(outcome: str) -> None:
    see = Recorder().seen
    tree = tree_of([see("a.handoff.json", handoff("a")), see("a.return.md", returned(outcome))])
    assert tree.tasks["a"].state == outcome
    assert tree.tasks["a"].why == f"the return says {outcome.upper()}"


def test_a_task_that_was_only_handed_off_is_submitted_until_it_hands_work_on() -> None:
    see = Recorder().seen
    tree = tree_of([see("a.json", handoff("a"))])
    assert (tree.tasks["a"].state, tree.tasks["a"].why) == ("submitted", "handed off; no sign of life yet")
    tree.apply(see("b.json", handoff("a.b")))
    assert (tree.tasks["a"].state, tree.tasks["a"].why) == ("working", "it has handed work on")


def test_a_parent_shows_the_worst_state_below_that_waits_for_someone() -> None:
    see = Recorder().seen
    tree = tree_of(
        [
            see("a.json", handoff("a")),
            see("b.json", returned("blocked", task_id="a.b")),
            see("c.json", returned("partial", task_id="a.c")),
            see("d.json", handoff("a.d")),
        ]
    )
    below = tree.tasks["a"].below
    assert below is not None
    assert (below.worst_waiting, below.needs_operator, below.ended, below.tasks) == (State.BLOCKED, 1, 1, 3)
    tree.apply(see("d.md", returned("failed", task_id="a.d")))
    assert below.worst_waiting is State.FAILED


def test_no_title_is_blank_and_no_two_that_differ_in_a_blank_look_the_same() -> None:
    record = Recorder()
    ids = [".", "..", "a b", "a\nb", "a\tb", "a\u00a0b", "a. "]
    tree = tree_of([record.seen(f"{number}.json", handoff(one)) for number, one in enumerate(ids)])
    titles = {task_id: task.title for task_id, task in tree.tasks.items()}
    assert tree.tasks[".."].parent_id == "."
    expected = {".": ".", "..": "..", "a b": "a b", "a\nb": "a␊b", "a\tb": "a␉b", "a\u00a0b": "a<U+00A0>b"}
    assert titles == expected | {"a. ": "a.␠"}


def test_a_parent_of_a_contradicted_task_that_waits_shows_that_it_is_contradicted() -> None:
    record = Recorder()
    said, partly = returned("completed", task_id="a.b"), returned("partial", task_id="a.c", review_reason="look")
    seen = record.seen("b.md", said)
    tree = tree_of([record.seen("a.json", handoff("a")), seen, record.seen("c.md", partly)])
    assert tree_document(tree, "/w")["tasks"][0]["worst_below"] == "partial"
    tree.apply(record.checked("b.md", seen.digest, "contradicted"))
    assert tree_document(tree, "/w")["tasks"][0]["worst_below"] == "contradicted"
    tree.apply(record.seen("d.md", returned("blocked", task_id="a.d")))
    assert tree_document(tree, "/w")["tasks"][0]["worst_below"] == "blocked"


ASKS = [
    ("failed", {}, "retry, escalate or abort? 1 retry left"),
    ("failed", {"retry_recommended": True}, "retry? the child recommends it; 1 retry left"),
    (
        "failed",
        {"retry_recommended": False},
        "escalate or abort? the child advises against a retry; 1 retry left",
    ),
    (
        "failed",
        {"attempt": 2},
        "no retry left (1 used): escalate to another mode, or abort; a material mitigation earns one more",
    ),
    ("failed", {"attempt": 3}, "no retry left (1 used): escalate to another mode, or abort"),
    ("blocked", {"blockers": ("which flow?", "which key?")}, "answer: which flow? (+1 more question)"),
    ("blocked", {"error_message": "no key"}, "answer: no key"),
    ("blocked", {}, "blocked, and does not say by what: answer or abort"),
    ("partial", {"review_reason": "axioms were added"}, "review: axioms were added"),
    ("completed", {"review_reason": ""}, "the child asks for a review"),
    ("completed", {"confidence": 0.35}, "review: the child is not sure of its result (confidence 0.35)"),
    ("completed", {"confidence": 0.5}, None),
    ("partial", {}, None),
    ("completed", {}, None),
    ("working", {}, None),
]


@pytest.mark.parametrize(("outcome", "more", "ask"), ASKS)
def test_a_task_asks_exactly_what_has_to_be_decided(outcome: str, more: dict[str, object], ask: str | None) -> None:
    tree = tree_of([Recorder().seen("a.md", returned(outcome, task_id="a", **more))])
    assert tree.tasks["a"].ask == ask
    assert [task.task_id for task in tree.asking()] == (["a"] if ask else [])


MISSING = Finding("SUB010", Severity.ERROR, "`files` is missing; name them", 1)


@pytest.mark.parametrize(
    ("outcome", "advice", "findings", "ask"),
    [
        ("completed", None, [BROKEN], "its return breaks the contract: add the header"),
        (
            "failed",
            True,
            [MISSING, BROKEN],
            "`files` is missing (+1 more); it says FAILED and recommends a retry",
        ),
        ("failed", False, [MISSING], "`files` is missing; it says FAILED and advises against a retry"),
    ],
)
def test_a_return_that_breaks_its_contract_asks_with_its_first_fault(
    outcome: str, advice: bool | None, findings: list[Finding], ask: str
) -> None:
    result = returned(outcome, task_id="a", agent="code", retry_recommended=advice)
    tree = tree_of([Recorder().seen("a.json", result, *findings)])
    assert (tree.tasks["a"].ask or "").endswith(f"{ask}: retry, or accept it as it is")


def test_who_holds_up_most_asks_first_then_who_has_asked_last() -> None:
    see = Recorder().seen
    tree = tree_of(
        [
            see("x.md", returned("blocked", task_id="x")),
            see("y.md", returned("failed", task_id="y")),
            see("z.md", returned("blocked", task_id="z")),
            see("z1.md", handoff("z.1")),
        ]
    )
    assert [task.task_id for task in tree.asking()] == ["z", "y", "x"]
    assert tree.holds(tree.tasks["z"]) == 1


def test_the_budget_is_one_retry_and_every_restoration_adds_exactly_one() -> None:
    see = Recorder().seen
    tree = tree_of([see("s.md", returned("failed", task_id="s", attempt=2, retry_hint="mind the gap"))])
    retry = tree.tasks["s"].retry
    assert (retry.max_retries, retry.remaining, retry.hint) == (1, 0, "mind the gap")
    tree.apply(see("f.handoff.json", handoff("f", restores="s")))
    assert tree.tasks["s"].retry.remaining == 0
    tree.apply(see("f.return.md", returned("completed")))
    assert (tree.tasks["s"].retry.max_retries, tree.tasks["s"].retry.remaining) == (2, 1)
    assert tree.tasks["s"].ask == "retry, escalate or abort? 1 of 2 retries left"


def test_an_attempt_after_an_answer_is_no_retry() -> None:
    see = Recorder().seen
    tree = tree_of(
        [
            see("s.handoff.json", handoff("s", attempt=1)),
            see("s.md", returned("blocked", task_id="s", attempt=1)),
            see("s.handoff.json", handoff("s", attempt=2)),
            see("s.md", returned("failed", task_id="s", attempt=2)),
        ]
    )
    assert (tree.tasks["s"].attempt, tree.tasks["s"].retry.remaining) == (2, 1)
    tree.apply(see("s.handoff.json", handoff("s", attempt=3)))
    tree.apply(see("s.md", returned("failed", task_id="s", attempt=3)))
    assert (tree.tasks["s"].attempt, tree.tasks["s"].retry.remaining) == (3, 0)


def test_a_line_fault_asks_for_the_fitter() -> None:
    see = Recorder().seen
    tree = tree_of([see("s.md", returned("failed", task_id="s", error_code="E_LINE_FAULT", retry_recommended=True))])
    assert tree.tasks["s"].ask == "a line fault: escalate to the fitter? 1 retry left"


def test_the_same_failure_twice_asks_for_an_escalation() -> None:
    see = Recorder().seen
    failures = [returned("failed", task_id="s", attempt=number, error_code="E_TOOL") for number in (1, 2)]
    tree = tree_of([see(f"s{number}.md", one) for number, one in enumerate(failures)], max_retries=2)
    assert tree.tasks["s"].ask == "escalate? it failed twice in the same way; 1 of 2 retries left"


def test_a_budget_of_two_allows_three_attempts() -> None:
    see = Recorder().seen
    tree = tree_of([see("s.md", returned("failed", task_id="s", attempt=3))], max_retries=2)
    assert tree.tasks["s"].retry.remaining == 0


def test_a_silent_working_task_turns_stale_and_lives_again_with_the_next_sign() -> None:
    recorder = Recorder()
    first = recorder.seen("a.json", meta("working", agent="coder"))
    tree = tree_of([first, Tick(1, first.at + 59)], stale_after=60)
    assert not tree.tasks["coder"].stale
    assert tree.apply(Tick(1, first.at + 60)) == {"coder"}
    assert tree.tasks["coder"].stale
    tree.apply(Seen(2, first.at + 61, "a.json", "ff", meta("working", agent="coder")))
    assert not tree.tasks["coder"].stale
    assert tree.apply(Tick(2, first.at + 121)) == {"coder"}


def test_a_task_that_waits_for_open_tasks_below_is_not_stale() -> None:
    see = Recorder().seen
    tree = tree_of([see("a.json", handoff("a")), see("b.json", handoff("a.b")), Tick(2, 9_999.0)], stale_after=60)
    assert not tree.tasks["a"].stale
    tree.apply(see("b.md", returned("completed", task_id="a.b")))
    assert tree.tasks["a"].stale


def test_an_inferred_task_is_stale_once_all_that_works_below_it_is() -> None:
    recorder = Recorder()
    first = recorder.seen("j/.return-meta-a.json", meta("working", "orchestrator", "planner"))
    second = recorder.seen("j/.return-meta-b.json", meta("working", "orchestrator", "coder"))
    tree = tree_of([first, second, Tick(2, first.at + 60)], stale_after=60)
    above = tree.tasks["j/orchestrator"]
    assert above.inferred
    assert not above.stale, "the second one has been heard of since"
    tree.apply(Tick(2, second.at + 60))
    assert above.stale


@pytest.mark.parametrize("outcome", ["completed", "failed", "blocked"])
def test_a_task_that_has_returned_is_never_stale(outcome: str) -> None:
    tree = tree_of([Recorder().seen("a.md", returned(outcome, task_id="a")), Tick(1, 1e9)])
    assert not tree.tasks["a"].stale


def test_an_inferred_task_has_the_most_urgent_state_below_it() -> None:
    see = Recorder().seen
    tree = tree_of(
        [
            see("j/.return-meta-a.json", meta("completed", "orchestrator", "planner")),
            see("j/.return-meta-b.json", meta("failed", "orchestrator", "coder")),
        ]
    )
    assert outline(tree)[0] == "j/orchestrator failed"
    assert [task.task_id for task in tree.asking()] == ["j/coder#b"]


def test_an_unreadable_file_is_a_finding_of_its_task_and_a_notice_where_it_has_none() -> None:
    recorder = Recorder()
    finding = Finding("SRC001", Severity.ERROR, "a FIFO is not read: remove it")
    tree = tree_of(
        [
            recorder.seen("a.return.md", returned("completed", task_id="a")),
            Unreadable(2, 1.0, "a.return.md", finding),
            Unreadable(3, 1.0, "b.return.md", finding),
        ]
    )
    assert [placed.finding.rule for placed in tree.tasks["a"].findings] == ["SRC001"]
    assert tree.tasks["a"].state == "completed"
    assert [placed.path for placed in tree.notices] == ["b.return.md"]
    recorder.seq = 3
    tree.apply(recorder.gone("b.return.md"))
    assert tree.notices == []


def test_an_unreadable_file_beside_a_handoff_is_a_finding_of_its_task_until_it_can_be_read() -> None:
    recorder = Recorder()
    finding = Finding("SRC004", Severity.ERROR, "too large")
    asked, unread = recorder.seen("a.handoff.json", handoff("a")), Unreadable(9, 1.0, "returns/a.md", finding)
    for observations in ([asked, unread], [unread, asked]):
        tree = tree_of(observations)
        assert [placed.path for placed in tree.tasks["a"].findings] == ["returns/a.md"]
        assert tree.notices == []
    recorder.seq = 9
    tree.apply(recorder.seen("returns/a.md", returned("completed")))
    assert tree.tasks["a"].findings == ()
    tree = tree_of([asked, unread, recorder.gone("a.handoff.json")])
    assert [placed.path for placed in tree.notices] == ["returns/a.md"]


def _named(contract: Contract = Contract.SUBAGENT_RETURN) -> Return:
    return Return(contract, None, None, recognised=False)


def test_a_return_by_its_name_alone_is_that_of_the_handoff_of_its_stem_and_else_a_notice() -> None:
    recorder = Recorder()
    asked = recorder.seen("a.handoff.json", handoff("a"))
    junk = recorder.seen("a.return.json", _named(), BROKEN)
    for observations in ([asked, junk], [junk, asked]):
        tree = tree_of(observations)
        assert outline(tree) == ["a invalid"]
        assert [placed.path for placed in tree.tasks["a"].findings] == ["a.return.json"]
        assert tree.notices == []
    for observations in ([junk], [asked, junk, recorder.gone("a.handoff.json")]):
        tree = tree_of(observations)
        assert outline(tree) == []
        assert [placed.path for placed in tree.notices] == ["a.return.json"]
    tree.apply(recorder.gone("a.return.json"))
    assert tree.notices == []


def test_a_return_by_its_name_alone_belongs_to_no_handoff_of_another_stem() -> None:
    see = Recorder().seen
    tree = tree_of([see("a.handoff.json", handoff("a")), see("b.return.json", _named(), BROKEN)])
    assert outline(tree) == ["a submitted"]
    assert [placed.path for placed in tree.notices] == ["b.return.json"]
    tree.apply(see("result.md", returned("completed")))
    assert outline(tree) == ["a completed"], "it hides no return that is alone with the handoff"


def test_a_return_that_is_rewritten_as_nothing_of_one_makes_its_task_invalid() -> None:
    see = Recorder().seen
    tree = tree_of([see("a.return.md", returned("completed")), see("a.return.md", _named(), BROKEN)])
    assert outline(tree) == ["a invalid"]
    assert tree.notices == []


def test_a_return_by_its_name_alone_is_no_rival_of_a_real_one() -> None:
    recorder = Recorder()
    asked, done = recorder.seen("a.handoff.json", handoff("a")), recorder.seen("a.return.json", returned("completed"))
    junk = recorder.seen("a.return.md", _named(Contract.RETURN_FORMAT), BROKEN)
    report = recorder.seen("a.report.json", _named(Contract.REPORT_CONTRACT), BROKEN)
    tree = tree_of([asked, done, junk, report])
    assert outline(tree) == ["a completed"]
    assert [placed.path for placed in tree.tasks["a"].findings] == ["a.return.md"]


def test_a_report_of_another_program_is_no_notice_and_beside_a_handoff_its_return() -> None:
    see = Recorder().seen
    tree = tree_of([see("a.report.json", _named(Contract.REPORT_CONTRACT), BROKEN)])
    assert (outline(tree), tree.notices) == ([], [])
    tree.apply(see("a.handoff.json", handoff("a")))
    assert outline(tree) == ["a invalid"]


def test_the_contract_and_reported_state_are_those_of_the_return() -> None:
    see = Recorder().seen
    tree = tree_of([see("a.handoff.json", handoff("a"))])
    assert tree.tasks["a"].contract is Contract.HANDOFF_PACKET
    tree.apply(see("a.return.md", returned("partial")))
    assert (tree.tasks["a"].contract, tree.tasks["a"].reported_state) == (Contract.RETURN_FORMAT, "PARTIAL")


def test_a_false_claim_of_a_completed_task_contradicts_it_and_asks_the_operator() -> None:
    recorder = Recorder()
    done = recorder.seen("a.md", returned("completed", task_id="a"))
    tree = tree_of([done, recorder.checked("a.md", done.digest, "verified", "contradicted", "contradicted")])
    task = tree.tasks["a"]
    assert (task.state, task.contradicted) == ("completed", True)
    assert task.ask == "a claim is false: 1.py (as found), and 1 more; look at it, then accept, retry or answer"
    claimed_twice = tuple(Claim(kind, "1.py", Verdict.CONTRADICTED, "missing") for kind in ("created", "deliverable"))
    tree.apply(recorder.checked("a.md", done.digest)._replace(claims=claimed_twice))
    assert task.ask == "a claim is false: 1.py (missing); look at it, then accept, retry or answer"
    assert tree.totals.verdicts == {Verdict.CONTRADICTED: 1}
    unmet = Claim("criterion", "The tests pass", Verdict.CONTRADICTED, "3 failed")
    tree.apply(recorder.checked("a.md", done.digest)._replace(claims=(unmet,)))
    assert task.ask.startswith("a success criterion is not met: The tests pass (3 failed)")
    tree.apply(recorder.checked("a.md", done.digest)._replace(claims=(unmet, claimed_twice[0])))
    assert task.ask.startswith("a claim is false: 1.py (missing), and 1 more")
    tree.apply(recorder.checked("a.md", done.digest, "verified", "verified", "unverifiable"))
    assert (task.contradicted, task.ask, task.verdict) == (False, None, Verdict.VERIFIED)
    assert tree.totals.verdicts == {Verdict.VERIFIED: 1}


@pytest.mark.parametrize("outcome", ["failed", "blocked", "working"])
def test_the_claims_of_a_task_that_does_not_say_done_contradict_nothing(outcome: str) -> None:
    recorder = Recorder()
    seen = recorder.seen("a.md", returned(outcome, task_id="a"))
    tree = tree_of([seen, recorder.checked("a.md", seen.digest, "contradicted")])
    assert tree.tasks["a"].verdict is None
    assert len(tree.tasks["a"].claims) == 1


def test_claims_count_only_for_the_very_content_that_was_checked() -> None:
    recorder = Recorder()
    first = recorder.seen("a.md", returned("completed", task_id="a"))
    tree = tree_of([first, recorder.checked("a.md", first.digest, "contradicted")])
    tree.apply(recorder.seen("a.md", returned("completed", task_id="a")))
    assert tree.tasks["a"].claims == ()
    assert not tree.tasks["a"].contradicted


def test_what_could_only_not_be_looked_at_is_not_verified() -> None:
    recorder = Recorder()
    seen = recorder.seen("a.md", returned("completed", task_id="a"))
    tree = tree_of([seen, recorder.checked("a.md", seen.digest, "unverifiable")])
    assert tree.tasks["a"].verdict is None


def test_a_task_whose_return_is_refused_needs_the_operator_until_it_can_be_read() -> None:
    record = Recorder()
    refused = Unreadable(2, 1_002.0, "x.return.md", Finding("SRC002", Severity.WARNING, "a link"))
    todos = refused._replace(path="x.todos.md")
    packet = record.seen("x.handoff.json", handoff("t.x"))
    for observations in ([packet, refused], [refused, packet]):
        tree = tree_of(observations)
        assert tree.tasks["t.x"].ask == "x.return.md is not read, so what it says is not known: mend it, or remove it"
        tree.apply(Gone(3, 1_003.0, "x.return.md"))
        assert not tree.tasks["t.x"].needs_operator
    assert not tree_of([packet, todos]).tasks["t.x"].needs_operator


def test_what_is_past_asks_again_when_it_was_decided_that_somebody_works_on_it_or_a_file_was_written() -> None:
    record = Recorder()
    result = record.seen("a.return.md", returned("failed", task_id="a"))
    tree = tree_of([record.seen("a.handoff.json", handoff("a")), result], history_before=2_000.0)
    task = tree.tasks["a"]
    assert (task.past, task.needs_operator) == (True, False)
    unread = Finding("SRC001", Severity.ERROR, "cannot be read", 1)
    tree.apply(Unreadable(8, 1_900.0, "a.return.md", unread))
    assert (task.past, task.needs_operator) == (True, False)
    tree.apply(Unreadable(9, 2_000.0, "a.return.md", unread))
    assert (task.past, task.needs_operator) == (False, True)
    tree.apply(result)
    recorded = Decision(
        decision_id="d1",
        task_id="a",
        attempt=1,
        handoff_sha256=None,
        return_sha256=result.digest,
        action=Action.ABORT,
        at=2_000.0,
        receipts=(Receipt(Stage.RECORDED, 2_000.0),),
    )
    tree.apply(Decided(50, 2_000.0, "d1", recorded))
    assert task.past
    tree.apply(Decided(50, 2_000.0, "d1", replace(recorded, action=Action.RETRY, expires_at=2_100.0)))
    assert not task.past
    tree.apply(Tick(60, 2_100.0))
    assert (task.past, task.needs_operator) == (False, True)


def test_a_task_that_is_only_named_is_as_old_as_what_is_below_it() -> None:
    record = Recorder()
    tree = tree_of([record.seen("job/.return-meta.json", meta("failed", "lead", "coder"))], history_before=1_005.0)
    lead = next(task for task in tree.tasks.values() if task.inferred)
    assert lead.past
    record.seq = 10
    tree.apply(record.seen("job/.return-meta.json", meta("partial", "lead", "coder")))
    assert not lead.past
