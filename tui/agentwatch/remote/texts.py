"""Fetches texts and transcripts from a host when somebody looks at them. Long answers come in parts."""

import hashlib
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from agentwatch.delegation.events import Message, Run
from agentwatch.monitor import Monitor
from agentwatch.remote.log import memory_size
from agentwatch.remote.protocol import Ask, Reply
from agentwatch.sources.sessions.entries import Entry, RunTranscript, Step, TranscriptEnd, WholeStep
from agentwatch.sources.sessions.reader import adapter_of

_PAUSE_SECONDS = 1.0  # the end of a transcript is fetched again after so many seconds
_UNREACHABLE = "The host does not answer"

PART = 128 * 1024  # the most characters of one part
_MOST_OPEN = 8
_MOST_ENTRIES = 20_000


class RemoteTranscript(RunTranscript):
    """The transcript of a run on a host. `ask` fetches a part of the transcript, or returns None."""

    def __init__(self, ask: Callable[[str], str | None], clock: Callable[[], float] = time.monotonic):
        super().__init__(Path())
        self._ask, self._clock = ask, clock
        self._known = TranscriptEnd()
        self._sign = ""
        self._looked_at = float("-inf")

    def read_end(self) -> TranscriptEnd | None:
        if self._clock() < self._looked_at + _PAUSE_SECONDS:
            return None
        self._looked_at = self._clock()
        before, data = self._known, self._ask(f"look {self._sign}")
        if (look := from_json(TranscriptEnd, data)) is not None:
            self._known, self._sign = look, short_digest(data or "")
        elif data is None and not before.trouble:
            self._known, self._sign = before._replace(trouble=_UNREACHABLE), ""
        return None if self._known is before else self._known

    def read_step(self, step: Step) -> WholeStep | None:
        found: WholeStep | None = from_json(WholeStep, self._ask(f"whole {to_json(Step, step)}"))
        return found

    def entries(self) -> Iterator[Entry]:
        return iter(from_json(tuple[Entry, ...], self._ask("entries")) or ())

    def _read(self) -> bool:
        return False

    def _entries_at(self, place: int) -> Sequence[Entry]:  # noqa: ARG002
        return ()


def to_json(shape: Any, value: Any) -> str:
    """Return a part of a transcript as JSON. `shape` is the type of the part."""
    return (
        adapter_of(shape)
        .dump_json(value, fallback=lambda one: dict(one) if isinstance(one, Mapping) else str(one))
        .decode()
    )


def from_json(shape: Any, data: str | None) -> Any:
    """Read a part of a transcript from JSON. Return None if the JSON is malformed."""
    try:
        value = adapter_of(shape).validate_json(data or "", strict=True)
        memory_size(value)
    except ValueError:
        return None
    return value


def short_digest(data: str) -> str:
    """Return a short digest of an answer."""
    return hashlib.sha256(data.encode("utf-8", "surrogatepass")).hexdigest()[:16]


# On the host


class Answers:
    """Finds the texts and transcripts of a workspace that screens ask for."""

    def __init__(self, monitor: Monitor):
        self._monitor = monitor
        self._lock = threading.Lock()
        # By screen and run: the open transcript, and its end when it was last read.
        self._open: dict[tuple[str, str], tuple[RunTranscript, TranscriptEnd]] = {}

    def prepare(self, ask: Ask) -> Callable[[], str | None]:
        """Return a function that finds the answer. The function may block, so call it in a thread."""
        if ask.what == "text":
            return partial(self._monitor.content, Message(0.0, ask.key, ""))
        return partial(self.read_transcript, ask.screen, ask.key, ask.place, self._monitor.tree.runs.find_run(ask.key))

    def read_transcript(self, screen: str, key: str, place: str, run: Run | None) -> str | None:
        """Return the part `place` of a run's transcript. Return None if there is no transcript. Blocks."""
        with self._lock:
            transcript, look = self._open.pop((screen, key), (None, TranscriptEnd()))
            if transcript is None and run:
                transcript = self._monitor.transcript(run)
            if transcript is None:
                return None
            what, _, rest = place.partition(" ")
            if what == "whole":
                step = from_json(Step, rest)
                answer = to_json(WholeStep | None, transcript.read_step(step) if step is not None else None)
            elif what == "entries":
                answer = to_json(tuple[Entry, ...], tuple(islice(transcript.entries(), _MOST_ENTRIES)))
            else:
                look = transcript.read_end() or look
                answer = to_json(TranscriptEnd, look)
                if rest == short_digest(answer):
                    answer = ""
            self._open[screen, key] = transcript, look
            if len(self._open) > _MOST_OPEN:
                del self._open[next(iter(self._open))]
            return answer


def split_answer(ask: Ask, text: str | None) -> Iterator[Reply]:
    """Yield an answer in parts. Each part fits into one message."""
    if text is None:
        yield Reply(id=ask.id)
        return
    text = text.encode("utf-8", "replace").decode()
    count = max((len(text) + PART - 1) // PART, 1)
    for part in range(count):
        yield Reply(id=ask.id, part=part, parts=count, data=text[part * PART : (part + 1) * PART])
