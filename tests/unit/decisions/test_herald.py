"""Only an idle session of OpenCode is told of a decision that nobody has read, in a thread, and the task says so."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from agentwatch.decisions.herald import Announcer, AnnouncingError, Herald
from agentwatch.delegation.decision import Action, Decision, Receipt, Stage
from agentwatch.delegation.events import Decided, Ran
from agentwatch.delegation.run import Run, RunState
from agentwatch.delegation.tree import Tree

ROOT = Run(
    source="opencode",
    session_id="ses_1",
    parent_session=None,
    state=RunState.ENDED,
    place="/db",
    started_at=1.0,
    updated_at=9.0,
    ended_at=9.0,
)
CHILD = Run(
    source="opencode",
    session_id="ses_2",
    parent_session="ses_1",
    state=RunState.FAILED,
    place="/db",
    started_at=2.0,
    updated_at=3.0,
    ended_at=3.0,
)
MADE = Decision(
    decision_id="d1",
    task_id="ses_2",
    attempt=1,
    handoff_sha256=None,
    return_sha256=None,
    action=Action.RETRY,
    at=10.0,
    receipts=(Receipt(Stage.RECORDED, 10.0),),
)


class Told(Announcer):
    """Announces to nobody."""

    def __init__(self, fails: bool = False) -> None:
        super().__init__("http://127.0.0.1:1", Path("/nowhere"), Path("/nowhere/state"))
        self.fails = fails
        self.told: list[tuple[str, str, str]] = []

    def announce(self, session: str, task_id: str, decision_id: str) -> str:
        self.told.append((session, task_id, decision_id))
        if self.fails:
            raise AnnouncingError("it does not answer")
        return "announced"


@dataclass
class Scene:
    announcer: Told = field(default_factory=Told)
    notes: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.tree = Tree()
        self.herald = Herald(self.announcer, self.notes.__setitem__)

    def see(self, *seen: Run | Decision) -> None:
        for one in seen:
            if isinstance(one, Run):
                event: Ran | Decided = Ran(1, one.updated_at, one.session_id, one)
            else:
                event = Decided(2, one.at, one.decision_id, one)
            self.herald.look(self.tree, self.tree.apply(event))
        for thread in threading.enumerate():
            if thread.name == "agentwatch-herald":
                thread.join()


@pytest.fixture
def scene() -> Scene:
    return Scene()


def test_an_idle_session_is_told_once_and_the_decision_says_so(scene: Scene) -> None:
    scene.see(ROOT, CHILD, MADE, replace(ROOT, updated_at=11.0), MADE)
    assert scene.announcer.told == [("ses_1", "ses_2", "d1")]
    assert scene.notes == {"d1": "announced"}


def test_a_session_that_works_is_told_when_it_has_come_to_rest(scene: Scene) -> None:
    scene.see(replace(ROOT, state=RunState.WORKING, ended_at=None), CHILD, MADE)
    assert scene.announcer.told == []
    scene.see(ROOT)
    assert scene.announcer.told == [("ses_1", "ses_2", "d1")]


@pytest.mark.parametrize(
    "decision",
    [
        replace(MADE, receipts=(*MADE.receipts, Receipt(Stage.READ, 11.0))),
        replace(MADE, waits="the workspace cannot be written"),
        replace(MADE, announced="announced before"),
        replace(MADE, return_sha256="of another return"),
    ],
)
def test_what_is_read_undelivered_told_or_about_something_else_is_not_announced(
    scene: Scene, decision: Decision
) -> None:
    scene.see(ROOT, CHILD, decision)
    assert scene.announcer.told == []


def test_sessions_of_other_programs_are_left_alone(scene: Scene) -> None:
    scene.see(replace(ROOT, source="codex"), replace(CHILD, source="codex"), MADE)
    assert scene.announcer.told == []


def test_a_failure_is_a_notice_and_is_not_repeated_at_once() -> None:
    scene = Scene(Told(fails=True))
    scene.see(ROOT, CHILD, MADE, replace(ROOT, updated_at=11.0))
    assert len(scene.announcer.told) == 1
    assert scene.herald.notice == "it does not answer"
    assert scene.notes == {}
