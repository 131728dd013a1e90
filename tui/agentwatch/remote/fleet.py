"""The hosts that a screen or a command is about, and the workspaces that they relay."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Final, NamedTuple

from agentwatch.decisions.envelope import PublicKey
from agentwatch.decisions.errors import KeyProblemError
from agentwatch.decisions.keys import Keys, Role
from agentwatch.errors import UsageError
from agentwatch.remote.address import Address
from agentwatch.remote.host import SCAN_SECONDS, RemoteHost, RemoteSource
from agentwatch.remote.pipe import ProcessLink
from agentwatch.shell import FLEET, needing
from agentwatch.state import is_workspace_id
from agentwatch.workspaces import Place, Places

if TYPE_CHECKING:
    from agentwatch.remote.nats import NatsHub

_PAUSE_SECONDS: Final = 0.05


class _Known(NamedTuple):
    """A workspace: its host, by what the host knows it, and its address."""

    host: RemoteHost
    name: str
    written: str


class Fleet:
    """The hosts behind some addresses. Connections are made once something is asked for, and end with `close`."""

    def __init__(self, addresses: Sequence[Address]) -> None:
        self._keys = Keys()
        self._known: dict[Path, _Known] = {}
        self._fixed: list[Place] = []
        """The workspaces that the addresses name."""
        self._brokered: dict[str, _Known] = {}
        """By label, hosts that say themselves which workspaces they have, and the one that is meant, "" for all."""
        self._asked_for = {address.host for address in addresses if address.kind == "nats"}
        self._held: list[RemoteHost] = []
        self._sources: list[RemoteSource] = []
        groups: dict[str, list[Address]] = {}
        hubs: dict[str, NatsHub] = {}
        for one in addresses:
            if one.kind == "nats":
                self._add_nats(one, hubs)
            else:
                groups.setdefault(f"{one.label} {one.kind}:{one.target}", []).append(one)
        for group in groups.values():
            self._add_linked(group)

    def _add_linked(self, addresses: Sequence[Address]) -> None:
        """Add the workspaces of one host: one connection is for all of them."""
        label = addresses[0].label
        link = ProcessLink(addresses[0], [one.path for one in addresses])
        host = RemoteHost(link, label, key=self._trusted().get(label), accept=partial(self._accept, label))
        names = {place.name for place in self._fixed}
        for address in addresses:
            short, whole = f"{label}: {PurePosixPath(address.path).name}", f"{label}: {address.path}"
            name = whole if short in names else short
            names.add(name)
            self._known[address.place] = _Known(host, address.path, address.written)
            self._fixed.append(Place(address.place, name, host=label))

    def _add_nats(self, address: Address, hubs: dict[str, NatsHub]) -> None:
        with needing(*FLEET):
            from agentwatch.remote.nats import NatsHub, login_of
        trusted = self._trusted()
        if not trusted or (address.host and address.host not in trusted):
            who = f"no host is known by the name {address.host}" if address.host else "no host is trusted yet"
            raise UsageError(
                f"{address.written}: {who}; `agentwatch keys` on it prints its key, and here"
                f" `agentwatch keys trust KEY --name {address.host or 'NAME'} --host` makes it known"
            )
        if address.server not in hubs:
            hubs[address.server] = NatsHub(address.server, login_of(None, self._keys))
        for name in [address.host] if address.host else trusted:
            if name not in self._brokered:
                host = RemoteHost(hubs[address.server].link(trusted[name]), name, key=trusted[name])
                host.hold(self)
                self._brokered[name] = _Known(host, address.path, f"nats://{address.server}/{name}")

    def _trusted(self) -> dict[str, PublicKey]:
        """The keys that hosts have signed with before, by the names of the hosts."""
        return {one.name: one.public for one in self._keys.others(Role.HOST) if one.distrusted_at is None}

    def _accept(self, label: str, key: PublicKey) -> str:
        """Why the key of a first hello is refused; one that is not is noted, and the answer is empty."""
        if key in self._trusted().values():
            return ""
        if any(one.public == key for one in self._keys.others(Role.HOST)):
            return f"its key is trusted no more: `agentwatch keys trust {key.text} --name {label} --host` does so"
        try:
            self._keys.trust_other(Role.HOST, key, label)
        except KeyProblemError as error:
            return f"its key cannot be noted: {error}"
        return ""

    # What there is

    @property
    def is_growing(self) -> bool:
        """Whether there are hosts that say themselves which workspaces they have."""
        return bool(self._brokered)

    def find(self) -> Places:
        """The workspaces that are known by now. Any thread may call it."""
        places = list(self._fixed)
        for label, (host, wanted, written) in self._brokered.items():
            own = Path(f"/nats:{label}")
            if host.hello is not None:
                # The host's words: only what can be an id leads to no directory of this machine.
                meant = {one.id: one for one in host.hello.workspaces if wanted in ("", one.name, one.id, one.path)}
                for one in filter(lambda one: is_workspace_id(one.id), meant.values()):
                    self._known[own / one.id] = _Known(host, one.id, f"{written}/{one.id}")
                    places.append(Place(own / one.id, f"{label}: {one.name}", comes=True, host=label))
            elif label in self._asked_for:
                # Any other may be another broker's.
                self._known[own] = _Known(host, wanted, written)
                places.append(Place(own, label, comes=True, host=label))
        return Places(places)

    def found(self) -> Places:
        """The same, once each host has said which it has, or cannot be reached. Blocks."""
        until = time.monotonic() + SCAN_SECONDS
        self._held = list(dict.fromkeys(self._known[place.workspace].host for place in self._fixed))
        for host in self._held:
            # All at the same time.
            host.hold(self)
        hosts = [known.host for known in self._brokered.values()]
        while time.monotonic() < until and any(one.hello is None and one.lost_since is None for one in hosts):
            time.sleep(_PAUSE_SECONDS)
        return self.find()

    def _hosts(self) -> list[RemoteHost]:
        """All that are connected for this fleet."""
        return [*self._held, *(known.host for known in self._brokered.values())]

    def awaited(self) -> list[str]:
        """The names of the hosts that have not answered yet, and can still do so."""
        return [host.label for host in self._hosts() if host.lost_since is None and not host.pulse.is_alive]

    def source(self, place: Path) -> RemoteSource:
        """A source of a workspace that was found."""
        host, name, _ = self._known[place]
        source = RemoteSource(host, name)
        self._sources.append(source)
        return source

    def directory(self, place: Path) -> str:
        """The path of a workspace that was found, on its host; "" where the host has not said so."""
        host, name, _ = self._known[place]
        known = host.hello.workspaces if host.hello is not None else ()
        return next((one.path for one in known if one.is_called(name)), "")

    def address(self, place: Path) -> str:
        """The address of a workspace that was found, for another command."""
        return self._known[place].written

    def close(self) -> None:
        """End all connections."""
        for source in self._sources:
            source.stop()
        for host in self._hosts():
            host.release(self)
