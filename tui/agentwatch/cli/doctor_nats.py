"""`agentwatch doctor --nats URL`: whether a NATS server is fit for a fleet, and what to do where it is not."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

import nats.errors
import nats.js.errors
from nats.aio.client import Client

from agentwatch.decisions.keys import Keys, Role
from agentwatch.remote.nats import TroubleError, asked, login_of, shown, store_settings
from agentwatch.remote.nats_accounts import LARGEST_PAYLOAD, STREAM, host_of, store_subject
from agentwatch.text import Check, bad, good, note, say_checks
from agentwatch.view.words import plural

_HERE: Final = ("127.0.0.1", "localhost", "::1")


class _Server(NamedTuple):
    """The state of a server: how its store differs, None where there is none, and the hosts that have spoken; `is_open`
    says whether this key, unlike that of a host, may look at the store."""

    version: str
    is_encrypted: bool
    largest: int
    is_open: bool
    differs: dict[str, Any] | None
    hosts: list[str]


def examine_server(server: str, creds: str | None, keys: Keys) -> int:
    """Print how a fleet stands on a server. Returns 1 if something must be put right. Raises KeyProblemError."""
    login = login_of(creds, keys)
    try:
        found = asked(server, login, _look)
    except TroubleError as error:
        return say_checks([bad("connection", str(error))])
    trusted = {host_of(one.public): one.name for one in keys.others(Role.HOST) if one.distrusted_at is None}
    return say_checks([*_of_connection(server, login.creds, found), *_of_store(server, found, trusted)])


async def _look(client: Client) -> _Server:
    await client.flush(5)
    info: dict[str, Any] = client._server_info  # noqa: SLF001  the library has no other way to it
    is_open, differs, hosts = True, None, list[str]()
    try:
        differs = await store_settings(client)
        if differs is not None:
            kept = await client.jetstream().stream_info(STREAM, subjects_filter=store_subject("*"))
            hosts = [subject.rpartition(".")[2] for subject in kept.state.subjects or {}]
    except (nats.js.errors.ServiceUnavailableError, nats.errors.TimeoutError):
        # The answer to a host, whose account has no JetStream of its own.
        is_open = False
    known = str(info.get("version")), bool(info.get("tls_required")), client.max_payload
    return _Server(*known, is_open, differs, hosts)


def _of_connection(server: str, creds: str | None, found: _Server) -> Iterator[Check]:
    yield good("connection", f"{shown(server)} answers: nats-server {found.version}")
    if not found.is_encrypted and urlsplit(server).hostname not in _HERE:
        why = "others on the way can read what passes"
        yield note("connection", f"it is not encrypted: {why}; give the server a certificate")
    if found.largest < LARGEST_PAYLOAD:
        least = f"messages larger than {found.largest // 1024:,} KiB do not pass"
        yield note("connection", f"{least}: set `max_payload: 8MB`")
    if creds is not None and os.stat(creds).st_mode & 0o077:  # noqa: PTH116
        yield note("credentials", f"others can read {creds}, and log in with it: chmod 600 it")


def _of_store(server: str, found: _Server, trusted: dict[str, str]) -> Iterator[Check]:
    cure = f"`agentwatch fleet init {shown(server)}`"
    if not found.is_open:
        yield note("store", "this key may not look at it: that of a host may not, so ask an operator to run this")
        return
    if found.differs is None:
        yield bad("store", f"there is none, so nobody sees hosts that are off: {cure} makes it")
        return
    if found.differs:
        yield bad("store", f"not as it has to be ({', '.join(found.differs)}): {cure}")
    else:
        yield good("store", "as it has to be")
    silent = [name for host, name in trusted.items() if host not in found.hosts]
    yield good("hosts", f"{len(trusted) - len(silent)} of the {plural(len(trusted), 'host')} that you trust spoke")
    if silent:
        yield note("hosts", f"not heard of: {', '.join(silent)}; there: `agentwatch relay --nats …`")
