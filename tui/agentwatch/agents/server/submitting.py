"""Handoffs and returns that agents submit: judged first, then written into the workspace, whole and never elsewhere."""

from __future__ import annotations

import hashlib
from contextlib import suppress
from pathlib import Path
from typing import Final
from urllib.parse import quote

from agentwatch.agents.server.judging import INVALID, Submitted, judged
from agentwatch.contracts.reading import read_document
from agentwatch.contracts.shapes import Document, Handoff, Return
from agentwatch.decisions.asking import ending_of
from agentwatch.decisions.handoff import is_final_report
from agentwatch.delegation.links import fallback_id, own_id, slot
from agentwatch.disk import Directory
from agentwatch.text import quoted

HANDOFFS: Final = "handoffs"
RETURNS: Final = "returns"

_LARGEST: Final = 1024 * 1024
_LONGEST: Final = 150
"""Characters of a stem: with its ending, and that of the file it is written to first, it stays below 255 bytes."""

_ENDINGS: Final = ("json", "md")
_MODES: Final = (0o755, 0o644)
WAITS: Final = frozenset({INVALID, "failed", "blocked"})
"""States about which the operator decides."""

_READ_ONLY: Final = "nothing may be written here: the operator has set read_only; go on without submitting"
_RETURN_INSTEAD: Final = "pass the child's return itself, without prose or a fence around it"


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
    do_now = (
        "start the child now, with this packet as the first block of its prompt; when it has ended, call submit_return"
        f" for {quoted(document.task_id)} with its return"
    )
    path = f"{HANDOFFS}/{stem_of(document.task_id)}.handoff.{ending}"
    return _written(workspace, path, text, reading, do_now, read_only=read_only)


def submit_return(workspace: Path, task_id: str, text: str, *, accept_invalid: bool, read_only: bool) -> Submitted:
    """Write a return to `returns/<task id>.return.md`, or `.json`. With errors only where `accept_invalid` is set."""
    if not task_id:
        return _refused(None, "task_id is empty: give that of the handoff")
    stem = stem_of(task_id)
    path = f"{RETURNS}/{stem}.return.{ending_of(text)}"
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
    stated, task = own_id(document), quoted(task_id)
    if stated is not None and stated != task_id:
        why = f"it says that it is the return of {quoted(stated)}, not of {task}: submit it for that task"
        return _refused(reading, why)
    if stated is None and not _has_handoff(workspace, stem) and fallback_id(path, document) != task_id:
        why = f"nothing ties it to {task}: submit the handoff of the task first, then this return"
        return _refused(reading, why)
    state = judged(reading)["state"]
    if state == INVALID and not accept_invalid:
        return _refused(
            reading,
            "have the child mend every error and submit its new return; if it cannot, submit this one with"
            " accept_invalid=true: the task then counts as failed",
        )
    do_now = f"go on: {task} is {state}; check what it claims before you rely on it"
    if is_final_report(document):
        do_now = f"go on without {task}: the operator has aborted it; hand this report up, and start nothing for it"
    elif state in WAITS:
        do_now = wait_about(task_id)
    return _written(workspace, path, text, reading, do_now, read_only=read_only)


def wait_about(task_id: str, question: str = "") -> str:
    """That the operator is asked about a task, and what; `question` is foreign."""
    why = f"the operator is asked: {quoted(question, 300)}; " if question else ""
    return (
        f"{why}call wait_for_decision for {quoted(task_id)} now, again and again until it is not pending, and do what"
        " its do_now says; do not retry, escalate or give up by yourself"
    )


def _has_handoff(workspace: Path, stem: str) -> bool:
    with suppress(OSError), Directory.open(workspace) as root, root.child(HANDOFFS) as directory:
        return not {f"{stem}.handoff.{ending}" for ending in _ENDINGS}.isdisjoint(directory.names())
    return False


def _written(workspace: Path, path: str, text: str, reading: Document, do_now: str, *, read_only: bool) -> Submitted:
    if read_only:
        return _refused(reading, _READ_ONLY)
    data = text.encode("utf-8", "replace")
    if len(data) > _LARGEST:
        return _refused(reading, f"it has {len(data):,} bytes, and {_LARGEST:,} are read: write it shorter")
    place, name = path.split("/")
    try:
        with Directory.open(workspace) as root, root.child(place, make=_MODES[0]) as directory:
            directory.replace(name, data, _MODES[1])
            # One task has one handoff and one return: of two files nobody could tell which one holds.
            for other in {f"{name.rpartition('.')[0]}.{ending}" for ending in _ENDINGS} - {name}:
                with suppress(OSError):
                    directory.remove(other)
    except OSError as error:
        why = f"{place}/ cannot be written: {error.strerror or error}"
        return _refused(reading, f"{why}. It must be a directory, not a link; tell the operator")
    digest = hashlib.sha256(data).hexdigest()
    return Submitted(**judged(reading), do_now=do_now, accepted=True, path=path, sha256=digest)


def _refused(reading: Document | None, do_now: str) -> Submitted:
    return Submitted(**judged(reading), do_now=do_now, accepted=False, path=None, sha256=None)


def stem_of(task_id: str) -> str:
    """The stem of a task's files, different for different ids, which are foreign and may hold anything.

    What is not a letter, a digit or one of `._-~` is written as `%` and its UTF-8 bytes in hex. Raises ValueError where
    the id is empty.

    >>> stem_of("shop.api"), stem_of("../etc"), stem_of("a/b")
    ('shop.api', '%2E.%2Fetc', 'a%2Fb')
    """
    if not task_id:
        raise ValueError("the task id is empty")
    stem = quote(task_id, safe="._-", errors="surrogatepass")
    if len(stem) > _LONGEST:
        digest = hashlib.sha256(task_id.encode("utf-8", "surrogatepass")).hexdigest()[:32]
        stem = f"{stem[:_LONGEST]}-{digest}"
    # A hidden file, an option on a command line, or a stem that would be read as that of another task.
    if stem[0] in ".-" or slot(f"handoffs/{stem}.handoff.json")[1] != stem:
        stem = f"%{ord(stem[0]):02X}{stem[1:]}"
    return stem
