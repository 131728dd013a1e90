"""What one look at a workspace knows of its documents: each is parsed once, and what a return claims is kept for the
looks that come after."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from agentwatch.contracts.reading import read_and_open
from agentwatch.delegation.claims import Verdict
from agentwatch.evidence.asked import Demands
from agentwatch.evidence.claims import Told, claims_of, told_by, told_in
from agentwatch.evidence.shapes import Assertion, ClaimKind, Limit
from agentwatch.kept.index import Index

if TYPE_CHECKING:
    from agentwatch.contracts.shapes import Reading
    from agentwatch.delegation.task import Version
    from agentwatch.evidence.checker import Request

CLAIM_KINDS: Final = (Assertion, ClaimKind, Limit, Verdict)
KINDS: Final = (Told, Demands, *CLAIM_KINDS)
"""All that `Told` is made of, but for what a reading is made of."""
_Pair = tuple[str, str, str | None, str | None]
"""The names and the digests of a return and of its handoff: what is claimed without a log depends on nothing else."""


class OneLook:
    """Reads the documents of files, and remembers of each what the evidence asks for later, while they fit into
    `room` characters."""

    def __init__(self, workspace: Path, room: int = 64 * 1024 * 1024) -> None:
        self._room = room
        self._parsed: dict[str, tuple[str, Told]] = {}
        self._claims = Index[_Pair, tuple[Assertion, ...]]("claims", (str(workspace.resolve()),), CLAIM_KINDS)

    def read(self, text: str, name: str) -> Reading | None:
        """Recognise a text, as `read_document` does."""
        opened = read_and_open(text, name)
        if opened is None:
            return None
        if self._room > len(text):
            self.take(name, text, told_by(opened))
        return opened.reading

    def take(self, name: str, text: str, told: Told) -> None:
        """A text was recognised, and says this."""
        self._room -= len(text)
        if self._room > 0:
            self._parsed[name] = text, told

    def load(self, returns: int) -> None:
        """Take in what is known. So many returns are to be checked."""
        self._claims.load(returns)

    def known(self, returned: Version, handoff: Version | None) -> tuple[Assertion, ...] | None:
        """What a return claims that answers this handoff, without either text; None where it is not known."""
        if handoff is None:
            return self._claims.get((returned.path, returned.digest, None, None))
        return self._claims.get((returned.path, returned.digest, handoff.path, handoff.digest))

    def claims_of(self, request: Request, *, logged: bool) -> tuple[Assertion, ...]:
        """The same by their texts; see `claims.claims_of`."""
        returned, handoff = (request.returned_text, request.returned_name), (request.handoff_text, request.handoff_name)
        claims = claims_of(*returned, *handoff, stored=request.stored, logged=logged, tell=self._tell)
        if not (logged or request.stored):
            handoff_key = (None, None) if handoff[0] is None else (request.handoff_name, request.handoff_digest)
            self._claims.put((request.returned_name, request.digest, *handoff_key), claims)
        return claims

    def told(self) -> object:
        """What a copy of this process has found out, for `take_told`."""
        return self._claims.told()

    def take_told(self, told: Any) -> None:
        """A copy of this process has found this out."""
        self._claims.take(told)

    def save(self) -> None:
        """Leave what is known for the next look."""
        self._claims.save()

    def _tell(self, text: str, name: str) -> Told:
        known = self._parsed.get(name)
        return known[1] if known is not None and known[0] == text else told_in(text, name)
