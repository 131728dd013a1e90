"""Holds a request until the operator has answered it: one signed answer to one input, claimed by one holder.

Whatever goes wrong here is silence towards the program, whose own prompt then stands or appears.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from agentwatch.decisions.answering import answers
from agentwatch.decisions.chain import ChainEntry, ChainProblem, number_in
from agentwatch.decisions.envelope import load_what_verifies
from agentwatch.decisions.errors import DecisionError
from agentwatch.decisions.keys import Keys
from agentwatch.decisions.ledger import Ledger
from agentwatch.decisions.receipts import ReceiptBook
from agentwatch.decisions.record import Record, time_of
from agentwatch.delegation.decision import Stage
from agentwatch.delegation.request import Request
from agentwatch.disk import UNSYNCED, Disk, change_stamp
from agentwatch.requests.box import Box, BoxError, Offer, refuse_inside
from agentwatch.state import is_shown, state_directory

_POLL_SECONDS: Final = 0.01
_WATCHED_SECONDS: Final = 0.25
"""Between two looks at whether a screen shows the workspace."""
_AHEAD_SECONDS: Final = 60.0
"""So far the clock of who decides may be ahead of this one."""
_LOOK_ANYWAY_SECONDS: Final = 2.0
"""So often is looked without a sign."""


class Holder:
    """Holds requests of one workspace. `name` is who it is, for receipts: "claude hook".

    `state` and `configuration` are directories, by default those of the user. Nothing here raises but `offer`.
    """

    def __init__(
        self,
        workspace: Path,
        *,
        name: str,
        state: Path | None = None,
        configuration: Path | None = None,
        disk: Disk = UNSYNCED,
    ) -> None:
        self._state = state or state_directory(workspace)
        self.box: Final = Box(workspace, state=self._state, disk=disk)
        self.trouble: str = ""
        """Why an answer did not get through, one sentence for the operator; it may quote foreign text."""
        self._workspace = workspace
        self._name = f"{name}, process {os.getpid()}"
        self._keys = Keys(configuration, disk)
        self._ledger = Ledger(self._state, self.box.workspace_id, disk)
        self._book = ReceiptBook(workspace, self._state, disk)
        self._looked: dict[str, tuple[tuple[int, int, int] | None, float]] = {}
        self._before: dict[str, int] = {}
        """By request, how many decisions there were before it was offered."""
        self._seen: dict[str, float] = {}
        """By the digest of an answer, when it was found."""

    def offer(self, request: Request) -> Offer:
        """Offer a request. What was decided before that is no answer to it. Raises BoxError."""
        names: list[str] = []
        with suppress(OSError):
            names = [path.name for path in self._ledger.directory.iterdir()]
        self._before[request.request_id] = max((number_in(name) or 0 for name in names), default=0)
        offer = self.box.offer(request)
        with suppress(ImportError):
            # While the operator reads, and not once there is an answer.
            load_what_verifies()
        return offer

    def hold(self, offer: Offer, goes_on: Callable[[], bool]) -> Record | None:
        """Wait for the answer to what is offered, and claim it. None once nobody can give it in time, or may.

        That is at `until`, when no screen shows the workspace, when another holder of the same has ended it, or when
        `goes_on` says that the program waits no more.
        Blocks; what the record says must be handed on at once.
        """
        until = offer.request.until
        left = math.inf if until is None else until - time.time()
        end, watched_at = time.monotonic() + left, -math.inf
        while True:
            now = time.monotonic()
            if now >= end or not goes_on():
                return None
            if now - watched_at >= _WATCHED_SECONDS:
                is_watched = is_shown(self._state, **({} if watched_at == -math.inf else {"tries": 1}))
                if not (is_watched and offer.is_whole()):
                    return None
                watched_at = now
            record = self._answer(offer)
            if record is not None:
                return record if self._claim(record) else None
            time.sleep(min(_POLL_SECONDS, max(end - time.monotonic(), 0.0)))

    def look(self, offer: Offer) -> Record | None:
        """The answer to what is offered, claimed, if it is there now. Does not wait."""
        record = self._answer(offer)
        return record if record is not None and self._claim(record) else None

    def delivered(self, record: Record) -> None:
        """Write down that the program was given an answer."""
        try:
            self._book.mark(record.decision_id, Stage.DELIVERED, self._name, since=record.created_at, private=True)
        except DecisionError as error:
            self.trouble = str(error)

    def _answer(self, offer: Offer) -> Record | None:
        """What the operator decided about the input that is held here."""
        request = offer.request
        sign, now = change_stamp(self._ledger.directory), time.monotonic()
        looked = self._looked.get(request.request_id)
        if looked is not None and looked[0] == sign and now - looked[1] < _LOOK_ANYWAY_SECONDS:
            return None
        self._looked[request.request_id] = sign, now
        entry, before = self._find(request.request_id), self._before.get(request.request_id, 0)
        if entry is None or not answers(entry.record, request):
            return None
        asked, made = math.floor(request.asked_at), time_of(entry.record.created_at).timestamp()
        # Records have whole seconds: one of the very second may be of before, if it was there first.
        is_older = made < asked or (made == asked and entry.record.seq <= before)
        is_late = entry.record.is_expired(datetime.now(UTC)) or (
            request.until is not None and time.time() >= request.until
        )
        if is_older or is_late:
            return None
        # For ever: it does not begin to count once the clock here has caught up.
        if made > self._seen.setdefault(entry.sha256, time.time()) + _AHEAD_SECONDS:
            self.trouble = f"the answer is dated {entry.record.created_at}, ahead of the clock here: set both clocks"
            return None
        if not offer.is_whole():
            there = self.box.find(request.request_id)
            if there is None or there.ended_at is None:
                self.trouble = "the offer of the request was replaced, so what was seen there may be another one"
            return None
        return entry.record

    def _find(self, request_id: str) -> ChainEntry | None:
        """The decision about a request, None where there is none that holds, or it cannot be read."""
        try:
            refuse_inside(self._workspace, self._keys.directory)
            found = self._ledger.find(self._keys.trust(), request_id)
        except (DecisionError, BoxError) as error:
            self.trouble = str(error)
            return None
        self.trouble = found.message if isinstance(found, ChainProblem) else ""
        return None if isinstance(found, ChainProblem) else found

    def _claim(self, record: Record) -> bool:
        try:
            return self._book.claim(record.decision_id, self._name, since=record.created_at, private=True).won
        except DecisionError as error:
            self.trouble = str(error)
            return False
