"""A link in the memory: every message waits until the test says what becomes of it."""

from __future__ import annotations

from agentwatch.remote.pipe import Change, Link, LinkState, Receive


class MemoryEnd(Link):
    """The end of a relay; the messages for each screen wait in that screen's link."""

    def __init__(self) -> None:
        self.links: list[MemoryLink] = []
        self.sent = 0
        self.bytes = 0
        self.receive: Receive = lambda _message: None
        self.change: Change = lambda _state: None

    def start(self, receive: Receive, change: Change) -> None:
        self.receive, self.change = receive, change

    def send(self, message: bytes, to: str = "") -> None:
        self.sent += 1
        self.bytes += len(message)
        for link in self.links:
            if link.is_up and to in ("", link.screen):
                link.waiting.append(message)

    def stop(self) -> None:
        pass


class MemoryLink(Link):
    """The end of a screen. `waiting` is what it will be told, `said` what it has said."""

    def __init__(self, end: MemoryEnd) -> None:
        self.is_up = False
        self.waiting: list[bytes] = []
        self.said: list[bytes] = []
        self.receive: Receive = lambda _message: None
        self.change: Change = lambda _state: None
        self._end = end
        end.links.append(self)

    def start(self, receive: Receive, change: Change) -> None:
        self.receive, self.change = receive, change

    def stop(self) -> None:
        self.cut()

    def connect(self) -> None:
        if not self.is_up:
            self.is_up = True
            self.change(LinkState(up=True))

    def cut(self) -> None:
        """All that is on its way is lost."""
        if self.is_up:
            self.is_up = False
            self.waiting.clear()
            self.said.clear()
            self.change(LinkState(up=False, words="the cable was cut"))

    def reach(self, end: MemoryEnd) -> None:
        """From now on it leads to another relay."""
        self.cut()
        self._end.links.remove(self)
        self._end = end
        end.links.append(self)

    def send(self, message: bytes, to: str = "") -> None:
        if self.is_up:
            self.said.append(message)

    def hear(self, index: int = 0) -> None:
        """The relay hears what was said."""
        self._end.receive(self.said.pop(index))

    def deliver(self, index: int = 0) -> None:
        """The screen hears what it was told."""
        self.receive(self.waiting.pop(index))
