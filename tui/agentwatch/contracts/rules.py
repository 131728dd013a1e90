"""The catalogue of rules, the findings of a document, and the checks that contracts share."""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from itertools import accumulate, product
from pkgutil import get_data
from sys import intern
from typing import Any, NamedTuple, TypeVar

from agentwatch.contracts.shapes import Contract, Finding, Handoff, Return, Severity
from agentwatch.text import quote_text

ERROR = Severity.ERROR
WARNING = Severity.WARNING
MAX_ENTRIES = 1_000  # entries of one list that are read and judged
MAX_TOKENS = 100  # tokens that a summary may have
BRIEF = 2_000  # characters of a free text that a document keeps

AnyDocument = TypeVar("AnyDocument", Handoff, Return)
# A place inside a document: keys and list indices from the top, `("metadata", "delegation_path", 2)`.
Location = tuple[str | int, ...]


class Rule(NamedTuple):
    """A rule of one contract, or of all contracts."""

    id: str
    contract: Contract | None
    severity: Severity
    section: str  # the heading in the contract's document that asks for it
    title: str
    message: str  # `{names}` in it are filled with the facts of the place
    why: str
    right: str = ""
    wrong: str = ""
    warns_in: Contract | None = None  # the contract in which `check` only warns
    fields: tuple[tuple[str, ...], ...] = ()  # (kind of error, path of a field) pairs that break it

    @property
    def level(self) -> str:
        """Return the severity in words, with the contract in which `check` only warns."""
        return f"{self.severity} (in a {self.warns_in}, `check` only warns)" if self.warns_in else self.severity.value


_MODULES = {Contract.HANDOFF_PACKET: "handoff", Contract.RETURN_FORMAT: "return_format"}
PREFIXES = {
    "DOC": None,
    **dict.fromkeys(("HOF", "TOD"), Contract.HANDOFF_PACKET),
    **dict.fromkeys(("RET", "ERR"), Contract.RETURN_FORMAT),
    "SUB": Contract.SUBAGENT_RETURN,
    "MET": Contract.RETURN_META,
    "REP": Contract.REPORT_CONTRACT,
}  # contracts by the first letters of a rule's id; rules of files and links have other letters


def module_of(contract: Contract) -> Any:
    """Import and return the module of a contract, which has `MODELS` by contract and, for JSON, `judge`."""
    return import_module(f"agentwatch.contracts.{_MODULES.get(contract, 'json_returns')}")


@cache
def read_rules() -> dict[str, Rule]:
    """Return all rules by id, in the order of the catalogue: those of contracts, of files, of links."""
    section, rules = "", {}
    text = (get_data("agentwatch.contracts", "rules.txt") or b"").decode().partition("\n\n")[2]
    for row in re.sub(r"\n (?= )", "", text).splitlines():
        if row.startswith("# "):
            section = row[2:]
            continue
        head, message, *more = row.split(" | ")
        start, _, title = head.partition(": ")
        rule_id, severity, *rest = start.split()
        right, _, wrong = (more.pop() if " \u2260 " in row else "").replace("\\n", "\n").partition(" \u2260 ")
        why = (
            more[0]
            if more
            else "Readers rely on the type; anything else makes them fail or guess."
            if "must be a" in message
            else "It is understood here, and may not be elsewhere."
        )
        only = Contract(rest[0]) if len(rest) == 1 else None
        fields = tuple(product(*(words.split(",") for words in rest))) if len(rest) == 2 else ()
        level, contract = Severity(severity), PREFIXES.get(rule_id[:3])
        rules[rule_id] = Rule(rule_id, contract, level, section, title, message, why, right, wrong, only, fields)
    return rules


def contract_rules() -> dict[str, Rule]:
    """Return the rules of the contracts by id, in the order of the catalogue."""
    return {rule_id: rule for rule_id, rule in read_rules().items() if rule_id[:3] in PREFIXES}


def shown(value: object) -> str:
    """Return a foreign value for use in a message, short and safe."""
    if isinstance(value, str):
        return quote_text(value, 60)
    if isinstance(value, (dict, list)):
        return "an array" if isinstance(value, list) else "an object"
    import json  # imported late: the first frame shows no value

    text = json.dumps(value)
    return text if len(text) <= 30 else "a huge number"


