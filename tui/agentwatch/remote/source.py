"""A workspace on another machine as a source: what its relay tells, as if it were observed here."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection
from contextlib import suppress
from typing import Any, Final

from agentwatch.decisions.errors import NoAnswerError
from agentwatch.delegation.events import Event, Lost, Ran, Reached, Ruled, Seen
from agentwatch.delegation.run import Run
from agentwatch.remote.codec import shifter
from agentwatch.remote.copy import Copy
from agentwatch.remote.frames import Wish, Workspace
from agentwatch.remote.host import RemoteHost
from agentwatch.remote.limits import BUSY_SECONDS, MOST_NEWS, dropped_words, load_of
from agentwatch.remote.observed import Told
from agentwatch.remote.transcripts import FarTranscript, is_of
from agentwatch.sources import FILES, Batch, Health, Problem, Source, health_of
from agentwatch.sources.sessions.fields import messages
from agentwatch.sources.sessions.following import RunTranscript

SCAN_SECONDS: Final = 20.0
"""A command waits no longer for a host."""
_PATIENCE: Final = 10.0
"""Seconds after which what is known takes the place of what was shown, though not all is there."""

_shift: Any = shifter(Told)
_shift_rules: Any = shifter(Ruled)


class RemoteSource(Source):
    """The workspace of a host with this id, name or path, as it is there or as it was asked for; without one, the first
    that it relays.

    What the host tells goes to the monitor as it comes. After a cut or when the relay was started anew, it goes there
    all at once, as soon as all is known: until then the monitor shows what it showed.
    """

    def __init__(self, host: RemoteHost, name: str = "") -> None:
        self.host: Final = host
        self.workspace: Workspace | None = None
        self.is_shown = False
        self._is_held = False
        self._name = name
        self._emit: Callable[[Batch], None] | None = None
        self._copy: Copy | None = None
        self._new: list[Told] = []
        """What is to be emitted besides what was."""
        self._news_size = 0
        """Bytes that were emitted, or are to be, since all was emitted."""
        self._all_at = float("-inf")
        """When all was emitted last, by a clock that nobody sets."""
        self._is_flooded = False
        self._has_begun = False
        """Something was emitted."""
        self._since: float | None = None
        """Since when all has to be emitted anew, by a clock that nobody sets; None where it has not."""
        self._lost: float | None = None
        self._health: Health | None = None
        self._seq = 0
        self._complete = threading.Condition(host.lock)

    @property
    def workspace_id(self) -> str:
        return self.workspace.id if self.workspace is not None else ""

    # The source

    def start(self, emit: Callable[[Batch], None]) -> None:
        with self.host.lock:
            self._emit = emit
            self.is_shown = True
            self.host.listen(self)
            self.advance()
        self._hold()

    def stop(self) -> None:
        with self.host.lock:
            self._emit = None
            self.host.leave(self)
            # What was stopped before it was started holds nothing.
            was_held, self._is_held = self._is_held, False
        if was_held:
            self.host.release()

    def _hold(self) -> None:
        with self.host.lock:
            was_held, self._is_held = self._is_held, True
        if not was_held:
            self.host.hold()

    def content(self, digest: str) -> str | None:
        with self.host.lock:
            events = [] if self._copy is None else [*self._copy.book.events()]
        # Of several hosts, only the one is asked that has spoken of it.
        if not any(digest in _texts_of(one) for one in events):
            return None
        try:
            return self.host.texts.text(self.host.screen, self.workspace_id, digest)
        except NoAnswerError as error:
            why = self.host.why if self.host.lost_since is not None else error
            raise NoAnswerError(f"{self.host.label} does not give the text now: {why}") from error

    def transcript(self, run: Run) -> RunTranscript | None:
        with self.host.lock:
            told = () if self._copy is None else self._copy.book.events()
            same = (one for one in told if isinstance(one, Ran) and one.run is not None and is_of(one.run, run))
            ran = next(same, None)
        if ran is None:
            return None
        key = ran.path
        return FarTranscript(lambda place: self.ask("transcript", key, place))

    def ask(self, what: Wish, key: str, place: str = "") -> str | None:
        """What the host answers about this workspace; None where it has no answer, or gives none now. Blocks."""
        with suppress(NoAnswerError):
            return self.host.texts.ask(self.host.screen, self.workspace_id, what, key, place)
        return None

    def scan(self) -> Batch:
        """All that is known of it, once the host has looked at everything; waits for that, at most 20 s."""
        until = self.host.steady() + SCAN_SECONDS
        batches: list[Batch] = []
        with self.host.lock:
            self.host.listen(self)
        self._hold()
        with self._complete:
            while not self._is_ready and self.host.lost_since is None and self.host.steady() < until:
                self._complete.wait(0.1)
            self._emit, self._has_begun = batches.append, True
            self._since = self.host.steady() - _PATIENCE
            self.advance()
            self._emit = None
        return batches[-1]._replace(anew=False) if batches else Batch((), self._standing())

    # What the host tells, with its lock held

    def belongs(self, workspace: Workspace) -> bool:
        return self._name in ("", workspace.id, workspace.name, workspace.path, *workspace.asked)

    def show(self, copy: Copy, workspace: Workspace) -> None:
        self._copy, self.workspace = copy, workspace
        self._begin_anew()
        self.advance()

    def told(self, copy: Copy, new: list[Told]) -> None:
        if copy is not self._copy:
            return
        if self._has_begun and self._since is None:
            self._new += new
            self._news_size += sum(load_of(one)["MiB"] for one in new)
            if self._news_size > MOST_NEWS:
                self._is_flooded = self.host.steady() < self._all_at + BUSY_SECONDS
                self._begin_anew()
        self.advance()

    def moved(self) -> None:
        self._begin_anew()

    def advance(self) -> None:
        """Emit what there is to be emitted."""
        copy, lost = self._copy, self.host.lost_since
        self._complete.notify_all()
        if self._emit is None:
            return
        if copy is not None and copy.is_late:
            copy.is_late = False
            self._begin_anew()
        events: list[Event] = []
        anew = False
        if copy is not None and self.workspace is not None and (lost is not None or self.host.is_confirmed):
            is_ready = self._is_ready and not self._is_flooded
            if self._has_begun and self._since is None:
                events = [self._here(one) for one in self._new]
                self._new = []
            elif not self._has_begun or is_ready or self.host.steady() >= (self._since or 0.0) + _PATIENCE:
                anew = self._has_begun
                self._since = None if is_ready or self._is_flooded or not anew else self.host.steady()
                self._has_begun, self._is_flooded = True, False
                self._new, self._news_size, self._all_at = [], 0, self.host.steady()
                events = [self._rules(self.workspace), *map(self._here, copy.book.events())]
                if anew:
                    self._lost = None
        if lost is not None and self._lost is None:
            events.append(Lost(self._seq, lost))
            self._lost = lost
        elif lost is None and self._lost is not None and self._since is None and (copy is None or copy.is_complete):
            events.append(Reached(self._seq, self.host.now - self.host.offset))
            self._lost = None
        health = self._standing()
        if events or anew or health != self._health:
            self._health = health
            with suppress(RuntimeError):  # The event loop is closed: nobody listens any more.
                self._emit(Batch(tuple(events), health, anew))

    @property
    def _is_ready(self) -> bool:
        """Whether the relay has told all that it has seen, and it has seen all."""
        copy = self._copy
        is_settled = copy is not None and copy.standing is not None and copy.standing.settled
        return is_settled and copy is not None and copy.is_complete and self.host.is_confirmed

    def _begin_anew(self) -> None:
        self._new = []
        if self._since is None:
            self._since = self.host.steady()

    def _here(self, told: Told) -> Told:
        """An observation in our time."""
        self._seq = max(self._seq, told.seq)
        moved: Told = _shift(told, -self.host.offset) if self.host.offset else told
        return moved

    def _rules(self, workspace: Workspace) -> Ruled:
        line = workspace.rules.history_before
        return Ruled(0, self.host.now, workspace.rules._replace(history_before=line - self.host.offset))

    def _standing(self) -> Health:
        """How well it is seen."""
        label, copy = self.host.label, self._copy
        known = copy.standing.health if copy is not None and copy.standing is not None else None
        if self.host.lost_since is not None:
            words = f"{label} cannot be reached: {self.host.why}"
            others = known.problems if known is not None else ()
            return Health("degraded", words, problems=(Problem(FILES, "", words), *others))
        if known is None or not self._has_begun:
            return Health("starting", f"asking {label}")
        dropped = copy.dropped if copy is not None else ()
        if not dropped:
            return known
        problems = (*(Problem(FILES, "", dropped_words(label, kind)) for kind in sorted(dropped)), *known.problems)
        return health_of(known.mode, known.detail, problems)._replace(notices=known.notices)


def _texts_of(told: Told) -> Collection[str]:
    """The digests of the texts that an observation is about."""
    if isinstance(told, Seen):
        return (told.digest,)
    if isinstance(told, Ran) and told.run is not None:
        return [message.digest for message in messages(told.run)]
    return ()
