"""Answers of a hook: which child is sent back, in what words, how often, and the answer if nobody decides."""

import json
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from agentwatch.agents.hook.child import answer_call
from agentwatch.agents.hook.held import HOLD, MOST
from agentwatch.agents.hook.journal import latest_sent_back
from agentwatch.config import Settings
from agentwatch.decisions.reader import Reader
from agentwatch.decisions.record import Answer, Mitigation, Params, Subject
from agentwatch.decisions.service import DecisionService
from agentwatch.delegation.decision import Action
from agentwatch.delegation.events import Ran, Rules, Run, RunState
from agentwatch.delegation.task import State
from agentwatch.delegation.tree import Tree
from agentwatch.sources.claude_code import NAME, read_hook_call
from agentwatch.sources.sessions.reader import message
from agentwatch.state import mark_shown, state_directory
from tests.unit.agents.claude import AGENT, SESSION, Claude
from tests.unit.agents.documents import packet, returned, subagent

TASK = "shop.api"
FAILED = returned()
DONE = returned("SUCCESS")
OF_A_SESSION = packet(TASK, session_id="sess_1735460684_a1b2c3")
JSON_OF_ANOTHER_SESSION = subagent("completed", "It is done.", session="sess_1735460684_ffffff")
BROKEN = returned().replace("retry_recommended: yes\n", "")
PROSE = "Looks fine to me."
NOW = Settings(hook_wait=0.0)
"""Settings without waiting: in these tests the answer is there already."""


@dataclass
class Scene:
    """A session of Claude Code whose child was handed a task, and the operator's desk."""

    claude: Claude
    settings: Settings = NOW

    @property
    def workspace(self) -> Path:
        return self.claude.workspace

    @property
    def state(self) -> Path:
        return state_directory(self.workspace)

    def _answer(self, payload: dict[str, Any]) -> dict[str, Any]:
        return answer_call(read_hook_call(json.dumps(payload)), self.workspace, self.settings)

    def stop(self, said: str, *, again: bool = False) -> dict[str, Any]:
        return self._answer(self.claude.stop(said, again=again))

    def come_back(self, said: str) -> dict[str, Any]:
        return self._answer(self.claude.came_back(said))

    def decide(self, action: Action, params: Params | None = None, said: str = FAILED, note: str = "") -> str:
        """Decide about a return as the session store has it: with a final line end, which the payload lacks."""
        digest, desk = sha256(f"{said.strip()}\n".encode()).hexdigest(), DecisionService(self.workspace)
        subject = Subject(desk.workspace_id, TASK, 1, None, digest)
        return desk.decide(subject, action, params, find_digest=lambda: digest, note=note).record.decision_id

    def receipts(self) -> set[str]:
        desk = DecisionService(self.workspace)
        records = [entry.record for entry in desk.read().entries]
        return {receipt.stage.value for told in desk.receipts(records).values() for receipt in told}


