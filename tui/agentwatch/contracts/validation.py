"""Tolerant reading, strict judging: a strict pydantic model always results, and each of its errors is one rule.

A contract declares, beside its model, which rule each fault breaks: a fault is a place with list indices written `*`
and a kind. What the model refuses is pruned, leaf by leaf, until the rest validates.
"""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from agentwatch.contracts.findings import Judgement
    from agentwatch.contracts.json_text import Location

from agentwatch.contracts.findings import MAX_ENTRIES, shown
from agentwatch.contracts.rules import RULES
from agentwatch.contracts.shapes import Severity
from agentwatch.text import folded

Pattern = tuple[str, ...]
Faults = dict[tuple[Pattern, str], str]
"""The rule of each place and kind: missing, type, value, case, range or empty, of an entry behind `*`."""

_Broken = tuple[str, "Location", dict[str, object]]
"""A rule, where it is broken, and the facts of its message."""

_DROP: Final = object()


class Contracted(BaseModel):
    """Base of all models: strict, immutable, no NaN, every field optional, unknown keys left aside."""

    model_config = ConfigDict(strict=True, frozen=True, allow_inf_nan=False, extra="ignore")


def whole(value: Any) -> Any:
    """`1.0` as the integer that it is, anything else as it is: JSON has one kind of number."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


Whole = Annotated[int, BeforeValidator(whole)]

AnyModel = TypeVar("AnyModel", bound=Contracted)


class _Place(NamedTuple):
    """What is demanded of each object at a pattern: keys, each with the rule that is broken without it.

    `entries` are keys of arrays none of whose entries may be empty.
    """

    pattern: Pattern
    required: list[tuple[str, str]]
    not_empty: list[tuple[str, str]]
    entries: list[tuple[str, str]]

    def at(self, *steps: str | int) -> Location:
        """The location behind an index, where the pattern is that of an array's entries, and further steps."""
        return (*(step for step in self.pattern if step != "*"), *steps)


class Schema:
    """A contract's faults, arranged for looking up. `choices` are the allowed words by place."""

    __slots__ = ("choices", "faults", "places")

    def __init__(self, faults: Faults, choices: Mapping[Pattern, tuple[str, ...]] | None = None) -> None:
        self.faults: Final = faults
        self.choices: Final = dict(choices or {})
        places: dict[Pattern, _Place] = {}
        for (pattern, kind), rule in faults.items():
            if kind in ("missing", "empty"):
                *above, key = pattern[:-1] if pattern[-1] == "*" else pattern
                place = places.setdefault(tuple(above), _Place(tuple(above), [], [], []))
                of_kind = place.required if kind == "missing" else place.not_empty
                (place.entries if pattern[-1] == "*" else of_kind).append((key, rule))
        self.places: Final = tuple(places.values())


def validated(model: type[AnyModel], raw: dict[str, Any], schema: Schema, judgement: Judgement) -> AnyModel:
    """The model of `raw`, without whatever broke a rule; every rule broken is noted in `judgement`."""
    raw = _bounded(raw, judgement)
    judge_required(raw, schema, judgement)
    try:
        return model.model_validate(raw)
    except ValidationError as error:
        pruned = _pruned(raw, _edits(error, schema, judgement))
    return model.model_validate(pruned)


def judge_required(raw: dict[str, Any], schema: Schema, judgement: Judgement) -> None:
    """Note required keys that are missing, null (a wrong type) or, where that counts, empty."""
    missing: list[_Broken] = []
    empty: list[_Broken] = []
    blank: list[_Broken] = []
    for place in schema.places:
        for index, container in _matching(raw, place.pattern):
            for key, rule in place.required:
                if container.get(key) is None:
                    missing += _without(key, rule, container, place.at(*index), schema)
            for key, rule in place.not_empty:
                if isinstance(value := container.get(key), str) and not value.strip():
                    empty.append((rule, place.at(*index, key), {}))
            for key, rule in place.entries:
                entries = container.get(key)
                for number, entry in enumerate(entries if isinstance(entries, list) else ()):
                    if is_blank(entry):
                        blank.append((rule, place.at(*index, key, number), {"value": shown(entry)}))
    for rule, location, facts in (*missing, *empty, *blank):
        judgement.add(rule, location, **facts)


