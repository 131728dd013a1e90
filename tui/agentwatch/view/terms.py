"""What the `key:value` of a query can say of a task: the keys, their values, and what each means. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from difflib import get_close_matches
from typing import Final

from agentwatch.delegation.claims import Verdict
from agentwatch.delegation.task import State, Task
from agentwatch.text import quoted
from agentwatch.view.a2a import AUTH, INPUT, a2a_state
from agentwatch.view.times import seconds_of
from agentwatch.view.words import decision_of, is_on_its_way

Holds = Callable[[Task, float], bool]
"""Whether it is true of a task at a moment (epoch seconds)."""

HERE: Final = "here"
"""The host of a task on this machine."""
FILES: Final = "files"
"""The source of a task that files of the workspace speak of."""
TIMES: Final = ("10m", "1h", "3h", "1d", "7d")
_LONGEST: Final = 40
"""Characters of a wrong value that are compared with those that are known."""


class WrongTermError(Exception):
    """A term is wrong; the message says how, and what may be meant."""


def any_of(checks: list[Holds]) -> Holds:
    """Whether one of these is true."""
    return checks[0] if len(checks) == 1 else lambda task, now: any(holds(task, now) for holds in checks)


def _in_state(state: State) -> Holds:
    return lambda task, _now: task.state is state


def _waits(task: Task, _now: float) -> bool:
    decision = decision_of(task)
    return task.needs_operator or task.waits_for_work or (decision is not None and is_on_its_way(decision))


_SHOWN: Final[Mapping[str, Holds]] = {
    "needs-you": lambda task, _: task.needs_operator,
    "contradicted": lambda task, _: task.contradicted,
    "silent": lambda task, _: task.stale,
    "false": lambda task, _: task.contradicted,
}
"""What stands on the screen besides the states, or in their place."""
_ALIKE: Final[Mapping[str, State]] = {
    "in-progress": State.WORKING,
    "done": State.COMPLETED,
    "success": State.COMPLETED,
    "error": State.FAILED,
    "rejected": State.FAILED,
    "cancelled": State.CANCELED,
}
"""What other programs and protocols (A2A) call the states."""
_STATES: Final[Mapping[str, Holds]] = {
    **{state.value: _in_state(state) for state in reversed(State)},
    **_SHOWN,
    "stale": _SHOWN["silent"],
    **{name: _in_state(state) for name, state in _ALIKE.items()},
    AUTH: lambda task, _: a2a_state(task) == AUTH,
    INPUT: lambda task, _: a2a_state(task) == INPUT,
}
_IS: Final[Mapping[str, Holds]] = {
    **_SHOWN,
    "verified": lambda task, _: task.verdict is Verdict.VERIFIED,
    "waiting": _waits,
    "decided": lambda task, _: decision_of(task) is not None,
    "retried": lambda task, _: task.attempt > 1,
    "open": lambda task, _: task.state.is_open,
    "ended": lambda task, _: not task.state.is_open,
    "inferred": lambda task, _: task.inferred,
    "deleted": lambda task, _: task.deleted,
    "session": lambda task, _: task.is_session,
    "past": lambda task, _: task.past,
    "gone": lambda task, _: task.stale and task.run is not None and task.run.process_gone is True,
    "unseen": lambda task, _: not task.seen,
    "acknowledged": lambda task, _: task.acknowledged,
    "snoozed": lambda task, _: task.snoozed,
    "asks": _SHOWN["needs-you"],
    "history": lambda task, _: task.past,
    "new": lambda task, _: not task.seen,
    **_STATES,
}
NAMED: Final = {"state": _STATES, "is": _IS}
"""By key, what each value means, where only some are known."""


def _named(key: str) -> Callable[[str], Holds]:
    """What a value means where only some are known."""

    def made(value: str) -> Holds:
        known = NAMED[key]
        name = value.replace("_", "-").replace(" ", "-")
        if name in known:
            return known[name]
        begun = [holds for full, holds in known.items() if full.startswith(name)]
        if begun:
            return any_of(begun)
        near = get_close_matches(name[:_LONGEST], (one for one in known if one != "false"), 1)
        meant = f"did you mean {near[0]}?" if near else f"try {', '.join(list(known)[:3])}"
        raise WrongTermError(f"no {quoted(f'{key}:{value}', _LONGEST)}: {meant}")

    return made


def _since(value: str) -> Holds:
    seconds = seconds_of(value)
    if seconds is None:
        raise WrongTermError("since: needs a time, such as 10m, 2h or 3d")
    return lambda task, now: task.alive_at is not None and task.alive_at >= now - seconds


def _in_any(texts: Callable[[Task], Iterable[str | None]]) -> Callable[[str], Holds]:
    """A value is part of one of the texts of a task."""
    return lambda value: lambda task, _: any(value in text.casefold() for text in texts(task) if text)


def agents_of(task: Task) -> Iterator[str | None]:
    yield task.agent


def modes_of(task: Task) -> Iterator[str | None]:
    yield task.packet.mode if task.packet is not None else None
    yield task.run.mode if task.run is not None else None


def sources_of(task: Task) -> Iterator[str | None]:
    """The programs whose sessions show a task, and `files`."""
    for attempt in task.attempts:
        yield attempt.run.source if attempt.run is not None else None
        if any(version is not None and not version.stored for version in (attempt.handoff, attempt.returned)):
            yield FILES


def _paths_of(task: Task) -> Iterator[str | None]:
    """Its handoffs, returns and transcripts, and the files that it claims."""
    for attempt in task.attempts:
        yield attempt.handoff.path if attempt.handoff is not None else None
        yield attempt.returned.path if attempt.returned is not None else None
        yield attempt.run.place if attempt.run is not None else None
    yield from (claim.path for claim in task.claims)


def hosts_of(task: Task) -> Iterator[str | None]:
    """What the operator calls the machine that it is on."""
    yield task.host or HERE


def _on(value: str) -> Holds:
    return lambda task, _: (task.host or HERE).casefold().startswith(value)


KEYS: Final[Mapping[str, Callable[[str], Holds]]] = {
    "state": _named("state"),
    "is": _named("is"),
    "agent": _in_any(agents_of),
    "since": _since,
    "source": _in_any(sources_of),
    "mode": _in_any(modes_of),
    "path": _in_any(_paths_of),
    "host": _on,
}
"""What each key makes of a value, which is in lower case."""
EXAMPLES: Final = {
    "state": "failed", "is": "needs-you", "agent": "review", "since": "10m",
    "source": "codex", "mode": "code", "path": "src/", "host": "build1",
}  # fmt: skip
OFFERED: Final[Mapping[str, Callable[[Task], Iterable[str | None]]]] = {
    "agent": agents_of,
    "source": sources_of,
    "mode": modes_of,
    "host": hosts_of,
}
"""The keys whose values are those that the tasks have."""
