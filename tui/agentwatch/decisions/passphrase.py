"""The passphrase of the signing key as the system's keyring holds it, for operators who chose that.

The library `keyring` and what it talks to (Secret Service, KWallet, macOS Keychain, plug-ins of others) are used here
alone, and loaded only then. All of it is somebody else's code: it may ask the user on the desktop, break, or never
answer, so it runs in a thread that is waited for, and whatever it says becomes a sentence.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from threading import Thread
from types import ModuleType
from typing import Final, TypeVar

from agentwatch.decisions.envelope import SigningKey
from agentwatch.decisions.errors import KeyProblemError
from agentwatch.decisions.keys import PRIVATE, Keys
from agentwatch.text import quoted, words_of

SERVICE: Final = "agentwatch"
"""What the entry is filed under, together with the path of the key."""

SECONDS: Final = 60.0
"""A locked keyring asks the user on the desktop first; nobody may sit there."""

_RECOMMENDED: Final = 1
"""The priority from which on the library recommends a backend; below are files in plain text, and none at all."""

_Answer = TypeVar("_Answer")


def unlocked(keys: Keys) -> SigningKey:
    """The signing key, by the passphrase that the keyring holds. Raises KeyProblemError."""
    passphrase = stored(keys.directory / PRIVATE)
    try:
        return keys.load(lambda: passphrase)
    except KeyProblemError as error:
        raise KeyProblemError("what the keyring holds as the passphrase does not open it") from error


def stored(key: Path) -> str:
    """The passphrase of the key in this file. Raises KeyProblemError."""

    passphrase = _answered(lambda: _keyring().get_password(SERVICE, str(key)))
    if passphrase is None:
        again = "`agentwatch keys passphrase --keyring` puts it back"
        raise KeyProblemError(f"the keyring does not hold the passphrase any more ({again})")
    return str(passphrase)


def store(key: Path, passphrase: str) -> str:
    """Have the keyring hold the passphrase. Returns the name of the keyring; raises KeyProblemError."""

    def ask() -> str:
        backend = _keyring().get_keyring()
        name: str = backend.name
        if 0 < backend.priority < _RECOMMENDED:
            raise KeyProblemError(f"the only keyring here is {quoted(name)}, and it does not protect what it holds")
        backend.set_password(SERVICE, str(key), passphrase)
        # There are backends that drop everything and say nothing.
        if backend.get_password(SERVICE, str(key)) != passphrase:
            raise KeyProblemError(f"the keyring {quoted(name)} did not keep it")
        return name

    return _answered(ask)


def forget(key: Path) -> None:
    """Have the keyring drop the passphrase; where it holds none, nothing is to be done. Raises KeyProblemError."""

    def ask() -> None:
        if _keyring().get_password(SERVICE, str(key)) is not None:
            _keyring().delete_password(SERVICE, str(key))

    _answered(ask)


def _keyring() -> ModuleType:
    import keyring

    return keyring


def _answered(ask: Callable[[], _Answer]) -> _Answer:
    answer: Future[_Answer] = Future()

    def run() -> None:
        try:
            answer.set_result(ask())
        except Exception as error:  # noqa: BLE001  somebody else's code must not end ours
            answer.set_exception(error)

    Thread(target=run, name="agentwatch-keyring", daemon=True).start()
    try:
        return answer.result(SECONDS)
    except KeyProblemError:
        raise
    except Exception as error:  # whatever a backend raises: the prompt comes next, with the reason
        raise KeyProblemError(_in_words(error)) from error


def _in_words(error: Exception) -> str:
    if isinstance(error, ImportError):
        return "the library that asks the keyring cannot be loaded (`pip install 'agentwatch[keyring]'`)"
    if isinstance(error, TimeoutError):
        return f"the keyring did not answer within {SECONDS:g} s"
    from keyring.errors import KeyringLocked, NoKeyringError

    if isinstance(error, NoKeyringError):
        return "there is no keyring that could be asked from here (it takes a desktop's, and its session)"
    if isinstance(error, KeyringLocked):
        return "the keyring is locked, and nobody unlocked it"
    return f"the keyring answered with an error, {quoted(words_of(error), 200)}"
