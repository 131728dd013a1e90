"""The report as one HTML file: it needs no network, no script and no server, and its policy admits none.

It cannot be broken out of: an element's children are text unless they were made here.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from html import escape
from importlib.resources import files
from itertools import pairwise
from string import Template
from typing import Any, Final

from agentwatch.delegation.task import State, Task
from agentwatch.report.account import (
    Account,
    AttemptLine,
    DecisionLine,
    Fact,
    Grid,
    TaskLine,
    broken,
    facts,
    grids,
    lasted,
    said,
)
from agentwatch.text import LINE_LIMIT, clean, clean_lines
from agentwatch.view.axis import Axis
from agentwatch.view.looks import LOOKS, TODOS, Look
from agentwatch.view.spans import Interval, Kind, busy_times
from agentwatch.view.times import iso, span, utc
from agentwatch.view.words import plural

_DEEPEST: Final = 16
"""Levels that are indented; nobody reads deeper."""

_FILTERED: Final = 20
"""From so many tasks on, some of them can be hidden."""

_CHANGES: Final = 2_000
_ITEMS: Final = 60
"""Entries of one list or table; more are counted."""

_FIRST_ASKED: Final = 12
"""Asks whose tasks are unfolded: more would push the tree out of sight."""

_PROSE_LINES: Final = 60
_SHORTEST: Final = 2.0
"""Seconds. What is shorter has no timeline: files of a fresh checkout all have the time of the checkout."""

_IDLE: Final = 0.1
"""A pause longer than this share of the busy time is cut down to it."""

_IDLE_AT_LEAST: Final = 30.0
_ALL_IDLE: Final = 0.4
"""All pauses that were cut down take at most this share of the busy time together."""

_LEAST: Final = 0.6
"""Percent of the lane that the shortest attempt takes: it must be seen."""

_EMPTY: Final = frozenset({"input"})
_COLORS: Final = {"text-error": "failed", "text-warning": "partial", "text-muted": "submitted"}
_LEGEND: Final = (
    "A row unfolds. A block is an attempt; a dashed line, a time in which nobody works and somebody waits; a ring, a"
    " decision; a shaded band, a pause that is left out. Times are UTC."
)


def html(account: Account) -> str:
    """The whole page."""
    axis = _axis_of(account)
    package = files(__package__)
    style = package.joinpath("report.css").read_text(encoding="utf-8") + _cut_style(axis)
    digest = b64encode(sha256(style.encode()).digest()).decode()
    summary = account.summary
    counts = [
        element("li", badge(LOOKS[state]), " ", element("b", f"{count:,}"))
        for state, count in sorted(summary.by_state.items(), key=lambda item: -item[0].urgency)
    ]
    return Template(package.joinpath("page.html").read_text(encoding="utf-8")).substitute(
        policy=f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'",
        style=style,
        name=joined([clean(account.name, 200)]).source,
        pill=_pill(account).source,
        verdict=joined([account.verdict]).source,
        counts=joined(counts).source,
        sections=joined(_sections(account, axis)).source,
        when=utc(account.generated_at),
    )


# Elements


@dataclass(frozen=True, slots=True)
class Html:
    """Markup of our own. Only `element`, `joined` and code without foreign text make one."""

    source: str


Child = Html | str | None


def element(name: str, /, *children: Child, **attributes: str | bool | None) -> Html:
    """An element. A `str`, child or attribute, is foreign text: made visible by `clean`, then escaped.

    Attributes are written as in Python: `class_`, `aria_label`; True stands alone, None and False are left out.
    """
    opening = name + "".join(_attribute(key, value) for key, value in attributes.items())
    return Html(f"<{opening}>" if name in _EMPTY else f"<{opening}>{joined(children).source}</{name}>")


def joined(children: Iterable[Child]) -> Html:
    """Several pieces, one after the other."""
    return Html("".join(_source(child) for child in children if child is not None))


def _source(child: Html | str) -> str:
    return child.source if isinstance(child, Html) else escape(clean(child), quote=True)


def _attribute(key: str, value: str | bool | None) -> str:
    if value is None or value is False:
        return ""
    name = key.rstrip("_").replace("_", "-")
    return f" {name}" if value is True else f' {name}="{_source(value)}"'


def text(foreign: str, limit: int = LINE_LIMIT) -> Html:
    """Foreign text on one line, cut after `limit` characters. It cannot change the direction of what is beside it."""
    return element("bdi", clean(foreign, limit))


def code(foreign: str, limit: int = 400) -> Html:
    """An id or a path."""
    return element("code", text(foreign, limit))


def prose(foreign: str) -> Html:
    """A text with its lines."""
    lines, note = clean_lines(foreign, max_lines=_PROSE_LINES, max_characters=8_192)
    # The style keeps line feeds; each line is safe by itself, and `element` would make one line of them.
    body = [piece for line in lines for piece in (Html("\n"), text(line))][1:]
    return element("p", *body, faint(f" ({note})") if note else None, class_="prose", dir="auto")


def faint(*children: Child, more: str = "") -> Html:
    return element("span", *children, class_=f"faint{more}")


def badge(look: Look) -> Html:
    """Glyph and word in their colour; screen readers get the word alone."""
    glyph = element("span", look.glyph, aria_hidden="true")
    return element("span", glyph, f" {look.word}", class_=f"badge c-{_color(look)}")


def _color(look: Look) -> str:
    """The colour of a look, as the style names it."""
    return _COLORS.get(look.color) or look.color.removeprefix("state-")


def when(at: float | None) -> Html:
    """A moment, also for machines."""
    return element("time", utc(at), datetime=iso(at))


def table(head: Sequence[str], rows: Iterable[Sequence[Child]], class_: str = "table") -> Html:
    """A table that scrolls by itself if it is too wide; on a narrow page each cell names its column."""
    heads = element("tr", *(element("th", title, scope="col") for title in head))
    body = [
        element("tr", *(element("td", cell, data_label=title) for title, cell in zip(head, row, strict=True)))
        for row in rows
    ]
    return element("div", element("table", element("thead", heads), element("tbody", *body)), class_=class_)


def link(name: Html, number: int) -> Html:
    """To a task's details: by its number, for an id is foreign text."""
    return element("a", name, href=f"#task-{number + 1}")


