"""The book of a workspace: what was observed, as much of it as a tree needs, each entry with a number.

The relay writes it, and every screen keeps a copy. What is told of one subject (a file, a run, a decision) is a chain.
Only the relay decides what becomes void, and says so with `base`; the rest follows from the entries themselves, so that
books with the same entries are the same, in whatever order these came. A tree that is made of a book equals one that
has taken all there ever was.
"""

from __future__ import annotations

import hashlib
from bisect import bisect
from collections import Counter, OrderedDict
from collections.abc import Iterator
from enum import Enum, auto
from operator import attrgetter
from typing import Final

from agentwatch.contracts.shapes import Return
from agentwatch.delegation.events import Checked, Decided, Gone, Ran, Requested, Seen, Unreadable
from agentwatch.delegation.files import MAX_VERSIONS
from agentwatch.delegation.request import after
from agentwatch.remote.frames import Item
from agentwatch.remote.limits import load_of, tasks_in
from agentwatch.remote.observed import Told

MOST_CHECKS: Final = 32
"""Checks of one file that are kept: it may hold the latest returns of several tasks, one after the other."""
_MOST_FORGOTTEN: Final = 4_096
"""Subjects of which nothing is left but that they went; a screen that has not heard of one for so long begins anew."""

_seq = attrgetter("seq")


def key_of(event: Told) -> str:
    """The subject of an observation: what is told of it replaces, or goes on with, what was told before."""
    match event:
        case Seen(path=path) | Gone(path=path) | Unreadable(path=path):
            return f"file:{path}"
        case Checked(path=path):
            return f"check:{path}"
        case Ran(path=path):
            return f"run:{path}"
        case Decided(path=path):
            return f"decision:{path}"
        case Requested(path=path):
            return f"request:{path}"


class Put(Enum):
    """What an entry is to a copy of a book."""

    NEXT = auto()
    """It comes after all that the copy had."""
    LATE = auto()
    """It belongs between what the copy had: what was made of that has to be made anew."""
    KNOWN = auto()
    """The copy has it already, or it is void."""


