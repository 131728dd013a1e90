"""One transcript file, folded record by record: its conversations, the agents it asked for, what it heard of them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from agentwatch.contracts.shapes import Todo
from agentwatch.delegation.request import input_text
from agentwatch.delegation.run import Message, Permit, Permitter, RunState, StartedBy, Turn
from agentwatch.sources.claude_code.entries import (
    ERROR_TAG,
    INTERRUPTED,
    answer_entries,
    cut_short,
    handed_back,
    named_agent,
    read_content,
    texts,
    typed,
)
from agentwatch.sources.sessions.doing import Entry, EntryKind
from agentwatch.sources.sessions.fields import (
    TODO_STATUSES,
    Fields,
    digest_of,
    first_line,
    inner,
    listed,
    moment,
    question_in,
    read_notification,
    text,
    todos_in,
    todos_of,
    whole,
)
from agentwatch.sources.sessions.runs import UNREAD, WORDLESS, Account, AgentAnswer, AgentCall, Answer, Keep, Rising
from agentwatch.sources.sessions.tail import Record

DELEGATING: Final = frozenset({"Task", "Agent"})
"""The tool that hands out work, by its old and its new name."""
NOTHING: Final = frozenset({"", "(no content)"})
"""The content of a message without a word."""

QUESTIONS: Final = frozenset({"AskUserQuestion", "ExitPlanMode"})
"""Tools that do nothing but ask; a use of any other may need a permission."""
_SUBJECTS: Final = ("command", "file_path", "notebook_path", "path", "pattern", "url", "query", "skill")
_LONGEST: Final = 200
_SPAWNING: Final = DELEGATING | {"Skill", "Workflow"}
"""Tools that may begin an agent; a use of the latter two is a delegation only if an agent names it."""
_CHECKLIST: Final = frozenset({"TodoWrite", "TaskCreate", "TaskUpdate"})
_MOST_ITEMS: Final = 500
_CREATED: Final = re.compile(r"\bTask #(\d{1,9})\b")
_ENDS: Final = ("end_turn", "stop_sequence")
"""`max_tokens` and `pause_turn` are no ends: the program goes on by itself."""
_THOUGHTS: Final = frozenset({"thinking", "redacted_thinking"})
_COUNTED: Final = ("input_tokens", "cache_creation_input_tokens", "output_tokens")
_TITLES: Final = {"summary": "summary", "ai-title": "aiTitle", "custom-title": "customTitle"}
"""By the type of a record, the key of the title in it."""
_FEEDBACK: Final = "Stop hook feedback"
_REMINDER: Final = "<system-reminder>"
_LOCAL: Final = ("<local-command-stdout>", "<local-command-stderr>", "<bash-stdout>", "<bash-stderr>")
_DECISIONS: Final = {"accept": True, "reject": False, "allow": True, "deny": False}
_UNASKED: Final = (None, "config")
"""Sources of calls that ran because nothing forbade them."""
_REJECTED: Final = "user-rejected"
"""A kind of denial that a person is behind, where the record names no source."""

_BeforePrompt = tuple[RunState, Answer | None, str, float | None, Message | None, Turn | None]


@dataclass(slots=True)
class ClaudeCall(AgentCall):
    """`by` is the inline conversation that made it, None for the file's own; `resumes` is the agent it goes on with."""

    tool: str = ""
    by: str | None = None
    resumes: str | None = None


