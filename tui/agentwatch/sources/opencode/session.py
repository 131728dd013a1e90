"""One session out of its records: its rounds, calls and notices, how it stands, and its run."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

from agentwatch.delegation.run import MOST_PERMITS, Activity, Message, Permit, Run, RunState, StartedBy, Turn
from agentwatch.sources.opencode import records
from agentwatch.sources.opencode.entries import entries
from agentwatch.sources.opencode.records import Notice, ToolCall, TurnRecord
from agentwatch.sources.opencode.tables import RecordRow, SessionRow, Tables
from agentwatch.sources.sessions.doing import ActivityLog
from agentwatch.sources.sessions.fields import text, todos_of
from agentwatch.sources.sessions.runs import KEPT_ROUNDS, UNREAD, WORDLESS, Rising

OVER: Final = frozenset({RunState.ENDED, RunState.FAILED, RunState.CANCELED})

_CANCELED: Final = ("Task cancelled", "Tool execution aborted", "Tool execution was interrupted")
"""What stands in a task call that a human aborted; Kilo says who did it behind it."""
_LEFT_BEHIND: Final = "left behind unfinished: its parent went on without it"
LATER: Final = "its messages are kept as OpenCode 2 does, which is not read yet"
_PATIENCE: Final = 3.0
"""Seconds after which a call that shows nothing of its work is taken to wait for a permission."""
_SUFFIX: Final = re.compile(r" \(@[^()\s]{1,100} subagent\)\Z")
"""The ending of the title of a child."""
_SHORTEST_CALL_ID: Final = 16
"""Some models number the calls of each answer anew: such an id names no single call."""

MakeMessage = Callable[[str, int, tuple[str, ...]], Message]
"""Makes a message of a text, its time in milliseconds, and the parts in which it stands."""


class Exchange(NamedTuple):
    """A message of a person or of the parent, or none at all, and the session's messages that answer it."""

    asked: TurnRecord | None = None
    answers: tuple[TurnRecord, ...] = ()

    @property
    def last(self) -> TurnRecord | None:
        return self.answers[-1] if self.answers else None


class Standing(NamedTuple):
    """`reason` is in the program's words. `ended` is in milliseconds, 0 where it is not known."""

    state: RunState
    reason: str = ""
    ended: int = 0


@dataclass(slots=True)
class Session:
    """One session as of a version of its row. All by the ids of messages and parts."""

    row: SessionRow
    turns: dict[str, TurnRecord] = field(default_factory=dict)
    rounds: list[Exchange] = field(default_factory=lambda: [Exchange()])
    """The conversation, oldest first, without what was said to shorten it; one at least."""
    calls: dict[str, ToolCall] = field(default_factory=dict)
    notices: list[Notice] = field(default_factory=list)
    messages: dict[str, Message] = field(default_factory=dict)
    """Prompts and the last text of each answer; by call the text handed over."""
    outputs: dict[str, Message] = field(default_factory=dict)
    """By call, what it was answered."""
    todos: Sequence[tuple[str, str]] | None = None
    unread: dict[str, str | None] = field(default_factory=dict)
    """Records that cannot be read, each with its message."""
    using_tools: set[str] = field(default_factory=set)
    """Messages with a tool call."""
    last_part: int = 0
    doing: Activity | None = None
    permits: tuple[Permit, ...] = ()
    asked_at: dict[str, float] = field(default_factory=dict)
    """That of the runs it asked for, by session, or by call where there is none."""
    is_later: bool = False
    """Its messages are kept as OpenCode 2 does."""

    @property
    def asked(self) -> set[str]:
        """The sessions that its task calls name."""
        return {call.child for call in self.calls.values() if call.child is not None}

    def call_for(self, child: str) -> ToolCall | None:
        """The last task call that is about a child."""
        return max((call for call in self.calls.values() if call.child == child), key=_call_order, default=None)

    def goes_on_after(self, message: str) -> bool:
        """Whether the session has answered again after a message: it no longer works on that one."""
        turn = self.turns.get(message)
        later = (one for one in self.turns.values() if not one.is_user and not one.is_summary)
        return turn is not None and any(_turn_order(one) > _turn_order(turn) for one in later)

    def waits_for(self, now: float) -> tuple[str, float | None]:
        """Its request to a human, and when to ask again, in seconds since the epoch."""
        due: float | None = None
        for _, call in sorted(self.calls.items()):
            if call.waits and not self.goes_on_after(call.message):
                at = call.started / 1000 + _PATIENCE
                if call.waits_surely or now >= at:
                    return call.waits, None
                due = at if due is None else min(due, at)
        return "", due


