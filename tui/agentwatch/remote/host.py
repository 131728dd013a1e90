"""Connects to other machines (hosts). A workspace of a host becomes a source, like a local workspace."""

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
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote

from agentwatch.decisions.envelope import PublicKey, parse_public
from agentwatch.decisions.errors import KeyProblemError, NoAnswerError
from agentwatch.decisions.keys import Keys, Role
from agentwatch.delegation.events import Decided, Event, Lost, Ran, Reached, Ruled, Run
from agentwatch.errors import UsageError
from agentwatch.remote.address import Address, parse
from agentwatch.remote.log import MEBIBYTE, Log, dropped_words, exceeded_kinds, memory_size
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

if TYPE_CHECKING:
    from agentwatch.remote.nats import NatsHub

UNREACHED = "cannot be reached: "
SILENT_SECONDS = 15.0  # a host that has not answered for so long counts as lost
WATCH_SECONDS = 5.0
_GRACE_SECONDS = 2.0  # a shorter interruption of the connection is not shown
_TICK_SECONDS = 0.5
_PAUSE_SECONDS = 0.05
_LARGEST_RESULT = 4 * MEBIBYTE  # the most bytes of a `Result`; it may contain a decision file
# The most characters of a text or a transcript that is fetched from a host.
_LARGEST_ANSWER = 16 * MEBIBYTE
_MOST_PARTS = 1_024
_CONNECT_SECONDS = 20.0  # the longest time to connect; ssh alone may take 15 seconds
SCAN_SECONDS = 30.0  # the longest time that a command waits for a host
# After so many bytes of new events the tree is built again from the log. This frees the memory of outdated events.
MOST_NEWS = 256 * MEBIBYTE
# After so many seconds a log is shown even if the relay is still reading the workspace.
_PATIENCE = 10.0
_MOST_WORKSPACES = 1_000  # every `Beat` lists all workspaces of the host; people have dozens of workspaces
_LARGEST_HELLO = 8 * 1024 * 1024  # the most bytes of a `Hello`, with 8 KiB for each workspace

_TOLERATED = 2.0  # seconds; a smaller difference of the clocks is ignored
_FIRST_YEAR = 946_684_800.0
_LAST_YEAR = 7_258_118_400.0  # the years 2000 and 2200 in epoch seconds; a clock before or after is wrong


def _is_complete(replies: Sequence[Reply]) -> bool:
    return bool(replies) and len(replies) >= replies[0].parts


