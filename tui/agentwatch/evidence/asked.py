"""What a handoff asked for and the return has to show: files, evidence read, criteria met, constraints kept."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from agentwatch.contracts.shapes import Outcome
from agentwatch.delegation.claims import Verdict
from agentwatch.evidence.commands.statements import statements_in
from agentwatch.evidence.pointers import LONGEST
from agentwatch.evidence.shapes import Assertion, ClaimKind, Limit

if TYPE_CHECKING:
    from agentwatch.contracts.handoff import HandoffPacket

CITED: Final = "required evidence: the return cites it; whether it was read cannot be seen"
NOT_CITED: Final = "required evidence is not cited in the return's Evidence; whether it was read cannot be seen"
ONLY_MENTIONED: Final = "required evidence: the return mentions it, but does not cite it in its Evidence"
NO_FILE: Final = "required evidence: the handoff names no file here"
NO_PLACE: Final = "required evidence: this return's contract has no section to cite it in, and the text does not"
NOT_FINISHED: Final = "required evidence is not cited; the return does not claim that the work is done"
MENTIONED: Final = "success criterion: the return speaks of it; whether it is met was not checked"
NO_TRACE: Final = "success criterion: the return says nothing about it, so look for yourself"

_WORD: Final = re.compile(r"[^\W_]{4,}")
_LOOKED_AT: Final = 256 * 1024
_LONGEST_CRITERION: Final = 4_096
_LONGEST_CONSTRAINT: Final = 200
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
_DECORATION: Final = re.compile(r"[\s*_`\"'\u2018\u2019\u201c\u201d.!]+")
_QUOTES: Final = re.compile(r"[\s*`\"'\u2018\u2019]+")
_NO: Final = r"(?:no|never|do not|don t|without|avoid|must not)"
_CHANGE: Final = r"(?:edits?|editing|changes?|changing|modif(?:y|ying|ications?)|writes?|writing|touch(?:ing)?)"
_LIMITS: Final = (
    (
        Limit.ONLY_MARKDOWN,
        (
            r"(?:(?:only )?markdown(?: |-)only(?: outputs?| files?| deliverables?| edits?| changes?)?"
            r"|(?:outputs?|write|produce|create|edit)?:? ?only markdown(?: outputs?| files?)?)\Z"
        ),
    ),
    (
        Limit.NO_CODE,
        (
            rf"(?:{_NO} (?:any )?(?:source )?code {_CHANGE}|{_NO} {_CHANGE} (?:any |the |of |to )*(?:source )?code"
            rf"|{_NO} {_CHANGE} (?:to )?(?:any |the )?source(?: code| files?))\Z"
        ),
    ),
    (
        Limit.NO_FILES,
        rf"(?:read(?: |-)only|{_NO} (?:any )?(?:file )?{_CHANGE}|{_NO} {_CHANGE} (?:to )?(?:any |the )?files?)\Z",
    ),
)
_BELOW: Final = (
    r"(?i)"
    rf"(?:{_NO} (?:file |code )?{_CHANGE}(?: to)?(?: any| the)?(?: files?| anything| code)? outside(?: of)?(?: the)?"
    r"|(?:only edit|edit only|only change|change only|only modify|modify only)(?: files?)? (?:in|under|below|inside))"
    r" (?P<path>[\w.@+-]+(?:/[\w.@+-]+)*)/?(?: directory| folder)?\Z"
)


class Demands(NamedTuple):
    """What a packet asks for that can be looked for: the paths of the files that it wants `created` and of the evidence
    that has to be read, and its sentences."""

    created: tuple[str, ...] = ()
    evidence: tuple[str, ...] = ()
    criteria: tuple[str, ...] = ()
    constraints: tuple[str, ...] = ()


def demands_of(packet: HandoffPacket) -> Demands:
    """What a packet asks for."""
    return Demands(
        tuple(one.path for one in packet.deliverables or () if one.must_create and one.path),
        tuple(one.path for one in packet.evidence or () if one.required and one.path and one.path.strip()),
        tuple(one for one in packet.success_criteria or () if one.strip()),
        tuple(packet.constraints or ()),
    )


def assertions_of(
    demands: Demands,
    evidence: Sequence[str] | None,
    outcome: Outcome | None,
    returned_text: str,
    made: Sequence[str],
    *,
    logged: bool = False,
) -> Iterator[Assertion]:
    """What the handoff demands of this return.

    `evidence` is what it cites, None where its contract has no section for that; `made` are the paths that it claims to
    have made; `logged`: what is demanded of commands can be held against a log.
    """
    unfinished = outcome is not Outcome.COMPLETED
    for path in demands.created:
        yield Assertion(ClaimKind.MUST_CREATE, path, unfinished=unfinished)
    looked_at = returned_text[:_LOOKED_AT]
    cited = None if evidence is None else "\n".join(evidence)
    for path in demands.evidence:
        yield Assertion(ClaimKind.REQUIRED_EVIDENCE, path, settled=_cited(path.strip(), cited, looked_at, outcome))
    if demands.criteria:
        stems = {word[:_STEM] for word in _WORD.findall(looked_at.casefold())}
        for criterion in demands.criteria:
            said = statements_in(criterion, demanded=True) if logged and not unfinished else []
            if len(said) == 1:
                # Whoever says that all is done says this, too.
                yield Assertion(ClaimKind.CRITERION, criterion, statement=said[0])
                continue
            words = MENTIONED if _has_trace(criterion, stems) else NO_TRACE
            yield Assertion(ClaimKind.CRITERION, criterion, settled=(Verdict.UNVERIFIABLE, words))
    for constraint in demands.constraints:
        limit, below = limit_of(constraint)
        if limit is not None:
            yield Assertion(ClaimKind.CONSTRAINT, constraint, limit=limit, below=below, made=tuple(made))


def limit_of(constraint: str) -> tuple[Limit | None, str | None]:
    """What a constraint demands of the files, and the directory it allows; (None, None) where it cannot be checked.

    Only a constraint that says nothing else is understood: half of a sentence would be a guess.
    """
    if len(constraint) > _LONGEST_CONSTRAINT:
        return None, None
    words = _DECORATION.sub(" ", constraint.casefold()).strip()
    for limit, pattern in _LIMITS:
        if re.match(pattern, words):
            return limit, None
    # A path keeps its dots and its case.
    match = re.match(_BELOW, _QUOTES.sub(" ", constraint).strip(" .!"))
    return (Limit.ONLY_BELOW, match["path"]) if match is not None else (None, None)


def _cited(path: str, cited: str | None, text: str, outcome: Outcome | None) -> tuple[Verdict, str]:
    path = path.removeprefix("./").rstrip("/")
    if not path or len(path) > LONGEST:
        return Verdict.UNVERIFIABLE, NO_FILE
    if _names(path, cited if cited is not None else text):
        return Verdict.VERIFIED, CITED
    if cited is None:
        return Verdict.UNVERIFIABLE, NO_PLACE
    if _names(path, text):
        return Verdict.UNVERIFIABLE, ONLY_MENTIONED
    if outcome not in (Outcome.COMPLETED, Outcome.PARTIAL):
        return Verdict.UNVERIFIABLE, NOT_FINISHED
    # An omission is no false statement: what was left out is shown, and is no lie.
    return Verdict.UNVERIFIABLE, NOT_CITED


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
