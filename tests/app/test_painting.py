"""What is painted, and when: the lines that changed, and nothing while nothing reads differently."""

from __future__ import annotations

import pytest
from tests.app.scenes import NOW
from tests.app.stage import stage
from textual.geometry import Region
from textual.strip import Strip

from agentwatch.app.painting import Painter
from agentwatch.view.times import duration, lasts


async def test_the_lines_that_are_painted_are_those_of_the_whole_screen() -> None:
    async with stage() as s:
        painter = s.main._compositor
        assert isinstance(painter, Painter)
        whole = [list(strip) for strip in painter.render_strips()]
        width = s.app.size.width
        for regions in (
            {Region(0, 0, width, 1), Region(3, 5, 20, 2), Region(0, s.app.size.height - 1, width, 1)},
            {Region(width - 4, 2, 30, 4)},
        ):
            painter._dirty_regions = set(regions)
            update = painter.render_partial_update()
            assert update is not None
            assert {y for y, _, _ in update.spans} == {y for one in regions for y in range(one.y, one.bottom)}
            for y, start, end in update.spans:
                pieces = {x: strip for x, strip in update.chops[y].items() if strip is not None}
                first = min(x for x, strip in pieces.items() if x + strip.cell_length > start)
                painted = Strip.join(pieces[x] for x in sorted(pieces) if x >= first).crop(start - first, end - first)
                assert painted.text == Strip(whole[y]).crop(start, end).text
        assert painter.render_partial_update() is None


async def test_a_second_in_which_nothing_reads_differently_draws_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    async with stage() as s:
        clock, drawn = [NOW], list[float]()
        monkeypatch.setattr(s.tree, "tick", lambda: drawn.append(clock[-1]))
        monkeypatch.setattr(s.main, "_clock", lambda: clock[-1])
        for widget in (s.tree, s.main.needs_you):
            monkeypatch.setattr(widget, "due", lambda _: NOW + 40.0)
        s.main._stir()
        for now in (NOW, NOW + 1, NOW + 39, NOW + 40, NOW + 41, NOW + 20):
            clock.append(now)
            s.main.tick()
        # The last one goes back in time.
        assert drawn == [NOW, NOW + 40, NOW + 41, NOW + 20]


@pytest.mark.parametrize("passed", [0.0, 1.5, 59.0, 60.0, 61.25, 3_599.5, 3_600.0, 7_000.0, 86_400.0, 200_000.5])
def test_a_span_reads_the_same_for_as_long_as_it_is_said_to(passed: float) -> None:
    left = lasts(passed)
    assert 0 < left <= 86_400
    assert duration(passed) == duration(passed + left - 0.01) != duration(passed + left)


async def test_the_longer_a_refresh_takes_the_longer_is_the_pause_to_the_next() -> None:
    async with stage() as s:
        updates = s.app._updates
        s.scene.handoff("new")
        await s.see("new")
        await s.until(lambda: updates._took > 0)
        pauses = []
        for updates._took in (0.001, 0.05, 9.0):
            pauses.append(updates._pause)
        assert pauses == [pytest.approx(1 / 30), pytest.approx(0.2), pytest.approx(0.25)]


async def test_a_row_in_sight_is_due_when_its_age_reads_differently() -> None:
    async with stage() as s:
        due = s.tree.due(NOW)
        assert NOW < due <= NOW + 60
        ages = [line.text for line in s.tree._lines]
        s.tree._clock = lambda: due - 0.01
        s.tree._draw()
        assert [line.text for line in s.tree._lines] == ages
        s.tree._clock = lambda: due
        s.tree._draw()
        assert [line.text for line in s.tree._lines] != ages
