"""The keys of others that a user trusts: operators who may decide here from their machine, and hosts that are believed.

<configuration directory>/keys/            see `keys`
    operators/<key id>.pub                 0600: the key, its name, since when it is trusted, and until when it was
    hosts/<key id>.pub                     the same, of a host
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from enum import StrEnum
from typing import Final, NamedTuple

from agentwatch.decisions.envelope import PublicKey, TrustedKey, parse_public
from agentwatch.decisions.errors import KeyProblemError
from agentwatch.decisions.record import time_of
from agentwatch.disk import Directory
from agentwatch.text import exact, quoted

_LARGEST: Final = 4096
_LONGEST: Final = 60
_ENDING: Final = ".pub"
_WRITABLE_BY_OTHERS: Final = 0o022
_FILE: Final = re.compile(r"(ed25519:\S+)\nname (\S[^\n]*)\ntrusted (\S+)\n(?:distrusted (\S+)\n)?\Z")


class Role(StrEnum):
    """What the key of somebody else is trusted for. The values are the names of the directories."""

    OPERATOR = "operators"
    """To ask this host for decisions."""
    HOST = "hosts"
    """To say what goes on at a host, and what was decided there."""


class OtherKey(NamedTuple):
    """A key, who has it as the user calls them, since when it is trusted, and from when on it was not any more."""

    public: PublicKey
    name: str
    trusted_at: str
    distrusted_at: str | None = None

    @property
    def trusted(self) -> TrustedKey:
        return TrustedKey(self.public, self.distrusted_at)


def checked_name(name: str) -> str:
    """A name that fits on one line, as it is shown. Raises KeyProblemError for any other."""
    if not name.strip() or name != name.strip() or len(name) > _LONGEST or exact(name) != name:
        raise KeyProblemError(f"a name of a key is a word or two, {_LONGEST} characters at most")
    return name


def introduced(text: str) -> tuple[str, PublicKey]:
    """The name and the key in a `NAME=KEY`. Raises KeyProblemError."""
    name, between, key = text.partition("=")
    if not between:
        raise KeyProblemError(f"{quoted(text)}: write NAME=KEY, with a key that `agentwatch keys` prints")
    return checked_name(name), parse_public(key)


def others(keys: Directory, role: Role) -> list[OtherKey]:
    """Those of one role, by their names. A file that is none of ours is no key. Raises KeyProblemError and OSError."""
    found = []
    try:
        directory = keys.child(role)
    except FileNotFoundError:
        return []
    with directory:
        for name in [".", *(name for name in directory.names() if name.endswith(_ENDING))]:
            status = directory.status(name)
            if status.st_mode & _WRITABLE_BY_OTHERS or status.st_uid != os.geteuid():
                where = "" if name == "." else f"/{name}"
                raise KeyProblemError(f"others can write {role}{where} beside your keys, and add theirs: chmod go-w it")
            match = None if name == "." else _FILE.match(directory.read(name, _LARGEST).decode("utf-8", "replace"))
            with suppress(KeyProblemError, ValueError):
                if match is not None and name == _name_of(parse_public(match[1])):
                    for time in filter(None, match.group(3, 4)):
                        time_of(time)
                    found.append(OtherKey(parse_public(match[1]), checked_name(match[2]), match[3], match[4]))
    return sorted(found, key=lambda one: (one.name, one.trusted_at, one.public.keyid))


def put(keys: Directory, role: Role, key: OtherKey) -> None:
    """Write one down, in the place of what was known of it. Raises OSError."""
    ended = "" if key.distrusted_at is None else f"distrusted {key.distrusted_at}\n"
    text = f"{key.public.text}\nname {key.name}\ntrusted {key.trusted_at}\n{ended}"
    with keys.child(role, make=0o700) as directory:
        directory.replace(_name_of(key.public), text.encode())


def _name_of(public: PublicKey) -> str:
    return f"{public.keyid}{_ENDING}"