@dataclass(slots=True)
class Findings:
    """The rules that a document breaks, by line (counted from `first_line` of its file) or by place below `at`."""

    first_line: int = 1
    at: Location = ()
    _noted: list[tuple[str, Location | int, dict[str, object]]] = field(default_factory=list, init=False)

    def add(self, rule: str, where: Location | int, **facts: object) -> None:
        """Note that `rule` is broken at a line index (from 0) or a place; `facts` fill its message."""
        self._noted.append((rule, self.first_line + where if isinstance(where, int) else (*self.at, *where), facts))

    def made(
        self, line_of: Callable[[Location], int | None] = lambda _: None, others: Iterable[Finding] = ()
    ) -> tuple[Finding, ...]:
        """Return the findings and `others` by line, then rule; over 20 of a rule are only counted, at the end."""
        of_rule: dict[str, int] = {}
        made: list[Finding] = []
        for rule_id, where, facts in self._noted:
            of_rule[rule_id] = of_rule.get(rule_id, 0) + 1
            if of_rule[rule_id] <= 20:
                rule = read_rules()[rule_id]
                # Many documents have the same message.
                message = intern(rule.message.format(**facts | {"value": shown(facts.get("value"))}))
                line = where if isinstance(where, int) else line_of(where)
                made.append(Finding(rule_id, rule.severity, message, line))
        if left_out := len(self._noted) - len(made):
            made.append(Finding("DOC010", WARNING, read_rules()["DOC010"].message.format(count=left_out)))
        order = sorted((*made, *others), key=lambda one: (one.rule == "DOC010", one.line or 0, one.rule, one.message))
        return tuple(order)


# A full stop ends a sentence before a space and anything but a small letter: not in `a.md`, `3.5`, `e.g. X`, `J. Doe`.
_END = re.compile(
    r"(?<!\b[A-Za-z])(?<!^\d)(?<!(?i:\b(?:vs|cf|no|dr|mr|ms|st)))(?<!(?i:\betc))(?<!(?i:\bincl))(?<!(?i:\bapprox))"
    r"[.!?\u2026]+[\"'\u201d\u2019)\]*`_]*(?=\s+[^\sa-z]|\s*\Z)"
)
# Empty or longer than a path can be; absolute, in a home, on a drive or of a scheme; from a variable as shells write it
# (a file may well be called `$slug.tsx`); with a NUL.
_ELSEWHERE = re.compile(
    r"(?s:.{4097})|\s*(?:\Z|[/\\~]|[A-Z]:|[a-z]:[\\/]|[A-Za-z][A-Za-z0-9+.-]*://"
    r"|(?i:data|file|ftp|git|https?|mailto|repo|ssh|urn|vscode):"
    r"|\$(?:[A-Z_][A-Z0-9_]*(?![A-Za-z0-9.])|\{|\(|env:)|%[A-Za-z_][A-Za-z0-9_()]*%)|(?s:.*\0)"
)


_WHOLE = {"task_id", "parent_task_id", "session_id", "decision_id", "restores", "agent"}


def shorten(value: Any) -> Any:
    """Return a text cut to BRIEF, None if empty, or a list of texts as a tuple without empty ones."""
    if type(value) is str:
        # Many documents have the same text.
        return intern(value if len(value) <= BRIEF else f"{value[: BRIEF - 1]}\u2026") or None
    return tuple(filter(None, map(shorten, value))) if isinstance(value, list) else value


def outline(kind: type[AnyDocument], *models: object, **facts: Any) -> AnyDocument:
    """Return a document of `facts` and of the models' fields that it has, too, all shortened but the ids."""
    fields = [field for model in reversed(models) for field in vars(model).items() if field[1] is not None]
    found = {name: value for name, value in fields if name in kind.__dataclass_fields__} | facts
    # Ids may differ only at their end, so they are not cut.
    return kind(**{name: value if name in _WHOLE else shorten(value) for name, value in found.items()})


def is_blank(value: object) -> bool:
    """Tell whether a value is an empty or blank string."""
    return isinstance(value, str) and not value.strip()


def tokens(text: str) -> int:
    """Count the tokens of a text as the contract does: its characters divided by four, rounded up."""
    return -(-len(text) // 4)


def sentences(text: str) -> int:
    """Count the sentences in the first 1,000 characters of a text; 0 if it has no word."""
    return sum(re.search(r"\w", part) is not None for part in _END.split(text[:1_000].strip()))


def is_relative(path: str) -> bool:
    """Tell whether a path, in any spelling, is relative to the repository and stays inside it."""
    depths = accumulate(-1 if part == ".." else part not in ("", ".") for part in re.split(r"[\\/]", path.strip()))
    return not _ELSEWHERE.match(path) and min(depths) >= 0


def judge_paths(rule: str, key: str, entries: Iterable[Any] | None, findings: Findings) -> None:
    """Note each path of the entries at `key` that is not repo-relative; an empty path breaks another rule."""
    for index, entry in enumerate(entries or ()):
        if entry.path and entry.path.strip() and not is_relative(entry.path):
            findings.add(rule, (key, index, "path"), value=entry.path)
