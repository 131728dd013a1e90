"""Claude Code: transcripts of sessions and agents, descriptions beside them, and a file for each program that runs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from agentwatch.sources.claude_code.frames import handed_back
from agentwatch.sources.claude_code.session import NAME, Session
from agentwatch.sources.claude_code.transcript import Transcript
from agentwatch.sources.claude_code.wording import texts
from agentwatch.sources.sessions.fields import Fields, first_line, inner, listed, mapping, number, text
from agentwatch.sources.sessions.group import HowToRead
from agentwatch.sources.sessions.notification import read_notification
from agentwatch.sources.sessions.processes import Wait
from agentwatch.sources.sessions.projects import Layout
from agentwatch.sources.sessions.tail import record
from agentwatch.sources.sessions.texts import in_lines
from agentwatch.sources.sessions.transcripts import Kind, TranscriptsReader

# Older programs put agents among the sessions. The two that are left out are run by the program for itself.
_LAYOUT: Final = Layout(
    r"(?:(?P<session>[^/]+)/(?:subagents/(?:.+/)?)?)?"
    r"agent-(?!acompact-|aprompt_suggestion-)(?P<agent>.+)(?:\.jsonl|(?P<meta>\.meta\.json))"
    r"|(?!agent-)(?P<own>[0-9a-zA-Z_-]{1,128})\.jsonl",
    r"(?P<session>[^/]+)(?:/subagents(?:/[^/]+){0,4})?",
)

_WAITS: Final = {
    "permission prompt": "a permission",
    "worker request": "a permission",
    "sandbox request": "a permission to use the network",
    "goal proposal": "an approval of its goal",
    "input needed": "an answer",
}
_OPENED: Final = "dialog open"
"""Somebody who sits there has opened a dialog; no work waits for it."""


class ClaudeCodeReader(TranscriptsReader[Transcript, Fields]):
    """`home` is `$CLAUDE_CONFIG_DIR`, else `~/.claude`."""

    def __init__(self, workspace: Path, home: Path, since: float | None = None) -> None:
        how = HowToRead(lambda keep, is_agent: Transcript(keep, is_agent=is_agent), record, Session)
        super().__init__(Kind(NAME, _LAYOUT, how, in_lines(_texts_in), wait_in), workspace, home, since)


def wait_in(found: Fields) -> Wait | None:
    """What `sessions/<pid>.json` says that its program waits for."""
    what = text(found, "waitingFor") or ""
    if found.get("status") != "waiting" or what == _OPENED:
        return None
    since = (number(found, "statusUpdatedAt") or 0.0) / 1000
    return Wait(_WAITS.get(what) or first_line(what, 100) or "an answer", since)


def _texts_in(line: Fields) -> Iterator[str]:
    message = inner(line, "message")
    content = message.get("content")
    yield "\n".join(texts(content))
    for item in listed(message, "content"):
        block = mapping(item)
        prompt = inner(block, "input").get("prompt")
        if isinstance(prompt, str):
            yield prompt
        if block.get("type") == "tool_result":
            yield handed_back(texts(block.get("content")), inner(line, "toolUseResult")) or ""
    told = (line.get("content"), inner(line, "attachment").get("prompt"), content)
    for words in told:
        notification = read_notification(words) if isinstance(words, str) else None
        if notification is not None and notification.said is not None:
            yield notification.said
