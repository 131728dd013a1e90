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
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from agentwatch.shell import find_program, trusted_path
from agentwatch.sources.worktrees import NoRepositoryError, git_directories
from agentwatch.sources.worktrees import git_text as _text

# Programs

_CHUNK: Final = 256 * 1024
_PAUSE_SECONDS: Final = 0.02
_REST_SECONDS: Final = 1.0
"""What a program leaves running may hold its streams open for ever: they are read this long after its end."""
_KILLED_SECONDS: Final = 1.0


class TooSlowError(Exception):
    """The program did not end in time; it was killed with all its children."""


class Output(NamedTuple):
    """The output of a program. `cut`: it wrote more than was wanted and was killed."""

    code: int
    text: bytes
    errors: bytes
    cut: bool


def run(
    arguments: Sequence[str],
    *,
    directory: str,
    seconds: float,
    max_bytes: int,
    environment: Mapping[str, str] | None = None,
    given: bytes = b"",
) -> Output:
    """Run a program with exactly this environment; None is ours. `given` is what it reads.

    Of each stream the first `max_bytes` are kept, and a program that writes more is killed. Raises TooSlowError after
    `seconds`, OSError where it cannot be started.
    """
    end = time.monotonic() + seconds
    text, errors = bytearray(), bytearray()
    cut = has_ended = False
    with contextlib.ExitStack() as stack:
        streams = stack.enter_context(selectors.DefaultSelector())
        # A session of its own: whatever it starts is killed with it.
        process = subprocess.Popen(  # noqa: S603  the caller's arguments, no shell
            arguments,
            cwd=directory,
            env=environment,
            stdin=subprocess.PIPE if given else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        stack.callback(_kill, process)
        for pipe, into in ((process.stdout, text), (process.stderr, errors)):
            if pipe is not None:
                streams.register(stack.enter_context(pipe), selectors.EVENT_READ, into)
        if process.stdin is not None:
            stack.callback(process.stdin.close)
            os.set_blocking(process.stdin.fileno(), False)
            streams.register(process.stdin, selectors.EVENT_WRITE)
        rest = memoryview(given)
        while streams.get_map() and not cut and time.monotonic() < end:
            for key, _ in streams.select(_PAUSE_SECONDS):
                if key.fileobj is process.stdin:
                    try:
                        rest = rest[os.write(key.fd, rest[:_CHUNK]) :]
                    except BrokenPipeError:
                        rest = rest[:0]
                    if not rest:
                        streams.unregister(process.stdin)
                        process.stdin.close()
                    continue
                kept: bytearray = key.data
                data = os.read(key.fd, _CHUNK)
                if not data:
                    streams.unregister(key.fileobj)
                kept += data
                if len(kept) > max_bytes:
                    del kept[max_bytes:]
                    cut = True
            if not has_ended and process.poll() is not None:
                has_ended, end = True, min(end, time.monotonic() + _REST_SECONDS)
        if not cut:
            try:
                process.wait(max(end - time.monotonic(), 0.001))
            except subprocess.TimeoutExpired:
                raise TooSlowError from None
    return Output(process.returncode, bytes(text), bytes(errors), cut)


def _kill(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        # One that became another user, as sudo does, is out of reach; it is left behind then.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_KILLED_SECONDS)


# The repository

_OBJECT_NAME: Final = re.compile(r"(?:[0-9a-f]{40}|[0-9a-f]{64})\Z")
_REFERENCE: Final = re.compile(r"refs/[^\x00-\x20\x7f~^:?*\[\\]{1,1000}\Z")
_SECTION: Final = re.compile(r"\s*\[\s*([A-Za-z0-9.-]+)\s*(\"[^\"]*\")?\s*\]")
_SETTING: Final = re.compile(r"\s*([A-Za-z][A-Za-z0-9-]*)\s*=\s*\"?([A-Za-z0-9]{1,16})\"?\s*(?:[#;].*)?\Z")
_COMPARING: Final = frozenset(
    {"symlinks", "ignorecase", "precomposeunicode", "autocrlf", "eol", "trustctime", "checkstat"}
)
"""Settings of `[core]` that say how files compare and name no program."""

_CONFIGURATION: Final = 1024 * 1024
_PACKED: Final = 64 * 1024 * 1024
_HOPS: Final = 5


class NotInRepositoryError(NoRepositoryError):
    """No directory from the workspace up is under git: there is nothing to ask, and nothing that failed."""


class Repository(NamedTuple):
    """A work tree and its repository: absolute paths, resolved.

    `prefix` is the workspace below the work tree, "" or ending in `/`. `head` is the commit checked out, None before
    the first one.
    """

    top: str
    git_directory: str
    common_directory: str
    prefix: str
    head: str | None
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
        settings, format_is_known = _read_settings(common)
        if not format_is_known:
            raise NoRepositoryError("git keeps its references in a format (reftable) that agentwatch cannot read")
        head = _head(git, common)
        if head is None and _has_commits(git, common):
            why = "the HEAD of the git repository names a branch without a commit, though there are commits"
            raise NoRepositoryError(why)
        return Repository(top, git, common, prefix, head, settings)
    raise NotInRepositoryError("not in a git repository")


def _head(git: str, common: str) -> str | None:
    name = "HEAD"
    for _ in range(_HOPS):
        text = _text(git, name) if name == "HEAD" else _text(git, name) or _text(common, name)
        if text is None and name == "HEAD":
            raise NoRepositoryError("the git repository has no HEAD that can be read")
        if text is None:
            return _packed(common, name)
        text = text.strip()
        if _OBJECT_NAME.match(text):
            return text
        name = text.removeprefix("ref:").strip()
        if not text.startswith("ref:") or not _REFERENCE.match(name) or ".." in name:
            break
    raise NoRepositoryError("the HEAD of the git repository cannot be understood")


def _packed(common: str, name: str) -> str | None:
    """The commit of a reference that has no file of its own, None for a branch without a commit."""
    text = _text(common, "packed-refs", _PACKED) or ""
    match = re.search(rf"^([0-9a-f]{{40}}|[0-9a-f]{{64}}) {re.escape(name)}$", text, re.MULTILINE)
    return match[1] if match else None


def tips(repository: Repository) -> list[str]:
    """The names of all objects that the references of a repository name, of every branch and tag, and its HEAD."""
    common = repository.common_directory
    names = set(
        re.findall(r"^([0-9a-f]{40}|[0-9a-f]{64}) refs/", _text(common, "packed-refs", _PACKED) or "", re.MULTILINE)
    )
    for directory, _, files in os.walk(f"{common}/refs"):
        names.update((_text(directory, name) or "").strip() for name in files)
    return sorted(name for name in names | {repository.head or ""} if _OBJECT_NAME.match(name))


def _has_commits(git: str, common: str) -> bool:
    """A repository whose HEAD has no commit had some all the same: another branch, packed ones, or a log of them."""
    logged = os.path.lexists(f"{git}/logs/HEAD") or os.path.lexists(f"{common}/packed-refs")
    return logged or any(names for _, _, names in os.walk(f"{common}/refs"))


def _read_settings(common: str) -> tuple[tuple[tuple[str, str], ...], bool]:
    """(the settings that say how files compare, whether references are kept as files)."""
    settings: dict[str, str] = {}
    files = True
    section = ""
    for line in (_text(common, "config", _CONFIGURATION) or "").splitlines():
        if header := _SECTION.match(line):
            section = header[1].lower() if header[2] is None else ""
        setting = _SETTING.match(line, header.end() if header else 0)
        if setting is None:
            continue
        key, value = setting[1].lower(), setting[2]
        if section == "core" and key in _COMPARING:
            settings[key] = value
        elif section == "extensions" and key == "refstorage":
            files = value.lower() == "files"
    return tuple(sorted(settings.items())), files


# git

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
