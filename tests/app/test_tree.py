"""The tree: a row begins with the most important words, live tasks stand first, and the cursor stays in its line."""

from itertools import pairwise

from agentwatch.contracts.shapes import Contract, Outcome, Return
from agentwatch.view.rows import Group
from tests.app.scenes import NOW, Scene, busy, call
from tests.app.stage import Stage, stage

DAY = 86_400


async def test_a_row_says_what_is_done_and_for_how_long():
    # Times since the row began (form, tests), asks (api), is gone (docs), ended (a plan) and works (export).
    times = {" form": "3m", " tests": "3m", " api": "20s", " docs": "9m", "a plan of": "10m", "export the": "12m"}
    async with stage(scene=busy()) as s:
        for width in (140, 100, 80, 60, 40):
            await s.resize(width, 24)
            assert "/form.tsx" in s.row(" form")
            assert "Bash ×3 npm te" in s.row(" tests")
            assert "The totals" in s.row("round the ")
            assert ("last: Read" if width > 60 else "gone") in s.row(" docs")
            assert "NEEDS YOU" in s.row(" api")
            assert width == 40 or {title: s.row(title).split()[-1] for title in times} == times


async def test_a_long_name_leaves_room_for_the_pulse():
    scene = Scene()
    edit = call("Edit", "/opt/other/src/billing/export/form.tsx", 4)
    scene.ran("s1", "rebuild the form of the invoices in small steps, one after another", agent="code", doing=edit)
    async with stage(scene=scene) as s:
        for width, words in {140: "Edit …/billing/export/f", 100: "Edit …/f", 60: "Edit …/export/f"}.items():
            await s.resize(width, 24)
            assert words in s.row("rebuild the")
            assert s.row("rebuild the").endswith("working     1m")


async def test_a_row_is_one_line_whatever_an_agent_writes():
    scene = Scene()
    for number, about in enumerate(("日本語の長い説明" * 20, "a\nb\x1b[31m[bold]c[/]", "x" * 200, "🚀" * 90, "")):
        scene.ran(f"s{number}", f"lead {number}", doing=call("Bash", about, 3))
    async with stage(scene=scene) as s:
        for width in (140, 60, 40):
            await s.resize(width, 24)
            assert {strip.cell_length for strip in s.strips()} == {width}
            room = s.tree.scrollable_content_region.width
            assert all(s.tree.render_line(y).cell_length == room for y in range(5))
            assert "\x1b" not in s.text()
            assert width < 60 or all("working" in s.row(f"lead {number}") for number in range(5))


async def test_words_that_neighbours_share_are_cut_first():
    scene = Scene()
    for name in ("worker_m3_remediation", "auditor_m3_remediation"):
        scene.ran(name, f"teamwork_preview_{name}", doing=call("Bash", "make all of it and then some", 3))
    async with stage(scene=scene, size=(80, 12)) as s:
        assert "…worker_m3_remediation" in s.text()
        assert "…auditor_m3_remediati" in s.text()
    scene = Scene()
    for part in ("one", "two"):
        scene.ran(part, f"implement the export of all invoices for the portal, part {part}", doing=call("Ls", "x", 3))
    async with stage(scene=scene, size=(80, 12)) as s:
        assert all(f"portal, part {part}" in s.text() for part in ("one", "two"))


async def test_folds_and_marks_are_shown_in_front_and_beside():
    async with stage(size=(140, 40)) as s:
        assert "answer: Which auth" in s.row(" security")
        assert "holds 2 6m" in s.line("Needs you")
        assert "Migration tool" in s.row(" api  ")
        await s.press("g", "m", "space")
        assert s.row("checkout").startswith("◆▸ ◐ checkout")
        assert "3 need you" in s.row("checkout")
        await s.press("m")
        assert s.row("checkout").startswith("▌▸")


async def test_a_deep_row_says_its_depth_instead_of_all_its_indent():
    scene = Scene()
    for depth in range(1, 16):
        scene.handoff(".".join("abcdefghijklmno"[:depth]), ago=60 - depth)
    async with stage(scene=scene, size=(60, 24)) as s:
        indents = [len(s.row(f" {name} ").split(f" {name} ")[0]) for name in "abjkmn"]
        assert [after - before for before, after in pairwise(indents)] == [2, 16, 0, 0, 0]
        assert all(f" ›{depth} " in s.row(f" {name} ") for depth, name in ((10, "k"), (13, "n")))


def groups_of_all() -> Scene:
    """Return a scene with a run in each group but the history, and several runs in one group."""
    scene = Scene()
    scene.handoff("live", ago=300)
    scene.handoff("live.one", ago=200)
    scene.returned("live.one", Outcome.WORKING, ago=20)
    for name, ago in (("noon", 3_000), ("morning", 9_000), ("old", 3 * DAY), ("older", 4 * DAY)):
        scene.handoff(name, ago=ago + 60)
        scene.returned(name, ago=ago)
    return scene


def groups(s: Stage) -> list[str | None]:
    groups = {run: group.value for group, runs in s.tree.order.groups.items() for run in runs}
    return [groups.get(run) for run in ("live", "noon", "morning")]


