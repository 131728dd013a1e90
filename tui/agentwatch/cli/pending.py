"""Print what needs you, with the commands that answer it, and the decisions on their way."""

from __future__ import annotations

import time
from argparse import Namespace
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from agentwatch.cli.answer import options_of, ways_of
from agentwatch.cli.command import PLACES, SESSION, flag
from agentwatch.cli.shared import PLACEHOLDER, print_workspaces, report_problems
from agentwatch.config import load
from agentwatch.decisions import policy
from agentwatch.decisions.delivery import FORGED
from agentwatch.decisions.errors import RecordError
from agentwatch.decisions.form import DIGITS
from agentwatch.decisions.service import DecisionService, LocalService
from agentwatch.delegation.asks import request_words
from agentwatch.delegation.decision import OF_ATTEMPTS, SPECS, Action, Decision
from agentwatch.delegation.request import Request
from agentwatch.delegation.retry import FITTER, is_line_fault
from agentwatch.delegation.task import Task
from agentwatch.delegation.tree import Tree
from agentwatch.errors import UsageError
from agentwatch.monitor import Monitor
from agentwatch.shell import called, command_line
from agentwatch.text import clean, exact, quoted, say
from agentwatch.view import document as view
from agentwatch.view.plain import shown
from agentwatch.view.times import ago
from agentwatch.view.words import (
    aside_words,
    counted_aside,
    history_words,
    in_line,
    on_their_way,
    question_at,
    taken_words,
)

if TYPE_CHECKING:
    from agentwatch.view.documents import lists

ARGUMENTS: Final = (
    PLACES,
    flag("--past", "print what is history instead: what was silent for long when you first watched the workspace"),
    flag("--acknowledged", "print what was put aside instead, with `ack` or on the screen"),
    flag("--json", "print JSON (schema_version 1)"),
    SESSION,
)
EXIT_CODES: Final = "exit codes: 0 printed, 1 printed, and something could not be read, 2 wrong usage"
SCHEMA_VERSION: Final[Literal[1]] = 1


def run(options: Namespace) -> int:
    """Print the workspaces. Writes nothing. Returns 1 if something could not be read, else 0."""
    if options.past and options.acknowledged:
        raise UsageError("--past and --acknowledged are two lists; ask for one of them")
    # What was committed is in every worktree: its history would be told once for each.
    open_desk, with_worktrees = partial(LocalService, read_only=True), not options.past
    return print_workspaces(options, load(), print_pending, open_desk, with_worktrees=with_worktrees)


def print_pending(monitor: Monitor, options: Namespace, say_document: Callable[[Any], None]) -> int:
    """Print what asks in a monitor that has loaded, with a desk; or what would if it were not past or put aside."""
    if monitor.clerk is None:
        raise ValueError(monitor)
    tree, desk, past, acknowledged = monitor.tree, monitor.clerk.desk, options.past, options.acknowledged
    aside = tree.put_aside()
    asking = tree.past_questions() if past else aside if acknowledged else tree.asking()
    moving = [] if past or acknowledged else on_their_way(tree)
    forged = [placed for placed in tree.notices if placed.rule == FORGED.id]
    now = time.time()
    if options.json:
        document: lists.Pending = {
            "schema_version": SCHEMA_VERSION,
            "workspace": monitor.directory,
            "complete": not monitor.problems,
            "problems": view.problem_documents(monitor.problems),
            "tasks": [task_document(tree, task, desk, monitor.written) for task in asking],
            "past": len(tree.past_questions()),
            "acknowledged": sum(task.acknowledged for task in aside),
            "snoozed": sum(task.snoozed for task in aside),
            "decisions": [_decision_document(decision, now) for decision in moving],
            "notices": [view.finding_document(placed) for placed in forged],
        }
        say_document(document)
        return report_problems(monitor.problems)
    for task in asking:
        _say_task(task, desk, monitor.written, now)
    for decision in moving:
        _say_decision(decision, now)
    if not asking and not moving:
        seen = " that can be seen" if monitor.problems else ""
        stands = "is left from before" if past else "is put aside" if acknowledged else "needs you"
        say(f"nothing{seen} {stands}")
    for placed in forged:
        say(f"! {clean(placed.path)}: {clean(placed.message)}")
    if not past and (history := history_words(tree)):
        say(f"{history}: see `agentwatch pending --past`")
    if not (past or acknowledged) and (counted := counted_aside(tree)):
        say(f"{counted}: see `agentwatch pending --acknowledged`")
    return report_problems(monitor.problems)


def commands(task: Task, desk: DecisionService, workspace: Path | str) -> dict[Action, str]:
    """The command lines of the decisions that the policy allows, the one that the contracts point to first.

    Words in capitals are for the operator to replace. Empty where the id of the task cannot be written.
    """
    try:
        subject = desk.subject(task)
        _ = subject.decision_id
        options = policy.options(task)
        first = policy.suggested(task)
        actions = sorted((one for one in OF_ATTEMPTS if options[one].allowed), key=lambda one: one is not first)
        seen = ["--attempt", str(task.attempt), "--return-sha256", subject.return_sha256 or "none"]
        # Behind `--` nothing is an option, whatever an agent calls its task.
        about = [*seen, "--", task.task_id, str(workspace)]
        return {action: command_line([*called(), "decide", *_asked(task, action), *about]) for action in actions}
    except (RecordError, ValueError):
        return {}


