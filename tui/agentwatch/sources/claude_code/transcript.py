"""One transcript file, folded line by line: its conversations, the agents it asked for, and what it heard of them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from agentwatch.delegation.run import StartedBy
from agentwatch.sources.claude_code.conversation import INTERRUPTED, Conversation
from agentwatch.sources.claude_code.frames import (
    cut_short,
    handed_back,
    is_understood,
    named_agent,
    texts,
    typed,
)
from agentwatch.sources.claude_code.glance import Glance
from agentwatch.sources.claude_code.tools import QUESTIONS, TOOLS, use_of
from agentwatch.sources.sessions.doing import Entry, EntryKind
from agentwatch.sources.sessions.fields import (
    Fields,
    first_line,
    inner,
    listed,
    mapping,
    moment,
    read_notification,
    text,
)
from agentwatch.sources.sessions.reader import digest_of
from agentwatch.sources.sessions.runs import AgentAnswer, AgentCall, Keep
from agentwatch.sources.sessions.tail import Line, record

DELEGATING: Final = frozenset({"Task", "Agent"})
"""The tool that hands out work, by its old and its new name."""

_SPAWNING: Final = DELEGATING | {"Skill", "Workflow"}
"""Tools that may begin an agent; a use of the latter two is a delegation only if an agent names it."""

_TELLING: Final = _SPAWNING | QUESTIONS | TOOLS
"""Tools whose use says more than that there is one."""

_TITLES: Final = {"summary": "summary", "ai-title": "aiTitle", "custom-title": "customTitle"}
"""By the type of a record, the key of the title in it."""

_FEEDBACK: Final = "Stop hook feedback"
_REMINDER: Final = "<system-reminder>"
_LOCAL: Final = ("<local-command-stdout>", "<local-command-stderr>", "<bash-stdout>", "<bash-stderr>")
_ERROR_TAG: Final = re.compile("</?tool_use_error>")


@dataclass(slots=True)
class ClaudeCall(AgentCall):
    """`by` is the inline conversation that made it, None for the file's own; `resumes` is the agent it goes on with."""

    tool: str = ""
    by: str | None = None
    resumes: str | None = None


