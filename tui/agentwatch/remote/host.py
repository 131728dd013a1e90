"""The hosts of a screen or a command, and their workspaces as sources, with the same events as local ones."""

from __future__ import annotations

import dataclasses
import hashlib
import secrets
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple
from urllib.parse import quote

from agentwatch.decisions.envelope import PublicKey, parse_public
from agentwatch.decisions.errors import KeyProblemError, NoAnswerError
from agentwatch.decisions.keys import Keys, Role
from agentwatch.delegation.events import Decided, Event, Lost, Ran, Reached, Ruled, Run
from agentwatch.errors import UsageError
from agentwatch.remote.address import Address, parse
from agentwatch.remote.log import MEBIBYTE, Log, dropped_words, exceeded_kinds, memory_size
from agentwatch.remote.nats import NatsHub
from agentwatch.remote.pipe import Link, LinkState, ProcessLink
from agentwatch.remote.protocol import (
    Ask,
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
    Wish,
    Workspace,
    pack_frame,
)
from agentwatch.remote.texts import RemoteTranscript
from agentwatch.shell import FLEET, require_extra
from agentwatch.sources import FILES, Batch, Health, Problem, Source, health_of
from agentwatch.sources.sessions.entries import RunTranscript
from agentwatch.state import is_attended, is_workspace_id
from agentwatch.text import quote_text
from agentwatch.view.words import plural, short_span
from agentwatch.workspaces import Place, Places

UNREACHED = "cannot be reached: "
SILENT_SECONDS = 15.0  # a host without an answer for so long is lost
WATCH_SECONDS = 5.0
_GRACE_SECONDS = 2.0  # a shorter interruption is not shown, because the link may be up again at once
_TICK_SECONDS = 0.5
_PAUSE_SECONDS = 0.05
_LARGEST_RESULT = 4 * MEBIBYTE  # bytes of a decision's result: more than the largest envelope that is read
# Characters of a text or a transcript that is fetched: twice the largest message, and more than anybody reads.
_LARGEST_ANSWER = 16 * MEBIBYTE
_MOST_PARTS = 1_024
_CONNECT_SECONDS = 20.0  # a connection that takes longer has failed; ssh alone may take 15
SCAN_SECONDS = 30.0  # the longest wait of a command for a host
# Bytes of new events after which the tree is made anew from the log: until then, removed entries stay in it.
MOST_NEWS = 256 * MEBIBYTE
# Seconds after which the known log replaces the shown state, even if the relay has not seen everything.
_PATIENCE = 10.0
_MOST_WORKSPACES = 1_000  # each has a place in every beat; people work in dozens
_LARGEST_HELLO = 8 * 1024 * 1024  # bytes of a hello: 8 KiB for the names and paths of each workspace

_TOLERATED = 2.0  # seconds by which the clocks may differ unnoticed
_FIRST_YEAR = 946_684_800.0
_LAST_YEAR = 7_258_118_400.0  # the years 2000 and 2200, in epoch seconds: a clock outside them cannot date anything


def _is_complete(replies: Sequence[Reply]) -> bool:
    """Tell whether all parts of an answer are here."""
    return bool(replies) and len(replies) >= replies[0].parts


