"""git and the disk asked about hostile, broken and missing files: no program runs, and nothing is verified unasked."""

import os
import shutil
import stat
import time
from collections.abc import Callable
from functools import partial
from hashlib import sha1
from pathlib import Path

import pytest

from agentwatch.delegation.events import Verdict
from agentwatch.evidence.checker import Checker, CheckRequest, CheckResult
from agentwatch.evidence.git import Git, GitFailedError, difference, open_git
from tests.unit.claude_code.building import returned
from tests.unit.evidence.repository import (
    AFTER,
    BEFORE,
    HANDED_OFF,
    Repository,
    check,
    moved,
    only,
    packet,
    program,
    request,
)


@pytest.fixture
def made(tmp_path):
    """Return a workspace that is not under git."""
    return Repository(tmp_path / "workspace", tmp_path / "home")


@pytest.fixture
def repository(made):
    made.init()
    for name in ("tracked.md", "data.bin", "locked.md"):
        made.write(name, "one\n", at=BEFORE)
    made.commit(at=BEFORE)
    return made


def hostile(repository: Repository, canary: Path):
    """Set up every known way in which the content of a repository makes git run a program."""
    script = program(repository.home / "program", f'echo "$0 $*" >> {canary}\ncat')
    hooks = repository.root / "hooks"
    hooks.mkdir()
    for name in ("post-index-change", "fsmonitor-watchman", "reference-transaction", "pre-auto-gc", "post-checkout"):
        (hooks / name).symlink_to(script)
        (repository.root / ".git" / "hooks").mkdir(exist_ok=True)
        (repository.root / ".git" / "hooks" / name).symlink_to(script)
    included = repository.root / "included.config"
    included.write_text(f'[filter "late"]\n\tclean = {script}\n\trequired = true\n')
    (repository.root / ".gitattributes").write_text("*.md filter=evil diff=evil\n*.bin filter=pro\n*.txt filter=late\n")
    (repository.root / ".git" / "info").mkdir(exist_ok=True)
    (repository.root / ".git" / "info" / "attributes").write_text("* filter=evil diff=evil merge=evil\n")
    config = f"""
[core]
	fsmonitor = {script}
	hooksPath = {hooks}
	pager = {script}
	editor = {script}
	sshCommand = {script}
	gitProxy = {script}
	askPass = {script}
	alternateRefsCommand = {script}
	attributesFile = {repository.root}/.gitattributes
	worktree = /
	bare = true
	untrackedCache = true
[include]
	path = {included}
[alias]
	status = !{script}
	cat-file = !{script}
	diff = !{script}
	rev-list = !{script}
	diff-tree = !{script}
[diff]
	external = {script}
	noprefix = true
[diff "evil"]
	command = {script}
	textconv = {script}
	cachetextconv = true
[filter "evil"]
	clean = {script}
	smudge = {script}
	required = true
[filter "pro"]
	process = {script}
	required = true
[merge "evil"]
	driver = {script}
[gpg]
	program = {script}
[log]
	showSignature = true
[pager]
	status = {script}
	diff = {script}
[interactive]
	diffFilter = {script}
[credential]
	helper = {script}
[extensions]
	partialClone = origin
[remote "origin"]
	url = ext::{script}
	promisor = true
	uploadpack = {script}
	partialclonefilter = blob:none
[protocol]
	allow = always
[protocol "ext"]
	allow = always
[submodule "sub"]
	update = !{script}
	ignore = none
[uploadpack]
	packObjectsHook = {script}
[includeIf "gitdir:**"]
	path = {included}
[extensions]
	worktreeConfig = true
"""
    (repository.root / ".git" / "config.worktree").write_text(f"[core]\n\tfsmonitor = {script}\n\tworktree = /\n")
    (repository.root / ".git" / "objects" / "info").mkdir(exist_ok=True)
    (repository.root / ".git" / "objects" / "info" / "alternates").write_text(f"{repository.home}\n")
    with (repository.root / ".git" / "config").open("a") as file:
        file.write(config)


def snapshot(root: Path) -> dict[str, tuple[int, int, int]]:
    found = {str(path): path.lstat() for path in root.rglob("*")}
    return {
        path: (one.st_mtime_ns, one.st_ino, 0 if stat.S_ISDIR(one.st_mode) else one.st_size)
        for path, one in found.items()
    }


