"""Entries, the parts of a record of any program, and the actions that they come to: commands, files, and the rest."""

import posixpath
import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from itertools import islice
from typing import NamedTuple

from agentwatch.contracts.shapes import Todo, TodoStatus
from agentwatch.delegation.events import LONGEST_DOING
from agentwatch.sources.sessions.fields import Fields, first_line, mapping, objects, text
from agentwatch.text import within

_MOST_TODOS = 1000
_LONGEST_TODO = 500
_STEP = ("content", "step", "description")  # the names of what is to be done
TODO_STATUSES = {
    "pending": TodoStatus.PENDING,
    "in_progress": TodoStatus.IN_PROGRESS,
    "completed": TodoStatus.DONE,
}

Place = tuple[int, int]  # where a record stands, and which entry of it this is

_FILES = ("file_path", "filePath", "notebook_path", "absolute_path", "path")
_SAYING = (
    *("command", "cmd", "pattern", "regex", *_FILES, "dir_path", "url", "query", "description"),
    *("task_name", "subagent_type", "agent_type", "skill", "subject"),
)  # the arguments that tell most of a call, the best first
_PLACES = ("workdir", "cwd", "directory", "dir_path")
_SHARED = ("shellId", "session_id", "sessionId")  # A shell that goes on from call to call
_PATCHED = re.compile(r"^\*\*\* (?:Add File|Update File|Delete File|Move to): (\S.*)$", re.MULTILINE)
_BEGINNING = 2_000
_BLIND = 100  # as long as this, a text without a space in it is encrypted, or no words
_SHELLS = ("-lc", "-c")


class EntryKind(StrEnum):
    """The kind of a part of a record. A note is the program's: that a turn was broken off, what it answered itself."""

    WORDS = "words"
    CALL = "call"
    RESULT = "result"
    PROMPT = "prompt"
    THOUGHT = "thought"
    NOTE = "note"


class Ended(NamedTuple):
    """How a command came out by the program's own record. `exit_code` is None where it is not said: the command runs on
    in the background, was killed, or is told of in words alone. `output` is foreign, and as much as is kept; `is_cut`:
    the record says that this is not all of it."""

    exit_code: int | None
    output: str
    is_cut: bool = False


class Entry(NamedTuple):
    """One thing that a record says, whole. Texts are foreign and unsanitised; `at` is in epoch seconds. `call` is the
    id of a call, in its result, too; `given` are its arguments. `refused`: a human, or a rule or hook of theirs, did
    not allow it; then it has `failed`, too. `cwd` is where a call was made, "" where that is not said."""

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
    """The main argument of a call in one line; paths below one of the `places` stand from there on."""

    def first(value: str) -> str:
        return first_line(within(value[:_BEGINNING], places), LONGEST_DOING)

    for key in () if tool.startswith("mcp__") else _SAYING:
        if isinstance(value := given.get(key), str | list) and (words := first(_words(value))):
            return words
    for value in given.values():
        if not isinstance(value, str):
            continue
        if (patched := _PATCHED.search(value[:_BEGINNING])) is not None:
            return first(patched[1])
        words = first(value)
        if words and not words.startswith("```") and (len(words) < _BLIND or " " in words):
            return words
    asked = (text(one, "question") for one in objects(given, "questions"))
    return first_line(next(filter(None, asked), ""), LONGEST_DOING)


def command_in(given: Fields) -> str:
    """The whole line that a shell was given, "" where there is none."""
    value = next((value for key in ("command", "cmd") if isinstance(value := given.get(key), str | list)), "")
    return _words(value).strip(" \t\n")


def _words(value: str | list[object]) -> str:
    """A command may be a list: that of a shell holds the line in its last part."""
    if isinstance(value, str):
        return value
    parts = [part for part in value if isinstance(part, str)]
    return parts[-1] if len(parts) == 3 and parts[1] in _SHELLS else shlex.join(parts)


class ActKind(StrEnum):
    """The kind of a use of a tool. `strange`: its effect is not known, so it may have run or changed anything."""

    COMMAND = "command"
    WRITE = "write"
    STRANGE = "strange"


