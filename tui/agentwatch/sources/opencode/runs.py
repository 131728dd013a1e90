"""Runs made of sessions, and of task calls that never got a session, with the texts that were handed over and back."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from agentwatch.delegation.run import Message, Run, RunState, StartedBy, Turn
from agentwatch.sources.opencode.records import ToolCall, TurnRecord, output_in, prompt_in, text_in
from agentwatch.sources.opencode.session import Dialogue, turn_order
from agentwatch.sources.opencode.standing import Standing, standing_of
from agentwatch.sources.opencode.tables import RecordRow, Tables
from agentwatch.sources.sessions.fields import todos_of
from agentwatch.sources.sessions.reader import Texts
from agentwatch.sources.sessions.runs import KEPT_ROUNDS, UNREAD, WORDLESS

_SUFFIX: Final = re.compile(r" \(@[^()\s]{1,100} subagent\)\Z")
"""What the program puts behind the title of a child."""
_SHORTEST_CALL_ID: Final = 16
"""Some models number the calls of each answer anew: such an id names no single call."""


class PartsPlace(NamedTuple):
    """Where a text is: parts whose texts stand one below the other, and what is the text of each of them."""

    text_of: Callable[[RecordRow], str | None]
    parts: tuple[str, ...]

    def read(self, tables: Tables) -> str | None:
        """The text, None where a part of it is gone. Raises sqlite3.Error."""
        records = [tables.record("part", part) for part in self.parts]
        texts = [self.text_of(record) for record in records if record is not None]
        there = [text for text in texts if text is not None]
        return "\n".join(there) if there and len(there) == len(self.parts) else None


Made = dict[PartsPlace, tuple[tuple[int, ...], Message | None]]
"""The message of each place, and what it was made of: when each part was last changed, and the message's time."""


