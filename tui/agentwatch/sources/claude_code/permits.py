"""What the program writes beside the result of a call that somebody was asked about: who allowed it, or refused it."""

from __future__ import annotations

from collections import deque
from typing import Final

from agentwatch.delegation.request import input_text
from agentwatch.delegation.run import MOST_PERMITS, Permit, Permitter
from agentwatch.sources.claude_code.entries import call_in
from agentwatch.sources.claude_code.frames import texts
from agentwatch.sources.sessions.fields import Fields, inner, text

_ALLOWED: Final = {"accept": True, "reject": False}
_UNASKED: Final = (None, "config")
"""Sources of calls that ran because nothing forbade them."""

_REJECTED: Final = "user-rejected"
"""A kind of denial that a person is behind, where the record names no source."""

Call = bytes | tuple[str, Fields]
"""The tool and its arguments; bytes where the record was not parsed: from the name of the tool on."""


class Permits:
    """Those of one agent. `told` are the latest, oldest first."""

    def __init__(self) -> None:
        self.told: deque[Permit] = deque(maxlen=MOST_PERMITS)
        self._calls: dict[str, Call] = {}
        self._by_hooks: dict[str, bool | None] = {}

    def called(self, call_id: str, call: Call) -> None:
        """The model uses a tool."""
        self._calls[call_id] = call

    def go_on(self) -> None:
        """There is another message: those of the one before have their results."""
        self._calls.clear()
        self._by_hooks.clear()

    def decided(self, attachment: Fields) -> None:
        """A hook has decided about a call that was asked about."""
        call_id, event = text(attachment, "toolUseID"), attachment.get("hookEvent")
        if call_id in self._calls and event == "PermissionRequest":
            self._by_hooks[call_id] = {"allow": True, "deny": False}.get(str(attachment.get("decision")))

    def answered(self, record: Fields, block: Fields, result: Fields, at: float) -> None:
        """A call has its result, which stands in the block; `result` is its structured form."""
        call_id = text(block, "tool_use_id") or ""
        call = self._calls.pop(call_id, None)
        decision, denial = inner(record, "permissionDecision"), text(record, "toolDenialKind")
        source = text(decision, "source")
        if call is None or (denial is None and source in _UNASKED):
            return
        allowed = _ALLOWED.get(str(decision.get("decision")), None if denial is None else False)
        by = Permitter.UNKNOWN
        if source == "hook":
            # A hook of another event leaves no line of its own, and was not asked what we were asked.
            if call_id in self._by_hooks and self._by_hooks[call_id] is allowed:
                by = Permitter.HOOK
        elif source == "config":
            by = Permitter.RULE
        elif (source or "").startswith("user") or (source is None and denial == _REJECTED):
            by = Permitter.PERSON
        tool, given = call_in(call) if isinstance(call, bytes) else call
        words = "\n".join(texts(block.get("content"))) if allowed is False else _spelled(result.get("answers"))[0]
        self.told.append(Permit(call_id, tool, _spelled(given)[1], allowed, by, at, words))


def _spelled(value: object) -> tuple[str, str]:
    """As `input_text`; both empty where there is none."""
    try:
        return input_text(value) if isinstance(value, dict) else ("", "")
    except ValueError:
        return "", ""
