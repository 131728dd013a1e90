"""The details pane as an operator uses it: head, tabs, keys, scrolling, updates, widths."""

from __future__ import annotations

import pytest
from details_tasks import BROKEN, NOW, Case, DetailsApp, case, screen_text, shown, shown_text
from textual.geometry import Offset
from textual.selection import Selection

from agentwatch.app.widgets.details import TABS, DetailsPane
from agentwatch.app.widgets.details import pane as pane_module
from agentwatch.app.widgets.details import view as view_module
from agentwatch.app.widgets.details.head import TabBar
from agentwatch.app.widgets.details.page import Page
from agentwatch.contracts.shapes import Contract
from agentwatch.delegation.attempt import Attempt
from agentwatch.delegation.claims import Claim, Verdict
from agentwatch.delegation.run import Run, RunState
from agentwatch.delegation.task import Retry, State, Task


def asking() -> Case:
    one = case(findings=BROKEN)
    one.task.ask = one.task.question = "retry? the child recommends it; 1 retry left"
    return one


def long_text(lines: int = 200) -> str:
    return "## Status\nstate: SUCCESS\n" + "\n".join(f"line {number}" for number in range(lines))


async def test_the_head_says_how_the_task_stands_and_what_it_needs() -> None:
    async with DetailsApp(asking()).run_test(size=(80, 40)) as pilot:
        await pilot.pause()
        text = screen_text(pilot.app)
    head = text[: text.index("Overview")]
    assert "shop.checkout.api" in head
    assert "✗ failed" in head
    assert "attempt 1 of 2" in head
    assert "E_TOOL_FAILURE" in head
    assert "2m ago" in head
    assert "The migration tool timed out" not in head, "it stands in the overview"
    assert text.count("The migration tool timed out before the schema was applied.") == 1
    assert text.count("Raise the tool time-out") == text.count("E_TOOL_FAILURE") == 1
    assert "NEEDS YOU   retry? the child recommends it; 1 retry left" in head
    assert "hint        Raise the tool time-out and pass the schema path." in head


async def test_the_head_of_what_is_history_says_what_is_open_and_that_it_does_not_ask() -> None:
    one = asking()
    one.task.ask, one.task.question, one.task.past = None, one.task.ask, True
    async with DetailsApp(one).run_test(size=(80, 40)) as pilot:
        await pilot.pause()
        text = screen_text(pilot.app)
    assert "history     retry? the child recommends it; 1 retry left" in text
    assert "NEEDS YOU" not in text


async def test_nobody_is_told_of_retries_of_a_session_or_of_a_task_nobody_handed_out() -> None:
    run = Run(
        source="agents",
        session_id="ses_1",
        parent_session=None,
        state=RunState.WORKING,
        place="/db",
        started_at=NOW - 60,
        updated_at=NOW,
    )
    session = Case(Task("ses_1", "Say it", attempts=[Attempt(1, started_at=NOW - 60, run=run)]))
    bare = Case(Task("shop.planner", "planner", inferred=True))
    async with DetailsApp(session).run_test(size=(80, 40)) as pilot:
        await pilot.pause()
        assert "source      agents" in screen_text(pilot.app)
        for one in (session, bare):
            pilot.app.show(one)
            await pilot.pause()
            assert "attempt 1" not in screen_text(pilot.app)
            assert "retries" not in screen_text(pilot.app)


async def test_the_parent_is_called_as_in_the_tree() -> None:
    one = case()
    async with DetailsApp(one).run_test(size=(80, 40)) as pilot:
        await pilot.pause()
        assert "linked      below shop.checkout   the parent's id" in screen_text(pilot.app)
        one.tree.tasks["shop.checkout"] = Task("shop.checkout", "Build the shop")
        pilot.app.show(one)
        await pilot.press("1")
        await pilot.resize_terminal(81, 40)
        await pilot.pause()
        assert "linked      below Build the shop   the parent's id" in screen_text(pilot.app)


