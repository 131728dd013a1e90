"""The operator's signing key and the trusted keys of others. Only the operator can read these files.

<configuration directory>/keys/            0700
    decisions.key                          0600, PKCS8; encrypted if there is a passphrase
    decisions.pub                          the public key, to give to an orchestrator
    retired/<key id>.pub                   replaced keys; signatures from before the replacement stay valid
    operators/<key id>.pub                 0600, an operator on another machine who may ask this machine for decisions
    hosts/<key id>.pub                     0600, a host whose events and decisions are believed
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
from agentwatch.decisions.record import format_time, parse_time
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
    """The purpose for which the key of another person or host is trusted. The values are names of directories."""

    OPERATOR = "operators"  # may ask this host for decisions
    HOST = "hosts"  # may report events and decisions of its own machine


def check_name(name: str) -> str:
    """Return the name of a key. Raise KeyProblemError if the name is too long or not safe to show."""
    if not name.strip() or name != name.strip() or len(name) > _LONGEST_NAME or clean_name(name) != name:
        raise KeyProblemError(f"a name of a key is a word or two, {_LONGEST_NAME} characters at most")
    return name


def parse_name_and_key(text: str) -> tuple[str, PublicKey]:
    """Return the name and the key in the text `NAME=KEY`. Raise KeyProblemError for other texts."""
    name, between, key = text.partition("=")
    if not between:
        raise KeyProblemError(f"{quote_text(text)}: write NAME=KEY, with a key that `agentwatch keys` prints")
    return check_name(name), parse_public(key)


class Keys:
    """The keys in one configuration directory, by default the user's.

    Every method raises KeyProblemError with the reason, and KeyMissingError if there is no key.
    """

    def __init__(self, configuration: Path | None = None, disk: Disk = DISK):
        self.directory = (configuration or config_directory()) / "keys"
        self._disk = disk

    # The operator's own key

    def load(self, passphrase: Callable[[], str] | None = None) -> SigningKey:
        """Return the signing key. `passphrase` is called if the key is encrypted."""
        with self._open_directory() as directory:
            data = self._read_private(directory)
            key = self._parse_private(data, passphrase)
            # Repair the public key. A killed process may have left an old public key, or none.
            if _read_text(directory, PUBLIC) != key.public.text:
                with suppress(OSError), directory.locked():
                    # Another process may have replaced the key while somebody typed the passphrase.
                    if self._read_private(directory) == data:
                        directory.replace(PUBLIC, f"{key.public.text}\n".encode(), 0o644)
            return key

    def create(self, passphrase: str | None = None) -> SigningKey:
        """Make the first signing key and return it. If another process was faster, return that process's key."""
        key = _generate_key()
        with self._open_directory(make=True) as directory:
            names = directory.names()
            if PRIVATE not in names and {PUBLIC, RETIRED}.intersection(names):
                raise self._missing_error(directory)
            try:
                directory.publish(PRIVATE, _to_pem(key, passphrase))
            except FileExistsError:
                return self._parse_private(self._read_private(directory), lambda: passphrase or "")
            directory.replace(PUBLIC, f"{key.public.text}\n".encode(), 0o644)
        return key

    def rotate(self, passphrase: str | None = None) -> SigningKey:
        """Replace the signing key, even if it is lost, and return the new key. Earlier signatures stay valid."""
        key = _generate_key()
        with self._open_directory(make=True) as directory, directory.locked():
            old = self._read_public(directory)
            # Times in this form sort correctly as texts. The new time must be later than the times of all retired keys.
            retired = [parse_time(one.retired_at or "") for one in _read_keys(directory, RETIRED)]
            since = max([_now(), *(format_time(one + timedelta(seconds=1)) for one in retired)])
            _write_public(directory, RETIRED, old, f"retired {since}")
            directory.replace(PRIVATE, _to_pem(key, passphrase))
            directory.replace(PUBLIC, f"{key.public.text}\n".encode(), 0o644)
        return key

    def protect(self, passphrase: str | None, current: Callable[[], str] | None = None) -> None:
        """Store the signing key with a new passphrase, or with none. `current` returns the old passphrase."""
        with self._open_directory(make=True) as directory, directory.locked():
            key = self._parse_private(self._read_private(directory), current)
            directory.replace(PRIVATE, _to_pem(key, passphrase))

    def can_read_private(self) -> bool:
        """Tell whether this process can read the private key. A process in a sandbox cannot."""
        with suppress(OSError), Directory.open(self.directory, self._disk) as directory:
            return bool(directory.read(PRIVATE, _LARGEST))
        return False

    def why_encrypted(self) -> str | None:
        """Return a sentence if the signing key needs a passphrase, else None."""
        with self._open_directory() as directory:
            return "the key that signs decisions is encrypted" if _ENCRYPTED in self._read_private(directory) else None

    def show(self) -> PublicKey:
        """Return the public half of the signing key."""
        with self._open_directory() as directory:
            return self._read_public(directory)

    # Trusted keys

    def trust(self) -> Trust:
        """Return the operator's own keys, and the keys of operators on other machines who may ask for decisions."""
        with suppress(KeyMissingError), self._open_directory() as directory:
            keys, operators = _read_keys(directory, RETIRED), tuple(_read_keys(directory, Role.OPERATOR))
            with suppress(KeyMissingError):
                current = self._read_public(directory)
                keys = [*(key for key in keys if key.public != current), TrustedKey(current)]
            return Trust(tuple(keys), operators)
        return Trust()

    def known_keys(self, role: Role) -> list[TrustedKey]:
        """Return other people's and hosts' keys for this role, also those that are not trusted any more."""
        with suppress(KeyMissingError), self._open_directory() as directory:
            return _read_keys(directory, role)
        return []

    def trusted_keys(self, role: Role) -> list[TrustedKey]:
        """Return other people's and hosts' keys that are trusted for this role now."""
        return [one for one in self.known_keys(role) if not one.retired_at]

    def trust_key(self, role: Role, public: PublicKey, name: str) -> TrustedKey:
        """Trust the key of another person or host from now on. If the key is trusted already, only change its name."""
        check_name(name)
        with self._open_directory(make=True) as directory, directory.locked():
            if role is Role.HOST and _read_text(directory, PUBLIC) == public.text:
                raise KeyProblemError("that is your own key: what you sign would count as said by that host")
            known = {one.public: one for one in _read_keys(directory, role) if not one.retired_at}
            if name in (one.name for one in known.values() if one.public != public):
                raise KeyProblemError(
                    f"{quote_text(name)} is the name of another key; choose another, or distrust that one"
                )
            since = known[public].trusted_at if public in known else _now()
            _write_public(directory, role, public, f"name {name}\ntrusted {since}")
        return TrustedKey(public, None, name, since)

    def distrust_key(self, role: Role, public: PublicKey) -> TrustedKey:
        """Stop trusting the key of another person or host. Records that it signed until now stay valid."""
        with self._open_directory(make=True) as directory, directory.locked():
            known = next((one for one in _read_keys(directory, role) if one.public == public), None)
            if not known:
                raise KeyMissingError(f"the key {public.keyid[:16]}… was never trusted here")
            known = known._replace(retired_at=known.retired_at or _now())
            about = f"name {known.name}\ntrusted {known.trusted_at}\ndistrusted {known.retired_at}"
            _write_public(directory, role, public, about)
        return known

    # The directory

    @contextmanager
    def _open_directory(self, *, make: bool = False) -> Iterator[Directory]:
        try:
            try:
                directory = (Directory.open_or_make if make else Directory.open)(self.directory, self._disk)
            except FileNotFoundError:
                raise self._missing_error() from None
            with directory:
                _refuse_open(self._disk.fstat(directory.descriptor), self.directory)
                _refuse_open(self._disk.stat(self.directory.parent), self.directory.parent)
                yield directory
        except OSError as error:
            why = f"{reason(error)}; {remedy(error)}, then try again"
            raise KeyProblemError(f"the keys in {self.directory}: {why}") from error

    def _read_private(self, directory: Directory) -> bytes:
        path = self.directory / PRIVATE
        try:
            data, status, _ = directory.read_with_status(PRIVATE, _LARGEST)
        except FileNotFoundError:
            raise self._missing_error(directory) from None
        if is_open_to_others(status):
            raise KeyProblemError(
                f"others can read {path} (mode {status.st_mode & 0o777:o}), and so sign in your name: chmod 600 {path},"
                " and rotate the key if somebody may have read it"
            )
        return data

    def _read_public(self, directory: Directory) -> PublicKey:
        """Return the public key from its file, or from the private key if the file is missing."""
        text = _read_text(directory, PUBLIC)
        return parse_public(text) if text else self._parse_private(self._read_private(directory), None).public

    def _missing_error(self, directory: Directory | None = None) -> KeyMissingError:
        if not directory or not _read_text(directory, PUBLIC):
            return KeyMissingError(f"there is no key in {self.directory}; it is made with the first decision")
        return KeyMissingError(
            f"the signing key {self.directory / PRIVATE} is gone, its public key is still there: put it back from"
            " a backup, or make a new one with `agentwatch keys rotate`; what was decided stays valid"
        )

    def _parse_private(self, data: bytes, passphrase: Callable[[], str] | None) -> SigningKey:
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
    return format_time(datetime.now(UTC))


