"""The commands about machines: whose keys count on this one, and whether agentwatch can work on it."""

from __future__ import annotations

import argparse
import os
from functools import partial
from typing import TYPE_CHECKING, Final

from agentwatch.arguments import workspace_at
from agentwatch.cli.command import PATH, Command, argument, flag, load
from agentwatch.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from agentwatch.config import Settings
    from agentwatch.remote.link import RelayEnd
    from agentwatch.text import Check

_DECIDE: Final = partial(Command, "decide")


@_DECIDE(
    "keys", "show the key that signs your decisions, or change it; trust keys of others",
    argument("what", "WHAT",
             "show (default); create the first one; rotate: replace it; passphrase: set, change or remove it; send:"
             " have hosts trust it, over ssh; trust, distrust: the key of an operator who decides from another machine;"
             " authorized: list those",
             nargs="?", default="show",
             choices=("show", "create", "rotate", "passphrase", "send", "trust", "distrust", "authorized")),
    argument("whose", "KEY|HOST", "with send: hosts, as ssh knows them; with trust: what `agentwatch keys` prints"
             " there; with distrust: that, or its name", nargs="*", offers="hosts"),
    argument("--name", "NAME", "with trust: what you call who has the key; with send: what the hosts call you"),
    flag("--host", "with trust and distrust: it is the key of a host that you watch from here"),
    flag("--keyring",
         "with passphrase: have the system's keyring hold the passphrase; decisions ask it first, then you"),
    codes="exit codes: 0 done, 2 wrong usage, or the key or the disk refused",
)  # fmt: skip
def _keys(options: argparse.Namespace) -> int:
    """Show the key that signs your decisions, or change it; say whose keys are trusted."""
    is_other, sends = options.what in ("trust", "distrust"), options.what == "send"
    if sends and not options.whose:
        raise UsageError("`keys send HOST ...`: it takes the hosts that shall trust your key, as ssh knows them")
    is_named = options.name is not None
    if not sends and (is_other, options.what == "trust") != (len(options.whose) == 1, is_named):
        raise UsageError("`keys trust KEY --name NAME`, `keys distrust KEY`: these two take a key, and no other")
    if options.host and not is_other:
        raise UsageError("--host belongs to trust and distrust")
    if options.keyring and options.what != "passphrase":
        raise UsageError("--keyring is about the passphrase: `agentwatch keys passphrase --keyring`")
    from agentwatch.commands import keys as keyring
    from agentwatch.decisions.keys import Keys

    if sends:
        from agentwatch.commands.keys_send import send
        from agentwatch.remote.address import ssh_addresses

        return send(Keys(), ssh_addresses(options.whose, load().hosts), options.name)
    if is_other:
        from agentwatch.decisions.others import Role

        role = Role.HOST if options.host else Role.OPERATOR
        if options.what == "trust":
            return keyring.trust(Keys(), options.whose[0], options.name, role)
        return keyring.distrust(Keys(), options.whose[0], role)
    if options.what == "passphrase":
        return keyring.passphrase(Keys(), in_keyring=options.keyring)
    others = {"create": keyring.create, "rotate": keyring.rotate, "authorized": keyring.authorized}
    return others.get(options.what, keyring.show)(Keys())


_CREDS: Final = argument(
    "--creds", "FILE", "log in with this .creds file of NATS, or seed of an nkey (default: with your key)"
)