async def test_the_overview_says_how_many_claims_are_false() -> None:
    one = case()
    one.task.claims = tuple(Claim("created", path, Verdict.CONTRADICTED, "missing") for path in ("a", "b"))
    async with DetailsApp(one).run_test(size=(80, 40)) as pilot:
        await pilot.pause()
        assert "claims      ⚑ 2 false claims, see Attestation" in screen_text(pilot.app)


async def test_the_head_stays_small_in_a_low_pane() -> None:
    async with DetailsApp(asking()).run_test(size=(40, 12)) as pilot:
        await pilot.pause()
        lines = screen_text(pilot.app).splitlines()
        page = pilot.app.query_one(Page)
        assert page.size.height >= 5
    assert lines[1].startswith(" ✗ failed")
    assert lines[2].startswith(" NEEDS YOU  retry?")
    assert lines[3].startswith(" hint  Raise the tool")


async def test_the_head_shows_silent_and_contradicted_in_front_of_the_state() -> None:
    one = case(Contract.RETURN_META)
    one.task.stale = True
    async with DetailsApp(one).run_test(size=(80, 30)) as pilot:
        await pilot.pause()
        assert "◌ silent  ◐ working" in screen_text(pilot.app)
        one.task.verdict = Verdict.CONTRADICTED
        pilot.app.show(one)
        await pilot.pause()
        assert "⚑ false  ◐ working" in screen_text(pilot.app)


async def test_a_long_id_keeps_its_end_and_the_agent_its_place() -> None:
    one = case(task_id="a-very-long-directory/" * 9 + "planner")
    one.task.title = "planner"
    one.task.agent = "宽" * 60
    async with DetailsApp(one).run_test(size=(80, 30)) as pilot:
        await pilot.pause()
        first = screen_text(pilot.app).splitlines()[0]
        assert first.startswith(" …")
        assert "directory/planner  宽宽" in first
        await pilot.resize_terminal(38, 30)
        await pilot.pause()
        first = screen_text(pilot.app).splitlines()[0]
        assert first.endswith("directory/planner")


async def test_a_narrow_head_breaks_no_part_in_two() -> None:
    async with DetailsApp(asking()).run_test(size=(38, 40)) as pilot:
        await pilot.pause()
        lines = screen_text(pilot.app).splitlines()
    assert lines[1:3] == [" ✗ failed  attempt 1 of 2", " E_TOOL_FAILURE  code  2m ago"]


async def test_titles_carry_counts() -> None:
    async with DetailsApp(asking()).run_test(size=(80, 30)) as pilot:
        await pilot.pause()
        text = screen_text(pilot.app)
    assert "Findings 3" in text
    assert "Handoff 1/3" in text


async def test_keys_go_through_the_tabs_and_round() -> None:
    async with DetailsApp(asking()).run_test(size=(80, 30)) as pilot:
        pane = pilot.app.query_one(DetailsPane)
        seen = [pane.active]
        for key in ("right", "l", "right", "l", "right", "right", "l", "l"):
            await pilot.press(key)
            seen.append(pane.active)
        assert seen == [tab_id for tab_id, _ in TABS] + [TABS[0][0]]
        await pilot.press("left")
        assert pane.active == "raw"
        await pilot.press("h")
        assert pane.active == "attempts"


async def test_a_click_on_a_title_opens_its_tab() -> None:
    async with DetailsApp(asking()).run_test(size=(80, 30)) as pilot:
        await pilot.pause()
        bar = pilot.app.query_one(TabBar)
        line = screen_text(pilot.app).splitlines()[bar.region.y]
        await pilot.click(TabBar, offset=(line.index("Raw") - bar.region.x, 0))
        await pilot.pause()
        assert pilot.app.query_one(DetailsPane).active == "raw"
        assert pilot.app.query_one(Page).has_focus


