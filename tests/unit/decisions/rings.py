"""A keyring of the system's, as the library knows them, that a test holds in its hand."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import keyring
from keyring.backend import KeyringBackend
from keyring.backends import fail
from keyring.errors import PasswordDeleteError


class Ring(KeyringBackend):
    """Keeps passwords in memory, or does what `instead` does."""

    priority = 5  # type: ignore[assignment]  as every backend gives it: the library takes it from the class

    def __init__(self) -> None:
        super().__init__()
        self.held: dict[tuple[str, str], str] = {}
        self.trouble: Exception | None = None
        self.drops = False

    def get_password(self, service: str, username: str) -> str | None:
        self._be_asked()
        return self.held.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        self._be_asked()
        if not self.drops:
            self.held[service, username] = password

    def delete_password(self, service: str, username: str) -> None:
        self._be_asked()
        if self.held.pop((service, username), None) is None:
            raise PasswordDeleteError("no such password")

    def _be_asked(self) -> None:
        if self.trouble is not None:
            raise self.trouble


class PlainRing(Ring):
    """As those that write into a file which everybody can read."""

    priority = 0.5  # type: ignore[assignment]


@contextmanager
def in_use(ring: KeyringBackend) -> Iterator[None]:
    """The keyring of the system for as long as the block lasts; behind it there is none."""
    keyring.set_keyring(ring)
    try:
        yield
    finally:
        keyring.set_keyring(fail.Keyring())
