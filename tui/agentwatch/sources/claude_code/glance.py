"""What the lines of a transcript say at a glance, without being parsed: most of them show only that the agent goes on.

An unescaped quote stands only around keys and values of the JSON itself, never inside a text. Whatever is not written
in exactly the way that is looked for here is parsed as a whole, so a miss costs time and nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import Final

from agentwatch.delegation.run import RunState
from agentwatch.sources.claude_code.conversation import INTERRUPTED, Conversation
from agentwatch.sources.sessions.tail import Line

_TOLD_ELSEWHERE: Final = frozenset(
    b"api-request api-request-blob api-request-shape atis-latch cost-state file-history-snapshot last-prompt"
    b" tools-used".split()
)
"""Records that say nothing which the others do not say; together they are most of a transcript's bytes."""

_TYPE: Final = re.compile(rb'"type":\s*"([^"\\]{1,60})"')
_ATTACHMENT: Final = b'"attachment":{'
_TELLING_ATTACHMENTS: Final = (b"queued_command", b"hook_permission_decision")
_OWN: Final = b'"isSidechain":false'
_ABOUT: Final = re.compile(rb'"(?:tool_use_id|parentToolUseID)":\s*"([^"\\]{1,200})"')
_INTERRUPTED: Final = INTERRUPTED.encode()
_RARE: Final = b"q"
_UUID: Final = b'"uuid":"'
_TIMESTAMP: Final = b'"timestamp":"'
_TIME: Final = re.compile(rb'"timestamp":"(\d{4}-[01]\d-[0-3]\dT[012]\d:[0-5]\d:[0-5]\d(?:\.\d{1,6})?Z)"')
_NAME_AND_TIME: Final = re.compile(rb'"uuid":"[^"\\]{1,100}",' + _TIME.pattern)

_MESSAGE: Final = b'"message":'
_USER: Final = b'"type":"user","message":'
_TEXT: Final = b'"text"'
_USE: Final = b'"tool_use"'
_EITHER: Final = b'"t'
_REASON: Final = b'"stop_reason":'
_ERROR: Final = b'"isApiErrorMessage"'
_ASSISTANT: Final = b'"type":"assistant",'
# The result of a tool, marked by an empty group, or a message of the model: it thinks, says something, marked so as
# well, or uses a tool. A name is of printable ASCII without quotes and backslashes.
_OPENING: Final = re.compile(
    rb'(?:"role":"user","content":\[\{(?:"tool_use_id":"[^"\\]{1,200}",)?"type":"tool_result"()'
    rb'|(?:"(?:id":"([ !#-\[\]-~]{1,200})|model":"([ !#-\[\]-~]{1,200})|type":"message|role":"assistant)",)+'
    rb'"content":\[\{"type":"(?:thinking"|text","text":"()'
    rb'|tool_use","id":"([^"\\]{1,200})","name":"([ !#-\[\]-~]{1,200})"))'
)
_RESULT: Final = 1
_MESSAGE_ID: Final = 2
_TOOL: Final = 6
_ERRONEOUS: Final = b'"is_error":true'
_BEHIND_ERROR: Final = 300
"""Bytes in which that stands before the name of its record."""
_PERMITTED: Final = b'"permissionDecision":'
_LAST_KEYS: Final = 4096
"""Bytes from there to the end of a record, at most."""
_UNASKED: Final = b'{"decision":"accept","source":"config"'
"""Nobody was asked about a call."""
_LONGEST_CALL: Final = 256 * 1024
_CLOSING: Final = re.compile(
    rb'"stop_reason":(?:null|"tool_use"),(?:"stop_sequence":null,)?"usage":\{"input_tokens":(\d{1,12}),'
    rb'(?:"cache_creation_input_tokens":(\d{1,12}),)?"cache_read_input_tokens":\d{1,12},'
    rb'(?:"cache_creation":\{[^{}]*\},)?"output_tokens":(\d{1,12})[,}]'
)
_ENDING: Final = re.compile(rb'"type":"assistant","uuid":"([ !#-\[\]-~]{1,100})",' + _TIME.pattern)


