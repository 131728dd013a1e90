"""JSON schemas made of types: the typed dictionaries in `view/documents`, and the record of a decision."""

from __future__ import annotations

import inspect
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from types import NoneType, UnionType
from typing import Any, Literal, NotRequired, Union, get_args, get_origin, get_type_hints, is_typeddict

from agentwatch.decisions.reader import Place
from agentwatch.decisions.record import Record
from agentwatch.view.documents import lists, records, reports, signed, tasks

Schema = dict[str, Any]

DRAFT = "https://json-schema.org/draft/2020-12/schema"
_PLAIN = {str: "string", int: "integer", float: "number", bool: "boolean", NoneType: "null"}


class Shapes:
    """Makes schemas of types; those with a name are defined once, under it."""

    def __init__(self) -> None:
        self.known: dict[str, Schema] = {}

    def of(self, shape: Any) -> Schema:
        """What a value of a type is."""
        origin, inner = get_origin(shape), get_args(shape)
        if shape is Any:
            return {}
        if shape in _PLAIN:
            return {"type": _PLAIN[shape]}
        if origin is Literal:
            return {"enum": list(inner)}
        if origin in (Union, UnionType):
            return self._one_of([self.of(one) for one in inner])
        if origin in (list, tuple):
            return {"type": "array", "items": self.of(inner[0])}
        if origin is dict:
            return {"type": "object", "additionalProperties": self.of(inner[1])}
        if inspect.isclass(shape) and issubclass(shape, Enum):
            return {"enum": [one.value for one in shape]}
        return self.object(shape)

    def object(self, shape: Any) -> Schema:
        """A typed dictionary, a dataclass or a named tuple, by its name."""
        if shape.__name__ not in self.known:
            self.known[shape.__name__] = {}
            hints = get_type_hints(shape, include_extras=True)
            optional = {name for name, hint in hints.items() if get_origin(hint) is NotRequired} | _defaulted(shape)
            about = inspect.getdoc(shape) if is_typeddict(shape) else None
            self.known[shape.__name__] = {
                **({"description": " ".join(about.split())} if about and not about.startswith("dict(") else {}),
                "type": "object",
                "properties": {
                    name: self.of(get_args(hint)[0] if get_origin(hint) is NotRequired else hint)
                    for name, hint in hints.items()
                },
                "required": [name for name in hints if name not in optional],
            }
        return {"$ref": f"#/$defs/{shape.__name__}"}

    @staticmethod
    def _one_of(options: list[Schema]) -> Schema:
        if all(set(one) == {"type"} for one in options):
            return {"type": [one["type"] for one in options]}
        return {"anyOf": options}


def _defaulted(shape: Any) -> set[str]:
    if is_dataclass(shape):
        return {one.name for one in fields(shape) if one.default is not MISSING}
    return set(getattr(shape, "_field_defaults", ()))


def schema_of(title: str, shape: Any) -> Schema:
    """The schema of all values of a type."""
    shapes = Shapes()
    top = shapes.of(shape)
    return {"$schema": DRAFT, "title": title, **top, "$defs": shapes.known}


def awaited(title: str) -> Schema:
    """What `wait` prints: a decision with what to do, or that there is none."""
    shapes = Shapes()
    undecided, record = shapes.of(signed.Undecided), shapes.of(Record)
    named = shapes.known[record["$ref"].rpartition("/")[2]]
    del named["properties"]["signed_request"]
    decided = {
        "pending": {"enum": [False]},
        "place": shapes.of(Place),
        "handoff_path": shapes.of(str | None),
        "do_now": shapes.of(str),
    }
    named["properties"] |= decided
    named["required"] += decided
    return {"$schema": DRAFT, "title": title, "anyOf": [undecided, record], "$defs": shapes.known}


SCHEMAS = {
    "tree": schema_of("agentwatch tree --json", tasks.Tree | tasks.Trees),
    "pending": schema_of("agentwatch pending --json", lists.Pending | lists.Pendings),
    "log": schema_of("A line of agentwatch log --json", lists.Logged),
    "report": schema_of("agentwatch report --format json", reports.Report | reports.Reports),
    "check": schema_of("agentwatch check --format json", lists.Checked),
    "rules": schema_of("agentwatch rules --format json", lists.Rules),
    "sources": schema_of("agentwatch sources --json", lists.Sources),
    "wait": awaited("agentwatch wait"),
    "claim": schema_of("agentwatch claim", signed.Claimed),
    "statement": schema_of("What agentwatch attest signs: an in-toto Statement", signed.Statement),
    "envelope": schema_of("A signed file of agentwatch: DSSE", signed.Envelope),
    "decision": schema_of("A decision: the payload of its envelope", Record),
    "receipt": schema_of("A receipt of a decision", signed.ReceiptFile),
    "recording": schema_of("A line of agentwatch log --export", records.Recorded),
    "errors": schema_of(".agentwatch/errors.json", records.Errors),
}
"""By the name under which `agentwatch schema` prints them. Keys may be added, so no object is closed."""
