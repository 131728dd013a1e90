"""What Claude Code, and Qwen Code after it, tell a parent when an agent that it left running has ended."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from agentwatch.sources.sessions.fields import first_line

_OPENING: Final = "<task-notification>"
_TAG: Final = re.compile(r"<(task-id|tool-use-id|status|summary)>(.*?)</\1>", re.DOTALL)


class Notification(NamedTuple):
    """The end of a background agent as its parent was told. `said` is the agent's text, None where there is none."""

    task_id: str
    tool_use_id: str | None
    status: str
    summary: str
    said: str | None


def read_notification(text: str) -> Notification | None:
    """A `<task-notification>`, None for any other text.

    The agent's own words stand last in it, so that tags inside them are never taken for the program's.
    """
    if not text.lstrip().startswith(_OPENING):
        return None
    head, opened, rest = text.partition("<result>")
    said = rest.rpartition("</result>")[0] if opened else None
    tags = dict(_TAG.findall(head))
    task_id = tags.get("task-id", "").strip()
    if not task_id:
        return None
    return Notification(
        task_id,
        tags.get("tool-use-id", "").strip() or None,
        tags.get("status", "").strip(),
        first_line(tags.get("summary", "")),
        said,
    )
