"""Keeps a monitor told of the requests that somebody holds, and says of one whether somebody still does."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from agentwatch.background import Background
from agentwatch.delegation.events import Event, Requested
from agentwatch.delegation.request import Request, RequestStage
from agentwatch.disk import change_stamp
from agentwatch.requests.box import Box, as_asked
from agentwatch.sources.files.watcher import shared_watcher

_PAUSE_SECONDS: Final = 0.5
_SELDOM_SECONDS: Final = 60.0
"""Between two looks at the box: while something is open or nothing rings, and while nothing happens."""


class Inbox(Background[Sequence[Event]]):
    """Looks at a box, once or in a thread of its own from `start` to `stop`."""

    thread_name = "agentwatch-requests"

    def __init__(self, box: Box, clock: Callable[[], float] = time.time) -> None:
        super().__init__()
        self.box: Final = box
        self.notice: str | None = None
        """What the operator must know of the box, one sentence. May quote foreign text."""
        self.idle = False
        """Whether all that was there at first has been told."""
        self._clock = clock
        self._told: dict[str, Request] = {}

    def look(self) -> list[Requested]:
        """Changes since the call before. Blocks."""
        now, before = self._clock(), self._told
        self._told = {one.request_id: one for one in self.box.read()}
        self.notice = next(iter(self.box.problems), None)
        events: list[Requested] = []
        for request_id, found in [*self._told.items()]:
            known = before.pop(request_id, None)
            if found.stage is RequestStage.GONE and found.ended_at is None and known is not None:
                # Its holder was killed; one that was found so died at nobody knows which time.
                self._told[request_id] = replace(found, ended_at=now if known.is_open else known.ended_at)
            if self._told[request_id] != known:
                events.append(Requested(0, now, request_id, self._told[request_id]))
        for request_id, known in before.items():
            gone = replace(known.remembered, stage=RequestStage.GONE, ended_at=now)
            events.append(Requested(0, now, request_id, gone if known.is_open else known.remembered))
        return events

    def gone(self, request: Request) -> str | None:
        """Why a request, as it was shown, cannot be answered any more, in a sentence; None where it can. Blocks."""
        now = self.box.find(request.request_id)
        if now is None or now.stage is not RequestStage.OFFERED:
            return f"nobody waits for an answer to it any more ({now.stage if now is not None else RequestStage.GONE})"
        is_same = as_asked(now) == as_asked(request)
        return None if is_same else "it is not the one that you looked at: look at it again"

    def _run(self, emit: Callable[[Sequence[Event]], None]) -> None:
        with shared_watcher.watch([self.box.directory], self.ring):
            self._watch(emit)

    def _watch(self, emit: Callable[[Sequence[Event]], None]) -> None:
        looked: tuple[int, int, int] | None = None
        is_first = True
        while not self._stopped:
            sign = change_stamp(self.box.directory)
            if is_first or sign != looked or any(one.is_open for one in self._told.values()):
                looked, is_first = sign, False
                try:
                    if events := self.look():
                        emit(events)
                except RuntimeError:
                    return
            self.idle = True
            # That a holder has died rings for nobody.
            looks = not shared_watcher.works or any(one.is_open for one in self._told.values())
            self._rest(_PAUSE_SECONDS, _PAUSE_SECONDS if looks else _SELDOM_SECONDS)
