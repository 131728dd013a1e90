"""Asking for a decision, as every agent does: the question, the answer and the handoff for it, the receipts."""

from __future__ import annotations

import re
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from agentwatch.config import Settings
from agentwatch.contracts.shapes import Handoff
from agentwatch.decisions.reader import Expired, Forged, Found, Pending, Place, Question, Reader, Verified
from agentwatch.decisions.receipts import Claim, ReceiptBook, ReceiptError
from agentwatch.decisions.record import Record, decision_of
from agentwatch.delegation.decision import SPECS, Action, Stage
from agentwatch.delegation.events import Decided
from agentwatch.delegation.retry import FITTER
from agentwatch.delegation.task import State, Task
from agentwatch.delegation.tree import Tree
from agentwatch.disk import DOT, open_dot_directory
from agentwatch.state import state_directory
from agentwatch.text import clean, exact, quoted

HANDOFFS: Final = "handoffs"
"""The directory in `.agentwatch` that amended handoffs are handed out in."""

NOTHING_ASKED: Final = "nothing is asked of the operator about it"

_NAME: Final = re.compile(r"[\w./:@+-]+")
_HAVE_ENDED: Final = frozenset({State.COMPLETED, State.PARTIAL, State.CANCELED})
_NOT_SEEN: Final = "no such task is seen in the files of this workspace: is its id spelled right, has it returned?"
CALL_AGAIN: Final = "call `agentwatch wait` again; this is neither an approval nor a refusal"


class Asker:
    """Asks about the decisions of one workspace; `name` (`wait`, `mcp`, …) is how its receipts call it."""

    def __init__(self, workspace: Path, settings: Settings, name: str) -> None:
        self.name: Final = name
        self.state: Final = state_directory(workspace)
        self._workspace = workspace
        self._read_only = settings.read_only
        self._book = ReceiptBook(workspace, self.state, read_only=settings.read_only)

    @cached_property
    def reader(self) -> Reader:
        """Raises KeyProblemError where a public key that it was started with is none."""
        return Reader(self._workspace)

    def tell(self, tree: Tree, task_id: str) -> None:
        """Let a tree know what is decided about a task: that tells which files are of an attempt after it."""
        if records := self.reader.about(task_id):
            receipts = self._book.read(records)
            decisions = [decision_of(one, receipts[one.decision_id]) for one in records]
            tree.apply(*(Decided(0, one.at, one.decision_id, one) for one in decisions))

    def answer(self, found: Found) -> dict[str, Any]:
        """The document for the agent; the amended handoff is handed out with it."""
        return answer(found, handoff_path=self.hand_out(found.record) if isinstance(found, Verified) else None)

    def hand_out(self, record: Record) -> str | None:
        """Write the amended handoff of a decision into the workspace, for the agent that gets it. Returns its path.

        None if there is none, or if nothing can or may be written: the decision has it, too.
        """
        handoff = record.params.handoff
        if handoff is None or self._read_only:
            return None
        name = f"{record.decision_id}.handoff.{ending_of(handoff)}"
        with suppress(OSError), open_dot_directory(self._workspace, HANDOFFS, make=True) as directory:
            # Anew each time: what lies there may have been edited since.
            directory.replace(name, handoff.encode(), 0o644)
            return str(self._workspace / DOT / HANDOFFS / name)
        return None

    def note_read(self, decision: Verified, by: str) -> str | None:
        """Tell that a decision was read, where the operator sees it. Returns why it could not be written: it was read
        all the same."""
        record, inside = decision.record, decision.place is Place.MIRROR
        try:
            self._book.mark(
                record.decision_id, Stage.READ, by, since=record.created_at, reader=self.name, inside=inside
            )
        except ReceiptError as error:
            return str(error)
        return None

    def note_acted(self, decision_id: str, by: str) -> None:
        """Tell that a decision was carried out. Where nothing can be written it was all the same."""
        found = self.reader.find(Question(None, decision_id=decision_id))
        if isinstance(found, Verified | Expired):
            with suppress(ReceiptError):
                self._book.mark(decision_id, Stage.ACTED, by, since=found.record.created_at, reader=self.name)

    def claim(self, record: Record, by: str) -> Claim:
        """Ask to be the one who carries a decision out. Raises ReceiptError where no claim can be written."""
        return self._book.claim(record.decision_id, by, since=record.created_at)


