"""Two commands: `pending` lists the tasks that need the operator, and `ack` puts tasks aside."""

from __future__ import annotations

import time
from argparse import Namespace
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Literal

from agentwatch.arguments import workspace_at
from agentwatch.cli.command import HOST_EXIT_CODES, PATH, PLACES, SESSION, argument, command, flag, parse_span
from agentwatch.cli.decide import answer_options, option_lines
from agentwatch.cli.shared import PLACEHOLDER, print_workspaces, report_problems, require_desk, require_task
from agentwatch.composition import build_acknowledgements, find_desk, scan_workspace
from agentwatch.config import load
from agentwatch.console import MUTED, STRONG, Part, print_line
from agentwatch.decisions import policy
from agentwatch.decisions.delivery import FORGED
from agentwatch.decisions.errors import RecordError
from agentwatch.decisions.form import DIGITS
from agentwatch.decisions.service import DecisionService
from agentwatch.delegation.decision import OF_ATTEMPTS, SPECS, Action, Decision, Request, Stage
from agentwatch.delegation.standing import FITTER, is_line_fault, mark_of, request_words
from agentwatch.delegation.task import State, Task
from agentwatch.delegation.tree import Tree
from agentwatch.errors import ExitCode, UsageError
from agentwatch.monitor import Monitor
from agentwatch.shell import call_words, command_line
from agentwatch.text import clean, clean_name, clean_row, print_text, quote_text
from agentwatch.view import document as view
from agentwatch.view import words
from agentwatch.view.words import ago, clock, look_of, short_span


class PendingRequestDoc(view.RequestDoc):
    command: str | None


class PendingTaskDoc(view.Document):
    """A task that needs the operator, and the decisions that are possible."""

    workspace: str = ""
    task_id: str
    attempt: int
    state: State
    error_code: str | None
    error_message: str | None
    errors: list[str]
    ask: str | None
    acknowledged: bool
    snoozed: bool
    snoozed_until: view.Time
    suggested: Action | None
    commands: dict[Action, str]
    requests: list[PendingRequestDoc]
    not_possible: dict[Action, str | None]
    return_path: str | None = None
    return_sha256: str | None = None


class ReceiptDoc(view.Document):
    stage: Stage
    by: str
    age_seconds: int
    claimed: bool


class MovingDecisionDoc(view.Document):
    """A recorded decision that is not carried out yet."""

    decision_id: str
    task_id: str
    attempt: int
    action: Action
    operator: str
    waits: str | None
    claimed_by: str | None
    receipts: list[ReceiptDoc]


class PendingDoc(view.Document):
    """The output of `agentwatch pending --json` for one workspace."""

    schema_version: Literal[1]
    workspace: str
    complete: bool
    problems: list[view.ProblemDoc]
    tasks: list[PendingTaskDoc]
    past: int
    acknowledged: int
    snoozed: int
    decisions: list[MovingDecisionDoc]
    notices: list[view.FindingDoc]
    worktrees: tuple[PendingDoc, ...] = ()


class PendingsDoc(view.Document):
    """The output of `agentwatch pending --json` for several workspaces."""

    schema_version: Literal[1]
    complete: bool
    workspaces: list[PendingDoc]


@command(PLACES, flag("--json", "print JSON (schema_version 1)"), SESSION, exit_codes=HOST_EXIT_CODES)
def pending(options: Namespace) -> int:
    """Print the tasks that need you, with commands that answer them, and decisions not yet carried out."""
    return print_workspaces(options, _print_pending, partial(DecisionService, read_only=True))


