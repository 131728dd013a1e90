"""JSON schemas made of the models of what is printed, and of the record of a decision."""

from typing import Any

from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema

from agentwatch.cli.check import CheckedDoc
from agentwatch.cli.log import LoggedActivityDoc, LoggedRequestDoc, LoggedStateDoc
from agentwatch.cli.pending import PendingDoc, PendingsDoc
from agentwatch.decisions.record import Record
from agentwatch.view.document import TreeDoc, TreesDoc

SHAPES: dict[str, tuple[str, Any]] = {
    "tree": ("agentwatch tree --json", TreeDoc | TreesDoc),
    "pending": ("agentwatch pending --json", PendingDoc | PendingsDoc),
    "log": ("A line of agentwatch log --json", LoggedStateDoc | LoggedActivityDoc | LoggedRequestDoc),
    "check": ("agentwatch check --format json", CheckedDoc),
    "decision": ("A decision: the payload of its envelope", Record),
}


class Plain(GenerateJsonSchema):
    """Without a title for each field, which only repeats its name, and without our defaults; named tuples are objects,
    as they are in the JSON of a record."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False

    def named_tuple_schema(self, schema: Any) -> Any:
        fields = {one["name"]: one["schema"] for one in schema["fields"]}
        properties = {name: self.generate_inner(inner) for name, inner in fields.items()}
        required = [name for name, inner in fields.items() if inner["type"] != "default"]
        return {"type": "object", "properties": properties, "required": required}

    def default_schema(self, schema: Any) -> Any:
        return self.generate_inner(schema["schema"])


def schema_of(title: str, shape: Any) -> dict[str, Any]:
    """The schema of all values of a type. Keys may be added, so no object is closed."""
    made = TypeAdapter(shape).json_schema(mode="serialization", schema_generator=Plain)
    return {"$schema": Plain.schema_dialect, **made, "title": title}


SCHEMAS = {name: schema_of(*about) for name, about in SHAPES.items()}
"""By the name under which `agentwatch schema` prints them."""
