"""Queries: which tasks are looked for, as it is written behind `/`, in a saved view and behind `--where`. Pure.

All terms of a query have to hold. A term is a word, which is sought in id, title, agent and objective, or `key:value`,
where commas part several values and the beginning of a known value is enough. A minus before a term negates it, and
quotation marks keep blanks, colons and a minus as they are. Letter case does not matter.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from difflib import get_close_matches
from typing import Final, NamedTuple

from agentwatch.delegation.claims import Verdict
from agentwatch.delegation.task import State, Task
from agentwatch.delegation.tree import Tree
from agentwatch.text import LINE_LIMIT, quoted
from agentwatch.view.plain import summary
from agentwatch.view.times import seconds_of
from agentwatch.view.words import A2A_AUTH, A2A_INPUT, a2a_state, decision_of, is_on_its_way

Holds = Callable[[Task, float], bool]
"""Whether it is true of a task at a moment (epoch seconds)."""
Texts = Callable[[Task], Iterable[str | None]]

NEEDS_YOU: Final = "is:needs-you"
_TERM: Final = re.compile(r'(?:[^\s"]++|"[^"]*+"?+)++')
_KEYED: Final = re.compile(r"-?(?P<key>[A-Za-z]{1,12}):(?P<value>.*)", re.DOTALL)
_LEAST: Final = 2
"""Letters from which a word may be the beginning of a key."""
_NEAR: Final = 0.81
"""How like a known key another is that is meant for it: `stat` is, `code` is not `mode`."""
_LONGEST: Final = 40
"""Characters of a wrong value that are compared with those that are known."""


class WrongTermError(Exception):
    """A term is wrong; the message says how, and what may be meant."""


class Term(NamedTuple):
    """One `key:value` of a query; `written` is it as it stands there."""

    written: str
    key: str
    holds: Holds

    @property
    def is_step(self) -> bool:
        """Whether it is about the state, or about who needs the operator."""
        return self.key == "state" or self.written == NEEDS_YOU


class Query(NamedTuple):
    """A query that was read. `fault` says in words what was wrong in what was written, "" if nothing was.

    `text` is how it was written, without what was wrong. `words` are sought as text, each with whether it has to be
    found.
    """

    text: str = ""
    words: tuple[tuple[str, bool], ...] = ()
    terms: tuple[Term, ...] = ()
    fault: str = ""

    def __bool__(self) -> bool:
        return bool(self.words or self.terms)

    @property
    def looks_back(self) -> bool:
        """Whether what it finds changes as time passes."""
        return any(term.key == "since" for term in self.terms)

    @property
    def step(self) -> Term | None:
        """The first term that `stepped` puts another in place of."""
        return next((term for term in self.terms if term.is_step), None)

    def matches(self, task: Task, now: float) -> bool:
        """Whether the task itself is looked for, at a moment (epoch seconds)."""
        if not all(term.holds(task, now) for term in self.terms):
            return False
        objective = task.packet.objective if self.words and task.packet is not None else None
        fields = (task.own_id, summary(task.title, LINE_LIMIT), task.agent, objective) if self.words else ()
        texts = [field.casefold() for field in fields if field]
        return all(any(word in text for text in texts) is wanted for word, wanted in self.words)

    def stepped(self, states: Iterable[State], by: int, *, asks: bool) -> str:
        """The query that follows: its state is the next of none, what needs the operator where somebody `asks`, and
        each of the states, urgent first."""
        steps = ["", *([NEEDS_YOU] if asks else [])]
        steps += [f"state:{state}" for state in sorted(states, key=lambda state: -state.urgency)]
        now = self.step.written if self.step is not None else ""
        following = steps[((steps.index(now) if now in steps else 0) + by) % len(steps)]
        replaced = {term.written for term in self.terms if term.is_step}
        kept = [written for written in _TERM.findall(self.text) if written not in replaced]
        return " ".join([*kept, *([following] if following else [])])


class Found(NamedTuple):
    """The tasks that match a query, in preorder, and the ids of these and of all above them."""

    matches: Mapping[str, Task]
    shown: Set[str]


def found_in(tree: Tree, query: Query) -> Found:
    """The tasks that a query finds, at the time of the tree."""
    matches = {task.task_id: task for task, _ in tree.preorder() if query.matches(task, tree.now)}
    shown: set[str] = set()
    for task_id in matches:
        add_above(tree, task_id, shown)
    return Found(matches, shown)


def add_above(tree: Tree, task_id: str, shown: set[str]) -> None:
    """Add a task, and those above it, to what is shown."""
    above: str | None = task_id
    while above is not None and above not in shown and above in tree.tasks:
        shown.add(above)
        above = tree.tasks[above].parent_id


def parse(text: str) -> Query:
    """Read a query. Every text is one: what is wrong in it is told in its `fault`, and the rest holds."""
    right: list[str] = []
    words: list[tuple[str, bool]] = []
    terms: list[Term] = []
    fault = ""
    for written in _TERM.findall(text):
        try:
            term = _term(written)
        except WrongTermError as error:
            fault = fault or str(error)
            continue
        right.append(written)
        is_negated = written[0] == "-" and len(written) > 1
        if term is not None:
            terms.append(term)
        elif word := written[is_negated:].replace('"', "").casefold():
            words.append((word, not is_negated))
    return Query(" ".join(right) if fault else text, tuple(words), tuple(terms), fault)


def view_faults(views: Iterable[tuple[str, str]]) -> dict[str, str]:
    """The faults of saved views, by their names. They quote what stands in the settings."""
    queries = ((name, parse(text)) for name, text in views)
    return {name: f"the view {quoted(name, 60)} is wrong: {query.fault}" for name, query in queries if query.fault}


def complete(text: str, values: Callable[[str], Iterable[str]]) -> str | None:
    """The text with its last key or value written to the end, None where there is nothing to add.

    `values` gives those that tasks have, by key: safe text.
    """
    written = _TERM.findall(text)[-1:]
    if not written or not text.endswith(written[0]):
        return None
    match = _KEYED.fullmatch(written[0])
    if match is None:
        begun = written[0].removeprefix("-")
        names = [f"{key}:" for key in KEYS] if len(begun) >= _LEAST else []
    else:
        key, begun = match["key"].casefold(), match["value"].rpartition(",")[2]
        ends = '",' if begun.startswith('"') else '", '
        begun = begun.removeprefix('"')
        names = list(NAMED.get(key) or ()) or [re.split(f"[{ends}]", one, maxsplit=1)[0] for one in values(key)]
    size = len(begun)
    name = next((name for name in names if name[:size].casefold() == begun.casefold() and name[size:]), None)
    return None if name is None else text + name[size:]


def _term(written: str) -> Term | None:
    """A `key:value`; None for text. Raises WrongTermError."""
    match = _KEYED.fullmatch(written)
    if match is None:
        return None
    key = match["key"].casefold()
    if key not in KEYS:
        if near := get_close_matches(key, KEYS, 1, cutoff=_NEAR):
            raise WrongTermError(f"no key {quoted(key)}: did you mean {near[0]}?")
        return None
    values = [value.casefold() for value in match["value"].replace('"', "").split(",") if value]
    example, reads = KEYS[key]
    if not values:
        raise WrongTermError(f"{key}: needs a value, such as {key}:{example}")
    holds = _any_of([reads(value) for value in values])
    return Term(written, key, (lambda task, now: not holds(task, now)) if written[0] == "-" else holds)


def _any_of(checks: list[Holds]) -> Holds:
    return checks[0] if len(checks) == 1 else lambda task, now: any(holds(task, now) for holds in checks)


# What a term can say of a task


def _in_state(state: State) -> Holds:
    return lambda task, _now: task.state is state


def _waits(task: Task, _now: float) -> bool:
    decision = decision_of(task)
    return task.needs_operator or task.waits_for_work or (decision is not None and is_on_its_way(decision))


_ALIKE: Final = {
    "in-progress": State.WORKING,
    "done": State.COMPLETED,
    "success": State.COMPLETED,
    "error": State.FAILED,
    "rejected": State.FAILED,
    "cancelled": State.CANCELED,
}
"""The states in the words of other programs and protocols (A2A)."""
_WORDS: Final[Mapping[str, Holds]] = {
    **{state.value: _in_state(state) for state in reversed(State)},
    "needs-you": lambda task, _: task.needs_operator,
    "contradicted": lambda task, _: task.contradicted,
    "silent": lambda task, _: task.stale,
    "false": lambda task, _: task.contradicted,
    "stale": lambda task, _: task.stale,
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
    "asks": lambda task, _: task.needs_operator,
    "history": lambda task, _: task.past,
    "new": lambda task, _: not task.seen,
    **{name: _in_state(state) for name, state in _ALIKE.items()},
    A2A_AUTH: lambda task, _: a2a_state(task) == A2A_AUTH,
    A2A_INPUT: lambda task, _: a2a_state(task) == A2A_INPUT,
}
"""The values of `state:` and `is:`."""
NAMED: Final[Mapping[str, Iterable[str]]] = {
    "state": _WORDS,
    "is": _WORDS,
    "since": ("10m", "1h", "3h", "1d", "7d"),
}
"""By key, the values that are offered where those of the tasks are not."""


def _word_of(key: str) -> Callable[[str], Holds]:
    """The meaning of a value where only some are known."""

    def read(value: str) -> Holds:
        name = value.replace("_", "-").replace(" ", "-")
        begun = [_WORDS[name]] if name in _WORDS else [_WORDS[full] for full in _WORDS if full.startswith(name)]
        if begun:
            return _any_of(begun)
        near = get_close_matches(name[:_LONGEST], (one for one in _WORDS if one != "false"), 1)
        meant = f"did you mean {near[0]}?" if near else f"try {', '.join(list(_WORDS)[:3])}"
        raise WrongTermError(f"no {quoted(f'{key}:{value}', _LONGEST)}: {meant}")

    return read


def _since(value: str) -> Holds:
    seconds = seconds_of(value)
    if seconds is None:
        raise WrongTermError("since: needs a time, such as 10m, 2h or 3d")
    return lambda task, now: task.alive_at is not None and task.alive_at >= now - seconds


def _in_any(texts: Texts) -> Callable[[str], Holds]:
    """A value is part of one of the texts of a task."""
    return lambda value: lambda task, _: any(value in text.casefold() for text in texts(task) if text)


def _modes_of(task: Task) -> Iterator[str | None]:
    yield task.packet.mode if task.packet is not None else None
    yield task.run.mode if task.run is not None else None


def _sources_of(task: Task) -> Iterator[str | None]:
    """The programs whose sessions show a task, and `files`."""
    for attempt in task.attempts:
        yield attempt.run.source if attempt.run is not None else None
        if any(version is not None and not version.stored for version in (attempt.handoff, attempt.returned)):
            yield "files"


def _paths_of(task: Task) -> Iterator[str | None]:
    """Its handoffs, returns and transcripts, and the files that it claims."""
    for attempt in task.attempts:
        yield attempt.handoff.path if attempt.handoff is not None else None
        yield attempt.returned.path if attempt.returned is not None else None
        yield attempt.run.place if attempt.run is not None else None
    yield from (claim.path for claim in task.claims)


def _host_of(task: Task) -> str:
    return task.host or "here"


OFFERED: Final[Mapping[str, Texts]] = {
    "agent": lambda task: [task.agent],
    "source": _sources_of,
    "mode": _modes_of,
    "host": lambda task: [_host_of(task)],
}
"""The keys whose values are those that the tasks have."""
KEYS: Final[Mapping[str, tuple[str, Callable[[str], Holds]]]] = {
    "state": ("failed", _word_of("state")),
    "is": ("needs-you", _word_of("is")),
    "agent": ("review", _in_any(OFFERED["agent"])),
    "since": ("10m", _since),
    "source": ("codex", _in_any(_sources_of)),
    "mode": ("code", _in_any(_modes_of)),
    "path": ("src/", _in_any(_paths_of)),
    "host": ("build1", lambda value: lambda task, _: _host_of(task).casefold().startswith(value)),
}
"""An example of each key, and what it makes of a value, which is in lower case."""
