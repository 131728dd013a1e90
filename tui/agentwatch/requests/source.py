"""Keeps a monitor told of the requests that somebody holds, and says of one whether somebody still does."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from agentwatch.background import Part
from agentwatch.delegation.events import Requested
from agentwatch.delegation.request import Request, RequestStage
from agentwatch.requests.box import Box

_TIDY_SECONDS: Final = 3_600.0

_ENDS: Final = {
    RequestStage.DELIVERED: "it was answered already",
    RequestStage.ELSEWHERE: "it was answered in its program",
    RequestStage.UNKNOWN: "it was answered, and whether its program took that is not known",
    RequestStage.GONE: "nobody waits for an answer any more: its program went on, or what held it has ended",
}


class Inbox(Part):
    """Looks at a box, once or as a part of a worker."""

    def __init__(self, box: Box, clock: Callable[[], float] = time.time) -> None:
        self.box: Final = box
        self.notice: str | None = None
        self._clock = clock
        self._told: dict[str, Request] = {}
        self._looked: object = None
        self._tidy_at = 0.0

    def look(self) -> list[Requested]:
        """Changes since the call before. Blocks."""
        now, found = self._clock(), {one.request_id: one for one in self.box.read()}
        self.notice = self.box.problems[0] if self.box.problems else None
        events: list[Requested] = []
        for request_id, request in found.items():
            known = self._told.get(request_id)
            if request.stage is RequestStage.GONE and request.ended_at is None and known is not None:
                # Its holder was killed; one that was found so died at nobody knows which time.
                found[request_id] = replace(request, ended_at=now if known.is_open else known.ended_at)
            if found[request_id] != known:
                self._told[request_id] = found[request_id]
                events.append(Requested(0, now, request_id, found[request_id]))
        for request_id in self._told.keys() - found.keys():
            known = self._told.pop(request_id).remembered
            ended = replace(known, stage=RequestStage.GONE, ended_at=now) if known.is_open else known
            events.append(Requested(0, now, request_id, ended))
        return events

    def gone(self, request: Request) -> str | None:
        """Why a request, as it was shown, cannot be answered any more, in a sentence; None where it can. Blocks."""
        now = self.box.find(request.request_id)
        if now is None:
            return "it is not offered any more"
        if now.stage is not RequestStage.OFFERED:
            return _ENDS.get(now.stage, f"it is {now.stage}")
        is_same = _plain(now) == _plain(request)
        return None if is_same else "it is not the one that you looked at: look at it again"

    def poll(self) -> list[Requested]:
        """Changes since the call before, as far as the box has changed or something in it is open. Blocks."""
        if time.monotonic() >= self._tidy_at:
            self._tidy_at = time.monotonic() + _TIDY_SECONDS
            self.box.tidy()
        before, self._looked = self._looked, (self.box.sign(),)
        # No file tells that a holder has died.
        is_open = any(one.is_open for one in self._told.values())
        return self.look() if is_open or before != self._looked else []


def _plain(request: Request) -> Request:
    """What was asked, without what the tree adds to it, and what another holder of the same says of time."""
    return replace(request.begun, asked_at=0.0, until=None)