_TOOLS = {
    ActKind.COMMAND: "Bash bash shell local_shell exec_command shell_command container.exec run_shell_command",
    ActKind.WRITE: (
        "Write Edit MultiEdit NotebookEdit write edit multiedit patch apply_patch write_file replace edit_file create"
        " str_replace insert"
    ),
    # These show files or pages; or change nothing and run nothing; or have another agent do it, whose transcript tells.
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
    """One use of a tool by an agent. Texts are foreign; times are in epoch seconds. `what` is the command line, or the
    path that was written, as it was given; of others the tool. `answered` is where its result stands, None without one,
    as `ended_at`. `cwd` is "" where it is not told. `refused`: it never happened."""

    kind: ActKind
    what: str
    at: float
    place: Place
    tool: str
    cwd: str = ""
    answered: Place | None = None
    ended_at: float | None = None
    ended: Ended | None = None
    failed: bool = False
    refused: bool = False


def acts_in(records: Iterable[tuple[int, Sequence[Entry]]]) -> Iterator[Act]:
    """The acts in the records of a transcript, in the order of the results; what has none comes last. What
    only talks or plans is left out. Raises what going through the records raises."""
    made: dict[str, tuple[Act, ...]] = {}
    for place, entries in records:
        for number, entry in enumerate(entries):
            if entry.kind is EntryKind.CALL:
                yield from made.pop(entry.call, ())
                if acts := tuple(_acts_of(entry, (place, number))):
                    made[entry.call] = acts
            elif entry.kind is EntryKind.RESULT:
                yield from (_answered(act, entry, (place, number)) for act in made.pop(entry.call, ()))
    for acts in made.values():
        yield from acts


def _answered(act: Act, result: Entry, place: Place) -> Act:
    ended = result.ended if act.kind is ActKind.COMMAND else None
    return act._replace(answered=place, ended_at=result.at, ended=ended, failed=result.failed, refused=result.refused)


def _acts_of(call: Entry, place: Place) -> Iterator[Act]:
    tool, given = call.tool, call.given
    act = Act(ActKind.STRANGE, tool, call.at, place, tool, call.cwd)
    match _KINDS.get(tool, ActKind.STRANGE):
        case ActKind.COMMAND if line := command_in(given):
            yield act._replace(kind=ActKind.COMMAND, what=line, cwd=_directory(call))
        case ActKind.WRITE:
            yield from (act._replace(kind=ActKind.WRITE, what=path) for path in [*_written(given)] or [""])
        case ActKind():
            yield act


def _directory(call: Entry) -> str:
    if any(key in call.given for key in _SHARED):
        # Where an earlier command has led that shell is not told.
        return ""
    told = next((place for key in _PLACES if (place := text(call.given, key))), "")
    return posixpath.normpath(posixpath.join(call.cwd, told)) if call.cwd or told.startswith("/") else ""


def _written(given: Fields) -> Iterator[str]:
    yield from (path for key in _FILES if (path := text(given, key)))
    for value in given.values():
        if isinstance(value, str):
            yield from (path.strip() for path in _PATCHED.findall(value))


def todos_of(steps: Iterable[tuple[str, str]]) -> tuple[Todo, ...]:
    """The steps of a checklist: what is to be done, and `pending`, `in_progress` or `completed`."""
    return tuple(
        Todo(words[:_LONGEST_TODO], TODO_STATUSES.get(status, TodoStatus.PENDING), None, line)
        for line, (words, status) in enumerate(islice(steps, _MOST_TODOS), 1)
    )


def todos_in(given: Fields) -> tuple[Todo, ...]:
    """The checklist that a tool was given, without what was called off."""
    steps = [(text(item, "status") or "", item) for key in ("todos", "plan") for item in objects(given, key)]
    told = (
        (next(filter(None, (text(item, key) for key in _STEP)), ""), status)
        for status, item in steps
        if status != "cancelled"
    )
    return todos_of((words, status) for words, status in told if words)
