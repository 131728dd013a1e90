"""The details of one task in the page: what was asked and came back, attempt by attempt, and what became of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, Final

from agentwatch.delegation.task import Task
from agentwatch.report.account import AttemptLine, DecisionLine, TaskLine
from agentwatch.report.facts import Fact, Grid, facts, grids, lasted, said
from agentwatch.report.markup import Child, Html, anchor, badge, code, color, element, joined, prose, table, text, when
from agentwatch.view.looks import LOOKS, TODOS

_ITEMS: Final = 60
"""Entries of one list or table; more are counted."""


def card(line: TaskLine, numbers: Mapping[str, int], decisions: Sequence[DecisionLine], *, opened: bool) -> Html:
    """A task, folded to one line unless `opened`. `numbers` tells where each task id stands."""
    task = line.task
    summary = element(
        "summary",
        state_of(line),
        code(task.task_id),
        agent_of(task),
        element("span", lasted(line.took), class_="number faint") if line.took else None,
    )
    body = element(
        "div",
        element("p", text(task.ask), class_="ask") if task.ask else None,
        _list(chain(_told(facts(line), numbers), _checklist(task))),
        *(_attempt(attempt, numbers) for attempt in reversed(line.attempts)),
        *(joined((element("h3", grid.title), grid_of(grid))) for grid in grids(task, decisions)),
        # A link leads inside, so that the browser unfolds what is around it.
        id=anchor(numbers[task.task_id]),
        class_="body",
    )
    return element("details", summary, body, class_=f"card e-{color(line.look)}", open=opened)


def agent_of(task: Task) -> Html | None:
    """Who works on a task, where that is known."""
    return element("span", text(task.agent, 40), class_="faint agent") if task.agent else None


def state_of(line: TaskLine) -> Html:
    """The look of a task, and the state behind it where stale or contradicted stands in front."""
    shown, behind = line.look, LOOKS[line.task.state]
    return element("span", badge(shown), None if shown == behind else joined((" ", badge(behind))), class_="state")


def grid_of(grid: Grid) -> Html:
    """A table, cut where it is long."""
    rows = [list(map(_cell, grid.columns.values(), row)) for row in grid.rows[:_ITEMS]]
    return joined((table(list(grid.columns), rows), _more(len(grid.rows))))


def _cell(kind: str, value: Any) -> Html:
    if kind == "look":
        return badge(value)
    return when(value) if kind == "time" else _shown(kind, value, {})


def _attempt(line: AttemptLine, numbers: Mapping[str, int]) -> Html:
    attempt, _, shown, took = line
    began = (" began ", when(attempt.started_at)) if attempt.started_at is not None else ()
    head = element(
        "h3",
        f"Attempt {attempt.number} ",
        badge(shown),
        element("span", *began, f", took {lasted(took)}" if took else None, class_="faint"),
    )
    return joined((head, _list(_told(said(attempt), numbers))))


def _told(told: Iterator[Fact], numbers: Mapping[str, int]) -> Iterator[tuple[str, Child]]:
    for label, kind, texts, behind in told:
        shown = [_shown(kind, one, numbers) for one in texts[:_ITEMS]]
        listed = shown[0] if len(texts) == 1 else element("ul", *(element("li", one) for one in shown))
        note = element("span", " ", text(behind, 200), class_="faint") if behind else None
        yield label, joined((listed, note, _more(len(texts))))


def _shown(kind: str, one: str, numbers: Mapping[str, int]) -> Html:
    if kind == "prose":
        return prose(one)
    if kind == "task" and one in numbers:
        return element("a", code(one), href=f"#{anchor(numbers[one])}")
    return code(one) if kind in ("code", "task") else text(one, 400)


def _checklist(task: Task) -> Iterator[tuple[str, Child]]:
    if task.todos:
        items = [element("li", badge(TODOS[todo.status]), " ", text(todo.text, 300)) for todo in task.todos[:_ITEMS]]
        yield "checklist", joined((element("ul", *items), _more(len(task.todos))))


def _list(pairs: Iterable[tuple[str, Child]]) -> Html:
    rows = [element("div", element("dt", label), element("dd", value)) for label, value in pairs]
    return element("dl", *rows)


def _more(count: int) -> Html | None:
    return element("p", f"… and {count - _ITEMS:,} more", class_="faint") if count > _ITEMS else None
