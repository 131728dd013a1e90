"""The account tells what the tree and the history know: who waits, who was tried twice, what needs a human."""

from __future__ import annotations

import json
import re

from agentwatch.delegation.claims import Claim, Verdict
from agentwatch.delegation.observation import Tick
from agentwatch.delegation.rules import Rules
from agentwatch.delegation.task import State
from agentwatch.delegation.tree import DelegationTree
from agentwatch.report.account import DecisionLine, account_of
from agentwatch.report.document import document
from agentwatch.report.html import html
from agentwatch.report.markdown import markdown
from agentwatch.view.document import tree_document
from tests.unit.report.sessions import START, Session, small


def test_the_verdict_says_first_how_it_stands_and_last_what_needs_a_human() -> None:
    assert small().account().verdict == (
        "8 tasks, 3 done (1 verified, 1 contradicted by the evidence, 1 with nothing that could be verified). "
        "1 broke its contract, 1 is blocked, 2 are working, 1 has not begun. 3 need a human."
    )


def test_an_empty_session_says_so() -> None:
    account = Session().account()
    assert account.verdict == "No handoffs or returns were found."
    assert (account.tasks, account.attention, list(account.changes)) == ((), (), [])


def test_both_attempts_are_told_and_the_wait_between_them() -> None:
    api = next(line for line in small().account().tasks if line.task.task_id == "shop.api")
    (first, ended, *_), (second, *_) = api.attempts
    assert (first.state, first.started_at, ended) == (State.FAILED, START + 90, START + 300)
    assert first.result is not None
    assert (first.result.error_code, first.result.retry_hint) == ("E_TIMEOUT", "Raise the time-out.")
    assert second.packet is not None
    assert second.packet.objective == "Build the API with a time-out of 600 s"
    [wait] = api.waits
    assert (wait.after_attempt, wait.began_at, wait.ended_at) == (1, START + 300, START + 420)


def test_what_waits_for_a_human_waits_until_now() -> None:
    cart = next(line for line in small().account().tasks if line.task.task_id == "shop.ui.cart")
    [wait] = cart.waits
    assert (wait.began_at, wait.ended_at) == (START + 330, None)


def test_attention_is_what_asks_and_then_what_is_silent() -> None:
    account = small().account(later=2_000)
    assert [(one.task_id, one.since) for one in account.attention] == [
        ("shop.ui.form", START + 400),
        ("shop.ui.cart", START + 330),
        ("shop.docs", START + 260),
    ]
    session = Session()
    session.asked(0, "mute")
    session.told(5, "mute", "working")
    assert [one.task_id for one in session.account(later=10_000).attention] == ["mute"]


def test_a_lie_is_counted_also_where_only_a_part_was_returned() -> None:
    session = Session()
    session.asked(0, "half")
    session.told(9, "half", "partial")
    session.checked(9, Claim("created", "a.py", Verdict.CONTRADICTED, "missing"))
    assert session.account().verdict == (
        "1 task, none done. 1 returned a part. 1 that returned a part claims something false. 1 needs a human."
    )


def test_a_session_that_is_all_history_says_what_is_open_in_it() -> None:
    session = Session()
    session.asked(0, "half")
    session.told(9, "half", "completed")
    session.checked(9, Claim("created", "a.py", Verdict.CONTRADICTED, "missing"))
    tree = DelegationTree(Rules(history_before=START + 1_000))
    for observation in [*session.observations, Tick(9, START + 2_000)]:
        tree.apply(observation)
    account = account_of(tree, [], workspace="/home/ann/shop", now=START + 2_000)
    assert account.verdict == (
        "No new tasks, and 1 of history (1 of it with a false claim). "
        "1 open question from before 2026-09-21 is history. Nothing new needs a human."
    )
    assert "nothing new needs a human" in html(account)


def test_the_json_has_the_keys_that_are_documented_and_times_that_others_can_read() -> None:
    decision = DecisionLine(
        task_id="shop.api", attempt=1, action="retry", note="longer", operator="ann", at=START + 400, receipt="acted"
    )
    text = document(small().account(decisions=[decision]))
    assert text.isascii()
    told = json.loads(text)
    assert set(told) == {
        "schema_version",
        "workspace",
        "generated_at",
        "verdict",
        "summary",
        "attention",
        "tasks",
        "decisions",
        "changes",
        "notices",
        "worktrees",
        "complete",
        "problems",
    }
    assert told["schema_version"] == 1
    assert told["generated_at"] == "2026-09-21T14:26:00Z"
    assert told["summary"]["by_state"] == {"blocked": 1, "completed": 3, "invalid": 1, "submitted": 1, "working": 2}
    assert told["decisions"][0]["at"] == "2026-09-21T14:20:00Z"
    assert told["changes"][0] == {
        "at": "2026-09-21T14:13:20Z",
        "task_id": "shop",
        "before": None,
        "after": "submitted",
        "attempt": 1,
        "reason": "handed off; no sign of life yet",
        "contradicted": False,
    }
    api = next(task for task in told["tasks"] if task["task_id"] == "shop.api")
    [as_in_tree] = (one for one in tree_document(small().account().tree, "/w")["tasks"] if one["task_id"] == "shop.api")
    assert set(api) == {*as_in_tree, "verdict", "below", "waits", "todos", "statement"}
    assert api["attempts"][0]["ended_at"] == "2026-09-21T14:18:20Z"
    assert set(api["attempts"][0]) == {*as_in_tree["attempts"][0], "handoff", "returned", "prompt", "answer"}
    assert set(api["attempts"][0]["handoff"]) == {"path", "objective"}
    assert set(api["attempts"][0]["returned"]) == {
        *("path", "sha256", "contract", "reported_state", "summary", "error_code", "error_message", "retry_hint"),
        *("next_steps", "review_reason", "blockers", "limitations", "model", "mode", "others_say", "confidence"),
        *("artifacts", "files_created", "files_modified"),
    }
    form = next(task for task in told["tasks"] if task["task_id"] == "shop.ui.form")
    assert [set(claim) for claim in form["claims"]] == [{"kind", "path", "verdict", "detail"}]
    assert set(told["tasks"][0]["todos"][0]) == {"text", "status", "phase", "line"}
    assert api["waits"] == [
        {"after_attempt": 1, "began_at": "2026-09-21T14:18:20Z", "ended_at": "2026-09-21T14:20:20Z"}
    ]


def test_a_time_of_no_world_is_no_time() -> None:
    session = Session()
    session.asked(1e18, "far")
    assert json.loads(document(session.account()))["tasks"][0]["attempts"][0]["started_at"] is None


def test_a_mode_that_is_not_the_one_asked_for_is_not_only_attested() -> None:
    session = Session()
    for name, mode in (("a", "code"), ("b", "architect")):
        session.asked(0, name, mode="code")
        session.told(9, name, "completed", model="some/model", mode=mode)
    same, other = markdown(session.account()), html(session.account())
    assert "some/model in mode code (attested)" in same
    assert "some/model in mode architect (differs: the handoff asked for code)" in same
    assert "some/model in mode architect differs: the handoff asked for code" in re.sub(r"<[^>]+>", "", other)
