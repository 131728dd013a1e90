"""The box: the requests of one workspace that somebody holds, a file each, so that screens and shells see them.

    <state directory>/requests/                 0700
        <request id>.json                       0600, locked as long as somebody holds it

A file that nobody holds and that has no end is gone: its holder was killed.
"""

from __future__ import annotations

import fcntl
import os
import re
import stat
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from agentwatch.decisions.errors import RecordError, reason, remedy
from agentwatch.delegation.request import ENDED, Request, RequestStage
from agentwatch.disk import OPEN_HELD, UNSYNCED, Directory, Disk, PrivateDirectory, change_stamp
from agentwatch.errors import AgentwatchError
from agentwatch.requests.offered import LARGEST, parse, to_bytes
from agentwatch.state import leads_through, state_directory, workspace_id
from agentwatch.text import quoted

NAME: Final = "requests"
MOST: Final = 500
"""Requests that are open at once."""
MOST_ENDED: Final = 200
"""Those that have ended and are kept."""

KEPT_SECONDS: Final = 24 * 3600.0
_MOST_FILES: Final = 4 * MOST
_OPEN_TO_OTHERS: Final = 0o077
_TRIES: Final = 50
_PAUSE_SECONDS: Final = 0.001
"""Who looks whether somebody holds a file locks it for microseconds."""

_FILE: Final = re.compile(r"[0-9a-f]{32}\.json\Z")


class BoxError(AgentwatchError):
    """A request cannot be offered: nobody can answer it but in its program."""


