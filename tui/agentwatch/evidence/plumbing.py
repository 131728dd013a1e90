"""Runs git's plumbing on a repository without letting git read the repository's own configuration.

git gets a directory of ours as its git directory, with our configuration, and borrows objects and index by
environment variables. What the real configuration names is therefore unknown to it, whenever it is written: no filter,
fsmonitor, hook, textconv, external diff, alias, include, pager, credential helper or transport can run, and a promisor
remote is never asked. Nothing is written into the repository.
"""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from types import TracebackType
from typing import Final, Self

from agentwatch.evidence.process import Output, TooSlowError, run
from agentwatch.evidence.repository import NoRepositoryError, Repository

SECONDS: Final = 10.0
MAX_BYTES: Final = 32 * 1024 * 1024

_CONFIGURATION: Final = """\
[core]
\tbare = false
\tfsmonitor = false
\tfilemode = false
\thooksPath = /dev/null
\tattributesFile = /dev/null
\tuntrackedCache = false
\tpager = cat
\tlogAllRefUpdates = false
\tsplitIndex = false
[protocol]
\tallow = never
[diff]
\tignoreSubmodules = all
[submodule]
\trecurse = false
[gc]
\tauto = 0
[maintenance]
\tauto = false
"""


class GitFailedError(NoRepositoryError):
    """git could not answer; `reason` says why, in words."""


def git_program(workspace: str) -> str | None:
    """The git to run, None where there is none. Never one in the workspace: an agent may have put it there."""
    return shutil.which("git", path=_search_path(workspace))


def _search_path(workspace: str) -> str:
    """The directories to look for programs in: absolute ones outside the workspace."""
    inside = workspace.rstrip("/") + "/"
    entries = os.environ.get("PATH", os.defpath).split(os.pathsep)
    kept = [
        entry for entry in entries if entry.startswith("/") and not (os.path.realpath(entry) + "/").startswith(inside)
    ]
    return os.pathsep.join(kept)


class Plumbing:
    """git on one repository, for one round of questions. Use it as a context manager."""

    def __init__(
        self, repository: Repository, workspace: str, *, seconds: float = SECONDS, program: str | None = None
    ) -> None:
        self.repository = repository
        self._workspace = workspace
        self._seconds = seconds
        self._program = program
        self._directory: tempfile.TemporaryDirectory[str] | None = None

    def __enter__(self) -> Self:
        self._program = self._program or git_program(self._workspace)
        if self._program is None:
            raise GitFailedError("git is not installed")
        try:
            # Left behind by a kill, it holds nothing but a configuration.
            self._directory = tempfile.TemporaryDirectory(prefix="agentwatch-", ignore_cleanup_errors=True)
            self._prepare(self._directory.name)
        except OSError as error:
            self._leave()
            raise GitFailedError(f"no temporary directory can be made: {os.strerror(error.errno or 0)}") from None
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._leave()

    def _leave(self) -> None:
        if self._directory is not None:
            self._directory.cleanup()
            self._directory = None

    def _prepare(self, directory: str) -> None:
        repository = self.repository
        for name in ("refs", "objects"):
            os.mkdir(f"{directory}/{name}", 0o700)  # noqa: PTH102
        head = repository.head or "ref: refs/heads/unborn"
        sha256 = len(repository.head or "") == 64
        lines = [_CONFIGURATION, "[core]\n", f"\trepositoryformatversion = {int(sha256)}\n"]
        lines += [f"\t{key} = {value}\n" for key, value in repository.settings]
        exclude = f"{repository.common_directory}/info/exclude"
        if _is_regular(exclude) and not any(letter in exclude for letter in '"\\\n'):
            lines.append(f'\texcludesFile = "{exclude}"\n')
        if sha256:
            lines.append("[extensions]\n\tobjectFormat = sha256\n")
        for name, text in (("HEAD", head + "\n"), ("config", "".join(lines))):
            with open(f"{directory}/{name}", "w", encoding="utf-8", errors="surrogateescape") as file:  # noqa: PTH123
                file.write(text)

    def ask(self, *arguments: str, given: bytes = b"", max_bytes: int = MAX_BYTES) -> Output:
        """Run one command of git; exit code 0, or what it wrote up to `max_bytes`. Raises GitFailedError."""
        if self._directory is None or self._program is None:
            raise GitFailedError("git was not started")
        try:
            output = run(
                [self._program, "--no-pager", "--no-replace-objects", "--literal-pathspecs", *arguments],
                directory=self.repository.top,
                environment=self._environment(self._directory.name),
                seconds=self._seconds,
                max_bytes=max_bytes,
                given=given,
            )
        except TooSlowError:
            raise GitFailedError(f"git did not answer within {self._seconds:g} s") from None
        except OSError as error:
            raise GitFailedError(f"git cannot be run: {os.strerror(error.errno or 0)}") from None
        if output.code != 0 and not output.cut:
            lines = output.errors.decode("utf-8", "replace").strip().splitlines()
            raise GitFailedError(f"git cannot read this repository: {lines[0] if lines else output.code}"[:200])
        return output

    def _environment(self, directory: str) -> dict[str, str]:
        """All of git's environment: nothing is inherited, and so nothing that the agent or a shell has set."""
        repository = self.repository
        index = f"{repository.git_directory}/index"
        if os.path.lexists(index) and not _is_regular(index):
            raise GitFailedError("the index of the git repository is not a regular file")
        environment = {
            "PATH": _search_path(self._workspace),
            "HOME": directory,
            "XDG_CONFIG_HOME": directory,
            "LC_ALL": "C",
            "GIT_DIR": directory,
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
        shallow = f"{repository.common_directory}/shallow"
        if _is_regular(shallow):
            environment["GIT_SHALLOW_FILE"] = shallow
        return environment


def _is_regular(path: str) -> bool:
    try:
        return stat.S_ISREG(os.lstat(path).st_mode)
    except OSError:
        return False
