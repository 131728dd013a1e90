"""One transcript file, folded line by line: its conversations, the agents it asked for, and what it heard of them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from agentwatch.delegation.run import Asker
from agentwatch.sources.claude_code.asking import QUESTIONS, use_of
from agentwatch.sources.claude_code.calls import DELEGATING, Answer, Call
from agentwatch.sources.claude_code.conversation import INTERRUPTED, Conversation
from agentwatch.sources.claude_code.frames import cut_short, handed_back, named_agent, typed, unwrapped_error
from agentwatch.sources.claude_code.glance import Glance
from agentwatch.sources.claude_code.todos import TOOLS
from agentwatch.sources.claude_code.wording import is_understood, texts
from agentwatch.sources.sessions.fields import first_line, inner, listed, mapping, moment, text
from agentwatch.sources.sessions.group import Keep
from agentwatch.sources.sessions.notification import read_notification
from agentwatch.sources.sessions.tail import Line

_SPAWNING: Final = DELEGATING | {"Skill", "Workflow"}
"""Tools that may begin an agent; a use of the latter two is a delegation only if an agent names it."""

_TELLING: Final = _SPAWNING | QUESTIONS | TOOLS
"""Tools whose use says more than that there is one."""

_FEEDBACK: Final = "Stop hook feedback"
_REMINDER: Final = "<system-reminder>"
_LOCAL: Final = ("<local-command-stdout>", "<local-command-stderr>", "<bash-stdout>", "<bash-stderr>")


@dataclass(slots=True)
class Transcript:
    """The state of one file after the lines that were folded in. It depends on these alone.

    `inline` holds the conversations that programs before 2.0 wrote into the session's own file, by the uuid of their
    first record. `ends` are the last notifications by agent, `progress` says which call an agent belongs to.
    """

    keep: Keep
    main: Conversation = field(init=False)
    inline: dict[str, Conversation] = field(default_factory=dict)
    calls: dict[str, Call] = field(default_factory=dict)
    ends: dict[str, Answer] = field(default_factory=dict)
    progress: dict[str, str] = field(default_factory=dict)
    is_agent: bool = False
    session_id: str | None = None
    cwd: str | None = None
    version: str | None = None
    titles: dict[str, str] = field(default_factory=dict)
    not_understood: int = 0
    _threads: dict[str, str] = field(default_factory=dict)
    _heard: dict[str, int] = field(default_factory=dict)
    _awaited: dict[str, Conversation] = field(default_factory=dict)
    _glance: Glance = field(init=False)

    def __post_init__(self) -> None:
        self.main = Conversation(self.keep, is_agent=self.is_agent)
        self._glance = Glance(self.main, _TELLING, self._awaited, is_agent=self.is_agent)

    def fold(self, stretch: Line) -> None:
        """Take in a line, or several that follow one another. Never raises for what stands in them."""
        for line in self._glance.left(stretch):
            record = self._decoded(line.data)
            if record is not None:
                self._record(record, line.offset)
                self._glance.begun = self.cwd is not None

    def _decoded(self, line: bytes) -> Mapping[str, object] | None:
        try:
            record = json.loads(line)
        except UnicodeDecodeError:
            self.not_understood += 1
            try:
                record = json.loads(line.decode("utf-8", "replace"))
            except (ValueError, RecursionError):
                return None
        except (ValueError, RecursionError):
            self.not_understood += 1
            return None
        if not isinstance(record, dict):
            self.not_understood += 1
            return None
        return record

    def _record(self, record: Mapping[str, object], offset: int) -> None:
        self.session_id = self.session_id or text(record, "sessionId")
        self.cwd = self.cwd or text(record, "cwd")
        self.version = text(record, "version") or self.version
        kind = record.get("type")
        at = moment(record.get("timestamp"))
        if kind in ("summary", "ai-title", "custom-title"):
            key = {"summary": "summary", "ai-title": "aiTitle", "custom-title": "customTitle"}[str(kind)]
            title = text(record, key)
            if title is not None:
                self.titles[str(kind)] = first_line(title)
        elif kind == "queue-operation":
            self._notified(record.get("content"), at, offset)
        elif kind == "attachment":
            attachment = inner(record, "attachment")
            if attachment.get("type") == "queued_command":
                self._notified(attachment.get("prompt"), at, offset)
            self.main.touch(at)
        elif kind == "progress":
            self._progress(record)
            self.main.touch(at)
        elif kind in ("user", "assistant"):
            uuid = text(record, "uuid")
            if uuid is None:
                # The program never writes one without; whoever did must not end, or begin again, what is sound.
                self.not_understood += 1
                return
            if not self._glance.is_new(uuid.encode("utf-8", "surrogatepass")):
                return
            by, conversation = self._conversation(record)
            at = at if at is not None else conversation.updated_at
            if kind == "user":
                self._user(record, conversation, at, offset)
            else:
                self._assistant(record, by, conversation, at, offset)
        elif kind == "system":
            self.main.touch(at)
            if record.get("subtype") in ("turn_duration", "stop_hook_summary"):
                self.main.turn_ended(at if at is not None else self.main.updated_at)
        elif text(record, "uuid") is not None and inner(record, "message").get("role") in ("user", "assistant"):
            # Something was said, in a record of a kind that is not known.
            self.not_understood += 1

    def _conversation(self, record: Mapping[str, object]) -> tuple[str | None, Conversation]:
        if self.is_agent or record.get("isSidechain") is not True:
            return None, self.main
        uuid = str(record.get("uuid"))
        thread = self._threads.get(str(record.get("parentUuid")))
        if thread is None:
            content = inner(record, "message").get("content")
            asked = record.get("type") == "user" and bool(texts(content))
            thread = uuid if asked or not self.inline else next(reversed(self.inline))
        self._threads[uuid] = thread
        if thread not in self.inline:
            self.inline[thread] = Conversation(self.keep, is_agent=True)
        return thread, self.inline[thread]

    def _user(self, record: Mapping[str, object], conversation: Conversation, at: float, offset: int) -> None:
        conversation.touch(at)
        message = inner(record, "message")
        results = [
            block for item in listed(message, "content") if (block := mapping(item)).get("type") == "tool_result"
        ]
        result = inner(record, "toolUseResult") if len(results) == 1 else {}
        for block in results:
            self._answered(block, result, conversation, at, offset)
        said = "\n".join(texts(message.get("content")))
        if said.startswith(INTERRUPTED):
            conversation.interrupted(said, at)
        elif said.startswith(_LOCAL):
            conversation.command_answered(at)
        elif record.get("turnCompanion") is True and not said.startswith(_REMINDER):
            conversation.asked_again(at)
        elif not results and said.strip() and self._begins_a_round(record, said):
            is_told = self._notified(said, at, offset)
            asker = Asker.PROGRAM if is_told else Asker.HOOK if said.startswith(_FEEDBACK) else Asker.PARENT
            conversation.prompted(said, at, offset, asker)
            self.titles.setdefault("prompt", typed(said))

    def _begins_a_round(self, record: Mapping[str, object], said: str) -> bool:
        if record.get("isCompactSummary") is True:
            return False
        # What another agent says, and what a stop hook answers, is marked like the program's own asides.
        told = said.startswith(_FEEDBACK) or bool(inner(record, "origin"))
        return told or record.get("isMeta") is not True

    def _assistant(
        self, record: Mapping[str, object], by: str | None, conversation: Conversation, at: float, offset: int
    ) -> None:
        conversation.answered(record, at, offset)
        self.not_understood += not is_understood(inner(record, "message").get("content"))
        if self.version is not None and self.version.startswith("1."):
            conversation.turn_ended(at)
        if record.get("forkedFrom") is not None:
            return
        for item in listed(inner(record, "message"), "content"):
            block = mapping(item)
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
                self.calls[tool_use_id] = Call(
                    tool_use_id,
                    tool,
                    at,
                    by,
                    text(given, "subagent_type"),
                    text(given, "description"),
                    self.keep(prompt, at, offset) if prompt is not None else None,
                    given.get("run_in_background") is True,
                    text(given, "resume"),
                )
            elif tool in TOOLS and conversation.checklist.used(tool, tool_use_id, given):
                self._awaited[tool_use_id] = conversation

    def _answered(
        self,
        block: Mapping[str, object],
        result: Mapping[str, object],
        conversation: Conversation,
        at: float,
        offset: int,
    ) -> None:
        tool_use_id = str(block.get("tool_use_id"))
        blocks = texts(block.get("content"))
        conversation.uses.pop(tool_use_id, None)
        by = self._awaited.pop(tool_use_id, None)
        if by is not None:
            by.checklist.made(tool_use_id, blocks, result)
        call = self.calls.get(tool_use_id)
        if call is None or call.answer is not None:
            return
        said = "\n".join(blocks)
        answer = Answer(at, agent_id=text(result, "agentId") or named_agent(blocks))
        if block.get("is_error") is True:
            answer.error = unwrapped_error(said) or "failed"
        elif result.get("status") == "async_launched" or said.startswith("Async agent launched"):
            answer.launched = True
            answer.agent_id = answer.agent_id or _launched_agent(said)
            call.background = True
        elif call.tool in DELEGATING:
            report = handed_back(blocks, result)
            answer.said = self.keep(report, at, offset) if report is not None else None
            answer.status = "completed"
            answer.summary = cut_short(blocks, result)
        call.answer = answer
        self._glance.unanswered.discard(tool_use_id)

    def _notified(self, content: object, at: float | None, offset: int) -> bool:
        """Whether it is a notification of the program."""
        found = read_notification(content) if isinstance(content, str) else None
        # The same words stand in up to three records; only the first of them tells when it happened.
        if found is None or self._heard.get(found.task_id) == hash(content):
            return found is not None
        self._heard[found.task_id] = hash(content)
        at = at if at is not None else self.main.updated_at
        said = self.keep(found.said, at, offset) if found.said is not None and found.said.strip() else None
        self.ends[found.task_id] = Answer(at, said=said, status=found.status, summary=found.summary)
        return True

    def _progress(self, record: Mapping[str, object]) -> None:
        data = inner(record, "data")
        agent_id, call = text(data, "agentId"), text(record, "parentToolUseID")
        if data.get("type") == "agent_progress" and agent_id is not None and call is not None:
            self.progress.setdefault(agent_id, call)
            self._glance.unnamed.discard(call)


def _launched_agent(said: str) -> str | None:
    found = re.search(r"^agentId: ([\w@.-]{1,128})", said, re.MULTILINE)
    return found[1] if found is not None else None
