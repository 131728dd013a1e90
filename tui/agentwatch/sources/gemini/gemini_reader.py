"""The reader of Gemini CLI: what the lines of one chat come to, and the runs of one session.

A session has a chat, as 0.61 writes it, and beside it a directory with the chats of its agents. A line is a message
`{id, timestamp, type, content, toolCalls?}`, or changes what was written before: a message with the same id takes its
place, once its calls are over; `$set` sets keys of the whole. That `$rewindTo` takes messages back is left aside.
"""

from __future__ import annotations

import errno
import json
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import ClassVar, Final

from agentwatch.delegation.run import Run, RunState
from agentwatch.sources.sessions.doing import Ended, Entry, EntryKind
from agentwatch.sources.sessions.fields import (
    Fields,
    first_line,
    inner,
    listed,
    mapping,
    moment,
    parts_in,
    text,
    todos_in,
    whole,
)
from agentwatch.sources.sessions.following import EntriesIn, Placed
from agentwatch.sources.sessions.reader import texts_in
from agentwatch.sources.sessions.runs import (
    CUT_OFF,
    LEFT_BEHIND,
    NO_CALL,
    OPEN,
    Account,
    AgentAnswer,
    AgentCall,
    Keep,
    Standing,
    no_message,
    run_of,
    settle,
)
from agentwatch.sources.sessions.store import SESSION, FilesReader, Layout, Session, holds
from agentwatch.sources.sessions.tail import Record, open_regular

_CONTEXT: Final = "<session_context>"
"""What a session begins with, which nobody typed."""
_COMMAND: Final = re.compile(
    r"^Output: (?P<output>.*?)\n(?:Error: [^\n]*\n)?(?:Exit Code: (?P<code>-?\d{1,9})\n)?(?P<signal>Signal: [^\n]*\n)?"
    r"(?P<background>Background PIDs: [^\n]*\n)?Process Group PGID: \d+\s*(?:</untrusted_context>\s*)?\Z",
    re.DOTALL | re.MULTILINE,
)
_STOPPED: Final = "Operation cancelled"
"""In what comes of a call that Esc has ended; one that was only denied says something else."""
_ROOT_BYTES: Final = 64 * 1024


class Chat(Account):
    """The state of one file after the lines that were folded in. `places` are the spellings of the workspace."""

    def __init__(self, keep: Keep, is_agent: bool, places: Sequence[str] = ()) -> None:
        super().__init__(keep, places)
        self.cwd: str | None = None
        self.not_understood = 0
        self.calls: dict[str, AgentCall] = {}
        self.prompted_at = 0.0
        """When a human, or a parent, has told it something."""
        self._is_agent = is_agent
        self._messages: dict[str, tuple[int, int]] = {}
        """The tokens and calls of each message, by id."""

    def add(self, fields: Record, offset: int) -> None:
        name, at, changed = text(fields, "id"), moment(fields.get("timestamp")), inner(fields, "$set")
        if changed:
            self.updated_at = max(self.updated_at, moment(changed.get("lastUpdated")) or 0.0)
            if changed.get("messages") == [] and self._is_agent and self.state is RunState.WORKING:
                # It failed, or was stopped, in its answer: its parent is told which.
                self.end(RunState.FAILED, self.updated_at, CUT_OFF)
        elif name is not None and at is not None:
            self._message(name, fields, at, offset)
        elif not fields.keys() & {"$set", "$rewindTo", "projectHash"}:
            self.not_understood += 1

    def _message(self, name: str, fields: Fields, at: float, offset: int) -> None:
        words, calls = _words_of(fields), listed(fields, "toolCalls")
        counted, seen = self._messages.get(name, (0, 0))
        for entry in entries({**fields, "toolCalls": calls[seen:]}, at):
            if entry.call or name not in self._messages:
                self.activity.add(entry)
        used = inner(fields, "tokens")
        tokens = (whole(used, "total") or 0) - (whole(used, "cached") or 0)
        self.tokens += tokens - counted
        self._messages[name] = tokens, len(calls)
        self.model = text(fields, "model") or self.model
        if fields.get("type") == "user" and words.strip() and not words.startswith(_CONTEXT):
            self.go_on(at)
            self.prompted_at = at
            self.prompt = self.prompt or self.keep(words, at, offset)
        elif fields.get("type") == "gemini":
            self.go_on(at)
            if not calls and words.strip() and not self._is_agent:
                # So it looks, too, while its calls are under way: they are written once they are over.
                self.end(RunState.ENDED, at)
                self.answer = self.later(words, at, offset)
            for call in map(mapping, calls):
                self._called(call, at, offset)

    def _called(self, call: Fields, at: float, offset: int) -> None:
        """A call that is over."""
        name, tool, given = text(call, "id") or "", text(call, "name"), inner(call, "args")
        status, ended_at, came = text(call, "status") or "", moment(call.get("timestamp")) or at, _came_of(call)
        self.updated_at = max(self.updated_at, ended_at)
        if status == "cancelled" and _STOPPED in came and not self._is_agent:
            self.end(RunState.CANCELED, ended_at, first_line(came))
        if self._is_agent and (said := _handed_back(call)) is not None:
            self.end(RunState.ENDED, ended_at)
            self.answer = self.later(said, ended_at, offset) if said.strip() else None
        elif tool == "write_todos":
            self.list(todos_in(listed(given, "todos"), "description"), ended_at)
        elif tool == "invoke_agent":
            words, shown = text(given, "prompt"), inner(call, "resultDisplay")
            if status == "success":
                # So it is also said of an agent that failed, or ran out of turns.
                status = "error" if shown.get("state") == "error" else text(shown, "terminateReason") or "GOAL"
            answer = AgentAnswer(ended_at, status, first_line(came), agent_id=text(call, "agentId"))
            prompt = self.keep(words, at, offset) if words is not None else None
            self.calls[name] = AgentCall(name, at, None, prompt, text(given, "agent_name"), answer=answer)


