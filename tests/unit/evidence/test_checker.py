"""Claims about files: which words are paths, what real repositories tell of them, also if they moved, and shown."""

import asyncio
import json
import os
import time
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentwatch.config import Settings
from agentwatch.delegation.events import Verdict
from agentwatch.evidence.checker import Checker
from agentwatch.evidence.claims import MAX_CLAIMS, claims_of
from agentwatch.evidence.git import MAX_SHOWN, difference, file_text
from agentwatch.monitor import Monitor
from agentwatch.sources.files.source import FilesSource
from tests.goldens.verdicts.claude import returned
from tests.unit.evidence.repository import AFTER, BEFORE, HANDED_OFF, Repository, check, only, packet, request

V, C, U = Verdict.VERIFIED, Verdict.CONTRADICTED, Verdict.UNVERIFIABLE


@pytest.mark.parametrize(
    ("document", "kinds"),
    [
        ({"status": "implemented", "artifacts": ["a.md", {"path": "b.md"}]}, [V, C]),
        ({"status": "in_progress", "artifacts": ["a.md", "b.md"]}, [V, U]),
        ({"status": "implemented", "artifacts": [], "files_modified": ["tracked.md"]}, [C]),
    ],
)
def test_artifacts_of_the_drifted_dialect(repository, document, kinds):
    repository.write("a.md")
    text = json.dumps({**document, "session_id": "s", "agent_type": "a", "delegation_path": ["o", "a"]})
    result = Checker(repository.root).check([request(text, name="x/.return-meta.json")])[0]
    assert [claim.verdict for claim in result.claims] == kinds


def test_a_workspace_below_the_top_of_the_repository(repository):
    repository.write("sub/old.md", at=BEFORE)
    repository.commit(at=BEFORE)
    repository.git("checkout", "-q", "-b", "feat")
    repository.write("sub/x.md", at=AFTER)
    repository.commit(at=AFTER)
    repository.git("checkout", "-q", "-")
    for path in ("sub/new.md", "other.md"):
        repository.write(path, at=AFTER)
    result = check(repository.root / "sub", returned(created=["new.md", "old.md", "x.md"]))
    assert [claim.verdict for claim in result.claims] == [V, C, U]
    # A branch is only searched in the directory of the workspace.
    (repository.root / "other").mkdir()
    assert only(check(repository.root / "other", returned(created=["x.md"]))).verdict is C


def test_too_many_claims_are_cut_with_a_notice(repository):
    many = [f"{number}.md" for number in range(900)]
    claims = check(repository.root, returned(created=many, modified=many)).claims
    assert (len(claims), claims[-1].verdict) == (MAX_CLAIMS + 1, U)
    assert "more than 1000" in claims[-1].detail


def test_claims_in_a_workspace_that_is_gone_are_unverifiable(plain):
    plain.root.rmdir()
    claim = only(check(plain.root, returned(created=["x.md"])))
    assert (claim.verdict, "cannot be looked at" in claim.detail) == (U, True)


@pytest.mark.parametrize("git", [True, False])
@pytest.mark.parametrize("kind", ["created", "modified"])
def test_a_file_put_there_with_an_older_time_is_not_called_older(repository, plain, kind, *, git):
    """`cp -p` and `mv` keep the time of a file, but its inode shows when it came, and nobody can set that back."""
    where, now = repository if git else plain, time.time()
    where.write("x.md", at=now - 5_000 - HANDED_OFF)
    claim = only(check(where.root, returned(**{kind: ["x.md"]}), at=now - 1_000))
    assert (claim.verdict, "a copy or a move keeps its time" in claim.detail) == (U, True), claim.detail


def test_a_commit_in_the_second_of_the_handoff_decides_nothing(repository):
    repository.write("x.md", at=AFTER)
    repository.commit(at=0)
    assert only(check(repository.root, returned(created=["x.md"]), at=HANDED_OFF + 0.5)).verdict is U


def test_a_time_in_whole_seconds_is_compared_in_whole_seconds(repository):
    repository.write("x.md", at=0)
    assert only(check(repository.root, returned(created=["x.md"]), at=HANDED_OFF + 0.9)).verdict is V
    assert only(check(repository.root, returned(created=["x.md"]), at=HANDED_OFF + 1.1)).verdict is C


