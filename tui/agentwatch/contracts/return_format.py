"""The return-format: four Markdown sections with lines `key: value` and lists of bullets. Other text is ignored."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator

from agentwatch.contracts.fields import Maybe, Model, Note, Notes, Required, Text, read_fields
from agentwatch.contracts.markdown import (
    ATTESTATION,
    DELIVERABLES,
    EVIDENCE,
    HEADERS,
    LEVEL,
    RULE,
    STATUS,
    Bullet,
    KeyLine,
    Page,
    Section,
    Sections,
    read_bullet,
    read_key,
)
from agentwatch.contracts.rules import MAX_ENTRIES, Findings, Location, build_fields, count_sentences, is_relative
from agentwatch.contracts.shapes import Contract, OpenDocument, Outcome, Return
from agentwatch.text import fold_case

_OUTCOMES = {"SUCCESS": Outcome.COMPLETED, "PARTIAL": Outcome.PARTIAL, "ERROR": Outcome.FAILED}
_TEXT_KEYS = ("runtime_model_reported", "runtime_mode_reported")
_FILE_KEYS = ("files_created", "files_modified")
_LIST_KEYS = (*_FILE_KEYS, "limitations")
_WORD_KEYS = ("state", "retry_recommended")
_REQUIRED_KEYS = (*_WORD_KEYS, "summary", *_TEXT_KEYS, *_FILE_KEYS)
_MARKED_WORD = re.compile(r"(\*\*|__|[*_`])(\w+)\1\Z")
_KEY_IN_VALUE = re.compile(r"[,;|]\s{0,3}(state|summary|error_code|retry_recommended|retry_hint)\s{0,3}:\s")
_ANY_KEY = re.compile(r"[ \t]*[A-Za-z][\w .-]{0,60}:(?:\s|\Z)")
# A line that only structures a section: a thematic break, a heading, a tag, or a label in bold.
_NO_TEXT = re.compile(
    rf"{RULE.pattern}|\s*(?:#{{1,6}}(?:[ \t]|\Z)|</?[A-Za-z][\w-]*(?:\s[^<>]*)?>|(?:\*\*|__)[^*_]+(?:\*\*|__):?\s*\Z)"
)
_LIKE_NONE = ("(none)", "none", "(none).", "none.", "n/a", "n/a.", "(n/a)", "-", "[]", "(empty)")
# A remark that there are no files. A remark with an exception, such as `none except a.py`, does not match.
_NO_FILES = re.compile(
    r"(?=\W{0,2}(?:there (?:are|is|was|were) )?(?:no|none|nothing|n/a|not applicable)(?:[\s.,:;)]|\Z))"
    r"(?!.*(?:[\\/](?!a\b)|\w\.\w|\b(?:apart|besides?|but|except|only|other)\b))",
    re.IGNORECASE,
)
_SEPARATOR = re.compile(r"\s(?:\u2014|\u2013|--?|\u2192|=>)\s|:\s")
_EMPHASIS = re.compile(r"(?:\[[ xX-]\][ \t]+)?(?:(\*\*|\*)(?=[^*\s])(.+?)\1(?!\*))?", re.DOTALL)
_QUOTED_PATH = re.compile(
    r"(?:`([^`]+)`|\[[^\]]*\]\(<?([^()<>]+)>?\)|[\"\u201c]([^\"\u201d]+)[\"\u201d]|'([^']+)')(.*)\Z", re.DOTALL
)
_LOOKS_LIKE_PATH = re.compile(r"[^\s]+\Z|.*[/\\].*|.*\.[A-Za-z0-9]{1,8}\Z", re.DOTALL)
_IS_PATH = re.compile(r"\S*(?:[/\\]|\.[A-Za-z0-9])\S*\Z")
_BARE_PATH = re.compile(
    r"\s*`?(?!</?\w|\w+://)[^\s`>|]*(?:[/\\]|\.[A-Za-z0-9])[^\s`]*`?(?:\s+(?:\u2014|\u2013|--?|\u2192|=>)\s|\s*\Z)"
)
_MORE_THAN_A_PATH = re.compile(r"\s(?:\u2014|\u2013|--?|\u2192|=>|and)\s|[:,;]\s|\s\([^()]{0,200}\)\Z")
Number = Annotated[int, BeforeValidator(lambda text: int(text) if re.fullmatch("[1-9][0-9]{0,5}", text) else text)]


class StatusSection(Model):
    """The section `## Status`, with the keys that say how to go on after an error."""

    state: Required[Literal["SUCCESS", "ERROR", "PARTIAL"]]
    summary: Text
    error_code: Note
    retry_recommended: Maybe[Literal["yes", "no"]]
    retry_hint: Note
    task_id: Note
    attempt: Maybe[Number]


class Deliverable(Model):
    """A file with its description."""

    path: str
    description: Note


class AttestationSection(Model):
    """The section `## Runtime Attestation`. A field is None if its key is missing. `- (none)` is an empty list."""

    runtime_model_reported: Text
    runtime_mode_reported: Text
    files_created: Required[list[str]]
    files_modified: Required[list[str]]
    limitations: Notes


class ReturnFormat(Model):
    """The whole return. A missing section is None."""

    status: Maybe[StatusSection]
    deliverables: Maybe[list[Deliverable]]
    evidence: Notes
    attestation: Maybe[AttestationSection]


MODELS = {Contract.RETURN_FORMAT: ReturnFormat}
_KNOWN_KEYS = {STATUS: tuple(StatusSection.model_fields), ATTESTATION: tuple(AttestationSection.model_fields)}

# A line of a section: (index, text, known key or None, bullet or None).
Row = tuple[int, str, KeyLine | None, Bullet | None]


@dataclass(slots=True)
class SectionKeys:
    """The values (texts or lists) and the line indices of keys. If a key is repeated, its first value is kept."""

    values: dict[str, Any] = field(default_factory=dict)
    lines: dict[str | int, int] = field(default_factory=dict)

    def store(self, key_line: KeyLine, value: str | list[str], index: int, findings: Findings) -> None:
        """Store the value of a key. Report a repeated key, and a key that is not written as the contract demands."""
        key = key_line.name
        if key_line.bullet:
            findings.add("RET016", index, key=key)
        if key_line.decorated:
            findings.add("RET017", index, key=key)
        if key_line.key != key:
            findings.add("RET021" if key in _REQUIRED_KEYS else "RET023", index, value=key_line.key, key=key)
        if key not in self.values:
            self.values[key], self.lines[key] = value, index
        elif key in _LIST_KEYS or self.values[key] != value:
            findings.add("RET020", index, key=key)


def judge(page: Page, sections: Sections, findings: Findings) -> OpenDocument:
    """Read the sections and return the document, with a finding for every rule that it breaks."""
    start = next(index for index, line in enumerate(page.lines) if line.strip())
    for rule, header in zip(("RET001", "RET002", "RET003", "RET004"), HEADERS, strict=True):
        if header not in sections:
            findings.add(rule, start)
    for header, (section, *repeated) in sections.items():
        for each in repeated:
            findings.add("RET008", each.line, header=f"## {header}")
        if section.level != LEVEL:
            findings.add("RET005", section.line, header=header, level=section.level)
        if section.text != header:
            rule = "RET006" if fold_case(section.text) == fold_case(header) else "RET007"
            written = "#" * section.level + " " + section.text
            findings.add(rule, section.line, value=written, header=f"## {header}")
    keys = SectionKeys()
    rows = {header: _read_rows(page, listed, _KNOWN_KEYS.get(header, ())) for header, listed in sections.items()}
    for rule, header in (("RET030", DELIVERABLES), ("RET040", EVIDENCE)):
        if header in rows and not any(item for _, _, _, item in rows[header]):
            findings.add(rule, sections[header][0].line)
    status = _read_status(rows.get(STATUS), keys, findings)
    attested = _read_attestation(rows.get(ATTESTATION), keys, findings)
    if ATTESTATION in rows and status.state == "PARTIAL" and not attested.limitations:
        findings.add("RET063", ())
    deliverables = _read_deliverables(rows[DELIVERABLES], findings) if DELIVERABLES in rows else None
    evidence = _read_evidence(rows[EVIDENCE], findings) if EVIDENCE in rows else None

    def line_of(place: Location) -> int:
        return findings.first_line + keys.lines.get(place[-1], sections[str(place[0])][0].line)

    outcome = _OUTCOMES.get(status.state or "")
    fields = build_fields(
        Return,
        status,
        attested,
        contract=Contract.RETURN_FORMAT,
        reported_state=keys.values.get("state"),
        outcome=outcome,
        agent=attested.runtime_mode_reported,
        error_message=status.summary if outcome is Outcome.FAILED else None,
        retry_recommended=None if status.retry_recommended is None else status.retry_recommended == "yes",
        model=attested.runtime_model_reported,
        mode=attested.runtime_mode_reported,
        artifacts=[deliverable["path"] for deliverable in deliverables or ()],
    )
    raw = {"status": status, "deliverables": deliverables, "evidence": evidence, "attestation": attested}
    # If only the last parts of the return are missing, its text was cut off.
    present = [header in sections for header in HEADERS]
    present += [key in keys.values for key in (*_TEXT_KEYS, *_FILE_KEYS)]
    is_cut = not all(present) and present == sorted(present, reverse=True)
    return OpenDocument(fields, findings.collect(line_of), not is_cut, ReturnFormat.model_validate(raw))


def _read_rows(page: Page, sections: Sequence[Section], known: tuple[str, ...] = ()) -> list[Row]:
    """Return the lines outside fences. If they have no key of `known` (or no text, if `known` is empty), return all."""
    rows, outside, counts = list[Row](), list[Row](), False
    for section in sections:
        for index in range(section.line + 1, section.end):
            text = page.lines[index]
            key_line = read_key(text)
            key_line = key_line if key_line and key_line.name in known else None
            row = index, text, key_line, None if key_line else read_bullet(text)
            rows.append(row)
            if page.outside[index]:
                outside.append(row)
                counts = counts or (key_line is not None if known else bool(text.strip()))
    return outside if counts else rows


def _read_status(rows: list[Row] | None, keys: SectionKeys, findings: Findings) -> StatusSection:
    if rows is None:
        return StatusSection.model_validate({})
    findings.at = (STATUS,)
    for index, text, key_line, _ in rows:
        if key_line:
            value = key_line.value
            if another := _KEY_IN_VALUE.search(value):
                findings.add("RET018", index, key=another[1])
                value = value[: another.start()].strip()
            if key_line.name in _WORD_KEYS and (marked := _MARKED_WORD.match(value)):
                findings.add("RET017", index, key=key_line.name)
                value = marked[2]
            keys.store(key_line, value, index, findings)
        elif text.strip() and not (_ANY_KEY.match(text) or _NO_TEXT.match(text)):
            findings.add("RET019", index)
    values = keys.values
    status = read_fields(Contract.RETURN_FORMAT, StatusSection, values, findings, "status")
    code, hint, wants_retry = values.get("error_code"), values.get("retry_hint"), status.retry_recommended == "yes"
    if (count := count_sentences(values.get("summary", ""))) > 1:
        findings.add("RET015", ("summary",), count=count)
    if code and any(map(str.isspace, code)):
        findings.add("ERR006", ("error_code",), value=code)
    if status.state == "SUCCESS":
        unexpected = {"error_code": code, "retry_hint": hint, "retry_recommended": wants_retry}
        if first := next((key for key in values if unexpected.get(key)), None):
            findings.add("ERR007", (first,), key=first)
    elif wants_retry and not hint:
        findings.add("ERR004", ("retry_hint",))
    if status.state == "ERROR" and "retry_recommended" not in values:
        findings.add("ERR001", ())
    if status.state == "ERROR" and not code:
        findings.add("ERR005", ("error_code",))
    return status


def _read_deliverables(rows: list[Row], findings: Findings) -> list[dict[str, str | None]]:
    """Return the files that the bullets name. Lines that are indented below a bullet are ignored."""
    found: list[dict[str, str | None]] = []
    indent: int | None = None
    for index, text, _, item in rows:
        if indent is not None and text[:1] in " \t" and (not item or item.indent > indent + 1):
            continue
        if not item:
            if _BARE_PATH.match(text):
                findings.add("RET024", index, value=text.strip())
            elif text.strip() and not _NO_TEXT.match(text):
                findings.add("RET031", index)
            continue
        indent = item.indent
        path, rest = _split_path(item.text, _SEPARATOR)
        if not rest and _IS_PATH.match(path.partition(" ")[0]):
            # The contract demands no separator: `src/api.py (the API)` is a path and a description, too.
            path, _, rest = path.partition(" ")
        path, description = path.rstrip(":"), rest.strip(" \t:=>\u2192\u2014\u2013-")
        if _NO_FILES.match(item.text):
            continue
        if item.text.rstrip("*_").endswith(":") and not _IS_PATH.match(path):
            # This bullet is only a heading for the bullets below it.
            findings.add("RET031", index)
            indent = None
            continue
        if not _LOOKS_LIKE_PATH.match(path):
            findings.add("RET033", index, value=path)
        elif not description:
            findings.add("RET032", index)
        found.append({"path": path, "description": description or None})
    return found[:MAX_ENTRIES]


def _read_evidence(rows: list[Row], findings: Findings) -> list[str]:
    """Return the evidence pointers, one for each bullet. An indented line belongs to the bullet above it."""
    found: list[str] = []
    for index, text, _, item in rows:
        if item:
            found += [] if fold_case(item.text) in _LIKE_NONE else [item.text]
        elif text.strip() and not _NO_TEXT.match(text) and not (text[:1] in " \t" and found):
            findings.add("RET041", index)
    return found[:MAX_ENTRIES]


def _read_attestation(rows: list[Row] | None, keys: SectionKeys, findings: Findings) -> AttestationSection:
    """Read the keys and lists of the attestation. Text after an empty line ends a list."""
    if rows is None:
        return AttestationSection.model_validate({})
    findings.at = (ATTESTATION,)
    key, indent = "", 0
    entries: list[str] | None = None
    after_blank = ended = False
    # By the key of a list: (line index, text) of a text that follows the key where bullets should be.
    words: dict[str, tuple[int, str]] = {}
    for index, text, key_line, item in rows:
        if key_line:
            key, indent, ended = key_line.name, 99, False
            entries = _read_inline_entries(key_line, index, findings) if key in _LIST_KEYS else None
            keys.store(key_line, key_line.value if entries is None else entries, index, findings)
        elif item and entries is not None:
            indent = min(item.indent, indent)
            if item.indent > indent + 1:
                findings.add("RET061", index)
            elif key not in _FILE_KEYS:
                entries.append("" if fold_case(item.text) in _LIKE_NONE else item.text)
            elif (path := _read_listed_path(item, key, index, findings)) is not None:
                entries.append(path)
        elif _NO_TEXT.match(text) or not text.strip():
            pass
        elif entries is not None and key in _FILE_KEYS and _BARE_PATH.match(text) and not (after_blank and entries):
            findings.add("RET024", index, value=text.strip())
            entries.append(text.strip().strip("`"))
        elif not item and _ANY_KEY.match(text):
            if text.rstrip().endswith(":"):
                # The contract does not have this key, so ignore the list below it.
                key, entries = "", []
        elif entries is None or text[:1] not in " \t":
            if entries == [] and key in _FILE_KEYS:
                words.setdefault(key, (index, text))
            elif after_blank:
                entries, ended = None, all(each in keys.values for each in _FILE_KEYS)
            if not ended and key not in words:
                findings.add("RET061", index)
        after_blank = not text.strip()
    for key in _LIST_KEYS:
        if (listed := keys.values.get(key)) == [] and key in words:
            findings.add("RET024", words[key][0], value=words[key][1].strip())
        elif listed == [] and key in _FILE_KEYS:
            findings.add("RET057", keys.lines[key], key=key)
        if listed is not None:
            keys.values[key] = list(filter(None, listed))[:MAX_ENTRIES]
    return read_fields(Contract.RETURN_FORMAT, AttestationSection, keys.values, findings, "attestation")


def _read_inline_entries(key_line: KeyLine, index: int, findings: Findings) -> list[str]:
    """Return the entries of a list that are on the same line as its key."""
    if not key_line.value:
        return []
    if key_line.name not in _FILE_KEYS:
        findings.add("RET062", index)
        return [key_line.value]
    findings.add("RET056", index, key=key_line.name)
    if fold_case(key_line.value) in _LIKE_NONE:
        return [""]
    return [part.strip("`'\" ") for part in re.split(r"\s*[,;]\s*", key_line.value.strip("[]"))]


def _split_path(text: str, separator: re.Pattern[str]) -> tuple[str, str]:
    """Split the text of a bullet into (path, rest). Remove emphasis and quotation marks."""
    text = _EMPHASIS.sub(lambda match: match[2] or "", text, count=1)
    if marked := _QUOTED_PATH.match(text):
        return next(filter(None, marked.groups())).strip(), marked[5]
    match = separator.search(text)
    return (text, "") if not match else (text[: match.start()].strip(" "), text[match.start() :])


def _read_listed_path(item: Bullet, key: str, index: int, findings: Findings) -> str | None:
    """Return the path that a bullet names. Return "" for `(none)`, and None if the bullet is only a remark."""
    text = item.text
    if fold_case(text) in _LIKE_NONE or _NO_FILES.match(text):
        if fold_case(text) != "(none)":
            findings.add("RET060", index, key=key)
        return ""
    path, rest = _split_path(text, _MORE_THAN_A_PATH)
    words = path.split() or [""]
    if words[1:] and not (_IS_PATH.match(words[0]) and _IS_PATH.match(words[-1])):
        findings.add("RET061", index)
        return None
    if rest.strip():
        findings.add("RET058", index, key=key, value=text)
    elif path != text or item.marker != "-":
        findings.add("RET060", index, key=key)
    if not is_relative(path):
        findings.add("RET059", index, key=key, value=path)
    return path
