"""A NATS server as a way between screens and relays: one connection each, which connects again by itself.

Every connection is a new one, with a new client: what was on its way when the last one broke is asked for again.
"""

from __future__ import annotations

import asyncio
import base64
import logging
import os
import re
import secrets
import socket
import ssl
import threading
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar
from urllib.parse import urlsplit

import nats.errors
import nats.js.errors
from nats.aio.client import Client
from nats.js import api

from agentwatch.decisions.errors import KeyMissingError
from agentwatch.decisions.keys import unlocked
from agentwatch.remote.nats_accounts import STREAM, host_of, kept_of, nkey_of, said_by, said_to, store
from agentwatch.remote.pipe import Change, Link, LinkState, Pauses, RelayEnd, Take
from agentwatch.remote.protocol import LARGEST_MESSAGE

if TYPE_CHECKING:
    from nats.aio.msg import Msg

    from agentwatch.decisions.envelope import PublicKey, SigningKey
    from agentwatch.decisions.keys import Keys

T = TypeVar("T")

CONNECT_SECONDS: Final = 5.0
PING_SECONDS: Final = 10
"""A connection on which nothing answers is given up after three of them."""
_CLOSE_SECONDS: Final = 0.4
_JOIN_SECONDS: Final = 1.0
_LAST_SECONDS: Final = 0.5
_STEADY_SECONDS: Final = 5.0
_MOST_WAITING: Final = 1_000
PART: Final = "Agentwatch-Part"
"""The header of a part of a message that is larger than a server takes: its name, its number and how many there are."""
_HEADER_ROOM: Final = 1024
_MOST_PARTS: Final = 1_024
_FILES: Final = ("NATS_CREDS", "NATS_NKEY")
"""The variables of the `nats` command that name a file with credentials."""

_NONCE: Final = re.compile(r"[A-Za-z0-9_-]{8,64}\Z")
"""What a server lets a user sign. Nothing else that we sign looks like it: no server can have a decision signed."""

_SEED: Final = "SU[A-Z2-7]{56}"
_CREDS: Final = re.compile(rf"-BEGIN NATS USER JWT-+\s+\S+\s+-+END .*-BEGIN USER NKEY SEED-+\s+{_SEED}\s", re.DOTALL)
"""What makes a .creds file."""

# The library tells its own errors to whoever listens: nobody, for they would stand on the screen.
logging.getLogger("nats").addHandler(logging.NullHandler())
logging.getLogger("nats").propagate = False


class Login(NamedTuple):
    """Who somebody is for a server: a key of ours, or a file of NATS (`.creds`, or the seed of an nkey)."""

    key: SigningKey | None = None
    creds: str | None = None

    def options(self) -> dict[str, Any]:
        """How the library is told. Raises TroubleError where the file is none."""
        if self.creds is None:
            return {}
        try:
            text = Path(self.creds).read_text("utf-8")
        except OSError as error:
            raise TroubleError(f"the credentials {self.creds} cannot be read: {error.strerror}") from error
        except UnicodeDecodeError:
            text = ""
        if _CREDS.search(text):
            return {"user_credentials": self.creds}
        if re.fullmatch(rf"{_SEED}\s*", text):
            return {"nkeys_seed": self.creds}
        raise TroubleError(f"{self.creds} is neither a .creds file of NATS nor the seed of an nkey (SU…)")

    def sign(self, nonce: str) -> bytes:
        """The signature of what a server asks to sign. Raises TroubleError for what none would ask for."""
        if self.key is None or _NONCE.match(nonce) is None:
            raise TroubleError("the server asks for a signature of something that is no nonce: nothing was signed")
        return base64.b64encode(self.key.private.sign(nonce.encode()))


def file_of(creds: str | None) -> str | None:
    """The file with credentials that is named, or that the environment names."""
    return creds or next(filter(None, map(os.environ.get, _FILES)), None)