def _without(key: str, rule: str, container: dict[str, Any], location: Location, schema: Schema) -> Iterator[_Broken]:
    """What is broken where a required key is missing or null."""
    location_of_key = (*location, key)
    if key not in container:
        yield rule, location, {}
    elif RULES[rule].severity is Severity.WARNING:
        # Nobody requires it: null says as much as nothing.
        yield rule, location_of_key, {}
    elif (wrong := schema.faults.get((_pattern(location_of_key), "type"))) is not None:
        yield wrong, location_of_key, {"value": "null"}


def is_blank(value: object) -> bool:
    """Whether a value is a string without a word in it."""
    return isinstance(value, str) and not value.strip()


def _matching(raw: dict[str, Any], pattern: Pattern) -> Iterable[tuple[tuple[int, ...], dict[str, Any]]]:
    """The objects at a pattern: the whole, that of a key, or with the index of each the entries of a key's array."""
    if not pattern:
        return (((), raw),)
    found = raw.get(pattern[0])
    if len(pattern) == 1:
        return (((), found),) if isinstance(found, dict) else ()
    entries = enumerate(found) if isinstance(found, list) else ()
    return [((index,), entry) for index, entry in entries if isinstance(entry, dict)]


def _pattern(location: Location) -> Pattern:
    return tuple("*" if isinstance(step, int) else step for step in location)


def _bounded(raw: dict[str, Any], judgement: Judgement) -> dict[str, Any]:
    """`raw` with its lists cut to MAX_ENTRIES: a million wrong entries are not worth a second of anybody's time."""
    for key, value in raw.items():
        if isinstance(value, list) and len(value) > MAX_ENTRIES:
            judgement.add("DOC009", (key,), key=shown(key), limit=MAX_ENTRIES)
            raw = {**raw, key: value[:MAX_ENTRIES]}
        elif isinstance(value, dict):
            for inner_key, inner in value.items():
                if isinstance(inner, list) and len(inner) > MAX_ENTRIES:
                    judgement.add("DOC009", (key, inner_key), key=shown(inner_key), limit=MAX_ENTRIES)
                    raw = {**raw, key: {**raw[key], inner_key: inner[:MAX_ENTRIES]}}
    return raw


def _edits(error: ValidationError, schema: Schema, judgement: Judgement) -> dict[Location, Any]:
    """What to do at each place that the model refused: drop it, or put the word that was meant."""
    edits: dict[Location, Any] = {}
    for item in error.errors(include_url=False, include_context=False):
        location: Location = item["loc"]
        value = item["input"]
        pattern = _pattern(location)
        edits[location] = _DROP
        kind = _kind(item["type"], value)
        if kind == "value":
            meant = next((word for word in schema.choices[pattern] if folded(word) == folded(value)), None)
            if meant is not None and (pattern, "case") in schema.faults:
                kind = "case"
                edits[location] = meant
                judgement.add(schema.faults[pattern, kind], location, value=shown(value), meant=meant)
                continue
        if (rule := schema.faults.get((pattern, kind))) is not None:
            judgement.add(rule, location, key=pattern[-1], value=shown(value))
    return edits


def _kind(error: str, value: object) -> str:
    if error == "literal_error":
        return "value" if isinstance(value, str) else "type"
    if error in ("greater_than_equal", "less_than_equal", "finite_number"):
        return "range"
    return "type"


def _pruned(raw: dict[str, Any], edits: Mapping[Location, Any]) -> Any:
    """A copy of `raw` with the edits made; only what is changed is copied."""
    copies: dict[Location, Any] = {(): dict(raw)}
    # From the end on, so that indices stay true.
    for location in sorted(edits, reverse=True):
        *above, last = location
        node = copies[()]
        for depth, step in enumerate(above, 1):
            here = location[:depth]
            if here not in copies:
                copies[here] = node[step] = copy(node[step])
            node = copies[here]
        if edits[location] is _DROP:
            del node[last]
        else:
            node[last] = edits[location]
    return copies[()]
