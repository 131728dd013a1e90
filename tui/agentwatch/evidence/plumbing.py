"""Runs git's plumbing on a repository without letting git read the repository's own configuration.

git gets an empty git directory that comes with this package, and borrows objects and index by environment variables;
its settings stand in its arguments. So only those who may change agentwatch itself can change what git is told. What
the real configuration names is unknown to it, whenever it is written: no filter, fsmonitor, hook, textconv, external
diff, alias, include, pager, credential helper or transport can run, and a promisor remote is never asked. Nothing is
written anywhere.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from agentwatch.evidence.process import Output, TooSlowError, run
from agentwatch.evidence.repository import Repository
from agentwatch.programs import find_program, trusted_path
from agentwatch.sources.worktrees import NoRepositoryError

SECONDS: Final = 10.0
MAX_BYTES: Final = 32 * 1024 * 1024

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

    def ask(self, *arguments: str, given: bytes = b"", max_bytes: int = MAX_BYTES) -> Output:
        """Run one command of git; exit code 0, or what it wrote up to `max_bytes`. Raises GitFailedError."""
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
            raise GitSlowError(f"git did not answer within {self.seconds:g} s") from None
        except OSError as error:
            raise GitFailedError(f"git cannot be run: {os.strerror(error.errno or 0)}") from None
        if output.code != 0 and not output.cut:
            lines = output.errors.decode("utf-8", "replace").strip().splitlines()
            raise GitFailedError(f"git cannot read this repository: {lines[0] if lines else output.code}"[:200])
        return output

    def status(self, paths: Sequence[str], *, untracked: bool) -> tuple[Output, Output]:
        """Ask how files below these paths of the repository differ from the index, and the index from the last commit.

        Raises GitFailedError.
        """
        listed = "--untracked-files=all" if untracked else "--untracked-files=no"
        status = self.ask(*_STATUS, listed, "--", *paths)
        if self.repository.head is None:
            return status, Output(0, b"", b"", cut=False)
        return status, self.ask(*_STAGED, self.repository.head, "--", *paths)


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
    settings = (word for setting in _settings(repository) for word in ("-c", setting))
    command = (program, "--no-pager", "--no-replace-objects", "--literal-pathspecs", *settings)
    return Plumbing(repository, command, environment, seconds)


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
