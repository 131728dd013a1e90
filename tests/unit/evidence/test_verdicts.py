"""Claims × disk states × git states: the verdict and its words, in real repositories."""

from __future__ import annotations

import json
import time

import pytest

from agentwatch.delegation.claims import Verdict
from agentwatch.evidence.checker import Checker
from tests.unit.evidence.repository import AFTER, BEFORE, HANDED_OFF, Repository, check, only, request, returned

V, C, U = Verdict.VERIFIED, Verdict.CONTRADICTED, Verdict.UNVERIFIABLE


def old_untracked(repository: Repository) -> None:
    repository.write("x.md", at=BEFORE)


def old_and_only_committed_since(repository: Repository) -> None:
    old_untracked(repository)
    repository.commit(at=AFTER)


def claiming(kind: str, path: str) -> str:
    parts: dict[str, list[str]] = {"created": [], "modified": [], "deliverable": [], "evidence": []}
    parts[kind] = [path]
    return returned(parts["created"], parts["modified"], parts["deliverable"], parts["evidence"])


def artifact(path: str) -> str:
    return json.dumps(
        {
            "status": "completed",
            "summary": "s",
            "artifacts": [{"type": "report", "path": path, "summary": "s"}],
            "metadata": {"session_id": "s", "agent_type": "a", "delegation_depth": 1, "delegation_path": ["a"]},
        }
    )


@pytest.mark.parametrize("git", [True, False])
@pytest.mark.parametrize("kind", ["created", "modified"])
def test_a_file_that_was_put_there_with_an_older_time_is_not_called_older(
    repository: Repository, plain: Repository, kind: str, *, git: bool
) -> None:
    """By `cp -p` or `mv`: its inode tells, where nobody can set the time back."""
    where, now = repository if git else plain, time.time()
    where.write("x.md", at=now - 5_000 - HANDED_OFF)
    claim = only(check(where.root, claiming(kind, "x.md"), at=now - 1_000))
    assert (claim.verdict, "a copy or a move keeps the older time" in claim.detail) == (U, True), claim.detail


def test_an_older_file_that_git_got_since_may_have_been_created(repository: Repository) -> None:
    old_and_only_committed_since(repository)
    assert only(check(repository.root, claiming("created", "x.md"))).verdict is U


def test_a_name_that_no_file_system_takes_is_missing(repository: Repository) -> None:
    claim = only(check(repository.root, artifact("a\ud800b.md")))
    assert claim.verdict is C


def test_a_file_that_appears_later_is_verified_by_the_next_check(repository: Repository) -> None:
    checker = Checker(repository.root)
    asked = [request(returned(created=["later/x.md"]))]
    (before,) = checker.check(asked)
    repository.write("later/x.md")
    (after,) = checker.check(asked)
    assert (only(before).verdict, only(after).verdict) == (C, V)


def test_a_commit_in_the_second_of_the_handoff_may_be_from_before_or_after(repository: Repository) -> None:
    repository.write("x.md", at=AFTER)
    repository.commit(at=0)
    assert only(check(repository.root, returned(created=["x.md"]), at=HANDED_OFF + 0.5)).verdict is U


def test_a_time_in_whole_seconds_is_compared_in_whole_seconds(repository: Repository) -> None:
    repository.write("x.md", at=0)
    assert only(check(repository.root, returned(created=["x.md"]), at=HANDED_OFF + 0.9)).verdict is V
    assert only(check(repository.root, returned(created=["x.md"]), at=HANDED_OFF + 1.1)).verdict is C
