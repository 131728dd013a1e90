"""The answers of git about the files of a workspace, without letting it read the repository's own configuration.

git gets an empty git directory that comes with this package, and borrows objects and index by environment variables;
its settings stand in its arguments. So only those who may change agentwatch itself can change what git is told. What
the real configuration names is unknown to it, whenever it is written: no filter, fsmonitor, hook, textconv, external
diff, alias, include, pager, credential helper or transport can run, and a promisor remote is never asked. Nothing is
written anywhere. Files that a filter rewrites (large file storage) are compared as they lie on disk.
"""

from __future__ import annotations

import contextlib
import math
import os
import re
import secrets
import selectors
import signal
import stat
import subprocess
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import IO, Final, NamedTuple, cast

from agentwatch.evidence.disk import look
from agentwatch.shell import find_program, trusted_path
from agentwatch.sources.files.walk import is_candidate
from agentwatch.sources.worktrees import NoRepositoryError, git_directories, worktrees_of
from agentwatch.sources.worktrees import git_text as _text

# Programs

_CHUNK: Final = 256 * 1024
_KILLED_SECONDS: Final = 1.0


class TooSlowError(Exception):
    """The program did not end in time; it was killed with all its children."""


class Output(NamedTuple):
    """The output of a program. `cut`: it wrote more than was wanted and was killed."""

    code: int
    text: bytes
    cut: bool = False

    @property
    def words(self) -> list[str]:
        """The text between its NUL characters."""
        return [word for word in os.fsdecode(self.text).split("\0") if word]


def run(
    arguments: Sequence[str],
    *,
    directory: str,
    seconds: float,
    max_bytes: int,
    environment: Mapping[str, str] | None = None,
) -> Output:
    """Run a program with exactly this environment; None is ours.

    Of its output the first `max_bytes` are kept, and a program that writes more is killed. Raises TooSlowError after
    `seconds`, OSError where it cannot be started.
    """
    end, null, kept = time.monotonic() + seconds, subprocess.DEVNULL, bytearray()
    # A session of its own: whatever it starts is killed with it.
    process = subprocess.Popen(  # noqa: S603  the caller's arguments, no shell
        arguments,
        cwd=directory,
        env=environment,
        stdin=null,
        stdout=subprocess.PIPE,
        stderr=null,
        start_new_session=True,
    )
    try:
        with cast("IO[bytes]", process.stdout) as pipe, selectors.DefaultSelector() as ready:
            ready.register(pipe, selectors.EVENT_READ)
            while len(kept) <= max_bytes and (data := _read(pipe, ready, end)):
                kept += data
        if len(kept) <= max_bytes:
            process.wait(max(end - time.monotonic(), 0.001))
            return Output(process.returncode, bytes(kept))
    except subprocess.TimeoutExpired:
        raise TooSlowError from None
    finally:
        # One that became another user, as sudo does, is out of reach; it is left behind then.
        with contextlib.suppress(ProcessLookupError, PermissionError, subprocess.TimeoutExpired):
            if process.returncode is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait(_KILLED_SECONDS)
    return Output(process.returncode or 0, bytes(kept[:max_bytes]), cut=True)


def _read(pipe: IO[bytes], ready: selectors.BaseSelector, end: float) -> bytes:
    if not ready.select(max(end - time.monotonic(), 0.0)):
        raise TooSlowError
    return os.read(pipe.fileno(), _CHUNK)


# The repository

_OBJECT_NAME: Final = re.compile(r"(?:[0-9a-f]{40}|[0-9a-f]{64})\Z")
_CORE: Final = re.compile(r"(?ims)^\s*\[\s*core\s*\](.*?)(?=^\s*\[|\Z)")
_COMPARING: Final = re.compile(
    r"(?im)^\s*(symlinks|ignorecase|precomposeunicode|autocrlf|eol|trustctime|checkstat)\s*=\s*\"?([a-z0-9]{1,16})\"?"
    r"\s*(?:[#;].*)?$"
)
_REFERENCES: Final = re.compile(r"(?im)^\s*refstorage\s*=\s*(?!\"?files)")

_CONFIGURATION: Final = 1024 * 1024
_PACKED: Final = 64 * 1024 * 1024
_MOST: Final = 20_000  # references that are read


