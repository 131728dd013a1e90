"""The timeline on screen: what its bars say, where its keys lead, and that it stays on its task while things happen."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager

import pytest
from tests.app.scenes import NOW, Scene, shop, two_days
from tests.app.stage import Stage, stage
from tests.app.test_hostile_text import PAYLOADS, check, poisoned
from tests.unit.delegation import asking
from tests.unit.delegation.observations import meta
from textual.color import Color

from agentwatch.app.screens.main import MainScreen
from agentwatch.app.screens.pages import help_blocks
from agentwatch.app.screens.timeline import TimelineScreen
from agentwatch.app.widgets.details.blocks import lay_out
from agentwatch.app.widgets.timeline import bars, chart
from agentwatch.app.widgets.timeline.chart import TimelineChart
from agentwatch.config import Settings
from agentwatch.contracts.shapes import Outcome
from agentwatch.delegation.observation import Seen
from agentwatch.delegation.request import RequestStage
from agentwatch.delegation.task import Task
from agentwatch.view.spans import Span, spans_of

API = "checkout.implement.api"


@pytest.fixture(autouse=True)
def _utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


class Clock:
    """The present of a test."""

    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> float:
        return self.now


@asynccontextmanager
async def timeline(
    scene: Scene | None = None,
    size: tuple[int, int] = (140, 40),
    *,
    task_id: str | None = None,
    clock: Callable[[], float] = lambda: NOW,
    theme: str | None = None,
) -> AsyncIterator[tuple[Stage, TimelineScreen]]:
    """The timeline of a scene, opened with this task selected in the tree."""
    async with stage(scene=scene or shop(), size=size, clock=clock, settings=Settings(theme=theme)) as s:
        if task_id is not None:
            s.tree.select(task_id)
        await s.press("t")
        screen = s.app.screen
        assert isinstance(screen, TimelineScreen)
        await s.until(lambda: task_id is None or screen.task_id == task_id)
        await s.pilot.pause()
        yield s, screen


def row(s: Stage, title: str) -> str:
    """The chart's line of a task, without the title."""
    screen = s.app.screen
    assert isinstance(screen, TimelineScreen)
    return s.line(f" {title} ")[screen.chart.names_width :]


# Coming and going


async def test_it_opens_on_the_task_and_with_the_folds_of_the_tree() -> None:
    async with stage() as s:
        s.tree.select("checkout.implement")
        await s.press("space", "j")
        assert s.cursor == "checkout.review"
        await s.press("t")
        screen = s.app.screen
        assert isinstance(screen, TimelineScreen)
        assert screen.chart.row_ids() == s.tree.row_ids()
        assert screen.task_id == "checkout.review"
        assert "◑ review  partial" in s.text()


async def test_escape_leaves_the_tree_as_it_was_and_enter_goes_to_the_selected_task() -> None:
    async with timeline(task_id=API) as (s, screen):
        await s.press("j", "j")
        assert screen.task_id == "checkout.implement.docs"
        await s.press("escape")
        assert isinstance(s.app.screen, MainScreen)
        assert s.cursor == API
        await s.press("t", "j", "enter")
        assert isinstance(s.app.screen, MainScreen)
        assert s.cursor == "checkout.implement.ui"
        assert s.app.focused is s.tree


async def test_enter_opens_what_hides_the_task_in_the_tree() -> None:
    async with timeline(task_id=API) as (s, _screen):
        s.tree.action_fold_all()
        await s.press("enter")
        assert s.cursor == API
        assert API in s.tree.row_ids()


async def test_two_clicks_on_a_row_go_there_and_one_selects() -> None:
    async with timeline() as (s, screen):
        y = next(y for y, line in enumerate(s.text().splitlines()) if " docs " in line)
        await s.pilot.click(offset=(90, y))
        assert screen.task_id == "checkout.implement.docs"
        await s.pilot.click(offset=(90, y), times=2)
        await s.until(lambda: isinstance(s.app.screen, MainScreen))
        assert s.cursor == "checkout.implement.docs"


