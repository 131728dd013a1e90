"""What is known here of a workspace on another machine, in one epoch of its relay."""

from __future__ import annotations

from collections import Counter
from typing import Final, Protocol

from agentwatch.remote.book import Book, Put
from agentwatch.remote.frames import Cursor, Hello, Mark, Observed, Reset, Standing, Workspace
from agentwatch.remote.limits import MOST_WORKSPACES, excess, weight
from agentwatch.remote.observed import Told
from agentwatch.sources import Health

_PATIENCE: Final = 2
"""So many beats in a row must tell that something lacks, where it may still be on its way; and so often less than
everything is asked for."""
_LONGEST: Final = 600
"""Characters of how well a host sees, where there is no room for more."""


class Copy:
    """A copy of the book of a relay. With `keeps`, what carries the messages leaves out those that are void, so that
    gaps are nothing strange."""

    def __init__(self, epoch: str, *, keeps: bool = False) -> None:
        self.epoch = epoch
        self.standing: Standing | None = None
        self.book = Book()
        self.have = 0
        """Up to here, everything is known."""
        self.is_late = False
        """Some of it came behind what it belongs before: who has taken it as it came has to begin anew."""
        self.dropped: set[str] = set()
        """The kinds of `limits.MOST` of which there was more than is taken in."""
        self._keeps = keeps
        self._upto = 0
        """From here on, all is there again that was told before a reset."""
        self._lacks = False
        self._misses = 0
        self.asked = 0
        """How often what lacks was asked for in vain."""

    @property
    def wants_all(self) -> bool:
        """Asking for what lacks has not helped: everything has to be told anew."""
        return self.asked >= _PATIENCE

    @property
    def is_complete(self) -> bool:
        """Whether all is known that the relay knew when it spoke last."""
        return bool(self.dropped) or (not self.lacks and self.have >= max(self._upto, self.book.seq))

    @property
    def lacks(self) -> bool:
        """Whether something is missing that has to be asked for."""
        # There is no room for what was dropped: it is not asked for again.
        return not self.dropped and (self._lacks or self._misses >= (_PATIENCE if self._keeps else 1))

    @property
    def held(self) -> Counter[str]:
        """How much is known, by the kinds of `limits.MOST`."""
        return self.book.held + Counter(MiB=weight(self.standing))

    @property
    def cursor(self) -> Cursor:
        return Cursor(self.epoch, self.have)

    def ask(self) -> None:
        """What lacks is asked for now."""
        self.asked += 1
        self._misses = 0

    def take(self, observed: Observed, others: Counter[str]) -> list[Told]:
        """Take in what was told, as far as others leave room. Returns what of it is new, in order."""
        new = []
        # The rest is one sum for all entries: it is made anew for each frame.
        others = others + Counter(MiB=weight(self.standing))
        for item in observed.items:
            put = self.book.put(item)
            if over := excess(others + self.book.held):
                self.book.remove(item)
                self.dropped.update(over)
                continue
            if put is not Put.KNOWN:
                new.append(item.event)
            self.is_late |= put is Put.LATE
        if observed.after <= self.have:
            self.have = max(self.have, observed.upto)
            # What came before may have waited for this.
            self._lacks &= self.have < self.book.seq
        elif not self._keeps:
            self._lacks = True
        return new

    def reset(self, reset: Reset) -> None:
        """All that was told is void; what follows is everything."""
        if reset.upto == 0:
            # That of the beginning of the epoch, when this copy was empty.
            return
        self.book, self.have, self._upto = Book(), 0, reset.upto
        self.is_late, self._lacks, self._misses = True, False, 0
        self.dropped = set()

    def stand(self, standing: Standing, others: Counter[str]) -> None:
        """How well the host sees it."""
        if self.standing is None or standing.number > self.standing.number:
            if over := excess(others + self.book.held + Counter(MiB=weight(standing))):
                standing = standing._replace(health=Health(standing.health.mode, standing.health.detail[:_LONGEST]))
                self.dropped.update(over)
            self.standing = standing

    def compare(self, mark: Mark) -> None:
        """The relay says how far its book is."""
        standing = self.standing.number if self.standing is not None else 0
        if mark.seq < self.book.seq:
            # It came late.
            return
        if (mark.seq, mark.digest) == (self.book.seq, self.book.mark):
            self.have, self._upto, self._lacks, self.asked = self.book.seq, 0, False, 0
            self._misses = self._misses + 1 if mark.standing > standing else 0
        else:
            self._misses += 1


class Epoch:
    """One run of the relay."""

    def __init__(self, hello: Hello, *, keeps: bool) -> None:
        workspaces = hello.workspaces[:MOST_WORKSPACES]
        self.hello = hello._replace(workspaces=workspaces)
        self.copies = {one.id: Copy(hello.epoch, keeps=keeps) for one in workspaces}
        self.confirmed_at = float("-inf")
        """When it was last known to run, by a clock that nobody sets."""

    def held_besides(self, copy: Copy) -> Counter[str]:
        """How much is known of all workspaces but one."""
        return sum((one.held for one in self.copies.values() if one is not copy), Counter[str]())


class Listener(Protocol):
    """A workspace of a host, as somebody here looks at it. Everything is called with the host's lock held."""

    is_shown: bool
    """Somebody sees it."""

    @property
    def workspace_id(self) -> str:
        """The host's id of it, "" before that is known."""

    def belongs(self, workspace: Workspace) -> bool:
        """Whether it is this one."""

    def show(self, copy: Copy, workspace: Workspace) -> None:
        """From now on, this is what is known of it."""

    def told(self, copy: Copy, new: list[Told]) -> None:
        """This is known besides."""

    def moved(self) -> None:
        """The clocks differ by something else than was known."""

    def advance(self) -> None:
        """Something may be different: whether the host can be reached, how well it sees, what time it is."""


def began(epoch: Epoch) -> float:
    """When this run of the relay began, by the clock of its host."""
    return epoch.hello.began_at
