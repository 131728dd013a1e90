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
    """The delegation tree has changed. `changed` has the ids of all tasks added, changed or removed since the last
    message; `settled` says that the first scan is over.
    """

    changed: frozenset[str]
    settled: bool


@dataclass
class Inspect(Message):
    """The operator wants to look at the file or call that a claim of a task is about."""

    task_id: str
    claim: Claim


@dataclass
class ReadStep(Message):
    """The operator wants to read a whole step of a transcript.

    `place` says where in the transcript it is, and `claim` is the claim that rests on it; "" and None if the step was
    chosen in the transcript itself.
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
    """A key has nothing to act on. The app says so in these words, or says that it still reads."""

    words: str
