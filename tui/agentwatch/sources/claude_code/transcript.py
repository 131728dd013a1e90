"""One transcript of Claude Code. A record is the JSON object in one line. All give an agent's `Account`."""

import re
from collections.abc import Iterator, Sequence
from itertools import takewhile

from agentwatch.delegation.decision import Permit, Permitter, canonical_input
from agentwatch.delegation.events import Message, RunState, StartedBy
from agentwatch.sources.sessions.entries import TODO_STATUSES, CommandEnd, Entry, EntryKind, main_argument, make_todos
from agentwatch.sources.sessions.fields import (
    Fields,
    Record,
    as_object,
    first_line,
    int_at,
    nested,
    read_notification,
    string,
    sum_of,
    text,
    time_at,
)
from agentwatch.sources.sessions.runs import UNREAD, WORDLESS, Account, Answer, Keep, describe_question

DELEGATING = frozenset({"Task", "Agent"})  # the tool that hands out work, by its old and its new name
NOTHING = ("", "(no content)", "(Subagent completed but returned no output.)")  # texts that count as no answer

QUESTIONS = ("AskUserQuestion", "ExitPlanMode")  # tools that ask a human a question; other tools may need a permission
_SPAWNING = DELEGATING | {"Skill", "Workflow"}  # `Skill` and `Workflow` start an agent only sometimes
_CHECKLIST = ("TaskCreate", "TaskUpdate")
_CREATED = re.compile(r"\bTask #(\d{1,9})\b")
_ENDS = ("end_turn", "stop_sequence")  # stop reasons that end a turn; after `pause_turn`, for example, the turn goes on
_KNOWN = ("thinking", "tool_use", "tool_result")  # endings of known types of blocks, such as `redacted_thinking`
_THOUGHTS = frozenset({"thinking", "redacted_thinking"})
_COUNTED = ("input_tokens", "cache_creation_input_tokens", "output_tokens")
_TITLES = {"custom-title": "customTitle", "ai-title": "aiTitle", "summary": "summary"}  # the best title first
_FEEDBACK = "Stop hook feedback"
_COMMANDS = ("<command-", "<bash-input>")
_LOCAL = ("<local-command-stdout>", "<local-command-stderr>", "<bash-stdout>", "<bash-stderr>")
_DECISIONS = {"accept": True, "reject": False, "allow": True, "deny": False}
_UNASKED = ("", "config")  # values of `source` if nobody was asked for the permission
_REJECTED = "user-rejected"  # the kind of denial if a human refused a call and the record has no source

INTERRUPTED = "[Request interrupted by user"
_BY_HUMAN = ("[request interrupted", "interrupted by user", "the user doesn't want", "user rejected")
_ERROR_TAG = re.compile("</?tool_use_error>")
_REFUSED = ("The user doesn't want to", "Permission to use ", INTERRUPTED)  # beginnings of the errors of refused calls
_FRAMES = re.compile(r"^(?:\[Subagent hand-back\]|agentId: )", re.MULTILINE)  # lines that the program adds to a result
_REMINDER = "<system-reminder>"
_ASIDE = ("<local-command-", "<bash-")
_LOCAL_TAG = re.compile(r"</?(?:local-command|bash)-\w+>")
_EXIT = re.compile(r"(?:Error: )?Exit code (-?\d{1,9})(?:\n|\Z)")
_MOVED = re.compile(
    r"\bCommand (?:running in|was (?:manually )?(?:moved|backgrounded)|timed out|did not complete)"
    r"|\b(?:in|into|to) the background\b"
)  # the program's text for a command that goes on in the background; it may be before or after the output
_EDGE = 2_000  # characters at both ends of a result that are searched for this text
_NOT_OVER = ("backgroundTaskId", "returnCodeInterpretation", "backgroundedByUser", "assistantAutoBackgrounded")
_STORED = ("persistedOutputPath", "persistedOutputSize")
_LEVELS = ("error", "warning")

_FRAME = "[Subagent hand-back]"
_INDENT = "  "
_TRAILER = re.compile(r"^agentId: ([\w@.-]{1,128})(?= |$)", re.MULTILINE)
_COMMAND = re.compile(r"<command-(name|args)>(.*?)</command-\1>", re.DOTALL)
_LIMIT = re.compile(r"^ *NOTE: (this agent stopped at its \d{1,9}-turn limit[^.\n]{0,100})", re.MULTILINE)


