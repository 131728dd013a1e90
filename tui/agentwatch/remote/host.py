"""A host as this machine knows it: its relay's words, checked and sorted, and the questions that are put to it."""

from __future__ import annotations

import secrets
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from agentwatch.decisions.envelope import PublicKey
from agentwatch.remote.log import Log, excess, weight
from agentwatch.remote.pipe import Link, LinkState
from agentwatch.remote.protocol import (
    Beat,
    Decide,
    Frame,
    Hello,
    Observation,
    Observed,
    Reply,
    Result,
    Standing,
    Verifier,
    Watch,
    pack,
)
from agentwatch.remote.texts import Texts
from agentwatch.sources import Health
from agentwatch.state import is_attended
from agentwatch.view.times import iso

if TYPE_CHECKING:
    from agentwatch.remote.source import RemoteSource

SILENT_SECONDS: Final = 15.0
"""A host that has not answered for so long is lost."""
WATCH_SECONDS: Final = 5.0
_FIRST_SECONDS: Final = 10.0
"""So long a host may take to answer at first."""
_GRACE_SECONDS: Final = 2.0
"""A link that is down for less is not told: it may be up again at once."""
_FIRST_WATCH_SECONDS: Final = 1.0
"""Who has not answered yet is asked again."""
_TICK_SECONDS: Final = 0.5
_ASK_AGAIN: Final = 2.0, 60.0
"""Seconds from one wish for all of a workspace to the next, while nothing of it comes: twice as long each time."""
_MOST_WORKSPACES: Final = 1_000
"""Each has a place in every beat; people work in dozens."""
_LARGEST_HELLO: Final = 8 * 1024 * 1024
"""Bytes that a hello takes here: 8 KiB for the names and paths of each workspace."""
_LONGEST: Final = 600
"""Characters of how well a host sees, where there is no room for more."""

_TOLERATED: Final = 2.0
"""Seconds by which the clocks may differ: nobody sees it."""
_FIRST_YEAR: Final = 946_684_800.0
_LAST_YEAR: Final = 7_258_118_400.0
"""2000 and 2200, in epoch seconds: a clock that says anything else is wrong, and nothing can be dated by it."""
_MOST_SENT: Final = 16
_STEP: Final = 0.001


class Pulse:
    """Whether a host answers, and by how much its clock is ahead: each answer names what was said last. `clock` gives
    epoch seconds, `steady` those of a clock that nobody sets."""

    def __init__(self, clock: Callable[[], float], steady: Callable[[], float]) -> None:
        self.offset = 0.0
        """So many whole seconds the host's clock is ahead of ours; 0 where nobody sees the difference."""
        self.heard_at: float | None = None
        """When it has answered last, in epoch seconds."""
        self.trouble = ""
        """The fault of the host's clock and its remedy."""
        self._clock, self._steady = clock, steady
        self._heard_steady = float("-inf")
        self._sent: dict[float, float] = {}
        """By what was said, when that was, by a clock that nobody sets."""

    @property
    def is_alive(self) -> bool:
        """Whether the host has just answered."""
        return self._steady() < self._heard_steady + SILENT_SECONDS

    def send(self) -> float:
        """The message that is due; each is given once."""
        steady = self._steady()
        sent = max(steady, max(self._sent, default=0.0) + _STEP)
        self._sent[sent] = steady
        if len(self._sent) > _MOST_SENT:
            del self._sent[next(iter(self._sent))]
        return sent

    def hear(self, echo: float | None, now: float) -> bool:
        """Note that the host answers, at its time `now`. Returns whether it has just done so, for nobody can have kept
        that."""
        sent, steady = self._sent.get(-1.0 if echo is None else echo), self._steady()
        if sent is None or steady - sent >= SILENT_SECONDS:
            return False
        is_plausible = _FIRST_YEAR <= now < _LAST_YEAR
        self.trouble = "" if is_plausible else f"its clock is at {(iso(now) or 'no year of ours')[:10]}: set it there"
        if is_plausible:
            self.heard_at, self._heard_steady = self._clock(), steady
            self._measure(now, sent, steady)
        return is_plausible

    def _measure(self, now: float, sent: float, steady: float) -> None:
        """How far the host's clock is ahead, as this round trip shows it, within half of what it took."""
        took = steady - sent
        ahead = now - (self._clock() - took / 2)
        # What was measured while the way was slow may seem to be so much; it is put right once that is certain.
        is_needless = self.offset != 0 and abs(ahead) + took / 2 < _TOLERATED / 2
        if is_needless or abs(ahead - self.offset) > _TOLERATED + took / 2:
            self.offset = float(round(ahead)) if abs(ahead) > _TOLERATED else 0.0


