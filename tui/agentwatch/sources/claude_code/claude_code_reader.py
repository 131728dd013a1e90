"""Claude Code: transcripts of sessions and agents, descriptions beside them, and a file for each program that runs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from agentwatch.sources.claude_code.frames import handed_back, texts
from agentwatch.sources.claude_code.session import NAME, ClaudeSession
from agentwatch.sources.claude_code.transcript import Transcript
from agentwatch.sources.sessions.fields import (
    Fields,
    first_line,
    inner,
    listed,
    mapping,
    number,
    read_notification,
    text,
)
from agentwatch.sources.sessions.group import Kind
from agentwatch.sources.sessions.processes import Wait
from agentwatch.sources.sessions.projects import Layout
from agentwatch.sources.sessions.transcripts import TranscriptsReader

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


class ClaudeCodeReader(TranscriptsReader[Transcript]):
    """`home` is `$CLAUDE_CONFIG_DIR`, else `~/.claude`."""

    def __init__(self, workspace: Path, home: Path, since: float | None = None) -> None:
        kind = Kind(NAME, _LAYOUT, Transcript, ClaudeSession, _texts_in, wait_in)
        super().__init__(kind, workspace, home, since)


def wait_in(process: Fields) -> Wait | None:
    """What `sessions/<pid>.json` says that its program waits for."""
    what = text(process, "waitingFor") or ""
    # Somebody who sits there has opened a dialog; no work waits for it.
    if process.get("status") != "waiting" or what == "dialog open":
        return None
    since = (number(process, "statusUpdatedAt") or 0.0) / 1000
    return Wait(_WAITS.get(what) or first_line(what, 100) or "an answer", since)


def _texts_in(line: Fields) -> Iterator[str]:
    message = inner(line, "message")
    content = message.get("content")
    yield "\n".join(texts(content))
    for block in map(mapping, listed(message, "content")):
        prompt = inner(block, "input").get("prompt")
        yield prompt if isinstance(prompt, str) else ""
        if block.get("type") == "tool_result":
            yield handed_back(texts(block.get("content")), inner(line, "toolUseResult")) or ""
    for words in (line.get("content"), inner(line, "attachment").get("prompt"), content):
        told = read_notification(words) if isinstance(words, str) else None
        yield (told.said if told is not None else None) or ""
