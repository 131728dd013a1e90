"""The loops close: a child needs a decision, the operator's keys make it, the orchestrator carries it out.

Only the operator is played, by a pty; `agentwatch wait`, the files and the receipts are the real ones.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from agentwatch.errors import ExitCode
from tests.terminal.loop import Operator, Orchestrator, screen
from tests.unit.agents.documents import packet, returned

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
