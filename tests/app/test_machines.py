"""Workspaces on several machines on one screen: each has a row that shows how its host is and which tasks are there."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from agentwatch.app.app import AgentwatchApp
from agentwatch.config import Settings
from agentwatch.delegation.events import Lost, Reached
from agentwatch.monitor import Monitor
from agentwatch.sources import Health, Problem
from agentwatch.view.rows import Group
from agentwatch.workspaces import Place, Workspaces
from tests.app.scenes import LIVE, NOW, Scene, ToldSource, busy
from tests.app.scenes import shop as shop_scene
from tests.app.stage import Stage
from tests.journeys.driver import running

WHY = "build2 cannot be reached: ssh: connect to host build2 port 22: Connection refused"
DOWN = Health("degraded", WHY, problems=(Problem("files", "build2", WHY),))


@dataclass(kw_only=True)
class Fleet(Stage):
    """A stage with several sources; the key of each is the name of its workspace's row."""

    sources: dict[str, ToldSource]

    def select(self, title: str) -> str:
        """Go to the row of a workspace, or of another task, and return its id."""
        tasks = self.app.monitor.tree.tasks.values()
        task_id = next(one.task_id for one in tasks if title in (one.title if one.workspace else one.own_id))
        self.tree.select(task_id)
        return task_id


@asynccontextmanager
async def fleet(**scenes: Scene | Health) -> AsyncIterator[Fleet]:
    """Run a screen with hosts: each has the scene of its workspace, or the health of a host that does not answer."""
    sources: dict[str, ToldSource] = {}
    places = []
    for host, scene in scenes.items():
        is_here = host == "here"
        first = scene.take() if isinstance(scene, Scene) else (Lost(0, NOW - 180),) * (scene is DOWN)
        name = "shop" if is_here else f"{host}: shop"
        sources[name] = ToldSource(first, scene if isinstance(scene, Health) else LIVE)
        place = Path("/home/kim/shop" if is_here else f"/ssh:kim@{host}:/srv/shop")
        places.append(Place(place, name, host="" if is_here else host))

    def open_one(place: Place) -> Monitor:
        return Monitor(place.workspace, Settings(), sources[place.name or ""], lambda: NOW, host=place.host)

    app = AgentwatchApp(Workspaces(places, Settings(), open_one), lambda: NOW)
    async with running(app) as (pilot, told):
        stage = Fleet(pilot, Path(), Path(), told, sources=sources)
        await stage.until(lambda: app.is_settled)
        await stage.drawn()
        yield stage


async def test_a_host_that_never_answered_says_why_in_its_row():
    async with fleet(build1=busy(), build2=DOWN) as s:
        assert " ◐ " in s.row("build1: shop") or " ✗ " in s.row("build1: shop")
        row = s.row("build2: shop")
        assert all(words in row for words in ("? build2: shop", "build2 cannot be re", "unknown"))
        assert "1 of 2 hosts" in s.text().splitlines()[0]
        # A host that does not answer is news, even after a long time.
        assert s.select("build2: shop") in s.tree.order.groups[Group.NOW]
        await s.shows("Connection refused")
        await s.press("r", "c", "O")
        said = {"Retry “build2: shop”: its workspace is not being watched yet.", "No file speaks of this row."}
        await s.until(lambda: {*s.told} >= said | {"Connecting again: build2"})


async def test_hosts_that_were_not_read_yet_are_shown_as_unknown():
    async with fleet(build1=busy(), build2=Health("starting", "connecting to build2")) as s:
        await s.until(lambda: "1 of 2 hosts   ○ connecting to 1 host" in s.line("agentwatch"))
        assert all(words in s.row("build2: shop") for words in ("connecting to build2", "unknown"))
        s.sources["build2: shop"].push([], LIVE)
        await s.until(lambda: "2 hosts   ● live" in s.line("agentwatch"))


async def test_a_lost_host_is_counted_and_says_since_when_and_why():
    async with fleet(build1=busy(), build2=busy()) as s:
        rows = s.row_ids()
        s.sources["build2: shop"].push([Lost(0, NOW - 180)], DOWN)
        await s.until(lambda: "1 of 2 hosts" in s.line("agentwatch"))
        await s.until(lambda: "unknown" in s.row("build2: shop") and "cannot be re" in s.row("build2: shop"))
        assert s.row("build2: shop").endswith(" 3m")
        assert s.row_ids() == rows
        s.sources["build2: shop"].push([Reached(0, NOW)], LIVE)
        await s.until(lambda: "2 hosts" in s.line("agentwatch") and "of 2" not in s.line("agentwatch"))
        await s.until(lambda: "cannot" not in s.row("build2: shop"))
        assert s.row_ids() == rows


async def test_a_file_on_another_machine_is_only_copied_by_its_place():
    async with fleet(here=busy(), build1=shop_scene()) as s:
        s.select("checkout.implement.api")
        await s.press("o")
        said = "returns/checkout.implement.api.return.md on build1 is no file that can be opened"
        await s.until(lambda: any(said in one for one in s.told))
        await s.press("c")
        await s.until(lambda: s.app.clipboard == "kim@build1:/srv/shop/returns/checkout.implement.api.return.md")
