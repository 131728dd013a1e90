"""A field of a contract is one row, and stands in the model: `row` says which rules it has.

What judges it, the rules' texts, an example of the whole document and its JSON Schema are made of the rows.
"""

from __future__ import annotations

import json
from functools import cached_property
from types import NoneType
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, NamedTuple, get_args, get_origin

from pydantic import Field

from agentwatch.contracts.rules import ERROR, WARNING, Rule
from agentwatch.contracts.validation import Contracted, Faults, Pattern, Schema

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agentwatch.contracts.shapes import Contract

Kind = Literal["missing", "type", "entry", "value", "case", "empty", "blank", "range"]
"""missing: a required key is not there. type: another JSON type. entry: one in an array. value: not one of the allowed
words. case: an allowed word in other letters. empty: a blank string where text is required. blank: one in an array.
range: a number outside its range."""

_NAMES: Final = {str: "a string", bool: "a boolean", int: "an integer", float: "a number", dict: "an object"}
_TYPES: Final = {str: "string", bool: "boolean", int: "integer", float: "number", dict: "object"}
_TEXTS: Final[dict[Kind, tuple[str, str]]] = {
    "missing": ("`{key}` missing", "`{key}` is {missing}; add it as {need}."),
    "empty": ("`{key}` empty", "`{key}` is empty; write {need}."),
    "type": ("`{key}` is not {all}", "`{key}` is {{value}}; it must be {all}."),
    "entry": ("entry of `{key}` is not {one}", "An entry of `{key}` is {{value}}; each must be {one}."),
    "value": ("`{key}` has a value that is not allowed", "`{key}` is {{value}}; it must be {words}."),
    "case": ("`{key}` in another letter case", "`{key}` is {{value}}; write it as `{{meant}}`."),
    "range": ("`{key}` out of range", "`{key}` is {{value}}; it must be {bounds}."),
}
"""Title and message of a rule by its kind; a row may name a rule that is written out and says more."""
_REASONS: Final[dict[Kind, str]] = {
    "type": "Readers rely on `{key}` being {all}; anything else makes them fail or guess.",
    "entry": "Readers go through `{key}` and expect {one} each time.",
    "value": "{why} Another word tells nothing.",
    "case": "Parsers compare the word exactly; another letter case is understood here and may not be elsewhere.",
}
"""Why, where that is more than why the field is there."""
_LONGEST: Final = 90
_DRAFT: Final = "https://json-schema.org/draft/2020-12/schema"


def row(
    right: Any = None,
    *,
    section: str = "",
    needs: str = "",
    other: str = "",
    warns: str = "",
    ge: float | None = None,
    le: float | None = None,
    absent: str = "",
    **rules: str,
) -> Any:
    """A field of a model: a value that is `right`, and the id of its rule for each `Kind`.

    `absent` is the rule of both `missing` and `empty`. `section` is that of the contract's document, where the table
    does not know it. `needs` is what must be there where that is more than a type, `other` a word that is
    not allowed. The rules of the kinds in `warns` are warnings.
    """
    if absent:
        rules |= {"missing": absent, "empty": absent}
    extra: Any = {"section": section, "needs": needs, "other": other, "warns": warns, "rules": rules}
    return Field(default=None, examples=[right], ge=ge, le=le, json_schema_extra=extra)