class Transcript(Account):
    """The account (state) of the agent that wrote one transcript."""

    question_tools = QUESTIONS

    _message_id: str | None = None
    _usage = 0
    _text: Answer | None = None  # the text of the last message
    _command: tuple[str, float] | None = None  # a typed command and its time, as long as it has no answer

    def __init__(self, keep: Keep, places: Sequence[str] = (), *, is_agent: bool = False):
        super().__init__(keep, places, is_agent=is_agent)
        self._titles: dict[str, str] = {}
        self._uuids: set[int] = set()
        self._uses_tools = self._is_strange = False  # whether the last message calls tools, or has unknown blocks
        self._items: dict[str, tuple[str, str]] = {}  # checklist items by number, or by call if the number is unknown

    @property
    def title(self) -> str | None:  # type: ignore[override]
        return next((self._titles[kind] for kind in (*_TITLES, "prompt") if kind in self._titles), None)

    @property
    def open_uses(self) -> list[Entry]:
        """The open calls of the last message, without calls that start an agent."""
        return [entry for entry in self.open.values() if entry.tool not in DELEGATING]

    def add(self, fields: Record) -> None:
        written, kind, uuid = time_at(fields), fields.get("type"), text(fields, "uuid")
        at = written or self.updated_at
        # `entrypoint` is `sdk-cli` for `claude -p`, and another `sdk-…` for programs that embed Claude Code.
        if (started_as := text(fields, "entrypoint")) is not None:
            self.one_shot = started_as.startswith("sdk")
        match kind:
            case "user" | "assistant" if uuid is None:
                # The program always writes a uuid. A record without a uuid may be forged, so its content is ignored.
                self.not_understood += 1
            case "user" | "assistant":
                # When a session is resumed, some records are written twice. In older versions, a session's file also
                # has the records of its agents.
                if hash(uuid) not in self._uuids and (self.is_agent or fields.get("isSidechain") is not True):
                    self._uuids.add(hash(uuid))
                    self.touch(at)
                    (self._add_user_record if kind == "user" else self._add_model_record)(fields, at)
            case "summary" | "ai-title" | "custom-title":
                if (title := text(fields, _TITLES[kind])) is not None:
                    self._titles[kind] = first_line(title)
            case "queue-operation":
                self.record_notification(fields.get("content"), at)
            case "attachment" | "progress" | "system":
                attachment = nested(fields, "attachment")
                if attachment.get("type") == "queued_command":
                    self.record_notification(attachment.get("prompt"), at)
                elif fields.get("subtype") in ("turn_duration", "stop_hook_summary"):
                    self._end_turn(at)
                if written is not None:
                    self.touch(written)
            case _ if uuid is not None and nested(fields, "message").get("role") in ("user", "assistant"):
                # The record has a message, but its type is unknown.
                self.not_understood += 1

    def last_text(self) -> Message | None:
        """Return the text of the last message, or None if the message has no text or calls a tool."""
        return self._text() if self._text is not None and not self._uses_tools else None

    def _add_user_record(self, fields: Fields, at: float) -> None:
        content = nested(fields, "message").get("content")
        results = [block for block in blocks_of(content) if block.get("type") == "tool_result"]
        for block in results:
            result = nested(fields, "toolUseResult")
            call = self._close_call(block, result, at)
            if call is not None:
                self._add_permit(call, fields, block, result, at)
        said = "\n".join(texts_of(content))
        # `isMeta` marks remarks of the program. It also marks the prompts that other agents and stop hooks write.
        is_aside = fields.get("isMeta") is True and not said.startswith(_FEEDBACK) and not nested(fields, "origin")
        if said.startswith(INTERRUPTED):
            # If the answer was complete before the interruption, the turn stays ended.
            if self.state is not RunState.ENDED:
                self.end(RunState.CANCELED, at, first_line(said))
        elif said.startswith(_LOCAL):
            # The program itself has answered the typed command, so the command is no prompt.
            self._command = None
        elif fields.get("turnCompanion") is True and not said.startswith(_REMINDER):
            # The last answer was cut off. The program asks for another answer in the same round.
            self._text = None
            if self.state is RunState.ENDED:
                self.resume(at)
        elif not results and said.strip() and not is_aside and fields.get("isCompactSummary") is not True:
            self._titles.setdefault("prompt", typed_prompt(said))
            if said.startswith(_COMMANDS):
                self._command = said, at
            else:
                self._add_prompt(said, at)

    def _add_prompt(self, said: str, at: float) -> None:
        told = self.record_notification(said, at)
        asker = StartedBy.HOOK if said.startswith(_FEEDBACK) else StartedBy.PARENT
        asker = asker if told is None else StartedBy.PROGRAM
        is_open = bool(self.open)
        self.forget_activity()
        # In a session that a human began, only the first prompt is kept.
        prompt = self.keep(said, at) if self.prompt is None or self.is_agent else None
        is_later = self.prompt is not None and self.state is RunState.WORKING
        is_resumed = is_later and not self.is_agent and asker is StartedBy.PARENT
        self.round_at = at if is_later else self.round_at
        self.prompt = self.prompt or prompt
        if is_resumed and is_open:
            self.end(RunState.CANCELED, at, "its program ended in the middle of a call")
        self._begin_turn(at, prompt, asker, is_resumed=is_resumed)

    def _add_model_record(self, fields: Fields, at: float) -> None:
        """Update the state from a record that the model wrote. It usually holds one block of a message."""
        message, parts = nested(fields, "message"), answer_entries(fields, at)
        said = "\n".join([entry.text for entry in parts if entry.kind is EntryKind.WORDS])
        content = message.get("content")
        blocks = content if isinstance(content, list) else [{"type": "text", "text": content}]
        # A block is strange if its type is unknown, or if its type is `text` but it has no text.
        is_strange, kinds = False, set[str]()
        for block in map(as_object, blocks):
            kinds.add(kind := str(block.get("type")))
            is_strange |= not (isinstance(block.get("text"), str) if kind == "text" else kind.endswith(_KNOWN))
        message_id = text(message, "id") or text(fields, "uuid")
        goes_on = message_id == self._message_id
        command, self._command = self._command, None
        if command is not None:
            self._add_prompt(*command)
        elif self.state is not RunState.WORKING and not goes_on:
            self._begin_turn(at)
        if not goes_on:
            self._begin_message(message_id)
        self.not_understood += is_strange
        self._is_strange |= is_strange
        if (model := text(message, "model")) != "<synthetic>":
            self.model = model or self.model
        # All records of a message repeat the same usage. Count this usage once. Leave out tokens from the cache.
        tokens = max(sum_of(nested(message, "usage"), *_COUNTED), self._usage)
        self.tokens, self._usage = self.tokens + tokens - self._usage, tokens
        if "tool_use" in kinds:
            self._uses_tools = True
            if self.state is RunState.ENDED:
                self.resume(at)
        for entry in parts:
            self.add_entry(entry)
        if said.strip() not in NOTHING:
            self._text = self.keep_lazily(said, at)
        reason = message.get("stop_reason")
        if fields.get("isApiErrorMessage") is True:
            self.end(RunState.FAILED, at, first_line(said) or text(fields, "error") or "API error")
        elif reason == "refusal":
            self.end(RunState.FAILED, at, "the model refused to answer")
        elif reason in _ENDS and not (kinds and kinds <= _THOUGHTS):
            self._end_turn(at)
        if fields.get("forkedFrom") is None:
            for entry in parts:
                if entry.tool in _CHECKLIST:
                    self._update_checklist(entry.tool, entry.call, entry.given, at)
                elif entry.tool in _SPAWNING:
                    self.record_call(entry, text(entry.given, "prompt") if entry.tool in DELEGATING else None)

    def _close_call(self, block: Fields, result: Fields, at: float) -> Entry | None:
        """Record the result of a call. Return the call, or None if the call is not open."""
        name = str(block.get("tool_use_id"))
        blocks = texts_of(block.get("content"))
        if (item := self._items.pop(name, None)) is not None:
            number = text(nested(result, "task"), "id")
            if number is None and (match := _CREATED.search("".join(blocks[:1]))) is not None:
                number = match[1]
            self._items |= {number: item} if number is not None else {}
        call = self.calls.get(name)
        if call:
            said = "\n".join(blocks)
            call.child = text(result, "agentId")
            if call.child is None and blocks:
                # Only the program writes lines without an indent, so an agent's text cannot forge the id.
                call.child = next(reversed(_TRAILER.findall(blocks[-1])), None)
            if block.get("is_error") is True:
                words = first_line(_ERROR_TAG.sub("", said)) or "failed"
                is_stopped = any(stopped in words.lower() for stopped in _BY_HUMAN)
                self.record_end(name, "cancelled" if is_stopped else "failed", words, None, at)
            elif result.get("status") == "async_launched" or said.startswith("Async agent launched"):
                call.background = True
            else:
                report, note = split_report(blocks, result)
                self.record_end(name, "completed", note, report, at)
        return self.open.pop(name, None)

    def _end_turn(self, at: float) -> None:
        # Older versions also write the end of a turn if the last message calls a tool. This end is ignored.
        if self._uses_tools or self._message_id is None:
            return
        if self.state is RunState.WORKING:
            self.answer = self._text
            self.end(RunState.ENDED, at, "" if self._text is not None else UNREAD if self._is_strange else WORDLESS)
        elif self.state is RunState.ENDED and self._text is not None:
            self.answer, self.reason = self._text, ""

    def _begin_turn(
        self,
        at: float,
        prompt: Message | None = None,
        asker: StartedBy = StartedBy.PROGRAM,
        *,
        is_resumed: bool = False,
    ) -> None:
        if self.state is not RunState.WORKING or is_resumed:
            self.round_at = self.round_at if self.begun is None else at
            self.begin_round(at, prompt, asker)
        self.resume(at)
        self._begin_message(None)

    def _begin_message(self, message_id: str | None) -> None:
        self._message_id, self._text, self._usage = message_id, None, 0
        self._uses_tools = self._is_strange = False
        self.open.clear()

    def _update_checklist(self, tool: str, call: str, given: Fields, at: float) -> None:
        number, status = str(given.get("taskId")), text(given, "status")
        if tool == "TaskCreate":
            self._items[call] = string(given, "subject"), "pending"
        elif status == "deleted":
            self._items.pop(number, None)
        elif number in self._items:
            words, before = self._items[number]
            self._items[number] = text(given, "subject") or words, status if status in TODO_STATUSES else before
        self.set_todos(make_todos(self._items.values()) or None, at)

    def _add_permit(self, call: Entry, record: Fields, block: Fields, result: Fields, at: float) -> None:
        """Store who allowed or refused a call, if the line with the call's result tells this."""
        decision, denial = nested(record, "permissionDecision"), text(record, "toolDenialKind")
        source = string(decision, "source")
        if denial is None and source in _UNASKED:
            return
        allowed = _DECISIONS.get(str(decision.get("decision")), None if denial is None else False)
        by = {"hook": Permitter.HOOK, "config": Permitter.RULE}.get(source, Permitter.UNKNOWN)
        if source.startswith("user") or (not source and denial == _REJECTED):
            by = Permitter.PERSON
        words = (
            "\n".join(texts_of(block.get("content"))) if allowed is False else _format_input(result.get("answers"))[0]
        )
        self.permits.append(Permit(call.call, call.tool, _format_input(call.given)[1], allowed, by, at, words))


