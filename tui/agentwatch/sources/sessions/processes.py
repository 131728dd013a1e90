"""What the file that each running program keeps tells of its session: whether it is gone, and what it waits for."""

from __future__ import annotations

import os
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Final, NamedTuple

from agentwatch.sources.sessions.fields import Fields, mapping, number, text, whole
from agentwatch.sources.sessions.tail import document
from agentwatch.sources.sessions.where import is_of_this_system, is_ours, sees_all

_MAX_BYTES: Final = 64 * 1024
_MOST: Final = 1000
_START: Final = 19
"""Index of a process's start time in `/proc/<pid>/stat`, counted behind its name."""

_PATIENCE: Final = 0.5
"""Seconds that a wait has to last: hooks answer some at once, and a transcript shows a bit later what it is for."""


class Wait(NamedTuple):
    """A program waits for something from the person at its terminal, since a time in seconds since the epoch."""

    what: str
    since: float


class Program(NamedTuple):
    """What is known of the programs that have run a session.

    `gone` is True if they have ended or were killed, False if one of them runs, None where it is not known. The one
    that runs `began` at a time in seconds since the epoch, and may wait for somebody.
    """

    gone: bool | None = None
    began: float = 0.0
    wait: Wait | None = None


UNKNOWN: Final = Program()
_ENDED: Final = Program(gone=True)


class Registered(NamedTuple):
    """What a program keeps of a process: whose session it runs, its pid, and when it began, by `/proc` and our clock.

    `domain` names where its pid counts: the system, or with its number the namespace; None where nothing is said.
    """

    session: str
    pid: int
    start: str | None
    domain: str | None
    began: float
    wait: Wait | None


WaitIn = Callable[[Fields], Wait | None]
"""What a program's file says that it waits for."""


class Processes:
    """`sessions/<pid>.json`: written when the program starts, removed when it ends well, left behind when it is killed.

    A file that names no process of this system, of another machine's or container's, says nothing. One that does not
    say where its number counts is believed if the process was seen to run, or if all processes that can have written it
    are seen from here.
    """

    def __init__(self, directory: Path, wait_in: WaitIn = lambda _: None) -> None:
        self.directory = directory / "sessions"
        self._wait_in = wait_in
        self._registered: dict[str, list[Registered]] = {}
        """By session, the processes that the last files named of which it was the session."""
        self._seen: set[tuple[int, str | None]] = set()
        """Processes that ran here."""

    def look(self) -> None:
        """Read what the files say now."""
        found: defaultdict[str, list[Registered]] = defaultdict(list)
        with suppress(OSError):
            for path in islice(self.directory.glob("*.json"), _MOST):
                if (one := self._parse(path)) is not None:
                    found[one.session].append(one)
        # A process that is named no more has ended, or goes on with another session, and perhaps with agents of this.
        before = {name: [one._replace(wait=None) for one in known] for name, known in self._registered.items()}
        self._registered = before | found

    def of(self, session_id: str) -> Program:
        """The program of a session, as of the last look."""
        known = self._registered.get(session_id)
        return self._program(known) if known else UNKNOWN

    def _program(self, registered: list[Registered]) -> Program:
        answers = {one: self._gone(one) for one in registered}
        running = [one for one, gone in answers.items() if gone is False]
        if not running:
            return UNKNOWN if None in answers.values() else _ENDED
        # A clock that was set back must not hide anything.
        now = time.time()
        waits = [one.wait for one in running if one.wait and not 0 <= now - one.wait.since < _PATIENCE]
        return Program(False, min(one.began for one in running), next(iter(waits), None))

    def _gone(self, registered: Registered) -> bool | None:
        gone, process = _gone(registered), (registered.pid, registered.start)
        if gone is False:
            self._seen.add(process)
        if not gone or registered.domain is not None or process in self._seen:
            return gone
        return self._not_seen_here()

    def _not_seen_here(self) -> bool | None:
        """Whether a process is gone that is not seen, and of which nothing says where its number counts."""
        return True if sees_all() and is_of_this_system(self.directory) else None

    def _parse(self, path: Path) -> Registered | None:
        try:
            fields = mapping(document(path, _MAX_BYTES))
        except (OSError, ValueError):
            return None
        session, pid, namespace = text(fields, "sessionId"), whole(fields, "pid") or 0, whole(fields, "pidNs")
        if session is None or pid < 2:
            return None
        return Registered(
            session=session,
            pid=pid,
            # Qwen Code writes the id of the boot before it, and knows a namespace by its number.
            start=(text(fields, "procStart") or "").rpartition(":")[2] or None,
            domain=text(fields, "pidDomain") or (str(namespace) if namespace is not None else None),
            began=(number(fields, "startedAt") or 0.0) / 1000,
            wait=self._wait_in(fields),
        )


def _gone(registered: Registered) -> bool | None:
    """Whether no such process runs here, of any user."""
    if registered.domain is not None and not is_ours(registered.domain):
        return None
    try:
        os.kill(registered.pid, 0)
    except ProcessLookupError:
        return True
    except (PermissionError, OverflowError):
        return None
    if registered.start is None or not registered.start.isdigit() or sys.platform != "linux":
        return False
    try:
        fields = Path(f"/proc/{registered.pid}/stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return None
    return len(fields) > _START and fields[_START].decode("ascii", "replace") != registered.start
