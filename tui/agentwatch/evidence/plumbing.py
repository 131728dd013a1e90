"""Runs git's plumbing on a repository without letting git read the repository's own configuration.

git gets a directory of ours as its git directory, with our configuration, and borrows objects and index by
environment variables. What the real configuration names is therefore unknown to it, whenever it is written: no filter,
fsmonitor, hook, textconv, external diff, alias, include, pager, credential helper or transport can run, and a promisor
remote is never asked. Nothing is written into the repository.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator, Sequence
from hashlib import sha256
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

_STATUS: Final = ("status", "--porcelain=v2", "-z", "--ignore-submodules=all", "--no-renames", "--no-ahead-behind")

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
    """git could not answer, and why, in words."""


class GitSlowError(GitFailedError):
    """git did not answer in time: it may the next time."""


class Plumbing(NamedTuple):
    """git on one repository, for one round of questions: see `plumbing`."""

    repository: Repository
    program: str
    environment: dict[str, str]
    """All of it: nothing is inherited, and so nothing that the agent or a shell has set."""
    seconds: float
    workspace: str

    def ask(self, *arguments: str, given: bytes = b"", max_bytes: int = MAX_BYTES) -> Output:
        """Run one command of git; exit code 0, or what it wrote up to `max_bytes`. Raises GitFailedError."""
        if arguments[0] not in _OF_COMMITS:
            looks.spoil("git was asked what cannot be asked again")
        return self._run(*arguments, given=given, max_bytes=max_bytes)

    def status(self, paths: Sequence[str], *, untracked: bool) -> Output:
        """Ask which files below these paths of the repository differ from the last commit. No file tells that, so it
        is what may be asked again. Raises GitFailedError."""
        listed = "--untracked-files=all" if untracked else "--untracked-files=no"
        output = self._run(*_STATUS, listed, "--", *paths, given=b"", max_bytes=MAX_BYTES)
        looks.asked(self.workspace, (untracked, list(paths)), digest_of(output))
        return output

    def _run(self, *arguments: str, given: bytes, max_bytes: int) -> Output:
        try:
            output = run(
                [self.program, "--no-pager", "--no-replace-objects", "--literal-pathspecs", *arguments],
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


@contextlib.contextmanager
def plumbing(repository: Repository, workspace: str, *, seconds: float = SECONDS) -> Iterator[Plumbing]:
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
    with contextlib.ExitStack() as stack:
        try:
            # Left behind by a kill, it holds nothing but a configuration.
            ours = tempfile.TemporaryDirectory(prefix="agentwatch-", ignore_cleanup_errors=True)
            directory = stack.enter_context(ours)
            _prepare(repository, directory)
        except OSError as error:
            raise GitFailedError(f"no temporary directory can be made: {os.strerror(error.errno or 0)}") from None
        environment = {
            "PATH": path,
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
        if _is_regular(shallow):
            environment["GIT_SHALLOW_FILE"] = shallow
        yield Plumbing(repository, program, environment, seconds, workspace)


def ask_again(workspace: str, questions: list[Question]) -> list[str]:
    """The digests of what `status` says now, which it was asked before; nothing where it cannot be asked."""
    try:
        repository = find_repository(workspace)
        with plumbing(repository, workspace) as git:
            return [digest_of(git.status(paths, untracked=is_untracked)) for is_untracked, paths in questions]
    except NoRepositoryError:
        return []


def digest_of(output: Output) -> str:
    """Equal where the same was said."""
    return sha256(b"%d %d " % (output.code, output.cut) + output.text).hexdigest()


def _note_objects(directory: str) -> None:
    """Look at every directory in which objects lie: whether there are others, or some are gone, shows there."""
    with contextlib.suppress(OSError):
        for name in os.listdir(directory):  # noqa: PTH208
            os.lstat(f"{directory}/{name}")


def _prepare(repository: Repository, directory: str) -> None:
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


def _is_regular(path: str) -> bool:
    try:
        return stat.S_ISREG(os.lstat(path).st_mode)
    except OSError:
        return False
