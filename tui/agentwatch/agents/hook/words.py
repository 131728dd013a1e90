"""What a hook answers, in which words: to the child, to its parent, and to the human at the terminal. Pure.

What goes to the terminal is safe for it. What goes to a model keeps its lines.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from agentwatch.agents.examples import EXAMPLES
from agentwatch.agents.hook.child import Child
from agentwatch.contracts.shapes import Severity
from agentwatch.decisions.asking import do_now
from agentwatch.decisions.record import Record
from agentwatch.delegation.decision import Action
from agentwatch.shell import command_line, launcher
from agentwatch.text import clean, clean_lines, quoted

HookAnswer = dict[str, Any]

HOLD: Final = "The operator has not decided yet. Change nothing, and end with the same return again, word for word."
"""To the child: it may be told so several times, and each word of it and of its answer costs."""

_MOST_FINDINGS: Final = 20
_END: Final = "Then end with a return that keeps the return-format contract, and nothing else around it."


def block(reason: str, shown: str) -> HookAnswer:
    """The child does not stop: it reads the reason and answers again. `shown` is for the human."""
    return {"decision": "block", "reason": reason, "systemMessage": f"agentwatch: {clean(shown, 400)}"}


def let_go(shown: str | None) -> HookAnswer:
    """The child stops. `shown` is None where nothing was at stake."""
    return {} if shown is None else {"systemMessage": f"agentwatch: {clean(shown, 400)}"}


def context(event: str, told: str) -> HookAnswer:
    """The parent reads this beside what the child gave back."""
    return {"hookSpecificOutput": {"hookEventName": event, "additionalContext": told}}


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
    return _kept(lines)


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
    return _kept([*lines, "Do not do the work again, and do not change what you report."])


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
    return _kept(lines)


def undecided(child: Child, state: str, workspace: Path) -> str:
    """To the parent: its child needs a decision."""
    try:
        wait = command_line([*launcher(), "wait", "--", child.task_id, str(workspace)])
    except ValueError:
        wait = "(no command can hold its id: use the tool)"
    return (
        f"agentwatch: {quoted(child.task_id)} is {state}, and the operator decides what happens to it. Do not retry,"
        " escalate or give up by yourself. Wait for the decision with the tool wait_for_decision, or with the command"
        f" below in your shell, again and again while it is pending, and do what it says.\n{wait}"
    )


def _kept(lines: list[str]) -> str:
    """Lines as they are, but for what moves cursors and hides: the program shows them to a human, too."""
    kept, cut = clean_lines("\n".join(lines))
    return "\n".join(kept + ([f"({cut})"] if cut else []))