class RemoteHost:
    """One host behind a link, for any thread; `key` and `accept` are as in `Verifier`."""

    answer_seconds = 10.0  # the longest wait for a text, or for the outcome of a decision
    again_seconds = 2.0

    def __init__(
        self,
        link: Link,
        label: str,
        *,
        key: PublicKey | None = None,
        accept: Callable[[PublicKey], str] = lambda _key: "",
        clock: Callable[[], float] = time.time,
        steady: Callable[[], float] = time.monotonic,
        own_key: Callable[[], str] = str,
    ):
        self._own_key = own_key
        # Why the host records no decision made here, and the remedy, in a sentence; "" if it does record them.
        self.refusal: str | None = None
        self.round_trip: float | None = None  # seconds from a question to its answer, if known
        self._echo = 0.0  # the last of our echoes
        self.label = label
        self.screen = link.screen = link.screen or secrets.token_hex(8)
        self.offset = 0.0  # whole seconds that the host's clock is ahead of ours; 0 if too few to see
        self.heard_at: float | None = None  # the time of its last answer, in epoch seconds
        self._heard_steady = float("-inf")
        self._clock_trouble = ""
        self.lock = threading.RLock()
        self.hello: Hello | None = None  # the host's last hello; None before the first
        self.clock = clock
        self.steady = steady
        self._link = link
        self._verifier = Verifier(label, key, accept)
        self._state = LinkState(up=False)
        self._epoch = ""  # the run of the relay that answers
        self._began_at, self.began_steady = clock(), steady()
        self._answers_by = self.began_steady + _CONNECT_SECONDS  # a host without an answer by then is lost
        self._down_steady = float("inf")
        self._watched_steady = float("-inf")
        self._holders: list[object] = []
        self._news = threading.Condition()  # notified of answers
        # The answers so far, by their kind and question.
        self._answers: dict[tuple[str, str], list[Any]] = {}
        self._stopped = threading.Event()

    # Users of the host

    def hold(self, holder: object) -> None:
        """Add a user of the host: the first one connects, and a source is given what is known."""
        with self.lock:
            is_first = not self._holders and not self._stopped.is_set()
            self._holders.append(holder)
            if isinstance(holder, RemoteSource) and self._epoch:
                holder.show(self.hello)
                self._ask()
        if is_first:
            self._link.start(self._receive, self._change)
            threading.Thread(target=self._run, name="agentwatch-host", daemon=True).start()

    def release(self, holder: object) -> None:
        """Remove a user; the last one ends the link for good."""
        with self.lock:
            if holder not in self._holders:
                return
            self._holders.remove(holder)
            is_last = not self._holders
        if is_last:
            self._stopped.set()
            self._link.stop()

    @property
    def _sources(self) -> list[RemoteSource]:
        return [one for one in self._holders if isinstance(one, RemoteSource)]

    @property
    def key(self) -> PublicKey | None:
        """The key with which it signs, if known."""
        return self._verifier.key

    @property
    def is_alive(self) -> bool:
        """Whether the host has just answered."""
        return self.steady() < self._heard_steady + SILENT_SECONDS

    @property
    def now(self) -> float:
        """The host's time, as far as known."""
        return self.clock() + self.offset

    @property
    def lost_since(self) -> float | None:
        """Since when its state is unknown, in our epoch seconds; None while it can be reached."""
        steady = self.steady()
        if self.heard_at is None:
            is_lost = (self._state.words and not self._state.up) or steady >= self._answers_by
        else:
            is_lost = not self.is_alive or steady >= self._down_steady + _GRACE_SECONDS
        return (self.heard_at or self._began_at) if is_lost or self._verifier.why else None

    @property
    def is_connected(self) -> bool:
        """Whether there is a connection, even without an answer."""
        return self._state.up

    @property
    def why(self) -> str:
        """Why its state is unknown, and the remedy: a sentence that lacks the host's name in front and the full stop.
        It may quote foreign text."""
        silent = "it does not answer" if self._state.up else "the connection is being made"
        known = self._state.words or self._clock_trouble or silent
        return self._verifier.why or f"{UNREACHED}{known}"

    @property
    def facts(self) -> list[tuple[str, str]]:
        """Facts about the connection for people, by labels."""
        hello, ahead = self.hello, self.offset
        clocks = f"{short_span(abs(ahead))} {'ahead of' if ahead > 0 else 'behind'} yours" if ahead else "as yours"
        trip = f"{self.round_trip * 1000:,.0f} ms" if self.round_trip is not None else ""
        version = "agentwatch", f"{hello.agentwatch[:40]} on {hello.host[:60]}" if hello else ""
        if self.lost_since is not None or self.heard_at is None:
            return [version]
        trust = self.refusal if self.refusal != "" else "your key may decide there"
        return [version, ("round trip", trip), ("clock", clocks), ("trust", trust or "")]

    def reconnect(self) -> None:
        """Connect at once if the host is lost; blocks for a moment."""
        if self.lost_since is not None:
            self._link.connect_again()
        with self.lock:
            self._ask(is_due=True)

    # Messages to the host

    def decide(self, workspace: str, request: str) -> Result | None:
        """Have the host record a signed decision; return its result, None if it gives none. Blocks."""
        frame = Decide(screen=self.screen, workspace=workspace, request=request)
        sha256 = hashlib.sha256(request.encode()).hexdigest()
        results = self._exchange(frame, ("result", sha256), lambda known: bool(known) and known[0].outcome.is_final)
        return results[0] if results and results[0].workspace == workspace else None

    def ask(self, workspace: str, what: Wish, key: str, place: str = "") -> str | None:
        """Return the answer of the host, None if it says that it has none; blocks; raise NoAnswerError."""
        name = f"{self.screen}.{secrets.token_hex(8)}"
        ask = Ask(id=name, screen=self.screen, workspace=workspace, what=what, key=key, place=place)
        replies = self._exchange(ask, ("reply", name), _is_complete)
        if not _is_complete(replies):
            raise NoAnswerError(f"{self.label} gives no answer now: it {self.why}")
        return "".join(one.data for one in sorted(replies, key=lambda one: one.part)) if replies[0].parts else None

    def _exchange(self, frame: Frame, key: tuple[str, str], is_over: Callable[[list[Any]], bool]) -> list[Any]:
        """Send a frame repeatedly until its answers are complete or nobody answers; return the answers so far."""
        answers = self._answers[key] = []
        end = time.monotonic() + self.answer_seconds
        with self._news:
            while not is_over(answers) and self.lost_since is None and (now := time.monotonic()) < end:
                self._link.send(pack_frame(frame))
                self._news.wait_for(partial(is_over, answers), min(self.again_seconds, end - now))
            del self._answers[key]
        return answers

    def _arrive(self, reply: Reply) -> None:
        """Store a part of an answer; ignore it if it contradicts the other parts or makes the answer too large."""
        with self._news:
            replies = self._answers.get(("reply", reply.id))
            is_sane = 0 <= reply.part < max(reply.parts, 1) <= _MOST_PARTS
            if replies is None or not is_sane or any(one.parts != reply.parts for one in replies):
                return
            size = sum(len(one.data) for one in replies) + len(reply.data)
            if size <= _LARGEST_ANSWER and all(one.part != reply.part for one in replies):
                replies.append(reply)
                if _is_complete(replies):
                    self._news.notify_all()

    # The threads

    def _run(self) -> None:
        while not self._stopped.wait(_TICK_SECONDS):
            self.tick()

    def tick(self) -> None:
        """Do what is due by time."""
        with self.lock:
            self._ask(is_due=self.steady() >= self._watched_steady + WATCH_SECONDS)
            self._advance()

    def _change(self, state: LinkState) -> None:
        with self.lock:
            if state.up:
                # A host that connects slowly still has its whole time to answer.
                self._answers_by = self.steady() + self._link.answers_in
            self._state = state
            self._down_steady = float("inf") if state.up else min(self._down_steady, self.steady())
            self._ask(is_due=True)
            self._advance()

    def _receive(self, message: bytes) -> None:
        """Handle a message of the host; ignore a malformed one."""
        why, frame = self._verifier.why, self._verifier.read(message)
        with self.lock:
            if self._verifier.why != why:
                self._advance()
            if not self._stopped.is_set() and frame:
                self._handle(frame)

    def _advance(self) -> None:
        for source in self._sources:
            source.advance()

    def _handle(self, frame: Frame) -> None:
        match frame:
            case Hello():
                self._greet(frame)
            case Result():
                with self._news:
                    results = self._answers.get(("result", frame.request_sha256))
                    if results is not None and memory_size(frame) <= _LARGEST_RESULT:
                        results[:] = [frame]
                        self._news.notify_all()
            case Reply():
                self._arrive(frame)
            case Beat() if frame.epoch == self._epoch:
                self._hear(frame)
                for source in self._sources:
                    source.compare(frame.seqs.get(source.workspace_id, 0))
            case Observed() if frame.epoch == self._epoch:
                for source in self._sources:
                    if source.workspace_id == frame.workspace:
                        others = sum((one.log.held for one in self._sources if one is not source), Counter[str]())
                        source.receive(frame, others)
        self._ask()

    def _greet(self, hello: Hello) -> None:
        words = [(one.id, one.path, one.name, one.asked, one.summary) for one in hello.workspaces]
        if len(words) > _MOST_WORKSPACES or memory_size([words, hello.missing]) > _LARGEST_HELLO:
            return
        before, was_alive = self.hello, self.is_alive
        if not self._hear(hello):
            # An old hello, stored for us or replayed, proves no living relay.
            self.hello = before or hello
            return
        # Of two relays of a host, the later one counts.
        is_of_before = before is not None and self._epoch and was_alive and hello.began_at < before.began_at
        if hello.epoch != self._epoch and not is_of_before:
            self.hello, self._epoch = hello, hello.epoch
            for source in self._sources:
                source.show(hello)

    def _hear(self, frame: Hello | Beat) -> bool:
        """Return whether this answers a message just sent here; measure how far the host's clock is ahead."""
        steady, offset = self.steady(), self.offset
        echo = frame.echo.get(self.screen, float("inf"))
        took = steady - echo
        if not 0 <= took < SILENT_SECONDS:
            return False
        self._clock_trouble = "" if _FIRST_YEAR <= frame.now < _LAST_YEAR else "its clock is wrong: set it there"
        if self._clock_trouble:
            return False
        self.heard_at, self._heard_steady = self.clock(), steady
        if self._state.up:
            self._state = LinkState(up=True)
        if echo != self._echo:
            # The first frame with this echo answers at once; later ones repeat it.
            self._echo, self.round_trip = echo, took
        if isinstance(frame, Beat) and frame.deciders is not None:
            self.refusal = self._refused_by(frame.deciders)
        ahead = frame.now - (self.heard_at - took / 2)
        # The error of the measure is at most half of the round trip.
        if abs(ahead - offset) > 1.0 + took / 2:
            self.offset = float(round(ahead)) if abs(ahead) > _TOLERATED else 0.0
        for source in self._sources:
            if self.offset != offset:
                source.begin_anew()
            source.advance()
        return True

    def _refused_by(self, deciders: Sequence[str]) -> str:
        """Return the reason why the operator's key may not decide there, "" if it may."""
        text = self._own_key()
        if text and parse_public(text).keyid in deciders:
            return ""
        own = f"does not trust your key: on it, `agentwatch keys trust {text} --name NAME`"
        none = "trusts no key of yours: `agentwatch keys create` makes one"
        return f"{self.label} {own if text else none}; or here, where ssh reaches it, `agentwatch keys send HOST`"

    def _ask(self, *, is_due: bool = False) -> None:
        """Send a watch if one is due, or if a workspace lacks its log."""
        lacks = {source.workspace_id for source in self._sources if self._state.up and source.asks_for_all()}
        if not self._state.up or not (is_due or lacks):
            return
        self._watched_steady = self.steady()
        seen = {source.workspace_id for source in self._sources if source.is_shown} if is_attended() else set()
        watch = Watch(
            screen=self.screen,
            sent=self._watched_steady,
            epoch=self._epoch,
            shown=tuple(sorted(seen - {""})),
            lacks=tuple(lacks),
        )
        self._link.send(pack_frame(watch))


