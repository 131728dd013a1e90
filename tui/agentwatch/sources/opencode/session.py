"""What is known of one session: messages in their order, open and task calls, a checklist."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Final, NamedTuple

from agentwatch.delegation.run import Activity, todo_moved
from agentwatch.sources.opencode import records
from agentwatch.sources.opencode.entries import entries
from agentwatch.sources.opencode.permits import Permits
from agentwatch.sources.opencode.records import Notice, ToolCall, TurnRecord
from agentwatch.sources.opencode.tables import RecordKind, RecordRow, SessionRow
from agentwatch.sources.sessions.doing import EntryKind, call_of, digest_of_call, words_of
from agentwatch.sources.sessions.fields import todos_of
from agentwatch.sources.sessions.runs import Rising

_KEPT_STEPS: Final = 100


class Exchange(NamedTuple):
    """A message of a person or of the parent, or none at all, and the session's messages that answer it."""

    asked: TurnRecord | None = None
    answers: tuple[TurnRecord, ...] = ()

    @property
    def last(self) -> TurnRecord | None:
        return self.answers[-1] if self.answers else None


class Step(NamedTuple):
    """A part that says what the agent does, None where it says what it was told. `digest` is that of a call."""

    message: str
    doing: Activity | None
    digest: bytes = b""