class Conversation(Account):
    """Prompts and answers of one agent."""

    def __init__(self, keep: Keep, places: Sequence[str] = (), *, is_agent: bool) -> None:
        super().__init__(keep, places)
        self.is_unread = False
        """Its last message has no text that is understood, and something that is not."""
        self.rounds = 0
        self.round_at = 0.0
        self.rising = Rising()
        """For the calls that hand out work."""
        self.uses: dict[str, Entry] = {}
        """Those of tools in the last message that have no result yet, by id; not of those that hand out work."""
        self._is_agent = is_agent
        self._usage = 0
        self._message_id: str | None = None
        self._text: Answer | None = None
        """That of the last message."""
        self._uses_tools = self._is_strange = False
        self._before_prompt: _BeforePrompt | None = None
        self._by_hooks: dict[str, bool | None] = {}
        self._written: tuple[Todo, ...] | None = None
        self._items: dict[str, tuple[str, str]] = {}
        self._subjects: dict[str, str] = {}
        """Of items that have no number yet, by the call that makes them."""

    @property
    def waiting(self) -> str:
        """Its question by a tool that does nothing else."""
        if self.state is not RunState.WORKING:
            return ""
        return next((words_of_use(use) for use in self.uses.values() if use.tool in QUESTIONS), "")

    def prompted(self, words: str, at: float, offset: int, asker: StartedBy) -> None:
        """The agent was given something to do."""
        self.activity.begin()
        self._before_prompt = (self.state, self.answer, self.reason, self.ended_at, self.prompt, self.begun)
        # What a human goes on to say in a session of his own is no attempt of anybody's.
        prompt = self.keep(words, at, offset) if self.prompt is None or self._is_agent else None
        if self.prompt is None:
            self.prompt = prompt
        elif self.state is RunState.WORKING:
            self._count_round(at)
        self._begin(at, Turn(at, prompt, asker))

    def take_back_prompt(self) -> None:
        """The program itself answered what was typed: the model was not asked."""
        if self._before_prompt is not None:
            had_ended = self._before_prompt[0] is not RunState.WORKING and self._before_prompt[-1] is not None
            self.state, self.answer, self.reason, self.ended_at, self.prompt, self.begun = self._before_prompt
            if had_ended:
                self.earlier.pop()
            self._before_prompt = None

    def ask_again(self, at: float) -> None:
        """The program does not take the last answer, which was cut off, and asks for another in the same round."""
        self._text = None
        if self.state is RunState.ENDED:
            self.go_on(at)

    def interrupt(self, words: str, at: float) -> None:
        """A human stopped it. An answer that was whole by then stays one."""
        if self.state is not RunState.ENDED:
            self.end(RunState.CANCELED, at, first_line(words))

    def answered(self, record: Fields, told: Sequence[Entry], at: float, offset: int) -> bool:
        """A record of a message of the model, as a rule one block of it; whether all that it says is understood."""
        message = inner(record, "message")
        said, types, is_understood = read_content(message.get("content"))
        message_id = text(message, "id") or text(record, "uuid")
        goes_on = message_id is not None and message_id == self._message_id
        if self.state is not RunState.WORKING and not goes_on:
            self._begin(at, Turn(at))
        self._before_prompt = None
        if not goes_on:
            self._begin_message(message_id)
            self._usage = 0
        model = text(message, "model")
        self.model = model if model is not None and model != "<synthetic>" else self.model
        # What came from the cache is not counted again.
        used, tokens = inner(message, "usage"), 0
        for key in _COUNTED:
            if isinstance(count := used.get(key), int):
                tokens += count
        tokens = max(tokens, self._usage)
        self.tokens, self._usage = self.tokens + tokens - self._usage, tokens
        if "tool_use" in types:
            self._uses_tools = True
            if self.state is RunState.ENDED:
                self.go_on(at)
        for entry in told:
            self.activity.add(entry)
        if said.strip() not in NOTHING:
            self._text = self.later(said, at, offset)
        self._is_strange = self._is_strange or not is_understood
        reason = message.get("stop_reason")
        if record.get("isApiErrorMessage") is True:
            self.end(RunState.FAILED, at, _api_error(record, said))
        elif reason == "refusal":
            self.end(RunState.FAILED, at, "the model refused to answer")
        elif reason in _ENDS and not (types and types <= _THOUGHTS):
            self.end_turn(at)
        return is_understood

    def end_turn(self, at: float) -> None:
        """The turn is over, if the last message asks for no tool: older programs write it beside the message."""
        if self.state is RunState.WORKING and self._message_id is not None and not self._uses_tools:
            self.answer = self._text
            self.is_unread = self._text is None and self._is_strange
            self.end(RunState.ENDED, at, "" if self._text is not None else UNREAD if self.is_unread else WORDLESS)
        elif self.state is RunState.ENDED and self._text is not None and not self._uses_tools:
            self.answer, self.is_unread, self.reason = self._text, False, ""

    def last_text(self) -> Message | None:
        """The text of the last message, where it is no preface to a use of tools."""
        return self._text() if self._text is not None and not self._uses_tools else None

    def go_on(self, at: float) -> None:
        super().go_on(at)
        self.is_unread = False

    def _begin(self, at: float, begun: Turn) -> None:
        if self.state is not RunState.WORKING:
            self._count_round(at)
            if self._is_agent:
                self.begin_round(begun)
        self.go_on(at)
        self._begin_message(None)

    def _begin_message(self, message_id: str | None) -> None:
        self._message_id = message_id
        self._text = None
        self._uses_tools = self._is_strange = False
        for known in (self.uses, self.activity.open, self._by_hooks):
            known.clear()

    def _count_round(self, at: float) -> None:
        self.rounds += 1
        self.round_at = at

    def update_checklist(self, tool: str, call: str, given: Fields, at: float) -> bool:
        """A tool of the checklist is used: `TodoWrite` gives the whole list, `TaskCreate` and `TaskUpdate` one item.
        True where its result is needed to know which item it made."""
        number, status = str(given.get("taskId")), text(given, "status")
        is_new = False
        if tool == "TodoWrite":
            self._written = todos_in(listed(given, "todos"), "content")
        elif tool == "TaskCreate":
            subject = text(given, "subject")
            if is_new := subject is not None and len(self._items) + len(self._subjects) < _MOST_ITEMS:
                self._subjects[call] = subject or ""
        elif status == "deleted":
            self._items.pop(number, None)
        elif number in self._items:
            words, before = self._items[number]
            self._items[number] = text(given, "subject") or words, status if status in TODO_STATUSES else before
        self.list(self._checklist(), at)
        return is_new

    def add_item(self, call: str, blocks: list[str], result: Fields) -> None:
        """The result of a `TaskCreate`: from here on its item has a number."""
        subject, number = self._subjects.pop(call, None), inner(result, "task").get("id")
        if not isinstance(number, str) and (match := _CREATED.search(blocks[0] if blocks else "")) is not None:
            number = match[1]
        if subject is not None and isinstance(number, str):
            self._items[number] = subject, "pending"
            self.todos = self._checklist()

    def _checklist(self) -> tuple[Todo, ...] | None:
        return self._written if self._written is not None else todos_of(self._items.values()) or None

    def decided(self, attachment: Fields) -> None:
        """A hook has decided about a call that was asked about."""
        call = text(attachment, "toolUseID")
        if call in self.activity.open and attachment.get("hookEvent") == "PermissionRequest":
            self._by_hooks[call] = _DECISIONS.get(str(attachment.get("decision")))

    def permit(self, call: Entry, record: Fields, block: Fields, result: Fields, at: float) -> None:
        """A call has its result, and the program may write beside it who allowed it, or refused it."""
        decision, denial = inner(record, "permissionDecision"), text(record, "toolDenialKind")
        source = text(decision, "source")
        if denial is None and source in _UNASKED:
            return
        allowed = _DECISIONS.get(str(decision.get("decision")), None if denial is None else False)
        by = Permitter.UNKNOWN
        if source == "hook":
            # A hook of another event leaves no line of its own, and was not asked what we were asked.
            if call.call in self._by_hooks and self._by_hooks[call.call] is allowed:
                by = Permitter.HOOK
        elif source == "config":
            by = Permitter.RULE
        elif (source or "").startswith("user") or (source is None and denial == _REJECTED):
            by = Permitter.PERSON
        words = "\n".join(texts(block.get("content"))) if allowed is False else _spell(result.get("answers"))[0]
        self.permits.append(Permit(call.call, call.tool, _spell(call.given)[1], allowed, by, at, words))


