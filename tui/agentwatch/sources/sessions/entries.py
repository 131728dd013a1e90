"""Entries (the parts of a line of a transcript), acts (an agent's uses of tools), and steps (rows on the screen)."""

import errno
import json
import posixpath
import re
import shlex
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from enum import StrEnum
from itertools import islice
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

from agentwatch.contracts.shapes import Todo, TodoStatus
from agentwatch.delegation.events import LONGEST_DOING
from agentwatch.sources.sessions.fields import (
    Fields,
    Line,
    Tail,
    as_object,
    digest_of,
    directory_in,
    first_line,
    objects,
    record_at,
    text,
)
from agentwatch.text import shorten_paths

_MOST_TODOS = 1000
_LONGEST_TODO = 500
_STEP = ("content", "step", "description")  # the possible keys of a checklist item's text
TODO_STATUSES = {"pending": TodoStatus.PENDING, "in_progress": TodoStatus.IN_PROGRESS, "completed": TodoStatus.DONE}

Place = tuple[int, int]  # the place of a line of a transcript in its file, and the number of an entry in this line

_FILES = ("file_path", "filePath", "notebook_path", "absolute_path", "path")
_MAIN_ARGUMENTS = (
    *("command", "cmd", "pattern", "regex", *_FILES, "dir_path", "url", "query", "description"),
    *("task_name", "subagent_type", "agent_type", "skill", "subject"),
)  # names of the arguments that describe a call best, the best first
_PLACES = ("workdir", "cwd", "directory", "dir_path")
_SHARED = ("shellId", "session_id", "sessionId")  # arguments that name a shell for several calls
_PATCHED = re.compile(r"^\*\*\* (?:Add File|Update File|Delete File|Move to): (\S.*)$", re.MULTILINE)
_BEGINNING = 2_000
_BLIND = 100  # a text of this length without a space has no words: it may be encrypted
_SHELLS = ("-lc", "-c")


class EntryKind(StrEnum):
    """The kind of an entry. A note is a text of the program itself, for example about an interrupted turn."""

    WORDS = "words"
    CALL = "call"
    RESULT = "result"
    PROMPT = "prompt"
    THOUGHT = "thought"
    NOTE = "note"


class CommandEnd(NamedTuple):
    """The end of a command, as the program recorded it. `output` is untrusted. If `is_cut`, the program says that the
    output is incomplete. `exit_code` is None if the program recorded none, for example because the command still runs
    or was killed."""

    exit_code: int | None
    output: str
    is_cut: bool = False


class Entry(NamedTuple):
    """One part of a record (a line of a transcript). Texts are complete and untrusted. `at` is in epoch seconds.

    A call and its result have the same id in `call`. `given` holds the call's arguments. If `refused`, a human, a rule
    or a hook did not allow the call. A refused call also has `failed`. `cwd` is the working directory of a call."""

    at: float
    kind: EntryKind
    text: str = ""
    call: str = ""
    tool: str = ""
    given: Fields = as_object(None)
    failed: bool = False
    refused: bool = False
    cwd: str = ""
    ended: CommandEnd | None = None


def main_argument(tool: str, given: Fields, places: Sequence[str] = ()) -> str:
    """Return the argument that best describes a call, in one line. Paths below one of `places` become relative."""

    def shorten(value: str) -> str:
        return first_line(shorten_paths(value[:_BEGINNING], places), LONGEST_DOING)

    for key in () if tool.startswith("mcp__") else _MAIN_ARGUMENTS:
        if isinstance(value := given.get(key), str | list) and (words := shorten(_as_command_line(value))):
            return words
    for value in given.values():
        if not isinstance(value, str):
            continue
        if (patched := _PATCHED.search(value[:_BEGINNING])) is not None:
            return shorten(patched[1])
        words = shorten(value)
        if words and not words.startswith("```") and (len(words) < _BLIND or " " in words):
            return words
    questions = (text(one, "question") for one in objects(given, "questions"))
    return first_line(next(filter(None, questions), ""), LONGEST_DOING)


def shell_command(given: Fields) -> str:
    """Return the whole command line in the arguments of a shell tool, or "" if there is none."""
    value = next((value for key in ("command", "cmd") if isinstance(value := given.get(key), str | list)), "")
    return _as_command_line(value).strip(" \t\n")


