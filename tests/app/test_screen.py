"""The whole screen: layout at every size, health, emptiness, who needs the operator, ends."""

from __future__ import annotations

import asyncio
import re
import threading
from pathlib import Path

import pytest
from details_tasks import is_pending
from tests.app.scenes import Scene, shop
from tests.app.stage import Stage, stage

from agentwatch.app.app import AgentwatchApp
from agentwatch.app.screens.main import MainScreen
from agentwatch.app.screens.pages import NoticesScreen
from agentwatch.app.screens.task import TaskScreen
from agentwatch.app.screens.timeline import TimelineScreen
from agentwatch.app.widgets.filter_bar import FilterInput
from agentwatch.app.widgets.tree_view import TreeView
from agentwatch.config import Settings
from agentwatch.contracts.shapes import Outcome
from agentwatch.delegation.observation import Observation
from agentwatch.sources.health import Health, Problem, health_of

SIZES = [(140, 40), (100, 30), (99, 30), (80, 24), (40, 12), (20, 6)]


async def test_the_columns_fit_where_the_tree_is_not_told_its_size(monkeypatch: pytest.MonkeyPatch) -> None:
    # Textual lays out when somebody asks for a place, and then tells nobody of a size that has not changed since.
    monkeypatch.delattr(TreeView, "on_resize")
    async with stage(size=(40, 12)) as s:
        assert "NEEDS YOU" in s.line("✗ api")


@pytest.mark.parametrize("size", SIZES)
async def test_the_screen_works_at_this_size(size: tuple[int, int]) -> None:
    async with stage(size=size) as s:
        lines = s.text().splitlines()
        assert len(lines) == size[1]
        assert "◐ che" in s.text()
        for key in ("j", "n", "enter", "escape", "/", "escape", "s", "?", "escape", "G"):
            await s.press(key)
        assert isinstance(s.app.screen, MainScreen)


async def test_a_resize_keeps_the_cursor_and_what_it_shows() -> None:
    async with stage() as s:
        s.tree.select("checkout.security.tokens")
        for width, height in [(80, 24), (40, 12), (140, 40), (40, 8), (100, 30)]:
            await s.resize(width, height)
            await s.pilot.pause()
            assert s.cursor == "checkout.security.tokens"
            assert "tokens" in s.text()
            assert s.details.display is (width >= 100)


async def test_wide_shows_the_details_beside_the_tree() -> None:
    async with stage() as s:
        s.tree.select("checkout.implement.api")
        await s.until(lambda: "Migration tool timed out" in s.text())
        assert "E_TOOL_FAILURE" in s.text()


async def test_narrow_opens_the_details_as_a_screen_and_escape_returns() -> None:
    async with stage(size=(80, 24)) as s:
        s.tree.select("checkout.implement.api")
        await s.press("enter")
        assert isinstance(s.app.screen, TaskScreen)
        await s.until(lambda: "Migration tool timed out" in s.text())
        await s.press("n")
        ids = [task.task_id for task in s.app.monitor.tree.asking()]
        asking = ids[(ids.index("checkout.implement.api") + 1) % len(ids)]
        assert s.app.screen.task_id == asking
        await s.press("escape")
        assert isinstance(s.app.screen, MainScreen)
        assert s.cursor == asking


async def test_a_tab_key_opens_the_page_at_its_tab() -> None:
    async with stage(size=(80, 24)) as s:
        await s.press("3")
        assert isinstance(s.app.screen, TaskScreen)
        assert s.app.screen.details.active == "handoff"