class Glance:
    """Takes in what it can of one transcript; the rest is parsed where it is asked for, line by line.

    `conversation` is that of the file's own agent. `telling` are the tools whose use says more than that there is one,
    `awaited` the uses of tools, by id, of which everything is parsed.
    """

    def __init__(
        self, conversation: Conversation, telling: Collection[str], awaited: Collection[str], *, is_agent: bool
    ) -> None:
        self.begun = False
        """Whether all is known that only the first records tell: until then, each is parsed."""
        self.unanswered: set[str] = set()
        """Uses of tools whose results are parsed as well."""
        self.unnamed: set[str] = set()
        """Those whose progress is parsed as well."""
        self._conversation = conversation
        self._telling = frozenset(name.encode() for name in telling)
        self._awaited = awaited
        self._is_agent = is_agent
        self._uuids: set[int] = set()

    def is_new(self, uuid: bytes) -> bool:
        """Some records are written twice, when a session is gone on with."""
        before = len(self._uuids)
        # As a number that is the same in every process, as what it comes to may be kept for another one.
        self._uuids.add(hash(int.from_bytes(uuid, "big")))
        return len(self._uuids) > before

    def left(self, stretch: Line) -> Iterator[Line]:
        """Take in the lines of a stretch. Gives those that have to be parsed, each before the next one is looked at."""
        # One loop with few calls of our own: it goes round a hundred thousand times for 100 MB.
        offset, buffer, start, stop = stretch
        begin = offset - start
        find, ends_with = buffer.find, buffer.endswith
        while start < stop:
            end = find(b"\n", start, stop)
            if end < 0:
                end = stop
            opening = self._opening(buffer, start, end) if self.begun else None
            if opening is None:
                is_known = self._takes_aside(buffer, start, end)
            elif opening.lastindex == _RESULT:
                is_known = ends_with(_USER, start, opening.start() - 1) and self._takes_result(buffer, opening, end)
            else:
                is_known = self._takes_step(buffer, opening, end, stop)
            if not is_known:
                yield Line(begin + start, buffer, start, end)
            start = end + 1

    def _opening(self, buffer: bytes, start: int, end: int) -> re.Match[bytes] | None:
        """How the message in a line begins, where it is surely that of the file's own agent."""
        brace = buffer.find(b"{", start + 1, end)
        if brace < 0 or not buffer.endswith(_MESSAGE, start, brace):
            return None
        is_own = self._is_agent or buffer.find(_OWN, start, brace) >= 0
        return _OPENING.match(buffer, brace + 1, end) if is_own else None

    def _takes_result(self, buffer: bytes, opening: re.Match[bytes], end: int) -> bool:
        """The result of a tool: the agent lives."""
        behind = opening.end()
        # One letter is found much faster than a text, and few results have this one.
        rare = buffer.find(_RARE, behind, end)
        if rare >= 0 and buffer.find(_INTERRUPTED, rare - _INTERRUPTED.index(_RARE), end) >= 0:
            return False
        written = _last(_UUID, _NAME_AND_TIME, buffer, behind, end)
        if written is None or self._tells(buffer, opening.start(), end, self.unanswered):
            return False
        if _may_be_asked_about(buffer, behind, written.start(), end):
            return False
        self._conversation.seen(written[1])
        return True

    def _takes_step(self, buffer: bytes, opening: re.Match[bytes], end: int, stop: int) -> bool:
        """A record of the model in the middle of its work: it thinks, uses a tool, or says that it will.

        `stop` is where the stretch ends. A use whose result is not in it may be one that a human is asked about.
        """
        if self._conversation.state is not RunState.WORKING:
            return False
        _, message_id, model, words, use, tool = opening.groups()
        if message_id is None or tool in self._telling:
            return False
        if words is not None and not self._leads_to_use(buffer, message_id, end, stop):
            return False
        if use is not None and buffer.find(b'"tool_use_id":"%b"' % use, end, stop) < 0:
            return False
        behind, call = opening.end(), opening.start(_TOOL)
        reason = buffer.rfind(_REASON, behind, end)
        if tool is not None and reason - call > _LONGEST_CALL:
            return False
        closing = _CLOSING.match(buffer, reason, end) if reason >= 0 else None
        if closing is None:
            return False
        place = buffer.rfind(_ASSISTANT, closing.end(), end)
        ending = _ENDING.match(buffer, place, end) if place >= 0 else None
        if ending is None or buffer.find(_ERROR, reason, end) >= 0:
            return False
        # One block, which the opening has shown, and no other behind it.
        either = buffer.find(_EITHER, behind, reason)
        if either >= 0 and (buffer.find(_TEXT, either, reason) >= 0 or buffer.find(_USE, either, reason) >= 0):
            return False
        uuid, written = ending.groups()
        if self.is_new(uuid):
            read, cached, said = closing.groups()
            tokens = int(read) + int(cached or 0) + int(said)
            self._conversation.seen(written)
            name = model.decode() if model is not None else None
            self._conversation.stepped(message_id.decode(), name, tokens, uses_tools=tool is not None)
            if tool is not None:
                glimpse = buffer[call:reason]
                self._conversation.pulse.glimpsed(glimpse, written)
                self._conversation.permits.called(use.decode(), glimpse)
        return True

    def _leads_to_use(self, buffer: bytes, message_id: bytes, end: int, stop: int) -> bool:
        """Whether the line behind `end` uses a tool in the same message: that is what the agent does then."""
        behind = buffer.find(b"\n", end + 1, stop)
        after = self._opening(buffer, end + 1, behind if behind >= 0 else stop)
        return after is not None and after[_MESSAGE_ID] == message_id and after[_TOOL] is not None

    def _takes_aside(self, buffer: bytes, start: int, end: int) -> bool:
        """What is neither said by the model nor given by a tool: progress, and what surrounds the agent."""
        found = _TYPE.search(buffer, start, end)
        if found is None:
            return not buffer[start:end].strip()
        kind = found[1]
        if kind in _TOLD_ELSEWHERE:
            return True
        brace = buffer.find(b"{", start + 1, end)
        # What is not surely the session's own may be one of an agent in its file.
        is_own = self._is_agent or (brace >= 0 and buffer.find(_OWN, start, brace) >= 0)
        if not self.begun or not is_own:
            return False
        is_attachment = buffer.endswith(_ATTACHMENT, start, found.start())
        if kind in _TELLING_ATTACHMENTS if is_attachment else kind != b"progress":
            return False
        written = _last(_TIMESTAMP, _TIME, buffer, start, end)
        if written is None or self._tells(buffer, start, end, self.unnamed):
            return False
        self._conversation.seen(written[1])
        return True

    def _tells(self, buffer: bytes, start: int, end: int, uses: Collection[str]) -> bool:
        """Whether a record is about one of these uses of a tool, one that is awaited, or one that is unanswered."""
        unanswered = self._conversation.pulse.open
        if not uses and not self._awaited and not unanswered:
            return False
        names = [name.decode("utf-8", "replace") for name in _ABOUT.findall(buffer, start, end)]
        return any(name in uses or name in self._awaited or name in unanswered for name in names)


def _may_be_asked_about(buffer: bytes, start: int, place: int, end: int) -> bool:
    """Whether the result of a tool may say who allowed or refused it: not if nobody was asked, as older programs do.

    `place` is where the name of the record stands.
    """
    if buffer.find(_ERRONEOUS, max(start, place - _BEHIND_ERROR), place) >= 0:
        return True
    decided = buffer.rfind(_PERMITTED, max(start, end - _LAST_KEYS), end)
    return decided >= 0 and not buffer.startswith(_UNASKED, decided + len(_PERMITTED))


def _last(mark: bytes, pattern: re.Pattern[bytes], buffer: bytes, start: int, end: int) -> re.Match[bytes] | None:
    """When a record was written: the match of the pattern at the last mark. None where that is not sure.

    What a tool gave may stand in it as an object with a name and a time of its own. Where an object ends behind the
    mark, and it is not the record, there must be no other mark.
    """
    place = buffer.rfind(mark, start, end)
    found = pattern.match(buffer, place, end) if place >= 0 else None
    if found is None or (buffer.find(b"}", found.end(), end) != end - 1 and buffer.find(mark, start, place) >= 0):
        return None
    return found
