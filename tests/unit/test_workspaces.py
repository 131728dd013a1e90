"""Several workspaces watched as one: each with a tree, a ledger and agents of its own."""

import asyncio
import json
import os
import shutil
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from agentwatch.composition import build_workspaces
from agentwatch.config import Settings
from agentwatch.monitor import Monitor
from agentwatch.sources.sessions.registry import find_live_directories, find_workspaces
from agentwatch.sources.sessions.store import contains, slug
from agentwatch.state import is_shown, state_directory
from agentwatch.workspaces import WorkspaceFinder, Workspaces, name_workspaces
from tests.homes import live_in
from tests.journeys.made import handoff, returned
from tests.unit.sessions.store import Store, begin_session, open_database

NO_PROGRAMS = Settings(sessions=False)


@pytest.fixture
def home(tmp_path, monkeypatch):
    """Return the home of a user who has no agent programs."""
    place = tmp_path / "home"
    place.mkdir()
    live_in(place, monkeypatch)
    return place


def workspace(home: Path, name: str) -> Path:
    """Return a workspace with a task that failed."""
    place = home / name
    place.mkdir()
    (place / "api.handoff.json").write_text(handoff("shop.api"))
    (place / "api.return.md").write_text(returned("ERROR", "shop.api"))
    return place


@asynccontextmanager
async def watching(monitor: Workspaces | Monitor) -> AsyncIterator[Callable[[Callable[[], object]], object]]:
    """Run the monitor; the function given waits for a condition."""

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
    """Return the keys of all tasks, by the name of their workspace and their own id."""
    tasks = monitor.tree.tasks.values()
    return {
        (monitor.resolve_task(one.task_id)[0].workspace.name, one.own_id): one.task_id
        for one in tasks
        if not one.workspace
    }


async def test_each_workspace_is_shown_to_its_hooks_while_watched(home):
    one, two = workspace(home, "one"), workspace(home, "two")
    monitor = build_workspaces([one, two], NO_PROGRAMS)
    async with watching(monitor) as until:
        await until(lambda: is_shown(state_directory(one)) and is_shown(state_directory(two)))
    assert not is_shown(state_directory(one))
    assert not is_shown(state_directory(two))


async def test_a_problem_names_its_workspace(home):
    one, two = workspace(home, "one"), workspace(home, "two")
    (two / "bad.handoff.json").write_text("{}")
    (two / "locked.return.md").symlink_to(home / "elsewhere")
    monitor = build_workspaces([one, two], NO_PROGRAMS)
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
def test_names_of_workspaces_tell_them_apart(paths, names):
    assert list(name_workspaces([Path(path) for path in paths]).values()) == names


def session(home: Path, cwd: Path, session_id: str):
    project = home / ".claude" / "projects" / slug(str(cwd))
    for place in (project, cwd):
        place.mkdir(parents=True, exist_ok=True)
    common = {"sessionId": session_id, "cwd": str(cwd), "version": "2.1.0", "timestamp": "2026-03-01T12:00:00.000Z"}
    asked = {"type": "user", "uuid": "1", "message": {"role": "user", "content": "Do it."}, **common}
    (project / f"{session_id}.jsonl").write_text(json.dumps(asked) + "\n")


PLACES = {
    "claude-code": ".claude",
    "codex": ".codex",
    "copilot": ".copilot",
    "gemini": ".gemini",
    "qwen-code": ".qwen",
    "roo": ".config/Code/User/globalStorage/roo.roo",
}
"""For each program the place of its store."""


@pytest.mark.parametrize("program", PLACES)
def test_stores_say_where_sessions_are_alive(home, tmp_path, program):
    store = Store(program, tmp_path)
    store.finish()
    shutil.copytree(store.place, home / PLACES[program])
    for path in home.rglob("*"):
        os.utime(path)
    for _ in range(2):
        assert [*find_live_directories(time.time() - 60)] == [str(store.workspace)]
    assert find_live_directories(time.time() + 60) == {}
    store.close()


def test_a_damaged_store_hides_no_other_sessions(home, tmp_path):
    work = tmp_path / "work"
    session(home, work, "0b6f3c52-6c1e-4c7e-9f5a-2f4f0a3f7d10")
    for name in (".codex/sessions/2027/rollout-x.jsonl", ".local/share/opencode/opencode.db"):
        (home / name).parent.mkdir(parents=True)
        (home / name).write_bytes(b"\xff\x00no record\n")
    (home / ".claude/projects/-a").mkdir()
    (home / ".claude/projects/-a/x.jsonl").write_text("[]\n{\n")
    task = home / ".config/Code/User/globalStorage/roo.roo/tasks/1"
    task.mkdir(parents=True)
    (task / "history_item.json").write_text("[")
    assert [*find_live_directories(0)] == [str(work)]


def test_a_directory_is_shown_once_at_its_real_place(tmp_path):
    shop, src = tmp_path / "shop", tmp_path / "shop/src"
    src.mkdir(parents=True)
    (tmp_path / "link").symlink_to(shop)
    others = dict.fromkeys([str(src), str(tmp_path / "gone"), "relative", "/nul\0"], 2.0)
    assert find_workspaces({str(shop): 1.0, str(tmp_path / "link"): 3.0, **others}, contains) == {shop: 3.0}


def test_no_whole_home_is_shown_and_of_many_the_latest(home):
    some = [home / f"w{number}" for number in range(41)]
    for at, place in enumerate([home.parent, home, *some]):
        session(home, place, "s")
        os.utime(home / ".claude/projects" / slug(str(place)) / "s.jsonl", (time.time() - 1_000 + at,) * 2)
    find = WorkspaceFinder()
    assert [one.workspace for one in find().places] == some[:0:-1]
    assert find().complaints == [
        *(f"Sessions in {place} are not shown: name a directory below it" for place in (home.parent, home)),
        "1 more workspace with sessions: 40 are shown at once",
    ]
    some[40].rmdir()
    assert [one.workspace for one in find().places] == some[39::-1]


async def test_all_workspaces_are_one_tree_and_new_ones_join_it(home):
    one, two = home / "one", home / "two"
    two.mkdir()
    session(home, one, "0b6f3c52-6c1e-4c7e-9f5a-2f4f0a3f7d10")
    monitor = build_workspaces([], NO_PROGRAMS._replace(sessions=True), everywhere=True)
    monitor.pause = 0.05
    assert monitor.title == "every workspace"
    async with watching(monitor) as until:
        await until(lambda: monitor.tree.totals.tasks == 1)
        assert monitor.title == "one/"
        (home / ".local/share/opencode").mkdir(parents=True)
        database = open_database(home / ".local/share/opencode/opencode.db")
        begin_session(database, "ses_1", two, time.time())
        await until(lambda: monitor.tree.totals.tasks == 2)
        assert monitor.title == "one/ two/"
        assert {monitor.tree.tasks[root].title for root in monitor.tree.roots} == {"one", "two"}
        database.close()