class Box:
    """The requests of one workspace. Any thread and any process may use it at once.

    `state` is its state directory, by default that of the user.
    """

    def __init__(
        self,
        workspace: Path,
        *,
        state: Path | None = None,
        disk: Disk = UNSYNCED,
        clock: Callable[[], float] = time.time,
    ) -> None:
        state = state or state_directory(workspace)
        self.directory: Final = state / NAME
        self.workspace_id: Final = workspace_id(workspace)
        self.problems: list[str] = []
        """What is in it that is no request, a sentence each, as it was read last. May quote foreign text."""
        self._workspace = workspace
        self._disk = disk
        self._clock = clock
        self._place = PrivateDirectory(self.directory, disk)
        self._known: dict[str, tuple[tuple[int, ...], Request]] = {}

    def offer(self, request: Request) -> Offer:
        """Offer a request, for as long as the offer is not closed. Raises BoxError.

        Who offers the same one as somebody else holds it with them.
        """
        try:
            data = to_bytes(replace(request, stage=RequestStage.OFFERED, ended_at=None), self.workspace_id)
        except RecordError as error:
            raise BoxError(f"the request is not offered: {error}") from error
        self._refuse_inside()
        name = _name_of(request.request_id)
        try:
            with self._place.make() as directory:
                self._refuse_open(directory)
                with directory.locked():
                    directory.sweep(0)
                    descriptor = self._joined(directory, name)
                    if descriptor is None:
                        self._make_room(directory)
                        descriptor = directory.replace_held(name, data)
        except OSError as error:
            raise BoxError(f"the request is not offered: {self.directory}: {reason(error)}; {remedy(error)}") from error
        return Offer(self, request, descriptor)

    def read(self) -> list[Request]:
        """What is in it, oldest first, each with its stage. Only files that changed are read. Never raises."""
        self.problems = []
        try:
            self._refuse_inside()
            with self._place.open() as directory:
                self._refuse_open(directory)
                return self._read(directory)
        except FileNotFoundError:
            return []
        except (OSError, BoxError) as error:
            why = reason(error) if isinstance(error, OSError) else str(error)
            self.problems = [f"requests are not seen: {self.directory}: {why}"]
            return []

    def find(self, request_id: str) -> Request | None:
        """One request as it is now, None where it is none, or cannot be believed."""
        return next((one for one in self.read() if one.request_id == request_id), None)

    def sign(self) -> tuple[int, int, int] | None:
        """Different from the call before where a file came or went since. That a holder was killed only `read` sees."""
        return change_stamp(self.directory)

    def tidy(self) -> None:
        """End those that nobody holds any more; remove those that ended a day ago, and the oldest where they are many.

        As far as that can be done.
        """
        with suppress(OSError, BoxError):
            self._refuse_inside()
            with self._place.open() as directory, directory.locked():
                directory.sweep(0)
                self._tidy(directory)

    def _read(self, directory: Directory) -> list[Request]:
        found: list[Request] = []
        names = sorted(name for name in directory.names() if not name.startswith("."))
        if len(names) > _MOST_FILES:
            self.problems.append(f"{self.directory} holds {len(names):,} files, not all are looked at: clear it")
        known, self._known = self._known, {}
        for name in names[:_MOST_FILES]:
            try:
                identity, request = self._file(directory, name, known.get(name))
            except FileNotFoundError:
                continue
            except RecordError as error:
                self.problems.append(f"{self.directory}: {quoted(name)} is no request: {error}; remove it")
            except OSError as error:
                self.problems.append(f"{self.directory}: {quoted(name)} is no request: {reason(error)}; remove it")
            else:
                self._known[name] = identity, request
                if request.stage is RequestStage.OFFERED and not self._is_held(directory, name):
                    request = replace(request, stage=RequestStage.GONE)
                found.append(request)
        return sorted(found, key=lambda one: (one.asked_at, one.request_id))

    def _file(
        self, directory: Directory, name: str, known: tuple[tuple[int, ...], Request] | None
    ) -> tuple[tuple[int, ...], Request]:
        if _FILE.match(name) is None:
            raise RecordError("agentwatch did not put it there")
        identity = directory.identity(name)
        if known is not None and known[0] == identity:
            return known
        status = directory.status(name)
        if stat.S_ISREG(status.st_mode) and (status.st_uid != os.geteuid() or status.st_mode & _OPEN_TO_OTHERS):
            raise RecordError("others may have written it")
        request = parse(directory.read(name, LARGEST), self.workspace_id)
        if name != _name_of(request.request_id):
            raise RecordError("it is a copy of another one")
        return identity, request

    def _is_held(self, directory: Directory, name: str) -> bool:
        """Whether somebody holds a file. Two that ask at once may take each other for somebody, until the next look."""
        with suppress(OSError):
            return not self._is_dead(directory, name)
        return False

    def _is_dead(self, directory: Directory, name: str) -> bool:
        """Whether nobody holds a file, for certain. Raises OSError where that cannot be known."""
        descriptor = self._disk.open(name, OPEN_HELD, dir_fd=directory.descriptor)
        try:
            self._disk.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        finally:
            with suppress(OSError):
                self._disk.close(descriptor)
        return True

    def _joined(self, directory: Directory, name: str) -> int | None:
        """A descriptor with a lock on the file that others hold; None where there is none to be held. Under the
        lock."""
        try:
            _, request = self._file(directory, name, None)
            if request.stage is not RequestStage.OFFERED or not self._is_held(directory, name):
                return None
            descriptor = self._disk.open(name, OPEN_HELD, dir_fd=directory.descriptor)
        except (OSError, RecordError):
            return None
        try:
            for _ in range(_TRIES):
                with suppress(BlockingIOError):
                    self._disk.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
                    return descriptor
                time.sleep(_PAUSE_SECONDS)
        except OSError:
            pass
        self._disk.close(descriptor)
        return None

    def _make_room(self, directory: Directory) -> None:
        """Under the lock."""
        if len(directory.names()) < min(MOST, 2 * MOST_ENDED):
            return
        self._tidy(directory)
        if sum(one.is_open for one in self._read(directory)) >= MOST:
            raise BoxError(f"the request is not offered: {MOST} others are open; answer them in their programs")

    def _tidy(self, directory: Directory) -> None:
        """Under the lock."""
        now, ended = self._clock(), []
        for one in self._read(directory):
            if one.stage in ENDED:
                name = _name_of(one.request_id)
                with suppress(OSError, RecordError):
                    if one.ended_at is None and not self._is_dead(directory, name):
                        continue
                    at = one.ended_at or directory.status(name).st_mtime
                    if one.ended_at is None and now - at < KEPT_SECONDS:
                        at = now
                        directory.replace(name, to_bytes(replace(one, ended_at=now), self.workspace_id))
                    ended.append((at, name))
        ended.sort(reverse=True)
        for number, (at, name) in enumerate(ended):
            if number >= MOST_ENDED or not -KEPT_SECONDS <= now - at < KEPT_SECONDS:
                with suppress(OSError):
                    directory.remove(name)

    def _refuse_inside(self) -> None:
        refuse_inside(self._workspace, self.directory)

    def _refuse_open(self, directory: Directory) -> None:
        status = self._disk.fstat(directory.descriptor)
        if status.st_mode & _OPEN_TO_OTHERS or status.st_uid != os.geteuid():
            raise BoxError(f"{self.directory} is open to others, or not yours: chmod 700 {self.directory}")

    # What an offer does

    def identity(self, request_id: str) -> tuple[int, ...] | None:
        """What is another one once the file of a request was replaced, written or touched; None where it is gone."""
        with suppress(OSError), self._place.open() as directory:
            return directory.identity(_name_of(request_id))
        return None

    def end(self, descriptor: int, request: Request, stage: RequestStage, by: str) -> None:
        """Write down how it ended, unless somebody did before; that it is gone, only if nobody else holds it."""
        name = _name_of(request.request_id)
        with self._place.make() as directory, directory.locked():
            if stage is RequestStage.GONE:
                # Whoever holds it with us goes on.
                self._disk.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            with suppress(OSError, RecordError):
                if self._file(directory, name, None)[1].stage is not RequestStage.OFFERED:
                    return
            ended = replace(request, stage=stage, ended_at=self._clock(), by=by)
            directory.replace(name, to_bytes(ended, self.workspace_id))


class Offer:
    """A request that this process holds. To be used in a `with`: what has no end by then is gone."""

    def __init__(self, box: Box, request: Request, descriptor: int) -> None:
        self.request: Final = request
        self._box = box
        self._descriptor: int | None = descriptor
        status = os.fstat(descriptor)
        self._identity = status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end(RequestStage.GONE)

    def is_whole(self) -> bool:
        """Whether what others see under its name is the very file that was offered: what they decide is about that."""
        return self._descriptor is not None and self._box.identity(self.request.request_id) == self._identity

    def end(self, stage: RequestStage, by: str = "") -> None:
        """Say how it ended, and hold it no more. Never raises: where that cannot be written, it is gone."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is None:
            return
        try:
            with suppress(OSError, RecordError):
                self._box.end(descriptor, self.request, stage, by)
        finally:
            with suppress(OSError):
                os.close(descriptor)


def refuse_inside(workspace: Path, place: Path) -> None:
    """Raises BoxError for a place of ours that lies in the workspace, or behind a link in it: what works there could
    write it."""
    if leads_through(place, workspace):
        raise BoxError(f"{place} lies in the workspace, where agents write: set XDG_STATE_HOME to another place")


def _name_of(request_id: str) -> str:
    return f"{request_id}.json"
