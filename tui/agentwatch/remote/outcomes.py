"""What becomes of what an operator signed for this host, and the refusals that stay so, a file each.

    <state directory>/refused/                 0700
        <sha256 of what was signed>.json       0600: the outcome, and why

A network may deliver the same twice, or much later, when it would be recorded. Its operator was told that it was not.
"""

from __future__ import annotations

import json
from contextlib import suppress
from datetime import datetime, timedelta
from enum import StrEnum
from pathlib import Path
from typing import Final, NamedTuple

from agentwatch.decisions.record import time_of
from agentwatch.disk import DISK, Disk, PrivateDirectory

NAME: Final = "refused"

_LARGEST: Final = 64 * 1024
_MOST: Final = 1_000
"""Files from which on those are removed that are not needed any more."""
_KEPT: Final = timedelta(days=1)
"""So long after its time is over: a clock may be set back."""


class Outcome(StrEnum):
    """What became of it. What could not be recorded for now may still be; all others stay so."""

    RECORDED = "recorded"
    DECIDED_OTHERWISE = "decided otherwise"
    RETURN_CHANGED = "return changed"
    GONE = "gone"
    """Nobody waits for the answer any more."""
    NOT_ALLOWED = "not allowed"
    EXPIRED = "expired"
    NOT_TRUSTED = "not trusted"
    REFUSED = "refused"
    """It is for another host, or cannot be read."""
    FAILED = "failed"
    """The disk, or the key of the host: it is right to send it again."""

    @property
    def is_final(self) -> bool:
        return self is not Outcome.FAILED


class Refusal(NamedTuple):
    """Why something is not recorded, for the operator."""

    outcome: Outcome
    words: str


class Refusals:
    """Those of one workspace. They are written while its ledger is locked."""

    def __init__(self, state: Path, disk: Disk = DISK) -> None:
        self._place = PrivateDirectory(state / NAME, disk)

    def find(self, sha256: str) -> Refusal | None:
        """The one about what was signed, by its sha256 in hex; None where there is none. Raises OSError."""
        try:
            with self._place.open() as directory:
                data = directory.read(f"{sha256}.json", _LARGEST)
        except FileNotFoundError:
            return None
        try:
            fields = json.loads(data)
            return Refusal(Outcome(fields["outcome"]), str(fields["words"]))
        except (ValueError, TypeError, KeyError, RecursionError):
            # It was refused, whatever happened to the words since.
            return Refusal(Outcome.REFUSED, "not recorded: it was refused before")

    def keep(self, sha256: str, refusal: Refusal, until: str, now: datetime) -> None:
        """Write one down, for as long as what was signed can be delivered again. Raises OSError."""
        fields = {"version": 1, "until": until, **refusal._asdict()}
        with self._place.make() as directory:
            names = [name for name in directory.names() if not name.startswith(".")]
            if len(names) >= _MOST:
                for name in names:
                    with suppress(OSError, ValueError, TypeError, KeyError):
                        until_then = time_of(json.loads(directory.read(name, _LARGEST))["until"])
                        if until_then + _KEPT < now:
                            directory.remove(name)
            directory.replace(f"{sha256}.json", json.dumps(fields).encode())
