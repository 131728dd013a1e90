"""One agent's side of a transcript, folded record by record: whether it works, what it was given, what it said."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from agentwatch.delegation.run import Message, RunState, StartedBy, Turn
from agentwatch.sources.claude_code.entries import ClaudePulse, entries
from agentwatch.sources.claude_code.frames import is_understood, texts
from agentwatch.sources.claude_code.permits import Permits
from agentwatch.sources.claude_code.tools import Checklist, Use
from agentwatch.sources.sessions.doing import Entry, EntryKind
from agentwatch.sources.sessions.fields import Fields, first_line, inner, listed, mapping, moment, text, whole
from agentwatch.sources.sessions.runs import UNREAD, WORDLESS, Account, Keep, Rising, Said

INTERRUPTED: Final = "[Request interrupted by user"

NOTHING: Final = frozenset({"", "(no content)"})
"""What a message without a word holds."""

_ENDS: Final = ("end_turn", "stop_sequence")
"""`max_tokens` and `pause_turn` are no ends: the program goes on by itself."""

_THOUGHTS: Final = frozenset({"thinking", "redacted_thinking"})
_SYNTHETIC: Final = "<synthetic>"
_COUNTED: Final = ("input_tokens", "cache_creation_input_tokens", "output_tokens")

_BeforePrompt = tuple[RunState, Said | None, str, float | None, Message | None, Turn | None]


class Conversation(Account):
    """What one agent was asked and answered. `places` are the spellings of the workspace."""

    def __init__(self, keep: Keep, places: Sequence[str] = (), *, is_agent: bool) -> None:
        super().__init__(keep)
        self.pulse = ClaudePulse(places)
        self._is_agent = is_agent
        self.is_unread = False
        """Its last message has no text that is understood, and something that is not."""
        self.rounds = 0
        self.round_at = 0.0
        self.rising = Rising()
        """For the calls that hand out work."""
        self.checklist = Checklist()
        self.permits = Permits()
        self.uses: dict[str, Use] = {}
        """Those of tools in the last message that have no result yet, by id; not of those that hand out work."""
        self._updated_at = 0.0
        self._latest = b""
        self._tokens = 0
        self._usage = 0
        self._message_id: str | None = None
        self._text: Said | None = None
        """That of the last message."""
        self._uses_tools = False
        self._is_strange = False
        self._before_prompt: _BeforePrompt | None = None

    @property
    def updated_at(self) -> float:
        """The last sign of life, 0 before the first."""
        self._settle()
        return self._updated_at

    @property
    def tokens(self) -> int | None:
        """Tokens read anew and written, over all model calls; what came from the cache is not counted again."""
        return self._tokens + self._usage or None

    def touch(self, at: float | None) -> None:
        """A sign of life."""
        if at is not None:
            self.started_at = at if self.started_at is None else self.started_at
            self._updated_at = max(self._updated_at, at)

    def seen(self, written: bytes) -> None:
        """A sign of life, at a time in ISO 8601 of UTC. It is read when somebody asks: most are followed by a later."""
        if self.started_at is None:
            self.touch(moment(written.decode()))
        else:
            if len(written) != len(self._latest) or written < self._latest:
                self._settle()
            self._latest = written

    def prompted(self, text: str, at: float, offset: int, asker: StartedBy) -> None:
        """The agent was given something to do."""
        self.touch(at)
        self.pulse.take(Entry(at, EntryKind.PROMPT))
        self._before_prompt = (self.state, self._said, self.reason, self.ended_at, self.prompt, self.begun)
        # What a human goes on to say in a session of his own is no attempt of anybody's.
        prompt = self._keep(text, at, offset) if self.prompt is None or self._is_agent else None
        if self.prompt is None:
            self.prompt = prompt
        elif self.state is RunState.WORKING:
            self._count_round(at)
        self._begin(at, Turn(at, prompt, asker))

    def command_answered(self, at: float) -> None:
        """The program itself answered what was typed: the model was not asked."""
        self.touch(at)
        if self._before_prompt is not None:
            had_ended = self._before_prompt[0] is not RunState.WORKING and self._before_prompt[-1] is not None
            self.state, self._said, self.reason, self.ended_at, self.prompt, self.begun = self._before_prompt
            if had_ended:
                self.earlier.pop()
            self._before_prompt = None

    def asked_again(self, at: float) -> None:
        """The program does not take the last answer, which was cut off, and asks for another in the same round."""
        self.touch(at)
        self._text = None
        if self.state is RunState.ENDED:
            self._work_on()

    def interrupted(self, text: str, at: float) -> None:
        """A human stopped it. An answer that was whole by then stays one."""
        self.touch(at)
        if self.state is not RunState.ENDED:
            self._stop(RunState.CANCELED, first_line(text), at)

    def answered(self, record: Fields, at: float, offset: int) -> None:
        """One record of a message of the model: as a rule one block of it."""
        message = inner(record, "message")
        types = {text(mapping(block), "type") for block in listed(message, "content")}
        message_id = text(message, "id") or text(record, "uuid")
        tokens = sum((whole(inner(message, "usage"), key) or 0) for key in _COUNTED)
        self.touch(at)
        if self.state is not RunState.WORKING and not self._goes_on_with(message_id):
            self._begin(at, Turn(at))
        self.stepped(message_id, text(message, "model"), tokens, uses_tools="tool_use" in types)
        for entry in entries(record, at):
            self.pulse.take(entry)
            if entry.kind is EntryKind.CALL:
                self.permits.called(entry.call, (entry.tool, entry.given))
        said = "\n".join(texts(message.get("content")))
        if said.strip() not in NOTHING:
            self._text = self._saying(said, at, offset)
        self._is_strange = self._is_strange or not is_understood(message.get("content"))
        if record.get("isApiErrorMessage") is True:
            self._stop(RunState.FAILED, _api_error(record, said), at)
            return
        reason = message.get("stop_reason")
        if reason == "refusal":
            self._stop(RunState.FAILED, "the model refused to answer", at)
        elif reason in _ENDS and not (types and types <= _THOUGHTS):
            self.turn_ended(at)

    def stepped(self, message_id: str | None, model: str | None, tokens: int, *, uses_tools: bool) -> None:
        """The model works on a message, of which so many tokens are known by now."""
        self._before_prompt = None
        if not self._goes_on_with(message_id):
            self._begin_message(message_id)
            self._tokens += self._usage
            self._usage = 0
        if model is not None and model != _SYNTHETIC:
            self.model = model
        self._usage = max(self._usage, tokens)
        if uses_tools:
            self._uses_tools = True
            if self.state is RunState.ENDED:
                self._work_on()

    def turn_ended(self, at: float) -> None:
        """The turn is over, if the last message asks for no tool: older programs write it beside the message."""
        self.touch(at)
        if self.state is RunState.WORKING and self._message_id is not None and not self._uses_tools:
            self._said = self._text
            self.is_unread = self._text is None and self._is_strange
            reason = "" if self._text is not None else UNREAD if self.is_unread else WORDLESS
            self._stop(RunState.ENDED, reason, at)
        elif self.state is RunState.ENDED and self._text is not None and not self._uses_tools:
            self._said, self.is_unread, self.reason = self._text, False, ""

    def last_text(self) -> Message | None:
        """The text of the last message, where it is no preface to a use of tools."""
        return self._text() if self._text is not None and not self._uses_tools else None

    def _settle(self) -> None:
        if self._latest:
            at, self._latest = moment(self._latest.decode()), b""
            self.touch(at)

    def _goes_on_with(self, message_id: str | None) -> bool:
        """Whether a record is of the message of the one before."""
        return message_id is not None and message_id == self._message_id

    def _work_on(self) -> None:
        self.is_unread = False
        self.state, self._said, self.reason, self.ended_at = RunState.WORKING, None, "", None

    def _begin(self, at: float, begun: Turn) -> None:
        if self.state is not RunState.WORKING:
            self._count_round(at)
            self._begin_round(begun)
        self._work_on()
        self._begin_message(None)

    def _begin_message(self, message_id: str | None) -> None:
        self._message_id = message_id
        self._text = None
        self._uses_tools = self._is_strange = False
        self.uses.clear()
        self.pulse.go_on()
        self.permits.go_on()

    def _count_round(self, at: float) -> None:
        self.rounds += 1
        self.round_at = at

    def _stop(self, state: RunState, reason: str, at: float) -> None:
        self.state, self.reason, self.ended_at = state, reason, at


def _api_error(record: Fields, said: str) -> str:
    words = first_line(said) or text(record, "error") or "API error"
    status = whole(record, "apiErrorStatus") or 0
    return words if not status or str(status) in words else f"{words} (HTTP {status})"
