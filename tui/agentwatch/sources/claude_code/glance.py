"""What a line of a transcript says at a glance, without being parsed: most of them matter for one or two values only.

An unescaped quote stands only around keys and values of the JSON itself, never inside a text. Whatever is not written
in exactly the way that is looked for here is parsed as a whole, so a miss costs time and nothing else.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from agentwatch.sources.claude_code.conversation import INTERRUPTED
from agentwatch.sources.sessions.tail import Line

TOLD_ELSEWHERE: Final = frozenset(
    {
        b"api-request",
        b"api-request-blob",
        b"api-request-shape",
        b"atis-latch",
        b"cost-state",
        b"file-history-snapshot",
        b"last-prompt",
        b"tools-used",
    }
)
"""Records that say nothing which the others do not say; together they are most of a transcript's bytes."""

_TYPE: Final = re.compile(rb'"type":\s*"([^"\\]{1,60})"')
_ATTACHMENT: Final = b'"attachment":{'
_OWN: Final = b'"isSidechain":false'
_RESULT: Final = re.compile(
    rb',"message":\{"role":"user","content":\[\{(?:"tool_use_id":"[^"\\]{1,200}",)?"type":"tool_result"'
)
_ABOUT: Final = re.compile(rb'"(?:tool_use_id|parentToolUseID)":\s*"([^"\\]{1,200})"')
_INTERRUPTED: Final = INTERRUPTED.encode()
_UUID: Final = b'"uuid":"'
_TIME: Final = rb'"timestamp":"(\d{4}-[01]\d-[0-3]\dT[012]\d:[0-5]\d:[0-5]\d(?:\.\d{1,6})?Z)"'
_WRITTEN: Final = re.compile(rb'"uuid":"[^"\\]{1,100}",' + _TIME)

_MESSAGE: Final = b'"message":'
_TEXT: Final = b'"text"'
_USE: Final = b'"tool_use"'
_STOP: Final = b'"stop_reason":'
_ERROR: Final = b'"isApiErrorMessage"'
_ASSISTANT: Final = b'"type":"assistant",'
# A name is of printable ASCII without quotes and backslashes.
_OPENING: Final = re.compile(
    rb'(?:"(?:id":"([ !#-\[\]-~]{1,200})|model":"([ !#-\[\]-~]{1,200})|type":"message|role":"assistant)",)+'
    rb'"content":\[\{"type":"(?:thinking|tool_use","id":"[^"\\]{1,200}","name":"([ !#-\[\]-~]{1,200}))"'
)
_CLOSING: Final = re.compile(
    rb'"stop_reason":(?:null|"tool_use"),(?:"stop_sequence":null,)?"usage":\{"input_tokens":(\d{1,12}),'
    rb'(?:"cache_creation_input_tokens":(\d{1,12}),)?"cache_read_input_tokens":\d{1,12},'
    rb'(?:"cache_creation":\{[^{}]*\},)?"output_tokens":(\d{1,12})[,}]'
)
_ENDING: Final = re.compile(rb'"type":"assistant","uuid":"([ !#-\[\]-~]{1,100})",' + _TIME)


class Step(NamedTuple):
    """A record of the model in the middle of its work: it thinks, or uses a tool, and says nothing.

    `uuid` is the record's own, `tokens` are those of the message as far as it is written, `written` is its time in
    ISO 8601 of UTC, `tool` is None where it thinks.
    """

    uuid: str
    message_id: str
    model: str | None
    tokens: int
    written: bytes
    tool: str | None


def kind_of(line: Line) -> tuple[bytes, int, int]:
    """The first type that is named in a line, of the record itself or of what stands in it before, and its place."""
    found = _TYPE.search(line.buffer, line.start, line.end)
    return (found[1], *found.span()) if found is not None else (b"", line.start, line.start)


def is_own(line: Line) -> bool:
    """Whether the record is surely not one of an agent in the session's own file."""
    buffer, brace = line.buffer, line.buffer.find(b"{", line.start + 1, line.end)
    return brace >= 0 and buffer.find(_OWN, line.start, brace) >= 0


def is_routine(line: Line, kind: bytes, start: int, end: int) -> bool:
    """Whether the record is a sign of life and nothing else: the result of a tool, progress, or what surrounds the
    agent. `start` and `end` are the place of its kind."""
    if kind == b"user":
        is_result = _RESULT.match(line.buffer, end, line.end) is not None
        return is_result and line.buffer.find(_INTERRUPTED, end, line.end) < 0
    if line.buffer.endswith(_ATTACHMENT, line.start, start):
        return kind != b"queued_command"
    return kind == b"progress"


def uses_in(line: Line) -> list[str]:
    """The ids of the uses of tools that a record is about."""
    return [name.decode("utf-8", "replace") for name in _ABOUT.findall(line.buffer, line.start, line.end)]


def time_of(line: Line) -> bytes | None:
    """When the record was written, in ISO 8601 of UTC; None where that is not seen at a glance."""
    start = line.buffer.rfind(_UUID, line.start, line.end)
    written = _WRITTEN.match(line.buffer, start, line.end) if start >= 0 else None
    return written[1] if written is not None else None


def step_of(line: Line) -> Step | None:
    """The step that a record of the model is, None for everything that has to be parsed."""
    _, buffer, start, end = line
    brace, stop = buffer.find(b"{", start + 1, end), buffer.rfind(_STOP, start, end)
    if brace < 0 or stop < 0 or not buffer.endswith(_MESSAGE, start, brace):
        return None
    opening, closing = _OPENING.match(buffer, brace + 1, end), _CLOSING.match(buffer, stop, end)
    ending = _ENDING.match(buffer, max(buffer.rfind(_ASSISTANT, stop, end), stop), end)
    if opening is None or closing is None or ending is None or buffer.find(_ERROR, stop, end) >= 0:
        return None
    message_id, model, tool = opening.groups()
    # One block, which the opening has shown, and no other behind it.
    if buffer.find(_TEXT, brace, stop) >= 0 or buffer.count(_USE, brace, stop) != (tool is not None):
        return None
    if message_id is None:
        return None
    uuid, written = ending.groups()
    read, cached, said = closing.groups()
    return Step(
        uuid.decode(),
        message_id.decode(),
        model.decode() if model is not None else None,
        int(read) + int(cached or 0) + int(said),
        written,
        tool.decode() if tool is not None else None,
    )
