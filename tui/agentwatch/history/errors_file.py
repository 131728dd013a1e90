"""Returns that break their contract, appended once each to `.agentwatch/errors.json` of the workspace.

The workspace belongs to the agents: whatever lies in the file's place is never followed, never waited for and never
trusted. The file is valid JSON at all times: `{"schema_version": 1, "errors": [entry, …]}`, the last 1,000, oldest
first. Every text in an entry is foreign.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from agentwatch.contracts.shapes import Finding, Severity
from agentwatch.delegation.identity import agent_of
from agentwatch.delegation.links import ARTIFACT_MISSING, DUPLICATE_RETURN
from agentwatch.delegation.task import Attempt, State, Task, Version
from agentwatch.disk import DOT, Directory, NotADirectoryOfOursError, NotRegularError, open_dot_directory, take_lock

NAME: Final = "errors.json"
LIMIT: Final = 1_000
SCHEMA_VERSION: Final = 1

_MAX_BYTES: Final = 16 * 1024 * 1024
_MOST_ASIDE: Final = 20
_LONGEST: Final = 300
"""Characters of one text in an entry: a thousand of the largest entries are still read again."""
_MOST_RULES: Final = 50
_MOST_ERRORS: Final = 10
_LOCK_SECONDS: Final = 1.0

Entry = dict[str, Any]


def entries_of(task: Task) -> list[Entry]:
    """An entry for each attempt of a task whose return breaks its contract."""
    return [
        _entry(task, attempt, returned, broken)
        for attempt in task.attempts
        if (returned := attempt.returned) and (broken := _broken(task, attempt, returned))
    ]


def _broken(task: Task, attempt: Attempt, returned: Version) -> list[Finding]:
    """The rules that the return of an attempt breaks."""
    places = returned.path, attempt.rival.path if attempt.rival is not None else None
    others = [placed.finding for placed in task.findings if placed.path in places]
    if attempt.state is not State.INVALID:
        # A return whose artifacts are missing is contradicted, and keeps its state; only the latest was looked at.
        return [one for one in others if attempt is task.latest and one.rule == ARTIFACT_MISSING.id]
    if attempt.ended_without_result:
        # Nothing is wrong with what it wrote.
        return []
    own = [finding for finding in returned.findings if finding.severity is Severity.ERROR]
    # That two returns disagree breaks no document, and leaves no result all the same.
    return own or [one for one in others if one.severity is Severity.ERROR or one.rule == DUPLICATE_RETURN.id]


def _entry(task: Task, attempt: Attempt, returned: Version, broken: Sequence[Finding]) -> Entry:
    agent = (agent_of(attempt.result) if attempt.result else None) or task.agent
    try:
        at = datetime.fromtimestamp(returned.at, UTC)
    except (ValueError, OverflowError, OSError):
        # A file's time can be set to any year.
        at = datetime.fromtimestamp(0, UTC)
    return {
        "at": at.isoformat(timespec="seconds"),
        "agent": agent and agent[:_LONGEST],
        "task_id": task.task_id[:_LONGEST],
        "path": returned.path[:_LONGEST],
        "digest": returned.digest,
        "rules": list(dict.fromkeys(one.rule for one in broken))[:_MOST_RULES],
        "errors": [
            {"rule": one.rule, "line": one.line, "message": one.message[:_LONGEST]} for one in broken[:_MOST_ERRORS]
        ],
        # What the contract says to do about it (subagent-return, "Validation Failures").
        "recommendation": f"Fix {agent or task.task_id} subagent return format"[:_LONGEST],
    }


def append(workspace: Path, new: Sequence[Entry]) -> str | None:
    """Append the entries that are not in the file yet. Returns None, or in words why nothing was written.

    An entry is known by task and digest. What lies in the place of the file and is not one of ours is set aside as
    `errors.broken-<n>.json`. Blocks for a second at most where something holds the lock; call it in a worker thread.
    """
    try:
        with open_dot_directory(workspace, make=True) as directory:
            # Some network file systems have no locks. Without one the file stays whole, only an entry may be lost.
            with suppress(OSError):
                take_lock(directory.descriptor, _LOCK_SECONDS)
            directory.sweep()
            before = _read_entries(directory)
            known = {(one["task_id"], one["digest"]) for one in before}
            added = {key: one for one in new if (key := (one["task_id"], one["digest"])) not in known}.values()
            if added:
                text = _text([*before, *added][-LIMIT:])
                # Entries that somebody else put there may be of any size; what is too large would not be read again.
                text = text if len(text) <= _MAX_BYTES else _text([*added])
                directory.replace(NAME, text.encode("ascii"), 0o644)
    except NotADirectoryOfOursError as error:
        return error.strerror
    except OSError as error:
        reason = error.strerror or str(error)
        return f"{DOT}/{NAME} cannot be written: {reason}; free space or correct the permissions"
    return None


def _text(entries: Sequence[Entry]) -> str:
    """One line an entry. Raises ValueError where something in it is not JSON, such as NaN."""
    # Indented by the library it would take ten times as long, and the file is written whole for each new entry.
    lines = ",\n".join(json.dumps(entry, allow_nan=False) for entry in entries)
    return f'{{"schema_version": {SCHEMA_VERSION}, "errors": [\n{lines}\n]}}\n'


def _read_entries(directory: Directory) -> list[Entry]:
    """The entries of the file. Something that we could not have written is set aside first."""
    try:
        entries = json.loads(directory.read(NAME, _MAX_BYTES))["errors"]
        _text(entries)
        keys = [text for entry in entries for text in (entry["task_id"], entry["digest"])]
        if isinstance(entries, list) and all(isinstance(text, str) for text in keys):
            return entries
    except FileNotFoundError:
        return []
    except (NotRegularError, PermissionError, ValueError, TypeError, KeyError, RecursionError):
        pass
    taken = directory.names()
    free = (name for n in range(1, _MOST_ASIDE + 1) if (name := f"errors.broken-{n}.json") not in taken)
    if (aside := next(free, None)) is None:
        raise OSError(0, f"it is broken, and {_MOST_ASIDE} broken ones are set aside already, so delete them")
    # Renaming touches the name only, be it a link, a pipe, a directory or a file of any size.
    with suppress(FileNotFoundError):
        directory.move(NAME, directory, aside)
    return []
