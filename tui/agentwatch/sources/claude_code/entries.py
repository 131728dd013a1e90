"""What one record of a transcript says, and what the agent does by it, also where the record was not parsed."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Final

from agentwatch.delegation.run import Activity
from agentwatch.sources.claude_code.frames import handed_back, texts, typed
from agentwatch.sources.sessions.doing import Ended, Entry, EntryKind, Pulse, call_of, digest_of_call
from agentwatch.sources.sessions.fields import Fields, inner, listed, mapping, moment, read_notification, text

_DECODER: Final = json.JSONDecoder()
_INTERRUPTED: Final = "[Request interrupted by user"
_REFUSED: Final = ("The user doesn't want to", "Permission to use ", _INTERRUPTED)
"""How the results of tools begin that nobody allowed; of late the record says so itself."""
_FRAMES: Final = re.compile(r"^(?:\[Subagent hand-back\]|agentId: )", re.MULTILINE)
"""Lines of the program's in what an agent hands back."""
_REMINDER: Final = "<system-reminder>"
_LOCAL: Final = ("<local-command-", "<bash-")
_LOCAL_TAG: Final = re.compile(r"</?(?:local-command|bash)-\w+>")
_ERROR_TAG: Final = re.compile("</?tool_use_error>")
_EXIT: Final = re.compile(r"(?:Error: )?Exit code (-?\d{1,9})(?:\n|\Z)")
_MOVED: Final = re.compile(
    r"\bCommand (?:running in|was (?:manually )?(?:moved|backgrounded)|timed out|did not complete)"
    r"|\b(?:in|into|to) the background\b"
)
"""Words of the program for a command that goes on in the background; they may follow what it has printed."""
_ENDS: Final = 2_000
"""Characters at both ends of a result that are searched for them."""
_NOT_OVER: Final = ("backgroundTaskId", "returnCodeInterpretation", "backgroundedByUser", "assistantAutoBackgrounded")
_STORED: Final = ("persistedOutputPath", "persistedOutputSize")
_LEVELS: Final = ("error", "warning")


def entries(record: Fields, at: float = 0.0) -> Iterator[Entry]:
    """What a record says, in its order; `at` (epoch seconds) is for one that has no time."""
    at = moment(record.get("timestamp")) or at
    match record.get("type"):
        case "assistant":
            yield from _answered(record, at)
        case "user":
            yield from _told(record, at)
        case "system" if words := text(record, "content"):
            level = record.get("level")
            if level in _LEVELS or record.get("subtype") == "compact_boundary":
                yield Entry(at, EntryKind.NOTE, words, failed=level == "error")


def _answered(record: Fields, at: float) -> Iterator[Entry]:
    failed = record.get("isApiErrorMessage") is True
    for block in _blocks(record):
        match block.get("type"):
            case "text" if words := text(block, "text"):
                yield Entry(at, EntryKind.WORDS, words, failed=failed)
            case "thinking" if words := text(block, "thinking"):
                yield Entry(at, EntryKind.THOUGHT, words)
            case "tool_use" if tool := text(block, "name"):
                call, cwd = text(block, "id") or "", text(record, "cwd") or ""
                yield Entry(at, EntryKind.CALL, "", call, tool, inner(block, "input"), cwd=cwd)


def _told(record: Fields, at: float) -> Iterator[Entry]:
    for block in _blocks(record):
        match block.get("type"):
            case "text" if (words := text(block, "text")) and not words.startswith(_REMINDER):
                yield _prompt(record, words, at)
            case "tool_result":
                result = inner(record, "toolUseResult")
                words = _came_back(texts(block.get("content")), result)
                failed = block.get("is_error") is True
                refused = failed and (text(record, "toolDenialKind") is not None or words.startswith(_REFUSED))
                call = text(block, "tool_use_id") or ""
                words = _ERROR_TAG.sub("", words)
                ended = None if refused else _ended(words, result, failed=failed)
                yield Entry(at, EntryKind.RESULT, words, call, failed=failed, refused=refused, ended=ended)


