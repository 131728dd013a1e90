"""What became of calls that may have been asked about, as their parts say: allowed, refused, answered, and by whom."""

from __future__ import annotations

from contextlib import suppress
from typing import Final

from agentwatch.delegation.request import input_text
from agentwatch.delegation.run import MOST_PERMITS, Permit, Permitter
from agentwatch.sources.opencode.tables import RecordRow
from agentwatch.sources.sessions.fields import inner, listed, mapping, text, whole

_REFUSED: Final = "The user rejected permission to use this specific tool call"
_FEEDBACK: Final = " with the following feedback: "
_RULE: Final = "The user has specified a rule which prevents you from using this specific tool call"
_DISMISSED: Final = "The user dismissed this question"
_LONGEST: Final = 2_000


def permit_of(record: RecordRow) -> Permit | None:
    """What a part says of a call that is over; None where the part is something else."""
    data = record.data or {}
    state = inner(data, "state")
    status, told = text(state, "status"), inner(state, "metadata")
    if data.get("type") != "tool" or record.message_id is None or status not in ("completed", "error"):
        return None
    error, words = text(state, "error") or "", ""
    allowed: bool | None = status == "completed" and told.get("dismissed") is not True
    # OpenCode does not say whether anybody was asked. Kilo does, and not whether that was at its terminal.
    source = text(inner(told, "approval"), "source")
    by = Permitter.UNKNOWN if source in (None, "manual") else Permitter.RULE
    if error.startswith(_REFUSED):
        words = error.partition(_FEEDBACK)[2]
    elif error.startswith(_RULE):
        by = Permitter.RULE
    elif error and error != _DISMISSED:
        # It began and failed, or was stopped while it waited: that does not say.
        allowed = None
    elif allowed and text(data, "tool") == "question":
        asked = [text(mapping(one), "question") or "" for one in listed(inner(state, "input"), "questions")]
        answers = [", ".join(map(str, one)) if isinstance(one, list) else "" for one in listed(told, "answers")]
        with suppress(ValueError):
            words = input_text(dict(zip(asked, answers, strict=False)))[0]
    at = (whole(inner(state, "time"), "end") or record.updated) / 1000
    call_id = text(data, "callID") or record.id
    return Permit(call_id, text(data, "tool") or "", "", allowed, by, at, words[:_LONGEST])


class Permits:
    """Those of one session, by their parts, whose ids are in the order of time."""

    def __init__(self) -> None:
        self._of: dict[str, Permit] = {}

    def put(self, part: str, record: RecordRow | None) -> None:
        """A part as it is now, None where it was removed."""
        self._of.pop(part, None)
        permit = permit_of(record) if record is not None else None
        if permit is not None:
            self._of[part] = permit
        if len(self._of) > 2 * MOST_PERMITS:
            self._of = dict(sorted(self._of.items())[-MOST_PERMITS:])

    def latest(self) -> tuple[Permit, ...]:
        """The latest, oldest first."""
        return tuple(permit for _, permit in sorted(self._of.items())[-MOST_PERMITS:])