def _section(title: str, count: int | None, *children: Child, class_: str | None = None) -> Html:
    """A section with its heading, and how many things are in it."""
    counted = None if count is None else element("span", f"{count:,}", class_="count")
    return element("section", element("h2", title, counted), *children, class_=class_)


# The page


def _pill(account: Account) -> Html:
    summary = account.summary
    needs = summary.needs_operator + sum(one.needs_operator for one in account.worktrees)
    if needs:
        verdict, color = f"{needs:,} {'needs' if needs == 1 else 'need'} a human", " c-attention"
    elif account.problems:
        verdict, color = "not all could be seen", " c-attention"
    elif summary.tasks and summary.by_state.get(State.COMPLETED) == summary.tasks:
        verdict, color = "✓ all done", " c-completed"
    else:
        verdict, color = f"nothing{' new' if summary.past else ''} needs a human", ""
    return element("p", verdict, class_=f"pill{color}")


def _sections(account: Account, axis: Axis | None) -> Iterator[Html]:
    numbers = {line.task.task_id: number for number, line in enumerate(account.rows)}
    if account.problems:
        rows = [(text(source, 40), text(message)) for source, _, message in account.problems]
        yield _section("Could not be read", len(rows), table(("source", "what"), rows))
    if account.attention:
        yield _attention(account, numbers)
    if account.rows:
        yield _delegation(account, axis, numbers)
    if account.changes:
        yield _changes(account, numbers)
    if account.notices:
        yield _section("Files of no task", None, _grid(broken(account.notices)))


