"""Reads the claims of a return from its text and its handoff. The disk is not read here."""

import re
from collections.abc import Callable, Iterator
from enum import StrEnum
from sys import intern
from typing import Any, NamedTuple

from agentwatch.contracts.reading import read_document
from agentwatch.contracts.shapes import Contract, OpenDocument, Outcome, Return
from agentwatch.delegation.events import Claim, Verdict
from agentwatch.sources.sessions.reader import read_stored

NOT_UNDERSTOOD = "not understood"
MAX_CLAIMS = 1_000  # maximal number of checked claims of a return; one more claim says that the rest was not checked
LONGEST = 4_096  # characters of a text that are read; no path is longer


class ClaimKind(StrEnum):
    """The kinds of claims. A claim that names no file has its text in the field `path`."""

    CREATED = "created"
    MODIFIED = "modified"
    DELIVERABLE = "deliverable"
    EVIDENCE = "evidence"
    ARTIFACT = "artifact"
    REFERENCE = "reference"
    MUST_CREATE = "must_create"
    REQUIRED_EVIDENCE = "required_evidence"
    CRITERION = "criterion"
    SUMMARY = "summary"

    @property
    def is_made(self) -> bool:
        """Whether the child says that it made the file. Such a file must lie in the workspace and not be empty."""
        return self in (self.CREATED, self.MODIFIED, self.DELIVERABLE, self.ARTIFACT, self.MUST_CREATE)


class RawClaim(NamedTuple):
    """A claim that was not checked yet. If `is_file`, the checker looks for the file. `excuse` is the reason why the
    claim may be true even if the file is missing. If `is_about`, the claim says more than that the file exists."""

    claim: Claim
    is_file: bool = False
    excuse: str = ""
    is_about: bool = False


Judge = Callable[..., list[Claim]]
Lines = tuple[int, int] | None


def _file_claim(
    kind: ClaimKind, path: str, excuse: str = "", lines: Lines = None, *, is_about: bool = False
) -> RawClaim:
    # Interning saves memory, because one path occurs in many returns.
    return RawClaim(Claim(kind, intern(path), Verdict.UNVERIFIABLE, "", lines), True, excuse, is_about)


def _text_claim(kind: ClaimKind, text: str, why: str, verdict: Verdict = Verdict.UNVERIFIABLE) -> RawClaim:
    return RawClaim(Claim(kind, intern(text), verdict, intern(why)))


_NOTHING = re.compile(r"\s*(?:\(?none\)?\.?|\(?n/a\)?|-|\[\]|\(empty\))\s*\Z", re.IGNORECASE)
_NOT_A_PATH = "a command, a result or a reference, not a path: nothing on disk tells whether it is true"
_UNFINISHED = "missing so far; the return does not say that the work is done"
_REMOVED = "missing, and the return says that it was removed"
_DOUBTFUL = "nothing of this name is there, and it may not be a path"
_SAID_REMOVED = re.compile(
    r"\b(?:deleted|removed)\b[ \t`*\"'(:\u2013\u2014-]{0,20}(\S{1,300})"
    r"|(?<!\S)(\S{1,300})(?:[ \t`*\"'(:\u2013\u2014,;.)-]|\b(?:was|is|has been)\b){0,20}(?=\b(?:deleted|removed)\b)",
    re.IGNORECASE,
)


def claims_of(
    returned_text: str,
    returned_name: str,
    handoff_text: str = "",
    handoff_name: str = "handoff.json",
    *,
    stored: bool = False,
    judge: Judge | None = None,
    read: Callable[[str, str], OpenDocument | None] = read_document,
) -> list[RawClaim]:
    """Return the claims of a return and the demands of its handoff, or [] if the text is no return. Never raise.

    The names are paths relative to the workspace. If `stored`, both texts come from a session. `judge` checks
    statements about commands against the log. It is None if there is no log.
    """
    opened = None if stored else read(returned_text, returned_name)
    if opened is None or not isinstance(opened.document, Return):
        # In a transcript, other text may surround the return.
        opened = read_stored(returned_text)
    if opened is None or not isinstance(opened.document, Return):
        return []
    found = [*_return_claims(opened, opened.document, judge)]
    packet = read(handoff_text, handoff_name)
    if packet is None or packet.contract is not Contract.HANDOFF_PACKET:
        packet = read_stored(handoff_text, handed_over=True)
    if packet and packet.contract is Contract.HANDOFF_PACKET:
        found += _handoff_demands(packet.model, opened, opened.document.outcome, returned_text)
    # These are the words next to "removed" or "deleted". Some are paths.
    removed = {word.strip("`*\"'(),;.:") for words in _SAID_REMOVED.findall(returned_text) for word in words}
    claims = [
        one._replace(excuse=one.excuse or _REMOVED)
        if one.claim.path in removed and one.claim.kind != ClaimKind.MUST_CREATE
        else one
        for one in dict.fromkeys(found)
    ]
    if len(claims) > MAX_CLAIMS:
        more = f"this return claims more than {MAX_CLAIMS} things: the rest was not checked, so look for yourself"
        claims[MAX_CLAIMS:] = [_text_claim(ClaimKind(claims[MAX_CLAIMS].claim.kind), "", more)]
    return claims