@pytest.mark.parametrize("width", [24, 38, 46, 50, 60])
async def test_the_active_title_is_visible_at_any_width(width: int) -> None:
    async with DetailsApp(asking()).run_test(size=(width, 30)) as pilot:
        for tab_id, title in TABS:
            await shown(pilot, tab_id)
            line = screen_text(pilot.app).splitlines()[pilot.app.query_one(TabBar).region.y]
            assert title in line


async def test_all_titles_stay_where_they_fit_without_their_counts() -> None:
    one = asking()
    one.task.claims = tuple(Claim("created", f"{n}", Verdict.CONTRADICTED, "missing") for n in range(12))
    async with DetailsApp(one).run_test(size=(65, 30)) as pilot:
        await pilot.pause()
        line = screen_text(pilot.app).splitlines()[pilot.app.query_one(TabBar).region.y]
        assert all(title in line for _, title in TABS), line


async def test_an_unknown_tab_is_refused() -> None:
    async with DetailsApp(asking()).run_test() as pilot:
        with pytest.raises(ValueError, match="no tab 'nope': use one of overview, live"):
            pilot.app.query_one(DetailsPane).activate("nope")


@pytest.mark.parametrize("keys", [("down",) * 3, ("j",) * 3])
async def test_keys_scroll_the_page(keys: tuple[str, ...]) -> None:
    async with DetailsApp(case(text=long_text())).run_test(size=(80, 30)) as pilot:
        await shown(pilot, "raw")
        page = pilot.app.query_one(Page)
        await pilot.press(*keys)
        await pilot.pause()
        assert page.scroll_offset.y == 3
        await pilot.press("k")
        await pilot.pause()
        assert page.scroll_offset.y == 2
        await pilot.press("end")
        await pilot.pause()
        assert page.scroll_offset.y == page.max_scroll_y > 100
        await pilot.press("home")
        await pilot.pause()
        assert page.scroll_offset.y == 0
        await pilot.press("pagedown")
        await pilot.pause()
        assert page.scroll_offset.y > 5


async def test_an_update_of_the_same_task_keeps_the_place() -> None:
    one = case(text=long_text())
    async with DetailsApp(one).run_test(size=(80, 30)) as pilot:
        await shown(pilot, "raw")
        page = pilot.app.query_one(Page)
        page.scroll_to(y=40, animate=False)
        await pilot.pause()
        again = case(text=long_text(250))
        pilot.app.show(again)
        await shown(pilot)
        assert page.scroll_offset.y == 40
        assert any("line 249" in line for line in page.lines)


async def test_another_task_starts_at_the_top() -> None:
    async with DetailsApp(case(text=long_text())).run_test(size=(80, 30)) as pilot:
        pane = pilot.app.query_one(DetailsPane)
        await shown(pilot, "raw")
        page = pilot.app.query_one(Page)
        page.scroll_to(y=40, animate=False)
        await pilot.pause()
        pilot.app.show(case(text=long_text(), task_id="shop.other"))
        await pilot.pause()
        assert page.scroll_offset.y == 0
        assert pane.active == "raw"


async def test_each_tab_remembers_its_place_for_the_task() -> None:
    async with DetailsApp(case(text=long_text())).run_test(size=(80, 30)) as pilot:
        await shown(pilot, "raw")
        page = pilot.app.query_one(Page)
        page.scroll_to(y=40, animate=False)
        await pilot.pause()
        await shown(pilot, "findings")
        assert page.scroll_offset.y == 0
        await shown(pilot, "raw")
        assert page.scroll_offset.y == 40


