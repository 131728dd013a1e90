"""The tree on screen: the cursor belongs to a task, columns stay straight, nothing is drawn that did not change."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from rich.cells import cell_len
from tests.app.scenes import LIVE, NOW, Scene
from tests.app.stage import Stage, stage

from agentwatch.app.screens.pages import HelpScreen, help_blocks
from agentwatch.app.widgets import task_tree
from agentwatch.app.widgets.cells import clip_name
from agentwatch.app.widgets.details.blocks import lay_out
from agentwatch.app.widgets.filter_bar import FilterInput, find
from agentwatch.app.widgets.task_line import Columns
from agentwatch.config import Settings
from agentwatch.contracts.shapes import Outcome
from agentwatch.delegation.claims import Claim, Verdict
from agentwatch.delegation.task import State
from agentwatch.delegation.tree import DelegationTree
from agentwatch.sources.health import Health
from agentwatch.view.query import Query, parse


def flat(count: int, prefix: str = "t") -> Scene:
    """Tasks without parents."""
    scene = Scene()
    for number in range(count):
        scene.handoff(f"{prefix}{number:05d}")
    return scene


def screen_row(s: Stage, title: str) -> int:
    return next(y for y, line in enumerate(s.text().splitlines()) if title in line)


async def test_the_cursor_stays_on_its_task_when_rows_come_above_it() -> None:
    scene = Scene()
    scene.handoff("a")
    scene.handoff("b")
    async with stage(scene=scene) as s:
        await s.press("j")
        assert s.cursor == "b"
        scene.handoff("a.one")
        scene.handoff("a.two")
        await s.see("a.two")
        assert s.tree.row_ids() == ["a", "a.one", "a.two", "b"]
        assert s.cursor == "b"
        await s.press("k")
        assert s.cursor == "a.two"


async def test_the_cursor_stays_on_its_task_when_rows_above_it_go() -> None:
    scene = Scene()
    for task_id in ("a", "a.one", "a.two", "b"):
        scene.handoff(task_id)
    async with stage(scene=scene) as s:
        await s.press("G")
        scene.gone("handoffs/a.one.handoff.md")
        scene.gone("handoffs/a.two.handoff.md")
        s.source.push(scene.take())
        await s.until(lambda: s.tree.row_ids() == ["a", "b"])
        assert s.cursor == "b"
        await s.press("k")
        assert s.cursor == "a"


async def test_the_cursor_goes_to_the_next_sibling_when_its_task_disappears() -> None:
    scene = Scene()
    for task_id in ("a", "a.one", "a.two", "b"):
        scene.handoff(task_id)
    async with stage(scene=scene) as s:
        await s.press("j")
        scene.gone("handoffs/a.one.handoff.md")
        s.source.push(scene.take())
        await s.until(lambda: s.cursor == "a.two")


async def test_the_cursor_goes_to_the_parent_when_the_last_child_disappears() -> None:
    scene = Scene()
    for task_id in ("a", "a.one", "a.two", "b"):
        scene.handoff(task_id)
    async with stage(scene=scene) as s:
        await s.press("j", "j")
        assert s.cursor == "a.two"
        scene.gone("handoffs/a.two.handoff.md")
        s.source.push(scene.take())
        await s.until(lambda: s.cursor == "a")


async def test_the_cursor_goes_up_when_its_task_is_folded_away() -> None:
    async with stage() as s:
        s.tree.select("checkout.implement.api")
        await s.press("C")
        assert s.cursor == "checkout"


async def test_what_is_on_screen_stays_when_rows_come_above_the_view() -> None:
    scene = flat(100)
    async with stage(scene=scene, size=(80, 24)) as s:
        s.tree.select("t00050")
        await s.until(lambda: "t00050" in s.text())
        before = screen_row(s, "t00050")
        for number in range(7):
            scene.handoff(f"t00001.n{number}")
        await s.see("t00001.n6")
        assert screen_row(s, "t00050") == before
        assert s.cursor == "t00050"


async def test_all_tasks_gone_and_back_again() -> None:
    scene = flat(3)
    async with stage(scene=scene) as s:
        for number in range(3):
            scene.gone(f"handoffs/t{number:05d}.handoff.md")
        s.source.push(scene.take())
        await s.until(lambda: s.cursor is None and "No delegation here yet" in s.text())
        scene.handoff("again")
        await s.see("again")
        await s.until(lambda: s.cursor == "again")
        await s.until(lambda: s.app.focused is s.tree)


async def test_nothing_is_repainted_when_an_update_changes_no_line(monkeypatch: pytest.MonkeyPatch) -> None:
    async with stage() as s:
        painted: list[int] = []
        monkeypatch.setattr(s.tree, "refresh_line", painted.append)
        s.tree.refresh_tasks(s.app.monitor.tree.tasks, settled=True)
        s.tree.tick()
        assert painted == []


async def test_an_update_repaints_only_its_own_line(monkeypatch: pytest.MonkeyPatch) -> None:
    async with stage() as s:
        painted: list[int] = []
        monkeypatch.setattr(s.tree, "refresh_line", painted.append)
        s.app.monitor.tree.tasks["checkout.implement.docs"].title = "handbook"
        s.tree.refresh_tasks({"checkout.implement.docs"}, settled=True)
        assert painted == [s.tree.row_ids().index("checkout.implement.docs")]


async def test_elapsed_time_goes_on_for_open_rows_only() -> None:
    now = NOW
    async with stage(clock=lambda: now) as s:
        docs, schema = s.line("docs"), s.line("schema")
        assert "15s" in docs
        now = NOW + 3
        s.tree.tick()
        await s.pilot.pause()
        assert "18s" in s.line("docs")
        assert s.line("schema").split("│")[1] == schema.split("│")[1]


async def test_a_finished_subtree_of_the_first_scan_starts_folded_and_a_later_one_does_not() -> None:
    scene = Scene()
    for task_id in ("done", "done.one", "open", "open.one"):
        scene.handoff(task_id)
    scene.returned("done")
    scene.returned("done.one")
    async with stage(scene=scene, size=(80, 5)) as s:
        assert s.tree.row_ids() == ["open", "open.one", "done"]
        scene.returned("open.one")
        scene.returned("open")
        await s.see()
        await s.until(lambda: s.app.monitor.tree.tasks["open"].state is State.COMPLETED)
        await s.shown()
        assert s.tree.row_ids() == ["open", "open.one", "done"]


async def test_a_first_scan_that_fits_the_screen_is_shown_whole() -> None:
    scene = Scene()
    for task_id in ("done", "done.one", "also", "also.one"):
        scene.handoff(task_id)
        scene.returned(task_id)
    async with stage(scene=scene) as s:
        assert s.tree.row_ids() == ["done", "done.one", "also", "also.one"]


async def test_a_note_that_is_not_there_leaves_its_room_to_the_title() -> None:
    scene = Scene()
    long = "a title that is longer than its own column is wide"
    scene.handoff(long)
    async with stage(scene=scene, size=(80, 12)) as s:
        assert long in s.line("a title")


async def test_an_agent_that_is_the_title_is_said_once() -> None:
    scene = Scene()
    scene.handoff("reviewer")
    scene.returned("reviewer", agent="reviewer")
    async with stage(scene=scene, size=(80, 12)) as s:
        assert s.line("reviewer").count("reviewer") == 1


async def test_a_folded_row_carries_who_waits_below() -> None:
    async with stage() as s:
        await s.press("C")
        assert "3 need you" in s.line("checkout")


def family(parent: str = "job", *, lies: bool = False) -> Scene:
    """A parent and four children: one verified, one done, one with a false claim where one `lies`, one at work."""
    scene = Scene()
    scene.handoff(parent)
    for name in ("a", "b", "c", "d"):
        scene.handoff(f"{parent}.{name}")
    for name in ("a", "b", "c") if lies else ("a", "b"):
        scene.returned(f"{parent}.{name}")
    scene.checked(f"returns/{parent}.a.return.md", Claim("created", "x", Verdict.VERIFIED, ""))
    if lies:
        scene.checked(f"returns/{parent}.c.return.md", Claim("created", "y", Verdict.CONTRADICTED, "missing"))
    return scene


@pytest.mark.parametrize("width", [140, 80, 50])
async def test_a_folded_row_carries_the_tally_of_what_is_below(width: int) -> None:
    async with stage(scene=family(), size=(width, 20)) as s:
        assert "✓1" not in s.line("job")
        await s.press("C")
        assert "2/4 ✓1" in s.line("job")


async def test_the_header_counts_each_task_once_also_one_with_a_false_claim() -> None:
    async with stage(scene=family(lies=True), size=(140, 20)) as s:
        assert "5 tasks   ◐ 1   ○ 1   ⚑ 1 false   ✓ 2 (1 verified) " in s.line("agentwatch")


async def test_what_failed_is_not_done_and_a_retry_takes_nothing_back() -> None:
    scene = family()
    scene.returned("job.c", Outcome.FAILED)
    async with stage(scene=scene, size=(140, 20)) as s:
        await s.press("C")
        assert "2/4 ✓1" in s.line("job")
        s.scene.handoff("job.c", attempt=2)
        s.source.push(s.scene.take())
        await s.until(lambda: "need" not in s.line("job"))
        assert "2/4 ✓1" in s.line("job")


@pytest.mark.parametrize("width", [140, 80])
async def test_what_is_urgent_keeps_its_place_beside_the_tally(width: int) -> None:
    async with stage(scene=family(lies=True), size=(width, 20)) as s:
        await s.press("C")
        assert "3/4 ✓1 ⚑1  ⚑ 1" in s.line("job")


async def test_a_tally_never_takes_room_from_the_title_or_from_what_is_urgent() -> None:
    async with stage(scene=family("a-name-of-some-length", lies=True), size=(44, 20)) as s:
        await s.press("C")
        assert s.line("a-name").split() == ["▌▸", "◐", "a-name-of-some-length", "⚑1", "⚑", "1"]
    async with stage(scene=family("a-name-of-really-some-length", lies=True), size=(44, 20)) as s:
        await s.press("C")
        assert s.line("a-name").split() == ["▌▸", "◐", "a-name-of-really-some-length", "⚑", "1"]


async def test_a_second_attempt_is_counted() -> None:
    async with stage() as s:
        assert "↻2/2" in s.line("release")


async def test_follow_goes_to_what_changed_and_opens_what_hides_it() -> None:
    async with stage() as s:
        await s.press("C", "f")
        s.scene.returned("checkout.implement.docs", ago=0)
        await s.see()
        await s.until(lambda: s.cursor == "checkout.implement.docs")
        await s.press("k")
        assert not s.tree.follows
        s.scene.returned("checkout.security.probe", ago=0)
        await s.see()
        await s.until(lambda: s.app.monitor.tree.tasks["checkout.security.probe"].state is State.COMPLETED)
        await s.shown()
        assert s.cursor == "checkout.implement.ui"


async def test_without_follow_the_cursor_stays() -> None:
    async with stage() as s:
        s.scene.returned("checkout.implement.docs", ago=0)
        await s.see()
        await s.until(lambda: s.app.monitor.tree.tasks["checkout.implement.docs"].state is State.COMPLETED)
        await s.shown()
        assert s.cursor == "checkout"


async def test_a_filter_puts_the_cursor_on_a_match_and_leaves_it_there() -> None:
    async with stage() as s:
        await s.press("/", *"payment")
        await s.until(lambda: s.cursor == "checkout.implement.ui")
        assert "1 found" in s.text()
        await s.press("escape")
        assert s.tree.row_count == 13
        assert s.cursor == "checkout.implement.ui"


async def test_a_filter_takes_in_what_comes_to_match() -> None:
    async with stage() as s:
        await s.press("s", "s", "s")
        await s.until(lambda: s.tree.row_ids() == ["checkout", "checkout.implement", "checkout.implement.api"])
        s.scene.handoff("other")
        s.scene.returned("other", Outcome.FAILED)
        await s.see("other")
        await s.until(lambda: s.tree.row_ids()[-1] == "other")
        assert "2 found" in s.text()


async def test_a_change_during_a_search_is_searched_too(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = flat(3)
    looks: list[int] = []

    async with stage(scene=scene, size=(80, 24)) as s:

        async def find_and_change(
            tree: DelegationTree, sought: Query, now: float, row_of: Callable[[str], str]
        ) -> tuple[set[str], int]:
            result = await find(tree, sought, now, row_of)
            looks.append(len(result[0]))
            if len(looks) == 1:
                scene.handoff("odd")
                for observation in scene.take():
                    s.tree.refresh_tasks(s.app.monitor.tree.apply(observation), settled=True)
            return result

        monkeypatch.setattr(task_tree, "find", find_and_change)
        s.tree.set_filter(parse("odd"))
        await s.until(lambda: s.tree.row_ids() == ["odd"])
        assert looks == [0, 1]


async def test_a_search_is_not_started_over_by_each_change() -> None:
    """It would never end while the tree keeps changing."""
    async with stage(scene=flat(2_500), size=(80, 24)) as s:
        s.tree.set_filter(parse("t0001"))
        searches = len(s.tree.workers)
        for _ in range(5):
            s.tree.refresh_tasks({"t00000"}, settled=True)
            await s.pilot.pause()
        assert len(s.tree.workers) <= searches
        await s.until(lambda: s.tree.row_count == 10)


async def test_a_filter_that_matches_nothing_says_so() -> None:
    async with stage() as s:
        await s.press("/", *"zzz")
        await s.until(lambda: "nothing matches" in s.text())
        assert s.tree.row_count == 0
        await s.press("escape")
        assert s.tree.row_count == 13
        assert s.cursor is not None


async def test_a_filter_that_matched_nothing_gives_the_cursor_back() -> None:
    async with stage() as s:
        s.tree.select("checkout.review")
        await s.press("/", *"zzz")
        await s.until(lambda: s.cursor is None)
        await s.press("escape")
        assert s.cursor == "checkout.review"
        assert not s.main.filter_bar.display


async def test_the_filter_line_says_what_is_searched_only_while_one_writes() -> None:
    async with stage(size=(80, 24)) as s:
        await s.press("/")
        assert "words, or state: is: agent:" in s.text()
        await s.press("escape", "s")
        assert "is:needs-you" in s.line(" / ")
        assert "words, or" not in s.text()


@pytest.mark.parametrize("size", [(140, 40), (80, 24)])
async def test_a_wrong_word_is_told_beside_the_field_and_the_others_hold(size: tuple[int, int]) -> None:
    async with stage(size=size) as s:
        await s.press("/", *"state:failed", "space")
        await s.until(lambda: "1 found" in s.text())
        await s.press(*"stat:x")
        await s.until(lambda: "no key “stat”: did you mean state?" in s.text())
        await s.until(lambda: s.tree.row_ids() == ["checkout", "checkout.implement", "checkout.implement.api"])
        await s.press("enter")
        assert isinstance(s.app.focused, FilterInput)
        await s.press("down")
        assert s.app.focused is s.tree
        assert s.line(" / ").split()[1:4] == ["state:failed", "1", "found"]


async def test_a_filter_by_time_lets_go_of_what_grows_old() -> None:
    now = NOW
    async with stage(clock=lambda: now) as s:
        s.tree.set_filter(parse("since:1m agent:code"))
        await s.until(lambda: s.tree.row_ids()[-1] == "checkout.release")
        now += 55
        await s.until(lambda: s.tree.row_ids() == [])


async def test_a_view_that_is_wrong_says_so_and_one_that_is_missing_too() -> None:
    settings = Settings(views=(("mine", "stat:failed"), ("yours", "state:failed")))
    async with stage(settings=settings) as s:
        await s.press("1")
        await s.until(lambda: "of your settings is wrong" in s.text())
        await s.press("3")
        await s.until(lambda: "Your settings have 2 views." in s.text())
        assert s.tree.row_count == 13
        await s.press("question_mark")
        await s.until(lambda: isinstance(s.app.screen, HelpScreen))
        lines = [line.content.plain.split() for line in lay_out(help_blocks(views=settings.views), 80)]
        assert ["2", "yours:", "state:failed"] in lines


async def test_stepping_through_the_states_keeps_the_other_terms() -> None:
    async with stage() as s:
        await s.press("/", *"agent:code", "enter", "s", "s")
        assert s.main.filter_bar.sought.text == "agent:code state:invalid"
        await s.press("S", "S")
        assert s.main.filter_bar.sought.text == "agent:code"


async def test_what_can_be_written_to_its_end_is_wrong_only_when_it_is_to_be_kept() -> None:
    async with stage(size=(80, 24)) as s:
        await s.press("/", *"since:")
        await s.until(lambda: "since:10m" in s.line(" / "))
        assert "needs a time" not in s.text()
        await s.press("enter")
        await s.until(lambda: "since: needs a value" in s.text())
        assert isinstance(s.app.focused, FilterInput)


async def test_the_values_of_the_tasks_are_offered() -> None:
    async with stage(size=(80, 24)) as s:
        await s.press("/", *"agent:a")
        await s.until(lambda: "agent:analyst" in s.line(" / "))
        await s.press("right")
        assert s.main.filter_bar.sought.text == "agent:analyst"


async def test_the_cursor_begins_on_the_first_row_in_whatever_order_rows_come() -> None:
    scene = flat(3)
    first, *rest = scene.take()
    async with stage(observations=rest, scene=scene, health=Health("starting", "")) as s:
        assert s.cursor == "t00001"
        s.source.push([first], LIVE)
        await s.until(lambda: s.tree.row_count == 3)
        assert s.tree.row_ids()[0] == s.cursor == "t00000"


async def test_a_cursor_that_was_moved_before_all_rows_were_there_stays() -> None:
    scene = flat(3)
    first, *rest = scene.take()
    async with stage(observations=rest, scene=scene, health=Health("starting", "")) as s:
        await s.press("j")
        s.source.push([first], LIVE)
        await s.until(lambda: s.tree.row_count == 3)
        assert s.cursor == "t00002"


async def test_a_jump_out_of_sight_shows_what_is_around() -> None:
    async with stage(scene=flat(100), size=(80, 24)) as s:
        s.tree.select("t00050")
        await s.pilot.pause()
        text = s.text()
        assert "t00045" in text
        assert "t00055" in text
        s.tree.select("t00053")
        await s.pilot.pause()
        assert s.text().splitlines()[1] == text.splitlines()[1]


async def test_a_click_on_an_arrow_leaves_the_view_where_it_is() -> None:
    scene = flat(60)
    scene.handoff("t00040.below")
    for number in range(60):
        scene.returned(f"t{number:05d}", Outcome.WORKING)
    async with stage(scene=scene, size=(80, 24)) as s:
        s.tree.scroll_to(y=30, animate=False)
        await s.pilot.pause()
        y = screen_row(s, "t00040")
        await s.pilot.click(offset=(s.text().splitlines()[y].index("▾"), y))
        await s.until(lambda: "▸" in s.line("t00040"))
        assert s.tree.scroll_offset.y == 30
        assert s.cursor == "t00000"


@pytest.mark.parametrize("size", [(140, 40), (80, 24)])
async def test_next_that_needs_you_stays_inside_the_filter(size: tuple[int, int]) -> None:
    async with stage(size=size) as s:
        await s.press("/", *"auth flow", "enter")
        await s.until(lambda: "1 found" in s.text())
        for key in "nnN":
            await s.press(key)
            assert s.cursor == "checkout.security"
        await s.press("enter", "n", "escape")
        assert s.cursor == "checkout.security"
        assert s.main.filter_bar.sought.text == "auth flow"
        await s.press("/", *"x", "enter")
        await s.until(lambda: "nothing matches" in s.text())
        await s.press("n")
        await s.until(lambda: "Nobody that the filter shows needs you now." in s.text())
        assert s.cursor is None


async def test_the_next_one_and_the_one_before_go_around() -> None:
    async with stage() as s:
        asking = [task.task_id for task in s.app.monitor.tree.asking()]
        await s.press("n")
        assert s.cursor == asking[0]
        for step in range(len(asking)):
            await s.press("n")
            assert s.cursor == asking[(step + 1) % len(asking)]
        await s.press("N")
        assert s.cursor == asking[-1]


async def test_a_click_on_who_needs_you_takes_a_filter_away_that_hides_it() -> None:
    async with stage() as s:
        await s.press("/", *"payment", "enter")
        await s.until(lambda: "1 found" in s.text())
        y = next(y for y, line in enumerate(s.text().splitlines()) if "Needs you" in line)
        await s.pilot.click(offset=(20, y))
        await s.until(lambda: s.cursor == s.app.monitor.tree.asking()[0].task_id)
        assert not s.main.filter_bar.sought
        assert "1 found" not in s.text()


async def test_a_search_that_ends_late_leaves_the_task_that_was_gone_to_meanwhile() -> None:
    """What the next key is about is what is shown as selected."""
    async with stage() as s:
        s.tree.set_filter(parse("is:needs-you"))
        s.tree.select("checkout.implement")
        await s.until(lambda: s.tree.row_count < 12)
        assert s.cursor == "checkout.implement"


async def test_a_click_selects_and_a_click_on_the_arrow_folds() -> None:
    async with stage() as s:
        y = screen_row(s, "implement")
        await s.pilot.click(offset=(12, y))
        assert s.cursor == "checkout.implement"
        x = s.text().splitlines()[y].index("▾")
        await s.pilot.click(offset=(x, y))
        assert "checkout.implement.api" not in s.tree.row_ids()


async def test_two_clicks_open_the_details() -> None:
    async with stage() as s:
        await s.pilot.click(offset=(12, screen_row(s, "review")), times=2)
        await s.until(lambda: s.in_details)


async def test_the_wheel_scrolls_and_leaves_the_cursor() -> None:
    async with stage(scene=flat(100), size=(80, 24)) as s:
        await s.until(lambda: s.tree.max_scroll_y > 0)
        s.tree.scroll_down(animate=False)
        await s.until(lambda: s.tree.scroll_offset.y == 1)
        assert s.cursor == "t00000"
        assert "t00001" in s.text().splitlines()[1]


@pytest.mark.parametrize("width", [40, 52, 60, 80, 140])
@pytest.mark.parametrize(
    "title", ["plain", "日本語の長いタイトル" * 6, "🚀🚀🚀 launch", "❤️ heart", "é" + "́" * 9, "x" * 300]
)
async def test_columns_stay_straight_whatever_the_title(width: int, title: str) -> None:
    scene = Scene()
    scene.handoff(title, "objective", ago=120)
    scene.handoff("short", "objective", ago=120)
    async with stage(scene=scene, size=(width, 20)) as s:
        assert {strip.cell_length for strip in s.strips()} == {width}
        if Columns.of(width).age and width < 100:
            ends = {cell_len(line.rstrip()) for line in s.text().splitlines()[1:3]}
            assert len(ends) == 1


async def test_the_mark_of_attempts_shortens_before_it_gives_way() -> None:
    scene = Scene()
    scene.handoff("a", ago=120)
    scene.handoff("a.with_a_long_name", ago=120)
    scene.returned("a.with_a_long_name", Outcome.FAILED, ago=60)
    scene.handoff("a.with_a_long_name", ago=30, attempt=2)
    scene.returned("a.with_a_long_name", Outcome.FAILED, ago=20)
    async with stage(scene=scene, size=(99, 20)) as s:
        assert "↻2/2" in s.line("long_name")
        for width in range(100, 133):
            await s.resize(width, 20)
            await s.until(lambda width=width: s.app.size.width == width)
            await s.pilot.pause()
            assert "↻2" in s.text().splitlines()[s.tree.region.y + 1][: width // 2], width


async def test_rows_say_where_whose_and_how_a_task_is_at_every_width() -> None:
    """What a narrow screen cannot do without: the state's word, the agent and the indentation, from 80 columns on."""
    scene = Scene()
    ids = ["a", "a.b", "a.b.c", "a.b.c.d"]
    for number, task_id in enumerate(ids):
        scene.handoff(task_id, ago=120)
        scene.returned(task_id, Outcome.FAILED if number == 3 else Outcome.PARTIAL, agent="reviewer", ago=60)
    async with stage(scene=scene, size=(40, 20)) as s:
        # Every width where columns come and go.
        for width in (*range(40, 101), *range(101, 201, 9)):
            await s.resize(width, 20)
            await s.until(lambda width=width: s.app.size.width == width and s.tree.size.width >= width // 2 - 1)
            await s.pilot.pause()
            top = s.tree.region.y
            tree_width = s.tree.scrollable_content_region.width
            strips = [s.tree.render_line(y) for y in range(4)]
            assert [strip.cell_length for strip in strips] == [tree_width] * 4, width
            rows = [line[:tree_width] for line in s.text().splitlines()[top : top + 4]]
            assert "NEEDS YOU" in rows[3], (width, rows)
            marks = [min(row.index(glyph) for glyph in "◑✗" if glyph in row) for row in rows]
            assert marks == sorted(set(marks)) or width < 80, (width, rows)
            if width >= 60:
                assert all(word in row for word, row in zip(["partial"] * 3 + ["failed"], rows, strict=True)), width
            if width >= 80:
                assert all(" revi" in row for row in rows), (width, rows)


async def test_long_ids_that_differ_at_their_end_can_be_told_apart() -> None:
    scene = Scene()
    for name in ("one", "two"):
        scene.handoff(f"release_checkout_payment_adapter_with_refunds_variant_{name}")
    async with stage(scene=scene, size=(60, 20)) as s:
        for name in ("one", "two"):
            assert "…payment_adapter_with_refunds_variant_" in s.line(f"_{name}")


def test_a_name_keeps_both_ends_where_it_is_an_id() -> None:
    assert clip_name("payment_adapter_variant_one", 15) == "payment…ant_one"
    assert clip_name("a sentence of several words", 15) == "a sentence of…"
    assert clip_name("支払い処理の実装とテストとドキュメント", 15) == "支払い処理の実…"
    assert clip_name("payment_adapter", 8) == "payment…"
    assert clip_name("payment_adapter", 15) == "payment_adapter"


async def test_silence_is_never_cut_in_its_number() -> None:
    scene = Scene()
    scene.handoff("a", ago=4_000)
    scene.returned("a", Outcome.WORKING, ago=2_000)
    async with stage(scene=scene, size=(40, 20)) as s:
        assert "silent" in s.line(" a ")
        assert "…" not in s.line(" a ")


@pytest.mark.parametrize("depth", [30, 1200])
async def test_deep_nesting_keeps_room_for_the_title(depth: int) -> None:
    scene = Scene()
    parent: str | None = None
    for number in range(depth):
        scene.handoff(f"n{number}", parent=parent)
        parent = f"n{number}"
    async with stage(scene=scene, size=(60, 20)) as s:
        await s.until(lambda: s.tree.row_count == depth)
        await s.press("G")
        assert s.cursor == f"n{depth - 1}"
        assert f"›{depth - 1}" in s.line(f" n{depth - 1}")


async def test_ten_thousand_tasks_mount_and_move() -> None:
    async with stage(scene=flat(10_000), size=(100, 30)) as s:
        await s.until(lambda: s.tree.row_count == 10_000)
        await s.press("G")
        assert s.cursor == "t09999"
        assert "t09999" in s.text()
        await s.press("g", "pagedown", "j")
        assert s.cursor == f"t{s.tree.size.height:05d}"
        s.tree.set_filter(parse("t0123"))
        await s.until(lambda: s.tree.row_count == 10)
        await s.press("E", "C")
        assert s.tree.row_count == 10
