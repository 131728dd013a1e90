"""Work that lies on another branch, in another work tree or in the past: it is not missing, and no more is known."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from agentwatch.delegation.claims import Verdict
from agentwatch.evidence import elsewhere, plumbing
from agentwatch.evidence.checker import Checker
from agentwatch.evidence.plumbing import GitSlowError
from tests.unit.evidence.repository import AFTER, BEFORE, HANDED_OFF, Repository, check, only, request, returned

V, C, U = Verdict.VERIFIED, Verdict.CONTRADICTED, Verdict.UNVERIFIABLE


def on_a_branch(repository: Repository, at: float = AFTER) -> None:
    repository.git("checkout", "-q", "-b", "feat")
    repository.write("sub/x.md", at=at)
    repository.commit(at=at)
    repository.git("checkout", "-q", "-")


def on_a_packed_branch(repository: Repository) -> None:
    on_a_branch(repository)
    repository.git("pack-refs", "--all")


def behind_a_tag(repository: Repository) -> None:
    on_a_branch(repository)
    repository.git("tag", "-a", "-m", "x", "v1", "feat", at=AFTER)
    repository.git("branch", "-q", "-D", "feat")


def stashed(repository: Repository) -> None:
    repository.write("sub/x.md")
    repository.git("stash", "push", "-q", "-u", at=AFTER)


def removed_again(repository: Repository) -> None:
    repository.write("sub/x.md")
    repository.commit(at=AFTER)
    repository.git("rm", "-q", "sub/x.md")
    repository.commit(at=2 * AFTER)


def merged_and_removed_on_its_branch(repository: Repository) -> None:
    repository.git("checkout", "-q", "-b", "feat")
    removed_again(repository)
    repository.git("checkout", "-q", "-")
    repository.git("merge", "-q", "--no-ff", "-m", "x", "feat", at=3 * AFTER)
    repository.git("branch", "-q", "-D", "feat")


def beside_a_reference_to_nothing(repository: Repository) -> None:
    on_a_branch(repository)
    (repository.root / ".git/refs/heads/broken").write_text(f"{'1' * 40}\n")
    (repository.root / ".git/refs/heads/foreign").write_text("--output=x\n")


@pytest.mark.parametrize(
    "made",
    [
        on_a_branch,
        on_a_packed_branch,
        behind_a_tag,
        stashed,
        removed_again,
        merged_and_removed_on_its_branch,
        beside_a_reference_to_nothing,
    ],
)
@pytest.mark.parametrize("path", ["sub/x.md", "sub/"])
def test_what_a_commit_since_the_handoff_has_is_not_called_missing(
    repository: Repository, made: Callable[[Repository], None], path: str
) -> None:
    made(repository)
    claim = only(check(repository.root, returned(created=[path])))
    assert (claim.verdict, claim.is_missing) == (U, False), claim.detail
    assert claim.detail.startswith("missing here, but commit ")


def test_what_only_an_older_commit_has_is_missing(repository: Repository) -> None:
    on_a_branch(repository, at=BEFORE)
    assert only(check(repository.root, returned(created=["sub/x.md"]))).verdict is C


def test_each_return_is_held_against_its_own_handoff(repository: Repository) -> None:
    on_a_branch(repository)
    text = returned(created=["sub/x.md"])
    asked = [request(text), request(text, at=HANDED_OFF + 2 * AFTER), request(text, at=None)]
    assert [only(result).verdict for result in Checker(repository.root).check(asked)] == [U, C, U]


def test_what_another_work_tree_has_is_not_called_missing(repository: Repository) -> None:
    tree = repository.root.parent / "linked"
    repository.git("worktree", "add", "-q", "-b", "feat", str(tree))
    linked = Repository(tree, repository.home)
    linked.write("x.md")
    linked.write("old.md", at=BEFORE)
    first, second = check(repository.root, returned(created=["x.md", "old.md"])).claims
    assert (first.verdict, first.detail) == (U, f"missing here, but the work tree {tree} has it")
    assert second.verdict is C


def test_a_workspace_below_the_top_finds_what_is_of_its_own_directory(repository: Repository) -> None:
    on_a_branch(repository)
    repository.write("sub/y.md")
    repository.write("other/y.md")
    claims = check(repository.root / "sub", returned(created=["x.md"])).claims
    assert [claim.verdict for claim in claims] == [U]
    assert only(check(repository.root / "other", returned(created=["x.md"]))).verdict is C


@pytest.mark.parametrize("count", [3, 300])
def test_git_is_asked_once_for_all_that_is_missing(
    repository: Repository, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    on_a_branch(repository)
    questions: list[str] = []
    ask = plumbing.Plumbing.ask

    def counted(self: plumbing.Plumbing, *arguments: str, **more: object) -> object:
        questions.extend(arguments[:2])
        return ask(self, *arguments, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(plumbing.Plumbing, "ask", counted)
    files = [{"path": f"{number}.md", "type": "file", "summary": "s"} for number in range(count)]
    document = {"status": "completed", "session_id": "s", "agent_type": "a", "delegation_path": ["o", "a"]}
    artifacts = [*files, {"path": "sub/x.md", "type": "file", "summary": "s"}]
    text = json.dumps({**document, "artifacts": artifacts})
    (result,) = Checker(repository.root).check([request(text, name="x/.return-meta.json")])
    verdicts = [claim.verdict for claim in result.claims]
    assert (verdicts.count(U), len(verdicts)) == (1, count + 1)
    assert questions.count("--ignore-missing") == 1


def test_where_git_cannot_say_nothing_is_called_a_lie(repository: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    def too_slow(*_: object) -> list[str]:
        raise GitSlowError("git did not answer within 10 s")

    monkeypatch.setattr(elsewhere, "tips", too_slow)
    claim = only(check(repository.root, returned(created=["x.md"])))
    assert (claim.verdict, "did not answer within 10 s" in claim.detail) == (U, True), claim.detail
