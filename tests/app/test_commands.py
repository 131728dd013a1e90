"""Every command's key does what its definition says. The cases are checked against the definitions: none is missing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from details_tasks import shown_text
from tests.app.scenes import NOW
from tests.app.stage import Stage, stage
from textual.widgets import Input

from agentwatch.app.actions import COMMANDS, Group, Home, Place, bindings, footer_commands
from agentwatch.app.app import AgentwatchApp
from agentwatch.app.dialogs.decision import DecisionScreen
from agentwatch.app.screens.inspect import InspectScreen
from agentwatch.app.screens.main import MainScreen
from agentwatch.app.screens.pages import HelpScreen, NoticesScreen, help_blocks
from agentwatch.app.screens.task import TaskScreen
from agentwatch.app.screens.timeline import TimelineScreen
from agentwatch.app.widgets.details import TABS, DetailsPane
from agentwatch.app.widgets.details.blocks import lay_out
from agentwatch.app.widgets.details.page import Page
from agentwatch.app.widgets.filter_bar import FilterInput
from agentwatch.app.widgets.task_tree import TaskTree
from agentwatch.app.widgets.timeline.chart import TimelineChart
from agentwatch.config import Settings
from agentwatch.delegation.claims import Claim, Verdict
from agentwatch.delegation.observation import Looked, Ran
from agentwatch.delegation.run import Run, RunState
from agentwatch.sources.sessions.following import LinesTranscript

API = "checkout.implement.api"
Case = Callable[[Stage, str], Awaitable[None]]
CASES: dict[str, Case] = {}


def case(command_id: str) -> Callable[[Case], Case]:
    def keep(check: Case) -> Case:
        CASES[command_id] = check
        return check

    return keep


@case("filter.done")
async def _(s: Stage, key: str) -> None:
    await s.press("/", "a", "p", "i", key)
    assert s.app.focused is s.tree
    assert s.main.filter_bar.sought.text == "api"


@case("filter.down")
async def _(s: Stage, key: str) -> None:
    await s.press("/", "a", "p", "i", key)
    assert s.app.focused is s.tree
    assert s.main.filter_bar.sought.text == "api"


@case("filter.complete")
async def _(s: Stage, key: str) -> None:
    await s.press("/", "s", "t", key, "f", "a", key)
    assert s.main.filter_bar.sought.text == "state:failed"
    await s.press(key)
    assert s.app.focused is s.tree


@case("filter.earlier")
async def _(s: Stage, key: str) -> None:
    await s.press("/", "u", "i", "enter", "escape", "/", "a", "p", "i", "enter", "escape", "/", key)
    assert s.main.filter_bar.sought.text == "api"
    await s.press(key)
    assert s.main.filter_bar.sought.text == "ui"


@case("views")
async def _(s: Stage, key: str) -> None:
    s.app.monitor.settings = Settings(views=tuple((str(number), f"view{number}") for number in range(1, 10)))
    await s.press(key)
    assert s.main.filter_bar.sought.text == f"view{key}"
    await s.press(key)
    assert not s.main.filter_bar.sought


@case("filter.drop")
async def _(s: Stage, key: str) -> None:
    await s.press("/", "a", "p", "i", key)
    assert s.app.focused is s.tree
    assert not s.main.filter_bar.sought


@case("back")
async def _(s: Stage, key: str) -> None:
    await s.press("enter")
    assert s.in_details
    await s.press(key)
    assert s.app.focused is s.tree
    await s.press("s")
    assert s.main.filter_bar.sought
    await s.press(key)
    assert not s.main.filter_bar.sought


@case("open")
async def _(s: Stage, key: str) -> None:
    await s.press(key)
    assert s.in_details


@case("needs.next")
async def _(s: Stage, key: str) -> None:
    asking = [task.task_id for task in s.app.monitor.tree.asking()]
    for task_id in [*asking, asking[0]]:
        await s.press(key)
        assert s.cursor == task_id


@case("needs.previous")
async def _(s: Stage, key: str) -> None:
    asking = [task.task_id for task in s.app.monitor.tree.asking()]
    for task_id in [*reversed(asking), asking[-1]]:
        await s.press(key)
        assert s.cursor == task_id


@case("unseen.next")
async def _(s: Stage, key: str) -> None:
    await look_since(s, 1_000)
    new = list(s.app.monitor.tree.unseen)
    assert len(new) >= 2
    for task_id in [*new, new[0]]:
        await s.press(key)
        assert s.cursor == task_id


@case("unseen.previous")
async def _(s: Stage, key: str) -> None:
    await look_since(s, 1_000)
    new = list(s.app.monitor.tree.unseen)
    for task_id in [*reversed(new), new[-1]]:
        await s.press(key)
        assert s.cursor == task_id


async def look_since(s: Stage, ago: float) -> None:
    """What became what it is in the last seconds is new."""
    s.source.push([Looked(0, NOW - ago)])
    await s.until(lambda: s.app.monitor.tree.unseen)


@case("acknowledge")
async def _(s: Stage, key: str) -> None:
    s.tree.select(API)
    await s.choose(key)
    await s.until(lambda: s.app.monitor.tree.tasks[API].acknowledged)


@case("snooze")
async def _(s: Stage, key: str) -> None:
    s.tree.select(API)
    await s.choose(key, "4")
    await s.until(lambda: s.app.monitor.tree.tasks[API].snoozed)


@case("aside.undo")
async def _(s: Stage, key: str) -> None:
    s.tree.select(API)
    await s.choose("A")
    await s.until(lambda: s.app.monitor.tree.tasks[API].acknowledged)
    await s.press(key)
    await s.until(lambda: s.app.monitor.tree.tasks[API].needs_operator)


@case("filter")
async def _(s: Stage, key: str) -> None:
    await s.press(key)
    assert isinstance(s.app.focused, FilterInput)
    await s.press("d", "o", "c", "s")
    await s.until(lambda: s.tree.row_ids() == ["checkout", "checkout.implement", "checkout.implement.docs"])


@case("filter.state")
async def _(s: Stage, key: str) -> None:
    await s.press(key)
    assert s.main.filter_bar.sought.text == "is:needs-you"
    await s.press(key)
    assert s.main.filter_bar.sought.text == "state:invalid"
    await s.until(lambda: s.tree.row_ids() == ["checkout", "checkout.metrics"])


@case("filter.state.back")
async def _(s: Stage, key: str) -> None:
    await s.press(key)
    assert s.main.filter_bar.sought.text == "state:completed"


@case("follow")
async def _(s: Stage, key: str) -> None:
    await s.press(key)
    assert s.tree.follows
    await s.until(lambda: "Following: the cursor goes to what changed last." in s.text())
    await s.press(key)
    assert not s.tree.follows
    await s.until(lambda: "Following no more." in s.text())


@case("history")
async def _(s: Stage, key: str) -> None:
    await s.press(key)
    await s.until(lambda: "There is no history" in s.text())


@case("timeline")
async def _(s: Stage, key: str) -> None:
    await s.press(key)
    assert isinstance(s.app.screen, TimelineScreen)
    await s.press(key)
    assert isinstance(s.app.screen, MainScreen)


async def chart_of(s: Stage, *keys: str) -> TimelineChart:
    """The timeline's chart after these keys."""
    await s.press("t", *keys)
    assert isinstance(s.app.screen, TimelineScreen)
    return s.app.screen.chart