def _as_command_line(value: str | list[object]) -> str:
    if isinstance(value, str):
        return value
    # In a list such as ["bash", "-c", "make"], the last part is the command line.
    parts = [part for part in value if isinstance(part, str)]
    return parts[-1] if len(parts) == 3 and parts[1] in _SHELLS else shlex.join(parts)


class ActKind(StrEnum):
    """The kind of an act. The tool of a `strange` act is unknown: the tool may have run or changed anything."""

    COMMAND = "command"
    WRITE = "write"
    STRANGE = "strange"


_TOOLS = {
    ActKind.COMMAND: "Bash bash shell local_shell exec_command shell_command container.exec run_shell_command",
    ActKind.WRITE: (
        "Write Edit MultiEdit NotebookEdit write edit multiedit patch apply_patch write_file replace edit_file create"
        " str_replace insert"
    ),
    # The use of these tools is no act. They change nothing, or they start an agent, which has its own transcript.
    None: (
        "Read Glob Grep LS NotebookRead read glob grep list view codesearch view_image read_file read_many_files"
        " list_directory search_file_content grep_search WebFetch WebSearch webfetch websearch web_search web_fetch"
        " google_web_search TodoWrite TodoRead TaskCreate TaskUpdate TaskList TaskGet ToolSearch ListAgents"
        " AskUserQuestion EnterPlanMode ExitPlanMode ReportFindings question todowrite todoread update_plan"
        " request_user_input todo_write save_memory ask_user_question report_intent StructuredOutput Task Agent"
        " SendMessage task agent send_message spawn_agent send_input wait wait_agent close_agent list_agents"
        " invoke_agent complete_task read_agent write_agent"
    ),
}
_KINDS = {tool: kind for kind, tools in _TOOLS.items() for tool in tools.split()}


class Act(NamedTuple):
    """One use of a tool by an agent. Texts are untrusted, and times are in epoch seconds.

    `what` is the command line, the written path, or else the tool. `answered` is the place of the result, `ended_at`
    its time. Both are None if there is no result yet. `cwd` is "" if unknown. A `refused` act was not carried out."""

    kind: ActKind
    what: str
    at: float
    place: Place
    tool: str
    cwd: str = ""
    answered: Place | None = None
    ended_at: float | None = None
    ended: CommandEnd | None = None
    failed: bool = False
    refused: bool = False


def find_acts(records: Iterable[tuple[int, Sequence[Entry]]]) -> Iterator[Act]:
    """Yield the acts in a transcript, in the order of their results. Acts without a result come last. `records` yields
    (place, entries) of each line. If `records` raises an error, `find_acts` raises it too."""
    made: dict[str, tuple[Act, ...]] = {}
    for place, entries in records:
        for number, entry in enumerate(entries):
            if entry.kind is EntryKind.CALL:
                yield from made.pop(entry.call, ())
                if acts := tuple(_make_acts(entry, (place, number))):
                    made[entry.call] = acts
            elif entry.kind is EntryKind.RESULT:
                yield from (_act_with_result(act, entry, (place, number)) for act in made.pop(entry.call, ()))
    for acts in made.values():
        yield from acts


def _act_with_result(act: Act, result: Entry, place: Place) -> Act:
    ended = result.ended if act.kind is ActKind.COMMAND else None
    return act._replace(answered=place, ended_at=result.at, ended=ended, failed=result.failed, refused=result.refused)


def _make_acts(call: Entry, place: Place) -> Iterator[Act]:
    tool, given = call.tool, call.given
    act = Act(ActKind.STRANGE, tool, call.at, place, tool, call.cwd)
    match _KINDS.get(tool, ActKind.STRANGE):
        case ActKind.COMMAND if line := shell_command(given):
            yield act._replace(kind=ActKind.COMMAND, what=line, cwd=_directory_of(call))
        case ActKind.WRITE:
            yield from (act._replace(kind=ActKind.WRITE, what=path) for path in [*_written_paths(given)] or [""])
        case ActKind():
            yield act


def _directory_of(call: Entry) -> str:
    if any(key in call.given for key in _SHARED):
        # An earlier command in the same shell may have changed its directory.
        return ""
    given = next((place for key in _PLACES if (place := text(call.given, key))), "")
    return posixpath.normpath(posixpath.join(call.cwd, given)) if call.cwd or given.startswith("/") else ""


def _written_paths(given: Fields) -> Iterator[str]:
    yield from (path for key in _FILES if (path := text(given, key)))
    for value in given.values():
        if isinstance(value, str):
            yield from (path.strip() for path in _PATCHED.findall(value))


