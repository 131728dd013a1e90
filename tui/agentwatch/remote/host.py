"""A host as this machine knows it: what its relay says, checked and sorted, and what is asked of it."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from agentwatch.decisions.envelope import PublicKey
from agentwatch.remote.copy import Copy, Epoch, Listener, began
from agentwatch.remote.frames import (
    Beat,
    Decide,
    Frame,
    Hello,
    Observed,
    Reply,
    Reset,
    Result,
    Standing,
    Watch,
    to_bytes,
)
from agentwatch.remote.limits import LARGEST_HELLO, weight
from agentwatch.remote.link import Link, LinkState
from agentwatch.remote.observed import Told
from agentwatch.remote.pulse import SILENT_SECONDS, Pulse
from agentwatch.remote.texts import Texts
from agentwatch.remote.voice import Voice
from agentwatch.remote.wire import pack
from agentwatch.state import is_attended

WATCH_SECONDS: Final = 5.0
_GRACE_SECONDS: Final = 2.0
"""A link that is down for less is not told: it may be up again at once."""
_FIRST_SECONDS: Final = 10.0
"""So long a host may take to answer at first."""
_ANSWER_SECONDS: Final = 5.0
"""So long, where others are between it and us, who have told all that they kept: then it is not there."""
_FIRST_WATCH_SECONDS: Final = 1.0
"""Who has not answered yet is asked again."""
_TICK_SECONDS: Final = 0.5
_ASK_AGAIN: Final = 0.5, 60.0
_MOST_EPOCHS: Final = 3


class RemoteHost:
    """One host behind a link. `label` is what the operator calls it; `key` and `accept` are as `Voice` has them. Any
    thread may call anything."""

    def __init__(
        self,
        link: Link,
        label: str,
        *,
        key: PublicKey | None = None,
        accept: Callable[[PublicKey, str], str] = lambda _key, _name: "",
        clock: Callable[[], float] = time.time,
        steady: Callable[[], float] = time.monotonic,
    ) -> None:
        self.label: Final = label
        self.screen: Final = link.screen or secrets.token_hex(8)
        link.screen = self.screen
        self.pulse: Final = Pulse(clock, steady)
        self.lock: Final = threading.RLock()
        self.on_hello: Callable[[], None] | None = None
        """Is called when other workspaces are known than before."""
        self.on_result: list[Callable[[Result], None]] = []
        self.texts: Final = Texts(self.say, lambda: self.lost_since is None)
        self._link = link
        self._voice = Voice(label, key, accept)
        self.clock: Final = clock
        self.steady: Final = steady
        self._state = LinkState(up=False, words="")
        self._epochs: dict[str, Epoch] = {}
        self._current: Epoch | None = None
        self._listeners: list[Listener] = []
        self._began_at, self._began_steady = clock(), steady()
        self._down_steady: float | None = None
        self._up_steady = float("inf")
        """When what keeps messages for a host was first reached."""
        self._watched_steady = float("-inf")
        self._asked_steady = float("-inf")
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
        self._link.start(self._take, self._change)
        self._thread.start()

    def release(self) -> None:
        """Somebody needs it no more; the last one ends the link."""
        with self.lock:
            self._holders -= 1
            if self._holders > 0 or self._stopped.is_set():
                return
            self._stopped.set()
        self._link.stop()

    def listen(self, listener: Listener) -> None:
        """Tell of a workspace, what is known first."""
        with self.lock:
            self._listeners.append(listener)
            if self._current is not None:
                self._show(listener, self._current)

    def leave(self, listener: Listener) -> None:
        """Tell no more."""
        with self.lock, suppress(ValueError):
            self._listeners.remove(listener)

    @property
    def key(self) -> PublicKey | None:
        """What it signs with, as far as that is known."""
        return self._voice.key

    @property
    def hello(self) -> Hello | None:
        """What the host says of itself; None before it has."""
        return None if self._current is None else self._current.hello

    @property
    def is_confirmed(self) -> bool:
        """Whether the host has just answered."""
        return self.pulse.is_alive

    @property
    def offset(self) -> float:
        """So many whole seconds the host's clock is ahead of ours; 0 where nobody sees the difference."""
        return self.pulse.offset

    @property
    def now(self) -> float:
        """The host's time, as far as it is known."""
        return self.clock() + self.offset

    @property
    def lost_since(self) -> float | None:
        """Since when nothing is known of it, in epoch seconds of ours; None while it can be reached, and a moment
        longer."""
        steady = self.steady()
        if self.pulse.heard_at is None:
            is_late = self._is_late(steady) or self._state.fatal or bool(self._state.words)
            return self._began_at if is_late or self._voice.why else None
        is_down = self._down_steady is not None and steady >= self._down_steady + _GRACE_SECONDS
        return self.pulse.heard_at if is_down or not self.is_confirmed or self._voice.why else None

    def _is_late(self, steady: float) -> bool:
        """Whether a host that has not answered yet would have."""
        return steady >= min(self._began_steady + _FIRST_SECONDS, self._up_steady + _ANSWER_SECONDS)

    @property
    def why(self) -> str:
        """Why it cannot be reached, and what to do, in a sentence without its full stop; may quote foreign text."""
        if self._voice.why or (self._state.words and not self._state.up):
            return self._voice.why or self._state.words
        return self.pulse.trouble or ("it does not answer" if self._state.up else "the connection is being made")

    # What is asked of it

    def say(self, frame: Frame) -> None:
        """Send a frame; it may be lost."""
        self._link.send(pack(to_bytes(frame)), keep=isinstance(frame, Decide))

    def decide(self, workspace: str, request: str) -> None:
        """Ask for a decision; what becomes of it is told to `on_result`, if it arrives."""
        self.say(Decide(workspace, request))

    # The threads

    def _run(self) -> None:
        while not self._stopped.wait(_TICK_SECONDS):
            self.tick()

    def tick(self) -> None:
        """Time has passed."""
        with self.lock:
            steady = self.steady()
            if self._current is None and self._epochs and self._is_late(steady):
                # Nobody answers: what was kept of the host is all there is to show.
                self._go_to(max(self._epochs.values(), key=lambda one: one.hello.began_at))
            is_awaited = self.pulse.heard_at is None and not self._is_late(steady)
            pause = _FIRST_WATCH_SECONDS if is_awaited else WATCH_SECONDS
            if self._state.up and (steady >= self._watched_steady + pause or self._is_time_to_ask(steady)):
                self._watch()
            self._advance()

    def _change(self, state: LinkState) -> None:
        with self.lock:
            self._state = state
            if state.up:
                self._down_steady = None
                if self._link.keeps:
                    self._up_steady = min(self._up_steady, self.steady())
                if self._current is not None:
                    # Another run of the relay may answer.
                    self._current.confirmed_at = float("-inf")
                self._watch()
            elif self._down_steady is None:
                self._down_steady = self.steady()
            self._advance()

    def _take(self, message: bytes) -> None:
        """A message of the host. What nobody can have said is passed over."""
        why, frame = self._voice.why, self._voice.hear(message)
        with self.lock:
            if self._voice.why != why:
                self._advance()
            if not self._stopped.is_set() and frame is not None:
                self._heed(frame)

    def _advance(self) -> None:
        for listener in self._listeners:
            listener.advance()

    def _heed(self, frame: Frame) -> None:
        match frame:
            case Hello():
                self._meet(frame)
            case Beat():
                self._hear(frame)
            case Result():
                for tell in self.on_result:
                    tell(frame)
            case Reply():
                self.texts.take(frame)
            case Observed() | Reset() | Standing():
                self._learn(frame)

    def _meet(self, hello: Hello) -> None:
        if hello.epoch in self._epochs or weight(hello) > LARGEST_HELLO:
            return
        self._epochs[hello.epoch] = Epoch(hello, keeps=self._link.keeps)
        # Those that were heard of first go first: where a clock was set back, the newest run is not the one that began
        # last.
        others = [one for one in self._epochs.values() if one is not self._current]
        for one in others[: max(len(self._epochs) - _MOST_EPOCHS, 0)]:
            del self._epochs[one.hello.epoch]
        self._watch()

    def _learn(self, frame: Observed | Reset | Standing) -> None:
        epoch = self._epochs.get(frame.epoch)
        copy = epoch.copies.get(frame.workspace) if epoch is not None else None
        if epoch is None or copy is None:
            return
        new: list[Told] = []
        if isinstance(frame, Observed):
            new = copy.take(frame, epoch.held_besides(copy))
        elif isinstance(frame, Reset):
            copy.reset(frame)
        else:
            copy.stand(frame, epoch.held_besides(copy))
        if epoch is self._current:
            for listener in self._listeners:
                listener.told(copy, new)
        if copy.lacks and self._is_time_to_ask(self.steady()):
            self._watch()

    def _hear(self, beat: Beat) -> None:
        steady, epoch, offset = self.steady(), self._epochs.get(beat.epoch), self.offset
        if epoch is not None:
            for name, mark in beat.marks.items():
                if (copy := epoch.copies.get(name)) is not None:
                    copy.compare(mark)
        if not self.pulse.hear(beat.echo.get(self.screen), beat.now, is_known=epoch is not None):
            return
        if epoch is None:
            if steady >= self._watched_steady + _ASK_AGAIN[0]:
                self._watch(greets=True)
            return
        epoch.confirmed_at, current = steady, self._current
        is_over = current is None or current.confirmed_at < steady - SILENT_SECONDS or began(current) < began(epoch)
        if epoch is not current and is_over:
            self._go_to(epoch)
        for listener in self._listeners:
            if self.offset != offset:
                listener.moved()
            listener.advance()
        if self._is_time_to_ask(steady):
            self._watch()

    def _go_to(self, epoch: Epoch) -> None:
        """This is the run of the relay that counts from now on."""
        before, self._current = self._current, epoch
        self._epochs = {name: one for name, one in self._epochs.items() if one is epoch or began(one) > began(epoch)}
        for listener in self._listeners:
            self._show(listener, epoch)
        if (before is None or before.hello.workspaces != epoch.hello.workspaces) and self.on_hello is not None:
            self.on_hello()

    def _show(self, listener: Listener, epoch: Epoch) -> None:
        for workspace in epoch.hello.workspaces:
            if listener.belongs(workspace):
                listener.show(epoch.copies[workspace.id], workspace)
                return

    # What is asked again and again

    def _lacking(self) -> dict[str, Copy]:
        """The copies that lack something, by workspace."""
        epoch = self._current or next(iter(self._epochs.values()), None)
        return {} if epoch is None else {name: copy for name, copy in epoch.copies.items() if copy.lacks}

    def _is_time_to_ask(self, steady: float) -> bool:
        least, most = _ASK_AGAIN
        asked = [copy.asked for copy in self._lacking().values()]
        return bool(asked) and steady >= self._asked_steady + min(least * 2 ** min(asked), most)

    def _watch(self, *, greets: bool = False) -> None:
        """Say that somebody is here, and what lacks."""
        if not self._state.up:
            return
        steady = self.steady()
        lacking = self._lacking() if self._is_time_to_ask(steady) else {}
        if lacking:
            self._asked_steady = steady
        for copy in lacking.values():
            copy.ask()
        self._watched_steady = steady
        seen = {listener.workspace_id for listener in self._listeners if listener.is_shown} if is_attended() else set()
        self.say(
            Watch(
                self.screen,
                self.pulse.send(),
                greets or not self._epochs,
                tuple(sorted(seen)),
                {name: copy.cursor for name, copy in lacking.items() if not copy.wants_all},
                tuple(name for name, copy in lacking.items() if copy.wants_all),
            )
        )
