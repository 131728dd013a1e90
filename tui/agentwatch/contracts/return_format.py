"""The return-format: four Markdown sections with `key: value` lines and bullet lists, and its error keys.

Whatever else Markdown allows may stand between the lines, and is left aside. A fence is read only where what its
section must have stands in it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from pydantic import Field

from agentwatch.contracts.checks import brief, briefs, sentences, shared, tells_a_next_step, why_not_relative
from agentwatch.contracts.fields import Model, Table, row
from agentwatch.contracts.findings import MAX_ENTRIES, Findings, shown
from agentwatch.contracts.markdown import Bullet, KeyLine, Spans, bullet, entry, heading, is_rule, unfenced
from agentwatch.contracts.return_sections import (
    ATTESTATION,
    DELIVERABLES,
    EVIDENCE,
    FILE_KEYS,
    HEADERS,
    LEVEL,
    LIST_KEYS,
    STATUS,
    STATUS_KEYS,
    TEXT_KEYS,
    Sections,
    is_attestation_key,
)
from agentwatch.contracts.shapes import Contract, Opened, Outcome, Return
from agentwatch.text import folded

if TYPE_CHECKING:
    from collections.abc import Callable

    from agentwatch.contracts.json_text import Location

_MISSING: Final = {STATUS: "RET001", DELIVERABLES: "RET002", EVIDENCE: "RET003", ATTESTATION: "RET004"}
_OUTCOMES: Final = {"SUCCESS": Outcome.COMPLETED, "PARTIAL": Outcome.PARTIAL, "ERROR": Outcome.FAILED}
_CLAIMS: Final = "The list is what the claims of the return are checked by."
_LIST: Final = "a list key with one `- path` a line, or `- (none)`"
_INTEGER: Final = re.compile(r"[1-9][0-9]{0,5}\Z")
_ATTESTED: Final = (*TEXT_KEYS, *LIST_KEYS)
_REQUIRED: Final = ("state", "summary", "retry_recommended", *TEXT_KEYS, *FILE_KEYS)
_OF_RULES: Final = ("-", "*", "_")
_SHORT_KEYS: Final = ("state", "retry_recommended", "error_code", "attempt")
_WORD_KEYS: Final = ("state", "retry_recommended")
_MARKED_WORD: Final = re.compile(r"(\*\*|__|[*_`])(\w+)\1\Z")
_KNOWN: Final = "|".join(STATUS_KEYS[:5])
_KEY_IN_SHORT: Final = re.compile(rf"[\s,;|]({_KNOWN})\s{{0,3}}:")
_KEY_IN_LONG: Final = re.compile(rf"[,;|]\s{{0,3}}({_KNOWN})\s{{0,3}}:\s")
_ANY_KEY: Final = re.compile(r"[ \t]*[A-Za-z][\w .-]{0,60}:(?:\s|\Z)")
_LABEL: Final = re.compile(r"\s*(?:\*\*|__)[^*_]+(?:\*\*|__):?\s*\Z")
_NONE: Final = "(none)"
LIKE_NONE: Final = frozenset({_NONE, "none", "(none).", "none.", "n/a", "n/a.", "(n/a)", "-", "[]", "(empty)"})
NO_FILES: Final = re.compile(
    r"(?=\W{0,2}(?:there (?:are|is|was|were) )?(?:no|none|nothing|n/a|not applicable)(?:[\s.,:;)]|\Z))"
    r"(?!.*(?:[\\/](?!a\b)|\w\.\w|\b(?:apart|besides?|but|except|only|other)\b))",
    re.IGNORECASE,
)
"""A sentence that there are no files; one that names a file, or an exception, is none."""
_SEPARATOR: Final = re.compile(r"\s(?:\u2014|\u2013|--?|\u2192|=>)\s|:\s")
_DRESS: Final = re.compile(r"(?:\[[ xX-]\][ \t]+)?(?:(\*\*|\*)(?=[^*\s])(.+?)\1(?!\*))?", re.DOTALL)
_TICKED: Final = re.compile(r"`([^`]+)`(.*)\Z", re.DOTALL)
_LINK: Final = re.compile(r"\[[^\]]*\]\(<?([^()<>]+)>?\)(.*)\Z", re.DOTALL)
_QUOTED: Final = re.compile(r"(?:[\"\u201c]([^\"\u201d]+)[\"\u201d]|'([^']+)')(.*)\Z", re.DOTALL)
LOOKS_LIKE_PATH: Final = re.compile(r"[^\s]+\Z|.*[/\\].*|.*\.[A-Za-z0-9]{1,8}\Z", re.DOTALL)
_PLAIN_PATH: Final = re.compile(r"[A-Za-z0-9_.-]*[./][A-Za-z0-9_./-]*\Z")
IS_PATH: Final = re.compile(r"\S*(?:[/\\]|\.[A-Za-z0-9])\S*\Z")
BARE_PATH: Final = re.compile(
    r"\s*`?(?!</?\w|\w+://)[^\s`>|]*(?:[/\\]|\.[A-Za-z0-9])[^\s`]*`?(?:\s+(?:\u2014|\u2013|--?|\u2192|=>)\s|\s*\Z)"
)
_MORE_THAN_A_PATH: Final = re.compile(r"\s(?:\u2014|\u2013|--?|\u2192|=>|and)\s|[:,;]\s|\s\([^()]{0,200}\)\Z")


class StatusSection(Model):
    """`## Status`, with the keys of error-propagation."""

    state: Literal["SUCCESS", "ERROR", "PARTIAL"] | None = row(
        "SUCCESS",
        "missing RET010, value RET011, case RET012",
        "The state decides what the parent does next.",
        other="DONE",
    )
    summary: str | None = row(
        "Built the API.",
        "missing RET013, empty RET014",
        "The summary is what the parent and the operator read first.",
        needs="one sentence",
    )
    error_code: str | None = None
    retry_recommended: Literal["yes", "no"] | None = row(
        "yes",
        "value ERR002, case ERR003",
        "The parent decides retry, abort or escalate by it.",
        section="Error Return Format (MVP)",
        other="maybe",
    )
    retry_hint: str | None = None
    task_id: str | None = None
    attempt: Annotated[int, Field(ge=1)] | None = None


class Deliverable(Model):
    """A file and what it is."""

    path: str
    description: str | None = None


class AttestationSection(Model):
    """`## Runtime Attestation`. None: the key is not there; an empty list: `- (none)`."""

    runtime_model_reported: str | None = row(
        "openai/gpt-5.2",
        "missing RET050, empty RET051",
        "The parent must know which model did the work.",
        needs="the model's name",
    )
    runtime_mode_reported: str | None = row(
        "architect",
        "missing RET052, empty RET053",
        "The parent must know in which mode the work was done.",
        needs="the mode's name",
    )
    files_created: list[str] | None = row(["src/api.py"], "missing RET054", _CLAIMS, needs=_LIST)
    files_modified: list[str] | None = row(["(none)"], "missing RET055", _CLAIMS, needs=_LIST)
    limitations: list[str] | None = None


class ReturnFormat(Model):
    """The whole return. None: the section is not there."""

    status: StatusSection | None = row(None, "", "It says how the task ended.", section="## Status")
    deliverables: list[Deliverable] | None = None
    evidence: list[str] | None = None
    attestation: AttestationSection | None = row(
        None, "", "It says who did the work.", section="## Runtime Attestation"
    )


TABLE: Final = Table(Contract.RETURN_FORMAT, ReturnFormat, lines=True)


def judge(lines: list[str], sections: Sections, findings: Findings, *, embedded: bool = False) -> Opened:
    """Read the sections; every rule they break is a finding."""
    found = sections.by_header
    _judge_headers(sections, findings, embedded=embedded)

    raw: dict[str, Any] = {}
    # What was found without its header is read, and not judged: the missing header says it all.
    spans = sections.spans(STATUS) or [(sections.start, sections.first)]
    swallowed = STATUS in found and DELIVERABLES not in found
    keys = _read_status(lines, spans, findings if STATUS in found else Findings(), swallowed=swallowed)
    evidence, attestation = sections.spans(EVIDENCE), sections.spans(ATTESTATION)
    if evidence and not attestation:
        # The keys of an attestation whose header is missing end the evidence.
        first, end = evidence[0]
        cut = next((index for index in range(first, end) if is_attestation_key(lines[index])), end)
        evidence, attestation = [(first, cut)], [(cut, end)]
    attested = _read_attestation(lines, attestation, findings if ATTESTATION in found else Findings())
    unjudged: dict[str, Any] = {}
    (raw if STATUS in found else unjudged)["status"] = _status_values(keys, findings)
    (raw if ATTESTATION in found else unjudged)["attestation"] = attested.values | attested.lists

    if DELIVERABLES in found:
        spans = sections.spans(DELIVERABLES)
        raw["deliverables"] = _read_deliverables(lines, spans, findings, swallowed=EVIDENCE not in found)
    if EVIDENCE in found:
        raw["evidence"] = _read_evidence(lines, evidence, findings)

    model = TABLE.read(ReturnFormat, raw, findings)
    if STATUS in found:
        _judge_status(keys, attested, model, findings, whole=ATTESTATION in found)
    if unjudged:
        model = TABLE.read(ReturnFormat, {**raw, **unjudged}, Findings())

    def line_of(place: Location) -> int:
        """The line of a place, or of what encloses it."""
        places: dict[Location, int] = {(): sections.start}
        for header, name, read in ((STATUS, "status", keys), (ATTESTATION, "attestation", attested)):
            if header in found:
                places[name,] = found[header].line
            places |= {(name, key): line for key, line in read.lines.items()}
        around = (place[:end] for end in range(len(place), -1, -1))
        return findings.first_line + next(places[each] for each in around if each in places)

    return Opened(_summary_of(model, keys), findings.made(line_of), not _is_cut(sections, attested), model)


def _judge_headers(sections: Sections, findings: Findings, *, embedded: bool) -> None:
    found = sections.by_header
    for header in HEADERS:
        if header not in found:
            findings.add(_MISSING[header], ())
    for section in sections.repeated:
        findings.add_in("RET008", section.line, header=f"## {section.header}")
    for header, section in found.items():
        line = section.line
        text = section.text
        if section.level != LEVEL:
            findings.add_in("RET005", line, header=header, level=section.level)
        if text != header:
            rule = "RET006" if folded(text) == folded(header) else "RET007"
            findings.add_in(rule, line, value=shown("#" * section.level + " " + text), header=f"## {header}")
    if sections.preamble and not embedded and STATUS in found:
        findings.add_in("RET009", sections.start)


def _status_values(keys: Keys, findings: Findings) -> dict[str, Any]:
    attempt = keys.values.get("attempt")
    is_number = attempt is not None and _INTEGER.match(attempt)
    if attempt is not None and not is_number:
        findings.add_in("RET022", keys.lines["attempt"], value=shown(attempt))
    return {**keys.values, "attempt": int(attempt) if attempt and is_number else None}


def _judge_status(keys: Keys, attested: Keys, model: ReturnFormat, findings: Findings, *, whole: bool) -> None:
    status = model.status or StatusSection()
    values = keys.values
    summary = values.get("summary")
    if summary and (count := sentences(summary)) > 1:
        findings.add("RET015", ("status", "summary"), count=count)
    code, hint = values.get("error_code"), values.get("retry_hint")
    if code and any(character.isspace() for character in code):
        findings.add("ERR006", ("status", "error_code"), value=shown(code))
    if status.state == "ERROR":
        if "retry_recommended" not in values:
            findings.add("ERR001", ("status",))
        if not code:
            findings.add("ERR005", ("status", "error_code"))
    elif status.state == "SUCCESS":
        speaking = {"error_code": code, "retry_hint": hint, "retry_recommended": status.retry_recommended == "yes"}
        first = next((key for key in values if speaking.get(key)), None)
        if first is not None:
            findings.add("ERR007", ("status", first), key=first)
    elif status.state == "PARTIAL" and whole:
        limitations = attested.lists.get("limitations")
        if not limitations:
            findings.add("RET063", ("attestation",))
        elif not hint and not tells_a_next_step(" ".join((summary or "", *limitations))):
            findings.add("RET064", ("attestation", "limitations"))
    if status.retry_recommended == "yes" and status.state != "SUCCESS" and not hint:
        findings.add("ERR004", ("status", "retry_hint"))


def _is_cut(sections: Sections, attested: Keys) -> bool:
    """Whether the text ends in the middle: what is missing is exactly what would have come last."""
    if len(sections.by_header) < len(HEADERS):
        present = [header in sections.by_header for header in HEADERS]
        return not any(present[present.index(False) :])
    required = [key in attested.values for key in (*TEXT_KEYS, *FILE_KEYS)]
    if all(required) or any(required[required.index(False) :]):
        return False
    last = max(section.line for section in sections.by_header.values())
    return sections.by_header[ATTESTATION].line == last


def _summary_of(model: ReturnFormat, keys: Keys) -> Return:
    status = model.status or StatusSection()
    attestation = model.attestation or AttestationSection()
    outcome = _OUTCOMES.get(status.state or "")
    return Return(
        contract=Contract.RETURN_FORMAT,
        reported_state=shared(brief(keys.values.get("state"))),
        outcome=outcome,
        task_id=status.task_id or None,
        attempt=status.attempt,
        agent=shared(attestation.runtime_mode_reported),
        summary=brief(status.summary),
        error_code=brief(status.error_code),
        error_message=brief(status.summary) if outcome is Outcome.FAILED else None,
        retry_recommended=None if status.retry_recommended is None else status.retry_recommended == "yes",
        retry_hint=brief(status.retry_hint),
        model=shared(attestation.runtime_model_reported),
        mode=shared(attestation.runtime_mode_reported),
        files_created=briefs(attestation.files_created or ()),
        files_modified=briefs(attestation.files_modified or ()),
        limitations=briefs(attestation.limitations or ()),
        artifacts=briefs([deliverable.path for deliverable in model.deliverables or ()]),
    )


@dataclass(slots=True)
class Keys:
    """Values of keys, the index of the line of each, and the entries of lists."""

    values: dict[str, str] = field(default_factory=dict)
    lines: dict[str, int] = field(default_factory=dict)
    lists: dict[str, list[str]] = field(default_factory=dict)

    def put(self, key: str, value: str, index: int, findings: Findings) -> bool:
        """Keep the first value of a key; another one is a finding. True where it was kept."""
        if key in self.values:
            if key in LIST_KEYS or self.values[key] != value:
                findings.add_in("RET020", index, key=key)
            return False
        self.values[key] = value
        self.lines[key] = index
        return True


def _read_status(lines: list[str], spans: Spans, findings: Findings, *, swallowed: bool = False) -> Keys:
    """The keys of `## Status`.

    `swallowed`: the header of the next section is missing, so what stands behind an empty line is not of the status.
    """
    keys = Keys()
    after_blank = False
    for index in _visible(lines, spans, lambda line: _known(line, STATUS_KEYS)):
        text = lines[index]
        if not text.strip():
            after_blank = bool(keys.values)
            continue
        told = _known(text, STATUS_KEYS)
        if told is not None:
            _judge_dress(told, index, findings)
            _put_split(keys, told.name, told.value, index, findings)
        elif not (_ANY_KEY.match(text) or _is_no_text(text) or (swallowed and after_blank)):
            findings.add_in("RET019", index)
            above = next((key for key in _WORD_KEYS if keys.lines.get(key) == index - 1), None)
            if above is not None and keys.values[above] and _indent(text) > _indent(lines[index - 1]):
                # The value goes on: one word is not what it says.
                keys.values[above] += f" {text.strip()}"
    return keys


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _visible(lines: list[str], spans: Spans, counts: Callable[[str], object] = str.strip) -> list[int]:
    """The lines of a section outside of fences; inside, too, where nothing that counts stands outside."""
    outside, both = unfenced(lines, spans)
    return outside if len(outside) == len(both) or any(counts(lines[index]) for index in outside) else both


def _is_no_text(line: str) -> bool:
    """Whether a line only structures a section."""
    return is_rule(line) or heading(line) is not None


def _item(line: str) -> Bullet | None:
    found = bullet(line)
    return None if found is not None and found.text[:1] in _OF_RULES and is_rule(line) else found


def _known(line: str, known: tuple[str, ...]) -> KeyLine | None:
    """The key of the contract that a line holds, however it is spelled; None where it holds none."""
    told = entry(line)
    return told if told is not None and told.name in known else None


def _judge_dress(told: KeyLine, index: int, findings: Findings) -> None:
    name = told.name
    if told.key == name and told.plain and not (told.bullet or told.decorated):
        return
    if told.bullet:
        findings.add_in("RET016", index, key=name)
    if told.decorated:
        findings.add_in("RET017", index, key=name)
    if told.key != name or not told.plain:
        rule = "RET021" if name in _REQUIRED else "RET023"
        findings.add_in(rule, index, value=shown(told.key if told.plain else f"{told.key} ="), key=name)


def _put_split(keys: Keys, name: str, value: str, index: int, findings: Findings) -> None:
    """Put a value, and apart from it any further key that was written on the same line."""
    for _ in STATUS_KEYS:
        pattern = _KEY_IN_SHORT if name in _SHORT_KEYS else _KEY_IN_LONG
        match = pattern.search(value) if ":" in value else None
        if match is None:
            marked = _MARKED_WORD.match(value) if name in _WORD_KEYS else None
            if marked is not None:
                findings.add_in("RET017", index, key=name)
            keys.put(name, marked[2] if marked else value, index, findings)
            return
        keys.put(name, value[: match.start()].strip(" \t,;|"), index, findings)
        findings.add_in("RET018", index, key=match[1])
        name, value = match[1], value[match.end() :].strip()


def _read_deliverables(lines: list[str], spans: Spans, findings: Findings, *, swallowed: bool) -> list[dict[str, str]]:
    """Deliverables with `path` and `description`. `swallowed` as for the status."""
    found: list[dict[str, str]] = []
    any_bullet = False
    indent: int | None = None
    for index in _visible(lines, spans):
        text = lines[index]
        if not text.strip():
            if swallowed and any_bullet:
                break
            continue
        item = _item(text)
        if indent is not None and text[:1] in " \t" and (item is None or item.indent > indent + 1):
            findings.add_in("RET034", index)
        elif item is None:
            if BARE_PATH.match(text):
                findings.add_in("RET024", index, value=shown(text.strip()))
            elif not _is_no_text(text):
                findings.add_in("RET031", index)
        else:
            any_bullet = True
            indent = item.indent
            if NO_FILES.match(item.text):
                continue
            path, description = _split_deliverable(item.text)
            if item.text.rstrip("*_").endswith(":") and not IS_PATH.match(path):
                # The label of the bullets below it.
                findings.add_in("RET031", index)
                indent = None
                continue
            if not LOOKS_LIKE_PATH.match(path):
                findings.add_in("RET033", index, value=shown(path))
            elif not description:
                findings.add_in("RET032", index)
            found.append({"path": path, "description": description} if description else {"path": path})
    if not any_bullet:
        findings.add_in("RET030", spans[0][0] - 1)
    return found[:MAX_ENTRIES]


def _read_evidence(lines: list[str], spans: Spans, findings: Findings) -> list[str]:
    """Evidence pointers. Indented lines belong to their bullet."""
    found: list[str] = []
    any_bullet = False
    for index in _visible(lines, spans):
        text = lines[index]
        item = _item(text)
        if item is not None:
            any_bullet = True
            found += [] if folded(item.text) in LIKE_NONE else [item.text]
        elif text.strip() and not _is_no_text(text) and not (text[:1] in " \t" and found):
            findings.add_in("RET041", index)
    if not any_bullet:
        findings.add_in("RET040", spans[0][0] - 1)
    return found[:MAX_ENTRIES]


def _read_attestation(lines: list[str], spans: Spans, findings: Findings) -> Keys:
    """The keys and lists of `## Runtime Attestation`.

    Below a label, a remark or another bullet (`apart`) only what can be nothing but a path is an entry of a list.
    """
    attested = Keys()
    current: str | None = None
    indent: int | None = None
    after_blank = apart = False
    texts: dict[str, tuple[str, int]] = {}
    for index in _with_lists(lines, spans):
        text = lines[index]
        if not text.strip():
            after_blank = True
            continue
        told = _known(text, _ATTESTED)
        item = _item(text) if told is None else None
        if told is not None:
            _judge_dress(told, index, findings)
            current = _put_attested(attested, told.name, told.value, index, findings)
            indent, apart = None, False
        elif item is not None and current is not None:
            indent = item.indent if indent is None else min(item.indent, indent)
            below = item.indent > indent + 1
            if current in FILE_KEYS and (below or (apart and attested.lists[current])) and _is_remark(item.text, below):
                findings.add_in("RET061", index)
            elif current in FILE_KEYS:
                _put_path(attested.lists[current], current, item, index, findings)
            elif current in attested.lists and not below and folded(item.text) not in LIKE_NONE:
                attested.lists[current].append(item.text)
        elif _is_no_text(text) or _LABEL.match(text):
            apart = apart or not is_rule(text)
        elif item is None and _ANY_KEY.match(text):
            # Another key, not of the contract, and with it the list that begins here.
            apart = True
            current = "" if text.rstrip().endswith(":") else current
        elif current in FILE_KEYS and BARE_PATH.match(text) and not (after_blank and attested.lists[current]):
            findings.add_in("RET024", index, value=shown(text.strip()))
            attested.lists[current].append(text.strip().strip("`"))
        else:
            if current in FILE_KEYS and not attested.lists[current]:
                texts.setdefault(current, (text.strip(), index))
            elif not (current and text[:1] in " \t"):
                findings.add_in("RET061", index)
            apart = apart or after_blank
        after_blank = False
    _judge_lists(attested, texts, findings)
    return attested


def _judge_lists(attested: Keys, texts: dict[str, tuple[str, int]], findings: Findings) -> None:
    for key in FILE_KEYS:
        if attested.lists.get(key) == [] and not attested.values.get(key):
            if key in texts:
                # Words where the list should be; above a list they would introduce it.
                findings.add_in("RET024", texts[key][1], value=shown(texts[key][0]))
            else:
                findings.add_in("RET057", attested.lines[key], key=key)
    for entries in attested.lists.values():
        entries[:] = list(filter(None, entries))[:MAX_ENTRIES]


def _with_lists(lines: list[str], spans: Spans) -> list[int]:
    """The lines of the attestation outside of fences; inside, too, where all keys, or a list's bullets, stand there."""
    outside, both = unfenced(lines, spans)
    if len(outside) == len(both):
        return outside
    chosen = _visible(lines, spans, lambda line: _known(line, _ATTESTED))
    kept = set(chosen)
    bare: int | None = None
    for index in [*chosen, len(lines)]:
        told = _known(lines[index], _ATTESTED) if index < len(lines) else None
        if told is not None or index == len(lines):
            if bare is not None:
                kept |= {each for each in both if bare < each < index}
            bare = index if told is not None and not told.value and told.name in LIST_KEYS else None
        elif _item(lines[index]) is not None:
            bare = None
    return [index for index in both if index in kept]


