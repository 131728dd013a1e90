"""Work that lies on another branch, in another work tree or in the past: it is not missing, and no more is known."""

from __future__ import annotations

import pytest

from agentwatch.delegation.claims import Verdict
from agentwatch.evidence import git
from agentwatch.evidence.git import GitFailedError
from tests.unit.evidence.repository import AFTER, Repository, check, only, returned

V, C, U = Verdict.VERIFIED, Verdict.CONTRADICTED, Verdict.UNVERIFIABLE


def on_a_branch(repository: Repository, at: float = AFTER) -> None:
    repository.git("checkout", "-q", "-b", "feat")
    repository.write("sub/x.md", at=at)
    repository.commit(at=at)
    repository.git("checkout", "-q", "-")


def test_a_workspace_below_the_top_finds_what_is_of_its_own_directory(repository: Repository) -> None:
    on_a_branch(repository)
    repository.write("sub/y.md")
    repository.write("other/y.md")
    claims = check(repository.root / "sub", returned(created=["x.md"])).claims
    assert [claim.verdict for claim in claims] == [U]
    assert only(check(repository.root / "other", returned(created=["x.md"]))).verdict is C


def test_where_git_cannot_say_nothing_is_called_a_lie(repository: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    def too_slow(*_: object) -> list[str]:
        raise GitFailedError("git did not answer within 10 s")

    monkeypatch.setattr(git, "worktrees_of", too_slow)
    claim = only(check(repository.root, returned(created=["x.md"])))
    assert (claim.verdict, "did not answer within 10 s" in claim.detail) == (U, True), claim.detail
