"""Asks git about the files of a workspace, without letting git read the repository's own configuration.

git gets an empty git directory that comes with this package. Environment variables point git to the repository's
objects and index. Arguments give the settings. So git runs no program that the repository names, asks no remote, and
writes nothing. Files that a filter rewrites (large file storage) are compared as they are on disk.
"""

import contextlib
import math
import os
import re
import signal
import stat
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path, PurePosixPath
from threading import Timer
from typing import IO, NamedTuple, cast

from agentwatch.evidence.disk import FileKind, place_of, read_facts
from agentwatch.shell import find_program, trusted_path
from agentwatch.sources.files.read import FileRefusedError, is_candidate, read_file
from agentwatch.sources.worktrees import NoRepositoryError, find_git_directories, find_other_worktrees
from agentwatch.sources.worktrees import read_git_file as _text

SECONDS = 10.0
COPY_SECONDS = 30.0  # longer than SECONDS: without git's answer, all files of a fresh clone look new
MAX_BYTES = 32 * 1024 * 1024
SLACK = 0.05  # seconds by which a file's time may differ from a program's clock

_PACKED = 64 * 1024 * 1024
_CONFIGURATION = 1024 * 1024
_MOST = 20_000  # maximal number of references (branches and tags) that are read
_TIPS = 5_000
_FAN_OUT = 2  # letters in the name of a directory below `objects`, such as `a7`
_SHA256 = 64
_LATEST = 2**31 - 1  # the last second that older versions of git understand
_OBJECT_NAME = re.compile(r"(?:[0-9a-f]{40}|[0-9a-f]{64})\Z")
# The only settings that are taken from the repository: how files are compared.
_COMPARING = re.compile(
    r"(?im)^\s*(symlinks|ignorecase|precomposeunicode|autocrlf|eol|trustctime|checkstat)\s*=\s*\"?([a-z0-9]{1,16})\"?"
    r"\s*(?:[#;].*)?$"
)
_EMPTY = Path(__file__).parent / "empty"  # git directories without a commit, one for each kind of object name
_SETTINGS = (
    "core.bare=false core.fsmonitor=false core.filemode=false core.hooksPath=/dev/null core.attributesFile=/dev/null"
    " core.untrackedCache=false core.pager=cat core.logAllRefUpdates=false core.splitIndex=false protocol.allow=never"
    # Do not let `git diff` write the index.
    " diff.ignoreSubmodules=all diff.autoRefreshIndex=false submodule.recurse=false gc.auto=0 maintenance.auto=false"
)
_ENVIRONMENT = {
    "LC_ALL": "C",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_ALLOW_PROTOCOL": "",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_PAGER": "cat",
}


class NotInRepositoryError(NoRepositoryError):
    """Neither the workspace nor a directory above it is under git."""


class GitFailedError(NoRepositoryError):
    """git could not answer. The message is the reason."""


class Git(NamedTuple):
    """Runs git on one work tree, whose path is `top`. `prefix` is the path of the workspace in the work tree: "", or
    ending in `/`. `head` is the commit that is checked out, or None. `tips` are the object names of `head`, of all
    branches and of all tags. git gets only the given `environment`."""

    top: str
    common_directory: str
    prefix: str
    head: str | None
    tips: list[str]
    command: tuple[str, ...]
    environment: dict[str, str]
    seconds: float

    def run_command(self, *arguments: str, max_bytes: int = MAX_BYTES, cuts: bool = False) -> bytes:
        """Run one git command and return its output. Raise GitFailedError if git fails or takes longer than `seconds`.
        If the output is longer than `max_bytes`, cut it off if `cuts`, else raise GitFailedError."""
        end, null = time.monotonic() + self.seconds, subprocess.DEVNULL
        try:
            # git gets a session of its own, so that it can be killed with all processes that it starts.
            process = subprocess.Popen(  # noqa: S603  no shell
                [*self.command, *arguments],
                cwd=self.top,
                env=self.environment,
                stdin=null,
                stdout=subprocess.PIPE,
                stderr=null,
                start_new_session=True,
            )
        except OSError as error:
            raise GitFailedError(f"git cannot be run: {os.strerror(error.errno or 0)}") from None

        def kill() -> None:
            # A process that has changed its user (with sudo) cannot be killed.
            with contextlib.suppress(ProcessLookupError, PermissionError):
                if process.returncode is None:
                    os.killpg(process.pid, signal.SIGKILL)

        timer = Timer(self.seconds, kill)
        timer.start()
        try:
            with cast("IO[bytes]", process.stdout) as pipe:
                text = pipe.read(max_bytes + 1)
            is_cut = len(text) > max_bytes
            code = 0 if is_cut else process.wait()
        finally:
            kill()
            process.wait()
            timer.cancel()
        if time.monotonic() >= end:
            raise GitFailedError(f"git did not answer within {self.seconds:g} s")
        if code != 0:
            raise GitFailedError(f"git cannot read this repository: it ended with {code}")
        if is_cut and not cuts:
            raise GitFailedError("git lists too many changes")
        return text[:max_bytes]


