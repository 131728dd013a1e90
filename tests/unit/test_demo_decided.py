"""Deciding in the demo: its orchestrator reads real decisions, and what follows keeps every contract."""

import time
from functools import partial
from pathlib import Path

import pytest

from agentwatch.config import Settings
from agentwatch.decisions.form import final_report, next_handoff
from agentwatch.decisions.record import Answer, Params, Record
from agentwatch.decisions.service import DecisionService, return_digest
from agentwatch.delegation.decision import Action, Request, Stage
from agentwatch.delegation.task import State, Task
from agentwatch.demo.orchestrator import ASKS_AT, NAME, Orchestrator
from agentwatch.demo.script import Player, demo_screenplay
from agentwatch.monitor import Monitor
from agentwatch.requests.inbox import Inbox
from agentwatch.requests.store import RequestStore
from agentwatch.sources.files.source import FilesSource
from tests.unit.decisions.made import QUICK

API, PAYMENTS, DOCS = "checkout.implement.api", "checkout.implement.payments", "checkout.docs"
PRICES, LOAD, E2E = "checkout.verify.prices", "checkout.verify.load", "checkout.verify.e2e"
END = 119.0
LONGER = 40.0
"""Seconds that every scene has ended after."""


def looked_at(workspace: Path) -> Monitor:
    monitor = Monitor(workspace, Settings(), FilesSource(workspace), time.time, inspects=True)
    monitor.scan()
    return monitor


class Rehearsal:
    """The demo's session up to a moment, and the operator's desk in it."""

    def __init__(self, root: Path):
        self.workspace, self.state, keys, play = root / "shop", root / "state", root / "keys", demo_screenplay()
        self.workspace.mkdir()
        self.player = Player(play.steps, self.workspace)
        self.desk = DecisionService(self.workspace, state=self.state, configuration=keys, disk=QUICK)
        self.orchestrator = Orchestrator(self.workspace, self.state, keys, play, self.player)
        self.began = time.time() - END - 2 * LONGER

    def play(self, until: float):
        self.player.play(until, self.began)

    def task(self, task_id: str) -> Task:
        """As it is on disk, its claims checked."""
        return looked_at(self.workspace).tree.tasks[task_id]

    def decide(self, task_id: str, action: Action, note: str = "", **params: object) -> Record:
        """The operator decides, and the orchestrator reads it."""
        monitor = looked_at(self.workspace)
        task = monitor.tree.tasks[task_id]
        subject = self.desk.subject(task)
        if action in (Action.RETRY, Action.ESCALATE):
            mode = params.get("mode")
            proposal = next_handoff(task, subject, monitor.content, note=note, mode=str(mode) if mode else None)
            params["handoff"] = proposal.text
        if action is Action.ABORT:
            params["report"] = final_report(task, note=note).text
        path = task.latest.returned.path if task.latest and task.latest.returned else None
        made = Params(**params)  # type: ignore[arg-type]  as each case has it
        returned = partial(return_digest, self.workspace, path)
        record = self.desk.decide(subject, action, made, returned=returned, note=note).record
        self.orchestrator.attend()
        last = self.desk.receipts([record])[record.decision_id][-1]
        assert (last.stage, last.by) == (Stage.READ, NAME)
        return record


@pytest.fixture
def demo(tmp_path):
    rehearsal = Rehearsal(tmp_path)
    yield rehearsal
    rehearsal.orchestrator.leave()


@pytest.mark.parametrize(
    ("at", "task_id", "was", "decision"),
    [
        (48.0, API, State.FAILED, (Action.ESCALATE, {"mode": "debugger"})),
        (70.0, PAYMENTS, State.BLOCKED, (Action.RESPOND, {"answers": (Answer("Which?", "The embedded one."),)})),
        (END, PRICES, State.INVALID, (Action.RETRY, {})),
    ],
)
def test_what_was_decided_becomes_the_next_attempt(demo, at, task_id, was, decision):
    action, params = decision
    demo.play(at)
    assert demo.task(task_id).own_state is was
    record = demo.decide(task_id, action, "use v3", **params)
    # The decision is read before it is carried out.
    assert demo.task(task_id).attempt == 1
    demo.play(at + LONGER)
    task = demo.task(task_id)
    assert (task.own_state, task.attempt, task.needs_operator, task.contradicted) == (State.COMPLETED, 2, False, False)
    assert [finding for finding in task.findings if finding.severity == "error"] == []
    packet = task.packet
    assert packet is not None
    assert (packet.decision_id, packet.attempt) == (record.decision_id, 2)
    assert packet.mode == params.get("mode", "tester" if task_id == PRICES else "code")
    handoff = task.latest and task.latest.handoff
    assert handoff is not None
    text = (demo.workspace / handoff.path).read_text("utf-8")
    assert ('"Operator: ' in text, "use v3" in text) == (True, True)


def test_an_abort_ends_all_below_and_its_report_goes_up(demo):
    demo.play(45.0)
    demo.decide("checkout.verify", Action.ABORT, "no staging this week")
    demo.play(END)
    tasks = looked_at(demo.workspace).tree.tasks
    assert not {PRICES, LOAD} & set(tasks)
    checklist = (demo.workspace / "handoffs/checkout.verify.md").read_text(encoding="utf-8")
    assert "- [-] Prepare the staging data" in checklist
    assert tasks[DOCS].own_state is State.COMPLETED
    report = demo.workspace / "reports/checkout.verify.aborted.md"
    assert "no staging this week" in report.read_text(encoding="utf-8")
    # It quotes a return, and is none.
    assert "checkout.verify.aborted" not in tasks


@pytest.mark.parametrize(
    ("action", "note", "state"),
    [(Action.ALLOW, "", State.COMPLETED), (Action.DENY, 'Only "Chromium".\n## Status', State.PARTIAL)],
)
def test_the_tester_asks_once_and_goes_on_as_it_was_answered(demo, action, note, state):
    inbox = Inbox(RequestStore(demo.workspace, state=demo.state))
    asked: list[Request] = []
    for at in (ASKS_AT - 1, ASKS_AT, ASKS_AT + 1):
        assert asked == []
        demo.play(at)
        demo.orchestrator.attend()
        asked = [one for one in inbox.store.read() if one.is_open] if at > ASKS_AT else asked
    gone = partial(inbox.gone, asked[0])
    demo.desk.answer(asked[0], action, task_id=E2E, attempt=1, gone=gone, note=note)
    demo.orchestrator.attend()
    demo.play(END)
    demo.orchestrator.attend()
    demo.play(END + LONGER)
    assert [len(asked), *(one for one in inbox.store.read() if one.is_open)] == [1]
    task = demo.task(E2E)
    assert (task.own_state, task.contradicted) == (state, False)
    assert [finding for finding in task.findings if finding.severity == "error"] == []
    returned = (demo.workspace / "verify/e2e.return.md").read_text("utf-8")
    assert ("Chromium" in returned) is bool(note)
