"""The loops close: a child needs a decision, the operator's keys make it, the orchestrator carries it out.

Only the operator is played, by a pty; `agentwatch wait`, the files and the receipts are the real ones.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agentwatch.errors import ExitCode
from tests.terminal.loop import CONTROL_C, RIGHT, Operator, Orchestrator, screen
from tests.unit.agents.documents import packet, returned, subagent

TASK = "shop.api"
LINE_FAULT = "E_LINE_FAULT"


@pytest.fixture
def orchestrator(tmp_path: Path) -> Orchestrator:
    made = Orchestrator(tmp_path)
    made.hand_off(packet("shop"))
    return made


def of(task_id: str, attempt: int | None = None) -> str:
    """The lines of a return's Status that say which task it is of."""
    return f"task_id: {task_id}\n" + (f"attempt: {attempt}\n" if attempt is not None else "")


def acted(operator: Operator, orchestrator: Orchestrator, decision_id: str) -> None:
    """The receipts of a decision are all there."""
    for stage in ("delivered", "read", "acted"):
        operator.terminal.wait_until(
            lambda stage=stage: orchestrator.has_receipt(decision_id, stage), f"no receipt says {stage}"
        )


def all_is_well(orchestrator: Orchestrator) -> None:
    """Every decision is signed and in its place, and nothing is asked or on its way."""
    verified = orchestrator.run("verify", orchestrator.workspace)
    assert verified.returncode == 0, verified.stdout + verified.stderr
    assert orchestrator.run("pending", orchestrator.workspace).stdout == "nothing needs you\n"


def test_a_failed_child_is_retried_with_the_handoff_that_the_operator_amended(orchestrator: Orchestrator) -> None:
    orchestrator.hand_off(packet(TASK))
    orchestrator.give_back(TASK, returned(more=of(TASK)))
    with screen(orchestrator) as operator:
        operator.sees(r"✗ api .*NEEDS YOU")
        operator.press("n")
        operator.sees(r" r retry  e escalate")
        waiting = orchestrator.wait(TASK)
        operator.opens("r", "↻ Retry")
        operator.press("use db/v3.sql")
        operator.sees(r"handoff   ✓ valid")
        operator.records()
        decision = operator.told(waiting)
        amended = json.loads(decision["params"]["handoff"])
        assert (decision["action"], amended["attempt"]) == ("retry", 2)
        assert amended["notes"][0] == "Operator: use db/v3.sql"

        orchestrator.hand_off(decision["params"]["handoff"])
        operator.sees(r"attempt 2 of 2")
        operator.sees(r"decided +retry · recorded")
        operator.sees(r"· acted")
        acted(operator, orchestrator, decision["decision_id"])
        orchestrator.give_back(TASK, returned("SUCCESS", "The API is built.", of(TASK, 2)))
        operator.sees(r"✓ api")
        operator.press("7")
        operator.sees(r"1  ✗ failed")
        operator.leaves()
    all_is_well(orchestrator)


