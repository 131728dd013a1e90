"""The demo: its session holds every ingredient it promises, and leaves nothing behind."""

import threading
from dataclasses import dataclass
from hashlib import sha256
from string import Template

import pytest

from agentwatch.contracts.reading import read_document
from agentwatch.contracts.shapes import Document, Severity
from agentwatch.delegation.events import Rules, Seen, Tick
from agentwatch.delegation.task import Shown, State
from agentwatch.delegation.tree import Tree
from agentwatch.demo import session
from agentwatch.demo.script import Step, demo_screenplay, parse
from agentwatch.demo.session import DemoSession
from agentwatch.errors import WorkspaceError

NON_COMPLIANT = "verify/prices.return.md"
LOW_CONFIDENCE = "verify/load.return.json"
FALSE_CLAIM = "docs/runbooks/payment-failures.md"


@dataclass(frozen=True)
class Told:
    """A document that the session shows: when, where, and what the contracts read in it."""

    at: float
    path: str
    reading: Document


def session_documents() -> list[Told]:
    """Every document of the session in the order in which it appears."""
    read = ((step, read_document(step.text, step.path)) for step in demo_screenplay().steps)
    return [Told(step.at_seconds, step.path, reading) for step, reading in read if reading is not None]


def delegation(until: float = float("inf")) -> Tree:
    """The tree of the session after `until` seconds, its silences judged as the demo asks for."""
    tree = Tree(Rules(stale_after=session.STALE_SECONDS))
    end = min(until, demo_screenplay().steps[-1].at_seconds)
    for seq, told in enumerate(told for told in session_documents() if told.at <= until):
        digest = sha256(repr(told.reading).encode()).hexdigest()
        tree.apply(Seen(seq, told.at, told.path, digest, told.reading.document, told.reading.findings))
    tree.apply(Tick(1_000, end))
    return tree


def test_one_document_breaks_its_contract():
    broken = {}
    for told in session_documents():
        assert told.reading.complete, told.path
        if told.reading.findings:
            broken[told.path] = {finding.severity for finding in told.reading.findings}
    assert broken == {NON_COMPLIANT: {Severity.ERROR}, LOW_CONFIDENCE: {Severity.WARNING}}


def test_the_session_ends_in_states_that_stay_interesting():
    tree = delegation()
    tasks = {task_id: task.state for task_id, task in tree.tasks.items() if not task.inferred}
    assert (len(tasks), sum(state is State.COMPLETED for state in tasks.values())) == (16, 9)
    assert {task_id: state for task_id, state in tasks.items() if state is not State.COMPLETED} == {
        **dict.fromkeys(("checkout", "checkout.implement", "checkout.verify", "checkout.verify.e2e"), State.WORKING),
        "checkout.implement.ui": State.PARTIAL,
        "checkout.implement.payments": State.BLOCKED,
        "checkout.verify.prices": State.INVALID,
    }
    assert {task.task_id for task in tree.asking()} >= {"checkout.implement.payments", "checkout.verify.prices"}


def test_who_is_needed_when_and_who_falls_silent():
    assert [[task.task_id for task in delegation(until=at).asking()] for at in (6.0, 8.0, 30.0)] == [
        [],
        *[["checkout.implement.api"]] * 2,
    ]
    stale = {
        task.task_id
        for at in range(5, int(demo_screenplay().steps[-1].at_seconds) + 1, 5)
        for task in delegation(float(at)).tasks.values()
        if task.stale
    }
    assert stale == {"checkout.verify.e2e"}


def test_who_hands_work_on_stays_at_work():
    shown = {delegation(until=0.35 + step / 10).tasks["checkout"].shown for step in range(60)}
    assert shown == {Shown.WORKING}


def test_a_screenplay_gives_its_steps_in_time():
    script = parse(
        "@@ a remark\n@ +0.5 write a.md\n# Title\n\n- [ ] one\n- [ ] two\n\n@ +1 todo a.md\n- [x] two\n"
    ).steps
    assert script == [
        Step(0.5, "a.md", "# Title\n\n- [ ] one\n- [ ] two\n"),
        Step(1.5, "a.md", "# Title\n\n- [ ] one\n- [x] two\n"),
    ]


def test_every_name_in_a_scene_is_one_that_a_decision_fills_in():
    known = {"answer", "attempt", "ending", "file", "handoff", "mode", "report", "task"}
    steps = [step for scene in demo_screenplay().scenes for step in scene.steps]
    assert {name for step in steps for text in step[1:] for name in Template(text).get_identifiers()} == known


def test_a_demo_that_cannot_write_says_so_at_the_end():
    def play():
        with DemoSession(speed=5_000.0) as workspace:
            (workspace / "handoffs").write_text("in the way")
            while (thread := playing()) is not None:
                thread.join()

    with pytest.raises(WorkspaceError, match=r"the demo stopped: .*free space"):
        play()


def test_a_demo_lies_below_the_state_directory(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr("tempfile.tempdir", "/dev/null")
    with DemoSession() as workspace:
        assert workspace.is_relative_to(tmp_path / "state")
    assert not workspace.parent.exists()
    monkeypatch.setenv("XDG_STATE_HOME", "/dev/null")
    with pytest.raises(WorkspaceError, match="set XDG_STATE_HOME to another place"), DemoSession():
        pass


def playing() -> threading.Thread | None:
    return next((thread for thread in threading.enumerate() if thread.name == "agentwatch-demo"), None)
