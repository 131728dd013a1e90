"""What a monitor of a workspace on another machine is made of, for the screen and for commands that look once."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple

from agentwatch.config import Settings
from agentwatch.errors import UsageError
from agentwatch.monitor import Monitor
from agentwatch.place import state_directory
from agentwatch.places import Place
from agentwatch.text import clean, complain

if TYPE_CHECKING:
    from agentwatch.history.acknowledgements import Acknowledgements
    from agentwatch.remote.address import Address
    from agentwatch.remote.desk import RemoteDesk
    from agentwatch.remote.fleet import Fleet
    from agentwatch.remote.said import Host
    from agentwatch.remote.source import RemoteSource
    from agentwatch.sources.sessions.selection import Selection


_AT_ONCE_SECONDS: Final = 1.5
"""Nobody asks what takes no longer."""


def fleet_of(addresses: Sequence[Address]) -> Fleet:
    """The hosts behind some addresses. Raises UsageError and DecisionError."""
    # Signatures take a while to load.
    from agentwatch.remote.fleet import Fleet

    return Fleet(addresses)


def far_monitor(
    fleet: Fleet,
    place: Place,
    settings: Settings,
    selection: Selection | None = None,
    passphrase: Callable[[], str] | None = None,
) -> Monitor:
    """A monitor of a workspace on another machine; it has not looked yet. What is put aside is kept on this one."""
    source = fleet.source(place.workspace)

    def open_shelf() -> Acknowledgements:
        from agentwatch.history.acknowledgements import Acknowledgements

        return Acknowledgements(state_directory(place.workspace), writes=not settings.read_only)

    return Monitor(
        place.workspace,
        settings,
        source,
        time.time,
        keeps_deleted=True,
        open_desk=lambda: _desk_of(source.host, lambda: source.workspace_id, place.workspace, settings, passphrase),
        open_shelf=open_shelf,
        since=selection.since if selection else None,
        host=place.host,
    )


class Far(NamedTuple):
    """Workspaces on other machines, for a command that looks once; `places` by the paths that name them here."""

    places: Mapping[Path, Place] = MappingProxyType({})
    fleet: Fleet | None = None

    def only(self, address: Address) -> Path:
        """The one workspace behind an address. Raises UsageError where there are others, or none."""
        if len(self.places) != 1:
            known = ", ".join(f"{address.written}/{name.rpartition(': ')[2]}" for name in self.names.values())
            raise UsageError(
                f"{address.written} names {'several workspaces: give one of ' + known if known else 'none'}"
            )
        return next(iter(self.places))

    @property
    def names(self) -> Mapping[Path, str]:
        """What each is called."""
        return {workspace: place.name or "" for workspace, place in self.places.items()}

    def source(self, workspace: Path) -> RemoteSource:
        """What one of them tells, which it must be."""
        if self.fleet is None:
            raise KeyError(workspace)
        return self.fleet.source(workspace)

    def desk(self, workspace: Path, settings: Settings) -> RemoteDesk:
        """What was decided here about one of them, which it must be; nothing is looked at there."""
        source = self.source(workspace)
        return _desk_of(source.host, lambda: source.workspace_id, workspace, settings)

    def scanned(
        self,
        workspace: Path,
        settings: Settings,
        selection: Selection | None = None,
        passphrase: Callable[[], str] | None = None,
    ) -> Monitor:
        """A monitor that has looked at one of them, which it must be. Blocks, and writes nothing."""
        if self.fleet is None:
            raise KeyError(workspace)
        monitor = far_monitor(self.fleet, self.places[workspace], settings, selection, passphrase)
        monitor.scan()
        monitor.written = self.fleet.address(workspace)
        monitor.directory = self.fleet.directory(workspace) or monitor.written
        return monitor


@contextmanager
def far_off(addresses: Sequence[Address]) -> Iterator[Far]:
    """The workspaces behind some addresses, connected meanwhile. Raises UsageError and DecisionError."""
    if not addresses:
        yield Far()
        return
    fleet = fleet_of(addresses)
    telling = threading.Timer(_AT_ONCE_SECONDS, _tell_awaited, [fleet])
    telling.daemon = True
    telling.start()
    try:
        yield Far({place.workspace: place for place in fleet.found().places}, fleet)
    finally:
        telling.cancel()
        fleet.close()


def _tell_awaited(fleet: Fleet) -> None:
    """Say on standard error what a command waits for."""
    if awaited := fleet.awaited():
        complain(f"agentwatch: waiting for {clean(', '.join(awaited), 300)}")


def _desk_of(
    host: Host,
    workspace_id: Callable[[], str],
    place: Path,
    settings: Settings,
    passphrase: Callable[[], str] | None = None,
) -> RemoteDesk:
    """The operator's desk for a workspace of a host, as the settings have it."""
    from datetime import timedelta

    # Signatures take a while to load.
    from agentwatch.remote.desk import RemoteDesk

    queue = timedelta(seconds=settings.remote_queue) if settings.remote_queue else None
    lifetime = timedelta(seconds=settings.expires_after)
    return RemoteDesk(host, workspace_id, place, queue=queue, lifetime=lifetime, passphrase=passphrase)
