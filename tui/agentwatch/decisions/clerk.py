"""Keeps a running monitor told of the decisions: what is recorded, how far each has got, and what is forged."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from agentwatch.background import Background
from agentwatch.decisions.delivery import MOST, NOT_DELIVERED, UNVERIFIED, Mirror
from agentwatch.decisions.errors import DecisionError
from agentwatch.decisions.face import OperatorDesk
from agentwatch.decisions.ledger import DecisionMade
from agentwatch.decisions.record import Params, Record, Subject, time_of
from agentwatch.decisions.rules import forged
from agentwatch.delegation import decision as told
from agentwatch.delegation.decision import Action
from agentwatch.delegation.events import Decided, Event, Unreadable
from agentwatch.delegation.request import Request, RequestStage
from agentwatch.delegation.task import Task
from agentwatch.sources.files.watcher import shared_watcher

_PAUSE_SECONDS: Final = 0.5
_MIRROR_SECONDS: Final = (10.0, 60.0)
"""Between two looks at everything: whether something waits to be delivered, was edited, or is forged; the second where
all is delivered, and the system tells when something is written. In between, only what the directories tell by their
times is looked at, and what has rung."""


class Clerk(Background[Sequence[Event]]):
    """Looks at the desk in a thread of its own, from `start` to `stop`."""

    thread_name = "agentwatch-decisions"

    def __init__(self, desk: OperatorDesk, clock: Callable[[], float] = time.time) -> None:
        super().__init__()
        self.desk: Final = desk
        self.notice: str | None = None
        """What the operator must know of the ledger, one sentence. May quote foreign text."""
        self.idle = False
        """Whether all that was there at first has been told."""
        self._clock = clock
        self._known: dict[str, told.Decision] = {}
        self._forged: dict[str, str] = {}
        self._acted: dict[tuple[str, float], told.Decision] = {}
        """By id and time: the same attempt can be decided anew."""
        self._announced: dict[str, str] = {}
        self._mirror = Mirror()
        self._hurry = False

    def decide(
        self, subject: Subject, action: Action, params: Params | None, *, returned: Callable[[], str | None], note: str
    ) -> DecisionMade:
        """Record a decision and deliver it, as `Desk.decide` does. Blocks; any thread may call it."""
        try:
            return self.desk.decide(subject, action, params, returned=returned, note=note)
        finally:
            # Also where it failed: what is on disk is the truth, whatever was said.
            self.look_soon()

    def answer(
        self,
        request: Request,
        action: Action,
        params: Params | None,
        *,
        task_id: str,
        attempt: int,
        gone: Callable[[], str | None],
        note: str,
    ) -> DecisionMade:
        """Record the answer to a request, as `Desk.answer` does. Blocks; any thread may call it."""
        try:
            return self.desk.answer(request, action, params, task_id=task_id, attempt=attempt, gone=gone, note=note)
        finally:
            self.look_soon()

    def look(self, *, mirror: bool = True, writes: bool = True) -> list[Event]:
        """What has changed since the call before, with the `mirror` or without. Blocks."""
        try:
            if mirror:
                self._mirror = self.desk.mirror() if writes else Mirror(foreign=tuple(self.desk.forged()))
            chain = self.desk.read()
            records = [entry.record for entry in chain.latest.values()]
            receipts = self.desk.receipts(records)
        except DecisionError as error:
            self.notice = str(error)
            return []
        self.notice = chain.broken or (chain.problems[0].message if chain.problems else self.desk.notice)
        if len(chain.problems) > 1:
            self.notice = f"{self.notice} (and {len(chain.problems) - 1:,} more: `agentwatch verify` names them)"
        now = self._clock()
        events: list[Event] = []
        for record in records:
            waits = f"{NOT_DELIVERED}{self._mirror.reason}" if record.decision_id in self._mirror.pending else ""
            announced = self._announced.get(record.decision_id, "")
            decision = decision_of(record, receipts[record.decision_id], waits, announced)
            if self._known.get(record.decision_id) != decision:
                self._known[record.decision_id] = decision
                events.append(Decided(0, decision.at, decision.decision_id, decision))
        for path, why in self._mirror.foreign:
            if why == UNVERIFIED:
                continue
            if self._forged.get(path) != why and (path in self._forged or len(self._forged) < MOST):
                # A file that was put right, or taken away, stays told: that somebody has forged one is worth knowing.
                self._forged[path] = why
                events.append(Unreadable(0, now, path, forged(why)))
        return events

    def note_acted(self, tasks: Iterable[Task]) -> None:
        """Write down which decisions were carried out, for those that read the receipts elsewhere."""
        news: dict[tuple[str, float], told.Decision] = {}
        for task in tasks:
            decisions = [one for attempt in task.attempts for one in attempt.decisions]
            news |= {(one.decision_id, one.at): one for one in decisions if one.receipt.stage is told.Stage.ACTED}
            acted = (one.request_id for one in task.requests if one.stage is RequestStage.ACTED)
            # What the program's records show, the tree sees: its answers have the receipts that were read.
            answers = [self._known[request_id] for request_id in acted if request_id in self._known]
            news |= {(one.decision_id, one.at): one for one in answers if one.receipt.stage is not told.Stage.ACTED}
        if news.keys() - self._acted.keys():
            self._acted = news | self._acted
            self.ring()

    def note_announced(self, decision_id: str, words: str) -> None:
        """Say of a decision that the session that waits for it was told. Any thread may call it."""
        self._announced[decision_id] = words
        self.look_soon()

    def look_soon(self) -> None:
        """Something was decided just now. Any thread may call it."""
        with self._news:
            self._hurry = True
            self._news.notify()

    @property
    def _is_wanted(self) -> bool:
        return self._stopped or self._hurry

    def _run(self, emit: Callable[[Sequence[Event]], None]) -> None:
        with shared_watcher.watch(self.desk.places, self.ring):
            self._watch(emit)

    def _watch(self, emit: Callable[[Sequence[Event]], None]) -> None:
        mirrored_at = mirror_at = -math.inf
        rung = False
        written: set[tuple[str, float]] = set()
        looked: tuple[int | None, ...] = ()
        while True:
            for key in self._acted.keys() - written:
                written.add(key)
                try:
                    acted = self._acted[key]
                    saw = "the next attempt" if acted.request_id is None else "its program's record"
                    self.desk.acted(acted, f"agentwatch saw {saw}")
                except DecisionError as error:
                    self.notice = str(error)
            now = time.monotonic()
            with self._news:
                hurry, self._hurry = self._hurry, False
            least, most = _MIRROR_SECONDS
            mirror = hurry or now >= (min(mirror_at, mirrored_at + least) if rung else mirror_at)
            places = self.desk.changes()
            if mirror or rung or places != looked:
                looked = places
                events = self.look(mirror=mirror)
                try:
                    if events:
                        emit(events)
                except RuntimeError:
                    return
            is_heard = shared_watcher.works and bool(self.desk.places)
            if mirror:
                mirrored_at, mirror_at = now, now + (most if is_heard and not self._mirror.pending else least)
            elif rung:
                mirror_at = min(mirror_at, mirrored_at + least)
            self.idle = True
            rung = self._rest(_PAUSE_SECONDS, mirror_at - now if is_heard else _PAUSE_SECONDS)
            if self._stopped:
                return


def decision_of(
    record: Record, receipts: tuple[told.Receipt, ...], waits: str = "", announced: str = ""
) -> told.Decision:
    """A record of the ledger as the tree knows it."""
    params = record.params
    return told.Decision(
        decision_id=record.decision_id,
        task_id=record.task_id,
        attempt=record.attempt,
        handoff_sha256=record.handoff_sha256,
        return_sha256=record.return_sha256,
        action=record.action,
        at=time_of(record.created_at).timestamp(),
        receipts=receipts,
        expires_at=None if record.expires_at is None else time_of(record.expires_at).timestamp(),
        operator=record.operator,
        note=record.note,
        mode=params.mode,
        mitigation=params.mitigation.value if params.mitigation else None,
        answers=tuple(one.answer for one in params.answers),
        rule=params.rule,
        waits=waits,
        announced=announced,
    )