def _put_attested(attested: Keys, name: str, value: str, index: int, findings: Findings) -> str | None:
    """Put a key of the attestation; the key whose list begins here, or None."""
    kept = attested.put(name, value, index, findings)
    if name in TEXT_KEYS:
        return None
    if not kept:
        # The entries of a repeated list are not mixed into the first.
        return ""
    attested.lists[name] = []
    if value:
        if name in FILE_KEYS:
            findings.add_in("RET056", index, key=name)
            if folded(value) not in LIKE_NONE:
                parts = re.split(r"\s*[,;]\s*", value.strip("[]"))
                attested.lists[name] += [part.strip("`'\" ") for part in parts]
        else:
            findings.add_in("RET062", index)
            attested.lists[name].append(value)
    return name


def _undressed(text: str) -> str:
    """A bullet's text without a checkbox and the emphasis of its first words."""
    match = _DRESS.match(text) if text[:1] in "[*" else None
    return (match[2] or "") + text[match.end() :] if match else text


def _split_deliverable(text: str) -> tuple[str, str]:
    """(path, description) of a deliverable; "" where there is none."""
    text = _undressed(text)
    marked = (_TICKED.match(text) or _LINK.match(text)) if text[:1] in "`[" else None
    if marked is not None:
        return marked[1].strip(), _SEPARATOR.sub("", marked[2], count=1).strip(" \t:\u2014\u2013-")
    match = _SEPARATOR.search(text)
    if match is None:
        # The contract names no separator: `src/api.py (the API)` has a path and a description.
        path, _, rest = text.partition(" ")
        return (path.rstrip(":"), rest.strip(" \t:\u2014\u2013-")) if IS_PATH.match(path) else (text.rstrip(":"), "")
    return text[: match.start()].strip(" "), text[match.end() :].strip()


