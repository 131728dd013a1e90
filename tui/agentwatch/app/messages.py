"""Textual messages between the app, its screens and the pane with the details of a task."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from textual.message import Message

if TYPE_CHECKING:
    from agentwatch.delegation.events import Claim
    from agentwatch.sources.sessions.entries import RunTranscript, Step


@dataclass
class TreeUpdated(Message):
    """The delegation tree has changed.

    `changed` has the ids of the tasks that were added, changed or removed since the last message. `settled` tells
    whether the first scan of files and sessions is over.
    """

    changed: frozenset[str]
    settled: bool


@dataclass
class InspectClaim(Message):
    """The operator wants to see the file or the tool call that a claim of a task is about."""

    task_id: str
    claim: Claim


@dataclass
class ReadStep(Message):
    """The operator wants to read a whole step of a transcript, such as one message or one tool call.

    If the operator comes from a claim, `claim` is this claim, and `place` says where in the transcript the step is.
    Otherwise both are empty.
    """

    transcript: RunTranscript
    step: Step
    place: str = ""
    claim: Claim | None = None


@dataclass
class PageTranscript(Message):
    """The operator wants to read a whole transcript in the pager (`$PAGER`)."""

    transcript: RunTranscript


STILL_READING = "Not known yet: agentwatch is still reading."


@dataclass
class NoEffect(Message):
    """A key had no effect. The app shows `words`. During the first scan, it shows `STILL_READING` instead."""

    words: str
