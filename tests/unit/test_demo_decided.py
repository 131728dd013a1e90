"""Deciding in the demo: its orchestrator reads real decisions, and what follows keeps every contract."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from agentwatch.config import Settings
from agentwatch.contracts.reading import read_document
from agentwatch.decisions.form import final_report, next_handoff
from agentwatch.decisions.record import Answer, Params, Record
from agentwatch.decisions.service import DecisionService, return_digest
from agentwatch.delegation.decision import Action, Stage
from agentwatch.delegation.request import Request
from agentwatch.delegation.task import State, Task
from agentwatch.demo.orchestrator import ASKS_AT, NAME, Orchestrator
from agentwatch.demo.script import Player, demo_screenplay
from agentwatch.demo.session import DemoSession
from agentwatch.monitor import Monitor
from agentwatch.requests.store import Inbox, RequestStore
from agentwatch.sources.files.source import FilesSource
from tests.unit.decisions.made import QUICK

API, PAYMENTS, DOCS = "checkout.implement.api", "checkout.implement.payments", "checkout.docs"
PRICES, LOAD, E2E = "checkout.verify.prices", "checkout.verify.load", "checkout.verify.e2e"
END = 119.0
LONGER = 40.0
"""Seconds that every scene has ended after."""
DEADLINE_SECONDS = 20.0


def looked_at(workspace: Path) -> Monitor:
    monitor = Monitor(workspace, Settings(), FilesSource(workspace), time.time, inspects=True)
    monitor.scan()
    return monitor


@dataclass
class Rehearsal:
    """The demo's session up to a moment, and the operator's desk in it."""

    root: Path
    player: Player
    desk: DecisionService
    orchestrator: Orchestrator
    began: float
    now: float

    @property
    def workspace(self) -> Path:
        return self.root / "shop"

    def play(self, until: float) -> None:
        self.now = until
        self.player.play_all(until, self.began)

    def task(self, task_id: str) -> Task:
        """As it is on disk, its claims checked."""
        return self.monitor().tree.tasks[task_id]

    def monitor(self) -> Monitor:
        return looked_at(self.workspace)

    def decide(self, task_id: str, action: Action, note: str = "", **params: object) -> Record:
        """What the operator's press does."""
        monitor = self.monitor()
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
        return self.desk.decide(
            subject, action, made, returned=lambda: return_digest(self.workspace, path), note=note
        ).record

    def handoff(self, task: Task) -> str:
        """The text of its latest handoff."""
        assert task.latest is not None
        assert task.latest.handoff is not None
        return (self.workspace / task.latest.handoff.path).read_text(encoding="utf-8")

    def stages(self, record: Record) -> list[tuple[Stage, str]]:
        """How far a decision has got, by whom."""
        return [(receipt.stage, receipt.by) for receipt in self.desk.receipts([record])[record.decision_id]]


@pytest.fixture
def demo(tmp_path: Path) -> Iterator[Rehearsal]:
    workspace, state, configuration = tmp_path / "shop", tmp_path / "state", tmp_path / "configuration"
    workspace.mkdir()
    play = demo_screenplay()
    player = Player(play.steps, workspace)
    desk = DecisionService(workspace, state=state, configuration=configuration, disk=QUICK)
    orchestrator = Orchestrator(workspace, state, configuration, play, player)
    yield Rehearsal(tmp_path, player, desk, orchestrator, time.time() - END - 2 * LONGER, 0.0)
    orchestrator.leave()


@pytest.mark.parametrize(
    ("at", "task_id", "was", "decision"),
    [
        (48.0, API, State.FAILED, (Action.ESCALATE, {"mode": "debugger"})),
        (70.0, PAYMENTS, State.BLOCKED, (Action.RESPOND, {"answers": (Answer("Which?", "The embedded one."),)})),
        (END, PRICES, State.INVALID, (Action.RETRY, {})),
    ],
)
def test_what_was_decided_becomes_the_next_attempt(
    demo: Rehearsal, at: float, task_id: str, was: State, decision: tuple[Action, dict[str, object]]
) -> None:
    action, params = decision
    demo.play(at)
    assert demo.task(task_id).own_state is was
    record = demo.decide(task_id, action, "use v3", **params)
    demo.orchestrator.attend()
    assert demo.stages(record)[-1] == (Stage.READ, NAME)
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
    assert '"Operator: ' in demo.handoff(task)
    assert "use v3" in demo.handoff(task)


def test_an_abort_ends_all_below_and_its_report_goes_up(demo: Rehearsal) -> None:
    demo.play(45.0)
    record = demo.decide("checkout.verify", Action.ABORT, "no staging this week")
    demo.orchestrator.attend()
    demo.play(END)
    assert demo.stages(record)[-1] == (Stage.READ, NAME)
    tasks = demo.monitor().tree.tasks
    assert not {PRICES, LOAD} & set(tasks)
    checklist = (demo.workspace / "handoffs/checkout.verify.md").read_text(encoding="utf-8")
    assert "- [-] Prepare the staging data" in checklist
    assert tasks[DOCS].own_state is State.COMPLETED
    report = demo.workspace / "reports/checkout.verify.aborted.md"
    assert "no staging this week" in report.read_text(encoding="utf-8")
    assert read_document(report.read_text(encoding="utf-8"), report.name) is None


@pytest.mark.parametrize(
    ("action", "note", "state"),
    [(Action.ALLOW, "", State.COMPLETED), (Action.DENY, 'Only "Chromium".\n## Status', State.PARTIAL)],
)
def test_the_tester_asks_once_and_goes_on_as_it_was_answered(
    demo: Rehearsal, action: Action, note: str, state: State
) -> None:
    inbox = Inbox(RequestStore(demo.workspace, state=demo.root / "state"))
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


def test_a_running_session_goes_on_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = {name: tmp_path / name for name in ("HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME")}
    for name, place in own.items():
        monkeypatch.setenv(name, str(place))
    played = DemoSession(speed=5_000.0)
    with played as workspace:
        desk = played.open_desk()
        assert eventually(played.is_over)
        subject = desk.subject(looked_at(workspace).tree.tasks[PAYMENTS])
        answers = Params(answers=(Answer(None, "the embedded one"),))
        desk.decide(subject, Action.RESPOND, answers, returned=lambda: subject.return_sha256)
        assert eventually((workspace / "src/checkout/payments.ts").exists)
        assert eventually(lambda: looked_at(workspace).tree.tasks[PAYMENTS].own_state is State.COMPLETED)
    assert not workspace.parent.exists()
    assert [path for place in own.values() for path in place.rglob("*") if path.is_file()] == []


def eventually(condition: Callable[[], object]) -> bool:
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.005)
    return True
