"""Runs made of sessions, and of task calls that never got a session."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from agentwatch.contracts.shapes import Todo
from agentwatch.delegation.run import Asker, Message, Round, Run, RunState
from agentwatch.sources.opencode.records import Call, Turn
from agentwatch.sources.opencode.session import Session
from agentwatch.sources.opencode.tables import Tables
from agentwatch.sources.opencode.texts import Texts
from agentwatch.sources.opencode.verdict import UNREAD, WORDLESS, Verdict, standing_of
from agentwatch.sources.sessions.fields import todos_of
from agentwatch.sources.sessions.rounds import KEPT_ROUNDS

_SUFFIX: Final = re.compile(r" \(@[^()\s]{1,100} subagent\)\Z")
"""What the program puts behind the title of a child."""
_SHORTEST_CALL_ID: Final = 16
"""Some models number the calls of each answer anew: such an id names no single call."""


@dataclass(frozen=True, slots=True)
class Maker:
    """Makes runs in one look at the database. `source` and `place` are those of the runs."""

    source: str
    place: str
    tables: Tables
    texts: Texts

    def of_session(
        self, session: Session, parent_id: str | None, parent: Session | None, verdict: Verdict, waiting: str
    ) -> Run:
        """The run of a session; the parent may be known by its name alone."""
        row, turns = session.row, list(session.turns.values())
        call = parent.call_for(row.id) if parent is not None else None
        last = max((turn for turn in turns if not turn.is_user), key=_when, default=None)
        first = min((turn for turn in turns if turn.is_user), key=_when, default=None)
        rounds = self._rounds(session, is_child=parent_id is not None)
        answer = session.rounds()[-1].last if session.rounds() else None
        said = self._text_of(session, answer) if answer is not None and verdict.state is RunState.ENDED else None
        if said is None and call is not None and _answers(call, session):
            said = self._answered(call, verdict)
        title = _SUFFIX.sub("", row.title) if row.title is not None and parent_id is not None else row.title
        asked = first.agent if first is not None else None
        tokens = [turn.tokens for turn in turns if turn.tokens is not None]
        state, reason = verdict.state, verdict.reason
        if state is RunState.ENDED and said is None:
            is_read = self.tables.has_words and not _has_unread(session)
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
            ended_at=verdict.ended / 1000 if verdict.ended and state is verdict.state else None,
            link=_link(row.parent_id, call),
            reason=reason,
            title=title,
            agent=(last.agent if last is not None else None) or row.agent or asked,
            mode=last.mode if last is not None else None,
            model=last.model if last is not None else None,
            prompt=self._prompt(session, first, call),
            prompt_missing="",
            said=said,
            rounds=rounds,
            todos=_todos(session),
            tokens=sum(tokens) if tokens else None,
            background=call is not None and call.is_background,
            waiting=waiting,
            asked_at=parent.asked_at(row.id) if parent is not None else None,
        )

    def of_call(self, session: Session, call: Call, verdict: Verdict) -> Run:
        """The run of a task call without a session: refused, or its session was deleted."""
        ended = verdict.ended or call.updated
        said = self._answered(call, verdict)
        reason = verdict.reason
        if verdict.state is RunState.ENDED and said is None:
            reason = WORDLESS
        prompt = self.texts.given(self.tables, call.id, call.updated, call.started)
        return Run(
            source=self.source,
            session_id=call.child or (call.call_id if len(call.call_id) >= _SHORTEST_CALL_ID else call.id),
            parent_session=session.row.id,
            state=verdict.state,
            place=self.place,
            started_at=call.started / 1000,
            updated_at=max(call.started, ended) / 1000,
            ended_at=ended / 1000,
            link="the task call of the parent",
            reason=reason,
            title=call.title,
            agent=call.agent,
            prompt=prompt,
            prompt_missing="" if prompt is not None else "the program did not keep it",
            said=said,
            background=call.is_background,
            asked_at=session.asked_at(call.child or call.id),
        )

    def _rounds(self, session: Session, *, is_child: bool) -> tuple[Round, ...]:
        """Those of a session that was sent on. What a human goes on to say in a session of his own is not read."""
        found = session.rounds()[-KEPT_ROUNDS - 1 :]
        rounds: list[Round] = []
        for one in found if len(found) > 1 else ():
            asked, last = one.asked, one.last
            words = session.words_of(asked) if asked is not None and is_child else []
            verdict = standing_of(last) if last is not None and one is not found[-1] else Verdict(RunState.WORKING)
            if not words and verdict.state is RunState.WORKING and one is not found[-1]:
                # Nobody asked for it and nothing came of it: it may be made of records that cannot be read.
                continue
            prompt = self.texts.said(self.tables, words, asked.created) if asked is not None and words else None
            said = self._text_of(session, last) if last is not None and verdict.state is RunState.ENDED else None
            began, ended = (asked or one.answers[0]).created / 1000, verdict.ended / 1000 if verdict.ended else None
            asker = Asker.PARENT if words else Asker.PROGRAM
            rounds.append(Round(began, prompt, asker, verdict.state, said, ended, verdict.reason))
        return tuple(rounds)

    def _answered(self, call: Call, verdict: Verdict) -> Message | None:
        """What the parent was answered, if the task ended."""
        if verdict.state is not RunState.ENDED or call.is_answered_later:
            return None
        return self.texts.answered(self.tables, call.id, call.updated, verdict.ended or call.updated)

    def _text_of(self, session: Session, answer: Turn) -> Message | None:
        """The last text of a message: that is what the program hands to the parent."""
        words = session.words_of(answer)[-1:]
        return self.texts.said(self.tables, words, answer.completed or answer.created) if words else None

    def _prompt(self, session: Session, first: Turn | None, call: Call | None) -> Message | None:
        words = session.words_of(first) if first is not None else []
        if first is not None and words:
            return self.texts.said(self.tables, words, first.created)
        return self.texts.given(self.tables, call.id, call.updated, call.started) if call is not None else None

    def _last_sign(self, session: Session) -> int:
        if session.was_shortened:
            session.last_part = self.tables.last_change("part", session.row.id)
            session.was_shortened = False
        times = (max(turn.created, turn.updated) for turn in session.turns.values())
        return max(session.row.created, session.last_part, max(times, default=0))


def _when(turn: Turn) -> tuple[int, str]:
    return turn.created, turn.id


def _answers(call: Call, session: Session) -> bool:
    """Whether the answer to a call is that to the last round of the session."""
    rounds = session.rounds()
    return not rounds or rounds[-1].asked is None or call.ended >= rounds[-1].asked.created


def _has_unread(session: Session) -> bool:
    """Whether something of the last answer cannot be read."""
    rounds = session.rounds()
    last = rounds[-1].last if rounds else None
    return last is not None and last.id in session.unread.values()


def _link(parent: str | None, call: Call | None) -> str:
    if parent is None:
        return "the parent's task call names the session" if call is not None else ""
    return "the session names its parent" + (", whose task call names the session" if call is not None else "")


def _todos(session: Session) -> tuple[Todo, ...] | None:
    """What was cancelled does not have to be done, and was not: it is not counted at all."""
    todos = session.todos()
    return todos_of(one for one in todos if one[1] != "cancelled") if todos is not None else None
