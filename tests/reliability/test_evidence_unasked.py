"""What cannot be asked is unverifiable: every way for git, the disk or the handoff to fail, and an old file."""

import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from agentwatch.delegation.events import Verdict
from agentwatch.evidence.checker import Checker, Request, Result
from tests.goldens.verdicts.claude import returned
from tests.unit.evidence.repository import AFTER, BEFORE, Repository, moved, packet, program, request

V, C, U = Verdict.VERIFIED, Verdict.CONTRADICTED, Verdict.UNVERIFIABLE

PACKET = packet(deliverables=[{"path": "old.md", "description": "d", "must_create": True}])


@pytest.fixture
def repository(tmp_path):
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


def refill(path: Path, data: bytes = b""):
    path.chmod(0o644)
    path.write_bytes(data)


def replace_by_a_pipe(path: Path):
    path.unlink(missing_ok=True)
    os.mkfifo(path)


def replace_by_a_directory(path: Path):
    path.rename(path.with_name("away"))
    path.mkdir()


def object_of(repository: Repository, name: str) -> Path:
    digest = repository.git("rev-parse", name).strip()
    return repository.root / ".git" / "objects" / digest[:2] / digest[2:]


def index(repository: Repository) -> Path:
    return repository.root / ".git" / "index"


def ignored_below(repository: Repository):
    repository.write("sub/x.md")
    os.mkfifo(repository.root / "sub" / ".gitignore")


def shallow(repository: Repository):
    (repository.root / ".git" / "shallow").write_text(repository.git("rev-parse", "HEAD"))


def lose_the_branch(repository: Repository):
    (repository.root / ".git" / repository.git("symbolic-ref", "HEAD").strip()).unlink()


