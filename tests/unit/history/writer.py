"""A program that records versions without end and says on standard output what is on disk: to be killed.

Arguments: the state directory, a number that makes its documents its own, and how many observations make a batch.
"""

import sys
from itertools import count
from pathlib import Path

from agentwatch.delegation.events import Event, Gone
from agentwatch.history.store import History
from tests.unit.history.recorded import Workspace, meta


def main(state: Path, name: str, batch: int):
    history = History(state, limit=512 * 1024)
    history.begin()
    workspace = Workspace()
    for number in count():
        events: list[Event] = []
        for step in range(batch):
            path = f"{name}/{number % 7}-{step}.json"
            events.append(workspace.seen(path, meta("partial", f"sess_{name}_{number}_{step}")))
        if number % 5 == 4:
            events.append(workspace.gone(f"{name}/{number % 7}-0.json"))
        if not history.record(events, workspace.text_of):
            sys.exit(f"not recorded: {history.notice}")
        digests = [one.digest for one in events if not isinstance(one, Gone)]
        sys.stdout.write(" ".join(digests) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