def make_todos(steps: Iterable[tuple[str, str]]) -> tuple[Todo, ...]:
    """Make a checklist from pairs (text, status). A status is `pending`, `in_progress` or `completed`."""
    return tuple(
        Todo(words[:_LONGEST_TODO], TODO_STATUSES.get(status, TodoStatus.PENDING), None, line)
        for line, (words, status) in enumerate(islice(steps, _MOST_TODOS), 1)
    )


def read_todos(given: Fields) -> tuple[Todo, ...]:
    """Return the checklist in the arguments of a call, without cancelled items."""
    steps = [(text(item, "status") or "", item) for key in ("todos", "plan") for item in objects(given, key)]
    items = (
        (next(filter(None, (text(item, key) for key in _STEP)), ""), status)
        for status, item in steps
        if status != "cancelled"
    )
    return make_todos((words, status) for words, status in items if words)


EntriesIn = Callable[[Fields], Iterable[Entry]]  # returns the entries of a record; never raises an error
place_of = attrgetter("place")

_MOST = 20_000  # the number of last steps that are kept; the limit saves memory
_AGAIN_SECONDS = 5.0
TELLS_NOTHING = "what it did cannot be told from here"
_GONE = "Its file is gone"
_WINDOW = 4 * 1024 * 1024  # bytes at the end of a file that are read when following begins
_ONE_LOOK = 4 * 1024 * 1024

_REST = 0.05
_LONGEST_REST = 2.0  # the shortest and the longest rest between two reads of a transcript, in seconds
_SHARE = 4.0  # the rest before the next read, as a multiple of the last read's duration


class Outcome(StrEnum):
    """The outcome of a call. A human, a rule or a hook did not allow a `refused` call."""

    OPEN = "open"
    DONE = "done"
    FAILED = "failed"
    REFUSED = "refused"


class Step(NamedTuple):
    """One row of a transcript: an entry, and its result if there is one. Texts are untrusted and at most 200 characters
    in one line. Times are in epoch seconds. `about` is the call's main argument, the entry's text, or the progress of a
    checklist. `answered` is the place of the result. `handed` is the digest of a prompt for another agent, or ""."""

    place: Place
    kind: EntryKind
    at: float
    tool: str = ""
    about: str = ""
    outcome: Outcome = Outcome.DONE
    result: str = ""
    ended_at: float | None = None
    answered: Place | None = None
    handed: str = ""
    is_checklist: bool = False


class Steps:
    """The steps of a transcript, in order. The result of a call is stored in the step of the call."""

    def __init__(self) -> None:
        self._steps: dict[Place, Step] = {}
        self._open: dict[str, Place] = {}

    def snapshot(self) -> tuple[Step, ...]:
        return tuple(self._steps.values())[-_MOST:]

    def add(self, place: int, entries: Iterable[Entry]) -> None:
        """Add the entries of the next record, which is at `place` in the file."""
        for number, entry in enumerate(entries):
            at = place, number
            if entry.kind is EntryKind.RESULT:
                call = self._open.pop(entry.call, None)
                if call is not None and call in self._steps:
                    self._steps[call] = _step_with_result(self._steps[call], at, entry)
                continue
            step, last = make_step(at, entry), next(reversed(self._steps.values()), None)
            if last and _may_repeat(last, step) and last.about == step.about:
                continue
            self._steps[at] = step
            if entry.kind is EntryKind.CALL:
                self._open[entry.call] = at


def _may_repeat(before: Step | Entry, after: Step | Entry) -> bool:
    """Tell whether `after` comes so soon that it may repeat `before`. Some programs write an answer twice."""
    return before.kind is after.kind is EntryKind.WORDS and after.at - before.at < _AGAIN_SECONDS


def make_step(place: Place, entry: Entry, answered: Place | None = None, result: Entry | None = None) -> Step:
    """Make a step from an entry, and from its result if there is one."""
    step = Step(place, entry.kind, entry.at, about=one_line(entry.text), outcome=_outcome(entry))
    if entry.kind is EntryKind.CALL:
        checklist, handed = _checklist_progress(entry.given), text(entry.given, "prompt")
        step = step._replace(
            tool=one_line(entry.tool),
            about=one_line(checklist or main_argument(entry.tool, entry.given)),
            outcome=Outcome.OPEN,
            # Only a tool that starts an agent has an argument `prompt`.
            handed=digest_of(handed) if handed is not None else "",
            is_checklist=bool(checklist),
        )
    return step if answered is None or result is None else _step_with_result(step, answered, result)


