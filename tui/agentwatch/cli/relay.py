"""The command that tells screens on other machines what is seen here."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import socket
import sys
from argparse import Namespace
from functools import partial
from pathlib import Path

from agentwatch.arguments import workspace_at
from agentwatch.cli.command import CREDS, argument, command, flag
from agentwatch.composition import desk_of, monitor_of
from agentwatch.config import load
from agentwatch.decisions.envelope import SigningKey
from agentwatch.decisions.keys import Keys, Role, introduced
from agentwatch.errors import UsageError, WorkspaceError
from agentwatch.remote.address import is_host
from agentwatch.remote.pipe import LinkState, RelayEnd, StdioEnd
from agentwatch.remote.relay import Relay
from agentwatch.remote.relay_desk import RelayDesk
from agentwatch.shell import FLEET, needing
from agentwatch.text import clean, complain, say
from agentwatch.workspaces import names_of


@command(
    argument("paths", "PATH", "workspaces (default: the current directory)", nargs="*"),
    flag("--stdio", "through input and output, as ssh runs it for `agentwatch ssh://HOST/PATH`"),
    argument("--nats", "URL", "through this NATS server, for `agentwatch nats://SERVER/NAME`"),
    CREDS,
    argument(
        "--trust",
        "NAME=KEY",
        "trust the key of this operator first; again for the next one",
        action="append",
        default=[],
    ),
    argument("--name", "NAME", "what this host calls itself (default: its name)", default=""),
)
def relay(options: Namespace) -> int:
    """Tell screens on other machines what is seen here, and record what their operators decide, if this host trusts
    the operator's key.
    """
    gc.enable()
    if options.stdio == (options.nats is not None):
        raise UsageError("say how it is told: --stdio, as ssh runs it, or --nats URL")
    for name, public in list(map(introduced, options.trust)):
        Keys().trust_other(Role.OPERATOR, public, name)
    # Before anything can be written to what the screen reads.
    end: RelayEnd | None = _stdio() if options.stdio else None
    # No shell has seen the ~ of an address. Each workspace was asked for by some paths.
    asked, missing = dict[Path, list[str]](), dict[str, WorkspaceError]()
    for path in options.paths or ["."]:
        try:
            asked.setdefault(workspace_at(os.path.expanduser(path)), []).append(path)  # noqa: PTH111
        except WorkspaceError as error:
            missing[path] = error
    if missing and not (asked and options.stdio):
        raise next(iter(missing.values()))
    settings = load()
    # The key that signs what this host says is the one that signs its decisions. The first use makes it.
    desk = desk_of(next(iter(asked)), settings)
    if (why := desk.why_locked()) is not None:
        raise UsageError(f"{why}: a relay cannot ask for it; `agentwatch keys passphrase --keyring` can keep it here")
    if end is None:
        end = _nats(options, desk.key())
    names = names_of(asked)
    monitors = {
        name: monitor_of(one, settings, remembers=True, open_desk=partial(desk_of, one, settings))
        for one, name in names.items()
    }
    desks = {monitor: RelayDesk(monitor) for monitor in monitors.values()}
    relay = Relay(
        monitors,
        end,
        desk.key(),
        asked={names[one]: paths for one, paths in asked.items()},
        decide=lambda monitor, request: desks[monitor].record(request),
        host=options.name,
        missing={path: clean(str(error)) for path, error in missing.items()},
    )
    if ended := asyncio.run(_run(relay)):
        complain(f"agentwatch: the relay has ended: {ended}")
    return 0


def _stdio() -> StdioEnd:
    """The end on this process's input and output, which from now on nothing else writes to."""
    outgoing = os.dup(sys.__stdout__.fileno() if sys.__stdout__ is not None else 1)
    os.dup2(2, 1)
    return StdioEnd(0, outgoing)


def _nats(options: Namespace, key: SigningKey) -> RelayEnd:
    """The end on a NATS server, which prints its state on standard error."""
    with needing(*FLEET):
        from agentwatch.remote.nats import Login, NatsEnd, file_of, shown

    deciding = {clean(one.name): None for one in Keys().others(Role.OPERATOR) if one.distrusted_at is None}
    host = options.name or socket.gethostname()
    introduced_as = f"{host if is_host(host) else 'NAME'}={key.public.text}"
    say(f"relaying over {clean(shown(options.nats))} as {key.public.text}")
    say(f"may decide here: {', '.join(deciding) or 'nobody yet; `--trust NAME=KEY` says who may'}")
    say(f"next, unless the server knows this host: agentwatch fleet config --trust {introduced_as} > nats.conf")
    return NatsEnd(options.nats, key, login=Login(key, file_of(options.creds)), note=_report_state)


def _report_state(state: LinkState) -> None:
    complain("agentwatch: connected" if state.up else f"agentwatch: {clean(state.words, 600)}; trying again")


async def _run(relay: Relay) -> str:
    """Relay until it ends. Returns why."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, relay.end)
    return await relay.run()
