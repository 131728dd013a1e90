"""Claims × disk states × git states: the verdict and its words, in real repositories."""

from __future__ import annotations

import time

import pytest

from agentwatch.delegation.claims import Verdict
from tests.unit.evidence.repository import AFTER, HANDED_OFF, Repository, check, only, returned

V, C, U = Verdict.VERIFIED, Verdict.CONTRADICTED, Verdict.UNVERIFIABLE


def claiming(kind: str, path: str) -> str:
    parts: dict[str, list[str]] = {"created": [], "modified": [], "deliverable": [], "evidence": []}
    parts[kind] = [path]
    return returned(parts["created"], parts["modified"], parts["deliverable"], parts["evidence"])


@pytest.mark.parametrize("git", [True, False])
@pytest.mark.parametrize("kind", ["created", "modified"])
def test_a_file_that_was_put_there_with_an_older_time_is_not_called_older(
    repository: Repository, plain: Repository, kind: str, *, git: bool
) -> None:
    """By `cp -p` or `mv`: its inode tells, where nobody can set the time back."""
    where, now = repository if git else plain, time.time()
    where.write("x.md", at=now - 5_000 - HANDED_OFF)
    claim = only(check(where.root, claiming(kind, "x.md"), at=now - 1_000))
    assert (claim.verdict, "a copy or a move keeps its time" in claim.detail) == (U, True), claim.detail


def test_a_commit_in_the_second_of_the_handoff_may_be_from_before_or_after(repository: Repository) -> None:
    repository.write("x.md", at=AFTER)
    repository.commit(at=0)
    assert only(check(repository.root, returned(created=["x.md"]), at=HANDED_OFF + 0.5)).verdict is U


def test_a_time_in_whole_seconds_is_compared_in_whole_seconds(repository: Repository) -> None:
    repository.write("x.md", at=0)
    assert only(check(repository.root, returned(created=["x.md"]), at=HANDED_OFF + 0.9)).verdict is V
    assert only(check(repository.root, returned(created=["x.md"]), at=HANDED_OFF + 1.1)).verdict is C
