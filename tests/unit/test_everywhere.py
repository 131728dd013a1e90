"""Every workspace in which a session was alive of late, out of the stores of all programs."""

import json
import os
import shutil
import time
from pathlib import Path

import pytest

from agentwatch.composition import watched
from agentwatch.sources.sessions.registry import sessions_alive, workspaces_in
from agentwatch.sources.sessions.store import holds, slug
from agentwatch.workspaces import Everywhere
from tests.homes import live_in
from tests.unit.sessions.store import Store, begin_session, open_database
from tests.unit.test_monitors import NO_PROGRAMS, watching


def session(home: Path, cwd: Path, session_id: str):
    project = home / ".claude" / "projects" / slug(str(cwd))
    project.mkdir(parents=True)
    common = {"sessionId": session_id, "cwd": str(cwd), "version": "2.1.0", "timestamp": "2026-03-01T12:00:00.000Z"}
    asked = {"type": "user", "uuid": "1", "message": {"role": "user", "content": "Do it."}, **common}
    (project / f"{session_id}.jsonl").write_text(json.dumps(asked) + "\n")


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A user without any program."""
    place = tmp_path / "home"
    place.mkdir()
    live_in(place, monkeypatch)
    return place


PLACES = {
    "claude-code": ".claude",
    "codex": ".codex",
    "copilot": ".copilot",
    "gemini": ".gemini",
    "qwen-code": ".qwen",
    "roo": ".config/Code/User/globalStorage/roo.roo",
}
"""Where each program has its store."""


@pytest.mark.parametrize("program", PLACES)
def test_stores_say_where_sessions_are_alive(home, tmp_path, program):
    store = Store(program, tmp_path)
    store.finish()
    shutil.copytree(store.place, home / PLACES[program])
    for path in home.rglob("*"):
        os.utime(path)
    for _ in range(2):
        assert [*sessions_alive(time.time() - 60)] == [str(store.workspace)]
    assert sessions_alive(time.time() + 60) == {}
    store.close()


def test_what_is_damaged_hides_nothing(home, tmp_path):
    work = tmp_path / "work"
    work.mkdir()
    session(home, work, "0b6f3c52-6c1e-4c7e-9f5a-2f4f0a3f7d10")
    for name in (".codex/sessions/2027/rollout-x.jsonl", ".local/share/opencode/opencode.db"):
        (home / name).parent.mkdir(parents=True)
        (home / name).write_bytes(b"\xff\x00no record\n")
    (home / ".claude/projects/-a").mkdir()
    (home / ".claude/projects/-a/x.jsonl").write_text("[]\n{\n")
    task = home / ".config/Code/User/globalStorage/roo.roo/tasks/1"
    task.mkdir(parents=True)
    (task / "history_item.json").write_text("[")
    assert [*sessions_alive(0)] == [str(work)]


def test_a_directory_is_shown_once_and_where_it_is(tmp_path):
    shop, src = tmp_path / "shop", tmp_path / "shop/src"
    src.mkdir(parents=True)
    (tmp_path / "link").symlink_to(shop)
    alive = {
        str(shop): 1.0,
        str(tmp_path / "link"): 3.0,
        str(src): 2.0,
        str(tmp_path / "gone"): 2.0,
        "relative": 2.0,
        "/nul\0": 2.0,
    }
    assert workspaces_in(alive, holds) == {shop: 3.0}


def test_nobody_works_in_a_whole_home_and_of_many_the_latest_are_shown(home):
    some = [home / f"w{number}" for number in range(41)]
    for at, place in enumerate([home.parent, home, *some]):
        place.mkdir(exist_ok=True)
        session(home, place, "s")
        os.utime(home / ".claude/projects" / slug(str(place)) / "s.jsonl", (time.time() - 1_000 + at,) * 2)
    find = Everywhere()
    assert [one.workspace for one in find().places] == some[:0:-1]
    assert find().complaints == [
        *(f"Sessions in {place} are not shown: name a directory below it" for place in (home.parent, home)),
        "1 more workspace with sessions: 40 are shown at once",
    ]
    some[40].rmdir()
    assert [one.workspace for one in find().places] == some[39::-1]


async def test_all_of_them_are_one_tree_and_new_ones_come(home, monkeypatch):
    monkeypatch.setattr("agentwatch.workspaces._EVERYWHERE_SECONDS", 0.05)
    one, two = home / "one", home / "two"
    one.mkdir()
    two.mkdir()
    session(home, one, "0b6f3c52-6c1e-4c7e-9f5a-2f4f0a3f7d10")
    monitor = watched([], NO_PROGRAMS._replace(sessions=True), everywhere=True)
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