class Transcript:
    """The state of one file after the lines that were folded in. It depends on these alone.

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
        self._threads: dict[str, str] = {}
        self._heard: dict[str, str] = {}
        self._awaited: dict[str, Conversation] = {}
        self._glance = Glance(self.main, _TELLING, self._awaited, is_agent=is_agent)

    def fold(self, stretch: Line) -> None:
        for line in self._glance.left(stretch):
            fields = record(line.data)
            # A line with broken characters is taken, and told of.
            self.not_understood += fields is None or not _is_utf8(line.data)
            if fields is not None:
                self._record(fields, line.offset)
                self._glance.begun = self.cwd is not None

    def _record(self, fields: Fields, offset: int) -> None:
        self.cwd = self.cwd or text(fields, "cwd")
        self._version = text(fields, "version") or self._version
        at = moment(fields.get("timestamp"))
        match kind := text(fields, "type"):
            case "summary" | "ai-title" | "custom-title":
                if (title := text(fields, _TITLES[kind])) is not None:
                    self.titles[kind] = first_line(title)
            case "queue-operation":
                self._notified(fields.get("content"), at, offset)
            case "attachment":
                attachment = inner(fields, "attachment")
                if attachment.get("type") == "queued_command":
                    self._notified(attachment.get("prompt"), at, offset)
                elif attachment.get("type") == "hook_permission_decision":
                    self.main.permits.decided(attachment)
                self.main.touch(at)
            case "progress":
                data = inner(fields, "data")
                agent_id, call = text(data, "agentId"), text(fields, "parentToolUseID")
                if data.get("type") == "agent_progress" and agent_id is not None and call is not None:
                    self.progress.setdefault(agent_id, call)
                    self._glance.unnamed.discard(call)
                self.main.touch(at)
            case "user" | "assistant":
                self._message(fields, at, offset)
            case "system":
                self.main.touch(at)
                if fields.get("subtype") in ("turn_duration", "stop_hook_summary"):
                    self.main.turn_ended(at if at is not None else self.main.updated_at)
            case _ if text(fields, "uuid") is not None and inner(fields, "message").get("role") in (
                "user",
                "assistant",
            ):
                # Something was said, in a record of a kind that is not known.
                self.not_understood += 1

    def _message(self, fields: Fields, at: float | None, offset: int) -> None:
        uuid = text(fields, "uuid")
        if uuid is None:
            # The program never writes one without; a forged one must not end, or begin again, what is sound.
            self.not_understood += 1
        elif self._glance.is_new(uuid.encode("utf-8", "surrogatepass")):
            by, conversation = self._conversation(fields, uuid)
            at = at if at is not None else conversation.updated_at
            if fields.get("type") == "user":
                self._user(fields, conversation, at, offset)
            else:
                self._assistant(fields, by, conversation, at, offset)

    def _conversation(self, fields: Fields, uuid: str) -> tuple[str | None, Conversation]:
        if self._is_agent or fields.get("isSidechain") is not True:
            return None, self.main
        thread = self._threads.get(str(fields.get("parentUuid")))
        if thread is None:
            content = inner(fields, "message").get("content")
            asked = fields.get("type") == "user" and bool(texts(content))
            thread = uuid if asked or not self.inline else next(reversed(self.inline))
        self._threads[uuid] = thread
        if thread not in self.inline:
            self.inline[thread] = Conversation(self._keep, self._places, is_agent=True)
        return thread, self.inline[thread]

    def _user(self, fields: Fields, conversation: Conversation, at: float, offset: int) -> None:
        conversation.touch(at)
        message = inner(fields, "message")
        results = [block for block in map(mapping, listed(message, "content")) if block.get("type") == "tool_result"]
        result = inner(fields, "toolUseResult") if len(results) == 1 else {}
        for block in results:
            self._answered(block, result, conversation, at, offset)
            if len(results) == 1:
                conversation.permits.answered(fields, block, result, at)
        said = "\n".join(texts(message.get("content")))
        if said.startswith(INTERRUPTED):
            conversation.interrupted(said, at)
        elif said.startswith(_LOCAL):
            conversation.command_answered(at)
        elif fields.get("turnCompanion") is True and not said.startswith(_REMINDER):
            conversation.asked_again(at)
        elif not results and said.strip() and self._begins_a_round(fields, said):
            is_told = self._notified(said, at, offset)
            asker = StartedBy.PROGRAM if is_told else StartedBy.HOOK if said.startswith(_FEEDBACK) else StartedBy.PARENT
            conversation.prompted(said, at, offset, asker)
            self.titles.setdefault("prompt", typed(said))

    def _begins_a_round(self, fields: Fields, said: str) -> bool:
        if fields.get("isCompactSummary") is True:
            return False
        # What another agent says, and what a stop hook answers, is marked like the program's own asides.
        told = said.startswith(_FEEDBACK) or bool(inner(fields, "origin"))
        return told or fields.get("isMeta") is not True

    def _assistant(self, fields: Fields, by: str | None, conversation: Conversation, at: float, offset: int) -> None:
        conversation.answered(fields, at, offset)
        self.not_understood += not is_understood(inner(fields, "message").get("content"))
        if self._version.startswith("1."):
            conversation.turn_ended(at)
        if fields.get("forkedFrom") is not None:
            return
        for block in map(mapping, listed(inner(fields, "message"), "content")):
            tool, tool_use_id = block.get("name"), text(block, "id")
            if block.get("type") != "tool_use" or not isinstance(tool, str) or tool_use_id is None:
                continue
            given = inner(block, "input")
            if tool not in DELEGATING:
                conversation.uses[tool_use_id] = use_of(tool, given, at)
            if tool in _SPAWNING and tool_use_id not in self.calls:
                prompt = text(given, "prompt") if tool in DELEGATING else None
                self._glance.unanswered.add(tool_use_id)
                self._glance.unnamed.add(tool_use_id)
                self.calls[tool_use_id] = ClaudeCall(
                    tool_use_id,
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
            elif tool in TOOLS:
                before = conversation.checklist.todos
                if conversation.checklist.used(tool, tool_use_id, given):
                    self._awaited[tool_use_id] = conversation
                conversation.pulse.listed(before, conversation.checklist.todos, at)

    def _answered(self, block: Fields, result: Fields, conversation: Conversation, at: float, offset: int) -> None:
        tool_use_id = str(block.get("tool_use_id"))
        conversation.pulse.take(Entry(at, EntryKind.RESULT, call=tool_use_id))
        blocks = texts(block.get("content"))
        conversation.uses.pop(tool_use_id, None)
        by = self._awaited.pop(tool_use_id, None)
        if by is not None:
            by.checklist.made(tool_use_id, blocks, result)
        call = self.calls.get(tool_use_id)
        if call is None or call.answer is not None:
            return
        said = "\n".join(blocks)
        answer = AgentAnswer(at, agent_id=text(result, "agentId") or named_agent(blocks))
        if block.get("is_error") is True:
            answer.error = first_line(_ERROR_TAG.sub("", said)) or "failed"
        elif result.get("status") == "async_launched" or said.startswith("Async agent launched"):
            answer.launched = True
            call.background = True
        elif call.tool in DELEGATING:
            report = handed_back(blocks, result)
            answer.said = self._keep(report, at, offset) if report is not None else None
            answer.status = "completed"
            answer.summary = cut_short(blocks, result)
        call.answer = answer
        self._glance.unanswered.discard(tool_use_id)

    def _notified(self, content: object, at: float | None, offset: int) -> bool:
        """Whether it is a notification of the program."""
        told = read_notification(content) if isinstance(content, str) else None
        # The same words stand in up to three records; only the first of them tells when it happened.
        if told is not None and self._heard.get(told.task_id) != digest_of(str(content)):
            self._heard[told.task_id] = digest_of(str(content))
            at = at if at is not None else self.main.updated_at
            said = self._keep(told.said, at, offset) if told.said is not None else None
            self.ends[told.task_id] = AgentAnswer(at, told.status, told.summary, said)
        return told is not None


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True
