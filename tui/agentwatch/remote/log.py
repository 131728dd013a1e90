"""Keeps the log of a workspace: its current events, with numbers. Host and screens have equal logs."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from agentwatch.contracts.shapes import Document, Handoff, Return
from agentwatch.delegation.events import Checked, Gone, Ran, Requested, Seen, Unreadable
from agentwatch.delegation.links import MAX_VERSIONS, merge_reports
from agentwatch.remote.protocol import EARLIEST, LATEST, Observation, Standing
from agentwatch.sources.sessions.reader import messages_of

MEBIBYTE = 1024 * 1024
# The limits for one host. Bytes of memory are estimated.
MOST = {
    # Screens are made for 5,000 tasks. This is four times as many.
    "tasks": 20_000,
    # Two attempts of each task.
    "runs": 40_000,
    # More than anybody answers. The time to build a tree grows with the square of this number.
    "requests": 1_000,
    # Some 12 KiB for each task with its handoff, return, checks and run.
    "MiB": 256 * MEBIBYTE,
}
_ENTRY = 512  # bytes of memory that an entry takes in addition to its content

Event = Observation | Standing


def subject_of(event: Event) -> str:
    """Return the subject of an event, such as its file. A later event with the same subject may replace the event."""
    match event:
        case Standing():
            return "standing"
        case Seen() | Gone() | Unreadable():
            return f"file:{event.path}"
    return f"{type(event).__name__}:{event.path}"


class _NumberedEvent(NamedTuple):
    number: int
    event: Event
    size: int


class Log:
    """The current events of a workspace. `seq` is the number of the last event. Only one thread may use a log."""

    def __init__(self) -> None:
        self.seq = 0
        self._amounts = Counter[str]()
        self._tasks = Counter[str]()
        self._count = 0
        self._chains: dict[str, list[_NumberedEvent]] = {}

    @property
    def amounts(self) -> Counter[str]:
        """The size of the log: its tasks, runs, requests and bytes. The keys are those of `MOST`."""
        return self._amounts + Counter(tasks=len(self._tasks))

    @property
    def standing(self) -> Standing | None:
        event = self._chains["standing"][-1].event if "standing" in self._chains else None
        return event if isinstance(event, Standing) else None

    def events(self) -> list[Event]:
        """Return all current events, the oldest first."""
        return [one.event for one in sorted(one for chain in self._chains.values() for one in chain)]

    def add(self, event: Event) -> Event | None:
        """Add an event. Return the added event, or None if it is nothing new. Raise ValueError if a time is wrong."""
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
        # Add a removal only if the log has an event about the subject that was removed.
        went = isinstance(event, Gone) or getattr(event, "run", 0) is None or getattr(event, "request", 0) is None
        if subject_of(event) in self._chains or not went:
            self._count += 1
            kept = _NumberedEvent(self._count, event, size)
            chain = self._chains.setdefault(subject_of(event), [])
            chain.append(kept)
            self._add_amounts(kept, 1)
            if len(chain) > MAX_VERSIONS:
                # Remove the second version, because the first version of a file says when its task began.
                self._remove(chain[1])
        return event

    def remove_last(self, event: Event) -> None:
        """Remove this event if it was added last."""
        if (chain := self._chains.get(subject_of(event))) and chain[-1].number == self._count:
            self._remove(chain[-1])

    def _remove(self, kept: _NumberedEvent) -> None:
        chain = self._chains[subject_of(kept.event)]
        chain.remove(kept)
        self._add_amounts(kept, -1)
        if not chain:
            del self._chains[subject_of(kept.event)]

    def _add_amounts(self, kept: _NumberedEvent, times: int) -> None:
        self._amounts["MiB"] += times * kept.size
        self._amounts["runs"] += times * isinstance(kept.event, Ran)
        self._amounts["requests"] += times * isinstance(kept.event, Requested)
        for task in tasks_in(kept.event):
            self._tasks[task] += times
            if not self._tasks[task]:
                del self._tasks[task]


def _is_unchanged(before: Event, now: Event) -> bool:
    """Tell whether a file is unchanged. A return that is written again is a change: it may be of another attempt."""
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
    """Estimate how many bytes of memory a value takes. Raise ValueError for a float that cannot be a time."""
    if isinstance(value, str):
        return 56 + len(value)
    if isinstance(value, float) and not EARLIEST <= value <= LATEST:
        raise ValueError(f"{value} is no time")
    if isinstance(value, tuple | list):
        return 56 + sum(map(memory_size, value))
    if isinstance(value, dict):
        return 232 + sum(memory_size(key) + memory_size(one) for key, one in value.items())
    fields = getattr(value, "__dataclass_fields__", None) or getattr(type(value), "model_fields", None)
    return 32 if fields is None else 56 + sum(memory_size(getattr(value, name)) for name in fields)


def tasks_in(event: Event) -> Iterator[str]:
    """Yield the names of the tasks that an event mentions."""
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


def exceeded_kinds(amounts: Mapping[str, int]) -> list[str]:
    """Return the kinds of `MOST` whose limit is exceeded."""
    return [kind for kind, most in MOST.items() if amounts.get(kind, 0) > most]


def dropped_words(label: str, kind: str) -> str:
    """Return a sentence for the screen: a host sends too many entries of a kind, so not all are shown."""
    most = MOST[kind] // MEBIBYTE if kind == "MiB" else MOST[kind]
    return f"{label} sends more than {most:,} {kind}: the rest is not taken in, so not all of it is shown"