def describe_use(use: Entry) -> str:
    """Describe a call in one line: the text of a question, or else the tool and its main argument."""
    return (
        describe_question(use) if use.tool in QUESTIONS else f"{use.tool} {main_argument(use.tool, use.given)}".strip()
    )


def _format_input(value: object) -> tuple[str, str]:
    try:
        return canonical_input(value) if isinstance(value, dict) else ("", "")
    except ValueError:
        return "", ""


# Entries


def entries(record: Fields, at: float = 0.0) -> Iterator[Entry]:
    """Yield the entries of a record, in order. If the record has no time, use `at` (epoch seconds)."""
    at = time_at(record) or at
    match record.get("type"):
        case "assistant":
            yield from answer_entries(record, at)
        case "user":
            yield from _user_entries(record, at)
        case "system" if words := text(record, "content"):
            level = record.get("level")
            if level in _LEVELS or record.get("subtype") == "compact_boundary":
                yield Entry(at, EntryKind.NOTE, words, failed=level == "error")


def answer_entries(record: Fields, at: float) -> list[Entry]:
    """Return the entries of a record that the model wrote, in order."""
    said: list[Entry] = []
    failed = record.get("isApiErrorMessage") is True
    for block in blocks_of(nested(record, "message").get("content")):
        match block.get("type"):
            case "text" if words := text(block, "text"):
                said.append(Entry(at, EntryKind.WORDS, words, failed=failed))
            case "thinking" if words := text(block, "thinking"):
                said.append(Entry(at, EntryKind.THOUGHT, words))
            case "tool_use" if tool := text(block, "name"):
                said.append(Entry(at, EntryKind.CALL, "", string(block, "id"), tool, nested(block, "input")))
    return said


