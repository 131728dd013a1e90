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
import shutil
import stat
from collections.abc import Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from agentwatch.evidence.process import Output, TooSlowError, run
from agentwatch.evidence.repository import Repository, find_repository
from agentwatch.kept import looks
from agentwatch.sources.worktrees import NoRepositoryError

if TYPE_CHECKING:
    from agentwatch.kept.answers import Question

SECONDS: Final = 10.0
MAX_BYTES: Final = 32 * 1024 * 1024

_OF_COMMITS: Final = ("diff-index", "diff-tree", "log", "ls-tree", "rev-list")
"""Commands whose answers follow from commits, their objects and the index."""

_SHA256: Final = 64
"""Letters of an object's name."""

_STATUS: Final = ("status", "--porcelain=v1", "-z", "--ignore-submodules=all", "--no-renames", "--no-ahead-behind")
_STAGED: Final = ("diff-index", "--cached", "--raw", "-z", "--no-renames", "--ignore-submodules=all")

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


class GitSlowError(GitFailedError):
    """git did not answer in time: it may the next time."""


class Plumbing(NamedTuple):
    """git on one repository, with its settings: see `plumbing`."""

    repository: Repository
    program: tuple[str, ...]
    """git, and the options that stand for a configuration."""
    environment: dict[str, str]
    """All of it: nothing is inherited, and so nothing that the agent or a shell has set."""
    seconds: float
    workspace: str

    def ask(self, *arguments: str, given: bytes = b"", max_bytes: int = MAX_BYTES) -> Output:
        """Run one command of git; exit code 0, or what it wrote up to `max_bytes`. Raises GitFailedError."""
        if arguments[0] not in _OF_COMMITS:
            looks.spoil("git was asked what cannot be asked again")
        return self._run(*arguments, given=given, max_bytes=max_bytes)

    def status(self, paths: Sequence[str], *, untracked: bool) -> tuple[Output, Output]:
        """Ask how files below these paths of the repository differ from the index, and the index from the last commit.
        No file tells that, so it is what may be asked again. Raises GitFailedError."""
        listed = "--untracked-files=all" if untracked else "--untracked-files=no"
        status = self._run(*_STATUS, listed, "--", *paths, given=b"", max_bytes=MAX_BYTES)
        staged = Output(0, b"", b"", cut=False)
        if self.repository.head is not None:
            staged = self._run(*_STAGED, self.repository.head, "--", *paths, given=b"", max_bytes=MAX_BYTES)
        looks.asked(self.workspace, (untracked, list(paths)), digest_of(status, staged))
        return status, staged

    def _run(self, *arguments: str, given: bytes, max_bytes: int) -> Output:
        try:
            output = run(
                [*self.program, *arguments],
                directory=self.repository.top,
                environment=self.environment,
                seconds=self.seconds,
                max_bytes=max_bytes,
                given=given,
            )
        except TooSlowError:
            looks.spoil("git was too slow")
            raise GitSlowError(f"git did not answer within {self.seconds:g} s") from None
        except OSError as error:
            looks.spoil("git could not be run")
            raise GitFailedError(f"git cannot be run: {os.strerror(error.errno or 0)}") from None
        if output.code != 0 and not output.cut:
            looks.spoil("git has failed")
            lines = output.errors.decode("utf-8", "replace").strip().splitlines()
            raise GitFailedError(f"git cannot read this repository: {lines[0] if lines else output.code}"[:200])
        return output


def plumbing(repository: Repository, workspace: str, *, seconds: float = SECONDS) -> Plumbing:
    """git on a repository; each question may take `seconds`. Raises GitFailedError."""
    # Never a git in the workspace: an agent may have put it there.
    inside = workspace.rstrip("/") + "/"
    entries = (entry for entry in os.environ.get("PATH", os.defpath).split(os.pathsep) if entry.startswith("/"))
    path = os.pathsep.join(entry for entry in entries if not f"{os.path.realpath(entry)}/".startswith(inside))
    program = shutil.which("git", path=path)
    if program is None:
        raise GitFailedError("git is not installed")
    index, shallow = f"{repository.git_directory}/index", f"{repository.common_directory}/shallow"
    if os.path.lexists(index) and not _is_regular(index):
        raise GitFailedError("the index of the git repository is not a regular file")
    if looks.is_noting():
        _note_objects(f"{repository.common_directory}/objects")
    empty = str(_EMPTY / ("sha256" if len(repository.head or "") == _SHA256 else "sha1"))
    environment = {
        "PATH": path,
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
    settings = (word for setting in _settings(repository) for word in ("-c", setting))
    command = (program, "--no-pager", "--no-replace-objects", "--literal-pathspecs", *settings)
    return Plumbing(repository, command, environment, seconds, workspace)


def ask_again(workspace: str, questions: list[Question]) -> list[str]:
    """The digests of what `status` says now, which it was asked before; nothing where it cannot be asked."""
    try:
        repository = find_repository(workspace)
        git = plumbing(repository, workspace)
        return [digest_of(*git.status(paths, untracked=is_untracked)) for is_untracked, paths in questions]
    except NoRepositoryError:
        return []


def digest_of(*outputs: Output) -> str:
    """Equal where the same was said."""
    return sha256(b"".join(b"%d %d %d " % (one.code, one.cut, len(one.text)) + one.text for one in outputs)).hexdigest()


def _note_objects(directory: str) -> None:
    """Look at every directory in which objects lie: whether there are others, or some are gone, shows there."""
    with contextlib.suppress(OSError):
        for name in os.listdir(directory):  # noqa: PTH208
            os.lstat(f"{directory}/{name}")


def _settings(repository: Repository) -> Iterator[str]:
    """All that git is told about how to work."""
    exclude = f"{repository.common_directory}/info/exclude"
    yield from _SETTINGS
    yield from (f"core.{key}={value}" for key, value in repository.settings)
    yield f"core.excludesFile={exclude if _is_regular(exclude) else os.devnull}"


def _is_regular(path: str) -> bool:
    try:
        return stat.S_ISREG(os.lstat(path).st_mode)
    except OSError:
        return False
