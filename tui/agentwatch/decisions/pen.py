"""The key in the hand of an operator: loaded when something is to be signed, and unlocked once."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import Final

from agentwatch.decisions.envelope import SigningKey
from agentwatch.decisions.errors import KeyMissingError, KeyProblemError
from agentwatch.decisions.keys import Keys
from agentwatch.decisions.passphrase import unlocked
from agentwatch.disk import DISK, Disk


class Pen:
    """Signs with the key of one configuration directory. `passphrase` is asked, in the calling thread, where the key is
    encrypted."""

    def __init__(
        self, *, passphrase: Callable[[], str] | None = None, configuration: Path | None = None, disk: Disk = DISK
    ) -> None:
        self.keys: Final = Keys(configuration, disk)
        self._passphrase = passphrase
        self._signing: SigningKey | None = None

    def why_locked(self) -> str | None:
        """Why the passphrase has to be typed before the next decision can be signed; None where it has not.

        A keyring that the operator chose is asked first, and may ask the operator itself: it can take a minute.
        Raises KeyProblemError.
        """
        try:
            if not self.keys.is_encrypted() or (self._signing and self._signing.public == self.keys.show()):
                return None
        except KeyMissingError:
            return None
        why = "the key that signs decisions is encrypted"
        if not self.keys.in_keyring:
            return why
        try:
            self._signing = unlocked(self.keys)
        except KeyProblemError as error:
            return f"{why}, and {error}"
        return None

    def unlock(self, passphrase: str) -> None:
        """Load the encrypted key, for this and the next decisions. Raises KeyProblemError."""
        self._signing = self.keys.load(lambda: passphrase)

    def key(self) -> SigningKey:
        """The key that signs; the first decision makes it. Raises KeyProblemError."""
        try:
            if self._signing is None or self._signing.public != self.keys.show():
                self._signing = self.keys.load(self._passphrase)
        except KeyMissingError:
            if self.keys.trust().keys:
                # Only the private one is gone, and that was said.
                raise
            self.refuse_first()
            self._signing = self.keys.create()
        return self._signing

    @abstractmethod
    def refuse_first(self) -> None:
        """Raises DecisionError where a key was there before, so that a new one would not be the first."""