class NotInRepositoryError(NoRepositoryError):
    """No directory from the workspace up is under git: there is nothing to ask, and nothing that failed."""


class Repository(NamedTuple):
    """A work tree and its repository: absolute paths, resolved.

    `prefix` is the workspace below the work tree, "" or ending in `/`. `head` is the commit checked out, None before
    the first one; `tips` are the objects that it and all branches and tags name.
    """

    top: str
    git_directory: str
    common_directory: str
    prefix: str
    head: str | None
    tips: tuple[str, ...]
    settings: tuple[tuple[str, str], ...]


def find_repository(workspace: str) -> Repository:
    """The repository that the workspace is in, itself or one of the directories above. Raises NoRepositoryError."""
    for top in map(str, (Path(workspace), *Path(workspace).parents)):
        try:
            git, common = git_directories(top)
        except FileNotFoundError:
            if all(os.path.exists(f"{top}/{name}") for name in ("HEAD", "objects", "refs")):
                raise NoRepositoryError("a bare git repository: it has no files to compare with") from None
            continue
        prefix = "" if top == workspace else os.path.relpath(workspace, top) + "/"
        configuration, names = _text(common, "config", _CONFIGURATION) or "", _references(common)
        if _REFERENCES.search(configuration):
            raise NoRepositoryError("git keeps its references in a format (reftable) that agentwatch cannot read")
        text = (_text(git, "HEAD") or "").strip()
        if not _OBJECT_NAME.match(text) and not text.startswith("ref: refs/"):
            raise NoRepositoryError("the git repository has no HEAD that can be read")
        head = text if _OBJECT_NAME.match(text) else names.get(text.removeprefix("ref: "))
        had_commits = names or any(map(os.path.lexists, (f"{git}/logs/HEAD", f"{common}/packed-refs")))
        if (head is None and had_commits) or (head is not None and not _OBJECT_NAME.match(head)):
            raise NoRepositoryError("the HEAD of the git repository names no commit, though there are some")
        tips = tuple(sorted(filter(_OBJECT_NAME.match, {*names.values(), head or ""})))
        settings = [one for section in _CORE.findall(configuration) for one in _COMPARING.findall(section)]
        return Repository(top, git, common, prefix, head, tips, tuple(settings))
    raise NotInRepositoryError("not in a git repository")


def _references(common: str) -> dict[str, str]:
    """The commit of each branch and tag, as it stands in its file."""
    packed = re.findall(r"^(\w+) (refs/.+)$", _text(common, "packed-refs", _PACKED) or "", re.MULTILINE)
    found = {name: value for value, name in packed}
    for directory, _, files in os.walk(f"{common}/refs"):
        place = os.path.relpath(directory, common)
        if len(found) > _MOST:
            break
        found |= {f"{place}/{name}": (_text(directory, name) or "").strip() for name in files[:_MOST]}
    return found


# git

SECONDS: Final = 10.0
MAX_BYTES: Final = 32 * 1024 * 1024

_SHA256: Final = 64

_EMPTY: Final = Path(__file__).parent / "empty"
"""Git directories without a commit, one for each kind of object name."""

_SETTINGS: Final = (
    "core.bare=false",
    "core.fsmonitor=false",
    "core.filemode=false",
    "core.hooksPath=/dev/null",
    "core.attributesFile=/dev/null",
    "core.untrackedCache=false",
    "core.pager=cat",
    "core.logAllRefUpdates=false",
    "core.splitIndex=false",
    "protocol.allow=never",
    "diff.ignoreSubmodules=all",
    # It would write the index.
    "diff.autoRefreshIndex=false",
    "submodule.recurse=false",
    "gc.auto=0",
    "maintenance.auto=false",
)


class GitFailedError(NoRepositoryError):
    """git could not answer, and why, in words."""


