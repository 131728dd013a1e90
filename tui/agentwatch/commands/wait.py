"""`agentwatch wait` and `agentwatch claim`: an agent asks for the operator's decision, and who carries it out."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from agentwatch import exit_codes
from agentwatch.config import Settings
from agentwatch.decisions.asking import Asker, question_about
from agentwatch.decisions.desk import operator_name
from agentwatch.decisions.reader import Expired, Forged, Found, Question, Verified
from agentwatch.sources.health import complain_of
from agentwatch.text import clean, complain, quoted, say

if TYPE_CHECKING:
    from agentwatch.composition import Load
    from agentwatch.monitor import Monitor


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
    """Wait for a decision, at most `timeout` seconds, and print it. Returns one of `exit_codes`.

    Whatever comes out of it but a decision that holds is pending: a time-out says nothing about what will be decided.
    """
    task = quoted(task_id)
    asker = Asker(workspace, settings, "wait")
    answer = _decided(asker, partial(load, workspace, settings, inspects=False), task_id, attempt, timeout=timeout)
    document = asker.answer(answer)
    # ASCII only: foreign characters reach the reader as escapes, the terminal never.
    say(json.dumps(document, indent=indent))
    if sys.stdout is not None:
        sys.stdout.flush()
    if isinstance(answer, Verified):
        # Only now somebody has it.
        trouble = asker.note_read(answer, "agentwatch wait")
        if trouble is not None:
            complain(clean(trouble))
    elif isinstance(answer, Expired):
        complain(f"the decision about {task} has expired: the operator must decide again")
    else:
        complain(f"pending: the operator has not decided about {task} yet; call again")
        _complain_of(answer)
    if not isinstance(answer, Verified | Expired | Forged):
        # The agents' sessions may be large, and nobody has decided anything about them.
        files = load(workspace, settings._replace(sessions=False), inspects=False)
        complain_of(files.problems)
        if task_id not in files.tree.tasks:
            place = clean(str(workspace))
            complain(f"no task {task} is seen in the files of {place}: if no session has it either, check its id")
    return _code(answer)


def _decided(asker: Asker, load: Callable[[], Monitor], task_id: str, attempt: int | None, *, timeout: float) -> Found:
    """What there is to say after at most `timeout` seconds.

    What is there now is looked at when there is a decision about the task, whichever: before that, nothing in the
    workspace can make one, and the agents' sessions may be large.
    """
    end = time.monotonic() + timeout
    answer = asker.reader.wait(Question(task_id, attempt), timeout)
    if not isinstance(answer, Verified | Expired):
        return answer
    question = question_about(load().tree, task_id, attempt)
    return asker.reader.wait(question, max(end - time.monotonic(), 0.0))


def claim(workspace: Path, settings: Settings, decision_id: str, by: str | None) -> int:
    """Claim a decision before it is carried out, and print who has it. Returns an exit code. Raises ReceiptError."""
    asker = Asker(workspace, settings, "claim")
    answer = asker.reader.find(Question(None, decision_id=decision_id))
    if not isinstance(answer, Verified):
        known = "has expired: the operator must decide again" if isinstance(answer, Expired) else "is not there (yet)"
        complain(f"not claimed: a signed decision {decision_id} {known}")
        _complain_of(answer)
        return _code(answer)
    made = asker.claim(answer.record, by or f"{operator_name()}, process {os.getppid()}")
    say(json.dumps({"decision_id": decision_id, **made._asdict()}))
    if not made.won:
        complain(f"not yours: {clean(made.by, 200)} claimed it at {clean(made.at, 40)}; do not carry it out again")
    return exit_codes.DONE if made.won else exit_codes.TAKEN


def _complain_of(answer: Found) -> None:
    if isinstance(answer, Forged):
        for problem in answer.refused[:10]:
            complain(f"refused: {clean(problem.message)}")
        if len(answer.refused) > 10:
            complain(f"refused: {len(answer.refused) - 10} more")


def _code(answer: Found) -> int:
    if isinstance(answer, Verified):
        return exit_codes.DONE
    if isinstance(answer, Expired):
        return exit_codes.EXPIRED
    return exit_codes.REFUSED if isinstance(answer, Forged) else exit_codes.PENDING
