"""Workspaces on other machines, for commands that look once."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple

from agentwatch.composition import monitor_of_host
from agentwatch.config import Settings
from agentwatch.errors import UsageError
from agentwatch.text import clean, complain

if TYPE_CHECKING:
    from agentwatch.monitor import Monitor
    from agentwatch.remote.address import Address
    from agentwatch.remote.host import Fleet
    from agentwatch.workspaces import Place

_SILENT_SECONDS: Final = 1.5
"""Nobody asks what takes no longer."""


class RemoteWorkspaces(NamedTuple):
    """Workspaces on other machines, for a command that looks once; `places` by the paths that name them here."""

    places: Mapping[Path, Place] = MappingProxyType({})
    fleet: Fleet = None  # type: ignore[assignment]
    """There is one where there are places."""

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
        """The name of each."""
        return {workspace: place.name or "" for workspace, place in self.places.items()}

    def scanned(
        self,
        workspace: Path,
        settings: Settings,
        passphrase: Callable[[], str] | None = None,
    ) -> Monitor:
        """A monitor that has looked at one of them, which it must be. Blocks, and writes nothing."""
        monitor = monitor_of_host(self.fleet, self.places[workspace], settings, passphrase)
        monitor.scan()
        monitor.written = self.fleet.address(workspace)
        monitor.directory = self.fleet.directory(workspace) or monitor.written
        return monitor


@contextmanager
def connected(addresses: Sequence[Address]) -> Iterator[RemoteWorkspaces]:
    """The workspaces behind some addresses, connected meanwhile. Raises UsageError and DecisionError."""
    if not addresses:
        yield RemoteWorkspaces()
        return
    from agentwatch.remote.host import Fleet

    fleet = Fleet(addresses)

    def complain_of_silence() -> None:
        if awaited := fleet.awaited():
            complain(f"agentwatch: waiting for {clean(', '.join(awaited), 300)}")

    timer = threading.Timer(_SILENT_SECONDS, complain_of_silence)
    timer.daemon = True
    timer.start()
    try:
        yield RemoteWorkspaces({place.workspace: place for place in fleet.found().places}, fleet)
    finally:
        timer.cancel()
        fleet.close()
