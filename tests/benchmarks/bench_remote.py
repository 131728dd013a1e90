"""The work of a screen with the messages of many hosts, compared with the same events observed here."""

from statistics import median

from agentwatch.contracts.shapes import Handoff
from agentwatch.delegation.events import Seen, Tick
from agentwatch.delegation.tree import Tree
from tests.benchmarks.measuring import Row, timed
from tests.unit.remote.between import NOON, Screen, pair

HOSTS = 100
TASKS = 100
AT_ONCE = 10


def _seen(number: int) -> Seen:
    packet = Handoff(f"t{number}", f"count the seeds of field {number}")
    return Seen(number, NOON + number, f"{number}.json", f"{number:064x}", packet)


def _deliver(screen: Screen, tasks: int):
    while screen.link.waiting:
        screen.link.deliver()
    assert len(screen.tree.tasks) == tasks


def run() -> list[Row]:
    batches = [[*map(_seen, range(at, at + AT_ONCE))] for at in range(0, TASKS, AT_ONCE)]
    pairs = [pair() for _ in range(HOSTS)]
    for host, _ in pairs:
        for batch in batches:
            host.see(batch)

    def far():
        for _, screen in pairs:
            _deliver(screen, TASKS)

    def here():
        for _ in range(HOSTS):
            tree = Tree()
            for batch in batches:
                tree.add_events(batch)
                tree.apply(Tick(0, NOON + TASKS))

    what = f"{TASKS:,} tasks on each of {HOSTS:,} hosts"
    rows = [Row(f"{what}: processor", "observed here", timed(here), timed(far), 3.0)]
    # One more task on each host, compared with the same tasks, one by one, in a workspace that holds all.
    tree, far_one, here_one = Tree(), list[float](), list[float]()
    tree.apply(*map(_seen, range(HOSTS * TASKS)))
    for number, (host, screen) in enumerate(pairs, HOSTS * TASKS):
        begun = [_seen(number)]
        far_one.append(timed(lambda: (host.see(begun), _deliver(screen, TASKS + 1))))  # noqa: B023
        here_one.append(timed(lambda: tree.apply(*begun)))  # noqa: B023
    return [*rows, Row(f"{what}: one more, relay to tree", "all here", median(here_one), median(far_one), 1.0)]
