"""The command that writes a report about a session, as Markdown, HTML or JSON."""

import re
import time
from argparse import Namespace
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from agentwatch.cli.command import HOST_EXIT_CODES, PLACES, SESSION, argument, command
from agentwatch.cli.shared import open_subjects, other_worktrees, reach_code, require_session
from agentwatch.config import load
from agentwatch.console import STRONG, Part, is_terminal, print_line
from agentwatch.delegation.events import Event, Gone, Seen, Unreadable, Verdict
from agentwatch.delegation.task import Attempt, Shown, State
from agentwatch.delegation.tree import Tree
from agentwatch.errors import UsageError
from agentwatch.history.log import StateChange, order_events, replay_state_changes
from agentwatch.history.recording import write_new_file
from agentwatch.history.store import History
from agentwatch.report.account import (
    Account,
    TaskLine,
    count_unchecked,
    make_account,
    markdown,
    receipt_words,
    runtime_difference,
    sum_present,
)
from agentwatch.report.html import html
from agentwatch.sources import print_problems
from agentwatch.state import state_directory
from agentwatch.text import indented_json, print_text
from agentwatch.view.document import SCHEMA_VERSION, tree_document
from agentwatch.view.words import LOOKS, SEVERITIES, VERDICTS, iso

Document = dict[str, Any]  # a JSON object

# The attributes of a return that the JSON shows under the same names.
_RETURNED = (
    *("contract", "reported_state", "summary", "error_code", "error_message", "retry_hint", "next_steps"),
    *("review_reason", "blockers", "limitations", "model", "mode", "confidence", "artifacts", "files_created"),
    "files_modified",
)


_COLORS = {f"{one.glyph} {one.word}": one.color for looks in (LOOKS, VERDICTS, SEVERITIES) for one in looks.values()}


# JSON


def json_report(account: Account) -> str:
    """Return the account as indented JSON. All characters outside ASCII are escaped, as some could control a terminal.

    Times are ISO 8601 in UTC, or null if unknown. Texts are not sanitised.
    """
    return indented_json(account_json(account)) + "\n"


def account_json(account: Account) -> Document:
    """Return the JSON object of `tree --json`, to which handoffs, returns, decisions and state changes are added."""
    told = tree_document(account.tree, account.workspace, account.problems)
    return told | {
        "generated_at": iso(account.generated_at),
        "verdict": account.verdict,
        "summary": _summary_document(account.tree),
        "attention": [
            {"task_id": task.task_id, "ask": ask, "since": iso(task.since), "holds": task.open_below}
            for task, ask in account.attention
        ],
        "tasks": [*map(_task_document, told["tasks"], account.tasks)],
        "decisions": [
            {name: getattr(one, name) for name in ("task_id", "attempt", "action", "note", "operator")}
            | {"at": iso(one.at), "receipt": receipt_words(one)}
            for line in account.tasks
            for one in line.decisions
        ],
        "changes": [one._asdict() | {"at": iso(one.at)} for one in account.changes],
        "worktrees": [
            {"workspace": place, "tasks": below.tasks, "needs_operator": below.needs_operator}
            for place, below in account.worktrees.items()
        ],
    }


def _summary_document(tree: Tree) -> Document:
    """Count the tasks that are history. Count the other tasks by state and verdict."""
    now = sum_present(tree.tasks.values())
    return {
        "tasks": now.tasks,
        "by_state": {state: now.states[state] for state in State if now.states[state]},
        "by_shown_state": {shown: now.shown[shown] for shown in Shown if now.shown[shown]},
        "needs_operator": now.needs_operator,
        "verified": now.verdicts[Verdict.VERIFIED],
        "contradicted": now.verdicts[Verdict.CONTRADICTED],
        "unchecked": count_unchecked(now),
        "stale": now.stale,
        "past": tree.totals.tasks - now.tasks,
    }


def _task_document(task: Document, line: TaskLine) -> Document:
    return task | {
        "verdict": line.task.verdict,
        "below": line.task.below.tasks if line.task.below else 0,
        "attempts": [*map(_attempt_document, task["attempts"], line.task.attempts)],
        "todos": [asdict(one) for one in line.task.todos or ()],
    }


