"""The commands with which agents get a decision: wait for it, and claim it."""

from __future__ import annotations

import json
import math
import os
import sys
import time
from argparse import Namespace
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from agentwatch.arguments import workspace_at
from agentwatch.cli.command import PATH, PLACE, TASK, argument, command, flag
from agentwatch.cli.shared import target_of
from agentwatch.composition import find_task, scanned
from agentwatch.config import Settings, load
from agentwatch.decisions.reader import (
    CALL_AGAIN,
    Asker,
    Expired,
    Found,
    Question,
    Verified,
    answer,
    is_needless,
    question_about,
    waited,
)
from agentwatch.decisions.service import operator_name
from agentwatch.errors import ConfigError, ExitCode, UsageError
from agentwatch.sources import complain_of
from agentwatch.text import clean, complain, quoted, say

if TYPE_CHECKING:
    from agentwatch.composition import Load
    from agentwatch.delegation.task import Task
    from agentwatch.monitor import Monitor
    from agentwatch.remote.host import RemoteSource

# It takes no decision about another return than the one that is there, nor about an earlier attempt: an orchestrator
# that loops would retry for ever. In a sandbox the history may be hidden, so the attempt number is a lower bound.

_SECONDS: Final = 90.0
"""Shells of agents end a command, or move it away, after two minutes."""
_FINAL: Final = (ExitCode.DONE, ExitCode.EXPIRED, ExitCode.UNASKED)
"""Waiting any longer changes nothing."""
_AGAIN_SECONDS: Final = 0.5
"""Between two questions to a host."""


@command(
    TASK,
    PLACE,
    argument(
        "--timeout",
        "S",
        f"how long to wait at most; 0 looks once (default: {_SECONDS:g})",
        type=float,
        default=_SECONDS,
    ),
    argument("--attempt", "N", "which attempt (default: the latest that is seen)", type=int),
    flag("--json", "the JSON on one line"),
    exit_codes="exit codes: 0 decided, 3 pending: call again, 4 the decision has expired: the operator must decide"
    " again, 5 pending, and fake decisions were refused: call again, 8 nothing is asked of the operator: go on, 2 wrong"
    " usage",
)
def wait(options: Namespace) -> int:
    """Wait for the operator's decision about a task, and print it as JSON."""
    if not 0 <= options.timeout < math.inf:
        raise UsageError(f"a time-out of {options.timeout} s cannot be waited; give 0 or more")
    if options.attempt is not None and options.attempt < 1:
        raise UsageError(f"there is no attempt {options.attempt}; they count from 1")
    settings, indent = _settings_in_sight(), None if options.json else 2
    with target_of(options.path, settings) as (workspace, far):
        about: tuple[str, int | None] = options.task, options.attempt
        how: dict[str, Any] = {"timeout": options.timeout, "indent": indent}
        if far is not None:
            return wait_for_host(far.fleet.source(workspace), far.fleet.address(workspace), *about, **how)
        return wait_here(workspace, settings, scanned, *about, **how)


