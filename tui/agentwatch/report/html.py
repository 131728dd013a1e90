"""The report as one HTML file: it needs no network, no script and no server, and its policy admits none."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator, Sequence
from hashlib import sha256
from importlib.resources import files
from typing import Final

from agentwatch.delegation.task import State, Task
from agentwatch.report import cards, lanes
from agentwatch.report.account import Account, Attention, DecisionLine, TaskLine
from agentwatch.report.axis import Clock, clock_of
from agentwatch.report.facts import broken, lasted
from agentwatch.report.markup import Child, Html, anchor, badge, code, element, joined, table, text, when
from agentwatch.view.looks import LOOKS
from agentwatch.view.times import span, utc
from agentwatch.view.words import plural

_DEEPEST: Final = 16
"""Levels of nesting; what is deeper stands beside it. Browsers stop at some depth, and nobody reads deeper."""

_MANY: Final = 60
"""From so many tasks on, branches in which all is well begin folded."""

_CHANGES: Final = 2_000
_FIRST_ASKED: Final = 12
"""Asks that are shown at once, and whose tasks are unfolded: more would push the tree out of sight."""

_LEGEND: Final = (
    "A block is an attempt; a dashed line, a time in which nobody works and somebody waits; a ring, a decision; a "
    "shaded band, a pause that is left out. Times are UTC."
)


def html(account: Account) -> str:
    """The whole page."""
    clock = clock_of(account)
    style = files(__package__).joinpath("report.css").read_text(encoding="utf-8") + lanes.cut_style(clock)
    digest = b64encode(sha256(style.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    page = element(
        "html",
        element(
            "head",
            element("meta", charset="utf-8"),
            element("meta", http_equiv="Content-Security-Policy", content=policy),
            element("meta", name="viewport", content="width=device-width, initial-scale=1"),
            element("meta", name="color-scheme", content="light dark"),
            element("meta", name="referrer", content="no-referrer"),
            element("title", f"agentwatch report: {account.name}"),
            element("style", Html(style)),
        ),
        element("body", *_body(account, clock)),
        lang="en",
    )
    return f"<!doctype html>\n{page.source}\n"


def _body(account: Account, clock: Clock | None) -> Iterator[Html]:
    numbers = {line.task.task_id: number for number, line in enumerate(account.rows)}
    yield _header(account)
    yield element(
        "main",
        _problems(account) if account.problems else None,
        _attention(account, numbers) if account.attention else None,
        *((_delegation(account, clock), _cards(account, numbers)) if account.rows else ()),
        _changes(account, numbers) if account.changes else None,
        _section("Files of no task", None, cards.grid_of(broken(account.notices))) if account.notices else None,
    )
    yield element(
        "footer",
        element(
            "p",
            f"agentwatch report of {utc(account.generated_at)} UTC. ",
            "Times are UTC: when a file was last written, or when agentwatch saw it.",
        ),
    )


def _header(account: Account) -> Html:
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
    counts = [
        element("li", badge(LOOKS[state]), " ", element("b", f"{count:,}"))
        for state, count in sorted(summary.by_state.items(), key=lambda item: -item[0].urgency)
    ]
    return element(
        "header",
        element("p", "agentwatch report", class_="product"),
        element("h1", text(account.name, 200), element("p", verdict, class_=f"pill{color}")),
        element("p", account.verdict, class_="verdict"),
        element("ul", *counts, class_="counts"),
        lanes.shares(summary),
    )


def _problems(account: Account) -> Html:
    rows = [
        (text(source, 40), element("span", text(message), class_="prose")) for source, _, message in account.problems
    ]
    return _section("Could not be read", len(rows), table(("source", "what"), rows))


def _section(title: str, count: int | None, *children: Child, class_: str | None = None) -> Html:
    """A section with its heading, and how many things are in it."""
    counted = None if count is None else element("span", f"{count:,}", class_="count")
    return element("section", element("h2", title, counted), *children, class_=class_)


def _attention(account: Account, numbers: dict[str, int]) -> Html:
    rows = [_asks(account, one, numbers[one.task_id]) for one in account.attention]
    head = ("state", "task", "what it asks", "waiting")
    rest = rows[_FIRST_ASKED:]
    more = element("summary", f"{len(rest):,} more")
    return _section(
        "Needs attention",
        len(rows),
        table(head, rows[:_FIRST_ASKED], class_="attention"),
        element("details", more, table(head, rest, class_="attention")) if rest else None,
    )


def _asks(account: Account, one: Attention, number: int) -> tuple[Child, ...]:
    line = account.rows[number]
    task = line.task
    held = element("span", f" holds up {plural(one.holds, 'task')}", class_="faint") if one.holds else None
    waiting = span(account.generated_at - one.since) if one.since is not None else "-"
    ask = element("span", text(one.ask), class_="prose")
    return (cards.state_of(line), joined((_link(task, number), cards.agent_of(task))), joined((ask, held)), waiting)


def _link(task: Task, number: int) -> Html:
    return element("a", code(task.task_id), href=f"#{anchor(number)}")


def _delegation(account: Account, clock: Clock | None) -> Html:
    head = element(
        "div",
        element("span", "task", class_="name"),
        element("span", "state"),
        element("span", "took", class_="number"),
        lanes.clock_face(clock) if clock else element("span", "", class_="lane"),
        class_="row head",
        aria_hidden="true",
    )
    without = element("p", "No timeline: the times of the files are all the same, or not known.", class_="faint")
    return _section(
        "Delegation",
        len(account.rows),
        _filter() if len(account.rows) > _MANY // 3 else None,
        head,
        _branches(account, clock),
        element("p", _LEGEND, class_="faint legend") if clock else without,
        class_="delegation",
    )


def _filter() -> Html:
    """Three choices that the style sheet alone obeys."""
    choices = (("all", "every task"), ("open", "not finished"), ("asks", "needs attention"))
    return element(
        "fieldset",
        element("legend", "Show"),
        *(
            element(
                "label",
                element("input", type="radio", name="show", id=f"show-{name}", checked=name == "all"),
                f" {words}",
            )
            for name, words in choices
        ),
    )


def _branches(account: Account, clock: Clock | None) -> Html:
    """The rows as nested lists, so that a branch folds. No recursion: a chain of delegations may be long."""
    decided = account.decisions_by_task()
    open_ = account.branches_with(lambda task: task.state is not State.COMPLETED)
    asking = account.branches_with(lambda task: task.needs_operator or (task.stale and not task.past))
    above: list[list[Html]] = [[] for _ in range(_DEEPEST + 2)]
    # Backwards, a task comes after all that is below it.
    for number in range(len(account.rows) - 1, -1, -1):
        line = account.rows[number]
        task, depth = line.task, min(line.depth, _DEEPEST)
        below = above[depth + 1][::-1]
        above[depth + 1] = []
        row = _row(line, number, decided.get(task.task_id, ()), clock, account.generated_at)
        kinds = [kind for kind, ids in (("k-open", open_), ("k-asks", asking)) if task.task_id in ids]
        unfolded = bool(kinds) or len(account.rows) < _MANY
        above[depth].append(_branch(line, row, below, " ".join(kinds) or None, unfolded=unfolded))
    return element("ul", *above[0][::-1], class_="tree")


def _branch(line: TaskLine, row: tuple[Child, ...], below: list[Html], kinds: str | None, *, unfolded: bool) -> Html:
    done = line.task.state is State.COMPLETED and not line.task.needs_operator
    classes = f"row d{min(line.depth, _DEEPEST)}{' done' if done else ''}"
    if not below:
        return element("li", element("div", *row, class_=classes), class_=kinds)
    folded = element("details", element("summary", *row, class_=classes), element("ul", *below), open=unfolded)
    return element("li", folded, class_=kinds)


def _row(
    line: TaskLine, number: int, decisions: Sequence[DecisionLine], clock: Clock | None, now: float
) -> tuple[Child, ...]:
    task = line.task
    name = element(
        "span",
        element("a", text(line.title, 120), href=f"#{anchor(number)}"),
        cards.agent_of(task),
        element("span", "needs a human", class_="flag") if task.needs_operator else None,
        class_="name",
    )
    return (
        name,
        cards.state_of(line),
        element("span", lasted(line.took), class_="number"),
        lanes.lane(line, decisions, clock, now) if clock else element("span", "", class_="lane"),
    )


def _cards(account: Account, numbers: dict[str, int]) -> Html:
    pressing = {one.task_id for one in account.attention[:_FIRST_ASKED]}
    decided = account.decisions_by_task()
    shown = (
        cards.card(line, numbers, decided.get(line.task.task_id, ()), opened=line.task.task_id in pressing)
        for line in account.rows
    )
    return _section("Tasks", len(account.rows), *shown, class_="cards")


def _changes(account: Account, numbers: dict[str, int]) -> Html:
    rows: list[tuple[Child, ...]] = []
    for change in account.changes[-_CHANGES:]:
        number = numbers.get(change.task_id)
        name = code(change.task_id) if number is None else _link(account.rows[number].task, number)
        before = badge(LOOKS[change.before]) if change.before else "new"
        after = badge(LOOKS[change.after]) if change.after else "gone"
        attempt = element("span", f" attempt {change.attempt}", class_="faint") if change.attempt > 1 else None
        rows.append((when(change.at), name, joined((before, " → ", after, attempt)), text(change.reason, 300)))
    left_out = len(rows) < len(account.changes)
    return _section(
        "What happened",
        len(account.changes),
        element("p", f"The last {len(rows):,} state changes.", class_="faint") if left_out else None,
        element(
            "details",
            element("summary", "every state change, in order"),
            table(("when (UTC)", "task", "state", "because"), rows),
        ),
    )
