"""The report as one HTML file without network, script or server; its content policy forbids them.

Foreign text cannot become markup: a value put into a template is escaped unless a template made it.
"""

from base64 import b64encode
from collections.abc import Iterable, Mapping
from hashlib import sha256
from html import escape
from importlib.resources import files
from string import Template
from typing import Any

from agentwatch.delegation.task import Shown, State
from agentwatch.report.account import Account, Fact, Grid, TaskLine, facts, grids, lasted, present_of, said, tables
from agentwatch.text import clean, clean_lines
from agentwatch.view.words import LOOKS, Look, iso, look, took, utc

_DEEPEST = 16  # the most levels that are indented: nobody reads deeper

_CHANGES = 2_000
_ITEMS = 60  # the most entries of a list or table; the rest is only counted

_FIRST_ASKED = 12  # the most pressing tasks that are unfolded: more would push the tree out of sight

_COLORS = {"text-error": "failed", "text-warning": "partial", "text-muted": "submitted"}
_SECTION = '<section><h2>$title<span class="count">$count</span></h2>$body</section>'
_DELEGATION = (
    '<div class="row head" aria-hidden="true"><span class="name">task</span><span>state</span>'
    '<span class="number">took</span></div><div class="tree">$rows</div>'
)
_ROW = (
    '<details$open><summary class="row d$depth$done"><span class="name"><b>$title</b>$agent$flag</span>$state'
    '<span class="number">$took</span></summary><div id="task-$number" class="body">$body</div></details>'
)


class Html(str):
    """Our own markup, made only by `fill` or by code without foreign text."""

    __slots__ = ()


def fill(template: str, **values: str | Iterable[Html] | None) -> Html:
    """Fill values into a template of ours. A plain `str` is foreign text: it is sanitised by `clean` and escaped."""
    return Html(Template(template).substitute({name: _source(value) for name, value in values.items()}))


def _source(value: str | Iterable[Html] | None) -> str:
    if isinstance(value, Html) or value is None:
        return value or ""
    return escape(clean(value), quote=True) if isinstance(value, str) else "".join(map(_source, value))


