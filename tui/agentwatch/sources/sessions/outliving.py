"""Runs as a screen shows them, also once the transcript of one is gone, or holds nothing of it any more: what is not
there says nothing of what the run came to."""

from __future__ import annotations

import errno
import os
from dataclasses import replace
from pathlib import Path
from typing import Final

from agentwatch.delegation.run import Run
from agentwatch.sources.sessions.runs import OPEN
from agentwatch.sources.sessions.tail import open_regular, record

_LOOKED_AT: Final = 256 * 1024
"""Bytes of a transcript in which its first record ends, where it has one."""
_NO_FILE: Final = (errno.ENOENT, errno.ENOTDIR, errno.EINVAL, errno.ELOOP)
"""There is none, or a directory, a pipe or a link instead of one."""


class Outliving:
    """The runs of which each has a transcript, and those whose transcript is gone, or emptied, or overwritten."""

    def __init__(self) -> None:
        self._shown: dict[tuple[str, str], Run] = {}
        """By reader and key, as it was last."""
        self._lost: dict[tuple[str, str], str] = {}
        """By reader and session, the key of the run."""

    def update(self, reader: str, key: str, run: Run | None) -> list[tuple[str, Run | None]]:
        """A reader says that a run is like this now. Returns (key, run) of what is to be shown of it."""
        if run is not None and (reader, key) not in self._shown:
            key = self._lost_of_call(reader, run) or key
        before = self._shown.get((reader, key))
        if before is not None and self._is_lost(reader, before, run):
            self._lost[reader, before.session_id] = key
            self._shown[reader, key] = now = _told_since(before, run)
            return [(key, now)] if now != before else []
        if run is None:
            self._shown.pop((reader, key), None)
            return [(key, None)]
        self._shown[reader, key] = run
        lost = self._lost.pop((reader, run.session_id), key)
        kept = self._shown.get((reader, lost))
        if lost == key or kept is None or kept.session_id != run.session_id:
            return [(key, run)]
        # It lies elsewhere by now, and has another key there.
        del self._shown[reader, lost]
        return [(lost, None), (key, run)]

    def _lost_of_call(self, reader: str, run: Run) -> str | None:
        """The key of the run that came of the same call, where nothing but that call tells of it any more."""
        for (owner, session), key in self._lost.items() if run.prompt is not None else ():
            lost = self._shown.get((owner, key))
            if owner == reader and session != run.session_id and lost is not None and _call(lost) == _call(run):
                return key
        return None

    def _is_lost(self, reader: str, before: Run, run: Run | None) -> bool:
        """Whether a run is told of no more, or only by others, as what told of it is lost."""
        was_heard = before.state not in OPEN and (reader, before.parent_session) in self._lost
        if was_heard and run is not None and run.state in OPEN and run.updated_at <= before.updated_at:
            # That it has ended, its parent had heard.
            return True
        if run is not None and run.place == before.place and run.updated_at >= before.updated_at:
            return False
        if not before.place.endswith(".jsonl") or _holds_records(before.place):
            return False
        if run is None or run.place == before.place or not os.path.lexists(run.place):
            return True
        # One that was moved has its new place for itself.
        return any(run.place == one.place for one in self._shown.values())


def _call(run: Run) -> tuple[object, ...]:
    """What tells the call that a run came of from others."""
    return run.parent_session, run.asked_at, run.prompt.digest if run.prompt is not None else None


def _told_since(before: Run, run: Run | None) -> Run:
    """A run whose transcript is lost: what others have heard of its end, they may have heard since."""
    if run is None or before.state not in OPEN:
        return before
    if run.state in OPEN:
        return replace(before, process_gone=run.process_gone, waiting="" if run.process_gone else before.waiting)
    return replace(
        before,
        state=run.state,
        reason=run.reason,
        said=run.said,
        ended_at=run.ended_at,
        updated_at=max(before.updated_at, run.updated_at),
        process_gone=run.process_gone,
        waiting="",
    )


def _holds_records(place: str) -> bool:
    """Whether something that a program may have written is in a transcript, or it cannot be told."""
    try:
        with os.fdopen(open_regular(Path(place)), "rb") as file:
            return any(record(line) is not None for line in file.read(_LOOKED_AT).splitlines())
    except OSError as error:
        return error.errno not in _NO_FILE
