"""Requests and decisions in words: how far they are, how they are answered, which comes first, and the cost of work."""

from dataclasses import replace
from datetime import datetime

import pytest

from agentwatch.app.decision_words import decision_warning, receipt_line, short_progress
from agentwatch.app.decision_words import why_not as why_not_decided
from agentwatch.delegation.decision import Action, Permitter, Receipt, RequestStage, Stage
from agentwatch.delegation.task import Attempt, Shown, State, Task
from agentwatch.view.rows import Group, day_name, group_of
from agentwatch.view.words import (
    NOBODY_WAITS,
    Span,
    ago,
    clock,
    cost_of,
    decision_of,
    denial_words,
    format_local,
    is_pending,
    long_span,
    look_of,
    parse_span,
    short_span,
    span_of,
    stage_words,
    utc,
    where_to_answer,
    why_unanswerable,
)
from tests.unit.delegation.asking import decided, permit, question, ran, request, requested, session
from tests.unit.delegation.events import ROOT, tree_of
from tests.unit.delegation.events import decided as of_task


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({}, None),
        ({"actions": ()}, "answer in its terminal"),
        ({"actions": (), "why_not": "it is too long"}, "it is too long"),
        ({"stage": RequestStage.DECIDED}, "it is decided already"),
        ({"stage": RequestStage.GONE}, NOBODY_WAITS),
        ({"stage": RequestStage.ACTED}, "it has ended: acted"),
    ],
)
def test_why_a_request_cannot_be_answered_here(fields, words):
    assert why_unanswerable(request(**fields)) == words


def test_the_decision_about_the_attempt_before_matters_still():
    decision = of_task("a", Action.RETRY, 1.0).decision
    attempts = [Attempt(1, decisions=(decision,)), Attempt(2), Attempt(3)]
    assert [decision_of(Task("a", "a", attempts=attempts[:count])) for count in (1, 2, 3)] == [decision, decision, None]


def test_an_end_is_under_way_until_it_was_read_not_only_claimed():
    abort, retry = (of_task("a", one, 1.0, 3).decision for one in (Action.ABORT, Action.RETRY))
    assert (is_pending(abort), is_pending(retry)) == (False, True)
    claimed = replace(abort, receipts=tuple(one._replace(claimed=True) for one in abort.receipts))
    assert is_pending(claimed)
    assert not is_pending(replace(claimed, expired=True))


@pytest.mark.parametrize(
    ("prices", "cost"),
    [({"big": 3.0, "small": 1.0}, 7.0), ({"big": 3.0, "x/big": 5.0, "small": 1.0}, 11.0), ({"small": 1.0}, None)],
)
def test_a_cost_is_shown_if_every_price_is_known(prices, cost):
    runs = replace(ROOT, model="x/big", tokens=2_000_000), replace(ROOT, model="small", tokens=1_000_000), ROOT
    task = Task("a", "a", attempts=[Attempt(number, run=run) for number, run in enumerate(runs, 1)])
    assert cost_of(task, prices) == cost


NOBODY_WAITS = request(stage=RequestStage.GONE, ended_at=1_130.0)

LEFT = "nothing here waits for it any more; if its program still asks, answer it there"


ASKED, ASKS = requested(request()), requested(question())
BROKE = requested(request(stage=RequestStage.UNKNOWN, ended_at=1_110.0), 5)
ELSEWHERE = requested(replace(NOBODY_WAITS, stage=RequestStage.ELSEWHERE))
ALLOWED, DENIED = decided(request()), decided(request(), Action.DENY)
SENT = decided(request(), stage=Stage.DELIVERED)
REFUSED = decided(request(), Action.DENY, Stage.DELIVERED)


def settled(*how, **by):
    return ran(session(permit(*how, **by)), 5)


