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
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar
from urllib.parse import urlsplit

import nats.errors
import nats.js.errors
from nats.aio.client import Client
from nats.js import api

from agentwatch.decisions.errors import KeyMissingError
from agentwatch.remote.nats_accounts import STREAM, host_of, host_subject, nkey_of, screen_subject, store, store_subject
from agentwatch.remote.pipe import Change, Link, LinkState, Receive, RelayEnd, pauses

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
_FILES: Final = ("NATS_CREDS", "NATS_NKEY")
"""The variables of the `nats` command that name a file with credentials."""

_NONCE: Final = re.compile(r"[A-Za-z0-9_-]{8,64}\Z")
"""The challenge of a server. Nothing else that we sign looks like it: no server can have a decision signed."""

_CREDS: Final = re.compile(
    r"\A(-+BEGIN NATS USER JWT-+\s+\S+\s+-+END .*-BEGIN USER NKEY SEED-+\s+)?SU[A-Z2-7]{56}\s", re.DOTALL
)
"""The beginning of a .creds file, or of one with the seed of an nkey."""

# The library tells its own errors to whoever listens: nobody, for they would stand on the screen.
logging.getLogger("nats").addHandler(logging.NullHandler())
logging.getLogger("nats").propagate = False


class Login(NamedTuple):
    """The login at a server: a key of ours, or a file of NATS (`.creds`, or the seed of an nkey)."""

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
            return {"nkeys_seed" if text.startswith("S") else "user_credentials": self.creds}
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
        if keys.why_encrypted() is None:
            return Login(keys.load())
    except KeyMissingError:
        pass
    return Login()


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
        self._thread = threading.Thread(target=lambda: asyncio.run(self._stay()), name="agentwatch-nats", daemon=True)

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

    async def _stay(self) -> None:
        self._loop = asyncio.get_running_loop()
        waits = pauses()
        while not self._stopped.is_set():
            began = self._loop.time()
            try:
                await self._live()
            except TroubleError as error:
                self._tell(LinkState(up=False, words=str(error)))
            if self._loop.time() > began + _STEADY_SECONDS:
                waits = pauses()
            end = self._loop.time() + next(waits)
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

        async with connected(self._server, self._login, self._name, failed, ended) as client:
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
                        if len(data) <= client.max_payload:
                            await client.publish(subject, data)
            finally:
                self._client = None
            if trouble and not self._stopped.is_set():
                raise trouble[0]


async def _nothing(*_: object) -> None:
    return


@asynccontextmanager
async def connected(
    server: str,
    login: Login,
    name: str,
    failed: Callable[[Exception], Awaitable[None]] = _nothing,
    ended: Callable[[], Awaitable[None]] = _nothing,
) -> AsyncIterator[Client]:
    """A client that is connected, and does not connect again. Raises TroubleError in words, also for what is done."""
    client = Client()
    is_there = False

    async def wrong(error: Exception) -> None:
        if not is_there:
            # Else it tries for two minutes.
            raise TroubleError(in_words(error, server)) from error
        await failed(error)

    try:
        options = login.options()
        if login.key is not None and not options:
            options = {"signature_cb": login.sign}
            # The library takes a key of one's own only as the text of its seed, and then signs whatever it is given.
            client._public_nkey = nkey_of(login.key.public)  # noqa: SLF001
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
        is_there = True
        if urlsplit(server).scheme == "tls" and not client._server_info.get("tls_required"):  # noqa: SLF001
            raise TroubleError(f"{shown(server)} does not encrypt, though its address says so; nothing was sent")  # noqa: TRY301
        yield client
    except Exception as error:
        raise TroubleError(in_words(error, server)) from error
    finally:
        with suppress(Exception):
            await asyncio.wait_for(client.close(), _CLOSE_SECONDS)
        # Also where it does not answer any more.
        with suppress(Exception):
            transport: Any = client._transport  # noqa: SLF001
            transport.close()
        await asyncio.sleep(0)


async def _quietly(doing: Awaitable[None]) -> None:
    with suppress(Exception):
        await doing


