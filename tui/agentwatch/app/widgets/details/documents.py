"""A document of any contract as an outline: its values with their labels, then a section for each part."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final

from textual.content import Content

from agentwatch.app.markdown_safe import FAINT, NOTHING, Text, inline, markdown
from agentwatch.app.widgets.details.blocks import (
    ACCENT,
    MAX_ROWS,
    Block,
    Table,
    faint,
    fields,
    heading,
    left_out,
    listed,
    plain,
    section,
)
from agentwatch.text import clean
from agentwatch.view import times

MAX_DEPTH: Final = 8
"""Levels of a JSON value that are written out; deeper ones are left to the Raw tab."""
_RENAMED: Final = (
    "reported_state=state error_code=error error_message=message retry_recommended=retry retry_hint=hint task_id=task "
    "agent_name=agent agent_type=agent session_id=session delegation_path=path delegation_depth=depth "
    "duration_seconds=took execution_time_seconds=took confidence_level=confidence token_usage=tokens "
    "verbosity_level=level parent_task_id=parent decision_id=decision handoff_schema=schema phase_count=phases "
    "estimated_hours=hours findings_count=findings requires_user_review=review review_reason=because "
    "phases_completed=phases phases_total=in_all identified_gaps=gaps attestation=runtime_attestation "
    "runtime_model_reported=model runtime_mode_reported=mode files_created=created files_modified=modified "
    "limitations=limits more=more_that_it_says"
)
_LABELS: Final = dict(pair.split("=") for pair in _RENAMED.split())
"""How keys are called here, where they are not called by their own words."""
_MARKS: Final = {
    "blockers": ("■", "$state-blocked"),
    "recommendations": ("→", FAINT),
    "identified_gaps": ("○", FAINT),
}
_MUST: Final = {"required": "must read", "must_create": "must create"}


def document(values: Mapping[str, Any]) -> Iterator[Block]:
    """The blocks of a document, given as the values that it has; those of its head stand at its beginning."""
    values = {key: value for key, value in values.items() if key != "todos"}
    for name in ("status", "report_metadata"):
        if isinstance(head := values.get(name), dict):
            values = {**head, **{key: value for key, value in values.items() if key != name}}
    yield from markdown(values.pop("objective", None) or "")
    if "context_map" in values:
        # As it stands in the findings, it is a list of pairs.
        values["findings"] = {key: value for key, value in values["findings"].items() if key != "context_map"}
    parts = {key: value for key, value in values.items() if isinstance(value, (dict, list, tuple))}
    yield from _values({key: value for key, value in values.items() if key not in parts})
    for key, value in parts.items():
        yield from part(key, value)


def part(key: str, value: Any) -> Iterator[Block]:
    """A section for a part of a document."""
    title = _label(key)[:1].upper() + _label(key)[1:]
    if isinstance(value, dict) or not value:
        yield from heading(title)
        yield from _values(value) if key in ("metadata", "attestation") else outline(value)
    elif all(isinstance(item, str) for item in value):
        yield from section(title, value, *_MARKS.get(key, ()))
    else:
        yield from heading(title, len(value))
        is_table = all(isinstance(item, dict) and ("path" in item or "location" in item) for item in value)
        yield from [_table(value)] if is_table else outline(value)


def _label(key: str) -> str:
    return clean(_LABELS.get(key, key).replace("_", " "), 60)


def _values(values: Mapping[str, Any]) -> Iterator[Block]:
    return fields(*((_label(key), _value(key, value)) for key, value in values.items()))


def _value(key: str, value: Any) -> Content | Iterator[Block]:
    if key == "delegation_path":
        return faint(" › ").join([plain(str(one), 60) for one in value[:MAX_ROWS]])
    if isinstance(value, (list, tuple)):
        return listed(value, "none")
    if isinstance(value, str):
        return markdown(value)
    if isinstance(value, bool):
        return Content("yes" if value else "no").stylize(ACCENT if value else "")
    if key.endswith("_seconds"):
        return Content(times.duration(value))
    return Content(f"{value:,}") if isinstance(value, (int, float)) else plain(json.dumps(value), 400)


def _table(items: Sequence[Mapping[str, Any]]) -> Table:
    """Files, or places, and what is said of each; whether one is required comes first."""
    keys = sorted(dict.fromkeys(key for item in items[:MAX_ROWS] for key in item), key=lambda key: key not in _MUST)
    rows = [[_cell(key, item.get(key)) for key in keys] for item in items]
    return Table(["" if key in _MUST else key for key in keys], rows)


def _cell(key: str, value: object) -> Content:
    if key in _MUST:
        return Content(f"● {_MUST[key]}") if value else faint("○ optional")
    return faint("-") if value is None else plain(str(value)) if key == "path" else inline(clean(str(value)))


def outline(value: object, first: Content = NOTHING, rest: str = "", depth: int = 0) -> Iterator[Block]:
    """Any JSON value as an indented outline: it has whatever shape its agent chose. Strings in it are Markdown.

    `first` stands before its first line, `rest` before the others.
    """
    if isinstance(value, str):
        yield from markdown(value, first, rest)
    elif not isinstance(value, (dict, list)) or not value or depth >= MAX_DEPTH:
        is_deep = isinstance(value, (dict, list)) and value
        words = "… deeper than is shown: see Raw" if is_deep else "none" if value in ({}, []) else json.dumps(value)
        yield Text(plain(words, 400), first, rest)
    else:
        deeper = rest + "  "
        pairs = value.items() if isinstance(value, dict) else ((None, inner) for inner in value)
        for key, inner in islice(pairs, MAX_ROWS):
            label = faint("• " if key is None else f"{clean(str(key), 60)}  ")
            is_long = inner if isinstance(inner, (dict, list)) else "\n" in str(inner).strip()
            if key is not None and is_long:
                yield Text(label, first, rest)
                yield from outline(inner, Content(deeper), deeper, depth + 1)
            else:
                yield from outline(inner, Content.assemble(first, label), deeper, depth + 1)
            first = Content(rest)
        yield from left_out(len(value), indent=rest)