async def test_the_files_of_the_selected_task_are_at_hand() -> None:
    async with timeline(task_id="checkout.plan") as (s, _screen):
        await s.press("c")
        await s.until(lambda: "is no longer there" in s.text())


async def test_without_a_task_there_is_no_timeline() -> None:
    async with stage([]) as s:
        await s.press("t")
        assert isinstance(s.app.screen, MainScreen)


# What the bars say


def test_every_fill_is_another_character() -> None:
    fills = (bars.WORK, bars.BAD, bars.RAIL, bars.BELOW, bars.QUEUE, bars.SILENT, bars.WAIT, bars.FOLDED)
    assert len({*fills, bars.TICK, bars.NOW}) == len(fills) + 2


async def test_a_failure_that_needs_the_operator_works_and_then_waits_until_now() -> None:
    async with timeline() as (s, _screen):
        line = row(s, "api")
        assert "▓▓▓✗ 3m┄┄┄" in line
        assert line.index("▓") < line.index("✗ 3m") < line.index("┄") < line.index("│") < line.index("NEEDS YOU 2m")


async def test_bars_are_as_long_as_their_time() -> None:
    async with timeline() as (s, screen):
        frame, _ = screen.chart.picture
        line = row(s, "plan")
        cells = sum("▏▎▍▌▋▊▉█".find(glyph) / 8 + 1 / 8 for glyph in line.split("✓")[0].strip(" ┊?"))
        # The first cell of a bar shows the part that it leaves free.
        assert cells == pytest.approx(120 / frame.axis.scale, abs=1.1)


async def test_attempts_stand_one_after_the_other_with_the_wait_between_them() -> None:
    async with timeline() as (s, _screen):
        line = row(s, "release ↻2/2")
        assert line.index("▓") < line.index("✗") < line.index("┄") < line.index("█") < line.index("│ ◐ 1m+")


async def test_what_was_handed_off_without_a_sign_of_life_is_not_drawn_as_work() -> None:
    async with timeline() as (s, _screen):
        line = row(s, "probe")
        assert "╌╌╌│ ○ 6m" in line
        assert not set("█▓") & set(line)


async def test_a_stale_task_is_drawn_apart_from_when_it_fell_silent() -> None:
    scene = Scene()
    scene.handoff("slow", ago=4_000)
    scene.returned("slow", Outcome.WORKING, ago=2_000)
    scene.handoff("other", ago=5)
    async with timeline(scene) as (s, screen):
        await s.press("i")
        line = row(s, "slow")
        assert line.index("█") < line.index("░") < line.index("│ ◌ silent 33m")
        assert "silent since" in s.text()
        assert screen.task_id == "slow"


async def test_an_unknown_start_is_said_in_the_row_and_in_words() -> None:
    async with timeline(task_id="checkout.implement.ui") as (s, _screen):
        assert "?" in row(s, "ui")
        assert "3m+" in row(s, "ui")
        assert "start unknown, first sign 07:56:50 → now" in s.text()


async def test_a_request_is_marked_where_it_was_asked_and_where_it_ended() -> None:
    scene = Scene()
    scene.ran("s1", "export", ago=600)
    told = {"allowed": True, "by": "ada", "stage": RequestStage.DELIVERED}
    first = asking.request(1, asked_at=NOW - 480, ended_at=NOW - 360, **told)
    second = asking.request(2, asked_at=NOW - 240, ended_at=NOW - 120, stage=RequestStage.GONE)
    last = asking.request(3, asked_at=NOW - 60)
    for number, one in enumerate((first, second, last)):
        scene.observations.append(asking.requested(one, 100 + number))
    async with timeline(scene, task_id="s1") as (s, _):
        bar = row(s, "export")
        assert [mark for mark in bar if mark in "■◆◇"] == list("■◆■◇■")
        assert f"{bars.ASKED}{bars.WAIT}" in bar
        assert f"{bars.WAIT}{bars.ANSWERED}{bars.WORK}" in bar
        # By whom, and how long it took.
        told = s.text().splitlines()[-2]
        assert [told.find(words) > 0 for words in ("allowed by ada after 2m", "gone after 2m", "waits for you")] == [
            1
        ] * 3