def read_session(row: SessionRow, tables: Tables, places: Sequence[str], make: MakeMessage) -> Session:
    """Read all records of a session. `places` are the spellings of the workspace. Raises sqlite3.Error."""
    session = Session(row)
    messages, parts = tables.records("message", row.id), tables.records("part", row.id)
    session.turns = {record.id: records.turn_of(record) for record in messages}
    session.unread = {record.id: record.message_id for record in (*messages, *parts) if records.is_strange(record)}
    session.rounds = _rounds_of(session.turns.values()) or session.rounds
    session.is_later = not messages and tables.has_later_messages(row.id)
    session.last_part = max((part.updated for part in parts), default=0)
    words: dict[str, list[RecordRow]] = {}
    activity, message_id = ActivityLog(places), ""
    checklist: list[tuple[str, str]] | None = None
    permits: list[Permit] = []
    for part in parts:
        if part.message_id is None:
            continue
        turn = session.turns.get(part.message_id)
        if part.message_id != message_id:
            message_id = part.message_id
            activity.open.clear()
        said = list(entries(part.data, part.created / 1000, is_asked=turn is not None and turn.is_user))
        for entry in said:
            activity.add(entry)
        if records.has_words(part):
            words.setdefault(part.message_id, []).append(part)
        if part.data.get("type") == "tool":
            session.using_tools.add(part.message_id)
        if (notice := records.notice_of(part)) is not None:
            session.notices.append(notice)
        if (permit := records.permit_of(part)) is not None:
            permits.append(permit)
        if (todos := records.todos_of(part)) is not None:
            before = todos_of(checklist) if checklist is not None else None
            activity.list(before, todos_of(todos), said[0].at if said else 0.0)
            checklist = todos
        if (call := records.call_of(part)) is not None:
            session.calls[part.id] = call
            if call.is_task and (prompt := records.prompt_in(part)) is not None:
                session.messages[part.id] = make(prompt, call.started, (part.id,))
            if call.is_task and (output := records.output_in(part)) is not None:
                session.outputs[part.id] = make(output, call.ended or call.updated, (part.id,))
    session.todos = tables.todos(row.id) or checklist
    session.doing, session.permits = activity.doing, tuple(permits[-MOST_PERMITS:])
    for exchange in session.rounds:
        for turn in (exchange.asked, exchange.last):
            if turn is not None and turn.id in words:
                # The last text of an answer is what the program hands to the parent.
                there = words[turn.id] if turn.is_user else words[turn.id][-1:]
                joined = "\n".join(text(one.data, "text") or "" for one in there)
                at = turn.created if turn.is_user else turn.completed or turn.created
                session.messages[turn.id] = make(joined, at, tuple(one.id for one in there))
    # The ids are made of times. Rows are in order, unless another program wrote them: that numbers no changes.
    calls = [call for call in session.calls.values() if call.is_task]
    calls.sort(key=lambda call: (call.row if row.seq is not None else call.created or call.started, call.id))
    rising = Rising()
    for call in calls:
        session.asked_at.setdefault(call.child or call.id, rising((call.created or call.started) / 1000))
    return session


def _rounds_of(turns: Iterable[TurnRecord]) -> list[Exchange]:
    summaries = [turn for turn in turns if turn.is_summary]
    aside = {turn.id for turn in summaries} | {turn.asked_by for turn in summaries}
    rounds: list[Exchange] = []
    for turn in sorted((turn for turn in turns if turn.id not in aside), key=_turn_order):
        if turn.is_user:
            rounds.append(Exchange(turn))
        else:
            asked, answers = rounds.pop() if rounds else Exchange()
            rounds.append(Exchange(asked, (*answers, turn)))
    return rounds