class Book:
    """The entries that count. One thread uses it at a time. `seq` is the highest number of all that were put in."""

    def __init__(self) -> None:
        self.seq = 0
        self._chains: dict[str, list[Item]] = {}
        """By subject, its entries in their order."""
        self._by_seq: dict[int, Item] = {}
        self._forgotten: OrderedDict[str, Item] = OrderedDict()
        """By subject, the end of one of which nothing is left."""
        self._floor = 0
        """Who has less than this has missed an end that is forgotten."""
        self._mark = 0
        self._load: Counter[str] = Counter()
        self._tasks: Counter[str] = Counter()

    @property
    def held(self) -> Counter[str]:
        """How much is in it, by the kinds of `limits.MOST`."""
        return self._load + Counter(tasks=len(self._tasks))

    def __len__(self) -> int:
        return len(self._by_seq)

    @property
    def mark(self) -> str:
        """A digest of which entries there are, in hex. It is kept up with every entry."""
        return f"{self._mark:064x}"

    # The relay

    def take(self, event: Told) -> Item | None:
        """Write down what was observed now. Returns the entry, for all copies; None where it says nothing new."""
        chain = self._chains.get(key_of(event), [])
        base = 0
        if isinstance(event, Seen | Gone | Unreadable):
            left = len(chain)
            while left and self._is_void(chain, left - 1, event):
                left -= 1
            if left and left == len(chain) and _says_the_same(chain[-1].event, event):
                return None
            base = chain[left - 1].seq if left else 0
        elif isinstance(event, Requested) and chain and isinstance(chain[0].event, Requested):
            event = after(chain[0].event, event)
        item = Item(self.seq + 1, base, event)
        self.put(item)
        return item

    def since(self, seq: int) -> list[Item] | None:
        """What who has everything up to this number lacks, in order; None where that cannot be told any more."""
        if not self._floor <= seq <= self.seq:
            return None
        lacking = [item for item in self._forgotten.values() if item.seq > seq]
        # Here they were all put in as they came.
        for item in reversed(self._by_seq.values()):
            if item.seq <= seq:
                break
            lacking.append(item)
        return sorted(map(self._based, lacking), key=_seq)

    def everything(self) -> list[Item]:
        """All that counts, in order."""
        return sorted(map(self._based, self._by_seq.values()), key=_seq)

    @staticmethod
    def _is_void(chain: list[Item], index: int, event: Told) -> bool:
        """Whether the last entries of a file's chain, from an index on, say nothing any more after this."""
        last = chain[index].event
        if isinstance(last, Unreadable) or (isinstance(event, Gone) and event.undone):
            return True
        # Of several that say the same, the first one says since when, the last one that it is so again.
        before = chain[index - 1].event if index else None
        return before is not None and _says_the_same(before, last) and _says_the_same(last, event)

    def _based(self, item: Item) -> Item:
        """An entry as it stands now: what was before it may have been left out since."""
        if item.base == 0 or item.base in self._by_seq:
            return item
        chain = self._chains[key_of(item.event)]
        index = bisect(chain, item.seq - 1, key=_seq)
        return item._replace(base=chain[index - 1].seq if index else 0)

    # Its copies

    def put(self, item: Item) -> Put:
        """Write down an entry of the book that this one is a copy of."""
        event, key = item.event, key_of(item.event)
        if (end := self._forgotten.get(key)) is not None and end.seq >= item.seq:
            return Put.KNOWN
        chain = self._chains.setdefault(key, [])
        index = bisect(chain, item.seq, key=_seq)
        if (index and chain[index - 1].seq == item.seq) or self._is_over(item, chain[index:]):
            return Put.KNOWN
        fate = Put.NEXT if item.seq > self.seq else Put.LATE
        self.seq = max(self.seq, item.seq)
        if end is not None:
            self._load -= load_of(self._forgotten.pop(key).event)
        for one in [one for one in chain[:index] if self._is_over(one, [item])]:
            chain.remove(one)
            self._drop(one)
        chain.insert(bisect(chain, item.seq, key=_seq), item)
        self._enter(item)
        is_check = isinstance(event, Checked)
        if len(chain) > (MOST_CHECKS if is_check else MAX_VERSIONS):
            # The first version of a file says when its task began.
            self._drop(chain.pop(0 if is_check else 1))
        if len(chain) == 1 and chain[0].base == 0 and _says_it_went(chain[0].event):
            self._forget(key, chain.pop())
        if not chain:
            del self._chains[key]
        return fate

    def remove(self, item: Item) -> None:
        """Take an entry out that there is no room for."""
        key = key_of(item.event)
        if item.seq in self._by_seq:
            self._drop(item)
            self._chains[key].remove(item)
            if not self._chains[key]:
                del self._chains[key]
        elif self._forgotten.pop(key, None) is not None:
            self._load -= load_of(item.event)

    def chain(self, key: str) -> list[int]:
        """The numbers of all that counts about a subject, in order."""
        return [item.seq for item in self._chains.get(key, ())]

    def events(self) -> Iterator[Told]:
        """All that counts, in order, as a tree takes it."""
        return (item.event for item in sorted(self._by_seq.values(), key=_seq))

    def _is_over(self, item: Item, later: list[Item]) -> bool:
        """Whether an entry is void because of later ones about the same."""
        if isinstance(item.event, Checked):
            digest = item.event.digest
            return any(isinstance(one.event, Checked) and one.event.digest == digest for one in later)
        return any(one.base < item.seq for one in later)

    def _forget(self, key: str, item: Item) -> None:
        self._drop(item)
        self._forgotten[key] = item
        self._load += load_of(item.event)
        while len(self._forgotten) > _MOST_FORGOTTEN:
            gone = self._forgotten.popitem(last=False)[1]
            self._load -= load_of(gone.event)
            self._floor = max(self._floor, gone.seq)

    def _enter(self, item: Item) -> None:
        self._by_seq[item.seq] = item
        self._mark ^= _mark_of(item)
        self._load += load_of(item.event)
        self._tasks.update(tasks_in(item.event))

    def _drop(self, item: Item) -> None:
        del self._by_seq[item.seq]
        self._mark ^= _mark_of(item)
        self._load -= load_of(item.event)
        for task in tasks_in(item.event):
            self._tasks[task] -= 1
            if not self._tasks[task]:
                del self._tasks[task]


def _says_the_same(before: Told, now: Told) -> bool:
    """Whether a file that was so before is so now. A return that was written again may be that of another attempt."""
    match before, now:
        case Gone(), Gone():
            return True
        case Seen(), Seen():
            is_again = isinstance(now.document, Return) and now.at > before.at
            same = (before.digest, before.incomplete, before.document) == (now.digest, now.incomplete, now.document)
            return same and not is_again
    return False


def _says_it_went(event: Told) -> bool:
    """Whether nothing is left of a subject of which only this is known."""
    match event:
        case Gone() | Ran(run=None) | Requested(request=None):
            return True
    return False


def _mark_of(item: Item) -> int:
    name = f"{key_of(item.event)}:{item.seq}".encode(errors="surrogatepass")
    return int.from_bytes(hashlib.sha256(name).digest())
