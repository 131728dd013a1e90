"""The records of what was put aside and looked at: as lines of text, and what they come to. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any, Final, NamedTuple

from agentwatch.delegation.task import Aside, Put

VERSION: Final = 1

_LATEST: Final = 1e12
"""Epoch seconds that no time of a record is beyond."""
_UNDOABLE: Final = 50
"""So many of the latest records stay apart when a file is shortened, so that each can be undone."""

_REMEMBERED: Final = 30 * 86_400.0
"""Seconds for which a file that is shortened keeps what was looked at. What is older than that is not new."""


class Kind(StrEnum):
    """What a record says."""

    BEGAN = "began"
    ACKNOWLEDGE = "acknowledge"
    SNOOZE = "snooze"
    OVER = "over"
    UNDO = "undo"
    SEEN = "seen"


class Record(NamedTuple):
    """One line. Times are seconds since the epoch; `tasks` are marks by task id.

    `name` is what an undo names as `undoes`; without it, a record cannot be undone any more. `until`: a snooze ends
    then at the latest.
    """

    kind: Kind
    at: float
    tasks: Mapping[str, str] = {}
    name: str = ""
    until: float | None = None
    undoes: str = ""

    @property
    def did(self) -> str:
        """What was done to its tasks, in a word."""
        return "snoozed" if self.kind is Kind.SNOOZE else "acknowledged"

    def put(self, task_id: str) -> Put:
        """What it makes of a task that it names."""
        return Put(self.tasks[task_id], self.at, self.kind is Kind.SNOOZE, self.until)


class NoRecordError(ValueError):
    """A line is no record; the message says why."""


def written(record: Record) -> bytes:
    """A record as a line."""
    fields: dict[str, Any] = {"record": record.kind.value, "at": round(record.at, 3)}
    if record.kind is Kind.BEGAN:
        fields["version"] = VERSION
    if record.name:
        fields["name"] = record.name
    if record.kind is Kind.SNOOZE:
        fields["until"] = record.until
    if record.kind is Kind.UNDO:
        fields["undoes"] = record.undoes
    if record.tasks:
        fields["tasks"] = dict(record.tasks)
    return json.dumps(fields, separators=(",", ":")).encode() + b"\n"


def read(line: bytes) -> Record:
    """The record of a line. Raises NoRecordError."""
    try:
        fields = json.loads(line)
    except (ValueError, RecursionError):
        raise NoRecordError("it is no JSON") from None
    if not isinstance(fields, dict):
        raise NoRecordError("it is no JSON object")
    kind, version = fields.get("record"), fields.get("version", VERSION)
    if kind not in list(Kind) or version != VERSION:
        raise NoRecordError("this version of agentwatch does not know it")
    record = Record(
        Kind(kind), _time(fields.get("at")), fields.get("tasks", {}), fields.get("name", ""),
        None if fields.get("until") is None else _time(fields["until"]), fields.get("undoes", ""),
    )  # fmt: skip
    marks = record.tasks.values() if isinstance(record.tasks, dict) else [None]
    if not all(isinstance(text, str) for text in (record.name, record.undoes, *marks)):
        raise NoRecordError("a field of it is wrong")
    return record


def is_record(line: bytes) -> bool:
    """Whether a line is a record."""
    try:
        read(line)
    except NoRecordError:
        return False
    return True


def _time(value: object) -> float:
    if not isinstance(value, int | float) or not abs(value) < _LATEST:
        raise NoRecordError("a time in it is wrong")
    return float(value)


class Book:
    """What the records come to, in the order in which they are taken in."""

    def __init__(self) -> None:
        self.began: float | None = None
        """What is older is not new, in epoch seconds; None where no record says so."""
        self._puts: dict[int, Record] = {}
        """Those that count, by their number."""
        self._of_task: dict[str, list[int]] = {}
        self._names: dict[str, int] = {}
        self._seen: dict[str, tuple[str, float]] = {}
        self._count = 0

    def take(self, record: Record) -> set[str]:
        """Take the next one in. Returns the tasks that it is about."""
        match record.kind:
            case Kind.BEGAN:
                self.began = record.at
            case Kind.SEEN:
                self._seen |= {task_id: (mark, record.at) for task_id, mark in record.tasks.items()}
            case Kind.UNDO:
                return self._undo(record.undoes)
            case _:
                if record.kind is Kind.OVER:
                    # If it comes back as it was, it is new, too.
                    same = {one for one, mark in record.tasks.items() if self._seen.get(one, (mark,))[0] == mark}
                    self._seen |= dict.fromkeys(same, ("", record.at))
                self._count += 1
                self._puts[self._count] = record
                if record.name:
                    self._names[record.name] = self._count
                for task_id in record.tasks:
                    self._of_task.setdefault(task_id, []).append(self._count)
        return set(record.tasks)

    def _undo(self, name: str) -> set[str]:
        number = self._names.pop(name, None)
        if number is None:
            return set()
        tasks = set(self._puts.pop(number).tasks)
        for task_id in tasks:
            self._of_task[task_id].remove(number)
        return tasks

    def aside(self, task_id: str) -> Aside:
        """What is known of a task now."""
        numbers = self._of_task.get(task_id)
        record = self._puts[numbers[-1]] if numbers else None
        put = record.put(task_id) if record is not None and record.kind is not Kind.OVER else None
        return Aside(put, self._seen[task_id][0] if task_id in self._seen else None)

    def tasks(self) -> set[str]:
        """The tasks of which something is known, or was."""
        return self._of_task.keys() | self._seen.keys()

    def last(self) -> Record | None:
        """What an undo takes back; None where there is nothing."""
        return self._puts[max(self._names.values())] if self._names else None

    def shortened(self, now: float) -> Iterator[Record]:
        """Records that come to the same, without those that count no more."""
        oldest = now - _REMEMBERED
        yield Record(Kind.BEGAN, now if self.began is None else max(self.began, oldest))
        puts = list(self._puts.values())
        yield from _folded(puts[:-_UNDOABLE])
        yield from puts[-_UNDOABLE:]
        by_time: dict[float, dict[str, str]] = {}
        for task_id, (mark, at) in self._seen.items():
            if at > oldest:
                by_time.setdefault(at, {})[task_id] = mark
        yield from (Record(Kind.SEEN, at, tasks) for at, tasks in sorted(by_time.items()))


def _folded(records: Sequence[Record]) -> Iterator[Record]:
    """Records that cannot be undone, each only with the tasks about which no later one says anything."""
    latest = {task_id: record for record in records for task_id in record.tasks}
    for record in records:
        if tasks := {task_id: mark for task_id, mark in record.tasks.items() if latest[task_id] is record}:
            yield record._replace(tasks=tasks, name="")