def login_of(creds: str | None, keys: Keys) -> Login:
    """The user's login for a server: the file that is named, here or in the environment, else the key that signs
    decisions, where nobody has to type a passphrase for it. Raises KeyProblemError."""
    named = file_of(creds)
    if named is not None:
        return Login(creds=named)
    try:
        if not keys.is_encrypted():
            return Login(keys.load())
        if keys.in_keyring:
            return Login(unlocked(keys))
    except KeyMissingError:
        pass
    return Login()


def cut(data: bytes, largest: int) -> Iterator[tuple[bytes, dict[str, str] | None]]:
    """The parts in which a message travels, each with its header; None for a message that is one whole."""
    size = largest - _HEADER_ROOM
    if len(data) <= size:
        yield data, None
        return
    name, count = secrets.token_hex(8), -(-len(data) // size)
    for number in range(count):
        yield data[number * size : (number + 1) * size], {PART: f"{name} {number} {count}"}


class Joiner:
    """Puts the parts of messages together, which come in order or not at all: of each sender, those of the latest."""

    def __init__(self) -> None:
        self._open: dict[str, tuple[str, list[bytes]]] = {}

    def add(self, sender: str, data: bytes, headers: Mapping[str, str] | None) -> bytes | None:
        """The message that this is, or completes; None where something of it is still to come, or is lost."""
        part = headers.get(PART) if headers else None
        if part is None:
            return data
        name, number, count = [*part.split(" "), "", ""][:3]
        known, parts = self._open.pop(sender, ("", []))
        if not (number.isdecimal() and count.isdecimal() and int(number) < int(count) <= _MOST_PARTS):
            return None
        if number == "0":
            parts = []
        elif known != name or int(number) != len(parts):
            return None
        parts.append(data)
        if len(parts) == int(count):
            return b"".join(parts)
        if sum(map(len, parts)) <= LARGEST_MESSAGE:
            self._open[sender] = name, parts
        return None


class Connection:
    """A thread that keeps a client connected, which hears these subjects. `hear` is called with each message, `change`
    with each state, `greet` is done on each new connection: all in that thread."""

    def __init__(
        self,
        server: str,
        login: Login,
        name: str,
        subjects: Sequence[str],
        *,
        hear: Callable[[Msg], None],
        change: Change,
        greet: Callable[[Client], Awaitable[None]] | None = None,
    ) -> None:
        self._server, self._login, self._name, self._subjects = server, login, name, subjects
        self._hear, self._change, self._greet = hear, change, greet
        self._loop: asyncio.AbstractEventLoop | None = None
        self._news = asyncio.Event()
        self._outgoing: deque[tuple[str, bytes]] = deque(maxlen=_MOST_WAITING)
        self._stopped = threading.Event()
        self._client: Client | None = None
        self._state: LinkState | None = None
        self._thread = threading.Thread(target=self._run, name="agentwatch-nats", daemon=True)

    def start(self) -> None:
        """Connect, and stay so."""
        self._thread.start()

    def send(self, subject: str, data: bytes) -> None:
        """Send a message where there is a connection. Any thread may call it; it never blocks."""
        if self._client is not None:
            self._outgoing.append((subject, data))
            self._wake()

    def soon(self, do: Callable[[Client], Awaitable[None]]) -> None:
        """Do something on the connection that there is. Any thread may ask for it."""
        client, loop = self._client, self._loop
        if client is not None and loop is not None:
            with suppress(RuntimeError):
                asyncio.run_coroutine_threadsafe(_quietly(do(client)), loop)

    def stop(self, linger: float = 0.0) -> None:
        """End within a second, and leave what was sent so much time."""
        end = time.monotonic() + linger
        while self._outgoing and self._client is not None and time.monotonic() < end:
            time.sleep(0.01)
        self._stopped.set()
        self._wake()
        if self._thread.ident is not None and threading.current_thread() is not self._thread:
            self._thread.join(_JOIN_SECONDS)

    def _wake(self) -> None:
        if self._loop is not None:
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._news.set)

    def _run(self) -> None:
        asyncio.run(self._stay())

    async def _stay(self) -> None:
        self._loop = asyncio.get_running_loop()
        pauses = Pauses()
        while not self._stopped.is_set():
            began = self._loop.time()
            try:
                await self._live()
            except TroubleError as error:
                self._tell(LinkState(up=False, words=str(error)))
            if self._loop.time() > began + _STEADY_SECONDS:
                pauses.reset()
            end = self._loop.time() + pauses.again()
            while not self._stopped.is_set() and (left := end - self._loop.time()) > 0:
                self._news.clear()
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._news.wait(), left)

    def _tell(self, state: LinkState) -> None:
        if not self._stopped.is_set() and state != self._state:
            self._state = state
            self._change(state)

    async def _live(self) -> None:
        """One connection, from its beginning to its end. Raises TroubleError where it was not ended here."""
        trouble: list[BaseException] = []

        async def ended() -> None:
            trouble.append(client.last_error or EOFError())
            self._news.set()

        async def failed(error: Exception) -> None:
            if "permissions violation" in str(error).lower() and "$KV" not in str(error):
                trouble.append(error)
                self._news.set()

        async def hear(message: Msg) -> None:
            self._hear(message)

        client = await connected(self._server, self._login, self._name, failed, ended)
        try:
            for subject in self._subjects:
                await client.subscribe(subject, cb=hear)
            await client.flush(int(CONNECT_SECONDS))
            self._outgoing.clear()
            self._client = client
            self._tell(LinkState(up=True))
            if self._greet is not None:
                self.soon(self._greet)
            while not self._stopped.is_set() and not trouble:
                await self._news.wait()
                self._news.clear()
                while self._outgoing and not trouble:
                    subject, data = self._outgoing.popleft()
                    for part, header in cut(data, client.max_payload):
                        await client.publish(subject, part, headers=header)
        except (OSError, nats.errors.Error) as error:
            trouble.append(error)
        finally:
            self._client = None
            await _close(client)
        if trouble and not self._stopped.is_set():
            raise TroubleError(in_words(trouble[0], self._server)) from trouble[0]


