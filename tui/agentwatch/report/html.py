"""The report as one HTML file: it needs no network, no script and no server, and its policy admits none.

It cannot be broken out of: an element's children are text unless they were made here.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from html import escape
from importlib.resources import files
from itertools import pairwise
from string import Template
from types import MappingProxyType
from typing import Any, Final

from agentwatch.delegation.task import State, Task
from agentwatch.report.account import (
    Account,
    AttemptLine,
    Fact,
    Grid,
    TaskLine,
    facts,
    grids,
    lasted,
    said,
    tables,
)
from agentwatch.text import LINE_LIMIT, clean, clean_lines
from agentwatch.view.axis import Axis
from agentwatch.view.looks import LOOKS, Look
from agentwatch.view.spans import Interval, Kind, busy_times
from agentwatch.view.times import iso, utc

_DEEPEST: Final = 16
"""Levels that are indented; nobody reads deeper."""

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
    return Html(f"<{opening}>{joined(children).source}</{name}>")


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


def link(name: Html, number: int) -> Html:
    """To a task's details: by its number, for an id is foreign text."""
    return element("a", name, href=f"#task-{number + 1}")


def _section(grid: Grid, *children: Child) -> Html:
    """A section with its heading, and how many things are in it."""
    counted = element("span", f"{len(grid.rows):,}", class_="count")
    return element("section", element("h2", grid.title, counted), *children)


# The page


def _pill(account: Account) -> Html:
    needs = account.summary.needs_operator + sum(one.needs_operator for one in account.worktrees)
    if needs or account.problems:
        verdict = f"{needs:,} {'needs' if needs == 1 else 'need'} a human" if needs else "not all could be seen"
        return element("p", verdict, class_="pill c-attention")
    return element("p", f"nothing{' new' if account.summary.past else ''} needs a human", class_="pill")


def _sections(account: Account, axis: Axis | None) -> Iterator[Html]:
    rows = account.rows
    numbers = {line.task.task_id: number for number, line in enumerate(rows)}
    unread, asks, changes, notices = tables(account)
    if unread.rows:
        yield _section(unread, _grid(unread))
    if asks.rows:
        yield _section(asks, _grid(asks, numbers, class_="table attention"))
    if rows:
        yield _delegation(account, axis, numbers)
    if changes.rows:
        every = element("summary", "every state change, in order")
        yield _section(changes, element("details", every, _grid(changes, numbers, most=_CHANGES)))
    if notices.rows:
        yield _section(notices, _grid(notices))


def _delegation(account: Account, axis: Axis | None, numbers: Mapping[str, int]) -> Html:
    """All tasks, each a row that unfolds to what is told of it."""
    pressing = {one.task_id for one in account.attention[:_FIRST_ASKED]}
    rows = []
    for number, line in enumerate(account.rows):
        summary = _row(line, axis)
        body = element("div", *_details(line, numbers), id=f"task-{number + 1}", class_="body")
        rows.append(element("details", summary, body, open=line.task.task_id in pressing))
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
    tree = element("div", *rows, class_="tree")
    below = element("p", legend, class_="faint legend")
    return _section(Grid("Delegation", "task", {}, account.rows), head, tree, below)


def _row(line: TaskLine, axis: Axis | None) -> Html:
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
        _lane(line, axis) if axis else element("span", class_="lane"),
        class_=f"row d{min(line.depth, _DEEPEST)}{' done' if done else ''}",
    )


def _agent(task: Task) -> Html | None:
    """The worker of a task, where that is known."""
    return faint(text(task.agent, 40), more=" agent") if task.agent else None


def _state(line: TaskLine) -> Html:
    """The look of a task, and the state behind it where stale or contradicted stands in front."""
    shown, behind = line.look, LOOKS[line.task.state]
    return element("span", badge(shown), *(() if shown == behind else (" ", badge(behind))), class_="state")


def _details(line: TaskLine, numbers: Mapping[str, int]) -> Iterator[Html]:
    """Handoff, return and outcome, attempt by attempt."""
    yield code(line.task.task_id)
    yield _list([_told(one, numbers) for one in facts(line)])
    for attempt in reversed(line.attempts):
        yield _attempt_head(attempt)
        yield _list([_told(one, numbers) for one in said(attempt.attempt)])
    for grid in grids(line):
        yield element("h3", grid.title)
        yield _grid(grid)


def _attempt_head(line: AttemptLine) -> Html:
    attempt, shown, took = line
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


def _grid(
    grid: Grid, numbers: Mapping[str, int] = MappingProxyType({}), *, most: int = _ITEMS, class_: str = "table"
) -> Html:
    """A table, cut where it is long: the last of what happened, the first of all else. It scrolls by itself if it is
    too wide; on a narrow page each cell names its column."""
    rows = grid.rows[-most:] if "when (UTC)" in grid.columns else grid.rows[:most]
    head = element("tr", *(element("th", title, scope="col") for title in grid.columns))
    body = [
        element(
            "tr",
            *(
                element("td", _cell(kind, value, numbers), data_label=title)
                for (title, kind), value in zip(grid.columns.items(), row, strict=True)
            ),
        )
        for row in rows
    ]
    whole = element("table", element("thead", head), element("tbody", *body))
    return joined((element("div", whole, class_=class_), _more(len(grid.rows), most)))


def _cell(kind: str, value: Any, numbers: Mapping[str, int]) -> Html:
    match kind:
        case "look":
            return badge(value)
        case "state":
            return _state(value)
        case "time":
            return when(value)
    return _shown(kind, value, numbers)


def _more(count: int, most: int = _ITEMS) -> Html | None:
    return element("p", f"… and {count - most:,} more", class_="faint") if count > most else None


# The timeline: a lane of bars for each task, all on one axis without the hours in which nothing happened


def _axis_of(account: Account) -> Axis | None:
    """None if the times of a session are not known, or all the same."""
    busy: list[Interval] = []
    for begin, end in sorted(stretch for line in account.tasks for stretch in busy_times(line.task)):
        if busy and begin <= busy[-1][1]:
            busy[-1] = busy[-1][0], max(busy[-1][1], end)
        else:
            busy.append((begin, end))
    if busy and any(one.end is None for line in account.tasks for one in line.spans):
        now = max(account.generated_at, busy[-1][1])
        busy.append((now, now))
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


def _lane(line: TaskLine, axis: Axis) -> Html:
    """The bars of one task, and a mark for each decision. The details say the same in words."""
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
    marks = (
        element("circle", cx=f"{_place(axis, one.at):.2f}%", cy="50%", r="4", class_="decision")
        for one in line.decisions
    )
    return element("svg", *pieces, *marks, class_="lane", aria_hidden="true")


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
