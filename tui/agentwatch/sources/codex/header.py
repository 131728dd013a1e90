"""The first line of a rollout: whose session it is, in which directory, and which agent asked for it.

The shapes are those of Codex 0.66 to 0.169: a line `{"timestamp", "ordinal"?, "type": "session_meta", "payload"}`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from agentwatch.sources.sessions.fields import Fields, inner, mapping, moment, text, whole

THREAD_ID: Final = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")

_OWN_WORK: Final = frozenset({"compact", "memory_consolidation", "guardian"})
"""Agents that Codex runs for itself: to shorten a context, to remember, to judge an approval."""


@dataclass(frozen=True, slots=True)
class Header:
    """What a rollout says of its session. `began_at` is in seconds since the epoch; texts are foreign.

    `inherited_below`: records with a smaller ordinal are a copy of the parent's history, None where that is not told.
    `own_work`: no task of anybody, but housekeeping of Codex.
    """

    thread: str
    parent: str | None
    directory: str
    began_at: float
    ordinal: int
    agent: str | None = None
    task_name: str | None = None
    version: tuple[int, ...] = ()
    inherited_below: int | None = None
    own_work: bool = False


def header_of(record: Fields) -> Header | None:
    """The header in a record, None where it is no usable one."""
    meta = mapping(record.get("payload"))
    thread = text(meta, "id")
    if record.get("type") != "session_meta" or thread is None:
        return None
    subagent = inner(meta, "source").get("subagent")
    spawn = inner(mapping(subagent), "thread_spawn")
    kind = subagent if isinstance(subagent, str) else text(mapping(subagent), "other")
    role = text(meta, "agent_role") or text(spawn, "agent_role") or text(spawn, "agent_type") or kind
    nickname = text(meta, "agent_nickname") or text(spawn, "agent_nickname")
    return Header(
        thread,
        text(meta, "parent_thread_id") or text(spawn, "parent_thread_id"),
        text(meta, "cwd") or "",
        moment(meta.get("timestamp")) or moment(record.get("timestamp")) or 0.0,
        whole(record, "ordinal") or 0,
        f"{nickname} ({role})" if nickname and role else nickname or role,
        text(meta, "agent_path") or text(spawn, "agent_path"),
        _version(text(meta, "cli_version") or ""),
        whole(meta, "subagent_history_start_ordinal"),
        kind in _OWN_WORK or "internal" in inner(meta, "source"),
    )


def _version(words: str) -> tuple[int, ...]:
    found = re.match(r"(\d{1,6})\.(\d{1,6})", words)
    return tuple(int(number) for number in found.groups()) if found else ()
