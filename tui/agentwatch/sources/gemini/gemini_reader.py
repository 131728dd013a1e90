"""The reader of Gemini CLI: what the lines of one chat come to, and the runs of one session."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import ClassVar, Final

from agentwatch.delegation.run import Run, RunState
from agentwatch.sources.gemini.roots import Roots
from agentwatch.sources.sessions.doing import Ended, Entry, EntryKind
from agentwatch.sources.sessions.fields import Fields, first_line, inner, listed, mapping, moment, text, todos_in, whole
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
from agentwatch.sources.sessions.tail import Record

NAME: Final = "gemini"

_CONTEXT: Final = "<session_context>"
"""What a session begins with, which nobody typed."""
_COMMAND: Final = re.compile(
    r"^Output: (?P<output>.*?)\n(?:Error: [^\n]*\n)?(?:Exit Code: (?P<code>-?\d{1,9})\n)?(?P<signal>Signal: [^\n]*\n)?"
    r"(?P<background>Background PIDs: [^\n]*\n)?Process Group PGID: \d+\s*(?:</untrusted_context>\s*)?\Z",
    re.DOTALL | re.MULTILINE,
)
_RETURN: Final = "complete_task"
_GOAL: Final = "GOAL"
_ENDS: Final = {"cancelled": RunState.CANCELED, _GOAL: RunState.ENDED}
_STOPPED: Final = "Operation cancelled"
"""In what comes of a call that Esc has ended; one that was only denied says something else."""


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
        self._messages: dict[str, int] = {}
        """The tokens of each message, by id, in their order."""
        self._over: set[str] = set()
        """Calls of the last message that were seen."""

    def add(self, fields: Record, offset: int) -> None:
        name, at = text(fields, "id"), moment(fields.get("timestamp"))
        if "$set" in fields:
            self._set(inner(fields, "$set"))
        elif (until := text(fields, "$rewindTo")) is not None:
            self._rewind(until)
        elif name is not None and at is not None:
            self._message(name, fields, at, offset)
        elif text(fields, "projectHash") is None:
            self.not_understood += 1

    def _set(self, keys: Fields) -> None:
        at = moment(keys.get("lastUpdated")) or self.updated_at
        self.updated_at = max(self.updated_at, at)
        if keys.get("messages") == [] and self._is_agent and self.state is RunState.WORKING:
            # It failed, or was stopped, in its answer: its parent is told which.
            self.end(RunState.FAILED, at, CUT_OFF)

    def _rewind(self, until: str) -> None:
        """All from this message on is taken back; all there is where it is not known."""
        ids = list(self._messages)
        for name in ids[ids.index(until) if until in self._messages else 0 :]:
            del self._messages[name]
        self.activity.add(Entry(self.updated_at, EntryKind.PROMPT))
        self.answer = None
        self.end(RunState.ENDED if self._messages else RunState.SUBMITTED, self.updated_at)
        self.prompt = self.prompt if self._messages else None

    def _message(self, name: str, fields: Fields, at: float, offset: int) -> None:
        is_new = name not in self._messages
        if is_new:
            self._over.clear()
        for entry in entries(fields, at):
            if entry.call not in self._over if entry.call else is_new:
                self.activity.add(entry)
        used = inner(fields, "tokens")
        tokens = (whole(used, "total") or 0) - (whole(used, "cached") or 0)
        self.tokens += tokens - self._messages.get(name, 0)
        self._messages[name] = tokens
        self.model = text(fields, "model") or self.model
        match fields.get("type"):
            case "user" if (words := _words_of(fields)).strip() and not words.startswith(_CONTEXT):
                self.go_on(at)
                self.prompted_at = at
                self.prompt = self.prompt or self.keep(words, at, offset)
            case "gemini":
                self._answered(fields, at, offset)

    def _answered(self, fields: Fields, at: float, offset: int) -> None:
        words, calls = _words_of(fields), [mapping(call) for call in listed(fields, "toolCalls")]
        self.go_on(at)
        if not calls and words.strip() and not self._is_agent:
            # So it looks, too, while its calls are under way: they are written once they are over.
            self.end(RunState.ENDED, at)
            self.answer = self.later(words, at, offset)
        for call in calls:
            self._called(call, at, offset)

    def _called(self, call: Fields, at: float, offset: int) -> None:
        """A call that is over."""
        name, tool, given = text(call, "id") or "", text(call, "name"), inner(call, "args")
        status, ended_at = text(call, "status") or "", moment(call.get("timestamp")) or at
        self.updated_at = max(self.updated_at, ended_at)
        if status == "cancelled" and _STOPPED in (came := _came_of(call)) and not self._is_agent:
            self.end(RunState.CANCELED, ended_at, first_line(came))
        if tool == _RETURN and status == "success" and self._is_agent:
            self.end(RunState.ENDED, ended_at)
            said = _handed_back(given)
            self.answer = self.later(said, ended_at, offset) if said.strip() else None
        elif tool == "write_todos" and name not in self._over:
            self.list(todos_in(listed(given, "todos"), "description"), ended_at)
        elif tool == "invoke_agent":
            words = text(given, "prompt")
            prompt = self.keep(words, at, offset) if words is not None else None
            answer = AgentAnswer(ended_at, _status_of(call), first_line(_came_of(call)), agent_id=text(call, "agentId"))
            self.calls[name] = AgentCall(name, at, None, prompt, text(given, "agent_name"), answer=answer)
        self._over.add(name)


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
                name, given = text(call, "id") or "", inner(call, "args")
                if text(call, "name") == _RETURN and call.get("status") == "success":
                    yield Entry(moment(call.get("timestamp")) or at, EntryKind.WORDS, _handed_back(given))
                    continue
                yield Entry(at, EntryKind.CALL, "", name, text(call, "name") or "", given)
                ended_at, refused = moment(call.get("timestamp")) or at, call.get("status") == "cancelled"
                failed = refused or call.get("status") == "error"
                came = _came_of(call)
                ended = None if refused else _ended(came)
                yield Entry(ended_at, EntryKind.RESULT, came, name, failed=failed, refused=refused, ended=ended)
        case "info" | "warning" | "error" if words:
            yield Entry(at, EntryKind.NOTE, words, failed=record.get("type") == "error")


def _words_of(record: Fields) -> str:
    """What a message says: one text, or that of its parts."""
    said = text(record, "content")
    parts = map(mapping, listed(record, "content"))
    return said if said is not None else "".join(text(part, "text") or "" for part in parts)


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


def _status_of(call: Fields) -> str:
    """What became of an agent: that its call succeeded is also said of one that failed, or ran out of turns."""
    status, shown = text(call, "status") or "", inner(call, "resultDisplay")
    if status != "success":
        return status
    return "error" if shown.get("state") == "error" else text(shown, "terminateReason") or _GOAL


def _handed_back(given: Fields) -> str:
    """What an agent hands back: a text, or an object with one, or with more."""
    result = given.get("result", next(iter(given.values()), None))
    if isinstance(result, dict) and len(result) == 1:
        result = next(iter(result.values()))
    try:
        return result if isinstance(result, str) else json.dumps(result, indent=2, ensure_ascii=False)
    except RecursionError:
        return ""


def _directory_in(fields: Fields) -> str | None:
    """Where an agent works, as the first line says."""
    places = listed(fields, "directories")
    return str(places[0]) if len(places) == 1 else None


_NO_CHAT: Final = Chat(no_message, is_agent=True)


class GeminiReader(FilesReader[Chat]):
    """`home` is `.gemini` in `$GEMINI_CLI_HOME`, else in the user's home. Agents run in the foreground."""

    name = NAME
    layout: ClassVar = Layout(
        r"chats/(?:session-[^/]+|(?P<session>[^/]+)/(?P<agent>[^/]+))\.jsonl",
        r"chats(?:/(?P<session>[^/]+))?",
        root="tmp",
    )
    all_belong = True

    def __init__(self, workspace: Path, home: Path) -> None:
        super().__init__(workspace, home)
        self._roots = Roots()

    def projects(self) -> list[str]:
        return [path for path in self.directories() if self._is_ours(path)]

    def _is_ours(self, project: str) -> bool:
        self.refused.discard(project)
        try:
            place = self._roots(project)
        except OSError:
            self.refused.add(project)
            return False
        return place is not None and holds(self.workspace, place)

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
        for call in map(mapping, listed(fields, "toolCalls")):
            if text(call, "name") == _RETURN:
                yield _handed_back(inner(call, "args"))

    def runs_of(self, session: Session[Chat], about: object) -> dict[str, Run]:
        folds, places = session.folds, session.places
        main = folds.get(SESSION, _NO_CHAT)
        begun = {name: chat for name, chat in folds.items() if name and chat.started_at is not None}
        asked = _asked(main, begun)

        def run(chat: Chat, call: AgentCall, standing: Standing, name: str, asker: str = SESSION) -> Run:
            return run_of(
                chat,
                call,
                standing,
                source=NAME,
                session_id=name or session.id,
                parent=(asker or session.id) if name else None,
                place=session.place(places, name),
                link="the parent's tool call" if chat is _NO_CHAT else "the directory of its chat",
            )

        found: dict[str, Run] = {}
        for name, chat in begun.items():
            call = asked.get(name, NO_CALL)
            found[name] = run(chat, call, _standing(chat, call, main), name)
        linked = {call.id for call in asked.values()}
        for asker, chat in folds.items():
            for call in chat.calls.values():
                if call.id not in linked:
                    standing = _standing(_NO_CHAT, call, main)
                    found[f"{session.id}/{call.id}"] = run(_NO_CHAT, call, standing, call.id, asker)
        if main.started_at is not None:
            # It waits for its agents, and says nothing of that.
            is_waiting = main.state is RunState.ENDED and any(one.state in OPEN for one in found.values())
            state = RunState.WORKING if is_waiting else main.state
            standing = Standing(state, main.reason, main.said, main.ended_at)
            found[session.id] = run(main, NO_CALL, standing, SESSION)
        settle(found, about)
        return found