def test_a_hostile_configuration_runs_and_writes_nothing(repository, tmp_path, monkeypatch):
    canary = tmp_path / "canary"
    hostile(repository, canary)
    nested = Repository(repository.root / "nested", repository.home)
    nested.init()
    nested.write("x.md")
    with (nested.root / ".git" / "config").open("a") as file:
        file.write(f"[core]\n\tfsmonitor = {repository.home}/program\n")
    # With the same size and another time, git has to read the content, and this would run filters.
    repository.write("tracked.md", "two\n", at=AFTER)
    repository.write("data.bin", "two\n", at=AFTER)
    repository.write("late.txt", at=AFTER)
    # git would fetch a missing object from the promisor.
    name = sha1(b"blob 4\0one\n", usedforsecurity=False).hexdigest()
    (repository.root / ".git" / "objects" / name[:2] / name[2:]).unlink()
    for variable in ("GIT_EXTERNAL_DIFF", "GIT_PAGER", "PAGER", "GIT_SSH_COMMAND", "GIT_ASKPASS", "GIT_EDITOR"):
        monkeypatch.setenv(variable, f"{repository.home}/program")
    monkeypatch.setenv("GIT_TRACE", f"{tmp_path}/trace")
    before = snapshot(repository.root)

    claims = ["tracked.md", "data.bin", "locked.md", "nested/x.md", "late.txt"]
    result = check(repository.root, returned(modified=claims, created=["tracked.md"]))
    difference(repository.root, "tracked.md", HANDED_OFF)
    difference(repository.root, "data.bin", None)

    assert not canary.exists(), canary.read_text()
    assert not (tmp_path / "trace").exists()
    assert snapshot(repository.root) == before
    told = {(claim.kind, claim.path): claim.verdict for claim in result.claims}
    assert told["modified", "tracked.md"] is Verdict.VERIFIED
    assert told["modified", "locked.md"] is Verdict.CONTRADICTED
    assert told["created", "tracked.md"] is Verdict.CONTRADICTED


def test_an_ordinary_git_would_run_the_programs(repository, tmp_path):
    """An ordinary `git status` in such a repository does run programs, so the test above can fail."""
    canary = tmp_path / "canary"
    script = program(repository.home / "program", f"echo ran >> {canary}\ncat")
    (repository.root / ".gitattributes").write_text("*.md filter=evil\n")
    repository.git("config", "filter.evil.clean", str(script))
    repository.write("tracked.md", "two\n", at=AFTER)
    repository.git("status", "--porcelain=v2")
    assert canary.exists()


def test_showing_a_difference_does_not_change_the_index(repository):
    """git itself would note in the index that a file with a new time is unchanged."""
    repository.touch("tracked.md", AFTER)
    before = snapshot(repository.root)
    shown = difference(repository.root, "tracked.md", None)
    assert (shown.text, snapshot(repository.root)) == ("", before)
    assert shown.problem.startswith("git sees no difference")


def test_a_git_that_an_agent_put_into_the_workspace_is_not_run(repository, tmp_path, monkeypatch):
    canary = tmp_path / "canary"
    planted = program(repository.root / "bin" / "git", f"touch {canary}")
    (tmp_path / "way").symlink_to(planted.parent)
    monkeypatch.setenv("PATH", f"{planted.parent}:{tmp_path}/way:.:bin::{os.environ['PATH']}")
    monkeypatch.chdir(planted.parent)
    result = check(repository.root, returned(created=["tracked.md"]))
    assert (only(result).verdict, canary.exists()) == (Verdict.CONTRADICTED, False)


def point_elsewhere(made: Repository):
    other = Repository(made.root.parent / "other", made.home)
    other.init()
    (made.root / ".git").write_text(f"gitdir: {other.root}/.git\n")


def reftable(made: Repository):
    """Make a repository whose references have a format that is not read here."""
    made.init()
    git = made.root / ".git"
    (git / "HEAD").write_text("ref: refs/heads/.invalid\n")
    shutil.rmtree(git / "refs")
    (git / "refs").mkdir()
    (git / "refs" / "heads").write_text("this repository uses the reftable format\n")


