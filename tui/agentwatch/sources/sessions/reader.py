"""What every reader of a session store gives: the one small protocol behind all session sources."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from typing import Final, NamedTuple, Protocol, runtime_checkable

from agentwatch.contracts.shapes import Return
from agentwatch.delegation.run import Message, Run

_OPENING: Final = 200


class Change(NamedTuple):
    """A run as it is now, None where the store no longer has it. `key` names the run in the store, for ever."""

    key: str
    run: Run | None


class Found(NamedTuple):
    """A store, or a part of one, that was looked at: for `agentwatch sources`.

    `sessions` are those that a human began, `children` those that another session asked for. `skipped` says in one
    sentence why something is not read, "" where all is. Paths and texts are foreign.
    """

    source: str
    place: str
    sessions: int
    skipped: str = ""
    children: int = 0


class Progress(NamedTuple):
    """How far the first look has come, in bytes; equal once all has been read."""

    done: int
    total: int


@runtime_checkable
class SessionReader(Protocol):
    """Reads the sessions of one workspace out of one program's store, and never writes there.

    One thread calls it. Nothing here raises for what a store holds: what cannot be read is told in `trouble`.
    """

    @property
    def name(self) -> str:
        """The name of the source: `claude-code`."""

    @property
    def trouble(self) -> str | None:
        """One sentence for the health line, None where all that should be readable is read."""

    def read(self, seconds: float) -> Sequence[Change]:
        """What has changed since the call before, working for about so many seconds at most.

        The last states of runs only: a run that changed twice is given once. Whether there is more to read at once
        is told by `progress`.
        """

    @property
    def progress(self) -> Progress:
        """How far the reading has come."""

    def text(self, digest: str) -> str | None:
        """A text handed over or back, by its digest; None where it is not to be had any more. Any thread may call."""

    def found(self) -> Sequence[Found]:
        """What was found, and what was skipped and why."""

    def close(self) -> None:
        """Give back what is open."""


def digest_of(text: str) -> str:
    """The sha256, in hex, that a text handed over or back is known by; half a character is one, too."""
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def message(text: str, at: float, *, key: str, digest: str | None = None) -> Message:
    """A text as it was handed over or back, judged by the contracts; `key` stands for its file name."""
    opening = next((line.strip() for line in text.splitlines() if line.strip()), "")[:_OPENING]
    digest = digest or digest_of(text)
    if "{" not in text and "#" not in text:
        # No object and no heading, so no contract: most sessions need not wait until those are loaded.
        return Message(at, digest, opening, None)
    # In the source's thread: the models of the contracts take as long to load as a screen to appear.
    from agentwatch.contracts.reading import read_document

    reading = read_document(text, key, embedded=True)
    # Who is asked and who answers is the caller's to know.
    both = reading is not None and isinstance(reading.document, Return) and "{" in text
    return Message(at, digest, opening, reading, read_document(text, key, handed_over=True) if both else None)
