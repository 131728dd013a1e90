"""Holds a child that failed, or whose return breaks its contract, until the operator decides. The wait is limited.

The child's parent is told the decision, or is told to wait for the decision. Texts for the terminal are one safe line.
Texts for a language model keep their lines.
"""

from contextlib import suppress
from itertools import takewhile
from pathlib import Path
from typing import NamedTuple

from agentwatch.agents.documents import EXAMPLES
from agentwatch.agents.hook.child import BAD, Child, HookAnswer
from agentwatch.agents.hook.journal import LET_GO, SENT_BACK, TOLD, JournalEntry, add_entry, entries_of
from agentwatch.config import Settings
from agentwatch.contracts.shapes import Severity
from agentwatch.decisions.delivery import ReceiptError
from agentwatch.decisions.errors import KeyProblemError
from agentwatch.decisions.reader import LookupResult, Question, Reader, instruction
from agentwatch.decisions.record import Record
from agentwatch.delegation.decision import RESUMING, Action, Stage
from agentwatch.delegation.task import State
from agentwatch.shell import command_line, launch_words
from agentwatch.sources.claude_code import HookCall
from agentwatch.state import is_shown
from agentwatch.text import clean, clean_lines, quote_text

READER = "hook-claude"
MOST = 8  # after a child was sent back so often in a row, Claude Code lets it go in any case

# Keep this short. The child may read it several times, and each word costs.
HOLD = "The operator has not decided yet. Change nothing, and end with the same return again, word for word."

_MEND = "its return format"
_HELD = "no decision yet"
_LIMIT = "too often"

_MOST_FINDINGS = 20
_END = "Then end with a return that keeps the return-format contract, and nothing else around it."


class _Case(NamedTuple):
    """One call of the hook about a child. `sent_back` has the last calls that made the child go on, newest first."""

    call: HookCall
    child: Child
    sent_back: list[JournalEntry]
    asker: Reader
    workspace: Path

    def find_decision(self, seconds: float) -> tuple[LookupResult, str]:
        """Wait for the decision about the child's return. Return it, and why no decision can be read, or "".

        A decision about an earlier return of a held child is valid, too, because the child was told to change nothing.
        A decision that the child has already carried out is ignored.
        """
        child = self.child
        before = entries_of(self.workspace, child.session_id, child.agent_id)
        done = frozenset(one.decision_id for one in before if one.did == SENT_BACK and one.decision_id)
        held = takewhile(lambda entry: entry.kind == _HELD, self.sent_back)
        digests = (*child.digests, *(digest for entry in held for digest in entry.digests))
        program = child.attempt.run.source if child.attempt.run else ""
        since = child.attempt.number
        question = Question(child.task_id, program=program, returns=digests, since=since, carried_out=done)
        try:
            return self.asker.wait(question, seconds), ""
        except KeyProblemError as error:
            # The configured public key is invalid, so go on as if there were no decision.
            return LookupResult(""), f"no decision can be read: {error}"

    def conclude(self, did: str, kind: str, why: str, decision_id: str | None = None, reason: str = "") -> HookAnswer:
        """Record in the journal what happens to the child, and return the answer of the hook.
        If `reason` is not "", the child continues and reads the reason. `why` is for the human, and may be ""."""
        child = self.child
        about = self.call.event, child.session_id, child.agent_id, child.task_id
        add_entry(self.workspace, JournalEntry(*about, did, kind, why, decision_id, child.digests))
        answer = {"decision": "block", "reason": reason} if reason else {}
        if why:
            answer["systemMessage"] = clean(f"agentwatch: {quote_text(child.task_id)} was {did}: {why}", 400)
        return answer


def hold_child(
    call: HookCall, child: Child, sent_back: list[JournalEntry], workspace: Path, settings: Settings
) -> HookAnswer:
    """Return the answer to a child that stops. `sent_back` has the last calls that made the child go on.
    May block for `hook_wait` seconds."""
    asker = Reader(workspace, READER, read_only=settings.read_only)
    if sent_back and sent_back[0].decision_id:
        with suppress(KeyProblemError):  # `find_decision` reports it below
            before = asker.find(Question(None, decision_id=sent_back[0].decision_id))
            asker.write_receipt(before, "the child answered again", Stage.ACTED)
    case = _Case(call, child, sent_back, asker, workspace)
    state = child.state(settings)
    if state not in BAD:
        return case.conclude(LET_GO, "", "")
    if len(sent_back) >= MOST:
        return case.conclude(LET_GO, _LIMIT, f"it was sent back {MOST} times in a row, and is no better")
    waits = settings.hook_when == "always" or (settings.hook_when == "watched" and is_shown(asker.state))
    found, why = case.find_decision(settings.hook_wait if waits else 0.0)
    if found.record:
        if answer := _carry_out_decision(case, found, found.record):
            return answer
        why = "the operator's decision was carried out, and it ended in the same words again"
    elif found.expired:
        why = "the decision about it has expired, so the operator must decide again"
    elif not why:
        where = f" within {settings.hook_wait:g} s" if waits else ": no screen of agentwatch shows the workspace"
        why = f"nobody has decided{where}"
    failed = "it says that it failed or is blocked"
    if state is State.INVALID:
        failed = "its return breaks its contract"
        if settings.hook_corrects and not any(one.kind == _MEND for one in sent_back):
            return case.conclude(SENT_BACK, _MEND, failed, reason=correction_words(child))
    if settings.hook_undecided == "hold" and waits and not found.record:
        return case.conclude(SENT_BACK, _HELD, f"{failed}, and {why}", reason=HOLD)
    return case.conclude(LET_GO, _HELD, f"{failed}, and {why}; nothing is approved by that")


