"""`agentwatch hook` and `agentwatch init` as Claude Code and a person start them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.reliability.agents.stage import Stage
from tests.terminal.emulator import Terminal, agentwatch
from tests.unit.agents.claude import Claude
from tests.unit.agents.documents import packet, returned

TASK = "shop.api"


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


@pytest.fixture
def claude(stage: Stage) -> Claude:
    made = Claude(stage.root / "home" / ".claude", stage.workspace, f"```json\n{packet(TASK)}\n```\n")
    made.write_transcript()
    return made


def test_a_child_whose_file_return_was_decided_about_is_sent_back(stage: Stage, claude: Claude) -> None:
    for directory, name, text in (
        ("handoffs", "shop.api.handoff.json", packet(TASK)),
        ("returns", "shop.api.return.md", returned()),
    ):
        (stage.workspace / directory).mkdir()
        (stage.workspace / directory / name).write_text(text, "utf-8")
    decision_id = stage.decide(TASK, "--retry", "--note", "Use the replica.")
    ran = stage.run("hook", given=json.dumps(claude.stop("It is in the file.")))
    answer = json.loads(ran.out)
    assert (ran.code, answer["decision"]) == (0, "block")
    assert "Use the replica." in answer["reason"]
    assert '"attempt": 2' in answer["reason"]
    assert "read.hook-claude" in stage.receipts(decision_id)


def test_a_hook_waits_only_while_a_screen_is_open(stage: Stage, claude: Claude) -> None:
    stage.configure("[hook]\nwait = 0.1\n")
    payload = json.dumps(claude.stop(returned()))
    assert "no screen" in json.loads(stage.run("hook", given=payload).out)["systemMessage"]
    with Terminal(agentwatch(stage.workspace), environment=stage.environment) as terminal:
        terminal.wait_for("● live")
        assert "within 0.1 s" in json.loads(stage.run("hook", given=payload).out)["systemMessage"]


@pytest.mark.parametrize("given", ["", "null", "{", "[" * 100_000, '{"session_id": 1}'], ids=lambda given: given[:8])
def test_what_is_no_payload_breaks_no_agent(stage: Stage, given: str) -> None:
    ran = stage.run("hook", given=given)
    assert (ran.code, ran.out) == (1, "")
    assert "nothing approved" in ran.err


def test_no_mistake_of_the_operators_blocks_an_agent(stage: Stage, claude: Claude) -> None:
    payload = json.dumps(claude.stop(returned()))
    assert stage.run("hook", "--wrong", given=payload).code == 1
    assert stage.run("hook", stage.root / "nowhere", given=payload).code == 1
    stage.configure("[hook]\nwait = 'long'\n")
    ran = stage.run("hook", given=payload)
    assert ran.code == 1
    assert "hook.wait" in ran.err