@pytest.fixture
def scene(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    (tmp_path / "shop").mkdir()
    claude = Claude(tmp_path / "home", tmp_path / "shop", f"```json\n{packet(TASK)}\n```\n\nDo it.")
    claude.write_transcript()
    return Scene(claude)


@pytest.mark.parametrize(
    ("action", "params"), [(Action.ABORT, None), (Action.ACCEPT, None), (Action.ESCALATE, Params(mode="architect"))]
)
def test_a_decision_for_the_parent_lets_the_child_go(scene, action, params):
    decision_id = scene.decide(action, params)
    answer = scene.stop(FAILED)
    assert "decision" not in answer
    assert f"decided to {action.value}" in answer["systemMessage"]
    assert "read" not in scene.receipts()

    context = scene.come_back(FAILED)["hookSpecificOutput"]["additionalContext"]
    assert action.value in context
    assert f".agentwatch/decisions/{decision_id}.json" in context
    assert "read" in scene.receipts()


@pytest.mark.parametrize("strict", [True, False])
@pytest.mark.parametrize("demands", [True, False])
@pytest.mark.parametrize("prompt", [f"```json\n{packet(TASK)}\n```", f"```json\n{OF_A_SESSION}\n```", "Have a look."])
@pytest.mark.parametrize(
    "said", [DONE, FAILED, BROKEN, PROSE, f"It works.\n\n{DONE}", JSON_OF_ANOTHER_SESSION, "", "\n"]
)
def test_a_hook_judges_as_the_tree_does(scene, said, prompt, demands, strict):
    scene.claude.prompt = prompt
    scene.claude.write_transcript()
    scene.settings = NOW._replace(require_contract=demands, enforcement="strict" if strict else "lenient")
    answered = message(said, 20.0) if said.strip() else None
    run = Run(
        source=NAME,
        session_id=AGENT,
        parent_session=SESSION,
        state=RunState.ENDED,
        place="",
        started_at=10.0,
        updated_at=20.0,
        prompt=message(prompt, 10.0),
        said=answered,
    )
    tree = Tree(Rules(strict=strict, demands=demands))
    tree.apply(Ran(1, 20.0, AGENT, run))
    (task,) = tree.tasks.values()
    is_bad = task.state in (State.INVALID, State.FAILED, State.BLOCKED)
    assert bool(scene.stop(said)) is is_bad
    assert bool(scene.come_back(said)) is is_bad


def test_an_early_marker_is_sent_back_to_say_how_it_ended(scene):
    marker = subagent("in_progress", "It goes on.")
    assert "say how it ended" in scene.stop(marker)["reason"]
    for folder, name, text in (("handoffs", "handoff", packet(TASK)), ("returns", "return", marker)):
        (scene.workspace / folder).mkdir()
        (scene.workspace / folder / f"shop.api.{name}.json").write_text(text, "utf-8")
    scene.settings = NOW._replace(hook_corrects=False, hook_when="always")
    assert scene.stop("See the file.")["reason"] == HOLD


def test_a_held_child_goes_on_with_the_decision_that_comes(scene):
    with mark_shown(scene.state):
        assert scene.stop(BROKEN)["reason"].startswith("Fix your return format")
        assert scene.stop(BROKEN, again=True)["reason"].startswith("The operator has not decided yet")
        decision_id = scene.decide(Action.RETRY, said=BROKEN, note="State whether a retry helps.")
        answer = scene.stop(BROKEN, again=True)
        assert "The operator's note: State whether a retry helps." in answer["reason"]
        assert decision_id in answer["reason"]
        assert scene.stop(DONE, again=True) == {}
    assert scene.receipts() == {"recorded", "delivered", "read", "acted"}


ANSWERS = Params(answers=(Answer(None, "8080."), Answer("Why?", "So.")))


@pytest.mark.parametrize("params", [ANSWERS, Params(mitigation=Mitigation.REDUCED_SCOPE)])
def test_a_child_goes_on_with_all_that_was_decided(scene, params):
    action, words = Action.RETRY, "attempt 2.\nWhat is different now: reduced scope."
    if params is ANSWERS:
        action, words = Action.RESPOND, "- What you asked: 8080.\n- Why?: So."
    decision_id = scene.decide(action, params)
    Reader(scene.workspace, "claim").claim(DecisionService(scene.workspace).read().latest[decision_id].record, "w1")
    answer = scene.stop(FAILED)
    assert "decision" not in answer
    assert f"the decision to {action} is carried out by w1" in answer["systemMessage"]
    for place in (scene.state / "receipts", scene.workspace / ".agentwatch" / "receipts"):
        (place / f"{decision_id}.claim.json").unlink()
    assert words in scene.stop(FAILED)["reason"]


def test_a_decision_counts_if_the_child_rewords_its_return(scene):
    scene.settings = NOW._replace(hook_when="always")
    assert scene.stop(FAILED)["reason"] == HOLD
    decision_id = scene.decide(Action.RETRY)
    otherwise = FAILED.replace("timed out", "has timed out")
    assert otherwise != FAILED
    assert decision_id in scene.stop(otherwise, again=True)["reason"]
    assert scene.stop(otherwise, again=True)["reason"] == HOLD, "it was carried out, and about this one nobody decided"


def test_a_child_is_held_but_not_for_ever(scene, monkeypatch):
    scene.settings = NOW._replace(hook_when="always")
    assert scene.stop(FAILED)["decision"] == "block"
    for _ in range(MOST - 1):
        answer = scene.stop(FAILED, again=True)
        assert answer["decision"] == "block"
        assert answer["reason"] == HOLD
    # The hook asks for no decision any more, so an invalid key does no harm.
    monkeypatch.setenv("AGENTWATCH_PUBLIC_KEY", "broken")
    last = scene.stop(FAILED, again=True)
    assert "decision" not in last
    assert f"{MOST} times in a row" in last["systemMessage"]
    assert latest_sent_back(scene.workspace, SESSION, AGENT) == []


def test_a_failed_child_is_held_if_no_decision_can_be_read(scene, monkeypatch):
    monkeypatch.setenv("AGENTWATCH_PUBLIC_KEY", "broken")
    scene.settings = NOW._replace(hook_when="always")
    answer = scene.stop(FAILED)
    assert (answer["decision"], answer["reason"]) == ("block", HOLD)
    assert "no decision can be read: " in answer["systemMessage"]
    assert scene.stop(FAILED, again=True)["decision"] == "block"
    assert "hookSpecificOutput" in scene.come_back(FAILED)


def test_nothing_of_a_child_reaches_the_terminal_as_an_order(scene):
    hostile = packet("x\x1b]0;owned\x07\u202e")
    scene.claude.prompt = f"```json\n{hostile}\n```"
    scene.claude.write_transcript()
    answer = scene.stop(BROKEN.replace("timed out", "\x1b[2J"))
    assert not any(character in json.dumps(answer, ensure_ascii=False) for character in "\x1b\x07\u202e")
