"""The report as one HTML file. It needs no network and no script. Its content policy forbids both.

Untrusted text cannot become markup, because `fill` escapes each value. It leaves only `Html` values unescaped.
"""

from base64 import b64encode
from collections.abc import Iterable, Mapping
from hashlib import sha256
from html import escape
from importlib.resources import files
from string import Template
from typing import Any

from agentwatch.delegation.task import Shown, State
from agentwatch.report.account import (
    Account,
    Fact,
    Table,
    TaskLine,
    attempt_facts,
    duration_words,
    session_tables,
    sum_present,
    task_facts,
    task_tables,
)
from agentwatch.text import clean, clean_lines
from agentwatch.view.words import LOOKS, Look, iso, look_of, span_of, utc

_DEEPEST = 16  # the most levels that are indented: nobody reads deeper

_MOST_CHANGES = 2_000
_MOST_ITEMS = 60  # the most entries of a list or table; the rest is only counted

_MOST_UNFOLDED = 12  # at most so many of the pressing tasks are unfolded, so that the tree stays in sight

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
    """Trusted markup. It is made by `fill`, or by code that uses no untrusted text."""

    __slots__ = ()


def fill(template: str, **values: str | Iterable[Html] | None) -> Html:
    """Fill values into a template. A plain `str` is untrusted, so it is sanitised and escaped."""
    return Html(Template(template).substitute({name: _escape_value(value) for name, value in values.items()}))


def _escape_value(value: str | Iterable[Html] | None) -> str:
    if isinstance(value, Html) or value is None:
        return value or ""
    return escape(clean(value), quote=True) if isinstance(value, str) else "".join(map(_escape_value, value))


def html(account: Account) -> str:
    """Return the report as an HTML page."""
    package = files(__package__)
    style = package.joinpath("report.css").read_text(encoding="utf-8")
    digest = b64encode(sha256(style.encode()).digest()).decode()
    shown = sum_present(account.tree.tasks.values()).shown
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


def text(untrusted: str, limit: int = 400) -> Html:
    """Return untrusted text on one line. `<bdi>` keeps right-to-left text from changing its surroundings."""
    return fill("<bdi>$text</bdi>", text=clean(untrusted, limit))


def prose(untrusted: str) -> Html:
    """Return a paragraph of untrusted text with its line breaks."""
    lines, note = clean_lines(untrusted, max_lines=_MOST_ITEMS, max_characters=8_192)
    body = Html("\n".join(text(line, 8_192) for line in lines))
    template = '<p class="prose" dir="auto">$body$note</p>'
    return fill(template, body=body, note=_faint_text(f" ({note})") if note else None)


def _faint_text(words: str | Iterable[Html]) -> Html:
    return fill('<span class="faint">$words</span>', words=words)


def badge(look: Look) -> Html:
    """Return a glyph and a word in their colour. Screen readers read only the word."""
    template = '<span class="badge c-$color"><span aria-hidden="true">$glyph</span> $word</span>'
    return fill(template, color=_color_name(look), glyph=look.glyph, word=look.word)


def _color_name(look: Look) -> str:
    return _COLORS.get(look.color) or look.color.removeprefix("state-")


def _state_badge(line: TaskLine) -> Html:
    return fill('<span class="state">$look</span>', look=badge(look_of(line.task)))


# The page


def _sections(account: Account) -> list[Html]:
    numbers = {line.task.task_id: f"{number}" for number, line in enumerate(account.rows, 1)}
    unread, asks, changes, notices = session_tables(account)
    every = "<details><summary>every state change, in order</summary>$table</details>"
    sections = (
        (unread, _table_html(unread, numbers)),
        (asks, fill('<div class="attention">$table</div>', table=_table_html(asks, numbers))),
        (Table("Delegation", "task", {}, account.rows), _task_rows(account, numbers)),
        (changes, fill(every, table=_table_html(changes, numbers, most=_MOST_CHANGES))),
        (notices, _table_html(notices, numbers)),
    )
    return [
        fill(_SECTION, title=table.title, count=f"{len(table.rows):,}", body=body)
        for table, body in sections
        if table.rows
    ]


