"""The end of a screen on a NATS server: one connection to hear all hosts of a fleet, or one of them."""

from __future__ import annotations

import asyncio
import hashlib
import secrets
import threading
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple

from nats.js import api

from agentwatch.remote.link import Change, Link, LinkState, Take
from agentwatch.remote.nats_connection import Connection, Login, answer_of, asked, together
from agentwatch.remote.nats_names import (
    DECISIONS,
    EVERYONE,
    HELLO,
    KEPT_DAYS,
    STREAM,
    all_said_by,
    decided_for,
    host_in,
    host_of,
    hosts_in,
    live,
    said_to,
)
from agentwatch.remote.nats_parts import Joiner, cut
from agentwatch.remote.nats_pull import ConsumerGoneError, follow

if TYPE_CHECKING:
    from nats.aio.client import Client
    from nats.aio.msg import Msg
    from nats.js import JetStreamContext

    from agentwatch.decisions.envelope import PublicKey

_ACK_SECONDS: Final = 5.0
"""When a decision comes again that a host has taken and not acknowledged."""
_FORGOTTEN_SECONDS: Final = 60.0
"""When the server forgets a reader that does not ask any more."""
_TOGETHER_SECONDS: Final = 0.05
"""Links that start within this time of each other read the stream together."""
_AGAIN_SECONDS: Final = 30
"""Seconds in which the same decision is queued once, however often it is sent; the host records it once in any case."""
_AT_ONCE: Final = 100
_MOST_WAITING: Final = 1_000
_IDLE_SECONDS: Final = KEPT_DAYS * 24 * 3600.0
"""When the server forgets the queue of a host that does not ask any more."""


class _Outgoing(NamedTuple):
    host: str
    data: bytes
    keep: bool


class NatsLink(Link):
    """The link to one host, on a connection that others share."""

    keeps: ClassVar[bool] = True

    def __init__(self, hub: NatsHub, host_key: PublicKey) -> None:
        self.host: Final = host_of(host_key)
        self.screen = hub.screen
        self._hub = hub
        self.take: Take
        self.change: Change

    def start(self, take: Take, change: Change) -> None:
        self.take, self.change = take, change
        self._hub.join(self)

    def send(self, message: bytes, *, keep: bool = False) -> None:
        self._hub.send(_Outgoing(self.host, message, keep))

    def stop(self) -> None:
        self._hub.leave(self)


