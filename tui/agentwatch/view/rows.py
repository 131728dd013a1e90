"""The rows of a tree: groups of runs, the order of tasks, headings, and the query that filters tasks. No I/O.

In this module, a run is a top task with all tasks below it. A top task has no parent, or only a workspace's row.
Runs are sorted by group and last activity. Other tasks are sorted by when they were first seen. A run moves when its
group or state changes, and when it begins or ceases to need the operator. A mere sign of life moves no run. The loss of
a host moves no run, either. A held run, such as one under the cursor, moves only when it begins to need the operator.

A query filters tasks. It is typed after `/` or `--where`, or saved as a view. A task must match all terms of the query.
A term is `key:value`, or a word that is searched in id, title, agent and objective. Commas separate alternative values.
The beginning of a known value is enough. A minus before a term negates the term. Blanks, colons and minus signs within
quotation marks have no special meaning. Letter case does not matter.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from difflib import get_close_matches
from enum import Enum
from itertools import groupby
from math import inf
from operator import attrgetter
from typing import Any, NamedTuple

from agentwatch.delegation.events import Verdict
from agentwatch.delegation.task import Shown, State, Sums, Task, sum_tasks
from agentwatch.delegation.tree import Tree
from agentwatch.text import quote_text
from agentwatch.view.words import A2A_AUTH, A2A_INPUT, a2a_state, decision_of, local_time, parse_span, plural

_RECENT = 600.0  # so many seconds after its last sign of life, an idle run leaves the group NOW
_LIVE_SILENCE = 3_600.0  # the same for a run in which a task works or has a decision to carry out
# In these states, an agent has still to carry out a decision.
_DECIDED = frozenset({State.RETRYING, State.ESCALATED})
_WORK = _DECIDED | {State.WORKING}
_REFRESH = 15.0  # seconds between two checks whether time has moved a run to another group


class Group(Enum):  # not a StrEnum, so that no task id equals a group
    """The groups of runs, in the order of the screen."""

    NOW = "now"
    TODAY = "today"
    EARLIER = "earlier"
    HISTORY = "history"


def _has_task_in(task: Task, states: Set[State]) -> bool:
    """Tell whether any task of a run is in one of these states."""
    return task.state in states or (task.below is not None and not states.isdisjoint(task.below.states))


def run_needs_operator(task: Task) -> bool:
    """Tell whether any task of a run needs the operator."""
    return task.needs_operator or (task.below is not None and task.below.needs_operator > 0)


def has_finished(task: Task) -> bool:
    """Tell whether a task and all tasks below it have ended, and none needs the operator. Return False for a leaf."""
    below = task.below
    # The row of a workspace has no state of its own, so only the tasks below count.
    has_ended = bool(task.workspace) or not task.state.is_open
    return below is not None and not below.open and has_ended and not run_needs_operator(task)


def _is_lively(task: Task, now: float) -> bool:
    """Tell whether a task gave a sign of life in the last ten minutes, or in the last hour if it is working."""
    return now < (task.alive_at or 0.0) + (_LIVE_SILENCE if _has_task_in(task, _WORK) else _RECENT)


def group_of(task: Task, now: float, history_before: float = -inf) -> Group:
    """Return a run's group at `now` (epoch seconds). A run in HISTORY was last alive before `history_before`."""
    below = task.below
    if run_needs_operator(task):
        return Group.NOW
    if task.past and (below is None or below.active_at < history_before):
        return Group.HISTORY
    # A host that is unreachable, or not read yet, belongs to NOW.
    is_news = task.workspace and (task.lost_since is not None or (task.host and below is None))
    if is_news or task.shown is Shown.IDLE or _has_task_in(task, _DECIDED) or _is_lively(task, now):
        return Group.NOW
    return Group.TODAY if day_name(task.alive_at or 0.0, now) == "today" else Group.EARLIER


