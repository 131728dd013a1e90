"""A NATS server between screens and relays: one connection each, which connects again by itself.

Every connection has a new client; messages lost with the last connection are requested again.
"""

from __future__ import annotations

import asyncio
import base64
import logging
import os
import re
import secrets
import ssl
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar
from urllib.parse import urlsplit

import nats.errors
import nats.js.errors
from nats.aio.client import Client
from nats.js import api

from agentwatch.decisions.errors import KeyMissingError
from agentwatch.remote.nats_accounts import (
    STREAM,
    host_of,
    host_subject,
    nkey_of,
    screen_subject,
    store_config,
    store_subject,
)
from agentwatch.remote.pipe import MOST_WAITING, Change, Link, LinkState, Receive, stay_connected

if TYPE_CHECKING:
    from nats.aio.msg import Msg

    from agentwatch.decisions.envelope import PublicKey, SigningKey
    from agentwatch.decisions.keys import Keys

T = TypeVar("T")
Do = Callable[[Client], Coroutine[Any, Any, None]]

CONNECT_SECONDS = 5.0
PING_SECONDS = 10  # a connection is given up after three unanswered pings
_NOTHING_KEPT = 10_037  # JetStream's number for it
_CLOSE_SECONDS = 0.4
_JOIN_SECONDS = 1.0
_FILES = ("NATS_CREDS", "NATS_NKEY")  # variables of the `nats` command that name a file with credentials

# The challenge of a server. Nothing else that we sign looks like it, so no server can get a decision signed.
_NONCE = re.compile(r"[A-Za-z0-9_-]{8,64}\Z")

# The beginning of a .creds file, or of a file with the seed of an nkey.
_CREDS = re.compile(
    r"\A(-+BEGIN NATS USER JWT-+\s+\S+\s+-+END .*-BEGIN USER NKEY SEED-+\s+)?SU[A-Z2-7]{56}\s", re.DOTALL
)

# The library logs its own errors, which would appear on the screen.
logging.getLogger("nats").addHandler(logging.NullHandler())
logging.getLogger("nats").propagate = False
# At the end of each encrypted connection asyncio warns of the library's behaviour.
logging.getLogger("asyncio").addFilter(lambda record: "eof_received" not in record.getMessage())


class Login(NamedTuple):
    """The login at a server: a key of ours, or a file of NATS (`.creds`, or the seed of an nkey)."""

    key: SigningKey | None = None
    creds: str | None = None

    def options(self) -> dict[str, Any]:
        """Return the library's options; raise TroubleError if the file holds no credentials."""
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
        """Return the signature of a server's challenge; raise TroubleError if it is no challenge."""
        if self.key is None or _NONCE.match(nonce) is None:
            raise TroubleError("the server asks for a signature of something that is no nonce: nothing was signed")
        return base64.b64encode(self.key.private.sign(nonce.encode()))


def credentials_file(creds: str | None) -> str | None:
    """Return the given file with credentials, else the one that the environment names."""
    return creds or next(filter(None, map(os.environ.get, _FILES)), None)


def login_of(creds: str | None, keys: Keys) -> Login:
    """Return the user's login: a named file, else the signing key if it needs no passphrase."""
    named = credentials_file(creds)
    if named is not None:
        return Login(creds=named)
    try:
        return Login(keys.load() if keys.why_encrypted() is None else None)
    except KeyMissingError:
        return Login()


async def _do_nothing(*_: object) -> None:
    return


@asynccontextmanager
async def connect(
    server: str,
    login: Login,
    name: str,
    failed: Callable[[Exception], Awaitable[None]] = _do_nothing,
    ended: Callable[[], Awaitable[None]] = _do_nothing,
) -> AsyncIterator[Client]:
    """Yield a connected client, which does not connect again; turn errors, also of the body, into TroubleError."""
    client = Client()
    is_there = False

    async def wrong(error: Exception) -> None:
        if not is_there:
            # Otherwise the library tries for two minutes.
            raise TroubleError(explain_error(error, server)) from error
        await failed(error)

    try:
        options = login.options()
        if login.key and not options:
            options = {"signature_cb": login.sign}
            # The library accepts a key only as the text of its seed, and then signs any data.
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
            words = f"{hide_password(server)} does not encrypt, though its address says so; nothing was sent"
            raise TroubleError(words)  # noqa: TRY301
        yield client
    except Exception as error:
        raise TroubleError(explain_error(error, server)) from error
    finally:
        with suppress(Exception):
            await asyncio.wait_for(client.close(), _CLOSE_SECONDS)
        # Also if the server does not answer any more.
        with suppress(Exception):
            transport: Any = client._transport  # noqa: SLF001
            transport.close()
        await asyncio.sleep(0)


