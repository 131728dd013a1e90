"""The base of the contracts' pydantic models. Values that break a rule are reported and left out of the model."""

import re
from copy import deepcopy
from functools import cache, reduce
from operator import getitem
from typing import Annotated, Any, TypeVar

from annotated_types import Ge, Le
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic_core import PydanticCustomError, core_schema

from agentwatch.contracts.rules import ERROR, MAX_ENTRIES, Findings, Location, quote_value, read_rules
from agentwatch.contracts.shapes import Contract, Json
from agentwatch.text import fold_case

_KIND_OF = {
    **dict.fromkeys(("greater_than_equal", "less_than_equal", "finite_number"), "range"),
    "literal_error": "value",
    "missing": "missing",
    "empty": "empty",
}  # by pydantic's type of error: our kind of error. All other types have the kind `type`, or `entry` in an array.


class Model(BaseModel):
    """Base of all models: strict, immutable, without NaN. Each field may be missing. Unknown keys are ignored."""

    model_config = ConfigDict(strict=True, frozen=True, allow_inf_nan=False, extra="ignore", validate_default=True)


AnyModel = TypeVar("AnyModel", bound=Model)
T = TypeVar("T")


def _refuse_missing(value: T, info: core_schema.ValidationInfo) -> T:
    """Refuse a missing or blank value. A second validation, without a context, refuses nothing."""
    if info.context and (value is None or (isinstance(value, str) and not value.strip())):
        raise PydanticCustomError("missing" if value is None else "empty", "it is not there")
    return value


Maybe = Annotated[T | None, Field(default=None)]
Required = Annotated[T | None, Field(default=None), AfterValidator(_refuse_missing)]
Text = Required[str]
Note = Maybe[str]  # a text that may be missing
Notes = Maybe[list[str]]
Word = Annotated[str, AfterValidator(_refuse_missing)]
Whole = Annotated[
    int, BeforeValidator(lambda value: int(value) if isinstance(value, float) and value.is_integer() else value)
]  # `1.0` is an integer, too, because JSON has only one kind of number
Count = Annotated[Whole, Ge(0)]
Million = Annotated[Whole, Ge(0), Le(1_000_000)]
Attempt = Maybe[Annotated[Million, Ge(1)]]
Amount = Maybe[Annotated[float, Ge(0)]]


def read_fields(contract: Contract, model: type[AnyModel], raw: Json, findings: Findings, at: str = "") -> AnyModel:
    """Report each rule that `raw` breaks. Return a model without the wrong values. `at` is the path of `raw`."""
    raw = _cut_lists(raw, findings)
    try:
        return model.model_validate(raw, context=True)
    except ValidationError as error:
        edits = _note_errors(contract, raw, error, findings, at)
    pruned: Any = deepcopy(raw)
    # Begin at the end, so that the indices of earlier entries stay valid.
    for place, intended in sorted(edits.items(), reverse=True):
        node = reduce(getitem, place[:-1], pruned)
        node[place[-1]] = intended
        if intended is None:
            del node[place[-1]]
    return model.model_validate(pruned)


@cache
def _rules_by_field(contract: Contract) -> dict[str, dict[str, str]]:
    """Return rule ids by field path and kind of error. Errors in array entries have the kind `entry` or `blank`."""
    known: dict[str, dict[str, str]] = {}
    for rule in read_rules().values():
        for kind, path in rule.fields if rule.contract is contract else ():
            known.setdefault(path, {})[kind] = rule.id
    return known


def _note_errors(
    contract: Contract, raw: Any, error: ValidationError, findings: Findings, at: str
) -> dict[Location, Any]:
    """Report the broken rule of each error. Return the wrong places, each with the intended word or None."""
    edits: dict[Location, Any] = {}
    known = _rules_by_field(contract)
    for item in error.errors():
        where = place = item["loc"]
        value, kind, meant = item["input"], _KIND_OF.get(item["type"], "type"), None
        path = "".join((at, *("[]" if isinstance(step, int) else f".{step}" for step in place))).removeprefix(".")
        # A rule for `*` covers the fields of a section that have no rule of their own.
        rules = known.get(path.removesuffix("[]")) or known.get(f"{at}.*", {})
        if kind == "missing" and place[-1] not in reduce(getitem, place[:-1], raw):
            where = place[:-1]
        elif kind == "missing" and kind in rules and read_rules()[rules[kind]].severity is ERROR:
            # The key exists, but its value is null, which is a wrong type.
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


def _cut_lists(raw: Json, findings: Findings, at: Location = ()) -> Json:
    """Return `raw` with each list cut to MAX_ENTRIES. A million wrong entries would take seconds to judge."""
    for key, value in raw.items():
        if isinstance(value, list) and len(value) > MAX_ENTRIES:
            findings.add("DOC009", (*at, key), key=quote_value(key), limit=MAX_ENTRIES)
            raw = {**raw, key: value[:MAX_ENTRIES]}
        elif not at and isinstance(value, dict):
            raw = {**raw, key: _cut_lists(value, findings, (key,))}
    return raw
