"""When a new attempt begins, and what each attempt holds."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from tests.unit.delegation.events import Recorder, handoff, returned, tree_of

from agentwatch.contracts.shapes import Contract
from agentwatch.delegation.tree import Tree


def states(tree: Tree, task_id: str) -> list[tuple[int, str]]:
    return [(attempt.number, attempt.state) for attempt in tree.tasks[task_id].attempts]


said = st.tuples(st.sampled_from(["failed", "blocked", "completed"]), st.sampled_from([None, "command"]), st.booleans())


@given(st.lists(st.lists(said, max_size=3), min_size=1, max_size=4))
def test_what_comes_after_a_handoff_is_of_its_attempt(attempts: list[list[tuple[str, str | None, bool]]]) -> None:
    see = Recorder().seen
    events, expected = [], []
    for number, returns in enumerate(attempts, 1):
        events.append(see("a.handoff.json", handoff("a", attempt=number)))
        for outcome, session, in_markdown in returns:
            contract = Contract.RETURN_FORMAT if in_markdown else Contract.SUBAGENT_RETURN
            events.append(see("a.return.json", returned(outcome, contract, session_id=session)))
        expected.append((number, returns[-1][0] if returns else "submitted"))
    assert states(tree_of(events), "a") == expected
    handed, *answers = events[-1 - len(attempts[-1]) :]
    assert states(tree_of([handed, *answers[-1:]]), "a")[-1] == expected[-1], "as who sees only what is there now"
