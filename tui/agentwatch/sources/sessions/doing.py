"""What an agent does: entries, which one record of any program says, and the last of them, which a run shows."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Sequence
from enum import StrEnum
from hashlib import sha256
from typing import Final, NamedTuple

from agentwatch.contracts.shapes import Todo
from agentwatch.delegation.run import LONGEST_DOING, Activity, ActivityKind, todo_moved
from agentwatch.sources.sessions.fields import Fields, first_line, mapping, text

_PATHS: Final = ("file_path", "filePath", "notebook_path", "absolute_path", "path", "dir_path")
_SAYING: Final = (
    *("command", "cmd", "pattern", "regex", *_PATHS, "url", "query", "description"),
    *("task_name", "subagent_type", "agent_type", "skill", "subject"),
)
"""The arguments that tell most of a call, the best first."""

_PATCHED: Final = re.compile(r"^\*\*\* (?:Add|Update|Delete) File: (\S.*)$", re.MULTILINE)
"""In a patch as Codex takes it, and other programs by now."""
_BEGINNING: Final = 2_000
_BLIND: Final = 100
"""As long as this, a text without a space in it is encrypted, or no words."""

_SHELLS: Final = ("-lc", "-c")
_MOST_OPEN: Final = 100


class EntryKind(StrEnum):
    """What a part of a record is: something said, a call of a tool, what came of one, or what the agent was told."""

    WORDS = "words"
    CALL = "call"
    RESULT = "result"
    PROMPT = "prompt"
    THOUGHT = "thought"
    NOTE = "note"
    """What the program tells: that a turn was broken off, what it answered itself."""


class Ended(NamedTuple):
    """How a command came out, as the program's own record of it says.

    `exit_code` is None where it is not said: the command runs on in the background, was killed, or is told of in words
    alone. `output` is what it printed, as far as it is kept; `is_cut`: the record says that this is not all of it.
    It is foreign.
    """

    exit_code: int | None
    output: str
    is_cut: bool = False


class Entry(NamedTuple):
    """One thing that a record says, whole. Texts are foreign and unsanitised; `at` is in seconds since the epoch.

    `text` is what was said, told or came of a call. `call` is the id of a call, and stands in its result, too; `tool`
    is the program's name for the tool, `given` its arguments. `refused`: a human, or a rule or hook of theirs, did not
    allow it; then it has `failed`, too. `cwd` is the directory in which a call was made, "" where that is not said;
    `ended` how a command came out, if the call ran one, None where nothing of the kind is told.
    """

    at: float
    kind: EntryKind
    text: str = ""
    call: str = ""
    tool: str = ""
    given: Fields = mapping(None)
    failed: bool = False
    refused: bool = False
    cwd: str = ""
    ended: Ended | None = None


def about(tool: str, given: Fields, places: Sequence[str] = ()) -> str:
    """The main argument of a call in one line; a path below one of the `places` stands from there on."""
    for key in () if tool.startswith("mcp__") else _SAYING:
        if isinstance(value := given.get(key), str | list) and (words := first_line(_words(value), LONGEST_DOING)):
            return _within(words, places) if key in _PATHS else words
    for value in given.values():
        if not isinstance(value, str):
            continue
        if (patched := _PATCHED.search(value[:_BEGINNING])) is not None:
            return _within(patched[1].strip(), places)[:LONGEST_DOING]
        words = first_line(value, LONGEST_DOING)
        if words and not words.startswith("```") and (len(words) < _BLIND or " " in words):
            return words
    asked = next((question for value in given.values() if (question := _inside(value))), "")
    return first_line(asked, LONGEST_DOING)


def command_in(given: Fields) -> str:
    """The whole line that a shell was given, "" where there is none."""
    value = next((value for key in ("command", "cmd") if isinstance(value := given.get(key), str | list)), "")
    return _words(value).strip()


def _words(value: str | list[object]) -> str:
    """A command may be a list: that of a shell holds the line in its last part."""
    if isinstance(value, str):
        return value
    parts = [part for part in value if isinstance(part, str)]
    return parts[-1] if len(parts) == 3 and parts[1] in _SHELLS else shlex.join(parts)


def _inside(value: object) -> str:
    """The words of the first object of a list: a question, a todo."""
    first = mapping(value[0] if isinstance(value, list) and value else None)
    return next((words for key in ("question", "content", "step", *_SAYING) if (words := text(first, key))), "")


def _within(path: str, places: Sequence[str]) -> str:
    inside = (path[len(place) + 1 :] for place in places if path.startswith(f"{place}/"))
    return next(filter(None, inside), path)


class Pulse:
    """What one agent does, after the entries that were taken in. It depends on these alone."""

    def __init__(self, places: Sequence[str] = ()) -> None:
        self.open: dict[str, Activity] = {}
        """The calls of the last message that have no result yet, by id."""
        self._places = places
        self._doing: Activity | None = None
        self._call = ""
        """The id of the call that it is about."""
        self._last = b""
        """The digest of the last call."""
        self._repeats = 0

    @property
    def doing(self) -> Activity | None:
        """What it does, or did last; None where nothing of it was said since it was told something."""
        doing = self._doing
        if doing is not None and doing.kind is ActivityKind.TOOL and doing.over and self.open:
            # What still runs says more than what is over.
            return next(reversed(self.open.values()))
        return doing

    def take(self, entry: Entry) -> None:
        """Something was said or done."""
        match entry.kind:
            case EntryKind.WORDS:
                if (said := words_of(entry)).about:
                    self._does(said)
            case EntryKind.CALL:
                self._count(digest_of_call(entry.tool, entry.given))
                doing = call_of(entry, self._places, self._repeats)
                self._does(doing, entry.call)
                self.open.pop(entry.call, None)
                if len(self.open) < _MOST_OPEN:
                    self.open[entry.call] = doing
            case EntryKind.RESULT:
                is_known, before = self.open.pop(entry.call, None) is not None, self._doing
                if is_known and entry.call == self._call and before is not None and before.kind is ActivityKind.TOOL:
                    self._doing = before._replace(over=True)
            case EntryKind.PROMPT:
                self._does(None)
                self._repeats = 0
                self.go_on()

    def go_on(self) -> None:
        """There is another message: of calls in the one before, no result is waited for."""
        self.open.clear()

    def listed(self, before: Iterable[Todo] | None, after: Iterable[Todo] | None, at: float) -> None:
        """The checklist is another one: what has moved in it says more than the call that changed it."""
        if (moved := todo_moved(before, after, at)) is not None:
            self._does(moved)

    def _does(self, doing: Activity | None, call: str = "") -> None:
        self._doing, self._call = doing, call

    def _count(self, digest: bytes) -> None:
        self._repeats = self._repeats + 1 if self._repeats and digest == self._last else 1
        self._last = digest


def call_of(entry: Entry, places: Sequence[str] = (), repeats: int = 1) -> Activity:
    """What an agent does that calls a tool."""
    return Activity(entry.at, ActivityKind.TOOL, entry.tool, about(entry.tool, entry.given, places), repeats=repeats)


def words_of(entry: Entry) -> Activity:
    """What an agent does that says something."""
    return Activity(entry.at, ActivityKind.WORDS, about=first_line(entry.text, LONGEST_DOING))


def digest_of_call(tool: str, given: Fields) -> bytes:
    """Equal for calls of a tool with the same arguments, in every process."""
    return sha256(f"{tool}\n{json.dumps(given, sort_keys=True)}".encode("utf-8", "surrogatepass")).digest()