def open_git(workspace: str, *, seconds: float = SECONDS) -> Git:
    """Return a `Git` for the repository at or above the workspace. Each git command may take `seconds`. Raise
    NoRepositoryError."""
    for top in map(str, (Path(workspace), *Path(workspace).parents)):
        with contextlib.suppress(FileNotFoundError):
            git, common = find_git_directories(top)
            break
    else:
        raise NotInRepositoryError("not in a git repository")
    head, tips = _read_head(git, common)
    index, shallow, exclude = f"{git}/index", f"{common}/shallow", f"{common}/info/exclude"
    if (program := find_program("git")) is None:
        raise GitFailedError("git is not installed")
    if os.path.lexists(index) and not _is_regular(index):
        raise GitFailedError("the index of the git repository is not a regular file")
    for place in {top, workspace}:
        # git would wait forever for input from a named pipe.
        if any(Path(place, name).is_fifo() for name in (".gitignore", ".gitattributes")):
            raise GitFailedError(f"a named pipe stands for what git reads in {place}")
    empty = str(_EMPTY / ("sha256" if len(head or "") == _SHA256 else "sha1"))
    environment = _ENVIRONMENT | {
        "PATH": trusted_path(),
        "HOME": empty,
        "XDG_CONFIG_HOME": empty,
        "GIT_DIR": empty,
        "GIT_WORK_TREE": top,
        "GIT_INDEX_FILE": index,
        "GIT_OBJECT_DIRECTORY": f"{common}/objects",
    }
    if _is_regular(shallow):
        environment["GIT_SHALLOW_FILE"] = shallow
    own = _COMPARING.findall(_text(common, "config", _CONFIGURATION) or "")
    settings = [f"core.{key}={value}" for key, value in own] + _SETTINGS.split()
    settings.append(f"core.excludesFile={exclude if _is_regular(exclude) else os.devnull}")
    options = [word for setting in settings for word in ("-c", setting)]
    command = (program, "--no-pager", "--no-replace-objects", "--literal-pathspecs", *options)
    prefix = "" if top == workspace else os.path.relpath(workspace, top) + "/"
    return Git(top, common, prefix, head, tips, command, environment, seconds)


def _read_head(git: str, common: str) -> tuple[str | None, list[str]]:
    """Return the commit that is checked out, and the object names of this commit, all branches and all tags."""
    packed = re.findall(r"^(\w+) (refs/.+)$", _text(common, "packed-refs", _PACKED) or "", re.MULTILINE)
    names = {name: value for value, name in packed}
    for directory, _, files in os.walk(f"{common}/refs"):
        place = os.path.relpath(directory, common)
        if len(names) > _MOST:
            break
        names |= {f"{place}/{name}": (_text(directory, name) or "").strip() for name in files[:_MOST]}
    text = (_text(git, "HEAD") or "").strip()
    if not _OBJECT_NAME.match(text) and not text.startswith("ref: refs/"):
        raise NoRepositoryError("the git repository has no HEAD that can be read")
    head = text if _OBJECT_NAME.match(text) else names.get(text.removeprefix("ref: "))
    had_commits = names or any(map(os.path.lexists, (f"{git}/logs/HEAD", f"{common}/packed-refs")))
    if (head is None and had_commits) or (head is not None and not _OBJECT_NAME.match(head)):
        raise NoRepositoryError("the HEAD of the git repository names no commit, though there are some")
    return head, sorted(filter(_OBJECT_NAME.match, {*names.values(), head or ""}))


