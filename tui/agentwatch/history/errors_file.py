"""Returns that break their contract, appended once each to `.agentwatch/errors.json` of the workspace.

The file is valid JSON at all times, `{"schema_version": 1, "errors": [entry, …]}`, oldest first, and all foreign: what
lies in its place is never followed, waited for or trusted.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from agentwatch.contracts.shapes import Finding, Severity
from agentwatch.delegation.events import Seen
from agentwatch.delegation.links import ARTIFACT_MISSING, DUPLICATE_RETURN, agent_of
from agentwatch.delegation.task import Attempt, State, Task
from agentwatch.disk import DOT, NotADirectoryOfOursError, NotRegularError, open_dot_directory
from agentwatch.sources.sessions.fields import is_time

NAME: Final = "errors.json"
LIMIT: Final = 1_000
SCHEMA_VERSION: Final = 1

_MAX_BYTES: Final = 16 * 1024 * 1024
_LONGEST: Final = 300  # characters of one text in an entry
_MOST_ERRORS: Final = 10

Entry = dict[str, Any]


def entries_of(task: Task) -> list[Entry]:
    """An entry for each attempt of a task whose return breaks its contract."""
    entries: list[Entry] = []
    for attempt in task.attempts:
        if (returned := attempt.returned) is None:
            continue
        paths = {returned.path, attempt.rival.path if attempt.rival is not None else ""}
        placed = [one for one in task.findings if one.path in paths]
        broken = [one for one in placed if attempt is task.latest and one.rule == ARTIFACT_MISSING.id]
        if attempt.state is State.INVALID and not attempt.ended_without_result:
            own = [one for one in returned.findings if one.severity is Severity.ERROR]
            # That two returns disagree breaks no document, and leaves no result all the same.
            broken = own or [one for one in placed if one.severity is Severity.ERROR or one.rule == DUPLICATE_RETURN.id]
        if broken:
            entries.append(_entry(task, attempt, returned, broken))
    return entries


def _entry(task: Task, attempt: Attempt, returned: Seen, broken: Sequence[Finding]) -> Entry:
    agent = (agent_of(attempt.result) if attempt.result else None) or task.agent
    # A file's time can be set to any year.
    at = returned.at if is_time(returned.at) else 0
    return {
        "at": datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds"),
        "agent": agent and agent[:_LONGEST],
        "task_id": task.task_id[:_LONGEST],
        "path": returned.path[:_LONGEST],
        "digest": returned.digest,
        "rules": list(dict.fromkeys(one.rule for one in broken)),
        "errors": [
            {"rule": one.rule, "line": one.line, "message": one.message[:_LONGEST]} for one in broken[:_MOST_ERRORS]
        ],
        # What the contract says to do about it (subagent-return, "Validation Failures").
        "recommendation": f"Fix {agent or task.task_id} subagent return format"[:_LONGEST],
    }


def append(workspace: Path, new: Sequence[Entry]) -> str | None:
    """Append the entries that are not in the file yet. Returns None, or what to tell the operator. Blocks."""
    told = None
    try:
        with open_dot_directory(workspace, make=True) as directory:
            directory.sweep()
            try:
                text = _text(json.loads(directory.read(NAME, _MAX_BYTES))["errors"], new)
            except FileNotFoundError:
                text = _text([], new)
            except (NotRegularError, PermissionError, ValueError, TypeError, KeyError, RecursionError):
                # Renaming touches the name only, be it a link, a pipe, a directory or a file of any size.
                aside = f"errors.broken-{datetime.now(UTC):%Y%m%dT%H%M%S.%f}.json"
                directory.move(NAME, directory, aside)
                told = f"{DOT}/{NAME} was broken and set aside as {aside}; a new one was begun"
                text = _text([], new)
            if text:
                directory.replace(NAME, text.encode("ascii"), 0o644)
    except NotADirectoryOfOursError as error:
        return error.strerror
    except OSError as error:
        reason = error.strerror or str(error)
        return f"{DOT}/{NAME} cannot be written: {reason}; free space or correct the permissions"
    return told


def _text(before: Sequence[Entry], new: Sequence[Entry]) -> str:
    """The file with the new entries, a line each; "" where all are known. Raises where those before are not ours."""
    entries: dict[tuple[str, str], Entry] = {}
    for one in (*before, *new):
        entries.setdefault((one["task_id"], one["digest"]), one)
    if len(entries) == len(before):
        return ""
    # Indented by the library it would take ten times as long, and the file is written whole for each new entry.
    lines = ",\n".join(json.dumps(entry, allow_nan=False) for entry in [*entries.values()][-LIMIT:])
    return f'{{"schema_version": {SCHEMA_VERSION}, "errors": [\n{lines}\n]}}\n'
