"""The operator's signing key and the trusted keys of others, readable by the operator alone.

<configuration directory>/keys/            0700
    decisions.key                          0600, PKCS8; encrypted if there is a passphrase
    decisions.pub                          for an orchestrator to start with
    retired/<key id>.pub                   replaced keys: their signatures until then still count
    operators/<key id>.pub                 0600: who may decide here from another machine: key, name, since, until
    hosts/<key id>.pub                     the same, of hosts that are believed
"""

import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from pathlib import Path

from agentwatch.config import config_directory
from agentwatch.decisions.envelope import PublicKey, SigningKey, Trust, TrustedKey, parse_public
from agentwatch.decisions.errors import KeyMissingError, KeyProblemError, reason, remedy
from agentwatch.decisions.record import time_of, written
from agentwatch.disk import DISK, Directory, Disk, is_open_to_others
from agentwatch.text import clean_name, quote_text

PRIVATE = "decisions.key"
PUBLIC = "decisions.pub"
RETIRED = "retired"

_LARGEST = 64 * 1024
_ENCRYPTED = b"BEGIN ENCRYPTED PRIVATE KEY"
_LONGEST_NAME = 60
_FILE = re.compile(r"(ed25519:\S+)\n(?:retired (\S+)\n|name (\S[^\n]*)\ntrusted (\S+)\n(?:distrusted (\S+)\n)?)\Z")


class Role(StrEnum):
    """The purpose for which another party's key is trusted; the values are the names of the directories."""

    OPERATOR = "operators"  # may ask this host for decisions
    HOST = "hosts"  # may report events and decisions of its own machine


def checked_name(name: str) -> str:
    """Return a key's name if it fits on one line and is safe to show; else raise KeyProblemError."""
    if not name.strip() or name != name.strip() or len(name) > _LONGEST_NAME or clean_name(name) != name:
        raise KeyProblemError(f"a name of a key is a word or two, {_LONGEST_NAME} characters at most")
    return name


def introduced(text: str) -> tuple[str, PublicKey]:
    """Return the name and the key in a `NAME=KEY`; raise KeyProblemError for other texts."""
    name, between, key = text.partition("=")
    if not between:
        raise KeyProblemError(f"{quote_text(text)}: write NAME=KEY, with a key that `agentwatch keys` prints")
    return checked_name(name), parse_public(key)