async def _nothing(*_: object) -> None:
    return


async def connected(
    server: str,
    login: Login,
    name: str,
    failed: Callable[[Exception], Awaitable[None]] = _nothing,
    ended: Callable[[], Awaitable[None]] = _nothing,
) -> Client:
    """A client that is connected, and does not connect again. Raises TroubleError in words."""
    client = Client()
    options = login.options()
    is_there = False

    async def wrong(error: Exception) -> None:
        if not is_there:
            # Else it tries for two minutes.
            raise TroubleError(in_words(error, server)) from error
        await failed(error)

    if not options and login.key is not None:
        options = {"signature_cb": login.sign}
        # The library takes a key of one's own only as the text of its seed, and then signs whatever it is given.
        client._public_nkey = nkey_of(login.key.public)  # noqa: SLF001
    try:
        async with asyncio.timeout(CONNECT_SECONDS):
            await client.connect(
                url_of(server),
                name=name,
                allow_reconnect=False,
                connect_timeout=int(CONNECT_SECONDS),
                ping_interval=PING_SECONDS,
                max_outstanding_pings=2,
                error_cb=wrong,
                closed_cb=ended,
                **options,
            )
    except Exception as error:
        await _close(client)
        raise TroubleError(in_words(error, server)) from error
    is_there = True
    if urlsplit(server).scheme == "tls" and not client._server_info.get("tls_required"):  # noqa: SLF001
        await _close(client)
        raise TroubleError(f"{shown(server)} does not encrypt, though its address says so; nothing was sent")
    return client


async def _close(client: Client) -> None:
    """End a connection, also one that does not answer any more."""
    with suppress(Exception):
        await asyncio.wait_for(client.close(), _CLOSE_SECONDS)
    with suppress(Exception):
        transport: Any = client._transport  # noqa: SLF001
        transport.close()
    await asyncio.sleep(0)