class Copy:
    """The log of one workspace, as far as the relay has told it: in order, and else all of it anew."""

    def __init__(self) -> None:
        self.log = Log()
        self.lacks = True
        """Something is missing: all has to be told."""
        self.dropped: set[str] = set()
        """The kinds of `log.MOST` of which there was more than is taken in."""
        self.asked = 0
        """How often it was asked for in vain."""
        self.moved_at = float("-inf")
        """When it was asked for, or a part of it came, by a clock that nobody sets."""
        self._part = 0

    def receive(self, observed: Observed, others: Counter[str]) -> list[Observation]:
        """Apply what was told, as far as others leave room. Returns what is new of it, in order; none after a gap, when
        the whole log says what there is."""
        if self.lacks and observed.parts:
            if observed.part == 0:
                self.log, self._part, self.dropped = Log(), 0, set()
                self.log.seq = observed.upto
            if (observed.part, observed.upto) == (self._part, self.log.seq):
                self._part += 1
                self._add(observed, others, anew=True)
                self.lacks = self._part < observed.parts
                self.asked = self.asked if self.lacks else 0
            return []
        if self.lacks or observed.parts or observed.upto <= self.log.seq:
            return []
        if observed.after != self.log.seq:
            self.lacks = True
            return []
        self.log.seq = observed.upto
        return self._add(observed, others, anew=False)

    def compare(self, seq: int) -> None:
        """The relay has told everything up to this number."""
        self.lacks |= seq > self.log.seq

    def is_time_to_ask(self, steady: float) -> bool:
        """Whether to ask for all of it now."""
        least, most = _ASK_AGAIN
        pause = min(least * 2 ** min(self.asked, 10), most) if self.asked else 0.0
        return self.lacks and steady >= self.moved_at + pause

    def _add(self, observed: Observed, others: Counter[str], *, anew: bool) -> list[Observation]:
        new: list[Observation] = []
        for event in (entry.event for entry in observed.entries):
            if event is None:
                continue
            with suppress(ValueError):
                added = event
                if anew:
                    self.log.append(event)
                elif (counts := self.log.add(event)) is None:
                    continue
                else:
                    added = counts
                if over := excess(others + self.log.held):
                    self.log.remove_last(added)
                    self.dropped.update(over)
                    if isinstance(added, Standing):
                        short = Health(added.health.mode, added.health.detail[:_LONGEST])
                        self.log.append(added._replace(health=short))
                elif not isinstance(added, Standing):
                    new.append(added)
        return new