@case("timeline.open")
async def _(s: Stage, key: str) -> None:
    await chart_of(s, "j")
    await s.press(key)
    assert isinstance(s.app.screen, MainScreen)
    assert s.cursor == "checkout.plan"


@case("timeline.in")
async def _(s: Stage, key: str) -> None:
    chart = await chart_of(s)
    before = chart.picture[0].axis.scale
    await s.press(key)
    assert chart.picture[0].axis.scale < before


@case("timeline.out")
async def _(s: Stage, key: str) -> None:
    chart = await chart_of(s, "+", "+")
    before = chart.picture[0].axis.scale
    await s.press(key)
    assert chart.picture[0].axis.scale > before


@case("timeline.fit")
async def _(s: Stage, key: str) -> None:
    chart = await chart_of(s, "+", "+", key)
    assert chart.window.fits


@case("timeline.now")
async def _(s: Stage, key: str) -> None:
    chart = await chart_of(s, "+", "+", "+", "+", "h", "h", "h", "h", "h", "h")
    assert not chart.window.follows
    await s.press(key)
    assert chart.window.follows


@case("timeline.show")
async def _(s: Stage, key: str) -> None:
    chart = await chart_of(s, "j", key)
    assert not chart.window.fits
    assert chart.picture[0].x(NOW - 800) < chart.size.width / 4


