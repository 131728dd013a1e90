"""What the app tells its screens."""

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
