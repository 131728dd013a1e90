"""Claims × disk states × git states: the verdict and its words, in real repositories."""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from agentwatch.delegation.claims import Verdict
from agentwatch.evidence.checker import Checker
from tests.unit.evidence.repository import AFTER, BEFORE, HANDED_OFF, Repository, check, only, request, returned

V, C, U = Verdict.VERIFIED, Verdict.CONTRADICTED, Verdict.UNVERIFIABLE


def nothing(repository: Repository) -> None:
    pass


def new(repository: Repository) -> None:
    repository.write("x.md")


def old_untracked(repository: Repository) -> None:
    repository.write("x.md", at=BEFORE)


def old_tracked(repository: Repository) -> None:
    repository.write("x.md", at=BEFORE)
    repository.commit(at=BEFORE)


def tracked_and_changed(repository: Repository) -> None:
    old_tracked(repository)
    repository.write("x.md", "other text\n", at=AFTER)


def tracked_and_changed_before(repository: Repository) -> None:
    old_tracked(repository)
    repository.write("x.md", "other text\n", at=BEFORE)


def tracked_and_rewritten_the_same(repository: Repository) -> None:
    old_tracked(repository)
    repository.write("x.md", at=AFTER)


def tracked_and_committed_since(repository: Repository) -> None:
    old_tracked(repository)
    repository.write("x.md", "other text\n", at=BEFORE)
    repository.commit(at=AFTER)


def tracked_and_deleted(repository: Repository) -> None:
    old_tracked(repository)
    (repository.root / "x.md").unlink()


def new_and_committed_since(repository: Repository) -> None:
    repository.write("x.md", at=AFTER)
    repository.commit(at=AFTER)


def new_in_the_index(repository: Repository) -> None:
    repository.write("x.md", at=AFTER)
    repository.git("add", "x.md")


def new_but_ignored(repository: Repository) -> None:
    repository.write(".gitignore", "x.md\n", at=BEFORE)
    repository.commit(at=BEFORE)
    repository.write("x.md", at=AFTER)


def old_and_only_committed_since(repository: Repository) -> None:
    old_untracked(repository)
    repository.commit(at=AFTER)


def lost_by_the_index(repository: Repository) -> None:
    tracked_and_rewritten_the_same(repository)
    repository.git("rm", "-q", "--cached", "x.md")


def only_moved(repository: Repository) -> None:
    repository.git("mv", "tracked.md", "x.md")
    repository.touch("x.md", AFTER)


def only_moved_and_committed(repository: Repository) -> None:
    only_moved(repository)
    repository.commit(at=AFTER)


def only_made_executable(repository: Repository) -> None:
    tracked_and_rewritten_the_same(repository)
    (repository.root / "x.md").chmod(0o755)


def only_made_executable_and_staged(repository: Repository) -> None:
    only_made_executable(repository)
    repository.git("add", "x.md")


def only_made_executable_and_committed(repository: Repository) -> None:
    only_made_executable(repository)
    repository.commit(at=AFTER)


def hard_linked(repository: Repository) -> None:
    os.link(repository.root / "tracked.md", repository.root / "x.md")
    repository.touch("x.md", AFTER)


def empty(repository: Repository) -> None:
    repository.write("x.md", "")


def directory(repository: Repository) -> None:
    repository.write("x.md/inner")
    repository.touch("x.md", AFTER)


def pipe(repository: Repository) -> None:
    os.mkfifo(repository.root / "x.md")


def unix_socket(repository: Repository) -> None:
    here = Path.cwd()
    os.chdir(repository.root)  # its path may be too long for a socket
    try:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind("x.md")
    finally:
        os.chdir(here)


def link_inside(repository: Repository) -> None:
    repository.write("target.md")
    (repository.root / "x.md").symlink_to("target.md")


def link_outside(repository: Repository) -> None:
    (repository.root / "x.md").symlink_to("/etc/passwd")


def dangling_link(repository: Repository) -> None:
    (repository.root / "x.md").symlink_to("nowhere.md")


def circle(repository: Repository) -> None:
    (repository.root / "x.md").symlink_to("x.md")


def other_case(repository: Repository) -> None:
    repository.write("X.MD")


