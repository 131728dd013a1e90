"""What the messages of a task say."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Final

from agentwatch.contracts.shapes import Todo
from agentwatch.delegation.run import Activity
from agentwatch.sources.roo.talk import CANCELED, inside
from agentwatch.sources.sessions.doing import Entry, EntryKind, Pulse
from agentwatch.sources.sessions.fields import Fields, listed, mapping, number, text, todos_in
from agentwatch.sources.sessions.following import RunTranscript
from agentwatch.sources.sessions.steps import Steps
from agentwatch.sources.sessions.tail import Stamp, document, stamp_of

_SAID: Final = {
    "text": EntryKind.WORDS,
    "completion_result": EntryKind.WORDS,
    "reasoning": EntryKind.THOUGHT,
    "user_feedback": EntryKind.PROMPT,
    "error": EntryKind.NOTE,
    "diff_error": EntryKind.NOTE,
    "rooignore_error": EntryKind.NOTE,
    "shell_integration_warning": EntryKind.NOTE,
    "condense_context": EntryKind.NOTE,
}
_ERRORS: Final = ("error", "diff_error", "rooignore_error")
_TOOLS: Final = {"command": "execute_command", "followup": "ask_followup_question"}
"""What is asked of a human by a tool that has no object of its own, and the tool."""
_SHARE: Final = 10.0
_LONG: Final = 1024 * 1024
"""Bytes of messages from which reading them anew with each one may take a tenth of the time."""
_LATEST: Final = 200
"""Messages that tell what a task does, and how often it has done so."""
_RESULTS: Final = ("command_output", "mcp_server_response")


def entries(messages: Sequence[Fields]) -> Iterator[tuple[int, list[Entry]]]:
    """(number of the message, what it says) of those that say something. A call is over once something follows it.

    The store does not say what came of a tool, but for commands and MCP servers, nor whether a human refused it.
    """
    for place, (message, following) in enumerate(zip_longest(messages, messages[1:])):
        entry = _entry(message, is_first=place == 0)
        if entry is None:
            continue
        if entry.kind is EntryKind.CALL and following is not None:
            words = (text(following, "text") or "") if text(following, "say") in _RESULTS else ""
            yield place, [entry, Entry(_moment(following), EntryKind.RESULT, words, entry.call)]
        else:
            yield place, [entry]


def _moment(message: Fields) -> float:
    return (number(message, "ts") or 0.0) / 1000


def _entry(message: Fields, *, is_first: bool) -> Entry | None:
    at, fields = _moment(message), inside(message)
    words, say, ask = text(message, "text") or "", text(message, "say"), text(message, "ask")
    if is_first and words.strip():
        return Entry(at, EntryKind.PROMPT, words)
    if say in _SAID and words.strip():
        return Entry(at, _SAID[say], words, failed=say in _ERRORS)
    if say == "api_req_started" and (reason := text(fields, "cancelReason")) is not None:
        why = "broken off by the user" if reason == CANCELED else reason
        return Entry(at, EntryKind.NOTE, text(fields, "streamingFailedMessage") or why, failed=True)
    if ask == "api_req_failed":
        return Entry(at, EntryKind.NOTE, words, failed=True)
    if "tool" in (ask, say):
        given = {key: value for key, value in fields.items() if key != "tool"}
        if text(fields, "tool") == "newTask":
            given["prompt"] = given.pop("content", "")
        return Entry(at, EntryKind.CALL, "", "call", text(fields, "tool") or "tool", given)
    if ask == "use_mcp_server":
        names = ("mcp", text(fields, "serverName"), text(fields, "toolName") or text(fields, "uri"))
        arguments = inside({"text": fields.get("arguments")})
        return Entry(at, EntryKind.CALL, "", "call", "__".join(filter(None, names)), arguments)
    if ask in _TOOLS:
        return Entry(at, EntryKind.CALL, "", "call", _TOOLS[ask], fields or {"command": words})
    return None


def doing_of(value: object) -> Activity | None:
    """What a task does, by the list of messages in a document."""
    messages = list(map(mapping, value[-_LATEST:])) if isinstance(value, list) else []
    pulse = Pulse()
    todos: tuple[Todo, ...] | None = None
    for _, said in entries(messages):
        for entry in said:
            pulse.take(entry)
            if entry.kind is EntryKind.CALL and entry.tool == "updateTodoList":
                before, todos = todos, todos_in(listed(entry.given, "todos"), "content") or todos
                pulse.listed(before, todos, entry.at)
    return pulse.doing


class TalkTranscript(RunTranscript):
    """The messages of a task, a file that is replaced as a whole."""

    def __init__(self, path: Path, most_bytes: int) -> None:
        super().__init__(path)
        self._most_bytes = most_bytes
        self._stamp: Stamp | None = None
        self._next_at = 0.0

    def entries(self) -> Iterator[Entry]:
        for _, said in self._said():
            yield from said

    def _read(self) -> bool | None:
        began = time.monotonic()
        if began < self._next_at:
            return None
        stamp = stamp_of(self._path.stat(follow_symlinks=False))
        if stamp == self._stamp and not self._trouble:
            return False
        try:
            messages = self._messages()
        except ValueError:
            # Half a file, in an editor that does not replace it at once.
            return None
        now = time.monotonic()
        self._next_at = now + (now - began) * _SHARE if stamp[2] > _LONG else 0.0
        self._stamp, self._steps = stamp, Steps()
        for place, said in entries(messages):
            self._steps.add(place, said)
        return True

    def _entries_at(self, place: int) -> Sequence[Entry]:
        return next((said for number, said in self._said() if number == place), ())

    def _said(self) -> Iterator[tuple[int, list[Entry]]]:
        try:
            return entries(self._messages())
        except (OSError, ValueError):
            return iter(())

    def _messages(self) -> list[Fields]:
        value = document(self._path, self._most_bytes)
        return [mapping(message) for message in value] if isinstance(value, list) else []