class RemoteSource(Source):
    """A workspace of a host, by id, name or path; without a name the first that the host relays. New entries of its log
    are passed on in order. After a gap the whole log is passed on anew, once it is complete: until then the monitor
    keeps its state."""

    def __init__(self, host: RemoteHost, name: str = "", own_keys: Callable[[], Collection[str]] = tuple):
        self.host = host
        self.workspace: Workspace | None = None
        self.log = Log()
        self._name, self._own_keys = name, own_keys
        self._lacks = True  # entries are missing: the whole log has to be sent
        self._part = 0
        self._dropped: set[str] = set()  # kinds of `log.MOST` whose limit was exceeded
        self._pause = 1.0  # seconds until the whole log is requested again, doubled if nothing arrived
        self._ask_at = 0.0  # when to request it (monotonic)
        self._emit: Callable[[Batch], None] | None = None
        self._new: list[Observation] = []  # to be emitted in addition
        self._news_size = 0  # bytes emitted, or to be emitted, since the whole log was emitted
        self._has_begun = False  # something was emitted
        # Since when the whole log has to be emitted (monotonic); None if it has not.
        self._due: float | None = float("-inf")
        self._lost: float | None = None
        self._health: Health | None = None
        self._seq = 0
        self._news = threading.Condition(host.lock)

    @property
    def workspace_id(self) -> str:
        return self.workspace.id if self.workspace else ""

    @property
    def watched_at(self) -> float:
        """When it was first watched there, in our time."""
        if self.workspace is None:
            return 0.0
        return min(self.workspace.watched_at - self.host.offset, self.host.clock())

    # The source

    def start(self, emit: Callable[[Batch], None]) -> None:
        self._emit = emit
        self.host.hold(self)
        with self.host.lock:
            self.advance()

    def stop(self) -> None:
        with self.host.lock:
            self._emit = None
        self.host.release(self)

    @property
    def is_shown(self) -> bool:
        """Whether somebody sees it all the time."""
        return self._emit is not None

    def scan(self) -> Batch:
        """Return everything known of it, after waiting at most half a minute for the host to look at everything."""
        until = max(self.host.began_steady + SCAN_SECONDS, self.host.steady() + _TICK_SECONDS)
        self.host.hold(self)
        with self._news:
            while not (is_known := self._is_settled or self._missing or self.host.lost_since is not None):
                if self.host.steady() >= until:
                    break
                self._news.wait(0.1)
            batch = self._next(now=True)
            if is_known:
                return batch
            late = Problem(FILES, "", f"{self.host.label} has not told all of it in {SCAN_SECONDS:.0f} seconds")
            return batch._replace(health=health_of("live", "", [*batch.health.problems, late]))

    @property
    def connection_facts(self) -> list[tuple[str, str]]:
        return self.host.facts

    def reconnect(self) -> None:
        self.host.reconnect()

    def content(self, digest: str) -> str | None:
        return self.host.ask(self.workspace_id, "text", digest)

    def transcript(self, run: Run) -> RunTranscript | None:
        with self.host.lock:
            ran = [one for one in self.log.events() if isinstance(one, Ran)]
        keys = {(one.run.session, one.run.place): one.path for one in ran if one.run}
        key = keys.get((run.session, run.place))
        return RemoteTranscript(partial(self.ask, "transcript", key)) if key is not None else None

    def ask(self, what: Wish, key: str, place: str = "") -> str | None:
        """Return the host's answer about this workspace; None if it has none, or gives none now. Blocks."""
        with suppress(NoAnswerError):
            return self.host.ask(self.workspace_id, what, key, place)
        return None

    # Messages of the host, with its lock held

    def show(self, hello: Hello | None) -> None:
        """Find the workspace in a hello, and request its log from this run of the relay."""
        known = hello.workspaces if hello else ()
        self.workspace = next((one for one in known if one.is_called(self._name)), None)
        self._pause, self._ask_at = 1.0, 0.0
        self._lack()
        self.advance()

    def compare(self, seq: int) -> None:
        """Request the log if the relay has sent entries up to this number that are missing here."""
        if seq > self.log.seq:
            self._lack()

    def receive(self, observed: Observed, others: Counter[str]) -> None:
        """Add entries to the log, as far as the logs of the other workspaces leave room."""
        if observed.parts and self._lacks:
            self._ask_at = self.host.steady() + self._pause
            if observed.part == 0:
                self.log, self._part, self._dropped = Log(), 0, set()
                self.log.seq = observed.upto
            if (observed.part, observed.upto) == (self._part, self.log.seq):
                self._part += 1
                self._add(observed, others)
                self._lacks = self._part < observed.parts
                if not self._lacks:
                    self._pause, self._ask_at = 1.0, 0.0
        elif not observed.parts and not self._lacks and observed.upto > self.log.seq:
            if observed.after != self.log.seq:
                self._lack()
            else:
                self.log.seq = observed.upto
                self._add(observed, others)
        self.advance()

    def _add(self, observed: Observed, others: Counter[str]) -> None:
        for event in (entry.event for entry in observed.entries):
            if event is None:
                continue
            with suppress(ValueError):
                added = self.log.add(event)
                if added is None:
                    continue
                if over := exceeded_kinds(others + self.log.held):
                    self.log.remove_last(added)
                    self._dropped.update(over)
                    if isinstance(added, Standing):
                        short = Health(added.health.mode, added.health.detail[:600])  # no room for more
                        self.log.add(added._replace(health=short))
                elif self._due is None and not isinstance(added, Standing):
                    self._new.append(added)
                    self._news_size += memory_size(added)
                    if self._news_size > MOST_NEWS:
                        self.begin_anew()

    def _lack(self) -> None:
        self._lacks = True
        self.begin_anew()

    def asks_for_all(self) -> bool:
        """Tell whether to request the whole log now, and delay the next request."""
        if self.workspace is None or not self._lacks or self.host.steady() < self._ask_at:
            return False
        self._pause = min(self._pause * 2, 64.0)
        self._ask_at = self.host.steady() + self._pause
        return True

    def begin_anew(self) -> None:
        """Have the whole log emitted."""
        self._new = []
        if self._due is None:
            self._due = self.host.steady()

    def advance(self) -> None:
        """Emit the pending events."""
        self._news.notify_all()
        if self._emit is not None:
            health = self._health
            batch = self._next()
            if batch.events or batch.starts_over or batch.health != health:
                with suppress(RuntimeError):  # the event loop is closed: nobody listens any more
                    self._emit(batch)

    def _next(self, *, now: bool = False) -> Batch:
        """Return the batch of pending events; `now`: everything known, even if incomplete."""
        host, lost, events, starts_over = self.host, self.host.lost_since, list[Event](), False
        if self._due is None:
            events = [self._here(one) for one in self._new]
        elif self.workspace and (
            now or self._is_settled or (not self._lacks and host.steady() >= self._due + _PATIENCE)
        ):
            starts_over, self._has_begun, self._due, self._news_size = self._has_begun, True, None, 0
            rules = self.workspace.rules
            rules = rules._replace(history_before=rules.history_before - host.offset)
            told = (one for one in self.log.events() if not isinstance(one, Standing))
            events = [Ruled(0, host.now, rules), *map(self._here, told)]
            if starts_over:
                self._lost = None
        self._new = []
        if lost is not None and self._lost is None:
            events.append(Lost(self._seq, lost))
            self._lost = lost
        elif lost is None and self._lost is not None and (self.workspace is None or self._due is None):
            events.append(Reached(self._seq, host.now - host.offset))
            self._lost = None
        self._health = self._standing()
        return Batch(tuple(events), self._health, starts_over)

    @property
    def _is_settled(self) -> bool:
        """Whether the relay has seen everything and has sent it."""
        standing = self.log.standing if not self._lacks else None
        return standing is not None and standing.settled

    @property
    def _missing(self) -> str:
        """The reason why the host has no such workspace, "" if it has one, or if that is unknown yet."""
        hello = self.host.hello
        if hello is None or self.workspace or self.host.heard_at is None:
            return ""
        return hello.missing.get(self._name) or f"it relays no {quote_text(self._name)}"

    def _here(self, told: Observation) -> Observation:
        """Return an observation in our time."""
        self._seq = max(self._seq, told.seq)
        offset = self.host.offset
        moved = _shift_times(told, -offset) if offset else told
        if isinstance(moved, Decided):
            # The host says whose key has signed it, but only we know whether that is our own.
            by_other = moved.decision.asked_by not in self._own_keys()
            return moved._replace(decision=dataclasses.replace(moved.decision, by_other=by_other))
        return moved

    def _standing(self) -> Health:
        """Return the health of this source."""
        label, hello, standing = self.host.label, self.host.hello, self.log.standing
        starting = Health("starting", f"{'connecting to' if self.host.heard_at is None else 'reading'} {label}")
        known = standing.health if standing is not None else starting
        is_lost = self.host.lost_since is not None
        if why := self.host.why if is_lost else self._missing:
            words = f"{label} {why}" if is_lost else f"{label}: {why}"
            if standing is None and self.workspace is None and hello:
                # The last hello of a host that is off still says how much there was.
                summary = next((one.summary[:100] for one in hello.workspaces if one.is_called(self._name)), "")
                words += f"; {summary} when it was heard last" if summary else ""
            return Health("degraded", words, (Problem(FILES, "", words), *known.problems))
        if not self._has_begun:
            return starting
        dropped = (Problem(FILES, "", dropped_words(label, kind)) for kind in sorted(self._dropped))
        return health_of(known.mode, known.detail, [*dropped, *known.problems])._replace(notices=known.notices)


