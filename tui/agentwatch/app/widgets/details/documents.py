"""A document of any contract as an outline: its values with their labels, then a section for each part."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from textual.content import Content

from agentwatch.app.markdown_safe import FAINT, Text, markdown
from agentwatch.app.widgets.details.blocks import (
    ACCENT,
    MAX_ROWS,
    Block,
    Column,
    Field,
    Table,
    faint,
    field,
    heading,
    left_out,
    listed,
    plain,
    rich_line,
    rich_list,
    section,
    text,
)
from agentwatch.text import clean
from agentwatch.view import times

if TYPE_CHECKING:
    from agentwatch.contracts.fields import Model

MAX_DEPTH: Final = 8
"""Levels of a JSON value that are written out; deeper ones are left to the Raw tab."""
_DEEPER: Final = faint("… deeper than is shown: see Raw")
_RENAMED: Final = (
    "error_code=error error_message=message retry_recommended=retry retry_hint=hint task_id=task agent_name=agent "
    "agent_type=agent session_id=session delegation_path=path delegation_depth=depth duration_seconds=took "
    "execution_time_seconds=took confidence_level=confidence token_usage=tokens verbosity_level=level "
    "parent_task_id=parent decision_id=decision handoff_schema=schema phase_count=phases estimated_hours=hours "
    "findings_count=findings requires_user_review=review review_reason=because phases_completed=phases "
    "identified_gaps=gaps attestation=runtime_attestation more=more_that_it_says"
)
_LABELS: Final = dict(pair.split("=") for pair in _RENAMED.split())
"""How keys are called here, where they are not called by their own words."""
_MARKS: Final = {
    "blockers": ("■", "$state-blocked"),
    "recommendations": ("→", FAINT),
    "identified_gaps": ("○", FAINT),
    "errors": ("✗", "$text-error"),
    "risks": ("!", "$text-warning"),
}
_ATTESTED: Final = {
    "runtime_model_reported": "model",
    "runtime_mode_reported": "mode",
    "files_created": "created",
    "files_modified": "modified",
    "limitations": "limits",
}
_FIRST: Final = ("status", "report_metadata")
"""Parts of a document whose values stand at its beginning."""
_BAR: Final = 6
"""Cells of the bar of done phases."""


def document(model: Model, reported: str | None = None) -> Iterator[Block]:
    """The blocks of a document; `reported` is its state, should its contract not have that word."""
    values = model.model_dump(exclude_none=True)
    values.pop("todos", None)
    for name in _FIRST:
        if isinstance(inner := values.get(name), dict):
            values = {**inner, **{key: value for key, value in values.items() if key != name}}
    if reported and not values.get("state") and not values.get("status"):
        yield field("status", Content.assemble(plain(reported, 60), ("   the contract does not have this word", FAINT)))
    if objective := values.pop("objective", None):
        yield from markdown(objective)
    if mapped := values.pop("context_map", None):
        values["findings"] = {key: value for key, value in values["findings"].items() if key != "context_map"}
        values = {"context_map": mapped, **values}
    if (total := values.pop("phases_total", None)) and (done := values.get("phases_completed")) is not None:
        filled = round(_BAR * min(done, total) / total)
        values["phases_completed"] = f"{done} of {total}  {'█' * filled}{'░' * (_BAR - filled)}"
    parts = {key: value for key, value in values.items() if isinstance(value, (dict, list)) or key == "next_steps"}
    yield from _values({key: value for key, value in values.items() if key not in parts})
    for key, value in parts.items():
        yield from part(key, value)


def _label(key: str) -> str:
    return clean(_LABELS.get(key, key).replace("_", " "), 60)


def _words(value: object) -> Content:
    """A value in one line; a string with blanks in it is Markdown."""
    if isinstance(value, str):
        return rich_line(value) if any(map(str.isspace, value)) else plain(value)
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return Content(f"{value:,}")
    return plain(json.dumps(value), 400)


def _values(values: Mapping[str, Any]) -> Iterator[Block]:
    for key, value in values.items():
        label = _label(key)
        if key.endswith("_seconds"):
            yield field(label, Content(times.duration(value)))
        elif isinstance(value, bool):
            yield field(label, Content("yes" if value else "no").stylize(ACCENT if value else ""))
        elif isinstance(value, list):
            yield field(label, faint(" › ").join([plain(str(part), 60) for part in value[:MAX_ROWS]]))
        elif isinstance(value, str) and any(map(str.isspace, value)):
            yield Field(label, tuple(markdown(value)))
        else:
            yield field(label, _words(value))


def part(key: str, value: Any) -> Iterator[Block]:
    """A section for a part of a document."""
    title = _label(key)[:1].upper() + _label(key)[1:]
    mark, style = _MARKS.get(key, ("•", FAINT))
    if isinstance(value, str):
        yield from heading(title)
        yield from markdown(value)
    elif key == "attestation":
        yield from heading(title)
        yield from attestation(value)
    elif not value or isinstance(value, dict):
        yield from heading(title, len(value) if key == "more" or isinstance(value, list) else None)
        yield from _values(value) if key == "metadata" else outline(value) if value else [text(faint("none"))]
    elif all(isinstance(item, str) for item in value):
        yield from section(title, value, mark, style)
    elif any("path" in item or "location" in item for item in value):
        yield from heading(title, len(value))
        yield _table(value)
    else:
        yield from heading(title, len(value))
        for item in value[:MAX_ROWS]:
            first, *others = [other for other in item.values() if isinstance(other, str)] or [""]
            yield from markdown(first, Content.styled(f"{mark} ", style), "  ")
            if (recoverable := item.get("recoverable")) is not None:
                yield text(faint("recoverable" if recoverable else "not recoverable"), 2)
            for other in others:
                yield from markdown(other, faint("  → "), "    ")
        yield from left_out(len(value))


def _table(items: Sequence[Mapping[str, Any]]) -> Table:
    """Files, or places, and what is said of each."""
    keys = list(dict.fromkeys(key for item in items[:MAX_ROWS] for key in item))
    # Whether one is required comes first.
    keys.sort(key=lambda key: key not in ("required", "must_create", "type"))
    rows = []
    for item in items:
        cells = []
        for key in keys:
            value = item.get(key)
            if key in ("required", "must_create"):
                must = "must read" if key == "required" else "must create"
                cells.append(Content(f"● {must}") if value else faint("○ optional"))
            else:
                cells.append(faint("-") if value is None else plain(value) if key == "path" else _words(value))
        rows.append(cells)
    fixed = ("required", "must_create", "type")
    return Table([Column("" if key in fixed[:2] else key, key not in fixed) for key in keys], rows)


def attestation(values: Mapping[str, Any]) -> Iterator[Block]:
    """The runtime attestation that a return gives of itself: what is none, and what is not reported."""
    for key, label in _ATTESTED.items():
        value = values.get(key)
        if isinstance(value, str):
            yield field(label, plain(value))
        elif key != "limitations":
            yield Field(label, tuple(listed(value or (), "none" if value is not None else "not reported")))
        elif value:
            yield Field(label, tuple(rich_list(value)))


def outline(value: object, indent: str = "", depth: int = 0, lead: Content | None = None) -> Iterator[Block]:
    """Any JSON value as an indented outline: it has whatever shape its agent chose. Strings in it are Markdown.

    `lead`, as long as `indent`, stands in its place before the first line.
    """
    before, deeper = Content(indent) if lead is None else lead, indent + "  "
    if isinstance(value, (dict, list)) and not (value and depth < MAX_DEPTH):
        yield Text(_DEEPER if value else faint("none"), before, indent)
    elif isinstance(value, dict):
        for key, inner in islice(value.items(), MAX_ROWS):
            label = faint(clean(str(key), 60))
            is_long = (isinstance(inner, (dict, list)) and inner) or (isinstance(inner, str) and "\n" in inner.strip())
            if is_long and depth + 1 < MAX_DEPTH:
                yield Text(label, before, indent)
                yield from outline(inner, deeper, depth + 1)
            else:
                yield from islice(outline(inner, deeper, depth + 1, Content.assemble(before, label, "  ")), MAX_ROWS)
            before = Content(indent)
        yield from left_out(len(value), indent=indent)
    elif isinstance(value, list):
        for inner in value[:MAX_ROWS]:
            yield from outline(inner, deeper, depth + 1, Content.assemble(before, ("• ", FAINT)))
            before = Content(indent)
        yield from left_out(len(value), indent=indent)
    elif isinstance(value, str):
        yield from markdown(value, before, indent)
    else:
        yield Text(plain(json.dumps(value), 400), before, indent)
