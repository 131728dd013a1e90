"""The clock of a timeline: nothing goes backwards, and a night takes no room."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from agentwatch.report.axis import CELLS, NAME, clock_of, strips
from tests.unit.report.sessions import START, Session, large_account, small

times = st.floats(min_value=0, max_value=1e7)


def test_a_night_in_which_nothing_happens_is_cut_though_the_parent_spans_it() -> None:
    session = Session()
    session.asked(0, "a")
    session.asked(10, "a.x")
    session.told(610, "a.x", "completed")
    session.asked(50_000, "a.y")
    session.told(50_600, "a.y", "completed")
    session.told(50_610, "a", "completed")
    clock = clock_of(session.account())
    assert clock is not None
    [cut] = clock.cuts
    assert cut.seconds == 50_000 - 610
    assert cut.right - cut.left < 0.15
    parent, _, _ = session.account().tasks
    [bar] = clock.bars(parent)
    assert (bar.begin, bar.end) == (0.0, 1.0)


def test_a_task_that_still_runs_goes_on_to_the_end() -> None:
    session = small()
    clock = clock_of(session.account())
    assert clock is not None
    tasks = {line.task.task_id: line for line in session.account().tasks}
    [shop] = clock.bars(tasks["shop"])
    assert (shop.begin, shop.end, shop.open) == (0.0, 1.0, True)
    wait, first, second = clock.bars(tasks["shop.api"])
    assert wait.look is None
    assert first.end == wait.begin < wait.end == second.begin


def test_times_that_are_all_the_same_make_no_timeline() -> None:
    session = Session()
    session.asked(0, "a")
    session.told(0, "a", "completed")
    assert clock_of(session.account()) is None
    assert strips(session.account()) == []


@given(
    st.lists(st.tuples(times, times, st.sampled_from(["completed", "failed", "partial", ""])), min_size=1, max_size=12)
)
def test_places_rise_with_moments_and_lie_between_the_ends(spans: list[tuple[float, float, str]]) -> None:
    session = Session()
    for number, (begin, end, outcome) in enumerate(spans):
        session.asked(begin, f"t{number}")
        if outcome:
            session.told(end, f"t{number}", outcome)
    account = session.account()
    clock = clock_of(account)
    if clock is None:
        return
    moments = sorted(START + at for span in spans for at in span[:2])
    places = [clock.place(at) for at in moments]
    assert places == sorted(places)
    assert all(0 <= place <= 1 for place in places)
    for task in account.tasks:
        for bar in clock.bars(task):
            assert 0 <= bar.begin <= bar.end <= 1
    shares = [cut.right - cut.left for cut in clock.cuts]
    assert sum(shares) <= 1


def test_in_characters_every_bar_begins_in_the_same_column() -> None:
    account = large_account(120)
    head, *lines = strips(account)
    assert len(lines) == 120
    assert all(len(line) <= len(head) == 2 + NAME + 2 + CELLS for line in lines)


def test_a_wide_or_marked_name_does_not_move_its_bars() -> None:
    session = Session()
    for name in ("plain", "漢字" * 20, "e\u0301" * 50, "x" * 29 + "漢", "\u202eback"):
        session.asked(0, name)
        session.told(100, name, "completed")
    _, *lines = strips(session.account())
    columns = [sum(2 if "一" <= character <= "鿿" else 1 for character in line) for line in lines]
    assert len(set(columns)) == 1
