"""Returns that break their contract, appended once each to `.agentwatch/errors.json` of the workspace.

The workspace belongs to the agents: whatever lies in the file's place is never followed, never waited for and never
trusted. The file is valid JSON at all times: `{"schema_version": 1, "errors": [entry, …]}`, the last 1,000, oldest
first. Every text in an entry is foreign.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import secrets
import stat
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from agentwatch.contracts.shapes import Severity
from agentwatch.delegation.identity import agent_of
from agentwatch.delegation.task import State, Task

DIRECTORY: Final = ".agentwatch"
NAME: Final = "errors.json"
LIMIT: Final = 1_000
SCHEMA_VERSION: Final = 1

_MAX_BYTES: Final = 16 * 1024 * 1024
_MOST_ASIDE: Final = 20
_LONGEST: Final = 300
"""Characters of one text in an entry: a thousand of the largest entries are still read again."""

_MOST_RULES: Final = 50
_TEMPORARY: Final = f".{NAME}.writing-"
_LOCK_SECONDS: Final = 1.0
_OPEN_DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_OPEN_FILE: Final = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_NOCTTY | os.O_CLOEXEC
_CREATE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class Failure:
    """One return that broke its contract: when it was written, whose it is, where, and the ids of the rules."""

    at: float
    agent: str | None
    task_id: str
    path: str
    digest: str
    rules: tuple[str, ...]

    @property
    def recommendation(self) -> str:
        """What the contract says to do about it (subagent-return, "Validation Failures")."""
        return f"Fix {self.agent or self.task_id} subagent return format"


class _RefusedError(Exception):
    """Nothing was written; the message is for people."""


def failures(task: Task) -> list[Failure]:
    """The attempts of a task whose return breaks its contract."""
    found = []
    for attempt in task.attempts:
        returned = attempt.returned
        if returned is None or attempt.state is not State.INVALID:
            continue
        own = [finding for finding in returned.findings if finding.severity is Severity.ERROR]
        others = [placed.finding for placed in task.findings if placed.path == returned.path]
        rules = own or [finding for finding in others if finding.severity is Severity.ERROR]
        result = attempt.result
        agent = (agent_of(result) if result else None) or task.agent
        ids = tuple(dict.fromkeys(finding.rule for finding in rules))
        found.append(Failure(returned.at, agent, task.task_id, returned.path, returned.digest, ids))
    return found


def append(workspace: Path, failures: Sequence[Failure]) -> str | None:
    """Append the failures that are not in the file yet. Returns None, or in words why nothing was written.

    A failure is known by task and digest. What lies in the place of the file and is not one of ours is set aside as
    `errors.broken-<n>.json`. Blocks for a second at most where something holds the lock; call it in a worker thread.
    """
    if not failures:
        return None
    try:
        with _directory(workspace) as directory:
            _append(directory, failures)
    except _RefusedError as error:
        return str(error)
    except OSError as error:
        reason = error.strerror or str(error)
        return f"{DIRECTORY}/{NAME} cannot be written: {reason}; free space or correct the permissions"
    return None


def _append(directory: int, failures: Sequence[Failure]) -> None:
    entries = _entries(directory)
    known = {(entry["task_id"], entry["digest"]) for entry in entries}
    new = []
    for failure in failures:
        entry = _entry(failure)
        key = entry["task_id"], entry["digest"]
        if key not in known:
            known.add(key)
            new.append(entry)
    if new:
        _ignore_ourselves(directory)
        kept = [*entries, *new][-LIMIT:]
        # Entries that somebody else put there may be of any size; what is too large would not be read again.
        while len(text := _text(kept)) > _MAX_BYTES:
            kept = kept[len(kept) // 2 :]
        _write(directory, text)


def _entry(failure: Failure) -> dict[str, Any]:
    return {
        "at": _time(failure.at),
        "agent": None if failure.agent is None else failure.agent[:_LONGEST],
        "task_id": failure.task_id[:_LONGEST],
        "path": failure.path[:_LONGEST],
        "digest": failure.digest,
        "rules": [rule[:_LONGEST] for rule in failure.rules[:_MOST_RULES]],
        "recommendation": failure.recommendation[:_LONGEST],
    }


def _time(at: float) -> str:
    try:
        return datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds")
    except (ValueError, OverflowError, OSError):
        # A file's time can be set to any year.
        return datetime.fromtimestamp(0, UTC).isoformat(timespec="seconds")


def _text(entries: list[dict[str, Any]]) -> str:
    """Raises ValueError where something in it is not JSON, such as NaN."""
    return json.dumps({"schema_version": SCHEMA_VERSION, "errors": entries}, indent=2, allow_nan=False) + "\n"


@contextmanager
def _directory(workspace: Path) -> Iterator[int]:
    """A descriptor of `.agentwatch`, made where it is missing, locked against another agentwatch."""
    root = os.open(workspace, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with suppress(FileExistsError):
            os.mkdir(DIRECTORY, 0o755, dir_fd=root)
        try:
            directory = os.open(DIRECTORY, _OPEN_DIRECTORY, dir_fd=root)
        except OSError as error:
            if error.errno in (errno.ELOOP, errno.ENOTDIR, errno.EMLINK):
                raise _RefusedError(
                    f"{DIRECTORY} is a link or no directory, so that {NAME} could land anywhere; remove it"
                ) from None
            raise
    finally:
        os.close(root)
    try:
        if _lock(directory):
            _sweep(directory)
        yield directory
    finally:
        os.close(directory)


def _lock(directory: int) -> bool:
    """Whether the lock was had. Without it a file stays whole as well, only an entry may be lost: nobody waits long."""
    end = time.monotonic() + _LOCK_SECONDS
    while True:
        try:
            fcntl.flock(directory, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= end:
                return False
            time.sleep(0.01)
        except OSError:
            # Some network file systems have no locks.
            return False
        else:
            return True


def _sweep(directory: int) -> None:
    """Remove what a writer left that was killed."""
    for name in os.listdir(directory):
        if name.startswith(_TEMPORARY):
            with suppress(OSError):
                os.unlink(name, dir_fd=directory)


def _entries(directory: int) -> list[dict[str, Any]]:
    """What the file holds. Something that is not ours is set aside first."""
    try:
        status = os.stat(NAME, dir_fd=directory, follow_symlinks=False)
    except FileNotFoundError:
        return []
    # Before it is opened: opening a device may already do something.
    data = _read(directory) if stat.S_ISREG(status.st_mode) and status.st_size <= _MAX_BYTES else None
    entries = None if data is None else _parse(data)
    if entries is None:
        _set_aside(directory)
        return []
    return entries


def _read(directory: int) -> bytes | None:
    """The bytes of the file, None where it is something else or too large."""
    try:
        descriptor = os.open(NAME, _OPEN_FILE, dir_fd=directory)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO, errno.EACCES, errno.EPERM, errno.EMLINK):
            return None
        raise
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return None
        chunks, missing = [], _MAX_BYTES + 1
        while missing > 0 and (chunk := os.read(descriptor, missing)):
            chunks.append(chunk)
            missing -= len(chunk)
    finally:
        os.close(descriptor)
    return b"".join(chunks) if missing > 0 else None


def _parse(data: bytes) -> list[dict[str, Any]] | None:
    """The entries of a file that we could have written, None for any other."""
    try:
        document = json.loads(data)
        entries = document["errors"]
        if not isinstance(entries, list) or not all(_is_entry(entry) for entry in entries):
            return None
        _text(entries)
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    return entries


def _is_entry(entry: object) -> bool:
    return isinstance(entry, dict) and isinstance(entry.get("task_id"), str) and isinstance(entry.get("digest"), str)


def _set_aside(directory: int) -> None:
    """Renaming touches the name only, be it a link, a pipe, a directory or a file of any size."""
    for number in range(1, _MOST_ASIDE + 1):
        aside = f"errors.broken-{number}.json"
        try:
            os.stat(aside, dir_fd=directory, follow_symlinks=False)
        except FileNotFoundError:
            with suppress(FileNotFoundError):
                os.rename(NAME, aside, src_dir_fd=directory, dst_dir_fd=directory)
            return
    raise _RefusedError(
        f"{DIRECTORY}/{NAME} is broken, and {_MOST_ASIDE} broken ones are set aside already; delete them"
    )


def _ignore_ourselves(directory: int) -> None:
    """`.gitignore`, unless something of that name is there."""
    with suppress(FileExistsError):
        descriptor = os.open(".gitignore", _CREATE, 0o644, dir_fd=directory)
        with open(descriptor, "wb") as file:  # noqa: PTH123  a descriptor
            file.write(b"*\n")


def _write(directory: int, text: str) -> None:
    temporary = f"{_TEMPORARY}{secrets.token_hex(8)}"
    descriptor = os.open(temporary, _CREATE, 0o644, dir_fd=directory)
    try:
        with open(descriptor, "wb") as file:  # noqa: PTH123  a descriptor
            file.write(text.encode("ascii"))
            file.flush()
            os.fsync(descriptor)
        _replace(directory, temporary)
        os.fsync(directory)
    except OSError:
        with suppress(OSError):
            os.unlink(temporary, dir_fd=directory)
        raise


def _replace(directory: int, temporary: str) -> None:
    try:
        os.rename(temporary, NAME, src_dir_fd=directory, dst_dir_fd=directory)
    except (IsADirectoryError, FileExistsError):
        # A directory was put there since the look.
        _set_aside(directory)
        os.rename(temporary, NAME, src_dir_fd=directory, dst_dir_fd=directory)