def test_a_line_fault_goes_to_the_fitter_and_the_restored_station_is_retried_once(orchestrator: Orchestrator) -> None:
    orchestrator.hand_off(packet(TASK, attempt=2))
    orchestrator.give_back(TASK, returned(summary="The press jams.", more=of(TASK, 2), code=LINE_FAULT))
    with screen(orchestrator) as operator:
        operator.sees(r"✗ api ↻2/2 .*NEEDS YOU")
        operator.press("n")
        operator.sees(r"no retry left \(1 used\): escalate")
        waiting = orchestrator.wait(TASK)
        operator.opens("e", "↑ Escalate")
        operator.sees(r"mode +● fitter")
        operator.records()
        called = operator.told(waiting)
        assert (called["action"], called["params"]["mode"]) == ("escalate", "fitter")
        assert called["do_now"].endswith("wait for the next decision about shop.api")

        fitter = orchestrator.hand_off(Path(called["handoff_path"]).read_text("utf-8"))
        operator.sees(r"↑ api ↻2/2 ")
        operator.sees(r"○ api\.fitter-2 .*fitter")
        acted(operator, orchestrator, called["decision_id"])
        orchestrator.give_back(fitter, returned("SUCCESS", "The press runs again.", of(fitter)))
        operator.sees(r"✗ api ↻2/3 .*NEEDS YOU")
        operator.sees(r"the fitter has restored the line; 1 of 2 retries left")

        # The decision that called the fitter answers no more.
        asked = orchestrator.run("wait", TASK, orchestrator.workspace, "--timeout", "0")
        assert asked.returncode == ExitCode.PENDING
        waiting = orchestrator.wait(TASK)
        operator.opens("r", "↻ Retry")
        operator.sees(r"1 of 2 left now, 0 after this")
        operator.records()
        retried = operator.told(waiting)
        assert (retried["action"], retried["attempt"], retried["after"]) == ("retry", 2, called["decision_id"])
        orchestrator.hand_off(retried["params"]["handoff"])
        operator.sees(r"○ api ↻3/3")
        acted(operator, orchestrator, retried["decision_id"])
        orchestrator.give_back(TASK, returned("SUCCESS", "The API is built.", of(TASK, 3)))
        operator.sees(r"✓ api ↻3/3")
        operator.press("7")
        operator.sees(r"decided escalate to fitter")
        operator.sees(r"decided retry")
        operator.leaves()
    assert len(orchestrator.recorded()) == 2
    all_is_well(orchestrator)


def test_a_restored_station_that_fails_again_gets_no_other_retry(orchestrator: Orchestrator) -> None:
    orchestrator.hand_off(packet(TASK, attempt=2))
    orchestrator.give_back(TASK, returned(summary="It jams.", more=of(TASK, 2), code=LINE_FAULT))
    with screen(orchestrator) as operator:
        operator.sees(r"✗ api ↻2/2 .*NEEDS YOU")
        orchestrator.hand_off(packet("shop.api.fitter-2", parent_task_id="shop", restores=TASK))
        orchestrator.give_back("shop.api.fitter-2", returned("SUCCESS", "It ran again.", of("shop.api.fitter-2")))
        operator.sees(r"✗ api ↻2/3 .*NEEDS YOU")
        orchestrator.hand_off(packet(TASK, attempt=3))
        operator.sees(r"○ api ↻3/3")
        orchestrator.give_back(TASK, returned(summary="It jams again.", more=of(TASK, 3), code=LINE_FAULT))
        operator.sees(r"✓ api\.fitter-2")
        operator.sees(r"✗ api ↻3/3 .*NEEDS YOU")
        operator.press("n")
        operator.sees(r"no retry left \(2 used\): escalate")
        operator.press("r")
        operator.sees(r"no retry left \(2 allowed\): escalate")
        # Without a pause behind a key that is refused, no letter is a command.
        operator.leaves(CONTROL_C)
    by_shell = orchestrator.run("decide", TASK, orchestrator.workspace, "--retry", "--yes")
    assert by_shell.returncode == 1
    assert "no retry left (2 allowed)" in by_shell.stderr
    assert orchestrator.recorded() == []


