"""Keys one at a time: each goes to what the key before it has opened, or focused.

A terminal hands over several keys in one read if they were typed fast, pasted, or sent over a slow line. Textual
gives every key to what has the focus when it is read, which is before the key in front of it has done anything: of
`/abc`, the letters would be commands of the tree.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, Final

from textual import events
from textual.app import App
from textual.message import Message
from textual.screen import Screen
from textual.timer import Timer
from textual.widget import Widget
from textual.widgets import Input

from agentwatch.app.once import once

Typed = events.Key | events.Paste

ARMING_SECONDS: Final = 0.6
"""How long a dialog is open before its key counts: keys that were meant for the screen below decide nothing."""

_PATIENCE: Final = 1.0
"""Seconds after which keys are no longer kept waiting: what was to answer the one before may have gone."""


class Answered(Message):
    """Follows a key on its way up to the app, behind all that it sets off: then the key has done its work.

    `again`: what the key has set off may have set off more.
    """

    def __init__(self, target: Widget, screen: Screen[Any], *, again: bool) -> None:
        super().__init__()
        self.target = target
        self.screen = screen
        self.again = again


class Typeahead:
    """What was typed into an app, and not heard yet. `hear` hands it to whatever has the focus."""

    def __init__(self, app: App[Any], hear: Callable[[Typed], Awaitable[None]]) -> None:
        self._app = app
        self._hear = hear
        self._waiting: deque[Typed] = deque()
        self._awaited: Answered | None = None
        self._holds = 1
        """How many things open that need a moment: at first the first screen."""
        self._timer: Timer | None = None
        self._refused_at: float | None = None
        """Since when what was to open does not (seconds of the clock that nobody sets), and nobody has paused."""
        self._has_said = False
        """Whether the operator knows that such keys are not taken: it is said once."""

    @property
    def is_waiting(self) -> bool:
        """Whether something was typed that is not heard yet."""
        return bool(self._waiting)

    async def take(self, typed: Typed) -> None:
        """Hear it, once the one before is answered."""
        self._waiting.append(typed)
        await self._go_on()

    async def take_answer(self, answer: Answered) -> None:
        """An answer has come back to the app."""
        if answer is self._awaited and self._app.screen_stack and self._app.screen is answer.screen:
            if answer.again:
                await self._wait_for(Answered(answer.target, answer.screen, again=False))
            else:
                await self._end(answer)

    def take_screen(self, screen: Screen[Any]) -> None:
        """Another screen comes up: it has to be there, with its focus, before it hears anything."""
        answer = self._awaited
        if answer is not None and screen is not answer.screen:
            screen.call_after_refresh(self._app.call_later, self._end, answer)

    def begin(self) -> None:
        """The first screen is there, and hears what was typed before."""
        self._holds -= 1
        self._app.call_later(self._go_on)

    def refuse(self) -> None:
        """What was to open does not. What is typed on was meant for it, and until there is a pause it is for nobody."""
        self._refused_at = time.monotonic()

    @contextmanager
    def held(self) -> Iterator[None]:
        """Something opens that needs a moment: until it is there, nothing is heard."""
        self._holds += 1
        try:
            yield
        finally:
            self._holds -= 1
            self._app.call_later(self._go_on)

    async def _go_on(self) -> None:
        while self._waiting and self._awaited is None and not self._holds and self._app.screen_stack:
            typed, screen = self._waiting.popleft(), self._app.screen
            seen_at = getattr(screen, "seen_at", 0.0)
            # A dialog hears nothing that was typed before it could be seen.
            if seen_at is None or typed.time < seen_at or self._is_refused(typed):
                if not self._has_said:
                    self._has_said = True
                    # At 80 columns it leaves room beside it for why nothing can be recorded yet.
                    words = "Keys typed before were not taken."
                    self._app.notify(words, markup=False, timeout=4)
                continue
            target = self._app.focused or screen
            await self._hear(typed)
            if not _is_text(typed, target):
                await self._wait_for(Answered(target, screen, again=True))

    def _is_refused(self, typed: Typed) -> bool:
        """Whether it was typed on, behind a key that opened nothing."""
        if self._refused_at is None:
            return False
        leaves = isinstance(typed, events.Key) and (typed.key == "escape" or typed.key.startswith("ctrl+"))
        is_over = leaves or typed.time >= self._refused_at + ARMING_SECONDS
        self._refused_at = None if is_over else max(self._refused_at, typed.time)
        return not is_over

    async def _wait_for(self, answer: Answered) -> None:
        self._stop_waiting()
        self._awaited = answer
        self._timer = once(self._app, _PATIENCE, partial(self._end, answer))
        if not answer.target.post_message(answer) and self._app.screen is answer.screen:
            await self._end(answer)

    async def _end(self, answer: Answered) -> None:
        if answer is self._awaited:
            self._stop_waiting()
            await self._go_on()

    def _stop_waiting(self) -> None:
        self._awaited = None
        if self._timer is not None:
            self._timer.stop()
            self._timer = None


def _is_text(typed: Typed, target: Widget) -> bool:
    """Whether it is written into a field, and so opens nothing."""
    is_written = isinstance(typed, events.Paste) or typed.is_printable
    return is_written and isinstance(target, Input)


class Arming:
    """The moment in which the key of a dialog does not count yet. `over` is called at its end.

    It begins when the dialog is seen: a slow machine may take longer to draw it.
    """

    def __init__(self, screen: Screen[Any], steady: Callable[[], float], over: Callable[[], object]) -> None:
        self._screen, self._steady, self._over = screen, steady, over
        self._at = float("inf")
        self._timer: Timer | None = None

    @property
    def is_over(self) -> bool:
        """Whether the dialog has been open, and its key left alone, for long enough."""
        return self._steady() >= self._at

    def begin(self) -> None:
        """The moment begins, or begins again."""
        self._at = self._steady() + ARMING_SECONDS
        if self._timer is not None:
            self._timer.stop()
        # Timers of Textual may go off half a millisecond early.
        self._timer = once(self._screen, ARMING_SECONDS + 0.001, self._over)
