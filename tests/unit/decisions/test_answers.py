"""The answer to a request of a program: signed as any decision, read by nobody but who holds the request."""

import hashlib
import json
import shutil
import time
from contextlib import suppress
from dataclasses import asdict, replace
from typing import Any

import pytest

from agentwatch.decisions.errors import DecisionError, RecordError, RequestGoneError
from agentwatch.decisions.reader import Question, Reader
from agentwatch.decisions.record import Answer, Asked, Params, Record, Subject, parse, refusal
from agentwatch.decisions.service import DecisionWatcher
from agentwatch.delegation.decision import Action, Decision, RequestKind, Stage
from agentwatch.delegation.events import Decided, Gone, Unreadable
from tests.unit.decisions.made import HANDOFF, NOON, at, record
from tests.unit.decisions.test_record import KEYS
from tests.unit.requests.asked import ANSWERED, place, question, request

__all__ = ["place"]

INPUT = hashlib.sha256(b"input").hexdigest()
ASKED = Asked("claude", "5f0c", "nonce", RequestKind.PERMISSION, INPUT)
ID = Subject("shop-0123456789abcdef", "a.b", 1, None, None, request=ASKED).decision_id


def answer(**changes: Any) -> Record:
    values = {
        "version": 2,
        "decision_id": ID,
        "handoff_sha256": None,
        "return_sha256": None,
        "action": Action.ALLOW,
        "note": "",
        "expires_at": "2030-01-01T12:10:00Z",
        "request": ASKED,
    }
    return record(**(values | changes))


def test_an_answer_names_the_request_and_its_exact_input():
    document = json.loads(answer().to_bytes())
    assert list(document) == [*KEYS, "request"]
    assert document["request"] == {**asdict(ASKED), "kind": "permission"}
    assert parse(answer(params=Params(rule="Bash(ls)")).to_bytes()) == answer(params=Params(rule="Bash(ls)"))


@pytest.mark.parametrize(
    "changes",
    [
        {"version": 1},
        {"version": 3},
        {"request": None},
        {"action": Action.RETRY},
        {"action": Action.ANSWER, "params": Params(answers=(Answer("q", "a"),))},
        {"action": Action.DENY, "params": Params(rule="Bash(ls)")},
        {"note": "words that nobody hears"},
        {"return_sha256": HANDOFF},
        {"expires_at": None},
        {"expires_at": "2030-01-01T12:10:01Z"},
        {"decision_id": "0" * 32},
        {"request": replace(ASKED, program="")},
        {"request": replace(ASKED, nonce="\ud800")},
    ],
)
def test_an_answer_that_is_not_one_throughout_is_refused(changes):
    asked = changes.get("request", ASKED)
    if asked is not None and "decision_id" not in changes and changes.get("version") != 1:
        with suppress(RecordError):
            subject = Subject("shop-0123456789abcdef", "a.b", 1, None, None, changes.get("after"), asked)
            changes = changes | {"decision_id": subject.decision_id}
    with pytest.raises(RecordError):
        answer(**changes)


def test_neither_kind_of_record_takes_the_keys_of_the_other():
    for document in (
        record().document() | {"request": None},
        record().document() | {"params": record().document()["params"] | {"rule": None}},
        {name: value for name, value in answer().document().items() if name != "request"},
        answer().document() | {"params": record().document()["params"]},
    ):
        with pytest.raises(RecordError):
            parse(json.dumps(document, separators=(",", ":")).encode())


def test_an_answer_holds_ten_minutes_or_until_the_request_ends(place):
    with at(NOON):
        assert place.answer(request(place.workspace, asked_at=0.0)).record.expires_at == "2030-01-01T12:10:00Z"
        until = NOON.timestamp() + 5.5
        made = place.answer(request(place.workspace, asked_at=0.0, until=until))
    assert made.record.expires_at == "2030-01-01T12:00:06Z"


def test_agents_are_not_told_of_answers(place):
    asked = request(place.workspace)
    made = place.answer(asked)
    reader = Reader(place.workspace, state=place.state, configuration=place.configuration, environment={})
    for wanted in (Question("a.b"), Question(None, decision_id=asked.request_id)):
        assert reader.find(wanted)[1:4] == (None, None, ())
    # Nor where somebody put a copy among the decisions, and the ledger is out of sight.
    mirror, nowhere = place.workspace / ".agentwatch" / "decisions", place.root / "nowhere"
    mirror.mkdir(parents=True)
    (file,) = (place.state / "decisions").glob("*.json")
    shutil.copy(file, mirror / f"{made.record.decision_id}.json")
    environment = {"AGENTWATCH_PUBLIC_KEY": place.desk().keys.show().text}
    hidden = Reader(place.workspace, state=nowhere, configuration=nowhere, environment=environment)
    for one in (reader, hidden):
        found = one.find(Question("a.b"))
        assert (found.decided, len(found.refused)) == (None, 1)
    assert len(place.desk().mirror().foreign) == 1