class NatsHub:
    """A connection for the links to all hosts of a fleet, or to `host` alone. It is there while one of them is."""

    def __init__(self, server: str, login: Login, *, host: str | None = None) -> None:
        self.server: Final = server
        self.screen: Final = secrets.token_hex(8)
        self._login, self._host = login, host
        self._lock = threading.Lock()
        self._links: dict[str, NatsLink] = {}
        self._connection: Connection | None = None
        self._state = LinkState(False, "not connected yet")
        self._outgoing: deque[_Outgoing] = deque(maxlen=_MOST_WAITING)
        self._news: asyncio.Event | None = None
        self._joined: asyncio.Event | None = None
        self._joiner = Joiner()
        self._stream = ""
        self._seen = 0
        """The number in the stream up to which all links have everything; 0 where one of them has not."""
        self._anew = False
        self._unread = 0
        """How many messages of before are still to be read, until the links are told that they are up."""
        self._up: set[str] = set()
        """The hosts whose links were told."""

    def link(self, host_key: PublicKey) -> NatsLink:
        """A link to the host with this key."""
        return NatsLink(self, host_key)

    def join(self, link: NatsLink) -> None:
        with self._lock:
            self._links[link.host] = link
            self._anew = True
            if self._connection is None:
                name = f"agentwatch screen {self.screen}"
                self._connection = Connection(self.server, self._login, name, self._serve)
                self._connection.start(self._tell)
                return
            connection, joined, state = self._connection, self._joined, self._state
        if state.words and not state.up:
            connection.soon(lambda: link.change(state))
        if joined is not None:
            connection.soon(joined.set)

    def leave(self, link: NatsLink) -> None:
        with self._lock:
            if self._links.get(link.host) is link:
                del self._links[link.host]
                self._up.discard(link.host)
            connection = None if self._links else self._connection
            if connection is not None:
                self._connection = None
        if connection is not None:
            connection.stop()

    def send(self, outgoing: _Outgoing) -> None:
        with self._lock:
            news, connection = self._news, self._connection
            if news is None or connection is None:
                return
            self._outgoing.append(outgoing)
        connection.soon(news.set)

    def _tell(self, state: LinkState) -> None:
        with self._lock:
            self._state = state
            # Who is up is told once it has all of before: what it asks then is answered behind that.
            links = [] if state.up else list(self._links.values())
            self._up.clear()
        for link in links:
            link.change(state)

    def _caught_up(self) -> None:
        with self._lock:
            links = [link for host, link in self._links.items() if host not in self._up]
            self._up.update(link.host for link in links)
        for link in links:
            link.change(LinkState(True))

    async def _serve(self, client: Client) -> None:
        """All that there is to do on a connection, until it breaks."""
        connection = self._connection
        if connection is None:
            return
        try:
            for screen in (EVERYONE, self.screen):
                await client.subscribe(live(self._host, screen), cb=self._hear)
            await client.flush()
            await together(self._send_all(client), self._read(client, connection))
        finally:
            self._news = None
            self._outgoing.clear()

    async def _send_all(self, client: Client) -> None:
        news = asyncio.Event()
        self._news = news
        while True:
            await news.wait()
            news.clear()
            while self._outgoing:
                message = self._outgoing.popleft()
                subject = decided_for(message.host) if message.keep else said_to(message.host)
                for at, part, header in cut(message.data, client.max_payload):
                    headers = header
                    if message.keep:
                        # No receipt is waited for: it would only say that the server has it, and the host's counts.
                        name = hashlib.sha256(message.data).hexdigest()
                        now = int(asyncio.get_running_loop().time() / _AGAIN_SECONDS)
                        headers = {**(header or {}), "Nats-Msg-Id": f"{name}.{self.screen}.{now}.{at}"}
                    await client.publish(subject, part, headers=headers)

    async def _read(self, client: Client, connection: Connection) -> None:
        """What was said before, as the stream has it, and then what is said."""
        stream = client.jetstream()
        queues: set[str] = set()
        while True:
            await asyncio.sleep(_TOGETHER_SECONDS)
            joined = self._joined = asyncio.Event()
            # Before anybody is told: who decides then, or says that it is there, finds it.
            await self._make_queues(stream, queues)
            consumer = await self._make_reader(client)
            connection.up()
            if not self._unread:
                self._caught_up()
            with suppress(ConsumerGoneError):
                await together(follow(client, STREAM, consumer, self._hear), _wait(joined))
            with suppress(Exception):
                await stream.delete_consumer(STREAM, consumer)

    async def _make_queues(self, stream: JetStreamContext, made: set[str]) -> None:
        """Have what is decided for a host wait for it. Who may not do this can still look; then somebody else does."""
        with self._lock:
            hosts = sorted(self._links.keys() - made)
        made.update(hosts)
        for some in (hosts[at : at + _AT_ONCE] for at in range(0, len(hosts), _AT_ONCE)):
            configurations = (
                api.ConsumerConfig(
                    name=host,
                    durable_name=host,
                    filter_subject=decided_for(host),
                    ack_policy=api.AckPolicy.EXPLICIT,
                    ack_wait=_ACK_SECONDS,
                    inactive_threshold=_IDLE_SECONDS,
                )
                for host in some
            )
            making = (stream.add_consumer(DECISIONS, one) for one in configurations)
            if any(isinstance(one, BaseException) for one in await asyncio.gather(*making, return_exceptions=True)):
                return

    async def _make_reader(self, client: Client) -> str:
        info = await answer_of(client, f"STREAM.INFO.{STREAM}")
        if self._anew or info["created"] != self._stream or info["state"]["last_seq"] < self._seen:
            # There is a link that has nothing yet; or the stream was made anew, or put back from a backup.
            self._anew, self._stream, self._seen = False, info["created"], 0
        config = api.ConsumerConfig(
            name=secrets.token_hex(8),
            filter_subject=all_said_by(self._host),
            ack_policy=api.AckPolicy.NONE,
            inactive_threshold=_FORGOTTEN_SECONDS,
            mem_storage=True,
            num_replicas=1,
        )
        if self._seen:
            config.deliver_policy = api.DeliverPolicy.BY_START_SEQUENCE
            config.opt_start_seq = self._seen + 1
        made = await client.jetstream().add_consumer(STREAM, config)
        self._unread = made.num_pending or 0
        return str(made.name)

    async def _hear(self, message: Msg) -> None:
        self._give(message)
        if message.reply:
            if not self._anew:
                self._seen = max(self._seen, message.metadata.sequence.stream)
            if self._unread:
                self._unread -= 1
                if not self._unread or not message.metadata.num_pending:
                    self._unread = 0
                    self._caught_up()

    def _give(self, message: Msg) -> None:
        host = host_in(message.subject)
        link = self._links.get(host)
        if link is None:
            return
        try:
            whole = self._joiner.add(host, message.data, message.headers)
            if whole is not None:
                link.take(whole)
        except ValueError:
            # Not of ours: who has put it there can do no more than that.
            return


async def _wait(event: asyncio.Event) -> None:
    await event.wait()


def hosts_of(server: str, login: Login) -> list[str]:
    """The hosts that have said something lately. Raises TroubleError in words."""

    async def ask(client: Client) -> list[str]:
        wish = {"subjects_filter": f"agentwatch.from.*.{HELLO}"}
        return hosts_in(await answer_of(client, f"STREAM.INFO.{STREAM}", wish))

    return asked(server, login, ask)
