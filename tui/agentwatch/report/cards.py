"""The details of one task in the page: what was asked and came back, attempt by attempt, and what became of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from agentwatch.contracts.shapes import Return
from agentwatch.delegation.task import Attempt, PlacedFinding, State, Task
from agentwatch.report.account import AttemptLine, DecisionLine, TaskLine, lasted, others_say, unclaimed
from agentwatch.report.markup import (
    Child,
    Html,
    anchor,
    badge,
    code,
    color_of,
    element,
    joined,
    prose,
    table,
    text,
    when,
)
from agentwatch.view.looks import LOOKS, SEVERITIES, TODOS, VERDICTS, claims_of
from agentwatch.view.words import ADVICE, BASES, answer, prompt, retries_left

_ITEMS: Final = 60
"""Entries of one list or table; more are counted."""


def card(line: TaskLine, numbers: Mapping[str, int], decisions: Sequence[DecisionLine], *, opened: bool) -> Html:
    """A task, folded to one line unless `opened`. `numbers` tells where each task id stands."""
    task = line.task
    agent = element("span", text(task.agent, 40), class_="faint agent") if task.agent else None
    summary = element(
        "summary",
        state_of(line),
        code(task.task_id),
        agent,
        element("span", lasted(line.took), class_="number faint") if line.took else None,
    )
    body = element(
        "div",
        element("p", text(task.ask), class_="ask") if task.ask else None,
        _facts(_about(line, numbers)),
        *(_attempt(attempt) for attempt in reversed(line.attempts)),
        _decisions(decisions) if decisions else None,
        _claims(task) if task.claims else None,
        joined((element("h3", "Findings"), findings(task.findings))) if task.findings else None,
        # A link leads inside, so that the browser unfolds what is around it.
        id=anchor(numbers[task.task_id]),
        class_="body",
    )
    return element("details", summary, body, class_=f"card e-{color_of(line.look)}", open=opened)


def state_of(line: TaskLine) -> Html:
    """The look of a task, and the state behind it where stale or contradicted stands in front."""
    shown, behind = line.look, LOOKS[line.task.state]
    return element("span", badge(shown), None if shown == behind else joined((" ", badge(behind))), class_="state")


def findings(placed: Sequence[PlacedFinding]) -> Html:
    """Broken rules as a table."""
    rows: list[tuple[Child, ...]] = [
        (
            badge(SEVERITIES[one.severity]),
            code(one.rule),
            code(path + (f":{one.line}" if one.line else "")),
            text(one.message, 600),
        )
        for one, path in placed[:_ITEMS]
    ]
    return joined((table(("severity", "rule", "place", "what to do"), rows), _more(len(placed))))


def _about(line: TaskLine, numbers: Mapping[str, int]) -> Iterator[tuple[str, Child]]:
    task = line.task
    if line.why:
        yield "why", text(line.why)
    if task.title not in task.task_id:
        yield "title", text(task.title, 200)
    if task.parent_id is not None:
        parent = code(task.parent_id)
        number = numbers.get(task.parent_id)
        linked = parent if number is None else element("a", parent, href=f"#{anchor(number)}")
        yield "below", joined((linked, element("span", f" {BASES[task.parent_basis]}", class_="faint")))
    retry = task.retry
    if task.state is not State.COMPLETED:
        yield "retries", ", ".join(filter(None, (retries_left(retry), ADVICE[retry.recommended])))
    if retry.hint:
        yield "hint", prose(retry.hint)
    if task.deleted:
        yield "files", "deleted since; the history remembers them"
    for words, paths in unclaimed(line):
        listed = [element("li", code(path)) for path in paths[:_ITEMS]]
        yield words, joined((element("ul", *listed), _more(len(paths))))
    if task.todos:
        items = [element("li", badge(TODOS[todo.status]), " ", text(todo.text, 300)) for todo in task.todos[:_ITEMS]]
        yield "checklist", joined((element("ul", *items), _more(len(task.todos))))


def _attempt(line: AttemptLine) -> Html:
    attempt, _, shown, took = line
    began = (" began ", when(attempt.started_at)) if attempt.started_at is not None else ()
    head = element(
        "h3",
        f"Attempt {attempt.number} ",
        badge(shown),
        element("span", *began, f", took {lasted(took)}" if took else None, class_="faint"),
    )
    return joined((head, _facts(_said(attempt))))


def _said(attempt: Attempt) -> Iterator[tuple[str, Child]]:
    packet, returned = attempt.packet, attempt.result
    if packet:
        yield "asked", prose(packet.objective) if packet.objective else "the handoff states no objective"
    elif asked := prompt(attempt):
        yield "asked", prose(asked)
    if returned:
        yield from _returned(returned, others_say(attempt))
    elif said := answer(attempt):
        yield "answered", prose(said)
    if attempt.session_id:
        yield "session", code(attempt.session_id)
    if attempt.handoff:
        yield "handoff", code(attempt.handoff.path)
    if attempt.returned:
        digest = element("span", f" sha256 {attempt.returned.digest[:12]}", class_="faint")
        yield "return", joined((code(attempt.returned.path), digest))


def _returned(returned: Return, others: str) -> Iterator[tuple[str, Child]]:
    yield "returned", prose(returned.summary) if returned.summary else "without a summary"
    if returned.reported_state:
        yield "reported", text(returned.reported_state, 80)
    if returned.error_code or returned.error_message:
        error = element("code", returned.error_code) if returned.error_code else None
        yield "error", joined((error, prose(returned.error_message) if returned.error_message else None))
    for label, texts in (("blocked by", returned.blockers), ("limitations", returned.limitations)):
        if texts:
            items = [element("li", prose(one)) for one in texts[:_ITEMS]]
            yield label, joined((element("ul", *items), _more(len(texts))))
    for label, value in (
        ("hint", returned.retry_hint),
        ("next", returned.next_steps),
        ("review", returned.review_reason),
    ):
        if value:
            yield label, prose(value)
    if returned.confidence is not None:
        yield "confidence", f"{returned.confidence:.2f}"
    if returned.model or returned.mode:
        said = " in mode ".join(part for part in (returned.model or "model not reported", returned.mode) if part)
        differs = text(f" differs: {others}", 200) if others else None
        yield "model", joined((text(said, 200), differs or element("span", " attested", class_="faint")))


def _decisions(decisions: Sequence[DecisionLine]) -> Html:
    rows: list[tuple[Child, ...]] = [
        (
            when(one.at),
            str(one.attempt),
            text(one.action, 80),
            prose(one.note),
            text(one.operator, 80),
            text(one.receipt, 200),
        )
        for one in decisions
    ]
    head = ("decided (UTC)", "attempt", "decision", "note", "by", "receipt")
    return joined((element("h3", "Decisions"), table(head, rows)))


def _claims(task: Task) -> Html:
    rows: list[tuple[Child, ...]] = [
        (badge(VERDICTS[one.verdict]), text(one.kind.replace("_", " "), 40), code(one.path), text(one.detail, 400))
        for one in claims_of(task)[:_ITEMS]
    ]
    head = ("verdict", "claim", "of", "because")
    return joined((element("h3", "Claims"), table(head, rows), _more(len(task.claims))))


def _facts(pairs: Iterator[tuple[str, Child]]) -> Html:
    rows = [element("div", element("dt", label), element("dd", value)) for label, value in pairs]
    return element("dl", *rows)


def _more(count: int) -> Html | None:
    return element("p", f"… and {count - _ITEMS:,} more", class_="faint") if count > _ITEMS else None
