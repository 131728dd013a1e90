"""Actions of an agent in a transcript: the commands that it ran, the files that it wrote, and the rest.

Facts only: what a command comes to, and whether that was claimed, is for the evidence to judge.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from typing import Final, NamedTuple

from agentwatch.sources.sessions.doing import Ended, Entry, EntryKind, command_in
from agentwatch.sources.sessions.fields import Fields, text
from agentwatch.sources.sessions.following import Place

_MOST_OPEN: Final = 1_000

_PLACES: Final = ("workdir", "cwd", "directory", "dir_path")
_SHARED: Final = ("shellId", "session_id", "sessionId")
"""A shell that goes on from call to call."""
_PATHS: Final = ("file_path", "filePath", "notebook_path", "absolute_path", "path")
_PATCHED: Final = re.compile(r"^\*\*\* (?:Add File|Update File|Delete File|Move to): (\S.*)$", re.MULTILINE)


class ActKind(StrEnum):
    """What a use of a tool is. `strange`: what it does is not known, so it may have run or changed anything."""

    COMMAND = "command"
    WRITE = "write"
    NETWORK = "network"
    LOOK = "look"
    STRANGE = "strange"


_TOOLS: Final = {
    ActKind.COMMAND: "Bash bash shell local_shell exec_command shell_command container.exec run_shell_command",
    ActKind.WRITE: (
        "Write Edit MultiEdit NotebookEdit write edit multiedit patch apply_patch write_file replace edit_file create"
        " str_replace insert"
    ),
    ActKind.NETWORK: "WebFetch WebSearch webfetch websearch web_search web_fetch google_web_search",
    # These show files, as `cat` and `grep` do.
    ActKind.LOOK: (
        "Read Glob Grep LS NotebookRead read glob grep list view codesearch view_image read_file read_many_files"
        " list_directory search_file_content grep_search"
    ),
    # These change nothing and run nothing, or have another agent do it, whose transcript tells of it.
    None: (
        "TodoWrite TodoRead TaskCreate TaskUpdate TaskList TaskGet ToolSearch ListAgents AskUserQuestion EnterPlanMode"
        " ExitPlanMode ReportFindings question todowrite todoread update_plan request_user_input todo_write save_memory"
        " ask_user_question report_intent StructuredOutput Task Agent SendMessage task agent send_message spawn_agent"
        " send_input wait wait_agent close_agent list_agents invoke_agent complete_task read_agent write_agent"
    ),
}
_KINDS: Final = {tool: kind for kind, tools in _TOOLS.items() for tool in tools.split()}


class Act(NamedTuple):
    """One use of a tool by an agent, with what came of it. Texts are foreign; times are in seconds since the epoch.

    `what` is the command line, or the path that was written, as it was given; of others the tool. `place` and
    `answered` are where the call and its result stand in the transcript; `answered` and `ended_at` are None as long as
    there is no result. `cwd` is the directory it was made in, "" where that is not told. `ended` is how a command came
    out. `refused`: it never happened.
    """

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
    """What the records of a transcript say that was done, in the order of the results; what has none comes last.

    What only talks or plans is left out. Raises what going through the records raises.
    """
    made: dict[str, tuple[Act, ...]] = {}
    for place, entries in records:
        for number, entry in enumerate(entries):
            if entry.kind is EntryKind.CALL:
                yield from made.pop(entry.call, ())
                if acts := tuple(_acts_of(entry, (place, number))):
                    made[entry.call] = acts
                    if len(made) > _MOST_OPEN:
                        yield from made.pop(next(iter(made)))
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
        case ActKind.NETWORK:
            yield act._replace(kind=ActKind.NETWORK, what=text(given, "url") or text(given, "query") or tool)
        case ActKind.LOOK:
            yield act._replace(kind=ActKind.LOOK)
        case ActKind():
            yield act


def _directory(call: Entry) -> str:
    if any(key in call.given for key in _SHARED):
        # Where an earlier command has led that shell is not told.
        return ""
    told = next((place for key in _PLACES if (place := text(call.given, key))), "")
    return posixpath.normpath(posixpath.join(call.cwd, told)) if call.cwd or told.startswith("/") else ""


def _written(given: Fields) -> Iterator[str]:
    yield from (path for key in _PATHS if (path := text(given, key)))
    for value in given.values():
        if isinstance(value, str):
            yield from (path.strip() for path in _PATCHED.findall(value))
