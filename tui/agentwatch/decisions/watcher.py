"""Keeps a running monitor told of the decisions: what is recorded, how far each has got, and what is forged."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable
from typing import Final

from agentwatch.background import Part
from agentwatch.decisions.delivery import MOST, NOT_DELIVERED, UNVERIFIED, Mirror, forged
from agentwatch.decisions.errors import DecisionError
from agentwatch.decisions.record import Record, decision_of
from agentwatch.decisions.service import DecisionService
from agentwatch.delegation.decision import Decision, Stage
from agentwatch.delegation.events import Decided, Event, Unreadable
from agentwatch.delegation.request import RequestStage
from agentwatch.delegation.task import Task

_MIRROR_SECONDS: Final = (10.0, 60.0)
"""Between two looks at everything: whether something waits to be delivered, was edited, or is forged; the second where
all is delivered. In between, only what the directories tell by their times is looked at."""


class DecisionWatcher(Part):
    """Looks at the decisions of a workspace, once or as a part of a worker."""

    def __init__(self, desk: DecisionService, clock: Callable[[], float] = time.time) -> None:
        self.desk: Final = desk
        self.notice: str | None = None
        self._clock = clock
        self._known: dict[str, Decision] = {}
        self._forged: dict[str, str] = {}
        self._acted: list[Decision] = []
        """Those to be written down."""
        self._written: set[tuple[str, float]] = set()
        """By id and time: the same attempt can be decided anew."""
        self._mirror = Mirror()
        self._mirror_at = -math.inf
        self._looked: tuple[int | None, ...] | None = None

    def look(self, *, mirror: bool = True, writes: bool = True) -> list[Event]:
        """The changes since the call before, with the `mirror` or without. Blocks."""
        try:
            if mirror:
                self._mirror = self.desk.mirror() if writes else Mirror(foreign=tuple(self.desk.forged()))
            chain = self.desk.read()
            records: list[Record] = [entry.record for entry in chain.latest.values()]
            receipts = self.desk.receipts(records)
        except DecisionError as error:
            self.notice = str(error)
            return []
        self.notice = chain.broken or (chain.problems[0].message if chain.problems else self.desk.notice)
        if len(chain.problems) > 1:
            self.notice = f"{self.notice} (and {len(chain.problems) - 1:,} more: `agentwatch verify` names them)"
        events: list[Event] = []
        for record in records:
            waits = f"{NOT_DELIVERED}{self._mirror.reason}" if record.decision_id in self._mirror.pending else ""
            decision = decision_of(record, receipts[record.decision_id], waits)
            if self._known.get(record.decision_id) != decision:
                self._known[record.decision_id] = decision
                events.append(Decided(0, decision.at, decision.decision_id, decision))
        for path, why in self._mirror.foreign:
            # A file that was put right, or taken away, stays told: that somebody has forged one is worth knowing.
            is_new = self._forged.get(path) != why and (path in self._forged or len(self._forged) < MOST)
            if why != UNVERIFIED and is_new:
                self._forged[path] = why
                events.append(Unreadable(0, self._clock(), path, forged(why)))
        return events

    def note_acted(self, tasks: Iterable[Task]) -> None:
        """Write down which decisions were carried out, for those that read the receipts elsewhere."""
        for task in tasks:
            decisions = [one for attempt in task.attempts for one in attempt.decisions]
            self._acted += [one for one in decisions if one.receipt.stage is Stage.ACTED]
            acted = (one.request_id for one in task.requests if one.stage is RequestStage.ACTED)
            # The tree sees what the program's records show: its answers have the receipts that were read.
            answers = [self._known[request_id] for request_id in acted if request_id in self._known]
            self._acted += [one for one in answers if one.receipt.stage is not Stage.ACTED]

    def look_soon(self) -> None:
        """Something was decided just now. Any thread may call it."""
        self._mirror_at = -math.inf
        self.wake()

    def poll(self) -> list[Event]:
        """Write down what was carried out, and look where something may have changed. Blocks."""
        while self._acted:
            acted = self._acted.pop()
            if (key := (acted.decision_id, acted.at)) in self._written:
                continue
            self._written.add(key)
            saw = "the next attempt" if acted.request_id is None else "its program's record"
            try:
                self.desk.acted(acted, f"agentwatch saw {saw}")
            except DecisionError as error:
                self.notice = str(error)
        now, places = time.monotonic(), self.desk.changes()
        is_due = now >= self._mirror_at
        if not is_due and places == self._looked:
            return []
        self._looked = places
        if is_due:
            self._mirror_at = now + _MIRROR_SECONDS[1]
        events = self.look(mirror=is_due)
        if self._mirror.pending:
            self._mirror_at = min(self._mirror_at, now + _MIRROR_SECONDS[0])
        return events
