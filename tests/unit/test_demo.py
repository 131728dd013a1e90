"""The demo: its session holds every ingredient that it promises, and it leaves nothing behind."""

import threading
import time
from functools import cache, partial
from pathlib import Path
from string import Template

import pytest

from agentwatch.config import Settings
from agentwatch.contracts.reading import read_document
from agentwatch.contracts.shapes import Severity
from agentwatch.decisions.form import final_report, next_handoff
from agentwatch.decisions.record import Answer, Params, Record
from agentwatch.decisions.service import DecisionService, return_digest
from agentwatch.delegation.decision import Action, Request, Stage
from agentwatch.delegation.events import Seen, Tick
from agentwatch.delegation.task import Shown, State, Task
from agentwatch.delegation.tree import Tree
from agentwatch.demo import session
from agentwatch.demo.orchestrator import ASKS_AT, NAME, Orchestrator
from agentwatch.demo.script import Player, Step, demo_screenplay
from agentwatch.demo.session import DemoSession
from agentwatch.errors import WorkspaceError
from agentwatch.monitor import Monitor
from agentwatch.requests.inbox import Inbox
from agentwatch.requests.store import RequestStore
from agentwatch.sources.files.source import FilesSource
from tests.unit.decisions.made import QUICK
from tests.unit.delegation.events import tree_of

LAST = demo_screenplay().steps[-1].at_seconds


@cache
def documents() -> list[Seen]:
    """Return every document of the session, in the order in which they appear."""
    read = [(step, read_document(step.text, step.path)) for step in demo_screenplay().steps]
    return [
        Seen(seq, step.at_seconds, step.path, f"{seq:064x}", one.document, one.findings, not one.complete)
        for seq, (step, one) in enumerate(read)
        if one is not None
    ]


def tree_at(until: float) -> Tree:
    """Return the tree of the session after so many seconds, with the demo's own limit for silence."""
    seen = [one for one in documents() if one.at <= until]
    return tree_of([*seen, Tick(1_000, until)], stale_after=session.STALE_SECONDS)


def test_one_document_breaks_its_contract():
    broken = {one.path: {finding.severity for finding in one.findings} for one in documents() if one.findings}
    assert broken == {"verify/prices.return.md": {Severity.ERROR}, "verify/load.return.json": {Severity.WARNING}}
    assert not any(one.incomplete for one in documents())


def test_the_session_ends_in_states_that_stay_interesting():
    tree = tree_at(LAST)
    tasks = {task_id: task.state for task_id, task in tree.tasks.items() if not task.inferred}
    assert (len(tasks), sum(state is State.COMPLETED for state in tasks.values())) == (16, 9)
    assert {task_id: state for task_id, state in tasks.items() if state is not State.COMPLETED} == {
        **dict.fromkeys(("checkout", "checkout.implement", "checkout.verify", "checkout.verify.e2e"), State.WORKING),
        "checkout.implement.ui": State.PARTIAL,
        "checkout.implement.payments": State.BLOCKED,
        "checkout.verify.prices": State.INVALID,
    }
    assert {task.task_id for task in tree.asking_tasks()} >= {"checkout.implement.payments", "checkout.verify.prices"}


def test_one_task_at_a_time_needs_you_and_one_falls_silent():
    asking = [[task.task_id for task in tree_at(at).asking_tasks()] for at in (6.0, 8.0, 30.0)]
    assert asking == [[], ["checkout.implement.api"], ["checkout.implement.api"]]
    trees = [tree_at(float(at)) for at in range(5, int(LAST) + 1, 5)]
    assert {task.task_id for tree in trees for task in tree.tasks.values() if task.stale} == {"checkout.verify.e2e"}


def test_a_task_that_hands_work_on_stays_at_work():
    assert {tree_at(0.35 + step / 10).tasks["checkout"].shown for step in range(60)} == {Shown.WORKING}


def test_every_name_in_a_scene_is_one_that_a_decision_fills_in():
    known = {"answer", "attempt", "ending", "file", "handoff", "mode", "report", "task"}
    steps = [step for scene in demo_screenplay().scenes for step in scene.steps]
    assert {name for step in steps for text in step[1:] for name in Template(text).get_identifiers()} == known


def test_a_demo_that_cannot_write_says_so_at_the_end():
    def play():
        with DemoSession(speed=5_000.0) as workspace:
            (workspace / "handoffs").write_text("in the way")
            while thread := next((one for one in threading.enumerate() if one.name == "agentwatch-demo"), None):
                thread.join()

    with pytest.raises(WorkspaceError, match=r"the demo stopped: .*free space"):
        play()