def _attention(account: Account, numbers: Mapping[str, int]) -> Html:
    rows: list[tuple[Child, ...]] = []
    for one in account.attention:
        line = account.rows[numbers[one.task_id]]
        held = faint(f" holds up {plural(one.holds, 'task')}") if one.holds else None
        waiting = span(account.generated_at - one.since) if one.since is not None else "-"
        name = joined((link(code(one.task_id), numbers[one.task_id]), _agent(line.task)))
        rows.append((_state(line), name, joined((element("span", text(one.ask), class_="prose"), held)), waiting))
    shown = table(("state", "task", "what it asks", "waiting"), rows, class_="table attention")
    return _section("Needs attention", len(rows), shown)


def _delegation(account: Account, axis: Axis | None, numbers: Mapping[str, int]) -> Html:
    """All tasks, each a row that unfolds to what is told of it."""
    decided = account.decisions_by_task()
    open_ = account.branches_with(lambda task: task.state is not State.COMPLETED)
    asking = account.branches_with(lambda task: task.needs_operator or (task.stale and not task.past))
    pressing = {one.task_id for one in account.attention[:_FIRST_ASKED]}
    rows = []
    for number, line in enumerate(account.rows):
        task, decisions = line.task, decided.get(line.task.task_id, [])
        kinds = [kind for kind, ids in (("k-open", open_), ("k-asks", asking)) if task.task_id in ids]
        summary = _row(line, decisions, axis, account.generated_at)
        body = element("div", *_details(line, decisions, numbers), id=f"task-{number + 1}", class_="body")
        is_open = task.task_id in pressing
        rows.append(element("details", summary, body, class_=" ".join(kinds) or None, open=is_open))
    head = element(
        "div",
        element("span", "task", class_="name"),
        element("span", "state"),
        element("span", "took", class_="number"),
        _axis_labels(axis),
        class_="row head",
        aria_hidden="true",
    )
    legend = _LEGEND if axis else "No timeline: the times of the files are all the same, or not known."
    return _section(
        "Delegation",
        len(rows),
        _filter() if len(rows) > _FILTERED else None,
        head,
        element("div", *rows, class_="tree"),
        element("p", legend, class_="faint legend"),
    )


def _filter() -> Html:
    """Three choices that the style sheet alone obeys."""
    choices = (("all", "every task"), ("open", "not finished"), ("asks", "needs attention"))
    labels = (
        element(
            "label",
            element("input", type="radio", name="show", id=f"show-{name}", checked=name == "all"),
            f" {words}",
        )
        for name, words in choices
    )
    return element("fieldset", element("legend", "Show"), *labels)


def _row(line: TaskLine, decisions: Sequence[DecisionLine], axis: Axis | None, now: float) -> Html:
    task = line.task
    name = element(
        "span",
        element("b", text(line.title, 120)),
        _agent(task),
        element("span", "needs a human", class_="flag") if task.needs_operator else None,
        class_="name",
    )
    done = task.state is State.COMPLETED and not task.needs_operator
    return element(
        "summary",
        name,
        _state(line),
        element("span", lasted(line.took), class_="number"),
        _lane(line, decisions, axis, now) if axis else element("span", class_="lane"),
        class_=f"row d{min(line.depth, _DEEPEST)}{' done' if done else ''}",
    )


def _agent(task: Task) -> Html | None:
    """Who works on a task, where that is known."""
    return faint(text(task.agent, 40), more=" agent") if task.agent else None


def _state(line: TaskLine) -> Html:
    """The look of a task, and the state behind it where stale or contradicted stands in front."""
    shown, behind = line.look, LOOKS[line.task.state]
    return element("span", badge(shown), *(() if shown == behind else (" ", badge(behind))), class_="state")