class Plumbing(NamedTuple):
    """git on one repository, with its settings: see `plumbing`."""

    repository: Repository
    program: tuple[str, ...]
    """git, and the options that stand for a configuration."""
    environment: dict[str, str]
    """All of it: nothing is inherited, and so nothing that the agent or a shell has set."""
    seconds: float

    def ask(self, *arguments: str, max_bytes: int = MAX_BYTES, cuts: bool = False) -> Output:
        """Run one command of git to its end, or `cuts` what it writes at `max_bytes`. Raises GitFailedError."""
        command, top = [*self.program, *arguments], self.repository.top
        try:
            output = run(
                command, directory=top, environment=self.environment, seconds=self.seconds, max_bytes=max_bytes
            )
        except TooSlowError:
            raise GitFailedError(f"git did not answer within {self.seconds:g} s") from None
        except OSError as error:
            raise GitFailedError(f"git cannot be run: {os.strerror(error.errno or 0)}") from None
        if output.cut and not cuts:
            raise GitFailedError("git lists too many changes")
        if output.code != 0 and not output.cut:
            raise GitFailedError(f"git cannot read this repository: it ended with {output.code}")
        return output


def plumbing(repository: Repository, *, seconds: float = SECONDS) -> Plumbing:
    """git on a repository; each question may take `seconds`. Raises GitFailedError."""
    program = find_program("git")
    if program is None:
        raise GitFailedError("git is not installed")
    index, shallow = f"{repository.git_directory}/index", f"{repository.common_directory}/shallow"
    if os.path.lexists(index) and not _is_regular(index):
        raise GitFailedError("the index of the git repository is not a regular file")
    empty = str(_EMPTY / ("sha256" if len(repository.head or "") == _SHA256 else "sha1"))
    environment = {
        "PATH": trusted_path(),
        "HOME": empty,
        "XDG_CONFIG_HOME": empty,
        "LC_ALL": "C",
        "GIT_DIR": empty,
        "GIT_WORK_TREE": repository.top,
        "GIT_INDEX_FILE": index,
        "GIT_OBJECT_DIRECTORY": f"{repository.common_directory}/objects",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_ALLOW_PROTOCOL": "",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_PAGER": "cat",
    }
    if _is_regular(shallow):
        environment["GIT_SHALLOW_FILE"] = shallow
    exclude = f"{repository.common_directory}/info/exclude"
    settings = [*_SETTINGS, *(f"core.{key}={value}" for key, value in repository.settings)]
    settings.append(f"core.excludesFile={exclude if _is_regular(exclude) else os.devnull}")
    options = [word for setting in settings for word in ("-c", setting)]
    command = (program, "--no-pager", "--no-replace-objects", "--literal-pathspecs", *options)
    return Plumbing(repository, command, environment, seconds)


def _is_regular(path: str) -> bool:
    try:
        return stat.S_ISREG(os.lstat(path).st_mode)
    except OSError:
        return False


# Answers

SLACK: Final = 0.05  # seconds by which two clocks may differ: a file's time comes from a coarser one than a program's
_ASKED: Final = 200  # paths that git is given at once: of more, it looks at everything
COPY_SECONDS: Final = 120.0  # the times of the files of a copy would have all of it ask for somebody
_TIPS: Final = 5_000
_FAN_OUT: Final = 2  # letters of a directory of stored objects
_LATEST: Final = 2**31 - 1  # the last second that older versions of git understand
_MODE: Final = "X"
_OPTIONS: Final = ("-z", "--no-renames", "--ignore-submodules=all")


class GitFacts(NamedTuple):
    """The answer about one path. None where git cannot say, or `tracked_before` and `committed` without a handoff.

    `known`: in the index or the last commit. `tracked_before`: git had it at the handoff. `committed`: a commit has
    changed it since, None where only its mode. `changed`: it differs from the last commit; None where the index has
    lost it. `ignored`: git was told not to look.
    """

    known: bool
    tracked_before: bool | None
    committed: bool | None
    changed: bool | None
    ignored: bool = False


class GitView(NamedTuple):
    """One round of answers. Paths are relative to the workspace, and `tracked` are those of the last commit.

    `touched` has by path the (time, letter of git, or X for its mode) of the commits since the oldest handoff, the
    newest first; it tells of the handoffs since `known_since`.
    """

    git: Plumbing
    tracked: frozenset[str]
    touched: dict[str, list[tuple[float, str]]]
    known_since: float
    changed: frozenset[str]
    deleted: frozenset[str]
    untracked: frozenset[str]

    def facts(self, path: str, handed_off_at: float | None) -> GitFacts:
        """The facts of a file, with the time of the handoff."""
        now, before, committed = path in self.tracked, None, None
        times = self.touched.get(path, [])
        # A commit of the handoff's second may be from before or after it.
        if handed_off_at is not None and self.known_since <= handed_off_at:
            since = [letter for at, letter in times if at > handed_off_at]
            if not any(handed_off_at - 1 < at <= handed_off_at for at, _ in times):
                before = since[-1] != "A" if since else now
                committed = None if since and set(since) == {_MODE} else bool(since)
        is_lost = path in self.deleted and path in self.untracked
        changed = None if is_lost else path in self.changed or path in self.deleted
        known = now or changed is not False
        return GitFacts(known, before, committed, changed, not known and path not in self.untracked)

    def changed_since(self, time: float) -> set[str]:
        """The paths that may have been changed since a time: those that differ, and those of later commits."""
        later = {path for path, times in self.touched.items() if times[0][0] > time - 1}
        return later | self.changed | self.deleted | self.untracked


