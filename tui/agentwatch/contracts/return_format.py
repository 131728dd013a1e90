"""The return-format: four Markdown sections with `key: value` lines and bullet lists; the rest is left aside."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated, Any, Final, Literal

from pydantic import BeforeValidator

from agentwatch.contracts.fields import Model, Required, Text, read_fields
from agentwatch.contracts.markdown import (
    ATTESTATION,
    DELIVERABLES,
    EVIDENCE,
    HEADERS,
    LEVEL,
    STATUS,
    Bullet,
    KeyLine,
    Sections,
    Spans,
    after_front_matter,
    bullet,
    entry,
    heading,
    is_rule,
    unfenced,
)
from agentwatch.contracts.rules import MAX_ENTRIES, Findings, Location, is_relative, outline, sentences
from agentwatch.contracts.shapes import Contract, OpenDocument, Outcome, Return
from agentwatch.text import folded

_OUTCOMES: Final = {"SUCCESS": Outcome.COMPLETED, "PARTIAL": Outcome.PARTIAL, "ERROR": Outcome.FAILED}
_STATUS_KEYS: Final = ("state", "summary", "error_code", "retry_recommended", "retry_hint", "task_id", "attempt")
_TEXT_KEYS: Final = ("runtime_model_reported", "runtime_mode_reported")
_FILE_KEYS: Final = ("files_created", "files_modified")
_LIST_KEYS: Final = (*_FILE_KEYS, "limitations")
_ATTESTED: Final = _TEXT_KEYS + _LIST_KEYS
_WORD_KEYS: Final = ("state", "retry_recommended")
_MARKED_WORD: Final = re.compile(r"(\*\*|__|[*_`])(\w+)\1\Z")
_KEY_IN_VALUE: Final = re.compile(r"[,;|]\s{0,3}(state|summary|error_code|retry_recommended|retry_hint)\s{0,3}:\s")
_ANY_KEY: Final = re.compile(r"[ \t]*[A-Za-z][\w .-]{0,60}:(?:\s|\Z)")
# A tag, or a label in bold.
_NO_TEXT: Final = re.compile(r"\s*(?:</?[A-Za-z][\w-]*(?:\s[^<>]*)?>|(?:\*\*|__)[^*_]+(?:\*\*|__):?\s*\Z)")
_LIKE_NONE: Final = ("(none)", "none", "(none).", "none.", "n/a", "n/a.", "(n/a)", "-", "[]", "(empty)")
# A sentence that there are no files; one that names a file, or an exception, is none.
_NO_FILES: Final = re.compile(
    r"(?=\W{0,2}(?:there (?:are|is|was|were) )?(?:no|none|nothing|n/a|not applicable)(?:[\s.,:;)]|\Z))"
    r"(?!.*(?:[\\/](?!a\b)|\w\.\w|\b(?:apart|besides?|but|except|only|other)\b))",
    re.IGNORECASE,
)
_SEPARATOR: Final = re.compile(r"\s(?:\u2014|\u2013|--?|\u2192|=>)\s|:\s")
_DRESS: Final = re.compile(r"(?:\[[ xX-]\][ \t]+)?(?:(\*\*|\*)(?=[^*\s])(.+?)\1(?!\*))?", re.DOTALL)
_MARKED: Final = re.compile(
    r"(?:`([^`]+)`|\[[^\]]*\]\(<?([^()<>]+)>?\)|[\"\u201c]([^\"\u201d]+)[\"\u201d]|'([^']+)')(.*)\Z", re.DOTALL
)
_LOOKS_LIKE_PATH: Final = re.compile(r"[^\s]+\Z|.*[/\\].*|.*\.[A-Za-z0-9]{1,8}\Z", re.DOTALL)
_IS_PATH: Final = re.compile(r"\S*(?:[/\\]|\.[A-Za-z0-9])\S*\Z")
_BARE_PATH: Final = re.compile(
    r"\s*`?(?!</?\w|\w+://)[^\s`>|]*(?:[/\\]|\.[A-Za-z0-9])[^\s`]*`?(?:\s+(?:\u2014|\u2013|--?|\u2192|=>)\s|\s*\Z)"
)
_MORE_THAN_A_PATH: Final = re.compile(r"\s(?:\u2014|\u2013|--?|\u2192|=>|and)\s|[:,;]\s|\s\([^()]{0,200}\)\Z")
Number = Annotated[int, BeforeValidator(lambda text: int(text) if re.fullmatch("[1-9][0-9]{0,5}", text) else text)]


class StatusSection(Model):
    """`## Status`, with the keys of error-propagation."""

    state: Required[Literal["SUCCESS", "ERROR", "PARTIAL"]] = None
    summary: Text = None
    error_code: str | None = None
    retry_recommended: Literal["yes", "no"] | None = None
    retry_hint: str | None = None
    task_id: str | None = None
    attempt: Number | None = None


class Deliverable(Model):
    """A file and what it is."""

    path: str
    description: str | None = None


class AttestationSection(Model):
    """`## Runtime Attestation`. None: the key is not there; an empty list: `- (none)`."""

    runtime_model_reported: Text = None
    runtime_mode_reported: Text = None
    files_created: Required[list[str]] = None
    files_modified: Required[list[str]] = None
    limitations: list[str] | None = None


class ReturnFormat(Model):
    """The whole return. None: the section is not there."""

    status: StatusSection | None = None
    deliverables: list[Deliverable] | None = None
    evidence: list[str] | None = None
    attestation: AttestationSection | None = None


MODELS: Final = {Contract.RETURN_FORMAT: ReturnFormat}


@dataclass(slots=True)
class Keys:
    """Values of keys, texts or lists, and the index of the line of each."""

    values: dict[str, Any] = field(default_factory=dict)
    lines: dict[str | int, int] = field(default_factory=dict)

    def put(self, key: str, value: str | list[str], index: int, findings: Findings) -> None:
        """Keep the first value of a key; another one is a finding, and so is a second list."""
        if key not in self.values:
            self.values[key], self.lines[key] = value, index
        elif key in _LIST_KEYS or self.values[key] != value:
            findings.add_in("RET020", index, key=key)


def judge(lines: list[str], sections: Sections, findings: Findings) -> OpenDocument:
    """Read the sections; every rule they break is a finding."""
    start = after_front_matter(lines)
    while start < len(lines) - 1 and not lines[start].strip():
        start += 1
    first = next(iter(sections.values()))[0].line
    spans = {header: [(one.line + 1, one.end) for one in sections.get(header, ())] for header in HEADERS}
    _judge_headers(sections, start, findings)

    def judged(header: str) -> Findings:
        """Read without judging a section whose header is missing: the missing header says it all."""
        findings.at = (header,)
        return findings if header in sections else Findings()

    keys = Keys()
    _read_status(lines, spans[STATUS] or [(start, first)], keys, judged(STATUS))
    _read_attestation(lines, spans[ATTESTATION], keys, judged(ATTESTATION))
    deliverables = _read_deliverables(lines, spans[DELIVERABLES], findings) if DELIVERABLES in sections else None
    evidence = _read_evidence(lines, spans[EVIDENCE], findings) if EVIDENCE in sections else None
    contract = Contract.RETURN_FORMAT
    attesting = read_fields(contract, AttestationSection, keys.values, judged(ATTESTATION), "attestation")
    status = read_fields(contract, StatusSection, keys.values, judged(STATUS), "status")
    if STATUS in sections:
        _judge_status(status, keys.values, findings)
    if status.state == "PARTIAL" and STATUS in sections and ATTESTATION in sections:
        findings.at = (ATTESTATION,)
        if not attesting.limitations:
            findings.add("RET063", ())

    def line_of(place: Location) -> int:
        return findings.first_line + keys.lines.get(place[-1], sections[str(place[0])][0].line)

    outcome = _OUTCOMES.get(status.state or "")
    fields = outline(
        Return,
        status,
        attesting,
        contract=contract,
        reported_state=keys.values.get("state"),
        outcome=outcome,
        agent=attesting.runtime_mode_reported,
        error_message=status.summary if outcome is Outcome.FAILED else None,
        retry_recommended=None if status.retry_recommended is None else status.retry_recommended == "yes",
        model=attesting.runtime_model_reported,
        mode=attesting.runtime_mode_reported,
        artifacts=[deliverable["path"] for deliverable in deliverables or ()],
    )
    raw = {"status": status, "deliverables": deliverables, "evidence": evidence, "attestation": attesting}
    return OpenDocument(fields, findings.made(line_of), not _is_cut(sections, keys), ReturnFormat.model_validate(raw))


def _judge_headers(sections: Sections, start: int, findings: Findings) -> None:
    for rule, header in zip(("RET001", "RET002", "RET003", "RET004"), HEADERS, strict=True):
        if header not in sections:
            findings.add_in(rule, start)
    for header, (section, *repeated) in sections.items():
        for each in repeated:
            findings.add_in("RET008", each.line, header=f"## {header}")
        if section.level != LEVEL:
            findings.add_in("RET005", section.line, header=header, level=section.level)
        if section.text != header:
            rule = "RET006" if folded(section.text) == folded(header) else "RET007"
            written = "#" * section.level + " " + section.text
            findings.add_in(rule, section.line, value=written, header=f"## {header}")


def _judge_status(status: StatusSection, values: dict[str, str], findings: Findings) -> None:
    code, hint, again = values.get("error_code"), values.get("retry_hint"), status.retry_recommended == "yes"
    if (count := sentences(values.get("summary", ""))) > 1:
        findings.add("RET015", ("summary",), count=count)
    if code and any(map(str.isspace, code)):
        findings.add("ERR006", ("error_code",), value=code)
    if status.state == "SUCCESS":
        speaking = {"error_code": code, "retry_hint": hint, "retry_recommended": again}
        if (first := next((key for key in values if speaking.get(key)), None)) is not None:
            findings.add("ERR007", (first,), key=first)
    elif again and not hint:
        findings.add("ERR004", ("retry_hint",))
    if status.state == "ERROR" and "retry_recommended" not in values:
        findings.add("ERR001", ())
    if status.state == "ERROR" and not code:
        findings.add("ERR005", ("error_code",))


def _is_cut(sections: Sections, keys: Keys) -> bool:
    """Whether the text ends in the middle: what is missing is exactly what would have come last."""
    present = [header in sections for header in HEADERS]
    if all(present):
        present = [key in keys.values for key in (*_TEXT_KEYS, *_FILE_KEYS)]
    return not all(present) and present == sorted(present, reverse=True)


def _visible(lines: list[str], spans: Spans, counts: Callable[[str], object] = str.strip) -> list[int]:
    """The lines of a section outside of fences; inside, too, where nothing that counts stands outside."""
    outside, both = unfenced(lines, spans)
    return outside if any(counts(lines[index]) for index in outside) else both


def _is_no_text(line: str) -> bool:
    """Whether a line only structures a section."""
    return is_rule(line) or heading(line) is not None or _NO_TEXT.match(line) is not None


def _known(line: str, known: tuple[str, ...]) -> KeyLine | None:
    """The key of the contract that a line holds, however it is spelled; None where it holds none."""
    told = entry(line)
    return told if told is not None and told.name in known else None


def _read_status(lines: list[str], spans: Spans, keys: Keys, findings: Findings) -> None:
    for index in _visible(lines, spans, lambda line: _known(line, _STATUS_KEYS)):
        text = lines[index]
        if (told := _known(text, _STATUS_KEYS)) is not None:
            _judge_dress(told, index, findings)
            value = told.value
            if (another := _KEY_IN_VALUE.search(value)) is not None:
                findings.add_in("RET018", index, key=another[1])
                value = value[: another.start()].strip()
            if told.name in _WORD_KEYS and (marked := _MARKED_WORD.match(value)) is not None:
                findings.add_in("RET017", index, key=told.name)
                value = marked[2]
            keys.put(told.name, value, index, findings)
        elif text.strip() and not (_ANY_KEY.match(text) or _is_no_text(text)):
            findings.add_in("RET019", index)
            above = next((key for key in _WORD_KEYS if keys.lines.get(key) == index - 1), None)
            if above is not None and text[:1] in " \t":
                # The value goes on: one word is not what it says.
                keys.values[above] += f" {text.strip()}"


def _judge_dress(told: KeyLine, index: int, findings: Findings) -> None:
    name = told.name
    if told.bullet:
        findings.add_in("RET016", index, key=name)
    if told.decorated:
        findings.add_in("RET017", index, key=name)
    if told.key != name:
        is_required = name in ("state", "summary", "retry_recommended", *_TEXT_KEYS, *_FILE_KEYS)
        findings.add_in("RET021" if is_required else "RET023", index, value=told.key, key=name)


def _read_deliverables(lines: list[str], spans: Spans, findings: Findings) -> list[dict[str, str | None]]:
    found: list[dict[str, str | None]] = []
    any_bullet = False
    indent: int | None = None
    for index in _visible(lines, spans):
        text = lines[index]
        item = bullet(text)
        if indent is not None and text[:1] in " \t" and (item is None or item.indent > indent + 1):
            continue
        if item is None:
            if _BARE_PATH.match(text):
                findings.add_in("RET024", index, value=text.strip())
            elif text.strip() and not _is_no_text(text):
                findings.add_in("RET031", index)
        else:
            any_bullet, indent = True, item.indent
            path, rest = _split(item.text, _SEPARATOR)
            if not rest and _IS_PATH.match(path.partition(" ")[0]):
                # The contract names no separator: `src/api.py (the API)` has a path and a description.
                path, _, rest = path.partition(" ")
            path, description = path.rstrip(":"), rest.strip(" \t:=>\u2192\u2014\u2013-")
            if _NO_FILES.match(item.text):
                continue
            if item.text.rstrip("*_").endswith(":") and not _IS_PATH.match(path):
                # The label of the bullets below it.
                findings.add_in("RET031", index)
                indent = None
                continue
            if not _LOOKS_LIKE_PATH.match(path):
                findings.add_in("RET033", index, value=path)
            elif not description:
                findings.add_in("RET032", index)
            found.append({"path": path, "description": description or None})
    if not any_bullet:
        findings.add_in("RET030", spans[0][0] - 1)
    return found[:MAX_ENTRIES]


def _read_evidence(lines: list[str], spans: Spans, findings: Findings) -> list[str]:
    """Evidence pointers. Indented lines belong to their bullet."""
    found: list[str] = []
    any_bullet = False
    for index in _visible(lines, spans):
        text = lines[index]
        if (item := bullet(text)) is not None:
            any_bullet = True
            found += [] if folded(item.text) in _LIKE_NONE else [item.text]
        elif text.strip() and not _is_no_text(text) and not (text[:1] in " \t" and found):
            findings.add_in("RET041", index)
    if not any_bullet:
        findings.add_in("RET040", spans[0][0] - 1)
    return found[:MAX_ENTRIES]


def _read_attestation(lines: list[str], spans: Spans, keys: Keys, findings: Findings) -> None:
    """The keys and lists. Words behind a gap end a list, and where all keys are there, the attestation."""
    key, indent = "", 0
    entries: list[str] | None = None
    after_blank = ended = False
    words: dict[str, int] = {}  # where they stand below a list key: in place of its entries, unless these follow
    for index in _visible(lines, spans, lambda line: _known(line, _ATTESTED)):
        text = lines[index]
        told = _known(text, _ATTESTED)
        item = bullet(text) if told is None else None
        if told is not None:
            _judge_dress(told, index, findings)
            key, indent, ended = told.name, 99, False
            entries = _inline(told, index, findings) if key in _LIST_KEYS else None
            keys.put(key, told.value if entries is None else entries, index, findings)
        elif item is not None and entries is not None:
            indent = min(item.indent, indent)
            if item.indent > indent + 1:
                findings.add_in("RET061", index)
            elif key not in _FILE_KEYS:
                entries.append("" if folded(item.text) in _LIKE_NONE else item.text)
            elif (path := _path_of(item, key, index, findings)) is not None:
                entries.append(path)
        elif _is_no_text(text) or not text.strip():
            pass
        elif entries is not None and key in _FILE_KEYS and _BARE_PATH.match(text) and not (after_blank and entries):
            findings.add_in("RET024", index, value=text.strip())
            entries.append(text.strip().strip("`"))
        elif item is None and _ANY_KEY.match(text):
            if text.rstrip().endswith(":"):
                # Another key, not of the contract, and with it the list that begins here.
                key, entries = "", []
        elif entries is None or text[:1] not in " \t":
            if entries == [] and key in _FILE_KEYS:
                words.setdefault(key, index)
            elif after_blank:
                entries, ended = None, all(each in keys.values for each in _FILE_KEYS)
            if not ended and key not in words:
                findings.add_in("RET061", index)
        after_blank = not text.strip()
    for key in _LIST_KEYS:
        if (listed := keys.values.get(key)) == [] and key in words:
            findings.add_in("RET024", words[key], value=lines[words[key]].strip())
        elif listed == [] and key in _FILE_KEYS:
            findings.add_in("RET057", keys.lines[key], key=key)
        if listed is not None:
            keys.values[key] = list(filter(None, listed))[:MAX_ENTRIES]


def _inline(told: KeyLine, index: int, findings: Findings) -> list[str]:
    """The entries that stand on the line of their key."""
    if not told.value:
        return []
    if told.name not in _FILE_KEYS:
        findings.add_in("RET062", index)
        return [told.value]
    findings.add_in("RET056", index, key=told.name)
    if folded(told.value) in _LIKE_NONE:
        return [""]
    return [part.strip("`'\" ") for part in re.split(r"\s*[,;]\s*", told.value.strip("[]"))]


def _split(text: str, separator: re.Pattern[str]) -> tuple[str, str]:
    """(the path with which a bullet's text begins, the rest), without checkbox, emphasis, backticks, link, quotes."""
    text = _DRESS.sub(lambda match: match[2] or "", text, count=1)
    if (marked := _MARKED.match(text)) is not None:
        return next(filter(None, marked.groups())).strip(), marked[5]
    match = separator.search(text)
    return (text, "") if match is None else (text[: match.start()].strip(" "), text[match.start() :])


def _path_of(item: Bullet, key: str, index: int, findings: Findings) -> str | None:
    """The path of a bullet below a list key, "" where it says that there is none, None where it is a remark."""
    text = item.text
    if folded(text) in _LIKE_NONE or _NO_FILES.match(text):
        if folded(text) != "(none)":
            findings.add_in("RET060", index, key=key)
        return ""
    path, rest = _split(text, _MORE_THAN_A_PATH)
    words = path.split() or [""]
    if words[1:] and not (_IS_PATH.match(words[0]) and _IS_PATH.match(words[-1])):
        findings.add_in("RET061", index)
        return None
    if rest.strip():
        findings.add_in("RET058", index, key=key, value=text)
    elif path != text or item.marker != "-":
        findings.add_in("RET060", index, key=key)
    if not is_relative(path):
        findings.add_in("RET059", index, key=key, value=path)
    return path