async def test_a_shorter_text_pulls_the_page_back() -> None:
    async with DetailsApp(case(text=long_text())).run_test(size=(80, 30)) as pilot:
        await shown(pilot, "raw")
        await pilot.press("end")
        await pilot.pause()
        pilot.app.show(case(text="## Status\nstate: SUCCESS\n"))
        await shown(pilot)
        page = pilot.app.query_one(Page)
        assert page.scroll_offset.y == page.max_scroll_y
        assert page.lines[-1] in screen_text(pilot.app)


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Ids of the tasks whose overview was written."""
    ids: list[str] = []
    original = pane_module._WRITERS["overview"]

    def counted(view):
        ids.append(view.task.task_id)
        return original(view)

    monkeypatch.setitem(pane_module._WRITERS, "overview", counted)
    return ids


async def test_many_changes_between_two_refreshes_are_written_once(written: list[str]) -> None:
    async with DetailsApp(asking()).run_test(size=(80, 30)) as pilot:
        await pilot.pause()
        written.clear()
        for number in range(50):
            pilot.app.show(case(task_id=f"shop.{number}"))
        await pilot.pause()
    assert written == ["shop.49"]


async def test_a_document_is_opened_once_however_often_it_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    original = view_module.read_and_open

    def counted(text, name, **how):
        opened.append(name)
        return original(text, name, **how)

    monkeypatch.setattr(view_module, "read_and_open", counted)
    one, other = case(), case(Contract.REPORT_CONTRACT)
    async with DetailsApp(one).run_test(size=(80, 30)) as pilot:
        pilot.app.query_one(DetailsPane).activate("return")
        for wanted in (one, other, one, other, one):
            pilot.app.show(wanted)
            await shown(pilot)
    assert sorted(opened) == ["reports/auth.json", "work/api.return.md"]


async def test_only_the_visible_tab_opens_the_document() -> None:
    asked: list[str] = []

    def content(version):
        asked.append(version.path)
        return one.texts[version.digest]

    one = case()
    async with DetailsApp(one).run_test(size=(80, 30)) as pilot:
        pane = pilot.app.query_one(DetailsPane)
        pane.show(one.task, one.tree, content, NOW)
        await pilot.pause()
        assert asked == []
        await shown(pilot, "handoff")
        assert set(asked) == {"work/api.handoff.md"}


async def test_an_unchanged_task_draws_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    one = asking()
    async with DetailsApp(one).run_test(size=(80, 30)) as pilot:
        for tab_id, _ in TABS:
            await shown(pilot, tab_id)
            drawn: list[int] = []
            monkeypatch.setattr(Page, "render_line", lambda self, y, drawn=drawn: drawn.append(y))
            pilot.app.show(one)
            await pilot.pause()
            monkeypatch.undo()
            assert drawn == []


async def test_a_hidden_pane_writes_nothing_until_it_is_shown(written: list[str]) -> None:
    async with DetailsApp(asking()).run_test(size=(80, 30)) as pilot:
        pane = pilot.app.query_one(DetailsPane)
        pane.display = False
        await pilot.pause()
        written.clear()
        pilot.app.show(case(task_id="shop.later"))
        await pilot.pause()
        assert written == []
        pane.display = True
        await pilot.pause()
        await pilot.pause()
        assert "shop.later" in screen_text(pilot.app)


async def test_no_task_is_said() -> None:
    async with DetailsApp(asking()).run_test(size=(80, 30)) as pilot:
        one = asking()
        pilot.app.query_one(DetailsPane).show(None, one.tree, one.content, NOW)
        await pilot.pause()
        text = screen_text(pilot.app)
        assert "No task is selected." in text
        assert "Overview" not in text
        pilot.app.show(one)
        await pilot.pause()
        assert "Overview" in screen_text(pilot.app)


async def test_a_resize_wraps_anew() -> None:
    async with DetailsApp(asking()).run_test(size=(80, 40)) as pilot:
        await pilot.pause()
        page = pilot.app.query_one(Page)
        assert any(line.startswith("asked       Build") for line in page.lines)
        await pilot.resize_terminal(38, 40)
        await pilot.pause()
        assert "asked" in page.lines
        assert max(len(line) for line in page.lines) <= 36
        assert "shop.checkout.api" in screen_text(pilot.app)


async def test_the_pane_focuses_its_page() -> None:
    async with DetailsApp(asking()).run_test() as pilot:
        pilot.app.set_focus(None)
        pilot.app.query_one(DetailsPane).focus()
        await pilot.pause()
        assert pilot.app.query_one(Page).has_focus


async def test_a_selection_is_copied_without_indent_and_gutter() -> None:
    async with DetailsApp(case(findings=BROKEN)).run_test(size=(80, 40)) as pilot:
        await shown(pilot, "raw")
        page = pilot.app.query_one(Page)
        first = next(number for number, line in enumerate(page.lines) if "state: ERROR" in line)
        selection = Selection.from_offsets(Offset(0, first), Offset(200, first + 2))
        assert page.get_selection(selection) == (
            "state: ERROR\nsummary: The migration tool timed out before the schema was applied.",
            "\n",
        )


async def test_text_is_selected_with_the_mouse() -> None:
    async with DetailsApp(asking()).run_test(size=(80, 40)) as pilot:
        await pilot.pause()
        page = pilot.app.query_one(Page)
        row = next(number for number, line in enumerate(page.lines) if line.startswith("asked"))
        await pilot.mouse_down(Page, offset=(13, row))
        await pilot.hover(Page, offset=(17, row))
        await pilot.mouse_up(Page, offset=(17, row))
        await pilot.pause()
        assert pilot.app.screen.get_selected_text() == "Build"


async def test_an_attempt_under_way_shows_the_one_before_and_says_so() -> None:
    one = case()
    one.task.attempts.append(Attempt(2, State.WORKING, started_at=NOW - 60))
    one.task.state = State.WORKING
    one.task.retry = Retry(remaining=0)
    async with DetailsApp(one).run_test(size=(80, 40)) as pilot:
        pane = pilot.app.query_one(DetailsPane)
        await pilot.pause()
        assert "attempt 2 of 2" in screen_text(pilot.app)
        for tab_id, words in (
            ("return", "Attempt 2 has not returned yet; this is what attempt 1 returned."),
            ("attestation", "Attempt 2 has not returned yet; this is what attempt 1 said."),
            ("handoff", "Attempt 2 has no handoff of its own; this is that of attempt 1."),
        ):
            await shown(pilot, tab_id)
            assert words in shown_text(pane)
        await shown(pilot, "attempts")
        assert "2  ◐ working" in shown_text(pane)
        assert "1  ✗ failed" in shown_text(pane)


async def test_a_task_nobody_speaks_of_says_so_in_every_tab() -> None:
    bare = Case(Task("shop.planner", "planner", inferred=True, why="inferred from a delegation path"))
    async with DetailsApp(bare).run_test(size=(80, 40)) as pilot:
        pane = pilot.app.query_one(DetailsPane)
        for tab_id, words in (
            ("overview", "no handoff was seen"),
            ("handoff", "No handoff was seen"),
            ("return", "Nothing has come back yet."),
            ("attestation", "Nothing has come back yet, so nothing is attested."),
            ("findings", "Nothing to check"),
            ("attempts", "no attempt is known"),
            ("raw", "No file speaks of this task."),
        ):
            await shown(pilot, tab_id)
            assert words in shown_text(pane)


async def test_the_theme_may_change_under_the_pane() -> None:
    async with DetailsApp(asking()).run_test(size=(80, 40)) as pilot:
        await pilot.pause()
        before = pilot.app.query_one(Page).render_line(0)
        pilot.app.theme = "textual-light"
        await pilot.pause()
        assert pilot.app.query_one(Page).render_line(0) != before


@pytest.mark.parametrize("size", [(90, 40), (38, 24)])
async def test_a_task_is_called_as_in_the_tree_with_its_id_beside_that(size: tuple[int, int]) -> None:
    one = case(task_id="ses_e0312640affebSen9fIqbQkHdp")
    one.task.title = "Ship the checkout"
    async with DetailsApp(one).run_test(size=size) as pilot:
        await shown(pilot)
        first = screen_text(pilot.app).splitlines()[0]
        assert first.strip().startswith("Ship the checkout  ses_e0")
