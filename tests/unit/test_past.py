"""History in a real workspace: every command draws the same line."""

import asyncio
import json
import os
import shutil
import subprocess
import time
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from agentwatch.cli import run
from agentwatch.composition import monitor_of
from agentwatch.config import Settings
from agentwatch.state import first_watched, state_directory
from tests.homes import DAY, live_in, write_aged
from tests.unit.claude_code.building import report

NO_PROGRAMS = Settings(sessions=False)
OLD = {"old", "one/work", "two/work"}


@pytest.fixture
def workspace(tmp_path, monkeypatch):
    """A workspace of a user who has no programs, in which a task failed ten days ago and another one just now."""
    live_in(tmp_path, monkeypatch)
    place = tmp_path / "shop"
    place.mkdir()
    write_aged(place / "old.return.md", report("ERROR"), days=10)
    write_aged(place / "new.return.md", report("ERROR", "It failed again."), days=0)
    return place


def asked(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str]:
    code = run(words)
    return code, capsys.readouterr().out


def asking(capsys: pytest.CaptureFixture[str], workspace: Path, *words: str) -> set[str]:
    told = json.loads(asked(capsys, "pending", "--json", *words, str(workspace))[1])
    return {task["task_id"] for task in told["tasks"]}


async def watch(workspace: Path, settings: Settings = NO_PROGRAMS):
    """Watch until all is known."""
    monitor = monitor_of(workspace, settings)
    async with asyncio.timeout(15), aclosing(monitor.updates()) as updates:
        async for _ in updates:
            if monitor.health.mode == "live":
                return


def test_all_commands_leave_the_same_out_of_what_needs_you(workspace, capsys):
    place = str(workspace)
    assert asking(capsys, workspace) == {"new"}
    assert "1 open question from before 20" in asked(capsys, "pending", place)[1]
    lines = asked(capsys, "tree", place)[1].splitlines()
    assert ["NEEDS YOU" in line for line in lines[:-1]] == ["new" in line for line in lines[:-1]]
    told: dict[str, Any] = json.loads(asked(capsys, "tree", "--json", place)[1])
    assert {task["task_id"]: (task["past"], bool(task["ask"])) for task in told["tasks"]} == {
        "old": (True, False),
        "new": (False, True),
    }
    assert (told["summary"]["past"], told["summary"]["needs_operator"]) == (1, 1)
    assert (told["summary"]["tasks"], told["summary"]["now"]["tasks"]) == (2, 1)
    account = json.loads(asked(capsys, "report", "--format", "json", place)[1])
    assert [one["task_id"] for one in account["attention"]] == ["new"]
    assert account["verdict"] == lines[-1]
    assert "is history. 1 needs a human." in account["verdict"]
    assert account["verdict"].startswith("2 tasks: 1 failed, and 1 of history.")
    assert (account["summary"]["tasks"], account["summary"]["past"]) == (1, 1)
    (workspace / "new.return.md").unlink()
    assert asked(capsys, "tree", "--fail", place)[0] == 0
    assert asked(capsys, "pending", place)[1].startswith("nothing needs you\n1 open question")


async def test_only_a_screen_that_may_write_notes_its_first_watch(workspace, capsys):
    state = state_directory(workspace)
    asked(capsys, "pending", str(workspace))
    assert not state.exists()
    await watch(workspace, NO_PROGRAMS._replace(read_only=True))
    assert first_watched(state) is None
    began = time.time()
    await watch(workspace)
    noted = first_watched(state)
    assert noted is not None
    assert began <= noted <= time.time()
    (state / "history.db").unlink()
    await watch(workspace)
    assert first_watched(state) == noted


async def test_errors_json_takes_no_failures_of_history(workspace):
    for name, days in (("old", 10), ("new", 1)):
        write_aged(workspace / f"{name}.return.md", report("DONE", name), days=days)
    for _ in range(2):
        await watch(workspace)
    told = json.loads((workspace / ".agentwatch" / "errors.json").read_text())["errors"]
    assert [one["task_id"] for one in told] == ["new"]


def git(place: Path, *words: str):
    then = f"{int(time.time() - 10 * DAY)} +0000"
    dated = {"GIT_AUTHOR_DATE": then, "GIT_COMMITTER_DATE": then}
    who = ("-c", "user.name=kim", "-c", "user.email=kim@example.org")
    subprocess.run(["git", "-C", place, *who, *words], check=True, capture_output=True, env=os.environ | dated)


@pytest.fixture
def clone(workspace):
    """A fresh clone, in which two returns in the same words were committed ten days ago; a branch is without them."""
    for name in ("one", "two"):
        (workspace / name).mkdir()
        write_aged(workspace / name / "work.return.md", report("ERROR"), days=0)
    git(workspace, "init", "-q", "-b", "main")
    git(workspace, "commit", "-q", "--allow-empty", "-m", "Nothing yet")
    git(workspace, "branch", "empty")
    git(workspace, "add", "one", "two", "old.return.md")
    git(workspace, "commit", "-qm", "Old work")
    place = workspace.parent / "clone"
    git(workspace, "clone", "-q", ".", str(place))
    git(place, "branch", "empty", "origin/empty")
    assert time.time() - (place / "old.return.md").stat().st_mtime < 60
    return place


def test_the_files_of_a_fresh_clone_are_as_old_as_git_says(clone, capsys):
    assert asking(capsys, clone) == set()
    told = json.loads(asked(capsys, "tree", "--json", str(clone))[1])["tasks"]
    assert {task["task_id"] for task in told if task["past"]} == OLD
    shutil.copytree(clone, clone.parent / "copy", copy_function=shutil.copyfile)
    assert asking(capsys, clone.parent / "copy") == set()


def test_a_copy_is_as_old_as_its_returns_say(workspace, capsys):
    place = workspace.parent / "copied"
    for name, days, says_when in (("1", 400, True), ("2", 400, False), ("3", 1, True)):
        then = time.time() - days * DAY
        ended = {"completed_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(then))} if says_when else {}
        about = {"session_id": f"sess_{int(then)}_1e1fb7", "agent_type": "coder", "delegation_path": ["lead", "coder"]}
        told = {"status": "failed", "artifacts": [], "summary": "x", "metadata": about} | ended
        (place / "specs" / name).mkdir(parents=True)
        (place / "specs" / name / ".return-meta.json").write_text(json.dumps(told))
    # The id of a session says nothing of that.
    assert {task_id.split("/")[1] for task_id in asking(capsys, place)} == {"2", "3"}
