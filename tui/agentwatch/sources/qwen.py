"""The reader of Qwen Code 0.24. Each session and each agent has its own file of JSON lines, the chat.

A line is `{uuid, timestamp, type, subtype?, message: {role, parts}}`. The tool `agent` starts an agent. The agent's
description (a JSON file) shows its state at once. The parent's chat shows it only when all agents that
one message started have ended."""

import re
from collections.abc import Iterator, Sequence

from agentwatch.delegation.events import RunState, StartedBy
from agentwatch.sources.sessions.entries import CommandEnd, Entry, EntryKind
from agentwatch.sources.sessions.fields import (
    Fields,
    Record,
    first_line,
    nested,
    objects,
    read_notification,
    string,
    sum_of,
    text,
    time_at,
)
from agentwatch.sources.sessions.runs import CUT_OFF, ENDINGS, LEFT_BEHIND, Account, AgentLink, RunStatus
from agentwatch.sources.sessions.store import AgentsReader

_BY_HUMAN = "[Operation Cancelled]"
_COMMAND = re.compile(
    r"^Output: (?P<output>.*)^Error: .*^Exit Code: (?:(?P<code>-?\d{1,9})|\(none\))$", re.DOTALL | re.MULTILINE
)  # the result of a command: its output, its error and its exit code
_REFUSED = re.compile(
    r"\[Operation Cancelled\] Reason: User did not allow|Qwen Code requires permission to use .{1,200} was declined"
    r"|Tool .{1,200} (?:is blocked in plan mode|is not listed in the active core tools)"
)  # the beginning of the result of a refused call; the status of this call may be anything
_STOPPED = f"{_BY_HUMAN} User cancelled tool execution"  # the result of a call that was stopped after its start


class Chat(Account):
    """The account (state) of one agent, or of the session's own agent, from its chat."""

    question_tools = ("ask_user_question",)

    def add(self, fields: Record) -> None:
        at = time_at(fields)
        if at is None or text(fields, "uuid") is None:
            self.not_understood += 1
            return
        said = list(entries(fields))
        for entry in said:
            if entry.kind is EntryKind.RESULT:
                self._add_result(entry, nested(fields, "toolCallResult"))
            self.add_entry(entry)
        match fields.get("type"):
            case "user":
                self._add_prompt(fields, at)
            case "assistant":
                self._add_answer(fields, said, at)
            case "system":
                # If a signal interrupts a call, only this record shows the interruption.
                event = nested(fields, "systemPayload", "uiEvent")
                if event.get("status") == "cancelled":
                    self._cancel_turn(string(event, "call_id"), at, "")

    def _add_prompt(self, fields: Fields, at: float) -> None:
        words, by_program = message_text(fields), "subtype" in fields
        if by_program:
            self.record_notification(words, at)
        prompt = self.keep(words, at)
        if not self.is_agent and not (by_program and self.state is RunState.WORKING):
            self.begin_round(at)
        elif self.is_agent:
            if self.state is RunState.WORKING:
                self.state, self.reason = RunState.FAILED, CUT_OFF
            self.ended_at = self.ended_at or self.updated_at
            is_asked = not by_program and bool(words.strip())
            self.begin_round(at, prompt, StartedBy.PARENT if is_asked else StartedBy.PROGRAM)
        self.prompt = self.prompt or prompt
        self.round_at, self.prompted_at = at, self.prompted_at if by_program else at
        self.resume(at)

    def _add_answer(self, fields: Fields, said: Sequence[Entry], at: float) -> None:
        self.resume(at)
        self.tokens += sum_of(nested(fields, "usageMetadata"), "totalTokenCount", without="cachedContentTokenCount")
        self.model = text(fields, "model") or self.model
        calls = [entry for entry in said if entry.kind is EntryKind.CALL]
        for entry in calls:
            if entry.tool == "agent":
                self.record_call(entry, string(entry.given, "prompt"))
        words = message_text(fields)
        # Calls may follow an agent's text. Only the agent's description shows that the agent has ended.
        if not calls and (words.strip() or not self.is_agent):
            self.end(RunState.ENDED, at)
            self.answer = self.keep_lazily(words, at) if words.strip() else None

    def _add_result(self, entry: Entry, result: Fields) -> None:
        self.updated_at = max(self.updated_at, entry.at)
        if result.get("status") == "cancelled":
            self._cancel_turn(entry.call, entry.at, entry.text)
        status = text(nested(result, "resultDisplay"), "status") or string(result, "status")
        call = self.calls.get(entry.call)
        if call and status == "background":
            call.background = True
        elif call and entry.call not in self.ends:
            # If a human interrupts an agent during its answer, Qwen Code reports this as a failure.
            status = "cancelled" if entry.text.startswith(_BY_HUMAN) else status
            said = entry.text if status == "completed" and entry.text.strip() else None
            self.record_end(call.id, status, first_line(entry.text), said, entry.at)

    def _cancel_turn(self, name: str, at: float, words: str) -> None:
        """If the call `name` is open, record that a human or a signal has ended the turn."""
        if name in self.open:
            self.end(RunState.CANCELED, at)
            if name in self.calls:
                self.record_end(name, "cancelled", first_line(words), None, at)