async def _run_quietly(do: Do, client: Client) -> None:
    with suppress(Exception):
        await do(client)


def ask_server(server: str, login: Login, ask: Callable[[Client], Awaitable[T]]) -> T:
    """Ask a server, on a connection for this alone; blocks; raise TroubleError."""

    async def answered() -> T:
        async with connect(server, login, "agentwatch") as client:
            return await ask(client)

    return asyncio.run(answered())


class NatsHub:
    """A connection, in a thread, shared by the links to all hosts of a fleet, or for a `host`'s link to its screens. It
    lasts as long as one of these links."""

    def __init__(self, server: str, login: Login, host: str = "", note: Change = lambda _: None):
        self.screen = secrets.token_hex(8)
        self._server, self._login, self._host, self._note = server, login, host, note
        self._subject = host_subject(host) if host else screen_subject("*", self.screen)
        self._links: dict[str, NatsLink] = {}
        self._lock = threading.Lock()
        self._state: LinkState | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._over = asyncio.Event()
        self._stopped, self.again = threading.Event(), threading.Event()
        self._client: Client | None = None
        self._thread = threading.Thread(target=self._run, name="agentwatch-nats", daemon=True)

    def link(self, host_key: PublicKey) -> NatsLink:
        """Return a link to the host with this key."""
        return NatsLink(self, host_of(host_key))

    def join(self, link: NatsLink) -> None:
        """Add a link; the first one makes the connection."""
        with self._lock:
            has_begun, state = bool(self._links), self._state
            self._links[link.host] = link
        if not has_begun:
            self._thread.start()
        elif state:
            link.change(state)
            self.soon(partial(self._give_kept, link))

    def leave(self, link: NatsLink) -> None:
        """Remove a link; the last one ends the connection within a second, after sending what waits."""
        with self._lock:
            self._links.pop(link.host, None)
            if self._links:
                return
        self._stopped.set()
        self.again.set()
        with suppress(RuntimeError):
            if self._loop:
                self._loop.call_soon_threadsafe(self._over.set)
        if self._thread.ident is not None and threading.current_thread() is not self._thread:
            self._thread.join(_JOIN_SECONDS)

    def send(self, subject: str, data: bytes) -> None:
        """Send a message if there is a connection with room for it; any thread may call it; never blocks."""
        client = self._client
        if client is not None and client.pending_data_size < MOST_WAITING and len(data) <= client.max_payload:
            self.soon(lambda there: there.publish(subject, data))

    def soon(self, do: Do) -> None:
        """Run something on the current connection; any thread may call it."""
        client, loop = self._client, self._loop
        if client is not None and loop:
            doing = _run_quietly(do, client)
            try:
                asyncio.run_coroutine_threadsafe(doing, loop)
            except RuntimeError:
                doing.close()

    def _run(self) -> None:
        stay_connected(lambda: asyncio.run(self._live()), self._change, self._stopped, self.again)

    def _change(self, state: LinkState) -> None:
        with self._lock:
            is_new, self._state, links = state != self._state, state, list(self._links.values())
        if is_new:
            self._note(state)
            for link in links:
                link.change(state)

    async def _live(self) -> LinkState:
        """Run one connection from beginning to end, and return its last state."""
        trouble: list[BaseException] = []
        self._loop, self._over = asyncio.get_running_loop(), (over := asyncio.Event())
        if self._stopped.is_set():
            over.set()

        async def ended() -> None:
            trouble.append(client.last_error or EOFError())
            over.set()

        async def failed(error: Exception) -> None:
            if "permissions violation" in str(error).lower() and "$KV" not in str(error):
                trouble.append(error)
                over.set()

        name = f"agentwatch {self._host or self.screen}"
        try:
            async with connect(self._server, self._login, name, failed, ended) as client:
                await client.subscribe(self._subject, cb=self._hear)
                await client.flush(int(CONNECT_SECONDS))
                self._client = client
                self._change(LinkState(up=True))
                for link in list(self._links.values()) if not self._host else ():
                    self.soon(partial(self._give_kept, link))
                await over.wait()
                self._client = None
                if trouble:
                    raise trouble[0]
                await asyncio.wait_for(client.flush(), _CLOSE_SECONDS)
        except TroubleError as error:
            return LinkState(up=False, words=str(error))
        finally:
            self._client = None
        return LinkState(up=False)

    async def _hear(self, message: Msg) -> None:
        if (link := self._links.get(message.subject.split(".")[2])) is not None:
            link.receive(message.data)

    async def _give_kept(self, link: NatsLink, client: Client) -> None:
        """Pass a link the stored hello of its host, or the state that the host never sent one."""
        try:
            kept = await client.jetstream().get_last_msg(STREAM, store_subject(link.host))
        except nats.js.errors.NotFoundError as error:
            if error.err_code == _NOTHING_KEPT:
                server = hide_password(self._server)
                words = f"it has never spoken on {server}: `agentwatch relay --nats {server}` on it says why"
                link.change(LinkState(up=True, words=words))
        else:
            link.receive(kept.data or b"")