async def test_a_parent_is_a_line_over_its_children() -> None:
    async with timeline() as (s, _screen):
        assert "━━━│ ◐ 14m" in row(s, "checkout")
        assert not set("█▓") & set(row(s, "checkout"))


async def test_a_task_that_no_file_speaks_of_spans_what_is_below_it() -> None:
    observed = [
        Seen(seq, NOW - ago, f"specs/1/{agent}-return-meta.json", f"{seq:064x}", meta("completed", "lead", agent))
        for seq, (agent, ago) in enumerate([("planner", 500.0), ("writer", 100.0)], 1)
    ]
    scene = Scene()
    scene.observations += observed
    async with timeline(scene) as (s, _screen):
        planner, writer = row(s, "planner#planner").index("✓"), row(s, "writer#writer").index("✓")
        assert row(s, "✓ 1").strip(" │┊") == "─" * (writer - planner)
        assert row(s, "✓ 1").index("─") == planner
        assert "no file speaks of it; below it 07:51:40 → 07:58:20  6m 40s" in s.text()
        await s.press("j")
        assert "start unknown, returned 07:51:40" in s.text()


async def test_a_folded_row_says_who_needs_the_operator_below() -> None:
    async with timeline(task_id="checkout.implement") as (s, _screen):
        assert "NEED YOU" not in row(s, "implement")
        await s.press("space")
        assert "✗ 1 NEED YOU" in row(s, "implement")


async def test_what_is_over_recedes_and_what_runs_or_asks_does_not() -> None:
    async with timeline() as (s, _screen):

        def color(title: str) -> Color:
            strip = next(strip for strip in s.strips() if f" {title} " in strip.text)
            found = next(segment.style for segment in strip if "█" in segment.text)
            assert found is not None
            assert found.color is not None
            return Color.from_rich_color(found.color)

        themed = s.app.theme_variables
        assert color("ui") == Color.parse(themed["state-working"])
        assert color("plan") != Color.parse(themed["state-completed"])


@pytest.mark.parametrize("theme", ["agentwatch-light", "agentwatch-contrast", "agentwatch-ansi"])
async def test_every_theme_says_the_same(theme: str) -> None:
    async with timeline(theme=theme) as (s, _screen):
        for words in ("✗ 3m", "│ NEEDS YOU 2m", "│ ○ 6m", "now 08:00", "━━━│ ◐ 14m"):
            assert words in s.text()


async def test_without_colours_it_says_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    async with timeline() as (s, _screen):
        assert "✗ 3m" in row(s, "api")
        assert "╌╌╌│ ○ 6m" in row(s, "probe")


@pytest.mark.parametrize("name", PAYLOADS)
async def test_hostile_text_is_only_text(name: str) -> None:
    async with timeline(poisoned(PAYLOADS[name]), size=(80, 24)) as (s, _screen):
        for _ in range(4):
            await s.press("j")
            check(s)
        assert isinstance(s.app.screen, TimelineScreen)


@pytest.mark.parametrize("size", [(140, 40), (80, 24), (40, 12), (20, 6)])
async def test_it_works_at_this_size(size: tuple[int, int]) -> None:
    async with timeline(size=size) as (s, screen):
        assert len(s.text().splitlines()) == size[1]
        for key in ("j", "+", "+", "h", "l", "z", "-", "i", "n", "0", "G", "g", "space", "E", "C", "+"):
            await s.press(key)
        await s.resize(size[0] + 17, size[1] + 3)
        await s.press("0")
        assert screen.chart.window.fits
        assert len(s.text().splitlines()) == size[1] + 3


# Time


async def test_long_idle_time_is_folded_and_says_how_long_it_is() -> None:
    async with timeline(two_days()) as (s, screen):
        assert "⋯1d⋯" in s.text()
        assert "now 15 Jan 08:00" in s.text()
        folded = row(s, "plan").count("█")
        assert "╱╱╱" in row(s, "audit")
        await s.press("i")
        assert "⋯" not in s.line(" work ")
        assert not screen.chart.window.folds_idle
        assert row(s, "plan").count("█") < folded / 4
        await s.press("i")
        assert row(s, "plan").count("█") == folded


