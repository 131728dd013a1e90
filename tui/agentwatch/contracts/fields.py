"""Fields of contracts, declared in pydantic models: `row` says which rules a field has.

Reading is tolerant and judging strict: what a model refuses breaks a rule and is left out, so that a typed model always
results. The rules' texts, an example of the whole document and its JSON Schema are made of the rows, too.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from copy import copy
from functools import cache, reduce
from operator import getitem
from types import NoneType
from typing import Annotated, Any, Final, Literal, NamedTuple, TypeVar, get_args, get_origin

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, field_validator
from pydantic_core import PydanticCustomError, core_schema

from agentwatch.contracts.rules import ERROR, MAX_ENTRIES, WARNING, Findings, Location, Rule, rule_of, shown
from agentwatch.contracts.shapes import Contract
from agentwatch.text import folded

Info = core_schema.ValidationInfo

_KIND_OF: Final = {
    **dict.fromkeys(("greater_than_equal", "less_than_equal", "finite_number"), "range"),
    "literal_error": "value", "missing": "missing", "empty": "empty", "blank": "blank",
}
"""Kinds of rules by pydantic's type of error; any other is `type`, or `entry` where it is one in an array."""
_FIRST: Final = ("missing", "empty", "blank")
_TEXTS: Final = {
    "missing": ("`{key}` missing", "`{key}` is {missing}; add it as {need}.", "{why}"),
    "empty": ("`{key}` empty", "`{key}` is empty; write {need}.", "{why}"),
    "type": (
        "`{key}` is not {all}",
        "`{key}` is {{value}}; it must be {all}.",
        "Readers rely on `{key}` being {all}; anything else makes them fail or guess.",
    ),
    "entry": (
        "entry of `{key}` is not {one}",
        "An entry of `{key}` is {{value}}; each must be {one}.",
        "Readers go through `{key}` and expect {one} each time.",
    ),
    "value": (
        "`{key}` has a value that is not allowed",
        "`{key}` is {{value}}; it must be {words}.",
        "{why} Another word tells nothing.",
    ),
    "case": (
        "`{key}` in another letter case",
        "`{key}` is {{value}}; write it as `{{meant}}`.",
        "Parsers compare the word exactly; another letter case is understood here and may not be elsewhere.",
    ),
    "range": ("`{key}` out of range", "`{key}` is {{value}}; it must be {bounds}.", "{why}"),
}
"""Title, message and reason of a rule by its kind; the table of `rules` may say more of it."""
_NAMES: Final = {str: "a string", bool: "a boolean", int: "an integer", float: "a number", dict: "an object"}


class Model(BaseModel):
    """Base of all models: strict, immutable, no NaN, every field optional, unknown keys left aside."""

    model_config = ConfigDict(strict=True, frozen=True, allow_inf_nan=False, extra="ignore", validate_default=True)

    @field_validator("*")
    @classmethod
    def judge_presence(cls, value: Any, info: Info) -> Any:
        """Refuse what is not there, or empty where it must not be; only `read` does so."""
        kind = "missing" if value is None else "empty" if isinstance(value, str) and not value.strip() else ""
        if kind and info.context and kind in rows_of(cls)[str(info.field_name)].rules:
            raise PydanticCustomError(kind, "it is not there")
        return value


AnyModel = TypeVar("AnyModel", bound=Model)


def _judge_word(value: str, info: Info) -> str:
    if info.context and not value.strip():
        raise PydanticCustomError("blank", "no word is in it")
    return value


Word = Annotated[str, AfterValidator(_judge_word)]
"""An entry of a list that must have a word in it."""
Whole = Annotated[
    int, BeforeValidator(lambda value: int(value) if isinstance(value, float) and value.is_integer() else value)
]
"""`1.0` is an integer, too: JSON has one kind of number."""


class Row(NamedTuple):
    """A field as `row` says it; `form` is its type, of an `array` that of an entry, and `model` that of an object."""

    right: Any = None
    rules: dict[str, str] = {}
    why: str = ""
    low: float | None = None
    high: float | None = None
    section: str = ""
    needs: str = ""
    other: str = ""
    warns: str = ""
    array: bool = False
    form: Any = None
    words: tuple[str, ...] = ()
    model: type[Model] | None = None

    @property
    def one(self) -> str:
        """The form of the value, or of each entry, in words."""
        name = _NAMES[self.form]
        if self.model:
            asked = [name for name, each in rows_of(self.model).items() if "missing" in each.rules]
            return f"{name} with {_listed(asked, 'and')}" if asked else name
        if "blank" in self.rules:
            return "a non-empty string"
        if self.high is not None and self.low is not None:
            return f"{name} {self.bounds}"
        return f"{name} that is not negative" if self.rules.get("range") == self.rules.get("type", "") else name

    @property
    def all(self) -> str:
        """The form of the field in words."""
        if not self.array:
            return self.one
        return f"an array of objects{self.one.removeprefix('an object')}" if self.model else "an array of strings"

    @property
    def bounds(self) -> str:
        return f"{self.low} or more" if self.high is None else f"from {self.low} to {self.high}"

    def is_error(self, kind: str) -> bool:
        return kind in self.rules and rule_of(self.rules[kind]).severity is ERROR

    def wrong(self, kind: str) -> Any:
        """A value that breaks the rule of a kind."""
        if kind == "type":
            return (self.right or ["none"])[0] if self.array else 17 if self.form is str else "none"
        if kind == "case":
            return self.right.capitalize() if self.right.islower() else self.right.lower()
        if kind in ("entry", "blank"):
            return [*self.right[:-1], "" if kind == "blank" else 17]
        return {"value": self.other, "empty": "", "range": (self.low or 0) - 1}[kind]


