"""One transcript file, folded record by record: its rounds, the agents it asked for, what it heard of them."""

from __future__ import annotations

import math
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
    blocks_of,
    cut_short,
    handed_back,
    named_agent,
    texts,
    typed,
)
from agentwatch.sources.sessions.doing import Entry, EntryKind, about
from agentwatch.sources.sessions.fields import (
    TODO_STATUSES,
    Fields,
    first_line,
    inner,
    listed,
    mapping,
    moment,
    question_in,
    read_notification,
    text,
    todos_in,
    todos_of,
)
from agentwatch.sources.sessions.runs import UNREAD, WORDLESS, Account, AgentAnswer, AgentCall, Answer, Keep, Rising
from agentwatch.sources.sessions.tail import Record

DELEGATING: Final = frozenset({"Task", "Agent"})
"""The tool that hands out work, by its old and its new name."""
NOTHING: Final = frozenset({"", "(no content)"})
"""The content of a message without a word."""

QUESTIONS: Final = frozenset({"AskUserQuestion", "ExitPlanMode"})
"""Tools that do nothing but ask; a use of any other may need a permission."""
_SPAWNING: Final = DELEGATING | {"Skill", "Workflow"}
"""Tools that may begin an agent; a use of the latter two is a delegation only if an agent names it."""
_CHECKLIST: Final = frozenset({"TodoWrite", "TaskCreate", "TaskUpdate"})
_MOST_ITEMS: Final = 500
_CREATED: Final = re.compile(r"\bTask #(\d{1,9})\b")
_ENDS: Final = ("end_turn", "stop_sequence")
"""`max_tokens` and `pause_turn` are no ends: the program goes on by itself."""
_KNOWN: Final = ("thinking", "tool_use", "tool_result")
"""How the types of other blocks end that are known: `redacted_thinking`, `server_tool_use`."""
_THOUGHTS: Final = frozenset({"thinking", "redacted_thinking"})
_COUNTED: Final = ("input_tokens", "cache_creation_input_tokens", "output_tokens")
_TITLES: Final = {"summary": "summary", "ai-title": "aiTitle", "custom-title": "customTitle"}
"""By the type of a record, the key of the title in it."""
_FEEDBACK: Final = "Stop hook feedback"
_COMMANDS: Final = ("<command-", "<bash-input>")
_LOCAL: Final = ("<local-command-stdout>", "<local-command-stderr>", "<bash-stdout>", "<bash-stderr>")
_DECISIONS: Final = {"accept": True, "reject": False, "allow": True, "deny": False}
_UNASKED: Final = ("", "config")
"""Sources of calls that ran because nothing forbade them."""
_REJECTED: Final = "user-rejected"
"""A kind of denial that a person is behind, where the record names no source."""


@dataclass(slots=True)
class ClaudeCall(AgentCall):
    """`tool` is the name that the one who hands out work has, or another one that may."""

    tool: str = ""


