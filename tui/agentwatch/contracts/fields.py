"""Fields of contracts: plain pydantic models, and a table that says which rules each field has.

Reading is tolerant and judging strict: what a model refuses breaks a rule and is left out, so that a typed model always
results. The rules' texts, an example of the whole document and its JSON Schema are made of the table, too.
"""

from __future__ import annotations

import json
from copy import copy
from functools import reduce
from operator import getitem
from types import NoneType
from typing import Annotated, Any, Final, Literal, NamedTuple, TypeVar, get_args, get_origin

from annotated_types import Ge
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, ValidationError
from pydantic_core import PydanticCustomError, core_schema

from agentwatch.contracts.rules import ERROR, MAX_ENTRIES, WARNING, Findings, Location, Rule, paragraphs, rule_of, shown
from agentwatch.contracts.shapes import Contract
from agentwatch.text import folded

_KIND_OF: Final = {
    **dict.fromkeys(("greater_than_equal", "less_than_equal", "finite_number"), "range"),
    "literal_error": "value",
    "missing": "missing",
    "empty": "empty",
}
"""Kinds of rules by pydantic's type of error; any other is `type`, or `entry` where it is one in an array."""
_FIRST: Final = ("missing", "empty")
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


AnyModel = TypeVar("AnyModel", bound=Model)
T = TypeVar("T")


def _judge_presence(value: T, info: core_schema.ValidationInfo) -> T:
    """Refuse what is not there; only `read` does so."""
    if value is None and info.context:
        raise PydanticCustomError("missing", "it is not there")
    return value


def _judge_text(value: T, info: core_schema.ValidationInfo) -> T:
    if isinstance(value, str) and not value.strip() and info.context:
        raise PydanticCustomError("empty", "no word is in it")
    return _judge_presence(value, info)


Required = Annotated[T | None, AfterValidator(_judge_presence)]
Text = Annotated[str | None, AfterValidator(_judge_text)]
"""A string that is required, and must have a word in it."""
Word = Annotated[str, AfterValidator(_judge_text)]
Whole = Annotated[
    int, BeforeValidator(lambda value: int(value) if isinstance(value, float) and value.is_integer() else value)
]
"""`1.0` is an integer, too: JSON has one kind of number."""
Count = Annotated[Whole, Ge(0)]
Amount = Annotated[float, Ge(0)]


class Row(NamedTuple):
    """A field that has rules: those by their kind, a value that is `right`, and its type.

    `form` is its Python type, of an `array` that of an entry; `words` are those that it may be.
    """

    section: str = ""
    rules: dict[str, str] = {}  # noqa: RUF012 - nobody writes into it
    right: Any = None
    why: str = ""
    more: dict[str, str] = {}  # noqa: RUF012
    form: Any = None
    array: bool = False
    words: tuple[str, ...] = ()
    bounds: dict[str, float] = {}  # noqa: RUF012

    def is_error(self, kind: str) -> bool:
        return kind in self.rules and rule_of(self.rules[kind]).severity is ERROR


