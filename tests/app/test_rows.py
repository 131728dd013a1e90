"""What stands in a row of the tree: what is done, by whom, since when, and what goes first where room is short."""

from __future__ import annotations

import pytest
from rich.cells import cell_len
from tests.app.scenes import NOW, Scene, busy, call
from tests.app.stage import Stage, stage

from agentwatch.app.theming import Palette, shipped_themes, variable_defaults
from agentwatch.app.widgets.task_line import Columns, RowState, age_of, decided_of, task_line
from agentwatch.delegation.tree import Tree

WIDTHS = (140, 60, 40)


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


async def test_the_time_in_a_row_is_that_of_what_it_says() -> None:
    async with stage(scene=busy(), size=(80, 24)) as s:
        assert row(s, " form").endswith(" 4s"), "since the tool was called"
        assert row(s, " tests").endswith(" 41s")
        assert row(s, " api").endswith(" 20s"), "since it asks"
        assert row(s, " docs").endswith(" 9m"), "since it is silent"
        assert row(s, "a plan of").endswith(" 10m"), "since it has ended"
        assert row(s, "export the").endswith(" 11m"), "since it waits"


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
