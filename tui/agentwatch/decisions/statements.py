"""The statements that were signed here: of each task the last one, so that a report can name it.

<state directory>/statements/                  0700, outside the workspace
    <sha256 of the task id>.json               0600, one envelope each
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from agentwatch.decisions.envelope import LARGEST, Trust
from agentwatch.decisions.errors import DecisionError
from agentwatch.decisions.statement import Statement, verified
from agentwatch.disk import UNSYNCED, Directory

NAME: Final = "statements"


class Kept(NamedTuple):
    """A statement that was signed here, the sha256 of its envelope, and the id of the key."""

    statement: Statement
    sha256: str
    keyid: str


def keep(state: Path, envelopes: Mapping[str, bytes]) -> None:
    """Remember what was signed about tasks, in the place of what was before. Raises OSError."""
    # Whoever was given one has it, whatever becomes of this copy.
    with Directory.make(state / NAME, UNSYNCED) as directory:
        for task_id, data in envelopes.items():
            directory.replace(_file(task_id), data)


def kept(state: Path, task_ids: Iterable[str], trust: Trust) -> dict[str, Kept]:
    """What was signed about these tasks, by their ids. What cannot be read or does not hold is none."""
    found = {}
    try:
        directory = Directory.open(state / NAME)
    except OSError:
        return {}
    with directory:
        names = set(directory.names())
        for task_id in task_ids:
            if (name := _file(task_id)) not in names:
                continue
            try:
                data = directory.read(name, LARGEST)
                statement, keyid = verified(data, trust)
            except (OSError, DecisionError):
                continue
            if statement.task_id == task_id:
                found[task_id] = Kept(statement, hashlib.sha256(data).hexdigest(), keyid)
    return found


def _file(task_id: str) -> str:
    return f"{hashlib.sha256(task_id.encode('utf-8', 'surrogatepass')).hexdigest()[:32]}.json"