def _task_rows(account: Account, numbers: Mapping[str, str]) -> Html:
    pressing = {task.task_id for task, _ in account.attention[:_MOST_UNFOLDED]}
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
            state=_state_badge(line),
            took=duration_words(span_of(task, task.latest, line.now)),
            number=numbers[task.task_id],
            body=_task_details(line, numbers),
        )
        rows.append(row)
    return fill(_DELEGATION, rows=rows)


def _task_details(line: TaskLine, numbers: Mapping[str, str]) -> Iterable[Html]:
    """Yield the id and the facts of a task, then its attempts (the newest first), then its tables."""
    yield _value_html("code", line.task.task_id, {})
    yield _fact_list(task_facts(line), numbers)
    for attempt, shown, ran in reversed(line.attempts):
        began = fill(" began $time", time=_time_html(attempt.started_at)) if attempt.started_at is not None else Html()
        how_long = _faint_text([began, fill(", took $took" if ran else "", took=duration_words(ran))])
        template = "<h3>Attempt $number $look$how_long</h3>"
        yield fill(template, number=f"{attempt.number}", look=badge(shown), how_long=how_long)
        yield _fact_list(attempt_facts(attempt), numbers)
    for table in task_tables(line):
        yield fill("<h3>$title</h3>$table", title=table.title, table=_table_html(table, numbers))


def _fact_list(facts: Iterable[Fact], numbers: Mapping[str, str]) -> Html:
    pairs = []
    for label, kind, texts, remark in facts:
        shown = [_value_html(kind, one, numbers) for one in texts]
        items = [fill("<li>$it</li>", it=one) for one in shown[:_MOST_ITEMS]]
        listed = shown if len(shown) == 1 else [fill("<ul>$items</ul>", items=items)]
        note = _faint_text([Html(" "), text(remark, 200)]) if remark else None
        template = "<div><dt>$label</dt><dd>$listed$note$more</dd></div>"
        more = _count_omitted(len(shown), _MOST_ITEMS)
        pairs.append(fill(template, label=label, listed=listed, note=note, more=more))
    return fill("<dl>$pairs</dl>", pairs=pairs)


def _table_html(table: Table, numbers: Mapping[str, str], *, most: int = _MOST_ITEMS) -> Html:
    """Return a table with the first `most` rows. If the rows are state changes, show the newest rows."""
    rows = []
    for row in table.rows[-most:] if "when (UTC)" in table.columns else table.rows[:most]:
        cells = [
            fill('<td data-label="$title">$cell</td>', title=title, cell=_value_html(kind, value, numbers))
            for (title, kind), value in zip(table.columns.items(), row, strict=True)
        ]
        rows.append(fill("<tr>$cells</tr>", cells=cells))
    return fill(
        '<div class="table"><table><thead><tr>$head</tr></thead><tbody>$rows</tbody></table></div>$more',
        head=[fill('<th scope="col">$title</th>', title=title) for title in table.columns],
        rows=rows,
        more=_count_omitted(len(table.rows), most),
    )


def _value_html(kind: str, value: Any, numbers: Mapping[str, str]) -> Html:
    match kind:
        case "look":
            return badge(value)
        case "state":
            return _state_badge(value)
        case "time":
            return _time_html(value)
        case "prose":
            return prose(value)
        case "code" | "task":
            name = fill("<code>$name</code>", name=text(value))
            # The anchor is the task's number, because the task's id is untrusted.
            is_link = kind == "task" and value in numbers
            return fill('<a href="#task-$number">$name</a>', number=numbers[value], name=name) if is_link else name
    return text(value)


def _time_html(at: float | None) -> Html:
    return fill('<time datetime="$iso">$utc</time>', iso=iso(at), utc=utc(at))


def _count_omitted(count: int, most: int) -> Html | None:
    return fill('<p class="faint">… and $count more</p>', count=f"{count - most:,}") if count > most else None
