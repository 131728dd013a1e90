"""What is alive stands first: groups, headings, chains, the order in a group, and a cursor that stays in its line."""

from agentwatch.contracts.shapes import Contract, Outcome, Return
from agentwatch.view.rows import Group
from tests.app.scenes import NOW, Scene
from tests.app.stage import Stage, stage

DAY = 86_400


def groups_of_all() -> Scene:
    """A run in each group but the history, and several in one."""
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
        await s.until(lambda: "No task is selected." in s.text())


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


async def test_a_sign_of_life_moves_nothing_and_a_question_does():
    scene = Scene()
    for name, ago in (("a", 300), ("b", 200), ("c", 100)):
        scene.handoff(name, ago=ago)
        scene.returned(name, Outcome.WORKING, ago=ago - 5)
    async with stage(scene=scene, size=(80, 24)) as s:
        scene.returned("a", Outcome.WORKING, ago=1, summary="Still at it.")
        await s.see()
        await s.until(lambda: s.app.monitor.tree.tasks["a"].updated_at == NOW - 1)
        await s.shown()
        assert s.row_ids() == ["c", "b", "a"]
        scene.returned("a", Outcome.FAILED, ago=0)
        await s.see()
        await s.until(lambda: s.row_ids() == ["a", "c", "b"] and "NEEDS YOU" in s.line(" a "))
        assert s.cursor == "c"


async def test_what_asks_stands_before_what_does_not():
    now, scene = NOW, Scene()
    for name, ago in (("older", 15_000.0), ("ended", 1_700.0), ("asks", 200.0)):
        scene.handoff(name, ago=ago + 10)
        scene.returned(name, Outcome.FAILED, ago=ago)
    for name in ("works", "both", "both.child"):
        scene.handoff(name, ago=300.0)
        scene.returned(name, Outcome.FAILED if "child" in name else Outcome.WORKING, ago=250.0)
    async with stage(scene=scene, size=(80, 24), clock=lambda: now) as s:
        assert s.row_ids() == ["both", "both.child", "asks", "ended", "older", "works"]
        # Also under the cursor; what asks no more stays while the cursor is there.
        await s.press("G")
        scene.returned("works", Outcome.FAILED, ago=0.0)
        await s.see()
        await s.until(lambda: s.row_ids() == ["both", "both.child", "works", "asks", "ended", "older"])
        assert s.cursor == "works"
        scene.returned("works", Outcome.COMPLETED, ago=0.0)
        await s.see()
        await s.until(lambda: "completed" in s.line(" works"))
        assert s.row_ids()[2] == "works"
        await s.press("j")
        assert s.row_ids() == ["both", "both.child", "asks", "ended", "older", "works"]


async def test_a_chain_that_is_only_named_is_one_row():
    scene = Scene()

    def comes_back(*path: str, ago: float = 60.0):
        document = Return(
            Contract.SUBAGENT_RETURN, "implemented", Outcome.COMPLETED, agent=path[-1], delegation_path=path
        )
        scene._see(f"specs/973_prove_it/.return-meta-{path[-1]}.json", document, ago)

    comes_back("orchestrator", "research", "skill-x", "agent-y")
    scene.handoff("other")
    async with stage(scene=scene, size=(140, 24)) as s:
        chained = next(one for one in s.app.monitor.tree.tasks if "agent-y" in one)
        top = s.app.monitor.tree.ancestors(chained)[-1]
        assert sorted(s.row_ids()) == sorted([chained, "other"])
        assert "agent-y" in s.line("973_prove_it").split("│")[0]
        # All goes by the ids of the tasks, also of those without a row.
        s.main.show_task(top)
        assert s.cursor == chained
        await s.press("/", *"973", "enter")
        await s.until(lambda: s.row_ids() == [chained] and " 1 found" in s.text())
        await s.press("escape", "t")
        await s.until(lambda: "973_prove_it" in s.text())
        await s.press("escape")
        comes_back("orchestrator", "plan", "agent-z", ago=5.0)
        await s.see()
        await s.until(lambda: any("agent-z" in one for one in s.row_ids()))
        # The one who has two below him now has a row.
        assert (top in s.row_ids(), s.cursor, s.tree.scroll_offset.y) == (True, chained, 0)


async def test_the_cursor_comes_back_after_a_filter_without_matches():
    async with stage(scene=groups_of_all(), size=(80, 24)) as s:
        await s.press("G", "/", *"zzz")
        await s.until(lambda: not s.row_ids() and "nothing matches" in s.text())
        assert s.cursor is None
        await s.press("escape")
        await s.until(lambda: s.cursor == "older")