def _ended(words: str, result: Fields, *, failed: bool) -> Ended:
    """How a command came out, if this is the result of one: a code that is not 0 stands before what it printed."""
    if failed:
        told = _EXIT.match(words)
        output = words[told.end() :] if told is not None else words
        return Ended(int(told[1]) if told is not None else None, output)
    parts = [part for key in ("stdout", "stderr") if (part := text(result, key))]
    output = "\n".join(parts) if "stdout" in result else words
    # Of some tools, such as grep, another code is no failure, and told in words.
    is_moved = _MOVED.search(words[:_ENDS]) or _MOVED.search(words[-_ENDS:])
    is_open = result.get("interrupted") is True or any(key in result for key in _NOT_OVER) or is_moved
    return Ended(None if is_open else 0, output, any(key in result for key in _STORED))


def _came_back(blocks: list[str], result: Fields) -> str:
    """What a tool gave back; of an agent, its words without the program's frame."""
    is_framed = any(_FRAMES.search(block) for block in blocks)
    return (handed_back(blocks, result) if is_framed else None) or "\n".join(blocks)


def _prompt(record: Fields, words: str, at: float) -> Entry:
    """What the agent was told, or what the program wrote as if somebody had told it."""
    if words.startswith(_INTERRUPTED):
        return Entry(at, EntryKind.NOTE, words.strip("[]"), failed=True)
    if (told := read_notification(words)) is not None:
        return Entry(at, EntryKind.NOTE, told.told)
    if words.startswith("<command-"):
        return Entry(at, EntryKind.PROMPT, typed(words))
    is_own = record.get("isMeta") is True or record.get("isCompactSummary") is True or words.startswith(_LOCAL)
    return Entry(at, EntryKind.NOTE if is_own else EntryKind.PROMPT, _LOCAL_TAG.sub("", words))


def _blocks(record: Fields) -> Iterator[Fields]:
    message = inner(record, "message")
    whole = text(message, "content")
    return map(mapping, listed(message, "content") if whole is None else [{"type": "text", "text": whole}])


class ClaudePulse(Pulse):
    """That of an agent of which most records are only seen at a glance."""

    def __init__(self, places: Sequence[str] = ()) -> None:
        super().__init__(places)
        self._glimpse: bytes | None = None
        """The last call, if it was not parsed: from the name of the tool on."""
        self._written = b""
        """When that was made, as long as it is what the agent does, and nobody has asked."""

    @property
    def doing(self) -> Activity | None:
        if self._written:
            tool, given = call_in(self._glimpse or b"")
            entry = Entry(moment(self._written.decode()) or 0.0, EntryKind.CALL, tool=tool, given=given)
            self._does(call_of(entry, self._places, self._repeats)._replace(over=True))
        return super().doing

    def take(self, entry: Entry) -> None:
        super().take(entry)
        if entry.kind is EntryKind.PROMPT:
            self._glimpse = None

    def glimpsed(self, call: bytes, written: bytes) -> None:
        """A call whose result is there, too: from the name of the tool on, and when it was made, in ISO 8601."""
        before = self._glimpse
        if call == before:
            self._repeats += 1
        elif before is not None and (len(call) != len(before) or sum(call) != sum(before)):
            self._repeats = 1
        else:
            # The same arguments may stand in another order.
            self._count(digest_of_call(*call_in(call)))
        self._glimpse, self._written = call, written

    def _does(self, doing: Activity | None, call: str = "") -> None:
        self._written = b""
        super()._does(doing, call)

    def _count(self, digest: bytes) -> None:
        if self._glimpse is not None:
            self._last, self._glimpse = digest_of_call(*call_in(self._glimpse)), None
        super()._count(digest)


def call_in(call: bytes) -> tuple[str, Fields]:
    """The tool and its arguments, in what follows `"name":"` in a transcript."""
    try:
        block = mapping(_DECODER.raw_decode('{"name":"' + call.decode("utf-8", "replace"))[0])
    except (ValueError, RecursionError):
        return "", {}
    return text(block, "name") or "", inner(block, "input")