def _details(line: TaskLine, decisions: Sequence[DecisionLine], numbers: Mapping[str, int]) -> Iterator[Html]:
    """What was asked and came back, attempt by attempt, and what became of it."""
    task = line.task
    yield code(task.task_id)
    if task.ask:
        yield element("p", text(task.ask), class_="ask")
    yield _list([*(_told(one, numbers) for one in facts(line)), *_checklist(task)])
    for attempt in reversed(line.attempts):
        yield _attempt_head(attempt)
        yield _list([_told(one, numbers) for one in said(attempt.attempt)])
    for grid in grids(task, decisions):
        yield element("h3", grid.title)
        yield _grid(grid)


def _attempt_head(line: AttemptLine) -> Html:
    attempt, _, shown, took = line
    began = (" began ", when(attempt.started_at)) if attempt.started_at is not None else ()
    how_long = faint(*began, f", took {lasted(took)}" if took else None)
    return element("h3", f"Attempt {attempt.number} ", badge(shown), how_long)


def _list(pairs: Iterable[tuple[str, Child]]) -> Html:
    return element("dl", *(element("div", element("dt", label), element("dd", value)) for label, value in pairs))


def _told(fact: Fact, numbers: Mapping[str, int]) -> tuple[str, Child]:
    shown = [_shown(fact.kind, one, numbers) for one in fact.texts[:_ITEMS]]
    listed = shown[0] if len(fact.texts) == 1 else element("ul", *(element("li", one) for one in shown))
    note = faint(" ", text(fact.behind, 200)) if fact.behind else None
    return fact.label, joined((listed, note, _more(len(fact.texts))))


def _shown(kind: str, one: str, numbers: Mapping[str, int]) -> Html:
    if kind == "prose":
        return prose(one)
    if kind == "task" and one in numbers:
        return link(code(one), numbers[one])
    return code(one) if kind in ("code", "task") else text(one, 400)


def _checklist(task: Task) -> Iterator[tuple[str, Child]]:
    if task.todos:
        items = [element("li", badge(TODOS[todo.status]), " ", text(todo.text, 300)) for todo in task.todos[:_ITEMS]]
        yield "checklist", joined((element("ul", *items), _more(len(task.todos))))


def _grid(grid: Grid) -> Html:
    """A table, cut where it is long."""
    rows = [list(map(_cell, grid.columns.values(), row)) for row in grid.rows[:_ITEMS]]
    return joined((table(list(grid.columns), rows), _more(len(grid.rows))))


def _cell(kind: str, value: Any) -> Html:
    if kind == "look":
        return badge(value)
    return when(value) if kind == "time" else _shown(kind, value, {})


def _more(count: int) -> Html | None:
    return element("p", f"… and {count - _ITEMS:,} more", class_="faint") if count > _ITEMS else None


def _changes(account: Account, numbers: Mapping[str, int]) -> Html:
    rows: list[tuple[Child, ...]] = []
    for change in account.changes[-_CHANGES:]:
        number, name = numbers.get(change.task_id), code(change.task_id)
        before = badge(LOOKS[change.before]) if change.before else "new"
        after = badge(LOOKS[change.after]) if change.after else "gone"
        attempt = faint(f" attempt {change.attempt}") if change.attempt > 1 else None
        states = joined((before, " → ", after, attempt))
        shown = name if number is None else link(name, number)
        rows.append((when(change.at), shown, states, text(change.reason, 300)))
    left_out = f"The last {len(rows):,} state changes" if len(rows) < len(account.changes) else "every state change"
    told = table(("when (UTC)", "task", "state", "because"), rows)
    folded = element("details", element("summary", f"{left_out}, in order"), told)
    return _section("What happened", len(account.changes), folded)


# The timeline: a lane of bars for each task, all on one axis without the hours in which nothing happened


