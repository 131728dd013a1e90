"""`agentwatch doctor --nats URL`: whether a NATS server is fit for a fleet, and what to do where it is not."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

import nats.errors
import nats.js.errors
from nats.aio.client import Client

from agentwatch.decisions.keys import Keys, Role
from agentwatch.remote.nats import Login, TroubleError, asked, login_of, shown, store_settings
from agentwatch.remote.nats_accounts import LARGEST_PAYLOAD, STREAM, host_of, store_subject
from agentwatch.text import Check, bad, good, note, say_checks
from agentwatch.view.words import plural

_HERE: Final = ("127.0.0.1", "localhost", "::1")
_OF_OTHERS: Final = 0o077
_WRONG_LAST: Final = 10071
"""The error of a message that says which one was before it, and is wrong: who may say it gets this, and nothing is
kept."""
_ELSEWHERE: Final = "0" * 16


class _Found(NamedTuple):
    """The state of a server. `is_of_host`: this key is that of a host, who may not see the store."""

    version: str
    is_encrypted: bool
    largest: int
    milliseconds: float
    is_of_host: bool
    differs: dict[str, Any] | None
    hosts: list[str]
    may: dict[str, bool]
    """By host, whether this key may speak for it."""


def examine_server(server: str, creds: str | None, keys: Keys) -> int:
    """Print how a fleet stands on a server. Returns 1 if something must be put right. Raises KeyProblemError."""
    login = login_of(creds, keys)
    own = None if login.key is None else host_of(login.key.public)
    try:
        found = asked(server, login, lambda client: _look(client, own))
    except TroubleError as error:
        return say_checks([bad("connection", str(error))])
    trusted = {host_of(one.public): one.name for one in keys.others(Role.HOST) if one.retired_at is None}
    of_key = _speech(found, own) if found.is_of_host else _hosts(server, found, trusted)
    return say_checks([*_connection(server, login, found), *of_key])


async def _look(client: Client, own: str | None) -> _Found:
    began = time.monotonic()
    await client.flush(5)
    milliseconds = (time.monotonic() - began) * 1000
    info: dict[str, Any] = client._server_info  # noqa: SLF001  the library has no other way to it
    is_of_host, differs, hosts = False, None, list[str]()
    try:
        differs = await store_settings(client)
        if differs is not None:
            kept = await client.jetstream().stream_info(STREAM, subjects_filter=store_subject("*"))
            hosts = [subject.rpartition(".")[2] for subject in kept.state.subjects or {}]
    except nats.js.errors.ServiceUnavailableError:
        # Also the answer to a host, whose account has no JetStream of its own.
        if own is None or not await _may_say(client, own):
            raise
        is_of_host = True
    except nats.errors.TimeoutError:
        is_of_host = True
    asked_of = [one for one in (own, _ELSEWHERE) if one is not None]
    may = {host: await _may_say(client, host) for host in asked_of} if is_of_host else {}
    server = str(info.get("version")), bool(info.get("tls_required")), client.max_payload
    return _Found(*server, milliseconds, is_of_host, differs, hosts, may)


async def _may_say(client: Client, host: str) -> bool:
    """Whether this user may speak for a host. The store refuses it, and nothing is kept of it."""
    header = {"Nats-Expected-Last-Subject-Sequence": str(1 << 62)}
    try:
        answer = json.loads((await client.request(store_subject(host), b"", timeout=2, headers=header)).data)
    except (nats.errors.Error, ValueError):
        return False
    return bool(answer.get("error", {}).get("err_code") == _WRONG_LAST)


def _connection(server: str, login: Login, found: _Found) -> Iterator[Check]:
    about = "connection"
    who = f"with {login.creds}" if login.creds else "with your key" if login.key else "without a key"
    yield good(about, f"{shown(server)} answers in {found.milliseconds:.0f} ms, {who}: nats-server {found.version}")
    if found.is_encrypted:
        yield good(about, "it is encrypted (TLS)")
    elif urlsplit(server).hostname not in _HERE:
        yield note(about, "it is not encrypted: others on the way can read what passes; give the server a certificate")
    if found.largest < LARGEST_PAYLOAD:
        yield note(about, f"messages larger than {found.largest // 1024:,} KiB do not pass: set `max_payload: 8MB`")
    if login.creds is not None and os.stat(login.creds).st_mode & _OF_OTHERS:  # noqa: PTH116
        yield note("credentials", f"others can read {login.creds}, and log in with it: chmod 600 it")


def _speech(found: _Found, own: str | None) -> Iterator[Check]:
    about = "permissions"
    yield note("store", "this key is that of a host, which may not look at it; ask an operator to run this")
    if own is None:
        return
    if not found.may.get(own):
        yield bad(
            about, "this host may not speak for itself: `agentwatch fleet config`, where it is trusted, allows it"
        )
    elif found.may.get(_ELSEWHERE):
        yield bad(about, "this key may speak for other hosts: use the accounts that `agentwatch fleet config` prints")
    else:
        yield good(about, "this host may speak for itself, and for no other")


def _hosts(server: str, found: _Found, trusted: dict[str, str]) -> Iterator[Check]:
    cure = f"`agentwatch fleet init {shown(server)}`"
    if found.differs is None:
        yield bad("store", f"there is none, so nobody sees hosts that are off: {cure} makes it")
        return
    if found.differs:
        yield bad("store", f"not as it has to be ({', '.join(found.differs)}): {cure}")
    else:
        yield good("store", "as it has to be")
    silent = [name for host, name in trusted.items() if host not in found.hosts]
    strange = [host for host in found.hosts if host not in trusted]
    heard = len(found.hosts) - len(strange)
    has = "has" if heard == 1 else "have"
    yield good("hosts", f"{heard} of the {plural(len(trusted), 'host')} that you trust {has} spoken")
    if silent:
        yield note("hosts", f"not heard of: {', '.join(silent)}; there: `agentwatch relay --nats …`")
    if strange:
        unknown = f"{plural(len(strange), 'host')} that you do not trust: {', '.join(strange[:5])}"
        yield note("hosts", f"{unknown}; nobody sees them")
