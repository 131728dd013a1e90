"""Messages through a pair of pipes: each with its length before it. The end of a relay that somebody runs by ssh.

What comes before the first line of ours is from the shell there, which may greet on every login.
"""

from __future__ import annotations

import os
import struct
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from typing import Final

from agentwatch.remote.link import Change, LinkState, RelayEnd, Take
from agentwatch.remote.wire import LARGEST_MESSAGE

GREETING: Final = b"agentwatch-relay\n"
"""Is the first line, in both directions."""
_MOST_NOISE: Final = 256 * 1024
_MOST_WAITING: Final = 64 * 1024 * 1024
"""Bytes that wait to be written: who does not read so much for so long asks again for what is dropped."""
_CHUNK: Final = 1024 * 1024
_JOIN_SECONDS: Final = 0.8


class CutError(Exception):
    """The other side has gone, or says what nobody of ours can say."""


def framed(message: bytes) -> bytes:
    """A message with its length before it."""
    return struct.pack(">I", len(message)) + message


def messages(descriptor: int) -> Iterator[bytes]:
    """The messages that come, from behind the greeting. Raises CutError at the end, wherever that is, and OSError."""
    data = bytearray()
    while (at := data.find(GREETING)) < 0:
        if len(data) > _MOST_NOISE:
            raise CutError("something else than a relay answers there")
        data += _read(descriptor)
    del data[: at + len(GREETING)]
    while True:
        while len(data) < 4 or len(data) < 4 + struct.unpack_from(">I", data)[0]:
            if len(data) >= 4 and struct.unpack_from(">I", data)[0] > LARGEST_MESSAGE:
                raise CutError("something else than a relay speaks there")
            data += _read(descriptor)
        end = 4 + struct.unpack_from(">I", data)[0]
        yield bytes(data[4:end])
        del data[:end]


def _read(descriptor: int) -> bytes:
    some = os.read(descriptor, _CHUNK)
    if not some:
        raise CutError("the connection has ended")
    return some


class Writer:
    """Writes messages in a thread of its own. Who sends never waits; what has no room is dropped."""

    def __init__(self, descriptor: int) -> None:
        # One of its own: who closes the other may have its number taken by another file before the thread has ended.
        self._descriptor = os.dup(descriptor)
        self._news = threading.Condition()
        self._waiting: deque[bytes] = deque([GREETING])
        self._size = 0
        self._is_over = False
        self._thread = threading.Thread(target=self._run, name="agentwatch-write", daemon=True)
        self._thread.start()

    def send(self, message: bytes) -> None:
        """Write a message, as soon as those before are written."""
        with self._news:
            if not self._is_over and self._size + len(message) <= _MOST_WAITING:
                self._waiting.append(framed(message))
                self._size += len(message)
                self._news.notify()

    def stop(self, seconds: float = _JOIN_SECONDS) -> None:
        """Write what waits, for as long at most, and no more."""
        with self._news:
            self._is_over = True
            self._news.notify()
        self._thread.join(seconds)

    def _run(self) -> None:
        try:
            self._write()
        except OSError:
            with self._news:
                self._is_over = True
        finally:
            os.close(self._descriptor)

    def _write(self) -> None:
        """Write what comes, to the end. Raises OSError where nobody reads it any more."""
        while True:
            with self._news:
                while not self._waiting and not self._is_over:
                    self._news.wait()
                if not self._waiting:
                    return
                data = b"".join(self._waiting)
                self._waiting.clear()
                self._size = 0
            view = memoryview(data)
            while view:
                view = view[os.write(self._descriptor, view) :]


class StdioEnd(RelayEnd):
    """The end of a relay on pipes: for one screen, and the relay ends with it."""

    def __init__(self, incoming: int, outgoing: int) -> None:
        self._incoming, self._outgoing = incoming, outgoing
        self._writer: Writer | None = None
        self._is_stopped = False

    def start(self, take: Take, change: Change) -> None:
        self._writer = Writer(self._outgoing)
        threading.Thread(target=self._read, args=(take, change), name="agentwatch-read", daemon=True).start()

    def send(self, message: bytes, key: str = "", *, keep: bool = False, to: str = "") -> None:  # noqa: ARG002
        if self._writer is not None:
            self._writer.send(message)

    def stop(self) -> None:
        self._is_stopped = True
        if self._writer is not None:
            self._writer.stop()

    def _read(self, take: Take, change: Change) -> None:
        words = "the screen has gone"
        try:
            for message in messages(self._incoming):
                if self._is_stopped:
                    return
                # Where it cannot be done, the screen asks again.
                with suppress(Exception):
                    take(message)
        except CutError as error:
            words = str(error)
        except OSError as error:
            words = f"the screen cannot be heard ({error.strerror})"
        if not self._is_stopped:
            change(LinkState(up=False, words=words, fatal=True))
