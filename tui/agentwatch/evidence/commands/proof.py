"""The log of one attempt and what it says of the return: read when first asked, then only the answers are kept."""

from __future__ import annotations

from collections.abc import Sequence

from agentwatch.delegation.claims import Deed
from agentwatch.delegation.run import Run
from agentwatch.evidence.commands.hits import Held
from agentwatch.evidence.commands.holding import hold
from agentwatch.evidence.commands.log import Others, ToolLog, TranscriptOf, read_log
from agentwatch.evidence.commands.statements import Statement
from agentwatch.evidence.commands.unsaid import unsaid_in


class Proof:
    """Of the attempt whose run comes first, and of the agents that it asked, which follow. One thread uses it."""

    def __init__(self, runs: Sequence[Run], transcript_of: TranscriptOf, workspace: str, others: Others) -> None:
        self._runs = runs
        self._transcript_of = transcript_of
        self._workspace = workspace
        self._others = others
        self._log: ToolLog | None = None
        self._is_there: bool | None = None
        self._held: dict[tuple[Statement, bool], Held] = {}
        self._unsaid: tuple[Deed, ...] | None = None

    @property
    def is_there(self) -> bool:
        """Whether a log of the attempt is to be had. Reads it at first."""
        if self._is_there is None:
            self._is_there = self._read() is not None
        return self._is_there

    def hold(self, statement: Statement, *, demanded: bool) -> Held:
        """The verdict on a statement of the return, or of the handoff where that is what is demanded."""
        key = statement, demanded
        if key not in self._held:
            self._held[key] = hold(statement, self._read() or ToolLog(), self._workspace, demanded=demanded)
        return self._held[key]

    def others(self, held: Held, until: float | None) -> str:
        """What other agents may have changed since the run that verifies something, in words; "" for nothing."""
        if held.since is None or held.call is None:
            return ""
        return self._others.changed(self._runs, held.call.at, until)

    def unsaid(self, returned_text: str) -> tuple[Deed, ...]:
        """What was done and the return does not speak of."""
        if self._unsaid is None:
            self._unsaid = unsaid_in(self._read() or ToolLog(), returned_text, self._workspace)
        return self._unsaid

    def forget(self) -> None:
        """Keep the answers alone: what was once done stays as it is."""
        self._log = None

    def _read(self) -> ToolLog | None:
        if self._log is None and self._is_there is not False:
            self._log = read_log(self._runs, self._transcript_of)
        return self._log