def _user_entries(record: Fields, at: float) -> Iterator[Entry]:
    for block in blocks_of(nested(record, "message").get("content")):
        match block.get("type"):
            case "text" if (words := text(block, "text")) and not words.startswith(_REMINDER):
                yield _prompt_entry(record, words, at)
            case "tool_result":
                result = nested(record, "toolUseResult")
                words = _result_text(texts_of(block.get("content")), result)
                failed = block.get("is_error") is True
                refused = failed and (text(record, "toolDenialKind") is not None or words.startswith(_REFUSED))
                call = string(block, "tool_use_id")
                words = _ERROR_TAG.sub("", words)
                ended = None if refused else _command_end(words, result, failed=failed)
                yield Entry(at, EntryKind.RESULT, words, call, failed=failed, refused=refused, ended=ended)


def _command_end(words: str, result: Fields, *, failed: bool) -> CommandEnd:
    """Return the end of a command, from its result. The text of a failed command begins with the exit code."""
    if failed:
        told = _EXIT.match(words)
        output = words[told.end() :] if told else words
        return CommandEnd(int(told[1]) if told else None, output)
    parts = [part for key in ("stdout", "stderr") if (part := text(result, key))]
    output = "\n".join(parts) if "stdout" in result else words
    # The exit code is unknown if the command was interrupted or goes on in the background. For some commands, such as
    # grep, the program describes the exit code in words. `_MOVED` is slow, so first look for one of its words.
    ends = [end for end in (words[:_EDGE], words[-_EDGE:]) if "Command " in end or " background" in end]
    is_moved = any(_MOVED.search(end) for end in ends)
    is_open = result.get("interrupted") is True or any(key in result for key in _NOT_OVER) or is_moved
    return CommandEnd(None if is_open else 0, output, any(key in result for key in _STORED))