@pytest.mark.parametrize("ago", [NOW + 1e17, -1e17, NOW, 3e9])
async def test_a_time_stamp_of_another_age_is_drawn_all_the_same(ago: float) -> None:
    scene = shop()
    scene.handoff("strange", ago=ago)
    scene.returned("strange", ago=ago - 100)
    async with timeline(scene, task_id="strange") as (s, _screen):
        for key in ("z", "+", "i", "0"):
            await s.press(key)
        assert "✓" in row(s, "strange")


async def test_time_before_the_first_task_that_is_left_goes_with_the_next_second() -> None:
    async with timeline(two_days()) as (s, screen):
        for name in ("handoffs/plan.handoff", "returns/plan.return", "handoffs/audit.handoff", "returns/audit.return"):
            s.scene.gone(f"{name}.md")
        s.source.push(s.scene.take())
        await s.until(lambda: screen.chart.row_ids() == ["build"])
        screen.tick()
        await s.pilot.pause()
        assert "⋯" not in s.text()
        assert "Timeline  15 Jan" in s.text()


@pytest.mark.parametrize("now", [NOW, NOW + 1.7, NOW + 3.1, NOW + 60.5])
async def test_the_line_of_the_present_goes_through_every_row(now: float) -> None:
    scene = shop()
    scene.handoff("new", ago=0)
    scene.returned("checkout.implement.docs", ago=0)
    async with timeline(scene, clock=lambda: now) as (s, screen):
        x = screen.chart.names_width + int(screen.chart.picture[0].x(now))
        lines = s.text().splitlines()[3 : 3 + screen.chart.size.height]
        assert {line[x] for line in lines} == {"│"}


