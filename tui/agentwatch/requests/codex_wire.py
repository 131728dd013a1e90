"""Messages to and from the app server of Codex: JSON-RPC, one in each text frame of a WebSocket on a Unix socket."""

from __future__ import annotations

import json
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from agentwatch.sources.sessions.fields import Fields, inner

if TYPE_CHECKING:
    from websockets.sync.client import ClientConnection

_ANSWER_SECONDS: Final = 10.0
"""The server answers within this, or is none."""
_LARGEST: Final = 32 * 1024 * 1024


class WireError(Exception):
    """The connection is of no use any more."""


@contextmanager
def connected(socket: Path) -> Iterator[Wire]:
    """A connection, closed at the end. Raises WireError, here and whatever is done with it, once it is lost."""
    # Most have no such socket.
    from websockets.exceptions import WebSocketException
    from websockets.sync.client import unix_connect

    try:
        with unix_connect(
            str(socket),
            "ws://localhost/",
            compression=None,
            open_timeout=_ANSWER_SECONDS,
            close_timeout=1,
            max_size=_LARGEST,
        ) as link:
            yield Wire(link)
    except (OSError, EOFError, WebSocketException) as error:
        raise WireError(str(error)) from error


class Wire:
    """A connection to a server."""

    def __init__(self, link: ClientConnection) -> None:
        self._link = link
        self._last = 0
        self._waiting: deque[Fields] = deque()
        """Messages that came while an answer was waited for."""

    def call(self, method: str, **params: object) -> Fields:
        """What the server answers; empty where it is an error. What comes before it is received later."""
        asked, end = self.ask(method, **params), time.monotonic() + _ANSWER_SECONDS
        while (left := end - time.monotonic()) > 0:
            message = self._next(left)
            if message is not None and "method" not in message and message.get("id") == asked:
                return inner(message, "result")
            if message is not None:
                self._waiting.append(message)
        raise WireError(f"no answer to {method}")

    def ask(self, method: str, **params: object) -> int:
        """Call without waiting for what it says."""
        self._last += 1
        self.send({"id": self._last, "method": method, "params": params})
        return self._last

    def send(self, message: dict[str, Any]) -> None:
        self._link.send(json.dumps({"jsonrpc": "2.0", **message}))

    def receive(self, seconds: float) -> Fields | None:
        """The next message, None where none comes within so many seconds."""
        return self._waiting.popleft() if self._waiting else self._next(seconds)

    def _next(self, seconds: float) -> Fields | None:
        """What is no message ends the connection: the end of a request may have been in it."""
        try:
            message = json.loads(self._link.recv(timeout=seconds))
        except TimeoutError:
            return None
        except (ValueError, RecursionError) as error:
            raise WireError("a message is not JSON") from error
        if not isinstance(message, dict):
            raise WireError("a message is no object")
        return message
