"""One session of OpenCode or Kilo Code out of its messages and parts: its rounds, its task calls, and its runs."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from agentwatch.delegation.request import input_text
from agentwatch.delegation.run import Message, Permit, Permitter, Run, RunState, StartedBy, Turn
from agentwatch.sources.opencode.database import Record, SessionRow, seconds
from agentwatch.sources.sessions.doing import Ended, Entry, EntryKind, about
from agentwatch.sources.sessions.fields import Fields, inner, listed, mapping, question_in, text, todos_in, whole
from agentwatch.sources.sessions.runs import (
    NO_CALL,
    OPEN,
    UNREAD,
    Account,
    AgentAnswer,
    AgentCall,
    Standing,
    no_message,
    run_of,
)

_CANCELED: Final = ("Task cancelled", "Tool execution aborted", "Tool execution was interrupted")
"""What stands in a task call that a human aborted; Kilo says who did it behind it."""
_LEFT_BEHIND: Final = Standing(RunState.FAILED, "left behind unfinished: its parent went on without it")
_PATIENCE: Final = 3.0
"""Seconds after which a call that shows nothing of its work is taken to wait for a permission."""
_SUFFIX: Final = re.compile(r" \(@[^()\s]{1,100} subagent\)\Z")
"""The ending of the title of a child."""
_SHORTEST_CALL_ID: Final = 16
"""Some models number the calls of each answer anew: such an id names no single call."""
_AT_ONCE: Final = ("bash", "edit", "write", "patch", "apply_patch", "multiedit", "read", "glob", "grep", "list")
"""Tools that tell of their work within a second, so that one that stays silent has not been allowed to begin."""
_OPEN: Final = ("pending", "running")
_OVER: Final = ("completed", "error")
_CONTINUED: Final = ("tool-calls", "unknown")
_FRAME: Final = re.compile(
    r'(?:<task id="(?P<id>[^"\n]{1,200})" state="(?P<state>[a-z]{1,20})">\n(?:<summary>[^\n]*</summary>\n)?'
    r"|task_id: (?P<older>\S{1,200})[^\n]*\n\s*)<(?P<tag>task_result|task_error)>\n(?P<body>.*)\n</(?P=tag)>",
    re.DOTALL,
)
_REJECTED: Final = "The user rejected"
_RULE: Final = "The user has specified a rule"
_DISMISSED: Final = "The user dismissed"
"""How the errors of calls begin that nobody allowed."""
_FEEDBACK: Final = " with the following feedback: "
_LONGEST: Final = 2_000

Tell = Callable[[str, float, str], Message]
"""Makes a message of a text, its time, and the id of the message in which it stands."""


@dataclass(slots=True)
class TaskCall(AgentCall):
    """A call of the task tool, a part of a message. `child` is the session that it names, None for none yet."""

    part: str = ""
    child: str | None = None
    message_id: str = ""


class Session(Account):
    """The fold of all records of a session, as of one version of its row."""

    def __init__(
        self,
        row: SessionRow,
        messages: Sequence[Record],
        parts: Sequence[Record],
        tell: Tell,
        places: Sequence[str] = (),
    ) -> None:
        super().__init__(no_message, places)
        self.row = row
        self.started_at = self.updated_at = row.created
        self.agent = row.agent
        self.tasks: dict[str, TaskCall] = {}
        """The last call for each child, or by their own ids those without one."""
        self.notices: dict[str, AgentAnswer] = {}
        """By child in the background, what the program told of its end."""
        self.last_answer = ""
        """The message that it wrote last: its calls may be open, but none of an earlier one."""
        self.unread: list[str] = []
        """The messages of the records that cannot be read."""
        self.uses_tools = False
        """There is a call in its last answer."""
        self._tell = tell
        self.waits: list[tuple[float, str]] = []
        """Since when, and for what, each open call of its last answer waits if nothing comes of it."""
        self._has_answered = False
        self._fold(messages, parts)

    @property
    def waiting(self) -> str:
        now = time.time()
        return next((words for at, words in self.waits if now >= at), "")

    def _fold(self, messages: Sequence[Record], parts: Sequence[Record]) -> None:
        inside: dict[str, list[Record]] = {message.id: [] for message in messages}
        for part in parts:
            inside.setdefault(part.message_id, []).append(part)
        summaries = [message for message in messages if message.data.get("summary") is True]
        # Neither what shortens the conversation nor the request for it is a part of it.
        aside = {message.id for message in summaries} | {text(message.data, "parentID") for message in summaries}
        for message in sorted(messages, key=lambda one: (_when(one.data, "created") or one.created, one.id)):
            at = _when(message.data, "created") or message.created
            self.updated_at = max(self.updated_at, at, message.updated)
            self.activity.open.clear()
            is_user = message.data.get("role") == "user"
            if not message.data:
                self.unread.append(message.id)
            if not is_user and message.id not in aside:
                self.last_answer, self.uses_tools = message.id, False
                self.waits.clear()
            for part in inside[message.id]:
                self._part(part, message.id, at, is_asked=is_user)
            words = [text(part.data, "text") or "" for part in inside[message.id] if has_words(part.data)]
            if is_user:
                self.agent = self.agent or text(message.data, "agent")
                if message.id not in aside:
                    self._asked(self._tell("\n".join(words), at, message.id) if words else None, at)
            else:
                self._used(message.data)
                if message.id not in aside:
                    self._answered(message, words, at)

    def _asked(self, prompt: Message | None, at: float) -> None:
        self.prompt = self.prompt or prompt
        # What a human goes on to say in a session of his own is not read.
        asked = prompt if self.row.parent_id is not None else None
        begun = Turn(at, asked, StartedBy.PARENT if asked is not None else StartedBy.PROGRAM)
        if self.begun is not None and self.begun.prompt is None and self.state in OPEN:
            # Nobody asked for it and nothing came of it: it may be made of records that cannot be read.
            self.begun = begun
        else:
            self.begin_round(begun)
        self.state = RunState.WORKING if self._has_answered else RunState.SUBMITTED
        self.answer, self.ended_at, self.reason = None, None, ""

    def _used(self, data: Fields) -> None:
        self.agent = text(data, "agent") or self.agent
        provider, model = text(data, "providerID"), text(data, "modelID")
        self.model = f"{provider}/{model}" if provider and model else model
        tokens = inner(data, "tokens")
        used = [whole(tokens, key) or 0 for key in ("input", "output", "reasoning")]
        # What came from the cache is not counted again with each message.
        self.tokens += sum(used) + (whole(inner(tokens, "cache"), "write") or 0)

    def _answered(self, message: Record, words: Sequence[str], at: float) -> None:
        data = message.data
        self._has_answered = True
        self.begun = self.begun or Turn(at)
        finish, completed, self.reason = text(data, "finish"), _when(data, "completed"), _error_in(data)
        self.answer, self.state, self.ended_at = None, RunState.WORKING, completed or None
        if self.reason:
            is_aborted = inner(data, "error").get("name") == "MessageAbortedError"
            self.state = RunState.CANCELED if is_aborted else RunState.FAILED
        elif completed and finish is not None and finish not in _CONTINUED:
            self.state = RunState.ENDED
            if words:
                # The last text is what the program hands to the parent.
                said = self._tell(words[-1], completed, message.id)
                self.answer = lambda: said

    def _part(self, part: Record, message_id: str, at: float, *, is_asked: bool) -> None:
        data, self.updated_at = part.data, max(self.updated_at, part.updated)
        for entry in entries(data, part.created, is_asked=is_asked):
            self.activity.add(entry)
        words = text(data, "text")
        is_task = text(data, "tool") == "task"
        is_odd = is_task and text(inner(data, "state"), "status") not in (*_OPEN, *_OVER)
        if not data or is_odd or (data.get("type") == "text" and not isinstance(data.get("text"), str)):
            self.unread.append(message_id)
        elif data.get("type") == "tool":
            self.uses_tools = True
            self._tool(part, message_id)
        elif data.get("synthetic") is True and (frame := _FRAME.match(words or "")) and frame["state"] in _OVER:
            error = (frame["body"].strip() or "it failed")[:_LONGEST] if frame["state"] == "error" else None
            self.notices[frame["id"]] = AgentAnswer(at, error=error)

    def _tool(self, part: Record, message_id: str) -> None:
        data = part.data
        tool, state, call_id = text(data, "tool") or "", inner(data, "state"), text(data, "callID") or part.id
        status, given, told = text(state, "status"), inner(state, "input"), inner(state, "metadata")
        began, ended = _when(state, "start") or part.created, _when(state, "end") or part.updated
        error = text(state, "error") or "it failed" if status == "error" else None
        if tool == "todowrite" and isinstance(given.get("todos"), list):
            todos = [one for one in listed(given, "todos") if mapping(one).get("status") != "cancelled"]
            self.list(todos_in(todos, "content"), began)
        if status == "running" and (waits := _waits(tool, given, told)):
            self.waits.append((0.0 if tool == "question" else began + _PATIENCE, waits))
        if status in _OVER:
            self.permits.append(_permit(call_id, tool, state, ended))
        if tool == "invalid" and text(given, "tool") == "task" and status == "completed":
            # A call of a tool that is not there is noted like this, with that tool's name alone.
            tool, error, state = "task", text(given, "error") or "it failed", {}
        if tool == "task":
            output, prompt = text(state, "output") or "", text(given, "prompt")
            frame, said = _FRAME.match(output), result_in(output)
            named = frame["id"] or frame["older"] if frame is not None else None
            child = text(told, "sessionId") or text(told, "sessionID") or named
            answer = AgentAnswer(
                ended,
                said=self._tell(said, ended, message_id) if said is not None else None,
                error=error and error[:_LONGEST],
                launched=frame is not None and frame["state"] == "running",
            )
            self.tasks[child or part.id] = TaskCall(
                call_id if len(call_id) >= _SHORTEST_CALL_ID else part.id,
                began,
                prompt=self._tell(prompt, began, message_id) if prompt is not None else None,
                agent_type=text(given, "subagent_type"),
                title=text(given, "description"),
                background=given.get("background") is True or told.get("background") is True,
                answer=answer if status in _OVER else None,
                part=part.id,
                child=child,
                message_id=message_id,
            )


def runs_of(
    session: Session,
    parent: Session | None,
    parent_state: RunState | None,
    known: Collection[str],
    *,
    source: str,
    place: str,
) -> dict[str, Run]:
    """The runs of a session, and of its task calls that have none of the `known` sessions, by key.

    `parent_state` is None where there is no parent or its state is not known.
    """
    row = session.row
    call = parent.tasks.get(row.id) if parent is not None else None
    standing = _standing(session, call, parent, parent_state)
    if standing.state is RunState.ENDED and standing.said is None and session.last_answer in session.unread:
        # What cannot be read may say that it failed, so it is not said to be over.
        standing = Standing(RunState.SUBMITTED if row.parent_id is not None else RunState.ENDED, UNREAD)
    run = run_of(
        session,
        call or NO_CALL,
        standing,
        source=source,
        session_id=row.id,
        parent=row.parent_id,
        place=place,
        link="the session names its parent",
        title=_SUFFIX.sub("", row.title),
        agent=session.agent,
    )
    runs = {row.id: run}
    for task in session.tasks.values():
        # A call that is open may still get a session.
        told = _told(task.answer) or (_LEFT_BEHIND if _is_left_behind(task, session, run.state) else None)
        if told is not None and task.child not in known:
            runs[task.part] = run_of(
                Account(no_message),
                task,
                told,
                source=source,
                session_id=task.child or task.id,
                parent=row.id,
                place=place,
                link="the task call of the parent",
            )
    return runs


def _standing(
    session: Session, call: TaskCall | None, parent: Session | None, parent_state: RunState | None
) -> Standing:
    """How a session stands: by its own last message, and where this does not tell, by what its parent was told."""
    own = Standing(session.state, session.reason, session.said, session.ended_at)
    if call is None or parent is None:
        return own
    answer = parent.notices.get(session.row.id) if call.answer and call.answer.launched else call.answer
    told = _told(answer, session.begun.began_at if session.begun is not None else 0.0)
    if own.state is RunState.ENDED and told is None and session.uses_tools:
        # A model that says "stop" beside a call is asked again.
        return Standing(RunState.WORKING)
    if own.state in OPEN and told is None and _is_left_behind(call, parent, parent_state):
        return _LEFT_BEHIND
    if told is None or own.state not in (*OPEN, RunState.ENDED):
        return own
    if own.state is RunState.ENDED and told.state is not RunState.FAILED:
        return own._replace(said=own.said or told.said)
    return told


def _told(answer: AgentAnswer | None, since: float = 0.0) -> Standing | None:
    """By what was answered, unless that was for an earlier round."""
    if answer is None or answer.launched or answer.at < since:
        return None
    if answer.error is None:
        return Standing(RunState.ENDED, "", answer.said, answer.at)
    is_canceled = answer.error.startswith(_CANCELED)
    return Standing(RunState.CANCELED if is_canceled else RunState.FAILED, answer.error, None, answer.at)


def _is_left_behind(call: TaskCall, parent: Session, parent_state: RunState | None) -> bool:
    """Whether nobody waits for the answer to a call any more: its program was killed and its parent went on."""
    return call.answer is None and (parent_state not in (None, *OPEN) or call.message_id != parent.last_answer)


def has_words(data: Fields) -> bool:
    """Whether a part is a text with a word in it that a person or a model wrote, not the program."""
    is_own = data.get("synthetic") is True or data.get("ignored") is True
    return data.get("type") == "text" and not is_own and bool((text(data, "text") or "").strip())


def result_in(output: str) -> str | None:
    """The text inside of `<task id=… state=…><task_result>…`, or of the older frame, or bare; None without a word."""
    frame = _FRAME.match(output)
    words = frame["body"] if frame is not None else output
    return words if words.strip() else None


def _permit(call_id: str, tool: str, state: Fields, at: float) -> Permit:
    """What became of a finished call. OpenCode does not say whether anybody was asked. Kilo does, but not where."""
    told, error, words = inner(state, "metadata"), text(state, "error") or "", ""
    allowed: bool | None = state.get("status") == "completed" and told.get("dismissed") is not True
    source = text(inner(told, "approval"), "source")
    by = Permitter.UNKNOWN if source in (None, "manual") else Permitter.RULE
    if error.startswith(_REJECTED):
        words = error.partition(_FEEDBACK)[2]
    elif error.startswith(_RULE):
        by = Permitter.RULE
    elif error and not error.startswith(_DISMISSED):
        # It began and failed, or was stopped while it waited: that does not say.
        allowed = None
    elif allowed and tool == "question":
        asked = [text(mapping(one), "question") or "" for one in listed(inner(state, "input"), "questions")]
        answers = [", ".join(map(str, one)) if isinstance(one, list) else "" for one in listed(told, "answers")]
        with suppress(ValueError):
            words = input_text(dict(zip(asked, answers, strict=False)))[0]
    return Permit(call_id, tool, "", allowed, by, at, words[:_LONGEST])


def _waits(tool: str, given: Fields, told: Fields) -> str:
    """What a running call waits for if nothing comes of it, "" where it may just be working."""
    if tool == "question":
        return question_in(given)
    # Kilo writes the approval into the metadata, and the shell its output, as soon as either may begin.
    if told or tool not in (*_AT_ONCE, "task"):
        return ""
    what = "" if tool == "task" else about(tool, given)
    return f"a permission, it seems: {tool} {what}".rstrip()


def _when(fields: Fields, key: str) -> float:
    return seconds(inner(fields, "time").get(key))


def _error_in(data: Fields) -> str:
    """Why a message failed, in the program's words; "" where it did not."""
    error = inner(data, "error")
    words = text(inner(error, "data"), "message") or text(error, "message") or text(error, "name")
    return (words or ("it failed" if data.get("error") is not None else ""))[:_LONGEST]


