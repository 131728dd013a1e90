"""One connection to a NATS server, in a thread of its own: it connects again by itself, and says why it is down.

Every connection is a new one, with a new client: what was on its way when the last one broke is for those who use it.
"""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import re
import threading
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, NoReturn, TypeVar
from urllib.parse import urlsplit

import nats.errors
import nats.js.errors
from nats.aio.client import Client

from agentwatch.remote.link import Change, LinkState, Pauses
from agentwatch.remote.nats_names import nkey_of
from agentwatch.remote.nats_words import TroubleError, in_words, shown, url_of

if TYPE_CHECKING:
    from agentwatch.decisions.envelope import SigningKey

T = TypeVar("T")

CONNECT_SECONDS: Final = 5.0
PING_SECONDS: Final = 10
"""A connection on which nothing answers is given up after three of them."""
_CLOSE_SECONDS: Final = 0.4
_JOIN_SECONDS: Final = 1.0
_STEADY_SECONDS: Final = 5.0
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


class Connection:
    """A thread that keeps a client connected. `serve` is called with each new client, in that thread, and does all that
    there is to do on it until it raises. When it says that it is `up`, that is told, and when it is not any more."""

    def __init__(self, server: str, login: Login, name: str, serve: Callable[[Client], Awaitable[None]]) -> None:
        self.server: Final = server
        self._login, self._name, self._serve = login, name, serve
        self._change: Change
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopping: asyncio.Event | None = None
        self._stopped = False
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, name="agentwatch-nats", daemon=True)
        self._state: LinkState | None = None
        self._pauses = Pauses()
        self.trouble: TroubleError | None = None
        """What the server has said that it does not allow; it says so to nobody in particular."""
        self.troubled: asyncio.Event

    def start(self, change: Change) -> None:
        """Connect, and stay so."""
        self._change = change
        self._thread.start()

    def stop(self) -> None:
        """End within a second."""
        self._stopped = True
        if self._thread.ident is None:
            return
        self._ready.wait(_JOIN_SECONDS)
        if self._stopping is not None:
            self.soon(self._stopping.set)
        if threading.current_thread() is not self._thread:
            self._thread.join(_JOIN_SECONDS)

    def soon(self, call: Callable[[], object]) -> None:
        """Have something called in the thread; any thread may ask for it. Not at all once it has ended."""
        if self._loop is not None:
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(call)

    async def obey(self) -> None:
        """Wait until the server has said that it does not allow something. Raises TroubleError, always."""
        await self.troubled.wait()
        raise self.trouble or TroubleError("the server does not allow what is needed")

    def up(self) -> None:
        """What the connection is for can be done: say so."""
        self._tell(LinkState(True))

    def down(self, words: str) -> None:
        """It cannot be done, for this reason, though it is connected."""
        self._tell(LinkState(False, words))

    def _tell(self, state: LinkState) -> None:
        if self._stopped or state == self._state:
            return
        self._state = state
        self._change(state)

    def _run(self) -> None:
        try:
            asyncio.run(self._main())
        finally:
            self._ready.set()

    async def _main(self) -> None:
        self._loop, self._stopping = asyncio.get_running_loop(), asyncio.Event()
        self.troubled = asyncio.Event()
        self._ready.set()
        stopping = asyncio.ensure_future(self._stopping.wait())
        while not self._stopped:
            living = asyncio.ensure_future(self._live())
            await asyncio.wait((living, stopping), return_when=asyncio.FIRST_COMPLETED)
            if not living.done():
                living.cancel()
            await asyncio.wait((living,), timeout=_CLOSE_SECONDS * 2)
            if self._stopped:
                break
            self.down(str(living.exception() or "the connection ended"))
            with suppress(TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), self._pauses.again())
        stopping.cancel()

    async def _live(self) -> None:
        """One connection, from its beginning to its end. Raises TroubleError, always."""
        self.trouble = None
        self.troubled.clear()
        broken = asyncio.Event()
        began = asyncio.get_running_loop().time()
        client = await self._connected(broken)
        serving = asyncio.ensure_future(self._serve(client))
        breaking = asyncio.ensure_future(broken.wait())
        try:
            await asyncio.wait((serving, breaking), return_when=asyncio.FIRST_COMPLETED)
            if asyncio.get_running_loop().time() - began > _STEADY_SECONDS:
                self._pauses.reset()
            error = (serving.exception() if serving.done() else client.last_error) or EOFError()
            self._raise(error)
        finally:
            for task in (serving, breaking):
                task.cancel()
            await _close(client)

    def _raise(self, error: BaseException) -> NoReturn:
        """End a connection because of what has happened, or of what was not allowed before."""
        raise TroubleError(in_words(self.trouble or error, self.server)) from error

    async def _connected(self, broken: asyncio.Event) -> Client:
        async def ended() -> None:
            broken.set()

        async def failed(error: Exception) -> None:
            if "permissions violation" in str(error).lower():
                self.trouble = TroubleError(in_words(error, self.server))
                self.troubled.set()

        return await connected(self.server, self._login, self._name, failed, ended)


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


async def answer_of(client: Client, what: str, wish: Mapping[str, object] | None = None) -> dict[str, Any]:
    """What JetStream answers to a request of its protocol. Raises the library's errors."""
    body = json.dumps(wish).encode() if wish else b""
    answer = json.loads((await client.request(f"$JS.API.{what}", body, timeout=CONNECT_SECONDS)).data)
    if "error" in answer:
        raise nats.js.errors.APIError.from_error(answer["error"])
    return dict(answer)


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


async def together(*parts: Coroutine[Any, Any, None]) -> None:
    """Do all of these until one ends or fails, and then none. Raises what it raised."""
    tasks = [asyncio.ensure_future(part) for part in parts]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
