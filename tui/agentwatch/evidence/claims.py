"""The claims of one return, by itself and against its handoff, before anybody looks at the disk."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from enum import StrEnum
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple, cast

from agentwatch.contracts.reading import read_and_open
from agentwatch.contracts.shapes import Contract, Document, Outcome, Return
from agentwatch.delegation.claims import Claim, Verdict
from agentwatch.evidence.disk import LONGEST, Likeness, likeness, pointers
from agentwatch.evidence.statements import Held
from agentwatch.text import folded

if TYPE_CHECKING:
    # Each takes a while to load, and few workspaces hold all of them.
    from agentwatch.contracts.fields import Model
    from agentwatch.contracts.handoff import HandoffPacket
    from agentwatch.contracts.json_returns import Report, ReturnMeta, SubagentReturn
    from agentwatch.contracts.return_format import ReturnFormat

MAX_CLAIMS: Final = 1_000
"""Claims of one return that are checked; one more says that there were more."""


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


class Demands(NamedTuple):
    """The demands of a packet that can be looked for: files to create, evidence to read, and its sentences."""

    created: tuple[str, ...] = ()
    evidence: tuple[str, ...] = ()
    criteria: tuple[str, ...] = ()
    constraints: tuple[str, ...] = ()


class DocumentClaims(NamedTuple):
    """The part of one document that is held against the evidence; of what is no return, `returned` is None.

    `cited` is the evidence that a return cites, None where its contract has no section for that.
    """

    returned: Return | None = None
    stated: tuple[Stated, ...] = ()
    cited: tuple[str, ...] | None = None
    demands: Demands | None = None


class ParsedClaims:
    """Reads the documents of a workspace for a command that looks once, and remembers what they claim, while they fit
    into `room` characters: so each is parsed once for the tree and the evidence."""

    def __init__(self, room: int = 64 * 1024 * 1024) -> None:
        self._room = room
        self._known: dict[str, tuple[str, DocumentClaims]] = {}

    def read(self, text: str, name: str) -> Document | None:
        """Recognise a text, as `read_document` does."""
        opened = read_and_open(text, name)
        if opened is None:
            return None
        self._room -= len(text)
        if self._room > 0:
            self._known[name] = text, _claims_by(opened)
        return replace(opened, model=None)

    def claims(self, text: str, name: str) -> DocumentClaims:
        """The claims of a text, by what was parsed where it was."""
        known = self._known.get(name)
        return known[1] if known is not None and known[0] == text else read_claims(text, name)


def read_claims(text: str, name: str) -> DocumentClaims:
    """The claims of the text of a file. Never raises."""
    return _claims_by(read_and_open(text, name))


ReadClaims = Callable[[str, str], DocumentClaims]
Judge = Callable[..., "list[Held]"]
"""Holds a text against the log of what was done; with `prose` and `demanded` as `statements.judge_text` has them."""


def _claims_by(opened: Document | None) -> DocumentClaims:
    if opened is None:
        return DocumentClaims()
    document, model = opened.fields, opened.model
    if isinstance(document, Return):
        is_cited = document.contract is Contract.RETURN_FORMAT
        cited = tuple(cast("ReturnFormat", model).evidence or ()) if is_cited else None
        return DocumentClaims(document, tuple(_of_return(document, model)), cited)
    if document.contract is not Contract.HANDOFF_PACKET:
        return DocumentClaims()
    packet = cast("HandoffPacket", model)
    demands = Demands(
        tuple(one.path for one in packet.deliverables or () if one.must_create and one.path),
        tuple(one.path for one in packet.evidence or () if one.required and one.path and one.path.strip()),
        tuple(one for one in packet.success_criteria or () if one.strip()),
        tuple(packet.constraints or ()),
    )
    return DocumentClaims(demands=demands)


_NOTHING: Final = re.compile(r"\s*(?:\(?none\)?\.?|\(?n/a\)?|-|\[\]|\(empty\))\s*\Z", re.IGNORECASE)
_REPO: Final = re.compile(r"repo://(?P<path>.*?)(?:(?::|#L)(?P<first>\d{1,9})(?:-L?(?P<last>\d{1,9}))?)?\Z", re.DOTALL)
_NOT_A_PATH: Final = "a command, a result or a reference, not a path: nothing on disk tells whether it is true"


def _of_return(document: Return, model: Model | None) -> Iterator[Stated]:
    """The claims of a return, by its full model, in the order of the document."""
    unfinished = document.outcome is Outcome.WORKING
    if not unfinished:
        yield _stated(ClaimKind.SUMMARY, document.summary or "", is_text=True)
    if document.contract is Contract.RETURN_FORMAT:
        yield from _of_return_format(cast("ReturnFormat", model))
    elif document.contract is Contract.REPORT_CONTRACT:
        yield from _of_report(cast("Report", model))
    else:
        artifacts = cast("SubagentReturn | ReturnMeta", model).artifacts or ()
        yield from _files(ClaimKind.ARTIFACT, [one.path or "" for one in artifacts], unfinished=unfinished)
        for one in artifacts if not unfinished else ():
            yield _stated(ClaimKind.ARTIFACT, one.summary or "", is_text=True)
    if document.contract is Contract.RETURN_META:
        meta = cast("ReturnMeta", model)
        yield from _files(ClaimKind.CREATED, meta.files_created, unfinished=unfinished)
        yield from _files(ClaimKind.MODIFIED, meta.files_modified, unfinished=unfinished)


def _files(kind: ClaimKind, paths: Iterable[str] | None, *, unfinished: bool = False) -> Iterator[Stated]:
    return (_stated(kind, path, unfinished=unfinished) for path in _listed(paths))


def _listed(bullets: Iterable[str] | None) -> Iterator[str]:
    return (bullet for bullet in bullets or () if not _NOTHING.match(bullet))


def _of_return_format(document: ReturnFormat) -> Iterator[Stated]:
    if document.attestation is not None:
        yield from _files(ClaimKind.CREATED, document.attestation.files_created)
        yield from _files(ClaimKind.MODIFIED, document.attestation.files_modified)
    for one in document.deliverables or ():
        if _NOTHING.match(one.path):
            continue
        yield _stated(ClaimKind.DELIVERABLE, one.description or "", is_text=True)
        like = likeness(one.path)
        why = "it names no file, so there is nothing to look for" if like is Likeness.NONE else ""
        yield _stated(ClaimKind.DELIVERABLE, one.path, why, doubtful=like is Likeness.DOUBTFUL)
    yield from (_stated(ClaimKind.EVIDENCE, text, is_text=True) for text in _listed(document.evidence))


def _of_report(document: Report) -> Iterator[Stated]:
    """The pointers of the context map as they were written: the model leaves out those that break the contract."""
    rows = (document.findings or {}).get("context_map")
    for row in rows if isinstance(rows, list) else ():
        if not (isinstance(row, list) and len(row) > 1 and isinstance(row[1], str) and row[1].strip()):
            continue
        if (pointer := _REPO.match(row[1])) is None:
            why = "not of the form repo://path:first-last, so there is nothing to look for"
            yield _stated(ClaimKind.REFERENCE, row[1], why)
            continue
        first = pointer["first"]
        lines = (int(first), int(pointer["last"] or first)) if first is not None else None
        yield _stated(ClaimKind.REFERENCE, pointer["path"], lines=lines)


# All claims of a return


def claims_of(
    returned_text: str,
    returned_name: str,
    handoff_text: str | None = None,
    handoff_name: str | None = None,
    *,
    stored: bool = False,
    judge: Judge | None = None,
    read: ReadClaims = read_claims,
) -> list[Stated]:
    """The claims of a return, and what its handoff demands of it; nothing where the text is no return. Never raises.

    Names are paths relative to the workspace. `stored`: both are what a session handed over and back. `judge` holds
    what is said of commands against the log, None where there is none.
    """
    told = DocumentClaims() if stored else read(returned_text, returned_name)
    if told.returned is None:
        # The text of a transcript has prose or a fence around the return.
        told = _claims_by(read_and_open(returned_text, returned_name, embedded=True))
    if told.returned is None:
        return []
    found = [one for stated in told.stated for one in _resolved(stated, judge)]
    if handoff_text is not None:
        name = handoff_name or "handoff.json"
        demands = read(handoff_text, name).demands
        demands = demands or _claims_by(read_and_open(handoff_text, name, handed_over=True)).demands
        found += demanded_of(demands or Demands(), told.cited, told.returned.outcome, returned_text, judge)
    removed = set(_removed_in(returned_text))
    claims: dict[tuple[object, ...], Stated] = {}
    for one in found:
        kind, path = one.claim.kind, one.claim.path
        key = (kind, path, one.claim.lines, one.claim.call, one.claim.detail if one.is_text else "")
        is_removed = path in removed and kind != ClaimKind.MUST_CREATE
        claims.setdefault(key, one._replace(removed=True) if is_removed else one)
    kept = list(islice(claims.values(), MAX_CLAIMS))
    if len(claims) > MAX_CLAIMS:
        more = f"this return claims more than {MAX_CLAIMS} things: the rest was not checked, so look for yourself"
        kept.append(_stated(ClaimKind(kept[-1].claim.kind), "", more))
    return kept


def _resolved(stated: Stated, judge: Judge | None) -> Iterator[Stated]:
    """A text as what it says of commands, and a bullet of the evidence also as the files that it points to."""
    if not stated.is_text:
        yield stated
        return
    kind, text = ClaimKind(stated.claim.kind), stated.claim.path
    is_bullet = kind is ClaimKind.EVIDENCE
    held = judge(text, prose=not is_bullet) if judge is not None and text else []
    named = pointers(text) if is_bullet and not any(one.is_command for one in held) else ()
    if named:
        held = [one for one in held if one.is_understood]
    for one in held:
        yield Stated(Claim(kind, one.text, one.verdict, one.detail, call=one.call), is_text=True)
    if is_bullet and not named and not held:
        yield _stated(kind, text, _NOT_A_PATH)
    for pointer in named:
        about = pointer.stated or bool(held) or (judge is not None and _RESULT.search(text) is not None)
        yield _stated(kind, pointer.path, lines=pointer.lines, doubtful=pointer.doubtful, stated=about)


_RESULT: Final = re.compile(r"\b\d+ (?:\w+ )?(?:pass|fail|green)|\bexit(?:s|ed)?\b", re.IGNORECASE)
_REMOVES: Final = re.compile(r"\b(?:deleted|removed)\b", re.IGNORECASE)
_WAS: Final = re.compile(r"\s(?:was|is|has been)\Z")
_OPENING: Final = " \t`*\"'(:\u2013\u2014-"
_BETWEEN: Final = f"{_OPENING}),;."
_BESIDE: Final = 300


def _removed_in(text: str) -> Iterator[str]:
    """The words that stand beside one that says that something was removed; among them the paths."""
    lower = folded(text)
    if "deleted" not in lower and "removed" not in lower:
        return
    for verb in _REMOVES.finditer(text):
        before = _WAS.sub("", text[max(verb.start() - _BESIDE, 0) : verb.start()].rstrip(_BETWEEN)).rstrip(_BETWEEN)
        after = text[verb.end() : verb.end() + _BESIDE].lstrip(_OPENING)
        yield from (word.lstrip(_OPENING).rstrip(_BETWEEN) for word in (*before.split()[-1:], *after.split()[:1]))


# Demands of a handoff

CITED: Final = "required evidence: the return cites it; whether it was read cannot be seen"
_WORD: Final = re.compile(r"[^\W_]{4,}")
_LOOKED_AT: Final = 256 * 1024
_LONGEST_CRITERION: Final = 4_096
_STEM: Final = 5
"""Letters by which two forms of a word are the same (`creates`, `created`)."""
_COMMON: Final = re.compile(
    r"(?:must|should|shall|will|that|this|with|from|into|have|been|when|where|which|each|every|least|there|their|they"
    r"|them|than|then|also|only|other|under|over|about|after|before|without|within|being|does|done|makes?|made|very"
    r"|more|most|some|such)\Z"
)
_NO_NAME_BEFORE: Final = re.compile(r"(?<![\w./-])")
_BEGINS: Final = re.compile(r"(?<![\w./-])|(?<=repo://)")
_ENDS: Final = re.compile(r"(?![\w-]|\.\w)")


def demanded_of(
    demands: Demands, cited: Sequence[str] | None, outcome: Outcome | None, text: str, judge: Judge | None = None
) -> Iterator[Stated]:
    """The demands of a handoff as claims of the return; `cited` is None where its contract has no section for that."""
    unfinished = outcome is not Outcome.COMPLETED
    yield from (_stated(ClaimKind.MUST_CREATE, path, unfinished=unfinished) for path in demands.created)
    looked_at = text[:_LOOKED_AT]
    for path in demands.evidence:
        verdict, detail = _cited(path.strip(), cited, looked_at, outcome)
        yield Stated(Claim(ClaimKind.REQUIRED_EVIDENCE, path, verdict, f"required evidence{detail}"))
    stems = {word[:_STEM] for word in _WORD.findall(looked_at.casefold())} if demands.criteria else set()
    for criterion in demands.criteria:
        held = judge(criterion, prose=True, demanded=True) if judge is not None and not unfinished else []
        if len(held) == 1:
            # Whoever says that all is done says this, too.
            yield Stated(Claim(ClaimKind.CRITERION, criterion, held[0].verdict, held[0].detail, call=held[0].call))
            continue
        said = "the return speaks of it; whether it is met was not checked"
        words = said if _has_trace(criterion, stems) else "the return says nothing about it, so look for yourself"
        yield _stated(ClaimKind.CRITERION, criterion, f"success criterion: {words}")
    yield from (_stated(ClaimKind.CONSTRAINT, one) for one in demands.constraints if limit_of(one) is not None)


def _cited(path: str, cited: Sequence[str] | None, text: str, outcome: Outcome | None) -> tuple[Verdict, str]:
    path = path.removeprefix("./").rstrip("/")
    if not path or len(path) > LONGEST:
        return Verdict.UNVERIFIABLE, ": the handoff names no file here"
    if _names(path, text if cited is None else "\n".join(cited)):
        return Verdict.VERIFIED, CITED.removeprefix("required evidence")
    if cited is None:
        return Verdict.UNVERIFIABLE, ": this return's contract has no section to cite it in, and the text does not"
    if _names(path, text):
        return Verdict.UNVERIFIABLE, ": the return mentions it, but does not cite it in its Evidence"
    if outcome not in (Outcome.COMPLETED, Outcome.PARTIAL):
        return Verdict.UNVERIFIABLE, " is not cited; the return does not claim that the work is done"
    # An omission is no false statement: what was left out is shown, and is no lie.
    return Verdict.UNVERIFIABLE, " is not cited in the return's Evidence; whether it was read cannot be seen"


def _names(path: str, text: str) -> bool:
    """The text names a path, and not only a longer one that ends or begins with it."""
    # A pattern of each path would take longer to make than all else that is said of it.
    at = text.find(path)
    while at >= 0:
        begins = _BEGINS.match(text, at) or (text.endswith("./", 0, at) and _NO_NAME_BEFORE.match(text, at - 2))
        if begins and _ENDS.match(text, at + len(path)):
            return True
        at = text.find(path, at + 1)
    return False


def _has_trace(criterion: str, stems: set[str]) -> bool:
    words = _WORD.findall(criterion[:_LONGEST_CRITERION].casefold())
    wanted = {word[:_STEM] for word in words if not _COMMON.match(word)}
    return bool(wanted) and 2 * len(wanted & stems) >= len(wanted)


# Constraints

_LONGEST_CONSTRAINT: Final = 200
_DECORATION: Final = re.compile(r"[\s*_`\"'\u2018\u2019\u201c\u201d.!]+")
_QUOTES: Final = re.compile(r"[\s*`\"'\u2018\u2019]+")
_NO: Final = r"(?:no|never|do not|don t|without|avoid|must not)"
_CHANGE: Final = r"(?:edits?|editing|changes?|changing|modif(?:y|ying|ications?)|writes?|writing|touch(?:ing)?)"
_ONLY_MARKDOWN: Final = re.compile(
    r"(?:(?:only )?markdown(?: |-)only(?: outputs?| files?| deliverables?| edits?| changes?)?"
    r"|(?:outputs?|write|produce|create|edit)?:? ?only markdown(?: outputs?| files?)?)\Z"
)
_NO_CODE: Final = re.compile(
    rf"(?:{_NO} (?:any )?(?:source )?code {_CHANGE}|{_NO} {_CHANGE} (?:any |the |of |to )*(?:source )?code"
    rf"|{_NO} {_CHANGE} (?:to )?(?:any |the )?source(?: code| files?))\Z"
)
_NO_FILES: Final = re.compile(
    rf"(?:read(?: |-)only|{_NO} (?:any )?(?:file )?{_CHANGE}|{_NO} {_CHANGE} (?:to )?(?:any |the )?files?)\Z"
)
_ONLY_BELOW: Final = re.compile(
    rf"(?:{_NO} (?:file |code )?{_CHANGE}(?: to)?(?: any| the)?(?: files?| anything| code)? outside(?: of)?(?: the)?"
    r"|(?:only edit|edit only|only change|change only|only modify|modify only)(?: files?)? (?:in|under|below|inside))"
    r" (?P<path>[\w.@+-]+(?:/[\w.@+-]+)*)/?(?: directory| folder)?\Z",
    re.IGNORECASE,
)
_MARKDOWN: Final = (".md", ".markdown", ".mdx")
_CODE: Final = re.compile(
    r"\.(?:bash|bat|c|cc|clj|cpp|cs|css|cxx|dart|ex|exs|erl|go|gradle|groovy|h|hpp|hs|html|java|jl|js|jsx|kt|kts"
    r"|lean|lua|m|ml|mjs|cjs|php|pl|pm|ps1|py|pyi|r|rb|rs|sass|scala|scss|sh|sql|svelte|swift|ts|tsx|vue|zig|split)\Z"
)


def limit_of(constraint: str) -> Callable[[str], bool] | None:
    """Whether a path breaks a constraint of a handoff; None for one that cannot be held against paths.

    Only a constraint that says nothing else is understood: half of a sentence would be a guess.
    """
    if len(constraint) > _LONGEST_CONSTRAINT:
        return None
    words = _DECORATION.sub(" ", constraint.casefold()).strip()
    if _ONLY_MARKDOWN.match(words):
        return lambda path: not path.casefold().endswith(_MARKDOWN)
    if _NO_CODE.match(words):
        return lambda path: _CODE.search(path.casefold()) is not None
    if _NO_FILES.match(words):
        return lambda _: True
    # A path keeps its dots and its case.
    match = _ONLY_BELOW.match(_QUOTES.sub(" ", constraint).strip(" .!"))
    return None if match is None else lambda path: not f"{path}/".startswith(f"{match['path']}/")
