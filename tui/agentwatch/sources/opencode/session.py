"""What is known of one session: its messages in their order, its open and its task calls, its checklist."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from agentwatch.sources.opencode.records import (
    Call,
    Notice,
    Turn,
    Words,
    call_of,
    is_strange,
    notice_of,
    todos_of,
    turn_of,
    words_of,
)
from agentwatch.sources.opencode.tables import Kind, Record, SessionRow
from agentwatch.sources.sessions.order import Rising


@dataclass(frozen=True, slots=True)
class Exchange:
    """A message of a person or of the parent, or none at all, and the session's messages that answer it."""

    asked: Turn | None
    answers: tuple[Turn, ...]

    @property
    def last(self) -> Turn | None:
        return self.answers[-1] if self.answers else None


@dataclass(slots=True)
class Session:
    """One session as far as its records have been read: up to `seq` and `version`, but for those in `waiting`."""

    row: SessionRow
    waiting: list[tuple[Kind, str]] = field(default_factory=list)
    listed: dict[tuple[Kind, str], object] = field(default_factory=dict)
    """The records and their times, where the database does not number its changes."""
    seq: int | None = None
    version: tuple[object, ...] | None = None
    turns: dict[str, Turn] = field(default_factory=dict)
    calls: dict[str, Call] = field(default_factory=dict)
    notices: dict[str, Notice] = field(default_factory=dict)
    words: dict[str, dict[str, Words]] = field(default_factory=dict)
    """Texts, by message and part."""
    checklist: Sequence[tuple[str, str]] | None = None
    unread: dict[str, str | None] = field(default_factory=dict)
    """Records that cannot be read, each with its message."""
    last_part: int = 0
    """The last change of a part, in milliseconds."""
    was_shortened: bool = False
    """A part was removed, so that `last_part` has to be asked for."""
    moved: set[str] = field(default_factory=set)
    """Children of which something was read since they were last judged."""
    _checklists: dict[str, tuple[str | None, list[tuple[str, str]]]] = field(default_factory=dict)
    _rounds: list[Exchange] | None = None
    _asked_at: dict[str, float] | None = None

    @property
    def is_loaded(self) -> bool:
        return self.version == self.row.version and not self.waiting

    def put(self, kind: Kind, name: str, record: Record | None) -> None:
        """A record as it is now, None where it was removed."""
        self.unread.pop(name, None)
        if record is not None and is_strange(record):
            self.unread[name] = record.message_id
        if kind == "message":
            self._put_message(name, record)
        else:
            self._put_part(name, record)

    def rounds(self) -> list[Exchange]:
        """The conversation in rounds, oldest first, without what was said to shorten it."""
        if self._rounds is None:
            summaries = [turn for turn in self.turns.values() if turn.is_summary]
            aside = {turn.id for turn in summaries} | {turn.asked_by for turn in summaries}
            turns = sorted(self.turns.values(), key=lambda turn: (turn.created, turn.id))
            found: list[tuple[Turn | None, list[Turn]]] = []
            for turn in turns:
                if turn.id in aside:
                    continue
                if turn.is_user:
                    found.append((turn, []))
                elif found:
                    found[-1][1].append(turn)
                else:
                    found.append((None, [turn]))
            self._rounds = [Exchange(asked, tuple(answers)) for asked, answers in found]
        return self._rounds

    def words_of(self, message: Turn, *, synthetic: bool = False) -> list[Words]:
        """The texts of a message in their order, by default those that a person or a model wrote."""
        words = self.words.get(message.id, {}).values()
        return sorted((one for one in words if synthetic or not one.is_synthetic), key=lambda one: one.id)

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

    def call_for(self, child: str) -> Call | None:
        """The last task call that is about a child."""
        return max(
            (call for call in self.calls.values() if call.child == child),
            key=lambda call: (call.started, call.id),
            default=None,
        )

    def last_calls(self) -> list[Call]:
        """The task calls without a child, and the last one about each child."""
        last: dict[str, Call] = {}
        for call in sorted(self.calls.values(), key=lambda call: (call.started, call.id)):
            if call.is_task:
                last[call.child or call.id] = call
        return list(last.values())

    def notice_about(self, child: str) -> tuple[Notice, int] | None:
        """The last notice about a child, and when it came, in milliseconds."""
        found = [
            (self.turns[notice.message].created, notice.id, notice)
            for notice in self.notices.values()
            if notice.child == child and notice.message in self.turns
        ]
        if not found:
            return None
        at, _, notice = max(found, key=lambda one: one[:2])
        return notice, at

    def goes_on_after(self, message: str) -> bool:
        """Whether the session has answered again after a message: it no longer works on that one."""
        turn = self.turns.get(message)
        return turn is not None and any(
            (later.created, later.id) > (turn.created, turn.id)
            for later in self.turns.values()
            if not later.is_user and not later.is_summary
        )

    def todos(self) -> Sequence[tuple[str, str]] | None:
        """(text, status): the session's checklist, or the one it wrote last where there is no table for it."""
        if self.checklist:
            return self.checklist
        return self._checklists[max(self._checklists)][1] if self._checklists else None

    def _put_message(self, name: str, record: Record | None) -> None:
        self._rounds = None
        if record is not None:
            self.turns[name] = turn_of(record)
            return
        self.turns.pop(name, None)
        self.words.pop(name, None)
        parts = [call.id for call in self.calls.values() if call.message == name]
        parts += [notice.id for notice in self.notices.values() if notice.message == name]
        parts += [part for part, (message, _) in self._checklists.items() if message == name]
        self.unread = {part: message for part, message in self.unread.items() if message != name}
        self.was_shortened = True
        for part in parts:
            self._put_part(part, None)

    def _put_part(self, name: str, record: Record | None) -> None:
        before = self.calls.pop(name, None), self.notices.pop(name, None)
        self._asked_at = None
        self._checklists.pop(name, None)
        places = self.words.values() if record is None else [self.words.get(record.message_id or "", {})]
        for words in places:
            words.pop(name, None)
        if record is None:
            self.was_shortened = True
            # The others may have been asked for at another place.
            self.moved |= self.asked
            after: tuple[Call | None, Notice | None] = None, None
        else:
            self.last_part = max(self.last_part, record.updated)
            after = call_of(record), notice_of(record)
            self._keep(record, *after)
        about = [one.child for one in (*before, *after) if one is not None and one.child is not None]
        self.moved.update(about)

    def _keep(self, record: Record, call: Call | None, notice: Notice | None) -> None:
        if call is not None:
            self.calls[call.id] = call
        if notice is not None:
            self.notices[notice.id] = notice
        words = words_of(record)
        if words is not None:
            self.words.setdefault(words.message, {})[words.id] = words
        checklist = todos_of(record)
        if checklist is not None:
            self._checklists[record.id] = record.message_id, checklist
