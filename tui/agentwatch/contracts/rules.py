"""The catalogue of rules, the findings of a document, and the checks that several contracts use."""

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
MAX_ENTRIES = 1_000  # the most entries of one list that are read and judged
MAX_TOKENS = 100  # the most tokens that a summary may have
MAX_TEXT = 2_000  # the most characters of a free text that a document keeps

AnyDocument = TypeVar("AnyDocument", Handoff, Return)
# A place inside a document: keys and list indices from the top, such as `("metadata", "delegation_path", 2)`.
Location = tuple[str | int, ...]


class Rule(NamedTuple):
    """A rule about one contract, all contracts, files, or links between tasks."""

    id: str
    contract: Contract | None
    severity: Severity
    section: str  # the heading in the contract's document that the rule comes from
    title: str
    message: str  # names in braces, such as `{value}`, are replaced by facts about the place
    why: str
    right: str = ""
    wrong: str = ""
    warns_in: Contract | None = None  # the contract in which `check` only warns of this rule
    fields: tuple[tuple[str, ...], ...] = ()  # pairs (kind of error, path of a field) that break this rule

    @property
    def level_words(self) -> str:
        """The severity, with a note if `check` only warns of this rule in one of the contracts."""
        return f"{self.severity} (in a {self.warns_in}, `check` only warns)" if self.warns_in else self.severity.value


_MODULES = {Contract.HANDOFF_PACKET: "handoff", Contract.RETURN_FORMAT: "return_format"}
PREFIXES = {
    "DOC": None,
    **dict.fromkeys(("HOF", "TOD"), Contract.HANDOFF_PACKET),
    **dict.fromkeys(("RET", "ERR"), Contract.RETURN_FORMAT),
    "SUB": Contract.SUBAGENT_RETURN,
    "MET": Contract.RETURN_META,
    "REP": Contract.REPORT_CONTRACT,
}  # the contract for the first letters of a rule's id; DOC is for all contracts


def module_of(contract: Contract) -> Any:
    """Import and return the module that judges a contract. Its `MODELS` has the model of the contract."""
    return import_module(f"agentwatch.contracts.{_MODULES.get(contract, 'json_returns')}")


@cache
def read_rules() -> dict[str, Rule]:
    """Return the rules of the catalogue `rules.txt` by id, in the order of the catalogue."""
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
        warns_in = Contract(rest[0]) if len(rest) == 1 else None
        fields = tuple(product(*(words.split(",") for words in rest))) if len(rest) == 2 else ()
        level, contract = Severity(severity), PREFIXES.get(rule_id[:3])
        rules[rule_id] = Rule(rule_id, contract, level, section, title, message, why, right, wrong, warns_in, fields)
    return rules


def contract_rules() -> dict[str, Rule]:
    """Return the rules about contracts by id. Rules about files and links are left out."""
    return {rule_id: rule for rule_id, rule in read_rules().items() if rule_id[:3] in PREFIXES}


def quote_value(value: object) -> str:
    """Return a value of an agent's document as a short, safe text for a message."""
    if isinstance(value, str):
        return quote_text(value, 60)
    if isinstance(value, (dict, list)):
        return "an array" if isinstance(value, list) else "an object"
    import json  # imported here, so that the screen starts faster

    text = json.dumps(value)
    return text if len(text) <= 30 else "a huge number"


@dataclass(slots=True)
class Findings:
    """The broken rules of a document, each at a line or a place. Lines begin at `first_line`, places inside `at`."""

    first_line: int = 1
    at: Location = ()
    _added: list[tuple[str, Location | int, dict[str, object]]] = field(default_factory=list, init=False)

    def add(self, rule: str, where: Location | int, **facts: object) -> None:
        """Add a broken rule at a line index (from 0) or at a place. The `facts` fill the message of the rule."""
        self._added.append((rule, self.first_line + where if isinstance(where, int) else (*self.at, *where), facts))

    def collect(
        self, line_of: Callable[[Location], int | None] = lambda _: None, others: Iterable[Finding] = ()
    ) -> tuple[Finding, ...]:
        """Return all findings and `others`, sorted by line and rule. At most 20 findings of each rule are listed."""
        of_rule: dict[str, int] = {}
        made: list[Finding] = []
        for rule_id, where, facts in self._added:
            of_rule[rule_id] = of_rule.get(rule_id, 0) + 1
            if of_rule[rule_id] <= 20:
                rule = read_rules()[rule_id]
                # Interned to save memory: many documents have the same message.
                message = intern(rule.message.format(**facts | {"value": quote_value(facts.get("value"))}))
                line = where if isinstance(where, int) else line_of(where)
                made.append(Finding(rule_id, rule.severity, message, line))
        if left_out := len(self._added) - len(made):
            made.append(Finding("DOC010", WARNING, read_rules()["DOC010"].message.format(count=left_out)))
        order = sorted((*made, *others), key=lambda one: (one.rule == "DOC010", one.line or 0, one.rule, one.message))
        return tuple(order)