class NatsLink(Link):
    """The link to one host, on a connection that others share."""

    answers_in = 5.0

    def __init__(self, hub: NatsHub, host: str):
        self.host = host
        self.screen = hub.screen
        self._hub = hub
        self.receive: Receive
        self.change: Change

    def start(self, receive: Receive, change: Change) -> None:
        self.receive, self.change = receive, change
        self._hub.join(self)

    def send(self, message: bytes, to: str = "") -> None:  # noqa: ARG002
        self._hub.send(host_subject(self.host), message)

    def connect_again(self) -> None:
        self._hub.again.set()

    def stop(self) -> None:
        self._hub.leave(self)


class NatsEnd(NatsLink):
    """The relay's end on a server; `key` is the host's, and `note` is called with each state."""

    def __init__(self, server: str, key: SigningKey, *, login: Login | None = None, note: Change = lambda _: None):
        host = host_of(key.public)
        super().__init__(NatsHub(server, login or Login(key), host, note), host)

    def send(self, message: bytes, to: str = "") -> None:
        if to:
            self._hub.send(screen_subject(self.host, to), message)

    def keep(self, message: bytes) -> None:
        self._hub.send(store_subject(self.host), message)


# The store


async def outdated_store_settings(client: Client) -> dict[str, Any] | None:
    """Return the settings of the store that have to change, None if there is no store."""
    try:
        has = await client.jetstream().stream_info(STREAM)
    except nats.js.errors.NotFoundError:
        return None
    wanted = store_config(has.config.num_replicas or 1)
    return {name: value for name, value in wanted.items() if getattr(has.config, name) != value}


async def make_store(client: Client, replicas: int) -> None:
    """Make the store of a fleet, or correct its settings."""
    differs, stream = await outdated_store_settings(client), client.jetstream()
    await (stream.add_stream if differs is None else stream.update_stream)(api.StreamConfig(**store_config(replicas)))


# Words


class TroubleError(Exception):
    """A connection cannot do its work; the message is a plain sentence with the remedy."""


def url_of(server: str) -> str:
    """Return a server's address with its scheme, which may be left out."""
    return server if "://" in server else f"nats://{server}"


def hide_password(server: str) -> str:
    """Return a server's address without a password."""
    parts = urlsplit(url_of(server))
    return f"{parts.scheme}://{parts.hostname or ''}{f':{parts.port}' if parts.port else ''}"


def explain_error(error: BaseException, server: str) -> str:
    """Return why a server cannot be used, and the remedy, in a plain sentence."""
    name, text = hide_password(server), str(error)
    match error:
        case TroubleError():
            return text
        case ssl.SSLError():
            why = getattr(error, "verify_message", "") or error.reason or text
            return f"TLS with {name} fails ({why}): look at its certificate; SSL_CERT_FILE names its CA"
        case nats.js.errors.ServiceUnavailableError() | nats.errors.NoRespondersError():
            return f"{name} has no JetStream: write `jetstream {{}}` into its configuration"
        case TimeoutError() | nats.errors.TimeoutError() | nats.errors.UnexpectedEOF() | EOFError():
            return f"{name} does not answer (any more)"
        case OSError():
            why = os.strerror(error.errno) if error.errno and error.errno > 0 else error.strerror or text
            return f"{name} cannot be reached ({why}): is it running, and may this machine reach it?"
    if "auth" in text.lower() or "permissions violation" in text.lower():
        why = "does not know this key" if "auth" in text.lower() else f"does not allow this key that ({text})"
        return f"{name} {why}: `agentwatch fleet config FILE` writes what does into its configuration"
    return f"{name}: {text.removeprefix('nats: ') or type(error).__name__}"
