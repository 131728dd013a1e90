"""`agentwatch hook` and `agentwatch init` as Claude Code and a person start them."""

import json

import pytest

from tests.reliability.agents.stage import Stage
from tests.terminal.emulator import Terminal, agentwatch
from tests.unit.agents.claude import Claude
from tests.unit.agents.documents import packet, returned

TASK = "shop.api"


@pytest.fixture
def stage(tmp_path):
    return Stage(tmp_path)


@pytest.fixture
def claude(stage):
    made = Claude(stage.root / "home" / ".claude", stage.workspace, f"```json\n{packet(TASK)}\n```\n")
    made.write_transcript()
    return made


def test_a_child_with_a_decided_file_return_is_sent_back(stage, claude):
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


def test_a_hook_waits_only_while_a_screen_is_open(stage, claude):
    stage.configure("[hook]\nwait = 0.1\n")
    payload = json.dumps(claude.stop(returned()))
    assert "no screen" in json.loads(stage.run("hook", given=payload).out)["systemMessage"]
    with Terminal(agentwatch(stage.workspace), environment=stage.environment) as terminal:
        terminal.wait_for("● live")
        assert "within 0.1 s" in json.loads(stage.run("hook", given=payload).out)["systemMessage"]
