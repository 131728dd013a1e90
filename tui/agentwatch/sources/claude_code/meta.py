"""The small file beside an agent's transcript: who asked for it, and how."""

from __future__ import annotations

import json
from typing import NamedTuple

from agentwatch.sources.sessions.fields import text


class Meta(NamedTuple):
    """`agent-<id>.meta.json`. It may be there before the transcript, after it, or never; `finished` is no success."""

    agent_type: str | None = None
    name: str | None = None
    title: str | None = None
    tool_use_id: str | None = None
    parent_agent: str | None = None
    background: bool = False


def read_meta(data: bytes) -> Meta | None:
    """None for bytes that are no JSON object: half written, or never meant to be one."""
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict):
        return None
    return Meta(
        text(found, "agentType"),
        text(found, "name"),
        text(found, "description"),
        text(found, "toolUseId"),
        text(found, "parentAgentId"),
        found.get("requestShape") == "background",
    )
