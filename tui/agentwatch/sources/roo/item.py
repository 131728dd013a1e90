"""A history item: what an extension keeps of each task in its list of tasks, or what stands in for it.

Roo Code 3.48 wrote none, and Kilo Code's extension never did. Their list lies in the editor's own database, which is on
the machine with the screen, and says of older tasks not who handed them on. The first message to the model tells
workspace and mode, in words that have stayed the same: `# Current Workspace Directory (/home/…) Files`.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

from agentwatch.delegation.run import Message
from agentwatch.sources.sessions.fields import mapping, number, text, whole
from agentwatch.sources.sessions.tail import open_regular

CONVERSATION: Final = "api_conversation_history.json"

_BEGINNINGS: Final = (64 * 1024, 8 * 1024 * 1024)
"""Bytes in which the first message ends: without pictures, and with them."""
# In JSON, so that the end of the line is a backslash and an n.
_WORKSPACE: Final = re.compile(rb"# Current Workspace Directory \(((?:[^\\\n]|\\[^n]){1,4096}?)\)(?: Files)?\\n")
_MODE: Final = re.compile(rb"<slug>([\w-]{1,100})</slug>")


class Item(NamedTuple):
    """A history item. `at` is the time of its last message, in seconds since the epoch."""

    id: str
    parent: str | None = None
    workspace: str = ""
    status: str | None = None
    at: float = 0.0
    task: Message | None = None
    mode: str | None = None
    tokens: int | None = None


def item_of(value: object, told: Callable[[str, float], Message]) -> Item | None:
    """The history item in a document, None where it is none; `told` makes a message of a text and its time."""
    fields = mapping(value)
    task, asked = text(fields, "id"), text(fields, "task")
    if task is None:
        return None
    at = (number(fields, "ts") or 0.0) / 1000
    return Item(
        id=task,
        parent=text(fields, "parentTaskId"),
        workspace=text(fields, "workspace") or "",
        status=text(fields, "status"),
        at=at,
        task=told(asked, at) if asked is not None else None,
        mode=text(fields, "mode"),
        tokens=((whole(fields, "tokensIn") or 0) + (whole(fields, "tokensOut") or 0)) or None,
    )


def older_item(directory: Path) -> Item | None:
    """What stands in for the history item of a task; None as long as its workspace is not known.
    Raises OSError, and ValueError where it is damaged."""
    data = b""
    workspace = None
    with os.fdopen(open_regular(directory / CONVERSATION), "rb") as file:
        for size in _BEGINNINGS:
            data += file.read(size - len(data))
            workspace = _WORKSPACE.search(data)
            if workspace is not None or len(data) < size:
                break
    if data and not data.lstrip().startswith(b"["):
        raise ValueError("no list of messages")
    if workspace is None:
        return None
    try:
        place = str(json.loads(b'"%s"' % workspace[1]))
    except ValueError:
        place = ""
    mode = _MODE.search(data)
    return Item(directory.name, workspace=place, mode=mode[1].decode() if mode is not None else None)
