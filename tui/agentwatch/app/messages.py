"""Messages between the app, its screens and dialogs, and the details on them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from textual.message import Message

if TYPE_CHECKING:
    from agentwatch.delegation.events import Claim
    from agentwatch.sources.sessions.entries import RunTranscript, Step


@dataclass
class TreeUpdated(Message):
    """The delegation tree has changed. Ids of all tasks added, changed or removed since the last one.

    `settled` says that the first scan is over.
    """

    changed: frozenset[str]
    settled: bool


@dataclass
class Inspect(Message):
    """The operator wants to look at what a claim of a task is about."""

    task_id: str
    claim: Claim


@dataclass
class ReadStep(Message):
    """The operator wants to read a step of a transcript whole.

    `place` says where it stands, and `claim` what rests on it; "" and None where the transcript itself is shown.
    """

    transcript: RunTranscript
    step: Step
    place: str = ""
    claim: Claim | None = None


@dataclass
class PageTranscript(Message):
    """The operator wants to read a whole transcript in the pager."""

    transcript: RunTranscript


STILL_READING = "Not known yet: agentwatch is still reading."


@dataclass
class Missing(Message):
    """A key has no object. The app says so in these words; before the first look is over nobody knows."""

    words: str
