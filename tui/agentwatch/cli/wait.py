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
from agentwatch.decisions.reader import (
    LookupResult,
    Question,
    Reader,
    describe_unreturned,
    needs_no_decision,
    question_about,
)
from agentwatch.decisions.service import operator_name
from agentwatch.delegation.task import Task
from agentwatch.errors import ConfigError, ExitCode, UsageError
from agentwatch.monitor import Monitor
from agentwatch.sources import print_problems
from agentwatch.text import clean, print_error, print_text, quote_text

# `wait` accepts only decisions about the present return and attempt. With an older decision, an orchestrator in a loop
# would retry for ever. A sandbox may hide the history, so this command may not see the latest attempt.

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
    # After a time-out, the task is still pending, because a decision may come. Sessions may be large, so read sessions
    # only if there is a decision, or if the files show that the task needs no decision.
    if not 0 <= options.timeout < math.inf:
        raise UsageError(f"a time-out of {options.timeout} s cannot be waited; give 0 or more")
    if options.attempt is not None and options.attempt < 1:
        raise UsageError(f"there is no attempt {options.attempt}; they count from 1")
    workspace, settings, task_id = workspace_at(options.path), _load_settings(), options.task
    end, reader = time.monotonic() + options.timeout, Reader(workspace, "wait", read_only=settings.read_only)

    def scan_for_reader(workspace: Path, settings: Settings, **more: Any) -> Monitor:
        monitor = scan_workspace(workspace, settings, **more)
        reader.add_decisions(monitor.tree, task_id)
        return monitor

    def find_current_task() -> Task | None:
        """Return the task as its files show it. If it then needs no decision, also read sessions and check claims."""
        task, problems = find_task(workspace, settings._replace(sessions=False), task_id, scan_for_reader)
        print_problems(problems)
        if needs_no_decision(task):
            task, _ = find_task(workspace, settings, task_id, scan_for_reader, inspects=True)
        return task

    def await_decision(question: Question) -> tuple[LookupResult, Task | None]:
        """Wait for a decision. Return the result of the search and, if there is no decision, the task."""
        found = reader.wait(question, 0.0)
        if found.any_record:
            return found, None
        task, left = find_current_task(), end - time.monotonic()
        if left <= 0 or needs_no_decision(task):
            return found, task
        found = reader.wait(question, left)
        # Read the task again, because it may have returned during the wait.
        return found, None if found.any_record else find_current_task()

    found, task = await_decision(Question(task_id, options.attempt))
    if found.any_record:
        # The decision may be about an earlier attempt, so wait for a decision about the present attempt.
        tree = scan_for_reader(workspace, settings, inspects=False, about=task_id).tree
        found, task = await_decision(question_about(tree, task_id, options.attempt))
    code, document = reader.answer(found, task, task_id)
    _print_json(document, None if options.json else 2)
    # Write the receipt only after the decision was printed, because it says that the decision was read.
    if found.record and (problem := reader.write_receipt(found, "agentwatch wait")):
        print_error(problem)
    about = quote_text(task_id)
    if code == ExitCode.EXPIRED:
        print_error(f"the decision about {about} has expired: the operator must decide again")
    elif code == ExitCode.UNASKED:
        print_error(document["do_now"])
    elif code != ExitCode.DONE:
        print_error(
            f"pending: {describe_unreturned(task) or f'the operator has not decided about {about} yet'}; call again"
        )
        _report_refused(found)
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
    reader = Reader(workspace_at(options.path), "claim", read_only=_load_settings().read_only)
    found = reader.find(Question(None, decision_id=decision_id))
    if not found.record:
        known = "has expired: the operator must decide again" if found.expired else "is not there (yet)"
        print_error(f"not claimed: a signed decision {decision_id} {known}")
        _report_refused(found)
        return reader.answer(found, None, "")[0]
    claim_result = reader.claim(found.record, by or f"{operator_name()}, process {os.getppid()}")
    # The same name means the same agent, which may have crashed after its claim.
    again = bool(by) and not claim_result.won and claim_result.by == by
    claim_result = claim_result._replace(won=claim_result.won or again)
    _print_json({"decision_id": decision_id, **claim_result._asdict(), "again": again}, None)
    if again or not claim_result.won:
        is_whose = "already yours" if again else "not yours, do not carry it out"
        print_error(f"{is_whose}: {clean(claim_result.by, 200)} claimed it at {clean(claim_result.at, 40)}")
    return ExitCode.DONE if claim_result.won else ExitCode.TAKEN


def _load_settings() -> Settings:
    """Load the operator's settings. Return the defaults if the settings cannot be read, for example in a sandbox."""
    try:
        return load()
    except ConfigError:
        return Settings()


def _print_json(document: Mapping[str, object], indent: int | None) -> None:
    print_text(json.dumps(document, indent=indent))  # ASCII only: all other characters become escapes
    if sys.stdout is not None:
        sys.stdout.flush()


def _report_refused(found: LookupResult) -> None:
    """Print the refused decisions to standard error."""
    for problem in found.refused[:10]:
        print_error(f"refused: {problem.message}")