def _step_with_result(step: Step, place: Place, result: Entry) -> Step:
    return step._replace(outcome=_outcome(result), result=one_line(result.text), ended_at=result.at, answered=place)


def one_line(words: str) -> str:
    """Return the beginning of a text in one line. Leave out fences, and the `#` at the beginnings of lines."""
    lines = (line.strip().lstrip("#").lstrip() for line in words[: LONGEST_DOING * 3].splitlines())
    return " ".join(line for line in lines if line and not line.startswith("```"))[:LONGEST_DOING]


def _outcome(entry: Entry) -> Outcome:
    return Outcome.REFUSED if entry.refused else Outcome.FAILED if entry.failed else Outcome.DONE


def _checklist_progress(given: Fields) -> str:
    """Return the progress of the checklist in a call, with its current item, such as `2/5 write tests`."""
    todos = read_todos(given)
    done = [todo.text for todo in todos if todo.status is TodoStatus.DONE]
    now = [todo.text for todo in todos if todo.status is TodoStatus.IN_PROGRESS][:1] or done[-1:]
    return " ".join([f"{len(done)}/{len(todos)}", *now]) if todos else ""


def format_arguments(given: Fields) -> str:
    """Return the arguments of a call in the form `key: value`, each on its own line."""
    only = next(iter(given.values()), "")
    if len(given) == 1 and isinstance(only, str):
        return only
    parts = []
    for key, value in given.items():
        words = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2)
        parts.append(f"{key}:\n{words}\n" if "\n" in words else f"{key}: {words}")
    return "\n".join(parts)


class TranscriptEnd(NamedTuple):
    """The last steps of a transcript. If the transcript cannot be read now, `trouble` gives the reason."""

    steps: Sequence[Step] = ()
    trouble: str = ""


class WholeStep(NamedTuple):
    """The complete entry of a step, and the complete entry of its result. `result` is None if there is no result."""

    said: Entry
    result: Entry | None = None


class RunTranscript(ABC):
    """The transcript of one run. Only one thread may call `read_end`. Only `records` may raise an error."""

    _trouble = ""

    def __init__(self, path: Path):
        self._path = path
        self._steps = Steps()

    def read_end(self) -> TranscriptEnd | None:
        """Return the last steps, or None if nothing has changed since the last call."""
        before = self._trouble
        try:
            is_new, self._trouble = self._read(), ""
        except OSError as error:
            is_new, is_gone = False, isinstance(error, FileNotFoundError)
            self._trouble = _GONE if is_gone else f"It cannot be read: {error.strerror}"
        except ValueError:
            return None
        return TranscriptEnd(self._steps.snapshot(), self._trouble) if is_new or self._trouble != before else None

    def read_step(self, step: Step) -> WholeStep | None:
        """Return the complete entries of a step, or None if the step is no longer in the file."""
        (place, number), answered = step.place, step.answered
        entries = self._entries_at(place)
        if number >= len(entries):
            return None
        if answered is None:
            return WholeStep(entries[number])
        results = self._entries_at(answered[0])
        return WholeStep(entries[number], results[answered[1]] if answered[1] < len(results) else None)

    def entries(self) -> Iterator[Entry]:
        """Yield all entries from the beginning. Stop at the first error."""
        last = None
        with suppress(OSError, ValueError):
            for _, said in self._load():
                for entry in said or ():
                    if last is None or not _may_repeat(last, entry) or last.text != entry.text:
                        yield entry
                    last = entry

    def records(self) -> Iterator[tuple[int, Sequence[Entry]]]:
        """Yield (place, entries) of each record (a line of the transcript). Raise OSError if a record is unreadable."""
        for place, said in self._load():
            if said is None:
                raise OSError(errno.EBADMSG, "a record of it cannot be read")
            yield place, said

    @abstractmethod
    def _read(self) -> bool:
        """Read new records. Return False if there are none. Raise OSError, or ValueError if a file is half-written."""

    def _load(self) -> Iterator[tuple[int, Sequence[Entry] | None]]:
        """Yield (place, entries) of each record. If a record is unreadable, its entries are None."""
        raise OSError(errno.ENOTSUP, TELLS_NOTHING)

    @abstractmethod
    def _entries_at(self, place: int) -> Sequence[Entry]:
        """Return the entries of the record at a place. If the record can no longer be read, return ()."""