def test_an_abort_ends_what_is_open_below_and_its_report_goes_up(orchestrator: Orchestrator) -> None:
    for task_id in (TASK, "shop.api.db", "shop.api.db.sql", "shop.api.ui"):
        orchestrator.hand_off(packet(task_id))
    orchestrator.give_back("shop.api.ui", returned(more=of("shop.api.ui")))
    orchestrator.give_back(TASK, returned(more=of(TASK)))
    with screen(orchestrator) as operator:
        operator.sees(r"✗ ui .*NEEDS YOU")
        operator.press("n")
        operator.sees(r"✗ api .*NEEDS YOU")
        waiting = orchestrator.wait(TASK)
        operator.opens("x", "– Abort")
        operator.sees(r"● no  ○ yes, end this task and the 2 open tasks below it")
        operator.press(RIGHT)
        operator.sees(r"● yes")
        operator.records()
        decision = operator.told(waiting)
        assert decision["action"] == "abort"
        for row in (r"▾ – api ", r"▾ – db ", r"– sql ", r"✗ ui "):
            operator.sees(row)
        operator.sees_no_more("NEEDS YOU")

        # What it was told to do: hand the report up.
        orchestrator.give_back(TASK, decision["params"]["report"])
        assert orchestrator.run("check", orchestrator.workspace).returncode == 0
        operator.sees(r"– api +operator +canceled")
        operator.sees(r"E_ABORTED_BY_OPERATOR")
        acted(operator, orchestrator, decision["decision_id"])
        operator.sees_no_more("NEEDS YOU")
        assert operator.told(orchestrator.wait(TASK))["decision_id"] == decision["decision_id"]
        operator.leaves()
    all_is_well(orchestrator)


@pytest.mark.parametrize("again", ["in its session", "handed off anew"])
def test_a_blocked_child_goes_on_with_the_answers(orchestrator: Orchestrator, again: str) -> None:
    orchestrator.hand_off(packet(TASK))
    orchestrator.give_back(TASK, subagent("blocked", "Two things are open.", "Which database?", "May the old API go?"))
    with screen(orchestrator) as operator:
        operator.sees(r"■ api .*NEEDS YOU")
        operator.press("n")
        operator.sees(r"answer: Which database\?")
        waiting = orchestrator.wait(TASK)
        operator.opens("a", "» Answer")
        operator.press("Postgres 16\t")
        operator.sees(r"Which database\? .*\n│ +Postgres 16")
        operator.press("yes, in v3")
        operator.sees(r"May the old API go\? .*\n│ +yes, in v3")
        operator.records()
        decision = operator.told(waiting)
        assert decision["action"] == "respond"
        assert decision["params"]["answers"] == [
            {"question": "Which database?", "answer": "Postgres 16"},
            {"question": "May the old API go?", "answer": "yes, in v3"},
        ]

        if again == "in its session":
            orchestrator.give_back(TASK, subagent("completed", "Built."))
        else:
            orchestrator.hand_off(packet(TASK, attempt=2, decision_id=decision["decision_id"]))
            operator.sees(r"○ api ↻2/2")
            orchestrator.give_back(TASK, subagent("completed", "Built.", session="sess_1735460685_d4e5f6"))
        operator.sees(r"✓ api")
        operator.sees(r"decided +your answer")
        acted(operator, orchestrator, decision["decision_id"])
        operator.leaves()
    all_is_well(orchestrator)


def test_an_accepted_part_is_gone_on_from(orchestrator: Orchestrator) -> None:
    orchestrator.hand_off(packet(TASK))
    orchestrator.give_back(TASK, returned("PARTIAL", "Half of it.", of(TASK), limits=["The old API stays."]))
    with screen(orchestrator, columns=80, lines=24) as operator:
        operator.sees(r"◑ api")
        operator.press("j")
        operator.sees(r"retry .* y accept")
        waiting = orchestrator.wait(TASK)
        operator.opens("y", "✓ Accept")
        operator.sees(r"○ not yet: say why")
        operator.press("enough for v3")
        operator.records()
        decision = operator.told(waiting)
        assert (decision["action"], decision["note"]) == ("accept", "enough for v3")
        assert decision["do_now"].startswith("go on as if shop.api had succeeded")
        orchestrator.hand_off(packet("shop.ui", decision_id=decision["decision_id"]))
        operator.sees(r"○ ui")
        operator.sees(r"◑ api")
        # What another task says that it goes on from is nothing of this one.
        assert orchestrator.has_receipt(decision["decision_id"], "read")
        assert not orchestrator.has_receipt(decision["decision_id"], "acted")
        operator.leaves()
    all_is_well(orchestrator)
