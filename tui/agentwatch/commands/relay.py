"""`agentwatch relay`: tells screens on other machines what is seen here, and records what is decided there."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from agentwatch.composition import desk_of, monitor_of
from agentwatch.config import Settings
from agentwatch.decisions.keys import Keys
from agentwatch.decisions.others import Role, introduced
from agentwatch.errors import UsageError
from agentwatch.remote.address import is_host
from agentwatch.remote.relay import Relay
from agentwatch.remote.relay_desk import RelayDesk
from agentwatch.remote.stdio import StdioEnd
from agentwatch.remote.wire import Signer
from agentwatch.shell import FLEET, needing
from agentwatch.text import clean, complain, say
from agentwatch.workspaces import names_of

if TYPE_CHECKING:
    from agentwatch.decisions.envelope import SigningKey
    from agentwatch.monitor import Monitor
    from agentwatch.remote.frames import Decide, Result
    from agentwatch.remote.link import LinkState, RelayEnd


def stdio() -> StdioEnd:
    """The end on this process's input and output, which from now on nothing else writes to."""
    outgoing = os.dup(sys.__stdout__.fileno() if sys.__stdout__ is not None else 1)
    os.dup2(2, 1)
    return StdioEnd(0, outgoing)


def trust(introductions: Sequence[str]) -> None:
    """Trust operators who are introduced as NAME=KEY. Raises KeyProblemError."""
    for name, key in list(map(introduced, introductions)):
        Keys().trust_other(Role.OPERATOR, key, name)


def nats(server: str, key: SigningKey, creds: str | None, *, name: str = "") -> RelayEnd:
    """The end on a NATS server, of a host with this name, which prints its state on standard error. Raises UsageError,
    and KeyProblemError for keys that cannot be read."""
    with needing(*FLEET):
        from agentwatch.remote.nats_connection import Login
        from agentwatch.remote.nats_end import NatsEnd
        from agentwatch.remote.nats_fleet import file_of
        from agentwatch.remote.nats_words import shown

    deciding = [one for one in Keys().others(Role.OPERATOR) if one.distrusted_at is None]
    names = ", ".join(dict.fromkeys(clean(one.name) for one in deciding))
    say(f"relaying over {clean(shown(server))} as {key.public.text}")
    say(f"may decide here: {names or 'nobody yet; `--trust NAME=KEY` says who may'}")
    say(f"next, unless the server knows this host: {_introduction(name or socket.gethostname(), key)}")
    return NatsEnd(server, key, login=Login(key, file_of(creds)), note=_note)


def _note(state: LinkState) -> None:
    complain("agentwatch: connected" if state.up else f"agentwatch: {clean(state.words, 600)}; trying again")


def _introduction(name: str, key: SigningKey) -> str:
    """The command by which an operator makes this host known to a server."""
    called = name if is_host(name) else "NAME"
    return f"agentwatch fleet config --trust {called}={key.public.text} > nats.conf"


def key_of_host(workspace: Path, settings: Settings) -> SigningKey:
    """The key that signs what this host says: the one that signs its decisions. The first use makes it."""
    desk = desk_of(workspace, settings)
    if (why := desk.why_locked()) is not None:
        raise UsageError(f"{why}: a relay cannot ask for it; `agentwatch keys passphrase --keyring` can keep it here")
    return desk.key()


def relay(
    workspaces: Mapping[Path, Sequence[str]], settings: Settings, end: RelayEnd, key: SigningKey, *, name: str = ""
) -> int:
    """Relay these workspaces until the screen has gone, or somebody ends it. Each was asked for by some paths."""
    monitors = {named: _monitor(workspace, settings) for workspace, named in names_of(workspaces).items()}
    asked = {named: workspaces[workspace] for workspace, named in names_of(workspaces).items()}
    why = asyncio.run(_run(monitors, asked, end, key, name))
    if why:
        complain(f"agentwatch: the relay has ended: {why}")
    return 0


def _monitor(workspace: Path, settings: Settings) -> Monitor:
    return monitor_of(workspace, settings, remembers=True, open_desk=partial(desk_of, workspace, settings))


async def _run(
    monitors: Mapping[str, Monitor], asked: Mapping[str, Sequence[str]], end: RelayEnd, key: SigningKey, name: str
) -> str:
    desks = {monitor: RelayDesk(monitor) for monitor in monitors.values()}

    async def decide(monitor: Monitor, decide: Decide) -> Result:
        return await desks[monitor].record(decide.request)

    running = Relay(monitors, end, Signer(key), host=name, asked=asked, decide=decide)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, running.end)
    return await running.run()
