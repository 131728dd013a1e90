"""The operator's signing key: made once, kept where only the operator can read it, replaced without losing the past.

<configuration directory>/keys/            0700
    decisions.key                          0600, PKCS8; encrypted where there is a passphrase
    decisions.pub                          what an orchestrator is started with
    decisions.keyring                      empty; there where the system's keyring holds the passphrase
    retired/<key id>.pub                   keys that were replaced: what they signed until then still counts
    operators/, hosts/                     keys of others that are trusted here: see `others`
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from agentwatch.config import config_directory
from agentwatch.decisions.envelope import PublicKey, SigningKey, Trust, TrustedKey, parse_public
from agentwatch.decisions.errors import KeyMissingError, KeyProblemError, reason
from agentwatch.decisions.others import OtherKey, Role, checked_name, others, put
from agentwatch.decisions.record import time_of, written
from agentwatch.disk import DISK, Directory, Disk, LockedError
from agentwatch.text import quoted

PRIVATE: Final = "decisions.key"
PUBLIC: Final = "decisions.pub"
RETIRED: Final = "retired"
KEYRING: Final = "decisions.keyring"

_LARGEST: Final = 64 * 1024
_TICK: Final = timedelta(seconds=1)
_WRITABLE_BY_OTHERS: Final = 0o022
_OPEN_TO_OTHERS: Final = 0o077
_ENCRYPTED: Final = b"BEGIN ENCRYPTED PRIVATE KEY"
_RETIRED_FILE: Final = re.compile(r"(ed25519:\S+)\nretired (\S+)\n\Z")


class Keys:
    """The keys of one configuration directory, by default the user's. Nothing is read or made before it is asked for.

    Every method raises KeyProblemError in words; where there is no key, KeyMissingError.
    """

    def __init__(self, configuration: Path | None = None, disk: Disk = DISK) -> None:
        self.directory: Final = (config_directory() if configuration is None else configuration) / "keys"
        self._disk = disk

    def load(self, passphrase: Callable[[], str] | None = None) -> SigningKey:
        """The signing key. `passphrase` is asked where the key is encrypted."""
        with self._opened() as directory:
            data = self._pem(directory)
            key = _from_pem(data, passphrase, self.directory / PRIVATE)
            # A process that was killed between the two files left an old public key, or none.
            if self._text_of(directory) != key.public.text:
                with suppress(OSError), directory.locked():
                    # Unless it was replaced while somebody typed the passphrase.
                    if self._pem(directory) == data:
                        directory.replace(PUBLIC, _line(key.public.text), 0o644)
            return key

    def create(self, passphrase: str | None = None) -> SigningKey:
        """Make the first key; that of a process that was faster is taken, and `passphrase` not used."""
        key = _generated()
        with self._made() as directory:
            if self._text_of(directory) is not None and not _has(directory, PRIVATE):
                raise self._vanished()
            try:
                directory.publish(PRIVATE, _to_pem(key, passphrase))
            except FileExistsError:
                return self._read(directory, lambda: passphrase or "")
            directory.replace(PUBLIC, _line(key.public.text), 0o644)
        return key

    def rotate(
        self, passphrase: str | None = None, now: datetime | None = None, *, signed_until: str = ""
    ) -> SigningKey:
        """Replace the key, also where the private one is lost. What it signed until now stays accepted.

        Records that claim a later time are refused then, and so are those that follow one of the new key. The clock may
        have been set back: the key counts until `signed_until`, the time of its last record as records have it, and is
        never retired as early as one before it.
        """
        key = _generated()
        with self._made() as directory, directory.locked():
            old = self._public(directory)
            if old is None:
                raise KeyMissingError(f"{self.directory} holds no key that could be replaced; create one first")
            # In this form letters sort as times do; keys are in the order of these times.
            before = [written(time_of(key.retired_at) + _TICK) for key in self._retired(directory) if key.retired_at]
            since = f"retired {max([written(now or datetime.now(UTC)), signed_until, *before])}\n"
            with directory.child(RETIRED, make=0o700) as retired:
                retired.replace(f"{old.keyid}.pub", _line(old.text) + since.encode(), 0o644)
            directory.replace(PRIVATE, _to_pem(key, passphrase))
            directory.replace(PUBLIC, _line(key.public.text), 0o644)
        return key

    def protect(self, passphrase: str | None, current: Callable[[], str] | None = None) -> None:
        """Keep the same key under another passphrase, or none. `current` is asked where it is encrypted now."""
        with self._opened() as directory, self._in_words("written"), directory.locked():
            directory.replace(PRIVATE, _to_pem(self._read(directory, current), passphrase))

    def is_in_sight(self) -> bool:
        """Whether the private key can be read from here, as no sandbox allows."""
        with suppress(OSError), Directory.open(self.directory, self._disk) as directory:
            return bool(directory.read(PRIVATE, _LARGEST))
        return False

    def is_encrypted(self) -> bool:
        """Whether the signing key cannot be used without a passphrase."""
        with self._opened() as directory:
            return _ENCRYPTED in self._pem(directory)

    @property
    def in_keyring(self) -> bool:
        """Whether the operator chose that the system's keyring holds the passphrase. Nobody is asked for it."""
        with suppress(KeyMissingError), self._opened() as directory:
            return _has(directory, KEYRING)
        return False

    def choose_keyring(self, *, chosen: bool) -> None:
        """Remember that the system's keyring holds the passphrase, or that it does not."""
        with self._opened() as directory, self._in_words("written"):
            if chosen:
                directory.replace(KEYRING, b"")
            else:
                with suppress(FileNotFoundError):
                    directory.remove(KEYRING)

    def show(self) -> PublicKey:
        """The public key."""
        with self._opened() as directory:
            public = self._public(directory)
        if public is None:
            raise self._none_yet()
        return public

    def trust(self) -> Trust:
        """The keys whose records count, and who may ask for one; none where there is no key directory."""
        with suppress(KeyMissingError), self._opened() as directory:
            current = self._public(directory)
            retired = tuple(key for key in self._retired(directory) if key.public != current)
            operators = tuple(one.trusted for one in others(directory, Role.OPERATOR))
            return Trust((*retired, TrustedKey(current)) if current else retired, operators)
        return Trust()

    def others(self, role: Role) -> list[OtherKey]:
        """The keys of others that are trusted here, or were; none where there is no key directory."""
        with suppress(KeyMissingError), self._opened() as directory:
            return others(directory, role)
        return []

    def trust_other(self, role: Role, public: PublicKey, name: str, now: datetime | None = None) -> OtherKey:
        """Trust the key of somebody else from now on. A key that is trusted already only gets the name."""
        checked_name(name)
        with self._made() as directory, directory.locked():
            if role is Role.HOST and public == self._public(directory):
                raise KeyProblemError("that is your own key: what you sign would count as said by that host")
            known = others(directory, role)
            if any(one.name == name and one.public != public and one.distrusted_at is None for one in known):
                raise KeyProblemError(
                    f"{quoted(name)} is the name of another key; choose another, or distrust that one"
                )
            before = next((one for one in known if one.public == public and one.distrusted_at is None), None)
            trusted_at = written(now or datetime.now(UTC)) if before is None else before.trusted_at
            other = OtherKey(public, name, trusted_at)
            put(directory, role, other)
        return other

    def distrust_other(
        self, role: Role, public: PublicKey, now: datetime | None = None, *, signed_until: str = ""
    ) -> OtherKey:
        """Trust a key no more. What was recorded for it until now, or `signed_until` as in `rotate`, stays accepted."""
        with self._made() as directory, directory.locked():
            known = next((one for one in others(directory, role) if one.public == public), None)
            if known is None:
                raise KeyMissingError(f"the key {public.keyid[:16]}… was never trusted here")
            if known.distrusted_at is None:
                known = known._replace(distrusted_at=max(written(now or datetime.now(UTC)), signed_until))
                put(directory, role, known)
        return known

    @contextmanager
    def _opened(self) -> Iterator[Directory]:
        with self._in_words("read"):
            try:
                directory = Directory.open(self.directory, self._disk)
            except FileNotFoundError:
                raise self._none_yet() from None
            with directory:
                self._refuse_writable(directory)
                yield directory

    @contextmanager
    def _made(self) -> Iterator[Directory]:
        with self._in_words("written"), Directory.make(self.directory, self._disk) as directory:
            self._refuse_writable(directory)
            yield directory

    @contextmanager
    def _in_words(self, done: str) -> Iterator[None]:
        try:
            yield
        except LockedError as error:
            raise KeyProblemError(f"another process is changing the keys in {self.directory}; try again") from error
        except OSError as error:
            why = f"{reason(error)}; correct the permissions or the disk"
            raise KeyProblemError(f"the keys in {self.directory} cannot be {done}: {why}") from error

    def _refuse_writable(self, directory: Directory) -> None:
        own, parent = self._disk.fstat(directory.descriptor), self._disk.stat(self.directory.parent)
        for path, status in ((self.directory, own), (self.directory.parent, parent)):
            if status.st_mode & _WRITABLE_BY_OTHERS:
                raise KeyProblemError(f"others can write into {path}, and put their own key there: chmod go-w {path}")
            if status.st_uid != os.geteuid():
                raise KeyProblemError(f"{path} belongs to another user; run agentwatch as that user, or chown it")

    def _read(self, directory: Directory, passphrase: Callable[[], str] | None) -> SigningKey:
        return _from_pem(self._pem(directory), passphrase, self.directory / PRIVATE)

    def _pem(self, directory: Directory) -> bytes:
        path = self.directory / PRIVATE
        try:
            status = directory.status(PRIVATE)
            data = directory.read(PRIVATE, _LARGEST)
        except FileNotFoundError:
            is_lost = self._text_of(directory) is not None
            raise (self._vanished() if is_lost else self._none_yet()) from None
        if status.st_mode & _OPEN_TO_OTHERS or status.st_uid != os.geteuid():
            raise KeyProblemError(
                f"others can read {path} (mode {status.st_mode & 0o777:o}), and so sign in your name: chmod 600 {path},"
                " and rotate the key if somebody may have read it"
            )
        return data

    def _public(self, directory: Directory) -> PublicKey | None:
        """The public key, from the private one where it has no file; None where there is neither."""
        text = self._text_of(directory)
        if text is not None:
            return parse_public(text)
        return self._read(directory, None).public if _has(directory, PRIVATE) else None

    def _text_of(self, directory: Directory) -> str | None:
        with suppress(FileNotFoundError):
            return directory.read(PUBLIC, _LARGEST).decode("ascii", "replace").strip()
        return None

    def _retired(self, directory: Directory) -> list[TrustedKey]:
        """The keys that were replaced, in that order. A file that is none of ours is no key."""
        keys = []
        try:
            retired = directory.child(RETIRED)
        except FileNotFoundError:
            return []
        with retired:
            for name in retired.names():
                match = _RETIRED_FILE.match(retired.read(name, _LARGEST).decode("ascii", "replace"))
                with suppress(KeyProblemError, ValueError):
                    if match is not None and name == f"{parse_public(match[1]).keyid}.pub":
                        time_of(match[2])
                        keys.append(TrustedKey(parse_public(match[1]), match[2]))
        return sorted(keys, key=lambda key: (key.retired_at or "", key.public.keyid))

    def _none_yet(self) -> KeyMissingError:
        return KeyMissingError(f"there is no key in {self.directory}; it is made with the first decision")

    def _vanished(self) -> KeyMissingError:
        return KeyMissingError(
            f"the signing key {self.directory / PRIVATE} is gone, its public key is still there: put it back from"
            " a backup, or make a new one with `agentwatch keys rotate`; what was decided stays valid"
        )