async def test_a_heading_is_folded_and_nothing_is_decided_on_it():
    async with stage(scene=groups_of_all()) as s:
        assert s.row_ids() == ["live", "live.one", "noon", "morning", "old", "older"]
        await s.press("g", "enter")
        assert (s.cursor, s.row_ids()[0]) == (None, "noon")
        assert "▸ NOW  1 run, 2 tasks, all working" in s.line("NOW")
        s.scene.returned("live.one", Outcome.FAILED, ago=1)
        await s.see()
        await s.until(lambda: "▸ NOW  1 needs you  1 run, 2 tasks · 1 failed" in s.line("NOW"))
        await s.press("n")
        assert s.cursor == "live.one"
        await s.press("g", "enter", "space", "right")
        assert s.cursor == "live"
        await s.press("left", "left", "r")
        assert (s.cursor, s.tree.cursor_group) == (None, Group.NOW)
        await s.shows("No task is selected.")


async def test_time_moves_a_run_but_not_the_one_under_the_cursor():
    now = NOW
    async with stage(scene=groups_of_all(), size=(80, 24), clock=lambda: now) as s:
        await s.press("j", "j", "j")
        assert s.cursor == "noon"
        now += 17 * 3_600
        s.tree.tick()
        assert groups(s) == ["earlier", "today", "earlier"]
        await s.press("j")
        assert groups(s) == ["earlier"] * 3
        assert "NOW" not in s.text()


async def test_a_sign_of_life_moves_nothing():
    scene = Scene()
    for name, ago in (("a", 300), ("b", 200), ("c", 100)):
        scene.handoff(name, ago=ago)
        scene.returned(name, Outcome.WORKING, ago=ago - 5)
    async with stage(scene=scene, size=(80, 24)) as s:
        scene.returned("a", Outcome.WORKING, ago=1, summary="Still at it.")
        await s.see()
        await s.until(lambda: s.app.monitor.tree.tasks["a"].updated_at == NOW - 1)
        assert (s.row_ids(), s.cursor) == (["c", "b", "a"], "c")


async def test_tasks_that_ask_come_before_the_others():
    scene = Scene()
    for name, ago in (("older", 15_000.0), ("ended", 1_700.0), ("asks", 200.0), ("both.child", 250.0)):
        scene.returned(name, Outcome.FAILED, ago=ago)
    for name in ("works", "both"):
        scene.handoff(name, ago=300.0)
        scene.returned(name, Outcome.WORKING, ago=250.0)
    async with stage(scene=scene, size=(80, 24)) as s:
        assert s.row_ids() == ["both", "both.child", "asks", "ended", "older", "works"]
        # The order changes under the cursor, too. A task that no longer asks stays in place while the cursor is on it.
        await s.press("G")
        for outcome, word in ((Outcome.FAILED, "failed"), (Outcome.COMPLETED, "completed")):
            scene.returned("works", outcome, ago=0.0)
            await s.see()
            await s.until(lambda word=word: word in s.row(" works"))
            assert s.row_ids() == ["both", "both.child", "works", "asks", "ended", "older"]
            assert s.cursor == "works"
        await s.press("j")
        assert s.row_ids() == ["both", "both.child", "asks", "ended", "older", "works"]


async def test_a_chain_that_is_only_named_is_one_row():
    scene = Scene()
    scene.handoff("other")

    def comes_back(*path: str, ago: float = 60.0):
        result = Return(
            Contract.SUBAGENT_RETURN, "implemented", Outcome.COMPLETED, agent=path[-1], delegation_path=path
        )
        scene.see(f"specs/973_prove_it/.return-meta-{path[-1]}.json", result, ago)

    comes_back("orchestrator", "research", "skill-x", "agent-y")
    async with stage(scene=scene, size=(140, 24)) as s:
        tree = s.app.monitor.tree
        chained = next(one for one in tree.tasks if "agent-y" in one)
        top = tree.ancestors(chained)[-1]
        assert {*s.row_ids()} == {chained, "other"}
        assert "agent-y" in s.row("973_prove_it")
        # Every function takes ids of tasks, also of tasks without a row.
        s.main.show_task(top)
        assert s.cursor == chained
        await s.press("/", *"973", "enter")
        await s.until(lambda: s.row_ids() == [chained] and " 1 found" in s.text())
        await s.press("escape")
        # A task with two children has a row.
        comes_back("orchestrator", "plan", "agent-z", ago=5.0)
        await s.see()
        await s.until(lambda: top in s.row_ids())
        assert (s.cursor, s.tree.scroll_offset.y) == (chained, 0)


async def test_the_cursor_comes_back_after_a_filter_without_matches():
    async with stage(scene=groups_of_all(), size=(80, 24)) as s:
        await s.press("G", "/", *"zzz")
        await s.until(lambda: not s.row_ids() and "nothing matches" in s.text())
        assert s.cursor is None
        await s.press("escape")
        await s.until(lambda: s.cursor == "older")