def _is_regular(path: str) -> bool:
    try:
        return stat.S_ISREG(os.lstat(path).st_mode)
    except OSError:
        return False


# Answers


class GitFacts(NamedTuple):
    """Facts that git knows about one path. A field is None if git cannot say. `tracked_before`: git had the file at the
    time of the handoff. `committed`: a later commit changed the file. `changed`: the file differs from the last commit.
    `untracked`: the file is neither tracked nor ignored."""

    tracked_before: bool | None
    committed: bool | None
    changed: bool | None
    untracked: bool


class GitView(NamedTuple):
    """The state of a repository, read once. Paths are relative to the workspace. `tracked` are the paths of the last
    commit. `touched` has the commits of each path since the oldest handoff, newest first. Each commit is a time and
    git's letter for the change. After `known_since`, no commit is missing. A file that the index has lost is both
    `changed` and `untracked`."""

    git: Git
    tracked: set[str]
    touched: dict[str, list[tuple[float, str]]]
    known_since: float
    changed: set[str]
    untracked: set[str]

    def facts(self, path: str, handed_off_at: float | None) -> GitFacts:
        """Return git's facts about a file, for a handoff at this time."""
        before, committed, is_untracked = None, None, path in self.untracked
        times = self.touched.get(path, [])
        # A commit in the same second as the handoff may have come before or after the handoff.
        if handed_off_at is not None and self.known_since <= handed_off_at:
            since = [letter for at, letter in times if at > handed_off_at]
            if not any(handed_off_at - 1 < at <= handed_off_at for at, _ in times):
                before, committed = since[-1] != "A" if since else path in self.tracked, bool(since)
        changed = path in self.changed
        return GitFacts(before, committed, None if changed and is_untracked else changed, is_untracked)

    def changed_since(self, time: float) -> set[str]:
        """Return the paths that may have changed since a time. Include all paths that differ from the last commit."""
        later = {path for path, times in self.touched.items() if times[0][0] > time - 1}
        return later | self.changed | self.untracked


def read_git(workspace: str, handoffs: Iterable[float], *, seconds: float = SECONDS) -> GitView:
    """Return what git knows about a workspace, for handoffs at these times. The workspace's path must be absolute and
    resolved. Each git process may take `seconds`. Raise NoRepositoryError with the reason."""
    git = open_git(workspace, seconds=seconds)
    # A repository that was made after a handoff does not know the state before the handoff. The oldest change of an
    # inode tells when the repository was made, because this time cannot be set back.
    with os.scandir(git.common_directory) as entries:
        began = min((os.lstat(entry.path).st_ctime for entry in entries), default=math.inf)
    known_since, touched, differing = began, dict[str, list[tuple[float, str]]](), _list_differing(git)
    if git.head is None:
        # If the repository has objects, it may have had commits that are lost now.
        with os.scandir(f"{git.common_directory}/objects") as objects:
            known_since = math.inf if any(len(entry.name) == _FAN_OUT for entry in objects) else began
        return GitView(git, set(), touched, known_since, *differing)
    if times := [time for time in handoffs if began <= time]:
        # If the history cannot be read, only the current state is known.
        known_since = math.inf
        with contextlib.suppress(GitFailedError):
            first, oldest = commit_before(git, git.head, min(times)), math.inf
            for change in _list_log(git, git.head if first is None else f"{first}..{git.head}"):
                oldest = min(oldest, change.at)
                touched.setdefault(change.path, []).append((change.at, change.letter))
            # If the first commit came after the handoff, it may have replaced an earlier history.
            known_since = began if first is not None else max(began, oldest)
    return GitView(git, _list_tracked(git, git.head), touched, known_since, *differing)


def commit_before(git: Git, head: str, time: float) -> str | None:
    """Return the last commit before a time in the history of `head`, or None."""
    age = min(max(math.floor(time) - 1, 0), _LATEST)
    return git.run_command("rev-list", "-1", f"--min-age={age}", head).decode().strip() or None