def entries(part: Fields, at: float, *, is_asked: bool = False) -> Iterator[Entry]:
    """What the data of a part say, in their order; of a call, what came of it as well.

    `at` is when the part was made, in epoch seconds. `is_asked`: the message is a human's, or the parent's.
    """
    words = text(part, "text") or ""
    match part.get("type"):
        case "text" if words.strip():
            is_own = part.get("synthetic") is True or part.get("ignored") is True
            yield Entry(at, EntryKind.NOTE if is_own else EntryKind.PROMPT if is_asked else EntryKind.WORDS, words)
        case "reasoning" if words.strip():
            yield Entry(at, EntryKind.THOUGHT, words)
        case "tool":
            yield from _entries_of_call(part, at)
        case "retry":
            yield Entry(at, EntryKind.NOTE, _error_in(part) or "an error", failed=True)


def _entries_of_call(part: Fields, at: float) -> Iterator[Entry]:
    state, call = inner(part, "state"), text(part, "callID") or "call"
    at, status = _when(state, "start") or at, state.get("status")
    yield Entry(at, EntryKind.CALL, "", call, text(part, "tool") or "", inner(state, "input"))
    if status not in _OVER:
        return
    told, error = inner(state, "metadata"), text(state, "error") or ""
    words, code = error or text(state, "output") or "", whole(told, "exit")
    ended = Ended(code, text(told, "output") or words, told.get("truncated") is True) if status == "completed" else None
    refused = error.startswith((_REJECTED, _DISMISSED, _RULE))
    failed = status == "error" or bool(code)
    end = _when(state, "end") or at
    yield Entry(end, EntryKind.RESULT, words, call, failed=failed, refused=refused, ended=ended)
