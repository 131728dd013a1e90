"""Queries: which tasks are looked for, as it is written behind `/`, in a saved view and behind `--where`.

All terms of a query have to hold. A term is a word, which is sought in id, title, agent and objective, or `key:value`,
where commas part several values and the beginning of a known value is enough. A minus before a term negates it, and
quotation marks keep blanks, colons and a minus as they are. Letter case does not matter.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from difflib import get_close_matches
from typing import Final, NamedTuple

from agentwatch.delegation.task import State, Task
from agentwatch.delegation.tree import Tree
from agentwatch.text import LINE_LIMIT, quoted
from agentwatch.view.plain import summary
from agentwatch.view.terms import EXAMPLES, KEYS, NAMED, TIMES, Holds, WrongTermError, any_of

NEEDS_YOU: Final = "is:needs-you"


class Term(NamedTuple):
    """One `key:value` of a query; `written` is it as it stands there."""

    written: str
    key: str
    holds: Holds


class Query(NamedTuple):
    """What is looked for. `fault` says in words what was wrong in what was written, "" if nothing was.

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
        """The first term about the state, or about who needs the operator: what `stepped` puts another in place of."""
        return next((term for term in self.terms if _is_step(term)), None)

    def matches(self, task: Task, now: float) -> bool:
        """Whether the task itself is looked for, at a moment (epoch seconds)."""
        if not all(term.holds(task, now) for term in self.terms):
            return False
        if not self.words:
            return True
        objective = task.packet.objective if task.packet is not None else None
        fields = (task.own_id, summary(task.title, LINE_LIMIT), task.agent, objective)
        texts = [field.casefold() for field in fields if field]
        return all(any(word in text for text in texts) is wanted for word, wanted in self.words)

    def stepped(self, states: Iterable[State], by: int, *, asks: bool) -> str:
        """The query that follows: its state is the next of none, what needs the operator where somebody `asks`, and
        each of the states, urgent first."""
        steps = ["", *([NEEDS_YOU] if asks else [])]
        steps += [f"state:{state}" for state in sorted(states, key=lambda state: -state.urgency)]
        now = self.step.written if self.step is not None else ""
        following = steps[((steps.index(now) if now in steps else 0) + by) % len(steps)]
        replaced = {term.written for term in self.terms if _is_step(term)}
        kept = [written for written in _TERM.findall(self.text) if written not in replaced]
        return " ".join([*kept, *([following] if following else [])])


def _is_step(term: Term) -> bool:
    return term.key == "state" or term.written == NEEDS_YOU


class Found(NamedTuple):
    """The tasks that match a query, in preorder, and the ids of these and of all above them."""

    matches: Mapping[str, Task]
    shown: Set[str]


def found_in(tree: Tree, query: Query) -> Found:
    """What a query finds, at the time of the tree, in one go."""
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
        if term is not None:
            terms.append(term)
            continue
        is_negated = written[0] == "-" and len(written) > 1
        word = written[is_negated:].replace('"', "").casefold()
        if word:
            words.append((word, not is_negated))
    return Query(" ".join(right) if fault else text, tuple(words), tuple(terms), fault)


def view_faults(views: Iterable[tuple[str, str]]) -> dict[str, str]:
    """What is wrong with saved views, by their names. Quotes what stands in the settings."""
    queries = ((name, parse(text)) for name, text in views)
    return {name: f"the view {quoted(name, 60)} is wrong: {query.fault}" for name, query in queries if query.fault}


def unknown_key(text: str) -> str:
    """The first `key` of a `key:value` that is taken for text, since there is no such key; "" where there is none."""
    keyed = (_KEYED.fullmatch(written) for written in _TERM.findall(text))
    return next((match["key"] for match in keyed if match and match["key"].casefold() not in KEYS), "")


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
        names = (f"{key}:" for key in KEYS) if len(begun) >= _LEAST else iter(())
    else:
        begun = match["value"].rpartition(",")[2]
        names = _offered(match["key"].casefold(), values, is_quoted=begun.startswith('"'))
        begun = begun.removeprefix('"')
    size = len(begun)
    name = next((name for name in names if name[:size].casefold() == begun.casefold() and name[size:]), None)
    return None if name is None else text + name[size:]


def _offered(key: str, values: Callable[[str], Iterable[str]], *, is_quoted: bool) -> Iterator[str]:
    if key in NAMED:
        yield from NAMED[key]
    elif key == "since":
        yield from TIMES
    elif key in KEYS:
        ends = '",' if is_quoted else '", '
        yield from (re.split(f"[{ends}]", value, maxsplit=1)[0] for value in values(key))


_TERM: Final = re.compile(r'(?:[^\s"]++|"[^"]*+"?+)++')
_KEYED: Final = re.compile(r"-?(?P<key>[A-Za-z]{1,12}):(?P<value>.*)", re.DOTALL)
_LEAST: Final = 2
"""Letters from which a word may be the beginning of a key."""
_NEAR: Final = 0.81
"""How like a known key another is that is meant for it: `stat` is, `code` is not `mode`."""


def _term(written: str) -> Term | None:
    """A `key:value`; None for text. Raises WrongTermError."""
    match = _KEYED.fullmatch(written)
    if match is None:
        return None
    key = match["key"].casefold()
    if key not in KEYS:
        near = get_close_matches(key, KEYS, 1, cutoff=_NEAR)
        if near:
            raise WrongTermError(f"no key {quoted(key)}: did you mean {near[0]}?")
        return None
    values = [value.casefold() for value in match["value"].replace('"', "").split(",") if value]
    if not values:
        raise WrongTermError(f"{key}: needs a value, such as {key}:{EXAMPLES[key]}")
    holds = any_of([KEYS[key](value) for value in values])
    return Term(written, key, (lambda task, now: not holds(task, now)) if written[0] == "-" else holds)