class Transcript:
    """The state of one file after the records that were folded in. It depends on these alone.

    `places` are the spellings of the workspace. `inline` holds the conversations that programs before 2.0 wrote into
    the session's own file, by the uuid of their first record. `ends` are the last notifications by agent, `progress`
    says which call an agent belongs to.
    """

    def __init__(self, keep: Keep, is_agent: bool, places: Sequence[str] = ()) -> None:
        self.main = Conversation(keep, places, is_agent=is_agent)
        self.inline: dict[str, Conversation] = {}
        self.calls: dict[str, ClaudeCall] = {}
        self.ends: dict[str, AgentAnswer] = {}
        self.progress: dict[str, str] = {}
        self.cwd: str | None = None
        self.titles: dict[str, str] = {}
        self.not_understood = 0
        self._keep = keep
        self._places = places
        self._is_agent = is_agent
        self._version = ""
        self._uuids: set[int] = set()
        self._threads: dict[str, str] = {}
        self._heard: dict[str, str] = {}
        self._awaited: dict[str, Conversation] = {}

    def add(self, fields: Record, offset: int) -> None:
        if self.cwd is None:
            self.cwd = text(fields, "cwd")
        self._version = text(fields, "version") or self._version
        written, kind = moment(fields.get("timestamp")), fields.get("type")
        at = written if written is not None else self.main.updated_at
        match kind:
            case "user" | "assistant":
                self._message(fields, written, offset)
                return
            case "summary" | "ai-title" | "custom-title":
                if (title := text(fields, _TITLES[kind])) is not None:
                    self.titles[kind] = first_line(title)
                return
            case "queue-operation":
                self._notified(fields.get("content"), at, offset)
                return
            case "attachment":
                attachment = inner(fields, "attachment")
                if attachment.get("type") == "queued_command":
                    self._notified(attachment.get("prompt"), at, offset)
                elif attachment.get("type") == "hook_permission_decision":
                    self.main.decided(attachment)
            case "progress":
                data = inner(fields, "data")
                agent_id, call = text(data, "agentId"), text(fields, "parentToolUseID")
                if data.get("type") == "agent_progress" and agent_id is not None and call is not None:
                    self.progress.setdefault(agent_id, call)
            case "system":
                if fields.get("subtype") in ("turn_duration", "stop_hook_summary"):
                    self.main.end_turn(at)
            case _:
                if text(fields, "uuid") is not None and inner(fields, "message").get("role") in ("user", "assistant"):
                    # Something was said, in a record of a kind that is not known.
                    self.not_understood += 1
                return
        if written is not None:
            self.main.touch(written)

    def _message(self, fields: Record, written: float | None, offset: int) -> None:
        uuid = text(fields, "uuid")
        if uuid is None:
            # The program never writes one without; a forged one must not end, or begin again, what is sound.
            self.not_understood += 1
            return
        if hash(uuid) in self._uuids:
            # Some records are written twice, when a session is gone on with.
            return
        self._uuids.add(hash(uuid))
        by, conversation = None, self.main
        if fields.get("isSidechain") is True and not self._is_agent:
            by = self._thread(fields, uuid)
            conversation = self.inline[by]
        at = written if written is not None else conversation.updated_at
        conversation.touch(at)
        if fields["type"] == "user":
            self._user(fields, conversation, at, offset)
        else:
            self._assistant(fields, by, conversation, at, offset)

    def _thread(self, fields: Fields, uuid: str) -> str:
        """The conversation inside of the session's file that a record belongs to."""
        thread = self._threads.get(str(fields.get("parentUuid")))
        if thread is None:
            asked = fields.get("type") == "user" and bool(texts(inner(fields, "message").get("content")))
            thread = uuid if asked or not self.inline else next(reversed(self.inline))
        self._threads[uuid] = thread
        if thread not in self.inline:
            self.inline[thread] = Conversation(self._keep, self._places, is_agent=True)
        return thread

    def _user(self, fields: Fields, conversation: Conversation, at: float, offset: int) -> None:
        content = inner(fields, "message").get("content")
        blocks = content if isinstance(content, list) else []
        results = [block for block in blocks if isinstance(block, dict) and block.get("type") == "tool_result"]
        result = inner(fields, "toolUseResult") if len(results) == 1 else {}
        for block in results:
            call = self._returned(block, result, conversation, at, offset)
            if call is not None and len(results) == 1:
                conversation.permit(call, fields, block, result, at)
        said = "\n".join(texts(content))
        if said.startswith(INTERRUPTED):
            conversation.interrupt(said, at)
        elif said.startswith(_LOCAL):
            conversation.take_back_prompt()
        elif fields.get("turnCompanion") is True and not said.startswith(_REMINDER):
            conversation.ask_again(at)
        elif not results and said.strip() and _begins_round(fields, said):
            is_told = self._notified(said, at, offset)
            asker = StartedBy.PROGRAM if is_told else StartedBy.HOOK if said.startswith(_FEEDBACK) else StartedBy.PARENT
            conversation.prompted(said, at, offset, asker)
            self.titles.setdefault("prompt", typed(said))

    def _assistant(self, fields: Fields, by: str | None, conversation: Conversation, at: float, offset: int) -> None:
        told = answer_entries(fields, at)
        self.not_understood += not conversation.answered(fields, told, at, offset)
        if self._version.startswith("1."):
            conversation.end_turn(at)
        if fields.get("forkedFrom") is not None:
            return
        for entry in told:
            if entry.kind is not EntryKind.CALL or not entry.call:
                continue
            tool, call, given = entry.tool, entry.call, entry.given
            if tool not in DELEGATING:
                conversation.uses[call] = entry
            if tool in _CHECKLIST and conversation.update_checklist(tool, call, given, at):
                self._awaited[call] = conversation
            elif tool in _SPAWNING and call not in self.calls:
                prompt = text(given, "prompt") if tool in DELEGATING else None
                self.calls[call] = ClaudeCall(
                    call,
                    at,
                    conversation.rising(at),
                    self._keep(prompt, at, offset) if prompt is not None else None,
                    text(given, "subagent_type"),
                    text(given, "description"),
                    given.get("run_in_background") is True,
                    tool=tool,
                    by=by,
                    resumes=text(given, "resume"),
                )

    def _returned(
        self, block: Fields, result: Fields, conversation: Conversation, at: float, offset: int
    ) -> Entry | None:
        """A call has its result. Returns the call, None where it is not open."""
        name = str(block.get("tool_use_id"))
        conversation.uses.pop(name, None)
        if (by := self._awaited.pop(name, None)) is not None:
            by.add_item(name, texts(block.get("content")), result)
        call = self.calls.get(name)
        if call is not None and call.answer is None:
            blocks = texts(block.get("content"))
            said = "\n".join(blocks)
            call.answer = answer = AgentAnswer(at, agent_id=text(result, "agentId") or named_agent(blocks))
            if block.get("is_error") is True:
                answer.error = first_line(ERROR_TAG.sub("", said)) or "failed"
            elif result.get("status") == "async_launched" or said.startswith("Async agent launched"):
                answer.launched = call.background = True
            elif call.tool in DELEGATING:
                report = handed_back(blocks, result)
                answer.said = self._keep(report, at, offset) if report is not None else None
                answer.status, answer.summary = "completed", cut_short(blocks, result)
        return conversation.activity.end_call(name)

    def _notified(self, content: object, at: float, offset: int) -> bool:
        """Whether it is a notification of the program."""
        told = read_notification(content) if isinstance(content, str) else None
        # The same words stand in up to three records; only the first of them tells when it happened.
        if told is not None and self._heard.get(told.task_id) != digest_of(str(content)):
            self._heard[told.task_id] = digest_of(str(content))
            said = self._keep(told.said, at, offset) if told.said is not None else None
            self.ends[told.task_id] = AgentAnswer(at, told.status, told.summary, said)
        return told is not None


def words_of_use(use: Entry) -> str:
    """The text of a question, else the use of a tool in a few words."""
    if use.tool in QUESTIONS:
        return "an approval of its plan" if use.tool == "ExitPlanMode" else question_in(use.given)
    subject = next((found for key in _SUBJECTS if (found := text(use.given, key))), "")
    return f"{use.tool} {first_line(subject, _LONGEST)}".strip()


def _begins_round(fields: Fields, said: str) -> bool:
    if fields.get("isCompactSummary") is True:
        return False
    # What another agent says, and what a stop hook answers, is marked like the program's own asides.
    return said.startswith(_FEEDBACK) or bool(inner(fields, "origin")) or fields.get("isMeta") is not True


def _api_error(record: Fields, said: str) -> str:
    words = first_line(said) or text(record, "error") or "API error"
    status = whole(record, "apiErrorStatus") or 0
    return words if not status or str(status) in words else f"{words} (HTTP {status})"


def _spell(value: object) -> tuple[str, str]:
    """As `input_text`; both empty where there is none."""
    try:
        return input_text(value) if isinstance(value, dict) else ("", "")
    except ValueError:
        return "", ""