UNUSABLE: dict[str, tuple[Callable[[Repository], object], str]] = {
    "no program": (Repository.init, "git is not installed"),
    "file that points elsewhere": (point_elsewhere, "it is not followed"),
    "file of noise": (lambda of: (of.root / ".git").write_text("gitdir:\n"), "it is not followed"),
    "pipe": (lambda of: os.mkfifo(of.root / ".git"), "it is not followed"),
    "link": (lambda of: (of.root / ".git").symlink_to("/"), "it is not followed"),
    "empty directory": (lambda of: (of.root / ".git").mkdir(), "no HEAD"),
    "pipe for .gitignore": (lambda of: (of.init(), os.mkfifo(of.root / ".gitignore")), "a named pipe stands"),
    "reftable": (reftable, "names no commit, though there are some"),
    "none": (lambda of: None, "not in a git repository"),
}


@pytest.mark.parametrize("kind", UNUSABLE)
def test_without_a_usable_repository_the_disk_still_answers(made, monkeypatch, kind):
    make, words = UNUSABLE[kind]
    make(made)
    if kind == "no program":
        monkeypatch.setenv("PATH", str(made.home))
    made.write("x.md", at=AFTER)
    made.write("y.md", at=BEFORE)
    result = check(made.root, returned(created=["x.md", "y.md", "z.md"]))
    assert words in result.claims[0].detail
    # If no repository was made, git is not needed; if there is an unusable one, its answer is missing.
    new = Verdict.VERIFIED if kind == "none" else Verdict.UNVERIFIABLE
    assert [claim.verdict for claim in result.claims] == [new, Verdict.CONTRADICTED, Verdict.CONTRADICTED]


def test_a_repository_without_a_commit_knows_nothing_of_before(made):
    made.init()
    made.write("x.md", at=AFTER)
    result = check(made.root, returned(created=["x.md"]))
    assert only(result).verdict is Verdict.VERIFIED


@pytest.mark.parametrize("kind", ["sha256", "sha1"])
def test_packed_references_are_read(made, kind):
    made.init(f"--object-format={kind}")
    made.write("x.md", at=BEFORE)
    made.commit(at=BEFORE)
    made.git("pack-refs", "--all")
    result = check(made.root, returned(created=["x.md"]))
    assert only(result).detail.startswith("claimed created but tracked before")


def test_a_git_that_does_not_answer_is_killed_with_its_children(repository, tmp_path, monkeypatch):
    pids = tmp_path / "pids"
    slow = program(tmp_path / "bin" / "git", f"sleep 600 &\necho $! >> {pids}\necho $$ >> {pids}\nwait")
    repository.write("x.md", at=AFTER)
    monkeypatch.setenv("PATH", f"{slow.parent}:{os.environ['PATH']}")
    (result,) = Checker(repository.root, git_seconds=0.3).check([request(returned(created=["x.md"]))])
    assert "git did not answer within 0.3 s" in only(result).detail
    deadline = time.monotonic() + 10
    for pid in pids.read_text().split():
        while _runs(int(pid)) and time.monotonic() < deadline:
            os.sched_yield()
        assert not _runs(int(pid))


def _runs(pid: int) -> bool:
    try:
        return ") Z " not in Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False


def other(repository: Repository, *command: str, seconds: float = 10.0) -> Git:
    """Return a git whose command is another program."""
    git = open_git(str(repository.root), seconds=seconds)
    return git._replace(command=command, environment={"PATH": os.environ["PATH"]})


def test_a_program_is_cut_reads_no_terminal_and_is_killed(repository):
    much = other(repository, "yes")
    assert len(much.run_command(max_bytes=1_000, cuts=True)) == 1_000
    with pytest.raises(GitFailedError, match="too many"):
        much.run_command(max_bytes=1_000)
    assert other(repository, "cat").run_command() == b""
    with pytest.raises(GitFailedError, match="did not answer"):
        other(repository, "sh", "-c", "exec >&- 2>&-; sleep 600", seconds=0.3).run_command()