def question_about(tree: Tree, task_id: str, attempt: int | None) -> Question:
    """The question about the attempt that the operator can be looking at now. From inside a sandbox the history may be
    hidden, and attempts be counted too low: so the number counts as the least only."""
    task = tree.tasks.get(task_id)
    known = {one.number: one for one in task.attempts} if task is not None else {}
    asked = known.get(attempt) if attempt is not None else (task.latest if task is not None else None)
    digest = asked.returned.digest if asked is not None and asked.returned is not None else None
    since = max(known, default=1) if attempt is None else 1
    is_final = asked is not None and asked.has_no_result
    packet = asked.packet_digest if asked is not None else None
    return Question(task_id, attempt, digest, packet, since, over=tree.over(task_id), is_final=is_final)


def is_needless(task: Task | None) -> bool:
    """Whether nobody is asked about a task: it has ended well, as far as can be told. One that has not returned yet is
    worth waiting for."""
    return task is not None and task.own_state in _HAVE_ENDED and task.question is None


def go_on(task: Task) -> str:
    """The sentence about a task that nobody is asked about."""
    return f"go on: {quoted(task.task_id)} is {task.own_state}, and nothing is asked of the operator, so do not wait"


def answer(found: Found, *, handoff_path: str | None = None) -> dict[str, Any]:
    """The document. `pending` is False only where there is a decision that holds: then it has the keys of the record,
    `place`, `handoff_path` and `do_now`; else `do_now`, and `detail`, `refused` or `expired`."""
    if isinstance(found, Verified):
        told = {"place": found.place.value, "handoff_path": handoff_path, "do_now": do_now(found.record, handoff_path)}
        # What was signed on another machine was verified, and says all of it once more: agents read it as text.
        said = {name: value for name, value in found.record.document().items() if name != "signed_request"}
        return {"pending": False, **said, **told}
    if isinstance(found, Expired):
        record = found.record
        known = {name: getattr(record, name) for name in ("decision_id", "task_id", "attempt", "expires_at")}
        again = "do not act on it: tell the operator to decide again"
        return {"pending": True, "expired": known, "do_now": f"the decision held until {record.expires_at}; {again}"}
    if isinstance(found, Forged):
        refused = [{"name": one.name, "kind": one.kind.value, "message": one.message} for one in found.refused]
        return {"pending": True, "refused": refused, "do_now": f"do not act on the refused files; {CALL_AGAIN}"}
    return {"pending": True, "detail": found.detail, "do_now": CALL_AGAIN}


def waited(found: Found, task: Task | None, task_id: str, *, handoff_path: str | None = None) -> dict[str, Any]:
    """The document that `wait` prints: that of `answer`, and where nothing is decided, how the task is seen."""
    document = answer(found, handoff_path=handoff_path)
    if isinstance(found, Verified | Expired):
        return document
    is_unasked = isinstance(found, Pending) and is_needless(task)
    document |= {"task_id": task_id, "state": task.own_state.value if task is not None else None}
    document["unasked"] = is_unasked
    if task is None:
        document["do_now"] = f"{_NOT_SEEN} If both: {document['do_now']}"
    elif is_unasked:
        document |= {"detail": NOTHING_ASKED, "do_now": go_on(task)}
    return document


def do_now(record: Record, handoff_path: str | None = None) -> str:
    """The step of an agent that was told of a decision, in one sentence."""
    # An id of several words could pass for a part of the sentence.
    task = exact(record.task_id)
    if not _NAME.fullmatch(task):
        task = quoted(record.task_id, 200)
    template, given = SPECS[record.action].do_now, _given(record, handoff_path)
    if record.action is Action.ESCALATE and _restores(record):
        template = f"start the {FITTER} {{given}}, and once it has returned, wait for the next decision about {{task}}"
    answers = "params.answers, and the operator's note in `note`," if record.note.strip() else "params.answers"
    return template.format(
        task=task,
        after=record.attempt + 1,
        given=given,
        mode=clean(record.params.mode or ""),
        answers=answers,
        decision_id=record.decision_id,
    )


def _restores(record: Record) -> bool:
    """Whether what is handed on is for a fitter, and not for the station itself."""
    # Only now: most answers need no reading of the contracts.
    from agentwatch.contracts.reading import read_document

    reading = read_document(record.params.handoff or "", "fitter.handoff.json")
    packet = reading.document if reading is not None else None
    return isinstance(packet, Handoff) and packet.restores == record.task_id


def _given(record: Record, handoff_path: str | None) -> str:
    if handoff_path is not None:
        return "with the handoff in the file handoff_path"
    if record.params.handoff is not None:
        return "with the handoff in params.handoff"
    note = ", and the operator's note in `note`" if record.note.strip() else ""
    return f"with the last handoff, its decision_id set to {record.decision_id}{note}"


def ending_of(text: str) -> str:
    """The ending of a document's file: `json` for an object, else `md`."""
    return "json" if text.lstrip("\ufeff \t\r\n")[:1] == "{" else "md"