def _axis_of(account: Account) -> Axis | None:
    """None if the times of a session are not known, or all the same."""
    busy: list[Interval] = []
    for begin, end in sorted(stretch for line in account.tasks for stretch in busy_times(line.task)):
        if busy and begin <= busy[-1][1]:
            busy[-1] = busy[-1][0], max(busy[-1][1], end)
        else:
            busy.append((begin, end))
    if any(one.end is None for line in account.tasks for one in line.spans):
        busy.append((account.generated_at, max(account.generated_at, busy[-1][1] if busy else 0.0)))
    if not busy or busy[-1][1] - busy[0][0] < _SHORTEST:
        return None
    worked = sum(end - begin for begin, end in busy)
    longest = max(worked * _IDLE, _IDLE_AT_LEAST)
    cut = sum(after - before > longest for (_, before), (after, _) in pairwise(busy))
    short = min(longest, max(worked * _ALL_IDLE / cut, 1.0)) if cut else longest
    return Axis(busy, busy[-1][1], 1.0, short, longest)


def _place(axis: Axis, at: float | None) -> float:
    """Where a moment lies, in percent; None is the end."""
    return 100.0 if at is None else 100 * min(max(axis.column(at) / axis.length, 0.0), 1.0)


def _lane(line: TaskLine, decisions: Sequence[DecisionLine], axis: Axis, now: float) -> Html:
    """The bars of one task, a mark for each decision, and what they say in words for those who cannot see them."""
    decided = [(one, one.at) for one in decisions if one.at is not None]
    words = "; ".join([*_words(line, now), *(f"{one.action} decided at {utc(at)}" for one, at in decided)])
    pieces = []
    # Attempts are drawn over waits.
    for one in sorted(line.spans, key=lambda one: one.kind is not Kind.WAIT):
        begin, end = _place(axis, one.start), _place(axis, one.end)
        if one.kind is Kind.WAIT:
            pieces.append(element("line", x1=f"{begin:.2f}%", x2=f"{end:.2f}%", y1="50%", y2="50%", class_="wait"))
            continue
        width = max(end - begin, _LEAST)
        place = {"x": f"{min(begin, 100 - width):.2f}%", "width": f"{width:.2f}%", "y": "20%", "height": "60%"}
        pieces.append(element("rect", **place, class_=f"f-{_color(one.look)}{' open' if one.end is None else ''}"))
    for _, at in decided:
        pieces.append(element("circle", cx=f"{_place(axis, at):.2f}%", cy="50%", r="4", class_="decision"))
    return element("svg", element("title", words or "no times known"), *pieces, class_="lane", role="img")


def _words(line: TaskLine, now: float) -> Iterator[str]:
    waits = {wait.number: wait for wait in line.waits}
    for attempt, _, shown, took in line.attempts:
        began = f" from {utc(attempt.started_at)}" if attempt.started_at is not None else ""
        yield f"attempt {attempt.number} {shown.word}{began}{f', {lasted(took)}' if took else ''}"
        if wait := waits.get(attempt.number):
            waited = span((now if wait.end is None else wait.end) - wait.start)
            yield f"has waited for {waited}" if wait.end is None else f"then waited for {waited}"


def _axis_labels(axis: Axis | None) -> Html:
    """The times at the beginning and at the end of the lanes."""
    if axis is None:
        return element("span", class_="lane")
    labels = [
        element("text", utc(axis.moment(at * axis.length)), x=f"{at:.0%}", y="75%", class_=f"at-{side}")
        for at, side in ((0, "start"), (1, "end"))
    ]
    return element("svg", *labels, class_="lane")


def _cut_style(axis: Axis | None) -> str:
    """A style rule that marks the pauses which are left out, once for all lanes. Made of numbers alone."""
    if axis is None or not axis.folds:
        return ""
    places = ((100 * fold.left / axis.length, 100 * fold.right / axis.length) for fold in axis.folds)
    stops = (
        f"transparent {left:.3f}%, var(--cut) {left:.3f}% {right:.3f}%, transparent {right:.3f}%"
        for left, right in places
    )
    return f".lane{{background-image:linear-gradient(to right, {', '.join(stops)})}}"
