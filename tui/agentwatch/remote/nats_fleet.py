"""The streams of a fleet on a NATS server: what there is, what there has to be, and making it so."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import nats.js.errors
from nats.js import api

from agentwatch.decisions.errors import KeyMissingError
from agentwatch.decisions.keys import unlocked
from agentwatch.remote.nats_connection import Login, answer_of
from agentwatch.remote.nats_names import streams

if TYPE_CHECKING:
    from nats.aio.client import Client

    from agentwatch.decisions.keys import Keys

_FILES: Final = ("NATS_CREDS", "NATS_NKEY")
"""The variables of the `nats` command that name a file with credentials."""
_NANOSECONDS: Final = frozenset({"max_age", "duplicate_window"})


def file_of(creds: str | None) -> str | None:
    """The file with credentials that is named, or that the environment names."""
    return creds or next(filter(None, map(os.environ.get, _FILES)), None)


def login_of(creds: str | None, keys: Keys) -> Login:
    """Who the user is for a server: the file that is named, here or in the environment, else the key that signs
    decisions, where nobody has to type a passphrase for it. Raises KeyProblemError."""
    named = file_of(creds)
    if named is not None:
        return Login(creds=named)
    try:
        if not keys.is_encrypted():
            return Login(keys.load())
        if keys.in_keyring:
            return Login(unlocked(keys))
    except KeyMissingError:
        pass
    return Login()


class Planned(NamedTuple):
    """A stream. `lacks` are the settings that differ from what they have to be; None: there is no such stream."""

    wanted: dict[str, Any]
    lacks: list[str] | None
    is_copied: int = 1
    """How many servers have it."""

    @property
    def name(self) -> str:
        return str(self.wanted["name"])


async def planned(client: Client, replicas: int | None = None) -> list[Planned]:
    """How the streams of a fleet stand; with so many `replicas`, None: as many as there are."""
    found = []
    for wanted in streams(replicas or 1):
        try:
            has = (await answer_of(client, f"STREAM.INFO.{wanted['name']}"))["config"]
        except nats.js.errors.NotFoundError:
            found.append(Planned(wanted, None, replicas or 1))
            continue
        if replicas is None:
            wanted["num_replicas"] = has["num_replicas"]
        lacks = [name for name, value in wanted.items() if has.get(name) != _as_told(name, value)]
        found.append(Planned(wanted, lacks, has["num_replicas"]))
    return found


async def make(client: Client, plans: list[Planned]) -> None:
    """Make the streams, or make them what they have to be. What they hold stays."""
    stream = client.jetstream()
    for plan in plans:
        if plan.lacks is None:
            await stream.add_stream(api.StreamConfig(**plan.wanted))
        elif plan.lacks:
            await stream.update_stream(api.StreamConfig(**plan.wanted))


def _as_told(name: str, value: Any) -> Any:
    """A setting as a server tells it."""
    return int(value * 1e9) if name in _NANOSECONDS else value