class Keys:
    """The keys of one configuration directory, by default the user's, read or made only on demand.

    Every method raises KeyProblemError with the reason, and KeyMissingError if there is no key.
    """

    def __init__(self, configuration: Path | None = None, disk: Disk = DISK):
        self.directory = (configuration or config_directory()) / "keys"
        self._disk = disk

    # The operator's own

    def load(self, passphrase: Callable[[], str] | None = None) -> SigningKey:
        """Return the signing key; `passphrase` is asked if the key is encrypted."""
        with self._opened() as directory:
            data = self._pem(directory)
            key = self._from_pem(data, passphrase)
            # A process that was killed between the two writes left an old public key, or none.
            if _text(directory, PUBLIC) != key.public.text:
                with suppress(OSError), directory.locked():
                    # Unless it was replaced while somebody typed the passphrase.
                    if self._pem(directory) == data:
                        directory.replace(PUBLIC, f"{key.public.text}\n".encode(), 0o644)
            return key

    def create(self, passphrase: str | None = None) -> SigningKey:
        """Make the first key; if another process was faster, return its key, without `passphrase`."""
        key = _generated()
        with self._opened(make=True) as directory:
            names = directory.names()
            if PRIVATE not in names and {PUBLIC, RETIRED}.intersection(names):
                raise self._missing(directory)
            try:
                directory.publish(PRIVATE, _to_pem(key, passphrase))
            except FileExistsError:
                return self._from_pem(self._pem(directory), lambda: passphrase or "")
            directory.replace(PUBLIC, f"{key.public.text}\n".encode(), 0o644)
        return key

    def rotate(self, passphrase: str | None = None) -> SigningKey:
        """Replace the key, even if the private one is lost; its signatures until now stay valid."""
        key = _generated()
        with self._opened(make=True) as directory, directory.locked():
            old = self._public(directory)
            # In this form the texts sort like the times, and keys are in the order of these times.
            retired = [time_of(one.retired_at or "") for one in _keys_in(directory, RETIRED)]
            since = max([_now(), *(written(one + timedelta(seconds=1)) for one in retired)])
            _put(directory, RETIRED, old, f"retired {since}")
            directory.replace(PRIVATE, _to_pem(key, passphrase))
            directory.replace(PUBLIC, f"{key.public.text}\n".encode(), 0o644)
        return key

    def protect(self, passphrase: str | None, current: Callable[[], str] | None = None) -> None:
        """Store the same key under another passphrase, or none; `current` is asked if it is encrypted now."""
        with self._opened(make=True) as directory, directory.locked():
            key = self._from_pem(self._pem(directory), current)
            directory.replace(PRIVATE, _to_pem(key, passphrase))

    def is_in_sight(self) -> bool:
        """Tell whether the private key can be read from here; a sandbox does not allow that."""
        with suppress(OSError), Directory.open(self.directory, self._disk) as directory:
            return bool(directory.read(PRIVATE, _LARGEST))
        return False

    def why_encrypted(self) -> str | None:
        """Return in words that the signing key needs a passphrase; None if it does not."""
        with self._opened() as directory:
            return "the key that signs decisions is encrypted" if _ENCRYPTED in self._pem(directory) else None

    def show(self) -> PublicKey:
        """Return the public key."""
        with self._opened() as directory:
            return self._public(directory)

    # Trusted keys

    def trust(self) -> Trust:
        """Return the keys whose records count, and those that may ask for one; none without a key directory."""
        with suppress(KeyMissingError), self._opened() as directory:
            keys, operators = _keys_in(directory, RETIRED), tuple(_keys_in(directory, Role.OPERATOR))
            with suppress(KeyMissingError):
                current = self._public(directory)
                keys = [*(key for key in keys if key.public != current), TrustedKey(current)]
            return Trust(tuple(keys), operators)
        return Trust()

    def others(self, role: Role) -> list[TrustedKey]:
        """Return the keys of others that are or were trusted here; none without a key directory."""
        with suppress(KeyMissingError), self._opened() as directory:
            return _keys_in(directory, role)
        return []

    def trusted(self, role: Role) -> list[TrustedKey]:
        """Return the keys of others that are trusted now."""
        return [one for one in self.others(role) if not one.retired_at]

    def trust_other(self, role: Role, public: PublicKey, name: str) -> TrustedKey:
        """Trust another party's key from now on, or rename one that is trusted already."""
        checked_name(name)
        with self._opened(make=True) as directory, directory.locked():
            if role is Role.HOST and _text(directory, PUBLIC) == public.text:
                raise KeyProblemError("that is your own key: what you sign would count as said by that host")
            known = {one.public: one for one in _keys_in(directory, role) if not one.retired_at}
            if name in (one.name for one in known.values() if one.public != public):
                raise KeyProblemError(
                    f"{quote_text(name)} is the name of another key; choose another, or distrust that one"
                )
            since = known[public].trusted_at if public in known else _now()
            _put(directory, role, public, f"name {name}\ntrusted {since}")
        return TrustedKey(public, None, name, since)

    def distrust_other(self, role: Role, public: PublicKey) -> TrustedKey:
        """Stop trusting a key; its records until now stay valid."""
        with self._opened(make=True) as directory, directory.locked():
            known = next((one for one in _keys_in(directory, role) if one.public == public), None)
            if not known:
                raise KeyMissingError(f"the key {public.keyid[:16]}… was never trusted here")
            known = known._replace(retired_at=known.retired_at or _now())
            about = f"name {known.name}\ntrusted {known.trusted_at}\ndistrusted {known.retired_at}"
            _put(directory, role, public, about)
        return known

    # The directory

    @contextmanager
    def _opened(self, *, make: bool = False) -> Iterator[Directory]:
        try:
            try:
                directory = (Directory.make if make else Directory.open)(self.directory, self._disk)
            except FileNotFoundError:
                raise self._missing() from None
            with directory:
                _refuse_open(self._disk.fstat(directory.descriptor), self.directory)
                _refuse_open(self._disk.stat(self.directory.parent), self.directory.parent)
                yield directory
        except OSError as error:
            why = f"{reason(error)}; {remedy(error)}, then try again"
            raise KeyProblemError(f"the keys in {self.directory}: {why}") from error

    def _pem(self, directory: Directory) -> bytes:
        path = self.directory / PRIVATE
        try:
            data, status, _ = directory.read_with_status(PRIVATE, _LARGEST)
        except FileNotFoundError:
            raise self._missing(directory) from None
        if is_open_to_others(status):
            raise KeyProblemError(
                f"others can read {path} (mode {status.st_mode & 0o777:o}), and so sign in your name: chmod 600 {path},"
                " and rotate the key if somebody may have read it"
            )
        return data

    def _public(self, directory: Directory) -> PublicKey:
        """Return the public key, from the private one if it has no file."""
        text = _text(directory, PUBLIC)
        return parse_public(text) if text else self._from_pem(self._pem(directory), None).public

    def _missing(self, directory: Directory | None = None) -> KeyMissingError:
        if not directory or not _text(directory, PUBLIC):
            return KeyMissingError(f"there is no key in {self.directory}; it is made with the first decision")
        return KeyMissingError(
            f"the signing key {self.directory / PRIVATE} is gone, its public key is still there: put it back from"
            " a backup, or make a new one with `agentwatch keys rotate`; what was decided stays valid"
        )

    def _from_pem(self, data: bytes, passphrase: Callable[[], str] | None) -> SigningKey:
        """Return the key in a file; `passphrase` is asked if it is encrypted."""
        from cryptography.exceptions import UnsupportedAlgorithm
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
        from cryptography.hazmat.primitives.serialization import load_pem_private_key

        path, secret = self.directory / PRIVATE, None
        if _ENCRYPTED in data:
            if not passphrase:
                raise KeyProblemError(f"{path} is encrypted; run this where it can ask for the passphrase")
            secret = passphrase().encode() or b"\0"
        try:
            private = load_pem_private_key(data, secret)
        except (ValueError, UnsupportedAlgorithm) as error:
            raise KeyProblemError(
                f"{path} cannot be opened: the passphrase is wrong, or the file is damaged; try again, or put it back"
                " from a backup"
            ) from error
        if not isinstance(private, Ed25519PrivateKey):
            raise KeyProblemError(f"{path} is a key of another kind than Ed25519; put the right one back, or rotate")
        return SigningKey(private)