class Table:
    """The model of a contract, and a row for each field of it that has rules, below the section that asks for it.

    A row is the path; the kinds of its rules with their ids; a value that is right ("-" where the rows of the object in
    it say what is); the reason; and whatever else there is to say: "needs" what must be there where that is more than a
    type, "not" a word that is not allowed, "warns" the kinds that are warnings. Kinds are missing; type; entry: the
    type of one in an array; value: not one of the allowed words; case: an allowed word in other letters; empty; blank:
    an empty one in an array; range. `lines`: the keys stand in lines of Markdown, and have no path.
    """

    def __init__(self, contract: Contract, model: type[Model], text: str, *, lines: bool = False) -> None:
        self.contract, self.model, self._lines = contract, model, lines
        self.rows: dict[str, Row] = {}
        for section, (path, rules, right, why, *more) in paragraphs(text):
            by_kind = {kind: rule for *kinds, rule in map(str.split, rules.split(", ")) for kind in kinds}
            form: Any = model
            for name in path.replace("[]", "").split("."):
                form, beside = _bare(form.model_fields[name].annotation)
                if array := get_origin(form) is list:
                    form, beside = _bare(get_args(form)[0])
            words = get_args(form) if get_origin(form) is Literal else ()
            is_object = isinstance(form, type) and issubclass(form, Model)
            self.rows[path] = Row(
                section,
                by_kind,
                None if right == "-" else json.loads(right),
                why,
                {key: value for key, _, value in (one.partition(" ") for one in more)},
                dict if is_object else str if words else get_origin(form) or form,
                array,
                words,
                {key: getattr(bound, key) for bound in beside for key in ("ge", "le") if hasattr(bound, key)},
            )

    def read(self, model: type[AnyModel], raw: dict[str, Any], findings: Findings, at: str = "") -> AnyModel:
        """The model of `raw`, without whatever broke a rule; every rule broken is noted. `at` is where it stands."""
        raw = _bounded(raw, findings)
        try:
            return model.model_validate(raw, context=True)
        except ValidationError as error:
            edits = self._judge_errors(raw, error, findings, at)
        # From the end on, so that indices stay true.
        for place in sorted(edits, reverse=True):
            raw = _edited(raw, place, edits[place])
        return model.model_validate(raw)

    def _judge_errors(self, raw: Any, error: ValidationError, findings: Findings, at: str) -> dict[Location, Any]:
        """Note the rule of each error. By each place that was refused the word that was meant, None to drop it."""
        edits: dict[Location, Any] = {}
        found = []
        for item in error.errors():
            place, value, kind, meant = item["loc"], item["input"], _KIND_OF.get(item["type"], "type"), None
            steps = ("[]" if isinstance(step, int) else f".{step}" for step in place)
            path = "".join((at, *steps)).removeprefix(".")
            row, where = self.rows.get(path.removesuffix("[]"), Row()), place
            # First what is not there, and of that first what is not there at the top.
            order = (_FIRST.index(kind), len(place) > 1) if kind in _FIRST else (len(_FIRST), False)
            if kind not in _FIRST:
                if kind == "value" and "case" in row.rules and isinstance(value, str):
                    meant = next((word for word in row.words if folded(word) == folded(value)), None)
                    kind = "case" if meant else kind
                elif kind == "value" and not isinstance(value, str):
                    kind = "type"
                edits[place] = meant
            elif kind == "missing" and place[-1] not in reduce(getitem, place[:-1], raw):
                where = place[:-1]
            elif kind == "missing" and kind in row.rules and kind not in row.more.get("warns", ""):
                # Somebody requires it, and null is of another type.
                kind = "type"
            kind = {"type": "entry", "empty": "blank"}.get(kind, kind) if path.endswith("[]") else kind
            if kind in row.rules:
                found.append((order, row.rules[kind], where, {"key": place[-1], "value": value, "meant": meant}))
        for _, rule, where, facts in sorted(found, key=lambda one: one[0]):
            findings.add(rule, where, **facts)
        return edits

    def _inside(self, path: str) -> dict[str, Row]:
        """The rows of the object, or of the objects in the array, at a path."""
        rows = ((key.rpartition("."), row) for key, row in self.rows.items())
        return {name: row for (above, _, name), row in rows if above.removesuffix("[]") == path}

    def _right(self, path: str) -> Any:
        row = self.rows.get(path, Row())
        if row.right is not None:
            return row.right
        at = f"{path}{'[]' if row.array else ''}."
        value = {name: self._right((at + name).removeprefix(".")) for name in self._inside(path)}
        return [value] if row.array else value

    def rules(self) -> dict[str, Rule]:
        """The rules of the rows by id."""
        made: dict[str, Rule] = {}
        for path, row in self.rows.items():
            name = path.rpartition(".")[2]
            one = self._form(path, row)
            asked = one.removeprefix("an object")
            every = one if not row.array else f"an array of {'objects' + asked if row.form is dict else 'strings'}"
            words = _listed(row.words, "or")
            facts = {"key": name if self._lines else path, "words": words, "one": one, "all": every, "why": row.why}
            facts["missing"] = "missing or empty" if row.rules.get("empty") == row.rules.get("missing") else "missing"
            facts |= {"need": row.more.get("needs") or words or every, "bounds": _bounds(row)}
            right = self._right(path)
            for kind, rule_id in row.rules.items():
                title, message, why = (text.format(**facts) for text in _TEXTS["entry" if kind == "blank" else kind])
                severity = WARNING if kind == "case" or kind in row.more.get("warns", "").split() else ERROR
                examples = (self._shown(name, right), self._shown(name, _wrong(row, kind, right)))
                examples = (examples[0], f"(no `{name}`)") if kind == "missing" else examples
                made.setdefault(
                    rule_id, Rule(rule_id, self.contract, severity, row.section, title, message, why, *examples)
                )
        return made

    def _form(self, path: str, row: Row) -> str:
        """The form of the value, or of each entry, in words."""
        name = _NAMES[row.form]
        asked = [key for key, each in self._inside(path).items() if "missing" in each.rules]
        if asked:
            return f"{name} with {_listed(asked, 'and')}"
        if "blank" in row.rules:
            return "a non-empty string"
        if len(row.bounds) > 1:
            return f"{name} {_bounds(row)}"
        return f"{name} that is not negative" if row.rules.get("range") == row.rules.get("type", "") else name

    def _shown(self, name: str, value: Any) -> str:
        if self._lines:
            return f"{name}: {value}" if isinstance(value, str) else f"{name}:\n- {value[0]}"
        text = json.dumps(value, ensure_ascii=False)
        if len(text) > 90:
            text = "[{\u2026}]" if text[0] == "[" else "{\u2026}"
        return f'"{name}": {text}'

    def schema(self) -> dict[str, Any]:
        """The JSON Schema, draft 2020-12, of what is an error in a field, and of how its words are spelled."""
        return {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "title": self.contract.value,
            "description": "What agentwatch check holds an error in one field; it judges more than a schema can say.",
            **self._schema("", Row(form=dict), nullable=False),
            "examples": [self._right("")],
        }

    def _schema(self, path: str, row: Row, *, nullable: bool) -> dict[str, Any]:
        """The schema of a value; null is allowed where it is `nullable`."""
        kind = "array" if row.array else _NAMES[row.form].partition(" ")[2]
        found: dict[str, Any] = {"type": [kind, "null"] if nullable else kind}
        inside = self._inside(path)
        if row.array:
            entry = row._replace(array=False)
            return found | {"items": self._schema(path, entry, nullable=False) if row.is_error("entry") else {}}
        if row.words:
            return {"enum": [*row.words, None] if nullable else [*row.words]}
        if inside:
            required = [name for name, each in inside.items() if each.is_error("missing")]
            at = f"{path}[]." if f"{path}[].{next(iter(inside))}" in self.rows else f"{path}." if path else ""
            properties = {}
            for name, each in inside.items():
                judged = each.is_error("value" if each.words else "type")
                known = self._schema(at + name, each, nullable=name not in required) if judged else {}
                properties[name] = known | {"description": each.why, "examples": [self._right(at + name)]}
            return found | {"properties": properties, "required": required}
        if row.is_error("empty") or row.is_error("blank"):
            found["pattern"] = r"\S"
        if row.is_error("range"):
            found |= {{"ge": "minimum", "le": "maximum"}[key]: bound for key, bound in row.bounds.items()}
        return found