def _print_pending(monitor: Monitor, options: Namespace, add_document: Callable[[Any], None]) -> int:
    """Print the tasks that need the operator, and the decisions that are not carried out yet."""
    tree, desk, now = monitor.tree, require_desk(monitor), time.time()
    asking, aside, moving = tree.asking_tasks(), tree.tasks_aside(), words.pending_decisions(tree)
    document = PendingDoc(
        schema_version=view.SCHEMA_VERSION,
        workspace=monitor.directory,
        complete=not monitor.problems,
        problems=view.problem_documents(monitor.problems),
        tasks=[pending_task_document(tree, task, desk, monitor.written) for task in asking],
        past=len(tree.past_questions()),
        acknowledged=sum(task.acknowledged for task in aside),
        snoozed=sum(task.snoozed for task in aside),
        decisions=[_decision_document(decision, now) for decision in moving],
        notices=[view.FindingDoc.fill(placed) for placed in tree.notices if placed.rule == FORGED.id],
    )
    if options.json:
        add_document(document.to_json())
        return report_problems(monitor.problems)
    for task, task_data in zip(asking, document.tasks, strict=True):
        _print_task(task, task_data, now)
    for decision in moving:
        steps = ", ".join(f"{one.words} {ago(one.at, now)}" for one in decision.receipts)
        by = f" by {quote_text(decision.operator, 60)}" if decision.operator else ""
        print_line(f"→ {clean_name(decision.task_id, 200)}  attempt {decision.attempt}: {decision.action}{by}: {steps}")
        for line in filter(None, (decision.waits, words.claimed_words(decision))):
            print_line(f"  {clean(line)}", hang=0)
    if not asking and not moving:
        print_text(f"nothing{' that can be seen' if monitor.problems else ''} needs you")
    for notice in document.notices:
        print_line(("!", "text-warning"), f" {clean(notice.path)}: {clean(notice.message)}")
    if history := words.history_words(tree):
        print_line(f"{history}: see `agentwatch tree --where is:history`")
    if aside:
        counts = {"acknowledged": len(aside) - document.snoozed, "snoozed": document.snoozed}
        counted = ", ".join(f"{count:,} {word}" for word, count in counts.items() if count)
        print_line(f"{counted}: see `agentwatch tree --where is:acknowledged,snoozed`")
    return report_problems(monitor.problems)


def decide_commands(task: Task, desk: DecisionService, workspace: Path | str) -> dict[Action, str]:
    """Return a command line for each decision that the policy allows. The suggested decision comes first.

    Words in capitals stand for the operator's words. Return {} if the task's id cannot be part of a command.
    """
    try:
        subject = desk.subject(task)
        _ = subject.decision_id
        first = policy.suggest_action(task)
        allowed = (one for one in OF_ATTEMPTS if not policy.why_impossible(task, one))
        actions = sorted(allowed, key=lambda one: one is not first)
        # Agents choose task ids, so put the id behind `--`, where nothing is read as an option.
        seen = ["--attempt", str(task.attempt), "--return-sha256", subject.return_sha256 or "none", "--"]
        about = [*seen, task.task_id, str(workspace)]
        return {action: command_line([*call_words(), "decide", *_options(task, action), *about]) for action in actions}
    except (RecordError, ValueError):
        return {}


def _options(task: Task, action: Action) -> list[str]:
    spec, metavar = SPECS[action], SPECS[action].option[0]
    if "mode" in spec.takes and is_line_fault(task):
        metavar = FITTER
    questions = len(task.result.blockers) if "answers" in spec.takes and task.result else 0
    given = [f"--{action}", metavar] if metavar else [f"--{action}"]
    return [*given * max(questions, 1), *(["--note", PLACEHOLDER] if "note" in spec.needs else [])]


def _print_task(task: Task, task_data: PendingTaskDoc, now: float) -> None:
    print_line(*_task_heading(task, now))
    waiting = [request for request in task.requests if request.waits_for_operator]
    question = words.question_at(task, now)
    if not waiting or not question.startswith(request_words(waiting[0])):
        print_line(f"  {words.ask_line(task, question, 400)}", hang=0)
    for request, document in zip(waiting, task_data.requests, strict=True):
        asks = f"asked {ago(request.asked_at, now)}  {request.request_id[:DIGITS]}"
        print_line(f"  {clean_row(request_words(request), 400)}", (f"  {asks}", MUTED), hang=0)
        for query in request.queries:
            print_line(f"    {quote_text(query.question, 200)}{', several' if query.several else ''}:", hang=0)
            for option in option_lines(query, 200):
                print_line(f"      - {option}", hang=0)
        _print_commands(document.command, answer_options(request), request.why_not or "it is answered in its program")
    # If a request is open, the task goes on after the answer, so offer no decision about the attempt.
    if not task.request:
        choices = [_options(task, action) for action in task_data.commands]
        _print_commands(next(iter(task_data.commands.values()), None), choices, "its id cannot stand in a decision")


def _task_heading(task: Task, now: float) -> list[Part | str]:
    face, since = look_of(task), task.since
    age = "" if since is None else f" {short_span(now - since)}"
    name = f" {clean_name(task.task_id, 200)}", STRONG
    return [(face.glyph, face.color), name, f"  attempt {task.attempt}, ", (face.word, face.color), (age, MUTED)]


