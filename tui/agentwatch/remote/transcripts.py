"""Transcripts that lie on a host: looked at there, and shown here as if they lay here."""

from __future__ import annotations

import hashlib
import json
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from agentwatch.delegation.run import Run
from agentwatch.remote.codec import decoder, encoder
from agentwatch.sources.sessions.entries import Entry
from agentwatch.sources.sessions.following import Look, RunTranscript, Step, WholeStep

_PAUSE_SECONDS: Final = 1.0
"""Between two looks at a host."""
_MOST_OPEN: Final = 8
_MOST_ENTRIES: Final = 20_000
_UNREACHABLE: Final = "The host does not answer"

Asking = Callable[[str], str | None]
"""Asks a host about a transcript, and waits for the answer; None where there is none."""


class FarTranscript(RunTranscript):
    """The transcript of a run on a host."""

    def __init__(self, ask: Asking, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(Path())
        self._ask, self._clock = ask, clock
        self._known = Look()
        self._sign = ""
        self._looked_at = float("-inf")

    def look(self) -> Look | None:
        if self._clock() < self._looked_at + _PAUSE_SECONDS:
            return None
        self._looked_at = self._clock()
        before = self._known
        self._learn(f"look {self._sign}")
        return None if self._known is before else self._known

    def older(self) -> Look:
        self._learn("older")
        return self._known

    def whole(self, step: Step) -> WholeStep | None:
        data = self._ask(f"whole {json.dumps(encoder(Step)(step))}")
        found: WholeStep | None = _read(WholeStep, data) if data else None
        return found

    def entries(self) -> Iterator[Entry]:
        data = self._ask("entries")
        entries: tuple[Entry, ...] = _read(tuple[Entry, ...], data) if data else ()
        return iter(entries or ())

    def _learn(self, place: str) -> None:
        data = self._ask(place)
        look: Look | None = _read(Look, data) if data else None
        if look is not None:
            self._known, self._sign = look, _sign(data or "")
        elif data is None and not self._known.trouble:
            self._known, self._sign = self._known._replace(trouble=_UNREACHABLE), ""

    def _read(self) -> bool:
        return False

    def _entries_at(self, place: int) -> Sequence[Entry]:  # noqa: ARG002
        return ()


class Shown:
    """The transcripts that screens look at, on their host. Any thread may call it."""

    def __init__(self, transcript_of: Callable[[Run], RunTranscript | None]) -> None:
        self._transcript_of = transcript_of
        self._lock = threading.Lock()
        self._open: OrderedDict[tuple[str, str], tuple[RunTranscript, Look]] = OrderedDict()

    def answer(self, screen: str, key: str, place: str, run: Run | None) -> str | None:
        """What a screen wants to know of the transcript of a run, which is here as it is now, None where it is gone.
        None where there is no transcript. Blocks."""
        with self._lock:
            known = self._open.pop((screen, key), None)
            if known is None:
                transcript = self._transcript_of(run) if run is not None else None
                if transcript is None:
                    return None
                known = transcript, Look()
            transcript, look = known
            what, _, rest = place.partition(" ")
            if what == "whole":
                answer = _whole(transcript, rest)
            elif what == "entries":
                entries = [one for one, _ in zip(transcript.entries(), range(_MOST_ENTRIES), strict=False)]
                answer = _written(tuple[Entry, ...], entries)
            else:
                look = transcript.older() if what == "older" else transcript.look() or look
                answer = _written(Look, look)
                if rest == _sign(answer):
                    answer = ""
            self._open[screen, key] = transcript, look
            while len(self._open) > _MOST_OPEN:
                self._open.popitem(last=False)
            return answer


def _whole(transcript: RunTranscript, said: str) -> str:
    step: Step | None = _read(Step, said)
    found = transcript.whole(step) if step is not None else None
    return "" if found is None else _written(WholeStep, found)


def _written(shape: Any, value: Any) -> str:
    return json.dumps(encoder(shape)(value), default=str)


def _read(shape: Any, data: str) -> Any:
    """What was written, None where nobody can have written it."""
    try:
        return decoder(shape)(json.loads(data))
    except (ValueError, RecursionError):
        return None


def _sign(data: str) -> str:
    return hashlib.sha256(data.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def is_of(run: Run, other: Run) -> bool:
    """Whether two states are of one run."""
    return (run.source, run.session_id, run.place) == (other.source, other.session_id, other.place)