def row(
    right: Any,
    rules: str,
    why: str = "",
    *,
    ge: float | None = None,
    le: float | None = None,
    section: str = "",
    needs: str = "",
    other: str = "",
    warns: str = "",
) -> Any:
    """A field of a model: a value that is `right`, its rules ("missing empty HOF013, type HOF014"), and its reason.

    Kinds of rules are missing; type; entry: the type of one in an array; value: not one of the allowed words; case: an
    allowed word in other letters; empty; blank: an empty one in an array; range. None is right where the rows of the
    object in it say what is. `section` is that of the contract's document, where its table does not know it. `needs` is
    what must be there where that is more than a type, `other` a word that is not allowed. The rules of the kinds in
    `warns` are warnings.
    """
    by_kind = {kind: rule for *kinds, rule in map(str.split, filter(None, rules.split(", "))) for kind in kinds}
    extra: Any = {"row": Row(right, by_kind, why, ge, le, section, needs, other, warns)}
    return Field(default=None, ge=ge, le=le, json_schema_extra=extra)


@cache
def rows_of(model: type[Model]) -> dict[str, Row]:
    """The rows of a model by the names of its fields; one without rules is of no account."""
    made = {}
    for name, info in model.model_fields.items():
        extra: Any = info.json_schema_extra or {"row": Row()}
        each, form = extra["row"], _bare(info.annotation)
        if array := get_origin(form) is list:
            form = _bare(get_args(form)[0])
        words = get_args(form) if get_origin(form) is Literal else ()
        inner = form if isinstance(form, type) and issubclass(form, Model) else None
        if inner and each.right is None:
            right = {key: inside.right for key, inside in rows_of(inner).items() if inside.rules}
            each = each._replace(right=[right] if array else right)
        plain = dict if inner else str if words else get_origin(form) or form
        made[name] = each._replace(array=array, form=plain, words=words, model=inner)
    return made


def _bare(annotation: Any) -> Any:
    """A type without None, and without what is said of it beside."""
    if NoneType in get_args(annotation):
        annotation = next(each for each in get_args(annotation) if each is not NoneType)
    return get_args(annotation)[0] if get_origin(annotation) is Annotated else annotation


def read(model: type[AnyModel], raw: dict[str, Any], findings: Findings) -> AnyModel:
    """The model of `raw`, without whatever broke a rule; every rule broken is noted."""
    raw = _bounded(raw, findings)
    try:
        return model.model_validate(raw, context=True)
    except ValidationError as error:
        edits = _judge_errors(model, raw, error, findings)
    copies: dict[Location, Any] = {(): dict(raw)}
    # From the end on, so that indices stay true.
    for *above, step in sorted(edits, reverse=True):
        node = copies[()]
        for depth, key in enumerate(above, 1):
            if (here := tuple(above[:depth])) not in copies:
                copies[here] = node[key] = copy(node[key])
            node = copies[here]
        if (meant := edits[*above, step]) is None:
            del node[step]
        else:
            node[step] = meant
    return model.model_validate(copies[()])


def _judge_errors(
    model: type[Model], raw: dict[str, Any], error: ValidationError, findings: Findings
) -> dict[Location, Any]:
    """Note the rule of each error; by each place that the model refused the word that was meant, None to drop it."""
    found = [(_KIND_OF.get(item["type"], "type"), item["loc"], item["input"]) for item in error.errors()]
    # First what is not there, and of that first what is not there at the top.
    found.sort(
        key=lambda each: (_FIRST.index(each[0]), len(each[1]) > 1) if each[0] in _FIRST else (len(_FIRST), False)
    )
    edits: dict[Location, Any] = {}
    holder: Any = raw
    for kind, location, value in found:
        each, of, meant = Row(), model, None
        for step in location:
            if isinstance(step, str):
                each = rows_of(of)[step]
                of = each.model or of
        place, told = location, shown(value)
        if kind == "missing":
            if location[-1] not in reduce(getitem, location[:-1], holder):
                place = location[:-1]
            elif kind not in each.warns:
                # Somebody requires it, and null is of another type.
                kind = "type"
        elif kind not in _FIRST:
            if kind == "value" and not isinstance(value, str):
                kind = "type"
            elif kind == "value" and "case" in each.rules:
                meant = next((word for word in each.words if folded(word) == folded(value)), None)
                kind = "case" if meant else kind
            elif isinstance(location[-1], int):
                kind = "entry"
            edits[location] = meant
        if kind in each.rules:
            findings.add(each.rules[kind], place, key=location[-1], value=told, meant=meant)
    return edits


