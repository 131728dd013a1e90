"""Plain pydantic models: a refused value breaks a rule and is left out, so that a typed model always results."""

import re
from copy import deepcopy
from functools import cache, reduce
from operator import getitem
from typing import Annotated, Any, TypeVar

from annotated_types import Ge, Le
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic_core import PydanticCustomError, core_schema

from agentwatch.contracts.rules import ERROR, MAX_ENTRIES, Findings, Location, read_rules, shown
from agentwatch.contracts.shapes import Contract, Json
from agentwatch.text import fold_case

_KIND_OF = {
    **dict.fromkeys(("greater_than_equal", "less_than_equal", "finite_number"), "range"),
    "literal_error": "value",
    "missing": "missing",
    "empty": "empty",
}  # kinds of rules by pydantic's error type; any other error is `type`, or `entry` for an entry of an array


class Model(BaseModel):
    """Base of all models: strict, immutable, no NaN; every field may be missing, and unknown keys are ignored."""

    model_config = ConfigDict(strict=True, frozen=True, allow_inf_nan=False, extra="ignore", validate_default=True)


AnyModel = TypeVar("AnyModel", bound=Model)
T = TypeVar("T")


def _require(value: T, info: core_schema.ValidationInfo) -> T:
    """Refuse a missing or blank value, but only while a context is given: the second validation accepts both."""
    if info.context and (value is None or (isinstance(value, str) and not value.strip())):
        raise PydanticCustomError("missing" if value is None else "empty", "it is not there")
    return value


Maybe = Annotated[T | None, Field(default=None)]
Required = Annotated[T | None, Field(default=None), AfterValidator(_require)]
Text = Required[str]
Note = Maybe[str]  # a text that may be missing
Notes = Maybe[list[str]]
Word = Annotated[str, AfterValidator(_require)]
Whole = Annotated[
    int, BeforeValidator(lambda value: int(value) if isinstance(value, float) and value.is_integer() else value)
]  # `1.0` is an integer, too: JSON has one kind of number
Count = Annotated[Whole, Ge(0)]
Million = Annotated[Whole, Ge(0), Le(1_000_000)]
Attempt = Maybe[Annotated[Million, Ge(1)]]
Amount = Maybe[Annotated[float, Ge(0)]]


def read_fields(contract: Contract, model: type[AnyModel], raw: Json, findings: Findings, at: str = "") -> AnyModel:
    """Return the model of `raw` without values that break a rule, and note each rule; `at` is the place of `raw`."""
    raw = _bounded(raw, findings)
    try:
        return model.model_validate(raw, context=True)
    except ValidationError as error:
        edits = _judge_errors(contract, raw, error, findings, at)
    pruned: Any = deepcopy(raw)
    # From the end, so that earlier indices stay valid.
    for place, meant in sorted(edits.items(), reverse=True):
        node = reduce(getitem, place[:-1], pruned)
        node[place[-1]] = meant
        if meant is None:
            del node[place[-1]]
    return model.model_validate(pruned)


@cache
def _rules_of_fields(contract: Contract) -> dict[str, dict[str, str]]:
    """Return rule ids by field path and kind; for entries of an array the kinds are `entry` and `blank` (empty)."""
    known: dict[str, dict[str, str]] = {}
    for rule in read_rules().values():
        for kind, path in rule.fields if rule.contract is contract else ():
            known.setdefault(path, {})[kind] = rule.id
    return known


def _judge_errors(
    contract: Contract, raw: Any, error: ValidationError, findings: Findings, at: str
) -> dict[Location, Any]:
    """Note the rule of each error; return for each refused place the word that was meant, or None to drop the value."""
    edits: dict[Location, Any] = {}
    known = _rules_of_fields(contract)
    for item in error.errors():
        where = place = item["loc"]
        value, kind, meant = item["input"], _KIND_OF.get(item["type"], "type"), None
        path = "".join((at, *("[]" if isinstance(step, int) else f".{step}" for step in place))).removeprefix(".")
        # `*` stands for the other fields of a section.
        rules = known.get(path.removesuffix("[]")) or known.get(f"{at}.*", {})
        if kind == "missing" and place[-1] not in reduce(getitem, place[:-1], raw):
            where = place[:-1]
        elif kind == "missing" and kind in rules and read_rules()[rules[kind]].severity is ERROR:
            # The key is required and its value is null: that is a wrong type.
            kind = "type"
        elif kind not in ("missing", "empty"):
            if kind == "value" and isinstance(value, str):
                words = re.findall(r"'(\w+)'", item["ctx"]["expected"] if "case" in rules else "")
                meant = next((word for word in words if fold_case(word) == fold_case(value)), None)
                kind = "case" if meant else kind
            elif kind == "value":
                kind = "type"
            edits[place] = meant
        if path.endswith("[]"):
            kind = {"type": "entry", "empty": "blank"}.get(kind, kind)
        if kind in rules:
            findings.add(rules[kind], where, key=place[-1], value=value, meant=meant)
    return edits


def _bounded(raw: Json, findings: Findings, at: Location = ()) -> Json:
    """Return `raw` with its lists cut to MAX_ENTRIES, so that a million wrong entries do not take seconds."""
    for key, value in raw.items():
        if isinstance(value, list) and len(value) > MAX_ENTRIES:
            findings.add("DOC009", (*at, key), key=shown(key), limit=MAX_ENTRIES)
            raw = {**raw, key: value[:MAX_ENTRIES]}
        elif not at and isinstance(value, dict):
            raw = {**raw, key: _bounded(value, findings, (key,))}
    return raw
