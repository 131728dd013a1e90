"""The work of a screen with what hosts tell it, against the same observed here."""

from __future__ import annotations

from agentwatch.contracts.shapes import Handoff
from agentwatch.delegation.events import Event, Seen, Tick
from agentwatch.delegation.tree import Tree
from tests.benchmarks.measuring import Row, timed
from tests.unit.remote.between import NOON, pair

HOSTS = 100
TASKS = 100
AT_ONCE = 10


def _observed() -> list[list[Event]]:
    """Batches of new tasks, as a workspace tells them."""
    packets = [Handoff(f"t{number}", f"count the seeds of field {number}") for number in range(TASKS)]
    seen = [Seen(at, NOON + at, f"{at}.json", f"{at:064x}", packet) for at, packet in enumerate(packets)]
    return [[*seen[at : at + AT_ONCE]] for at in range(0, TASKS, AT_ONCE)]


def run() -> list[Row]:
    pairs = [pair() for _ in range(HOSTS)]
    for host, _ in pairs:
        for batch in _observed():
            host.see(batch)

    def far() -> None:
        for _, screen in pairs:
            while screen.link.waiting:
                screen.link.deliver()
            if len(screen.tree.tasks) != TASKS:
                raise RuntimeError("not all was told")

    def here() -> None:
        for _ in range(HOSTS):
            tree = Tree()
            for batch in _observed():
                tree.add(batch)
                tree.apply(Tick(0, NOON + TASKS))

    what = f"{TASKS:,} tasks on each of {HOSTS:,} hosts, {AT_ONCE} at once"
    return [Row(f"{what}: processor of the screen", "observed here", timed(here), timed(far), 3.0)]
