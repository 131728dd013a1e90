"""`agentwatch report`: makes the account of each workspace and writes it, in one of three formats, and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final, NamedTuple

from agentwatch.delegation.events import Event, Gone, Seen, Unreadable
from agentwatch.delegation.task import Attempt
from agentwatch.delegation.tree import Tree
from agentwatch.errors import UsageError
from agentwatch.history.log import StateChange, state_changes, story
from agentwatch.history.recording import write_new
from agentwatch.history.store import History
from agentwatch.monitor import Monitor
from agentwatch.report.account import Account, Elsewhere, StatementLine, TaskLine, account_of, others_say
from agentwatch.report.html import html
from agentwatch.report.markdown import markdown
from agentwatch.sources import complain_of
from agentwatch.state import is_there, state_directory
from agentwatch.text import indented, say
from agentwatch.view.document import SCHEMA_VERSION, tree_document
from agentwatch.view.times import iso
from agentwatch.view.words import answer, prompt

Document = dict[str, Any]
"""An object of the JSON, by its keys."""

_RETURNED: Final = (
    *("contract", "reported_state", "summary", "error_code", "error_message", "retry_hint", "next_steps"),
    *("review_reason", "blockers", "limitations", "model", "mode", "confidence", "artifacts", "files_created"),
    "files_modified",
)
"""The facts of a return, by their names there."""


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
    if output is None:
        say(text.removesuffix("\n"))
    else:
        write_new(Path(output), [text])
    problems = [problem for one in reported for problem in one.monitor.problems]
    complain_of(problems)
    return 1 if problems else 0


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
        statements={} if monitor.host else _statements(monitor),
    )


def _statements(monitor: Monitor) -> dict[str, StatementLine]:
    """What was signed last about each task, as far as its signature holds."""
    state, tasks = state_directory(monitor.workspace), monitor.tree.tasks
    if not is_there(state / "statements"):
        return {}
    # Signatures take a while to load.
    from agentwatch.decisions.errors import KeyProblemError
    from agentwatch.decisions.keys import Keys
    from agentwatch.decisions.statement import kept, subject_of

    lines = {}
    with suppress(KeyProblemError):
        for task_id, (made, sha256, keyid) in kept(state, tasks, Keys().trust()).items():
            now = tuple((one["name"], one["digest"]["sha256"]) for one in subject_of(tasks[task_id]))
            about = made.made_at, made.attempt, made.state
            lines[task_id] = StatementLine(sha256, keyid, *about, now == made.subject)
    return lines


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
    """The account as JSON has it: the tasks as in `tree --json`, who waited, and what was said."""
    told = tree_document(account.tree, account.workspace, account.problems)
    return told | {
        "generated_at": iso(account.generated_at),
        "verdict": account.verdict,
        "summary": account.summary._asdict(),
        "attention": [_plain(one) for one in account.attention],
        "tasks": [_task(task, line) for task, line in zip(told["tasks"], account.tasks, strict=True)],
        "decisions": [_plain(one) for line in account.tasks for one in line.decisions],
        "changes": [_plain(one) for one in account.changes],
        "worktrees": [one._asdict() for one in account.worktrees],
    }


def _task(task: Document, line: TaskLine) -> Document:
    attempts = zip(task["attempts"], line.attempts, strict=True)
    return {
        **task,
        "verdict": line.task.verdict,
        "below": line.below,
        "statement": line.statement._asdict() if line.statement else None,
        "attempts": [_attempt(document, one.attempt) for document, one in attempts],
        "waits": [
            {"after_attempt": one.number, "began_at": iso(one.start), "ended_at": iso(one.end)} for one in line.waits
        ],
        "todos": [asdict(one) for one in line.task.todos or ()],
    }


def _attempt(document: Document, attempt: Attempt) -> Document:
    handoff, packet, version, result = attempt.handoff, attempt.packet, attempt.returned, attempt.result
    told = {name: getattr(result, name) for name in _RETURNED} if result else {}
    return {
        **document,
        "handoff": {"path": handoff.path, "objective": packet.objective} if handoff and packet else None,
        "returned": {"path": version.path, "sha256": version.digest, **told, "others_say": others_say(attempt)}
        if version and result
        else None,
        "prompt": prompt(attempt),
        "answer": answer(attempt),
    }


def _plain(record: Any) -> Document:
    told = record._asdict()
    return {key: iso(told[key]) if key in ("at", "since") or key.endswith("_at") else told[key] for key in told}


FORMATS: Final[dict[str, Callable[[Account], str]]] = {"md": markdown, "json": json_report, "html": html}
