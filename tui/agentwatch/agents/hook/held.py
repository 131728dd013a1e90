"""A child that failed, breaks its contract or was sent back: it is held until the operator has decided, within limits.

Its parent is told what was decided, or that it must wait. Only such a child needs what decisions need, which takes
longer to load than all that a hook does for the others.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from itertools import takewhile
from pathlib import Path
from typing import Final, NamedTuple

from agentwatch.agents.hook import words
from agentwatch.agents.hook.child import Child, is_bad
from agentwatch.agents.hook.journal import LET_GO, SENT_BACK, TOLD, Journal, JournalEntry
from agentwatch.config import Settings
from agentwatch.decisions.asking import Asker
from agentwatch.decisions.errors import KeyProblemError
from agentwatch.decisions.reader import Expired, Forged, Found, Pending, Question, Verified
from agentwatch.decisions.receipts import ReceiptError
from agentwatch.delegation.decision import Action
from agentwatch.delegation.task import State
from agentwatch.sources.claude_code.hooks import HookCall
from agentwatch.state import is_shown
from agentwatch.text import quoted

READER: Final = "hook-claude"
MOST: Final = 8
"""The program lets a child go that was sent back so often in a row, whatever a hook says."""

_MEND: Final = "its return format"
_HELD: Final = "no decision yet"
_LIMIT: Final = "too often"
_CARRIED_OUT: Final = (Action.RETRY, Action.RESPOND)
"""What the child itself can carry out; the rest is for its parent."""


class _Case(NamedTuple):
    """One call: the child, what was done to it before in this row, and what there is to answer with."""

    call: HookCall
    child: Child
    row: list[JournalEntry]
    asker: Asker
    journal: Journal

    @property
    def question(self) -> Question:
        """The decision about exactly what this child gave back, in each spelling of it.

        Also of the returns for which it was held: meanwhile the operator may have decided about one of them, and the
        child was to change nothing. The decisions that it has carried out are about what it did before that, though
        the words be the same.
        """
        child = self.child
        done = self.journal.carried_out(child.session_id, child.agent_id)
        asked = Question(child.task_id, since=child.attempt, carried_out=done, is_exact=True)
        held = takewhile(lambda entry: entry.kind == _HELD, reversed(self.row))
        digests = dict.fromkeys((*child.digests, *(digest for entry in held for digest in entry.digests)))
        first, *others = (asked._replace(return_sha256=digest) for digest in digests)
        return first._replace(others=tuple(others))

    def send_back(self, kind: str, reason: str, why: str, decision_id: str | None = None) -> words.HookAnswer:
        """Block, unless nobody could count how often."""
        task = quoted(self.child.task_id)
        noted = self.note(SENT_BACK, kind, why, decision_id)
        # A decision is carried out once, however many count.
        if not noted and self.call.stop_hook_active and decision_id is None:
            return words.let_go(f"{task} was let go although {why}: {self.asker.state} cannot be written")
        return words.block(reason, f"{task} was sent back: {why}")

    def let_go(self, kind: str, why: str | None, decision_id: str | None = None) -> words.HookAnswer:
        self.note(LET_GO, kind, why or "", decision_id)
        return words.let_go(why)

    def note(self, did: str, kind: str, why: str, decision_id: str | None) -> bool:
        """Write it into the journal. False where nothing can be written."""
        child = self.child
        about = self.call.event, child.session_id, child.agent_id, child.task_id
        return self.journal.add(JournalEntry(*about, did, kind, why, decision_id, child.digests))


def held(
    call: HookCall, child: Child, row: list[JournalEntry], workspace: Path, settings: Settings
) -> words.HookAnswer:
    """The answer to a child that stops; `row` is how often it was sent back. Blocks as long as `stopped` says."""
    asker = Asker(workspace, settings, READER)
    if row and row[-1].decision_id is not None:
        with suppress(KeyProblemError):  # said below, where a decision is asked for
            asker.note_acted(row[-1].decision_id, "the child answered again")
    case = _Case(call, child, row, asker, Journal(asker.state))
    state, task = child.state(settings), quoted(child.task_id)
    if not is_bad(state):
        return case.let_go("", None)
    if len(row) >= MOST:
        return case.let_go(_LIMIT, f"{task} was let go: it was sent back {MOST} times in a row, and is no better")
    when = settings.hook_when
    waits = when == "always" or (when == "watched" and is_shown(asker.state))
    found, trouble = _looked(
        lambda: asker.reader.wait(case.question, settings.hook_wait if waits else 0.0, ends=(Verified,))
    )
    if isinstance(found, Verified):
        answer = _carried_out(case, found)
        if answer is not None:
            return answer
    broken = state is State.INVALID
    if broken and settings.hook_corrects and not any(one.kind == _MEND for one in row):
        return case.send_back(_MEND, words.mend(child), "its return breaks its contract")
    failed = "its return breaks its contract" if broken else "it says that it failed or is blocked"
    why = trouble or _why_undecided(found, settings, waits=waits)
    if settings.hook_undecided == "hold" and waits and not isinstance(found, Verified):
        return case.send_back(_HELD, words.HOLD, f"{failed}, and {why}")
    return case.let_go(_HELD, f"{task} was let go although {failed}: {why}; nothing is approved by that")


def told_parent(call: HookCall, child: Child, workspace: Path, settings: Settings) -> words.HookAnswer:
    """The answer to the parent of such a child."""
    asker = Asker(workspace, settings, READER)
    case = _Case(call, child, [], asker, Journal(asker.state))
    state = child.state(settings)
    decision, trouble = _looked(lambda: asker.reader.find(case.question))
    decision_id = None
    if isinstance(decision, Verified):
        record = decision.record
        decision_id = record.decision_id
        asker.note_read(decision, f"{READER}, session {child.session_id}"[:200])
        said = words.decided(record, asker.hand_out(record), workspace)
        why = f"the operator decided to {record.action.value}"
    else:
        said, why = words.undecided(child, state, workspace), f"it is {state}, and {trouble or 'nobody has decided'}"
    case.note(TOLD, state, why, decision_id)
    return words.context(call.event, said)


def _looked(look: Callable[[], Found]) -> tuple[Found, str]:
    """What was found about a decision. Where a public key that was given is none, no decision can be believed: that is
    as if there were none, and the second says why."""
    try:
        return look(), ""
    except KeyProblemError as error:
        return Pending(str(error)), f"no decision can be read: {error}"


def _carried_out(case: _Case, decision: Verified) -> words.HookAnswer | None:
    """Do what was decided. None where this very decision was carried out before and the child ended the same way."""
    asker, child, record = case.asker, case.child, decision.record
    task, action, decision_id = quoted(child.task_id), record.action.value, record.decision_id
    by = f"{READER}, agent {child.agent_id} of session {child.session_id}"[:200]
    if record.action not in _CARRIED_OUT:
        why = f"the operator decided to {action} {task}: that is for its parent to do"
        return case.let_go(action, why, decision_id)
    try:
        claim = asker.claim(record, by)
    except ReceiptError:
        why = f"{task} was let go: the operator decided to {action}, and that it is done cannot be written"
        return case.let_go(action, why, decision_id)
    if not claim.won:
        why = f"{task} was let go: the decision to {action} is carried out by {claim.by}"
        return None if claim.by == by else case.let_go(action, why, decision_id)
    asker.note_read(decision, by)
    reason = words.carry_out(record, asker.hand_out(record))
    return case.send_back(action, reason, f"{record.operator} decided to {action}", decision_id)


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
