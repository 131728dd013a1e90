"""Rules: their catalogue, the collection of those that a document breaks, and the checks that contracts share.

The rules of a contract's fields are made of its model (`fields`), which is loaded only where its document is met.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from importlib import import_module
from sys import intern
from typing import Any, Final, NamedTuple

from agentwatch.contracts.shapes import Contract, Finding, Severity
from agentwatch.text import quoted

ERROR: Final = Severity.ERROR
WARNING: Final = Severity.WARNING
OTHERWISE: Final = "It is understood here, and may not be elsewhere."
MAX_ENTRIES: Final = 1_000
"""Entries of one list that are read and judged."""
LIMIT_OF_ONE_RULE: Final = 20
LIMIT: Final = 100
"""Findings of one document that are kept, the last of them saying how many more there are."""
MAX_TOKENS: Final = 100
"""Tokens that a summary may have."""
BRIEF: Final = 2_000
"""Characters of a free text that a document keeps."""

Location = tuple[str | int, ...]
"""A place inside a document: keys and list indices from the top, `("metadata", "delegation_path", 2)`."""


class Rule(NamedTuple):
    """A rule as `agentwatch rules` lists it and `--explain` tells it.

    `contract` is None for the rules that hold for any document. `section` is the heading of the contract's document
    that asks for it. `message` is a template: its `{names}` are filled with the facts of the place where the rule is
    broken. `warns_in` is the contract of which `check` takes an error for a warning.
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


PREFIXES: Final[dict[str, tuple[Contract | None, str]]] = {
    "DOC": (None, ""),
    "HOF": (Contract.HANDOFF_PACKET, "handoff"),
    "TOD": (Contract.HANDOFF_PACKET, ""),
    "RET": (Contract.RETURN_FORMAT, "return_format"),
    "ERR": (Contract.RETURN_FORMAT, "return_format"),
    "SUB": (Contract.SUBAGENT_RETURN, "json_returns"),
    "MET": (Contract.RETURN_META, "json_returns"),
    "REP": (Contract.REPORT_CONTRACT, "json_returns"),
}
"""By the letters of a rule its contract, and the module with the fields that have such rules."""
CONTRACTS_IN_JSON: Final = ("handoff-packet", "subagent-return", "return-meta", "report-contract")


def module_of(contract: Contract | str) -> Any:
    """The module of a contract: it has `TABLES` by contract and, for JSON, `judge`."""
    name = next(module for of, module in PREFIXES.values() if of == contract and module)
    return import_module(f"agentwatch.contracts.{name}")


def paragraphs(table: str) -> Iterator[tuple[str, list[str]]]:
    """The rows of a table, each with the section above it: a row goes on in lines that are indented."""
    section = ""
    for row in re.split(r"\n(?=\S)", table.strip()):
        if row.startswith("# "):
            section = row[2:]
        else:
            yield section, row.replace("\n ", "").split(" | ")


@cache
def rules_of(prefix: str) -> dict[str, Rule]:
    """The rules whose ids begin so, in their order."""
    contract, module = PREFIXES[prefix]
    made: dict[str, Rule] = module_of(contract).TABLES[contract].rules() if contract and module else {}
    for section, (head, message, *more) in paragraphs(_TABLE):
        if head.startswith(prefix):
            start, _, title = head.partition(": ")
            rule_id, severity = start.split()
            example = more.pop() if " \u2260 " in more[-1] else ""
            right, _, wrong = example.replace("\\n", "\n").partition(" \u2260 ")
            why = more[0] if more else OTHERWISE
            made[rule_id] = Rule(rule_id, contract, Severity(severity), section, title, message, why, right, wrong)
    return {rule_id: rule for rule_id, rule in sorted(made.items()) if rule_id.startswith(prefix)}


def rule_of(rule_id: str) -> Rule:
    return rules_of(rule_id[:3])[rule_id]


def contract_rules() -> dict[str, Rule]:
    """All rules of the contracts by id, in the order of the catalogue."""
    return {rule_id: rule for prefix in PREFIXES for rule_id, rule in rules_of(prefix).items()}


def shown(value: object) -> str:
    """A foreign value inside a message, short and safe."""
    if isinstance(value, str):
        return quoted(value, 60)
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, int):
        # Python refuses to print integers of more than 4,300 digits.
        return str(value) if value.bit_length() <= 64 else "a huge number"
    return repr(value) if isinstance(value, float) else "an array" if isinstance(value, list) else "an object"