def _result_text(blocks: list[str], result: Fields) -> str:
    """Return the text of a tool's result. If the result is an agent's report, leave out the lines of the program."""
    is_framed = any(_FRAMES.search(block) for block in blocks)
    return (split_report(blocks, result)[0] if is_framed else None) or "\n".join(blocks)


def _prompt_entry(record: Fields, words: str, at: float) -> Entry:
    """Return the entry for a text: a prompt, or a note if the program itself wrote the text."""
    if words.startswith(INTERRUPTED):
        return Entry(at, EntryKind.NOTE, words.strip("[]"), failed=True)
    if (notice := read_notification(words)) is not None:
        return Entry(at, EntryKind.NOTE, notice.full_text)
    if words.startswith("<command-"):
        return Entry(at, EntryKind.PROMPT, typed_prompt(words))
    is_own = record.get("isMeta") is True or record.get("isCompactSummary") is True or words.startswith(_ASIDE)
    return Entry(at, EntryKind.NOTE if is_own else EntryKind.PROMPT, _LOCAL_TAG.sub("", words))


def blocks_of(content: object) -> list[Fields]:
    """Return the blocks in the content of a message or a tool result. A string becomes one block of text."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []


def split_report(blocks: list[str], result: Fields) -> tuple[str | None, str]:
    """Split the result of a call that started an agent. Return the agent's report (or None), and the note in which the
    program says that it stopped the agent (or ""). `blocks` are the texts of the result. `result` is its structured
    form, and may be empty."""
    if isinstance(result.get("content"), list):
        parts, head = texts_of(result.get("content")), int_at(result, "harnessNoteCount") or 0
        behind = len(parts) - (int_at(result, "harnessTailCount") or 0)
        notes, report = "\n".join(parts[:head]), "\n".join(parts[head:behind])
    else:
        notes, framed, _ = "\n".join(blocks).partition(_FRAME)
        notes = notes if framed else ""
        report = _without_frame("\n".join(block for block in blocks if not _TRAILER.match(block)))
    match = _LIMIT.search(notes)
    return report if report.strip() not in NOTHING else None, match[1] if match else ""


def typed_prompt(prompt: str) -> str:
    """Return a human's prompt in one line. A slash command, which is stored as tags, becomes `name arguments`."""
    if prompt.startswith("<command-"):
        parts = dict(_COMMAND.findall(prompt))
        return first_line(f"{parts.get('name', '')} {first_line(parts.get('args', ''))}")
    return first_line(prompt)


def _without_frame(text: str) -> str:
    lines = text.split("\n")
    start = next((index for index, line in enumerate(lines, 1) if line.startswith(_FRAME)), None)
    if start is None:
        return text
    framed = takewhile(lambda line: not line or line.startswith(_INDENT), lines[start:])
    return "\n".join(line.removeprefix(_INDENT) for line in framed)


def texts_of(content: object) -> list[str]:
    """Return the texts of the text blocks in the content of a message or a tool result."""
    said = [block.get("text") for block in blocks_of(content) if block.get("type") == "text"]
    return [words for words in said if isinstance(words, str)]