def day_name(moment: float, now: float) -> str:
    """Return the name of a day: `today`, `yesterday`, `Friday` (in the last week), `3 May` (this year), `Mar 2024`."""
    then, here = local_time(moment), local_time(now)
    if then is None or here is None:
        return "?"
    days = (here.date() - then.date()).days
    if days < 7:
        return "today" if days < 1 else "yesterday" if days == 1 else f"{then:%A}"
    return f"{then.day} {then:%b}" if then.year == here.year else f"{then:%b %Y}"


# Chains: a task that only a delegation path names shares a row with its only child


def _child_in_row(tasks: Mapping[str, Task], task: Task | None) -> Task | None:
    """Return the only child of a task if both share one row. Otherwise return None."""
    return tasks.get(task.children[0]) if task and task.shares_row else None


def row_owner(tasks: Mapping[str, Task], task_id: str) -> str:
    """Return the id of the last task in the row of a task. Usually it is the id of the task itself."""
    task = tasks.get(task_id)
    while (task := _child_in_row(tasks, task)) is not None:
        task_id = task.task_id
    return task_id


def chain_name(tasks: Mapping[str, Task], task: Task) -> str:
    """Return the title of the first task in the row of a task. The row shows it before the task's own title. Return ""
    if the own title is enough. It is not enough if it is only the type of an agent."""
    name, above = "", tasks.get(task.parent_id or "")
    while above and above.shares_row:
        name, above = above.title if above.title != above.agent else name, tasks.get(above.parent_id or "")
    is_known = task.agent is None or task.title.partition("#")[0] != task.agent
    return "" if is_known or name == task.title else name


class Tally(NamedTuple):
    """The numbers in the heading of a group: its runs, sums over their tasks, and unreviewed questions of the history.
    `since` is the earliest of the last signs of life of its runs (epoch seconds), or 0 for NOW and TODAY."""

    group: Group
    runs: int
    sums: Sums
    unreviewed: int
    since: float

    def titles(self, now: float) -> tuple[str, ...]:
        """Return the group's heading in several lengths, the longest first."""
        runs, count = plural(self.runs, "run"), self.sums.tasks
        tasks = f"{runs}, {plural(count, 'task')}" if count > self.runs else runs
        dated = f"{tasks} since {day_name(self.since, now)}" if self.since > 0 else tasks
        each = [(number, one.word) for one in reversed(Shown) if (number := self.sums.shown[one])]
        more = "".join(f" · {number:,} {word}" for number, word in each)
        if self.group is Group.HISTORY:
            more = f" · {self.unreviewed:,} never reviewed" if self.unreviewed else ""
        elif len(each) == 1 and not self.sums.needs_operator:
            more = f", {'all ' if count > 1 else ''}{each[0][1]}"
        return dated + more, dated, runs


# The order

RowId = str | Group
_Rank = tuple[float, ...]  # the sort key of a run: index of its group, tier, …


class Row(NamedTuple):
    """One task, or the heading of a group. `depth` is 0 for a run and -1 for a heading. `folded` is None if the row
    has no rows below. `chain` has the ids of the tasks above that share this row."""

    row_id: RowId
    above: RowId | None
    depth: int
    folded: bool | None
    chain: tuple[str, ...] = ()

    @property
    def task_id(self) -> str | None:
        """The id of the row's task, or None for a heading."""
        return None if isinstance(self.row_id, Group) else self.row_id


