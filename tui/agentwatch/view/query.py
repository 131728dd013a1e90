"""Queries: which tasks are looked for, as it is written behind `/`, in a saved view and behind `--where`. Pure.

All terms of a query have to hold. A term is a word, which is sought in id, title, agent and objective, or `key:value`,
where commas part several values and the beginning of a known value is enough. A minus before a term negates it, and
quotation marks keep blanks, colons and a minus as they are. Letter case does not matter.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from difflib import get_close_matches
from operator import attrgetter
from typing import Any, NamedTuple

from agentwatch.delegation.events import Verdict
from agentwatch.delegation.task import Shown, Task
from agentwatch.delegation.tree import Tree
from agentwatch.text import quoted
from agentwatch.view.order import end_of_chain
from agentwatch.view.words import A2A_AUTH, A2A_INPUT, a2a_state, decision_of, seconds_of

_Holds = Callable[[Task, float], Any]  # Whether it is true of a task at a moment (epoch seconds)

_NEEDS_YOU = "is:needs-you"
_TERM = re.compile(r'(?:[^\s"]++|"[^"]*+"?+)++')
_KEYED = re.compile(r"-?(?P<key>[A-Za-z]{1,12}):(?P<value>.*)", re.DOTALL)
_LAST = re.compile(r'(?:^|\s)-?(?:(?P<key>[A-Za-z]+):(?:\S*,)?)?(?:"(?P<quoted>[^",]*)|(?P<bare>[^\s",:]*))\Z')
"""The last key or value of a query, as far as it is written."""
_LEAST = 2  # Letters from which a word may be the beginning of a key
_NEAR = 0.81  # How like a known key another is that is meant for it: `stat` is, `code` is not `mode`
_LONGEST = 40  # Characters of a wrong value that are told
_EXAMPLES = {
    "state": "failed",
    "is": "needs-you",
    "agent": "review",
    "since": "10m",
    "source": "codex",
    "mode": "code",
    "path": "src/",
    "host": "build1",
}  # A value of each key


class WrongTermError(Exception):
    """A term is wrong; the message says how, and what may be meant."""


class Term(NamedTuple):
    """One word or `key:value` of a query; `written` is it as it stands there."""

    written: str
    key: str
    holds: _Holds

    @property
    def is_step(self) -> bool:
        """Whether it is about the state, or about who needs the operator."""
        return self.key == "state" or self.written == _NEEDS_YOU


class Query(NamedTuple):
    """A query that was read. `text` is how it was written, without what was wrong; `fault` says in words what that was,
    "" if nothing."""

    text: str = ""
    terms: tuple[Term, ...] = ()
    fault: str = ""

    def __bool__(self) -> bool:
        return bool(self.terms)

    @property
    def step(self) -> Term | None:
        """The first term that `stepped` puts another in place of."""
        return next((term for term in self.terms if term.is_step), None)

    def matches(self, task: Task, now: float) -> bool:
        """Whether the task itself is looked for, at a moment (epoch seconds)."""
        return all(term.holds(task, now) for term in self.terms)

    def stepped(self, states: Iterable[Shown], by: int, *, asks: bool) -> str:
        """The query that follows: its state is the next of none, what needs the operator where somebody `asks`, and
        each of the states, urgent first."""
        steps = ["", *([_NEEDS_YOU] if asks else [])]
        steps += [f"state:{state}" for state in sorted(states, key=lambda state: -state.urgency)]
        now = self.step.written if self.step is not None else ""
        following = steps[((steps.index(now) if now in steps else 0) + by) % len(steps)]
        return " ".join([*(term.written for term in self.terms if not term.is_step), *filter(None, [following])])


class Found(NamedTuple):
    """The tasks that match a query, in preorder; those that have their rows, by id; and the ids of all that match and
    of all above them."""

    matches: Mapping[str, Task]
    rows: Mapping[str, Task]
    shown: Set[str]


def found_in(tree: Tree, query: Query, now: float) -> Found:
    """The tasks that a query finds at a moment (epoch seconds)."""
    matches = {task.task_id: task for task, _ in tree.preorder() if query.matches(task, now)}
    rows = {end: tree.tasks[end] for end in (end_of_chain(tree.tasks, task_id) for task_id in matches)}
    return Found(matches, rows, {one for task_id in matches for one in (task_id, *tree.ancestors(task_id))})


def parse(text: str) -> Query:
    """Read a query. Every text is one: what is wrong in it is told in its `fault`, and the rest holds."""
    terms: list[Term] = []
    fault = ""
    for written in _TERM.findall(text):
        try:
            terms += _terms(written)
        except WrongTermError as error:
            fault = fault or str(error)
    return Query(" ".join(term.written for term in terms) if fault else text, tuple(terms), fault)


def view_faults(views: Iterable[tuple[str, str]]) -> dict[str, str]:
    """The faults of saved views, by their names. They quote what stands in the settings."""
    queries = ((name, parse(text)) for name, text in views)
    return {name: f"the view {quoted(name, 60)} is wrong: {query.fault}" for name, query in queries if query.fault}


def complete(text: str, values: Callable[[str], Iterable[str]]) -> str | None:
    """The text with its last key or value written to the end, None where there is nothing to add.

    `values` gives those that tasks have, by key: safe text.
    """
    match = _LAST.search(text)
    if match is None:
        return None
    key, is_quoted = (match["key"] or "").casefold(), match["bare"] is None
    begun = match["quoted" if is_quoted else "bare"]
    if not key:
        names = [] if is_quoted or len(begun) < _LEAST else [f"{one}:" for one in _EXAMPLES]
    elif key in ("since", "state", "is"):
        names = [*(_SPANS if key == "since" else _WORDS)]
    else:
        names = [re.split('[",]' if is_quoted else '[", ]', one, maxsplit=1)[0] for one in values(key)]
    size = len(begun)
    name = next((name for name in names if name[:size].casefold() == begun.casefold() and name[size:]), None)
    return None if name is None else text + name[size:]


def offered_terms() -> Iterator[str]:
    """Each term that can be written without knowing the tasks."""
    yield from (f"state:{word}" for word in (*reversed(Shown), _NEEDS_YOU.partition(":")[2]))
    yield from (f"is:{word}" for word in _WORDS)
    yield from (f"since:{word}" for word in _SPANS)


def _terms(written: str) -> Iterator[Term]:
    """The term that is written, none where nothing is. Raises WrongTermError."""
    match = _KEYED.fullmatch(written)
    key = match["key"].casefold() if match is not None else ""
    is_negated = written[0] == "-" and len(written) > 1
    if match is not None and key in _EXAMPLES:
        values = match["value"].replace('"', "").casefold().split(",")
    elif near := get_close_matches(key, _EXAMPLES, 1, cutoff=_NEAR):
        raise WrongTermError(f"no key {quoted(key)}: did you mean {near[0]}?")
    else:
        key, values = "", [written[is_negated:].replace('"', "").casefold()]
    checks = [_check(key, value) for value in values if value]
    if key and not checks:
        raise WrongTermError(f"{key}: needs a value, such as {key}:{_EXAMPLES[key]}")
    if checks:
        yield Term(written, key, lambda task, now: any(one(task, now) for one in checks) is not is_negated)


def _check(key: str, value: str) -> _Holds:
    """The meaning of one value, in lower case, of a key. Raises WrongTermError."""
    if key in ("state", "is"):
        name = value.replace("_", "-").replace(" ", "-")
        begun = [_WORDS[name]] if name in _WORDS else [_WORDS[full] for full in _WORDS if full.startswith(name)]
        if not begun:
            raise WrongTermError(f"no {quoted(f'{key}:{value}', _LONGEST)}: try {', '.join([*_WORDS][:3])}")
        return lambda task, _now: any(holds(task) for holds in begun)
    if key == "since":
        seconds = seconds_of(value)
        if seconds is None:
            raise WrongTermError("since: needs a time, such as 10m, 2h or 3d")
        return lambda task, now: task.alive_at is not None and task.alive_at >= now - seconds
    texts = _TEXTS[key]
    return lambda task, _now: any(value in text.casefold() for text in texts(task) if text)


# What a term can say of a task


def _is_shown(shown: Shown) -> Callable[[Task], bool]:
    return lambda task: task.shown is shown


_ALIKE = (
    "in-progress=working done=completed success=completed error=failed rejected=failed cancelled=canceled"
    " your-turn=idle"
)
"""The states in the words of the screen, and of other programs and protocols (A2A)."""
_SAID = (
    "needs-you=needs_operator contradicted=contradicted stale=stale open=shown.is_open inferred=inferred"
    " deleted=deleted session=is_session past=past acknowledged=acknowledged snoozed=snoozed asks=needs_operator"
    " history=past"
)
"""Words for what a task says of itself."""
_WORDS: Mapping[str, Callable[[Task], Any]] = {
    **{shown.value: _is_shown(shown) for shown in reversed(Shown)},
    "verified": lambda task: task.shown is Shown.COMPLETED and task.verdict is Verdict.VERIFIED,
    "decided": decision_of,
    "retried": lambda task: task.attempt > 1,
    **{word: attrgetter(name) for word, name in (pair.split("=") for pair in _SAID.split())},
    "ended": lambda task: not task.shown.is_open,
    "unseen": lambda task: not task.seen,
    "new": lambda task: not task.seen,
    **{word: _is_shown(Shown(state)) for word, state in (pair.split("=") for pair in _ALIKE.split())},
    A2A_AUTH: lambda task: a2a_state(task) == A2A_AUTH,
    A2A_INPUT: lambda task: a2a_state(task) == A2A_INPUT,
}
"""The values of `state:` and `is:`."""
_SPANS = ("10m", "1h", "3h", "1d", "7d")


def _sources_of(task: Task) -> Iterator[str | None]:
    """The programs whose sessions show a task, and `files`."""
    for attempt in task.attempts:
        yield attempt.run.source if attempt.run is not None else None
        if any(version is not None and not version.stored for version in (attempt.handoff, attempt.returned)):
            yield "files"


def _paths_of(task: Task) -> Iterator[str | None]:
    """Its handoffs, returns and transcripts, and the files that it claims."""
    for attempt in task.attempts:
        yield from (version.path for version in (attempt.handoff, attempt.returned) if version is not None)
        yield attempt.run.place if attempt.run is not None else None
    yield from (claim.path for claim in task.claims)


OFFERED: Mapping[str, Callable[[Task], Iterable[str | None]]] = {
    "agent": lambda task: [task.agent],
    "source": _sources_of,
    "mode": lambda task: [task.packet.mode if task.packet else None, task.run.mode if task.run else None],
    "host": lambda task: [task.host or "here"],
}  # The keys whose values are offered as the tasks have them
_TEXTS: Mapping[str, Callable[[Task], Iterable[str | None]]] = {
    **OFFERED,
    "path": _paths_of,
    "": lambda task: [task.own_id, task.title, task.agent, task.packet.objective if task.packet else None],
}
"""The texts in which a value is sought, by key; a word has none."""
