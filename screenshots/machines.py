"""Three machines on one screen, for a picture: the demo at a moment of its own on each, and one that is lost."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from agentwatch.config import Settings
from agentwatch.delegation.events import Lost
from agentwatch.demo.script import Player, Step
from agentwatch.monitor import Monitor
from agentwatch.sources import Batch, Health, Problem
from agentwatch.sources.files.source import FilesSource
from agentwatch.workspaces import Place, Workspaces

HOSTS: Final = (
    # host, workspace, the second of the demo's session, the address
    ("build1", "shop", 110, "/ssh:build1:/srv/shop"),
    ("build2", "api", 40, "/ssh:build2:~/api"),
    ("box", "crawler", 20, "/nats:box/9f2c4e6a8b0d1f35"),
)
LOST: Final = "build2"
_WHY: Final = f"{LOST} cannot be reached: Connection timed out: `ssh {LOST}` in a terminal says more"


class Machine(FilesSource):
    """A workspace as a host tells of it."""

    def __init__(self, workspace: Path, steps: Sequence[Step], host: str, seconds: int) -> None:
        workspace.mkdir(parents=True)
        super().__init__(workspace)
        self.host, self.seconds = host, seconds
        self._player = Player(steps, workspace)

    def start(self, emit: Callable[[Batch], None]) -> None:
        self._emit = emit
        super().start(emit)

    def play(self, second: int, started_at: float) -> None:
        """Everything that happens there until a second, of all those that pass here."""
        self._player.play(min(second, self.seconds), started_at)

    def lose(self, since: float) -> None:
        """It cannot be reached any more."""
        self._emit(Batch((Lost(0, since),), Health("degraded", _WHY, problems=(Problem("files", self.host, _WHY),))))


def fleet(
    place: Path, steps: Sequence[Step], settings: Settings, clock: Callable[[], float]
) -> tuple[Workspaces, list[Machine]]:
    """A monitor of all three, with their files below a place, and the machines themselves."""
    machines = {address: Machine(place / host / name, steps, host, until) for host, name, until, address in HOSTS}

    def open_one(one: Place) -> Monitor:
        source = machines[str(one.workspace)]
        return Monitor(one.workspace, settings, source, clock, host=one.host)

    places = [Place(Path(address), f"{host}: {name}", host=host) for host, name, _, address in HOSTS]
    return Workspaces(places, settings, open_one), [*machines.values()]
