"""Texts and transcripts that lie on a host: asked for when somebody looks at one, and shown as if they lay here."""

from __future__ import annotations

import hashlib
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from agentwatch.decisions.errors import NoAnswerError
from agentwatch.delegation.run import Run
from agentwatch.remote.log import MEBIBYTE, weight
from agentwatch.remote.protocol import Ask, Reply, Wish
from agentwatch.sources.sessions.entries import Entry
from agentwatch.sources.sessions.fields import shape_of
from agentwatch.sources.sessions.following import Look, RunTranscript, Step, WholeStep

SECONDS: Final = 8.0
"""Nobody waits longer for a text."""
LARGEST_ANSWER: Final = 16 * MEBIBYTE
"""Characters of a text or a transcript that is fetched: twice the largest message, and nobody reads so much."""
LARGEST_TEXTS: Final = 32 * MEBIBYTE
"""Characters of all fetched texts that are held, so that two of the largest are at hand."""
_MOST_PARTS: Final = 1_024
_PAUSE_SECONDS: Final = 1.0
"""Between two looks at a transcript on a host."""
_UNREACHABLE: Final = "The host does not answer"


class _Arriving:
    """The parts of an answer that have arrived, by number; `parts` is how many there are, None before that is known."""

    def __init__(self) -> None:
        self.found: dict[int, str] = {}
        self.parts: int | None = None
        self.size = 0

    @property
    def is_over(self) -> bool:
        return self.parts is not None and len(self.found) == self.parts


def say_until(
    news: threading.Condition, say: Callable[[], None], is_over: Callable[[], bool], seconds: float, again: float = 2.0
) -> None:
    """Say something again and again until it is over, for so many seconds at most. `news` is notified of answers."""
    end, again_at = time.monotonic() + seconds, 0.0
    with news:
        while not is_over() and (now := time.monotonic()) < end:
            if now >= again_at:
                again_at = now + again
                say()
            news.wait_for(is_over, max(min(again_at, end) - time.monotonic(), 0.0))


class Texts:
    """The texts of one host; `say` sends a question there, `is_up` says whether there is any use in that. Any thread
    may call it."""

    def __init__(self, say: Callable[[Ask], None], is_up: Callable[[], bool]) -> None:
        self._say, self._is_up = say, is_up
        self._news = threading.Condition()
        self._arriving: dict[str, _Arriving] = {}
        self._kept: OrderedDict[tuple[str, str], str] = OrderedDict()
        self._size = 0

    def text(self, screen: str, workspace: str, digest: str) -> str | None:
        """The text with this digest, None where the host says that there is none. Blocks. Raises NoAnswerError."""
        key = workspace, digest
        with self._news:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
        text = self.ask(screen, workspace, "text", digest)
        if text is not None:
            with self._news:
                self._size += len(text) - len(self._kept.pop(key, ""))
                self._kept[key] = text
                while self._size > LARGEST_TEXTS and len(self._kept) > 1:
                    self._size -= len(self._kept.popitem(last=False)[1])
        return text

    def ask(self, screen: str, workspace: str, what: Wish, key: str, place: str = "") -> str | None:
        """The answer of the host, None where it says that it has none. Blocks. Raises NoAnswerError."""
        name = f"{screen}.{secrets.token_hex(8)}"
        ask = Ask(id=name, screen=screen, workspace=workspace, what=what, key=key, place=place)
        arriving = self._arriving[name] = _Arriving()
        try:
            say_until(self._news, lambda: self._say(ask), lambda: arriving.is_over or not self._is_up(), SECONDS)
        finally:
            del self._arriving[name]
        if not arriving.is_over or arriving.parts is None:
            raise NoAnswerError("it does not answer")
        return "".join(arriving.found[number] for number in range(arriving.parts)) if arriving.parts else None

    def receive(self, reply: Reply) -> None:
        """A part of an answer has arrived."""
        with self._news:
            arriving = self._arriving.get(reply.id)
            if arriving is None or not (0 <= reply.part < max(reply.parts, 1) <= _MOST_PARTS):
                return
            if arriving.parts not in (None, reply.parts):
                # It is no answer that says now this, now that.
                return
            arriving.parts = reply.parts
            if reply.parts and reply.part not in arriving.found and arriving.size + len(reply.data) <= LARGEST_ANSWER:
                arriving.found[reply.part] = reply.data
                arriving.size += len(reply.data)
            if arriving.is_over:
                self._news.notify_all()


class FarTranscript(RunTranscript):
    """The transcript of a run on a host. `ask` asks the host about it, and waits for the answer, None for none."""

    def __init__(self, ask: Callable[[str], str | None], clock: Callable[[], float] = time.monotonic) -> None:
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
        found: WholeStep | None = parsed(WholeStep, self._ask(f"whole {written(Step, step)}"))
        return found

    def entries(self) -> Iterator[Entry]:
        return iter(parsed(tuple[Entry, ...], self._ask("entries")) or ())

    def _learn(self, place: str) -> None:
        data = self._ask(place)
        look: Look | None = parsed(Look, data)
        if look is not None:
            self._known, self._sign = look, sign_of(data or "")
        elif data is None and not self._known.trouble:
            self._known, self._sign = self._known._replace(trouble=_UNREACHABLE), ""

    def _read(self) -> bool:
        return False

    def _entries_at(self, place: int) -> Sequence[Entry]:  # noqa: ARG002
        return ()


def written(shape: Any, value: Any) -> str:
    """A part of a transcript as JSON."""
    return (
        shape_of(shape)
        .dump_json(value, fallback=lambda one: dict(one) if isinstance(one, Mapping) else str(one))
        .decode()
    )


def parsed(shape: Any, data: str | None) -> Any:
    """A part of a transcript that was written, None where nobody can have written it."""
    try:
        value = shape_of(shape).validate_json(data or "", strict=True)
        weight(value)
    except ValueError:
        return None
    return value


def sign_of(data: str) -> str:
    """Tells one answer from another."""
    return hashlib.sha256(data.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def is_of(run: Run, other: Run) -> bool:
    """Whether two states are of one run."""
    return (run.source, run.session_id, run.place) == (other.source, other.session_id, other.place)
