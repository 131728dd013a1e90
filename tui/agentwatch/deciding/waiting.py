"""`agentwatch wait` and `agentwatch claim`: an agent asks for the operator's decision, and who carries it out."""

from __future__ import annotations

import json
import os
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from agentwatch.config import Settings
from agentwatch.deciding import codes
from agentwatch.decisions.answer import answer
from agentwatch.decisions.desk import operator_name
from agentwatch.decisions.reader import Expired, Forged, Found, Place, Question, Reader, Verified
from agentwatch.decisions.receipts import ReceiptBook, ReceiptError
from agentwatch.decisions.record import Record
from agentwatch.delegation.decision import Stage
from agentwatch.delegation.tree import DelegationTree
from agentwatch.dot_directory import make_dot_directory
from agentwatch.place import state_directory
from agentwatch.sources.health import complain_of
from agentwatch.text import clean, complain, quoted, say

if TYPE_CHECKING:
    from agentwatch.deciding.loading import Load

HANDOFFS: Final = "handoffs"
"""The directory in `.agentwatch` that amended handoffs are handed out in."""

_READER: Final = "wait"


def wait(
    workspace: Path,
    settings: Settings,
    load: Load,
    task_id: str,
    attempt: int | None,
    *,
    timeout: float,
    indent: int | None,
) -> int:
    """Wait for a decision, at most `timeout` seconds, and print it. Returns one of `codes`.

    Whatever comes out of it but a decision that holds is pending: a time-out says nothing about what will be decided.
    """
    task = quoted(task_id)
    found = _decided(workspace, settings, load, task_id, attempt, timeout=timeout)
    path = None
    if isinstance(found, Verified):
        path = hand_out(workspace, settings, found.record)
    document = answer(found, handoff_path=path)
    # ASCII only: foreign characters reach the reader as escapes, the terminal never.
    say(json.dumps(document, indent=indent))
    if sys.stdout is not None:
        sys.stdout.flush()
    if isinstance(found, Verified):
        # Only now somebody has it.
        try:
            note_read(workspace, settings, found, "agentwatch wait", _READER)
        except ReceiptError as error:
            complain(clean(str(error)))
    elif isinstance(found, Expired):
        complain(f"the decision about {task} has expired: the operator must decide again")
    elif isinstance(found, Forged):
        complain(f"pending: the operator has not decided about {task} yet; call again")
        _complain_of(found)
    else:
        complain(f"pending: the operator has not decided about {task} yet; call again")
        # The agents' sessions may be large, and nobody has decided anything about them.
        files = load(workspace, settings._replace(sessions=False), inspects=False)
        complain_of(files.problems)
        if task_id not in files.tree.tasks:
            place = clean(str(workspace))
            complain(f"no task {task} is seen in the files of {place}: if no session has it either, check its id")
    return _code(found)


def _decided(
    workspace: Path, settings: Settings, load: Load, task_id: str, attempt: int | None, *, timeout: float
) -> Found:
    """What there is to say after at most `timeout` seconds.

    What is there now is looked at when there is a decision about the task, whichever: before that, nothing in the
    workspace can make one, and the agents' sessions may be large.
    """
    end = time.monotonic() + timeout
    reader = Reader(workspace)
    found = reader.wait(Question(task_id, attempt), timeout)
    if not isinstance(found, Verified | Expired):
        return found
    question = question_about(load(workspace, settings, inspects=False).tree, task_id, attempt)
    return reader.wait(question, max(end - time.monotonic(), 0.0))


def question_about(tree: DelegationTree, task_id: str, attempt: int | None) -> Question:
    """The question for what the operator can be looking at now.

    A decision about an attempt before, or about a return that was rewritten since, is none about this one; an abort
    still is where its final report, or a late failure, was written since. From inside a sandbox the history may be
    hidden, and attempts be counted too low: so the number counts as the least only.
    """
    task = tree.tasks.get(task_id)
    known = {one.number: one for one in task.attempts} if task is not None else {}
    asked = known.get(attempt) if attempt is not None else (task.latest if task is not None else None)
    digest = asked.returned.digest if asked is not None and asked.returned is not None else None
    since = max(known, default=1) if attempt is None else 1
    is_final = asked is not None and asked.has_no_result
    return Question(task_id, attempt, digest, since, over=tree.over(task_id), is_final=is_final)


def claim(workspace: Path, settings: Settings, decision_id: str, by: str | None) -> int:
    """Claim a decision before it is carried out, and print who has it. Returns one of `codes`. Raises ReceiptError."""
    found = Reader(workspace).find(Question(None, decision_id=decision_id))
    if not isinstance(found, Verified):
        known = "has expired: the operator must decide again" if isinstance(found, Expired) else "is not there (yet)"
        complain(f"not claimed: a signed decision {decision_id} {known}")
        _complain_of(found)
        return _code(found)
    asker = by or f"{operator_name()}, process {os.getppid()}"
    book = ReceiptBook(workspace, state_directory(workspace), read_only=settings.read_only)
    made = book.claim(decision_id, asker, since=found.record.created_at)
    document: dict[str, Any] = {
        "decision_id": decision_id,
        "won": made.won,
        "by": made.by,
        "at": made.at,
        "proof": made.proof,
    }
    say(json.dumps(document))
    if not made.won:
        complain(f"not yours: {clean(made.by, 200)} claimed it at {clean(made.at, 40)}; do not carry it out again")
    return codes.DONE if made.won else codes.TAKEN


def note_read(workspace: Path, settings: Settings, found: Verified, by: str, reader: str) -> None:
    """Tell that a decision was read, where the operator sees it. Raises ReceiptError; it was read all the same."""
    record, inside = found.record, found.place is Place.MIRROR
    book = ReceiptBook(workspace, state_directory(workspace), read_only=settings.read_only)
    book.mark(record.decision_id, Stage.READ, by, since=record.created_at, reader=reader, inside=inside)


def hand_out(workspace: Path, settings: Settings, record: Record) -> str | None:
    """Write the amended handoff of a decision into the workspace, for the agent that gets it. Returns its path.

    None if there is none, or if nothing can or may be written: the decision has it, too.
    """
    handoff = record.params.handoff
    if handoff is None or settings.read_only:
        return None
    name = f"{record.decision_id}.handoff.{ending_of(handoff)}"
    with suppress(OSError), make_dot_directory(workspace, HANDOFFS) as directory:
        # Anew each time: what lies there may have been edited since.
        directory.replace(name, handoff.encode(), 0o644)
        return str(workspace / ".agentwatch" / HANDOFFS / name)
    return None


def ending_of(text: str) -> str:
    """What the name of a document's file ends in: `json` for an object, else `md`."""
    return "json" if text.lstrip("\ufeff \t\r\n")[:1] == "{" else "md"


def _complain_of(found: Found) -> None:
    if isinstance(found, Forged):
        for problem in found.refused[:10]:
            complain(f"refused: {clean(problem.message)}")
        if len(found.refused) > 10:
            complain(f"refused: {len(found.refused) - 10} more")


def _code(found: Found) -> int:
    if isinstance(found, Verified):
        return codes.DONE
    if isinstance(found, Expired):
        return codes.EXPIRED
    return codes.REFUSED if isinstance(found, Forged) else codes.PENDING