class Order:
    """The order of a tree's tasks on one screen or in one command. `apply` must be called for every change.

    Until `is_settled` is set, each activity moves a run, because the workspace is still read in pieces.
    """

    def __init__(self, tree: Tree):
        self._tree = tree
        # By run: ((group, tier, state), sort key). The method `_place_run` explains the tiers.
        self._places: dict[str, tuple[tuple[Group, int, State], _Rank]] = {}
        self._held: Collection[str] = ()
        self._groups: dict[Group, list[str]] | None = None
        # The list of roots from which the groups were made. When tasks move, the tree makes a new list.
        self._roots: Sequence[str] = ()
        self._tallies: dict[tuple[Group, bool], Tally] = {}
        self._found: Mapping[str, Task] | None = None
        self._now = -inf
        self.is_settled = False  # whether the workspace was read once; then a sign of life moves no run

    def apply(self, changed: Iterable[str], now: float) -> None:
        """Update the places of the tasks that were added, changed or removed."""
        tasks = self._tree.tasks
        paths = ([task_id, *self._tree.ancestors(task_id)] for task_id in changed if task_id in tasks)
        for one in {one for path in paths for one in path}:
            above = tasks[one].parent_id
            if above is None or tasks[above].workspace:
                self._place_run(one, now)
        self._tallies = {}

    def tick(self, now: float) -> None:
        """Move the runs whose group changes with the time."""
        if not 0 <= now - self._now < _REFRESH:
            # A run of the group TODAY moves only when the day changes.
            is_same_day = self._now <= now and day_name(self._now, now) == "today"
            for run_id, ((group, _, _), _) in list(self._places.items()):
                if group is Group.NOW or (group is Group.TODAY and not is_same_day):
                    self._place_run(run_id, now)
            self._now = now

    def hold_runs(self, path: Collection[str], now: float) -> None:
        """Keep the runs among these tasks in their places, and let all other runs move again."""
        released, self._held = self._places.keys() & {*self._held}.difference(path), path
        for one in released:
            self._place_run(one, now)

    def _place_run(self, run_id: str, now: float) -> None:
        run, before = self._tree.tasks.get(run_id), self._places.get(run_id)
        if run is None:
            return
        group, is_working = group_of(run, now, self._tree.rules.history_before), _has_task_in(run, _WORK)
        # Tiers of runs that need the operator: 0 works, 1 was alive lately, 2 has long been silent.
        # Tiers of other runs: 3 works or is unreachable, 4 has ended its turn and waits for you, 5 anything else.
        if run_needs_operator(run):
            tier = 2 if not _is_lively(run, now) else 0 if is_working else 1
        else:
            tier = 4 if run.shown is Shown.IDLE else 5
            tier = 3 if (is_working or run.state is State.UNKNOWN) and group is Group.NOW else tier
        # A held run moves only when it begins to need the operator. Then it must not stay below other runs.
        if before is not None and run_id in self._held and (tier > 2 or before[0][1] <= 2):
            return
        reasons = group, tier, run.state
        if before is None or (run.lost_since is None and not (self.is_settled and reasons == before[0])):
            self._places[run_id] = reasons, ([*Group].index(group), tier, -(run.alive_at or 0.0), run.first_seq)
            self._groups = None

    def _sort_runs(self, runs: Iterable[str]) -> list[str]:
        return sorted((one for one in runs if one in self._places), key=lambda one: self._places[one][1])

    @property
    def groups(self) -> dict[Group, list[str]]:
        """The ids of each group's runs, sorted. The dict is a new object whenever a run came, went or moved."""
        if self._groups is None or self._roots is not self._tree.roots:
            self._roots = self._tree.roots
            by_group = groupby(self._sort_runs(self._tree.roots), lambda one: self._places[one][0][0])
            self._groups = {group: list[str]() for group in Group} | {group: [*runs] for group, runs in by_group}
            self._tallies = {}
        return self._groups

    def rows(self, folds: Collection[RowId] = (), shown: Collection[str] | None = None) -> list[Row]:
        """Return the rows in order, without rows below the ids in `folds`. With `shown`, only these tasks get rows.
        Groups have headings. But a single group has no heading, unless it is the history."""
        tasks, rows = self._tree.tasks, list[Row]()

        def visible(ids: Iterable[str]) -> list[str]:
            return [one for one in ids if one in tasks and (shown is None or one in shown)]

        groups = {group: runs for group, ids in self.groups.items() if (runs := visible(ids))}
        pending: list[tuple[RowId, int, RowId | None]] = [(group, -1, None) for group in reversed(groups)]
        if len(groups) == 1 and Group.HISTORY not in groups:
            pending = [(run, 0, None) for runs in groups.values() for run in reversed(runs)]
        while pending:
            row_id, depth, above = pending.pop()
            chain: tuple[str, ...] = ()
            children: Sequence[str] = ()
            if isinstance(row_id, Group):
                children = groups[row_id]
            elif (task := tasks[row_id]).children:
                while (below := _child_in_row(tasks, task)) is not None:
                    chain, row_id, task = (*chain, row_id), below.task_id, below
                children = visible(self._sort_runs(task.children) if task.workspace else task.children)
            folded = row_id in folds if children else None
            rows.append(Row(row_id, above, depth, folded, chain))
            if folded is False:
                pending += [(child, depth + 1, row_id) for child in reversed(children)]
        return rows

    def tally(self, group: Group, found: Mapping[str, Task] | None = None) -> Tally:
        """Return the numbers in the heading of a group. With `found`, count only these tasks."""
        if found is not None and found is not self._found:
            self._found, self._tallies = found, {}
        key = group, found is None
        if key not in self._tallies:
            tree, ids = self._tree, self.groups[group]
            runs = [task for one in ids if (task := tree.tasks.get(one)) is not None]
            questions = tree.past_questions() if group is Group.HISTORY else []
            sums = tree.totals if len(runs) == len(tree.roots) else sum_tasks(runs, deep=True)
            if found is not None:
                per_run = [[one for one, _ in tree.preorder([run.task_id]) if one.task_id in found] for run in runs]
                runs = [run for run, those in zip(runs, per_run, strict=True) if those]
                sums = sum_tasks(one for those in per_run for one in those)
                questions = [task for task in questions if task.task_id in found]
            is_old = group in (Group.EARLIER, Group.HISTORY)
            since = min((run.alive_at or 0.0 for run in runs), default=0.0) if is_old else 0.0
            self._tallies[key] = Tally(group, len(runs), sums, len(questions), since)
        return self._tallies[key]