def _now() -> str:
    return written(datetime.now(UTC))


def _text(directory: Directory, name: str) -> str | None:
    with suppress(FileNotFoundError):
        return directory.read(name, _LARGEST).decode("utf-8", "replace").strip()
    return None


def _put(keys: Directory, inner: str, public: PublicKey, about: str) -> None:
    with keys.child(inner, make=0o700) as directory:
        directory.replace(f"{public.keyid}.pub", f"{public.text}\n{about}\n".encode())


def _refuse_open(status: os.stat_result, path: Path) -> None:
    if is_open_to_others(status, 0o022):
        raise KeyProblemError(f"others can write into {path}, and put their own key there: chown it, chmod go-w {path}")


def _keys_in(keys: Directory, role: str) -> list[TrustedKey]:
    """Return the keys in a directory's valid files, sorted by name and time. Raise KeyProblemError if others can write
    there."""
    found = list[TrustedKey]()
    with suppress(FileNotFoundError), keys.child(role) as directory:
        _refuse_open(directory.status("."), Path(role))
        for name in directory.names():
            if not name.endswith(".pub"):
                continue
            data, status, _ = directory.read_with_status(name, _LARGEST)
            _refuse_open(status, Path(role, name))
            match = _FILE.match(data.decode("utf-8", "replace"))
            if not match or (match[2] is None) is (role == RETIRED):
                continue
            with suppress(KeyProblemError, ValueError):
                text, retired, called, since, until = match.groups(default="")
                key = TrustedKey(parse_public(text), retired or until or None, called and checked_name(called), since)
                for time in filter(None, (key.retired_at, since)):
                    time_of(time)
                if name == f"{key.public.keyid}.pub":
                    found.append(key)
    return sorted(found, key=lambda one: (one.name, one.trusted_at or one.retired_at or "", one.public.keyid))


# Most runs sign nothing, so imports for the private key stand where they are needed: they take 25 ms.


def _generated() -> SigningKey:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    return SigningKey(Ed25519PrivateKey.generate())


def _to_pem(key: SigningKey, passphrase: str | None) -> bytes:
    """Return the bytes of a key's file: PKCS8, encrypted if there is a passphrase."""
    from cryptography.hazmat.primitives import serialization as form

    encryption = form.BestAvailableEncryption(passphrase.encode()) if passphrase else form.NoEncryption()
    return key.private.private_bytes(form.Encoding.PEM, form.PrivateFormat.PKCS8, encryption)
