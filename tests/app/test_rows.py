"""What stands in a row of the tree: what is done, by whom, since when, and what goes first where room is short."""

from itertools import pairwise

import pytest

from tests.app.scenes import Scene, busy, call
from tests.app.stage import Stage, stage

WIDTHS = (140, 60, 40)


def row(s: Stage, title: str) -> str:
    """The row of a task, without the details beside it."""
    width = s.tree.region.width
    return next(line[:width] for line in s.text().splitlines()[s.tree.region.y :] if title in line[:width]).rstrip()


@pytest.mark.parametrize("width", WIDTHS)
async def test_a_working_row_says_what_it_does(width):
    async with stage(scene=busy(), size=(width, 24)) as s:
        assert "/form.tsx" in row(s, " form")
        assert "Bash ×3 npm te" in row(s, " tests")
        assert "The totals" in row(s, "round the ")
        assert "last: Read docs" in row(s, " docs") if width > 60 else "gone" in row(s, " docs")
        assert "NEEDS YOU" in row(s, " api")


@pytest.mark.parametrize("width", [140, 100, 80, 60])
async def test_the_time_in_a_row_is_that_of_what_it_says(width):
    # Since it began, asks, is gone, has ended, works.
    times = {" form": "3m", " tests": "3m", " api": "20s", " docs": "9m", "a plan of": "10m", "export the": "12m"}
    async with stage(scene=busy(), size=(width, 24)) as s:
        assert {title: row(s, title).split()[-1] for title in times} == times


@pytest.mark.parametrize(
    ("width", "words"), {140: "Edit …/billing/export/f", 100: "Edit …/f", 60: "Edit …/export/f"}.items()
)
async def test_a_long_name_leaves_room_for_the_pulse(width, words):
    scene = Scene()
    edit = call("Edit", "/opt/other/src/billing/export/form.tsx", 4)
    scene.ran("s1", "rebuild the form of the invoices in small steps, one after another", agent="code", doing=edit)
    async with stage(scene=scene, size=(width, 24)) as s:
        assert words in row(s, "rebuild the")
        assert row(s, "rebuild the").endswith("working     1m")


@pytest.mark.parametrize("width", WIDTHS)
async def test_what_is_done_is_one_line_whatever_an_agent_writes(width):
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


async def test_what_neighbours_share_is_cut_first():
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


async def test_what_is_folded_or_marked_is_told_in_front_and_beside():
    async with stage(size=(140, 40)) as s:
        assert "answer: Which auth" in row(s, " security")
        assert "holds 2 6m" in s.line("Needs you")
        assert "Migration tool" in row(s, " api  ")
        await s.press("g", "m", "space")
        assert row(s, "checkout").startswith("◆▸ ◐ checkout")
        assert "3 need you" in row(s, "checkout")
        await s.press("m")
        assert row(s, "checkout").startswith("▌▸")
    scene = Scene()
    for name in ("a", "a.b", "a.c"):
        scene.handoff(name, ago=50)
    scene.returned("a.b", ago=30)
    async with stage(scene=scene, size=(140, 40)) as s:
        await s.press("g", "space")
        assert "1 of 2" in row(s, " a ")


async def test_a_deep_row_says_its_depth_instead_of_all_its_indent():
    scene = Scene()
    for depth in range(1, 16):
        scene.handoff(".".join("abcdefghijklmno"[:depth]), ago=60 - depth)
    async with stage(scene=scene, size=(60, 24)) as s:
        indents = [len(row(s, f" {name} ").split(f" {name} ")[0]) for name in "abjkmn"]
        assert [after - before for before, after in pairwise(indents)] == [2, 16, 0, 0, 0]
        assert all(f" ›{depth} " in row(s, f" {name} ") for depth, name in ((10, "k"), (13, "n")))
