"""The numbered log of a workspace, equal in its relay and on each screen, with limits for the content of one host."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from agentwatch.contracts.shapes import Document, Handoff, Return
from agentwatch.delegation.events import Checked, Gone, Ran, Requested, Seen, Unreadable
from agentwatch.delegation.links import MAX_VERSIONS, merge_reports
from agentwatch.remote.protocol import EARLIEST, LATEST, Observation, Standing
from agentwatch.sources.sessions.reader import messages_of

MEBIBYTE = 1024 * 1024
# Limits for one host; the bytes are estimates of memory.
MOST = {
    # Four times the number that a screen is made for.
    "tasks": 20_000,
    # Two attempts of each task.
    "runs": 40_000,
    # A program asks one thing at a time, and nobody answers a thousand. The time of a tree grows with the square.
    "requests": 1_000,
    # Some 12 KiB for a task with its handoff, its return, its checks and its run.
    "MiB": 256 * MEBIBYTE,
}
_ENTRY = 512  # bytes that the tree and the log need for an entry besides its content

Event = Observation | Standing


def subject_of(event: Event) -> str:
    """Return the subject of an event: a later event of the same subject replaces it or continues it."""
    match event:
        case Standing():
            return "standing"
        case Seen() | Gone() | Unreadable():
            return f"file:{event.path}"
    return f"{type(event).__name__}:{event.path}"


class _Numbered(NamedTuple):
    number: int
    event: Event
    size: int


class Log:
    """The events that count, by subject and in order, for one thread at a time; `seq` is the number of the last one."""

    def __init__(self) -> None:
        self.seq = 0
        self._load = Counter[str]()
        self._tasks = Counter[str]()
        self._count = 0
        self._chains: dict[str, list[_Numbered]] = {}

    @property
    def held(self) -> Counter[str]:
        """The amounts in it, by the kinds of `MOST`."""
        return self._load + Counter(tasks=len(self._tasks))

    @property
    def standing(self) -> Standing | None:
        event = self._chains["standing"][-1].event if "standing" in self._chains else None
        return event if isinstance(event, Standing) else None

    def events(self) -> list[Event]:
        """Return all events that count, in order."""
        return [one.event for one in sorted(one for chain in self._chains.values() for one in chain)]

    def add(self, event: Event) -> Event | None:
        """Add an event that was observed now; return it as it counts, None if it is nothing new; raise ValueError."""
        void = chain = self._chains.get(subject_of(event), [])
        match event:
            case Seen() | Gone() | Unreadable():
                if chain and _is_unchanged(chain[-1].event, event):
                    return None
                void = [one for one in chain if isinstance(one.event, Unreadable)]
            case Checked(digest=digest):
                void = [one for one in chain if isinstance(one.event, Checked) and one.event.digest == digest]
            case Requested() if chain and isinstance(before := chain[0].event, Requested):
                event = merge_reports(before, event)
        size = _ENTRY + memory_size(event)
        for one in [*void]:
            self._remove(one)
        # An event of removal is not kept if its subject has no other event.
        went = isinstance(event, Gone) or getattr(event, "run", 0) is None or getattr(event, "request", 0) is None
        if subject_of(event) in self._chains or not went:
            self._count += 1
            kept = _Numbered(self._count, event, size)
            chain = self._chains.setdefault(subject_of(event), [])
            chain.append(kept)
            self._account(kept, 1)
            if len(chain) > MAX_VERSIONS:
                # The first version of a file says when its task began.
                self._remove(chain[1])
        return event

    def remove_last(self, event: Event) -> None:
        """Remove an event that was added just now."""
        if (chain := self._chains.get(subject_of(event))) and chain[-1].number == self._count:
            self._remove(chain[-1])

    def _remove(self, kept: _Numbered) -> None:
        chain = self._chains[subject_of(kept.event)]
        chain.remove(kept)
        self._account(kept, -1)
        if not chain:
            del self._chains[subject_of(kept.event)]

    def _account(self, kept: _Numbered, times: int) -> None:
        self._load["MiB"] += times * kept.size
        self._load["runs"] += times * isinstance(kept.event, Ran)
        self._load["requests"] += times * isinstance(kept.event, Requested)
        for task in tasks_in(kept.event):
            self._tasks[task] += times
            if not self._tasks[task]:
                del self._tasks[task]


def _is_unchanged(before: Event, now: Event) -> bool:
    """Tell whether a file is unchanged; a return written again is new, because it may belong to another attempt."""
    match before, now:
        case Gone(), Gone():
            return True
        case Seen(), Seen():
            is_again = isinstance(now.document, Return) and now.at > before.at
            same = (before.digest, before.incomplete, before.document) == (now.digest, now.incomplete, now.document)
            return same and not is_again
    return False


# Limits


def memory_size(value: Any) -> int:
    """Return the approximate bytes of a value in memory; raise ValueError for a float that cannot be a time."""
    if isinstance(value, str):
        return 56 + len(value)
    if isinstance(value, float) and not EARLIEST <= value <= LATEST:
        raise ValueError(f"{value} is no time")
    if isinstance(value, tuple | list):
        return 56 + sum(map(memory_size, value))
    if isinstance(value, Mapping):
        return 232 + sum(memory_size(key) + memory_size(one) for key, one in value.items())
    fields = getattr(value, "__dataclass_fields__", None) or getattr(type(value), "model_fields", None)
    return 32 if fields is None else 56 + sum(memory_size(getattr(value, name)) for name in fields)


def tasks_in(event: Event) -> Iterator[str]:
    """Yield the names of the tasks in an event."""
    if isinstance(event, Seen):
        yield from _task_names(event.document, event.path)
    elif isinstance(event, Ran) and event.run:
        for said in messages_of(event.run):
            for reading in (said.reading, said.packet):
                if isinstance(reading, Document):
                    yield from _task_names(reading.document, event.path)


def _task_names(document: object, place: str) -> Iterator[str]:
    if isinstance(document, Handoff | Return):
        yield document.task_id or place
    if isinstance(document, Handoff) and document.parent_task_id:
        yield document.parent_task_id
    if isinstance(document, Return):
        yield from document.delegation_path


def exceeded_kinds(held: Mapping[str, int]) -> list[str]:
    """Return the kinds whose limits are exceeded."""
    return [kind for kind, most in MOST.items() if held.get(kind, 0) > most]


def dropped_words(label: str, kind: str) -> str:
    """Return in words, without a full stop, that more of this kind was dropped."""
    most = MOST[kind] // MEBIBYTE if kind == "MiB" else MOST[kind]
    return f"{label} sends more than {most:,} {kind}: the rest is not taken in, so not all of it is shown"
