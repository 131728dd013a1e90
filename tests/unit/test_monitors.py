"""Several workspaces watched as one: each with a tree, a ledger and agents of its own."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from agentwatch.composition import watched
from agentwatch.config import Settings
from agentwatch.state import is_shown, state_directory
from agentwatch.workspaces import Workspaces, names_of
from tests.homes import live_in
from tests.journeys.made import handoff, returned

NO_PROGRAMS = Settings(sessions=False)


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A user who has no programs."""
    live_in(tmp_path, monkeypatch)
    return tmp_path


def workspace(home: Path, name: str) -> Path:
    """A workspace with a task that failed."""
    place = home / name
    place.mkdir()
    (place / "api.handoff.json").write_text(handoff("shop.api"))
    (place / "api.return.md").write_text(returned("ERROR", "shop.api"))
    return place


@asynccontextmanager
async def watching(monitor: Workspaces) -> AsyncIterator[Callable[[Callable[[], object]], object]]:
    """Runs it; what comes is waited for with the function given."""

    async def run_on():
        async for _ in monitor.updates():
            pass

    async def until(holds: Callable[[], object]):
        async with asyncio.timeout(20):
            while not holds():
                assert not running.done(), running
                await asyncio.sleep(0.01)

    running = asyncio.create_task(run_on())
    try:
        yield until
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


def keys(monitor: Workspaces) -> dict[tuple[str, str], str]:
    """The keys of all tasks, by the name of their workspace and their own id."""
    tasks = monitor.tree.tasks.values()
    return {(monitor.of(one.task_id)[0].workspace.name, one.own_id): one.task_id for one in tasks if not one.workspace}


async def test_each_workspace_is_shown_to_its_hooks_while_watched(home):
    one, two = workspace(home, "one"), workspace(home, "two")
    monitor = watched([one, two], NO_PROGRAMS)
    async with watching(monitor) as until:
        await until(lambda: is_shown(state_directory(one)) and is_shown(state_directory(two)))
    assert not is_shown(state_directory(one))
    assert not is_shown(state_directory(two))


async def test_what_is_wrong_in_one_workspace_says_in_which(home):
    one, two = workspace(home, "one"), workspace(home, "two")
    (two / "bad.handoff.json").write_text("{}")
    (two / "locked.return.md").symlink_to(home / "elsewhere")
    monitor = watched([one, two], NO_PROGRAMS)
    async with watching(monitor) as until:
        await until(lambda: monitor.tree.notices)
        assert {notice.path.partition(":")[0] for notice in monitor.tree.notices} == {"two"}


@pytest.mark.parametrize(
    ("paths", "names"),
    [
        (["/w/shop", "/w/shelf"], ["shop", "shelf"]),
        (["/a/shop", "/b/shop", "/b/shelf"], ["a/shop", "b/shop", "shelf"]),
        (["/x/a/shop", "/y/a/shop"], ["x/a/shop", "y/a/shop"]),
        (["/shop", "/a/shop"], ["/shop", "a/shop"]),
        (["/"], ["/"]),
    ],
)
def test_workspaces_are_called_so_that_names_tell_them_apart(paths, names):
    assert list(names_of([Path(path) for path in paths]).values()) == names