def asked(server: str, login: Login, ask: Callable[[Client], Awaitable[T]]) -> T:
    """Ask a server, on a connection for this alone. Blocks. Raises TroubleError in words."""

    async def answered() -> T:
        async with connected(server, login, "agentwatch") as client:
            return await ask(client)

    return asyncio.run(answered())


class NatsLink(Link):
    """The link to one host, on a connection that others share."""

    answers_in = 5.0

    def __init__(self, hub: NatsHub, host_key: PublicKey) -> None:
        self.host: Final = host_of(host_key)
        self.screen = hub.screen
        self._hub = hub
        self.receive: Receive
        self.change: Change

    def start(self, receive: Receive, change: Change) -> None:
        self.receive, self.change = receive, change
        self._hub.join(self)

    def send(self, message: bytes) -> None:
        self._hub.connection.send(host_subject(self.host), message)

    def stop(self) -> None:
        self._hub.leave(self)


class NatsHub:
    """A connection for the links to all hosts of a fleet. It is there while one of them is."""

    def __init__(self, server: str, login: Login) -> None:
        self.screen: Final = secrets.token_hex(8)
        self._links: dict[str, NatsLink] = {}
        self._lock = threading.Lock()
        self._state = LinkState(up=False)
        subjects = [screen_subject("*", self.screen)]
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
        if (link := self._links.get(message.subject.split(".")[2])) is not None:
            link.receive(message.data)


async def _give_kept(client: Client, link: NatsLink) -> None:
    """Tell a link the latest hello of its host that is kept."""
    kept = await client.jetstream().get_last_msg(STREAM, store_subject(link.host))
    link.receive(kept.data or b"")


class NatsEnd(RelayEnd):
    """The end of a relay on a server; `key` is the host's. `note` is called with each state."""

    def __init__(
        self, server: str, key: SigningKey, *, login: Login | None = None, note: Change = lambda _: None
    ) -> None:
        self.host: Final = host_of(key.public)
        self._note = note
        name, subjects = f"agentwatch {self.host}", [host_subject(self.host)]
        self._connection = Connection(server, login or Login(key), name, subjects, hear=self._hear, change=self._tell)
        self._receive: Receive
        self._change: Change

    def start(self, receive: Receive, change: Change) -> None:
        self._receive, self._change = receive, change
        self._connection.start()

    def send(self, message: bytes, to: str) -> None:
        if to:
            self._connection.send(screen_subject(self.host, to), message)

    def keep(self, message: bytes) -> None:
        self._connection.send(store_subject(self.host), message)

    def stop(self) -> None:
        self._connection.stop(_LAST_SECONDS)

    def _hear(self, message: Msg) -> None:
        self._receive(message.data)

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
        case ssl.SSLError():
            why, cure = getattr(error, "verify_message", "") or error.reason or text, "SSL_CERT_FILE names its CA"
            return f"TLS with {name} fails ({why}): look at its certificate; {cure}"
        case nats.js.errors.ServiceUnavailableError() | nats.errors.NoRespondersError():
            return f"{name} has no JetStream: write `jetstream {{}}` into its configuration"
        case TimeoutError() | nats.errors.TimeoutError() | nats.errors.UnexpectedEOF() | EOFError():
            return f"{name} does not answer (any more)"
        case OSError():
            known = error.errno if not isinstance(error, socket.gaierror) else None
            why = os.strerror(known) if known else error.strerror or text or type(error).__name__
            return f"{name} cannot be reached ({why}): is it running, and may this machine reach it?"
    if isinstance(error, nats.errors.AuthorizationError) or "auth" in text.lower():
        cure = "`agentwatch fleet config` prints the part of its configuration that does"
        return f"{name} does not know this key: {cure}"
    if "permissions violation" in text.lower():
        what = text.split("violation", 1)[1].strip(" '")
        return f"{name} does not allow this key the {what.removeprefix('for ')}: see `agentwatch fleet config`"
    return f"{name}: {text.removeprefix('nats: ') or type(error).__name__}"