GONE = "a repository that is gone"
"""Without a look before, nothing tells that there ever was one."""
WAYS: dict[str, Callable[[Repository], object]] = {
    "a pipe for .gitignore": lambda of: os.mkfifo(of.root / ".gitignore"),
    "a pipe for a .gitignore below": ignored_below,
    "an emptied index": lambda of: refill(index(of)),
    "no index": lambda of: index(of).unlink(),
    "half an index": lambda of: refill(index(of), (data := index(of).read_bytes())[: len(data) // 2]),
    "an index of noise": lambda of: refill(index(of), b"DIRC" + b"\xff" * 100),
    "a pipe for the index": lambda of: replace_by_a_pipe(index(of)),
    "a directory for the index": lambda of: replace_by_a_directory(index(of)),
    "no tree of the last commit": lambda of: object_of(of, "HEAD^{tree}").unlink(),
    "no tree of the commit before": lambda of: object_of(of, "HEAD~1^{tree}").unlink(),
    "a broken tree": lambda of: refill(object_of(of, "HEAD~1^{tree}"), b"noise"),
    "no commit before": lambda of: object_of(of, "HEAD~1").unlink(),
    "no last commit": lambda of: object_of(of, "HEAD").unlink(),
    "no objects": lambda of: shutil.rmtree(of.root / ".git" / "objects"),
    "a branch that is lost": lose_the_branch,
    "a HEAD that names no branch": lambda of: (of.root / ".git" / "HEAD").write_text("ref: refs/heads/nothing\n"),
    "no HEAD": lambda of: (of.root / ".git" / "HEAD").unlink(),
    "an emptied repository": lambda of: replace_by_a_directory(of.root / ".git"),
    GONE: lambda of: (of.root / ".git").rename(of.root.parent / "away"),
    "a history that breaks off": shallow,
}
PROGRAMS = {
    "no git": None,
    "a git that does not answer": "exec sleep 600",
    "a git that fails": "exit 1",
    "a git that is killed": "kill -9 $$",
}


def fail(way: str, repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    if way in WAYS:
        WAYS[way](repository)
    elif (text := PROGRAMS[way]) is None:
        monkeypatch.setenv("PATH", str(tmp_path))
    else:
        monkeypatch.setenv("PATH", f"{program(tmp_path / 'bin' / 'git', text).parent}:{os.environ['PATH']}")


@pytest.mark.parametrize(
    ("way", "looked"),
    # At once, nothing tells that there ever was a repository.
    [(way, looked) for looked in (False, True) for way in WAYS | PROGRAMS if looked or way != GONE],
)
def test_nothing_is_verified_that_git_could_not_be_asked(repository, tmp_path, monkeypatch, way, looked):
    checker = Checker(repository.root, git_seconds=1.0)
    if looked:
        (before,) = checker.check([asked()])
        assert verdicts(before, "old.md") == {C, U}
        assert verdicts(before, "new.md") == {V}
    fail(way, repository, tmp_path, monkeypatch)
    (result,) = checker.check([asked()])
    assert V not in verdicts(result, "old.md"), result.claims


def replaced(repository: Repository):
    shutil.rmtree(repository.root / ".git")
    repository.init()


def replaced_by_a_commit(repository: Repository):
    replaced(repository)
    repository.git("commit", "-q", "--allow-empty", "-m", "x", at=AFTER)


def replaced_by_an_old_commit(repository: Repository):
    replaced(repository)
    repository.git("commit", "-q", "--allow-empty", "-m", "x", at=BEFORE)


def amended(repository: Repository):
    repository.git("rm", "-q", "--cached", "old.md")
    repository.git("commit", "-q", "--amend", "--allow-empty", "-m", "x", at=AFTER)
    shutil.rmtree(repository.root / ".git" / "logs")


def begun_anew(repository: Repository):
    repository.git("rm", "-q", "--cached", "old.md")
    repository.git("update-ref", "-d", "HEAD")
    repository.git("commit", "-q", "--allow-empty", "-m", "x", at=BEFORE)


def begun_without_a_commit(repository: Repository):
    repository.git("update-ref", "-d", "HEAD")
    shutil.rmtree(repository.root / ".git" / "logs")
    (repository.root / ".git" / "index").unlink()


@pytest.mark.parametrize(
    "way", [replaced, replaced_by_a_commit, replaced_by_an_old_commit, amended, begun_anew, begun_without_a_commit]
)
def test_a_git_that_knows_nothing_of_before_verifies_nothing(tmp_path, way):
    made = Repository(tmp_path / "workspace", tmp_path / "home")
    made.init()
    made.write("old.md", at=BEFORE)
    made.commit(at=BEFORE)
    time.sleep(0.05)  # the clock of the disk is coarser
    at = time.time()
    time.sleep(0.05)
    made.touch("old.md", AFTER)
    way(made)
    (result,) = Checker(made.root).check([moved(asked(), at)])
    assert V not in verdicts(result, "old.md"), result.claims


def test_a_lock_hinders_nobody_who_only_reads(repository):
    (repository.root / ".git" / "index.lock").touch()
    (result,) = Checker(repository.root).check([asked()])
    assert (verdicts(result, "old.md"), verdicts(result, "new.md")) == ({C, U}, {V})


@pytest.mark.usefixtures("without_root_rights")
@pytest.mark.parametrize("kind", ["pipe", "directory that nobody may enter", "circle"])
def test_nothing_is_verified_that_the_disk_does_not_show(repository, kind):
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
    return moved(asked(), NOW - 2_000, NOW)


def returned_before(repository: Repository) -> Request:
    return moved(asked(), NOW - 2_000, NOW - 3_000)


def seen_after_its_return(repository: Repository) -> Request:
    return moved(asked(), NOW - 2_000, NOW - 2_000, NOW)


def checked_out(repository: Repository) -> Request:
    repository.write("a.handoff.json", PACKET)
    repository.commit(at=BEFORE)
    return asked()


def timeless(repository: Repository) -> Request:
    return moved(asked(), None)


def out_of_reach(repository: Repository) -> Request:
    (repository.root / "a.handoff.json").symlink_to("a.handoff.json")
    return asked()


@pytest.mark.parametrize(
    "handoff", [backdated, returned_before, seen_after_its_return, checked_out, timeless, out_of_reach]
)
@pytest.mark.parametrize("with_git", [False, True], ids=["disk", "git"])
def test_nothing_is_verified_as_made_since_an_undated_handoff(tmp_path, handoff, with_git):
    made = Repository(tmp_path / "workspace", tmp_path / "home")
    if with_git or handoff is checked_out:
        made.init()
    for name in ("old.md", "new.md"):
        made.write(name)
        os.utime(made.root / name, (NOW - 1_000, NOW - 1_000))
    (result,) = Checker(made.root).check([handoff(made)])
    found = {claim.verdict for claim in result.claims if claim.kind in ("created", "modified", "must_create")}
    assert found == {U}, result.claims


def test_a_file_written_since_the_handoff_lies_there_is_new(tmp_path):
    made = Repository(tmp_path / "workspace", tmp_path / "home")
    one = backdated(made)
    for name in ("old.md", "new.md"):
        made.write(name)
        os.utime(made.root / name, (NOW + 1_000, NOW + 1_000))
    (result,) = Checker(made.root).check([moved(one, NOW - 2_000, NOW + 2_000)])
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
def test_what_is_said_of_a_file_is_not_verified_by_the_file(repository, bullet):
    repository.write("src/old.py", at=BEFORE)
    (result,) = Checker(repository.root).check([request(returned(evidence=[bullet]))])
    assert [claim.verdict for claim in result.claims] == [U], result.claims
