"""The operator's signing key and the keys of others that are trusted, kept where only the operator can read them.

<configuration directory>/keys/            0700
    decisions.key                          0600, PKCS8; encrypted where there is a passphrase
    decisions.pub                          for an orchestrator to start with
    decisions.keyring                      empty; there where the system's keyring holds the passphrase
    retired/<key id>.pub                   keys that were replaced: their signatures until then still count
    operators/<key id>.pub                 0600: who may decide here from another machine: key, name, since, until
    hosts/<key id>.pub                     the same, of hosts that are believed
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from pathlib import Path
from threading import Thread
from types import ModuleType
from typing import Final, NamedTuple, TypeVar

from agentwatch.config import config_directory
from agentwatch.decisions.envelope import PublicKey, SigningKey, Trust, TrustedKey, parse_public
from agentwatch.decisions.errors import KeyMissingError, KeyProblemError, reason
from agentwatch.decisions.record import time_of, written
from agentwatch.disk import DISK, Directory, Disk, LockedError
from agentwatch.text import exact, quoted, words_of

PRIVATE: Final = "decisions.key"
PUBLIC: Final = "decisions.pub"
RETIRED: Final = "retired"
KEYRING: Final = "decisions.keyring"

_LARGEST: Final = 64 * 1024
_LONGEST_NAME: Final = 60
_WRITABLE_BY_OTHERS: Final = 0o022
_OPEN_TO_OTHERS: Final = 0o077
_ENCRYPTED: Final = b"BEGIN ENCRYPTED PRIVATE KEY"
_RETIRED_FILE: Final = re.compile(r"(ed25519:\S+)\nretired (\S+)\n\Z")
_OTHER_FILE: Final = re.compile(r"(ed25519:\S+)\nname (\S[^\n]*)\ntrusted (\S+)\n(?:distrusted (\S+)\n)?\Z")


class Role(StrEnum):
    """The purpose that the key of somebody else is trusted for. The values are the names of the directories."""

    OPERATOR = "operators"
    """To ask this host for decisions."""
    HOST = "hosts"
    """To say what goes on at a host, and what was decided there."""


class OtherKey(NamedTuple):
    """A key, its name for the user, since when it is trusted, and from when on it was not any more."""

    public: PublicKey
    name: str
    trusted_at: str
    distrusted_at: str | None = None

    @property
    def trusted(self) -> TrustedKey:
        return TrustedKey(self.public, self.distrusted_at)


def checked_name(name: str) -> str:
    """A name that fits on one line, as it is shown. Raises KeyProblemError for any other."""
    if not name.strip() or name != name.strip() or len(name) > _LONGEST_NAME or exact(name) != name:
        raise KeyProblemError(f"a name of a key is a word or two, {_LONGEST_NAME} characters at most")
    return name


def introduced(text: str) -> tuple[str, PublicKey]:
    """The name and the key in a `NAME=KEY`. Raises KeyProblemError."""
    name, between, key = text.partition("=")
    if not between:
        raise KeyProblemError(f"{quoted(text)}: write NAME=KEY, with a key that `agentwatch keys` prints")
    return checked_name(name), parse_public(key)


class Keys:
    """The keys of one configuration directory, by default the user's. Nothing is read or made before it is asked for.

    Every method raises KeyProblemError in words; where there is no key, KeyMissingError.
    """

    def __init__(self, configuration: Path | None = None, disk: Disk = DISK) -> None:
        self.directory: Final = (config_directory() if configuration is None else configuration) / "keys"
        self._disk = disk

    # The operator's own

    def load(self, passphrase: Callable[[], str] | None = None) -> SigningKey:
        """The signing key. `passphrase` is asked where the key is encrypted."""
        with self._opened() as directory:
            data = self._pem(directory)
            key = _from_pem(data, passphrase, self.directory / PRIVATE)
            # A process that was killed between the two files left an old public key, or none.
            if _text_of(directory) != key.public.text:
                with suppress(OSError), directory.locked():
                    # Unless it was replaced while somebody typed the passphrase.
                    if self._pem(directory) == data:
                        directory.replace(PUBLIC, _line(key.public.text), 0o644)
            return key

    def create(self, passphrase: str | None = None) -> SigningKey:
        """Make the first key; that of a process that was faster is used, and `passphrase` not."""
        key = _generated()
        with self._made() as directory:
            if _text_of(directory) is not None and not _has(directory, PRIVATE):
                raise self._vanished()
            try:
                directory.publish(PRIVATE, _to_pem(key, passphrase))
            except FileExistsError:
                return _from_pem(self._pem(directory), lambda: passphrase or "", self.directory / PRIVATE)
            directory.replace(PUBLIC, _line(key.public.text), 0o644)
        return key

    def rotate(
        self, passphrase: str | None = None, now: datetime | None = None, *, signed_until: str = ""
    ) -> SigningKey:
        """Replace the key, also where the private one is lost. Its signatures until now stay accepted, or until
        `signed_until`, the time of its last record: the clock may have been set back."""
        key = _generated()
        with self._made() as directory, directory.locked():
            old = self._public(directory)
            if old is None:
                raise KeyMissingError(f"{self.directory} holds no key that could be replaced; create one first")
            # In this form letters sort as times do; keys are in the order of these times.
            before = [written(time_of(one.retired_at or "") + timedelta(seconds=1)) for one in _retired(directory)]
            since = max([written(now or datetime.now(UTC)), signed_until, *before])
            with directory.child(RETIRED, make=0o700) as retired:
                retired.replace(f"{old.keyid}.pub", _line(f"{old.text}\nretired {since}"), 0o644)
            directory.replace(PRIVATE, _to_pem(key, passphrase))
            directory.replace(PUBLIC, _line(key.public.text), 0o644)
        return key

    def protect(self, passphrase: str | None, current: Callable[[], str] | None = None) -> None:
        """Keep the same key under another passphrase, or none. `current` is asked where it is encrypted now."""
        with self._made() as directory, directory.locked():
            key = _from_pem(self._pem(directory), current, self.directory / PRIVATE)
            directory.replace(PRIVATE, _to_pem(key, passphrase))

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
        with self._opened("written") as directory:
            if chosen:
                directory.replace(KEYRING, b"")
            elif _has(directory, KEYRING):
                directory.remove(KEYRING)

    def show(self) -> PublicKey:
        """The public key."""
        with self._opened() as directory:
            public = self._public(directory)
        if public is None:
            raise self._none_yet()
        return public

    # Those that count

    def trust(self) -> Trust:
        """The keys whose records count, and who may ask for one; none where there is no key directory."""
        with suppress(KeyMissingError), self._opened() as directory:
            current = self._public(directory)
            retired = tuple(key for key in _retired(directory) if key.public != current)
            operators = tuple(one.trusted for one in _others(directory, Role.OPERATOR))
            return Trust((*retired, TrustedKey(current)) if current else retired, operators)
        return Trust()

    def others(self, role: Role) -> list[OtherKey]:
        """The keys of others that are trusted here, or were; none where there is no key directory."""
        with suppress(KeyMissingError), self._opened() as directory:
            return _others(directory, role)
        return []

    def trust_other(self, role: Role, public: PublicKey, name: str, now: datetime | None = None) -> OtherKey:
        """Trust the key of somebody else from now on. A key that is trusted already only gets the name."""
        checked_name(name)
        with self._made() as directory, directory.locked():
            if role is Role.HOST and public == self._public(directory):
                raise KeyProblemError("that is your own key: what you sign would count as said by that host")
            known = [one for one in _others(directory, role) if one.distrusted_at is None]
            if any(one.name == name and one.public != public for one in known):
                raise KeyProblemError(
                    f"{quoted(name)} is the name of another key; choose another, or distrust that one"
                )
            since = next((one.trusted_at for one in known if one.public == public), written(now or datetime.now(UTC)))
            other = OtherKey(public, name, since)
            _put_other(directory, role, other)
        return other

    def distrust_other(
        self, role: Role, public: PublicKey, now: datetime | None = None, *, signed_until: str = ""
    ) -> OtherKey:
        """Trust a key no more. Its records until now, or `signed_until` as in `rotate`, stay accepted."""
        with self._made() as directory, directory.locked():
            known = next((one for one in _others(directory, role) if one.public == public), None)
            if known is None:
                raise KeyMissingError(f"the key {public.keyid[:16]}… was never trusted here")
            if known.distrusted_at is None:
                known = known._replace(distrusted_at=max(written(now or datetime.now(UTC)), signed_until))
                _put_other(directory, role, known)
        return known

    # The directory

    @contextmanager
    def _opened(self, purpose: str = "read") -> Iterator[Directory]:
        with self._in_words(purpose):
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

    def _pem(self, directory: Directory) -> bytes:
        path = self.directory / PRIVATE
        try:
            status = directory.status(PRIVATE)
            data = directory.read(PRIVATE, _LARGEST)
        except FileNotFoundError:
            raise (self._none_yet() if _text_of(directory) is None else self._vanished()) from None
        if status.st_mode & _OPEN_TO_OTHERS or status.st_uid != os.geteuid():
            raise KeyProblemError(
                f"others can read {path} (mode {status.st_mode & 0o777:o}), and so sign in your name: chmod 600 {path},"
                " and rotate the key if somebody may have read it"
            )
        return data

    def _public(self, directory: Directory) -> PublicKey | None:
        """The public key, from the private one where it has no file; None where there is neither."""
        if (text := _text_of(directory)) is not None:
            return parse_public(text)
        if _has(directory, PRIVATE):
            return _from_pem(self._pem(directory), None, self.directory / PRIVATE).public
        return None

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


def _text_of(directory: Directory) -> str | None:
    with suppress(FileNotFoundError):
        return directory.read(PUBLIC, _LARGEST).decode("ascii", "replace").strip()
    return None


def _retired(directory: Directory) -> list[TrustedKey]:
    """The keys that were replaced, in that order."""
    found = [TrustedKey(public, since) for public, (since,) in _public_files(directory, RETIRED, _RETIRED_FILE)]
    return sorted(found, key=lambda key: (key.retired_at or "", key.public.keyid))


def _others(directory: Directory, role: Role) -> list[OtherKey]:
    """Those of one role, by their names. Raises KeyProblemError where others could have put theirs there."""
    found = []
    for public, (name, since, until) in _public_files(directory, role, _OTHER_FILE, guarded=True):
        with suppress(KeyProblemError):
            found.append(OtherKey(public, checked_name(name), since, until))
    return sorted(found, key=lambda one: (one.name, one.trusted_at, one.public.keyid))


def _public_files(
    keys: Directory, inner: str, form: re.Pattern[str], *, guarded: bool = False
) -> Iterator[tuple[PublicKey, tuple[str, ...]]]:
    """The keys in the files of a directory, and what else is in each. A file that is none of ours is no key."""
    try:
        directory = keys.child(inner)
    except FileNotFoundError:
        return
    with directory:
        for name in [".", *(name for name in directory.names() if name.endswith(".pub"))]:
            status = directory.status(name)
            if guarded and (status.st_mode & _WRITABLE_BY_OTHERS or status.st_uid != os.geteuid()):
                where = "" if name == "." else f"/{name}"
                raise KeyProblemError(
                    f"others can write {inner}{where} beside your keys, and add theirs: chmod go-w it"
                )
            match = None if name == "." else form.match(directory.read(name, _LARGEST).decode("utf-8", "replace"))
            with suppress(KeyProblemError, ValueError):
                if match is not None and name == f"{parse_public(match[1]).keyid}.pub":
                    for time in filter(None, match.groups()[2 if guarded else 1 :]):
                        time_of(time)
                    yield parse_public(match[1]), match.groups()[1:]


def _put_other(keys: Directory, role: Role, key: OtherKey) -> None:
    ended = "" if key.distrusted_at is None else f"\ndistrusted {key.distrusted_at}"
    with keys.child(role, make=0o700) as directory:
        text = f"{key.public.text}\nname {key.name}\ntrusted {key.trusted_at}{ended}"
        directory.replace(f"{key.public.keyid}.pub", _line(text))


# The private key needs imports that take 25 ms, and most runs sign nothing.


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


# The system's keyring, for operators who chose it. The library `keyring` and its backends are somebody else's code: it
# may ask the user on the desktop, break, or never answer, so it runs in a thread that is waited for.

SERVICE: Final = "agentwatch"
"""The name that the entry is filed under, together with the path of the key."""
SECONDS: Final = 60.0
"""A locked keyring asks the user on the desktop first; nobody may sit there."""
_RECOMMENDED: Final = 1
"""The priority from which on the library recommends a backend; below are files in plain text, and none at all."""

_Result = TypeVar("_Result")


def unlocked(keys: Keys) -> SigningKey:
    """The signing key, by the passphrase that the keyring holds. Raises KeyProblemError."""
    passphrase = stored(keys.directory / PRIVATE)
    try:
        return keys.load(lambda: passphrase)
    except KeyProblemError as error:
        raise KeyProblemError("what the keyring holds as the passphrase does not open it") from error


def stored(key: Path) -> str:
    """The passphrase of the key in this file. Raises KeyProblemError."""
    passphrase = _ask_keyring(lambda keyring: keyring.get_password(SERVICE, str(key)))
    if passphrase is None:
        again = "`agentwatch keys passphrase --keyring` puts it back"
        raise KeyProblemError(f"the keyring does not hold the passphrase any more ({again})")
    return str(passphrase)


def store(key: Path, passphrase: str) -> str:
    """Have the keyring hold the passphrase. Returns the name of the keyring; raises KeyProblemError."""

    def ask(keyring: ModuleType) -> str:
        backend = keyring.get_keyring()
        name: str = backend.name
        if 0 < backend.priority < _RECOMMENDED:
            raise KeyProblemError(f"the only keyring here is {quoted(name)}, and it does not protect what it holds")
        backend.set_password(SERVICE, str(key), passphrase)
        # There are backends that drop everything and say nothing.
        if backend.get_password(SERVICE, str(key)) != passphrase:
            raise KeyProblemError(f"the keyring {quoted(name)} did not keep it")
        return name

    return _ask_keyring(ask)


def forget(key: Path) -> None:
    """Have the keyring drop the passphrase; where it holds none, nothing is to be done. Raises KeyProblemError."""

    def ask(keyring: ModuleType) -> None:
        if keyring.get_password(SERVICE, str(key)) is not None:
            keyring.delete_password(SERVICE, str(key))

    _ask_keyring(ask)


def _ask_keyring(ask: Callable[[ModuleType], _Result]) -> _Result:
    answer: Future[_Result] = Future()

    def run() -> None:
        try:
            import keyring

            answer.set_result(ask(keyring))
        except Exception as error:  # noqa: BLE001  somebody else's code must not end ours
            answer.set_exception(error)

    Thread(target=run, name="agentwatch-keyring", daemon=True).start()
    try:
        return answer.result(SECONDS)
    except KeyProblemError:
        raise
    except ImportError as error:
        why = "the library that asks the keyring cannot be loaded (`pip install 'agentwatch[keyring]'`)"
        raise KeyProblemError(why) from error
    except TimeoutError as error:
        raise KeyProblemError(f"the keyring did not answer within {SECONDS:g} s") from error
    except Exception as error:
        # Whatever a backend raises: no keyring, a locked one, or a fault of its own. The prompt comes next.
        raise KeyProblemError(f"the keyring answered with an error, {quoted(words_of(error), 200)}") from error