def _print_commands(line: str | None, choices: list[list[str]], why_not: str) -> None:
    """Print the first choice as a whole command line, to be copied. Then print the options of the other choices."""
    print_text(f"    {line}") if line else print_line(f"    {clean(why_not, 400)}", hang=0)
    if choices[1:]:
        others = f"    or, in place of {' '.join(choices[0])}: {', '.join(map(' '.join, choices[1:]))}"
        print_line((others, MUTED), hang=0)


def answer_command(request: Request, workspace: Path | str) -> str | None:
    """Return the command line of the first possible answer to a request, or None if no command can answer it."""
    about = ["--", request.request_id, str(workspace)]
    return next((command_line([*call_words(), "answer", *way, *about]) for way in answer_options(request)), None)


def pending_task_document(tree: Tree, task: Task, desk: DecisionService, workspace: Path | str) -> PendingTaskDoc:
    """Return the JSON of a task that needs the operator: some keys of `tree --json`, and the possible decisions."""
    task_data = view.task_document(tree, task)
    waiting = [one for one in task.requests if one.waits_for_operator]
    return PendingTaskDoc.fill(
        task_data,
        ask=task.question,
        suggested=policy.suggest_action(task),
        commands=decide_commands(task, desk, workspace),
        requests=[
            PendingRequestDoc.fill(view.request_document(one), command=answer_command(one, workspace))
            for one in waiting
        ],
        not_possible={one: why for one in OF_ATTEMPTS if (why := policy.why_impossible(task, one))},
        **{name: getattr(one, name) for one in task_data.attempts[-1:] for name in ("return_path", "return_sha256")},
    )


def _decision_document(decision: Decision, now: float) -> MovingDecisionDoc:
    receipts = [ReceiptDoc.fill(one, age_seconds=max(round(now - one.at), 0)) for one in decision.receipts]
    claimed_by = decision.receipt.taken_by or None
    return MovingDecisionDoc.fill(decision, waits=decision.waits or None, claimed_by=claimed_by, receipts=receipts)


@command(
    argument("task", "TASK", "the task id; the tasks below it are put aside, too; with --undo, PATH", nargs="?"),
    PATH,
    flag("--undo", "take back what was put aside last, here or on the screen"),
    argument("--for", "TIME", "ask again after this time at the latest: 30m, 12h, 7d", type=parse_span, dest="seconds"),
    exit_codes="exit codes: 0 put aside, or taken back, 1 nothing was, 2 wrong usage, or nothing can be written",
)
def ack(options: Namespace) -> int:
    """Acknowledge a task: it does not need you until it changes. With --for, only snooze it. This approves nothing, and
    no agent is told.
    """
    if not (options.task or options.undo):
        raise UsageError("name a task\ntry: agentwatch pending, which lists what needs you")
    workspace, now = workspace_at(options.task or "." if options.undo else options.path), time.time()
    shelf = build_acknowledgements(workspace)
    shelf.read_changes()
    if options.undo:
        if not (last := shelf.undo()):
            print_text("there is nothing to undo")
            return ExitCode.NOT
        print_text(f"undone: {words.plural(len(last.tasks), 'task')} {last.did} {ago(last.at, now)}")
        for task_id in last.tasks:
            print_text(f"  {clean_name(task_id, 200)}")
        return ExitCode.DONE
    tree = (monitor := scan_workspace(workspace, load(), desk=find_desk(workspace), requests=True)).tree
    tasks = [task for task, _ in tree.preorder([require_task(monitor, options.task).task_id])]
    asking = [task for task in tasks if task.question and not task.acknowledged]
    if options.seconds is not None:
        asking = [task for task in asking if not task.past]
    if not asking:
        print_text("nothing is put aside: nothing asks there")
        return ExitCode.NOT
    for task in asking:
        print_line(*_task_heading(task, now))
        print_line(f"  {clean(task.question or '', 400)}", hang=0)
    marks, did = {task.task_id: mark_of(task) for task in asking}, "acknowledged"
    if options.seconds is None:
        shelf.acknowledge(marks)
    else:
        shelf.snooze(marks, now + options.seconds)
        did = f"snoozed until {clock(now + options.seconds, now)}"
    print_text(f"{did}: {words.plural(len(marks), 'task')}; `agentwatch ack --undo` takes it back")
    return ExitCode.DONE