def _is_remark(text: str, below: bool) -> bool:
    """Whether a bullet behind the words of a list, or `below` another bullet, is no entry of that list."""
    if folded(text) in LIKE_NONE:
        return False
    text = _undressed(text)
    marked = _marked_path(text)
    if marked is not None:
        return bool(marked[1].strip())
    words = text.split() or [""]
    if below:
        return IS_PATH.match(text) is None
    return len(words) > 1 and not (IS_PATH.match(words[0]) and IS_PATH.match(words[-1]))


def _marked_path(text: str) -> tuple[str, str] | None:
    """(the path in backticks, a link or quotes with which a text begins, the rest); None where it begins otherwise."""
    match = _TICKED.match(text) or _LINK.match(text) or _QUOTED.match(text)
    if match is None:
        return None
    return next(filter(None, match.groups()[:-1])).strip(), match.groups()[-1]


def _put_path(entries: list[str], key: str, item: Bullet, index: int, findings: Findings) -> None:
    """Put the path of a bullet below a list key of the attestation, and note how else it is written."""
    text = item.text
    if folded(text) in LIKE_NONE or NO_FILES.match(text):
        # An entry all the same, so that the list does not count as empty.
        entries.append("")
        if folded(text) != _NONE:
            findings.add_in("RET060", index, key=key)
        return
    if item.marker == "-" and _PLAIN_PATH.match(text) and not why_not_relative(text):
        entries.append(text)
        return
    path = _undressed(text)
    marked = _marked_path(path)
    more = _MORE_THAN_A_PATH.search(path)
    dressed = path != text or marked is not None or item.marker != "-"
    if marked is not None:
        path, more = marked[0], re.search(r"\S", marked[1])
    elif more is not None:
        path = path[: more.start()]
    if more is not None:
        findings.add_in("RET058", index, key=key, value=shown(text))
    elif dressed:
        findings.add_in("RET060", index, key=key)
    reason = why_not_relative(path)
    if reason is not None:
        findings.add_in("RET059", index, key=key, value=shown(path), reason=reason)
    entries.append(path)