def _return_claims(opened: OpenDocument, document: Return, judge: Judge | None) -> Iterator[RawClaim]:
    is_markdown, is_working = document.contract is Contract.RETURN_FORMAT, document.outcome is Outcome.WORKING
    if document.summary and not is_working and judge is not None:
        yield from map(RawClaim, judge(ClaimKind.SUMMARY, document.summary, prose=True))
    if document.contract is Contract.REPORT_CONTRACT:
        for entry in opened.model.context_map or ():
            path, lines = _split_lines(entry.location)
            if path != "-":
                yield _file_claim(ClaimKind.REFERENCE, path, lines=lines)
        return
    kinds = (
        (ClaimKind.ARTIFACT, () if is_markdown else document.artifacts),
        (ClaimKind.CREATED, document.files_created),
        (ClaimKind.MODIFIED, document.files_modified),
        (ClaimKind.DELIVERABLE, document.artifacts if is_markdown else ()),
    )
    for kind, path in ((kind, path) for kind, paths in kinds for path in paths if not _NOTHING.match(path)):
        excuse = path_doubt(path) if kind is ClaimKind.DELIVERABLE else _UNFINISHED if is_working else ""
        if excuse is None:
            yield _text_claim(kind, path, "it names no file, so there is nothing to look for")
        else:
            yield _file_claim(kind, path, excuse)
    for bullet in (opened.model.evidence if is_markdown else None) or ():
        if not _NOTHING.match(bullet):
            yield from _evidence_claims(bullet, judge)


def _evidence_claims(text: str, judge: Judge | None) -> Iterator[RawClaim]:
    """Yield the claims of one bullet of evidence: files that it names, or statements about commands."""
    held = judge(ClaimKind.EVIDENCE, text) if judge is not None else []
    if all(one.detail == NOT_UNDERSTOOD for one in held) and (named := paths_in_evidence(text)):
        is_about = bool(held or _RESULT.search(text))
        yield from (one._replace(is_about=one.is_about or is_about) for one in named)
    else:
        yield from map(RawClaim, held)
        if not held:
            yield _text_claim(ClaimKind.EVIDENCE, text, _NOT_A_PATH)


# Words that are paths

