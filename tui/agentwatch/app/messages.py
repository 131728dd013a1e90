"""Messages between the app, its screens and dialogs, and the details on them."""

from __future__ import annotations

from textual.message import Message


class TreeUpdated(Message):
    """The delegation tree has changed. Ids of all tasks added, changed or removed since the last one.

    `settled` says that the first scan is over.
    """

    def __init__(self, changed: frozenset[str], *, settled: bool) -> None:
        super().__init__()
        self.changed = changed
        self.settled = settled


class Inspect(Message):
    """The operator wants to look at the file of a claim, or at a changed file that nobody claims, without a kind."""

    def __init__(self, task_id: str, kind: str, path: str, lines: tuple[int, int] | None) -> None:
        super().__init__()
        self.task_id = task_id
        self.kind = kind
        self.path = path
        self.lines = lines


class KeysChanged(Message):
    """The keys do something else now: the footer has to say so."""


class TaskDecided(Message):
    """The operator has decided about a task, which therefore need not be reviewed any more."""

    def __init__(self, task_id: str) -> None:
        super().__init__()
        self.task_id = task_id
