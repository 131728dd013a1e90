"""Handoffs and returns that agents submit: judged first, then written into the workspace, whole and never elsewhere."""

from __future__ import annotations

import hashlib
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from agentwatch.agents.server.judging import INVALID, found, state_of
from agentwatch.agents.server.names import stem_of
from agentwatch.agents.server.shapes import Submitted
from agentwatch.contracts.reading import read_document
from agentwatch.contracts.shapes import Handoff, Reading, Return
from agentwatch.decisions.amend import is_final_report
from agentwatch.decisions.asking import ending_of
from agentwatch.delegation.identity import fallback_id, own_id
from agentwatch.disk import Directory
from agentwatch.text import quoted

HANDOFFS: Final = "handoffs"
RETURNS: Final = "returns"

_LARGEST: Final = 1024 * 1024
_ENDINGS: Final = ("json", "md")
_MODES: Final = (0o755, 0o644)
_WAITS: Final = frozenset({INVALID, "failed", "blocked"})
"""States about which the operator decides."""

_READ_ONLY: Final = "nothing may be written here: the operator has set read_only; go on without submitting"
_RETURN_INSTEAD: Final = "pass the child's return itself, without prose or a fence around it"


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a document of a task goes: the directory in the workspace, and what the file is called but its ending."""

    directory: str
    name: str

    def path(self, ending: str) -> str:
        return f"{self.directory}/{self.name}.{ending}"


def submit_handoff(workspace: Path, text: str, *, read_only: bool) -> Submitted:
    """Write a handoff packet to `handoffs/<task id>.handoff.json`, or `.md`, if it keeps its contract."""
    ending = ending_of(text)
    reading = read_document(text, f"{HANDOFFS}/packet.handoff.{ending}")
    document = reading.document if reading is not None else None
    if reading is None or not isinstance(document, Handoff) or not document.recognised:
        return _refused(
            None,
            "no handoff packet is recognised in it: send the packet as a JSON object, or Markdown whose first"
            " block is the fenced packet; get_contract('handoff-packet') has an example",
        )
    if reading.has_error or not document.task_id:
        return _refused(reading, "mend every error and submit it again; do not start the child before it is accepted")
    place = _Place(HANDOFFS, f"{stem_of(document.task_id)}.handoff")
    task = quoted(document.task_id)
    do_now = (
        f"start the child now, with this packet as the first block of its prompt; when it has ended, call submit_return"
        f" for {task} with its return"
    )
    return _written(workspace, place, text, reading, do_now, read_only=read_only)


def submit_return(workspace: Path, task_id: str, text: str, *, accept_invalid: bool, read_only: bool) -> Submitted:
    """Write a return to `returns/<task id>.return.md`, or `.json`. With errors only where `accept_invalid` is set."""
    if not task_id:
        return _refused(None, "task_id is empty: give that of the handoff")
    place = _Place(RETURNS, f"{stem_of(task_id)}.return")
    path = place.path(ending_of(text))
    reading = read_document(text, path)
    document = reading.document if reading is not None else None
    if reading is None or not isinstance(document, Return) or not document.recognised:
        if read_document(text, path, embedded=True) is not None:
            return _refused(None, _RETURN_INSTEAD)
        return _refused(
            None,
            "no return is recognised in it: have the child answer again in the return format; where that cannot"
            " be done, submit a return-format document in its name with `state: ERROR` and `error_code: E_NO_RETURN`",
        )
    if _task_of(workspace, place, document, path, task_id) != task_id:
        return _refused(reading, _belongs_elsewhere(document, task_id))
    state = state_of(reading)
    if state == INVALID and not accept_invalid:
        return _refused(
            reading,
            "have the child mend every error and submit its new return; if it cannot, submit this one with"
            " accept_invalid=true: the task then counts as failed",
        )
    task = quoted(task_id)
    if is_final_report(document):
        do_now = f"go on without {task}: the operator has aborted it; hand this report up, and start nothing for it"
        return _written(workspace, place, text, reading, do_now, read_only=read_only)
    do_now = (
        f"call wait_for_decision for {task} now, again and again until it is not pending, and do what its do_now says;"
        " do not retry, escalate or give up by yourself"
        if state in _WAITS
        else f"go on: {task} is {state}; check what it claims before you rely on it"
    )
    return _written(workspace, place, text, reading, do_now, read_only=read_only)


def _task_of(workspace: Path, place: _Place, document: Return, path: str, task_id: str) -> str:
    """The task that the tree will take the return for."""
    own = own_id(document)
    if own is not None:
        return own
    handoff = place.name.removesuffix(".return") + ".handoff"
    with suppress(OSError), Directory.open(workspace) as root, root.child(HANDOFFS) as directory:
        if not {f"{handoff}.{ending}" for ending in _ENDINGS}.isdisjoint(directory.names()):
            return task_id
    return fallback_id(path, document)


def _belongs_elsewhere(document: Return, task_id: str) -> str:
    stated = own_id(document)
    if stated is not None:
        return f"it says that it is the return of {quoted(stated)}, not of {quoted(task_id)}: submit it for that task"
    return f"nothing ties it to {quoted(task_id)}: submit the handoff of the task first, then this return"


def _written(workspace: Path, place: _Place, text: str, reading: Reading, do_now: str, *, read_only: bool) -> Submitted:
    if read_only:
        return _refused(reading, _READ_ONLY)
    data, ending = text.encode("utf-8", "replace"), ending_of(text)
    if len(data) > _LARGEST:
        return _refused(reading, f"it has {len(data):,} bytes, and {_LARGEST:,} are read: write it shorter")
    try:
        with Directory.open(workspace) as root, root.child(place.directory, make=_MODES[0]) as directory:
            directory.replace(f"{place.name}.{ending}", data, _MODES[1])
            # One task has one handoff and one return: of two files nobody could tell which one holds.
            for other in _ENDINGS:
                if other != ending:
                    with suppress(OSError):
                        directory.remove(f"{place.name}.{other}")
    except OSError as error:
        why = f"{place.directory}/ cannot be written: {error.strerror or error}"
        return _refused(reading, f"{why}. It must be a directory, not a link; tell the operator")
    return Submitted(
        contract=reading.contract.value,
        state=state_of(reading),
        findings=found(reading),
        do_now=do_now,
        accepted=True,
        path=place.path(ending),
        sha256=hashlib.sha256(data).hexdigest(),
    )


def _refused(reading: Reading | None, do_now: str) -> Submitted:
    return Submitted(
        contract=reading.contract.value if reading is not None else None,
        state=state_of(reading) if reading is not None else None,
        findings=found(reading) if reading is not None else [],
        do_now=do_now,
        accepted=False,
        path=None,
        sha256=None,
    )
