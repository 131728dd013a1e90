"""What is about to be decided, as lines that an operator reads, and the one question under them.

What agents wrote is indented behind a bar, so that nothing in it can look like a line of ours.
"""

from __future__ import annotations

import sys
import termios
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from agentwatch.commands.wish import Wish
from agentwatch.decisions.proposal import goes_to_fitter
from agentwatch.decisions.record import Params, Subject
from agentwatch.delegation.decision import Action
from agentwatch.delegation.retry import FITTER, is_retry, mitigated
from agentwatch.delegation.task import Task
from agentwatch.text import clean, clean_lines, exact, say
from agentwatch.view.words import retries_left

DIGITS: Final = 12
"""Hex digits of a digest that are shown; what is compared is all of it."""

_WIDTH: Final = 11
_MOST_LINES: Final = 40
_LONGEST: Final = 300


def lines(
    task: Task, subject: Subject, wish: Wish, params: Params, *, warnings: Sequence[str], places: Sequence[str]
) -> list[str]:
    """What will be recorded. `places` say where it is written."""
    facts = [
        ("task", f"{exact(task.task_id, _LONGEST)}, attempt {task.attempt}, {task.own_state}"),
        ("decision", _decision(wish)),
        ("return", _return(task, subject)),
        ("retries", _budget(task, wish)),
        ("next", _next(task, wish, params)),
    ]
    facts += [("note", line) for line in clean_lines(wish.note, _MOST_LINES)[0]]
    facts += [("answer", clean(f"{one.question or ''} → {one.answer}", _LONGEST)) for one in params.answers]
    facts += [("writes", place) for place in places]
    facts += [("beware", warning) for warning in warnings]
    shown, before = [], ""
    for name, value in facts:
        if value:
            shown.append(f"  {name if name != before else '':<{_WIDTH}}{value}")
            before = name
    if params.report is not None:
        shown += ["", "  The final error report:", *_quoted(params.report)]
    if said := list(_said(task)):
        shown += [
            "",
            f"  What {clean(task.agent or 'the child', 60)} says, in its own words:",
            *_quoted("\n".join(said)),
        ]
    return shown


def confirmed() -> bool:
    """Ask on the terminal. Only `y` or `yes` is a yes, and nothing that was typed before the question."""
    # First this, as passphrases are asked for: after the question an answer could be thrown away.
    termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)
    sys.stdout.write("\nRecord this decision? [y/N] ")
    sys.stdout.flush()
    typed = sys.stdin.readline()
    if not typed.endswith("\n"):
        say("")
    return typed.strip().casefold() in ("y", "yes")


def ledger_places(ledger: Path, workspace: Path, subject: Subject, *, read_only: bool) -> list[str]:
    """Where a decision is written."""
    places = [f"{clean(str(ledger))}  (the ledger, signed)"]
    if not read_only:
        mirror = f"{clean(str(workspace))}/.agentwatch/decisions/{subject.decision_id}"
        places.append(f"{mirror}.json and .md  (for the agents)")
    return places


def _decision(wish: Wish) -> str:
    if wish.mode is not None:
        return f"{wish.action} to the mode {clean(wish.mode, 60)}"
    return f"{wish.action}, with {wish.mitigation} as mitigation" if wish.mitigation else str(wish.action)


def _return(task: Task, subject: Subject) -> str:
    returned = task.latest.returned if task.latest else None
    if returned is None or subject.return_sha256 is None:
        return "none yet"
    return f"{clean(returned.path, _LONGEST)}, sha256 {subject.return_sha256[:DIGITS]}…"


def _budget(task: Task, wish: Wish) -> str:
    left = retries_left(task.retry)
    if goes_to_fitter(task, wish.mode):
        return f"{left}, exactly one once the {FITTER} has restored the line"
    if wish.action is not Action.ESCALATE and not is_retry(wish.action, task.latest):
        return f"{left}, before and after"
    retry = mitigated(task) if wish.mitigation else task.retry
    return f"{retries_left(retry)}, {max(retry.remaining - 1, 0)} after it"


def _next(task: Task, wish: Wish, params: Params) -> str:
    if wish.action is Action.ACCEPT:
        return "it has nothing more to do"
    if wish.action is Action.ABORT:
        return "no other attempt; its parent gets the final error report below"
    if wish.action is Action.RESPOND:
        return f"attempt {task.attempt + 1}, with your answer"
    if params.handoff is None:
        return f"attempt {task.attempt + 1}; no handoff was seen, so it gets your note only"
    size = f"{len(params.handoff.encode()):,} bytes"
    if goes_to_fitter(task, wish.mode):
        return f"a packet of {size} for the {FITTER}, who restores the line"
    given = "your handoff" if wish.handoff else "the amended handoff"
    return f"attempt {task.attempt + 1}, with {given} ({size})"


def _said(task: Task) -> Iterator[str]:
    result = task.result
    if result is None:
        return
    facts = (
        ("summary", result.summary),
        ("error", result.error_code),
        ("message", result.error_message if result.error_message != result.summary else None),
        ("hint", result.retry_hint),
        ("review", result.review_reason),
    )
    yield from (f"{name}: {value}" for name, value in facts if value)
    yield from (f"blocker: {blocker}" for blocker in result.blockers)


def _quoted(text: str) -> list[str]:
    shown, cut = clean_lines(text.removesuffix("\n"), _MOST_LINES)
    return [f"    │ {clean(line, _LONGEST)}" for line in shown] + ([f"    ({cut})"] if cut else [])