# Queries

_Check = Callable[[Task, float], Any]  # tells whether a task matches at a time (epoch seconds)

_NEEDS_YOU = "is:needs-you"
_TERM = re.compile(r'(?:[^\s"]++|"[^"]*+"?+)++')
_KEYED = re.compile(r"-?(?P<key>[A-Za-z]{1,12}):(?P<value>.*)", re.DOTALL)
# The last key or value of a query, as far as it has been typed.
_UNFINISHED = re.compile(r'(?:^|\s)-?(?:(?P<key>[A-Za-z]+):(?:\S*,)?)?(?:"(?P<quoted>[^",]*)|(?P<bare>[^\s",:]*))\Z')
_SHORTEST_BEGINNING = 2  # a key is completed when so many of its letters are typed
_SIMILARITY = 0.81  # how similar a misspelt key must be: `stat` is similar to `state`, but `code` not to `mode`
_LONGEST = 40  # the most characters of a wrong value in a message
_EXAMPLES = {
    "state": "failed",
    "is": "needs-you",
    "agent": "review",
    "since": "10m",
    "source": "codex",
    "mode": "code",
    "path": "src/",
    "host": "build1",
}  # an example value for each key


class WrongTermError(Exception):
    """A term of a query is wrong. The message says why, and may suggest a right term."""


class Term(NamedTuple):
    """One word or `key:value` of a query. `written` is the text of the term in the query."""

    written: str
    key: str
    holds: _Check

    @property
    def is_state(self) -> bool:
        """Whether the term is a state or `is:needs-you`."""
        return self.key == "state" or self.written == _NEEDS_YOU


class Query(NamedTuple):
    """A parsed query. `text` is the query without wrong terms. `fault` describes the first wrong term, or is ""."""

    text: str = ""
    terms: tuple[Term, ...] = ()
    fault: str = ""

    def __bool__(self) -> bool:
        return bool(self.terms)

    @property
    def state_term(self) -> Term | None:
        """The first term that is a state or `is:needs-you`, or None."""
        return next((term for term in self.terms if term.is_state), None)

    def matches(self, task: Task, now: float) -> bool:
        """Tell whether the task itself matches the query at `now` (epoch seconds)."""
        return all(term.holds(task, now) for term in self.terms)

    def with_next_state(self, states: Iterable[Shown], by: int, *, asks: bool) -> str:
        """Return the query with another state, `by` steps further in a cycle. The cycle is no state, `is:needs-you`
        (only if a task `asks`), and then the `states`, the most urgent first."""
        steps = ["", *([_NEEDS_YOU] if asks else [])]
        steps += [f"state:{state}" for state in sorted(states, key=lambda state: -state.urgency)]
        current = self.state_term.written if self.state_term else ""
        following = steps[((steps.index(current) if current in steps else 0) + by) % len(steps)]
        return " ".join([*(term.written for term in self.terms if not term.is_state), *filter(None, [following])])