def _attempt_document(told: Document, attempt: Attempt) -> Document:
    handoff, packet, version, result = attempt.handoff, attempt.packet, attempt.returned, attempt.result
    told["handoff"] = handoff and packet and {"path": handoff.path, "objective": packet.objective}
    told["returned"] = None
    if version and result:
        facts = {name: getattr(result, name) for name in _RETURNED}
        differs = runtime_difference(attempt)
        told["returned"] = {"path": version.path, "sha256": version.digest, **facts, "others_say": differs}
    return told


FORMATS = {"md": markdown, "json": json_report, "html": html}


# The command


@command(
    PLACES,
    argument("--format", None, "default: by the ending of FILE, else md", choices=tuple(FORMATS)),
    argument("--output", "FILE", "default: standard output"),
    SESSION,
    exit_codes=HOST_EXIT_CODES,
)
def report(options: Namespace) -> int:
    """Write a report about a session, for a pull request or a post-mortem."""
    accounts, now = [], time.time()
    with open_subjects(options.paths or ["."], load(), options.session) as subjects:
        others = [one.scan() for one in other_worktrees(subjects)[0]]
        worktrees = {str(other.workspace): other.tree.totals for other in others}
        monitors = [one.scan() for one in subjects]
        for one, monitor in zip(subjects, monitors, strict=True):
            workspace = one.place.workspace
            source = one.fleet.open_source(workspace) if one.fleet else None
            past = source.scan().events if source else History(state_directory(workspace)).recall().events
            changes, place = _all_changes(monitor.tree, past, now), monitor.directory
            account = make_account(
                monitor.tree, changes, workspace=place, now=now, problems=monitor.problems, worktrees=worktrees
            )
            accounts.append(account)
    require_session(options.session, monitors)
    return max(_write_reports(accounts, options.format, options.output), *map(reach_code, monitors))


def _write_reports(accounts: Sequence[Account], format_: str | None, output: str | None) -> int:
    """Write the report of each workspace into the new file `output`, or to standard output if `output` is None.

    If `format_` is None, the ending of the file's name decides, and Markdown is the default. Return 1 if something
    could not be read, else 0. Raise UsageError if the file exists or cannot be written.
    """
    if format_ is None:
        ending = Path(output or "").suffix.removeprefix(".").lower()
        format_ = ending if ending in FORMATS else "md"
    if len(accounts) > 1 and format_ == "html":
        raise UsageError("a page of HTML is about one workspace: name one, or write Markdown or JSON")
    text = "\n".join(map(FORMATS[format_], accounts))
    if len(accounts) > 1 and format_ == "json":
        text = indented_json({"schema_version": SCHEMA_VERSION, "workspaces": [*map(account_json, accounts)]}) + "\n"
    if output is None and format_ == "md" and is_terminal():
        for line in text.splitlines():
            print_line(*_color_parts(line), wraps=not line.startswith("|"))
    elif output is None:
        print_text(text.removesuffix("\n"))
    else:
        write_new_file(Path(output), [text])
    problems = [problem for account in accounts for problem in account.problems]
    print_problems(problems)
    return 1 if problems else 0


def _color_parts(line: str) -> Iterator[Part | str]:
    """Yield the parts of a line of Markdown, with colours for headings, states, verdicts and severities."""
    words = [line] if line.startswith("#") else re.split(f"({'|'.join(map(re.escape, _COLORS))})", line)
    for number, one in enumerate(words):
        yield one, STRONG if line.startswith("#") else _COLORS[one] if number % 2 else ""


def _all_changes(tree: Tree, past: Iterable[Event], now: float) -> Sequence[StateChange]:
    """Return all state changes since the history began. Judge tasks by the rules of `tree`."""
    # From the history, take only the events about files. The tree has the latest form of all other events.
    files = [one for one in past if isinstance(one, Seen | Gone | Unreadable)]
    told = [*files, *tree.runs.all.values(), *tree.requests, *tree.decisions]
    rules = tree.rules._replace(history_before=float("-inf"))
    return tuple(replay_state_changes(order_events(told, now), Tree(rules)))