def _asked(main: Chat, begun: dict[str, Chat]) -> dict[str, AgentCall]:
    """The call that each agent was begun by, as far as it is over: one that was stopped does not name its agent."""
    named = {call.answer.agent_id: call for call in main.calls.values() if call.answer and call.answer.agent_id}
    asked = {name: call for name, call in named.items() if name in begun}
    nameless = [call for call in main.calls.values() if call not in named.values()]
    for name, chat in sorted(begun.items(), key=lambda one: one[1].prompted_at):
        same = (call for call in nameless if call.prompt and chat.prompt and call.prompt.digest == chat.prompt.digest)
        if name not in asked and (call := next(same, None)) is not None:
            asked[name] = call
            nameless.remove(call)
    return asked


def _standing(chat: Chat, call: AgentCall, main: Chat) -> Standing:
    """By what it has handed back, then by what its parent was told."""
    answer, known = call.answer, Standing(chat.state, chat.reason, chat.said, chat.ended_at)
    if chat.state is RunState.ENDED:
        return known
    if answer is None:
        is_left = chat.state is RunState.WORKING and main.prompted_at > chat.prompted_at
        return Standing(RunState.FAILED, LEFT_BEHIND, None, chat.updated_at) if is_left else known
    reason = answer.summary if answer.status in ("cancelled", "error") else answer.status
    return Standing(_ENDS.get(answer.status, RunState.FAILED), reason, None, answer.at)
