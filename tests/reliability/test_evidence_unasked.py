"""What cannot be asked is unverifiable: every way for git, the disk or the handoff to fail, and an old file."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from agentwatch.delegation.claims import Verdict
from agentwatch.evidence.checker import Checker, Request, Result
from tests.unit.evidence.repository import AFTER, BEFORE, Repository, request, returned

V, C, U = Verdict.VERIFIED, Verdict.CONTRADICTED, Verdict.UNVERIFIABLE

PACKET = json.dumps(
    {
        "task_id": "a",
        "objective": "o",
        "evidence": [],
        "success_criteria": [],
        "risks": [],
        "deliverables": [{"path": "old.md", "description": "d", "must_create": True}],
    }
)


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    """A file that git had before the handoff and that nobody has changed, though its time is new."""
    made = Repository(tmp_path / "workspace", tmp_path / "home")
    made.init()
    made.write("old.md", at=BEFORE)
    made.write("later.md", at=BEFORE)
    made.commit(at=BEFORE)
    made.write("later.md", "other\n", at=AFTER)
    made.commit(at=AFTER)
    made.touch("old.md", AFTER)
    made.write("new.md", at=AFTER)
    return made


def asked() -> Request:
    paths = ["old.md", "new.md"]
    return request(returned(created=paths, modified=paths, deliverables=paths), PACKET)


def verdicts(result: Result, path: str) -> set[Verdict]:
    return {claim.verdict for claim in result.claims if claim.path == path}


def a_program(at: Path, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    at.mkdir()
    (at / "git").write_text(f"#!/bin/sh\n{text}\n")
    (at / "git").chmod(0o755)
    monkeypatch.setenv("PATH", f"{at}:{os.environ['PATH']}")


def object_of(repository: Repository, name: str) -> Path:
    return repository.root / ".git" / "objects" / name[:2] / name[2:]


def fail(way: str, repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    git = repository.root / ".git"
    if way == "a pipe for .gitignore":
        os.mkfifo(repository.root / ".gitignore")
    elif way == "a pipe for a .gitignore below":
        (repository.root / "sub").mkdir()
        os.mkfifo(repository.root / "sub" / ".gitignore")
        repository.write("sub/x.md")
    elif way == "an emptied index":
        (git / "index").write_bytes(b"")
    elif way == "no index":
        (git / "index").unlink()
    elif way == "half an index":
        data = (git / "index").read_bytes()
        (git / "index").write_bytes(data[: len(data) // 2])
    elif way == "an index of noise":
        (git / "index").write_bytes(b"DIRC" + b"\xff" * 100)
    elif way == "a pipe for the index":
        (git / "index").unlink()
        os.mkfifo(git / "index")
    elif way == "a directory for the index":
        (git / "index").unlink()
        (git / "index").mkdir()
    elif way == "no git":
        monkeypatch.setenv("PATH", str(tmp_path))
    elif way == "a git that does not answer":
        a_program(tmp_path / "bin", "exec sleep 600", monkeypatch)
    elif way == "a git that fails":
        a_program(tmp_path / "bin", "exit 1", monkeypatch)
    elif way == "a git that is killed":
        a_program(tmp_path / "bin", "kill -9 $$", monkeypatch)
    elif way == "no tree of the last commit":
        object_of(repository, repository.git("rev-parse", "HEAD^{tree}").strip()).unlink()
    elif way == "no tree of the commit before":
        object_of(repository, repository.git("rev-parse", "HEAD~1^{tree}").strip()).unlink()
    elif way == "a broken tree":
        broken = object_of(repository, repository.git("rev-parse", "HEAD~1^{tree}").strip())
        broken.chmod(0o644)
        broken.write_bytes(b"noise")
    elif way == "no commit before":
        object_of(repository, repository.git("rev-parse", "HEAD~1").strip()).unlink()
    elif way == "no last commit":
        object_of(repository, repository.git("rev-parse", "HEAD").strip()).unlink()
    elif way == "no objects":
        shutil.rmtree(git / "objects")
    elif way == "a branch that is lost":
        branch = repository.git("symbolic-ref", "HEAD").strip()
        (git / branch).unlink()
    elif way == "a HEAD that names no branch":
        (git / "HEAD").write_text("ref: refs/heads/nothing\n")
    elif way == "no HEAD":
        (git / "HEAD").unlink()
    elif way == "an emptied repository":
        shutil.rmtree(git)
        git.mkdir()
    elif way == "a repository that is gone":
        git.rename(tmp_path / "away")
    elif way == "a history that breaks off":
        (git / "shallow").write_text(repository.git("rev-parse", "HEAD"))


WAYS = [
    "a pipe for .gitignore",
    "a pipe for a .gitignore below",
    "an emptied index",
    "no index",
    "half an index",
    "an index of noise",
    "a pipe for the index",
    "a directory for the index",
    "no git",
    "a git that does not answer",
    "a git that fails",
    "a git that is killed",
    "no tree of the last commit",
    "no tree of the commit before",
    "a broken tree",
    "no commit before",
    "no last commit",
    "no objects",
    "a branch that is lost",
    "a HEAD that names no branch",
    "no HEAD",
    "an emptied repository",
    "a history that breaks off",
]


@pytest.mark.parametrize(
    ("way", "looked"),
    # At once, nothing tells that there ever was a repository.
    [("a repository that is gone", True), *((way, looked) for looked in (False, True) for way in WAYS)],
)
def test_nothing_is_verified_that_git_could_not_be_asked(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str, looked: bool
) -> None:
    checker = Checker(repository.root, git_seconds=1.0)
    if looked:
        (before,) = checker.check([asked()])
        assert verdicts(before, "old.md") == {C, U}
        assert verdicts(before, "new.md") == {V}
    fail(way, repository, tmp_path, monkeypatch)
    (result,) = checker.check([asked()])
    assert V not in verdicts(result, "old.md"), result.claims
    if result.git:
        assert {claim.verdict for claim in result.claims} <= {C, U}, result.claims


def replaced(repository: Repository) -> None:
    shutil.rmtree(repository.root / ".git")
    repository.init()


def replaced_by_a_commit(repository: Repository) -> None:
    replaced(repository)
    repository.git("commit", "-q", "--allow-empty", "-m", "x", at=AFTER)


def replaced_by_an_old_commit(repository: Repository) -> None:
    replaced(repository)
    repository.git("commit", "-q", "--allow-empty", "-m", "x", at=BEFORE)


def amended(repository: Repository) -> None:
    repository.git("rm", "-q", "--cached", "old.md")
    repository.git("commit", "-q", "--amend", "--allow-empty", "-m", "x", at=AFTER)
    shutil.rmtree(repository.root / ".git" / "logs")


def begun_anew(repository: Repository) -> None:
    repository.git("rm", "-q", "--cached", "old.md")
    repository.git("update-ref", "-d", "HEAD")
    repository.git("commit", "-q", "--allow-empty", "-m", "x", at=BEFORE)


def begun_without_a_commit(repository: Repository) -> None:
    repository.git("update-ref", "-d", "HEAD")
    shutil.rmtree(repository.root / ".git" / "logs")
    (repository.root / ".git" / "index").unlink()


@pytest.mark.parametrize(
    "way", [replaced, replaced_by_a_commit, replaced_by_an_old_commit, amended, begun_anew, begun_without_a_commit]
)
def test_a_git_that_knows_nothing_of_before_verifies_nothing(tmp_path: Path, way: Callable[[Repository], None]) -> None:
    made = Repository(tmp_path / "workspace", tmp_path / "home")
    made.init()
    made.write("old.md", at=BEFORE)
    made.commit(at=BEFORE)
    time.sleep(0.05)  # the clock of the disk is coarser
    at = time.time()
    time.sleep(0.05)
    made.touch("old.md", AFTER)
    way(made)
    (result,) = Checker(made.root).check([asked()._replace(handed_off_at=at)])
    assert V not in verdicts(result, "old.md"), result.claims


def test_a_lock_hinders_nobody_who_only_reads(repository: Repository) -> None:
    (repository.root / ".git" / "index.lock").touch()
    (result,) = Checker(repository.root).check([asked()])
    assert (result.git, verdicts(result, "old.md"), verdicts(result, "new.md")) == ("", {C, U}, {V})


@pytest.mark.usefixtures("without_root_rights")
@pytest.mark.parametrize("kind", ["pipe", "directory that nobody may enter", "circle"])
def test_nothing_is_verified_that_the_disk_does_not_show(repository: Repository, kind: str) -> None:
    place = repository.root / "shut"
    if kind == "pipe":
        os.mkfifo(place)
    elif kind == "circle":
        place.symlink_to("shut")
    else:
        place.mkdir(0)
    path = "shut/x.md" if kind.startswith("directory") else "shut"
    (result,) = Checker(repository.root).check(
        [request(returned(created=[path], deliverables=[path], evidence=[f"./{path}"]), PACKET)]
    )
    assert V not in {claim.verdict for claim in result.claims if claim.path != "old.md"}, result.claims


NOW = time.time()


def backdated(repository: Repository) -> Request:
    """The handoff is there since a moment ago, and says that it is older than the file."""
    repository.write("a.handoff.json", PACKET)
    os.utime(repository.root / "a.handoff.json", (NOW - 2_000, NOW - 2_000))
    return asked()._replace(handed_off_at=NOW - 2_000, returned_at=NOW)


def returned_before(repository: Repository) -> Request:
    return asked()._replace(handed_off_at=NOW - 2_000, returned_at=NOW - 3_000)


def seen_after_its_return(repository: Repository) -> Request:
    return asked()._replace(handed_off_at=NOW - 2_000, returned_at=NOW - 2_000, handoff_at=NOW)


def checked_out(repository: Repository) -> Request:
    repository.write("a.handoff.json", PACKET)
    repository.commit(at=BEFORE)
    return asked()


def timeless(repository: Repository) -> Request:
    return asked()._replace(handed_off_at=None)


def out_of_reach(repository: Repository) -> Request:
    (repository.root / "a.handoff.json").symlink_to("a.handoff.json")
    return asked()


HANDOFFS: list[Callable[[Repository], Request]] = [
    backdated,
    returned_before,
    seen_after_its_return,
    checked_out,
    timeless,
    out_of_reach,
]


@pytest.mark.parametrize("handoff", HANDOFFS)
@pytest.mark.parametrize("with_git", [False, True], ids=["disk", "git"])
def test_nothing_is_verified_as_made_since_a_handoff_that_nobody_can_date(
    tmp_path: Path, handoff: Callable[[Repository], Request], with_git: bool
) -> None:
    made = Repository(tmp_path / "workspace", tmp_path / "home")
    if with_git or handoff is checked_out:
        made.init()
    for name in ("old.md", "new.md"):
        made.write(name)
        os.utime(made.root / name, (NOW - 1_000, NOW - 1_000))
    (result,) = Checker(made.root).check([handoff(made)])
    found = {claim.verdict for claim in result.claims if claim.kind in ("created", "modified", "must_create")}
    assert found == {U}, result.claims


def test_a_file_written_since_the_handoff_lies_there_is_new(tmp_path: Path) -> None:
    made = Repository(tmp_path / "workspace", tmp_path / "home")
    one = backdated(made)
    for name in ("old.md", "new.md"):
        made.write(name)
        os.utime(made.root / name, (NOW + 1_000, NOW + 1_000))
    (result,) = Checker(made.root).check([one._replace(returned_at=NOW + 2_000)])
    assert {claim.verdict for claim in result.claims} == {V}, result.claims


@pytest.mark.parametrize(
    "bullet",
    [
        "src/old.py: 412 tests passed",
        "`src/old.py`: 412 tests passed",
        "**src/old.py**: 412 tests passed",
        "src/old.py:1: 412 tests passed",
        "[old](src/old.py): 412 tests passed",
        "412 tests passed in `src/old.py`",
    ],
)
def test_what_is_said_of_a_file_is_not_verified_by_the_file(repository: Repository, bullet: str) -> None:
    repository.write("src/old.py", at=BEFORE)
    (result,) = Checker(repository.root).check([request(returned(evidence=[bullet]))])
    assert [claim.verdict for claim in result.claims] == [U], result.claims


@pytest.mark.parametrize("bullet", ["src/old.py", "src/old.py — the parser", "`src/old.py` (read)", "src/old.py:1"])
def test_a_file_that_is_only_described_exists(repository: Repository, bullet: str) -> None:
    repository.write("src/old.py", at=BEFORE)
    (result,) = Checker(repository.root).check([request(returned(evidence=[bullet]))])
    (claim,) = result.claims
    assert (claim.verdict, claim.detail.endswith("; its content was not checked")) == (V, True), claim
