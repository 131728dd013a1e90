"""The hosts that a screen or a command is about, and the workspaces that they relay."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Final, NamedTuple

from agentwatch.decisions.envelope import PublicKey
from agentwatch.decisions.errors import KeyProblemError
from agentwatch.decisions.keys import Keys, Role
from agentwatch.errors import UsageError
from agentwatch.remote.address import Address
from agentwatch.remote.host import RemoteHost
from agentwatch.remote.pipe import ProcessLink
from agentwatch.remote.source import SCAN_SECONDS, RemoteSource
from agentwatch.shell import FLEET, needing
from agentwatch.state import is_workspace_id
from agentwatch.workspaces import Place, Places

if TYPE_CHECKING:
    from agentwatch.remote.nats import NatsHub

_PAUSE_SECONDS: Final = 0.05
_MOST_WORKSPACES: Final = 500
"""Of one host: each is watched, and may be made up."""


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
        self._asked_for: set[str] = set()
        """The labels of those of them that are meant by name."""
        self._held: list[RemoteHost] = []
        self._sources: list[RemoteSource] = []
        for (label, _), group in _by_host([one for one in addresses if one.kind != "nats"]).items():
            self._add_linked(label, group)
        hubs: dict[str, NatsHub] = {}
        for address in addresses:
            if address.kind == "nats":
                self._add_nats(address, hubs)

    def _add_linked(self, label: str, addresses: Sequence[Address]) -> None:
        """Add the workspaces of one host: one connection is for all of them."""
        link = ProcessLink(addresses[0], [one.path for one in addresses])
        host = RemoteHost(link, label, key=self._trusted().get(label), accept=partial(self._accept, label))
        names = [place.name for place in self._fixed]
        for address in addresses:
            short, whole = f"{label}: {PurePosixPath(address.path).name}", f"{label}: {address.path}"
            names.append(whole if short in names else short)
            self._known[address.place] = _Known(host, address.path, address.written)
            self._fixed.append(Place(address.place, names[-1], host=label))

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
        hub = hubs.get(address.server)
        if hub is None:
            hub = hubs[address.server] = NatsHub(address.server, login_of(None, self._keys))
        self._asked_for |= {address.host} - {""}
        for name in [address.host] if address.host else trusted:
            if name not in self._brokered:
                host = RemoteHost(hub.link(trusted[name]), name, key=trusted[name])
                host.hold()
                self._brokered[name] = _Known(host, address.path, f"nats://{address.server}/{name}")

    def _trusted(self) -> dict[str, PublicKey]:
        """The keys that hosts have signed with before, by the names of the hosts."""
        return {one.name: one.public for one in self._keys.others(Role.HOST) if one.retired_at is None}

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
        places, complaints = list(self._fixed), list[str]()
        for label, (host, wanted, written) in self._brokered.items():
            hello = host.hello
            if hello is None and label not in self._asked_for:
                # Of all that are trusted, it may be another broker's.
                continue
            if hello is None:
                place = Path(f"/nats:{label}")
                self._known[place] = _Known(host, wanted, written)
                places.append(Place(place, label, comes=True, host=label))
                continue
            # The host's words: only what can be an id leads to no directory of this machine.
            meant = {one.id: one for one in hello.workspaces if wanted in ("", one.name, one.id, one.path)}
            known = [one for one in meant.values() if is_workspace_id(one.id)]
            if len(known) > _MOST_WORKSPACES:
                complaints.append(f"{label} relays {len(known):,} workspaces: the first {_MOST_WORKSPACES} are shown")
            for one in known[:_MOST_WORKSPACES]:
                place = Path(f"/nats:{label}/{one.id}")
                self._known[place] = _Known(host, one.id, f"{written}/{one.id}")
                places.append(Place(place, f"{label}: {one.name}", comes=True, host=label))
        return Places(places, complaints)

    def found(self) -> Places:
        """The same, once each host has said which it has, or cannot be reached. Blocks."""
        until = time.monotonic() + SCAN_SECONDS
        hosts = [known.host for known in self._brokered.values()]
        self._held = list(dict.fromkeys(self._known[place.workspace].host for place in self._fixed))
        for host in self._held:
            # All at the same time.
            host.hold()
        while time.monotonic() < until and any(one.hello is None and one.lost_since is None for one in hosts):
            time.sleep(_PAUSE_SECONDS)
        return self.find()

    def awaited(self) -> list[str]:
        """What the hosts are called that have not answered yet, and can still do so."""
        hosts = [*self._held, *(known.host for known in self._brokered.values())]
        return [host.label for host in hosts if host.lost_since is None and not host.is_confirmed]

    def source(self, place: Path) -> RemoteSource:
        """A source of a workspace that was found."""
        host, name, _ = self._known[place]
        source = RemoteSource(host, name)
        self._sources.append(source)
        return source

    def host(self, place: Path) -> RemoteHost:
        """The host of a workspace that was found."""
        return self._known[place].host

    def directory(self, place: Path) -> str:
        """The path of a workspace that was found, on its host; "" where the host has not said so."""
        host, name, _ = self._known[place]
        known = host.hello.workspaces if host.hello is not None else ()
        return next((one.path for one in known if name in ("", one.id, one.name, one.path, *one.asked)), "")

    def address(self, place: Path) -> str:
        """How the operator names a workspace that was found, for another command."""
        return self._known[place].written

    def close(self) -> None:
        """End all connections."""
        for source in self._sources:
            source.stop()
        for host in (*self._held, *(known.host for known in self._brokered.values())):
            host.release()


def _by_host(addresses: Sequence[Address]) -> dict[tuple[str, str], list[Address]]:
    """The addresses by their host: its label, and the way to it. It is called by its own name, but for one that is
    reached in several ways."""
    shared = Counter({address.target: address.label for address in addresses}.values())
    groups: dict[tuple[str, str], list[Address]] = {}
    for one in addresses:
        label = one.label if one.name or shared[one.label] == 1 else one.target
        groups.setdefault((label, f"{one.kind}:{one.target}"), []).append(one)
    return groups
