"""Rounds of checking in real repositories: many returns, other places and other times."""

import json
import time

import pytest

from agentwatch.delegation.events import Verdict
from agentwatch.evidence.checker import Checker
from agentwatch.evidence.claims import MAX_CLAIMS
from tests.goldens.verdicts.claude import returned
from tests.unit.evidence.repository import AFTER, BEFORE, HANDED_OFF, check, only, request

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
    repository.write("sub/new.md", at=AFTER)
    repository.write("other.md", at=AFTER)
    result = check(repository.root / "sub", returned(created=["new.md", "old.md"]))
    assert [claim.verdict for claim in result.claims] == [V, C]


def test_a_linked_work_tree_is_a_repository_too(repository, tmp_path):
    repository.git("worktree", "add", "-q", str(tmp_path / "other"))
    result = check(tmp_path / "other", returned(created=["tracked.md"]))
    assert only(result).detail.startswith("claimed created but tracked before")


def test_too_many_claims_are_cut_and_said_to_be(repository):
    text = returned(created=[f"c{number}.md" for number in range(900)], modified=[f"m{n}.md" for n in range(900)])
    claims = check(repository.root, text).claims
    assert len(claims) == MAX_CLAIMS + 1
    assert claims[-1].verdict is U
    assert "more than 1000" in claims[-1].detail


def test_a_workspace_that_is_gone_is_said_to_be(plain):
    checker = Checker(plain.root)
    plain.root.rmdir()
    claim = only(checker.check([request(returned(created=["x.md"]))])[0])
    assert claim.verdict is U
    assert "cannot be looked at" in claim.detail


def test_below_the_top_a_branch_is_looked_at_in_the_own_directory(repository):
    repository.git("checkout", "-q", "-b", "feat")
    repository.write("sub/x.md", at=AFTER)
    repository.commit(at=AFTER)
    repository.git("checkout", "-q", "-")
    repository.write("sub/y.md")
    repository.write("other/y.md")
    assert only(check(repository.root / "sub", returned(created=["x.md"]))).verdict is U
    assert only(check(repository.root / "other", returned(created=["x.md"]))).verdict is C


@pytest.mark.parametrize("git", [True, False])
@pytest.mark.parametrize("kind", ["created", "modified"])
def test_a_file_put_there_with_an_older_time_is_not_called_older(repository, plain, kind, *, git):
    """By `cp -p` or `mv`: its inode tells, where nobody can set the time back."""
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
