"""Finished work that was archived: what was verified stays so, and nothing of it is called a lie."""

import asyncio
import os
import time
from collections.abc import AsyncIterator, Callable
from functools import partial
from pathlib import Path

from agentwatch.config import Settings
from agentwatch.delegation.events import Claim, Verdict
from agentwatch.evidence.checker import Checker
from agentwatch.monitor import Monitor
from agentwatch.sources.files.source import FilesSource
from tests.goldens.verdicts.claude import returned
from tests.unit.evidence.repository import AFTER, Repository, only, packet, request

V, C, U = Verdict.VERIFIED, Verdict.CONTRADICTED, Verdict.UNVERIFIABLE
CLAIMED = "specs/7_api/notes/x.md"


def work(repository: Repository):
    repository.write(CLAIMED, "a line\n" * 20, at=AFTER)
    text = returned(created=[CLAIMED], deliverables=[CLAIMED]).replace("state: ", "task_id: api\nstate: ", 1)
    repository.write("specs/7_api/a.return.md", text, at=AFTER)
    (repository.root / "specs" / "archive").mkdir()
    (repository.root / "docs").mkdir()


def test_a_renamed_directory_is_found_by_how_its_return_moved(plain):
    work(plain)
    (plain.root / "specs" / "7_api").rename(plain.root / "done")
    asked = partial(request, returned(created=[CLAIMED]), name="done/a.return.md")
    checker = Checker(plain.root)
    assert only(checker.check([asked()])[0]).verdict is C
    claim = only(checker.check([asked(former=("specs/7_api/a.return.md",))])[0])
    assert (claim.verdict, claim.file) == (V, "done/notes/x.md")
    plain.write("done/out/a.return.md", (plain.root / "done/a.return.md").read_text(), at=AFTER)
    deeper = asked(name="done/out/a.return.md", former=("specs/7_api/out/a.return.md",))
    assert only(checker.check([deeper])[0]).file == "done/notes/x.md"


def monitored(root: Path) -> Monitor:
    return Monitor(root, Settings(), FilesSource(root), clock=time.time, inspects=True, remembers=True)


async def until(updates: AsyncIterator[object], holds: Callable[[], bool]):
    async with asyncio.timeout(20):
        async for _ in updates:
            if holds():
                return


def claims(monitor: Monitor) -> list[Claim]:
    task = monitor.tree.tasks.get("api")
    return [claim for claim in task.claims if claim.kind != "criterion"] if task is not None else []


async def test_archiving_while_it_is_watched_accuses_nobody(plain):
    work(plain)
    # The same name everywhere, so that the task stays the same when its directory moves.
    (plain.root / "specs/7_api/a.handoff.json").write_text(packet(task_id="api"))
    now = time.time()
    for path, at in ((CLAIMED, now + 1), ("specs/7_api/a.return.md", now + 2)):
        os.utime(plain.root / path, (at, at))
    monitor = monitored(plain.root)
    updates = monitor.updates()
    await until(updates, lambda: bool(claims(monitor)))
    assert [one.verdict for one in claims(monitor)] == [V, V], claims(monitor)
    (plain.root / "specs" / "7_api").rename(plain.root / "done")
    await until(updates, lambda: any(claim.file == "done/notes/x.md" for claim in claims(monitor)))
    assert [one.verdict for one in claims(monitor)] == [V, V], claims(monitor)
    await updates.aclose()  # type: ignore[attr-defined]


async def test_work_that_was_cleared_away_is_no_lie_at_the_next_start(plain):
    work(plain)
    for at in ("before", "after"):
        monitor = monitored(plain.root)
        updates = monitor.updates()
        await until(updates, lambda: bool(claims(monitor)))  # noqa: B023
        await updates.aclose()  # type: ignore[attr-defined]
        if at == "before":
            (plain.root / "specs").rename(plain.root.parent / "attic")
    task = monitor.tree.tasks["api"]
    assert (task.deleted, task.contradicted, {claim.verdict for claim in task.claims}) == (True, False, {U})