class RemoteHost:
    """The connection to one host. Any thread may call the methods. `Verifier` explains `key` and `accept`."""

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
        # Why the host refuses the operator's decisions, and the remedy. "" if it accepts decisions, None if unknown.
        self.refusal: str | None = None
        self.round_trip: float | None = None  # seconds from a message to the host's answer, if known
        self._echo = 0.0  # the sending time of our latest message that the host has answered
        self.label = label
        self.screen = link.screen = link.screen or secrets.token_hex(8)
        self.offset = 0.0  # whole seconds by which the host's clock is ahead; a tiny difference counts as 0
        self.heard_at: float | None = None  # the time of the host's last answer, in epoch seconds
        self._heard_steady = float("-inf")
        self._clock_trouble = ""
        self.lock = threading.RLock()
        self.hello: Hello | None = None  # the host's last `Hello` (its workspaces); None before the first
        self.clock = clock
        self.steady = steady
        self._link = link
        self._verifier = Verifier(label, key, accept)
        self._state = LinkState(up=False)
        self._epoch = ""  # the id in the `Hello` of the relay that runs now
        self._began_at, self.began_steady = clock(), steady()
        self._answers_by = self.began_steady + _CONNECT_SECONDS  # a host without an answer by this time is lost
        self._down_steady = float("inf")
        self._watched_steady = float("-inf")
        self._users: list[object] = []
        self._news = threading.Condition()  # notified when an answer arrives
        # The answers that have arrived, by kind and by the id of the question.
        self._answers: dict[tuple[str, str], list[Any]] = {}
        self._stopped = threading.Event()

    # Users of the host

    def add_user(self, user: object) -> None:
        """Add a user of the connection: a source or a fleet. The first user starts the connection."""
        with self.lock:
            is_first = not self._users and not self._stopped.is_set()
            self._users.append(user)
            if isinstance(user, RemoteSource) and self._epoch:
                user.take_hello(self.hello)
                self._send_watch()
        if is_first:
            self._link.start(self._take_message, self._take_state)
            threading.Thread(target=self._run, name="agentwatch-host", daemon=True).start()

    def remove_user(self, user: object) -> None:
        """Remove a user of the connection. When no user is left, the connection ends for good."""
        with self.lock:
            if user not in self._users:
                return
            self._users.remove(user)
            is_last = not self._users
        if is_last:
            self._stopped.set()
            self._link.stop()

    @property
    def _sources(self) -> list[RemoteSource]:
        return [one for one in self._users if isinstance(one, RemoteSource)]

    @property
    def key(self) -> PublicKey | None:
        """The public key of the host, or None if it is still unknown."""
        return self._verifier.key

    @property
    def is_alive(self) -> bool:
        """Whether the host has answered recently."""
        return self.steady() < self._heard_steady + SILENT_SECONDS

    @property
    def now(self) -> float:
        """The time of the host's clock in epoch seconds. This is an estimate."""
        return self.clock() + self.offset

    @property
    def lost_since(self) -> float | None:
        """The time since which the host is unreachable, in epoch seconds of this machine. None if it is reachable."""
        steady = self.steady()
        if self.heard_at is None:
            is_lost = (self._state.words and not self._state.up) or steady >= self._answers_by
        else:
            is_lost = not self.is_alive or steady >= self._down_steady + _GRACE_SECONDS
        return (self.heard_at or self._began_at) if is_lost or self._verifier.why else None

    @property
    def is_connected(self) -> bool:
        """Whether the connection exists, even if the host does not answer."""
        return self._state.up

    @property
    def why_lost(self) -> str:
        """The reason why the host is unreachable, and the remedy. It may quote untrusted text.
        The caller writes the name of the host before it."""
        silent = "it does not answer" if self._state.up else "the connection is being made"
        known = self._state.words or self._clock_trouble or silent
        return self._verifier.why or f"{UNREACHED}{known}"

    @property
    def connection_facts(self) -> list[tuple[str, str]]:
        """Rows about the connection (version, round trip, clock, trust). Each is a label and a text."""
        hello, ahead = self.hello, self.offset
        clocks = f"{short_span(abs(ahead))} {'ahead of' if ahead > 0 else 'behind'} yours" if ahead else "as yours"
        trip = f"{self.round_trip * 1000:,.0f} ms" if self.round_trip is not None else ""
        version = "agentwatch", f"{hello.agentwatch[:40]} on {hello.host[:60]}" if hello else ""
        if self.lost_since is not None or self.heard_at is None:
            return [version]
        trust = self.refusal if self.refusal != "" else "your key may decide there"
        return [version, ("round trip", trip), ("clock", clocks), ("trust", trust or "")]

    def reconnect(self) -> None:
        """If the host is lost, connect again at once. Blocks for a moment."""
        if self.lost_since is not None:
            self._link.connect_again()
        with self.lock:
            self._send_watch(is_due=True)

    # Messages to the host

    def decide(self, workspace: str, request: str) -> Result | None:
        """Ask the host to record a signed decision. Return None if the host does not answer. Blocks."""
        frame = Decide(screen=self.screen, workspace=workspace, request=request)
        sha256 = hashlib.sha256(request.encode()).hexdigest()
        results = self._send_until_answered(
            frame, ("result", sha256), lambda known: bool(known) and known[0].outcome.is_final
        )
        return results[0] if results and results[0].workspace == workspace else None

    def fetch(self, workspace: str, what: Wish, key: str, place: str = "") -> str | None:
        """Return a text or a part of a transcript, or None. Raise NoAnswerError if the host does not answer. Blocks."""
        name = f"{self.screen}.{secrets.token_hex(8)}"
        ask = Ask(id=name, screen=self.screen, workspace=workspace, what=what, key=key, place=place)
        replies = self._send_until_answered(ask, ("reply", name), _is_complete)
        if not _is_complete(replies):
            raise NoAnswerError(f"{self.label} gives no answer now: it {self.why_lost}")
        return "".join(one.data for one in sorted(replies, key=lambda one: one.part)) if replies[0].parts else None

    def _send_until_answered(
        self, frame: Frame, key: tuple[str, str], is_over: Callable[[list[Any]], bool]
    ) -> list[Any]:
        """Send a message again and again until its answers are complete or the time is over. Return the answers."""
        answers = self._answers[key] = []
        end = time.monotonic() + self.answer_seconds
        with self._news:
            while not is_over(answers) and self.lost_since is None and (now := time.monotonic()) < end:
                self._link.send(pack_frame(frame))
                self._news.wait_for(partial(is_over, answers), min(self.again_seconds, end - now))
            del self._answers[key]
        return answers

    def _add_reply(self, reply: Reply) -> None:
        """Store one part of an answer. Ignore a wrong part, and a part that makes the answer too large."""
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
        """Send a watch (a sign that this screen is there) if it is due. Emit the events that wait."""
        with self.lock:
            self._send_watch(is_due=self.steady() >= self._watched_steady + WATCH_SECONDS)
            self._emit_pending()

    def _take_state(self, state: LinkState) -> None:
        with self.lock:
            if state.up:
                # The host has to answer within some seconds from now.
                self._answers_by = self.steady() + self._link.answer_seconds
            self._state = state
            self._down_steady = float("inf") if state.up else min(self._down_steady, self.steady())
            self._send_watch(is_due=True)
            self._emit_pending()

    def _take_message(self, message: bytes) -> None:
        why, frame = self._verifier.why, self._verifier.read(message)
        with self.lock:
            if self._verifier.why != why:
                self._emit_pending()
            if not self._stopped.is_set() and frame:
                self._handle_frame(frame)

    def _emit_pending(self) -> None:
        for source in self._sources:
            source.emit_pending()

    def _handle_frame(self, frame: Frame) -> None:
        match frame:
            case Hello():
                self._take_hello(frame)
            case Result():
                with self._news:
                    results = self._answers.get(("result", frame.request_sha256))
                    if results is not None and memory_size(frame) <= _LARGEST_RESULT:
                        results[:] = [frame]
                        self._news.notify_all()
            case Reply():
                self._add_reply(frame)
            case Beat() if frame.epoch == self._epoch:
                self._take_answer(frame)
                for source in self._sources:
                    source.check_number(frame.seqs.get(source.workspace_id, 0))
            case Observed() if frame.epoch == self._epoch:
                for source in self._sources:
                    if source.workspace_id == frame.workspace:
                        others = sum((one.log.amounts for one in self._sources if one is not source), Counter[str]())
                        source.take_entries(frame, others)
        self._send_watch()

    def _take_hello(self, hello: Hello) -> None:
        words = [(one.id, one.path, one.name, one.asked, one.summary) for one in hello.workspaces]
        if len(words) > _MOST_WORKSPACES or memory_size([words, hello.missing]) > _LARGEST_HELLO:
            return
        before, was_alive = self.hello, self.is_alive
        if not self._take_answer(hello):
            # A stored or replayed hello does not prove that the relay runs.
            self.hello = before or hello
            return
        # If two relays run on a host, ignore the relay that began earlier.
        is_of_before = before is not None and self._epoch and was_alive and hello.began_at < before.began_at
        if hello.epoch != self._epoch and not is_of_before:
            self.hello, self._epoch = hello, hello.epoch
            for source in self._sources:
                source.take_hello(hello)

    def _take_answer(self, frame: Hello | Beat) -> bool:
        """Measure the host's clock. Return False if the frame is no answer to a recent message of this screen."""
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
            # A host answers a message at once, but repeats the echo later. So only the first echo gives the round trip.
            self._echo, self.round_trip = echo, took
        if isinstance(frame, Beat) and frame.deciders is not None:
            self.refusal = self._refusal_reason(frame.deciders)
        ahead = frame.now - (self.heard_at - took / 2)
        # The error of the measurement is at most half of the round trip.
        if abs(ahead - offset) > 1.0 + took / 2:
            self.offset = float(round(ahead)) if abs(ahead) > _TOLERATED else 0.0
        for source in self._sources:
            if self.offset != offset:
                source.schedule_whole_log()
            source.emit_pending()
        return True

    def _refusal_reason(self, deciders: Sequence[str]) -> str:
        """Return why the host refuses the operator's decisions, and the remedy. Return "" if it accepts decisions."""
        text = self._own_key()
        if text and parse_public(text).keyid in deciders:
            return ""
        own = f"does not trust your key: on it, `agentwatch keys trust {text} --name NAME`"
        none = "trusts no key of yours: `agentwatch keys create` makes one"
        return f"{self.label} {own if text else none}; or here, where ssh reaches it, `agentwatch keys send HOST`"

    def _send_watch(self, *, is_due: bool = False) -> None:
        """Send a watch (a sign that this screen is there) if it is due, or if a source needs the whole log."""
        lacks = {source.workspace_id for source in self._sources if self._state.up and source.must_request_log()}
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
    """A workspace of a host. `name` is its id, name or path, or "" for the first workspace of the host.
    The source emits new events in order. If events are missing, the source requests the whole log of the workspace.
    The whole log then replaces the tree."""

    def __init__(self, host: RemoteHost, name: str = "", own_keys: Callable[[], Collection[str]] = tuple):
        self.host = host
        self.workspace: Workspace | None = None
        self.log = Log()
        self._name, self._own_key_ids = name, own_keys
        self._lacks_entries = True  # whether events are missing, so that the whole log is needed
        self._part = 0
        self._dropped: set[str] = set()  # the kinds of `log.MOST` of which the host sent too many
        self._pause = 1.0  # seconds until the whole log is requested again; each request doubles this pause
        self._ask_at = 0.0  # the earliest monotonic time of the next request
        self._emit: Callable[[Batch], None] | None = None
        self._new: list[Observation] = []  # new events that are not emitted yet
        self._news_size = 0  # bytes of new events since the whole log was emitted
        self._has_begun = False  # whether something was emitted
        # The monotonic time since which the whole log waits to be emitted. None if it does not wait.
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
        """The time at which the host first watched the workspace, by the clock of this machine."""
        if self.workspace is None:
            return 0.0
        return min(self.workspace.watched_at - self.host.offset, self.host.clock())

    # The source

    def start(self, emit: Callable[[Batch], None]) -> None:
        self._emit = emit
        self.host.add_user(self)
        with self.host.lock:
            self.emit_pending()

    def stop(self) -> None:
        with self.host.lock:
            self._emit = None
        self.host.remove_user(self)

    @property
    def is_shown(self) -> bool:
        """Whether a screen shows the workspace."""
        return self._emit is not None

    def scan(self) -> Batch:
        """Return all events of the workspace. Wait up to half a minute until the host has read the whole workspace."""
        until = max(self.host.began_steady + SCAN_SECONDS, self.host.steady() + _TICK_SECONDS)
        self.host.add_user(self)
        with self._news:
            while not (is_known := self._is_settled or self._missing_reason or self.host.lost_since is not None):
                if self.host.steady() >= until:
                    break
                self._news.wait(0.1)
            batch = self._next_batch(now=True)
            if is_known:
                return batch
            late = Problem(FILES, "", f"{self.host.label} has not told all of it in {SCAN_SECONDS:.0f} seconds")
            return batch._replace(health=health_of("live", "", [*batch.health.problems, late]))

    @property
    def connection_facts(self) -> list[tuple[str, str]]:
        return self.host.connection_facts

    def reconnect(self) -> None:
        self.host.reconnect()

    def content(self, digest: str) -> str | None:
        return self.host.fetch(self.workspace_id, "text", digest)

    def transcript(self, run: Run) -> RunTranscript | None:
        with self.host.lock:
            ran = [one for one in self.log.events() if isinstance(one, Ran)]
        keys = {(one.run.session, one.run.place): one.path for one in ran if one.run}
        key = keys.get((run.session, run.place))
        return RemoteTranscript(partial(self.fetch, "transcript", key)) if key is not None else None

    def fetch(self, what: Wish, key: str, place: str = "") -> str | None:
        """Return a text or a part of a transcript of this workspace. Return None if there is no answer. Blocks."""
        with suppress(NoAnswerError):
            return self.host.fetch(self.workspace_id, what, key, place)
        return None

    # Messages from the host. The caller holds `host.lock`.

    def take_hello(self, hello: Hello | None) -> None:
        """Find the workspace in a hello (a relay's list of workspaces), and request its whole log."""
        known = hello.workspaces if hello else ()
        self.workspace = next((one for one in known if one.is_called(self._name)), None)
        self._pause, self._ask_at = 1.0, 0.0
        self._request_log()
        self.emit_pending()

    def check_number(self, seq: int) -> None:
        """Request the whole log if entries up to this number are missing."""
        if seq > self.log.seq:
            self._request_log()

    def take_entries(self, observed: Observed, others: Counter[str]) -> None:
        """Add received entries to the log. `others` is the size of the host's other logs. The logs share one limit."""
        if observed.parts and self._lacks_entries:
            self._ask_at = self.host.steady() + self._pause
            if observed.part == 0:
                self.log, self._part, self._dropped = Log(), 0, set()
                self.log.seq = observed.upto
            if (observed.part, observed.upto) == (self._part, self.log.seq):
                self._part += 1
                self._add(observed, others)
                self._lacks_entries = self._part < observed.parts
                if not self._lacks_entries:
                    self._pause, self._ask_at = 1.0, 0.0
        elif not observed.parts and not self._lacks_entries and observed.upto > self.log.seq:
            if observed.after != self.log.seq:
                self._request_log()
            else:
                self.log.seq = observed.upto
                self._add(observed, others)
        self.emit_pending()

    def _add(self, observed: Observed, others: Counter[str]) -> None:
        for event in (entry.event for entry in observed.entries):
            if event is None:
                continue
            with suppress(ValueError):
                added = self.log.add(event)
                if added is None:
                    continue
                if over := exceeded_kinds(others + self.log.amounts):
                    self.log.remove_last(added)
                    self._dropped.update(over)
                    if isinstance(added, Standing):
                        short = Health(added.health.mode, added.health.detail[:600])  # shortened to save room
                        self.log.add(added._replace(health=short))
                elif self._due is None and not isinstance(added, Standing):
                    self._new.append(added)
                    self._news_size += memory_size(added)
                    if self._news_size > MOST_NEWS:
                        self.schedule_whole_log()

    def _request_log(self) -> None:
        self._lacks_entries = True
        self.schedule_whole_log()

    def must_request_log(self) -> bool:
        """Tell whether to request the whole log now. After True, the next request has to wait."""
        if self.workspace is None or not self._lacks_entries or self.host.steady() < self._ask_at:
            return False
        self._pause = min(self._pause * 2, 64.0)
        self._ask_at = self.host.steady() + self._pause
        return True

    def schedule_whole_log(self) -> None:
        """Emit the whole log later, as soon as it is complete."""
        self._new = []
        if self._due is None:
            self._due = self.host.steady()

    def emit_pending(self) -> None:
        """Emit the new events and a changed health. If the whole log is due, emit it instead of the new events."""
        self._news.notify_all()
        if self._emit is not None:
            health = self._health
            batch = self._next_batch()
            if batch.events or batch.starts_over or batch.health != health:
                with suppress(RuntimeError):  # the event loop has ended
                    self._emit(batch)

    def _next_batch(self, *, now: bool = False) -> Batch:
        """Return the events to emit. With `now`, return the whole log even if it is incomplete."""
        host, lost, events, starts_over = self.host, self.host.lost_since, list[Event](), False
        if self._due is None:
            events = [self._in_our_time(one) for one in self._new]
        elif self.workspace and (
            now or self._is_settled or (not self._lacks_entries and host.steady() >= self._due + _PATIENCE)
        ):
            starts_over, self._has_begun, self._due, self._news_size = self._has_begun, True, None, 0
            rules = self.workspace.rules
            rules = rules._replace(history_before=rules.history_before - host.offset)
            observations = (one for one in self.log.events() if not isinstance(one, Standing))
            events = [Ruled(0, host.now, rules), *map(self._in_our_time, observations)]
            if starts_over:
                self._lost = None
        self._new = []
        if lost is not None and self._lost is None:
            events.append(Lost(self._seq, lost))
            self._lost = lost
        elif lost is None and self._lost is not None and (self.workspace is None or self._due is None):
            events.append(Reached(self._seq, host.now - host.offset))
            self._lost = None
        self._health = self._own_health()
        return Batch(tuple(events), self._health, starts_over)

    @property
    def _is_settled(self) -> bool:
        """Whether the relay has read the whole workspace, and all its entries are here."""
        standing = self.log.standing if not self._lacks_entries else None
        return standing is not None and standing.settled

    @property
    def _missing_reason(self) -> str:
        """The reason why the host does not relay this workspace, or "" if no reason is known."""
        hello = self.host.hello
        if hello is None or self.workspace or self.host.heard_at is None:
            return ""
        return hello.missing.get(self._name) or f"it relays no {quote_text(self._name)}"

    def _in_our_time(self, event: Observation) -> Observation:
        """Convert the times in an event of the host to the clock of this machine."""
        self._seq = max(self._seq, event.seq)
        offset = self.host.offset
        moved = _shift_times(event, -offset) if offset else event
        if isinstance(moved, Decided):
            # Only this machine knows whether the key that signed the decision is the operator's own.
            by_other = moved.decision.asked_by not in self._own_key_ids()
            return moved._replace(decision=dataclasses.replace(moved.decision, by_other=by_other))
        return moved

    def _own_health(self) -> Health:
        """Return the health as the host reports it. If the workspace cannot be reached, the health says why."""
        label, hello, standing = self.host.label, self.host.hello, self.log.standing
        starting = Health("starting", f"{'connecting to' if self.host.heard_at is None else 'reading'} {label}")
        known = standing.health if standing is not None else starting
        is_lost = self.host.lost_since is not None
        if why := self.host.why_lost if is_lost else self._missing_reason:
            words = f"{label} {why}" if is_lost else f"{label}: {why}"
            if standing is None and self.workspace is None and hello:
                # If the host is off, the last hello that it stored still has a summary of the workspace.
                summary = next((one.summary[:100] for one in hello.workspaces if one.is_called(self._name)), "")
                words += f"; {summary} when it was heard last" if summary else ""
            return Health("degraded", words, (Problem(FILES, "", words), *known.problems))
        if not self._has_begun:
            return starting
        dropped = (Problem(FILES, "", dropped_words(label, kind)) for kind in sorted(self._dropped))
        return health_of(known.mode, known.detail, [*dropped, *known.problems])._replace(notices=known.notices)