async def test_the_present_moves_and_only_lines_that_differ_are_painted(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    async with timeline(clock=clock) as (s, screen):
        before = s.line("now").index("now")
        painted: list[int] = []
        monkeypatch.setattr(screen.chart, "refresh_line", painted.append)
        screen.tick()
        assert painted == []
        clock.now += 5
        screen.tick()
        # Of open tasks the seconds: nothing else has moved.
        assert 0 < len(painted) < screen.chart.row_count / 2
        monkeypatch.undo()
        clock.now += 60
        screen.tick()
        await s.pilot.pause()
        assert s.line("now").index("now") > before


async def test_zooming_into_the_present_follows_it_and_panning_away_does_not() -> None:
    clock = Clock()
    async with timeline(clock=clock) as (s, screen):
        await s.press("+", "+", "+")
        assert not screen.chart.window.fits
        assert screen.chart.window.follows
        clock.now += 600
        screen.tick()
        await s.pilot.pause()
        assert "now 08:10" in s.text()
        await s.press("h", "h", "h", "h", "h", "h", "h")
        assert not screen.chart.window.follows
        assert "now" not in s.line("Timeline")
        await s.press("n")
        assert screen.chart.window.follows
        assert "now 08:10" in s.text()


async def test_this_task_fills_the_chart_and_says_where_the_others_are() -> None:
    async with timeline(task_id="checkout.plan") as (s, _screen):
        await s.press("z")
        line = row(s, "plan")
        assert sum(glyph == "█" for glyph in line) > 50
        assert row(s, "api").rstrip().endswith("›")
        await s.press("j", "j", "j", "z")
        assert row(s, "plan").startswith("‹")


async def test_the_footer_says_what_the_keys_do_here_and_what_is_on() -> None:
    async with timeline() as (s, _screen):
        footer = s.text().splitlines()[-1]
        for words in ("esc back", "enter tree", "+ zoom in", "- out", "0 all", "n now", "i fold idle time", "? keys"):
            assert words in footer
        await s.pilot.click(offset=(footer.index("zoom in"), 39))
        screen = s.app.screen
        assert isinstance(screen, TimelineScreen)
        assert not screen.chart.window.fits


def test_the_help_explains_the_bars() -> None:
    text = "\n".join(line.content.plain for line in lay_out(help_blocks(), 80))
    for fill in (bars.WORK, bars.BAD, bars.RAIL, bars.BELOW, bars.QUEUE, bars.SILENT, bars.WAIT, bars.FOLDED):
        assert f"\n  {fill}" in text
    assert "drawn from the first sign of it" in text


# What happens while it is open


async def test_a_return_is_shown_at_once_and_the_selection_stays() -> None:
    async with timeline(task_id="checkout.implement.docs") as (s, screen):
        s.scene.returned("checkout.implement.docs", ago=0)
        s.source.push(s.scene.take())
        await s.until(lambda: "✓ 15s" in row(s, "docs"))
        assert "✓ docs  completed" in s.text()
        assert screen.task_id == "checkout.implement.docs"


async def test_tasks_come_go_and_move_and_the_selection_stays_on_its_task() -> None:
    async with timeline(task_id="checkout.release") as (s, screen):
        s.scene.handoff("checkout.implement.tests", ago=3)
        s.scene.gone("handoffs/checkout.security.probe.handoff.md")
        s.scene.handoff("checkout.security.tokens", ago=2, parent="checkout.implement")
        s.source.push(s.scene.take())
        await s.until(lambda: "tests" in s.text() and "probe" not in s.text())
        assert screen.task_id == "checkout.release"
        assert "▌" in s.line("release ↻2/2")
        ids = screen.chart.row_ids()
        assert ids.index("checkout.implement.tests") < ids.index("checkout.review")
        await s.press("k")
        assert screen.task_id == "checkout.metrics"


async def test_when_its_task_disappears_the_selection_goes_on_to_the_next() -> None:
    scene = Scene()
    for task_id in ("a", "b", "c"):
        scene.handoff(task_id)
    async with timeline(scene, task_id="b") as (s, screen):
        scene.gone("handoffs/b.handoff.md")
        s.source.push(scene.take())
        await s.until(lambda: screen.chart.row_ids() == ["a", "c"])
        assert screen.task_id == "c"


async def test_all_tasks_may_go_and_others_come() -> None:
    scene = Scene()
    scene.handoff("a")
    async with timeline(scene) as (s, screen):
        scene.gone("handoffs/a.handoff.md")
        s.source.push(scene.take())
        await s.until(lambda: not screen.chart.row_ids())
        await s.press("j", "+", "z", "n", "0", "enter")
        await s.press("t")
        assert isinstance(s.app.screen, MainScreen)
        scene.handoff("b")
        await s.see("b")
        await s.press("t")
        assert "○ b" in s.text()


async def test_an_update_makes_no_more_than_the_rows_on_screen(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene()
    for number in range(800):
        scene.handoff(f"t{number:03d}", ago=200 + number / 4)
    async with timeline(scene, size=(80, 24)) as (s, screen):
        made: list[str] = []

        def counting(task: Task, first: float | None = None) -> list[Span]:
            made.append(task.task_id)
            return spans_of(task, first)

        monkeypatch.setattr(chart, "spans_of", counting)
        scene.returned("t300", ago=270)
        scene.returned("t003", ago=1)
        s.source.push(scene.take())
        await s.until(lambda: "✓ 3m" in row(s, "t003"))
        assert made == ["t003"]
        assert screen.chart.row_count == 800


async def test_ten_thousand_tasks_open_and_move() -> None:
    scene = Scene()
    for number in range(10_000):
        scene.handoff(f"t{number:05d}", ago=20_000 + number / 4)
    async with timeline(scene) as (s, screen):
        await s.press("G")
        assert screen.task_id == "t09999"
        assert "○ t09999" in s.text()
        await s.press("z", "k", "g")
        assert screen.task_id == "t00000"


async def test_it_is_a_tree_of_its_own() -> None:
    async with timeline(task_id=API) as (s, screen):
        await s.press("C")
        assert screen.chart.row_ids() == ["checkout"]
        assert len(s.tree.row_ids()) == 13
        assert isinstance(screen.chart, TimelineChart)