class Maker(NamedTuple):
    """Makes runs in one look at the database. `source` and `place` are those of the runs."""

    source: str
    place: str
    tables: Tables
    texts: Texts
    made: Made

    def of_session(
        self,
        session: Dialogue,
        parent_id: str | None,
        parent: Dialogue | None,
        standing: Standing,
        waiting: str,
    ) -> Run:
        """The run of a session; the parent may be known by its name alone."""
        row, turns = session.row, list(session.turns.values())
        call = parent.call_for(row.id) if parent is not None else None
        last = max((turn for turn in turns if not turn.is_user), key=turn_order, default=None)
        first = min((turn for turn in turns if turn.is_user), key=turn_order, default=None)
        sent_on, answer = session.last_round.asked, session.last_round.last
        said = self._text_of(session, answer) if answer is not None and standing.state is RunState.ENDED else None
        if said is None and call is not None and (sent_on is None or call.ended >= sent_on.created):
            said = self._answered(call, standing)
        title = _SUFFIX.sub("", row.title) if row.title is not None and parent_id is not None else row.title
        todos = session.todos()
        tokens = [turn.tokens for turn in turns if turn.tokens is not None]
        state, reason = standing.state, standing.reason
        if state is RunState.ENDED and said is None:
            is_read = self.tables.columns.has_words and (answer is None or answer.id not in session.unread.values())
            reason = WORDLESS if is_read else UNREAD
            # What cannot be read may say that it failed, so it is not said to be over.
            state = state if is_read or parent_id is None else RunState.SUBMITTED
        return Run(
            source=self.source,
            session_id=row.id,
            parent_session=parent_id,
            state=state,
            place=self.place,
            started_at=row.created / 1000,
            updated_at=self._last_sign(session) / 1000,
            ended_at=standing.ended / 1000 if standing.ended and state is standing.state else None,
            link=_link(row.parent_id, call),
            reason=reason,
            title=title,
            agent=(last.agent if last is not None else None)
            or row.agent
            or (first.agent if first is not None else None),
            mode=last.mode if last is not None else None,
            model=last.model if last is not None else None,
            prompt=self._prompt(session, first, call),
            said=said,
            rounds=self._rounds(session, is_child=parent_id is not None),
            # What was cancelled does not have to be done, and was not: it is not counted at all.
            todos=todos_of(one for one in todos if one[1] != "cancelled") if todos is not None else None,
            tokens=sum(tokens) if tokens else None,
            doing=session.doing(),
            background=call is not None and call.is_background,
            waiting=waiting,
            asked_at=parent.asked_at(row.id) if parent is not None else None,
            permits=session.permits.latest(),
        )

    def of_call(self, session: Dialogue, call: ToolCall, standing: Standing) -> Run:
        """The run of a task call without a session: refused, or its session was deleted."""
        ended = standing.ended or call.updated
        said = self._answered(call, standing)
        prompt = self._given(call)
        return Run(
            source=self.source,
            session_id=call.child or (call.call_id if len(call.call_id) >= _SHORTEST_CALL_ID else call.id),
            parent_session=session.row.id,
            state=standing.state,
            place=self.place,
            started_at=call.started / 1000,
            updated_at=max(call.started, ended) / 1000,
            ended_at=ended / 1000,
            link="the task call of the parent",
            reason=WORDLESS if standing.state is RunState.ENDED and said is None else standing.reason,
            title=call.title,
            agent=call.agent,
            prompt=prompt,
            prompt_missing="" if prompt is not None else "the program did not keep it",
            said=said,
            background=call.is_background,
            asked_at=session.asked_at(call.child or call.id),
        )

    def _rounds(self, session: Dialogue, *, is_child: bool) -> tuple[Turn, ...]:
        """Those of a session that was sent on. What a human goes on to say in a session of his own is not read."""
        kept = session.rounds()[-KEPT_ROUNDS - 1 :]
        rounds: list[Turn] = []
        for one in kept if len(kept) > 1 else ():
            asked, last = one.asked, one.last
            words = session.words_of(asked) if asked is not None and is_child else {}
            standing = standing_of(last) if last is not None and one is not kept[-1] else Standing(RunState.WORKING)
            if not words and standing.state is RunState.WORKING and one is not kept[-1]:
                # Nobody asked for it and nothing came of it: it may be made of records that cannot be read.
                continue
            prompt = self._text(text_in, words, asked.created) if asked is not None else None
            said = self._text_of(session, last) if last is not None and standing.state is RunState.ENDED else None
            began, ended = (asked or one.answers[0]).created / 1000, standing.ended / 1000 if standing.ended else None
            asker = StartedBy.PARENT if words else StartedBy.PROGRAM
            rounds.append(Turn(began, prompt, asker, standing.state, said, ended, standing.reason))
        return tuple(rounds)

    def _answered(self, call: ToolCall, standing: Standing) -> Message | None:
        """What the parent was answered, if the task ended."""
        if standing.state is not RunState.ENDED or call.is_answered_later:
            return None
        return self._text(output_in, {call.id: call.updated}, standing.ended or call.updated)

    def _given(self, call: ToolCall) -> Message | None:
        """What a task call handed over."""
        return self._text(prompt_in, {call.id: call.updated}, call.started)

    def _text_of(self, session: Dialogue, answer: TurnRecord) -> Message | None:
        """The last text of a message: that is what the program hands to the parent."""
        words = dict(list(session.words_of(answer).items())[-1:])
        return self._text(text_in, words, answer.completed or answer.created)

    def _prompt(self, session: Dialogue, first: TurnRecord | None, call: ToolCall | None) -> Message | None:
        if first is not None and (words := session.words_of(first)):
            return self._text(text_in, words, first.created)
        return self._given(call) if call is not None else None

    def _text(self, text_of: Callable[[RecordRow], str | None], parts: Mapping[str, int], at: int) -> Message | None:
        """What some parts say together, None where they are gone. Times are in milliseconds: that of the message, and
        when each of the parts was last changed."""
        if not parts:
            return None
        place, version = PartsPlace(text_of, tuple(parts)), (*parts.values(), at)
        if place not in self.made or self.made[place][0] != version:
            text = place.read(self.tables)
            made = self.texts.message(text, at / 1000, place, key=place.parts[0]) if text is not None else None
            self.made[place] = version, made
        return self.made[place][1]

    def _last_sign(self, session: Dialogue) -> int:
        if session.was_shortened:
            session.last_part = self.tables.last_change("part", session.row.id)
            session.was_shortened = False
        times = (max(turn.created, turn.updated) for turn in session.turns.values())
        return max(session.row.created, session.last_part, max(times, default=0))


def _link(parent: str | None, call: ToolCall | None) -> str:
    if parent is None:
        return "the parent's task call names the session" if call is not None else ""
    return "the session names its parent" + (", whose task call names the session" if call is not None else "")