class BrokerSource(RemoteSource):
    """Stands for all hosts of a NATS server. It is shown until one of the hosts has answered."""

    def __init__(self, host: RemoteHost, server: str, count: int):
        super().__init__(host, "\0")
        self._server, self._count = server, count

    def _own_health(self) -> Health:
        if self.host.lost_since is None:
            return Health("starting", f"connecting to {plural(self._count, 'host')}")
        why = f"no host that is trusted here has spoken there yet: `agentwatch relay --nats {self._server}` on it"
        words = f"{self._server}: {why}" if self.host.is_connected else self.host.why_lost.removeprefix(UNREACHED)
        return Health("degraded", words, (Problem(FILES, "", words),))


def _shift_times(value: Any, by: float, name: str = "") -> Any:
    """Return a copy of an event with its times shifted by so many seconds. Times in documents stay the same."""
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
    """A workspace of a host, with its address. For a whole NATS server, `unheard` is the number of its hosts."""

    host: RemoteHost
    name: str
    written: str
    unheard: int = 0


class Fleet:
    """Finds the workspaces behind addresses, and connects to their hosts. `close` ends all connections."""

    def __init__(self, addresses: Sequence[Address]):
        self._keys = Keys()
        self._known: dict[Path, _KnownWorkspace] = {}
        self._fixed: list[Place] = []  # the workspaces whose paths the addresses name
        # Hosts that list their workspaces themselves, by the name of the host or by its address.
        self._brokered: dict[str, _KnownWorkspace] = {}
        self._asked_for = {address.host for address in addresses if address.kind == "nats"}
        # All hosts of each NATS server that was given without a host, by the address of the server.
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
        """Add the workspaces of one host. All of them share one connection."""
        label = addresses[0].label
        link = ProcessLink(addresses[0], [one.path for one in addresses])
        key, accept = self._host_keys().get(label), partial(self._accept_key, label)
        host = RemoteHost(link, label, key=key, accept=accept, own_key=self._own_key)
        if not addresses[0].path:
            host.add_user(self)
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
        trusted = self._host_keys()
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
                host.add_user(self)
                self._brokered[name] = _KnownWorkspace(host, address.path, f"{server}/{name}")
            if not address.host:
                self._servers.setdefault(server, []).append(self._brokered[name].host)

    def _host_keys(self) -> dict[str, PublicKey]:
        return {one.name: one.public for one in self._keys.trusted_keys(Role.HOST)}

    def _own_key(self) -> str:
        with suppress(KeyProblemError):
            return self._keys.show().text
        return ""

    def _own_key_ids(self) -> list[str]:
        return [one.public.keyid for one in self._keys.trust().keys]

    def _accept_key(self, label: str, key: PublicKey) -> str:
        """Store the key of a new host. Return "", or the reason why the key is refused."""
        if key in self._host_keys().values():
            return ""
        if any(one.public == key for one in self._keys.known_keys(Role.HOST)):
            return f"its key is trusted no more: `agentwatch keys trust {key.text} --name {label} --host` does so"
        try:
            self._keys.trust_key(Role.HOST, key, label)
        except KeyProblemError as error:
            return f"its key cannot be noted: {error}"
        return ""

    # Hosts and their workspaces

    def find(self) -> Places:
        """Return the workspaces that are known now. Any thread may call it."""
        places = list(self._fixed)
        for key, (host, wanted, written, _) in self._brokered.items():
            label, hello, is_ssh = host.label, host.hello, written.startswith("ssh:")
            own = Path(f"/{key}" if is_ssh else f"/nats:{label}")
            relayed = hello.workspaces if hello else ()
            meant = {one.id: one for one in relayed if wanted in ("", one.name, one.id, one.path)}
            # The id is untrusted and becomes part of a path, so it must have the form of a workspace id.
            for one in filter(lambda one: is_workspace_id(one.id), meant.values()):
                place, address = own / one.id, f"{written}/{one.id}"
                if is_ssh:
                    # Use the same place as an address that names this path.
                    with suppress(UsageError):
                        place, address = (known := parse(f"{written}{quote(one.path)}")).place, known.written
                self._known[place] = _KnownWorkspace(host, one.id, address)
                places.append(Place(place, f"{label}: {one.name}", vanishes=True, host=label))
            if not relayed if is_ssh else hello is None and label in self._asked_for:
                # Over NATS, show only a host that an address names. Any other host may belong to another server.
                self._known[own] = _KnownWorkspace(host, wanted, written)
                places.append(Place(own, label, vanishes=True, host=label))
        for server, hosts in self._servers.items():
            if all(one.hello is None for one in hosts):
                own = Path(f"/nats:{server}")
                self._known[own] = _KnownWorkspace(hosts[0], "", server, unheard=len(hosts))
                places.append(Place(own, server, vanishes=True, host=server, hosts=len(hosts)))
        return Places(places)

    def wait_and_find(self) -> Places:
        """Wait until each host has listed its workspaces or is lost. Then return all workspaces."""
        until = time.monotonic() + SCAN_SECONDS
        # Connect to all hosts at the same time.
        for host in {self._known[place.workspace].host for place in self._fixed}:
            host.add_user(self)
        hosts = [known.host for known in self._brokered.values()]
        while time.monotonic() < until and any(one.hello is None and one.lost_since is None for one in hosts):
            time.sleep(_PAUSE_SECONDS)
        return self.find()

    def open_source(self, place: Path) -> RemoteSource:
        """Return a source for a workspace that `find` has returned."""
        host, name, written, unheard = self._known[place]
        source = BrokerSource(host, written, unheard) if unheard else RemoteSource(host, name, self._own_key_ids)
        self._sources.append(source)
        return source

    def directory_of(self, place: Path) -> str:
        """Return the path of a workspace on its host, or "" if the path is unknown."""
        host, name, *_ = self._known[place]
        known = host.hello.workspaces if host.hello else ()
        return next((one.path for one in known if one.is_called(name)), "")

    def address_of(self, place: Path) -> str:
        """Return the address of a workspace, for use on a command line."""
        return self._known[place].written

    def close(self) -> None:
        """End all connections."""
        for source in self._sources:
            source.stop()
        for known in (*self._known.values(), *self._brokered.values()):
            known.host.remove_user(self)