TABLE: list[tuple[str, Callable[[Repository], None], Verdict, str]] = [
    ("created", nothing, C, "missing"),
    ("created", new, V, "exists, written since the handoff, and git did not have it before; its content was not"),
    ("created", old_untracked, C, "older than the handoff"),
    ("created", old_tracked, C, "claimed created but tracked before the handoff"),
    ("created", tracked_and_changed, C, "claimed created but tracked before the handoff"),
    ("created", tracked_and_deleted, C, "missing: git had it before the handoff"),
    ("created", new_and_committed_since, V, "exists, written since the handoff"),
    ("created", new_in_the_index, V, "exists, written since the handoff"),
    ("created", new_but_ignored, V, "exists, written since the handoff"),
    ("created", empty, C, "empty"),
    ("created", directory, V, "exists, written since the handoff"),
    ("created", pipe, C, "not a regular file: a named pipe"),
    ("created", unix_socket, C, "not a regular file: a socket"),
    ("created", link_inside, V, "git did not have it before (through a symbolic link"),
    ("created", link_outside, C, "outside the workspace: a symbolic link"),
    ("created", dangling_link, C, "missing"),
    ("created", circle, U, "cannot be looked at"),
    ("created", other_case, C, "case differs: on disk it is X.MD"),
    ("modified", nothing, C, "missing"),
    ("modified", new, V, "written since the handoff, and git did not have it before"),
    ("modified", old_untracked, C, "older than the handoff"),
    ("modified", old_tracked, C, "claimed modified but unchanged"),
    ("modified", tracked_and_changed, V, "differs from the last commit, written since the handoff"),
    ("modified", tracked_and_changed_before, C, "older than the handoff: it differs from the last commit"),
    ("modified", tracked_and_rewritten_the_same, U, "git sees no difference"),
    ("modified", tracked_and_committed_since, V, "changed by a commit since the handoff"),
    ("modified", tracked_and_deleted, U, "missing: git had it before the handoff, and it is gone; to delete"),
    ("evidence", tracked_and_deleted, U, "missing: git had it before the handoff"),
    ("modified", new_but_ignored, U, "git ignores it"),
    ("modified", only_moved, U, "git did not have it before under this name"),
    ("modified", only_moved_and_committed, U, "git did not have it before under this name"),
    ("modified", only_made_executable, U, "git sees no difference"),
    ("modified", only_made_executable_and_staged, U, "git sees no difference"),
    ("modified", only_made_executable_and_committed, U, "git sees no difference"),
    ("created", hard_linked, U, "another name (a hard link)"),
    ("modified", hard_linked, U, "another name (a hard link)"),
    ("modified", empty, C, "empty"),
    ("modified", pipe, C, "not a regular file"),
    ("modified", link_outside, C, "outside the workspace"),
    ("modified", other_case, C, "case differs"),
    ("deliverable", nothing, C, "missing"),
    ("deliverable", new, V, "exists, written since the handoff"),
    ("deliverable", old_tracked, U, "exists, but was last written before the handoff"),
    ("deliverable", tracked_and_rewritten_the_same, U, "git sees no difference"),
    ("modified", old_and_only_committed_since, C, "claimed modified but unchanged"),
    ("created", lost_by_the_index, C, "claimed created but tracked before the handoff"),
    ("modified", lost_by_the_index, U, "git cannot say"),
    ("deliverable", empty, C, "empty"),
    ("deliverable", directory, V, "exists, written since the handoff"),
    ("deliverable", other_case, C, "case differs"),
    ("evidence", nothing, C, "missing"),
    ("evidence", old_tracked, V, "exists; its content was not checked"),
    ("evidence", directory, V, "exists"),
    ("evidence", empty, V, "exists, but is empty"),
    ("evidence", pipe, C, "not a regular file: a named pipe"),
    ("evidence", link_outside, U, "outside the workspace"),
    ("evidence", other_case, C, "case differs"),
]


def claiming(kind: str, path: str) -> str:
    parts: dict[str, list[str]] = {"created": [], "modified": [], "deliverable": [], "evidence": []}
    parts[kind] = [path]
    return returned(parts["created"], parts["modified"], parts["deliverable"], parts["evidence"])


