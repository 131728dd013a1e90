"""Prepare a NATS server: print its configuration, and make the streams of a fleet."""

from __future__ import annotations

import subprocess
import sys
from argparse import Namespace
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from agentwatch.cli.command import CREDS, YES, argument
from agentwatch.cli.shared import confirmed
from agentwatch.decisions.envelope import PublicKey
from agentwatch.decisions.errors import KeyMissingError
from agentwatch.decisions.keys import Keys, Role, introduced
from agentwatch.errors import ExitCode, UsageError
from agentwatch.remote.address import is_host
from agentwatch.remote.nats_names import accounts, nkey_of
from agentwatch.shell import FLEET, find_program, needing
from agentwatch.text import clean, complain, quoted, say

if TYPE_CHECKING:
    from nats.aio.client import Client

ARGUMENTS: Final = (
    argument("what", "WHAT", "config: print its configuration; init: make its streams", choices=("config", "init")),
    argument("server", "URL", "with init: the server, such as nats://hub:4222", nargs="?"),
    argument(
        "--trust",
        "NAME=KEY",
        "with config: trust the key of this host first; again for the next one",
        action="append",
        default=[],
    ),
    argument("--replicas", "N", "with init: how many servers of a cluster keep a copy", type=int, default=1),
    CREDS,
    YES,
)
EXIT_CODES: Final = "exit codes: 0 all is well, 1 something is not, 2 wrong usage"

_CONFIGURATION: Final = """\
# For nats-server, by `agentwatch fleet config`: who may say and read what, from the keys that are trusted on this
# machine. Print it again when those change, and then: nats-server --signal reload
listen: "0.0.0.0:4222"
# What no client may ask, `agentwatch doctor --nats` asks there:
http: "127.0.0.1:8222"
max_payload: 8MB
jetstream {{
  store_dir: "./agentwatch-nats"
{sync}
}}
# Encrypted, as it should be wherever others can listen:
# tls {{ cert_file: "server.pem", key_file: "server.key" }}
{accounts}"""
_SYNC: Final = "  # What it has confirmed is on the disk.\n  sync_interval: always"
_NO_SYNC: Final = "  # With nats-server 2.10 or later, add: sync_interval: always"
_SYNC_SINCE: Final = (2, 10)


def run(options: Namespace) -> int:
    """Print the configuration, or make the streams. Raises KeyProblemError and UsageError."""
    if (options.what == "init") != (options.server is not None):
        raise UsageError("`agentwatch fleet init nats://SERVER`, `agentwatch fleet config > FILE`")
    if options.trust and options.what != "config":
        raise UsageError("--trust belongs to config")
    if options.what == "config":
        return _config(Keys(), options.trust)
    with needing(*FLEET):
        return _init(options.server, options, Keys())


def _config(keys: Keys, introductions: Sequence[str]) -> int:
    """Print the configuration of a server for the keys that are trusted here, once hosts that are introduced as
    NAME=KEY are, too. Raises KeyProblemError and UsageError."""
    introduced_hosts = list(map(introduced, introductions))
    for name, _ in introduced_hosts:
        if not is_host(name):
            raise UsageError(f"{quoted(name)} cannot be the name of a host: use letters, digits, '.', '_' and '-'")
    for name, public in introduced_hosts:
        keys.trust_other(Role.HOST, public, name)
    operators: list[tuple[str, PublicKey]] = []
    try:
        operators.append(("you", keys.show()))
    except KeyMissingError as error:
        raise KeyMissingError(f"{error}, or now with `agentwatch keys create`") from error
    trusted = {role: [one for one in keys.others(role) if one.distrusted_at is None] for role in Role}
    operators += [(one.name, one.public) for one in trusted[Role.OPERATOR] if one.public != operators[0][1]]
    known = {public for _, public in operators}
    hosts = [(one.name, one.public) for one in trusted[Role.HOST] if one.public not in known]
    version = _installed()
    sync = _NO_SYNC if version is not None and version < _SYNC_SINCE else _SYNC
    sys.stdout.write(_CONFIGURATION.format(sync=sync, accounts=accounts(operators, hosts)))
    if hosts:
        complain("next: nats-server -c FILE, and once that runs: agentwatch fleet init nats://SERVER")
    else:
        complain("no host is trusted here yet: `agentwatch relay --nats nats://SERVER` on it says how")
    if keys.is_encrypted() and not keys.in_keyring:
        complain(
            "your key has a passphrase, so it cannot log you in: make yourself an nkey, add it beside"
            f" {nkey_of(operators[0][1])[:12]}…, and name its file in NATS_NKEY"
        )
    return ExitCode.DONE


def _installed() -> tuple[int, int] | None:
    """The version of the server on this machine, None where there is none."""
    program = find_program("nats-server") or find_program("nats-server", "/usr/sbin:/usr/local/sbin")
    if program is None:
        return None
    try:
        said = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=5, check=False)  # noqa: S603
        major, minor, *_ = said.stdout.rpartition("v")[2].split(".")
        return int(major), int(minor)
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return None


def _init(server: str, options: Namespace, keys: Keys) -> int:
    """Show which streams a fleet needs on a server, ask, and make them. Raises KeyProblemError and UsageError."""
    from agentwatch.remote.nats_connection import asked
    from agentwatch.remote.nats_fleet import Planned, login_of, make, planned
    from agentwatch.remote.nats_words import TroubleError, shown

    login, replicas = login_of(options.creds, keys), options.replicas

    async def look(client: Client) -> list[Planned]:
        return await planned(client, replicas)

    try:
        plans = asked(server, login, look)
        for plan in plans:
            wanted = plan.wanted
            age = f"{wanted['max_age'] / 86400:.0f} d"
            kept = f"{wanted['max_msgs_per_subject']} a subject" if "max_msgs_per_subject" in wanted else "all"
            say(f"{plan.name}  {wanted['description']}")
            say(f"  subjects {', '.join(wanted['subjects'])} · kept: {kept}, {age} at most · copies: {replicas}")
            if plan.lacks is None:
                say("  is to be made")
            elif plan.lacks:
                say(f"  is there; to be changed: {', '.join(plan.lacks)}")
            else:
                say("  is there, as it has to be")
        wrong = [plan for plan in plans if plan.lacks is None or plan.lacks]
        if not wrong:
            return ExitCode.DONE
        if not options.yes:
            if not sys.stdin.isatty():
                raise UsageError("nothing was made: with --yes nobody is asked")
            if not confirmed("Make this so?"):
                say("nothing was made")
                return ExitCode.NOT

        async def do(client: Client) -> None:
            await make(client, wrong)

        asked(server, login, do)
    except TroubleError as error:
        raise UsageError(clean(str(error), 600)) from error
    say(f"made; next, to watch and decide there: agentwatch {clean(shown(server))}")
    return ExitCode.DONE
