"""Rules: what one is, those of any document, and every rule of every contract by its stable id.

A rule stands in the row of its field, in the model of its contract, or is written out beside it: `error(…).says(…)
.because(…).example(…)`. The models take long to load: a rule is looked up where its document is read, and only who goes
through all loads all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from importlib import import_module
from typing import Any, Final, NamedTuple

from agentwatch.contracts.shapes import Contract, Severity

ERROR: Final = Severity.ERROR
WARNING: Final = Severity.WARNING
OTHERWISE: Final = "It is understood here, and may not be elsewhere."


class Rule(NamedTuple):
    """A rule as `agentwatch rules` lists it and `--explain` tells it.

    `contract` is None for the rules that hold for any document. `section` is the heading of the contract's document
    that asks for it. `message` is a template: its `{names}` are filled with the facts of the place where the rule is
    broken. `right` and `wrong` are short examples. `warns_in` is the contract of which `check` takes an error for a
    warning. A warning that has no `why` of its own is about another spelling or form.
    """

    id: str
    contract: Contract | None
    severity: Severity
    section: str
    title: str
    message: str = ""
    why: str = OTHERWISE
    right: str = ""
    wrong: str = ""
    warns_in: Contract | None = None

    @property
    def level(self) -> str:
        """The severity in words, with the contract in which `check` only warns."""
        return f"{self.severity}; in a {self.warns_in} `check` only warns" if self.warns_in else self.severity.value

    def says(self, message: str) -> Rule:
        return self._replace(message=message)

    def because(self, why: str) -> Rule:
        return self._replace(why=why)

    def only_warns_in(self, contract: Contract) -> Rule:
        return self._replace(warns_in=contract)

    def example(self, right: str, wrong: str) -> Rule:
        return self._replace(right=right, wrong=wrong)


Maker = Callable[[str, str, str], Rule]


def makers(contract: Contract | None) -> tuple[Maker, Maker]:
    """What begins an error, and what begins a warning, of a contract: from its id, section and title."""
    return (
        lambda rule_id, section, title: Rule(rule_id, contract, ERROR, section, title),
        lambda rule_id, section, title: Rule(rule_id, contract, WARNING, section, title),
    )


_error, _warning = makers(None)
_VALID = "JSON Validity"

_DOCUMENT: Final[tuple[Rule, ...]] = (
    _error("DOC001", _VALID, "not JSON")
    .says("This is not valid JSON: {reason}; write the document with a JSON serialiser.")
    .because("A parent can only read a return that parses. JSON has no comments, no trailing commas, no single quotes.")
    .example('{"status": "completed"}', "{'status': 'completed',}"),
    _error("DOC002", _VALID, "ends in the middle")
    .says("The document ends in the middle; write it to a temporary file and rename it, or write it again.")
    .because("A writer that was stopped, or is still writing, leaves half a document. What it meant to say is unknown.")
    .example('{"status": "completed"}', '{"status": "compl'),
    _warning("DOC003", _VALID, "not UTF-8")
    .says("The text holds bytes that are not UTF-8, or a broken character; save it as UTF-8.")
    .because("JSON and Markdown are exchanged as UTF-8. Other bytes are shown as U+FFFD, and what they were is lost.")
    .example('"café" in UTF-8', '"caf�"'),
    _error("DOC004", _VALID, "key twice")
    .says("The key {key} stands twice in one object; keep one of them.")
    .because("Parsers differ in which of two equal keys they keep, so two readers of one return may disagree.")
    .example('{"status": "failed"}', '{"status": "failed", "status": "completed"}'),
    _error("DOC005", _VALID, "number that JSON does not have")
    .says("NaN, Infinity and numbers too large for a float are not JSON; write a finite number or null.")
    .because("Strict parsers refuse the whole document because of one such number.")
    .example('"confidence_level": 0.9', '"confidence_level": NaN'),
    _error("DOC006", _VALID, "nested too deep")
    .says("Arrays and objects are nested deeper than {limit} levels; flatten the document.")
    .because("No contract needs more than five levels, and deep nesting crashes parsers.")
    .example('{"findings": {"a": [1]}}', '{"findings": [[[[[[[[…]]]]]]]]}'),
    _error("DOC007", _VALID, "text around the object")
    .says("There is text behind the JSON object; the file must hold the object and nothing else.")
    .because("One valid JSON object is what the parser expects. A second object or a remark behind it makes it fail.")
    .example('{"status": "completed"}', '{"status": "completed"} All done!'),
    _error("DOC008", _VALID, "not an object")
    .says("The document is {value}, not a JSON object; write the contract's keys into one object.")
    .because("Every JSON contract is one object with fixed keys.")
    .example('{"status": "completed"}', '[{"status": "completed"}]'),
    _warning("DOC009", _VALID, "too many entries")
    .says("{key} has more than {limit} entries; only the first {limit} are read, shorten the list.")
    .because("A list this long is a dump, not a report: neither a parent nor a person reads it.")
    .example('"artifacts": […a few…]', '"artifacts": […thousands…]'),
    _warning("DOC010", _VALID, "more findings")
    .says("{count} more findings are not listed; correct these first.")
    .because("One mistake repeated a thousand times is one mistake: at most 20 findings of a rule, 100 of a file.")
    .example("", ""),
    _warning("DOC011", "Enforcement and Prompting", "several returns in one text")
    .says("{count} returns stand in this text and say different things; this one, the last, is read: give one only.")
    .because("A parent reads one return. A template, a draft or a correction beside it may be taken for the answer.")
    .example("## Status\nstate: ERROR\n…", "Draft:\n## Status\nstate: SUCCESS\n…\n## Status\nstate: ERROR\n…"),
    _error("DOC012", _VALID, "nothing of what the name says")
    .says(
        "The name says {contract}, and nothing of one is in it; write its keys or headers, or name the file otherwise."
    )
    .because("Whoever waits for it looks for a file of this name: silence would hide that it says nothing.")
    .example('job.return.json: {"status": "completed", …}', 'job.return.json: {"ok": true}'),
    _warning("DOC013", "A) new_task.message (string)", "no packet, or no checklist, under its name")
    .says("The name says {contract}, and none is in it; put it in, or name the file otherwise.")
    .because("A message should begin with the packet, and todos should be a checklist: else nothing is tracked.")
    .example("job.todos.md: - [ ] Read the schema", "job.todos.md: Remember the schema!"),
    _warning("DOC014", "Minimum MVP Fields", "inside something else")
    .says("The document stands in a fence, in a wrapper or behind other text; begin the file with it.")
    .because("It is understood here; a parser that reads from the top may find nothing.")
    .example("## Status\nstate: SUCCESS\n…", "```markdown\n## Status\nstate: SUCCESS\n…\n```"),
    _error("DOC015", _VALID, "two statuses that disagree")
    .says("`status` is {value} and `report_metadata.status` is {other}; keep the status of one contract.")
    .because("A reader of the one contract sees success where a reader of the other sees failure: nobody can tell.")
    .example(
        '{"report_metadata": {"status": "failed"}}', '{"status": "failed", "report_metadata": {"status": "completed"}}'
    ),
)

_MODULES: Final = {
    "HOF": "handoff",
    "TOD": "todos",
    "RET": "return_format",
    "ERR": "return_format",
    "SUB": "subagent_return",
    "MET": "return_meta",
    "REP": "report",
}
"""The module that has the rules, by how their ids begin."""
_IN_JSON: Final = {"handoff-packet": "HOF", "subagent-return": "SUB", "return-meta": "MET", "report-contract": "REP"}
CONTRACTS_IN_JSON: Final = tuple(_IN_JSON)


def schema_of(contract: str) -> dict[str, Any]:
    """The JSON Schema, draft 2020-12, of one of CONTRACTS_IN_JSON."""
    return dict(module_of(contract).TABLE.schema())


def module_of(contract: str) -> Any:
    """The module that judges one of CONTRACTS_IN_JSON: it has `judge`, and `TABLE`."""
    return _module(_IN_JSON[contract])


@cache
def _module(prefix: str) -> Any:
    return import_module(f"agentwatch.contracts.{_MODULES[prefix]}")


@cache
def _of(prefix: str) -> Mapping[str, Rule]:
    if prefix == "DOC":
        return {rule.id: rule for rule in _DOCUMENT}
    module = _module(prefix)
    rules = module.TABLE.rules.values() if hasattr(module, "TABLE") else module.RULES
    return {rule.id: rule for rule in rules if rule.id.startswith(prefix)}


class _Catalogue(Mapping[str, Rule]):
    def __getitem__(self, rule_id: str) -> Rule:
        return _of(rule_id[:3])[rule_id]

    def __contains__(self, rule_id: object) -> bool:
        return isinstance(rule_id, str) and rule_id[:3] in ("DOC", *_MODULES)

    def __iter__(self) -> Iterator[str]:
        for prefix in ("DOC", *_MODULES):
            yield from _of(prefix)

    def __len__(self) -> int:
        return sum(1 for _ in self)


RULES: Final = _Catalogue()
"""Rules by id, in the order of the catalogue."""
