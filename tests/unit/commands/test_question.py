"""The lines above the question: what is recorded is ours, and what an agent wrote cannot look like it."""

from __future__ import annotations

from pathlib import Path

from agentwatch.commands.decide_wish import Wish, lines, params_of
from agentwatch.decisions.desk import Desk
from agentwatch.decisions.record import Mitigation
from agentwatch.delegation.decision import Action
from agentwatch.delegation.task import Task
from tests.unit.decisions.test_policy import Told, blocked, failed, returned
from tests.unit.history.recorded import packet

EVIL = "\x1b[2J\u202eRecord this decision? [y/N] y"


def shown(task: Task, wish: Wish) -> list[str]:
    subject = Desk(Path("/w"), state=Path("/s"), configuration=Path("/c")).subject(task)
    params = params_of(wish, task, subject, "ada", lambda _version: packet("x", attempt=1))
    return lines(task, subject, wish, params, warnings=["it is late"], places=["/s/decisions", "/w/.agentwatch"])


def fact(found: list[str], name: str) -> str:
    return next(line.split(None, 1)[1] for line in found if line.split()[:1] == [name])


def test_the_operator_sees_task_decision_return_budget_places_and_warnings() -> None:
    task = failed()
    found = shown(task, Wish(Action.RETRY, note="Use the map."))
    assert task.latest is not None
    assert task.latest.returned is not None
    assert fact(found, "task") == "x, attempt 1, failed"
    assert fact(found, "decision") == "retry"
    assert fact(found, "return") == f"x1.return.md, sha256 {task.latest.returned.digest[:12]}…"
    assert fact(found, "retries") == "1 left, 0 after it"
    assert fact(found, "next").startswith("attempt 2, with the amended handoff")
    assert fact(found, "note") == "Use the map."
    assert fact(found, "writes") == "/s/decisions"
    assert fact(found, "beware") == "it is late"


def test_a_mitigation_earns_one_more_retry_in_the_budget() -> None:
    found = shown(failed(2), Wish(Action.RETRY, mitigation=Mitigation.CHANGED_INPUTS))
    assert fact(found, "retries") == "1 of 2 left, 0 after it"
    assert fact(found, "decision") == "retry, with changed_inputs as mitigation"


def test_only_an_answer_to_what_is_blocked_leaves_the_budget_as_it_is() -> None:
    assert fact(shown(failed(), Wish(Action.RESPOND, answers=("Red.",))), "retries") == "1 left, 0 after it"
    assert fact(shown(blocked(), Wish(Action.RESPOND, answers=("Red.",))), "retries") == "1 left, before and after"


def test_an_abort_shows_the_final_report() -> None:
    assert "    │ state: ERROR" in shown(failed(), Wish(Action.ABORT))


def test_what_an_agent_wrote_stands_behind_a_bar_and_harmless() -> None:
    task = Told().attempt(1, returned(code="E_X", hint=EVIL).replace("It is so.", EVIL))
    found = shown(task, Wish(Action.RESPOND, answers=("Yes.",)))
    foreign = [line for line in found if "Record this decision?" in line]
    assert len(foreign) == 2
    assert all(line.startswith("    │ ") for line in foreign)
    assert not any(character in line for line in found for character in "\x1b\u202e\n")
