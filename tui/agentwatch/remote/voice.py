"""Whether it is the host that speaks: with the key that it has to sign with, in a protocol that is known here."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from agentwatch.decisions.envelope import PublicKey, parse_public
from agentwatch.decisions.errors import KeyProblemError
from agentwatch.remote.frames import Frame, Hello, VersionError, frame_of
from agentwatch.remote.wire import Opener, parts_of, unpack


class Voice:
    """What one host says, and nothing that anybody else has made up.

    `key` is the one that it has to sign with; where that is not known, `accept` is asked about the key of the first
    hello: it says why that is refused, "" where it is not.
    """

    def __init__(self, label: str, key: PublicKey | None, accept: Callable[[PublicKey, str], str]) -> None:
        self.key = key
        self.why = ""
        """Why what it says is not believed, and what to do."""
        self._label, self._accept = label, accept
        self._opener = Opener([key] if key is not None else [])
        self._was_heard = False

    def hear(self, message: bytes) -> Frame | None:
        """The frame in a message; None where the host cannot have said it, or it says nothing that is known here."""
        try:
            frame = self._opened(message)
        except VersionError as error:
            self.why = str(error)
            return None
        except ValueError:
            self._suspect(message)
            return None
        self._was_heard |= frame is not None
        if isinstance(frame, Hello):
            self.why = ""
        return frame

    def _opened(self, message: bytes) -> Frame | None:
        """The frame in a message, if the host has signed it. Raises ValueError."""
        if self.key is not None:
            return frame_of(self._opener.open(message)[0])
        # It is believed that this is the host's key once it has signed who it is with it.
        hello = frame_of(unpack(parts_of(message)[2]))
        if not isinstance(hello, Hello):
            return None
        try:
            key = parse_public(hello.host_key)
        except KeyProblemError as error:
            raise ValueError(str(error)) from error
        Opener([key]).open(message)
        if why := self._accept(key, hello.host):
            self.why = why
            return None
        self._opener.expect(key)
        self.key = key
        return hello

    def _suspect(self, message: bytes) -> None:
        """Say it where a host that was not heard yet signs with another key than was noted."""
        with suppress(ValueError):
            if self.key is not None and not self._was_heard and parts_of(message)[1] != self.key.keyid:
                self.why = (
                    "it signs with another key than it had before, or its agentwatch is older; update agentwatch there,"
                    f" or if you know of a new key: `agentwatch keys distrust {self._label} --host`, then start again"
                )
