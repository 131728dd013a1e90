"""Activity of an agent: entries, which one record of any program says, and the last of them, which a run shows."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Sequence
from enum import StrEnum
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


class ActivityLog:
    """The activity of one agent by its entries alone. `places` are the spellings of the workspace."""

    def __init__(self, places: Sequence[str] = ()) -> None:
        self.open: dict[str, tuple[Entry, int]] = {}
        """The calls of the last message that have no result yet, by id, and how often each was repeated."""
        self._places = places
        self._last: Entry | Activity | None = None
        """The last words, call or todo."""
        self._is_over = False
        self._call: Entry | None = None
        self._repeats = 0
        """How often the last call was made, without another one between."""

    @property
    def doing(self) -> Activity | None:
        """What it does, or did last; None where nothing of it was said since it was told something."""
        last = self._last
        if last is None or isinstance(last, Activity):
            return last
        if last.kind is EntryKind.WORDS:
            return Activity(last.at, ActivityKind.WORDS, about=first_line(last.text, LONGEST_DOING))
        call, repeats, is_over = last, self._repeats, self._is_over
        if is_over and self.open:
            # What still runs says more than what is over.
            (call, repeats), is_over = next(reversed(self.open.values())), False
        given = about(call.tool, call.given, self._places)
        return Activity(call.at, ActivityKind.TOOL, call.tool, given, is_over, repeats)

    def add(self, entry: Entry) -> None:
        """Something was said or done."""
        match entry.kind:
            case EntryKind.WORDS:
                if entry.text and not entry.text.isspace():
                    self._last = entry
            case EntryKind.CALL:
                before, self._call, self._last, self._is_over = self._call, entry, entry, False
                is_same = before is not None and (before.tool, before.given) == (entry.tool, entry.given)
                self._repeats = self._repeats + 1 if is_same and self._repeats else 1
                self.open.pop(entry.call, None)
                if len(self.open) < _MOST_OPEN:
                    self.open[entry.call] = entry, self._repeats
            case EntryKind.RESULT:
                self.end_call(entry.call)
            case EntryKind.PROMPT:
                self.begin()

    def end_call(self, call: str) -> Entry | None:
        """A call has its result; returns the call, None where it is not open."""
        entry, _ = self.open.pop(call, (None, 0))
        if entry is not None and entry is self._last:
            self._is_over = True
        return entry

    def begin(self) -> None:
        """The agent was told something."""
        self._last, self._repeats = None, 0
        self.open.clear()

    def list(self, before: Iterable[Todo] | None, after: Iterable[Todo] | None, at: float) -> None:
        """The checklist is another one: what has moved in it says more than the call that changed it."""
        self._last = todo_moved(before, after, at) or self._last