def test_a_demo_needs_a_state_directory(monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", "/dev/null")
    with pytest.raises(WorkspaceError, match="set XDG_STATE_HOME to another place"), DemoSession():
        pass


# Deciding in the demo

API, PAYMENTS, DOCS = "checkout.implement.api", "checkout.implement.payments", "checkout.docs"
PRICES, LOAD, E2E = "checkout.verify.prices", "checkout.verify.load", "checkout.verify.e2e"
END = 119.0
LONGER = 40.0
"""Seconds after which every scene has ended."""


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
        """Return a task as it is on disk, with checked claims."""
        return looked_at(self.workspace).tree.tasks[task_id]

    def decide(self, task_id: str, action: Action, note: str = "", **params: object) -> Record:
        """Decide as the operator, and let the orchestrator read the decision."""
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
        record = self.desk.decide(subject, action, made, find_digest=returned, note=note).record
        self.orchestrator.handle_news()
        last = self.desk.receipts([record])[record.decision_id][-1]
        assert (last.stage, last.by) == (Stage.READ, NAME)
        return record


@pytest.fixture
def demo(tmp_path):
    rehearsal = Rehearsal(tmp_path)
    yield rehearsal
    rehearsal.orchestrator.end_request()


@pytest.mark.parametrize(
    ("at", "task_id", "was", "decision"),
    [
        (48.0, API, State.FAILED, (Action.ESCALATE, {"mode": "debugger"})),
        (70.0, PAYMENTS, State.BLOCKED, (Action.RESPOND, {"answers": (Answer("Which?", "The embedded one."),)})),
        (END, PRICES, State.INVALID, (Action.RETRY, {})),
    ],
)
def test_a_decision_becomes_the_next_attempt(demo, at, task_id, was, decision):
    action, params = decision
    demo.play(at)
    assert demo.task(task_id).own_state is was
    record = demo.decide(task_id, action, "use v3", **params)
    # The decision has been read, and not yet carried out.
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
    text = (demo.workspace / handoff.path).read_text()
    assert ('"Operator: ' in text, "use v3" in text) == (True, True)


def test_an_abort_ends_all_below_and_its_report_goes_up(demo):
    demo.play(45.0)
    demo.decide("checkout.verify", Action.ABORT, "no staging this week")
    demo.play(END)
    tasks = looked_at(demo.workspace).tree.tasks
    assert not {PRICES, LOAD} & set(tasks)
    checklist = (demo.workspace / "handoffs/checkout.verify.md").read_text()
    assert "- [-] Prepare the staging data" in checklist
    assert tasks[DOCS].own_state is State.COMPLETED
    report = demo.workspace / "reports/checkout.verify.aborted.md"
    assert "no staging this week" in report.read_text()
    # The report quotes a return, but is no return itself.
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
        demo.orchestrator.handle_news()
        asked = [one for one in inbox.store.read() if one.is_open] if at > ASKS_AT else asked
    gone = partial(inbox.why_gone, asked[0])
    demo.desk.answer(asked[0], action, task_id=E2E, attempt=1, why_gone=gone, note=note)
    demo.orchestrator.handle_news()
    demo.play(END)
    demo.orchestrator.handle_news()
    demo.play(END + LONGER)
    assert [len(asked), *(one for one in inbox.store.read() if one.is_open)] == [1]
    task = demo.task(E2E)
    assert (task.own_state, task.contradicted) == (state, False)
    assert [finding for finding in task.findings if finding.severity == "error"] == []
    returned = (demo.workspace / "verify/e2e.return.md").read_text()
    assert ("Chromium" in returned) is bool(note)


def test_a_played_session_goes_on_at_its_speed_after_a_stop(tmp_path):
    now = [0.0]
    player = Player([Step(8.0, "a", "1"), Step(16.0, "b", "2")], tmp_path, 4.0, clock=lambda: now[0])

    def waits(until: float) -> list[float]:
        asked: list[float] = []

        def wait(seconds: float) -> bool:
            asked.append(seconds)
            now[0] += seconds
            return now[0] >= until

        player.run(wait, lambda: None)
        return asked

    assert waits(until=3.0) == [2.0, 2.0]
    now[0] += 100.0  # A dialog was open.
    assert waits(until=200.0) == [2.0]
