"""`agentwatch report`: makes the account of each workspace and writes it, in one of three formats, and nothing else."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

from agentwatch.console import STRONG, Part, is_terminal, say_line
from agentwatch.delegation.decision import Decision
from agentwatch.delegation.events import Event, Gone, Seen, Unreadable
from agentwatch.delegation.task import Attempt
from agentwatch.delegation.tree import Tree
from agentwatch.errors import UsageError
from agentwatch.history.log import StateChange, state_changes, story
from agentwatch.history.recording import write_new
from agentwatch.history.store import History
from agentwatch.monitor import Monitor
from agentwatch.report.account import (
    Account,
    Elsewhere,
    TaskLine,
    account_of,
    others_say,
    receipt_words,
)
from agentwatch.report.html import html
from agentwatch.report.markdown import markdown
from agentwatch.sources import complain_of
from agentwatch.state import state_directory
from agentwatch.text import indented, say
from agentwatch.view.document import SCHEMA_VERSION, tree_document
from agentwatch.view.looks import LOOKS, SEVERITIES, VERDICTS
from agentwatch.view.times import iso

Document = dict[str, Any]
"""An object of the JSON, by its keys."""

_RETURNED = (
    *("contract", "reported_state", "summary", "error_code", "error_message", "retry_hint", "next_steps"),
    *("review_reason", "blockers", "limitations", "model", "mode", "confidence", "artifacts", "files_created"),
    "files_modified",
)
"""The facts of a return, by their names there."""


_INKS = {f"{one.glyph} {one.word}": one.color for looks in (LOOKS, VERDICTS, SEVERITIES) for one in looks.values()}


class Reported(NamedTuple):
    """A workspace that is reported: a monitor that has loaded, what is known of its past, and monitors of other
    worktrees, of which only counts are told."""

    monitor: Monitor
    past: Sequence[Event]
    worktrees: Sequence[Monitor] = ()


def past_of(workspace: Path) -> Sequence[Event]:
    """What the history of a workspace of this machine tells. Blocks."""
    return History(state_directory(workspace)).recall().events


def write_report(reported: Sequence[Reported], format_: str | None, output: str | None, *, now: float) -> int:
    """Write the report of some workspaces, one behind the other, to `output` or, with None, to standard output.

    Returns 1 if not all could be seen, else 0. `format_` is one of `FORMATS`; None goes by the ending of the file,
    and is Markdown where that says nothing. Raises UsageError if the file is there already, or cannot be written.
    """
    if format_ is None:
        ending = Path(output or "").suffix.removeprefix(".").lower()
        format_ = ending if ending in FORMATS else "md"
    if len(reported) > 1 and format_ == "html":
        raise UsageError("a page of HTML is about one workspace: name one, or write Markdown or JSON")
    accounts = [_account(one, now) for one in reported]
    text = "\n".join(map(FORMATS[format_], accounts))
    if len(accounts) > 1 and format_ == "json":
        text = indented({"schema_version": SCHEMA_VERSION, "workspaces": [*map(document_of, accounts)]}) + "\n"
    if output is None and format_ == "md" and is_terminal():
        for line in text.splitlines():
            say_line(*_inked(line), wraps=not line.startswith("|"))
    elif output is None:
        say(text.removesuffix("\n"))
    else:
        write_new(Path(output), [text])
    problems = [problem for one in reported for problem in one.monitor.problems]
    complain_of(problems)
    return 1 if problems else 0


def _inked(line: str) -> Iterator[Part | str]:
    """The parts of a line of Markdown: headings, states, verdicts and severities have their colour."""
    words = [line] if line.startswith("#") else re.split(f"({'|'.join(map(re.escape, _INKS))})", line)
    for number, one in enumerate(words):
        yield one, STRONG if line.startswith("#") else _INKS[one] if number % 2 else ""


def _account(reported: Reported, now: float) -> Account:
    monitor = reported.monitor
    worktrees = [
        Elsewhere(str(one.workspace), one.tree.totals.tasks, one.tree.totals.needs_operator)
        for one in reported.worktrees
    ]
    return account_of(
        monitor.tree,
        _changes(reported, now),
        workspace=monitor.directory,
        now=now,
        problems=monitor.problems,
        worktrees=worktrees,
    )


def _changes(reported: Reported, now: float) -> Sequence[StateChange]:
    """What the history, the sessions, the decisions and the requests tell, by the same rules as the tree."""
    tree = reported.monitor.tree
    # All others the tree has as they are now.
    files = [one for one in reported.past if isinstance(one, Seen | Gone | Unreadable)]
    told = [*files, *tree.runs.all.values(), *tree.requests, *tree.decisions]
    rules = tree.rules._replace(history_before=float("-inf"))
    return tuple(state_changes(story(told, now), Tree(rules)))


# JSON


def json_report(account: Account) -> str:
    """The account, indented and in ASCII: foreign characters reach the reader as escapes, a terminal never.

    Times are ISO 8601 in UTC, null if they are not known. Texts are as the documents have them.
    """
    return indented(document_of(account)) + "\n"


def document_of(account: Account) -> Document:
    """The account as JSON has it: the tasks as in `tree --json`, what was handed on and what was returned."""
    told = tree_document(account.tree, account.workspace, account.problems)
    return told | {
        "generated_at": iso(account.generated_at),
        "verdict": account.verdict,
        "summary": account.summary._asdict(),
        "attention": [one._asdict() | {"since": iso(one.since)} for one in account.attention],
        "tasks": [*map(_task, told["tasks"], account.tasks)],
        "decisions": [_decision(one) for line in account.tasks for one in line.decisions],
        "changes": [one._asdict() | {"at": iso(one.at)} for one in account.changes],
        "worktrees": [one._asdict() for one in account.worktrees],
    }


def _task(task: Document, line: TaskLine) -> Document:
    return task | {
        "verdict": line.task.verdict,
        "below": line.task.below.tasks if line.task.below else 0,
        "attempts": [*map(_attempt, task["attempts"], line.task.attempts)],
        "todos": [asdict(one) for one in line.task.todos or ()],
    }


def _attempt(told: Document, attempt: Attempt) -> Document:
    handoff, packet, version, result = attempt.handoff, attempt.packet, attempt.returned, attempt.result
    told["handoff"] = handoff and packet and {"path": handoff.path, "objective": packet.objective}
    told["returned"] = None
    if version and result:
        facts = {name: getattr(result, name) for name in _RETURNED}
        told["returned"] = {"path": version.path, "sha256": version.digest, **facts, "others_say": others_say(attempt)}
    return told


def _decision(one: Decision) -> Document:
    told = {name: getattr(one, name) for name in ("task_id", "attempt", "action", "note", "operator")}
    return told | {"at": iso(one.at), "receipt": receipt_words(one)}


FORMATS: dict[str, Callable[[Account], str]] = {"md": markdown, "json": json_report, "html": html}