def _edited(node: Any, place: Location, meant: str | None) -> Any:
    """The same with another word at a place, or with nothing there."""
    step, *below = place
    node = copy(node)
    if below:
        node[step] = _edited(node[step], tuple(below), meant)
    elif meant is None:
        del node[step]
    else:
        node[step] = meant
    return node


def _wrong(row: Row, kind: str, right: Any) -> Any:
    """A value that breaks the rule of a kind."""
    if kind == "type":
        return (right or ["none"])[0] if row.array else 17 if row.form is str else "none"
    if kind == "case":
        return right.capitalize() if right.islower() else right.lower()
    if kind in ("entry", "blank"):
        return [*right[:-1], "" if kind == "blank" else 17]
    return {"value": row.more.get("not"), "range": int(row.bounds.get("ge", 0)) - 1}.get(kind, "")


def _bounds(row: Row) -> str:
    low, high = row.bounds.get("ge"), row.bounds.get("le")
    return f"{low} or more" if high is None else f"from {low} to {high}"


def _bare(annotation: Any) -> tuple[Any, list[Any]]:
    """A type without None, and without what is said of it beside, which comes with it."""
    beside: list[Any] = []
    while get_origin(annotation) is Annotated or NoneType in get_args(annotation):
        if get_origin(annotation) is Annotated:
            annotation, *more = get_args(annotation)
            beside += more
        else:
            annotation = next(each for each in get_args(annotation) if each is not NoneType)
    return annotation, beside


def _listed(words: tuple[str, ...] | list[str], last: str) -> str:
    *others, end = [f"`{word}`" for word in words] or [""]
    return f"{', '.join(others)} {last} {end}" if others else end


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