def entries(fields: Fields) -> Iterator[Entry]:
    """Yield the entries of a line, in order."""
    at = time_at(fields) or 0.0
    match fields.get("type"):
        case "user" if words := message_text(fields):
            notice = read_notification(words) if "subtype" in fields else None
            kind = EntryKind.NOTE if "subtype" in fields else EntryKind.PROMPT
            yield Entry(at, kind, notice.full_text if notice else words)
        case "assistant":
            for part in _parts_of(fields):
                if (said := text(part, "text")) is not None:
                    yield Entry(at, EntryKind.THOUGHT if part.get("thought") is True else EntryKind.WORDS, said)
                elif call := nested(part, "functionCall"):
                    yield Entry(at, EntryKind.CALL, "", string(call, "id"), string(call, "name"), nested(call, "args"))
        case "tool_result":
            status = nested(fields, "toolCallResult").get("status")
            for part in _parts_of(fields):
                answer = nested(part, "functionResponse")
                response = nested(answer, "response")
                output = text(response, "error") or string(response, "output")
                refused = _REFUSED.match(output) is not None or (
                    status == "cancelled" and not output.startswith(_STOPPED)
                )
                failed = refused or status in ("cancelled", "error") or "error" in response
                ran = None if refused else _COMMAND.search(output)
                ended = CommandEnd(int(ran["code"]) if ran["code"] else None, ran["output"]) if ran else None
                yield Entry(
                    at, EntryKind.RESULT, output, string(answer, "id"), failed=failed, refused=refused, ended=ended
                )


def message_text(fields: Fields) -> str:
    """Return the text of a message, without the model's thoughts."""
    parts = (part for part in _parts_of(fields) if part.get("thought") is not True)
    return "\n".join(words for part in parts if (words := text(part, "text")))


def _parts_of(fields: Fields) -> Iterator[Fields]:
    return objects(nested(fields, "message"), "parts")


class QwenReader(AgentsReader):
    """Reads Qwen Code's store. `home` is `$QWEN_RUNTIME_DIR`, or `$QWEN_HOME`, or `~/.qwen`."""

    name = "qwen-code"
    entries = staticmethod(entries)
    fold = Chat
    files = (
        r"chats/(?P<own>[0-9a-zA-Z_-]{1,128})\.jsonl"
        r"|subagents/(?P<session>[^/]+)/agent-(?P<agent>.+)\.(?:jsonl|meta\.json)"
    )
    directories = r"chats|subagents(?:/[^/]+)?"

    def status_of(self, account: Account, link: AgentLink) -> RunStatus | Account:
        """Return the status from the agent's description, or from reports to the parent, or from the agent's chat."""
        reports = link.reports
        last = reports[-1] if reports else RunStatus(account.state)
        written, status = time_at(link.meta, "lastUpdatedAt"), string(link.meta, "status")
        state = None if written is not None and written < account.round_at else ENDINGS.get(status)
        if reports and (state is None or (last.state is RunState.CANCELED and state is not RunState.ENDED)):
            state, reason = last.state, last.reason
        elif state is not None:
            reason = "" if state is RunState.ENDED else last.reason or status
        elif link.call.at is not None and link.asker.prompted_at > link.call.at and not link.call.background:
            # A human has told the parent something although the agent had not answered. So the program was killed.
            state, reason = RunState.FAILED, LEFT_BEHIND
        elif status and account.started_at is not None:
            return RunStatus(RunState.WORKING)
        else:
            return account
        # Prefer the agent's own answer, because the copy in the parent's chat lacks the last line break.
        ended_at = written or last.ended_at or account.ended_at or account.updated_at
        return RunStatus(state, reason, account.said or last.said, ended_at)