class Findings:
    """The rules that a document breaks, each with its line or its place.

    `first_line` is the number of a text's first line in its file; places are told from `at` on.
    """

    __slots__ = ("_noted", "at", "first_line")

    def __init__(self, first_line: int = 1) -> None:
        self._noted: list[tuple[str, Location | int, dict[str, object]]] = []
        self.at: Location = ()
        self.first_line = first_line

    def add(self, rule: str, where: Location | int, **facts: object) -> None:
        """Break `rule` at a line (1-based), or at a place, the line of which is looked up at the end.

        `facts` fill its message: a foreign `value` is shown short and safe, unless it is said in `exact` words.
        """
        self._noted.append((rule, where if isinstance(where, int) else (*self.at, *where), facts))

    def add_in(self, rule: str, index: int, **facts: object) -> None:
        """Break `rule` at a line of the text, by its index from 0."""
        self._noted.append((rule, self.first_line + index, facts))

    def made(self, line_of: Callable[[Location], int | None] = lambda _: None) -> tuple[Finding, ...]:
        """The findings in the order of their lines, at most `LIMIT`: errors stay before warnings."""
        of_rule: dict[str, int] = {}
        made: list[Finding] = []
        for rule_id, where, facts in self._noted:
            of_rule[rule_id] = of_rule.get(rule_id, 0) + 1
            if of_rule[rule_id] <= LIMIT_OF_ONE_RULE:
                rule = rule_of(rule_id)
                value = {"value": facts.get("exact") or shown(facts.get("value"))} if facts else {}
                # Many documents have the same one.
                message = intern(rule.message.format(**facts | value))
                line = where if isinstance(where, int) else line_of(where)
                made.append(Finding(rule_id, rule.severity, message, line))
        left_out = len(self._noted) - len(made)
        if left_out or len(made) > LIMIT:
            made.sort(key=lambda finding: finding.severity is not ERROR)
            left_out += max(len(made) - (LIMIT - 1), 0)
            del made[LIMIT - 1 :]
        made.sort(key=lambda finding: finding.line or 0)
        if left_out:
            made.append(Finding("DOC010", WARNING, rule_of("DOC010").message.format(count=left_out)))
        return tuple(made)


_ABBREVIATION: Final = re.compile(
    r"(?:\b(?:e\.g|i\.e|etc|vs|cf|approx|incl|resp|no|dr|mr|ms|st)|\b[A-Za-z]|^\d+)\.\Z", re.IGNORECASE
)
# A full stop ends a sentence before a space and anything but a small letter: not in `a.md`, `3.5` or `e.g. this`.
_END: Final = re.compile(r"[.!?…]+[\"'”’)\]*`_]*(?=\s+[^\sa-z]|\s*\Z)")
_WORD: Final = re.compile(r"\w")
_MAX_LOOKED_AT: Final = 1_000
_NEXT_STEP: Final = re.compile(
    r"\b(?:after|again|ask|before|complete|continue|defer\w*|finish|follow\w*|later|left|must|need\w*|next|once|open"
    r"|outstanding|pending|please|postpone\w*|remain\w*|resume|retry|run|should|still|then|todo|to be|until|wait\w*"
    r"|when|will)\b",
    re.IGNORECASE,
)
# Nearly every path is one of these, and needs no closer look.
_PLAIN: Final = re.compile(r"(?!.*\.\.)[A-Za-z0-9_.-][A-Za-z0-9_./-]{0,4095}\Z")
_REASONS: Final = (
    (r"(?s:.{4097})", "it is longer than a path can be"),
    (r"\s*\Z", "it is empty"),
    (r"\s*[/\\]", "it is absolute"),
    (r"\s*~", "it starts in a home directory"),
    (r"\s*(?:[A-Z]:|[a-z]:[\\/]|[A-Za-z][A-Za-z0-9+.-]*://)", "it names a drive or a scheme"),
    (r"\s*(?i:data|file|ftp|git|https?|mailto|repo|ssh|urn|vscode):", "it names a drive or a scheme"),
    # As shells write them; a file may well be called `$slug.tsx`.
    (
        r"\s*(?:\$(?:[A-Z_][A-Z0-9_]*(?![A-Za-z0-9.])|\{|\(|env:)|%[A-Za-z_][A-Za-z0-9_()]*%)",
        "it starts with a variable",
    ),
    (r"(?s:.*\0)", "it holds a NUL character"),
)
"""Why a path is not repo-relative, by how it looks."""


def brief(text: str | None) -> str | None:
    """A free text, cut where it is a dump; None and empty texts become None."""
    return (text if len(text) <= BRIEF else text[: BRIEF - 1] + "\u2026") if text else None


def briefs(texts: Iterable[str | None] | None) -> tuple[str, ...]:
    """`brief` of each text that is not empty."""
    return tuple([short for text in texts or () if (short := brief(text))])


def shared(word: str | None) -> str | None:
    """A word that many documents have, as one object for all of them; the empty word becomes None."""
    return intern(word) if word else None


def is_blank(value: object) -> bool:
    """Whether a value is a string without a word in it."""
    return isinstance(value, str) and not value.strip()


def tells_a_next_step(text: str) -> bool:
    """Whether a text speaks of what is to come, as far as its words tell."""
    return _NEXT_STEP.search(text[:_MAX_LOOKED_AT]) is not None