def _split_output(output: bytes) -> list[str]:
    # Drop the part after the last NUL: it is empty, or a name that was cut off.
    return [word for word in os.fsdecode(output).split("\0")[:-1] if word]


def _list_tracked(git: Git, head: str) -> set[str]:
    """Return the paths of a commit. Only trees are read, because a partial clone may lack the files."""
    output = git.run_command("ls-tree", "-r", "-z", "--full-tree", "--name-only", head, "--", git.prefix or ".")
    return {name.removeprefix(git.prefix) for name in _split_output(output)}


def _list_differing(git: Git) -> tuple[set[str], set[str]]:
    """Return the changed or deleted files, and the untracked files."""
    changed, untracked = set[str](), set[str]()
    status = ("status", "--porcelain=v1", "-z", "--ignore-submodules=all", "--no-renames", "--untracked-files=all")
    for entry in _split_output(git.run_command(*status, "--", git.prefix or ".")):
        # Use only the second letter, which compares a file with the index. The first letter compares it with the last
        # commit, which the empty repository does not have.
        how, path = entry[:2], entry[3:].removeprefix(git.prefix)
        if how == "??":
            untracked.add(path)
        elif how[1:] != " " or git.head is None:
            changed.add(path)
    if git.head is not None:
        staged = _list_changes(git, "diff-index", "--cached", git.head)
        changed |= {one.path for one in staged if one.letter != "U"}
    return changed, untracked


class _Change(NamedTuple):
    """A change of a file. `letter` is git's name for the kind of change, and `blob` the object name of the new content.
    If the change is not committed, its time is 0 and `commit` is ""."""

    at: float
    commit: str
    letter: str
    blob: str
    path: str


def _list_changes(git: Git, *question: str, cuts: bool = False) -> Iterator[_Change]:
    """Run a git command that lists changes, and yield them. Skip changes that affect only a file's permissions."""
    options = ("--raw", "--no-abbrev", "-z", "--no-renames", "--ignore-submodules=all", "--no-ext-diff")
    words = iter(_split_output(git.run_command(*question, *options, "--", git.prefix or ".", cuts=cuts)))
    at, commit = 0.0, ""
    try:
        for word in words:
            if not word.lstrip("\n").startswith(":"):
                stamp, commit = word.split(" ")
                at = float(stamp)
                continue
            old_mode, mode, old, blob, letter = word.lstrip("\n:").split(" ")
            path = next(words, "").removeprefix(git.prefix)
            if old != blob or old_mode[:2] != mode[:2]:
                yield _Change(at, commit[:10], letter, blob, path)
    except ValueError:
        raise GitFailedError("git's answer cannot be understood") from None


def _list_log(git: Git, *asked: str, cuts: bool = False) -> Iterator[_Change]:
    return _list_changes(git, "log", "--format=%ct %H", *asked, cuts=cuts)


def place_finder(git: Git, since: float) -> Callable[[str], str]:
    """Return a function that looks for a missing file in other work trees and in commits since a time. The function
    returns words that say where the file is, or "". A claim about a file on another branch is not false."""
    trees = find_other_worktrees(git.top)

    @cache
    def read_commits() -> tuple[dict[str, str], str]:
        found, age = dict[str, str](), f"--max-age={max(math.floor(since), 0)}"
        options = ("--full-history", "--diff-filter=AMT", "--ignore-missing", age)
        try:
            for change in _list_log(git, *options, *git.tips[:_TIPS]) if git.tips else ():
                for path in (change.path, *map(str, PurePosixPath(change.path).parents)):
                    found.setdefault(path, f"commit {change.commit} has it")
        except GitFailedError as error:
            return found, f"git could not be asked whether a commit has it ({error})"
        return found, ""

    def describe_place(path: str) -> str:
        there = (tree for tree in trees if read_facts(f"{tree}/{git.prefix}".rstrip("/"), path).is_there)
        if tree := next(there, None):
            return f"the work tree {tree} has it"
        found, problem = read_commits()
        return found.get(path, problem)

    return describe_place