@pytest.mark.parametrize(
    ("events", "words"),
    [
        ([ASKED], "waits for you"),
        ([requested(request(until=1_150.0))], "can be answered here for 20s"),
        ([requested(request(until=1_150.0, prompt_hidden=True))], "its prompt appears in its terminal in 20s"),
        ([ASKED, ALLOWED], "allowed, not delivered yet"),
        ([ASKED, DENIED], "denied, not delivered yet"),
        ([ASKS, decided(question(), Action.ANSWER)], "answered, not delivered yet"),
        ([ASKED, SENT], "allowed and delivered; the result is not known yet"),
        ([requested(NOBODY_WAITS)], f"gone: {LEFT}"),
        ([requested(NOBODY_WAITS), ALLOWED], f"gone: {LEFT}; your answer came too late"),
        ([ELSEWHERE], "answered in the program"),
        ([ASKED, SENT, settled()], "allowed by you"),
        ([ASKED, REFUSED, settled(allowed=False)], "denied by you"),
        ([ASKED, settled(by=Permitter.PERSON)], "allowed in the program"),
        ([ASKED, settled(False, Permitter.RULE)], "denied by a rule of the program"),
        ([ASKED, settled(None)], "answered by a hook, not with your answer"),
        (
            [ASKED, ALLOWED, BROKE],
            "allowed by you; whether that counted is not known: the connection to its program broke",
        ),
    ],
)
def test_each_stage_has_words_of_its_own(events, words):
    task = tree_of([ran(session()), *events]).tasks["s1"]
    assert stage_words(task.requests[0], 1_130.0) == words


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("claude-code", "answer in its terminal; `agentwatch init --agent claude-code` lets you answer here"),
        ("kilo", "answer in its terminal; `agentwatch init --agent kilo` lets you answer here"),
        ("roo", "answer in its terminal"),
    ],
)
def test_a_session_that_waits_elsewhere_says_where_to_answer(source, words):
    task = tree_of([ran(session(source=source, waiting="a permission"))]).tasks["s1"]
    assert where_to_answer(task) == words


def test_the_effects_of_a_denial_are_shown_before_it():
    ends = "ends the turn of its agent"
    assert denial_words(request(words=True)) == denial_words(request(ends_turn=True, actions=())) == []
    also = "a denial ends 1 other open request of its session, too"
    assert denial_words(request(ends_turn=True, words=True, ends_others=1)) == [also, f"a denial without words {ends}"]
    assert denial_words(question(ends_turn=True)) == [f"a denial {ends}"]


def test_an_ask_counts_the_questions_behind_the_first():
    asked = question(queries=question().queries * 3)
    task = tree_of([ran(session()), requested(asked)]).tasks["s1"]
    assert task.ask == "answer: Which store? (+2 more questions)"


def told(at, *more):
    return {"receipts": (Receipt(Stage.RECORDED, at, "ada"), Receipt(Stage.DELIVERED, at), *more)}


SAYS_SO = Receipt(Stage.READ, 940.0, "one", claimed=True, taken_by="two")
ON = "recorded 3m ago · delivered"
GOT = f"{ON} · read"
SAID = "read by one 1m ago (an agent says so) · claimed by “two”, not acted on yet"


@pytest.mark.parametrize(
    ("action", "stages", "fields", "row", "line", "trouble"),
    [
        (Action.RETRY, 1, {}, "∙ recorded", "retry · recorded 3m ago", ""),
        (Action.RETRY, 1, {"waits": "no room"}, "! undelivered", "retry · recorded 3m ago", "no room"),
        (Action.RETRY, 2, {}, "! unread 3m", f"retry · {ON}", "not read for 3m: is an agent waiting"),
        (Action.RETRY, 2, told(821.0), "→ delivered", "retry · recorded 2m ago · delivered", ""),
        (Action.RETRY, 3, {}, "◉ read 3m", f"retry · {GOT} · attempt 2 not seen yet", ""),
        (Action.RETRY, 3, told(800.0, SAYS_SO), "◉ says read 1m", f"retry · {ON} · {SAID}", ""),
        (Action.RETRY, 4, {}, "✓ acted", f"retry · {GOT} · acted", ""),
        (Action.ESCALATE, 2, {"mode": "debug"}, "! unread 3m", f"escalate to debug · {ON}", "not read for 3m"),
        (
            Action.ESCALATE,
            3,
            {"mode": "fitter"},
            "◉ read 3m",
            f"escalate to fitter · {GOT} · the fitter not seen yet",
            "",
        ),
        (Action.ABORT, 3, {}, "◉ read 3m", f"abort · {GOT}", ""),
    ],
)
def test_how_far_a_decision_has_got(action, stages, fields, row, line, trouble):  # noqa: PLR0917
    made = of_task("a", action, 800.0, stages, **fields).decision
    assert (short_progress(made, 1_000.0), receipt_line(made, 1_000.0).plain) == (row, line)
    assert (decision_warning(made, 1_000.0) or "")[: len(trouble) or None] == trouble
    task = Task("a", "a", attempts=[Attempt(1, decisions=(made,))])
    why = f"already decided: you said {action} 3m ago; you can decide about the next attempt"
    assert why_not_decided(task, Action.RETRY, 1_000.0) == why
    task.workspace = "/w"
    assert why_not_decided(task, Action.RETRY, 1_000.0) == "this row is a workspace; go to one of its tasks"