_RESULT = re.compile(r"\b\d+ (?:\w+ )?(?:pass|fail|green)|\bexit(?:s|ed)?\b", re.IGNORECASE)
_NO_PATH = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{0,31}:(?://|\S*@)|.*[<>|`]|[\W_]*\Z", re.DOTALL)
_SUFFIX = re.compile(r"\.(?=[A-Za-z0-9_]*[A-Za-z])[A-Za-z0-9_]{1,12}\Z")
_PATH_CHARACTERS = re.compile(r"[\w.@+~#%=,()\[\]{}$!&'\\/-]+\Z")
_BARE_SUFFIX = re.compile(
    r"\.(?:bash|c|cc|cfg|cpp|cs|css|csv|dart|ex|go|gradle|h|hpp|html|ini|java|json|jsonl|kt|lean|lock|lua|md|mdx|mjs"
    r"|php|png|proto|py|pyi|rb|rs|rst|scala|sh|sql|svg|swift|tex|toml|ts|tsx|txt|vue|xml|yaml|yml|zig)\Z",
    re.IGNORECASE,
)
_BARE_NAME = re.compile(r"(?:\.[A-Za-z].*|Makefile|Dockerfile|LICENSE|README|CHANGELOG|Justfile|Procfile)\Z")
# A word in backticks, perhaps with line numbers after it, or a link.
_MARKED = re.compile(
    r"`([^`\n]{1,4096})`(:\d{1,9}(?:\s?[-\u2013]\s?\d{1,9})?)?|\[[^\]\n]{0,400}\]\(([^()\s]{1,4096})\)"
)
_SEPARATOR = re.compile(r"\s(?:\u2014|\u2013|--?|\u2192|=>|\u00a7)\s|[:;]\s|\s\(")
_LIST = re.compile(r",\s+|\s+and\s+|\s+\+\s+")
_LINES = re.compile(r"(.+?)(?::|#L)(\d{1,9})(?:\s?[-\u2013]\s?L?(\d{1,9}))?(?::\d{1,9})?\Z", re.DOTALL)
# Read `a.py: line 5` and `a.py: lines 5-9` like `a.py:5` and `a.py:5-9`.
_SPELLED_LINES = re.compile(
    r":\s+lines?\s+(?=\d{1,9}(?:\s?[-\u2013]\s?\d{1,9})?[`*_]*\s*(?:\Z|[;,(\u2014\u2013\u2192]|--?\s))"
)


def paths_in_evidence(text: str) -> list[RawClaim]:
    """Return a claim for each path that a bullet of evidence names. Text around the paths or after a colon is a
    statement about the files. Text after a dash or in brackets only describes the files."""
    text = _SPELLED_LINES.sub(":", text.strip()[:LONGEST])
    if marked := list(_MARKED.finditer(text)):
        is_leading = marked[0].start() == 0
        is_about = not is_leading or text[marked[0].end() :].lstrip("*_ ").startswith((":", ";"))
        named = _to_claims(["".join(one.groups("")) for one in marked[: 1 if is_leading else None]], is_about=is_about)
        return [one for one in named if is_leading or not one.excuse]
    separator = _SEPARATOR.search(text)
    head = (text[: separator.start()] if separator else text).strip("*_ ").rstrip(".,;:")
    words = [word.strip("*\"'") for word in _LIST.split(head)]
    named = _to_claims(words, is_about=separator is not None and separator[0].startswith((":", ";")))
    return named if len(named) == len(words) else []


def _to_claims(words: list[str], *, is_about: bool) -> list[RawClaim]:
    split = (_split_lines(word.strip()) for word in words)
    likely = ((path, path_doubt(path), lines) for path, lines in split)
    return [
        _file_claim(ClaimKind.EVIDENCE, path, doubt, lines, is_about=is_about)
        for path, doubt, lines in likely
        if doubt is not None
    ]


def _split_lines(word: str) -> tuple[str, Lines]:
    """Split line numbers such as `:12-40` or `#L12` from a word. Return the word, and these numbers or None."""
    match = _LINES.match(word)
    return (match[1], (int(match[2]), int(match[3] or match[2]))) if match else (word, None)


def path_doubt(word: str) -> str | None:
    """Return "" if a word looks like a path, a sentence if it may be a path, and None if it is no path."""
    if len(word) > LONGEST or _NO_PATH.match(word):
        return None
    name = word.rstrip("/").rpartition("/")[2]
    is_deep, has_suffix, is_file = "/" in word or "\\" in word, _SUFFIX.search(name), _BARE_SUFFIX.search(name)
    if len(word.split()) > 1:
        # Several words may be a command with a path, so a path with blanks has to end like a file.
        return _DOUBTFUL if " -" not in word and (has_suffix if is_deep else is_file) else None
    is_dotted = word.startswith(("./", "../", "~/")) or (word.endswith("/") and len(word) > 2)
    if is_file or (is_deep and (has_suffix or is_dotted)):
        return ""
    may_be = _PATH_CHARACTERS.match(word) if is_deep else has_suffix or _BARE_NAME.match(name)
    return _DOUBTFUL if may_be else None


# Demands of a handoff

_LOOKED_AT = 256 * 1024


def _handoff_demands(packet: Any, opened: OpenDocument, outcome: Outcome | None, text: str) -> Iterator[RawClaim]:
    for one in packet.deliverables or ():
        if one.must_create and one.path:
            yield _file_claim(ClaimKind.MUST_CREATE, one.path, "" if outcome is Outcome.COMPLETED else _UNFINISHED)
    is_listed = opened.contract is Contract.RETURN_FORMAT
    cited = "\n".join(opened.model.evidence or ()) if is_listed else text[:_LOOKED_AT]
    for one in packet.evidence or ():
        if one.required and one.path and one.path.strip():
            # A return that does not cite the evidence says nothing false, so the claim is only unverifiable.
            verdict, detail = Verdict.UNVERIFIABLE, " is not cited"
            if is_named(one.path.strip().removeprefix("./").rstrip("/") or "/", cited):
                verdict, detail = Verdict.VERIFIED, ": the return cites it"
            why = f"required evidence{detail}; whether it was read cannot be seen"
            yield _text_claim(ClaimKind.REQUIRED_EVIDENCE, one.path, why, verdict)._replace(is_file=True)
    for criterion in filter(str.strip, packet.success_criteria or ()):
        yield _text_claim(ClaimKind.CRITERION, criterion, "success criterion: whether it is met was not checked")


def is_named(path: str, text: str) -> bool:
    """Tell whether a text names this path. A longer path that contains the path does not count."""
    before = r"(?:(?<![\w./-])(?:\./)?|(?<=repo://))"
    return len(path) <= LONGEST and re.search(rf"{before}{re.escape(path)}(?![\w-]|\.\w)", text) is not None