def entries(record: Fields, at: float = 0.0) -> Iterator[Entry]:
    """What a line says, in its order; `at` (epoch seconds) is for one that has no time."""
    at = moment(record.get("timestamp")) or at
    words = _words_of(record)
    match record.get("type"):
        case "user" if words:
            yield Entry(at, EntryKind.NOTE if words.startswith(_CONTEXT) else EntryKind.PROMPT, words)
        case "gemini":
            for thought in map(mapping, listed(record, "thoughts")):
                yield Entry(at, EntryKind.THOUGHT, text(thought, "description") or text(thought, "subject") or "")
            if words:
                yield Entry(at, EntryKind.WORDS, words)
            for call in map(mapping, listed(record, "toolCalls")):
                name, ended_at, came = text(call, "id") or "", moment(call.get("timestamp")) or at, _came_of(call)
                if (said := _handed_back(call)) is not None:
                    yield Entry(ended_at, EntryKind.WORDS, said)
                    continue
                yield Entry(at, EntryKind.CALL, "", name, text(call, "name") or "", inner(call, "args"))
                refused = call.get("status") == "cancelled"
                failed, ended = refused or call.get("status") == "error", None if refused else _ended(came)
                yield Entry(ended_at, EntryKind.RESULT, came, name, failed=failed, refused=refused, ended=ended)
        case "info" | "warning" | "error" if words:
            yield Entry(at, EntryKind.NOTE, words, failed=record.get("type") == "error")


def _words_of(record: Fields) -> str:
    """What a message says: one text, or that of its parts."""
    return text(record, "content") or "".join(parts_in(record, "content"))


def _came_of(call: Fields) -> str:
    responses = (inner(mapping(one), "functionResponse", "response") for one in listed(call, "result"))
    return "\n".join(text(one, "error") or text(one, "output") or "" for one in responses)


def _ended(told: str) -> Ended | None:
    """How a command came out, where this tells of one: only a code that is not 0 is written."""
    match = _COMMAND.search(told)
    if match is None:
        return None
    is_open = match["signal"] or match["background"]
    return Ended(int(match["code"]) if match["code"] else None if is_open else 0, match["output"])


def _handed_back(call: Fields) -> str | None:
    """What an agent hands back by this call, a text, or an object with one, or with more; None where it is another."""
    if text(call, "name") != "complete_task" or call.get("status") != "success":
        return None
    given = inner(call, "args")
    result = given.get("result", next(iter(given.values()), None))
    if isinstance(result, dict) and len(result) == 1:
        result = next(iter(result.values()))
    try:
        return result if isinstance(result, str) else json.dumps(result, indent=2, ensure_ascii=False)
    except RecursionError:
        return ""


def root_of(project: str) -> str | None:
    """The real path of the working directory that a project names, None for none. Raises OSError where it cannot be
    read, or names no path."""
    try:
        with os.fdopen(open_regular(f"{project}/.project_root"), "rb") as file:
            named = file.read(_ROOT_BYTES).decode("utf-8", "replace").strip()
    except FileNotFoundError:
        return None
    if not named.startswith("/") or "\0" in named:
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL), project)
    return os.path.realpath(named)


