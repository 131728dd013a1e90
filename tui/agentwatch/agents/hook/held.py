"""A child that failed, breaks its contract or was sent back: it is held until the operator has decided, within limits.

Its parent is told what was decided, or that it must wait. Only such a child needs what decisions need, which takes
longer to load than all that a hook does for the others. What goes to the terminal is safe for it; what goes to a model
keeps its lines.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from itertools import takewhile
from pathlib import Path
from typing import Any, Final, NamedTuple

from agentwatch.agents.examples import EXAMPLES
from agentwatch.agents.hook.child import Child, is_bad
from agentwatch.agents.hook.journal import LET_GO, SENT_BACK, TOLD, Journal, JournalEntry
from agentwatch.config import Settings
from agentwatch.contracts.shapes import Severity
from agentwatch.decisions.delivery import ReceiptError
from agentwatch.decisions.errors import KeyProblemError
from agentwatch.decisions.reader import Asker, Expired, Forged, Found, Pending, Question, Verified, do_now
from agentwatch.decisions.record import Record
from agentwatch.delegation.decision import Action
from agentwatch.delegation.task import State
from agentwatch.shell import command_line, launcher
from agentwatch.sources.claude_code.hooks import HookCall
from agentwatch.state import is_shown
from agentwatch.text import clean, clean_lines, quoted

HookAnswer = dict[str, Any]

READER: Final = "hook-claude"
MOST: Final = 8
"""The program lets a child go that was sent back so often in a row, whatever a hook says."""

HOLD: Final = "The operator has not decided yet. Change nothing, and end with the same return again, word for word."
"""To the child: it may be told so several times, and each word of it and of its answer costs."""

_MEND: Final = "its return format"
_HELD: Final = "no decision yet"
_LIMIT: Final = "too often"
_CARRIED_OUT: Final = (Action.RETRY, Action.RESPOND)
"""What the child itself can carry out; the rest is for its parent."""

_MOST_FINDINGS: Final = 20
_END: Final = "Then end with a return that keeps the return-format contract, and nothing else around it."


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

    def send_back(self, kind: str, reason: str, why: str, decision_id: str | None = None) -> HookAnswer:
        """Block, unless nobody could count how often: the child reads the reason and answers again."""
        task = quoted(self.child.task_id)
        noted = self.note(SENT_BACK, kind, why, decision_id)
        # A decision is carried out once, however many count.
        if not noted and self.call.stop_hook_active and decision_id is None:
            return _shown(f"{task} was let go although {why}: {self.asker.state} cannot be written")
        return {"decision": "block", "reason": reason, **_shown(f"{task} was sent back: {why}")}

    def let_go(self, kind: str, why: str, decision_id: str | None = None) -> HookAnswer:
        """The child stops. `why` is for the human, "" where nothing was at stake."""
        self.note(LET_GO, kind, why, decision_id)
        return _shown(why) if why else {}

    def note(self, did: str, kind: str, why: str, decision_id: str | None) -> bool:
        """Write it into the journal. False where nothing can be written."""
        child = self.child
        about = self.call.event, child.session_id, child.agent_id, child.task_id
        return self.journal.add(JournalEntry(*about, did, kind, why, decision_id, child.digests))


def _shown(words: str) -> HookAnswer:
    return {"systemMessage": f"agentwatch: {clean(words, 400)}"}


def hold_child(
    call: HookCall, child: Child, row: list[JournalEntry], workspace: Path, settings: Settings
) -> HookAnswer:
    """The answer to a child that stops; `row` is how often it was sent back. Blocks as long as the settings say."""
    asker = Asker(workspace, settings, READER)
    if row and row[-1].decision_id is not None:
        with suppress(KeyProblemError):  # said below, where a decision is asked for
            asker.note_acted(row[-1].decision_id, "the child answered again")
    case = _Case(call, child, row, asker, Journal(asker.state))
    state, task = child.state(settings), quoted(child.task_id)
    if not is_bad(state):
        return case.let_go("", "")
    if len(row) >= MOST:
        return case.let_go(_LIMIT, f"{task} was let go: it was sent back {MOST} times in a row, and is no better")
    waits = settings.hook_when == "always" or (settings.hook_when == "watched" and is_shown(asker.state))
    found, trouble = _find(
        lambda: asker.reader.wait(case.question, settings.hook_wait if waits else 0.0, ends=(Verified,))
    )
    if isinstance(found, Verified):
        answer = _carry_out(case, found)
        if answer is not None:
            return answer
    broken = state is State.INVALID
    if broken and settings.hook_corrects and not any(one.kind == _MEND for one in row):
        return case.send_back(_MEND, mend(child), "its return breaks its contract")
    failed = "its return breaks its contract" if broken else "it says that it failed or is blocked"
    why = trouble or _why_undecided(found, settings, waits=waits)
    if settings.hook_undecided == "hold" and waits and not isinstance(found, Verified):
        return case.send_back(_HELD, HOLD, f"{failed}, and {why}")
    return case.let_go(_HELD, f"{task} was let go although {failed}: {why}; nothing is approved by that")


def tell_of_child(call: HookCall, child: Child, workspace: Path, settings: Settings) -> HookAnswer:
    """The answer to the parent of such a child, which reads it beside what the child gave back."""
    asker = Asker(workspace, settings, READER)
    case = _Case(call, child, [], asker, Journal(asker.state))
    state = child.state(settings)
    decision, trouble = _find(lambda: asker.reader.find(case.question))
    decision_id = None
    if isinstance(decision, Verified):
        record = decision.record
        decision_id = record.decision_id
        asker.note_read(decision, f"{READER}, session {child.session_id}"[:200])
        told = decided(record, asker.hand_out(record), workspace)
        why = f"the operator decided to {record.action.value}"
    else:
        told, why = undecided(child.task_id, state, workspace), f"it is {state}, and {trouble or 'nobody has decided'}"
    case.note(TOLD, state, why, decision_id)
    return {"hookSpecificOutput": {"hookEventName": call.event, "additionalContext": told}}


def _find(look: Callable[[], Found]) -> tuple[Found, str]:
    """What was found about a decision. Where a public key that was given is none, no decision can be believed: that is
    as if there were none, and the second says why."""
    try:
        return look(), ""
    except KeyProblemError as error:
        return Pending(str(error)), f"no decision can be read: {error}"


def _carry_out(case: _Case, decision: Verified) -> HookAnswer | None:
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
    reason = carry_out(record, asker.hand_out(record))
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


# Words


def carry_out(record: Record, handoff_path: str | None) -> str:
    """To the child: the operator lets it try again, or answers it."""
    lines = [f"The operator has decided about your attempt {record.attempt} of {quoted(record.task_id)}."]
    if record.action is Action.RESPOND:
        lines.append("These are the operator's answers; go on with them:")
        lines += [f"- {one.question or 'What you asked'}: {one.answer}" for one in record.params.answers]
    else:
        lines.append(f"Do it once more, as attempt {record.attempt + 1}.")
    if record.params.mitigation is not None:
        lines.append(f"What is different now: {record.params.mitigation.value.replace('_', ' ')}.")
    if record.note.strip():
        lines.append(f"The operator's note: {record.note.strip()}")
    if record.params.handoff is not None:
        where = f", which is in {handoff_path}, too" if handoff_path is not None else ""
        lines += [f"Your handoff is this one now{where}:", "", record.params.handoff.strip(), ""]
    lines.append(f"{_END} It is the return of attempt {record.attempt + 1}, for decision {record.decision_id}.")
    return _joined(lines)


def mend(child: Child) -> str:
    """To the child: its return breaks its contract."""
    returned = child.returned
    errors = [one for one in returned.findings if one.severity is Severity.ERROR] if returned is not None else []
    if returned is None:
        broken = "what you ended with follows none of the contracts"
        again = "with a return such as this one, true to what you did, and nothing else around it:"
    else:
        broken = f"it breaks the {returned.document.contract} contract"
        again = "with the whole return, mended, and nothing else around it."
    lines = [f"Fix your return format: {broken}, so your task counts as failed."]
    if returned is not None and not errors:
        lines.append("- It still says that the work goes on, and you are about to end: say how it ended.")
    lines += [
        f"- {f'line {one.line}: ' if one.line else ''}{one.message} ({one.rule})" for one in errors[:_MOST_FINDINGS]
    ]
    lines += [f"- and {len(errors) - _MOST_FINDINGS} more"] if len(errors) > _MOST_FINDINGS else []
    lines += [f"Answer again {again}", *(["", EXAMPLES["return-format"]] if returned is None else [])]
    return _joined([*lines, "Do not do the work again, and do not change what you report."])


def decided(record: Record, handoff_path: str | None, workspace: Path) -> str:
    """To the parent: what the operator decided about its child, and what to do."""
    claim = command_line([*launcher(), "claim", record.decision_id, str(workspace)])
    what = f"{quoted(record.task_id)}, attempt {record.attempt}: {record.action.value}"
    lines = [
        f"agentwatch: the operator has decided about {what}.",
        f"Do this now, and nothing else: {do_now(record, handoff_path)}.",
        f"The signed decision is in .agentwatch/decisions/{record.decision_id}.json; read it.",
        f"Before you carry it out, claim it; only one may carry it out: {claim}",
    ]
    if handoff_path is not None:
        lines.append(f"handoff_path is {handoff_path}")
    if record.note.strip():
        lines.append(f"The operator's note: {record.note.strip()}")
    return _joined(lines)


def undecided(task_id: str, state: str, workspace: Path) -> str:
    """To the parent: its child needs a decision."""
    try:
        wait = command_line([*launcher(), "wait", "--", task_id, str(workspace)])
    except ValueError:
        wait = "(no command can hold its id: use the tool)"
    return (
        f"agentwatch: {quoted(task_id)} is {state}, and the operator decides what happens to it. Do not retry,"
        " escalate or give up by yourself. Wait for the decision with the tool wait_for_decision, or with the command"
        f" below in your shell, again and again while it is pending, and do what it says.\n{wait}"
    )


def _joined(lines: list[str]) -> str:
    """Lines as they are, but for what moves cursors and hides: the program shows them to a human, too."""
    kept, cut = clean_lines("\n".join(lines))
    return "\n".join(kept + ([f"({cut})"] if cut else []))