class RemoteHost:
    """One host behind a link. `label` is what the operator calls it; `key` and `accept` are as `Verifier` has them. Any
    thread may call anything."""

    def __init__(
        self,
        link: Link,
        label: str,
        *,
        key: PublicKey | None = None,
        accept: Callable[[PublicKey], str] = lambda _key: "",
        clock: Callable[[], float] = time.time,
        steady: Callable[[], float] = time.monotonic,
    ) -> None:
        self.label: Final = label
        self.screen: Final = link.screen or secrets.token_hex(8)
        link.screen = self.screen
        self.pulse: Final = Pulse(clock, steady)
        self.lock: Final = threading.RLock()
        self.on_result: list[Callable[[Result], None]] = []
        self.texts: Final = Texts(self.say, lambda: self.lost_since is None)
        self.hello: Hello | None = None
        """The host's last hello; None before the first."""
        self.clock: Final = clock
        self.steady: Final = steady
        self._link = link
        self._verifier = Verifier(label, key, accept)
        self._state = LinkState(up=False, words="")
        self._epoch = ""
        """The run of the relay that answers."""
        self._copies: dict[str, Copy] = {}
        self._sources: list[RemoteSource] = []
        self._began_at, self._began_steady = clock(), steady()
        self._down_steady: float | None = None
        self._up_steady = float("inf")
        self._watched_steady = float("-inf")
        self._holders = 0
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None

    # Whoever looks at it

    def hold(self) -> None:
        """Somebody needs it: it is connected from the first one on."""
        with self.lock:
            self._holders += 1
            if self._holders > 1 or self._thread is not None:
                return
            self._thread = threading.Thread(target=self._run, name="agentwatch-host", daemon=True)
        self._link.start(self._receive, self._change)
        self._thread.start()

    def release(self) -> None:
        """Somebody needs it no more; the last one ends the link."""
        with self.lock:
            self._holders -= 1
            if self._holders > 0 or self._stopped.is_set():
                return
            self._stopped.set()
        self._link.stop()

    def listen(self, source: RemoteSource) -> None:
        """Tell of a workspace, what is known first."""
        with self.lock:
            self._sources.append(source)
            self._show(source)
            self._ask()

    def leave(self, source: RemoteSource) -> None:
        """Tell no more."""
        with self.lock, suppress(ValueError):
            self._sources.remove(source)

    @property
    def key(self) -> PublicKey | None:
        """What it signs with, as far as that is known."""
        return self._verifier.key

    @property
    def is_confirmed(self) -> bool:
        """Whether the host has just answered."""
        return self.pulse.is_alive

    @property
    def now(self) -> float:
        """The host's time, as far as it is known."""
        return self.clock() + self.pulse.offset

    @property
    def lost_since(self) -> float | None:
        """Since when nothing is known of it, in epoch seconds of ours; None while it can be reached, and a moment
        longer."""
        steady = self.steady()
        if self.pulse.heard_at is None:
            is_late = self._is_late(steady) or self._state.fatal or bool(self._state.words)
            return self._began_at if is_late or self._verifier.why else None
        is_down = self._down_steady is not None and steady >= self._down_steady + _GRACE_SECONDS
        return self.pulse.heard_at if is_down or not self.is_confirmed or self._verifier.why else None

    def _is_late(self, steady: float) -> bool:
        """Whether a host that has not answered yet would have."""
        return steady >= min(self._began_steady + _FIRST_SECONDS, self._up_steady + self._link.answers_in)

    @property
    def why(self) -> str:
        """Why it cannot be reached, and what to do, in a sentence without its full stop; may quote foreign text."""
        if self._verifier.why or (self._state.words and not self._state.up):
            return self._verifier.why or self._state.words
        return self.pulse.trouble or ("it does not answer" if self._state.up else "the connection is being made")

    # What is asked of it

    def say(self, frame: Frame) -> None:
        """Send a frame; it may be lost."""
        self._link.send(pack(frame))

    def decide(self, workspace: str, request: str) -> None:
        """Ask for a decision; its outcome is told to `on_result`, if it arrives."""
        self.say(Decide(screen=self.screen, workspace=workspace, request=request))

    # The threads

    def _run(self) -> None:
        while not self._stopped.wait(_TICK_SECONDS):
            self.tick()

    def tick(self) -> None:
        """Time has passed."""
        with self.lock:
            steady = self.steady()
            is_awaited = self.pulse.heard_at is None and not self._is_late(steady)
            if steady >= self._watched_steady + (_FIRST_WATCH_SECONDS if is_awaited else WATCH_SECONDS):
                self._watch()
            self._ask()
            self._advance()

    def _change(self, state: LinkState) -> None:
        with self.lock:
            self._state = state
            if state.up:
                self._down_steady = None
                self._up_steady = min(self._up_steady, self.steady())
                self._watch()
            elif self._down_steady is None:
                self._down_steady = self.steady()
            self._advance()

    def _receive(self, message: bytes) -> None:
        """A message of the host. What nobody can have said is passed over."""
        why, frame = self._verifier.why, self._verifier.read(message)
        with self.lock:
            if self._verifier.why != why:
                self._advance()
            if not self._stopped.is_set() and frame is not None:
                self._handle(frame)

    def _advance(self) -> None:
        for source in self._sources:
            source.advance()

    def _handle(self, frame: Frame) -> None:
        match frame:
            case Hello():
                self._greet(frame)
            case Beat() if frame.epoch == self._epoch:
                self._hear(frame.echo.get(self.screen), frame.now)
                for name in frame.seqs.keys() & self._copies.keys():
                    self._copies[name].compare(frame.seqs[name])
                self._ask()
            case Result():
                for tell in self.on_result:
                    tell(frame)
            case Reply():
                self.texts.receive(frame)
            case Observed() if frame.epoch == self._epoch and (copy := self._copies.get(frame.workspace)) is not None:
                others = sum((one.log.held for one in self._copies.values() if one is not copy), Counter[str]())
                lacked, new = copy.lacks, copy.receive(frame, others)
                copy.moved_at = self.steady() if frame.parts else copy.moved_at
                for source in self._sources:
                    source.observe(copy, new, anew=lacked or copy.lacks)
                self._ask()

    def _greet(self, hello: Hello) -> None:
        words = [(one.id, one.path, one.name, one.asked, one.summary) for one in hello.workspaces]
        if len(words) > _MOST_WORKSPACES or weight([words, hello.missing]) > _LARGEST_HELLO:
            return
        before, is_alive = self.hello, self.is_confirmed
        if not self._hear(hello.echo.get(self.screen), hello.now):
            # Kept for us, or played again: nobody answers by it.
            self.hello = before or hello
            return
        is_of_before = before is not None and self._epoch and is_alive and hello.began_at < before.began_at
        if hello.epoch == self._epoch or is_of_before:
            return
        self.hello, self._epoch, self._copies = hello, hello.epoch, {}
        for source in self._sources:
            self._show(source)
        self._ask()

    def _hear(self, echo: float | None, now: float) -> bool:
        """Whether the host answers by this."""
        offset = self.pulse.offset
        if not self.pulse.hear(echo, now):
            return False
        for source in self._sources:
            if self.pulse.offset != offset:
                source.moved()
            source.advance()
        return True

    def _show(self, source: RemoteSource) -> None:
        """Show a source its workspace, of the run of the relay that answers."""
        if self.hello is not None and self._epoch:
            for workspace in self.hello.workspaces:
                if source.belongs(workspace):
                    source.show(self._copies.setdefault(workspace.id, Copy()), workspace)
                    return

    def _ask(self) -> None:
        """Ask for the workspaces that lack something, if it is time."""
        if any(copy.is_time_to_ask(self.steady()) for copy in self._copies.values()):
            self._watch()

    def _watch(self) -> None:
        """Say that somebody is here, and what lacks."""
        if not self._state.up:
            return
        steady = self._watched_steady = self.steady()
        lacking = [name for name, copy in self._copies.items() if copy.is_time_to_ask(steady)]
        for name in lacking:
            self._copies[name].asked += 1
            self._copies[name].moved_at = steady
        seen = {source.workspace_id for source in self._sources if source.is_shown} if is_attended() else set()
        self.say(
            Watch(
                screen=self.screen,
                sent=self.pulse.send(),
                epoch=self._epoch,
                shown=tuple(sorted(seen - {""})),
                lacks=tuple(lacking),
            )
        )
