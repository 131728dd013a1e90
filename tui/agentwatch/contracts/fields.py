"""Fields of contracts, declared in pydantic models: `row` says which rules a field has.

Reading is tolerant and judging strict: what a model refuses breaks a rule and is left out, so that a typed model always
results. The rules' texts, an example of the whole document and its JSON Schema are made of the rows, too.
"""

from __future__ import annotations

import json
from copy import copy
from functools import cached_property
from types import NoneType
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, NamedTuple, TypeVar, get_args, get_origin

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from agentwatch.contracts.checks import is_blank
from agentwatch.contracts.findings import MAX_ENTRIES, Findings, shown
from agentwatch.contracts.rules import ERROR, RULES, WARNING, Rule
from agentwatch.text import folded

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agentwatch.contracts.json_text import Location
    from agentwatch.contracts.shapes import Contract

Kind = Literal["missing", "type", "entry", "value", "case", "empty", "blank", "range"]
"""missing: a required key is not there. type: another JSON type. entry: one in an array. value: not one of the allowed
words. case: an allowed word in other letters. empty: a blank string where text is required. blank: one in an array.
range: a number outside its range."""
Pattern = tuple[str, ...]
"""A place with list indices written `*`."""

_KIND_OF: Final = {
    "literal_error": "value",
    **dict.fromkeys(("greater_than_equal", "less_than_equal", "finite_number"), "range"),
}
"""By pydantic's type of error; any other is `type`."""
_NAMES: Final = {str: "a string", bool: "a boolean", int: "an integer", float: "a number", dict: "an object"}
_TEXTS: Final[dict[str, tuple[str, str, str]]] = {
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
"""Title, message and reason of a rule by its kind; a row may name a rule that is written out and says more."""
_LONGEST: Final = 90


class Model(BaseModel):
    """Base of all models: strict, immutable, no NaN, every field optional, unknown keys left aside."""

    model_config = ConfigDict(strict=True, frozen=True, allow_inf_nan=False, extra="ignore")


AnyModel = TypeVar("AnyModel", bound=Model)

Whole = Annotated[
    int, BeforeValidator(lambda value: int(value) if isinstance(value, float) and value.is_integer() else value)
]
"""`1.0` is an integer, too: JSON has one kind of number."""


def row(
    right: Any,
    rules: str,
    why: str = "",
    *,
    section: str = "",
    needs: str = "",
    other: str = "",
    warns: str = "",
    ge: float | None = None,
    le: float | None = None,
) -> Any:
    """A field of a model: a value that is `right`, its rules ("missing empty HOF013, type HOF014"), and its reason.

    None is right where the rows of the object in it say what is. `section` is that of the contract's document, where
    the table does not know it. `needs` is what must be there where that is more than a type, `other` a word that is not
    allowed. The rules of the kinds in `warns` are warnings.
    """
    by_kind = {kind: rule for *kinds, rule in map(str.split, filter(None, rules.split(", "))) for kind in kinds}
    extra: Any = {"why": why, "section": section, "needs": needs, "other": other, "warns": warns, "rules": by_kind}
    return Field(default=None, examples=[right], ge=ge, le=le, json_schema_extra=extra)


class Row(NamedTuple):
    """A field as its model has it. `form` is its type, of an `array` that of an entry; `low` and `high` its range."""

    path: Pattern
    form: Any
    array: bool
    right: Any
    low: float | None
    high: float | None
    rules: dict[str, str]
    section: str
    needs: str
    other: str
    warns: str
    why: str

    @property
    def key(self) -> str:
        """Its path as messages write it: `evidence[].path`."""
        return ".".join(self.path).replace(".*", "[]")

    @property
    def words(self) -> tuple[str, ...]:
        """The allowed words, none where any is."""
        return get_args(self.form) if get_origin(self.form) is Literal else ()

    @property
    def model(self) -> type[Model] | None:
        """That of the object, or of each entry."""
        return self.form if isinstance(self.form, type) and issubclass(self.form, Model) else None

    @property
    def plain(self) -> type:
        """The Python type of the value, or of each entry."""
        return dict if self.model else str if self.words else get_origin(self.form) or self.form

    @property
    def bounds(self) -> str:
        return f"{self.low} or more" if self.high is None else f"from {self.low} to {self.high}"

    @property
    def one(self) -> str:
        """The form of the value, or of each entry, in words."""
        name = _NAMES[self.plain]
        if self.model:
            asked = [each.path[0] for each in _rows(self.model) if len(each.path) == 1 and "missing" in each.rules]
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

    def wrong(self, kind: str) -> Any:
        """A value that breaks the rule of a kind; without its key it is missing."""
        if kind == "type" and self.array:
            return (self.right or ["none"])[0]
        if kind == "type":
            return 17 if self.plain is str else "none"
        if kind == "case":
            return self.right.capitalize() if self.right.islower() else self.right.lower()
        if kind in ("entry", "blank"):
            return [*self.right[:-1], "" if kind == "blank" else 17]
        return {"value": self.other, "empty": "", "range": (self.low or 0) - 1}[kind]


def _rows(model: type[Model], at: Pattern = ()) -> Iterator[Row]:
    """The rows of a model, those of the objects in it behind their own."""
    for name, info in model.model_fields.items():
        extra: Any = info.json_schema_extra
        if not isinstance(extra, dict):
            continue
        form = _bare(info.annotation)
        array = get_origin(form) is list
        bounds = {key: getattr(bound, key) for bound in info.metadata for key in ("ge", "le") if hasattr(bound, key)}
        of_entry = _bare(get_args(form)[0]) if array else form
        right = (info.examples or [None])[0]
        made = Row((*at, name), of_entry, array, right, bounds.get("ge"), bounds.get("le"), **extra)
        inside = (*made.path, "*") if array else made.path
        inner = tuple(_rows(made.model, inside)) if made.model else ()
        if inner and right is None:
            value = {each.path[-1]: each.right for each in inner if each.path[:-1] == inside}
            made = made._replace(right=[value] if array else value)
        yield made
        yield from inner


class Table:
    """The fields of a contract and their rules; a row may name a rule that is written out.

    `sections` are the headings of the contract's document for top fields that are required, and for others. `lines`:
    its keys stand in lines of Markdown, and have no path.
    """

    def __init__(
        self, contract: Contract, model: type[Model], sections: tuple[str, str] = ("", ""), *, lines: bool = False
    ) -> None:
        self._contract, self._lines = contract, lines
        tops: dict[str, Row] = {}
        self._rows: list[Row] = []
        for each in _rows(model):
            top = tops.setdefault(each.path[0], each)
            section = each.section or top.section or sections["missing" not in top.rules].format(key=top.path[0])
            self._rows.append(each._replace(section=section, why=each.why or top.why))
        self._words: Final = {each.path: each.words for each in self._rows if each.words}
        found: list[tuple[str, Pattern, str]] = []
        for each in self._rows:
            for kind, rule in each.rules.items():
                of_entry = kind in ("entry", "blank")
                found.append((rule, (*each.path, "*") if of_entry else each.path, "type" if kind == "entry" else kind))
        self._rules: Final[dict[tuple[Pattern, str], str]] = {}
        self._asked: Final[dict[str, dict[Pattern, list[tuple[str, str]]]]] = {"missing": {}, "empty": {}, "blank": {}}
        # In the order of the ids, in which findings of one line are told.
        for rule, place, kind in sorted(found):
            self._rules[place, kind] = rule
            if kind in self._asked:
                *above, key = place[:-1] if kind == "blank" else place
                self._asked[kind].setdefault(tuple(above), []).append((key, rule))
        self._parents: Final = {parent for places in self._asked.values() for parent in places}

    def read(self, model: type[AnyModel], raw: dict[str, Any], findings: Findings) -> AnyModel:
        """The model of `raw`, without whatever broke a rule; every rule broken is noted."""
        raw = _bounded(raw, findings)
        self._judge_presence(raw, findings)
        try:
            return model.model_validate(raw)
        except ValidationError as error:
            edits = self._edits(error, findings)
        copies: dict[Location, Any] = {(): dict(raw)}
        # From the end on, so that indices stay true.
        for location in sorted(edits, reverse=True):
            node = copies[()]
            for depth, step in enumerate(location[:-1], 1):
                if (here := location[:depth]) not in copies:
                    copies[here] = node[step] = copy(node[step])
                node = copies[here]
            if edits[location] is None:
                del node[location[-1]]
            else:
                node[location[-1]] = edits[location]
        return model.model_validate(copies[()])

    def _judge_presence(self, raw: dict[str, Any], findings: Findings) -> None:
        """Note required keys that are missing, null (a wrong type) or, where that counts, empty."""
        found = {parent: _objects(raw, parent) for parent in self._parents}
        for parent, asked in self._asked["missing"].items():
            for where, holder in found[parent]:
                for key, rule in asked:
                    if holder.get(key) is None:
                        self._judge_missing(rule, holder, (*where, key), findings)
        for parent, asked in self._asked["empty"].items():
            for where, holder in found[parent]:
                for key, rule in asked:
                    if isinstance(value := holder.get(key), str) and not value.strip():
                        findings.add(rule, (*where, key))
        for parent, asked in self._asked["blank"].items():
            for where, holder in found[parent]:
                for key, rule in asked:
                    entries = holder.get(key)
                    for number, entry in enumerate(entries if isinstance(entries, list) else ()):
                        if is_blank(entry):
                            findings.add(rule, (*where, key, number), value=shown(entry))

    def _judge_missing(self, rule: str, holder: dict[str, Any], place: Location, findings: Findings) -> None:
        if place[-1] not in holder:
            findings.add(rule, place[:-1])
        elif RULES[rule].severity is WARNING:
            # Nobody requires it: null says as much as nothing.
            findings.add(rule, place)
        elif (wrong := self._rules.get((_pattern(place), "type"))) is not None:
            findings.add(wrong, place, value="null")

    def _edits(self, error: ValidationError, findings: Findings) -> dict[Location, Any]:
        """By each place that the model refused the word that was meant, None where it is dropped."""
        edits: dict[Location, Any] = {}
        for item in error.errors(include_url=False, include_context=False):
            location, value = item["loc"], item["input"]
            pattern = _pattern(location)
            kind = _KIND_OF.get(item["type"], "type")
            meant = None
            if kind == "value" and not isinstance(value, str):
                kind = "type"
            elif kind == "value" and (pattern, "case") in self._rules:
                meant = next((word for word in self._words[pattern] if folded(word) == folded(value)), None)
                kind = "case" if meant else kind
            edits[location] = meant
            if (rule := self._rules.get((pattern, kind))) is not None:
                findings.add(rule, location, key=pattern[-1], value=shown(value), meant=meant)
        return edits

    @cached_property
    def rules(self) -> dict[str, Rule]:
        """The rules of the rows by id, but for those that are written out."""
        return {
            rule_id: self._rule(rule_id, each, kind)
            for each in reversed(self._rows)
            for kind, rule_id in reversed(each.rules.items())
        }

    def _rule(self, rule_id: str, of: Row, kind: str) -> Rule:
        name, words = of.path[-1], _listed(of.words, "or")
        missing = "missing or empty" if of.rules.get("empty") == of.rules.get("missing") else "missing"
        facts = {"key": name if self._lines else of.key, "missing": missing, "need": of.needs or words or of.all}
        facts |= {"words": words, "all": of.all, "one": of.one, "bounds": of.bounds, "why": of.why}
        title, message, why = (text.format(**facts) for text in _TEXTS["entry" if kind == "blank" else kind])
        severity = WARNING if kind == "case" or kind in of.warns.split() else ERROR
        wrong = f"(no `{name}`)" if kind == "missing" else self._shown(name, of.wrong(kind))
        right = self._shown(name, of.right)
        return Rule(rule_id, self._contract, severity, of.section, title, message, why, right, wrong)

    def _shown(self, name: str, value: Any) -> str:
        if self._lines:
            return f"{name}: {value}" if isinstance(value, str) else f"{name}:\n- {value[0]}"
        text = json.dumps(value, ensure_ascii=False)
        if len(text) > _LONGEST:
            text = "[{\u2026}]" if text[0] == "[" else "{\u2026}"
        return f'"{name}": {text}'

    def schema(self) -> dict[str, Any]:
        """The JSON Schema of what is an error in a field, and of how its words are spelled: no warning is in it."""
        return {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "title": self._contract.value,
            "description": "What agentwatch check holds an error in one field; it judges more than a schema can say.",
            **self._object((), nullable=False),
            "examples": [{each.path[0]: each.right for each in self._rows if len(each.path) == 1}],
        }

    def _object(self, at: Pattern, *, nullable: bool) -> dict[str, Any]:
        rows = [each for each in self._rows if each.path[:-1] == at]
        required = [each.path[-1] for each in rows if _is_error(each, "missing")]
        properties = {each.path[-1]: self._field(each, nullable=each.path[-1] not in required) for each in rows}
        return {"type": _or_null("object", nullable), "properties": properties, "required": required}

    def _field(self, of: Row, *, nullable: bool) -> dict[str, Any]:
        told = {"description": of.why, "examples": [of.right]}
        if not _is_error(of, "value" if of.words else "type"):
            return told
        if of.array:
            items = self._value(of, (*of.path, "*"), "blank", nullable=False) if _is_error(of, "entry") else {}
            return {"type": _or_null("array", nullable), "items": items, **told}
        return self._value(of, of.path, "empty", nullable=nullable) | told

    def _value(self, of: Row, at: Pattern, empty: str, *, nullable: bool) -> dict[str, Any]:
        if of.model:
            return self._object(at, nullable=nullable)
        if of.words:
            return {"enum": [*of.words, None] if nullable else [*of.words]}
        found: dict[str, Any] = {"type": _or_null(_NAMES[of.plain].partition(" ")[2], nullable)}
        found |= {"pattern": r"\S"} if _is_error(of, empty) else {}
        if _is_error(of, "range"):
            found |= {key: bound for key, bound in (("minimum", of.low), ("maximum", of.high)) if bound is not None}
        return found


def _is_error(of: Row, kind: str) -> bool:
    return kind in of.rules and RULES[of.rules[kind]].severity is ERROR


def _or_null(name: str, nullable: bool) -> str | list[str]:
    return [name, "null"] if nullable else name


def _bare(annotation: Any) -> Any:
    """A type without None, and without what is said of it beside."""
    if NoneType in get_args(annotation):
        annotation = next(each for each in get_args(annotation) if each is not NoneType)
    return get_args(annotation)[0] if get_origin(annotation) is Annotated else annotation


def _listed(words: tuple[str, ...] | list[str], last: str) -> str:
    *others, end = [f"`{word}`" for word in words] or [""]
    return f"{', '.join(others)} {last} {end}" if others else end


def _pattern(location: Location) -> Pattern:
    return tuple("*" if isinstance(step, int) else step for step in location)


def _objects(raw: dict[str, Any], pattern: Pattern) -> list[tuple[Location, dict[str, Any]]]:
    """The objects at a pattern: the whole, that of a key, or the entries of a key's array."""
    if not pattern:
        return [((), raw)]
    found = raw.get(pattern[0])
    if len(pattern) == 1:
        return [(pattern, found)] if isinstance(found, dict) else []
    entries = enumerate(found if isinstance(found, list) else ())
    return [((pattern[0], index), entry) for index, entry in entries if isinstance(entry, dict)]


def _bounded(raw: dict[str, Any], findings: Findings, at: Pattern = ()) -> dict[str, Any]:
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