@pytest.mark.parametrize(
    ("kind", "state", "verdict", "words"), TABLE, ids=[f"{kind}-{state.__name__}" for kind, state, _, _ in TABLE]
)
def test_a_claim_in_a_repository(
    repository: Repository, kind: str, state: Callable[[Repository], None], verdict: Verdict, words: str
) -> None:
    state(repository)
    claim = only(check(repository.root, claiming(kind, "x.md")))
    assert (claim.kind, claim.path, claim.verdict) == (kind, "x.md", verdict), claim.detail
    assert claim.detail.startswith(words) or words in claim.detail


@pytest.mark.parametrize(
    ("kind", "state", "verdict", "words"),
    [
        ("created", nothing, C, "missing"),
        ("created", new, V, "exists, written since the handoff (not in a git repository); its content was not checked"),
        ("created", old_untracked, C, "older than the handoff"),
        ("modified", new, V, "written since the handoff (not in a git repository)"),
        ("modified", old_untracked, C, "older than the handoff"),
        ("deliverable", old_untracked, U, "exists, but was last written before the handoff"),
    ],
    ids=lambda value: value.__name__ if callable(value) else str(value)[:12],
)
def test_a_claim_without_git(
    plain: Repository, kind: str, state: Callable[[Repository], None], verdict: Verdict, words: str
) -> None:
    state(plain)
    result = check(plain.root, claiming(kind, "x.md"))
    assert (only(result).verdict, result.git) == (verdict, "not in a git repository")
    assert words in only(result).detail


@pytest.mark.parametrize(
    ("kind", "state", "verdict", "words"),
    [
        ("created", old_tracked, U, "no handoff is known, so nothing tells whether it was created"),
        ("created", new, U, "no handoff is known"),
        ("created", nothing, C, "missing"),
        ("modified", old_tracked, U, "no handoff is known, so nothing tells whether it was modified"),
        ("modified", tracked_and_changed_before, U, "no handoff is known"),
        ("deliverable", old_tracked, V, "exists; its content was not checked"),
    ],
    ids=lambda value: value.__name__ if callable(value) else str(value)[:12],
)
def test_without_the_time_of_a_handoff_no_time_is_compared(
    repository: Repository,
    kind: str,
    state: Callable[[Repository], None],
    verdict: Verdict,
    words: str,
) -> None:
    state(repository)
    for at in (None, float("nan"), float("inf"), float("-inf")):
        claim = only(check(repository.root, claiming(kind, "x.md"), at=at))
        assert claim.verdict is verdict, claim.detail
        assert words in claim.detail


@pytest.mark.parametrize(
    ("path", "verdict", "words"),
    [
        ("../x.md", C, "outside the workspace: it leaves it by `..`"),
        ("a/../../x.md", C, "outside the workspace"),
        ("/etc/passwd", C, "outside the workspace"),
        ("~/x.md", C, "outside the workspace: it starts in a home directory"),
        ("C:\\x.md", C, "outside the workspace: it names a drive"),
        ("file:///etc/passwd", C, "outside the workspace: it names a drive or a scheme"),
        ("a\0b.md", C, "it holds a NUL"),
        ("x" * 300, C, "longer than a path can be"),
        ("a/" * 3000 + "x", C, "longer than a path can be"),
        ("a/" * 101 + "x", C, "longer than a path can be"),
        (".", C, "it is the workspace itself"),
        ("a/..", C, "it is the workspace itself"),
        ("sub\\x.md", C, "missing under this name: there is a file with `/`"),
        ("./sub/../sub//x.md", V, "exists, written since the handoff"),
        ("sub/", V, "exists, written since the handoff"),
        ("sub/x.md/", C, "claimed as a directory"),
        ("hollow/", C, "empty: the directory holds nothing"),
        ("sub/x.md/y", C, "missing"),
        ("sub/__init__.py", V, "exists, written since the handoff"),
        ("sub/*.md", U, "a pattern, not a path"),
        ("SUB/X.md", C, "case differs: on disk it is sub/x.md"),
        ("through/x.md", V, "through a symbolic link"),
        ("out/passwd", C, "outside the workspace: a symbolic link"),
    ],
)
def test_a_hostile_or_careless_path(repository: Repository, path: str, verdict: Verdict, words: str) -> None:
    repository.write("sub/x.md")
    repository.write("sub/__init__.py", "")
    (repository.root / "hollow").mkdir()
    repository.touch("sub", AFTER)
    (repository.root / "through").symlink_to("sub")
    (repository.root / "out").symlink_to("/etc")
    claim = only(check(repository.root, artifact(path)))
    assert claim.verdict is verdict, claim.detail
    assert words in claim.detail


