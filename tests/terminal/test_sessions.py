"""Agents' sessions through the command: stores where the programs keep them, real processes that read them."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.terminal.emulator import Terminal, agentwatch
from tests.unit.claude_code import building
from tests.unit.claude_code.building import meta
from tests.unit.codex.home import Session, iso, thread
from tests.unit.opencode.program import Program
from tests.unit.sessions.store import packet, report

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    (tmp_path / "shop").mkdir()
    return tmp_path / "shop"


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Runs the command with all that an agent program knows of its place set to directories of the test."""
    home = tmp_path / "home"
    home.mkdir()
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith(("XDG_", "OPENCODE", "KILO"))},
        "HOME": str(home),
        "XDG_STATE_HOME": str(tmp_path / "state"),
        "XDG_CONFIG_HOME": str(tmp_path / "config"),
        "XDG_DATA_HOME": str(tmp_path / "share"),
        "CLAUDE_CONFIG_DIR": str(tmp_path / "claude"),
        "CODEX_HOME": str(tmp_path / "codex"),
    }

    def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            agentwatch(*arguments), capture_output=True, text=True, check=True, env=environment, cwd=home
        )

    return run


def tree(run: Run, *arguments: str | Path) -> dict[str, dict[str, Any]]:
    document = json.loads(run("tree", "--json", *arguments).stdout)
    return {task["task_id"]: task for task in document["tasks"]}


def claude(tmp_path: Path, workspace: Path, *, ago: timedelta) -> str:
    """A session with one child that works. Returns its id."""
    store = building.Store(tmp_path, workspace)
    store._time = datetime.now(UTC) - ago
    main = store.session()
    main.asked("Build the shop.")
    main.delegated("call_1", packet("shop.api"))
    child = store.agent("a1", meta("call_1"))
    child.asked(packet("shop.api"))
    child.used("Bash", "call_2", command="make")
    store.save()
    return building.SESSION


def opencode(tmp_path: Path, workspace: Path) -> str:
    """A session of long ago with one child that is done."""
    directory = tmp_path / "share" / "opencode"
    directory.mkdir(parents=True)
    program = Program(directory / "opencode.db", workspace)
    program.now -= 40 * 86_400_000
    main = program.session(title="Build the cart")
    message = program.begin(main)
    child, _ = program.delegate(main, message, packet("cart.page"))
    program.answer(child, report())
    program.finish(main, message)
    program.close()
    return main


def codex(tmp_path: Path, workspace: Path) -> str:
    """A session that is over."""
    session = Session(thread(1), clock=(datetime.now(UTC) - timedelta(minutes=5)).timestamp())
    session.meta(workspace).begin().asked("Dust the shelf.").complete("Done.")
    day = tmp_path / "codex" / "sessions" / "2027" / "01" / "15"
    day.mkdir(parents=True)
    (day / f"rollout-{iso(session.clock)[:19].replace(':', '-')}-{session.id}.jsonl").write_bytes(
        b"".join(session.lines)
    )
    return session.id


def test_tree_and_sources_show_the_sessions_of_every_program(run: Run, tmp_path: Path, workspace: Path) -> None:
    roots = {
        claude(tmp_path, workspace, ago=timedelta(minutes=5)),
        opencode(tmp_path, workspace),
        codex(tmp_path, workspace),
    }
    tasks = tree(run, workspace)
    assert tasks.keys() == {*roots, "shop.api", "cart.page"}
    assert {task["task_id"] for task in tasks.values() if task["parent_id"] is None} == roots
    assert {tasks[name]["parent_basis"] for name in ("shop.api", "cart.page")} == {"session"}
    assert (tasks["shop.api"]["state"], tasks["cart.page"]["state"]) == ("working", "completed")
    printed = run("sources", workspace).stdout
    for source, directory in (("claude-code", "claude"), ("opencode", "share"), ("codex", "codex")):
        assert any(line.startswith(source) and str(tmp_path / directory) in line for line in printed.splitlines())
    listed = json.loads(run("sources", "--json", workspace).stdout)
    assert {one["source"]: (one["sessions"], one["children"]) for one in listed["sources"] if one["sessions"]} == {
        "claude-code": (1, 1),
        "opencode": (1, 1),
        "codex": (1, 0),
    }
    assert listed["trouble"] == []


def log(run: Run, *arguments: str | Path) -> list[tuple[str, str | None, str | None]]:
    changes = [json.loads(line) for line in run("log", "--json", *arguments).stdout.splitlines()]
    assert [change["at"] for change in changes] == sorted(change["at"] for change in changes)
    return [(change["task_id"], change["before"], change["after"]) for change in changes]


def test_sessions_are_exported_and_replayed_anywhere(run: Run, tmp_path: Path, workspace: Path) -> None:
    opencode(tmp_path, workspace)
    file = tmp_path / "session.jsonl"
    assert run("log", "--export", file, workspace).stdout.startswith("2 observations in ")
    with Terminal(agentwatch("replay", file, "--speed", "8"), columns=120) as terminal:
        terminal.wait_for(r"^ REPLAY .*at the end.* 4 of 4")
        terminal.wait_for(r"✓ cart\.page")
        terminal.press(",,")
        terminal.wait_for(r"◐ cart\.page")
        terminal.press("]")
        terminal.wait_for(r"✓ cart\.page")
        terminal.press("j3")
        terminal.wait_for(r"Do cart\.page")
        terminal.press("q")
        assert terminal.wait_until_exit() == 0


def test_a_killed_session_is_stale_and_why_says_that_its_process_is_gone(
    run: Run, tmp_path: Path, workspace: Path
) -> None:
    session = claude(tmp_path, workspace, ago=timedelta(seconds=40))
    child = subprocess.Popen(["true"])
    child.wait()
    running = tmp_path / "claude" / "sessions"
    running.mkdir()
    (running / f"{child.pid}.json").write_text(json.dumps({"pid": child.pid, "sessionId": session}), "utf-8")
    written = (datetime.now(UTC) - timedelta(seconds=40)).timestamp()
    for path in (tmp_path / "claude" / "projects").rglob("*.jsonl"):
        os.utime(path, (written, written))
    task = tree(run, workspace)["shop.api"]
    assert (task["state"], task["stale"]) == ("working", True)
    assert re.fullmatch(r"it worked when it was last heard of; its process is gone; silent for \d+s", task["why"])
