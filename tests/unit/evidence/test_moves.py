"""Finished work that was archived: what was verified stays so, and nothing of it is called a lie."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from pathlib import Path

from agentwatch.config import Settings
from agentwatch.delegation.events import Verdict
from agentwatch.evidence.checker import Checker
from agentwatch.monitor import Monitor
from agentwatch.sources.files.source import FilesSource
from tests.goldens.verdicts.claude import returned
from tests.unit.evidence.repository import AFTER, Repository, only, request

V, C, U = Verdict.VERIFIED, Verdict.CONTRADICTED, Verdict.UNVERIFIABLE
CLAIMED = "specs/7_api/notes/x.md"


def work(repository: Repository) -> None:
    repository.write(CLAIMED, "a line\n" * 20, at=AFTER)
    repository.write("specs/7_api/a.return.md", returned(created=[CLAIMED]), at=AFTER)
    (repository.root / "specs" / "archive").mkdir()
    (repository.root / "docs").mkdir()


def test_a_directory_with_another_name_is_found_where_it_is_known_how_its_return_moved(plain: Repository) -> None:
    work(plain)
    (plain.root / "specs" / "7_api").rename(plain.root / "done")
    asked = request(returned(created=[CLAIMED]), name="done/a.return.md")
    checker = Checker(plain.root)
    assert only(checker.check([asked])[0]).verdict is C
    claim = only(checker.check([asked._replace(former=("specs/7_api/a.return.md",))])[0])
    assert (claim.verdict, claim.file) == (V, "done/notes/x.md")


async def test_archiving_while_it_is_watched_accuses_nobody(tmp_path: Path) -> None:
    made = Repository(tmp_path / "workspace", tmp_path / "home")
    work(made)
    text = returned(created=[CLAIMED], deliverables=[CLAIMED]).replace("state: ", "task_id: api\nstate: ", 1)
    # The same name everywhere, so that the task stays the same when its directory moves.
    (made.root / "specs/7_api/a.handoff.json").write_text(
        '{"task_id": "api", "objective": "o", "evidence": [], "success_criteria": ["c"], "risks": []}'
    )
    now = time.time()
    os.utime(made.root / CLAIMED, (now + 1, now + 1))
    (made.root / "specs/7_api/a.return.md").write_text(text)
    os.utime(made.root / "specs/7_api/a.return.md", (now + 2, now + 2))
    monitor = Monitor(made.root, Settings(), FilesSource(made.root), clock=time.time, inspects=True, remembers=True)
    updates = monitor.updates()

    async def until(holds: Callable[[], bool]) -> None:
        async with asyncio.timeout(20):
            async for _ in updates:
                if holds():
                    return

    def verdicts() -> list[Verdict]:
        task = monitor.tree.tasks.get("api")
        return [claim.verdict for claim in task.claims if claim.kind != "criterion"] if task is not None else []

    await until(lambda: bool(verdicts()))
    assert verdicts() == [V, V], monitor.tree.tasks["api"].claims
    (made.root / "specs" / "7_api").rename(made.root / "done")
    await until(lambda: any(claim.file == "done/notes/x.md" for claim in monitor.tree.tasks["api"].claims))
    assert verdicts() == [V, V], monitor.tree.tasks["api"].claims
    await updates.aclose()  # type: ignore[attr-defined]


async def test_work_that_was_cleared_away_is_no_lie_at_the_next_start(tmp_path: Path) -> None:
    made = Repository(tmp_path / "workspace", tmp_path / "home")
    work(made)
    text = returned(created=[CLAIMED], deliverables=[CLAIMED]).replace("state: ", "task_id: api\nstate: ", 1)
    (made.root / "specs/7_api/a.return.md").write_text(text)

    async def start(until: Callable[[Monitor], bool]) -> Monitor:
        monitor = Monitor(made.root, Settings(), FilesSource(made.root), time.time, inspects=True, remembers=True)
        updates = monitor.updates()
        async with asyncio.timeout(20):
            async for _ in updates:
                if until(monitor):
                    break
        await updates.aclose()  # type: ignore[attr-defined]
        return monitor

    await start(lambda monitor: "api" in monitor.tree.tasks and bool(monitor.tree.tasks["api"].claims))
    (made.root / "specs").rename(tmp_path / "attic")
    again = await start(lambda monitor: "api" in monitor.tree.tasks and bool(monitor.tree.tasks["api"].claims))
    task = again.tree.tasks["api"]
    assert (task.deleted, task.contradicted, {claim.verdict for claim in task.claims}) == (True, False, {U}), (
        task.claims
    )