def artifact(path: str) -> str:
    return json.dumps(
        {
            "status": "completed",
            "summary": "s",
            "artifacts": [{"type": "report", "path": path, "summary": "s"}],
            "metadata": {"session_id": "s", "agent_type": "a", "delegation_depth": 1, "delegation_path": ["a"]},
        }
    )


@pytest.mark.parametrize(("name", "verdict", "is_missing"), [("x.md", V, False), ("none.md", C, True)])
def test_an_absolute_path_inside_the_workspace_is_judged_as_the_relative_one(
    repository: Repository, name: str, verdict: Verdict, is_missing: bool
) -> None:
    repository.write("sub/x.md")
    claim = only(check(repository.root, returned(created=[f"{repository.root}/sub/{name}"])))
    assert (claim.verdict, claim.file, claim.is_missing) == (verdict, f"sub/{name}", is_missing)
    assert claim.detail.endswith("(given as an absolute path)")


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


def test_a_directory_is_judged_by_what_git_has_in_it(repository: Repository) -> None:
    for name in ("old", "grown", "edited"):
        repository.write(f"{name}/x.md", at=BEFORE)
    repository.commit(at=BEFORE)
    repository.write("grown/new.md")
    repository.write("edited/x.md", "other\n")
    repository.write("new/x.md")
    repository.touch("edited", BEFORE)
    for name in ("old", "grown", "new"):
        repository.touch(name, AFTER)
    claims = check(repository.root, returned(created=["grown/", "new/"], deliverables=["old/", "grown/"])).claims
    assert [claim.verdict for claim in claims] == [C, V, U, V], claims
    assert only(check(repository.root, returned(modified=["edited/"]))).verdict is U


@pytest.mark.parametrize("kind", ["created", "modified", "deliverable"])
def test_a_file_in_another_repository_is_not_known_to_git(repository: Repository, kind: str) -> None:
    inner = Repository(repository.root / "inner", repository.home)
    inner.init()
    inner.write("deep/x.md", at=BEFORE)
    inner.commit(at=BEFORE)
    inner.touch("deep/x.md", AFTER)
    claim = only(check(repository.root, claiming(kind, "inner/deep/x.md")))
    assert (claim.verdict, "a git repository of its own" in claim.detail) == (U, True), claim.detail


def test_a_file_that_appears_later_is_verified_by_the_next_check(repository: Repository) -> None:
    checker = Checker(repository.root)
    asked = [request(returned(created=["later/x.md"]))]
    (before,) = checker.check(asked)
    repository.write("later/x.md")
    (after,) = checker.check(asked)
    assert (only(before).verdict, only(after).verdict) == (C, V)
    # The index, too, as long as it is missing: git may be told later where it went.
    assert (before.watch_paths, after.watch_paths) == ({"later/x.md", ".git/index"}, {"later/x.md"})


def test_a_commit_in_the_second_of_the_handoff_is_told_by_its_object(repository: Repository) -> None:
    for name, offset in (("early.md", -0.4), ("late.md", 0.4)):
        repository.write(name, at=AFTER)
        repository.git("add", "-A")
        repository.git("commit", "-q", "-m", name, at=0)
        commit = repository.git("rev-parse", "HEAD").strip()
        made = repository.root / ".git" / "objects" / commit[:2] / commit[2:]
        os.utime(made, (HANDED_OFF + 0.5 + offset, HANDED_OFF + 0.5 + offset))
    claims = check(repository.root, returned(created=["early.md", "late.md"]), at=HANDED_OFF + 0.5).claims
    assert [claim.verdict for claim in claims] == [C, V]


def test_a_time_in_whole_seconds_is_compared_in_whole_seconds(repository: Repository) -> None:
    repository.write("x.md", at=0)
    assert only(check(repository.root, returned(created=["x.md"]), at=HANDED_OFF + 0.9)).verdict is V
    assert only(check(repository.root, returned(created=["x.md"]), at=HANDED_OFF + 1.1)).verdict is C