class FieldRow(NamedTuple):
    """A field as its model has it. `form` is its type, of an `array` that of an entry; `low` and `high` its range."""

    path: Pattern
    form: Any
    array: bool
    right: Any
    low: float | None
    high: float | None
    rules: dict[Kind, str]
    section: str
    needs: str
    other: str
    warns: str
    why: str = ""

    @property
    def name(self) -> str:
        return self.path[-1]

    @property
    def key(self) -> str:
        """Its path as messages write it: `evidence[].path`."""
        return ".".join(self.path).replace(".*", "[]")

    @property
    def words(self) -> tuple[str, ...]:
        """The allowed words, none where any is."""
        return get_args(self.form) if get_origin(self.form) is Literal else ()

    @property
    def model(self) -> type[Contracted] | None:
        """That of the object, or of each entry."""
        return self.form if isinstance(self.form, type) and issubclass(self.form, Contracted) else None

    @property
    def plain(self) -> type:
        """The Python type of the value, or of each entry."""
        return dict if self.model else str if self.words else get_origin(self.form) or self.form

    @property
    def one(self) -> str:
        """What the value, or each entry, must be."""
        name = _NAMES[self.plain]
        if self.model:
            asked = [each.name for each in rows_of(self.model) if len(each.path) == 1 and "missing" in each.rules]
            return f"{name} with {_listed(asked, 'and')}" if asked else name
        if "blank" in self.rules:
            return "a non-empty string"
        if self.high is not None and self.low is not None:
            return f"{name} {self.bounds}"
        return f"{name} that is not negative" if self.rules.get("range") == self.rules.get("type", "") else name

    @property
    def bounds(self) -> str:
        return f"{self.low} or more" if self.high is None else f"from {self.low} to {self.high}"

    @property
    def all(self) -> str:
        """What the field must be."""
        if not self.array:
            return self.one
        return f"an array of objects{self.one.removeprefix('an object')}" if self.model else "an array of strings"

    def wrong(self, kind: Kind) -> Any:
        """A value that breaks the rule of a kind; without its key it is missing."""
        if kind == "type":
            numeric = self.plain is not str
            return (self.right or ["none"])[0] if self.array else "none" if numeric else 17
        if kind == "case":
            return self.right.capitalize() if self.right.islower() else self.right.lower()
        if kind in ("entry", "blank"):
            return [*self.right[:-1], "" if kind == "blank" else 17]
        return {"value": self.other, "empty": "", "range": (self.low or 0) - 1}[kind]


def rows_of(model: type[Contracted], at: Pattern = ()) -> Iterator[FieldRow]:
    """The rows of a model, those of the objects in it behind their own; `why` is not known yet."""
    for name, info in model.model_fields.items():
        if not isinstance(info.json_schema_extra, dict):
            continue
        extra: Any = info.json_schema_extra
        form = _bare(info.annotation)
        array = get_origin(form) is list
        bounds = {key: getattr(bound, key) for bound in info.metadata for key in ("ge", "le") if hasattr(bound, key)}
        made = FieldRow(
            path=(*at, name),
            form=_bare(get_args(form)[0]) if array else form,
            array=array,
            right=(info.examples or [None])[0],
            low=bounds.get("ge"),
            high=bounds.get("le"),
            **extra,
        )
        inside = (*made.path, "*") if array else made.path
        inner = tuple(rows_of(made.model, inside)) if made.model else ()
        if inner and made.right is None:
            value = {each.name: each.right for each in inner if each.path[:-1] == inside}
            made = made._replace(right=[value] if array else value)
        yield made
        yield from inner