def ask_git(workspace: str, handoffs: Iterable[float], *, seconds: float = SECONDS) -> GitView:
    """Ask git once for everything, given the times of the handoffs. Raises NoRepositoryError with the reason.

    `workspace` is absolute and resolved; each process may take `seconds`.
    """
    repository = find_repository(workspace)
    git, head = plumbing(repository, seconds=seconds), repository.head
    # What was made, or put there, after a handoff knows nothing of what was before: a time can be set back, but not
    # when an inode was changed.
    with os.scandir(repository.common_directory) as entries:
        began = min((os.lstat(entry.path).st_ctime for entry in entries), default=math.inf)
    times = [time for time in handoffs if math.isfinite(time) and began <= time]
    known_since, touched = began, dict[str, list[tuple[float, str]]]()
    if head is None:
        # Whatever was stored may have been a commit once.
        with os.scandir(f"{repository.common_directory}/objects") as objects:
            known_since = math.inf if any(len(entry.name) == _FAN_OUT for entry in objects) else began
        return GitView(git, frozenset(), touched, known_since, *_differing(git))
    tracked = frozenset(_tree(git, head))
    if times:
        # A history that breaks off says nothing of the past; what is there now can still be told.
        known_since = math.inf
        with contextlib.suppress(GitFailedError):
            first = commit_before(git, head, min(times))
            oldest = math.inf
            for at, _, word, path in _log(git, head if first is None else f"{first}..{head}"):
                oldest = min(oldest, at)
                touched.setdefault(path, []).append((at, _letter(word)))
            # A first commit since the handoff may have taken the place of others.
            known_since = began if first is not None else max(began, oldest)
    return GitView(git, tracked, touched, known_since, *_differing(git))


def commit_before(git: Plumbing, head: str, time: float) -> str | None:
    """The commit that was checked out, as far as history tells, at this time; None where there was none."""
    age = min(max(math.floor(time) - 1, 0), _LATEST)
    return git.ask("rev-list", "-1", f"--min-age={age}", head).text.decode().strip() or None


def unchanged(git: Plumbing, head: str, names: list[str]) -> set[str]:
    """Those of the files that hold what the last commit has. git looks into no others, if they are not too many: where
    all were copied, it has to read each that it looks at."""
    wanted = [git.repository.prefix + name for name in names] if len(names) <= _ASKED else []
    changed, deleted, _ = _differing(git, *wanted)
    return set(names).intersection(_tree(git, head)) - changed - deleted


def _tree(git: Plumbing, head: str) -> Iterator[str]:
    """The paths of a commit. Only trees are read: the files themselves may be missing in a partial clone."""
    prefix = git.repository.prefix
    names = git.ask("ls-tree", "-r", "-z", "--full-tree", "--name-only", head, "--", prefix or ".").words
    return (name.removeprefix(prefix) for name in names)


def _differing(git: Plumbing, *paths: str) -> tuple[frozenset[str], frozenset[str], frozenset[str]]:
    """The files that are (changed, deleted, untracked), of the workspace or of these paths in the repository."""
    prefix, head = git.repository.prefix, git.repository.head
    places = ("--", *(paths or [prefix or "."]))
    changed, deleted, untracked = set[str](), set[str](), set[str]()
    status = ("status", "--porcelain=v1", "-z", "--ignore-submodules=all", "--no-renames", "--untracked-files=all")
    for entry in git.ask(*status, *places).words:
        # How it stands to a commit, which git sees none of, and to the index.
        how, path = entry[:2], entry[3:].removeprefix(prefix)
        if how == "??":
            untracked.add(path)
        elif how[1:] == "D":
            deleted.add(path)
        elif how[1:] != " " or head is None:
            changed.add(path)
    if head is not None:
        words = iter(git.ask("diff-index", "--cached", "--raw", *_OPTIONS, head, *places).words)
        for word in words:
            letter, path = _letter(word), next(words, "").removeprefix(prefix)
            if letter == "D":
                deleted.add(path)
            elif path not in deleted and letter not in ("U", _MODE):
                changed.add(path)
    return frozenset(changed), frozenset(deleted), frozenset(untracked)


