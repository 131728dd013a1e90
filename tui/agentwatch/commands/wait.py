"""`agentwatch wait` and `agentwatch claim`: an agent asks for the operator's decision, and who carries it out.

What `wait` says is one document, wherever it is made: the exit code and what stands on standard error come from it.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from agentwatch.composition import find_task
from agentwatch.config import Settings
from agentwatch.decisions.asking import CALL_AGAIN, Asker, answer, is_needless, question_about, waited
from agentwatch.decisions.desk import operator_name
from agentwatch.decisions.reader import Expired, Found, Question, Verified
from agentwatch.errors import ExitCode
from agentwatch.sources import complain_of
from agentwatch.text import clean, complain, quoted, say

if TYPE_CHECKING:
    from agentwatch.composition import Load
    from agentwatch.delegation.task import Task
    from agentwatch.monitor import Monitor
    from agentwatch.remote.source import RemoteSource

_BY: Final = "agentwatch wait"
_FINAL: Final = (ExitCode.DONE, ExitCode.EXPIRED, ExitCode.UNASKED)
"""Waiting any longer changes nothing."""
_AGAIN_SECONDS: Final = 0.5
"""Between two questions to a host."""
_MOST_REFUSED: Final = 10


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
    """Wait for a decision, at most `timeout` seconds, and print it. Returns one of `ExitCode`.

    Whatever comes out of it but a decision that holds is pending: a time-out says nothing about what will be decided.
    """
    asker = Asker(workspace, settings, "wait")

    def load_decided(workspace: Path, settings: Settings, **options: Any) -> Monitor:
        monitor = load(workspace, settings, **options)
        asker.tell(monitor.tree, task_id)
        return monitor

    found, task = _decided(asker, load_decided, workspace, settings, task_id, attempt=attempt, timeout=timeout)
    handoff_path = asker.hand_out(found.record) if isinstance(found, Verified) else None
    document = waited(found, task, task_id, handoff_path=handoff_path)
    _print(document, indent)
    # Only now somebody has it.
    trouble = asker.note_read(found, _BY) if isinstance(found, Verified) else None
    return _tell(document, task_id, str(workspace), trouble)


def wait_for_host(
    source: RemoteSource, written: str, task_id: str, attempt: int | None, *, timeout: float, indent: int | None
) -> int:
    """The same about a task of a workspace on another machine, with this address: its host looks, again and again, and
    says what `wait` says there. Whether it has decided while it cannot be reached nobody knows: that is pending."""
    end = time.monotonic() + timeout
    source.scan()
    while True:
        document = _said(source, "wait", task_id, "" if attempt is None else str(attempt))
        left = end - time.monotonic()
        if (document is not None and _code(document) in _FINAL) or left <= 0:
            break
        time.sleep(min(_AGAIN_SECONDS, left))
    if document is None:
        host = source.host
        why = host.why if host.lost_since is not None else "it does not answer"
        detail = f"{host.label} cannot be reached: {why}"
        unknown = {"unreachable": True, "task_id": task_id, "state": None, "unasked": False}
        _print({"pending": True, "detail": detail, "do_now": CALL_AGAIN, **unknown}, indent)
        complain(f"pending: nobody knows what is decided about {quoted(task_id)}: {clean(detail)}; call again")
        return ExitCode.PENDING
    _print(document, indent)
    trouble = None
    if _code(document) == ExitCode.DONE:
        read = _said(source, "read", str(document.get("decision_id")))
        trouble = f"{source.host.label} was not told that it was read" if read is None else read.get("trouble")
    return _tell(document, task_id, written, trouble)


def _said(source: RemoteSource, what: Literal["wait", "read"], key: str, place: str = "") -> dict[str, Any] | None:
    """The document that the host answers with; None where it does not."""
    with suppress(ValueError, RecursionError):
        document = json.loads(source.ask(what, key, place) or "null")
        if isinstance(document, dict) and isinstance(document.get("pending"), bool):
            return document
    return None


def _print(document: Mapping[str, object], indent: int | None) -> None:
    # ASCII only: foreign characters reach the reader as escapes, the terminal never.
    say(json.dumps(document, indent=indent))
    if sys.stdout is not None:
        sys.stdout.flush()


def _tell(document: Mapping[str, Any], task_id: str, place: str, trouble: object) -> int:
    """Say on standard error what a document says. Returns its exit code."""
    task, code = quoted(task_id), _code(document)
    if trouble:
        complain(clean(str(trouble)))
    if code == ExitCode.EXPIRED:
        complain(f"the decision about {task} has expired: the operator must decide again")
    elif code == ExitCode.UNASKED:
        complain(clean(str(document.get("do_now"))))
    elif code != ExitCode.DONE:
        complain(f"pending: the operator has not decided about {task} yet; call again")
        _complain_of(document)
    if code == ExitCode.PENDING and document.get("state") is None:
        complain(f"no task {task} is seen in the files of {clean(place)}: if no session has it either, check its id")
    return code


def _decided(
    asker: Asker,
    load: Load,
    workspace: Path,
    settings: Settings,
    task_id: str,
    *,
    attempt: int | None,
    timeout: float,
) -> tuple[Found, Task | None]:
    """What there is to say after at most `timeout` seconds, and the task where nothing is decided.

    Before there is a decision about the task, whichever, only files are looked at: the agents' sessions may be large.
    """
    end = time.monotonic() + timeout
    question, task = Question(task_id, attempt), None
    found = asker.reader.wait(question, 0.0)
    if not isinstance(found, Verified | Expired):
        task = _seen(load, workspace, settings, task_id)
        left = end - time.monotonic()
        if left > 0 and not is_needless(task):
            found = asker.reader.wait(question, left)
            if not isinstance(found, Verified | Expired):
                # It may have returned meanwhile.
                task = _seen(load, workspace, settings, task_id)
    if not isinstance(found, Verified | Expired):
        return found, task
    question = question_about(load(workspace, settings, inspects=False).tree, task_id, attempt)
    found = asker.reader.wait(question, 0.0)
    if not isinstance(found, Verified | Expired) and not is_needless(_seen(load, workspace, settings, task_id)):
        # One of before was decided; this one asks, or has not returned.
        found = asker.reader.wait(question, max(end - time.monotonic(), 0.0))
    return found, None if isinstance(found, Verified | Expired) else _seen(load, workspace, settings, task_id)


def _seen(load: Load, workspace: Path, settings: Settings, task_id: str) -> Task | None:
    """The task as files show it; where they say that nothing is asked, as everything shows it: a claim may be false."""
    task, problems = find_task(workspace, settings._replace(sessions=False), task_id, load)
    complain_of(problems)
    return find_task(workspace, settings, task_id, load, inspects=True)[0] if is_needless(task) else task


def claim(workspace: Path, settings: Settings, decision_id: str, by: str | None) -> int:
    """Claim a decision before it is carried out, and print who has it. Returns an exit code. Raises ReceiptError."""
    asker = Asker(workspace, settings, "claim")
    found = asker.reader.find(Question(None, decision_id=decision_id))
    if not isinstance(found, Verified):
        known = "has expired: the operator must decide again" if isinstance(found, Expired) else "is not there (yet)"
        complain(f"not claimed: a signed decision {decision_id} {known}")
        document = answer(found)
        _complain_of(document)
        return _code(document)
    made = asker.claim(found.record, by or f"{operator_name()}, process {os.getppid()}")
    again = bool(by) and not made.won and made.by == by
    if again:
        # The same name is the same agent: it may have crashed after its claim.
        made = made._replace(won=True)
        complain(f"already yours: {clean(made.by, 200)} claimed it at {clean(made.at, 40)}")
    say(json.dumps({"decision_id": decision_id, **made._asdict(), "again": again}))
    if not made.won:
        complain(f"not yours: {clean(made.by, 200)} claimed it at {clean(made.at, 40)}; do not carry it out again")
    return ExitCode.DONE if made.won else ExitCode.TAKEN


def _complain_of(document: Mapping[str, Any]) -> None:
    refused = document.get("refused", ())
    for problem in refused[:_MOST_REFUSED]:
        complain(f"refused: {clean(str(problem.get('message')))}")
    if len(refused) > _MOST_REFUSED:
        complain(f"refused: {len(refused) - _MOST_REFUSED} more")


def _code(document: Mapping[str, Any]) -> int:
    if not document["pending"]:
        return ExitCode.DONE
    if "expired" in document:
        return ExitCode.EXPIRED
    if document.get("unasked"):
        return ExitCode.UNASKED
    return ExitCode.REFUSED if "refused" in document else ExitCode.PENDING
