"""What every source does: the protocol between those who observe and the monitor."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from agentwatch.sources.files.documents import KnownFile
from agentwatch.sources.health import Batch


class Source(Protocol):
    """Where observations come from. It runs on its own thread and never blocks the caller.

    A subclass need not say that it keeps nothing of files, or that it never begins.
    """

    def remember(self, files: Mapping[str, KnownFile], looked_at: float | None = None) -> None:  # noqa: ARG002
        """Take over what was known of the files when agentwatch last ran; called before `start` or `scan`."""
        return

    def known(self) -> Mapping[str, KnownFile]:
        """What to remember of the files for the next time. Any thread may call it."""
        return {}

    def start(self, emit: Callable[[Batch], None]) -> None:  # noqa: ARG002
        """Begin to observe; `emit` is called on the source's thread, with what was there first."""
        return

    def scan(self) -> Batch:
        """What is there now, looked at once; for a source that was not started."""

    def stop(self) -> None:
        """End within a second. Nothing is emitted afterwards."""
        return

    def content(self, digest: str) -> str | None:
        """The text of a document that was observed, None where it is not kept any more."""