@pytest.mark.parametrize(
    ("waiting", "word"),
    [("a permission: Bash ls", "allow?"), ("an answer: Which one?", "asks"), ("an approval of its plan", "asks")],
)
def test_a_question_in_the_records_of_a_program_is_an_open_one(waiting, word):
    assert look_of(tree_of([ran(session(waiting=waiting))]).tasks["s1"]).word == word


DAY = 86_400.0
NOW = datetime(2024, 6, 19, 12).timestamp()  # noqa: DTZ001 - noon of a Wednesday, wherever this runs


def test_a_time_is_written_in_few_characters():
    spans = {None: "-", -5: "0s", 59.9: "59s", 860: "14m", 3 * 3_600 + 59: "3h", 999 * DAY: "999d", 1_000 * DAY: "2y"}
    assert {seconds: short_span(seconds) for seconds in spans} == spans
    spans = {200: "3m 20s", 7_500: "2h 5m", 12 * DAY + 14_460: "12d 4h", 3_605: "1h"}
    assert {seconds: long_span(seconds) for seconds in spans} == spans
    assert (ago(NOW - 4.9, NOW), ago(NOW - 5, NOW)) == ("just now", "5s ago")
    assert (clock(NOW - 62, NOW), clock(NOW - DAY, NOW), clock(1e20, NOW)) == ("11:58:58", "2024-06-18 12:00", "?")
    texts = {"90s": 90, "1.5h": 5_400, "2d": 2 * DAY, "10": None, "-3m": None, "nand": None, "infd": None, "": None}
    assert {text: parse_span(text) for text in texts} == texts
    assert (utc(None), utc(0.0), format_local(1e20)) == ("-", "1970-01-01 00:00:00", "?")
    days = {-1: "today", 0: "today", 1: "yesterday", 6: "Thursday", 7: "12 Jun", 366: "Jun 2023"}
    assert {count: day_name(NOW - count * DAY, NOW) for count in days} == days


@pytest.mark.parametrize(
    ("fields", "so_far"),
    [
        ({"own_state": State.WORKING}, Span(100.0, so_far=True)),
        ({"own_state": State.WORKING, "lost_since": NOW - 60}, Span(40.0, so_far=True)),
        ({"own_state": State.WORKING, "shown": Shown.SILENT, "since": NOW - 30}, Span(70.0)),
        ({"own_state": State.FAILED, "ended_at": NOW - 20}, Span(80.0)),
        ({"own_state": State.FAILED}, None),
    ],
)
def test_how_long_the_last_attempt_took(fields, so_far):
    attempts = [Attempt(1, started_at=NOW - 200), Attempt(2, started_at=NOW - 100)]
    task = Task("a", "a", attempts=attempts, **fields)
    assert (span_of(task, attempts[1], NOW), span_of(task, attempts[0], NOW)) == (so_far, None)


@pytest.mark.parametrize(
    ("ago", "fields", "group"),
    [
        (9 * DAY, {"ask": "retry?"}, Group.NOW),
        (9 * DAY, {"past": True}, Group.HISTORY),
        (9 * DAY, {"shown": Shown.IDLE}, Group.NOW),
        (9 * DAY, {"state": State.RETRYING}, Group.NOW),
        (9 * DAY, {"workspace": "/w", "lost_since": NOW}, Group.NOW),
        (9 * DAY, {"workspace": "/w", "host": "build1"}, Group.NOW),
        (9 * DAY, {"workspace": "/w"}, Group.EARLIER),
        (599, {}, Group.NOW),
        (601, {}, Group.TODAY),
        (3_599, {"state": State.WORKING}, Group.NOW),
        (3_601, {"state": State.WORKING}, Group.TODAY),
        (DAY, {}, Group.EARLIER),
    ],
)
def test_the_group_of_a_run(ago, fields, group):
    assert group_of(Task("a", "a", updated_at=NOW - ago, **fields), NOW) is group