def commit_times(workspace: Path) -> Callable[[str, float], float | None]:
    """Return a function that takes a file's name and the time when the file was written. The function returns the time
    when the file's content was first committed, or None. Its first call asks git about all files for up to
    `COPY_SECONDS`, so call it in a thread."""

    @cache
    def read_times() -> tuple[float, dict[str, float]]:
        asked_at = time.time()
        with contextlib.suppress(NoRepositoryError):
            git = open_git(os.path.realpath(workspace), seconds=COPY_SECONDS)
            return asked_at, _first_commit_times(git, git.head) if git.head is not None else {}
        return asked_at, {}

    def first_commit_time(name: str, written: float) -> float | None:
        asked_at, times = read_times()
        return times.get(name) if written <= asked_at else None

    return first_commit_time


def _first_commit_times(git: Git, head: str) -> dict[str, float]:
    """Map each unchanged handoff and return to the time when its content was first committed, under any name."""
    blobs, first = dict[str, str](), dict[str, float]()
    # The newest commit comes first, so the oldest time of each content stays.
    for change in _list_log(git, head, cuts=True):
        first[change.blob] = change.at
        if is_candidate(change.path):
            blobs.setdefault(change.path, change.blob)
    held = _list_tracked(git, head).intersection(blobs) - _list_differing(git)[0]
    return {name: first[blobs[name]] for name in held}


# For the screen: the text of a claimed file, and its changes since the handoff

MAX_SHOWN = 256 * 1024  # characters of a text that are returned
_LARGEST = 8 * 1024 * 1024
_SNIFFED = 8_000  # A file with a NUL among its first characters is binary, as in git.
_DIFF = ("--no-textconv", "--no-ext-diff", "--no-color", "--no-renames", "--ignore-submodules=all")


class Inspection(NamedTuple):
    """An untrusted text to show, not cleaned. If there is no text, `problem` is the reason."""

    text: str = ""
    truncated: bool = False
    problem: str = ""


def file_text(workspace: Path, path: str) -> Inspection:
    """Return the text of a claimed file. Blocks while reading. Never raises OSError."""
    root = workspace.resolve()
    place = place_of(path, str(root))
    if place.relative is None:
        return Inspection(problem=f"This path is not shown: {place.fault}.")
    try:
        text = read_file(root, place.relative, _LARGEST).text
    except FileNotFoundError:
        return Inspection(problem="There is no such file now.")
    except FileRefusedError as error:
        # Show only the reason: the error's message also has advice for the writer of the file.
        return Inspection(problem=f"{error.reason}.")
    if "\0" in text[:_SNIFFED]:
        return Inspection(problem="This is a binary file: there is no text to show.")
    return _shorten(text)


def difference(workspace: Path, path: str, handed_off_at: float | None) -> Inspection:
    """Return the `git diff` of a claimed file since the last commit before the handoff. If the time of the handoff is
    unknown, return the difference from the last commit. git starts no other program."""
    root = str(workspace.resolve())
    place = place_of(path, root)
    if place.relative is None:
        return Inspection(problem=f"This path is not shown: {place.fault}.")
    # Refuse symbolic links: git would follow a link in the middle of the path.
    facts = read_facts(root, place.relative)
    if facts.real or not (facts.is_there or facts.kind is FileKind.MISSING):
        return Inspection(problem="This is not a regular file of the workspace: there is no difference to show.")
    try:
        git = open_git(root)
        base = git.head
        if base is not None and handed_off_at is not None:
            base = commit_before(git, base, handed_off_at)
        if base is None:
            return Inspection(problem="git has no commit to compare with: everything is new.")
        file = f"{git.prefix}{place.relative}"
        output = git.run_command("diff", *_DIFF, base, "--", file, max_bytes=MAX_SHOWN * 4, cuts=True)
    except NoRepositoryError as error:
        return Inspection(problem=f"git cannot show the difference: {error}.")
    # If a file was only touched, the output has only a heading.
    shown = _shorten(output.decode("utf-8", "replace") if output.count(b"\n") > 1 else "")
    if not shown.text:
        return Inspection(problem="git sees no difference since the handoff, or does not track this file.")
    return shown


def _shorten(text: str) -> Inspection:
    return Inspection(text[:MAX_SHOWN], truncated=len(text) > MAX_SHOWN)
