"""Events outlive their files and the program, and every command draws the same line between history and now."""

import asyncio
import json
import re
import shutil
import time
from collections.abc import Callable
from contextlib import aclosing
from functools import partial
from pathlib import Path

import pytest

from agentwatch.cli import run
from agentwatch.composition import build_desk, build_monitor
from agentwatch.config import Settings
from agentwatch.monitor import Monitor
from agentwatch.sources.files.source import FilesSource
from agentwatch.state import read_first_watch, state_directory
from tests.homes import DAY, live_in, write_aged
from tests.unit.claude_code.building import report
from tests.unit.history.recorded import META, meta, packet
from tests.unit.test_workspaces import NO_PROGRAMS, watching
from tests.unit.test_worktrees import git


@pytest.fixture
def workspace(tmp_path, monkeypatch):
    """Return a workspace of a user without agent programs; a task failed there ten days ago, and another just now."""
    live_in(tmp_path, monkeypatch)
    place = tmp_path / "shop"
    place.mkdir()
    write_aged(place / "old.return.md", report("ERROR"), days=10)
    write_aged(place / "new.return.md", report("ERROR", "It failed again."), days=0)
    return place


Run = Callable[..., tuple[int, str]]


@pytest.fixture
def told(capsys) -> Run:
    """Return a function that runs a command, and returns its exit code and its output."""
    return lambda *words: (run([*map(str, words)]), capsys.readouterr().out)


def asking(told: Run, workspace: Path) -> set[str]:
    return {task["task_id"] for task in json.loads(told("pending", "--json", workspace)[1])["tasks"]}


async def watch(workspace: Path, settings: Settings = NO_PROGRAMS):
    """Watch until the first look is complete."""
    monitor = build_monitor(workspace, settings)
    async with watching(monitor) as until:
        await until(lambda: monitor.health.mode == "live")


def test_all_commands_leave_the_same_out_of_what_needs_you(workspace, told):
    assert asking(told, workspace) == {"new"}
    assert "1 open question from before 20" in told("pending", workspace)[1]
    lines = told("tree", workspace)[1].splitlines()
    assert ["NEEDS YOU" in line for line in lines[:-1]] == ["new" in line for line in lines[:-1]]
    tree = json.loads(told("tree", "--json", workspace)[1])
    tasks, summary = {task["task_id"]: (task["past"], bool(task["ask"])) for task in tree["tasks"]}, tree["summary"]
    assert tasks == {"old": (True, False), "new": (False, True)}
    assert [summary[key] for key in ("past", "needs_operator", "tasks")] == [1, 1, 2]
    assert summary["now"]["tasks"] == 1
    account = json.loads(told("report", "--format", "json", workspace)[1])
    assert [one["task_id"] for one in account["attention"]] == ["new"]
    assert account["verdict"] == lines[-1]
    assert re.match(r"2 tasks: 1 failed, and 1 of history\..*is history\. 1 needs a human\.", lines[-1])
    assert (account["summary"]["tasks"], account["summary"]["past"]) == (1, 1)
    (workspace / "new.return.md").unlink()
    assert told("tree", "--fail", workspace)[0] == 0
    assert told("pending", workspace)[1].startswith("nothing needs you\n1 open question")


async def test_only_a_screen_that_may_write_notes_its_first_watch(workspace, told):
    state = state_directory(workspace)
    told("pending", workspace)
    assert not state.exists()
    await watch(workspace, NO_PROGRAMS._replace(read_only=True))
    assert read_first_watch(state) is None
    began = time.time()
    await watch(workspace)
    noted = read_first_watch(state)
    assert noted is not None
    assert began <= noted <= time.time()
    (state / "history.db").unlink()
    await watch(workspace)
    assert read_first_watch(state) == noted


async def test_errors_json_takes_no_failures_of_history(workspace):
    for name, days in (("old", 10), ("new", 1)):
        write_aged(workspace / f"{name}.return.md", report("DONE", name), days=days)
    for _ in range(2):
        await watch(workspace)
    told = json.loads((workspace / ".agentwatch" / "errors.json").read_text())["errors"]
    assert [one["task_id"] for one in told] == ["new"]


@pytest.fixture
def clone(workspace, monkeypatch):
    """Return a fresh clone in which two returns with equal texts are ten days old; the branch `empty` lacks them."""
    for name in ("GIT_AUTHOR_DATE", "GIT_COMMITTER_DATE"):
        monkeypatch.setenv(name, f"{int(time.time() - 10 * DAY)} +0000")
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


def test_the_files_of_a_fresh_clone_are_as_old_as_git_says(clone, told):
    assert asking(told, clone) == set()
    tasks = json.loads(told("tree", "--json", clone)[1])["tasks"]
    assert {task["task_id"] for task in tasks if task["past"]} == {"old", "one/work", "two/work"}
    shutil.copytree(clone, clone.parent / "copy", copy_function=shutil.copyfile)
    assert asking(told, clone.parent / "copy") == set()


