"""Entries of one record of a transcript, and the frames that the program puts around an agent's words."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import takewhile
from typing import Final

from agentwatch.sources.sessions.doing import Ended, Entry, EntryKind
from agentwatch.sources.sessions.fields import (
    Fields,
    first_line,
    inner,
    moment,
    read_notification,
    text,
    whole,
)

INTERRUPTED: Final = "[Request interrupted by user"
ERROR_TAG: Final = re.compile("</?tool_use_error>")
_REFUSED: Final = ("The user doesn't want to", "Permission to use ", INTERRUPTED)
"""How the results of tools begin that nobody allowed; of late the record says so itself."""
_FRAMES: Final = re.compile(r"^(?:\[Subagent hand-back\]|agentId: )", re.MULTILINE)
"""Lines of the program's in what an agent hands back."""
_REMINDER: Final = "<system-reminder>"
_LOCAL: Final = ("<local-command-", "<bash-")
_LOCAL_TAG: Final = re.compile(r"</?(?:local-command|bash)-\w+>")
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

_FRAME: Final = "[Subagent hand-back]"
_INDENT: Final = "  "
_TRAILER: Final = re.compile(r"^agentId: ([\w@.-]{1,128})(?= |$)", re.MULTILINE)
_COMMAND: Final = re.compile(r"<command-(name|args)>(.*?)</command-\1>", re.DOTALL)
_LIMIT: Final = re.compile(r"^ *NOTE: (this agent stopped at its \d{1,9}-turn limit[^.\n]{0,100})", re.MULTILINE)
_NOTHING: Final = frozenset({"", "(Subagent completed but returned no output.)"})


def entries(record: Fields, at: float = 0.0) -> Iterator[Entry]:
    """The entries of a record, in its order; `at` (epoch seconds) is for one that has no time."""
    at = moment(record.get("timestamp")) or at
    match record.get("type"):
        case "assistant":
            yield from answer_entries(record, at)
        case "user":
            yield from _told(record, at)
        case "system" if words := text(record, "content"):
            level = record.get("level")
            if level in _LEVELS or record.get("subtype") == "compact_boundary":
                yield Entry(at, EntryKind.NOTE, words, failed=level == "error")


def answer_entries(record: Fields, at: float) -> list[Entry]:
    """Entries of a record of the model."""
    said: list[Entry] = []
    failed = record.get("isApiErrorMessage") is True
    for block in blocks_of(record):
        match block.get("type"):
            case "text" if words := text(block, "text"):
                said.append(Entry(at, EntryKind.WORDS, words, failed=failed))
            case "thinking" if words := text(block, "thinking"):
                said.append(Entry(at, EntryKind.THOUGHT, words))
            case "tool_use" if tool := text(block, "name"):
                call, cwd = text(block, "id") or "", text(record, "cwd") or ""
                said.append(Entry(at, EntryKind.CALL, "", call, tool, inner(block, "input"), cwd=cwd))
    return said


def _told(record: Fields, at: float) -> Iterator[Entry]:
    for block in blocks_of(record):
        match block.get("type"):
            case "text" if (words := text(block, "text")) and not words.startswith(_REMINDER):
                yield _prompt(record, words, at)
            case "tool_result":
                result = inner(record, "toolUseResult")
                words = _came_back(texts(block.get("content")), result)
                failed = block.get("is_error") is True
                refused = failed and (text(record, "toolDenialKind") is not None or words.startswith(_REFUSED))
                call = text(block, "tool_use_id") or ""
                words = ERROR_TAG.sub("", words)
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
    # Looking for a word is a hundred times faster, and few have one of these.
    ends = [end for end in (words[:_ENDS], words[-_ENDS:]) if "Command " in end or " background" in end]
    is_moved = any(_MOVED.search(end) for end in ends)
    is_open = result.get("interrupted") is True or any(key in result for key in _NOT_OVER) or is_moved
    return Ended(None if is_open else 0, output, any(key in result for key in _STORED))


def _came_back(blocks: list[str], result: Fields) -> str:
    """What a tool gave back; of an agent, its words without the program's frame."""
    is_framed = any(_FRAMES.search(block) for block in blocks)
    return (handed_back(blocks, result) if is_framed else None) or "\n".join(blocks)


def _prompt(record: Fields, words: str, at: float) -> Entry:
    """What the agent was told, or what the program wrote as if somebody had told it."""
    if words.startswith(INTERRUPTED):
        return Entry(at, EntryKind.NOTE, words.strip("[]"), failed=True)
    if (told := read_notification(words)) is not None:
        return Entry(at, EntryKind.NOTE, told.told)
    if words.startswith("<command-"):
        return Entry(at, EntryKind.PROMPT, typed(words))
    is_own = record.get("isMeta") is True or record.get("isCompactSummary") is True or words.startswith(_LOCAL)
    return Entry(at, EntryKind.NOTE if is_own else EntryKind.PROMPT, _LOCAL_TAG.sub("", words))


def blocks_of(record: Fields) -> list[Fields]:
    """The blocks of a message."""
    return _blocks_in(inner(record, "message").get("content"))


def _blocks_in(content: object) -> list[Fields]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []


def handed_back(blocks: list[str], result: Fields) -> str | None:
    """An agent's words out of the parent's copy, None where it has none.

    `blocks` are the texts of the tool result, `result` its structured form, which nested agents' parents do not have.
    """
    if isinstance(result.get("content"), list):
        parts = texts(result.get("content"))
        behind = len(parts) - (whole(result, "harnessTailCount") or 0)
        report = "\n".join(parts[(whole(result, "harnessNoteCount") or 0) : behind])
    else:
        report = _unframed("\n".join(block for block in blocks if not _TRAILER.match(block)))
    return report if report.strip() not in _NOTHING else None


def cut_short(blocks: list[str], result: Fields) -> str:
    """What the program notes above an agent's words where it did not let it finish, "" where it did."""
    if isinstance(result.get("content"), list):
        notes = "\n".join(texts(result.get("content"))[: whole(result, "harnessNoteCount") or 0])
    else:
        notes, framed, _ = "\n".join(blocks).partition(_FRAME)
        notes = notes if framed else ""
    match = _LIMIT.search(notes)
    return match[1] if match is not None else ""


def named_agent(blocks: list[str]) -> str | None:
    """The agent that a tool result names in the program's own line, which is never indented."""
    return next(reversed(_TRAILER.findall(blocks[-1])), None) if blocks else None


def typed(prompt: str) -> str:
    """One line of what a human typed: a slash command is written into the transcript as tags."""
    if prompt.startswith("<command-"):
        parts = dict(_COMMAND.findall(prompt))
        return first_line(f"{parts.get('name', '')} {first_line(parts.get('args', ''))}")
    return first_line(prompt)


def _unframed(text: str) -> str:
    lines = text.split("\n")
    start = next((index for index, line in enumerate(lines, 1) if line.startswith(_FRAME)), None)
    if start is None:
        return text
    framed = takewhile(lambda line: not line or line.startswith(_INDENT), lines[start:])
    return "\n".join(line.removeprefix(_INDENT) for line in framed)


def texts(content: object) -> list[str]:
    """The text blocks of a message's or a tool result's content, which may be one string."""
    said = [block.get("text") for block in _blocks_in(content) if block.get("type") == "text"]
    return [words for words in said if isinstance(words, str)]
