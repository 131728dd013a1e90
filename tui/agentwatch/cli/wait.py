"""The commands by which agents wait for a decision and claim it."""

import json
import math
import os
import sys
import time
from argparse import Namespace
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agentwatch.arguments import workspace_at
from agentwatch.cli.command import PATH, TASK, argument, command, flag
from agentwatch.composition import find_task, scan_workspace
from agentwatch.config import Settings, load
from agentwatch.decisions.reader import Found, Question, Reader, is_needless, question_about, unreturned
from agentwatch.decisions.service import operator_name
from agentwatch.delegation.task import Task
from agentwatch.errors import ConfigError, ExitCode, UsageError
from agentwatch.monitor import Monitor
from agentwatch.sources import print_problems
from agentwatch.text import clean, print_error, print_text, quote_text

# `wait` accepts only decisions about the present return and attempt: with older ones, an orchestrator in a loop would
# retry for ever. A sandbox may hide the history, so the attempt number that is seen is a lower bound.

_SECONDS = 90.0  # agents' shells end a command, or move it to the background, after two minutes


@command(
    TASK,
    PATH,
    argument(
        "--timeout", "S", f"seconds to wait at most; 0 looks once (default: {_SECONDS:g})", type=float, default=_SECONDS
    ),
    argument("--attempt", "N", "the attempt (default: the latest that is seen)", type=int),
    flag("--json", "the JSON on one line"),
    exit_codes="exit codes: 0 decided, 3 pending: call again, 4 the decision has expired: the operator must decide"
    " again, 5 pending, and fake decisions were refused: call again, 8 nothing is asked of the operator: go on, 2 wrong"
    " usage",
)
def wait(options: Namespace) -> int:
    """Wait for the operator's decision about a task, and print it as JSON."""
    # Every outcome but a valid decision is pending: a time-out says nothing about the decision to come. Sessions may be
    # large, so they are read only after some decision about the task, or before it is said that nothing is asked.
    if not 0 <= options.timeout < math.inf:
        raise UsageError(f"a time-out of {options.timeout} s cannot be waited; give 0 or more")
    if options.attempt is not None and options.attempt < 1:
        raise UsageError(f"there is no attempt {options.attempt}; they count from 1")
    workspace, settings, task_id = workspace_at(options.path), _settings_in_sight(), options.task
    end, asker = time.monotonic() + options.timeout, Reader(workspace, "wait", read_only=settings.read_only)

    def load_decided(workspace: Path, settings: Settings, **more: Any) -> Monitor:
        monitor = scan_workspace(workspace, settings, **more)
        asker.tell(monitor.tree, task_id)
        return monitor

    def find() -> Task | None:
        """Return the task as its files show it; if these ask nothing, as sessions and checked claims show it, because a
        claim may be false."""
        task, problems = find_task(workspace, settings._replace(sessions=False), task_id, load_decided)
        print_problems(problems)
        return find_task(workspace, settings, task_id, load_decided, inspects=True)[0] if is_needless(task) else task

    def ask(question: Question) -> tuple[Found, Task | None]:
        """Wait for a decision, and return what was found and, if that is no decision, the task."""
        found = asker.wait(question, 0.0)
        if found.decided:
            return found, None
        task, left = find(), end - time.monotonic()
        if left <= 0 or is_needless(task):
            return found, task
        found = asker.wait(question, left)
        # Look again, because the task may have returned meanwhile.
        return found, None if found.decided else find()

    found, task = ask(Question(task_id, options.attempt))
    if found.decided:
        # That decision may be about an earlier attempt, so ask again about the present one.
        tree = load_decided(workspace, settings, inspects=False, about=task_id).tree
        found, task = ask(question_about(tree, task_id, options.attempt))
    code, document = asker.answer(found, task, task_id)
    _print(document, None if options.json else 2)
    # The decision counts as read only once it is printed.
    if found.record and (problem := asker.mark(found, "agentwatch wait")):
        print_error(problem)
    about = quote_text(task_id)
    if code == ExitCode.EXPIRED:
        print_error(f"the decision about {about} has expired: the operator must decide again")
    elif code == ExitCode.UNASKED:
        print_error(document["do_now"])
    elif code != ExitCode.DONE:
        print_error(f"pending: {unreturned(task) or f'the operator has not decided about {about} yet'}; call again")
        _complain_of_refused(found)
        if code == ExitCode.PENDING and not task:
            print_error(f"no task {about} is seen in the files of {workspace}: check its id")
    return code


@command(
    argument("decision", "DECISION", "the decision_id, 32 hex digits"),
    PATH,
    argument("--by", "NAME", "your name, for the others (default: user and process)"),
    exit_codes="exit codes: 0 it is yours to carry out, 6 somebody else has it, 3 there is no such decision (yet), 4 it"
    " has expired, 5 a fake was refused, 2 wrong usage, or nothing can be written",
)
def claim(options: Namespace) -> int:
    """Claim a decision before you carry it out: only one of all agents that ask gets it."""
    decision_id, by = options.decision, options.by
    if len(decision_id) != 32 or not set(decision_id) <= set("0123456789abcdef"):
        raise UsageError("a decision id has 32 hex digits; `agentwatch wait` prints it as decision_id")
    asker = Reader(workspace_at(options.path), "claim", read_only=_settings_in_sight().read_only)
    found = asker.find(Question(None, decision_id=decision_id))
    if not found.record:
        known = "has expired: the operator must decide again" if found.expired else "is not there (yet)"
        print_error(f"not claimed: a signed decision {decision_id} {known}")
        _complain_of_refused(found)
        return asker.answer(found, None, "")[0]
    made = asker.claim(found.record, by or f"{operator_name()}, process {os.getppid()}")
    # The same name means the same agent, which may have crashed after its claim.
    again = bool(by) and not made.won and made.by == by
    made = made._replace(won=made.won or again)
    _print({"decision_id": decision_id, **made._asdict(), "again": again}, None)
    if again or not made.won:
        is_whose = "already yours" if again else "not yours, do not carry it out"
        print_error(f"{is_whose}: {clean(made.by, 200)} claimed it at {clean(made.at, 40)}")
    return ExitCode.DONE if made.won else ExitCode.TAKEN


def _settings_in_sight() -> Settings:
    """Load the operator's settings, or the defaults if a sandbox hides them: an agent is told the same with both."""
    try:
        return load()
    except ConfigError:
        return Settings()


def _print(document: Mapping[str, object], indent: int | None) -> None:
    print_text(json.dumps(document, indent=indent))  # ASCII only: foreign characters reach a terminal as escapes
    if sys.stdout is not None:
        sys.stdout.flush()


def _complain_of_refused(found: Found) -> None:
    """Report the refused decisions on standard error."""
    for problem in found.refused[:10]:
        print_error(f"refused: {problem.message}")