def html(account: Account) -> str:
    """Return the whole page."""
    package = files(__package__)
    style = package.joinpath("report.css").read_text(encoding="utf-8")
    digest = b64encode(sha256(style.encode()).digest()).decode()
    shown = present_of(account.tree.tasks.values()).shown
    return fill(
        package.joinpath("page.html").read_text(encoding="utf-8"),
        policy=Html(f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"),
        style=Html(style),
        name=clean(account.name, 200),
        verdict=account.verdict,
        counts=[
            fill("<li>$look <b>$count</b></li>", look=badge(LOOKS[one]), count=f"{n:,}")
            for one in reversed(Shown)
            if (n := shown[one])
        ],
        sections=_sections(account),
        when=utc(account.generated_at),
    )


# Elements


def text(foreign: str, limit: int = 400) -> Html:
    """Return foreign text on one line of at most `limit` characters, isolated so that it cannot turn text beside it."""
    return fill("<bdi>$text</bdi>", text=clean(foreign, limit))


def prose(foreign: str) -> Html:
    """Return a paragraph of foreign text that keeps its line breaks."""
    lines, note = clean_lines(foreign, max_lines=_ITEMS, max_characters=8_192)
    body = Html("\n".join(text(line, 8_192) for line in lines))
    return fill('<p class="prose" dir="auto">$body$note</p>', body=body, note=_faint(f" ({note})") if note else None)


def _faint(words: str | Iterable[Html]) -> Html:
    return fill('<span class="faint">$words</span>', words=words)


def badge(look: Look) -> Html:
    """Return glyph and word in their colour; screen readers read only the word."""
    template = '<span class="badge c-$color"><span aria-hidden="true">$glyph</span> $word</span>'
    return fill(template, color=_color(look), glyph=look.glyph, word=look.word)


def _color(look: Look) -> str:
    """Return the style sheet's name for the colour of a look."""
    return _COLORS.get(look.color) or look.color.removeprefix("state-")


def _state(line: TaskLine) -> Html:
    return fill('<span class="state">$look</span>', look=badge(look(line.task)))


# The page


def _sections(account: Account) -> list[Html]:
    numbers = {line.task.task_id: f"{number}" for number, line in enumerate(account.rows, 1)}
    unread, asks, changes, notices = tables(account)
    every = "<details><summary>every state change, in order</summary>$table</details>"
    sections = (
        (unread, _grid(unread, numbers)),
        (asks, fill('<div class="attention">$table</div>', table=_grid(asks, numbers))),
        (Grid("Delegation", "task", {}, account.rows), _delegation(account, numbers)),
        (changes, fill(every, table=_grid(changes, numbers, most=_CHANGES))),
        (notices, _grid(notices, numbers)),
    )
    return [
        fill(_SECTION, title=grid.title, count=f"{len(grid.rows):,}", body=body) for grid, body in sections if grid.rows
    ]


def _delegation(account: Account, numbers: Mapping[str, str]) -> Html:
    """Return all tasks, each a row that unfolds to its details."""
    pressing = {task.task_id for task, _ in account.attention[:_FIRST_ASKED]}
    rows = []
    for line in account.rows:
        task = line.task
        row = fill(
            _ROW,
            open=Html(" open" if task.task_id in pressing else ""),
            depth=f"{min(line.depth, _DEEPEST)}",
            done=Html(" done" if task.state is State.COMPLETED and not task.needs_operator else ""),
            title=text(line.title, 120),
            agent=task.agent and fill('<span class="faint agent">$agent</span>', agent=text(task.agent, 40)),
            flag=Html('<span class="flag">needs a human</span>' if task.needs_operator else ""),
            state=_state(line),
            took=lasted(took(task, task.latest, line.now)),
            number=numbers[task.task_id],
            body=_details(line, numbers),
        )
        rows.append(row)
    return fill(_DELEGATION, rows=rows)


def _details(line: TaskLine, numbers: Mapping[str, str]) -> Iterable[Html]:
    """Yield the id and facts of a task, its attempts, the newest first, and its tables."""
    yield _shown("code", line.task.task_id, {})
    yield _list(facts(line), numbers)
    for attempt, shown, ran in reversed(line.attempts):
        began = fill(" began $time", time=_time(attempt.started_at)) if attempt.started_at is not None else Html()
        how_long = _faint([began, fill(", took $took" if ran else "", took=lasted(ran))])
        template = "<h3>Attempt $number $look$how_long</h3>"
        yield fill(template, number=f"{attempt.number}", look=badge(shown), how_long=how_long)
        yield _list(said(attempt), numbers)
    for grid in grids(line):
        yield fill("<h3>$title</h3>$table", title=grid.title, table=_grid(grid, numbers))


def _list(told: Iterable[Fact], numbers: Mapping[str, str]) -> Html:
    pairs = []
    for label, kind, texts, behind in told:
        shown = [_shown(kind, one, numbers) for one in texts]
        items = [fill("<li>$it</li>", it=one) for one in shown[:_ITEMS]]
        listed = shown if len(shown) == 1 else [fill("<ul>$items</ul>", items=items)]
        note = _faint([Html(" "), text(behind, 200)]) if behind else None
        template = "<div><dt>$label</dt><dd>$listed$note$more</dd></div>"
        pairs.append(fill(template, label=label, listed=listed, note=note, more=_more(len(shown), _ITEMS)))
    return fill("<dl>$pairs</dl>", pairs=pairs)


def _grid(grid: Grid, numbers: Mapping[str, str], *, most: int = _ITEMS) -> Html:
    """Return a table of at most `most` rows: the newest state changes, or the first rows of other tables. It scrolls by
    itself if it is too wide; on a narrow page each cell names its column."""
    rows = []
    for row in grid.rows[-most:] if "when (UTC)" in grid.columns else grid.rows[:most]:
        cells = [
            fill('<td data-label="$title">$cell</td>', title=title, cell=_shown(kind, value, numbers))
            for (title, kind), value in zip(grid.columns.items(), row, strict=True)
        ]
        rows.append(fill("<tr>$cells</tr>", cells=cells))
    return fill(
        '<div class="table"><table><thead><tr>$head</tr></thead><tbody>$rows</tbody></table></div>$more',
        head=[fill('<th scope="col">$title</th>', title=title) for title in grid.columns],
        rows=rows,
        more=_more(len(grid.rows), most),
    )


def _shown(kind: str, value: Any, numbers: Mapping[str, str]) -> Html:
    """Return the HTML of one value of a fact or a table cell."""
    match kind:
        case "look":
            return badge(value)
        case "state":
            return _state(value)
        case "time":
            return _time(value)
        case "prose":
            return prose(value)
        case "code" | "task":
            name = fill("<code>$name</code>", name=text(value))
            # The anchor is the task's number, because its id is foreign text.
            is_link = kind == "task" and value in numbers
            return fill('<a href="#task-$number">$name</a>', number=numbers[value], name=name) if is_link else name
    return text(value)


def _time(at: float | None) -> Html:
    """Return a time for readers, with its ISO form for programs."""
    return fill('<time datetime="$iso">$utc</time>', iso=iso(at), utc=utc(at))


def _more(count: int, most: int) -> Html | None:
    return fill('<p class="faint">… and $count more</p>', count=f"{count - most:,}") if count > most else None
