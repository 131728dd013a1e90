"""What a transcript says of the agents that were asked for in it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from agentwatch.delegation.run import Message

DELEGATING: Final = frozenset({"Task", "Agent"})
"""The tool that hands out work, by its old and its new name."""


@dataclass(slots=True)
class Answer:
    """What the parent's transcript says of a call: begun in the background, answered, or failed."""

    at: float
    error: str | None = None
    launched: bool = False
    agent_id: str | None = None
    said: Message | None = None
    status: str = ""
    summary: str = ""


@dataclass(slots=True)
class Call:
    """One use of a tool that hands out work. `by` is the inline conversation that used it, None for the file's own."""

    tool_use_id: str
    tool: str
    at: float
    by: str | None
    agent_type: str | None
    title: str | None
    prompt: Message | None
    background: bool
    resumes: str | None
    answer: Answer | None = None