class WholeTranscript(RunTranscript):
    """A transcript that is read as a whole whenever its `stamp` changes. `stamp` may raise OSError."""

    _stamp: object = None

    @abstractmethod
    def stamp(self) -> object: ...

    def _read(self) -> bool:
        stamp = self.stamp()
        if stamp == self._stamp and not self._trouble:
            return False
        steps = Steps()
        for place, said in self._load():
            steps.add(place, said or ())
        is_new = self._stamp is None or steps.snapshot() != self._steps.snapshot()
        self._stamp, self._steps = stamp, steps
        return is_new

    def _entries_at(self, place: int) -> Sequence[Entry]:
        with suppress(OSError, ValueError):
            return next((said or () for number, said in self._load() if number == place), ())
        return ()


class LinesTranscript(RunTranscript):
    """A transcript in a growing file of JSON lines. `begin` returns a function that takes the records in order and
    returns the entries of each. A record may occur twice in the file; `once` returns its id, or None if it has none."""

    _tail: Tail | None = None

    def __init__(
        self, path: Path, begin: Callable[[], EntriesIn], once: Callable[[Fields], str | None] = lambda _: None
    ):
        super().__init__(path)
        self._begin_entries = begin
        self._once = once

    def _load(self) -> Iterator[tuple[int, Sequence[Entry] | None]]:
        tail, entries_of = Tail(self._path), self._begin_reading()
        while True:
            lines, restarted = tail.read(_ONE_LOOK)
            if restarted or tail.passed_over:
                raise OSError(errno.EIO, "it was replaced, or has a line that is too long")
            yield from ((line.offset, entries_of(line)) for line in lines)
            if not tail.behind:
                return

    def _read(self) -> bool:
        is_new, is_behind = self._tail is None, True
        # Begin near the end of the file, perhaps in the middle of a line. Half a line is no JSON and is left out.
        tail = self._tail or self._restart(max(self._path.stat().st_size - _WINDOW, 0))
        while is_behind:
            lines, restarted = tail.read(_ONE_LOOK)
            if restarted:
                tail, is_new = self._restart(0), True
                continue
            for line in lines:
                entries = self._entries_of(line) or ()
                self._steps.add(line.offset, entries)
                is_new |= bool(entries)
            is_behind = tail.behind
        return is_new

    def _restart(self, start: int) -> Tail:
        self._steps, self._entries_of = Steps(), self._begin_reading()
        self._tail = Tail(self._path, position=start)
        return self._tail

    def _begin_reading(self) -> Callable[[Line], Sequence[Entry] | None]:
        """Return a function that returns the entries of a line, or None if the line is no JSON object."""
        entries_in, seen, cwd = self._begin_entries(), set[int](), ""

        def entries_of(line: Line) -> Sequence[Entry] | None:
            nonlocal cwd
            if line.record is None:
                return None
            identity = hash(self._once(line.record) or line.offset)
            if identity in seen:
                return ()
            seen.add(identity)
            # An empty `cwd` in a record means that the directory is unknown from this record on.
            cwd = directory_in(line.record) or ("" if "cwd" in line.record else cwd)
            said = entries_in(line.record)
            return [one._replace(cwd=one.cwd or cwd) for one in said]

        return entries_of

    def _entries_at(self, place: int) -> Sequence[Entry]:
        return list(self._begin_entries()(record_at(self._path, place) or {}))


class Follower:
    """Follows one transcript at a time, and calls `on_change` with its last steps after each change. Each transcript
    has a thread of its own. So a read that hangs does not delay the next transcript."""

    def __init__(self, on_change: Callable[[RunTranscript, TranscriptEnd], object]):
        self._on_change = on_change
        self._ended = threading.Event()

    def follow(self, transcript: RunTranscript | None) -> None:
        """Follow this transcript instead of the earlier transcript. If it is None, follow no transcript."""
        self._ended.set()
        self._ended = threading.Event()
        if transcript:
            arguments = transcript, self._ended
            threading.Thread(target=self._run, args=arguments, name="agentwatch-live", daemon=True).start()

    def _run(self, transcript: RunTranscript, ended: threading.Event) -> None:
        rest = 0.0
        while not ended.wait(rest):
            began = time.monotonic()
            look = transcript.read_end()
            # A transcript that is slow to read, and grows all the time, must not keep a core busy.
            rest = min(max(_REST, (time.monotonic() - began) * _SHARE), _LONGEST_REST)
            if look is not None and not ended.is_set():
                self._on_change(transcript, look)
