"""What every agent that asks for a decision needs: its question, the handoff that it gets, and that it has read it."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Final

from agentwatch.config import Settings
from agentwatch.decisions.reader import Place, Question, Verified
from agentwatch.decisions.receipts import ReceiptBook
from agentwatch.decisions.record import Record
from agentwatch.delegation.decision import Stage
from agentwatch.delegation.tree import DelegationTree
from agentwatch.dot_directory import make_dot_directory
from agentwatch.place import state_directory

HANDOFFS: Final = "handoffs"
"""The directory in `.agentwatch` that amended handoffs are handed out in."""


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
