"""A task that has no history item, told from how its conversation begins.

Roo Code 3.48 wrote none, and Kilo Code's extension never did. Their list of tasks lies in the editor's own database,
which is on the machine with the screen, and of older tasks it does not say who handed them on. The first message to the
model tells workspace and mode, in words that have stayed the same: `# Current Workspace Directory (/home/…) Files`.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Final

from agentwatch.sources.roo.item import Item
from agentwatch.sources.sessions.tail import open_regular

CONVERSATION: Final = "api_conversation_history.json"

_BEGINNINGS: Final = (64 * 1024, 8 * 1024 * 1024)
"""Bytes in which the first message ends: without pictures, and with them."""
# In JSON, so that the end of the line is a backslash and an n.
_WORKSPACE: Final = re.compile(rb"# Current Workspace Directory \(((?:[^\\\n]|\\[^n]){1,4096}?)\)(?: Files)?\\n")
_MODE: Final = re.compile(rb"<slug>([\w-]{1,100})</slug>")


def older_item(directory: Path) -> Item | None:
    """What stands in for the history item of a task; None as long as its workspace is not known.

    Raises OSError, and ValueError where it is damaged.
    """
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
    mode = _MODE.search(data)
    return Item(
        id=directory.name,
        parent=None,
        workspace=_unescaped(workspace[1]),
        status=None,
        at=0.0,
        task=None,
        mode=mode[1].decode() if mode is not None else None,
        tokens=None,
    )


def _unescaped(found: bytes) -> str:
    try:
        return str(json.loads(b'"%s"' % found))
    except ValueError:
        return ""