@partial(Command, "watch")(
    "relay [PATH ...]", "tell screens on other machines what is seen here",
    argument("paths", "PATH", "workspaces (default: the current directory)", nargs="*"),
    flag("--stdio", "through input and output, as ssh runs it for `agentwatch ssh://HOST/PATH`"),
    argument("--nats", "URL", "through this NATS server, for `agentwatch nats://SERVER/NAME`"), _CREDS,
    argument("--trust", "NAME=KEY", "trust the key of this operator first; again for the next one", action="append",
             default=[]),
    argument("--name", "NAME", "what this host calls itself (default: its name)", default=""),
    stays=True,
)  # fmt: skip
def _relay(options: argparse.Namespace) -> int:
    """Tell screens on other machines what is seen here, and record what their operators decide, if this host trusts
    the operator's key."""
    if options.stdio == (options.nats is not None):
        raise UsageError(
            "say how it is told: --stdio, as ssh runs it for `agentwatch ssh://HOST/PATH`, or --nats URL for"
            " `agentwatch nats://SERVER/NAME`"
        )
    if options.nats is None and (options.creds or options.trust):
        raise UsageError("--creds and --trust belong to --nats")
    from agentwatch.commands.relay import key_of_host, nats, relay, stdio, trust

    trust(options.trust)
    # Before anything can be written to what the screen reads.
    end: RelayEnd | None = stdio() if options.stdio else None
    # No shell has seen the ~ of an address.
    asked: dict[Path, list[str]] = {}
    for path in options.paths or ["."]:
        asked.setdefault(workspace_at(os.path.expanduser(path)), []).append(path)  # noqa: PTH111
    settings = load()
    key = key_of_host(next(iter(asked)), settings)
    if end is None:
        end = nats(options.nats, key, options.creds, name=options.name)
    return relay(asked, settings, end, key, name=options.name)


@_DECIDE(
    "fleet", "prepare a NATS server for hosts that only dial out",
    argument("what", "WHAT", "config: print its configuration; init: make its streams", choices=("config", "init")),
    argument("server", "URL", "with init: the server, such as nats://hub:4222", nargs="?"),
    argument("--trust", "NAME=KEY", "with config: trust the key of this host first; again for the next one",
             action="append", default=[]),
    argument("--replicas", "N", "with init: how many servers of a cluster keep a copy", type=int, default=1),
    _CREDS, flag("--yes", "do not ask"), codes="exit codes: 0 all is well, 1 something is not, 2 wrong usage",
)  # fmt: skip
def _fleet(options: argparse.Namespace) -> int:
    """Prepare a NATS server: print its configuration, and make the streams of a fleet."""
    if (options.what == "init") != (options.server is not None):
        raise UsageError("`agentwatch fleet init nats://SERVER`, `agentwatch fleet config > FILE`")
    if options.trust and options.what != "config":
        raise UsageError("--trust belongs to config")
    from agentwatch.commands import fleet
    from agentwatch.decisions.keys import Keys

    if options.what == "config":
        return fleet.config(Keys(), options.trust)
    from agentwatch.shell import FLEET, needing

    with needing(*FLEET):
        return fleet.init(options.server, options.creds, options.replicas, Keys(), yes=options.yes)


@_DECIDE(
    "doctor", "check this machine, or with --nats a server of a fleet", PATH,
    argument("--nats", "URL", "check this NATS server instead"), _CREDS,
    argument("--monitor", "URL", "with --nats: where its monitoring answers; else port 8222 of the same machine"),
    codes="exit codes: 0 all is well, 1 something is not, 2 wrong usage",
)  # fmt: skip
def _doctor(options: argparse.Namespace) -> int:
    """Check that agentwatch can work here."""
    if options.nats is not None:
        from agentwatch.decisions.keys import Keys
        from agentwatch.shell import FLEET, needing

        with needing(*FLEET):
            from agentwatch.commands.doctor_nats import examine_server

            return examine_server(options.nats, options.creds, options.monitor, Keys())
    if options.creds or options.monitor:
        raise UsageError("--creds and --monitor belong to --nats")
    from agentwatch.agents.setup.starts import checks
    from agentwatch.commands.doctor import examine

    workspace, settings = workspace_at(options.path), load()
    return examine(workspace, settings, [*checks(workspace), *_of_keys(settings)])


def _of_keys(settings: Settings) -> Iterator[Check]:
    """What is wrong with the operator's keys, which only the screen knows."""
    if not settings.keys:
        return
    from agentwatch.app.actions.keymap import keymap
    from agentwatch.text import bad, good

    faults = keymap(settings.keys).faults
    yield from (bad("settings", str(fault)) for fault in faults)
    if not faults:
        count = len(settings.keys)
        yield good("settings", f"{count} command{' has' if count == 1 else 's have'} keys of your own")