def test_no_descriptor_and_no_temporary_directory_is_left_behind(repository, tmp_path, monkeypatch):
    room = tmp_path / "room"
    room.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(room))
    checker = Checker(repository.root)
    asked = [request(returned(created=["x.md", "a/b/c.md"], modified=["tracked.md"]))]
    checker.check(asked)
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(3):
        checker.check(asked)
    assert (len(list(Path("/proc/self/fd").iterdir())), list(room.iterdir())) == (before, [])


V, C, U = Verdict.VERIFIED, Verdict.CONTRADICTED, Verdict.UNVERIFIABLE

PACKET = packet(deliverables=[{"path": "old.md", "description": "d", "must_create": True}])


@pytest.fixture(scope="session")
def original(tmp_path_factory):
    """Return the directory that `touched` copies."""
    place = tmp_path_factory.mktemp("touched")
    made = Repository(place / "workspace", place / "home")
    made.init()
    made.write("old.md", at=BEFORE)
    made.write("later.md", at=BEFORE)
    made.commit(at=BEFORE)
    made.write("later.md", "other\n", at=AFTER)
    made.commit(at=AFTER)
    made.touch("old.md", AFTER)
    made.write("new.md", at=AFTER)
    return made.root


@pytest.fixture
def touched(made, original):
    """Return a workspace with a file from before the handoff, unchanged but with a new time."""
    shutil.copytree(original, made.root, dirs_exist_ok=True)
    return made


def asked() -> CheckRequest:
    paths = ["old.md", "new.md"]
    return request(returned(created=paths, modified=paths, deliverables=paths), PACKET)


def checked(of: Repository, one: CheckRequest) -> CheckResult:
    return Checker(of.root).check([one])[0]


def verdicts(result: CheckResult, path: str) -> set[Verdict]:
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


def object_of(of: Repository, name: str) -> Path:
    digest = of.git("rev-parse", name).strip()
    return of.root / ".git" / "objects" / digest[:2] / digest[2:]


def index(of: Repository) -> Path:
    return of.root / ".git" / "index"


def ignored_below(of: Repository):
    of.write("sub/x.md")
    os.mkfifo(of.root / "sub" / ".gitignore")


def shallow(of: Repository):
    (of.root / ".git" / "shallow").write_text(of.git("rev-parse", "HEAD"))


def lose_the_branch(of: Repository):
    (of.root / ".git" / of.git("symbolic-ref", "HEAD").strip()).unlink()


GONE = "a repository that is gone"
"""Unless the checker has looked before, it cannot know that there was a repository."""
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