@case("timeline.earlier")
async def _(s: Stage, key: str) -> None:
    chart = await chart_of(s, "+", "+", "+")
    before = chart.picture[0].left
    await s.press(key)
    assert chart.picture[0].left < before


@case("timeline.later")
async def _(s: Stage, key: str) -> None:
    chart = await chart_of(s, "+", "+", "+", "h", "h")
    before = chart.picture[0].left
    await s.press(key)
    assert chart.picture[0].left > before


@case("timeline.idle")
async def _(s: Stage, key: str) -> None:
    chart = await chart_of(s, key)
    assert not chart.window.folds_idle


@case("fold")
async def _(s: Stage, key: str) -> None:
    await s.press(key)
    assert s.tree.row_ids() == ["checkout"]
    await s.press(key)
    assert s.tree.row_count == 13


@case("edit")
async def _(s: Stage, key: str) -> None:
    await s.press("j", key)
    await s.until(lambda: "is no longer there" in s.text())


@case("copy")
async def _(s: Stage, key: str) -> None:
    await s.press("j", key)
    await s.until(lambda: "is no longer there" in s.text())


@case("tabs")
async def _(s: Stage, key: str) -> None:
    await s.press(key)
    assert s.details.active == TABS[int(key) - 1][0]


async def at_a_claim(s: Stage) -> None:
    s.scene.checked("returns/checkout.review.return.md", Claim("created", "a.md", Verdict.VERIFIED, "", None, "a.md"))
    s.source.push(s.scene.take())
    await s.until(lambda: s.app.monitor.tree.tasks["checkout.review"].claims)
    s.tree.select("checkout.review")
    await s.press("5", "tab")
    await s.until(lambda: "inspect" in s.details.offered)


@case("inspect")
async def _(s: Stage, key: str) -> None:
    await at_a_claim(s)
    await s.press(key)
    assert isinstance(s.app.screen, InspectScreen)


@case("inspect.switch")
async def _(s: Stage, key: str) -> None:
    await at_a_claim(s)
    await s.press("enter", key)
    await s.until(lambda: "there is no difference to show" in s.text())


async def at_a_transcript(s: Stage) -> None:
    run = Run(
        source="claude-code",
        session_id="x",
        parent_session=None,
        state=RunState.WORKING,
        place="/store/x.jsonl",
        started_at=NOW,
        updated_at=NOW,
        title="a session",
    )
    s.source.transcripts["x"] = lambda: LinesTranscript(Path(__file__), lambda _: [])
    s.source.push([Ran(900, NOW, "claude-code:x", run)])
    await s.until(lambda: "x" in s.tree.row_ids())
    s.tree.select("x")
    await s.press("2", "tab")
    await s.until(lambda: "It has said nothing yet." in s.text())


@case("live.search")
async def _(s: Stage, key: str) -> None:
    await at_a_transcript(s)
    await s.press(key, "k")
    assert isinstance(s.app.focused, Input)
    await s.until(lambda: "0 of 0 match" in s.text())


@case("live.pager")
async def _(s: Stage, key: str) -> None:
    await at_a_transcript(s)
    await s.press(key)
    await s.until(lambda: "cannot be handed over" in s.text() or "No pager is set" in s.text())


async def at_three_attempts(s: Stage) -> None:
    s.scene.handoff("checkout.release", ago=5, attempt=3)
    s.source.push(s.scene.take())
    await s.until(lambda: s.app.monitor.tree.tasks["checkout.release"].attempt == 3)
    s.tree.select("checkout.release")
    await s.press("7", "tab")
    await s.until(lambda: "Handoff  attempt 2 → 3" in shown_text(s.details))


@case("compare.earlier")
async def _(s: Stage, key: str) -> None:
    await at_three_attempts(s)
    await s.press(key)
    await s.until(lambda: "Handoff  attempt 1 → 2" in shown_text(s.details))