def _read_text(directory: Directory, name: str) -> str | None:
    with suppress(FileNotFoundError):
        return directory.read(name, _LARGEST).decode("utf-8", "replace").strip()
    return None


def _write_public(keys: Directory, inner: str, public: PublicKey, about: str) -> None:
    with keys.open_child(inner, make=0o700) as directory:
        directory.replace(f"{public.keyid}.pub", f"{public.text}\n{about}\n".encode())


def _refuse_open(status: os.stat_result, path: Path) -> None:
    if is_open_to_others(status, 0o022):
        raise KeyProblemError(f"others can write into {path}, and put their own key there: chown it, chmod go-w {path}")


def _read_keys(keys: Directory, role: str) -> list[TrustedKey]:
    """Return the keys in the valid files of a directory, sorted by name and time. Raise KeyProblemError if other users
    can write into the directory."""
    found = list[TrustedKey]()
    with suppress(FileNotFoundError), keys.open_child(role) as directory:
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
                key = TrustedKey(parse_public(text), retired or until or None, called and check_name(called), since)
                for time in filter(None, (key.retired_at, since)):
                    parse_time(time)
                if name == f"{key.public.keyid}.pub":
                    found.append(key)
    return sorted(found, key=lambda one: (one.name, one.trusted_at or one.retired_at or "", one.public.keyid))


# The functions below import `cryptography` only when called: it takes 25 ms, and most runs sign nothing.


def _generate_key() -> SigningKey:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    return SigningKey(Ed25519PrivateKey.generate())


def _to_pem(key: SigningKey, passphrase: str | None) -> bytes:
    from cryptography.hazmat.primitives import serialization as form

    encryption = form.BestAvailableEncryption(passphrase.encode()) if passphrase else form.NoEncryption()
    return key.private.private_bytes(form.Encoding.PEM, form.PrivateFormat.PKCS8, encryption)