def tell_parent(call: HookCall, child: Child, workspace: Path, settings: Settings) -> HookAnswer:
    """Return the answer to the parent of a child in a bad state. The parent reads it after the child's return."""
    asker = Reader(workspace, READER, read_only=settings.read_only)
    case, state = _Case(call, child, [], asker, workspace), child.state(settings)
    found, trouble = case.find_decision(0.0)
    if record := found.record:
        asker.write_receipt(found, f"{READER}, session {child.session_id}"[:200])
        words = decision_words(record, asker.write_handoff(record), workspace)
        case.conclude(TOLD, state, f"the operator decided to {record.action.value}", record.decision_id)
    else:
        words = waiting_words(child.task_id, state, workspace)
        case.conclude(TOLD, state, f"it is {state}, and {trouble or 'nobody has decided'}")
    return {"hookSpecificOutput": {"hookEventName": call.event, "additionalContext": words}}


def _carry_out_decision(case: _Case, found: LookupResult, record: Record) -> HookAnswer | None:
    """Return the hook's answer for a decision. Return None if the child has already carried out the decision."""
    asker, child = case.asker, case.child
    action, decision_id = record.action.value, record.decision_id
    by = f"{READER}, agent {child.agent_id} of session {child.session_id}"[:200]
    if record.action not in RESUMING:
        return case.conclude(LET_GO, action, f"the operator decided to {action}, which is for its parent", decision_id)
    try:
        claim = asker.claim(record, by)
    except ReceiptError:
        why = f"the operator decided to {action}, and that it is done cannot be written"
        return case.conclude(LET_GO, action, why, decision_id)
    if not claim.won:
        why = f"the decision to {action} is carried out by {claim.by}"
        return None if claim.by == by else case.conclude(LET_GO, action, why, decision_id)
    asker.write_receipt(found, by)
    reason = continue_words(record, asker.write_handoff(record))
    return case.conclude(SENT_BACK, action, f"{record.operator} decided to {action}", decision_id, reason)


# Texts for language models


def continue_words(record: Record, handoff_path: str | None) -> str:
    """Return the text that tells the child to make another attempt, or to go on with the operator's answers."""
    lines = [f"The operator has decided about your attempt {record.attempt} of {quote_text(record.task_id)}."]
    if record.action is Action.RESPOND:
        lines.append("These are the operator's answers; go on with them:")
        lines += [f"- {one.question or 'What you asked'}: {one.answer}" for one in record.params.answers]
    else:
        lines.append(f"Do it once more, as attempt {record.attempt + 1}.")
    if record.params.mitigation:
        lines.append(f"What is different now: {record.params.mitigation.value.replace('_', ' ')}.")
    lines += _note_lines(record)
    if record.params.handoff is not None:
        where = f", which is in {handoff_path}, too" if handoff_path else ""
        lines += [f"Your handoff is this one now{where}:", "", record.params.handoff.strip(), ""]
    return _join_lines(
        *lines, f"{_END} It is the return of attempt {record.attempt + 1}, for decision {record.decision_id}."
    )


def correction_words(child: Child) -> str:
    """Return the text that tells the child to mend its return, which breaks its contract."""
    returned = child.attempt.returned
    if not returned:
        lines = [
            "Fix your return format: what you ended with follows none of the contracts, so your task counts as failed.",
            "Answer again with a return such as this one, true to what you did, and nothing else around it:",
            "",
            EXAMPLES["return-format"],
        ]
    else:
        contract = returned.document.contract
        errors = [one for one in returned.findings if one.severity is Severity.ERROR]
        lines = [f"Fix your return format: it breaks the {contract} contract, so your task counts as failed."]
        if not errors:
            lines.append("- It still says that the work goes on, and you are about to end: say how it ended.")
        for one in errors[:_MOST_FINDINGS]:
            lines.append(f"- {f'line {one.line}: ' if one.line else ''}{one.message} ({one.rule})")
        lines.append("Answer again with the whole return, mended, and nothing else around it.")
    return _join_lines(*lines, "Do not do the work again, and do not change what you report.")


def decision_words(record: Record, handoff_path: str | None, workspace: Path) -> str:
    """Return the text that tells the parent the operator's decision about its child, and how to carry it out."""
    claim = command_line([*launch_words(), "claim", record.decision_id, str(workspace)])
    return _join_lines(
        f"agentwatch: the operator has decided about {quote_text(record.task_id)}, attempt {record.attempt}:"
        f" {record.action.value}.",
        f"Do this now, and nothing else: {instruction(record, handoff_path)}.",
        f"The signed decision is in .agentwatch/decisions/{record.decision_id}.json; read it.",
        f"Before you carry it out, claim it; only one may carry it out: {claim}",
        *([f"handoff_path is {handoff_path}"] if handoff_path else []),
        *_note_lines(record),
    )


def waiting_words(task_id: str, state: str, workspace: Path) -> str:
    """Return the text that tells the parent to wait for the operator's decision about its child."""
    try:
        wait = command_line([*launch_words(), "wait", "--", task_id, str(workspace)])
    except ValueError:
        wait = "(no command can hold its id: use the tool)"
    return (
        f"agentwatch: {quote_text(task_id)} is {state}, and the operator decides what happens to it. Do not retry,"
        " escalate or give up by yourself. Wait for the decision with the tool wait_for_decision, or with the command"
        f" below in your shell, again and again while it is pending, and do what it says.\n{wait}"
    )


def _note_lines(record: Record) -> list[str]:
    return [f"The operator's note: {note}"] if (note := record.note.strip()) else []


def _join_lines(*lines: str) -> str:
    """Join lines to a safe text. The text must be safe because the program also shows it to a human."""
    kept, cut = clean_lines("\n".join(lines))
    return "\n".join(kept + ([f"({cut})"] if cut else []))
