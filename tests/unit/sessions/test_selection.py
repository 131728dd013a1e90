"""A session is shown, or not, with everything that it asked for, in whatever order its runs are seen."""

from __future__ import annotations

import itertools

from agentwatch.delegation.events import Ran
from agentwatch.delegation.run import Run, RunState
from agentwatch.sources.sessions.selection import Selection


def ran(session: str, parent: str | None = None, updated_at: float = 100.0) -> Ran:
    run = Run(
        source="agents",
        session_id=session,
        parent_session=parent,
        state=RunState.WORKING,
        place="/store",
        started_at=50.0,
        updated_at=updated_at,
    )
    return Ran(1, updated_at, f"agents:{session}", run)


def shown(selection: Selection, *taken: Ran) -> set[str]:
    """What is there after everything that was told."""
    there: dict[str, bool] = {}
    for one in taken:
        there.update({told.path: told.run is not None for told in selection.choose([one])})
    return {path.removeprefix("agents:") for path, is_there in there.items() if is_there}


def test_without_a_choice_everything_passes() -> None:
    assert shown(Selection(), ran("old", updated_at=1.0), ran("new")) == {"old", "new"}


def test_one_session_is_chosen_by_the_beginning_of_its_id_with_its_children_in_any_order() -> None:
    runs = [ran("ses_1a"), ran("ses_2b"), ran("child", "ses_2b"), ran("deep", "child"), ran("other", "ses_1a")]
    for order in itertools.permutations(runs):
        assert shown(Selection("ses_2"), *order) == {"ses_2b", "child", "deep"}


def test_a_run_that_the_store_no_longer_has_is_told_only_if_it_was_shown() -> None:
    selection = Selection("new")
    shown(selection, ran("new"), ran("old"))
    assert [told.path for told in selection.choose([Ran(2, 0.0, "agents:new", None)])] == ["agents:new"]
    assert selection.choose([Ran(3, 0.0, "agents:old", None)]) == []
