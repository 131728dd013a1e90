"""Waits for the operator's answer to a program's request. If several processes wait, only one gets the answer.

After any failure the program gets no answer, so that its own prompt remains or appears.
"""

import math
import os
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from agentwatch.decisions.delivery import CLAIM, ReceiptBook
from agentwatch.decisions.errors import DecisionError
from agentwatch.decisions.keys import Keys
from agentwatch.decisions.ledger import Ledger
from agentwatch.decisions.record import Record, is_answer_to, parse_time
from agentwatch.delegation.decision import Request, Stage
from agentwatch.disk import UNSYNCED, Disk, change_stamp
from agentwatch.requests.store import Offer, RequestError, RequestStore, require_outside
from agentwatch.state import is_shown, state_directory

_POLL_SECONDS = 0.01
_WATCHED_SECONDS = 0.25  # between two checks whether a screen shows the workspace
_LOOK_ANYWAY_SECONDS = 2.0  # between two readings of the ledger if it has not changed


class Holder:
    """Waits for answers to requests of one workspace. Receipts have its `name`, such as "claude hook". Never raises."""

    trouble: str = ""  # why the program did not get an answer, as a sentence for the operator; may quote untrusted text

    def __init__(
        self,
        workspace: Path,
        *,
        name: str,
        state: Path | None = None,
        configuration: Path | None = None,
        disk: Disk = UNSYNCED,
    ):
        self._state = state or state_directory(workspace)
        self.store = RequestStore(workspace, state=self._state, disk=disk)
        self._workspace = workspace
        self._name = f"{name}, process {os.getpid()}"
        self._keys = Keys(configuration, disk)
        self._ledger = Ledger(self._state, self.store.workspace_id, disk)
        self._book = ReceiptBook(workspace, self._state, disk)

    def wait_for_answer(self, offer: Offer, goes_on: Callable[[], bool]) -> Record | None:
        """Wait for the answer to an offer, claim it and return it. The caller must send it to the program at once.

        Returns None once the offer has ended, no screen shows the workspace, or `goes_on` returns False.
        """
        until, watched_at = offer.request.until, -math.inf
        end = math.inf if until is None else time.monotonic() + until - time.time()
        while (now := time.monotonic()) < end and goes_on():
            if now - watched_at >= _WATCHED_SECONDS:
                if not (is_shown(self._state) and offer.is_unreplaced()):
                    return None
                watched_at = now
            if (record := self.take_answer(offer)) is not None:
                return record
            time.sleep(min(_POLL_SECONDS, max(end - time.monotonic(), 0.0)))
        return None

    def take_answer(self, offer: Offer) -> Record | None:
        """Claim and return the answer to an offer. Return None if there is no answer, or if another holder has it."""
        stamp, now = change_stamp(self._ledger.directory), time.monotonic()
        if offer.looked[0] == stamp and now - offer.looked[1] < _LOOK_ANYWAY_SECONDS:
            return None
        offer.looked = stamp, now
        self.trouble = ""
        try:
            record = self._find_answer(offer.request)
            if record is None:
                return None
            if not offer.is_unreplaced():
                there = self.store.find(offer.request.request_id)
                if there is None or there.ended_at is None:
                    self.trouble = "the offer of the request was replaced, so what was seen there may be another one"
                return None
            claim = self._book.write_receipt(
                record.decision_id, CLAIM, self._name, since=record.created_at, private=True
            )
        except (DecisionError, RequestError) as error:
            self.trouble = str(error)
            return None
        return record if claim.won else None

    def record_delivered(self, record: Record) -> None:
        """Write the receipt that the program got an answer."""
        try:
            self._book.write_receipt(
                record.decision_id, Stage.DELIVERED, self._name, since=record.created_at, private=True
            )
        except DecisionError as error:
            self.trouble = str(error)

    def _find_answer(self, request: Request) -> Record | None:
        """Return the operator's valid answer to exactly this request, or None. Raises DecisionError or RequestError."""
        require_outside(self._workspace, self._keys.directory)
        chain = self._ledger.read(self._keys.trust())
        found = chain.latest.get(request.request_id)
        if found is None:
            self.trouble = next((one.message for one in chain.problems if request.request_id in one.name), "")
        if found is None or not is_answer_to(record := found.record, request):
            return None
        made, now = parse_time(record.created_at).timestamp(), time.time()
        # A decision from before the request is no answer. A record has whole seconds, so round the request down, too.
        is_older = made < math.floor(request.asked_at)
        is_late = record.is_expired(datetime.now(UTC)) or (request.until is not None and now >= request.until)
        return None if is_older or is_late else record
