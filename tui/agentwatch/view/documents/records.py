"""What is kept in files: recordings, and returns that break their contract."""

from __future__ import annotations

from typing import Any, Literal, TypedDict


class RecordingHead(TypedDict):
    """The first line of a recording."""

    agentwatch_recording: Literal[1]
    workspace: str


class RecordedFile(TypedDict):
    """What a file held; null where that is not kept, or is too long. `outline` is for agentwatch alone."""

    at: float
    path: str
    digest: str
    text: str | None
    outline: str | None


class RecordedEnd(TypedDict):
    """A file was gone."""

    at: float
    path: str
    digest: None


class RecordedRun(TypedDict):
    """A run of a session store; null where it was gone. Its fields are those of `Run`, for agentwatch alone."""

    at: float
    path: str
    run: dict[str, Any]
    texts: dict[str, str | None]


Recorded = RecordingHead | RecordedFile | RecordedEnd | RecordedRun
"""A line of a recording, `agentwatch log --export FILE`."""


class BrokenRule(TypedDict):
    rule: str
    line: int | None
    message: str


class BrokenReturn(TypedDict):
    """A return that breaks its contract."""

    at: str
    agent: str | None
    task_id: str
    path: str
    digest: str
    rules: list[str]
    errors: list[BrokenRule]
    recommendation: str


class Errors(TypedDict):
    """`.agentwatch/errors.json`."""

    schema_version: Literal[1]
    errors: list[BrokenReturn]
