"""The claims of one return, by itself and against its handoff, before anybody looks at the disk."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from enum import StrEnum
from typing import Any, Final, NamedTuple

from agentwatch.contracts.reading import read_document
from agentwatch.contracts.shapes import Contract, OpenDocument, Outcome, Return
from agentwatch.delegation.claims import Claim, Verdict
from agentwatch.evidence.disk import LONGEST, Likeness, likeness, pointers
from agentwatch.sources.sessions.reader import read_stored

NOT_UNDERSTOOD: Final = "not understood"
MAX_CLAIMS: Final = 1_000  # claims of one return that are checked; one more says that there were more


class ClaimKind(StrEnum):
    """The kinds of claims; those of a text, and not of a path, have the text in the place of the path."""

    CREATED = "created"
    MODIFIED = "modified"
    DELIVERABLE = "deliverable"
    EVIDENCE = "evidence"
    ARTIFACT = "artifact"
    REFERENCE = "reference"
    MUST_CREATE = "must_create"
    REQUIRED_EVIDENCE = "required_evidence"
    CRITERION = "criterion"
    CONSTRAINT = "constraint"
    SUMMARY = "summary"

    @property
    def is_made(self) -> bool:
        """The child says that it made this file, so it lies in the workspace and holds something."""
        return self in (self.CREATED, self.MODIFIED, self.DELIVERABLE, self.ARTIFACT, self.MUST_CREATE)


class Stated(NamedTuple):
    """A claim before it is checked; it has its verdict and a detail where the text alone decides it.

    `doubtful`: it may be no path, so that its absence says nothing. `unfinished`: the return does not say that the work
    is done. `stated`: more is said about the file than that it is there. `removed`: the return says that it is gone.
    `is_text`: it is none of a path, but what is said of commands, perhaps.
    """

    claim: Claim
    doubtful: bool = False
    unfinished: bool = False
    stated: bool = False
    removed: bool = False
    is_text: bool = False

    @property
    def names_file(self) -> bool:
        """Its path is to be looked at."""
        kind = self.claim.kind
        return kind == ClaimKind.REQUIRED_EVIDENCE or (not self.claim.detail and kind != ClaimKind.CONSTRAINT)


def _stated(kind: ClaimKind, path: str, why: str = "", lines: tuple[int, int] | None = None, **flags: bool) -> Stated:
    return Stated(Claim(kind, path, Verdict.UNVERIFIABLE, why, lines), **flags)


Judge = Callable[..., list[Claim]]

_NOTHING: Final = re.compile(r"\s*(?:\(?none\)?\.?|\(?n/a\)?|-|\[\]|\(empty\))\s*\Z", re.IGNORECASE)
_REPO: Final = re.compile(r"repo://(?P<path>.*?)(?:(?::|#L)(?P<first>\d{1,9})(?:-L?(?P<last>\d{1,9}))?)?\Z", re.DOTALL)
_NOT_A_PATH: Final = "a command, a result or a reference, not a path: nothing on disk tells whether it is true"


def claims_of(
    returned_text: str,
    returned_name: str,
    handoff_text: str | None = None,
    handoff_name: str | None = None,
    *,
    stored: bool = False,
    judge: Judge | None = None,
    read: Callable[[str, str], OpenDocument | None] = read_document,
) -> list[Stated]:
    """The claims of a return, and what its handoff demands of it; nothing where the text is no return. Never raises.

    Names are paths relative to the workspace. `stored`: both are what a session handed over and back. `judge` holds
    what is said of commands against the log, None where there is none.
    """
    opened = None if stored else read(returned_text, returned_name)
    if opened is None or not isinstance(opened.document, Return):
        # The text of a transcript has prose or a fence around the return.
        opened = read_stored(returned_text)
    if opened is None or not isinstance(opened.document, Return):
        return []
    found = [one for stated in _of_return(opened.document, opened.model) for one in _resolved(stated, judge)]
    name = handoff_name or "handoff.json"
    packet = read(handoff_text or "", name)
    if packet is None or packet.contract is not Contract.HANDOFF_PACKET:
        packet = read_stored(handoff_text or "", handed_over=True)
    if packet is not None and packet.contract is Contract.HANDOFF_PACKET:
        found += _demanded(packet.model, opened, returned_text)
    removed = _removed_in(returned_text)
    claims = list(dict.fromkeys(found))
    kept = [one._replace(removed=one.claim.path in removed) for one in claims[:MAX_CLAIMS]]
    if len(claims) > MAX_CLAIMS:
        more = f"this return claims more than {MAX_CLAIMS} things: the rest was not checked, so look for yourself"
        kept.append(_stated(ClaimKind(kept[-1].claim.kind), "", more))
    return kept


def _of_return(document: Return, model: Any) -> Iterator[Stated]:
    """The claims of a return, by its full model, in the order of the document."""
    is_markdown, is_working = document.contract is Contract.RETURN_FORMAT, document.outcome is Outcome.WORKING
    unfinished = is_working and not is_markdown
    if not is_working:
        yield _stated(ClaimKind.SUMMARY, document.summary or "", is_text=True)
    if document.contract is Contract.REPORT_CONTRACT:
        # As they were written: the model leaves out those that break the contract.
        rows = (model.findings or {}).get("context_map")
        for row in rows if isinstance(rows, list) else ():
            if isinstance(row, list) and len(row) > 1 and isinstance(row[1], str) and row[1].strip():
                yield _reference(row[1])
        return
    artifacts = () if is_markdown else model.artifacts or ()
    paths = [(ClaimKind.ARTIFACT, one.path or "") for one in artifacts]
    paths += [(ClaimKind.CREATED, path) for path in document.files_created]
    paths += [(ClaimKind.MODIFIED, path) for path in document.files_modified]
    yield from (_stated(kind, path, unfinished=unfinished) for kind, path in paths if not _NOTHING.match(path))
    for one in (model.deliverables if is_markdown else None) or ():
        if not _NOTHING.match(one.path):
            like = likeness(one.path)
            why = "it names no file, so there is nothing to look for" if like is Likeness.NONE else ""
            yield _stated(ClaimKind.DELIVERABLE, one.path, why, doubtful=like is Likeness.DOUBTFUL)
    evidence = (model.evidence if is_markdown else None) or ()
    yield from (_stated(ClaimKind.EVIDENCE, text, is_text=True) for text in evidence if not _NOTHING.match(text))


def _reference(text: str) -> Stated:
    """A pointer of a context map."""
    if (pointer := _REPO.match(text)) is None:
        why = "not of the form repo://path:first-last, so there is nothing to look for"
        return _stated(ClaimKind.REFERENCE, text, why)
    first = pointer["first"]
    lines = (int(first), int(pointer["last"] or first)) if first is not None else None
    return _stated(ClaimKind.REFERENCE, pointer["path"], lines=lines)


def _resolved(stated: Stated, judge: Judge | None) -> Iterator[Stated]:
    """A text as what it says of commands, and a bullet of the evidence also as the files that it points to."""
    if not stated.is_text:
        yield stated
        return
    kind, text = ClaimKind(stated.claim.kind), stated.claim.path
    is_bullet = kind is ClaimKind.EVIDENCE
    held = judge(kind, text, prose=not is_bullet) if judge is not None and text else []
    named = pointers(text) if is_bullet and all(one.detail == NOT_UNDERSTOOD for one in held) else ()
    yield from (Stated(one, is_text=True) for one in held if not named)
    if is_bullet and not named and not held:
        yield _stated(kind, text, _NOT_A_PATH)
    for pointer in named:
        about = pointer.stated or bool(held) or (judge is not None and _RESULT.search(text) is not None)
        yield _stated(kind, pointer.path, lines=pointer.lines, doubtful=pointer.doubtful, stated=about)


_RESULT: Final = re.compile(r"\b\d+ (?:\w+ )?(?:pass|fail|green)|\bexit(?:s|ed)?\b", re.IGNORECASE)
_REMOVED: Final = re.compile(
    r"\b(?:deleted|removed)\b[ \t`*\"'(:\u2013\u2014-]{0,20}(\S{1,300})"
    r"|(?<!\S)(\S{1,300})(?:[ \t`*\"'(:\u2013\u2014,;.)-]|\b(?:was|is|has been)\b){0,20}(?=\b(?:deleted|removed)\b)",
    re.IGNORECASE,
)


def _removed_in(text: str) -> set[str]:
    """The words that stand beside one that says that something was removed; among them the paths."""
    return {word.strip("`*\"'(),;.:") for words in _REMOVED.findall(text) for word in words}


# Demands of a handoff

_LOOKED_AT: Final = 256 * 1024
_WORD: Final = re.compile(
    r"\b(?!(?:must|should|shall|will|that|this|with|from|into|have|been|when|where|which|each|every|least|there|their"
    r"|they|them|than|then|also|only|other|under|over|about|after|before|without|within|being|does|done|makes?|made"
    r"|very|more|most|some|such)\b)[^\W_]{4,}"
)


def _demanded(packet: Any, opened: OpenDocument, text: str) -> Iterator[Stated]:
    """The demands of a handoff as claims of the return."""
    outcome = getattr(opened.document, "outcome", None)
    unfinished = outcome is not Outcome.COMPLETED
    for one in packet.deliverables or ():
        if one.must_create and one.path:
            yield _stated(ClaimKind.MUST_CREATE, one.path, unfinished=unfinished)
    is_listed = opened.contract is Contract.RETURN_FORMAT
    cited = "\n".join(opened.model.evidence or ()) if is_listed else text[:_LOOKED_AT]
    for one in packet.evidence or ():
        if one.required and one.path and one.path.strip():
            # An omission is no false statement: what was left out is shown, and is no lie.
            verdict, detail = Verdict.UNVERIFIABLE, " is not cited; the return does not claim that the work is done"
            if is_named(one.path.strip().removeprefix("./").rstrip("/") or "/", cited):
                verdict, detail = Verdict.VERIFIED, ": the return cites it; whether it was read cannot be seen"
            elif outcome in (Outcome.COMPLETED, Outcome.PARTIAL):
                detail = " is not cited in the return's Evidence; whether it was read cannot be seen"
            yield Stated(Claim(ClaimKind.REQUIRED_EVIDENCE, one.path, verdict, f"required evidence{detail}"))
    told_words = text[:_LOOKED_AT].casefold()
    for criterion in filter(str.strip, packet.success_criteria or ()):
        words = {word[:5] for word in _WORD.findall(criterion[:LONGEST].casefold())}
        is_told = words and 2 * sum(word in told_words for word in words) >= len(words)
        said = "the return speaks of it; whether it is met was not checked"
        said = said if is_told else "the return says nothing about it, so look for yourself"
        yield _stated(ClaimKind.CRITERION, criterion, f"success criterion: {said}")
    constraints = (one for one in packet.constraints or () if limit_of(one) is not None)
    yield from (_stated(ClaimKind.CONSTRAINT, one) for one in constraints)


def is_named(path: str, text: str) -> bool:
    """Whether a text names a path, and not only a longer one that ends or begins with it."""
    before = r"(?:(?<![\w./-])(?:\./)?|(?<=repo://))"
    return len(path) <= LONGEST and re.search(rf"{before}{re.escape(path)}(?![\w-]|\.\w)", text) is not None


# Constraints

_NOT_MARKDOWN: Final = re.compile(r"(?!.*\.(?:md|markdown|mdx)\Z)", re.IGNORECASE)
_CODE: Final = re.compile(
    r".*\.(?:bash|bat|c|cc|clj|cpp|cs|css|cxx|dart|ex|exs|erl|go|gradle|groovy|h|hpp|hs|html|java|jl|js|jsx|kt|kts"
    r"|lean|lua|m|ml|mjs|cjs|php|pl|pm|ps1|py|pyi|r|rb|rs|sass|scala|scss|sh|sql|svelte|swift|ts|tsx|vue|zig|split)\Z",
    re.IGNORECASE,
)
_CHANGE: Final = r"(?:edit|change|modif|writ|touch)\w*"
_LIMITS: Final = (
    (re.compile(r"\W*markdown[ -]only(?: \w+)?\W*|\W*only markdown(?: \w+)?\W*", re.IGNORECASE), _NOT_MARKDOWN),
    (re.compile(rf"\W*(?:no|do not|don't|never) (?:code {_CHANGE}|{_CHANGE} code)\W*", re.IGNORECASE), _CODE),
)


def limit_of(constraint: str) -> re.Pattern[str] | None:
    """The paths that break a constraint of a handoff; None for one that cannot be held against paths.

    Only a constraint that says nothing else is understood: half of a sentence would be a guess.
    """
    return next((paths for words, paths in _LIMITS if words.fullmatch(constraint)), None)
