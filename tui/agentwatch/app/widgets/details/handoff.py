"""The handoff tab: everything the parent gave, and how far its checklist has got."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from textual.content import Content

from agentwatch.app.markdown_safe import FAINT
from agentwatch.app.widgets.details.blocks import (
    MAX_ROWS,
    Block,
    Column,
    Gap,
    Heading,
    Rich,
    Table,
    faint,
    fields,
    in_color,
    plain,
    rich_line,
    section,
    text,
)
from agentwatch.app.widgets.details.view import READING, View
from agentwatch.contracts.handoff import HandoffPacket
from agentwatch.contracts.shapes import Handoff, Todo
from agentwatch.delegation.run import Run
from agentwatch.delegation.task import Version
from agentwatch.view import looks

_GONE: Final = "The text of the handoff is gone; this is what was read of it."
_UNREADABLE: Final = "The handoff cannot be read as a packet; this is what was understood. The Raw tab has its text."


def write(view: View) -> Iterator[Block]:
    """The blocks of the tab."""
    attempt = view.handed
    if attempt is not None and attempt.handoff is not None:
        yield from view.older(attempt, "has no handoff of its own; this is that of")
        yield from _packet(view, attempt.handoff, attempt.packet)
    elif view.task.run is not None:
        yield from _asked(view, view.task.run)
    else:
        yield text(faint("No handoff was seen: what was asked is not known."))
    if view.task.todos is not None:
        yield from _todos(view.task.todos)


def _asked(view: View, run: Run) -> Iterator[Block]:
    """What a run was asked for, if it was no packet."""
    if run.prompt is None:
        missing = run.prompt_missing or "the session store does not have it"
        yield text(Content.assemble(("What was asked is not known: ", FAINT), plain(missing)))
        return
    by = "a human" if run.parent_session is None else "its parent"
    yield text(faint(f"Asked by {by} in words, without a handoff packet:"))
    yield Gap()
    yield view.words(run.prompt)


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
        yield from fields(("task", packet.task_id), ("parent", packet.parent_task_id), ("mode", packet.mode))


def _whole(packet: HandoffPacket) -> Iterator[Block]:
    yield Rich(packet.objective) if packet.objective else text(faint("The packet states no objective."))
    yield Gap()
    yield from fields(
        ("task", packet.task_id),
        ("parent", packet.parent_task_id),
        ("mode", packet.mode),
        ("session", packet.session_id),
        ("restores", packet.restores),
        ("decision", packet.decision_id),
        ("schema", packet.handoff_schema),
    )
    yield from section("Success criteria", packet.success_criteria, none="none given")
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
            yield Rich(risk.mitigation or "no mitigation given", faint("  → "), "    ")
    yield from section("Constraints", packet.constraints)
    yield from section("Dependencies", packet.dependencies)
    yield from section("Notes", packet.notes)


def _files(about: str, must: str, files: Sequence[tuple[bool | None, str | None, str | None]]) -> Table:
    """Files with whether they are wanted, and what about them."""
    rows = [
        (Content(f"● {must}") if wanted else faint("○ optional"), plain(path or "-"), rich_line(said or "-"))
        for wanted, path, said in files
    ]
    return Table((Column(""), Column("path", flexible=True), Column(about, flexible=True)), rows)


def _todos(todos: Sequence[Todo]) -> Iterator[Block]:
    yield Heading("Todos", len(todos))
    if not todos:
        yield text(faint("the checklist is empty"))
        return
    rows = []
    for todo in todos:
        phase = faint(f"{plain(todo.phase, 30).plain}: ") if todo.phase else Content("")
        rows.append((in_color(looks.TODOS[todo.status]), phase + plain(todo.text)))
    yield Table((Column(""), Column("", flexible=True)), rows)
