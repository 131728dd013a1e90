"""Runs git's plumbing on a repository without letting git read the repository's own configuration.

git gets an empty git directory that comes with this package, and borrows objects and index by environment variables;
its settings stand in its arguments. So only those who may change agentwatch itself can change what git is told. What
the real configuration names is unknown to it, whenever it is written: no filter, fsmonitor, hook, textconv, external
diff, alias, include, pager, credential helper or transport can run, and a promisor remote is never asked. Nothing is
written anywhere.
"""

from __future__ import annotations

import contextlib
import os
import re
import selectors
import signal
import stat
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Final, NamedTuple, cast

from agentwatch.shell import find_program, trusted_path
from agentwatch.sources.worktrees import NoRepositoryError, git_directories
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
