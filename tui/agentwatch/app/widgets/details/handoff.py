"""The handoff tab: everything the parent gave, and how far its checklist has got."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from textual.content import Content

from agentwatch.app.markdown_safe import FAINT
from agentwatch.app.widgets.details import session, wording
from agentwatch.app.widgets.details.blocks import (
    MAX_ROWS,
    Block,
    Column,
    Gap,
    Heading,
    Rich,
    Table,
    faint,
    field,
    plain,
    rich_line,
    rich_list,
    text,
)
from agentwatch.app.widgets.details.view import READING, View
from agentwatch.contracts.handoff import HandoffPacket
from agentwatch.contracts.shapes import Handoff, Todo
from agentwatch.delegation.task import Version
from agentwatch.view import looks

_GONE: Final = "The text of the handoff is gone; this is what was read of it."
_UNREADABLE: Final = "The handoff cannot be read as a packet; this is what was understood. The Raw tab has its text."


def write(view: View) -> Iterator[Block]:
    """The blocks of the tab."""
    attempt = view.handed
    if (attempt is None or attempt.handoff is None) and view.task.run is not None:
        yield from session.asked(view, view.task.run)
    elif attempt is None or attempt.handoff is None:
        yield text(faint("No handoff was seen: what was asked is not known."))
    else:
        if attempt is not view.task.latest:
            now = view.task.attempt
            yield text(faint(f"Attempt {now} has no handoff of its own; this is that of attempt {attempt.number}."))
            yield Gap()
        yield from _packet(view, attempt.handoff, attempt.packet)
    yield from _todos(view.task.todos)


def _packet(view: View, version: Version, packet: Handoff | None) -> Iterator[Block]:
    opened = view.opened(version)
    if opened is None:
        yield READING
        return
    if isinstance(opened.model, HandoffPacket):
        yield from _whole(opened.model)
        return
    yield text(faint(_UNREADABLE if opened else _GONE))
    yield Gap()
    if packet:
        yield Rich(packet.objective or "")
        for label, value in (("task", packet.task_id), ("parent", packet.parent_task_id), ("mode", packet.mode)):
            if value:
                yield field(label, plain(value))


def _whole(packet: HandoffPacket) -> Iterator[Block]:
    if packet.objective:
        yield Rich(packet.objective)
    else:
        yield text(faint("The packet states no objective."))
    yield Gap()
    for label, value in (
        ("task", packet.task_id),
        ("parent", packet.parent_task_id),
        ("mode", packet.mode),
        ("session", packet.session_id),
        ("restores", packet.restores),
        ("decision", packet.decision_id),
        ("schema", packet.handoff_schema),
    ):
        if value:
            yield field(label, plain(value))
    yield from _section("Success criteria", packet.success_criteria, "none given")
    if packet.evidence is not None:
        yield Heading("Evidence", len(packet.evidence))
        yield _files("purpose", "must read", [(one.required, one.path, one.purpose) for one in packet.evidence])
    if packet.deliverables:
        yield Heading("Deliverables", len(packet.deliverables))
        wanted = [(one.must_create, one.path, one.description) for one in packet.deliverables]
        yield _files("description", "must create", wanted)
    if packet.risks:
        yield Heading("Risks", len(packet.risks))
        for risk in packet.risks[:MAX_ROWS]:
            yield Rich(risk.risk or "-", Content.styled("! ", "$text-warning"), "  ")
            yield Rich(risk.mitigation or "no mitigation given", Content.styled("  → ", FAINT), "    ")
    for title, items in (
        ("Constraints", packet.constraints),
        ("Dependencies", packet.dependencies),
        ("Notes", packet.notes),
    ):
        if items:
            yield from _section(title, items, "none")


def _files(about: str, must: str, files: Sequence[tuple[bool | None, str | None, str | None]]) -> Table:
    """Files with whether they are wanted, and what about them."""
    rows = [
        (Content(f"● {must}") if wanted else faint("○ optional"), plain(path or "-"), rich_line(said or "-"))
        for wanted, path, said in files
    ]
    return Table((Column(""), Column("path", flexible=True), Column(about, flexible=True)), rows)


def _section(title: str, items: Sequence[str] | None, none: str) -> Iterator[Block]:
    """A section of foreign Markdown strings, each an item."""
    yield Heading(title, len(items or ()))
    if items:
        yield from rich_list(items)
    else:
        yield text(faint(none))


def _todos(todos: tuple[Todo, ...] | None) -> Iterator[Block]:
    if todos is None:
        return
    yield Heading("Todos", len(todos))
    if not todos:
        yield text(faint("the checklist is empty"))
        return
    rows = []
    for todo in todos:
        look = looks.TODOS[todo.status]
        said = plain(todo.text)
        phase = Content.styled(f"{plain(todo.phase, 30).plain}: ", FAINT) if todo.phase else Content("")
        rows.append((wording.shown(look), Content.assemble(phase, said)))
    yield Table((Column(""), Column("", flexible=True)), rows)
