"""The demo: its session holds every ingredient it promises, and leaves nothing behind."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING

import pytest

from agentwatch.composition import monitor_of
from agentwatch.config import Settings
from agentwatch.contracts.reading import read_document
from agentwatch.contracts.shapes import Document, Return, Severity
from agentwatch.delegation.events import Rules, Seen, Tick
from agentwatch.delegation.task import State
from agentwatch.delegation.tree import Tree
from agentwatch.demo import session
from agentwatch.demo.script import Player, Step, demo_screenplay, parse
from agentwatch.demo.session import DemoSession
from agentwatch.errors import WorkspaceError

if TYPE_CHECKING:
    from collections.abc import Callable

NON_COMPLIANT = "verify/prices.return.md"
LOW_CONFIDENCE = "verify/load.return.json"
FALSE_CLAIM = "docs/runbooks/payment-failures.md"
DEADLINE_SECONDS = 20.0


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


def eventually(condition: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.005)
    return True


@pytest.fixture
def final(tmp_path: Path) -> Path:
    """A workspace that holds the last state of the session."""
    Player(demo_screenplay().steps, tmp_path).play_all()
    return tmp_path


# The documents


def test_every_document_keeps_its_contract_but_the_one_that_is_meant_to_break_it() -> None:
    broken = {}
    for told in session_documents():
        assert told.reading.complete, told.path
        if told.reading.findings:
            broken[told.path] = {finding.severity for finding in told.reading.findings}
    assert broken == {NON_COMPLIANT: {Severity.ERROR}, LOW_CONFIDENCE: {Severity.WARNING}}


def test_every_claimed_file_exists_but_the_one_that_was_never_written(final: Path) -> None:
    claimed = {
        path
        for told in session_documents()
        if isinstance(told.reading.document, Return)
        for path in (*told.reading.document.files_created, *told.reading.document.artifacts)
    }
    assert {path for path in claimed if not (final / path).is_file()} == {FALSE_CLAIM}


# The tree


def test_the_session_ends_in_states_that_stay_interesting() -> None:
    tree = delegation()
    assert {task_id: task.state for task_id, task in tree.tasks.items() if not task.inferred} == {
        "checkout": State.WORKING,
        "checkout.plan": State.COMPLETED,
        "checkout.docs": State.COMPLETED,
        "checkout.implement": State.WORKING,
        "checkout.implement.schema": State.COMPLETED,
        "checkout.implement.api": State.COMPLETED,
        "checkout.implement.ui": State.PARTIAL,
        "checkout.implement.ui.form": State.COMPLETED,
        "checkout.implement.ui.summary": State.COMPLETED,
        "checkout.implement.payments": State.BLOCKED,
        "checkout.implement.receipts": State.COMPLETED,
        "checkout.verify": State.WORKING,
        "checkout.verify.e2e": State.WORKING,
        "checkout.verify.prices": State.INVALID,
        "checkout.verify.load": State.COMPLETED,
        "specs/042_vat_rules/vat-researcher": State.COMPLETED,
    }
    assert {task.task_id for task in tree.asking()} >= {"checkout.implement.payments", "checkout.verify.prices"}


def test_somebody_is_needed_within_ten_seconds_and_somebody_else_much_later() -> None:
    assert not list(delegation(until=6.0).asking())
    assert [task.task_id for task in delegation(until=8.0).asking()] == ["checkout.implement.api"]
    assert [task.task_id for task in delegation(until=30.0).asking()] == ["checkout.implement.api"]


def test_one_task_falls_silent_and_no_other_does() -> None:
    stale = {
        task.task_id
        for at in range(5, int(demo_screenplay().steps[-1].at_seconds) + 1, 5)
        for task in delegation(float(at)).tasks.values()
        if task.stale
    }
    assert stale == {"checkout.verify.e2e"}


# The screenplay


def test_a_screenplay_gives_its_steps_in_time() -> None:
    script = parse(
        "@@ a remark\n@ +0.5 write a.md\n# Title\n\n- [ ] one\n- [ ] two\n\n@ +1 todo a.md\n- [x] two\n"
    ).steps
    assert script == [
        Step(0.5, "a.md", "# Title\n\n- [ ] one\n- [ ] two\n"),
        Step(1.5, "a.md", "# Title\n\n- [ ] one\n- [x] two\n"),
    ]


@pytest.mark.parametrize("text", ["@ x\n", "@ +1 sing a\n", "@ +1 write\n", "@ on dance a\n", "@ one write a\n"])
def test_a_screenplay_that_cannot_be_played_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse(text)


def test_every_name_in_a_scene_is_one_that_a_decision_fills_in() -> None:
    known = {"answer", "attempt", "ending", "file", "handoff", "mode", "report", "task"}
    steps = [step for scene in demo_screenplay().scenes for step in scene.steps]
    assert {name for step in steps for text in step[1:] for name in Template(text).get_identifiers()} == known


# The session


def test_a_child_that_says_that_all_tests_pass_after_a_run_that_failed_is_caught() -> None:
    demo = DemoSession(speed=5_000.0)
    with demo as workspace:
        monitor = monitor_of(workspace, Settings(), sessions=demo.sessions())
        assert eventually(lambda: "- [x] Collect the returns" in _text(workspace / "handoffs/checkout.implement.md"))

        def is_caught() -> bool:
            monitor.scan()
            task = monitor.tree.tasks.get(session.TASK)
            return task is not None and task.contradicted

        assert eventually(is_caught)
        task = monitor.tree.tasks[session.TASK]
        assert task.parent_id == "checkout.verify"
        assert not task.findings
        assert [(claim.kind, claim.path, claim.verdict.value) for claim in task.claims] == [
            ("summary", "all 214 tests pass", "contradicted"),
            ("evidence", "`npm test` \u2014 214 passed, 0 failed", "contradicted"),
            ("criterion", "All unit tests pass", "unverifiable"),
        ]
        assert task.ask is not None
        assert task.ask.startswith("a claim is false: all 214 tests pass")


def test_a_demo_that_cannot_write_says_so_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(player: Player, *_attending: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Player, "run", full)
    with pytest.raises(WorkspaceError, match=r"No space left on device.*free space"), DemoSession():
        assert eventually(lambda: not _is_playing())


def test_a_demo_lies_below_the_state_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr("tempfile.tempdir", "/dev/null")
    with DemoSession() as workspace:
        assert workspace.is_relative_to(tmp_path / "state")
    assert not workspace.parent.exists()
    monkeypatch.setenv("XDG_STATE_HOME", "/dev/null")
    with pytest.raises(WorkspaceError, match="set XDG_STATE_HOME to another place"), DemoSession():
        pass


def _is_playing() -> bool:
    return any(thread.name == "agentwatch-demo" for thread in threading.enumerate())


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.exists() else ""