async def test_the_page_follows_its_task(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agentwatch.app.screens.task.PERIOD", 3600.0)
    async with stage(size=(80, 24)) as s:
        s.tree.select("checkout.implement.docs")
        await s.press("enter")
        await s.until(lambda: "submitted" in s.text())
        s.scene.returned("checkout.implement.docs", ago=0, summary="The guide is written.")
        s.source.push(s.scene.take())
        await s.until(lambda: "The guide is written." in s.text())


async def test_the_details_follow_the_selected_task(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agentwatch.app.screens.main.PERIOD", 3600.0)
    async with stage() as s:
        s.tree.select("checkout.implement.docs")
        await s.until(lambda: "Write the operator's guide" in s.text())
        s.scene.returned("checkout.implement.docs", ago=0, summary="The guide is written.")
        s.source.push(s.scene.take())
        await s.until(lambda: "The guide is written." in s.text())


@pytest.mark.parametrize(
    ("health", "words"),
    [
        (Health("live", ""), "● live"),
        (Health("polling", "too many directories for the kernel's watches"), "◍ polling: too many"),
        (Health("degraded", "no permission to read secret/"), "▲ degraded: no permission"),
        (Health("starting", "reading the workspace"), "○ starting"),
    ],
)
async def test_the_header_says_how_well_the_workspace_is_seen(health: Health, words: str) -> None:
    async with stage(health=health) as s:
        await s.until(lambda: words in s.text().splitlines()[0])


async def test_a_change_of_health_alone_is_shown() -> None:
    async with stage() as s:
        s.source.push(health=Health("degraded", "the workspace is gone: waiting for it to come back"))
        await s.until(lambda: "▲ degraded: the workspace is gone" in s.text())


async def test_the_header_counts_by_state() -> None:
    async with stage() as s:
        header = s.text().splitlines()[0]
        for words in ("agentwatch", "shop/", "13 tasks", "◐ 4", "○ 3", "■ 1", "✗ 1", "‼ 1", "◑ 1", "✓ 2", "3 need you"):
            assert words in header


async def test_a_silent_task_counts_as_silent_and_not_as_working() -> None:
    scene = Scene()
    for name, ago in (("a", 1.0), ("b", 2_000.0), ("c", 3_000.0)):
        scene.returned(name, Outcome.WORKING, ago=ago)
    async with stage(scene=scene) as s:
        assert "◐ 1 ◌ 2" in " ".join(s.text().splitlines()[0].split())
        s.scene.returned("b", Outcome.WORKING, ago=0.0, summary="still here")
        s.source.push(s.scene.take())
        await s.until(lambda: "◐ 2 ◌ 1" in " ".join(s.text().splitlines()[0].split()))


@pytest.mark.parametrize("width", [140, 100, 80, 60, 40])
async def test_the_header_keeps_who_needs_you_at_every_width(width: int) -> None:
    async with stage(size=(width, 20)) as s:
        await s.until(lambda: s.text().splitlines()[0].endswith("3 need you"))


async def test_the_header_keeps_its_mark_in_its_place_when_something_begins_to_need_you() -> None:
    scene = Scene()
    scene.returned("a", Outcome.WORKING, ago=1.0)
    scene.handoff("b", "Wait")
    async with stage(scene=scene, size=(62, 20)) as s:
        before = s.line("agentwatch")
        s.scene.returned("b", Outcome.FAILED, ago=0.0)
        s.source.push(s.scene.take())
        await s.until(lambda: "1 needs you" in s.line("agentwatch"))
        assert s.line("agentwatch").index("●") == before.index("●")


async def test_the_header_gives_up_the_programs_name_before_that_of_the_workspace() -> None:
    async with stage(size=(76, 24)) as s:
        header = s.text().splitlines()[0]
        assert "agentwatch" not in header
        for words in (" shop/", "● live", "13 tasks", "✓ 2", "‼ 1"):
            assert words in header


async def test_what_cannot_be_read_is_said_in_the_header_in_an_empty_tree_and_among_the_problems() -> None:
    problems = [
        Problem("opencode", "/home/ann/opencode.db", "opencode.db cannot be read: file is not a database."),
        Problem("files", "/shop/specs", "specs: cannot be listed: Permission denied"),
    ]
    async with stage([], health=health_of("live", "Changes are seen as they happen", problems)) as s:
        await s.until(lambda: "▲ degraded: opencode: opencode.db cannot be read" in s.text().splitlines()[0])
        assert "No delegation can be seen." in s.text()
        assert "specs: cannot be listed: Permission denied" in s.text()
        await s.pilot.press("exclamation_mark")
        await s.until(lambda: "! opencode: opencode.db cannot be read: file is not a database." in s.text())
        assert "! specs: cannot be listed: Permission denied" in s.text()


async def test_why_it_is_degraded_is_worth_more_than_the_counts() -> None:
    why = "The workspace is gone (No such file or directory): waiting for it to come back"
    async with stage(health=Health("degraded", why)) as s:
        await s.until(lambda: f"▲ degraded: {why}" in s.text().splitlines()[0])
        assert "3 need you" in s.text().splitlines()[0]


async def test_the_header_says_that_nothing_is_delivered() -> None:
    async with stage(settings=Settings(read_only=True)) as s:
        assert "● live  read only" in s.text().splitlines()[0]


async def test_an_empty_workspace_says_what_it_looks_for_and_where() -> None:
    async with stage([], workspace="/home/kim/quiet") as s:
        await s.until(lambda: "No delegation here yet" in s.text())
        for words in ("handoff packet", "return-format", ".return-meta.json", "/home/kim/quiet", "agentwatch demo"):
            assert words in s.text()
        assert "Qwen Code" in s.text()
        assert "follow" not in s.text().splitlines()[-1]
        await s.press("j", "enter", "n", "/", "s", "space", "escape", "1", "o", "c", "E")
        assert isinstance(s.app.screen, MainScreen)


@pytest.mark.parametrize("key", ["t", "s"])
async def test_where_there_is_no_task_a_key_that_needs_one_says_so(key: str) -> None:
    async with stage([]) as s:
        await s.press(key)
        await s.until(lambda: "There is no task yet." in s.text())


async def test_a_filter_can_be_written_where_there_is_no_task() -> None:
    async with stage([]) as s:
        await s.press(*"/ship")
        assert s.main.sought.text == "ship"
        assert isinstance(s.app.focused, FilterInput)
        s.source.push(shop().take())
        await s.until(lambda: "Ship the new checkout" in s.text() and "1 found" in s.text())


async def test_the_timeline_can_be_opened_before_the_first_task_is_there() -> None:
    async with stage([], health=Health("starting", "reading the workspace")) as s:
        await s.press("t")
        await s.until(lambda: isinstance(s.app.screen, TimelineScreen))
        s.source.push(shop().take())
        await s.until(lambda: "NEEDS YOU" in s.text() and getattr(s.app.screen, "task_id", None))
        await s.press("t")
        await s.until(lambda: s.app.screen is s.main and s.cursor)


async def test_a_filter_can_be_written_before_the_first_task_is_there() -> None:
    async with stage([], health=Health("starting", "reading the workspace")) as s:
        await s.until(lambda: s.main.filter_bar.is_attached)
        await s.press(*"/ship")
        assert s.main.sought.text == "ship"
        s.source.push(shop().take())
        await s.until(lambda: "Ship the new checkout" in s.text() and "1 found" in s.text())
        assert isinstance(s.app.focused, FilterInput)
        await s.press("escape")
        await s.until(lambda: s.app.focused is s.tree and "✗ api" in s.text())


async def test_a_filter_that_is_left_before_the_first_task_is_there_leaves_the_keys_to_the_screen() -> None:
    async with stage([], health=Health("starting", "reading the workspace")) as s:
        await s.until(lambda: s.main.filter_bar.is_attached)
        await s.press("/", "escape")
        await s.until(lambda: not s.main.filter_bar.display and s.app.focused is None)
        s.source.push(shop().take())
        await s.until(lambda: s.app.focused is s.tree)


@pytest.mark.parametrize("key", ["question_mark", "exclamation_mark", "t"])
async def test_ctrl_c_leaves_the_program_from_every_page(key: str) -> None:
    async with stage() as s:
        await s.press(key)
        await s.until(lambda: s.app.screen is not s.main)
        await s.press("ctrl+c")
        await s.until(lambda: s.app._exit)


async def test_ctrl_c_closes_the_palette_and_not_the_program() -> None:
    async with stage() as s:
        await s.press("ctrl+p")
        await s.until(lambda: s.app.screen is not s.main)
        await s.press("ctrl+c")
        await s.until(lambda: s.app.screen is s.main)
        assert s.app.is_running
        assert not s.app._exit


async def test_a_workspace_that_is_still_read_does_not_say_that_it_is_empty() -> None:
    async with stage([], health=Health("starting", "reading the workspace")) as s:
        await s.until(lambda: "Looking through /home/kim/shop" in s.text())
        assert "reading the workspace" in s.text()
        s.source.push(shop().take(), Health("live", ""))
        await s.until(lambda: "checkout" in s.text())
        assert s.app.focused is s.tree


async def test_the_strip_shows_three_who_need_you_when_tall_and_one_when_not() -> None:
    async with stage() as s:
        assert [line.split()[-1] for line in s.text().splitlines()[-4:-1]] == ["6m", "2m", "2m"]
        await s.resize(140, 24)
        assert "+1 more" in s.text().splitlines()[-2] or "api" in s.text().splitlines()[-2]


async def test_the_strip_grows_with_the_screen() -> None:
    scene = Scene()
    for number in range(9):
        scene.handoff(f"t{number}")
        scene.returned(f"t{number}", Outcome.FAILED)
    async with stage(scene=scene, size=(140, 40)) as s:
        await s.until(lambda: "+5 more" in s.text().splitlines()[-2])
        await s.resize(140, 60)
        await s.until(lambda: "+3 more" in s.text().splitlines()[-2])


@pytest.mark.parametrize("size", [(140, 40), (80, 24)])
async def test_the_strip_marks_the_selected_task_without_colour(
    size: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    async with stage(size=size) as s:
        strip = slice(-1 - s.main.needs_you.size.height, -1)
        assert not any("▌" in line for line in s.text().splitlines()[strip])
        for task in s.app.monitor.tree.asking():
            await s.press("n")
            assert s.cursor == task.task_id
            marked = [line for line in s.text().splitlines()[strip] if "▌" in line]
            assert len(marked) == 1
            assert f"▌{task.state.glyph} {task.title} " in marked[0]


async def test_the_strip_shows_the_selected_task_however_many_ask() -> None:
    scene = Scene()
    for number in range(9):
        scene.handoff(f"t{number}")
        scene.returned(f"t{number}", Outcome.FAILED, ago=90 - number)
    async with stage(scene=scene) as s:
        last = s.app.monitor.tree.asking()[-1]
        await s.press("n", "N")
        assert s.cursor == last.task_id
        assert f"+5 more   ▌✗ {last.task_id} " in s.text().splitlines()[-2]


async def test_tasks_of_one_name_are_told_apart_by_what_they_are_part_of() -> None:
    scene = Scene()
    for whole in ("import", "export"):
        scene.handoff(whole)
        scene.handoff(f"{whole}.plan", parent=whole)
        scene.returned(f"{whole}.plan", Outcome.FAILED)
    scene.handoff("docs")
    scene.returned("docs", Outcome.FAILED)
    async with stage(scene=scene) as s:
        strip = "\n".join(s.text().splitlines()[-4:-1])
        for name in ("import › plan", "export › plan", "✗ docs  "):
            assert name in strip


@pytest.mark.parametrize("size", [(140, 40), (80, 24)])
async def test_what_is_told_in_passing_does_not_cover_who_needs_the_operator(size: tuple[int, int]) -> None:
    async with stage(size=size) as s:
        above_the_keys = slice(-1 - s.main.needs_you.size.height, -1)
        strip = s.text().splitlines()[above_the_keys]
        s.app.notify("Something was done.", markup=False)
        await s.until(lambda: "Something was done." in s.text())
        assert s.text().splitlines()[above_the_keys] == strip


async def test_a_problem_hangs_behind_its_rule() -> None:
    async with stage(size=(60, 24)) as s:
        s.scene.unreadable(
            "x.json", "It holds more than can be read; shorten it and name large results as files of their own."
        )
        s.source.push(s.scene.take())
        await s.until(lambda: s.app.monitor.tree.notices)
        await s.press("!")
        lines = [line for line in s.text().splitlines() if line.startswith("│")]
        assert len(lines) == 3
        assert all(line.startswith("│   ") for line in lines[1:])


async def test_a_click_in_the_strip_goes_to_the_task() -> None:
    async with stage() as s:
        y = next(y for y, line in enumerate(s.text().splitlines()) if "metrics" in line and "contract" in line)
        await s.pilot.click(offset=(30, y))
        assert s.cursor == "checkout.metrics"


async def test_tasks_of_one_name_and_one_root_are_told_apart_by_what_is_right_above_them() -> None:
    scene = Scene()
    for task_id in ("a", "a.x", "a.m", "a.m.x"):
        scene.handoff(task_id)
        if task_id.endswith("x"):
            scene.returned(task_id, Outcome.FAILED)
    async with stage(scene=scene) as s:
        strip = "\n".join(s.text().splitlines()[-4:-1])
        for name in ("a › x", "m › x"):
            assert name in strip


async def test_the_strip_of_a_tall_and_narrow_window_says_what_is_asked_and_for_how_long() -> None:
    scene = Scene()
    for task_id in ("checkout.payments", "checkout.docs"):
        scene.handoff(task_id)
        scene.handoff(f"{task_id}.sub")
        scene.returned(task_id, Outcome.FAILED)
    async with stage(scene=scene, size=(40, 50)) as s:
        for line in s.text().splitlines()[-3:-1]:
            assert re.search(r"✗ \S+ +retry, \S+ +\d+[smh]\Z", line.rstrip()), line


async def test_the_strip_is_gone_while_nobody_asks() -> None:
    scene = Scene()
    scene.handoff("calm")
    async with stage(scene=scene) as s:
        assert "Needs you" not in s.text()
        assert "next" not in s.text().splitlines()[-1]
        await s.press("n")
        await s.until(lambda: "Nobody needs you now" in s.text())


async def test_a_source_that_breaks_is_shown_and_the_app_lives(monkeypatch: pytest.MonkeyPatch) -> None:
    async with stage() as s:

        def broken(observation: Observation) -> set[str]:
            raise ValueError("[/] odd \x1b[31m")

        monkeypatch.setattr(s.app.monitor.tree, "apply", broken)
        s.source.push(shop().take())
        await s.until(lambda: "▲ degraded: watching has ended, start agentwatch again" in s.text())
        await s.until(lambda: "odd ␛[31m" in s.text())
        await s.press("j")
        assert s.cursor == "checkout.plan"


async def test_any_thread_may_ask_the_app_to_end_before_it_is_there_and_after_it() -> None:
    async with stage() as s:
        await asyncio.to_thread(s.app.ask_to_end)
        await s.until(lambda: s.app._exit)
        assert not s.app.return_code
    AgentwatchApp(s.app.monitor).ask_to_end()


async def test_the_terminal_title_is_ours() -> None:
    async with stage(workspace="/tmp/\x1b]0;gotcha\x07") as s:
        assert s.app.title == "agentwatch"
        assert "gotcha" in s.text()


def on_disk(workspace: Path, *files: str) -> str:
    """A workspace in which these files exist."""
    for name in files:
        file = workspace / name
        file.parent.mkdir(exist_ok=True)
        file.write_text("text", "utf-8")
    return str(workspace)


async def copied(s: Stage) -> str:
    before = s.app.clipboard
    await s.press("c")
    await s.until(lambda: s.app.clipboard != before and "Copied" in s.text())
    return s.app.clipboard


async def test_the_file_is_looked_for_off_the_event_loop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[threading.Thread] = []
    look = Path.is_file

    def is_file(path: Path) -> bool:
        if path.is_relative_to(tmp_path):
            looked.append(threading.current_thread())
        return look(path)

    async with stage(workspace=on_disk(tmp_path, "handoffs/checkout.handoff.md")) as s:
        monkeypatch.setattr(Path, "is_file", is_file)
        await copied(s)
        await s.press("o")
        await s.until(lambda: len(looked) == 2)
    assert threading.current_thread() not in looked


async def test_copy_takes_the_return_else_the_handoff(tmp_path: Path) -> None:
    files = ("handoffs/checkout.handoff.md", "returns/checkout.plan.return.md")
    async with stage(workspace=on_disk(tmp_path, *files)) as s:
        assert await copied(s) == str(tmp_path / files[0])
        await s.press("j")
        assert await copied(s) == str(tmp_path / files[1])


@pytest.mark.parametrize(
    ("editor", "words"),
    [
        (None, "there is no vi"),
        ("vi '", "cannot be understood"),
        ("true", "cannot be handed over"),
    ],
)
async def test_edit_says_why_it_cannot(
    editor: str | None, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("VISUAL", "EDITOR"):
        monkeypatch.delenv(name, raising=False)
    # Neither git nor vi is there.
    monkeypatch.setenv("PATH", str(tmp_path / "none"))
    workspace = on_disk(tmp_path, "handoffs/checkout.handoff.md")
    async with stage(workspace=workspace, settings=Settings(editor=editor)) as s:
        await s.press("o")
        await s.until(lambda: words in s.text())


async def test_the_details_go_on_though_a_dialog_ended_before_what_it_was_to_call(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def forget(screen: NoticesScreen) -> None:
        screen._callbacks.clear()

    scene = Scene()
    scene.handoff("a", ago=90)
    async with stage(scene=scene) as s:
        await s.until(lambda: "nothing yet" in s.text())
        await s.press("!")
        await s.until(lambda: isinstance(s.app.screen, NoticesScreen))
        monkeypatch.setattr(NoticesScreen, "_invoke_and_clear_callbacks", forget)
        s.scene.returned("a", ago=1)
        s.source.push(s.scene.take())
        await s.until(lambda: s.app.monitor.tree.tasks["a"].result is not None)
        await s.until(lambda: is_pending(s.details))
        await s.press("escape")
        await s.until(lambda: "nothing yet" not in s.text())
        assert not is_pending(s.details)