def tokens(text: str) -> int:
    """Tokens of a text as the document counts them: its characters divided by four, rounded up."""
    return -(-len(text) // 4)


def sentences(text: str) -> int:
    """Sentences of a text; 0 where there is no word in it. Only the first 1,000 characters are looked at."""
    text = text[:_MAX_LOOKED_AT].strip()
    count = start = 0
    for match in _END.finditer(text):
        end = match.end()
        if end < len(text) and _ABBREVIATION.search(text[max(start, match.start() - 8) : match.start() + 1]):
            continue
        count += _WORD.search(text, start, end) is not None
        start = end
    return count + (_WORD.search(text, start) is not None)


def why_not_relative(path: str) -> str | None:
    """Why a path is not repo-relative, as half a sentence for a message; None where it is."""
    if _PLAIN.match(path):
        return None
    for pattern, reason in _REASONS:
        if re.match(pattern, path):
            return reason
    depth = 0
    for part in re.split(r"[\\/]", path.strip()):
        depth += -1 if part == ".." else part not in ("", ".")
        if depth < 0:
            return "it leaves the repository by `..`"
    return None


def judge_paths(rule: str, key: str, top: dict[str, Any], findings: Findings) -> None:
    """Note each `path` in the list of objects at `key` that is not repo-relative; an empty one breaks another rule."""
    entries = top.get(key)
    for index, entry in enumerate(entries[:MAX_ENTRIES] if isinstance(entries, list) else ()):
        path = entry.get("path") if isinstance(entry, dict) else None
        if isinstance(path, str) and path.strip() and (reason := why_not_relative(path)):
            findings.add(rule, (key, index, "path"), value=path, reason=reason)


# Of a section of the contract's document: each rule's id, level and title, its message, why it is there, and right ≠
# wrong. A rule without a reason is about another spelling or form.
_TABLE: Final = r"""
# JSON Validity
DOC001 error: not JSON | This is not valid JSON: {reason}; write the document with a JSON serialiser. | A parent can
  only read a return that parses. JSON has no comments, no trailing commas, no single quotes. | {"status": "completed"}
  ≠ {'status': 'completed',}
DOC002 error: ends in the middle | The document ends in the middle; write it to a temporary file and rename it, or write
  it again. | A writer that was stopped, or is still writing, leaves half a document. What it meant to say is unknown. |
  {"status": "completed"} ≠ {"status": "compl
DOC003 warning: not UTF-8 | The text holds bytes that are not UTF-8, or a broken character; save it as UTF-8. | JSON and
  Markdown are exchanged as UTF-8. Other bytes are shown as U+FFFD, and what they were is lost. | "café" in UTF-8 ≠
  "caf�"
DOC004 error: key twice | The key {key} stands twice in one object; keep one of them. | Parsers differ in which of two
  equal keys they keep, so two readers of one return may disagree. | {"status": "failed"} ≠ {"status": "failed",
  "status": "completed"}
DOC005 error: number that JSON does not have | NaN, Infinity and numbers too large for a float are not JSON; write a
  finite number or null. | Strict parsers refuse the whole document because of one such number. | "confidence_level":
  0.9 ≠ "confidence_level": NaN
DOC006 error: nested too deep | Arrays and objects are nested deeper than {limit} levels; flatten the document. | No
  contract needs more than five levels, and deep nesting crashes parsers. | {"findings": {"a": [1]}} ≠ {"findings":
  [[[[[[[[…]]]]]]]]}
DOC007 error: text around the object | There is text behind the JSON object; the file must hold the object and nothing
  else. | One valid JSON object is what the parser expects. A second object or a remark behind it makes it fail. |
  {"status": "completed"} ≠ {"status": "completed"} All done!
DOC008 error: not an object | The document is {value}, not a JSON object; write the contract's keys into one object. |
  Every JSON contract is one object with fixed keys. | {"status": "completed"} ≠ [{"status": "completed"}]
DOC009 warning: too many entries | {key} has more than {limit} entries; only the first {limit} are read, shorten the
  list. | A list this long is a dump, not a report: neither a parent nor a person reads it. | "artifacts": […a few…] ≠
  "artifacts": […thousands…]
DOC010 warning: more findings | {count} more findings are not listed; correct these first. | One mistake repeated a
  thousand times is one mistake: at most 20 findings of a rule, 100 of a file.
DOC012 error: nothing of what the name says | The name says {contract}, and nothing of one is in it; write its keys or
  headers, or name the file otherwise. | Whoever waits for it looks for a file of this name: silence would hide that it
  says nothing. | job.return.json: {"status": "completed", …} ≠ job.return.json: {"ok": true}
DOC015 error: two statuses that disagree | `status` is {value} and `report_metadata.status` is {other}; keep the status
  of one contract. | A reader of the one contract sees success where a reader of the other sees failure: nobody can
  tell. | {"report_metadata": {"status": "failed"}} ≠ {"status": "failed", "report_metadata": {"status": "completed"}}
# Enforcement and Prompting
DOC011 warning: several returns in one text | {count} returns stand in this text and say different things; this one, the
  last, is read: give one only. | A parent reads one return. A template, a draft or a correction beside it may be taken
  for the answer. | ## Status\nstate: ERROR\n… ≠ Draft:\n## Status\nstate: SUCCESS\n…\n## Status\nstate: ERROR\n…
# A) new_task.message (string)
DOC013 warning: no packet, or no checklist, under its name | The name says {contract}, and none is in it; put it in, or
  name the file otherwise. | A message should begin with the packet, and todos should be a checklist: else nothing is
  tracked. | job.todos.md: - [ ] Read the schema ≠ job.todos.md: Remember the schema!
# Minimum MVP Fields
DOC014 warning: inside something else | The document stands in a fence, in a wrapper or behind other text; begin the
  file with it. | It is understood here; a parser that reads from the top may find nothing. | ## Status\nstate:
  SUCCESS\n… ≠ ```markdown\n## Status\nstate: SUCCESS\n…\n```
# Required fields (MVP)
HOF006 warning: `objective` is more than one sentence | `objective` has {count} sentences; state the mission in one and
  move the rest to `notes`. | The contract asks for a one-sentence mission statement: two sentences are usually two
  tasks. | "objective": "Build the checkout API." ≠ "objective": "Build the API. Then write the docs."
HOF015 error: evidence path not repo-relative | The evidence path {value} is not repo-relative: {reason}; write it from
  the root of the repository. | The child may run in another checkout, where only a path inside the repository means the
  same file. | "path": "docs/schema.md" ≠ "path": "/home/me/shop/docs/schema.md"
HOF061 warning: packet inside another object | The packet stands inside `handoff_packet`; write its keys at the top of
  the object. | The keys are those of the object itself: a reader that does not look inside the wrapper finds none. |
  {"task_id": "shop.api", …} ≠ {"handoff_packet": {"task_id": "shop.api", …}}
# Optional fields
HOF041 warning: unknown `handoff_schema` | `handoff_schema` is {value}; `composability.handoff_packet.v1` is the version
  this packet is judged by. | The version tag tells a reader which contract the packet follows; another one may mean
  other keys. | "handoff_schema": "composability.handoff_packet.v1" ≠ "handoff_schema": "v1"
HOF070 warning: key for agentwatch is not a string | `{key}` is {value}; agentwatch understands it only as a string. |
  The key is not of the contract; agentwatch links tasks by it. | "parent_task_id": "shop" ≠ "parent_task_id": 7
HOF071 warning: `attempt` is not a positive integer | `attempt` is {value}; agentwatch understands it only as an integer
  from 1 on. | `attempt` is not of the contract; agentwatch counts retries by it. | "attempt": 2 ≠ "attempt": "second"
# A) new_task.message (string)
HOF060 warning: packet not fenced | The packet stands in the Markdown without a fence; put ```json above it and ```
  below it. | The contract asks for a fenced JSON object as the first block, so that a child finds where it ends. |
  ```json\n{"task_id": "shop.api", …}\n``` ≠ {"task_id": "shop.api", …}\n- [ ] Read
# Required characteristics
TOD001 error: line is no checklist item | This line of the checklist has no checkbox; start it with `- [ ]`, `- [-]` or
  `- [x]`, or remove it. | Every line is a single atomic action: other lines are lost when the list becomes a reminders
  table. | - [ ] Read the schema ≠ - Read the schema
TOD002 error: unknown checkbox | The checkbox `[{mark}]` is not one of `[ ]` pending, `[-]` in progress and `[x]` done;
  use one of them. | A parent counts progress by the three canonical statuses; anything else counts as nothing. | - [-]
  Draft the API ≠ - [~] Draft the API
TOD003 warning: checkbox in another letter case | The checkbox is `[X]`; write it as `[x]`. | - [x] Read the schema ≠ -
  [X] Read the schema
TOD004 error: item without an action | This item has no text; name one action or remove the line. | Every line is a
  single atomic action; an empty one cannot be done. | - [ ] Read the schema ≠ - [ ]
TOD005 error: several items on one line | Several checkboxes stand on one line; give each action a line of its own. |
  Every line is a single atomic action: the second checkbox would be read as text. | - [ ] Read the schema\n- [ ] Draft
  the API ≠ - [ ] Read the schema - [ ] Draft the API
TOD006 warning: done before its turn | This item is done while an earlier one is pending; keep the list in the order of
  execution. | The order of the list is the order of execution, so that the first open item is the next one. | - [x]
  Read the schema\n- [ ] Draft the API ≠ - [ ] Read the schema\n- [x] Draft the API
TOD007 warning: nested item | This item is indented; the checklist is one flat list. | Every line is a single atomic
  action in order; an item with items below it is not atomic. | - [ ] Draft the API ≠   - [ ] Draft the API
TOD008 warning: other list marker | This item starts with `{marker}`; start it with `-`. | The canonical statuses are
  written `- [ ]`, `- [-]` and `- [x]`. | - [ ] Draft the API ≠ * [ ] Draft the API
TOD009 warning: words beside the checklist | This line stands beside the items of the checklist; it is left aside. |
  Every line is a single atomic action: other lines are lost when the list becomes a reminders table. | - [ ] Draft the
  API and its tests ≠ - [ ] Draft the API\n  and its tests
# Minimum MVP Fields
RET001 error: `## Status` missing | The header `## Status` is missing; add the section, spelled exactly so. | The parent
  finds the state below this header and nowhere else. | ## Status ≠ (no `## Status`)
RET002 error: `## Deliverables` missing | The header `## Deliverables` is missing; add the section, spelled exactly so.
  | The parent learns here what there is to pick up. | ## Deliverables ≠ (no `## Deliverables`)
RET003 error: `## Evidence` missing | The header `## Evidence` is missing; add the section, spelled exactly so. | A
  result without its evidence cannot be checked. | ## Evidence ≠ (no `## Evidence`)
RET004 error: `## Runtime Attestation` missing | The header `## Runtime Attestation` is missing; add the section,
  spelled exactly so. | The attestation says who did the work and which files to look for. | ## Runtime Attestation ≠
  (no `## Runtime Attestation`)
RET005 warning: header of another level | The header `{header}` has level {level}; write it with two `#`. | ## Status ≠
  ### Status
RET006 warning: header in another letter case | The header is {value}; write it exactly as `{header}`. | ## Runtime
  Attestation ≠ ## Runtime attestation
RET007 error: header spelled otherwise | The header is {value}; write it exactly as `{header}`. | A parser looks for the
  exact spelling and takes the section for missing. | ## Status ≠ ## Status:
RET008 warning: header twice | The header `{header}` stands here a second time; keep one section. | Both are read here
  as one section; elsewhere a parser reads one of the two, and nobody knows which. | ## Status ≠ ## Status\n…\n## Status
RET009 warning: text before the first header | There is text before the first header; begin the return with `## Status`.
  | The return is the four sections; a parser that reads from the top stumbles over anything before them. | ##
  Status\nstate: SUCCESS ≠ Here is my report:\n\n## Status\nstate: SUCCESS
RET016 warning: key in a bullet | The key `{key}` stands in a bullet; write `{key}: …` without `-`. | state: SUCCESS ≠ -
  state: SUCCESS
RET017 warning: key in bold | The key `{key}` is decorated; write `{key}: …` without markup. | state: SUCCESS ≠
  **state**: SUCCESS
RET020 error: key twice | The key `{key}` stands here a second time, with another value; keep one of them. | A parser
  reads one of the two, and nobody knows which. | state: ERROR ≠ state: ERROR\nstate: SUCCESS
RET021 error: key spelled otherwise | The key is {value}; write it exactly as `{key}:`. | Parsers look for the exact key
  and take it for missing. | state: SUCCESS ≠ State: SUCCESS
RET023 warning: optional key spelled otherwise | The key is {value}; write it exactly as `{key}:`. | error_code:
  E_TOOL_FAILURE ≠ Error code: E_TOOL_FAILURE
RET024 error: entry without its bullet | This entry has no bullet: {value}; write it as `- path`. | The section is a
  bullet list of files: a parser drops any other line. | files_created:\n- src/api.py ≠ files_created:\nsrc/api.py
# ## Status
RET015 warning: `summary` is more than one sentence | `summary` has {count} sentences; write one and move the rest to
  the other sections. | The contract asks for one sentence: it is a line in a list of many returns. | summary: Built the
  API; all tests pass. ≠ summary: Built the API. All tests pass.
RET018 error: several keys on one line | The key `{key}` stands on the line of another key; give it a line of its own. |
  Keys stand one per line; the second key would be read as part of the first value. | state: SUCCESS\nsummary: Built the
  API. ≠ state: SUCCESS, summary: Built the API.
RET019 warning: line is not `key: value` | This line of `## Status` is not `key: value` and is left aside; keep each
  value on the line of its key. | Keys stand one per line as `key: value`; a parser drops or misreads any other line. |
  summary: Built the API. ≠ summary: Built\nthe API.
RET022 warning: `attempt` is not a positive integer | `attempt` is {value}; agentwatch understands it only as an integer
  from 1 on. | `attempt` is not of the contract; agentwatch counts retries by it. | attempt: 2 ≠ attempt: second
# ## Deliverables
RET030 error: no deliverables listed | `## Deliverables` has no bullet; list the files, or write `- (none)`. | An empty
  section leaves open whether there are no files or the list was forgotten. | - (none) ≠ ## Deliverables\n\n## Evidence
RET031 warning: deliverable is no bullet | This line of `## Deliverables` is no deliverable and is left aside; write `-
  path — description`. | The section is a bullet list of files: a parser drops any other line. | - src/api.py — the API
  ≠ I wrote src/api.py.
RET032 error: deliverable without a description | This deliverable has no description; write `- path — description`. |
  Each file has a path and a one-line description, so that nobody has to open it to know what it is. | - src/api.py —
  the API ≠ - src/api.py
RET033 error: deliverable without a path | This deliverable starts with {value}, which is no path; write `- path —
  description`. | A deliverable is a file; without its path it cannot be found. | - src/api.py — the API ≠ - The new API
  — all endpoints
RET034 warning: description of several lines | This line continues the deliverable above; keep its description on one
  line. | The contract asks for a one-line description: a parser reads line by line. | - src/api.py — the API and its
  tests ≠ - src/api.py — the API\n  and its tests
# ## Evidence
RET040 error: no evidence listed | `## Evidence` has no bullet; list what the result rests on, or write `- (none)`. | An
  empty section leaves open whether there is no evidence or the list was forgotten. | - pytest: 41 passed ≠ ##
  Evidence\n\n## Runtime Attestation
RET041 warning: evidence is no bullet | This line of `## Evidence` is no bullet and is left aside; write `- pointer`. |
  The section is a bullet list of pointers: a parser drops any other line. | - pytest: 41 passed ≠ All tests pass.
# ## Runtime Attestation
RET056 error: paths on the line of their key | `{key}` has its value on its own line; put each path on a line of its own
  below, as `- path`. | It is a list key followed by one path per bullet line; a parser finds no list here. |
  files_created:\n- src/api.py ≠ files_created: src/api.py, src/db.py
RET057 warning: list without a line | `{key}` has no line below it; write `- (none)`. | A list without a line leaves
  open whether there are no files or the list was cut off. | files_modified:\n- (none) ≠ files_modified:
RET058 error: more than a path | This line of `{key}` holds more than one path: {value}; write one path and nothing
  else. | There is one path per bullet line; anything beside it is read as part of the path. | - src/api.py ≠ -
  src/api.py, src/db.py
RET059 error: attested path not repo-relative | The path {value} in `{key}` is not repo-relative: {reason}; write it
  from the root of the repository. | Paths in the attestation must be repo-relative: they are checked in the workspace.
  | - src/api.py ≠ - /home/me/shop/src/api.py
RET060 warning: path written otherwise | This line of `{key}` is not plain `- path`; remove the markup, or write `-
  (none)` for an empty list. | - src/api.py ≠ * `src/api.py`
RET061 warning: line is neither key nor list | This line of `## Runtime Attestation` is neither `key: value` nor `-
  path` below a list; it is left aside. | The section is read by a parser: it drops or misreads any other line. |
  files_created:\n- src/api.py ≠ I created src/api.py.
RET062 error: `limitations` is no list | `limitations` has its value on its own line; put each limitation on a line of
  its own below, as `- …`. | `limitations` is one bullet list. | limitations:\n- No tests. ≠ limitations: No tests.
# Guidance by state
RET063 warning: partial without limitations | The state is `PARTIAL`, but the attestation has no `limitations`; list
  what is left to do. | A partial return includes the completed subset plus explicit limitations and next-step guidance.
  | limitations:\n- The docs are not written. ≠ state: PARTIAL (and no `limitations`)
RET064 warning: partial without a next step | The state is `PARTIAL`, but nothing says what comes next; add a
  `retry_hint`, or say it in `limitations`. | A partial return includes the completed subset plus explicit limitations
  and next-step guidance. | limitations:\n- No docs: write them after the review. ≠ limitations:\n- No docs.
ERR007 warning: error keys on success | The state is `SUCCESS`, but `{key}` speaks of an error; leave it out or report
  another state. | A successful return omits error-oriented keys, so that nobody retries what is done. | state: SUCCESS
  ≠ state: SUCCESS\nerror_code: E_TOOL_FAILURE
# Error Return Format (MVP)
ERR001 error: `retry_recommended` missing | The state is `ERROR`, but `retry_recommended` is missing; add
  `retry_recommended: yes` or `no`. | It is required when the state is ERROR: the parent decides retry, abort or
  escalate by it. | state: ERROR\nretry_recommended: no ≠ state: ERROR
ERR004 warning: `retry_hint` missing | A retry is recommended, but `retry_hint` is missing; say what to change before
  it. | A retry that changes nothing fails again; the hint is what the amended handoff is made of. | retry_recommended:
  yes\nretry_hint: Pass the schema path. ≠ retry_recommended: yes
ERR005 warning: `error_code` missing | The state is `ERROR`, but `error_code` is missing; add a stable identifier such
  as `E_TOOL_FAILURE`. | A machine routes by the code; a summary cannot be routed by. | state: ERROR\nerror_code:
  E_TOOL_FAILURE ≠ state: ERROR
ERR006 warning: `error_code` is no identifier | `error_code` is {value}; write a stable identifier without spaces, such
  as `E_TOOL_FAILURE`. | A machine routes by the code, so it must be the same each time. | error_code: E_TOOL_FAILURE ≠
  error_code: the tool failed
# summary (required)
SUB007 error: `summary` too long | `summary` has {tokens} tokens ({characters} characters, 4 to a token); shorten it
  below 100. | The summary protects the orchestrator's context window. The document counts a token as four characters. |
  up to 400 characters ≠ more than 500 characters
SUB008 warning: `summary` is not 2 to 5 sentences | `summary` has {count}; write 2 to 5 sentences. | One sentence leaves
  out what was done or how it went; more than five are no summary. | "summary": "Built the API. All tests pass." ≠
  "summary": "Done."
SUB009 warning: `summary` rather long | `summary` has {tokens} tokens ({characters} characters, 4 to a token); shorten
  it below 100. | The document says fewer than 100 tokens, about 400 characters: up to 500 a tokenizer may still agree.
  | up to 400 characters ≠ 401 to 500 characters
# artifacts (required)
SUB012 error: no artifacts | `artifacts` is empty though the status is `{status}`; list the files that were created. |
  The list can be empty only if the status is failed or blocked: otherwise there is nothing to show. | "status":
  "failed", "artifacts": [] ≠ "status": "completed", "artifacts": []
SUB020 error: artifact path not relative | The artifact path {value} is not relative to the project: {reason}; write it
  from the project's root. | The path is looked up from the project's root, possibly in another checkout. | "path":
  "plans/api.md" ≠ "path": "/home/me/shop/plans/api.md"
# metadata (required)
SUB042 warning: `delegation_depth` disagrees with `delegation_path` | `delegation_depth` is {depth}, but a path of
  {length} elements means {expected}; the path is trusted. | Orchestrator, command and agent are a path of three at
  depth 1: the depth is the length less two. | "delegation_depth": 1, "delegation_path": ["orchestrator", "plan",
  "planner"] ≠ (the same with `"delegation_depth": 2`)
SUB047 error: `metadata.delegation_path` empty | `metadata.delegation_path` is empty; list the agents from the
  orchestrator to this one. | The path from the orchestrator to this agent has at least this agent in it. |
  "delegation_path": ["orchestrator", "plan", "planner"] ≠ "delegation_path": []
SUB062 warning: `attempt` is not a positive integer | `attempt` is {value}; agentwatch understands it only as an integer
  from 1 on. | `attempt` is not of the contract; agentwatch counts retries by it. | "attempt": 2 ≠ "attempt": "second"
# errors (optional)
SUB050 error: `errors` missing | `errors` is missing or empty though the status is `{status}`; add objects that say what
  went wrong. | Errors are required if the status is not completed: they are what a retry is decided by. | "status":
  "failed", "errors": [{…}] ≠ "status": "failed"
SUB061 warning: `errors` though completed | `errors` is filled though the status is `completed`; leave it out, or report
  `partial` or `failed`. | Errors beside a success leave open which of the two holds; tell what was overcome in the
  summary. | "status": "completed", "errors": [] ≠ "status": "completed", "errors": [{…}]
# return-meta dialect
MET003 error: unknown status | `status` is {value}, which nobody knows; use a stage word, `in_progress`, `partial`,
  `blocked` or `failed`. | A status that nobody understands must not pass for success. | "status": "implemented" ≠
  "status": "hmm"
MET004 warning: status is a new stage word | `status` is {value}, a stage word that is not known; it is read as
  completed. | Workspaces invent stage words; a verb of making in the past tense means that the stage succeeded. |
  "status": "implemented" ≠ "status": "translated"
MET005 warning: `status` in another letter case | `status` is {value}; write it as `{meant}`. | "status": "researched" ≠
  "status": "Researched"
MET011 warning: `summary` too long | `summary` has {tokens} tokens ({characters} characters, 4 to a token); shorten it
  below 100. | The summary protects the orchestrator's context window from bloat. | up to 400 characters ≠ more than 400
  characters
MET012 warning: no artifacts though finished | `artifacts` {how} though the status is `{status}`; list the files that
  were created. | What a finished stage created can only be checked if it is listed. | "status": "planned", "artifacts":
  [{…}] ≠ "status": "planned"
MET014 warning: artifact as a plain string | An entry of `artifacts` is the string {value}; write an object with `type`,
  `path` and `summary`. | A plain path says neither what kind of file it is nor what it holds. | [{"type": "plan",
  "path": "plan.md", "summary": "…"}] ≠ ["plan.md"]
MET017 warning: `artifacts[].type` has a value that is not allowed | `artifacts[].type` is {value}; it must be `plan`,
  `report`, `summary`, `implementation` or `documentation`. | The document knows five types; others are shown as they
  are. | "type": "report" ≠ "type": "handoff"
MET018 warning: artifact path not relative | The artifact path {value} is not relative to the project: {reason}; write
  it from the project's root. | The path is looked up from the project's root, possibly in another checkout. | "path":
  "plan.md" ≠ "path": "/home/me/shop/plan.md"
MET019 warning: field of an artifact is not a string | `{key}` of an artifact is {value}; it must be a string. | Readers
  rely on `type`, `path` and `summary` being strings; anything else makes them fail or guess. | "path": "plan.md" ≠
  "path": ["plan.md"]
MET022 warning: `session_id` missing | `session_id` is missing or empty; add it as a string. | Attempts are told apart
  by their session. | "session_id": "sess_1735460684_a1b2c3" ≠ (no `session_id`)
MET023 warning: agent unknown | Neither `agent_type` nor `delegation_path` names the agent; add them to `metadata`. |
  The task is known by its directory and its agent. | "agent_type": "planner" ≠ "metadata": {"session_id": "…"}
MET024 warning: `delegation_depth` disagrees with `delegation_path` | `delegation_depth` is {depth}, but a path of
  {length} elements means {expected}; the path is trusted. | Most returns of this dialect write depth 1 whatever the
  path. | "delegation_depth": 1, "delegation_path": ["main", "plan", "planner"] ≠ "delegation_depth": 3, …
MET025 warning: `delegation_path` is not an array of strings | `delegation_path` is, or holds, {value}; it must be an
  array of strings. | It places the return in the tree; what is no string is left aside. | ["orchestrator", "plan",
  "planner"] ≠ "orchestrator/plan/planner"
MET026 warning: metadata of another type | `{key}` is {value}; write ids and agents as strings, and `delegation_depth`
  as an integer. | Readers rely on the type; the value is left aside. | "agent_type": "planner" ≠ "agent_type":
  ["planner"]
MET030 warning: `errors` is no array of objects | `errors` holds {value}; write an array of objects with `type`,
  `message`, `recoverable`, `recommendation`. | The recommendation of an error is the hint that a retry starts from. |
  "errors": [{"message": "…"}] ≠ "errors": ["it broke"]
MET031 warning: field of an error has another type | `{key}` of an error is {value}; write `recoverable` as a boolean,
  and the rest as strings. | The recommendation of an error is the hint that a retry starts from. | "recoverable": true
  ≠ "recoverable": "yes"
MET033 warning: phases are no number | `{key}` is {value}; write the number of phases. | Progress is counted in phases;
  a list is counted by its length, anything else is left aside. | "phases_completed": 2 ≠ "phases_completed": [1, 2]
MET034 warning: `blockers` cannot be read | `{key}` holds {value}; write an array of strings, or of objects with a
  `description`. | Nobody can remove a blocker that cannot be read. | "blockers": ["The key is missing."] ≠ "blockers":
  [17]
MET035 warning: blocked by nothing | The status is `blocked`, but neither `blockers` nor `errors` says by what; name it.
  | Nobody can remove what is not named. | "status": "blocked", "blockers": ["The key is missing."] ≠ "status":
  "blocked"
MET036 warning: review without a reason | `requires_user_review` is true without a `review_reason`; say what the user is
  to decide. | The operator is asked to look, and must know at what. | "requires_user_review": true, "review_reason":
  "Two designs." ≠ "requires_user_review": true
MET037 warning: `attempt` is not a positive integer | `attempt` is {value}; agentwatch understands it only as an integer
  from 1 on. | `attempt` is not of the contract; agentwatch counts retries by it. | "attempt": 2 ≠ "attempt": "second"
# 4.1. report_metadata (Required)
REP020 warning: low confidence | `report_metadata.confidence_level` is {value}, below {threshold}; have a human look at
  the result. | The level exists so that low-confidence results are flagged for review by a human. | "confidence_level":
  0.9 ≠ "confidence_level": 0.2
REP024 error: `report_metadata.error_message` missing | The status is `failed`, but `report_metadata.error_message` is
  missing or empty; describe the error. | The error message is required if the status is failed: it is what a retry is
  decided by. | "status": "failed", "error_message": "It broke." ≠ "status": "failed", "error_message": null
REP025 warning: a count of `report_metadata` is negative | `report_metadata.{key}` is {value}; it must be 0 or more. |
  Neither tokens nor seconds can be fewer than none: a sum over many reports would be wrong. | "token_usage": 4250 ≠
  "token_usage": -1
REP026 warning: `report_metadata.error_message` though completed | `report_metadata.error_message` is filled though the
  status is `completed`; drop it or report `failed`. | An error beside a success leaves open which of the two holds. |
  "status": "completed", "error_message": null ≠ "status": "completed", "error_message": "It broke."
REP051 warning: `attempt` is not a positive integer | `attempt` is {value}; agentwatch understands it only as an integer
  from 1 on. | `attempt` is not of the contract; agentwatch counts retries by it. | "attempt": 2 ≠ "attempt": "second"
# 4.2. findings (Required)
REP032 warning: `findings.context_map` is not an array of rows | `findings.context_map` is {value}; it must be an array
  of rows. | Readers rely on `findings.context_map` being an array of rows; anything else makes them fail or guess. |
  "context_map": [["Signs.", "repo://src/auth.py:45-120"]] ≠ "context_map": {"auth": "src/auth.py"}
REP033 warning: row of `findings.context_map` is no pair | A row of `findings.context_map` is {value}; each must be a
  pair: a description, and a pointer or null. | The map is compact because every row has the same two elements. |
  ["Signs the tokens.", "repo://src/auth.py:45-120"] ≠ ["Signs the tokens."]
REP034 warning: context without a description | The first element of this row of `findings.context_map` is {value}; it
  must be a string that describes it. | A pointer without a description forces the reader to open it. | ["Signs the
  tokens.", "repo://src/auth.py:45-120"] ≠ [null, "repo://src/auth.py:45-120"]
REP035 warning: pointer is not `repo://path:first-last` | The pointer {value} is neither null nor
  `repo://path:first-last`; write path and lines that way. | A pointer in the standard form can be opened by a program.
  | "repo://src/auth.py:45-120" ≠ "src/auth.py, line 45"
REP036 warning: pointer's lines are not in order | The pointer {value} does not name lines from 1 on in rising order;
  correct the range. | A range that ends before it starts shows nothing. | "repo://src/auth.py:45-120" ≠
  "repo://src/auth.py:120-45"
# 4.5. blockers (Optional, Required if status is 'blocked')
REP046 error: blocked without blockers | The status is `blocked`, but `blockers` is missing or empty; name what blocks
  the task. | The blockers are required if the status is blocked: nobody can remove what is not named. | "status":
  "blocked", "blockers": ["The key is missing."] ≠ "status": "blocked", "blockers": []
REP047 warning: blockers though not blocked | `blockers` is filled though the status is `{status}`; move them to
  `identified_gaps` or report `blocked`. | The field should only be populated if the status is blocked; else nobody
  knows whether the task waits. | "status": "completed", "blockers": [] ≠ "status": "completed", "blockers": ["No key."]
# 2. Standard Report Structure
REP048 warning: `recommendations` missing | `recommendations` is missing; add it as an array of strings. | They are
  strongly recommended: by them the orchestrator knows the next step. An empty array says none. | "recommendations": []
  ≠ (no `recommendations`)
REP049 warning: `blockers` missing | `blockers` is missing; add it as an array of strings. | They are strongly
  recommended: an empty array says that nothing blocks, a missing one says nothing. | "blockers": [] ≠ (no `blockers`)
# 4.4. identified_gaps (Optional)
REP050 warning: gaps of an unsuccessful task | `identified_gaps` is filled though the status is `{status}`; say in
  `blockers` what went wrong. | Gaps are for issues found while a task succeeds; a reader of a failed one looks for the
  cause elsewhere. | "status": "completed", "identified_gaps": ["Tests."] ≠ "status": "failed", "identified_gaps":
  ["Tests."]
"""
