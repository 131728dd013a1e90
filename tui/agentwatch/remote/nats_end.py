"""The end of a relay on a NATS server: what the host says is kept there, and what was decided for it waits there."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections import OrderedDict, deque
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING, ClassVar, Final

import nats.errors
import nats.js.errors

from agentwatch.remote.link import Change, LinkState, RelayEnd, Take
from agentwatch.remote.nats_connection import Connection, Login, together
from agentwatch.remote.nats_names import DECISIONS, EVERYONE, host_of, live, said_by, said_to
from agentwatch.remote.nats_parts import Joiner, cut
from agentwatch.remote.nats_pull import ConsumerGoneError, follow
from agentwatch.remote.nats_words import TroubleError

if TYPE_CHECKING:
    from nats.aio.client import Client
    from nats.aio.msg import Msg

    from agentwatch.decisions.envelope import SigningKey

_AT_ONCE: Final = 256
"""Messages that are on their way to the server at the same time."""
_ACK_SECONDS: Final = 10.0
_LAST_SECONDS: Final = 0.5
_LOOK_AGAIN_SECONDS: Final = 1.0
_WORKING_SECONDS: Final = 2.0
"""How often the server is told that a decision is being recorded."""
_LATER_NANOSECONDS: Final = 5_000_000_000
"""When a decision comes again that could not be recorded."""
_UNCONFIRMED: Final = (
    "the server does not confirm what this host says: its streams are not made yet (`agentwatch fleet init`), or its"
    " disk is full; `agentwatch doctor --nats` on an operator's machine tells which"
)
_MOST_PASSING: Final = 1_000


class _Kept:
    """A message that the server is to keep. `parts` are those of it that it has not acknowledged."""

    __slots__ = ("data", "parts", "sent_at", "subject")

    def __init__(self, subject: str, data: bytes) -> None:
        self.subject, self.data = subject, data
        self.parts = 0
        self.sent_at = 0.0


class NatsEnd(RelayEnd):
    """`key` is the host's. `note` is called with each state."""

    by_key: ClassVar[bool] = True

    def __init__(
        self,
        server: str,
        key: SigningKey,
        *,
        login: Login | None = None,
        note: Change = lambda _: None,
    ) -> None:
        self.host: Final = host_of(key.public)
        self._note = note
        self._lock = threading.Lock()
        # By subject, in the order in which it was said: what the server does not have yet.
        self._waiting: OrderedDict[str, _Kept] = OrderedDict()
        self._sent: OrderedDict[str, _Kept] = OrderedDict()
        self._passing: deque[tuple[str, bytes]] = deque(maxlen=_MOST_PASSING)
        self._joiner = Joiner()
        # Of what was decided, and of the rest, one after the other.
        self._workers = ThreadPoolExecutor(2, "agentwatch-nats-take")
        self._news: asyncio.Event | None = None
        self._connection = Connection(server, login or Login(key), f"agentwatch {self.host}", self._serve)
        self._take: Take

    def start(self, take: Take, change: Change) -> None:
        self._take = take

        def tell(state: LinkState) -> None:
            self._note(state)
            change(state)

        self._connection.start(tell)

    def send(self, message: bytes, key: str = "", *, keep: bool = False, to: str = "") -> None:
        news = self._news
        with self._lock:
            if keep:
                subject = said_by(self.host, key)
                self._waiting.pop(subject, None)
                self._waiting[subject] = _Kept(subject, message)
            elif news is not None:
                self._passing.append((live(self.host, to or EVERYONE), message))
        if news is not None:
            self._connection.soon(news.set)

    def stop(self) -> None:
        end = time.monotonic() + _LAST_SECONDS
        while self._news is not None and (self._waiting or self._sent or self._passing) and time.monotonic() < end:
            time.sleep(0.01)
        self._connection.stop()
        self._workers.shutdown(wait=False, cancel_futures=True)

    async def _serve(self, client: Client) -> None:
        """All that there is to do on a connection, until it breaks."""
        with self._lock:
            self._waiting = OrderedDict({**self._sent, **self._waiting})
            self._sent = OrderedDict()
        self._news = asyncio.Event()
        self._news.set()
        try:
            await client.subscribe(said_to(self.host), cb=self._hear)
            await client.flush()
            await together(self._publish(client, self._news), self._queue(client), self._connection.obey())
        finally:
            self._news = None
            self._passing.clear()

    async def _publish(self, client: Client, news: asyncio.Event) -> None:
        """Send what there is, and forget what the server has acknowledged. Raises where it does not."""
        inbox = client.new_inbox()
        on_the_way: dict[str, _Kept] = {}
        failed: Exception | None = None

        async def acknowledged(message: Msg) -> None:
            nonlocal failed
            kept = on_the_way.pop(message.subject, None)
            try:
                _check(message)
            except Exception as error:  # noqa: BLE001  it is raised where it is waited for
                failed = error
            else:
                self._connection.up()
                if kept is not None:
                    kept.parts -= 1
                    with self._lock:
                        if kept.parts <= 0 and self._sent.get(kept.subject) is kept:
                            del self._sent[kept.subject]
            news.set()

        await client.subscribe(f"{inbox}.*", cb=acknowledged)
        number = 0
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(1.0):
                    await news.wait()
            news.clear()
            if failed is not None:
                raise failed
            while self._passing:
                subject, data = self._passing.popleft()
                for _, part, header in cut(data, client.max_payload):
                    await client.publish(subject, part, headers=header)
            while len(on_the_way) < _AT_ONCE and (kept := self._next()) is not None:
                for at, part, header in cut(kept.data, client.max_payload):
                    number, kept.parts = number + 1, kept.parts + 1
                    reply = f"{inbox}.{number}"
                    on_the_way[reply] = kept
                    subject = f"{kept.subject}.{at}" if at else kept.subject
                    await client.publish(subject, part, reply=reply, headers=header)
            if not on_the_way:
                # Else it is so once the server has confirmed something.
                self._connection.up()
            elif time.monotonic() - next(iter(on_the_way.values())).sent_at > _ACK_SECONDS:
                raise TroubleError(_UNCONFIRMED)

    def _next(self) -> _Kept | None:
        """What is to be sent next, noted as sent."""
        with self._lock:
            if not self._waiting:
                return None
            subject, kept = self._waiting.popitem(last=False)
            kept.parts, kept.sent_at = 0, time.monotonic()
            self._sent.pop(subject, None)
            self._sent[subject] = kept
            return kept

    async def _hear(self, message: Msg) -> None:
        """What a screen says, and nobody keeps."""
        with suppress(Exception):
            await self._hand_over("", message)

    async def _hand_over(self, way: str, message: Msg) -> bool:
        """Whether it is whole now, and was taken."""
        whole = self._joiner.add(way, message.data, message.headers)
        if whole is None:
            return False
        await asyncio.get_running_loop().run_in_executor(self._workers, self._take, whole)
        return True

    async def _queue(self, client: Client) -> None:
        """What was decided for this host: taken, and acknowledged once all is done that it asks for."""

        parts: list[str] = []

        async def decided(message: Msg) -> None:
            parts.append(message.reply)
            receipt = b"+ACK"
            working = asyncio.ensure_future(self._hand_over("decided", message))
            try:
                while not (await asyncio.wait((working,), timeout=_WORKING_SECONDS))[0]:
                    for part in parts:
                        await client.publish(part, b"+WPI")
                if not working.result():
                    return
            except ValueError:
                receipt = b"+TERM"
            except Exception:  # noqa: BLE001  the relay has said why; it comes again
                receipt = b'-NAK {"delay": %d}' % _LATER_NANOSECONDS
            for part in parts:
                await client.publish(part, receipt)
            parts.clear()

        while True:
            with suppress(ConsumerGoneError):
                await follow(client, DECISIONS, self.host, decided)
            # It is made by the first screen.
            await asyncio.sleep(_LOOK_AGAIN_SECONDS)


def _check(message: Msg) -> None:
    """Raises where the server has not kept a message."""
    if message.headers and message.headers.get("Status") == "503":
        raise nats.js.errors.NoStreamResponseError
    try:
        answer = json.loads(message.data)
    except ValueError as error:
        raise TroubleError("the server's receipt is none") from error
    if isinstance(answer, dict) and isinstance(answer.get("error"), dict):
        raise nats.js.errors.APIError.from_error(answer["error"])
