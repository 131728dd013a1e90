"""A session is shown, or not, with everything that it asked for, in whatever order its runs are seen."""

from __future__ import annotations

import itertools
from dataclasses import replace

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


def test_a_session_of_late_brings_even_its_old_children_in_any_order() -> None:
    runs = [
        ran("new", updated_at=200.0),
        ran("child", "new", 20.0),
        ran("deep", "child", 10.0),
        ran("old", updated_at=99.0),
        ran("of old", "old", 300.0),
    ]
    for order in itertools.permutations(runs):
        assert shown(Selection(since=150.0), *order) == {"new", "child", "deep"}


def test_an_old_session_that_goes_on_appears_with_all_of_it() -> None:
    selection = Selection(since=150.0)
    old = ran("old", updated_at=99.0)
    assert shown(selection, old, ran("child", "old", 99.0)) == set()
    assert old.run is not None
    resumed = old._replace(run=replace(old.run, updated_at=160.0))
    assert shown(selection, resumed) == {"old", "child"}


def test_one_session_is_chosen_by_the_beginning_of_its_id() -> None:
    runs = [ran("ses_1a"), ran("ses_2b"), ran("child", "ses_2b")]
    assert shown(Selection(session="ses_2"), *runs) == {"ses_2b", "child"}


def test_a_run_that_the_store_no_longer_has_is_told_only_if_it_was_shown() -> None:
    selection = Selection(since=150.0)
    shown(selection, ran("new", updated_at=200.0), ran("old", updated_at=1.0))
    assert [told.path for told in selection.choose([Ran(2, 0.0, "agents:new", None)])] == ["agents:new"]
    assert selection.choose([Ran(3, 0.0, "agents:old", None)]) == []