# A full stop before a blank ends a sentence, unless a small letter follows. Exceptions: `e.g. X`, `J. Doe`, `vs. X`.
_SENTENCE_END = re.compile(
    r"(?<!\b[A-Za-z])(?<!^\d)(?<!(?i:\b(?:vs|cf|no|dr|mr|ms|st)))(?<!(?i:\betc))(?<!(?i:\bincl))(?<!(?i:\bapprox))"
    r"[.!?\u2026]+[\"'\u201d\u2019)\]*`_]*(?=\s+[^\sa-z]|\s*\Z)"
)
# Matches paths that are empty, too long, absolute or URLs. Matches paths in a home directory, on a drive, or with NUL.
# Matches paths that begin with a shell variable. But `$slug.tsx` is a real file name, and does not match.
_NOT_RELATIVE = re.compile(
    r"(?s:.{4097})|\s*(?:\Z|[/\\~]|[A-Z]:|[a-z]:[\\/]|[A-Za-z][A-Za-z0-9+.-]*://"
    r"|(?i:data|file|ftp|git|https?|mailto|repo|ssh|urn|vscode):"
    r"|\$(?:[A-Z_][A-Z0-9_]*(?![A-Za-z0-9.])|\{|\(|env:)|%[A-Za-z_][A-Za-z0-9_()]*%)|(?s:.*\0)"
)


_ID_FIELDS = {"task_id", "parent_task_id", "session_id", "decision_id", "restores", "agent"}


def shorten(value: Any) -> Any:
    """Return a text cut to MAX_TEXT characters, or None if it is empty. In a list, each text is cut."""
    if type(value) is str:
        # Interned to save memory: many documents have the same text.
        return intern(value if len(value) <= MAX_TEXT else f"{value[: MAX_TEXT - 1]}\u2026") or None
    return tuple(filter(None, map(shorten, value))) if isinstance(value, list) else value


def build_fields(kind: type[AnyDocument], *models: object, **facts: Any) -> AnyDocument:
    """Build a document of `kind` from `facts` and from the fields of the models. Shorten all texts that are no ids."""
    fields = [field for model in reversed(models) for field in vars(model).items() if field[1] is not None]
    found = {name: value for name, value in fields if name in kind.__dataclass_fields__} | facts
    # Two ids may differ only at their end, so ids are not cut.
    return kind(**{name: value if name in _ID_FIELDS else shorten(value) for name, value in found.items()})


def is_blank(value: object) -> bool:
    """Tell whether a value is a text without any visible character."""
    return isinstance(value, str) and not value.strip()


def count_tokens(text: str) -> int:
    """Count the tokens of a text as the contract does: a quarter of its characters, rounded up."""
    return -(-len(text) // 4)


def count_sentences(text: str) -> int:
    """Count the sentences in the first 1,000 characters of a text. A text without words has none."""
    return sum(re.search(r"\w", part) is not None for part in _SENTENCE_END.split(text[:1_000].strip()))


def is_relative(path: str) -> bool:
    """Tell whether a path is relative to the repository and stays inside the repository."""
    depths = accumulate(-1 if part == ".." else part not in ("", ".") for part in re.split(r"[\\/]", path.strip()))
    return not _NOT_RELATIVE.match(path) and min(depths) >= 0


def judge_paths(rule: str, key: str, entries: Iterable[Any] | None, findings: Findings) -> None:
    """Report each path of the entries that is not relative to the repository. Skip empty paths."""
    for index, entry in enumerate(entries or ()):
        if entry.path and entry.path.strip() and not is_relative(entry.path):
            findings.add(rule, (key, index, "path"), value=entry.path)
