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
from agentwatch.sources.sessions.runs import NO_CALL, OPEN, Account, AgentCall, Standing, no_message, run_of

_CANCELED: Final = ("Task cancelled", "Tool execution aborted", "Tool execution was interrupted")
"""What stands in a task call that a human aborted; Kilo says who did it behind it."""
_LEFT_BEHIND: Final = Standing(RunState.FAILED, "left behind unfinished: its parent went on without it")
_PATIENCE: Final = 3.0
"""Seconds after which a call that shows nothing of its work is taken to wait for a permission."""
_SUFFIX: Final = re.compile(r" \(@[^()\s]{1,100} subagent\)\Z")
"""The ending of the title of a child."""
_AT_ONCE: Final = ("bash", "edit", "write", "patch", "apply_patch", "multiedit", "read", "glob", "grep", "list")
"""Tools that tell of their work within a second, so that one that stays silent has not been allowed to begin."""
_OVER: Final = ("completed", "error")
_CONTINUED: Final = ("tool-calls", "unknown")
FRAME: Final = re.compile(
    r'<task id="(?P<id>[^"\n]{1,200})" state="(?P<state>[a-z]{1,20})">\n(?:<summary>[^\n]*</summary>\n)?'
    r"<(?P<tag>task_result|task_error)>\n(?P<body>.*)\n</(?P=tag)>",
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
    """A call of the task tool, a part of a message. `child` is the session that it names, None for none yet; `told` is
    how that stands by the answer, None as long as there is none: it may have been launched in the background."""

    child: str | None = None
    message_id: str = ""
    is_open: bool = True
    launched: bool = False
    told: Standing | None = None


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
        self.agent: str | None = None
        self.tasks: dict[str, TaskCall] = {}
        """The last call for each child, or by their own ids those without one."""
        self.notices: dict[str, Standing] = {}
        """By child in the background, what the program told of its end."""
        self.last_answer = ""
        """The message that it wrote last: its calls may be open, but none of an earlier one."""
        self.unread = 0
        """Records that cannot be read."""
        self.uses_tools = False
        """There is a call in its last answer."""
        self.waits: list[tuple[float, str]] = []
        """Since when, and for what, each open call of its last answer waits if nothing comes of it."""
        self._tell = tell
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
            self.unread += not message.data
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
        self.state = RunState.WORKING if self.last_answer else RunState.SUBMITTED
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
        self.unread += not data
        if data.get("type") == "tool":
            self.uses_tools = True
            self._tool(part, message_id)
        elif data.get("synthetic") is True and (frame := FRAME.match(text(data, "text") or "")):
            # The program tells of the end of a child in the background.
            is_error = frame["state"] == "error"
            self.notices[frame["id"]] = (
                _failed(frame["body"], at) if is_error else Standing(RunState.ENDED, ended_at=at)
            )

    def _tool(self, part: Record, message_id: str) -> None:
        data = part.data
        tool, state, call_id = text(data, "tool") or "", inner(data, "state"), text(data, "callID") or part.id
        status, given, about_it = text(state, "status"), inner(state, "input"), inner(state, "metadata")
        began, ended = _when(state, "start") or part.created, _when(state, "end") or part.updated
        if tool == "todowrite" and isinstance(given.get("todos"), list):
            todos = [one for one in listed(given, "todos") if mapping(one).get("status") != "cancelled"]
            self.list(todos_in(todos, "content"), began)
        if status == "running" and (waits := _waits(tool, given, about_it)):
            self.waits.append((0.0 if tool == "question" else began + _PATIENCE, waits))
        if status in _OVER:
            self.permits.append(_permit(call_id, tool, state, ended))
        if tool == "task":
            frame = FRAME.match(text(state, "output") or "")
            child = text(about_it, "sessionId") or (frame["id"] if frame is not None else None)
            call = self.tasks[child or part.id] = TaskCall(
                part.id,
                began,
                prompt=self._tell(text(given, "prompt") or "", began, message_id),
                agent_type=text(given, "subagent_type"),
                title=text(given, "description"),
                background=given.get("background") is True or about_it.get("background") is True,
                child=child,
                message_id=message_id,
                is_open=status in ("pending", "running"),
                launched=frame is not None and frame["state"] == "running",
            )
            if status == "error":
                call.told = _failed(text(state, "error") or "", ended)
            elif status == "completed" and not call.launched:
                words = frame["body"] if frame is not None else ""
                said = self._tell(words, ended, message_id) if words.strip() else None
                call.told = Standing(RunState.ENDED, "", said, ended)


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
        told = task.told or (_LEFT_BEHIND if _is_left_behind(task, session, run.state) else None)
        if told is not None and task.child not in known:
            runs[task.id] = run_of(
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
    if call is None or parent is None or own.state not in (*OPEN, RunState.ENDED):
        return own
    told = parent.notices.get(session.row.id) if call.launched else call.told
    if told is not None and session.begun is not None and (told.ended_at or 0.0) < session.begun.began_at:
        # That was for an earlier round.
        told = None
    if told is None and own.state is RunState.ENDED:
        # A model that says "stop" beside a call is asked again.
        return Standing(RunState.WORKING) if session.uses_tools else own
    if told is None:
        return _LEFT_BEHIND if _is_left_behind(call, parent, parent_state) else own
    if own.state is RunState.ENDED and told.state is not RunState.FAILED:
        return own._replace(said=own.said or told.said)
    return told


def _failed(error: str, at: float) -> Standing:
    state = RunState.CANCELED if error.startswith(_CANCELED) else RunState.FAILED
    return Standing(state, error.strip()[:_LONGEST] or "it failed", None, at)


def _is_left_behind(call: TaskCall, parent: Session, parent_state: RunState | None) -> bool:
    """Whether nobody waits for the answer to a call any more: its program was killed and its parent went on."""
    return call.is_open and (parent_state not in (None, *OPEN) or call.message_id != parent.last_answer)


def has_words(data: Fields) -> bool:
    """Whether a part is a text with a word in it that a person or a model wrote, not the program."""
    is_own = data.get("synthetic") is True or data.get("ignored") is True
    return data.get("type") == "text" and not is_own and bool((text(data, "text") or "").strip())


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
