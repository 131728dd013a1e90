"""A source that plays a recording. It emits the events with their recorded pauses, but it shortens long pauses."""

import time
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import accumulate, pairwise

from agentwatch.background import BackgroundThread
from agentwatch.delegation.events import Checked, Decided, Event, Gone, Noted, Ran, Requested, Seen
from agentwatch.sources import Batch, Health, Source

IDLE_SECONDS = 2.0  # the longest pause between two events, at speed 1

PLAYED = (Seen, Gone, Ran, Checked, Decided, Requested, Noted)
SLOWEST = 1 / 8
FASTEST = 1024.0

REPLAY = Health("replay", "A recording is played, nothing is watched")


@dataclass(frozen=True, slots=True)
class Position:
    """The position of a playback, after event `number` of `count` events. `at` is the recorded time (epoch seconds)."""

    number: int
    count: int
    at: float
    speed: float
    playing: bool


class Playback(BackgroundThread[Batch], Source):
    """Plays recorded events in order. Any thread may call its methods. Raise ValueError if there are no events."""

    thread_name = "agentwatch-playback"

    _playing = True
    _number = 1
    _moves = 0
    _played = 0.0

    def __init__(
        self,
        events: Iterable[Event],
        text_of: Callable[[str], str | None],
        speed: float = 1.0,
        *,
        monotonic: Callable[[], float] = time.monotonic,
    ):
        super().__init__()
        self._events = tuple(one for one in events if isinstance(one, PLAYED))
        if not self._events:
            raise ValueError("a recording without an observation cannot be played")
        # If an event is older than the event before it, both get the later time.
        self._times = list(accumulate((one.at for one in self._events), max))
        waits = (min(later - earlier, IDLE_SECONDS) for earlier, later in pairwise(self._times))
        # The time at which each event is emitted: seconds after the first event, at speed 1.
        self._due = list(accumulate(waits, initial=0.0))
        self._text_of = text_of
        self._monotonic = monotonic
        self._speed = speed
        self._since = monotonic()

    # The methods of every source

    def start(self, emit: Callable[[Batch], None]) -> None:
        """Start to play. The playback's thread calls `emit`."""
        self._since = self._monotonic()
        super().start(emit)

    def scan(self) -> Batch:
        return Batch(self._events, REPLAY)

    def content(self, digest: str) -> str | None:
        return self._text_of(digest)

    # The methods for the operator's keys

    def clock(self) -> float:
        """Return the recorded time in epoch seconds. The time passes at the speed of the playback."""
        return self.position.at

    @property
    def health(self) -> Health:
        """The health of the source. Its text counts the operator's moves, so that the health changes with each move."""
        return REPLAY._replace(detail=f"The operator has gone elsewhere {self._moves} times")

    @property
    def position(self) -> Position:
        """The current position of the playback."""
        with self._news:
            self._advance()
            # At the end of a shortened pause, the recorded time jumps to the next event.
            at = self._times[self._number - 1] + max(self._played - self._due[self._number - 1], 0.0)
            at = min(at, self._times[min(self._number, len(self._times) - 1)])
            return Position(self._number, len(self._events), at, self._speed, self._playing)

    def toggle_playing(self) -> None:
        """Play or pause. At the end, play from the beginning again."""
        with self._change_position():
            if not self._playing and self._number == len(self._events):
                self._go_to(1)
            self._playing = not self._playing

    def step(self, by: int) -> None:
        """Pause, and move by a number of events. A negative number moves back."""
        with self._change_position():
            self._playing = False
            self._go_to(self._number + by)

    def seek(self, number: int) -> None:
        """Go to the event with this number. The first event has the number 1."""
        with self._change_position():
            self._go_to(number)

    def change_speed(self, factor: float) -> None:
        """Multiply the speed by a factor. The result stays between `SLOWEST` and `FASTEST`."""
        with self._change_position():
            self._speed = min(max(self._speed * factor, SLOWEST), FASTEST)

    @contextmanager
    def _change_position(self) -> Iterator[None]:
        """Hold the lock while the caller changes the position. Then wake the thread."""
        with self._news:
            self._advance()
            yield
            self._news.notify()

    # These methods are called with the lock held.

    def _advance(self) -> None:
        now = self._monotonic()
        passed, self._since = now - self._since, now
        if self._playing:
            self._played = min(self._played + passed * self._speed, self._due[-1])
            self._number = max(self._number, bisect_right(self._due, self._played))
            self._playing = self._number < len(self._events)

    def _go_to(self, number: int) -> None:
        self._moves += 1
        self._number = min(max(number, 1), len(self._events))
        self._played = self._due[self._number - 1]

    # The thread

    def _run(self, emit: Callable[[Batch], None]) -> None:
        shown, moves = 0, 0
        while True:
            with self._news:
                self._advance()
                while (self._number, self._moves) == (shown, moves) and not self._stopped:
                    due = max(self._due[self._number] - self._played, 0.0) if self._playing else None
                    self._news.wait(due and due / self._speed)
                    self._advance()
                if self._stopped:
                    return
                number, moves, health = self._number, self._moves, self.health
            try:
                is_back = number < shown
                emit(Batch(self._events[0 if is_back else shown : number], health, starts_over=is_back))
            except RuntimeError:  # the receiver's event loop is closed, so nobody receives the events any more
                return
            shown = number
