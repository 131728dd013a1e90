"""The reader of Roo Code, and of what is derived from it. It was never tested with the real programs.

`tasks/<id>/history_item.json` holds {id, parentTaskId?, ts, task, tokensIn, tokensOut, workspace, mode?, status}.
`tasks/<id>/ui_messages.json` is a list of messages {ts, type: ask | say, ask?, say?, text?, partial?}. The first
message is the prompt. The tool `newTask` starts a child task. A message `completion_result` is the task's answer.
Times are in milliseconds. Both files are replaced as a whole, and read again as a whole."""

import errno
import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import zip_longest
from pathlib import Path
from typing import NamedTuple

from agentwatch.delegation.events import Run, RunState, StartedBy, Turn
from agentwatch.disk import Fingerprint, fingerprint, fingerprint_at, spellings
from agentwatch.sources.sessions.entries import TELLS_NOTHING, Entry, EntryKind, RunTranscript, WholeTranscript
from agentwatch.sources.sessions.fields import Fields, as_object, number, object_in, read_json, string, text
from agentwatch.sources.sessions.reader import Change, Progress, StoreReader
from agentwatch.sources.sessions.registry import find_roo_storages
from agentwatch.sources.sessions.runs import NO_CALL, Account, Keep, RunStatus, run_of
from agentwatch.sources.sessions.store import contains
from agentwatch.state import user_home

_MOST_BYTES = 64 * 1024 * 1024
_ITEM = "history_item.json"
_MESSAGES = "ui_messages.json"
_LONGEST = 500

_CANCELED = "user_cancelled"  # the extension's reason if a human interrupts the model
_STATES = {
    "active": RunState.WORKING,
    "delegated": RunState.WORKING,
    "completed": RunState.ENDED,
    "interrupted": RunState.CANCELED,
    "aborted": RunState.CANCELED,
}
_WAITING = {
    "followup": "an answer",
    "command": "an approval of a command",
    "tool": "an approval of a tool",
    "use_mcp_server": "an approval of a tool",
    "api_req_failed": "a retry of the model",
    "mistake_limit_reached": "help after too many mistakes",
    "auto_approval_max_req_reached": "leave to go on",
}
_RESUMED = ("resume_task", "resume_completed_task")  # messages that appear when a human opens an old task again
_SAID = {
    "text": EntryKind.WORDS,
    "completion_result": EntryKind.WORDS,
    "reasoning": EntryKind.THOUGHT,
    "user_feedback": EntryKind.PROMPT,
    "error": EntryKind.NOTE,
}
_TOOLS = {"command": "execute_command", "followup": "ask_followup_question"}  # the tool if the message names no tool


class _Task(NamedTuple):
    """The result of the last read of a task's directory. `run` is None if the task belongs to another workspace, or if
    a file is missing. `refusal` is the reason if a file is unreadable."""

    stamps: tuple[Fingerprint | None, ...] = ()
    run: Run | None = None
    refusal: str = ""


class RooReader(StoreReader):
    """Reads the tasks of one workspace, from `storage`, or by default from the storages of all editors."""

    name = "roo"
    progress = Progress(0, 0)

    def __init__(self, workspace: Path, storage: Path | None = None):
        super().__init__()
        self._places = spellings(workspace)
        self._storage = storage
        self._storages: list[Path] = []
        self._tasks: dict[Path, _Task] = {}
        self._refused: dict[Path, str] = {}  # by unreadable directory: the reason

    @property
    def trouble(self) -> str | None:  # type: ignore[override]
        """A sentence about the first unreadable directory, or None if all can be read."""
        refused = self._refused | {path: task.refusal for path, task in self._tasks.items()}
        return next((f"{path} cannot be read: {why}." for path, why in refused.items() if why), None)

    def read(self, seconds: float) -> Sequence[Change]:  # noqa: ARG002
        """Return the runs of tasks that have changed."""
        self._storages = [self._storage] if self._storage is not None else find_roo_storages(user_home())
        self._refused = {}
        paths = [path for storage in self._storages for path in self._task_paths(storage / "tasks")]
        self._tasks = {path: self._read_task(path, self._tasks.get(path, _Task())) for path in paths}
        runs = (task.run for task in reversed(self._tasks.values()))
        return self.update_runs({run.session_id: run for run in runs if run})

    def transcript(self, run: Run) -> RunTranscript | None:
        """Return the messages of a task."""
        path = Path(run.place)
        return MessagesTranscript(path / _MESSAGES) if path in self._tasks else None

    def stores(self) -> Sequence[str]:
        return [*map(str, self._storages)]

    def _task_paths(self, place: Path) -> list[Path]:
        """Return the directories of tasks, the latest first. Later tasks have greater names."""
        try:
            with os.scandir(place) as found:
                paths = [Path(entry.path) for entry in found if entry.is_dir(follow_symlinks=False)]
            return sorted(paths, reverse=True)
        except FileNotFoundError:
            return []
        except OSError as error:
            self._refused[place] = error.strerror or "unreadable"
            return [path for path in self._tasks if path.parent == place]

    def _read_task(self, path: Path, before: _Task) -> _Task:
        """Read a task if its files have changed. If a file is half-written, keep the earlier run."""
        stamps = fingerprint_at(path / _ITEM), fingerprint_at(path / _MESSAGES)
        if stamps == before.stamps:
            return before
        try:
            item = as_object(read_json(path / _ITEM, _MOST_BYTES))
            if not any(contains(place, string(item, "workspace")) for place in self._places):
                return _Task(stamps)
            run = make_run(item, read_json(path / _MESSAGES, _MOST_BYTES), self.keep_message, str(path))
        except FileNotFoundError:
            return _Task(stamps)
        except OSError as error:
            return _Task(stamps, before.run, error.strerror or "unreadable")
        except ValueError:
            return _Task(stamps, before.run, "it is damaged, or not whole yet")
        return _Task(stamps, run if run.session_id else None)