async def _quietly(doing: Awaitable[None]) -> None:
    with suppress(Exception):
        await doing


def asked(server: str, login: Login, ask: Callable[[Client], Awaitable[T]]) -> T:
    """What a server answers, on a connection for this alone. Blocks. Raises TroubleError in words."""

    async def answered() -> T:
        client = await connected(server, login, "agentwatch")
        try:
            return await ask(client)
        except TroubleError:
            raise
        except (OSError, nats.errors.Error, nats.js.errors.Error) as error:
            raise TroubleError(in_words(error, server)) from error
        finally:
            await _close(client)

    return asyncio.run(answered())


class NatsLink(Link):
    """The link to one host, on a connection that others share."""

    up_answers_in = 5.0

    def __init__(self, hub: NatsHub, host_key: PublicKey) -> None:
        self.host: Final = host_of(host_key)
        self.screen = hub.screen
        self._hub = hub
        self.take: Take
        self.change: Change

    def start(self, take: Take, change: Change) -> None:
        self.take, self.change = take, change
        self._hub.join(self)

    def send(self, message: bytes) -> None:
        self._hub.connection.send(said_to(self.host), message)

    def stop(self) -> None:
        self._hub.leave(self)


class NatsHub:
    """A connection for the links to all hosts of a fleet. It is there while one of them is."""

    def __init__(self, server: str, login: Login) -> None:
        self.screen: Final = secrets.token_hex(8)
        self._links: dict[str, NatsLink] = {}
        self._lock = threading.Lock()
        self._state = LinkState(up=False)
        self._joiner = Joiner()
        subjects = [said_by("*", self.screen)]
        name = f"agentwatch screen {self.screen}"
        self.connection: Final = Connection(
            server, login, name, subjects, hear=self._hear, change=self._change, greet=self._greet
        )
        self._has_begun = False

    def link(self, host_key: PublicKey) -> NatsLink:
        """A link to the host with this key."""
        return NatsLink(self, host_key)

    def join(self, link: NatsLink) -> None:
        with self._lock:
            self._links[link.host] = link
            has_begun, self._has_begun, state = self._has_begun, True, self._state
        if not has_begun:
            self.connection.start()
        elif state.up or state.words:
            link.change(state)
            self.connection.soon(lambda client: _give_kept(client, link))

    def leave(self, link: NatsLink) -> None:
        with self._lock:
            self._links.pop(link.host, None)
            is_over = not self._links
        if is_over:
            self.connection.stop()

    def _change(self, state: LinkState) -> None:
        with self._lock:
            self._state, links = state, list(self._links.values())
        for link in links:
            link.change(state)

    async def _greet(self, client: Client) -> None:
        for link in list(self._links.values()):
            await _quietly(_give_kept(client, link))

    def _hear(self, message: Msg) -> None:
        host = message.subject.split(".")[2]
        if (link := self._links.get(host)) is not None:
            whole = self._joiner.add(host, message.data, message.headers)
            if whole is not None:
                link.take(whole)


async def _give_kept(client: Client, link: NatsLink) -> None:
    """Tell a link the latest hello of its host that is kept."""
    kept = await client.jetstream().get_last_msg(STREAM, kept_of(link.host))
    link.take(kept.data or b"")


