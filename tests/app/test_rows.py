"""What stands in a row of the tree: what is done, by whom, since when, and what goes first where room is short."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from rich.cells import cell_len
from tests.app.scenes import NOW, Scene, busy, call
from tests.app.stage import Stage, stage

from agentwatch.app.theming import Palette, shipped_themes, variable_defaults
from agentwatch.app.widgets.task_line import Columns, RowState, age_of, decided_of, task_line
from agentwatch.config import Settings
from agentwatch.contracts.shapes import Outcome
from agentwatch.delegation.decision import Action, Decision, Receipt
from agentwatch.delegation.decision import Stage as DecisionStage
from agentwatch.delegation.events import Decided, Ran
from agentwatch.delegation.run import Activity, ActivityKind, RunState
from agentwatch.delegation.task import State
from agentwatch.delegation.tree import Tree

WIDTHS = (140, 100, 80, 60, 40)


def _variables(theme: str) -> dict[str, str]:
    described = next(one for one in shipped_themes() if one.name == theme)
    return {**described.to_color_system().generate(), **variable_defaults(), **described.variables}


def row(s: Stage, title: str) -> str:
    """The row of a task, without the details beside it."""
    width = s.tree.region.width
    return next(line[:width] for line in s.text().splitlines()[s.tree.region.y :] if title in line[:width]).rstrip()


@pytest.mark.parametrize("width", WIDTHS)
async def test_a_working_row_says_what_it_does(width: int) -> None:
    async with stage(scene=busy(), size=(width, 24)) as s:
        assert "Edit …/form.tsx" in row(s, " form") or "Edit src/billing/" in row(s, " form")
        assert "Bash ×3 npm te" in row(s, " tests")
        assert "The totals" in row(s, "round the totals")
        assert "process go" in row(s, " docs")
        assert "NEEDS YOU" in row(s, " api")


@pytest.mark.parametrize("width", range(60, 201, 7))
async def test_state_words_stay_from_sixty_columns_on(width: int) -> None:
    async with stage(scene=busy(), size=(width, 24)) as s:
        for title, word in ((" form", "working"), (" api", "failed"), ("a plan of", "completed"), (" docs", "stale")):
            assert f" {word}" in row(s, title) or "silent" in row(s, title), width


async def test_the_agent_goes_first_then_the_age_then_what_is_done() -> None:
    kept = [Columns.of(width) for width in range(40, 220)]
    assert all(columns.age for columns in kept if columns.agent)
    assert all(columns.tells for columns in kept if columns.age)
    assert all(columns.state for columns in kept if columns.tells)
    assert any(columns.tells and not columns.age for columns in kept)


async def test_the_time_in_a_row_is_that_of_what_it_says() -> None:
    async with stage(scene=busy(), size=(80, 24)) as s:
        assert row(s, " form").endswith(" 4s"), "since the tool was called"
        assert row(s, " tests").endswith(" 41s")
        assert row(s, " api").endswith(" 20s"), "since it asks"
        assert row(s, " docs").endswith(" 9m"), "since it is silent"
        assert row(s, "a plan of").endswith(" 10m"), "since it has ended"
        assert row(s, "export the").endswith(" 11m"), "since it waits"


async def test_a_parent_that_waits_says_for_how_many_and_each_session_which_program_it_is() -> None:
    async with stage(scene=busy(), size=(80, 24)) as s:
        assert "claude · waits for 3" in row(s, "export the invoices")
        assert "opencode · " in row(s, "round the totals")
        assert "claude" not in row(s, " form")


async def test_a_parent_that_does_something_itself_does_not_wait() -> None:
    scene = Scene()
    scene.ran("s1", "lead", doing=call("Read", "a.md", 3))
    scene.ran("c1", "child", below="s1", doing=call("Task", "x", 3, over=True))
    async with stage(scene=scene, size=(80, 12)) as s:
        assert "Read a.md" in row(s, "lead")
        assert "waits" not in s.text()


async def test_what_is_done_changes_in_its_place() -> None:
    scene = Scene()
    scene.ran("s1", "lead", doing=call("Read", "a.md", 3))
    async with stage(scene=scene, size=(80, 12)) as s:
        before = row(s, "lead")
        scene.ran("s1", "lead", doing=Activity(NOW, ActivityKind.TODO, about="write it down", over=True))
        await s.see()
        await s.until(lambda: "✓ write it down" in row(s, "lead"))
        assert row(s, "lead").index("✓ write") == before.index("Read")
        scene.ran("s1", "lead", RunState.ENDED, said="Done.")
        await s.see()
        await s.until(lambda: "completed" in row(s, "lead"))
        assert "write it down" not in row(s, "lead")


@pytest.mark.parametrize("width", WIDTHS)
async def test_what_is_done_is_one_line_whatever_an_agent_writes(width: int) -> None:
    scene = Scene()
    for number, about in enumerate(("日本語の長い説明" * 20, "a\nb\x1b[31m[bold]c[/]", "x" * 200, "🚀" * 90, "")):
        scene.ran(f"s{number}", f"lead {number}", doing=call("Bash", about, 3))
    async with stage(scene=scene, size=(width, 24)) as s:
        assert {strip.cell_length for strip in s.strips()} == {width}
        tree_width = s.tree.scrollable_content_region.width
        assert all(s.tree.render_line(y).cell_length == tree_width for y in range(5))
        assert "\x1b" not in s.text()
        if width >= 60:
            assert all("working" in row(s, f"lead {number}") for number in range(5))


async def test_what_neighbours_share_is_cut_before_what_tells_them_apart() -> None:
    scene = Scene()
    for name in ("worker_m3_remediation", "auditor_m3_remediation"):
        scene.ran(name, f"teamwork_preview_{name}", doing=call("Bash", "make all of it and then some", 3))
    async with stage(scene=scene, size=(80, 12)) as s:
        assert "…worker_m3_remediation" in s.text()
        assert "…auditor_m3_remediati" in s.text()
        await s.resize(132, 12)
    scene = Scene()
    for part in ("one", "two"):
        scene.ran(part, f"implement the export of all invoices for the portal, part {part}", doing=call("Ls", "x", 3))
    async with stage(scene=scene, size=(80, 12)) as s:
        assert all(f"portal, part {part}" in s.text() for part in ("one", "two"))


async def test_a_name_that_nobody_works_on_has_the_room_to_itself() -> None:
    scene = Scene()
    name = "a_name_that_is_as_long_as_the_row_has_room_for"
    scene.handoff(name)
    async with stage(scene=scene, size=(80, 12)) as s:
        assert name in s.text()


async def test_a_decision_on_its_way_and_a_failure_are_told_where_the_work_was() -> None:
    scene = Scene()
    scene.handoff("api")
    scene.returned("api", Outcome.FAILED, code="E_TOOL_FAILURE", agent="code")
    async with stage(scene=scene, size=(80, 12)) as s:
        assert "E_TOOL_FAILURE" in row(s, " api")


async def test_a_failure_is_told_by_its_summary_where_there_is_room_else_by_its_code() -> None:
    scene, summary = Scene(), "The test database cannot be reached."
    scene.handoff("api")
    scene.returned("api", Outcome.FAILED, code="E_TOOL_FAILURE", summary=summary)
    async with stage(scene=scene, size=(80, 12)) as s:
        assert summary.rstrip(".") in row(s, " api")
        await s.resize(56, 12)
        await s.until(lambda: "E_TOOL_FAIL" in row(s, " api"))


async def test_what_is_done_gets_the_blanks_beside_a_short_title() -> None:
    scene = Scene()
    scene.ran("api", "tests", doing=call("Bash", "python -m pytest tests/of_all/exports", 3))
    async with stage(scene=scene, size=(80, 12)) as s:
        assert "Bash python -m pytest tests/of_all/exports" in row(s, " tests")


async def test_the_ends_of_a_narrow_header_do_not_run_together() -> None:
    scene = busy()
    scene.handoff("old", ago=30 * 86_400)
    scene.returned("old", ago=29 * 86_400)
    async with stage(scene=scene, size=(40, 12), workspace="/home/kim/a-longer-name") as s:
        unseen = s.app.monitor.tree.unseen
        for count in range(200):
            unseen.append(f"c{count}")
            s.main.header.redraw()
            if count in (1, 50, 199):
                await s.pilot.pause(0.1)
                header = s.text().splitlines()[0]
                assert re.search(rf" now 7 .* ?•?{count + 1}( new)? ", header), header


async def test_what_was_not_looked_at_has_a_mark() -> None:
    scene = Scene()
    scene.handoff("a")
    scene.handoff("b")
    async with stage(scene=scene, size=(80, 12)) as s:
        assert "•" not in s.text()
        s.app.monitor.tree.tasks["b"].seen = False
        s.tree.refresh_tasks({"b"}, settled=True)
        await s.pilot.pause()
        assert row(s, " b").startswith("•")
        await s.press("j")
        assert row(s, " b").startswith("▌")


async def test_the_header_counts_what_goes_on_now_where_there_is_more() -> None:
    scene = busy()
    scene.handoff("old", ago=30 * 86_400)
    scene.returned("old", ago=29 * 86_400)
    async with stage(scene=scene, size=(140, 24)) as s:
        header = " ".join(s.text().splitlines()[0].split())
        asks = s.app.monitor.tree.totals.needs_operator
        assert f"{asks} need you" in header
        assert "now 7 " in header, "the old one is not among them"
        assert header.count("✓ 1") == 1
        s.app.monitor.tree.tasks["c2"].seen = False
        s.app.monitor.tree.unseen.append("c2")
        s.main.header.redraw()
        await s.until(lambda: "1 new" in s.text().splitlines()[0])


@pytest.mark.parametrize("theme", ["agentwatch-ansi", "agentwatch-dark"])
@pytest.mark.parametrize("width", range(30, 160, 5))
def test_every_row_is_as_wide_as_the_tree(theme: str, width: int) -> None:
    tree = Tree()
    for event in busy().take():
        tree.apply(event)
    palette = Palette.of(_variables(theme), ansi=theme.endswith("ansi"))
    for task in tree.tasks.values():
        for depth in (0, 1, 7, 40):
            for folded in (None, True):
                age, decided = age_of(task, NOW), decided_of(task, NOW)
                stand = RowState(depth, folded, guide=0, selected=True, focused=True, age=age, decided=decided)
                line = task_line(task, stand, Columns.of(width), palette, tree.tasks)
                assert line.cell_length == width == cell_len(line.text)


def test_a_chain_is_named_by_what_it_is_about_and_its_agent_stands_behind() -> None:
    tree = Tree()
    scene = Scene()
    scene.returned("lean-implementation-agent", agent="lean-implementation-agent")
    for event in scene.take():
        tree.apply(event)
    task = tree.tasks["lean-implementation-agent"]
    palette = Palette.of(_variables("agentwatch-dark"), ansi=False)
    lines = []
    for width in (110, 80, 60):
        chain = "973 prove the construction"
        stand = RowState(0, None, age=age_of(task, NOW), chain=chain)
        lines.append(task_line(task, stand, Columns.of(width), palette, tree.tasks).text)
    assert "973 prove the construction · lean-implementation-agent" in lines[0]
    assert "973 prove the construction · lean-impl" in lines[1]
    assert "973 prove the construction" in lines[2]
    assert all(line.count("lean-impl") <= 1 for line in lines)
    stand = stand._replace(shared=len(task.title))
    assert "973 prove the construction" in task_line(task, stand, Columns.of(60), palette, tree.tasks).text


def test_an_aborted_task_is_as_old_as_the_abort() -> None:
    scene = Scene()
    scene.handoff("a", ago=9_000)
    scene.returned("a", Outcome.FAILED, agent="code", ago=8_000)
    tree = Tree()
    for event in scene.take():
        tree.apply(event)
    latest = tree.tasks["a"].latest
    assert latest is not None
    assert latest.returned is not None
    decision = Decision(
        decision_id="0" * 32,
        task_id="a",
        attempt=1,
        handoff_sha256=latest.handoff.digest if latest.handoff else None,
        return_sha256=latest.returned.digest,
        action=Action.ABORT,
        at=NOW - 60,
        receipts=(Receipt(DecisionStage.RECORDED, NOW - 60),),
    )
    tree.apply(Decided(99, NOW - 60, decision.decision_id, decision))
    assert tree.tasks["a"].state is State.CANCELED
    assert age_of(tree.tasks["a"], NOW) == "1m"


async def test_the_overview_says_what_a_task_costs_where_prices_are_set() -> None:
    scene = Scene()
    scene.ran("s1", "lead", doing=call("Read", "a.md", 3), tokens=500_000, ago=600)
    (ran,) = scene.take()
    assert isinstance(ran, Ran)
    assert ran.run is not None
    ran = ran._replace(run=replace(ran.run, model="acme/small"))
    for prices, shown in ((("small", 3.0),), True), ((), False):
        async with stage([ran], settings=Settings(prices=prices)) as s:
            await s.until(lambda: "500,000" in s.text())
            assert ("1.50, all attempts, by your prices" in s.text()) is shown