class Table:
    """The rules of one contract: those of the rows of its model, and those that are `written` out.

    A row may name one that is written out; all others get their texts here. `why` says by its key, or by that of the
    object around it, why a field is there. `sections` are the headings of the contract's document for top fields that
    are required, and for others. `lines`: its keys stand in lines of Markdown, and have no path.
    """

    def __init__(
        self,
        contract: Contract,
        model: type[Contracted],
        written: tuple[Rule, ...],
        why: dict[str, str],
        sections: tuple[str, str] = ("", ""),
        *,
        lines: bool = False,
    ) -> None:
        self.contract: Final = contract
        rows = tuple(rows_of(model))
        headings = {
            each.name: each.section or sections["missing" not in each.rules].format(key=each.name)
            for each in rows
            if len(each.path) == 1
        }
        self.rows: Final = tuple(
            each._replace(
                why=why.get(each.key) or why.get(each.path[0], ""), section=each.section or headings[each.path[0]]
            )
            for each in rows
        )
        self.judging: Final = Schema(self._faults(), {each.path: each.words for each in self.rows if each.words})
        self._written: Final = written
        self._lines: Final = lines

    @cached_property
    def rules(self) -> dict[str, Rule]:
        """By id, in the order of the ids."""
        made = {rule.id: rule for rule in self._written}
        for each in self.rows:
            for kind, rule_id in each.rules.items():
                if rule_id not in made:
                    made[rule_id] = self._rule(rule_id, each, kind)
        return dict(sorted(made.items()))

    @property
    def example(self) -> dict[str, Any]:
        """A document of which every row is right."""
        return {each.path[0]: each.right for each in self.rows if len(each.path) == 1}

    def schema(self) -> dict[str, Any]:
        """The JSON Schema of what is an error in a field, and of how its words are spelled: no warning is in it."""
        about = "What agentwatch check holds an error in one field; it judges more than a schema can say."
        found = {"$schema": _DRAFT, "title": self.contract.value, "description": about}
        return {**found, **self._object((), nullable=False), "examples": [self.example]}

    def _faults(self) -> Faults:
        found: list[tuple[str, Pattern, Any]] = []
        for each in self.rows:
            for kind, rule in each.rules.items():
                entry = kind in ("entry", "blank")
                meant = {"entry": "type", "blank": "empty"}.get(kind, kind)
                found.append((rule, (*each.path, "*") if entry else each.path, meant))
        # In the order of the ids, in which findings of one line are told.
        return {(place, kind): rule for rule, place, kind in sorted(found)}

    def _rule(self, rule_id: str, of: FieldRow, kind: Kind) -> Rule:
        key = of.name if self._lines else of.key
        words = _listed(of.words, "or")
        need = of.needs or words or of.all
        missing = "missing or empty" if of.rules.get("empty") == of.rules.get("missing") else "missing"
        facts = {"key": key, "missing": missing, "need": need, "words": words}
        facts |= {"all": of.all, "one": of.one, "bounds": of.bounds, "why": of.why}
        title, message, why = (text.format(**facts) for text in (*_TEXTS[kind], _REASONS.get(kind, "{why}")))
        severity = WARNING if kind == "case" or kind in of.warns.split() else ERROR
        wrong = f"(no `{key}`)" if kind == "missing" else self._shown(of.name, of.wrong(kind))
        right = self._shown(of.name, of.right)
        return Rule(rule_id, self.contract, severity, of.section, title, message, why, right, wrong)

    def _shown(self, name: str, value: Any) -> str:
        if self._lines:
            return f"{name}: {value}" if isinstance(value, str) else f"{name}:\n- {value[0]}"
        text = json.dumps(value, ensure_ascii=False)
        if len(text) > _LONGEST:
            text = "[{\u2026}]" if text[0] == "[" else "{\u2026}"
        return f'"{name}": {text}'

    def _object(self, at: Pattern, *, nullable: bool) -> dict[str, Any]:
        rows = [each for each in self.rows if each.path[:-1] == at]
        required = [each.name for each in rows if self._is_error(each, "missing")]
        properties = {each.name: self._field(each, nullable=each.name not in required) for each in rows}
        return {"type": _or_null("object", nullable=nullable), "properties": properties, "required": required}

    def _field(self, of: FieldRow, *, nullable: bool) -> dict[str, Any]:
        told = {"description": of.why, "examples": [of.right]}
        if not self._is_error(of, "type" if not of.words else "value"):
            return told
        if of.array:
            items = self._value(of, (*of.path, "*"), "blank", nullable=False) if self._is_error(of, "entry") else {}
            return {"type": _or_null("array", nullable=nullable), "items": items, **told}
        return self._value(of, of.path, "empty", nullable=nullable) | told

    def _value(self, of: FieldRow, at: Pattern, empty: Kind, *, nullable: bool) -> dict[str, Any]:
        if of.model:
            return self._object(at, nullable=nullable)
        if of.words:
            return {"enum": [*of.words, None] if nullable else [*of.words]}
        found: dict[str, Any] = {"type": _or_null(_TYPES[of.plain], nullable=nullable)}
        found |= {"pattern": r"\S"} if self._is_error(of, empty) else {}
        if self._is_error(of, "range"):
            found |= {key: bound for key, bound in (("minimum", of.low), ("maximum", of.high)) if bound is not None}
        return found

    def _is_error(self, of: FieldRow, kind: Kind) -> bool:
        return kind in of.rules and self.rules[of.rules[kind]].severity is ERROR


def _or_null(name: str, *, nullable: bool) -> str | list[str]:
    return [name, "null"] if nullable else name


def _bare(annotation: Any) -> Any:
    """A type without None, and without what is said of it beside."""
    if NoneType in get_args(annotation):
        annotation = next(each for each in get_args(annotation) if each is not NoneType)
    return get_args(annotation)[0] if get_origin(annotation) is Annotated else annotation


def _listed(words: tuple[str, ...] | list[str], last: str) -> str:
    *others, end = [f"`{word}`" for word in words] or [""]
    return f"{', '.join(others)} {last} {end}" if others else end
