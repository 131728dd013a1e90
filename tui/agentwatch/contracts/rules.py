"""Rules: their catalogue, the collection of those that a document breaks, and the checks that contracts share."""

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
from agentwatch.text import quoted

ERROR = Severity.ERROR
WARNING = Severity.WARNING
MAX_ENTRIES = 1_000  # entries of one list that are read and judged
MAX_TOKENS = 100  # tokens that a summary may have
BRIEF = 2_000  # characters of a free text that a document keeps

AnyDocument = TypeVar("AnyDocument", Handoff, Return)
# A place inside a document: keys and list indices from the top, `("metadata", "delegation_path", 2)`.
Location = tuple[str | int, ...]


class Rule(NamedTuple):
    """A rule of a contract, or of all."""

    id: str
    contract: Contract | None
    severity: Severity
    section: str  # the heading of the document that asks for it
    title: str
    message: str  # its `{names}` are filled with the facts of the place
    why: str
    right: str = ""
    wrong: str = ""
    warns_in: Contract | None = None  # where `check` only warns
    fields: tuple[tuple[str, ...], ...] = ()  # the kinds of errors that break it, each with the path of a field

    @property
    def level(self) -> str:
        """The severity in words, with the contract in which `check` only warns."""
        return f"{self.severity} (in a {self.warns_in}, `check` only warns)" if self.warns_in else self.severity.value


_MODULES = {Contract.HANDOFF_PACKET: "handoff", Contract.RETURN_FORMAT: "return_format"}
PREFIXES = {
    "DOC": None,
    **dict.fromkeys(("HOF", "TOD"), Contract.HANDOFF_PACKET),
    **dict.fromkeys(("RET", "ERR"), Contract.RETURN_FORMAT),
    "SUB": Contract.SUBAGENT_RETURN,
    "MET": Contract.RETURN_META,
    "REP": Contract.REPORT_CONTRACT,
}  # by the letters of a rule its contract; rules of files and links have none of these


def module_of(contract: Contract) -> Any:
    """The module of a contract: it has `MODELS` by contract and, for JSON, `judge`. It is loaded where it is met."""
    return import_module(f"agentwatch.contracts.{_MODULES.get(contract, 'json_returns')}")


@cache
def read_rules() -> dict[str, Rule]:
    """All rules by id, in the order of the catalogue: those of the contracts, of files, of links."""
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
    """The rules of the contracts by id, in the order of the catalogue."""
    return {rule_id: rule for rule_id, rule in read_rules().items() if rule_id[:3] in PREFIXES}


def shown(value: object) -> str:
    """A foreign value inside a message, short and safe."""
    if isinstance(value, str):
        return quoted(value, 60)
    if isinstance(value, (dict, list)):
        return "an array" if isinstance(value, list) else "an object"
    import json  # the first frame shows no value

    text = json.dumps(value)
    return text if len(text) <= 30 else "a huge number"


@dataclass(slots=True)
class Findings:
    """The rules that a document breaks, by lines counted from `first_line` of its file, or places below `at`."""

    first_line: int = 1
    at: Location = ()
    _noted: list[tuple[str, Location | int, dict[str, object]]] = field(default_factory=list, init=False)

    def add(self, rule: str, where: Location | int, **facts: object) -> None:
        """Break `rule` at a line, by its index from 0, or at a place; `facts` fill its message, `value` as `shown`."""
        self._noted.append((rule, self.first_line + where if isinstance(where, int) else (*self.at, *where), facts))

    def made(
        self, line_of: Callable[[Location], int | None] = lambda _: None, others: Iterable[Finding] = ()
    ) -> tuple[Finding, ...]:
        """The findings, and others, by line, then by rule; how many more there are is said last."""
        of_rule: dict[str, int] = {}
        made: list[Finding] = []
        for rule_id, where, facts in self._noted:
            of_rule[rule_id] = of_rule.get(rule_id, 0) + 1
            if of_rule[rule_id] <= 20:
                rule = read_rules()[rule_id]
                # Many documents have the same one.
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
    """A free text, cut where it is a dump, and a list of texts as a tuple without empty ones; an empty text is None."""
    if type(value) is str:
        # Many documents have the same one.
        return intern(value if len(value) <= BRIEF else f"{value[: BRIEF - 1]}\u2026") or None
    return tuple(filter(None, map(shorten, value))) if isinstance(value, list) else value


def outline(kind: type[AnyDocument], *models: object, **facts: Any) -> AnyDocument:
    """A document of facts, and of those fields of models that are called as its own, all of them shortened."""
    fields = [field for model in reversed(models) for field in vars(model).items() if field[1] is not None]
    found = {name: value for name, value in fields if name in kind.__dataclass_fields__} | facts
    # Two ids that differ at their end are two.
    return kind(**{name: value if name in _WHOLE else shorten(value) for name, value in found.items()})


def is_blank(value: object) -> bool:
    """Whether a value is a string without a word in it."""
    return isinstance(value, str) and not value.strip()


def tokens(text: str) -> int:
    """Tokens of a text as the document counts them: its characters divided by four, rounded up."""
    return -(-len(text) // 4)


def sentences(text: str) -> int:
    """Sentences of a text; 0 where there is no word in it. Only the first 1,000 characters are looked at."""
    return sum(re.search(r"\w", part) is not None for part in _END.split(text[:1_000].strip()))


def is_relative(path: str) -> bool:
    """Whether a path is repo-relative, however it is written."""
    depths = accumulate(-1 if part == ".." else part not in ("", ".") for part in re.split(r"[\\/]", path.strip()))
    return not _ELSEWHERE.match(path) and min(depths) >= 0


def judge_paths(rule: str, key: str, entries: Iterable[Any] | None, findings: Findings) -> None:
    """Note each path of the entries at `key` that is not repo-relative; an empty one breaks another rule."""
    for index, entry in enumerate(entries or ()):
        if entry.path and entry.path.strip() and not is_relative(entry.path):
            findings.add(rule, (key, index, "path"), value=entry.path)
