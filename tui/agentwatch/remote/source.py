"""A workspace on another machine as a source: its relay's observations, as if they were made here."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable, Collection
from contextlib import suppress
from functools import partial
from typing import Any, Final

from agentwatch.decisions.errors import NoAnswerError
from agentwatch.delegation.events import Event, Lost, Ran, Reached, Ruled, Seen
from agentwatch.delegation.run import Run
from agentwatch.remote.host import Copy, RemoteHost
from agentwatch.remote.log import MEBIBYTE, dropped_words, weight
from agentwatch.remote.protocol import Observation, Standing, Wish, Workspace
from agentwatch.remote.texts import FarTranscript, is_of
from agentwatch.sources import FILES, Batch, Health, Problem, Source, health_of
from agentwatch.sources.sessions.fields import messages
from agentwatch.sources.sessions.following import RunTranscript
from agentwatch.text import quoted

SCAN_SECONDS: Final = 20.0
"""A command waits no longer for a host."""
MOST_NEWS: Final = 256 * MEBIBYTE
"""Bytes of news that a tree is told before it is made anew of what is held: what is gone stays in it until then. An
hour or more of many agents at work."""
_PATIENCE: Final = 10.0
"""Seconds after which what is known takes the place of what was shown, though not all is there."""


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
        self._new: list[Observation] = []
        """What is to be emitted besides what was."""
        self._news_size = 0
        """Bytes that were emitted, or are to be, since all was emitted."""
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
        # Of several hosts, only the one is asked that has spoken of it.
        if not any(digest in _texts_of(one) for one in self._known()):
            return None
        try:
            return self.host.texts.text(self.host.screen, self.workspace_id, digest)
        except NoAnswerError as error:
            why = self.host.why if self.host.lost_since is not None else error
            raise NoAnswerError(f"{self.host.label} does not give the text now: {why}") from error

    def transcript(self, run: Run) -> RunTranscript | None:
        for ran in self._known():
            if isinstance(ran, Ran) and ran.run is not None and is_of(ran.run, run):
                return FarTranscript(partial(self.ask, "transcript", ran.path))
        return None

    def ask(self, what: Wish, key: str, place: str = "") -> str | None:
        """The answer of the host about this workspace; None where it has none, or gives none now. Blocks."""
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
            while not (self._is_ready or self._missing or self.host.lost_since is not None):
                if self.host.steady() >= until:
                    break
                self._complete.wait(0.1)
            self._emit, self._has_begun = batches.append, True
            self._since = self.host.steady() - _PATIENCE
            self.advance()
            self._emit = None
        return batches[-1]._replace(anew=False) if batches else Batch((), self._standing())

    def _known(self) -> list[Observation | Standing]:
        with self.host.lock:
            return [] if self._copy is None else self._copy.log.events()

    # What the host tells, with its lock held

    def belongs(self, workspace: Workspace) -> bool:
        return self._name in ("", workspace.id, workspace.name, workspace.path, *workspace.asked)

    def show(self, copy: Copy, workspace: Workspace) -> None:
        self._copy, self.workspace = copy, workspace
        self._begin_anew()
        self.advance()

    def observe(self, copy: Copy, new: list[Observation], *, anew: bool) -> None:
        if copy is not self._copy:
            return
        if anew:
            self._begin_anew()
        elif self._has_begun and self._since is None:
            self._new += new
            self._news_size += sum(map(weight, new))
            if self._news_size > MOST_NEWS:
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
        events: list[Event] = []
        anew = False
        if copy is not None and self.workspace is not None and (lost is not None or self.host.is_confirmed):
            is_ready = self._is_ready
            if self._has_begun and self._since is None:
                events, self._new = [self._here(one) for one in self._new], []
            elif (
                (not self._has_begun and not copy.lacks)
                or is_ready
                or self.host.steady() >= (self._since or 0.0) + _PATIENCE
            ):
                anew = self._has_begun
                self._since = None if is_ready or not anew else self.host.steady()
                self._has_begun = True
                self._new, self._news_size = [], 0
                told = (one for one in copy.log.events() if not isinstance(one, Standing))
                events = [self._rules(self.workspace), *map(self._here, told)]
                if anew:
                    self._lost = None
        if lost is not None and self._lost is None:
            events.append(Lost(self._seq, lost))
            self._lost = lost
        elif lost is None and self._lost is not None and self._since is None and (copy is None or not copy.lacks):
            events.append(Reached(self._seq, self.host.now - self.host.pulse.offset))
            self._lost = None
        health = self._standing()
        if events or anew or health != self._health:
            self._health = health
            with suppress(RuntimeError):  # The event loop is closed: nobody listens any more.
                self._emit(Batch(tuple(events), health, anew))

    @property
    def _is_ready(self) -> bool:
        """Whether the relay has told all that it has seen, and it has seen all."""
        standing = self._copy.log.standing if self._copy is not None and not self._copy.lacks else None
        return standing is not None and standing.settled and self.host.is_confirmed

    @property
    def _missing(self) -> str:
        """Why the host has no such workspace, "" where it has, or nobody knows yet."""
        hello = self.host.hello
        if hello is None or self.workspace is not None or not self.host.is_confirmed:
            return ""
        return hello.missing.get(self._name) or f"it relays no {quoted(self._name)}"

    def _begin_anew(self) -> None:
        self._new = []
        if self._since is None:
            self._since = self.host.steady()

    def _here(self, told: Observation) -> Observation:
        """An observation in our time."""
        self._seq = max(self._seq, told.seq)
        moved: Observation = _shifted(told, -self.host.pulse.offset) if self.host.pulse.offset else told
        return moved

    def _rules(self, workspace: Workspace) -> Ruled:
        line = workspace.rules.history_before
        return Ruled(0, self.host.now, workspace.rules._replace(history_before=line - self.host.pulse.offset))

    def _standing(self) -> Health:
        """How well it is seen."""
        label, copy = self.host.label, self._copy
        known = copy.log.standing.health if copy is not None and copy.log.standing is not None else None
        why = self.host.why if self.host.lost_since is not None else self._missing
        if why:
            words = f"{label} cannot be reached: {why}" if self.host.lost_since is not None else f"{label}: {why}"
            if known is None and self.workspace is None and (summary := self._summary()):
                words += f"; {summary} when it was heard last"
            others = known.problems if known is not None else ()
            return Health("degraded", words, problems=(Problem(FILES, "", words), *others))
        if known is None or not self._has_begun:
            return Health("starting", f"asking {label}")
        dropped = copy.dropped if copy is not None else ()
        if not dropped:
            return known
        problems = (*(Problem(FILES, "", dropped_words(label, kind)) for kind in sorted(dropped)), *known.problems)
        return health_of(known.mode, known.detail, problems)._replace(notices=known.notices)

    def _summary(self) -> str:
        """The words that a host which is off has left about it."""
        known = self.host.hello.workspaces if self.host.hello is not None else ()
        return next((one.summary[:100] for one in known if self.belongs(one)), "")


def _texts_of(told: Observation | Standing) -> Collection[str]:
    """The digests of the texts that an observation is about."""
    if isinstance(told, Seen):
        return (told.digest,)
    if isinstance(told, Ran) and told.run is not None:
        return [message.digest for message in messages(told.run)]
    return ()


def _shifted(value: Any, by: float) -> Any:
    """A record with all times in it (epoch seconds) so many seconds later. What a document says of itself stays."""
    if isinstance(value, tuple) and not hasattr(value, "_fields"):
        return tuple(_shifted(one, by) for one in value)
    is_record = dataclasses.is_dataclass(value)
    names = [one.name for one in dataclasses.fields(value)] if is_record else getattr(value, "_fields", ())
    moved = {}
    for name in names:
        one = getattr(value, name)
        if isinstance(one, float):
            is_time = name != "stated_at" and (name in ("at", "until") or name.endswith("_at"))
            moved[name] = one + by if is_time else one
        elif isinstance(one, tuple) or dataclasses.is_dataclass(one):
            moved[name] = _shifted(one, by)
    if not moved:
        return value
    return dataclasses.replace(value, **moved) if is_record else value._replace(**moved)
