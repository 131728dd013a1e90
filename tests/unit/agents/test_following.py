"""While a request is held: whether its call was answered in the program, and whether the program still runs."""

import pytest

from agentwatch.agents.hook.requests import AskedCall
from agentwatch.sources.claude_code import HookCall
from tests.unit.agents.asking import Story, call, child

ASKED_AT = 1_893_499_200.0
BEFORE, AFTER = "2029-12-31T12:00:00.000Z", "2030-01-01T12:00:01.000Z"


def looked_up(of: HookCall) -> AskedCall:
    return AskedCall(of, ASKED_AT)


@pytest.fixture
def story(tmp_path):
    return Story(tmp_path / "session.jsonl")


def asked(story: Story, **keys: object) -> HookCall:
    return call(transcript_path=str(story.session), **keys)


def test_an_equal_call_of_before_is_not_the_one_that_is_asked_about(story):
    story.called("u1")
    story.came("u1", BEFORE)
    found = looked_up(asked(story))
    assert (found.is_answered(), found.call_id) == (False, None)
    story.called("u2")
    assert (found.is_answered(), found.call_id) == (False, "u2")
    story.came("u1", AFTER)
    assert not found.is_answered()
    story.came("u2", AFTER)
    assert (found.is_answered(), found.call_id) == (True, "u2")


def test_a_child_has_a_transcript_of_its_own(tmp_path):
    story = Story(tmp_path / "session.jsonl", of_child=True)
    story.called("u1")
    found = looked_up(asked(story, **child()))
    assert (found.is_answered(), found.call_id) == (False, "u1")
    elsewhere = looked_up(asked(story, **child(agent_id="../../x")))
    assert (elsewhere.is_answered(), elsewhere.call_id) == (False, None)