@pytest.mark.parametrize(
    ("text", "paths"),
    [
        ("docs/a.md — why", [("docs/a.md", None)]),
        ("`docs/a.md`: why", [("docs/a.md", None)]),
        ("docs/a.md:12-40", [("docs/a.md", (12, 40))]),
        ("docs/a.md#L3-L9", [("docs/a.md", (3, 9))]),
        ("docs/a.md:7 — the rule", [("docs/a.md", (7, 7))]),
        ("src/a.py: line 5", [("src/a.py", (5, 5))]),
        ("`src/a.py`: lines 5-9", [("src/a.py", (5, 9))]),
        ("src/a.py: lines 5-9 — the parser", [("src/a.py", (5, 9))]),
        ("src/a.py: line 5 is wrong", [("src/a.py", None)]),
        ("a.md, b.md and c/d.py", [("a.md", None), ("b.md", None), ("c/d.py", None)]),
        ("[the plan](plans/x.md)", [("plans/x.md", None)]),
        ("I read `src/a.py` and more of it", [("src/a.py", None)]),
        ("src/lib (the library)", [("src/lib", None)]),
        ("docs/", [("docs/", None)]),
        ("`pytest -q tests/unit/test_a.py`", []),
        ("pytest tests/unit/test_a.py -q: 3 passed", []),
        ("84 tests passed", []),
        ("https://example.org/a.md", []),
        ("mailto:a@example.org", []),
        ("handoff-packet contract", []),
        ("3/4", [("3/4", None)]),
        ("my file.md \u2014 why", [("my file.md", None)]),
        ("`my file.md`: why", [("my file.md", None)]),
        ("pytest -q a.py", []),
        ("Ran `grep` in a.py", []),
    ],
)
def test_the_paths_of_a_bullet(text, paths):
    stated = claims_of(returned(evidence=[text]), "a.return.md")
    assert [(one.claim.path, one.claim.lines) for one in stated if one.is_file] == paths
    assert all(one.is_file or one.claim.detail for one in stated)


@pytest.mark.parametrize("text", ["3/4", "and/or", "tests/unit", "Makefile", "my file.md"])
def test_a_missing_word_that_may_be_no_path_is_no_lie(text):
    (stated,) = claims_of(returned(evidence=[text]), "a.return.md")
    assert (stated.is_file, bool(stated.excuse)) == (True, True)


@given(st.text(max_size=300), st.text(max_size=100), st.text(max_size=100))
def test_any_text_is_read_without_an_error(text, path, constraint):
    claims_of(text, path, constraint, path)
    claims_of(returned(created=[path], evidence=[text]), "a.return.md", text, "a.handoff.json")


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


def stands(monitor: Monitor) -> tuple[list[Verdict], bool]:
    """Return the verdicts of the claims of files, and whether a file was found in its new place."""
    task = monitor.tree.tasks.get("api")
    claims = [claim for claim in task.claims if claim.kind != "criterion"] if task is not None else []
    return [one.verdict for one in claims], any(one.file == "done/notes/x.md" for one in claims)


async def test_archiving_while_it_is_watched_accuses_nobody(plain):
    work(plain)
    # The task id is given, so that it stays the same when its directory moves.
    (plain.root / "specs/7_api/a.handoff.json").write_text(packet(task_id="api"))
    for path in (CLAIMED, "specs/7_api/a.return.md"):
        os.utime(plain.root / path, (time.time() + 2,) * 2)
    monitor = monitored(plain.root)
    async with aclosing(monitor.updates()) as updates:
        await until(updates, lambda: stands(monitor) == ([V, V], False))
        (plain.root / "specs" / "7_api").rename(plain.root / "done")
        await until(updates, lambda: stands(monitor)[1])
    assert stands(monitor)[0] == [V, V]


async def test_work_that_was_cleared_away_is_no_lie_at_the_next_start(plain):
    work(plain)
    for place in ("specs", "../attic"):
        monitor = monitored(plain.root)
        async with aclosing(monitor.updates()) as updates:
            await until(updates, lambda: stands(monitor)[0] != [])  # noqa: B023
        (plain.root / place).rename(plain.root.parent / "attic")
    task = monitor.tree.tasks["api"]
    assert (task.deleted, task.contradicted, {claim.verdict for claim in task.claims}) == (True, False, {U})


def test_a_long_text_is_cut_with_a_notice(plain):
    plain.write("x.md", "x" * (MAX_SHOWN + 1))
    shown = file_text(plain.root, "x.md")
    assert (len(shown.text), shown.truncated) == (MAX_SHOWN, True)


@pytest.mark.parametrize("path", ["/etc/passwd", "../x", "~/x", "", "a\0b", "link", "gone", ".", "binary"])
def test_a_file_that_must_not_be_shown_has_a_reason_instead(plain, path):
    (plain.root / "link").symlink_to("/etc/passwd")
    (plain.root / "binary").write_bytes(b"a\0b")
    for shown in (file_text(plain.root, path), difference(plain.root, path, HANDED_OFF)):
        assert shown.text == ""
        assert shown.problem


def test_the_difference_is_since_the_commit_at_the_handoff(repository):
    repository.write("tracked.md", "one\n", at=AFTER)
    assert "sees no difference" in difference(repository.root, "tracked.md", None).problem
    repository.write("tracked.md", "two\n", at=AFTER)
    repository.commit(at=AFTER)
    repository.write("tracked.md", "three\n", at=AFTER)
    since_handoff = difference(repository.root, "tracked.md", HANDED_OFF).text
    since_commit = difference(repository.root, "tracked.md", None).text
    assert ("-one\n+three\n" in since_handoff, "-two\n+three\n" in since_commit) == (True, True)


@pytest.mark.parametrize("path", ["*.md", ":(top)tracked.md", ":/tracked.md"])
def test_a_path_is_no_pattern_for_git(repository, path):
    repository.write("tracked.md", "two\n", at=AFTER)
    assert difference(repository.root, path, HANDED_OFF).text == ""