@dataclass(slots=True)
class Dialogue:
    """One session as far as its records have been read: up to `seq` and `version`, but for those in `waiting`."""

    row: SessionRow
    places: Sequence[str] = ()
    """The spellings of the workspace."""
    waiting: list[tuple[RecordKind, str]] = field(default_factory=list)
    listed: dict[tuple[RecordKind, str], object] = field(default_factory=dict)
    """The records and their times, where the database does not number its changes."""
    seq: int | None = None
    version: tuple[object, ...] | None = None
    turns: dict[str, TurnRecord] = field(default_factory=dict)
    calls: dict[str, ToolCall] = field(default_factory=dict)
    notices: dict[str, Notice] = field(default_factory=dict)
    words: dict[str, dict[str, int]] = field(default_factory=dict)
    """When each part with words was last changed, in milliseconds, by message and part."""
    checklist: Sequence[tuple[str, str]] | None = None
    unread: dict[str, str | None] = field(default_factory=dict)
    """Records that cannot be read, each with its message."""
    last_part: int = 0
    """The last change of a part, in milliseconds."""
    was_shortened: bool = False
    """A part was removed, so that `last_part` has to be asked for."""
    moved: set[str] = field(default_factory=set)
    """Children of which something was read since they were last judged."""
    steps: dict[str, Step] = field(default_factory=dict)
    """The last parts that say what it does, by their ids, which are in the order of time."""
    permits: Permits = field(default_factory=Permits)
    _checklists: dict[str, tuple[str | None, list[tuple[str, str]]]] = field(default_factory=dict)
    _rounds: list[Exchange] | None = None
    _asked_at: dict[str, float] | None = None

    @property
    def is_loaded(self) -> bool:
        return self.version == self.row.version and not self.waiting

    def put(self, kind: RecordKind, name: str, record: RecordRow | None) -> None:
        """A record as it is now, None where it was removed."""
        self.unread.pop(name, None)
        if record is not None and records.is_strange(record):
            self.unread[name] = record.message_id
        (self._put_message if kind == "message" else self._put_part)(name, record)

    def rounds(self) -> list[Exchange]:
        """The conversation in rounds, oldest first, without what was said to shorten it."""
        if self._rounds is None:
            summaries = [turn for turn in self.turns.values() if turn.is_summary]
            aside = {turn.id for turn in summaries} | {turn.asked_by for turn in summaries}
            rounds: list[tuple[TurnRecord | None, list[TurnRecord]]] = []
            for turn in sorted(self.turns.values(), key=turn_order):
                if turn.id not in aside and turn.is_user:
                    rounds.append((turn, []))
                elif turn.id not in aside:
                    rounds = rounds or [(None, [])]
                    rounds[-1][1].append(turn)
            self._rounds = [Exchange(asked, tuple(answers)) for asked, answers in rounds]
        return self._rounds

    @property
    def last_round(self) -> Exchange:
        return self.rounds()[-1] if self.rounds() else Exchange()

    def words_of(self, message: TurnRecord) -> dict[str, int]:
        """The parts with the words of a message in their order, and when each was last changed."""
        return dict(sorted(self.words.get(message.id, {}).items()))

    @property
    def asked(self) -> frozenset[str]:
        """The sessions that its task calls name."""
        return frozenset(call.child for call in self.calls.values() if call.child is not None)

    def asked_at(self, child_or_call: str) -> float | None:
        """That of a run: of a session that was asked for, or of a call that has none; None where nobody asked."""
        if self._asked_at is None:
            # The ids are made of times. Rows are in order, unless another program wrote them: that numbers no changes.
            is_in_order = self.row.seq is not None
            calls = [call for call in self.calls.values() if call.is_task]
            calls.sort(key=lambda call: (call.row if is_in_order else call.created or call.started, call.id))
            rising = Rising()
            self._asked_at = {}
            for call in calls:
                self._asked_at.setdefault(call.child or call.id, rising((call.created or call.started) / 1000))
        return self._asked_at.get(child_or_call)

    def call_for(self, child: str) -> ToolCall | None:
        """The last task call that is about a child."""
        return max((call for call in self.calls.values() if call.child == child), key=_call_order, default=None)

    def last_calls(self) -> list[ToolCall]:
        """The task calls without a child, and the last one about each child."""
        calls = sorted((call for call in self.calls.values() if call.is_task), key=_call_order)
        return list({call.child or call.id: call for call in calls}.values())

    def notice_about(self, child: str) -> tuple[int, Notice] | None:
        """When the last notice about a child came, in milliseconds, and that notice."""
        there = (one for one in self.notices.values() if one.child == child and one.message in self.turns)
        return max(((self.turns[one.message].created, one) for one in there), default=None)

    def goes_on_after(self, message: str) -> bool:
        """Whether the session has answered again after a message: it no longer works on that one."""
        turn = self.turns.get(message)
        return turn is not None and any(
            turn_order(later) > turn_order(turn)
            for later in self.turns.values()
            if not later.is_user and not later.is_summary
        )

    def todos(self) -> Sequence[tuple[str, str]] | None:
        """(text, status): the session's checklist, or the one it wrote last where there is no table for it."""
        if self.checklist:
            return self.checklist
        return self._checklists[max(self._checklists)][1] if self._checklists else None

    def doing(self) -> Activity | None:
        """What it does, or did last; None where nothing of it was said since it was told something."""
        steps = [(name, self._said(step)) for name, step in sorted(self.steps.items())]
        told = max((number for number, (_, step) in enumerate(steps, 1) if step.doing is None), default=0)
        steps = steps[told:]
        if not steps:
            return None
        name, last = steps[-1]
        if last.doing is None or not last.digest:
            return last.doing
        if name in self._checklists and (moved := self._moved(name, last.doing.at)) is not None:
            return moved
        if last.doing.over:
            still = (step for _, step in reversed(steps) if step.message == last.message and step.digest)
            last = next((step for step in still if step.doing is not None and not step.doing.over), last)
        row = list(takewhile(lambda step: step.digest == last.digest, (s for _, s in reversed(steps) if s.digest)))
        return last.doing._replace(repeats=max(len(row), 1)) if last.doing is not None else None

    def _said(self, step: Step) -> Step:
        """The words of a person, or of the parent, are not what it does."""
        turn = self.turns.get(step.message)
        return step._replace(doing=None) if turn is not None and turn.is_user else step

    def _moved(self, name: str, at: float) -> Activity | None:
        earlier = [part for part in self._checklists if part < name]
        before = todos_of(self._checklists[max(earlier)][1]) if earlier else None
        return todo_moved(before, todos_of(self._checklists[name][1]), at)

    def _put_step(self, name: str, record: RecordRow) -> None:
        """Take in what a part says that the agent does."""
        self.steps.pop(name, None)
        said = list(entries(record.data or {}, record.created / 1000))
        if record.message_id is None or not said:
            return
        first, is_over = said[0], len(said) > 1
        if first.kind is EntryKind.CALL:
            doing = call_of(first, self.places)._replace(over=is_over)
            self.steps[name] = Step(record.message_id, doing, digest_of_call(first.tool, first.given))
        elif first.kind is EntryKind.WORDS:
            self.steps[name] = Step(record.message_id, words_of(first))
        if len(self.steps) > 2 * _KEPT_STEPS:
            self.steps = dict(sorted(self.steps.items())[-_KEPT_STEPS:])

    def _put_message(self, name: str, record: RecordRow | None) -> None:
        self._rounds = None
        if record is not None:
            self.turns[name] = records.turn_of(record)
            return
        self.turns.pop(name, None)
        self.words.pop(name, None)
        parts = [call.id for call in self.calls.values() if call.message == name]
        parts += [part for part, step in self.steps.items() if step.message == name]
        parts += [notice.id for notice in self.notices.values() if notice.message == name]
        parts += [part for part, (message, _) in self._checklists.items() if message == name]
        self.unread = {part: message for part, message in self.unread.items() if message != name}
        self.was_shortened = True
        for part in parts:
            self._put_part(part, None)

    def _put_part(self, name: str, record: RecordRow | None) -> None:
        before = self.calls.pop(name, None), self.notices.pop(name, None)
        self.permits.put(name, record)
        self._asked_at = None
        self._checklists.pop(name, None)
        for words in self.words.values() if record is None else [self.words.get(record.message_id or "", {})]:
            words.pop(name, None)
        if record is None:
            self.steps.pop(name, None)
            self.was_shortened = True
            # The others may have been asked for at another place.
            self.moved |= self.asked
            after: tuple[ToolCall | None, Notice | None] = None, None
        else:
            self.last_part = max(self.last_part, record.updated)
            after = call, notice = records.call_of(record), records.notice_of(record)
            if call is not None:
                self.calls[name] = call
            if notice is not None:
                self.notices[name] = notice
            self._put_step(name, record)
            if record.message_id is not None and records.has_words(record):
                self.words.setdefault(record.message_id, {})[name] = record.updated
            if (checklist := records.todos_of(record)) is not None:
                self._checklists[name] = record.message_id, checklist
        self.moved.update(one.child for one in (*before, *after) if one is not None and one.child is not None)


def turn_order(turn: TurnRecord) -> tuple[int, str]:
    return turn.created, turn.id


def _call_order(call: ToolCall) -> tuple[int, str]:
    return call.started, call.id