def _letter(word: str) -> str:
    """The letter of `:mode mode blob blob letter`; of a file of which only the mode differs, another one."""
    if word[:1] != ":":
        raise GitFailedError("git's answer cannot be understood")
    old_mode, mode, old, new, letter = word[1:].split(" ")
    return _MODE if old == new and old_mode[:3] == mode[:3] else letter


def _log(git: Plumbing, *asked: str, cuts: bool = False) -> Iterator[tuple[float, str, str, str]]:
    """(time, short name, what was done as git has it, path) of the commits that a log lists, the newest first."""
    # No file can be called so.
    mark, prefix, at, commit = f"\1{secrets.token_hex(8)} ", git.repository.prefix, 0.0, ""
    options = ("--raw", "--no-abbrev", "--no-ext-diff", f"--format={mark}%ct %H", *_OPTIONS)
    output = git.ask("log", *options, *asked, "--", prefix or ".", cuts=cuts)
    # The last word of what was cut may be half a name.
    words = iter(output.words[:-1] if output.cut else output.words)
    for word in words:
        if word.startswith(mark):
            stamp, commit = word.removeprefix(mark).split(" ")
            at = float(stamp)
        else:
            yield at, commit[:10], word.lstrip("\n"), next(words, "").removeprefix(prefix)


def elsewhere(view: GitView, missing: Collection[str], since: float) -> dict[str, str]:
    """By path, the work tree, or the commit since a time (epoch seconds), that has a missing file, in words. Whoever
    committed the work to a branch and went back, or removed it later, has not lied."""
    found: dict[str, str] = {}
    try:
        repository = view.git.repository
        for tree in worktrees_of(repository.top):
            there = f"{tree}/{repository.prefix}".rstrip("/")
            found |= {path: f"the work tree {tree} has it" for path in missing if look(there, path).is_there}
        named, age = repository.tips[:_TIPS], f"--max-age={max(math.floor(since), 0)}"
        asked = ("--full-history", "--diff-filter=AMT", "--ignore-missing", age, *named)
        for _, commit, _, name in _log(view.git, *asked) if named else ():
            for path in {name, *map(str, PurePosixPath(name).parents)}.intersection(missing):
                found.setdefault(path, f"commit {commit} has it")
    except NoRepositoryError as error:
        return dict.fromkeys(missing, f"git could not be asked whether a commit has it ({error})") | found
    return found


class Commits:
    """When what the files of a workspace hold was committed, asked once for all of them. It may take the
    `COPY_SECONDS`: a thread is to call it."""

    def __init__(self, workspace: Path) -> None:
        self._workspace = os.path.realpath(workspace)
        self._times: dict[str, float] | None = None
        self._asked_at = 0.0

    def time_of(self, name: str, written: float) -> float | None:
        """When what a file holds was first committed, under whatever name, in seconds since the epoch.

        `name` is relative to the workspace, `written` when the file was last written. None where git cannot say, or
        the file holds something else by now.
        """
        if self._times is None:
            self._asked_at = time.time()
            self._times = self._ask()
        return self._times.get(name) if written <= self._asked_at else None

    def _ask(self) -> dict[str, float]:
        try:
            git = plumbing(find_repository(self._workspace), seconds=COPY_SECONDS)
            if (head := git.repository.head) is None:
                return {}
            # The newest commit comes first. Renamed and archived work is as old as its content.
            blobs, first = dict[str, str](), dict[str, float]()
            for at, _, word, name in _log(git, head, cuts=True):
                blob = word.split(" ")[3]
                first[blob] = at
                if name and is_candidate(name):
                    blobs.setdefault(name, blob)
            return {name: first[blobs[name]] for name in unchanged(git, head, list(blobs))}
        except NoRepositoryError:
            return {}