def _directory_in(fields: Fields) -> str | None:
    """Where an agent works, as the first line says."""
    places = listed(fields, "directories")
    return str(places[0]) if len(places) == 1 else None


_NO_CHAT: Final = Chat(no_message, is_agent=True)


class GeminiReader(FilesReader[Chat]):
    """`home` is `.gemini` in `$GEMINI_CLI_HOME`, else in the user's home. Agents run in the foreground."""

    name = "gemini"
    layout: ClassVar = Layout(
        r"chats/(?:session-[^/]+|(?P<session>[^/]+)/(?P<agent>[^/]+))\.jsonl",
        r"chats(?:/(?P<session>[^/]+))?",
        root="tmp",
    )
    all_belong = True

    def projects(self) -> list[str]:
        found = []
        for project in self.directories():
            self.refused.discard(project)
            try:
                root = root_of(project)
            except OSError:
                self.refused.add(project)
                continue
            if root is not None and holds(self.workspace, root):
                found.append(project)
        return found

    def begin(self, keep: Keep, agent: str, path: str) -> Chat:  # noqa: ARG002
        return Chat(keep, agent != SESSION, self.places)

    def entries(self, fields: Fields) -> Iterable[Entry]:
        return entries(fields)

    def own_entries(self, run: Run) -> EntriesIn:  # noqa: ARG002
        return Placed(entries, _directory_in)

    def mark(self, fields: Fields) -> str | None:
        """Of a message as it is now: it is written again with its calls."""
        return f"{text(fields, 'id')}/{len(listed(fields, 'toolCalls'))}"

    def texts_in(self, fields: Fields) -> Iterator[str]:
        yield from texts_in(fields)
        yield from (_handed_back(mapping(call)) or "" for call in listed(fields, "toolCalls"))

    def runs_of(self, session: Session[Chat], about: object) -> dict[str, Run]:
        main = session.folds.get(SESSION, _NO_CHAT)
        begun = {name: chat for name, chat in session.folds.items() if name and chat.started_at is not None}
        asked = _asked(main, begun)
        rows = [(name, name, chat, asked.get(name, NO_CALL), session.id) for name, chat in begun.items()]
        for asker, chat in session.folds.items():
            lone = [call for call in chat.calls.values() if call not in asked.values()]
            rows += [(f"{session.id}/{call.id}", call.id, _NO_CHAT, call, asker or session.id) for call in lone]
        found = {
            key: run_of(
                chat,
                call,
                _standing(chat, call, main),
                source=self.name,
                session_id=name,
                parent=asker,
                place=session.place(session.places, name),
                link="the parent's tool call" if chat is _NO_CHAT else "the directory of its chat",
            )
            for key, name, chat, call, asker in rows
        }
        if main.started_at is not None:
            # It waits for its agents, and says nothing of that.
            is_waiting = main.state is RunState.ENDED and any(one.state in OPEN for one in found.values())
            standing = Standing(RunState.WORKING) if is_waiting else main
            place = session.place(session.places, SESSION)
            found[session.id] = run_of(
                main, NO_CALL, standing, source=self.name, session_id=session.id, parent=None, place=place
            )
        settle(found, about)
        return found


def _asked(main: Chat, begun: dict[str, Chat]) -> dict[str, AgentCall]:
    """The call that each agent was begun by, as far as it is over: one that was stopped does not name its agent."""
    asked: dict[str, AgentCall] = {}
    oldest = sorted(begun.items(), key=lambda one: one[1].prompted_at)
    for call in sorted(main.calls.values(), key=lambda call: not (call.answer and call.answer.agent_id)):
        name = call.answer and call.answer.agent_id
        if name is None and call.prompt is not None:
            same = (one for one, chat in oldest if chat.prompt and chat.prompt.digest == call.prompt.digest)
            name = next((one for one in same if one not in asked), None)
        if name in begun:
            asked[name] = call
    return asked


def _standing(chat: Chat, call: AgentCall, main: Chat) -> Standing | Chat:
    """By what it has handed back, then by what its parent was told."""
    answer = call.answer
    if answer is None and chat.state is RunState.WORKING and main.prompted_at > chat.prompted_at:
        return Standing(RunState.FAILED, LEFT_BEHIND, None, chat.updated_at)
    if chat.state is RunState.ENDED or answer is None:
        return chat
    state = {"cancelled": RunState.CANCELED, "GOAL": RunState.ENDED}.get(answer.status, RunState.FAILED)
    return Standing(
        state, answer.summary if answer.status in ("cancelled", "error") else answer.status, None, answer.at
    )
