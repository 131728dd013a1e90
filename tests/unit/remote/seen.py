"""The view that a screen has of one workspace, whatever the link to it is."""

import json
import threading
import time
from collections.abc import Callable
from typing import Any

from agentwatch.decisions.envelope import PublicKey
from agentwatch.delegation.events import Lost, Reached, Tick
from agentwatch.delegation.tree import Tree
from agentwatch.remote.host import RemoteHost, RemoteSource
from agentwatch.remote.pipe import Link
from agentwatch.sources import Batch, Health
from agentwatch.view.document import tree_document


def until(is_so: Callable[[], bool], what: Callable[[], object] = lambda: None, seconds: float = 90.0):
    """Wait until something is so, and say `what` there is instead."""
    end = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < end, what()
        time.sleep(0.02)


class Seen:
    """A tree that takes what is told through a link."""

    def __init__(self, link: Link, key: PublicKey | None = None, clock: Callable[[], float] = time.time, **more: Any):
        self.tree = Tree()
        self.health = Health("starting", "")
        self.told: list[str] = []
        """The news of the way to the host."""
        self.lock = threading.Lock()
        self.clock = clock
        self.host = RemoteHost(link, "build1", key=key, clock=clock, **more)
        # Whoever decides on the host itself is the operator here, so that both sides say the same.
        self.source = RemoteSource(self.host, own_keys=lambda: [""])

    def look(self):
        self.source.start(self.receive)

    def receive(self, batch: Batch):
        with self.lock:
            tree = Tree() if batch.anew else self.tree
            for one in batch.events:
                tree.add([one])
                if isinstance(one, Lost | Reached):
                    self.told.append(type(one).__name__)
            tree.apply(Tick(0, self.clock()))
            self.tree, self.health = tree, batch.health

    def until(self, is_so: Callable[[], bool]):
        until(is_so, lambda: (self.health, [*self.tree.tasks], self.told))

    @property
    def is_live(self) -> bool:
        return self.health.mode == "live" and self.tree.lost_since is None

    def document(self, workspace: str) -> dict[str, Any]:
        """The document of `tree --json`, as it is seen here."""
        with self.lock:
            self.tree.apply(Tick(0, self.clock()))
            problems = [tuple(one) for one in self.health.problems]
            return json.loads(json.dumps(tree_document(self.tree, workspace, problems)))  # type: ignore[no-any-return]