def _bounded(raw: dict[str, Any], findings: Findings, at: Location = ()) -> dict[str, Any]:
    """`raw` with its lists cut to MAX_ENTRIES: a million wrong entries are not worth a second of anybody's time."""
    for key, value in raw.items():
        bounded = value
        if isinstance(value, list) and len(value) > MAX_ENTRIES:
            findings.add("DOC009", (*at, key), key=shown(key), limit=MAX_ENTRIES)
            bounded = value[:MAX_ENTRIES]
        elif not at and isinstance(value, dict):
            bounded = _bounded(value, findings, (key,))
        if bounded is not value:
            raw = {**raw, key: bounded}
    return raw


class Table(NamedTuple):
    """The model of a contract, and the headings of its document for top fields that are required, and for others.

    `lines`: its keys stand in lines of Markdown, and have no path.
    """

    contract: Contract
    model: type[Model]
    sections: tuple[str, str] = ("", "")
    lines: bool = False

    def rules(self) -> dict[str, Rule]:
        """The rules of the rows by id."""
        made: dict[str, Rule] = {}
        for key, name, each in self._rows(self.model, "", Row()):
            for kind, rule_id in each.rules.items():
                made.setdefault(rule_id, self._rule(rule_id, key, name, each, kind))
        return made

    def _rows(self, model: type[Model], at: str, top: Row) -> Iterator[tuple[str, str, Row]]:
        """Each row with its path as messages write it, its name, and the section and the reason that its top has."""
        for name, each in rows_of(model).items():
            section = each.section or top.section or self.sections["missing" not in each.rules].format(key=name)
            each = each._replace(section=section, why=each.why or top.why)
            yield name if self.lines else at + name, name, each
            if each.model:
                yield from self._rows(each.model, f"{at}{name}{'[]' if each.array else ''}.", top if at else each)

    def _rule(self, rule_id: str, key: str, name: str, of: Row, kind: str) -> Rule:
        words = _listed(of.words, "or")
        missing = "missing or empty" if of.rules.get("empty") == of.rules.get("missing") else "missing"
        facts = {"key": key, "missing": missing, "need": of.needs or words or of.all, "words": words}
        facts |= {"all": of.all, "one": of.one, "bounds": of.bounds, "why": of.why}
        title, message, why = (text.format(**facts) for text in _TEXTS["entry" if kind == "blank" else kind])
        severity = WARNING if kind == "case" or kind in of.warns.split() else ERROR
        wrong = f"(no `{name}`)" if kind == "missing" else self._shown(name, of.wrong(kind))
        right = self._shown(name, of.right)
        return Rule(rule_id, self.contract, severity, of.section, title, message, why, right, wrong)

    def _shown(self, name: str, value: Any) -> str:
        if self.lines:
            return f"{name}: {value}" if isinstance(value, str) else f"{name}:\n- {value[0]}"
        text = json.dumps(value, ensure_ascii=False)
        if len(text) > 90:
            text = "[{\u2026}]" if text[0] == "[" else "{\u2026}"
        return f'"{name}": {text}'

    def schema(self) -> dict[str, Any]:
        """The JSON Schema, draft 2020-12, of what is an error in a field, and of how its words are spelled."""
        whole = Row(model=self.model, form=dict)
        return {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "title": self.contract.value,
            "description": "What agentwatch check holds an error in one field; it judges more than a schema can say.",
            **_schema(whole, nullable=False),
            "examples": [{name: each.right for name, each in rows_of(self.model).items() if each.rules}],
        }


def _schema(of: Row, *, nullable: bool) -> dict[str, Any]:
    """The schema of a value; None is allowed where it is `nullable`."""
    kind = "array" if of.array else _NAMES[of.form].partition(" ")[2]
    found: dict[str, Any] = {"type": [kind, "null"] if nullable else kind}
    if of.array:
        return found | {"items": _schema(of._replace(array=False), nullable=False) if of.is_error("entry") else {}}
    if of.words:
        return {"enum": [*of.words, None] if nullable else [*of.words]}
    if of.model:
        rows = {name: each for name, each in rows_of(of.model).items() if each.rules}
        required = [name for name, each in rows.items() if each.is_error("missing")]
        properties = {}
        for name, each in rows.items():
            judged = each.is_error("value" if each.words else "type")
            known = _schema(each._replace(why=each.why or of.why), nullable=name not in required) if judged else {}
            properties[name] = known | {"description": each.why or of.why, "examples": [each.right]}
        return found | {"properties": properties, "required": required}
    if of.is_error("empty") or of.is_error("blank"):
        found["pattern"] = r"\S"
    if of.is_error("range"):
        found |= {key: bound for key, bound in (("minimum", of.low), ("maximum", of.high)) if bound is not None}
    return found


def _listed(words: tuple[str, ...] | list[str], last: str) -> str:
    *others, end = [f"`{word}`" for word in words] or [""]
    return f"{', '.join(others)} {last} {end}" if others else end