def _has(directory: Directory, name: str) -> bool:
    try:
        directory.status(name)
    except FileNotFoundError:
        return False
    return True


def _line(text: str) -> bytes:
    return f"{text}\n".encode()


# What the private key needs is imported where it is used: it takes 25 ms, and most runs sign nothing.


def _generated() -> SigningKey:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    return SigningKey(Ed25519PrivateKey.generate())


def _from_pem(data: bytes, passphrase: Callable[[], str] | None, path: Path) -> SigningKey:
    """The key in a file. `passphrase` is asked where it is encrypted. Raises KeyProblemError."""
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        try:
            private = load_pem_private_key(data, None)
        except TypeError:
            if passphrase is None:
                raise KeyProblemError(f"{path} is encrypted; run this where it can ask for the passphrase") from None
            private = load_pem_private_key(data, passphrase().encode() or b"\0")
    except (ValueError, UnsupportedAlgorithm) as error:
        raise KeyProblemError(
            f"{path} cannot be opened: the passphrase is wrong, or the file is damaged; try again, or put it back from"
            " a backup"
        ) from error
    if not isinstance(private, Ed25519PrivateKey):
        raise KeyProblemError(f"{path} is a key of another kind than Ed25519; put the right one back, or rotate")
    return SigningKey(private)


def _to_pem(key: SigningKey, passphrase: str | None) -> bytes:
    """The bytes of the file of a key: PKCS8, encrypted where there is a passphrase."""
    from cryptography.hazmat.primitives import serialization as form

    encryption = form.BestAvailableEncryption(passphrase.encode()) if passphrase else form.NoEncryption()
    return key.private.private_bytes(form.Encoding.PEM, form.PrivateFormat.PKCS8, encryption)
