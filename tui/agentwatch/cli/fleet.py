"""The command that prepares a NATS server."""

from __future__ import annotations

import sys
from argparse import Namespace
from typing import Final

from agentwatch.cli.command import CREDS, argument, command
from agentwatch.decisions.errors import KeyMissingError
from agentwatch.decisions.keys import Keys, Role, introduced
from agentwatch.errors import ExitCode, UsageError
from agentwatch.remote.address import is_host
from agentwatch.remote.nats_accounts import accounts, nkey_of
from agentwatch.shell import FLEET, needing
from agentwatch.text import clean, complain, quoted, say

_CONFIGURATION: Final = """\
# For nats-server, by `agentwatch fleet config`: who may say and read what, from the keys that are trusted on this
# machine. Print it again when those change, and then: nats-server --signal reload
listen: "0.0.0.0:4222"
max_payload: 8MB
jetstream {{ store_dir: "./agentwatch-nats" }}
# Encrypted, as it should be wherever others can listen:
# tls {{ cert_file: "server.pem", key_file: "server.key" }}
{accounts}"""


@command(
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
    exit_codes="exit codes: 0 all is well, 2 wrong usage",
)
def fleet(options: Namespace) -> int:
    """Prepare a NATS server: print its configuration, and make the store of a fleet."""
    is_init, keys = options.what == "init", Keys()
    if is_init != (options.server is not None) or (is_init and options.trust):
        raise UsageError("`agentwatch fleet init nats://SERVER`, `agentwatch fleet config [--trust NAME=KEY] > FILE`")
    if not is_init:
        return _print_configuration(keys, options.trust)
    with needing(*FLEET):
        from agentwatch.remote.nats import TroubleError, asked, login_of, make_store, shown
    try:
        asked(options.server, login_of(options.creds, keys), lambda client: make_store(client, options.replicas))
    except TroubleError as error:
        raise UsageError(clean(str(error), 600)) from error
    where = clean(shown(options.server))
    say(f"made: it keeps what each host said of itself last; next, to watch: agentwatch {where}")
    return ExitCode.DONE


def _print_configuration(keys: Keys, introductions: list[str]) -> int:
    """Print the configuration of a server for the keys that are trusted here, once hosts that are introduced as
    NAME=KEY are, too. Raises KeyProblemError and UsageError."""
    introduced_hosts = list(map(introduced, introductions))
    for name, _ in introduced_hosts:
        if not is_host(name):
            raise UsageError(f"{quoted(name)} cannot be the name of a host: use letters, digits, '.', '_' and '-'")
    for name, public in introduced_hosts:
        keys.trust_other(Role.HOST, public, name)
    try:
        own = keys.show()
    except KeyMissingError as error:
        raise KeyMissingError(f"{error}, or now with `agentwatch keys create`") from error
    trusted = {role: [(one.name, one.public) for one in keys.others(role) if one.retired_at is None] for role in Role}
    operators = [("you", own), *(one for one in trusted[Role.OPERATOR] if one[1] != own)]
    known = {public for _, public in operators}
    hosts = [one for one in trusted[Role.HOST] if one[1] not in known]
    sys.stdout.write(_CONFIGURATION.format(accounts=accounts(operators, hosts)))
    if hosts:
        complain("next: nats-server -c FILE, and once that runs: agentwatch fleet init nats://SERVER")
    else:
        complain("no host is trusted here yet: `agentwatch relay --nats nats://SERVER` on it says how")
    if keys.why_encrypted() is not None:
        complain(
            "your key has a passphrase, so it cannot log you in: make yourself an nkey, add it beside"
            f" {nkey_of(own)[:12]}…, and name its file in NATS_NKEY"
        )
    return ExitCode.DONE
