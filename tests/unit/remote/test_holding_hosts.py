"""A connection lasts while one source needs it: one that was never begun, or is stopped twice, ends no other's."""

from __future__ import annotations

from agentwatch.remote.host import RemoteHost
from agentwatch.remote.link import Change, Link, Take
from agentwatch.remote.source import RemoteSource


class Quiet(Link):
    """A link on which nothing is heard."""

    def __init__(self) -> None:
        self.is_on = False

    def start(self, take: Take, change: Change) -> None:
        self.is_on = True

    def send(self, message: bytes, *, keep: bool = False) -> None:
        pass

    def stop(self) -> None:
        self.is_on = False


def test_a_source_that_is_stopped_before_it_began_or_twice_ends_no_connection_of_another() -> None:
    link = Quiet()
    host = RemoteHost(link, "build1")
    first, second, never = (RemoteSource(host) for _ in range(3))
    first.start(lambda _: None)
    second.start(lambda _: None)
    never.stop()
    first.stop()
    first.stop()
    assert link.is_on
    second.stop()
    assert not link.is_on