class Transcript(Account):
    """The state of one file after the records that were folded in: the account of its agent, the calls with which it
    handed out work, and the last notification of each agent that it heard of. It depends on these records alone.

    `places` are the spellings of the workspace.
    """

    def __init__(self, keep: Keep, is_agent: bool, places: Sequence[str] = ()) -> None:
        super().__init__(keep, places)
        self.calls: dict[str, ClaudeCall] = {}
        self.ends: dict[str, AgentAnswer] = {}
        self.titles: dict[str, str] = {}
        self.round_at = -math.inf
        """When the last round began, unless it is the first: what an agent's parent heard before is of others."""
        self._is_agent = is_agent
        self._rising = Rising()
        self._uuids: set[int] = set()
        self._told: dict[str, object] = {}
        self._message_id: str | None = None
        self._usage = 0
        self._text: Answer | None = None
        """That of the last message."""
        self._uses_tools = self._is_strange = False
        """Whether it asks for tools, and whether not all of it is understood."""
        self._command: tuple[str, float, int] | None = None
        """A command that was typed, until the program or the model answers it."""
        self._by_hooks: dict[str, bool | None] = {}
        self._written: tuple[Todo, ...] | None = None
        self._items: dict[str, tuple[str, str]] = {}
        """By number; one that has none yet by the call that makes it."""

    @property
    def uses(self) -> list[Entry]:
        """Those of tools in the last message that have no result yet; not of those that hand out work."""
        return [entry for entry, _ in self.activity.open.values() if entry.tool not in DELEGATING]

    @property
    def waiting(self) -> str:
        """Its question by a tool that does nothing else."""
        return next((words_of_use(use) for use in self.uses if use.tool in QUESTIONS), "")

    def add(self, fields: Record, offset: int) -> None:
        self.cwd = self.cwd or text(fields, "cwd")
        written, kind = moment(fields.get("timestamp")), fields.get("type")
        at, uuid = self.updated_at if written is None else written, text(fields, "uuid")
        match kind:
            case "user" | "assistant" if uuid is None:
                # The program never writes one without; a forged one must not end, or begin again, what is sound.
                self.not_understood += 1
            case "user" | "assistant":
                # Some records are written twice, when a session is gone on with; agents once stood in its file.
                if hash(uuid) not in self._uuids and (self._is_agent or fields.get("isSidechain") is not True):
                    self._uuids.add(hash(uuid))
                    self.touch(at)
                    (self._user if kind == "user" else self._assistant)(fields, at, offset)
            case "summary" | "ai-title" | "custom-title":
                if (title := text(fields, _TITLES[kind])) is not None:
                    self.titles[kind] = first_line(title)
            case "queue-operation":
                self._notified(fields.get("content"), at, offset)
            case "attachment" | "progress" | "system":
                attachment = inner(fields, "attachment")
                if attachment.get("type") == "queued_command":
                    self._notified(attachment.get("prompt"), at, offset)
                elif attachment.get("hookEvent") == "PermissionRequest" and "decision" in attachment:
                    # A hook has decided about a call that was asked about.
                    call = text(attachment, "toolUseID") or ""
                    self._by_hooks[call] = _DECISIONS.get(str(attachment["decision"]))
                elif fields.get("subtype") in ("turn_duration", "stop_hook_summary"):
                    self._end_turn(at)
                if written is not None:
                    self.touch(written)
            case _ if uuid is not None and inner(fields, "message").get("role") in ("user", "assistant"):
                # Something was said, in a record of a kind that is not known.
                self.not_understood += 1

    def last_text(self) -> Message | None:
        """The text of the last message, where it is no preface to a use of tools."""
        return self._text() if self._text is not None and not self._uses_tools else None

    def _user(self, fields: Fields, at: float, offset: int) -> None:
        results = [block for block in blocks_of(fields) if block.get("type") == "tool_result"]
        result = inner(fields, "toolUseResult") if len(results) == 1 else {}
        for block in results:
            call = self._returned(block, result, at, offset)
            if call is not None and len(results) == 1:
                self._permit(call, fields, block, result, at)
        said = "\n".join(texts(inner(fields, "message").get("content")))
        if said.startswith(INTERRUPTED):
            # An answer that was whole by then stays one.
            if self.state is not RunState.ENDED:
                self.end(RunState.CANCELED, at, first_line(said))
        elif said.startswith(_LOCAL):
            # The program itself answers what was typed.
            self._command = None
        elif fields.get("turnCompanion") is True and not said.startswith("<system-reminder>"):
            # The program does not take the last answer, which was cut off, and asks for another in the same round.
            self._text = None
            if self.state is RunState.ENDED:
                self.go_on(at)
        elif not results and said.strip() and _begins_round(fields, said):
            self.titles.setdefault("prompt", typed(said))
            if said.startswith(_COMMANDS):
                self._command = said, at, offset
            else:
                self._prompted(said, at, offset)

    def _prompted(self, said: str, at: float, offset: int) -> None:
        """The agent was given something to do."""
        is_told = self._notified(said, at, offset)
        asker = StartedBy.PROGRAM if is_told else StartedBy.HOOK if said.startswith(_FEEDBACK) else StartedBy.PARENT
        self.activity.begin()
        # What a human goes on to say in a session of his own is no attempt of anybody's.
        prompt = self.keep(said, at, offset) if self.prompt is None or self._is_agent else None
        if self.prompt is not None and self.state is RunState.WORKING:
            self.round_at = at
        self.prompt = self.prompt or prompt
        self._begin(at, Turn(at, prompt, asker))

    def _assistant(self, fields: Fields, at: float, offset: int) -> None:
        """A record of a message of the model, as a rule one block of it."""
        message, told = inner(fields, "message"), answer_entries(fields, at)
        said = "\n".join([entry.text for entry in told if entry.kind is EntryKind.WORDS])
        content = message.get("content")
        blocks = content if isinstance(content, list) else [{"type": "text", "text": content}]
        # A text that is none is of a kind that is not known.
        is_strange, kinds = False, set[str]()
        for block in map(mapping, blocks):
            kinds.add(kind := str(block.get("type")))
            is_strange |= not (isinstance(block.get("text"), str) if kind == "text" else kind.endswith(_KNOWN))
        message_id = text(message, "id") or text(fields, "uuid")
        goes_on = message_id == self._message_id
        command, self._command = self._command, None
        if command is not None:
            self._prompted(*command)
        elif self.state is not RunState.WORKING and not goes_on:
            self._begin(at, Turn(at))
        if not goes_on:
            self._begin_message(message_id)
        self.not_understood += is_strange
        self._is_strange |= is_strange
        if (model := text(message, "model")) != "<synthetic>":
            self.model = model or self.model
        # What came from the cache is not counted again.
        used = inner(message, "usage")
        tokens = max(sum([count for key in _COUNTED if isinstance(count := used.get(key), int)]), self._usage)
        self.tokens, self._usage = self.tokens + tokens - self._usage, tokens
        if "tool_use" in kinds:
            self._uses_tools = True
            if self.state is RunState.ENDED:
                self.go_on(at)
        for entry in told:
            self.activity.add(entry)
        if said.strip() not in NOTHING:
            self._text = self.later(said, at, offset)
        reason = message.get("stop_reason")
        if fields.get("isApiErrorMessage") is True:
            self.end(RunState.FAILED, at, first_line(said) or text(fields, "error") or "API error")
        elif reason == "refusal":
            self.end(RunState.FAILED, at, "the model refused to answer")
        elif (reason in _ENDS and not (kinds and kinds <= _THOUGHTS)) or str(fields.get("version")).startswith("1."):
            self._end_turn(at)
        if fields.get("forkedFrom") is None:
            for entry in told:
                if entry.kind is EntryKind.CALL and entry.call:
                    self._called(entry, at, offset)

    def _called(self, entry: Entry, at: float, offset: int) -> None:
        tool, call, given = entry.tool, entry.call, entry.given
        if tool in _CHECKLIST:
            self._update_checklist(tool, call, given, at)
        elif tool in _SPAWNING and call not in self.calls:
            prompt = text(given, "prompt") if tool in DELEGATING else None
            self.calls[call] = ClaudeCall(
                call,
                at,
                self._rising(at),
                self.keep(prompt, at, offset) if prompt is not None else None,
                text(given, "subagent_type"),
                text(given, "description"),
                given.get("run_in_background") is True,
                tool=tool,
            )

    def _returned(self, block: Fields, result: Fields, at: float, offset: int) -> Entry | None:
        """A call has its result. Returns the call, None where it is not open."""
        name = str(block.get("tool_use_id"))
        blocks = texts(block.get("content")) if name in self._items or name in self.calls else []
        if (item := self._items.pop(name, None)) is not None:
            number = text(inner(result, "task"), "id")
            if number is None and (match := _CREATED.search("".join(blocks[:1]))) is not None:
                number = match[1]
            self._items |= {number: item} if number is not None else {}
            self.todos = self._checklist()
        call = self.calls.get(name)
        if call is not None and call.answer is None:
            said = "\n".join(blocks)
            call.answer = answer = AgentAnswer(at, agent_id=text(result, "agentId") or named_agent(blocks))
            if block.get("is_error") is True:
                answer.error = first_line(ERROR_TAG.sub("", said)) or "failed"
            elif result.get("status") == "async_launched" or said.startswith("Async agent launched"):
                answer.launched = call.background = True
            elif call.tool in DELEGATING:
                report = handed_back(blocks, result)
                answer.said = self.keep(report, at, offset) if report is not None else None
                answer.status, answer.summary = "completed", cut_short(blocks, result)
        return self.activity.end_call(name)

    def _notified(self, content: object, at: float, offset: int) -> bool:
        """Whether it is a notification of the program."""
        told = read_notification(content) if isinstance(content, str) else None
        # The same words stand in up to three records; only the first of them tells when it happened.
        if told is not None and self._told.get(told.task_id) != told[2:]:
            self._told[told.task_id] = told[2:]
            said = self.keep(told.said, at, offset) if told.said is not None else None
            self.ends[told.task_id] = AgentAnswer(at, told.status, told.summary, said)
        return told is not None

    def _end_turn(self, at: float) -> None:
        """The turn is over, if the last message asks for no tool: older programs write it beside the message."""
        if self._uses_tools or self._message_id is None:
            return
        if self.state is RunState.WORKING:
            self.answer = self._text
            self.end(RunState.ENDED, at, "" if self._text is not None else UNREAD if self._is_strange else WORDLESS)
        elif self.state is RunState.ENDED and self._text is not None:
            self.answer, self.reason = self._text, ""

    def _begin(self, at: float, begun: Turn) -> None:
        if self.state is not RunState.WORKING and self._is_agent:
            self.round_at = self.round_at if self.begun is None else at
            self.begin_round(begun)
        self.go_on(at)
        self._begin_message(None)

    def _begin_message(self, message_id: str | None) -> None:
        self._message_id, self._text, self._usage = message_id, None, 0
        self._uses_tools = self._is_strange = False
        self.activity.open.clear()
        self._by_hooks.clear()

    def _update_checklist(self, tool: str, call: str, given: Fields, at: float) -> None:
        """A tool of the checklist is used: `TodoWrite` gives the whole list, `TaskCreate` and `TaskUpdate` one item."""
        number, status = str(given.get("taskId")), text(given, "status")
        if tool == "TodoWrite":
            self._written = todos_in(listed(given, "todos"), "content")
        elif tool == "TaskCreate":
            if len(self._items) < _MOST_ITEMS:
                self._items[call] = text(given, "subject") or "", "pending"
        elif status == "deleted":
            self._items.pop(number, None)
        elif number in self._items:
            words, before = self._items[number]
            self._items[number] = text(given, "subject") or words, status if status in TODO_STATUSES else before
        self.list(self._checklist(), at)

    def _checklist(self) -> tuple[Todo, ...] | None:
        return self._written if self._written is not None else todos_of(self._items.values()) or None

    def _permit(self, call: Entry, record: Fields, block: Fields, result: Fields, at: float) -> None:
        """A call has its result, and the program may write beside it who allowed it, or refused it."""
        decision, denial = inner(record, "permissionDecision"), text(record, "toolDenialKind")
        source = text(decision, "source") or ""
        if denial is None and source in _UNASKED:
            return
        allowed = _DECISIONS.get(str(decision.get("decision")), None if denial is None else False)
        by = Permitter.UNKNOWN
        # A hook of another event leaves no line of its own, and was not asked what we were asked.
        if source == "hook" and self._by_hooks.get(call.call, ...) is allowed:
            by = Permitter.HOOK
        elif source == "config":
            by = Permitter.RULE
        elif source.startswith("user") or (not source and denial == _REJECTED):
            by = Permitter.PERSON
        words = "\n".join(texts(block.get("content"))) if allowed is False else _spell(result.get("answers"))[0]
        self.permits.append(Permit(call.call, call.tool, _spell(call.given)[1], allowed, by, at, words))


def words_of_use(use: Entry) -> str:
    """The text of a question, else the use of a tool in a few words."""
    if use.tool in QUESTIONS:
        return "an approval of its plan" if use.tool == "ExitPlanMode" else question_in(use.given)
    return f"{use.tool} {about(use.tool, use.given)}".strip()


def _begins_round(fields: Fields, said: str) -> bool:
    if fields.get("isCompactSummary") is True:
        return False
    # What another agent says, and what a stop hook answers, is marked like the program's own asides.
    return said.startswith(_FEEDBACK) or bool(inner(fields, "origin")) or fields.get("isMeta") is not True


def _spell(value: object) -> tuple[str, str]:
    """As `input_text`; both empty where there is none."""
    try:
        return input_text(value) if isinstance(value, dict) else ("", "")
    except ValueError:
        return "", ""
