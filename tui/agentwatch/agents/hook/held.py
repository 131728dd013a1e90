"""A child that failed, breaks its contract or was sent back: it is held until the operator has decided, within limits.

Only such a child needs what decisions need, which takes longer to load than all that a hook does for the others.
"""

from __future__ import annotations

from itertools import takewhile
from pathlib import Path
from typing import Final, NamedTuple

from agentwatch.agents.hook import words
from agentwatch.agents.hook.child import Child, is_bad
from agentwatch.agents.hook.inbox import READER, Inbox
from agentwatch.agents.hook.journal import LET_GO, SENT_BACK, Entry, Journal
from agentwatch.config import Settings
from agentwatch.decisions.reader import Expired, Forged, Found, Verified
from agentwatch.delegation.decision import Action
from agentwatch.delegation.task import State
from agentwatch.sources.claude_code.hooks import HookCall
from agentwatch.text import quoted

MOST: Final = 8
"""The program lets a child go that was sent back so often in a row, whatever a hook says."""

_MEND: Final = "its return format"
_HELD: Final = "no decision yet"
_LIMIT: Final = "too often"
_CARRIED_OUT: Final = (Action.RETRY, Action.RESPOND)
"""What the child itself can carry out; the rest is for its parent."""


class _Case(NamedTuple):
    """One stop: the child, what was done to it before in this row, and what there is to answer with."""

    call: HookCall
    child: Child
    row: list[Entry]
    desk: Inbox
    journal: Journal

    def send_back(self, kind: str, reason: str, why: str, decision_id: str | None = None) -> words.Answer:
        """Block, unless nobody could count how often."""
        task = quoted(self.child.task_id)
        noted = self.journal.add(self._entry(SENT_BACK, kind, why, decision_id))
        # A decision is carried out once, whoever counts.
        if not noted and self.call.stop_hook_active and decision_id is None:
            return words.let_go(words.shown(f"{task} was let go although {why}: {self.desk.state} cannot be written"))
        return words.block(reason, words.shown(f"{task} was sent back: {why}"))

    def let_go(self, kind: str, why: str | None, decision_id: str | None = None) -> words.Answer:
        self.journal.add(self._entry(LET_GO, kind, why or "", decision_id))
        return words.let_go(None if why is None else words.shown(why))

    def _entry(self, did: str, kind: str, why: str, decision_id: str | None) -> Entry:
        child = self.child
        about = self.call.event, child.session_id, child.agent_id, child.task_id
        return Entry(*about, did, kind, why, decision_id, child.digests)


def held(call: HookCall, child: Child, row: list[Entry], workspace: Path, settings: Settings) -> words.Answer:
    """The answer to it; `row` is how often it was sent back. Blocks for at most `hook_wait` seconds and a few more."""
    desk = Inbox(workspace, settings)
    _note_acted(desk, row)
    case = _Case(call, child, row, desk, Journal(desk.state))
    state = child.state(settings)
    if not is_bad(state):
        return case.let_go("", None)
    return _answer(case, settings, broken=state is State.INVALID)


def _answer(case: _Case, settings: Settings, *, broken: bool) -> words.Answer:
    desk, child, task = case.desk, case.child, quoted(case.child.task_id)
    if len(case.row) >= MOST:
        return case.let_go(_LIMIT, f"{task} was let go: it was sent back {MOST} times in a row, and is no better")
    waits = desk.somebody_is_asked
    carried_out = case.journal.carried_out(child.session_id, child.agent_id)
    found = desk.find(_with_held(child, case.row), carried_out, settings.hook_wait if waits else 0.0)
    if isinstance(found, Verified):
        answer = _carried_out(case, found)
        if answer is not None:
            return answer
    if broken and settings.hook_corrects and not any(one.kind == _MEND for one in case.row):
        return case.send_back(_MEND, words.mend(child), "its return breaks its contract")
    state = "its return breaks its contract" if broken else "it says that it failed or is blocked"
    why = _why_undecided(found, settings, waits=waits)
    if settings.hook_undecided == "hold" and waits and not isinstance(found, Verified):
        return case.send_back(_HELD, words.HOLD, f"{state}, and {why}")
    return case.let_go(_HELD, f"{task} was let go although {state}: {why}; nothing is approved by that")


def _with_held(child: Child, row: list[Entry]) -> Child:
    """The child, also with the returns for which it was held: meanwhile the operator may have decided about one of
    them, and the child was to change nothing."""
    held = takewhile(lambda entry: entry.kind == _HELD, reversed(row))
    digests = dict.fromkeys((*child.digests, *(digest for entry in held for digest in entry.digests)))
    return child._replace(digests=tuple(digests))


def _carried_out(case: _Case, found: Verified) -> words.Answer | None:
    """Do what was decided. None where this very decision was carried out before and the child ended the same way."""
    desk, child, task = case.desk, case.child, quoted(case.child.task_id)
    record = found.record
    if record.action not in _CARRIED_OUT:
        why = f"the operator decided to {record.action.value} {task}: that is for its parent to do"
        return case.let_go(record.action.value, why, record.decision_id)
    by = f"{READER}, agent {child.agent_id} of session {child.session_id}"[:200]
    claim = desk.claim(record, by)
    if claim is None:
        why = f"{task} was let go: the operator decided to {record.action.value}, and that it is done cannot be written"
        return case.let_go(record.action.value, why, record.decision_id)
    if not claim.won:
        if claim.by == by:
            return None
        why = f"{task} was let go: the decision to {record.action.value} is carried out by {claim.by}"
        return case.let_go(record.action.value, why, record.decision_id)
    desk.note_read(found, by)
    reason = words.carry_out(record, desk.hand_out(record))
    return case.send_back(
        record.action.value, reason, f"{record.operator} decided to {record.action.value}", record.decision_id
    )


def _note_acted(desk: Inbox, row: list[Entry]) -> None:
    """A child that stops again has done what it was sent back with."""
    if row and row[-1].decision_id is not None:
        desk.note_acted(row[-1].decision_id, "the child answered again")


def _why_undecided(found: Found, settings: Settings, *, waits: bool) -> str:
    if isinstance(found, Verified):
        return "the operator's decision was carried out, and it ended in the same words again"
    if isinstance(found, Expired):
        return "the decision about it has expired, so the operator must decide again"
    if isinstance(found, Forged):
        return f"nobody has decided, and {len(found.refused)} fake decisions were refused"
    if waits:
        return f"nobody has decided within {settings.hook_wait:g} s"
    return "nobody has decided, and no screen of agentwatch shows the workspace"