def wait_here(
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
    Before there is a decision about the task, whichever, only files are looked at: the agents' sessions may be large.
    """
    end, asker = time.monotonic() + timeout, Asker(workspace, settings, "wait")

    def load_decided(workspace: Path, settings: Settings, **options: Any) -> Monitor:
        monitor = load(workspace, settings, **options)
        asker.tell(monitor.tree, task_id)
        return monitor

    def find() -> Task | None:
        """The task as files show it; where they say that nothing is asked, as everything shows it: a claim may be
        false."""
        task, problems = find_task(workspace, settings._replace(sessions=False), task_id, load_decided)
        complain_of(problems)
        return find_task(workspace, settings, task_id, load_decided, inspects=True)[0] if is_needless(task) else task

    def ask(question: Question) -> tuple[Found, Task | None]:
        """What is decided, as soon as something is, and the task where nothing is."""
        found = asker.reader.wait(question, 0.0)
        if isinstance(found, Verified | Expired):
            return found, None
        task, left = find(), end - time.monotonic()
        if left <= 0 or is_needless(task):
            return found, task
        found = asker.reader.wait(question, left)
        # It may have returned meanwhile.
        return found, None if isinstance(found, Verified | Expired) else find()

    found, task = ask(Question(task_id, attempt))
    if isinstance(found, Verified | Expired):
        # One of before may be decided; this one asks, or has not returned.
        tree = load_decided(workspace, settings, inspects=False, about=task_id).tree
        found, task = ask(question_about(tree, task_id, attempt))
    handoff_path = asker.hand_out(found.record) if isinstance(found, Verified) else None
    document = waited(found, task, task_id, handoff_path=handoff_path)
    _print(document, indent)
    # Only now somebody has it.
    problem = asker.note_read(found, "agentwatch wait") if isinstance(found, Verified) else None
    return _explain(document, task_id, str(workspace), problem)


def wait_for_host(
    source: RemoteSource, written: str, task_id: str, attempt: int | None, *, timeout: float, indent: int | None
) -> int:
    """The same about a task of a workspace on another machine, with this address: its host looks, again and again, and
    says what `wait` says there. Whether it has decided while it cannot be reached nobody knows: that is pending."""
    end = time.monotonic() + timeout
    source.scan()
    while True:
        document = _ask_host(source, "wait", task_id, "" if attempt is None else str(attempt))
        left = end - time.monotonic()
        if (document is not None and _exit_code(document) in _FINAL) or left <= 0:
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
    problem = None
    if _exit_code(document) == ExitCode.DONE:
        read = _ask_host(source, "read", str(document.get("decision_id")))
        problem = f"{source.host.label} was not told that it was read" if read is None else read.get("trouble")
    return _explain(document, task_id, written, problem)


@command(
    argument("decision", "DECISION", "its decision_id, 32 hex digits"),
    PATH,
    argument("--by", "NAME", "who you are, for the others (default: user and process)"),
    exit_codes="exit codes: 0 it is yours to carry out, 6 somebody else has it, 3 there is no such decision (yet), 4 it"
    " has expired, 5 a fake was refused, 2 wrong usage, or nothing can be written",
)
def claim(options: Namespace) -> int:
    """Claim a decision before you carry it out: exactly one of all who ask gets it."""
    decision_id, by = options.decision, options.by
    if len(decision_id) != 32 or not set(decision_id) <= set("0123456789abcdef"):
        raise UsageError("a decision id has 32 hex digits; `agentwatch wait` prints it as decision_id")
    asker = Asker(workspace_at(options.path), _settings_in_sight(), "claim")
    found = asker.reader.find(Question(None, decision_id=decision_id))
    if not isinstance(found, Verified):
        known = "has expired: the operator must decide again" if isinstance(found, Expired) else "is not there (yet)"
        complain(f"not claimed: a signed decision {decision_id} {known}")
        document = answer(found)
        _complain_of_refused(document)
        return _exit_code(document)
    made = asker.claim(found.record, by or f"{operator_name()}, process {os.getppid()}")
    # The same name is the same agent: it may have crashed after its claim.
    again = bool(by) and not made.won and made.by == by
    made = made._replace(won=made.won or again)
    _print({"decision_id": decision_id, **made._asdict(), "again": again}, None)
    if again or not made.won:
        is_whose = "already yours" if again else "not yours, do not carry it out"
        complain(f"{is_whose}: {clean(made.by, 200)} claimed it at {clean(made.at, 40)}")
    return ExitCode.DONE if made.won else ExitCode.TAKEN


def _settings_in_sight() -> Settings:
    """The operator's settings. A sandbox may hide them, and nothing in them decides what an agent is told."""
    try:
        return load()
    except ConfigError:
        return Settings()


def _ask_host(source: RemoteSource, what: Literal["wait", "read"], key: str, place: str = "") -> dict[str, Any] | None:
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


def _explain(document: Mapping[str, Any], task_id: str, place: str, problem: object) -> int:
    """Say on standard error what a document says. Returns its exit code."""
    task, code = quoted(task_id), _exit_code(document)
    if problem:
        complain(clean(str(problem)))
    if code == ExitCode.EXPIRED:
        complain(f"the decision about {task} has expired: the operator must decide again")
    elif code == ExitCode.UNASKED:
        complain(clean(str(document.get("do_now"))))
    elif code != ExitCode.DONE:
        complain(f"pending: the operator has not decided about {task} yet; call again")
        _complain_of_refused(document)
        if code == ExitCode.PENDING and document.get("state") is None:
            complain(f"no task {task} is seen in the files of {clean(place)}: check its id if no session has it")
    return code


def _complain_of_refused(document: Mapping[str, Any]) -> None:
    """Say on standard error which decisions were refused."""
    for problem in document.get("refused", ())[:10]:
        complain(f"refused: {clean(str(problem.get('message')))}")


def _exit_code(document: Mapping[str, Any]) -> int:
    """The exit code that stands for a document."""
    if not document["pending"]:
        return ExitCode.DONE
    if "expired" in document:
        return ExitCode.EXPIRED
    if document.get("unasked"):
        return ExitCode.UNASKED
    return ExitCode.REFUSED if "refused" in document else ExitCode.PENDING
