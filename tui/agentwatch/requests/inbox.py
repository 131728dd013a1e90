"""Watches the requests of programs in a workspace, so that the operator sees each request as soon as it is offered."""

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

from agentwatch.background import Pollable
from agentwatch.delegation.decision import Request, RequestStage
from agentwatch.delegation.events import Requested
from agentwatch.disk import change_stamp
from agentwatch.requests.store import RequestError, RequestStore, comparable_form
from agentwatch.sources.files.watcher import NAMES, Watcher


class Inbox(Pollable):
    """Reports changes of the requests in a store. It may run in a background worker."""

    notice: str | None = None
    _looked: object = None
    waiter: Watcher | None = None

    def __init__(self, store: RequestStore, clock: Callable[[], float] = time.time):
        self.store = store
        self._clock = clock
        self._known: dict[str, Request] = {}

    def poll(self) -> list[Requested]:
        """Return the changes since the previous call. Read only if the store changed or a request is open. Blocks."""
        if self.waiter is None:
            with suppress(OSError, RequestError), self.store.open_directory(make=True):
                pass  # create the directory, so that it can be watched
            self.waiter = Watcher(str(self.store.directory), lambda name: name.endswith(".json"), mask=NAMES)
        # Watch again at each poll: the directory may have been replaced.
        self.waiter.watch("")
        before, self._looked = self._looked, (change_stamp(self.store.directory),)
        # When a holder dies, no file changes. So read the store whenever a request is open.
        is_open = any(one.is_open for one in self._known.values())
        return self.read_changes() if is_open or before != self._looked else []

    def read_changes(self) -> list[Requested]:
        """Return the changes since the previous call. Blocks."""
        now, known, found = self._clock(), self._known, {one.request_id: one for one in self.store.read()}
        self.notice = next(iter(self.store.problems), None)
        for name, before in known.items():
            # If a file is missing, or has no lock and no end of the request, the holder was killed.
            one = found.get(name) or (replace(before, stage=RequestStage.GONE) if before.is_open else before)
            is_killed = one.stage is RequestStage.GONE and one.ended_at is None
            found[name] = replace(one, ended_at=before.ended_at or now) if is_killed else one
        self._known = found
        return [Requested(0, now, name, one) for name, one in found.items() if one != known.get(name)]

    def close(self) -> None:
        """Stop watching."""
        if self.waiter:
            self.waiter.close()

    def why_gone(self, request: Request) -> str | None:
        """Return a sentence if the request that was shown cannot be answered any more, else None. Blocks."""
        now = self.store.find(request.request_id)
        if now is None or now.stage is not RequestStage.OFFERED:
            return f"nobody waits for an answer to it any more ({now.stage if now else RequestStage.GONE})"
        is_same = comparable_form(now) == comparable_form(request)
        return None if is_same else "it is not the one that you looked at: look at it again"