def judge(session: Session, parent: Session | None, parent_state: RunState | None) -> Standing:
    """How a session stands: by its own last message, and where this does not tell, by what its parent was told of it.
    `parent_state` is None where there is no parent or its state is not known."""
    asked, last = session.rounds[-1].asked, session.rounds[-1].last
    has_answered = any(one.answers for one in session.rounds)
    own = _standing_of(last) if last is not None else Standing(RunState.WORKING if has_answered else RunState.SUBMITTED)
    call = parent.call_for(session.row.id) if parent is not None else None
    if parent is None or call is None:
        return own
    begun = asked.created if asked is not None else 0
    told = _told(call, begun)
    if told is None and call.is_answered_later:
        told = _noticed(session, parent, begun)
    # A model that says "stop" beside a call is asked again.
    if own.state is RunState.ENDED and told is None and last is not None and last.id in session.using_tools:
        own = Standing(RunState.WORKING)
    if own.state not in OVER:
        if told is not None:
            return told
        return Standing(RunState.FAILED, _LEFT_BEHIND) if _is_left_behind(call, parent, parent_state) else own
    return told if own.state is RunState.ENDED and told is not None and told.state is RunState.FAILED else own


def _is_left_behind(call: ToolCall, parent: Session, parent_state: RunState | None) -> bool:
    """Whether nobody waits for the answer to a call any more: its program was killed and its parent went on."""
    return call.is_open and (parent_state in OVER or parent.goes_on_after(call.message))


def _standing_of(last: TurnRecord) -> Standing:
    """How a round stands by its last message."""
    if last.is_aborted:
        return Standing(RunState.CANCELED, last.error, last.completed)
    if last.error:
        return Standing(RunState.FAILED, last.error, last.completed)
    return Standing(RunState.ENDED, "", last.completed) if last.is_ended else Standing(RunState.WORKING)


def _told(call: ToolCall, begun: int) -> Standing | None:
    """By the call that waited for the session, unless that was for an earlier round."""
    if call.is_open or call.is_answered_later or call.ended < begun:
        return None
    if not call.error:
        return Standing(RunState.ENDED, "", call.ended)
    state = RunState.CANCELED if call.error.startswith(_CANCELED) else RunState.FAILED
    return Standing(state, call.error, call.ended)


def _noticed(session: Session, parent: Session, begun: int) -> Standing | None:
    """By what the parent was told of a session in the background."""
    mine = [one for one in parent.notices if one.child == session.row.id and one.message in parent.turns]
    at, notice = max(((parent.turns[one.message].created, one) for one in mine), default=(0, None))
    if notice is None or at < begun:
        return None
    return (
        Standing(RunState.FAILED, notice.text or "it failed", at)
        if notice.is_error
        else Standing(RunState.ENDED, "", at)
    )


def runs_of(
    session: Session,
    parent_id: str | None,
    parent: Session | None,
    parent_state: RunState | None,
    now: float,
    *,
    source: str,
    place: str,
    has_words: bool,
    has_session: Callable[[str], bool],
) -> tuple[dict[str, Run], float | None]:
    """The runs of a session, and of its task calls that have none, by key; and when time alone changes them.

    `has_words`: what sessions say can be read in this database. `has_session`: whether there is one, of any directory.
    """
    standing = judge(session, parent, parent_state)
    if session.is_later and standing.state is RunState.SUBMITTED and not standing.reason:
        standing = Standing(RunState.SUBMITTED, LATER)
    waiting, due = session.waits_for(now) if standing.state not in OVER else ("", None)
    run = _run(session, parent_id, parent, standing, has_words=has_words)
    runs = {session.row.id: replace(run, source=source, place=place, waiting=waiting)}
    calls = sorted((call for call in session.calls.values() if call.is_task), key=_call_order)
    for call in {call.child or call.id: call for call in calls}.values():
        told: Standing | None = Standing(RunState.FAILED, _LEFT_BEHIND)
        if not call.is_open:
            told = _told(call, 0) or Standing(RunState.WORKING)
        elif not _is_left_behind(call, session, standing.state):
            # It may still get a session.
            told = None
        if told is not None and (call.child is None or not has_session(call.child)):
            runs[call.id] = replace(_run_of_call(session, call, told), source=source, place=place)
    return runs, due