class Matches(NamedTuple):
    """The tasks that match a query, and the tasks whose rows show the matching tasks. `shown` has the ids of the
    matching tasks and of all tasks above them."""

    matches: Mapping[str, Task]
    rows: Mapping[str, Task]
    shown: Set[str]


def find_matches(tree: Tree, query: Query, now: float) -> Matches:
    """Return the tasks that match a query at `now` (epoch seconds)."""
    matches = {task.task_id: task for task, _ in tree.preorder() if query.matches(task, now)}
    rows = {end: tree.tasks[end] for end in (row_owner(tree.tasks, task_id) for task_id in matches)}
    return Matches(matches, rows, {one for task_id in matches for one in (task_id, *tree.ancestors(task_id))})


def parse(text: str) -> Query:
    """Parse a query. Never fail: wrong terms are left out, and `fault` describes the first wrong term."""
    terms: list[Term] = []
    fault = ""
    for written in _TERM.findall(text):
        try:
            terms += _parse_term(written)
        except WrongTermError as error:
            fault = fault or str(error)
    return Query(" ".join(term.written for term in terms) if fault else text, tuple(terms), fault)


def view_faults(views: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return the fault of each wrong saved view, by the name of the view. The faults quote text of the settings."""
    queries = ((name, parse(text)) for name, text in views)
    return {name: f"the view {quote_text(name, 60)} is wrong: {query.fault}" for name, query in queries if query.fault}


def complete_query(text: str, values: Callable[[str], Iterable[str]]) -> str | None:
    """Return the query with its last key or value completed. Return None if there is nothing to complete.

    `values` returns the values that tasks have for a key, as safe text.
    """
    match = _UNFINISHED.search(text)
    if match is None:
        return None
    key, is_quoted = (match["key"] or "").casefold(), match["bare"] is None
    begun = match["quoted" if is_quoted else "bare"]
    if not key:
        names = [] if is_quoted or len(begun) < _SHORTEST_BEGINNING else [f"{one}:" for one in _EXAMPLES]
    elif key in ("since", "state", "is"):
        names = [*(_SPANS if key == "since" else _WORDS)]
    else:
        names = [re.split('[",]' if is_quoted else '[", ]', one, maxsplit=1)[0] for one in values(key)]
    size = len(begun)
    name = next((name for name in names if name[:size].casefold() == begun.casefold() and name[size:]), None)
    return None if name is None else text + name[size:]


def constant_terms() -> Iterator[str]:
    """Yield the terms of queries that do not depend on the present tasks."""
    yield from (f"state:{word}" for word in (*reversed(Shown), _NEEDS_YOU.partition(":")[2]))
    yield from (f"is:{word}" for word in _WORDS)
    yield from (f"since:{word}" for word in _SPANS)


def _parse_term(written: str) -> Iterator[Term]:
    """Yield the term of a text, or nothing if the text is empty. Raise WrongTermError if the term is wrong."""
    match = _KEYED.fullmatch(written)
    key = match["key"].casefold() if match else ""
    is_negated = written[0] == "-" and len(written) > 1
    if match and key in _EXAMPLES:
        values = match["value"].replace('"', "").casefold().split(",")
    elif near := get_close_matches(key, _EXAMPLES, 1, cutoff=_SIMILARITY):
        raise WrongTermError(f"no key {quote_text(key)}: did you mean {near[0]}?")
    else:
        key, values = "", [written[is_negated:].replace('"', "").casefold()]
    checks = [_make_check(key, value) for value in values if value]
    if key and not checks:
        raise WrongTermError(f"{key}: needs a value, such as {key}:{_EXAMPLES[key]}")
    if checks:
        yield Term(written, key, lambda task, now: any(one(task, now) for one in checks) is not is_negated)


def _make_check(key: str, value: str) -> _Check:
    """Return the check for a lower-case value of a key. Raise WrongTermError if the value is wrong."""
    if key in ("state", "is"):
        name = value.replace("_", "-").replace(" ", "-")
        begun = [_WORDS[name]] if name in _WORDS else [_WORDS[full] for full in _WORDS if full.startswith(name)]
        if not begun:
            raise WrongTermError(f"no {quote_text(f'{key}:{value}', _LONGEST)}: try {', '.join([*_WORDS][:3])}")
        return lambda task, _now: any(holds(task) for holds in begun)
    if key == "since":
        seconds = parse_span(value)
        if seconds is None:
            raise WrongTermError("since: needs a time, such as 10m, 2h or 3d")
        return lambda task, now: task.alive_at is not None and task.alive_at >= now - seconds
    texts = _TEXTS[key]
    return lambda task, _now: any(value in text.casefold() for text in texts(task) if text)


# The terms that a task can match


def _is_shown(shown: Shown) -> Callable[[Task], bool]:
    return lambda task: task.shown is shown


# Other words for states, as the screen, other programs, and protocols such as A2A use them.
_OTHER_STATE_WORDS = (
    "in-progress=working done=completed success=completed error=failed rejected=failed cancelled=canceled"
    " your-turn=idle"
)
# Words for attributes of a task.
_ATTRIBUTE_WORDS = (
    "needs-you=needs_operator contradicted=contradicted stale=stale open=shown.is_open inferred=inferred"
    " deleted=deleted session=is_session past=past acknowledged=acknowledged snoozed=snoozed asks=needs_operator"
    " history=past"
)
# The values of `state:` and `is:`.
_WORDS: Mapping[str, Callable[[Task], Any]] = {
    **{shown.value: _is_shown(shown) for shown in reversed(Shown)},
    "verified": lambda task: task.shown is Shown.COMPLETED and task.verdict is Verdict.VERIFIED,
    "decided": decision_of,
    "retried": lambda task: task.attempt > 1,
    **{word: attrgetter(name) for word, name in (pair.split("=") for pair in _ATTRIBUTE_WORDS.split())},
    "ended": lambda task: not task.shown.is_open,
    "unseen": lambda task: not task.seen,
    "new": lambda task: not task.seen,
    **{word: _is_shown(Shown(state)) for word, state in (pair.split("=") for pair in _OTHER_STATE_WORDS.split())},
    A2A_AUTH: lambda task: a2a_state(task) == A2A_AUTH,
    A2A_INPUT: lambda task: a2a_state(task) == A2A_INPUT,
}
_SPANS = ("10m", "1h", "3h", "1d", "7d")


def _sources_of(task: Task) -> Iterator[str | None]:
    """Yield the sources whose sessions show a task, and `files` if the task has files in the workspace."""
    for attempt in task.attempts:
        yield attempt.run.source if attempt.run else None
        if any(version is not None and not version.stored for version in (attempt.handoff, attempt.returned)):
            yield "files"


def _paths_of(task: Task) -> Iterator[str | None]:
    """Yield the paths of the handoffs, returns and transcripts of a task, and of the files in its claims."""
    for attempt in task.attempts:
        yield from (version.path for version in (attempt.handoff, attempt.returned) if version)
        yield attempt.run.place if attempt.run else None
    yield from (claim.path for claim in task.claims)


OFFERED: Mapping[str, Callable[[Task], Iterable[str | None]]] = {
    "agent": lambda task: [task.agent],
    "source": _sources_of,
    "mode": lambda task: [task.packet.mode if task.packet else None, task.run.mode if task.run else None],
    "host": lambda task: [task.host or "here"],
}  # the keys for which completion offers the values of the present tasks
# By key: the texts in which a value is searched. A plain word has the key "".
_TEXTS: Mapping[str, Callable[[Task], Iterable[str | None]]] = {
    **OFFERED,
    "path": _paths_of,
    "": lambda task: [task.own_id, task.title, task.agent, task.packet.objective if task.packet else None],
}