def fail(way: str, touched: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    if way in WAYS:
        WAYS[way](touched)
    elif (text := PROGRAMS[way]) is None:
        monkeypatch.setenv("PATH", str(tmp_path))
    else:
        monkeypatch.setenv("PATH", f"{program(tmp_path / 'bin' / 'git', text).parent}:{os.environ['PATH']}")


@pytest.mark.parametrize(
    ("way", "looked"),
    # Without an earlier look, the checker cannot know that there was a repository.
    [(way, looked) for looked in (False, True) for way in WAYS | PROGRAMS if looked or way != GONE],
)
def test_nothing_is_verified_that_git_could_not_be_asked(touched, tmp_path, monkeypatch, way, looked):
    checker = Checker(touched.root, git_seconds=1.0)
    if looked:
        (before,) = checker.check([asked()])
        assert verdicts(before, "old.md") == {C, U}
        assert verdicts(before, "new.md") == {V}
    fail(way, touched, tmp_path, monkeypatch)
    (result,) = checker.check([asked()])
    assert V not in verdicts(result, "old.md"), result.claims


def replaced(of: Repository, at: float | None = None):
    shutil.rmtree(of.root / ".git")
    of.init()
    if at is not None:
        of.git("commit", "-q", "--allow-empty", "-m", "x", at=at)


def amended(of: Repository):
    of.git("rm", "-q", "--cached", "old.md")
    of.git("commit", "-q", "--amend", "--allow-empty", "-m", "x", at=AFTER)
    shutil.rmtree(of.root / ".git" / "logs")


def begun_anew(of: Repository):
    of.git("rm", "-q", "--cached", "old.md")
    of.git("update-ref", "-d", "HEAD")
    of.git("commit", "-q", "--allow-empty", "-m", "x", at=BEFORE)


def begun_without_a_commit(of: Repository):
    of.git("update-ref", "-d", "HEAD")
    shutil.rmtree(of.root / ".git" / "logs")
    (of.root / ".git" / "index").unlink()


OTHERWISE = [partial(replaced, at=at) for at in (None, BEFORE, AFTER)]


@pytest.mark.parametrize("way", [*OTHERWISE, amended, begun_anew, begun_without_a_commit])
def test_a_git_that_knows_nothing_of_before_verifies_nothing(made, way):
    made.init()
    made.write("old.md", at=BEFORE)
    made.commit(at=BEFORE)
    time.sleep(0.05)  # the clock of the disk is coarser
    at = time.time()
    time.sleep(0.05)
    made.touch("old.md", AFTER)
    way(made)
    result = checked(made, moved(asked(), at))
    assert V not in verdicts(result, "old.md"), result.claims


def test_a_lock_hinders_nobody_who_only_reads(touched):
    (touched.root / ".git" / "index.lock").touch()
    result = checked(touched, asked())
    assert (verdicts(result, "old.md"), verdicts(result, "new.md")) == ({C, U}, {V})


@pytest.mark.usefixtures("without_root_rights")
@pytest.mark.parametrize("kind", ["pipe", "directory that nobody may enter", "circle"])
def test_nothing_is_verified_that_the_disk_does_not_show(touched, kind):
    place = touched.root / "shut"
    if kind == "pipe":
        os.mkfifo(place)
    elif kind == "circle":
        place.symlink_to("shut")
    else:
        place.mkdir(0)
    path = "shut/x.md" if kind.startswith("directory") else "shut"
    result = checked(touched, request(returned(created=[path], deliverables=[path], evidence=[f"./{path}"]), PACKET))
    assert V not in {claim.verdict for claim in result.claims if claim.path != "old.md"}, result.claims


NOW = time.time()


def backdated(of: Repository) -> CheckRequest:
    """Write a handoff just now that claims by its time to be older than the file."""
    of.write("a.handoff.json", PACKET)
    os.utime(of.root / "a.handoff.json", (NOW - 2_000, NOW - 2_000))
    return moved(asked(), NOW - 2_000, NOW)


def checked_out(of: Repository) -> CheckRequest:
    of.write("a.handoff.json", PACKET)
    of.commit(at=BEFORE)
    return asked()


def out_of_reach(of: Repository) -> CheckRequest:
    (of.root / "a.handoff.json").symlink_to("a.handoff.json")
    return asked()


UNDATED: dict[str, Callable[[Repository], CheckRequest]] = {
    "backdated": backdated,
    "returned before": lambda _: moved(asked(), NOW - 2_000, NOW - 3_000),
    "seen after its return": lambda _: moved(asked(), NOW - 2_000, NOW - 2_000, NOW),
    "checked out": checked_out,
    "timeless": lambda _: moved(asked(), None),
    "out of reach": out_of_reach,
}


@pytest.mark.parametrize("handoff", UNDATED)
@pytest.mark.parametrize("with_git", [False, True], ids=["disk", "git"])
def test_nothing_is_verified_as_made_since_an_undated_handoff(made, handoff, with_git):
    if with_git or handoff == "checked out":
        made.init()
    for name in ("old.md", "new.md"):
        made.write(name)
        os.utime(made.root / name, (NOW - 1_000, NOW - 1_000))
    result = checked(made, UNDATED[handoff](made))
    found = {claim.verdict for claim in result.claims if claim.kind in ("created", "modified", "must_create")}
    assert found == {U}, result.claims


def test_a_file_written_since_the_handoff_lies_there_is_new(made):
    one = backdated(made)
    for name in ("old.md", "new.md"):
        made.write(name)
        os.utime(made.root / name, (NOW + 1_000, NOW + 1_000))
    result = checked(made, moved(one, NOW - 2_000, NOW + 2_000))
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
def test_words_about_a_file_are_not_verified_by_the_file(touched, bullet):
    touched.write("src/old.py", at=BEFORE)
    result = check(touched.root, returned(evidence=[bullet]))
    assert [claim.verdict for claim in result.claims] == [U], result.claims