@case("compare.later")
async def _(s: Stage, key: str) -> None:
    await at_three_attempts(s)
    await s.press("-", key)
    await s.until(lambda: "Handoff  attempt 2 → 3" in shown_text(s.details))


@case("tab.next")
async def _(s: Stage, key: str) -> None:
    await s.press("enter", key)
    assert s.details.active == TABS[1][0]


@case("tab.previous")
async def _(s: Stage, key: str) -> None:
    await s.press("enter", key)
    assert s.details.active == TABS[-1][0]


@case("focus.next")
async def _(s: Stage, key: str) -> None:
    await s.press(key)
    assert s.in_details
    await s.press(key)
    assert s.app.focused is s.tree


@case("focus.previous")
async def _(s: Stage, key: str) -> None:
    await s.press(key)
    assert s.in_details


@case("fold.none")
async def _(s: Stage, key: str) -> None:
    await s.press("C", key)
    assert s.tree.row_count == 13


@case("fold.all")
async def _(s: Stage, key: str) -> None:
    await s.press(key)
    assert s.tree.row_ids() == ["checkout"]


@case("up")
async def _(s: Stage, key: str) -> None:
    await s.press("j", "j", key)
    assert s.cursor == "checkout.plan"


@case("down")
async def _(s: Stage, key: str) -> None:
    await s.press(key)
    assert s.cursor == "checkout.plan"


@case("left")
async def _(s: Stage, key: str) -> None:
    await s.press("j", key)
    assert s.cursor == "checkout"
    await s.press(key)
    assert s.tree.row_ids() == ["checkout"]


@case("right")
async def _(s: Stage, key: str) -> None:
    await s.press("C", key)
    assert s.tree.row_count == 7
    assert s.cursor == "checkout"
    await s.press(key)
    assert s.cursor == "checkout.plan"


@case("page.up")
async def _(s: Stage, key: str) -> None:
    await s.resize(80, 8)
    await s.press("G", key)
    rows = s.tree.row_ids()
    assert s.cursor == rows[len(rows) - s.tree.size.height]


@case("page.down")
async def _(s: Stage, key: str) -> None:
    await s.resize(80, 8)
    await s.press(key)
    assert s.cursor == s.tree.row_ids()[s.tree.size.height - 1]


@case("page.on")
async def _(s: Stage, key: str) -> None:
    await s.resize(80, 12)
    await s.press("enter", key)
    await s.until(lambda: s.app.screen.query_one(Page).scroll_offset.y > 0)


@case("first")
async def _(s: Stage, key: str) -> None:
    await s.press("j", "j", key)
    assert s.cursor == "checkout"


@case("last")
async def _(s: Stage, key: str) -> None:
    await s.press(key)
    assert s.cursor == s.tree.row_ids()[-1]


@case("notices")
async def _(s: Stage, key: str) -> None:
    s.scene.unreadable("returns/big.return.md", "too large to be read: make it smaller than 1 MiB")
    s.source.push(s.scene.take())
    await s.until(lambda: s.app.monitor.tree.notices)
    await s.press(key)
    assert isinstance(s.app.screen, NoticesScreen)
    await s.until(lambda: "returns/big.return.md" in s.text())
    assert "too large" in s.text()


@case("help")
async def _(s: Stage, key: str) -> None:
    await s.press(key)
    assert isinstance(s.app.screen, HelpScreen)
    await s.press("right")
    assert "Tutorial: your first decision" in s.text()
    await s.press("left", "left")
    assert "attempt: one execution of a task." in s.text()
    await s.press("right")
    assert "Go to the next task that needs you." in s.text()
    await s.press("escape")
    assert isinstance(s.app.screen, MainScreen)


@case("palette")
async def _(s: Stage, key: str) -> None:
    await s.press(key)
    await s.until(lambda: "Search for commands" in s.text())


@case("quit")
async def _(s: Stage, key: str) -> None:
    await s.press(key)
    assert s.app._exit


@case("suspend")
async def _(s: Stage, key: str) -> None:
    # There is no terminal here; `terminal/test_suspend.py` has one.
    await s.press("/", key)
    await s.until(lambda: "cannot be suspended here" in s.text())


ELSEWHERE = (Group.REPLAY, Group.DECIDE, Group.DIALOG)
"""Those of the replay have their cases in `test_replay`, those that decide in `test_decide_keys`."""