def test_a_copy_is_as_old_as_its_returns_say(workspace, told):
    place = workspace.parent / "copied"
    for name, days, says_when in (("1", 400, True), ("2", 400, False), ("3", 1, True)):
        then = time.time() - days * DAY
        ended = {"completed_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(then))} if says_when else {}
        about = {"session_id": f"sess_{int(then)}_1e1fb7", "agent_type": "coder", "delegation_path": ["lead", "coder"]}
        failed = {"status": "failed", "artifacts": [], "summary": "x", "metadata": about} | ended
        (place / "specs" / name).mkdir(parents=True)
        (place / "specs" / name / ".return-meta.json").write_text(json.dumps(failed))
    # The time in the id of a session does not count.
    assert {task_id.split("/")[1] for task_id in asking(told, place)} == {"2", "3"}


CODER = "specs/7_api/coder"
Step = tuple[Callable[[], object], Callable[[Monitor], object]]
"""An act, and a condition that holds once the monitor has seen it."""


@pytest.fixture
def work(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    (tmp_path / "work").mkdir()
    return tmp_path / "work"


async def live_through(work: Path, *steps: Step) -> Monitor:
    """Run a monitor through these steps, and end it as a user would."""
    monitor = Monitor(work, Settings(), FilesSource(work), time.time, inspects=False, remembers=True)
    async with watching(monitor) as until:
        await until(lambda: monitor.health.mode == "live")
        for act, is_seen in steps:
            # A file that is written twice within a tick of the clock looks unchanged.
            await asyncio.sleep(0.05)
            act()
            await until(lambda: is_seen(monitor))  # noqa: B023
    return monitor


def attempts(monitor: Monitor, task_id: str) -> list[tuple[int, str]]:
    task = monitor.tree.tasks.get(task_id)
    return [(one.number, str(one.state)) for one in task.attempts] if task else []


async def test_every_attempt_is_there_after_all_files_are_deleted(work):
    file = work / META
    file.parent.mkdir(parents=True)
    ends = {"sess_1": "partial", "sess_2": "partial", "sess_3": "implemented"}
    texts = [meta(status, session) for session, end in ends.items() for status in ("in_progress", end)]

    def write(text):
        file.with_name("next.tmp").write_text(text)
        file.with_name("next.tmp").rename(file)

    def returned(monitor):
        task = monitor.tree.tasks.get(CODER)
        return [monitor.content(one.returned) for one in task.attempts if one.returned] if task else []

    writing = [(lambda text=text: write(text), lambda it, text=text: text in returned(it)) for text in texts]
    monitor = await live_through(work, *writing)
    lived = attempts(monitor, CODER)
    assert [one.session_id for one in monitor.tree.tasks[CODER].attempts] == [*ends]
    shutil.rmtree(work / "specs")
    for _ in range(2):
        again = await live_through(work, (lambda: None, lambda it: it.tree.tasks[CODER].deleted))
        assert attempts(again, CODER) == lived
        assert returned(again) == texts[1::2]


@pytest.mark.parametrize("deletes", [False, True])
@pytest.mark.parametrize("while_watching", [False, True])
async def test_a_second_failure_in_the_same_words_asks_again(work, *, deletes, while_watching):
    handed, failed, words = work / "b.handoff.json", work / "b.return.md", "## Status\nstate: ERROR\n"
    (work / "a.handoff.json").write_text(packet("a"))
    (work / "a.return.md").write_text(words)
    handed.write_text(packet("b"))
    once, twice = [(1, "invalid")], [(1, "invalid"), (2, "invalid")]
    fail = lambda: failed.write_text(words), lambda it: attempts(it, "b") == twice
    await live_through(
        work,
        (fail[0], lambda it: attempts(it, "b") == once),
        (lambda: failed.unlink() if deletes else None, lambda it: attempts(it, "b") == once),
        (lambda: handed.write_text(packet("b", attempt=2)), lambda it: attempts(it, "b")[1:] == [(2, "submitted")]),
        *([fail] if while_watching else []),
    )
    if not while_watching:
        await asyncio.sleep(0.05)
        fail[0]()
    for _ in range(2):
        again = await live_through(work, (lambda: None, fail[1]))
        assert again.tree.tasks["b"].needs_operator


async def test_a_decided_task_never_asks_at_a_start(work, monkeypatch):
    monkeypatch.setenv("HOME", str(work.parent))
    (work / "a.handoff.json").write_text(packet("a"))
    (work / "a.return.md").write_text("## Status\nstate: ERROR\n")
    await live_through(work, (lambda: None, lambda it: attempts(it, "a") == [(1, "invalid")]))
    assert await asyncio.to_thread(run, ["decide", "a", str(work), "--abort", "--yes"]) == 0
    monitor = build_monitor(work, Settings(), open_desk=partial(build_desk, work, Settings()))
    seen = set[str]()
    async with asyncio.timeout(15), aclosing(monitor.updates()) as updates:
        async for _ in updates:
            seen |= {task.state for task in monitor.tree.tasks.values()}
            if monitor.health.mode == "live" and monitor.decision_watcher is not None and "canceled" in seen:
                break
    assert seen == {"canceled"}