def test_a_monitor_is_told_of_an_answer_and_how_far_it_got(place):
    asked = request(place.workspace)
    clerk = DecisionWatcher(place.desk())

    def told() -> list[Decision]:
        return [one.decision for one in clerk.look() if isinstance(one, Decided)]

    clerk.desk.answer(asked, Action.DENY, None, task_id="a.b", attempt=1, gone=lambda: None, note="No.")
    (decision,) = told()
    assert (decision.request_id, decision.waits, decision.note) == (asked.request_id, "", "No.")
    holder = place.holder()
    with holder.store.offer(asked) as offer:
        taken = holder.look(offer)
        assert taken is not None
        # Claimed, and no agent has read it.
        assert told() == []
        holder.delivered(taken)
    assert [one.receipt.stage for one in told()] == [Stage.DELIVERED]
    place.desk().acted(decision, "the program says so")
    assert [one.receipt.stage for one in told()] == [Stage.ACTED]
    assert list(place.workspace.iterdir()) == []


def test_nobody_answers_what_nobody_waits_for(place):
    with pytest.raises(RequestGoneError, match="its holder has ended"):
        place.answer(request(place.workspace), gone="its holder has ended")
    with pytest.raises(RequestGoneError, match="its time is over"):
        place.answer(request(place.workspace, until=time.time() - 5))
    assert place.desk().read().entries == ()


@pytest.mark.parametrize(
    ("changes", "action", "params", "note", "words"),
    [
        ({"actions": ()}, Action.ALLOW, Params(), "", "does not take allow here"),
        ({"actions": (), "why_not": "only in its terminal"}, Action.ALLOW, Params(), "", "only in its terminal"),
        ({}, Action.ANSWER, ANSWERED, "", "does not take answer here; it takes allow and deny"),
        ({}, Action.ALLOW, Params(), "words", "no words"),
        ({"words": False}, Action.DENY, Params(), "words", "no words"),
        ({"rules": ("Bash(ls)",)}, Action.ALLOW, Params(rule="Bash(*)"), "", "none of the rules"),
    ],
)
def test_a_request_says_which_answers_it_takes(place, *, changes, action, params, note, words):
    asked = request(place.workspace, **changes)
    assert words in (refusal(asked, action, params, note) or "")
    with pytest.raises(DecisionError):
        place.answer(asked, action, params, note=note)
    assert place.desk().read().entries == ()


@pytest.mark.parametrize(
    ("answers", "words"),
    [
        ((Answer("Which store?", "SQLite"),), "all of its questions"),
        ((*ANSWERED.answers, Answer("Which day?", "x")), "does not ask"),
        ((*ANSWERED.answers, Answer("Which store?", "Redis")), "one answer"),
        ((*ANSWERED.answers, Answer("Which checks?", "x")), "given twice"),
        ((*ANSWERED.answers, Answer("Which checks?", " ")), "empty"),
    ],
)
def test_each_question_is_answered_as_it_was_asked(place, answers, words):
    asked = question(place.workspace)
    assert refusal(asked, Action.ANSWER, ANSWERED) is None
    assert words in (refusal(asked, Action.ANSWER, Params(answers=answers)) or "")
    twice = question(place.workspace, queries=(*asked.queries, asked.queries[0]))
    assert "twice" in (refusal(twice, Action.ANSWER, ANSWERED) or "")


def test_a_forged_decision_is_told_as_long_as_it_is_there(place):
    clerk, mirror = DecisionWatcher(place.desk()), place.workspace / ".agentwatch" / "decisions"
    clerk.look()
    mirror.mkdir(parents=True, exist_ok=True)
    (mirror / f"{'0' * 32}.json").write_text("{}", "utf-8")
    told = clerk.look()
    (mirror / f"{'0' * 32}.json").unlink()
    assert [type(one) for one in (*told, *clerk.look(), *clerk.look())] == [Unreadable, Gone]
