"""`--since` holds for files: every command leaves out what is older, and says how much that is."""

from __future__ import annotations

import asyncio
import json
import time
from contextlib import aclosing
from pathlib import Path

import pytest

from agentwatch.cli import run
from agentwatch.composition import monitor_of
from agentwatch.sources.sessions.selection import Selection
from tests.homes import write_aged
from tests.unit.sessions.conformance import report
from tests.unit.test_past import NO_PROGRAMS, asked, watch, workspace

__all__ = ["workspace"]


def test_the_tree_leaves_out_what_is_older_and_counts_it(workspace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, text = asked(capsys, "tree", "--since", "12h", str(workspace))
    assert "old" not in text.replace("1 older task is not shown", "")
    assert "1 task: 1 failed; 1 need you; 1 older task is not shown" in text
    told = json.loads(asked(capsys, "tree", "--json", "--since", "12h", str(workspace))[1])
    assert [task["task_id"] for task in told["tasks"]] == ["new"]
    assert (told["summary"]["tasks"], told["summary"]["older"]) == (1, 1)
    assert "1 task, and 1 of history" in asked(capsys, "tree", "--since", "30d", str(workspace))[1]


def test_a_tree_in_which_nothing_is_left_says_how_much_is_older(
    workspace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (workspace / "new.return.md").unlink()
    _, text = asked(capsys, "tree", "--since", "12h", str(workspace))
    assert "1 task is older" in text


def test_what_is_pending_is_of_that_time(workspace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_aged(workspace / "yesterday.return.md", report("ERROR", "A third."), days=1)
    _, text = asked(capsys, "pending", "--since", "12h", str(workspace))
    assert "✗ new" in text
    assert "yesterday" not in text
    assert "2 older tasks are not shown" in text
    assert json.loads(asked(capsys, "pending", "--json", "--since", "12h", str(workspace))[1])["older"] == 2


def test_the_report_is_of_that_time(workspace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asyncio.run(watch(workspace))
    _, text = asked(capsys, "report", "--since", "12h", str(workspace))
    assert "1 task, none done. 1 failed. 1 older task is not shown. **1 needs a human.**" in text
    told = json.loads(asked(capsys, "report", "--since", "12h", "--format", "json", str(workspace))[1])
    assert [task["task_id"] for task in told["tasks"]] == ["new"]
    assert {change["task_id"] for change in told["changes"]} == {"new"}


async def seen(workspace: Path, since: float) -> list[str]:
    """What the screen's monitor has after its first look, and after a file of an older task has come back."""
    monitor = monitor_of(workspace, NO_PROGRAMS, Selection(since), inspects=False, remembers=True)
    sights: list[str] = []
    async with asyncio.timeout(15), aclosing(monitor.updates()) as updates:
        async for _ in updates:
            if monitor.health.mode == "starting":
                continue
            if not sights and not monitor.tree.left_out:
                continue
            sights.append(" ".join(sorted(monitor.tree.tasks)))
            if len(sights) == 1:
                assert monitor.notices == ["1 older task is not shown, as --since asks."]
                write_aged(workspace / "old.return.md", report("ERROR", "Once more."), days=0)
            if "old" in monitor.tree.tasks:
                break
    return sights


def test_the_screen_leaves_out_what_is_older_until_it_shows_a_sign_of_life(workspace: Path) -> None:
    sights = asyncio.run(seen(workspace, time.time() - 43_200))
    assert sights[0] == "new"
    assert sights[-1] == "new old"


def test_the_log_is_of_that_time(workspace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asyncio.run(watch(workspace))
    _, whole = asked(capsys, "log", str(workspace))
    assert " new " in whole
    assert " old " in whole
    run(["log", "--since", "12h", str(workspace)])
    told = capsys.readouterr()
    assert " new " in told.out
    assert " old " not in told.out
    assert told.err == "1 older task is not shown\n"
