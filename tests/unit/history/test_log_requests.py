"""The log and the report tell who allowed what, and when."""

from __future__ import annotations

from agentwatch.delegation.decision import Action, Stage
from agentwatch.delegation.events import Event
from agentwatch.delegation.tree import Tree
from agentwatch.history.log import RequestChange, StateChanges, document, line
from agentwatch.history.story import story
from agentwatch.report.account import account_of
from agentwatch.report.html import html
from agentwatch.report.markdown import markdown
from tests.unit.delegation.asking import decided, permit, ran, request, requested, session
from tests.unit.delegation.events import tree_of

ONE = request(command="rm \x1b[31m-r build")
HISTORY: list[Event] = [
    ran(session()),
    requested(ONE),
    decided(ONE),
    decided(ONE, stage=Stage.DELIVERED, at=1_111.0),
]


def test_the_log_tells_each_step_of_a_request_once_and_who_took_it() -> None:
    told = StateChanges(Tree()).tell(story([*HISTORY, ran(session(updated_at=1_115.0), 9)], 2_000.0))
    lines = [line(one) for one in told if isinstance(one, RequestChange)]
    assert [one.split("  ", 2)[2] for one in lines] == [
        "allow? Bash  rm ␛[31m-r build: waits for you",
        "allow? Bash  rm ␛[31m-r build: allowed, not delivered yet, dev@laptop",
        "allow? Bash  rm ␛[31m-r build: allowed and delivered; what came of it is not known yet, dev@laptop",
    ]
    assert lines[0].startswith("1970-01-01T00:18:20Z  s1  ")


def test_the_log_for_programs_has_the_request_as_the_tree_has_it() -> None:
    told = StateChanges(Tree()).tell(HISTORY)
    [first, *_] = [document(one) for one in told if isinstance(one, RequestChange)]
    assert first["task_id"] == "s1"
    assert (first["request"]["stage"], first["request"]["shown"]) == ("offered", ONE.shown)


def test_the_report_says_who_denied_what() -> None:
    one = request(command="rm -r <b>build</b>")
    denied = decided(one, Action.DENY, Stage.DELIVERED)
    tree = tree_of([ran(session(permit(allowed=False, input_sha256=one.input_sha256))), requested(one), denied])
    account = account_of(tree, (), workspace="/w", now=2_000.0)
    for text in (markdown(account), html(account)):
        assert "denied by you" in text
        assert "laptop" in text
        assert "<b>build" not in text
