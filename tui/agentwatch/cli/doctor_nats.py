"""`agentwatch doctor --nats URL`: whether a NATS server is what a fleet needs, and what to do where it is not."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from typing import Any, Final, NamedTuple
from urllib.error import URLError
from urllib.parse import urlsplit
from urllib.request import urlopen

import nats.errors
import nats.js.errors
from nats.aio.client import Client
from nats.js import api

from agentwatch.decisions.keys import Keys, Role
from agentwatch.remote.nats_connection import Login, answer_of, asked
from agentwatch.remote.nats_fleet import Planned, login_of, planned
from agentwatch.remote.nats_names import HELLO, LARGEST_MESSAGE, STREAM, all_said_by, host_of, hosts_in
from agentwatch.remote.nats_words import TroubleError, shown
from agentwatch.text import Check, bad, good, note, say_checks
from agentwatch.view.words import plural

_HERE: Final = ("127.0.0.1", "localhost", "::1")
_MONITOR_PORT: Final = 8222
_SKEW_SECONDS: Final = 60.0
_SYNC_SINCE: Final = (2, 10)
_OF_OTHERS: Final = 0o077
_WRONG_LAST: Final = 10071
"""The error of a message that says which one was before it, and is wrong: who may say it gets this, and nothing is
kept."""
_ELSEWHERE: Final = "0" * 16


class _Found(NamedTuple):
    """What a server has shown. `plans` are None for a host, who may not see the streams."""

    version: str
    is_encrypted: bool
    largest: int
    milliseconds: float
    plans: list[Planned] | None
    skew: float | None
    hosts: list[str]
    may: dict[str, bool]
    """By host, whether this key may speak for it."""


def examine_server(server: str, creds: str | None, monitor: str | None, keys: Keys) -> int:
    """Print how a fleet stands on a server. Returns 1 if something must be put right. Raises KeyProblemError."""
    login = login_of(creds, keys)
    own = None if login.key is None else host_of(login.key.public)
    try:
        found = asked(server, login, lambda client: _look(client, own))
    except TroubleError as error:
        return say_checks([bad("connection", str(error))])
    trusted = {host_of(one.public): one.name for one in keys.others(Role.HOST) if one.distrusted_at is None}
    return say_checks(
        [
            *_connection(server, login, found),
            *_credentials(login),
            *_streams(server, found),
            *_speech(found, own),
            *_hosts(found, trusted),
            _sync(server, monitor, found),
            *_clock(found),
        ]
    )


async def _look(client: Client, own: str | None) -> _Found:
    began = time.monotonic()
    await client.flush(5)
    milliseconds = (time.monotonic() - began) * 1000
    info: dict[str, Any] = client._server_info  # noqa: SLF001  the library has no other way to it
    try:
        plans: list[Planned] | None = await planned(client)
    except nats.js.errors.ServiceUnavailableError:
        # Also what a host is told, whose account has no JetStream of its own.
        if own is None or not await _may_say(client, own):
            raise
        plans = None
    except nats.errors.TimeoutError:
        plans = None
    skew, hosts = None, list[str]()
    if plans is not None and plans[0].lacks is not None:
        with suppress(nats.errors.Error, nats.js.errors.Error, ValueError, KeyError):
            hosts = hosts_in(
                await answer_of(client, f"STREAM.INFO.{STREAM}", {"subjects_filter": f"agentwatch.from.*.{HELLO}"})
            )
            probe = api.ConsumerConfig(ack_policy=api.AckPolicy.NONE, inactive_threshold=1.0, mem_storage=True)
            body = {"stream_name": STREAM, "config": probe.as_dict()}
            made = await answer_of(client, f"CONSUMER.CREATE.{STREAM}", body)
            skew = datetime.fromisoformat(made["created"][:19] + "+00:00").timestamp() - time.time()
            await answer_of(client, f"CONSUMER.DELETE.{STREAM}.{made['name']}")
    asked_of = [one for one in (own, _ELSEWHERE) if one is not None]
    may = {host: await _may_say(client, host) for host in asked_of} if plans is None else {}
    is_encrypted = bool(info.get("tls_required"))
    return _Found(str(info.get("version")), is_encrypted, client.max_payload, milliseconds, plans, skew, hosts, may)


async def _may_say(client: Client, host: str) -> bool:
    """Whether this user may speak for a host. What is said is refused by the stream, and nothing is kept of it."""
    subject, header = all_said_by(host)[:-1] + "doctor", {"Nats-Expected-Last-Subject-Sequence": str(1 << 62)}
    try:
        answer = json.loads((await client.request(subject, b"", timeout=2, headers=header)).data)
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
    if found.largest < LARGEST_MESSAGE:
        yield note(about, f"messages are cut to {found.largest // 1024:,} KiB: `max_payload: 8MB` spares that")


def _credentials(login: Login) -> Iterator[Check]:
    if login.creds is not None and os.stat(login.creds).st_mode & _OF_OTHERS:  # noqa: PTH116
        yield note("credentials", f"others can read {login.creds}, and log in with it: chmod 600 it")


def _streams(server: str, found: _Found) -> Iterator[Check]:
    about = "streams"
    cure = f"`agentwatch fleet init {shown(server)}`"
    if found.plans is None:
        yield note(about, "this key is that of a host, which may not look at them; ask an operator to run this")
        return
    lacking = [plan.name for plan in found.plans if plan.lacks is None]
    if lacking:
        yield bad(about, f"{' and '.join(lacking)} {'is' if len(lacking) == 1 else 'are'} not there: {cure} makes them")
        return
    wrong = [f"{plan.name} ({', '.join(plan.lacks)})" for plan in found.plans if plan.lacks]
    yield (
        bad(about, f"not as they have to be: {'; '.join(wrong)}: {cure}")
        if wrong
        else good(about, "as they have to be")
    )
    copies = min(plan.is_copied for plan in found.plans)
    if copies == 1:
        lost = "if its disk fails, hosts tell what they know again, and what hosts that are off have said is lost"
        yield note("copies", f"one server has them: {lost}; with three servers: {cure} --replicas 3")
    else:
        yield good("copies", f"{copies} servers have them")


def _speech(found: _Found, own: str | None) -> Iterator[Check]:
    about = "permissions"
    if own is None or found.plans is not None:
        return
    if not found.may.get(own):
        yield bad(
            about, "this host may not speak for itself: `agentwatch fleet config`, where it is trusted, allows it"
        )
    elif found.may.get(_ELSEWHERE):
        yield bad(about, "this key may speak for other hosts: use the accounts that `agentwatch fleet config` prints")
    else:
        yield good(about, "this host may speak for itself, and for no other")


def _hosts(found: _Found, trusted: dict[str, str]) -> Iterator[Check]:
    about = "hosts"
    if found.plans is None or found.plans[0].lacks is None:
        return
    silent = [name for host, name in trusted.items() if host not in found.hosts]
    strange = [host for host in found.hosts if host not in trusted]
    heard = len(found.hosts) - len(strange)
    yield good(
        about, f"{heard} of the {plural(len(trusted), 'host')} that you trust {'has' if heard == 1 else 'have'} spoken"
    )
    if silent:
        yield note(about, f"not heard of: {', '.join(silent)}; there: `agentwatch relay --nats …`")
    if strange:
        yield note(
            about, f"{plural(len(strange), 'host')} that you do not trust: {', '.join(strange[:5])}; nobody sees them"
        )


def _sync(server: str, monitor: str | None, found: _Found) -> Check:
    about = "sync_interval"
    with suppress(ValueError):
        major, minor, *_ = found.version.split(".")
        if (int(major), int(minor)) < _SYNC_SINCE:
            said = "writes to its disk every two minutes, and cannot do otherwise: if the power fails, what came since"
            return note(
                about, f"this server {said} is lost, and said again; nats-server 2.10 has `sync_interval: always`"
            )
    where = monitor or f"http://{urlsplit(server).hostname}:{_MONITOR_PORT}"
    try:
        with urlopen(f"{where}/varz", timeout=2) as answer:  # noqa: S310  the user's own address
            settings = json.load(answer)["jetstream"]["config"]
    except (OSError, URLError, ValueError, KeyError, TypeError):
        return note(
            about, f"unknown: {where} does not answer; look whether its configuration has `sync_interval: always`"
        )
    if settings.get("sync_always"):
        return good(about, "always: what it has confirmed is on the disk")
    every = settings.get("sync_interval", 0) / 1e9
    return bad(about, f"it writes to its disk every {every:.0f} s: set `sync_interval: always` in `jetstream {{ }}`")


def _clock(found: _Found) -> Iterator[Check]:
    if found.skew is None:
        return
    if abs(found.skew) > _SKEW_SECONDS:
        yield note(
            "clock", f"the server's is {found.skew:+.0f} s off this one: what it keeps is dropped at other times"
        )
    else:
        yield good("clock", "the server's agrees with this one")