class MessagesTranscript(WholeTranscript):
    """The transcript of a task, from its file of messages, which is replaced as a whole."""

    def stamp(self) -> object:
        return fingerprint(self._path.lstat())

    def records(self) -> Iterator[tuple[int, Sequence[Entry]]]:
        """Always raise OSError: claims are checked by how commands ended, which the store does not record."""
        raise OSError(errno.ENOTSUP, TELLS_NOTHING)

    def _load(self) -> Iterator[tuple[int, list[Entry]]]:
        return entries(_as_messages(read_json(self._path, _MOST_BYTES)))


def make_run(item: Fields, document: object, keep: Keep, place: str) -> Run:
    """Return the run of a task. `item` and `document` are the JSON values of its two files."""
    messages, task = _as_messages(document), Account(keep, is_agent=text(item, "parentTaskId") is not None)
    for _, said in entries(messages):
        for entry in said:
            task.add_entry(entry)
    for message in messages:
        _add_message(task, message)
    status, at = text(item, "status"), _time_of(item)
    task.touch(at)
    task.tokens = int((number(item, "tokensIn") or 0) + (number(item, "tokensOut") or 0))
    is_over = task.state is RunState.ENDED
    # A task that a human began may have no status. Its messages then show its state.
    state = _STATES.get(status or ("completed" if is_over else ""), RunState.WORKING)
    if state is RunState.WORKING and task.reason and status != "delegated":
        state = RunState.CANCELED
    if is_over and state is not RunState.ENDED:
        # The task goes on after its result, so the human did not accept the result.
        task.begin_round(task.ended_at or at)
    reason = task.reason or status or "" if state is RunState.CANCELED else ""
    run = run_of(
        task,
        NO_CALL,
        RunStatus(state, reason, task.said, task.updated_at),
        source=RooReader.name,
        session_id=string(item, "id"),
        parent=text(item, "parentTaskId"),
        place=place,
        agent=text(item, "mode"),
    )
    last = next((one for one in reversed(messages) if one.get("ask") not in _RESUMED), {})
    return replace(run, waiting=_describe_wait(last) if state is RunState.WORKING and status != "delegated" else "")


def _add_message(task: Account, message: Fields) -> None:
    """Update the task from a message. If a human interrupts the model, set the task's reason."""
    at, say, words = _time_of(message), message.get("say"), string(message, "text")
    inside = object_in(words)
    if task.begun is None:
        task.begun, task.prompt = Turn(at), task.keep(words, at)
    task.touch(at)
    if say == "completion_result" and message.get("partial") is not True and words.strip():
        task.end(RunState.ENDED, at, task.reason)
        task.answer = task.keep_lazily(words, at)
    elif say in ("user_feedback", "api_req_started"):
        if task.state is RunState.ENDED:
            is_asked = say == "user_feedback" and bool(words)
            asker = StartedBy.PARENT if is_asked else StartedBy.PROGRAM
            task.begin_round(at, task.keep(words, at) if is_asked else None, asker)
            task.resume(at)
        if say == "api_req_started":
            task.reason = _CANCELED if text(inside, "cancelReason") == _CANCELED else ""


def _describe_wait(last: Fields) -> str:
    """Describe what a task needs from a human, as its last message shows. Return "" if the task needs nothing."""
    what, inside = _WAITING.get(string(last, "ask")), object_in(last.get("text"))
    if what is None or last.get("partial") is True or last.get("isAnswered") is True:
        return ""
    words = text(inside, "question") or text(inside, "tool")
    words = words or (text(last, "text") if last.get("ask") == "command" else None)
    return f"{what}: {words[:_LONGEST]}" if words is not None else what


def _as_messages(value: object) -> list[Fields]:
    return [as_object(message) for message in value] if isinstance(value, list) else []


def _time_of(fields: Fields) -> float:
    return (number(fields, "ts") or 0.0) / 1000


def entries(messages: Sequence[Fields]) -> Iterator[tuple[int, list[Entry]]]:
    """Yield (number, entries) of each message. A call has ended if another message follows. The store keeps only
    the results of commands and MCP servers. It does not record whether a human refused a call."""
    for place, (message, following) in enumerate(zip_longest(messages, messages[1:])):
        entry = _make_entry(message, is_first=place == 0)
        said = [] if entry is None else [entry]
        if entry is not None and entry.kind is EntryKind.CALL and following is not None:
            is_result = text(following, "say") in ("command_output", "mcp_server_response")
            words = string(following, "text") if is_result else ""
            said.append(Entry(_time_of(following), EntryKind.RESULT, words, entry.call))
        yield place, said


def _make_entry(message: Fields, *, is_first: bool) -> Entry | None:
    at, fields = _time_of(message), object_in(message.get("text"))
    words, say, ask = string(message, "text"), text(message, "say"), text(message, "ask")
    if is_first and words.strip():
        return Entry(at, EntryKind.PROMPT, words)
    if say in _SAID and words.strip():
        return Entry(at, _SAID[say], words, failed=say == "error")
    tool, given = _TOOLS.get(ask or ""), fields or {"command": words}
    if "tool" in (ask, say) or say == "user_edit_todos":
        tool, given = text(fields, "tool") or "tool", {key: value for key, value in fields.items() if key != "tool"}
        if tool == "newTask":
            given["prompt"] = given.pop("content", "")
    elif ask == "use_mcp_server":
        tool, given = f"mcp__{fields.get('serverName')}__{fields.get('toolName')}", object_in(text(fields, "arguments"))
    return Entry(at, EntryKind.CALL, "", "call", tool, given) if tool is not None else None