def _run(
    session: Session, parent_id: str | None, parent: Session | None, standing: Standing, *, has_words: bool
) -> Run:
    row, turns = session.row, list(session.turns.values())
    call = parent.call_for(row.id) if parent is not None else None
    last = max((turn for turn in turns if not turn.is_user), key=_turn_order, default=None)
    first = min((turn for turn in turns if turn.is_user), key=_turn_order, default=None)
    sent_on, answer = session.rounds[-1].asked, session.rounds[-1].last
    said = session.messages.get(answer.id) if answer is not None and standing.state is RunState.ENDED else None
    if said is None and call is not None and parent is not None:
        is_of_this_round = sent_on is None or call.ended >= sent_on.created
        said = _answered(parent, call, standing) if is_of_this_round else None
    state, reason = standing.state, standing.reason
    if state is RunState.ENDED and said is None:
        is_read = has_words and (answer is None or answer.id not in session.unread.values())
        reason = WORDLESS if is_read else UNREAD
        # What cannot be read may say that it failed, so it is not said to be over.
        state = state if is_read or parent_id is None else RunState.SUBMITTED
    prompt = session.messages.get(first.id) if first is not None else None
    if prompt is None and call is not None and parent is not None:
        prompt = parent.messages.get(call.id)
    link = "the parent's task call names the session" if call is not None else ""
    if row.parent_id is not None:
        link = "the session names its parent" + (", whose task call names the session" if call is not None else "")
    tokens = [turn.tokens for turn in turns if turn.tokens is not None]
    times = (max(turn.created, turn.updated) for turn in turns)
    return Run(
        source="",
        session_id=row.id,
        parent_session=parent_id,
        state=state,
        place="",
        started_at=row.created / 1000,
        updated_at=max(row.created, session.last_part, max(times, default=0)) / 1000,
        ended_at=standing.ended / 1000 if standing.ended and state is standing.state else None,
        link=link,
        reason=reason,
        title=_SUFFIX.sub("", row.title) if row.title is not None and parent_id is not None else row.title,
        agent=(last and last.agent) or row.agent or (first and first.agent),
        mode=last.mode if last is not None else None,
        model=last.model if last is not None else None,
        prompt=prompt,
        said=said,
        rounds=_rounds(session, is_child=parent_id is not None),
        # What was cancelled does not have to be done, and was not: it is not counted at all.
        todos=todos_of(one for one in session.todos if one[1] != "cancelled") if session.todos is not None else None,
        tokens=sum(tokens) if tokens else None,
        doing=session.doing,
        background=call is not None and call.is_background,
        asked_at=parent.asked_at.get(row.id) if parent is not None else None,
        permits=session.permits,
    )


def _run_of_call(session: Session, call: ToolCall, standing: Standing) -> Run:
    """The run of a task call without a session: refused, or its session was deleted."""
    ended = standing.ended or call.updated
    said, prompt = _answered(session, call, standing), session.messages.get(call.id)
    return Run(
        source="",
        session_id=call.child or (call.call_id if len(call.call_id) >= _SHORTEST_CALL_ID else call.id),
        parent_session=session.row.id,
        state=standing.state,
        place="",
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
        asked_at=session.asked_at.get(call.child or call.id),
    )


def _rounds(session: Session, *, is_child: bool) -> tuple[Turn, ...]:
    """Those of a session that was sent on. What a human goes on to say in a session of his own is not read."""
    kept = session.rounds[-KEPT_ROUNDS - 1 :]
    rounds: list[Turn] = []
    for one in kept if len(kept) > 1 else ():
        asked, last, is_last = one.asked, one.last, one is kept[-1]
        prompt = session.messages.get(asked.id) if asked is not None and is_child else None
        standing = _standing_of(last) if last is not None and not is_last else Standing(RunState.WORKING)
        if prompt is None and standing.state is RunState.WORKING and not is_last:
            # Nobody asked for it and nothing came of it: it may be made of records that cannot be read.
            continue
        said = session.messages.get(last.id) if last is not None and standing.state is RunState.ENDED else None
        began, ended = (asked or one.answers[0]).created / 1000, standing.ended / 1000 if standing.ended else None
        asker = StartedBy.PARENT if prompt is not None else StartedBy.PROGRAM
        rounds.append(Turn(began, prompt, asker, standing.state, said, ended, standing.reason))
    return tuple(rounds)


def _answered(parent: Session, call: ToolCall, standing: Standing) -> Message | None:
    """The answer to the parent, if the task ended."""
    said = parent.outputs.get(call.id)
    if standing.state is not RunState.ENDED or call.is_answered_later or said is None:
        return None
    return replace(said, at=(standing.ended or call.updated) / 1000)


def _turn_order(turn: TurnRecord) -> tuple[int, str]:
    return turn.created, turn.id


def _call_order(call: ToolCall) -> tuple[int, str]:
    return call.started, call.id