class BrokerSource(RemoteSource):
    """A NATS server none of whose hosts has spoken yet."""

    def __init__(self, host: RemoteHost, server: str, count: int):
        super().__init__(host, "\0")
        self._server, self._count = server, count

    def _standing(self) -> Health:
        if self.host.lost_since is None:
            return Health("starting", f"connecting to {plural(self._count, 'host')}")
        why = f"no host that is trusted here has spoken there yet: `agentwatch relay --nats {self._server}` on it"
        words = f"{self._server}: {why}" if self.host.is_connected else self.host.why.removeprefix(UNREACHED)
        return Health("degraded", words, (Problem(FILES, "", words),))


def _shift_times(value: Any, by: float, name: str = "") -> Any:
    """Return a record with all its times (epoch seconds) shifted by seconds; times inside a document stay."""
    if isinstance(value, float):
        is_time = name != "stated_at" and (name in ("at", "until") or name.endswith("_at"))
        return value + by if is_time else value
    if isinstance(value, tuple) and not hasattr(value, "_fields"):
        return tuple(_shift_times(one, by) for one in value)
    is_record = dataclasses.is_dataclass(value)
    names = [one.name for one in dataclasses.fields(value)] if is_record else getattr(value, "_fields", ())
    if not names:
        return value
    moved = {name: _shift_times(getattr(value, name), by, name) for name in names}
    return dataclasses.replace(value, **moved) if is_record else value._replace(**moved)


