"""Prepare a NATS server: print its configuration, and make the store of a fleet."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Sequence
from typing import Final

from agentwatch.cli.command import CREDS, argument
from agentwatch.decisions.envelope import PublicKey
from agentwatch.decisions.errors import KeyMissingError
from agentwatch.decisions.keys import Keys, Role, introduced
from agentwatch.errors import ExitCode, UsageError
from agentwatch.remote.address import is_host
from agentwatch.remote.nats_accounts import accounts, nkey_of
from agentwatch.shell import FLEET, needing
from agentwatch.text import clean, complain, quoted, say

ARGUMENTS: Final = (
    argument("what", "WHAT", "config: print its configuration; init: make its store", choices=("config", "init")),
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
)
EXIT_CODES: Final = "exit codes: 0 all is well, 2 wrong usage"

_CONFIGURATION: Final = """\
# For nats-server, by `agentwatch fleet config`: who may say and read what, from the keys that are trusted on this
# machine. Print it again when those change, and then: nats-server --signal reload
listen: "0.0.0.0:4222"
max_payload: 8MB
jetstream {{ store_dir: "./agentwatch-nats" }}
# Encrypted, as it should be wherever others can listen:
# tls {{ cert_file: "server.pem", key_file: "server.key" }}
{accounts}"""


def run(options: Namespace) -> int:
    """Print the configuration, or make the store. Raises KeyProblemError and UsageError."""
    if (options.what == "init") != (options.server is not None):
        raise UsageError("`agentwatch fleet init nats://SERVER`, `agentwatch fleet config > FILE`")
    if options.trust and options.what != "config":
        raise UsageError("--trust belongs to config")
    if options.what == "config":
        return _config(Keys(), options.trust)
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
    trusted = {role: [one for one in keys.others(role) if one.retired_at is None] for role in Role}
    operators += [(one.name, one.public) for one in trusted[Role.OPERATOR] if one.public != operators[0][1]]
    known = {public for _, public in operators}
    hosts = [(one.name, one.public) for one in trusted[Role.HOST] if one.public not in known]
    sys.stdout.write(_CONFIGURATION.format(accounts=accounts(operators, hosts)))
    if hosts:
        complain("next: nats-server -c FILE, and once that runs: agentwatch fleet init nats://SERVER")
    else:
        complain("no host is trusted here yet: `agentwatch relay --nats nats://SERVER` on it says how")
    if keys.why_encrypted() is not None:
        complain(
            "your key has a passphrase, so it cannot log you in: make yourself an nkey, add it beside"
            f" {nkey_of(operators[0][1])[:12]}…, and name its file in NATS_NKEY"
        )
    return ExitCode.DONE


def _init(server: str, options: Namespace, keys: Keys) -> int:
    """Make the store of a fleet on a server. Raises KeyProblemError and UsageError."""
    with needing(*FLEET):
        from agentwatch.remote.nats import TroubleError, asked, login_of, make_store, shown
    try:
        asked(server, login_of(options.creds, keys), lambda client: make_store(client, options.replicas))
    except TroubleError as error:
        raise UsageError(clean(str(error), 600)) from error
    say(f"made: it keeps what each host said of itself last; next, to watch: agentwatch {clean(shown(server))}")
    return ExitCode.DONE