HERE = [command for command in COMMANDS if command.group not in ELSEWHERE]


def test_every_command_has_a_case() -> None:
    assert set(CASES) == {command.id for command in HERE}


@pytest.mark.parametrize(
    ("command_id", "key"), [(command.id, key) for command in HERE for key in command.keys.split(" ")]
)
async def test_the_key_does_what_the_command_says(command_id: str, key: str) -> None:
    async with stage() as s:
        await CASES[command_id](s, key)


def test_no_key_means_two_things_in_one_place() -> None:
    places = (
        (Home.APP, Home.MAIN, Home.TREE),
        (Home.APP, Home.MAIN, Home.PANE, Home.LINES),
        (Home.APP, Home.PAGE, Home.PANE, Home.LINES),
        (Home.APP, Home.TIMELINE, Home.CHART),
        (Home.DECIDE,),
    )
    for homes in places:
        keys = Counter(
            key
            for command in COMMANDS
            # A view goes before a tab, but only where the settings have views.
            if set(command.homes) & set(homes) and command.id != "views"
            for key in command.keys.split(" ")
        )
        assert [key for key, count in keys.items() if count > 1] == []


def test_the_bindings_are_those_of_the_definitions() -> None:
    pairs = {
        AgentwatchApp: Home.APP,
        MainScreen: Home.MAIN,
        TaskScreen: Home.PAGE,
        InspectScreen: Home.INSPECT,
        TaskTree: Home.TREE,
        FilterInput: Home.FILTER,
        TimelineScreen: Home.TIMELINE,
        TimelineChart: Home.CHART,
        DecisionScreen: Home.DECIDE,
        DetailsPane: Home.PANE,
        Page: Home.LINES,
    }
    for owner, home in pairs.items():
        assert bindings(home) == owner.BINDINGS, owner


def test_the_help_names_every_key() -> None:
    text = "\n".join(line.content.plain for line in lay_out(help_blocks(), 80))
    for command in COMMANDS:
        assert command.keys_label in text
        assert command.tooltip.split(" ")[0] in text


@pytest.mark.parametrize("width", [20, 34, 78])
def test_the_help_fits_its_width(width: int) -> None:
    assert all(line.content.cell_length <= max(width, 33) for line in lay_out(help_blocks(), width))


@pytest.mark.parametrize("place", [place for place in Place if place is not Place.HELP])
def test_every_place_has_keys_in_its_footer(place: Place) -> None:
    assert footer_commands(place)


async def test_the_footer_follows_the_operator() -> None:
    async with stage() as s:

        def footer() -> str:
            return s.text().splitlines()[-1]

        assert "enter open" in footer()
        assert "switch" in footer()
        await s.press("/")
        assert " ".join(footer().split()) == "enter keep esc clear ↓ to the tree tab complete ↑ earlier"
        await s.press("escape", "tab")
        assert "esc back" in footer()
        assert "1–8 tabs" in footer()
        await s.press("escape")
        await s.resize(80, 24)
        assert "switch" not in footer()
        await s.press("enter")
        assert "esc back" in footer()


async def test_the_palette_runs_a_command() -> None:
    async with stage() as s:
        await s.press("ctrl+p", *"collapse every")
        await s.until(lambda: "Collapse everything" in s.text())
        await s.press("down", "enter")
        await s.until(lambda: s.tree.row_ids() == ["checkout"])


async def test_the_palette_says_no_command_twice() -> None:
    async with stage() as s:
        said = {one.title: one.help for one in s.app.get_system_commands(s.app.screen)}
        assert said["Collapse everything"].startswith("Key: ")
        assert not any(words.startswith(f"{title}. ") for title, words in said.items())


async def test_the_palette_switches_the_theme() -> None:
    async with stage() as s:
        await s.press("ctrl+p", *"light")
        await s.until(lambda: "Theme: agentwatch-light" in s.text())
        await s.press("down", "enter")
        await s.until(lambda: s.app.theme == "agentwatch-light")


async def test_a_click_on_the_footer_runs_its_command() -> None:
    async with stage() as s:
        x = s.text().splitlines()[-1].index("follow")
        await s.pilot.click(offset=(x, 39))
        assert s.tree.follows
