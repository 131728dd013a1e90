"""`agentwatch wait` and `agentwatch claim`: an agent asks for the operator's decision, and who carries it out."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from agentwatch import exit_codes
from agentwatch.config import Settings
from agentwatch.decisions.asking import NOTHING_ASKED, Asker, go_on, is_needless, question_about
from agentwatch.decisions.desk import operator_name
from agentwatch.decisions.reader import Expired, Forged, Found, Pending, Question, Verified
from agentwatch.sources.health import complain_of
from agentwatch.text import clean, complain, quoted, say

if TYPE_CHECKING:
    from agentwatch.composition import Load
    from agentwatch.delegation.task import Task
    from agentwatch.monitor import Monitor

_NOT_SEEN: Final = "no such task is seen in the files of this workspace: is its id spelled right, has it returned?"


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
    answer, seen = _decided(asker, partial(load, workspace), settings, task_id, attempt, timeout=timeout)
    document = asker.answer(answer)
    is_unasked = isinstance(answer, Pending) and is_needless(seen)
    if not isinstance(answer, Verified | Expired):
        document |= {"task_id": task_id, "state": seen.own_state.value if seen is not None else None}
        document["unasked"] = is_unasked
        if seen is not None and is_unasked:
            document["detail"] = NOTHING_ASKED
            document["do_now"] = go_on(seen)
        elif seen is None:
            document["do_now"] = f"{_NOT_SEEN} If both: {document['do_now']}"
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
    elif is_unasked:
        complain(clean(document["do_now"]))
        return exit_codes.UNASKED
    else:
        complain(f"pending: the operator has not decided about {task} yet; call again")
        _complain_of(answer)
    if isinstance(answer, Pending) and seen is None:
        place = clean(str(workspace))
        complain(f"no task {task} is seen in the files of {place}: if no session has it either, check its id")
    return _code(answer)


def _decided(
    asker: Asker,
    load: Callable[..., Monitor],
    settings: Settings,
    task_id: str,
    attempt: int | None,
    *,
    timeout: float,
) -> tuple[Found, Task | None]:
    """What there is to say after at most `timeout` seconds, and the task where nothing is decided.

    Before there is a decision about the task, whichever, only files are looked at: the agents' sessions may be large.
    """
    end = time.monotonic() + timeout
    question, task = Question(task_id, attempt), None
    answer = asker.reader.wait(question, 0.0)
    if not isinstance(answer, Verified | Expired):
        task = _seen(load, settings, task_id)
        left = end - time.monotonic()
        if left > 0 and not is_needless(task):
            answer = asker.reader.wait(question, left)
            if not isinstance(answer, Verified | Expired):
                # It may have returned meanwhile.
                task = _seen(load, settings, task_id)
    if not isinstance(answer, Verified | Expired):
        return answer, task
    question = question_about(load(settings, inspects=False).tree, task_id, attempt)
    answer = asker.reader.wait(question, 0.0)
    if not isinstance(answer, Verified | Expired) and not is_needless(_seen(load, settings, task_id)):
        # One of before was decided; this one asks, or has not returned.
        answer = asker.reader.wait(question, max(end - time.monotonic(), 0.0))
    return answer, None if isinstance(answer, Verified | Expired) else _seen(load, settings, task_id)


def _seen(load: Callable[..., Monitor], settings: Settings, task_id: str) -> Task | None:
    """The task as files show it; where they say that nothing is asked, as everything shows it: a claim may be false."""
    files = load(settings._replace(sessions=False), inspects=False)
    complain_of(files.problems)
    task = files.tree.tasks.get(task_id)
    return load(settings, inspects=True).tree.tasks.get(task_id) if is_needless(task) else task


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
    again = bool(by) and not made.won and made.by == by
    if again:
        # The same name is the same agent: it may have crashed after its claim.
        made = made._replace(won=True)
        complain(f"already yours: {clean(made.by, 200)} claimed it at {clean(made.at, 40)}")
    say(json.dumps({"decision_id": decision_id, **made._asdict(), "again": again}))
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