class NatsEnd(RelayEnd):
    """The end of a relay on a server; `key` is the host's. `note` is called with each state."""

    def __init__(
        self, server: str, key: SigningKey, *, login: Login | None = None, note: Change = lambda _: None
    ) -> None:
        self.host: Final = host_of(key.public)
        self._note = note
        self._joiner = Joiner()
        name, subjects = f"agentwatch {self.host}", [said_to(self.host)]
        self._connection = Connection(server, login or Login(key), name, subjects, hear=self._hear, change=self._tell)
        self._take: Take
        self._change: Change

    def start(self, take: Take, change: Change) -> None:
        self._take, self._change = take, change
        self._connection.start()

    def send(self, message: bytes, to: str) -> None:
        if to:
            self._connection.send(said_by(self.host, to), message)

    def keep(self, message: bytes) -> None:
        self._connection.send(kept_of(self.host), message)

    def stop(self) -> None:
        self._connection.stop(_LAST_SECONDS)

    def _hear(self, message: Msg) -> None:
        whole = self._joiner.add("", message.data, message.headers)
        if whole is not None:
            self._take(whole)

    def _tell(self, state: LinkState) -> None:
        self._note(state)
        self._change(state)


# The store


async def store_settings(client: Client) -> dict[str, Any] | None:
    """The settings of the store that differ from what they have to be, None where there is no store."""
    try:
        has = await client.jetstream().stream_info(STREAM)
    except nats.js.errors.NotFoundError:
        return None
    wanted = store(has.config.num_replicas or 1)
    return {name: value for name, value in wanted.items() if getattr(has.config, name) != value}


async def make_store(client: Client, replicas: int) -> None:
    """Make the store of a fleet, or make it what it has to be."""
    differs, stream = await store_settings(client), client.jetstream()
    await (stream.add_stream if differs is None else stream.update_stream)(api.StreamConfig(**store(replicas)))


# Words


_CERTIFICATES: Final = {
    9: "is not valid yet: look at the clocks of the server and of this machine",
    10: "has expired: whoever runs the server has to renew it",
    62: (_OTHER_NAME := "is for another name: use one that it is for"),
    64: _OTHER_NAME,
}
"""What is wrong with a certificate, by OpenSSL's number of it; all else is about who has signed it."""


class TroubleError(Exception):
    """A connection cannot do what it is for. The message is a plain sentence that says what to do."""


def url_of(server: str) -> str:
    """A server's address with its scheme, which may be left out."""
    return server if "://" in server else f"nats://{server}"


def shown(server: str) -> str:
    """A server's address without a password in it."""
    parts = urlsplit(url_of(server))
    return f"{parts.scheme}://{parts.hostname or ''}{f':{parts.port}' if parts.port else ''}"


def in_words(error: BaseException, server: str) -> str:
    """Why a server cannot be used, and what to do, in a plain sentence."""
    name, text = shown(server), str(error)
    match error:
        case TroubleError():
            return text
        case ssl.SSLCertVerificationError():
            known = _CERTIFICATES.get(error.verify_code)
            why = known or f"is not trusted ({error.verify_message or text}): name the file of its CA in SSL_CERT_FILE"
            return f"the certificate of {name} {why}"
        case ssl.SSLError():
            return f"{name} and this machine do not agree on TLS: {error.reason or text}"
        case nats.errors.AuthorizationError():
            return _refused(name)
        case nats.js.errors.ServiceUnavailableError() | nats.errors.NoRespondersError():
            return f"{name} has no JetStream: write `jetstream {{}}` into its configuration"
        case TimeoutError() | nats.errors.TimeoutError():
            return f"{name} does not answer in time"
        case nats.errors.UnexpectedEOF() | EOFError():
            return f"{name} has ended the connection"
        case OSError():
            number = None if isinstance(error, socket.gaierror) else error.errno
            why = os.strerror(number) if number else error.strerror or text or type(error).__name__
            return f"{name} cannot be reached ({why}): is it running, and may this machine reach it?"
    if "authorization" in text.lower() or "authentication" in text.lower():
        return _refused(name)
    if "permissions violation" in text.lower():
        what = text.split("violation", 1)[1].strip(" '")
        return f"{name} does not allow this key the {what.removeprefix('for ')}: see `agentwatch fleet config`"
    return f"{name}: {text.removeprefix('nats: ') or type(error).__name__}"


def _refused(name: str) -> str:
    return f"{name} does not know this key: `agentwatch fleet config` prints the part of its configuration that does"
