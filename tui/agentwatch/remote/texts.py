"""Texts that lie on a host: asked for when somebody looks at one, and kept for a while."""

from __future__ import annotations

import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from agentwatch.decisions.errors import NoAnswerError
from agentwatch.remote.frames import Ask, Reply, Wish
from agentwatch.remote.limits import LARGEST_ANSWER, LARGEST_TEXTS

SECONDS: Final = 8.0
"""Nobody waits longer for a text."""
_AGAIN_SECONDS: Final = 2.0
_MOST_PARTS: Final = 1_024


class _Arriving:
    """The parts of an answer that have arrived, by number; `parts` is how many there are, None before that is known."""

    def __init__(self) -> None:
        self.found: dict[int, str] = {}
        self.parts: int | None = None
        self.size = 0

    @property
    def is_over(self) -> bool:
        return self.parts is not None and len(self.found) == self.parts


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
                self._keep(key, text)
        return text

    def ask(self, screen: str, workspace: str, what: Wish, key: str, place: str = "") -> str | None:
        """The answer of the host, None where it says that it has none. Blocks. Raises NoAnswerError."""
        ask = Ask(f"{screen}.{secrets.token_hex(8)}", screen, workspace, what, key, place)
        arriving = _Arriving()
        with self._news:
            self._arriving[ask.id] = arriving
        until, again_at = time.monotonic() + SECONDS, 0.0
        try:
            while (now := time.monotonic()) < until and self._is_up():
                if now >= again_at:
                    again_at = now + _AGAIN_SECONDS
                    self._say(ask)
                with self._news:
                    if not arriving.is_over:
                        self._news.wait(max(min(again_at, until) - time.monotonic(), 0.0))
                    if arriving.is_over:
                        break
        finally:
            with self._news:
                del self._arriving[ask.id]
        if not arriving.is_over or arriving.parts is None:
            raise NoAnswerError("it does not answer")
        if not arriving.parts:
            return None
        return "".join(arriving.found[number] for number in range(arriving.parts))

    def take(self, reply: Reply) -> None:
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

    def _keep(self, key: tuple[str, str], text: str) -> None:
        self._size += len(text) - len(self._kept.pop(key, ""))
        self._kept[key] = text
        while self._size > LARGEST_TEXTS and len(self._kept) > 1:
            _, gone = self._kept.popitem(last=False)
            self._size -= len(gone)