class _KnownWorkspace(NamedTuple):
    """A workspace: its host, the host's name for it, its address; for a server, the number of `unheard` hosts."""

    host: RemoteHost
    name: str
    written: str
    unheard: int = 0


class Fleet:
    """The hosts behind some addresses; connections are made on demand, and end with `close`."""

    def __init__(self, addresses: Sequence[Address]):
        self._keys = Keys()
        self._known: dict[Path, _KnownWorkspace] = {}
        self._fixed: list[Place] = []  # the workspaces that the addresses name
        # By label: hosts that say themselves which workspaces they have, with the wanted workspace, "" for all.
        self._brokered: dict[str, _KnownWorkspace] = {}
        self._asked_for = {address.host for address in addresses if address.kind == "nats"}
        # By address: the hosts of a server, if all of its hosts are wanted.
        self._servers: dict[str, list[RemoteHost]] = {}
        self._sources: list[RemoteSource] = []
        groups: dict[str, list[Address]] = {}
        hubs: dict[str, NatsHub] = {}
        for one in addresses:
            if one.kind == "nats":
                self._add_nats(one, hubs)
            else:
                groups.setdefault(f"{one.label} {one.kind}:{one.target} {bool(one.path)}", []).append(one)
        for group in groups.values():
            self._add_linked(group)

    def _add_linked(self, addresses: Sequence[Address]) -> None:
        """Add the workspaces of one host, which share a connection."""
        label = addresses[0].label
        link = ProcessLink(addresses[0], [one.path for one in addresses])
        key, accept = self._trusted().get(label), partial(self._accept, label)
        host = RemoteHost(link, label, key=key, accept=accept, own_key=self._own_key)
        if not addresses[0].path:
            host.hold(self)
            self._brokered[f"ssh://{addresses[0].target}"] = _KnownWorkspace(host, "", f"ssh://{addresses[0].target}")
            return
        names = {place.name for place in self._fixed}
        for address in addresses:
            short, whole = f"{label}: {PurePosixPath(address.path).name}", f"{label}: {address.path}"
            name = whole if short in names else short
            names.add(name)
            self._known[address.place] = _KnownWorkspace(host, address.path, address.written)
            self._fixed.append(Place(address.place, name, host=label))

    def _add_nats(self, address: Address, hubs: dict[str, NatsHub]) -> None:
        with require_extra(*FLEET):
            from agentwatch.remote.nats import NatsHub, hide_password, login_of
        trusted = self._trusted()
        if not trusted or (address.host and address.host not in trusted):
            who = f"no host is known by the name {address.host}" if address.host else "no host is trusted yet"
            raise UsageError(
                f"{address.written}: {who}; `agentwatch keys` on it prints its key, and here"
                f" `agentwatch keys trust KEY --name {address.host or 'NAME'} --host` makes it known"
            )
        if address.server not in hubs:
            hubs[address.server] = NatsHub(address.server, login_of(None, self._keys))
        server = hide_password(address.server)
        for name in [address.host] if address.host else trusted:
            if name not in self._brokered:
                link = hubs[address.server].link(trusted[name])
                host = RemoteHost(link, name, key=trusted[name], own_key=self._own_key)
                host.hold(self)
                self._brokered[name] = _KnownWorkspace(host, address.path, f"{server}/{name}")
            if not address.host:
                self._servers.setdefault(server, []).append(self._brokered[name].host)

    def _trusted(self) -> dict[str, PublicKey]:
        """Return the keys with which hosts have signed before, by the names of the hosts."""
        return {one.name: one.public for one in self._keys.trusted(Role.HOST)}

    def _own_key(self) -> str:
        """Return the key that signs here, "" if there is none yet."""
        with suppress(KeyProblemError):
            return self._keys.show().text
        return ""

    def _own_keys(self) -> list[str]:
        """Return the ids of the operator's current and former keys here."""
        return [one.public.keyid for one in self._keys.trust().keys]

    def _accept(self, label: str, key: PublicKey) -> str:
        """Note the key of a first hello and return "", or return why it is refused."""
        if key in self._trusted().values():
            return ""
        if any(one.public == key for one in self._keys.others(Role.HOST)):
            return f"its key is trusted no more: `agentwatch keys trust {key.text} --name {label} --host` does so"
        try:
            self._keys.trust_other(Role.HOST, key, label)
        except KeyProblemError as error:
            return f"its key cannot be noted: {error}"
        return ""

    # Hosts and their workspaces

    def find(self) -> Places:
        """Return the workspaces known by now; any thread may call it."""
        places = list(self._fixed)
        for key, (host, wanted, written, _) in self._brokered.items():
            label, hello, is_ssh = host.label, host.hello, written.startswith("ssh:")
            own = Path(f"/{key}" if is_ssh else f"/nats:{label}")
            told = hello.workspaces if hello else ()
            meant = {one.id: one for one in told if wanted in ("", one.name, one.id, one.path)}
            # Foreign text: only an id of the right form leads to no directory of this machine.
            for one in filter(lambda one: is_workspace_id(one.id), meant.values()):
                place, address = own / one.id, f"{written}/{one.id}"
                if is_ssh:
                    # The same place as for an address with the path.
                    with suppress(UsageError):
                        place, address = (known := parse(f"{written}{quote(one.path)}")).place, known.written
                self._known[place] = _KnownWorkspace(host, one.id, address)
                places.append(Place(place, f"{label}: {one.name}", comes=True, host=label))
            if not told if is_ssh else hello is None and label in self._asked_for:
                # Any other workspace may be another broker's.
                self._known[own] = _KnownWorkspace(host, wanted, written)
                places.append(Place(own, label, comes=True, host=label))
        for server, hosts in self._servers.items():
            if all(one.hello is None for one in hosts):
                own = Path(f"/nats:{server}")
                self._known[own] = _KnownWorkspace(hosts[0], "", server, unheard=len(hosts))
                places.append(Place(own, server, comes=True, host=server, hosts=len(hosts)))
        return Places(places)

    def found(self) -> Places:
        """Return the workspaces, after each host has named its own or is lost; blocks."""
        until = time.monotonic() + SCAN_SECONDS
        # All at the same time.
        for host in {self._known[place.workspace].host for place in self._fixed}:
            host.hold(self)
        hosts = [known.host for known in self._brokered.values()]
        while time.monotonic() < until and any(one.hello is None and one.lost_since is None for one in hosts):
            time.sleep(_PAUSE_SECONDS)
        return self.find()

    def source(self, place: Path) -> RemoteSource:
        """Return a source of a workspace that was found."""
        host, name, written, unheard = self._known[place]
        source = BrokerSource(host, written, unheard) if unheard else RemoteSource(host, name, self._own_keys)
        self._sources.append(source)
        return source

    def directory(self, place: Path) -> str:
        """Return the path of a found workspace on its host; "" if the host has not told it."""
        host, name, *_ = self._known[place]
        known = host.hello.workspaces if host.hello else ()
        return next((one.path for one in known if one.is_called(name)), "")

    def address(self, place: Path) -> str:
        """Return the address of a found workspace, for another command."""
        return self._known[place].written

    def close(self) -> None:
        """End all connections."""
        for source in self._sources:
            source.stop()
        for known in (*self._known.values(), *self._brokered.values()):
            known.host.release(self)
