"""What a consumer of a JetStream stream has to give, message after message, as it comes.

The library's own pull subscription waits for each message in a new task; its push subscriptions have a server send to
whatever subject they name.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from nats.aio.client import Client
    from nats.aio.msg import Msg

_BATCH: Final = 1_000
_LARGEST_BATCH: Final = 16 * 1024 * 1024
"""Bytes: a server gives up a connection on which 64 MiB wait."""
_EXPIRES: Final = 30.0
_HEARTBEAT: Final = 5.0
_SILENCE: Final = 3 * _HEARTBEAT
_SILENCE_AT_FIRST: Final = 2.0
"""Seconds after which a consumer that says nothing is not there (any more)."""
_OVER: Final = {"404", "408"}
"""What a server says when it has nothing (more) to give for a wish. A heartbeat is a 100."""


class ConsumerGoneError(Exception):
    """There is no such consumer (any more): make it again."""


async def follow(
    client: Client,
    stream: str,
    consumer: str,
    take: Callable[[Msg], Awaitable[None]],
) -> None:
    """Hand over every message, one after another, until the consumer is gone: ConsumerGoneError, always."""
    news = asyncio.Event()
    left, gone = 0, ""

    async def arrive(message: Msg) -> None:
        nonlocal left, gone
        status = (message.headers or {}).get("Status")
        if status is None:
            left -= 1
            await take(message)
        elif status in _OVER or (status == "409" and "MaxBytes" in (message.headers or {}).get("Description", "")):
            left = 0
        elif status != "100":
            gone = f"{status} {(message.headers or {}).get('Description', '')}"
        news.set()

    inbox = client.new_inbox()
    subscription = await client.subscribe(inbox, cb=arrive)
    # Only the first one is answered at once; and where there is no such consumer, none ever is.
    wish: dict[str, object] = {"batch": 1, "no_wait": True}
    silence = _SILENCE_AT_FIRST
    try:
        while not gone:
            if left <= 0:
                left = int(str(wish["batch"]))
                subject = f"$JS.API.CONSUMER.MSG.NEXT.{stream}.{consumer}"
                await client.publish(subject, json.dumps(wish).encode(), reply=inbox)
                wish = {"batch": _BATCH, "max_bytes": _LARGEST_BATCH}
                wish |= {"expires": int(_EXPIRES * 1e9), "idle_heartbeat": int(_HEARTBEAT * 1e9)}
            try:
                async with asyncio.timeout(silence):
                    await news.wait()
            except TimeoutError:
                gone = "it is silent"
            news.clear()
            silence = _SILENCE
        raise ConsumerGoneError(gone)
    finally:
        if client.is_connected:
            await subscription.unsubscribe()