def _asked(task: Task, action: Action) -> list[str]:
    """The options that ask for an action."""
    spec, metavar = SPECS[action], SPECS[action].option[0]
    if "mode" in spec.takes and is_line_fault(task):
        metavar = FITTER
    questions = len(task.result.blockers) if "answers" in spec.takes and task.result is not None else 0
    options = [f"--{action}", *([metavar] if metavar else [])] * max(questions, 1)
    return [*options, *(["--note", PLACEHOLDER] if "note" in spec.needs else [])]


def _say_task(task: Task, desk: DecisionService, workspace: Path | str, now: float) -> None:
    aside = aside_words(task, now)
    say(f"{task.glyph} {exact(task.task_id, 200)}  attempt {task.attempt}, {task.own_state}{aside and f', {aside}'}")
    asked = [request for request in task.requests if request.waits_for_operator]
    question = question_at(task, now)
    if not asked or not question.startswith(request_words(asked[0])):
        say(f"  {in_line(task, question, 400)}")
    for request in asked:
        _say_request(request, workspace, now)
    if task.request is not None:
        # It goes on once that is answered: no other attempt of it is meant.
        return
    lines = commands(task, desk, workspace)
    if not lines:
        say("  its id cannot stand in a decision: give it another one")
        return
    ways = [" ".join(_asked(task, action)) for action in lines]
    say(f"    {next(iter(lines.values()))}")
    if ways[1:]:
        say(f"    or, in place of {ways[0]}: {', '.join(ways[1:])}")


def _say_request(request: Request, workspace: Path | str, now: float) -> None:
    words = shown(request_words(request), 400)
    say(f"  {words}  asked {ago(request.asked_at, now)}  {request.request_id[:DIGITS]}")
    for query in request.queries:
        if query.options:
            say(f"    {quoted(query.question, 200)}{', several' if query.several else ''}:")
            for option in options_of(query, 200):
                say(f"      - {option}")
    ways = ways_of(request)
    if ways:
        say(f"    {request_line(request, workspace)}")
        if ways[1:]:
            say(f"    or, in place of {' '.join(ways[0])}: {', '.join(' '.join(way) for way in ways[1:])}")
    else:
        say(f"    {clean(request.why_not or 'it is answered in its program', 400)}")


def request_line(request: Request, workspace: Path | str) -> str:
    """The command line that answers a request the plain way, "" where none can."""
    ways = ways_of(request)
    # Behind `--` nothing is an option.
    about = ["--", request.request_id, str(workspace)]
    return command_line([*called(), "answer", *ways[0], *about]) if ways else ""


def _say_decision(decision: Decision, now: float) -> None:
    steps = ", ".join(f"{one.words} {ago(one.at, now)}" for one in decision.receipts)
    by = f" by {quoted(decision.operator, 60)}" if decision.operator else ""
    say(f"→ {exact(decision.task_id, 200)}  attempt {decision.attempt}: {decision.action}{by}: {steps}")
    for words in filter(None, (decision.waits, taken_words(decision))):
        say(f"  {clean(words)}")


def task_document(tree: Tree, task: Task, desk: DecisionService, workspace: Path | str) -> lists.PendingTask:
    """A task that asks: what `tree --json` says of it, and what can be decided."""
    told = view.task_document(tree, task)
    options = policy.options(task)
    document: lists.PendingTask = {
        "task_id": told["task_id"],
        "attempt": told["attempt"],
        "state": told["state"],
        "error_code": told["error_code"],
        "error_message": told["error_message"],
        "errors": told["errors"],
        "ask": task.question,
        "acknowledged": told["acknowledged"],
        "snoozed": told["snoozed"],
        "snoozed_until": told["snoozed_until"],
        "suggested": policy.suggested(task),
        "commands": {action.value: line for action, line in commands(task, desk, workspace).items()},
        "requests": [
            {**one, "command": request_line(asked, workspace) or None}
            for one, asked in zip(told["requests"], task.requests, strict=True)
            if asked.waits_for_operator
        ],
        "not_possible": {one.value: options[one].why_not for one in OF_ATTEMPTS if not options[one].allowed},
    }
    if told["attempts"]:
        latest = told["attempts"][-1]
        document["return_path"], document["return_sha256"] = latest["return_path"], latest["return_sha256"]
    return document


def _decision_document(decision: Decision, now: float) -> lists.PendingDecision:
    return {
        "decision_id": decision.decision_id,
        "task_id": decision.task_id,
        "attempt": decision.attempt,
        "action": decision.action,
        "operator": decision.operator,
        "waits": decision.waits or None,
        "claimed_by": decision.receipt.taken_by or None,
        "receipts": [
            {"stage": one.stage, "by": one.by, "age_seconds": max(round(now - one.at), 0), "claimed": one.claimed}
            for one in decision.receipts
        ],
    }
