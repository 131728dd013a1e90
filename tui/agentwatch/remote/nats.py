"""Connects the screen on this machine with the relays on hosts over a NATS server, also after a lost connection.

Each connection has a new client of the NATS library. A screen asks again for lost messages.
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
    bucket,
    host_of,
    host_subject,
    nkey_of,
    screen_subject,
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
PING_SECONDS = 10  # seconds between two pings; a connection is given up after three pings without an answer
_NOTHING_KEPT = 10_037  # JetStream's error code for a subject without a stored message
_CLOSE_SECONDS = 0.4
_JOIN_SECONDS = 1.0
_FILES = ("NATS_CREDS", "NATS_NKEY")  # environment variables of the `nats` command that name a file with credentials

# The form of a nonce (the text that a server asks us to sign). No decision has this form, so no decision gets signed.
_NONCE = re.compile(r"[A-Za-z0-9_-]{8,64}\Z")

# Matches the beginning of a .creds file, or of a file with the seed of an nkey (a private key of NATS).
_CREDS = re.compile(
    r"\A(-+BEGIN NATS USER JWT-+\s+\S+\s+-+END .*-BEGIN USER NKEY SEED-+\s+)?SU[A-Z2-7]{56}\s", re.DOTALL
)

# Silence the log of the library, which would appear on the screen.
logging.getLogger("nats").addHandler(logging.NullHandler())
logging.getLogger("nats").propagate = False
# Silence a warning of asyncio at the end of each encrypted connection.
logging.getLogger("asyncio").addFilter(lambda record: "eof_received" not in record.getMessage())


class Login(NamedTuple):
    """The login to a server: a signing key, or the path of a file with NATS credentials."""

    key: SigningKey | None = None
    creds: str | None = None

    def options(self) -> dict[str, Any]:
        """Return the NATS options to log in with `creds`, or {}. Raise TroubleError if the file has no credentials."""
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
        """Sign the nonce of a server. This proves who logs in. Raise TroubleError if the text is no nonce."""
        if self.key is None or _NONCE.match(nonce) is None:
            raise TroubleError("the server asks for a signature of something that is no nonce: nothing was signed")
        return base64.b64encode(self.key.private.sign(nonce.encode()))


def credentials_file(creds: str | None) -> str | None:
    """Return the path of the file with credentials: `creds`, or the path in the environment, or None."""
    return creds or next(filter(None, map(os.environ.get, _FILES)), None)


def login_of(creds: str | None, keys: Keys) -> Login:
    """Return the user's login: a file with credentials, or the signing key if it has no passphrase."""
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
    """Yield a connected client. Every error, also an error in the `with` block, becomes a TroubleError."""
    client = Client()
    is_there = False

    async def on_error(error: Exception) -> None:
        if not is_there:
            # Give up at once. Otherwise the library tries for two minutes.
            raise TroubleError(explain_error(error, server)) from error
        await failed(error)

    try:
        options = login.options()
        if login.key and not options:
            options = {"signature_cb": login.sign}
            # The library's public interface needs the private key, and would sign any data with it.
            client._public_nkey = nkey_of(login.key.public)  # noqa: SLF001
        async with asyncio.timeout(CONNECT_SECONDS):
            await client.connect(
                url_of(server),
                name=name,
                allow_reconnect=False,
                connect_timeout=int(CONNECT_SECONDS),
                ping_interval=PING_SECONDS,
                max_outstanding_pings=2,
                error_cb=on_error,
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
        # Close the socket even if the server does not answer.
        with suppress(Exception):
            transport: Any = client._transport  # noqa: SLF001
            transport.close()
        await asyncio.sleep(0)


async def _run_quietly(do: Do, client: Client) -> None:
    with suppress(Exception):
        await do(client)


def ask_server(server: str, login: Login, ask: Callable[[Client], Awaitable[T]]) -> T:
    """Run `ask` on a new connection to a server, and return its result. Blocks. Raise TroubleError if that fails."""

    async def run_ask() -> T:
        async with connect(server, login, "agentwatch") as client:
            return await ask(client)

    return asyncio.run(run_ask())


class NatsHub:
    """A connection to a NATS server, in a thread. All links of a screen to one server share the connection.
    The first link starts the connection. The connection ends when all links are removed."""

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

    def add_link(self, link: NatsLink) -> None:
        """Add a link. The first link starts the connection."""
        with self._lock:
            has_begun, state = bool(self._links), self._state
            self._links[link.host] = link
        if not has_begun:
            self._thread.start()
        elif state:
            link.change(state)
            self.run_soon(partial(self._pass_stored_hello, link))

    def remove_link(self, link: NatsLink) -> None:
        """Remove a link. When no link is left, the connection sends its waiting messages and ends within a second."""
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
        """Send a message. Drop the message if it cannot be sent now. Any thread may call this. Never blocks."""
        client = self._client
        if client is not None and client.pending_data_size < MOST_WAITING and len(data) <= client.max_payload:
            self.run_soon(lambda there: there.publish(subject, data))

    def run_soon(self, do: Do) -> None:
        """If there is a connection, run a coroutine on it. Any thread may call this."""
        client, loop = self._client, self._loop
        if client is not None and loop:
            doing = _run_quietly(do, client)
            try:
                asyncio.run_coroutine_threadsafe(doing, loop)
            except RuntimeError:
                doing.close()

    def _run(self) -> None:
        stay_connected(lambda: asyncio.run(self._run_connection()), self._set_state, self._stopped, self.again)

    def _set_state(self, state: LinkState) -> None:
        with self._lock:
            is_new, self._state, links = state != self._state, state, list(self._links.values())
        if is_new:
            self._note(state)
            for link in links:
                link.change(state)

    async def _run_connection(self) -> LinkState:
        """Connect, pass on messages until the connection ends, and return the state at the end."""
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
                await client.subscribe(self._subject, cb=self._pass_message)
                await client.flush(int(CONNECT_SECONDS))
                self._client = client
                self._set_state(LinkState(up=True))
                for link in list(self._links.values()) if not self._host else ():
                    self.run_soon(partial(self._pass_stored_hello, link))
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

    async def _pass_message(self, message: Msg) -> None:
        if (link := self._links.get(message.subject.split(".")[2])) is not None:
            link.receive(message.data)

    async def _pass_stored_hello(self, link: NatsLink, client: Client) -> None:
        """Pass the stored hello of a host (its list of workspaces) to the link. If no hello is stored, report that."""
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
    """A screen's link to one host, on a connection that it shares with other links."""

    answer_seconds = 5.0

    def __init__(self, hub: NatsHub, host: str):
        self.host = host
        self.screen = hub.screen
        self._hub = hub
        self.receive: Receive
        self.change: Change

    def start(self, receive: Receive, change: Change) -> None:
        self.receive, self.change = receive, change
        self._hub.add_link(self)

    def send(self, message: bytes, to: str = "") -> None:  # noqa: ARG002
        self._hub.send(host_subject(self.host), message)

    def connect_again(self) -> None:
        self._hub.again.set()

    def stop(self) -> None:
        self._hub.remove_link(self)


class NatsEnd(NatsLink):
    """A relay's link to all screens. `key` is the key of the host. `note` is called with each new state."""

    def __init__(self, server: str, key: SigningKey, *, login: Login | None = None, note: Change = lambda _: None):
        host = host_of(key.public)
        super().__init__(NatsHub(server, login or Login(key), host, note), host)

    def send(self, message: bytes, to: str = "") -> None:
        if to:
            self._hub.send(screen_subject(self.host, to), message)

    def keep_hello(self, message: bytes) -> None:
        self._hub.send(store_subject(self.host), message)


# The store, which keeps the latest hello of each host


async def outdated_store_settings(client: Client) -> dict[str, Any] | None:
    """Return the store's settings that must change, with their new values. Return None if there is no store."""
    try:
        has = await client.jetstream().stream_info(STREAM)
    except nats.js.errors.NotFoundError:
        return None
    wanted = bucket(has.config.num_replicas or 1)
    return {name: value for name, value in wanted.items() if getattr(has.config, name) != value}


async def make_store(client: Client, replicas: int) -> None:
    """Create the store, or correct its settings."""
    differs, stream = await outdated_store_settings(client), client.jetstream()
    await (stream.add_stream if differs is None else stream.update_stream)(api.StreamConfig(**bucket(replicas)))


# Words


class TroubleError(Exception):
    """A NATS server cannot be used. The message is a plain sentence with the remedy."""


def url_of(server: str) -> str:
    """Return the address of a server. Add `nats://` to an address without a scheme."""
    return server if "://" in server else f"nats://{server}"


def hide_password(server: str) -> str:
    """Return the address of a server without user and password."""
    parts = urlsplit(url_of(server))
    return f"{parts.scheme}://{parts.hostname or ''}{f':{parts.port}' if parts.port else ''}"


def explain_error(error: BaseException, server: str) -> str:
    """Return a plain sentence that says why a server cannot be used, and gives the remedy."""
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
