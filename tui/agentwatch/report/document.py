"""The report as JSON, schema version 1: the tasks as in `tree --json`, who waited, and what was said."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from typing import Any, Final

from agentwatch.delegation.task import Attempt
from agentwatch.report.account import Account, TaskLine
from agentwatch.report.facts import others_say
from agentwatch.text import indented
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
"""What is told of a return, by the names that it has there."""


def document(account: Account) -> str:
    """The account, indented and in ASCII: foreign characters reach the reader as escapes, a terminal never.

    Times are ISO 8601 in UTC, null if they are not known. Texts are as the documents have them.
    """
    return indented(_document(account)) + "\n"


def documents(accounts: Iterable[Account]) -> str:
    """The accounts of several workspaces, as one document."""
    return indented({"schema_version": SCHEMA_VERSION, "workspaces": [*map(_document, accounts)]}) + "\n"


def _document(account: Account) -> Document:
    told = tree_document(account.tree, account.workspace, account.problems)
    return {
        "schema_version": told["schema_version"],
        "workspace": account.workspace,
        **({"host": told["host"]} if "host" in told else {}),
        "generated_at": iso(account.generated_at),
        "verdict": account.verdict,
        "summary": asdict(account.summary),
        "attention": [_plain(one) for one in account.attention],
        "tasks": [_task(task, line) for task, line in zip(told["tasks"], account.tasks, strict=True)],
        "decisions": [_plain(one) for one in account.decisions],
        "changes": [_plain(one) for one in account.changes],
        "notices": told["notices"],
        "worktrees": [one._asdict() for one in account.worktrees],
        "complete": told["complete"],
        "problems": told["problems"],
    }


def _task(task: Document, line: TaskLine) -> Document:
    attempts = zip(task["attempts"], line.attempts, strict=True)
    return {
        **task,
        "verdict": line.task.verdict,
        "below": line.below,
        "statement": line.statement._asdict() if line.statement else None,
        "attempts": [_attempt(document, one.attempt) for document, one in attempts],
        "waits": [_plain(one) for one in line.waits],
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
    told = record._asdict() if hasattr(record, "_asdict") else asdict(record)
    return {key: iso(told[key]) if key in ("at", "since") or key.endswith("_at") else told[key] for key in told}
