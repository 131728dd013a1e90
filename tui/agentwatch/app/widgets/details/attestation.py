"""The attestation tab: what the return says of itself, and what the evidence says of every claim in it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from textual.content import Content

from agentwatch.app.widgets.details import wording
from agentwatch.app.widgets.details.blocks import (
    Block,
    Column,
    Gap,
    Heading,
    Table,
    faint,
    field,
    listed,
    plain,
    text,
)
from agentwatch.app.widgets.details.claims import artifact_table, attestation_fields
from agentwatch.app.widgets.details.view import View
from agentwatch.contracts.return_format import AttestationSection, ReturnFormat
from agentwatch.contracts.return_meta import ReturnMeta
from agentwatch.contracts.shapes import Contract, Return
from agentwatch.contracts.subagent_return import SubagentReturn
from agentwatch.delegation.claims import Claim, Verdict

_WITHOUT: Final[dict[Contract, str]] = {
    Contract.SUBAGENT_RETURN: "There is no attestation in this contract (subagent-return): it names artifacts, but no "
    "model, no mode and no modified files.",
    Contract.RETURN_META: "There is no attestation in this contract (return-meta): it names artifacts, but no model "
    "and no mode.",
    Contract.REPORT_CONTRACT: "There is no attestation in this contract (report-contract): it names no model, no mode "
    "and no files.",
}


_COLUMNS: Final = (Column("verdict"), Column("claim"), Column("of", flexible=True), Column("because", flexible=True))
_ORDER: Final = {Verdict.CONTRADICTED: 0, Verdict.UNVERIFIABLE: 1, Verdict.VERIFIED: 2}


def write(view: View) -> Iterator[Block]:
    """The blocks of the tab."""
    yield from _attested(view)
    yield from _evidence(view.task.claims)


def _evidence(claims: Sequence[Claim]) -> Iterator[Block]:
    """Every claim with its verdict, the false ones first."""
    if not claims:
        return
    yield Gap()
    yield Heading("Evidence", len(claims))
    rows = []
    for claim in sorted(claims, key=lambda claim: _ORDER[claim.verdict]):
        look = wording.VERDICT_LOOKS[claim.verdict]
        verdict = Content.styled(f"{look.glyph} {look.word}", f"${look.color}")
        rows.append((verdict, faint(claim.kind.replace("_", " ")), plain(claim.path), faint(claim.detail)))
    yield Table(_COLUMNS, rows)


def _attested(view: View) -> Iterator[Block]:
    attempt = view.returned
    result = attempt.result if attempt else None
    if attempt is None or attempt.returned is None or result is None:
        yield text(faint("Nothing has come back yet, so nothing is attested."))
        return
    if attempt is not view.task.latest:
        now = view.task.attempt
        yield text(faint(f"Attempt {now} has not returned yet; this is what attempt {attempt.number} said."))
        yield Gap()
    document = view.document(attempt.returned)
    if result.contract is Contract.RETURN_FORMAT:
        attested = document.attestation if isinstance(document, ReturnFormat) else None
        yield from attestation_fields(attested or _remembered(result))
        return
    yield text(faint(_WITHOUT.get(result.contract, "There is no attestation in this contract.")))
    yield Gap()
    yield from _who(result)
    if isinstance(document, (SubagentReturn, ReturnMeta)):
        yield from artifact_table(document.artifacts)
    else:
        yield from _paths("Artifacts", result.artifacts)
    files = document if isinstance(document, ReturnMeta) else result
    yield from _paths("Files created", files.files_created)
    yield from _paths("Files modified", files.files_modified)


def _remembered(result: Return) -> AttestationSection:
    """The attestation of a return whose text is gone, or whose section has no header."""
    return AttestationSection(
        runtime_model_reported=result.model,
        runtime_mode_reported=result.mode,
        files_created=list(result.files_created),
        files_modified=list(result.files_modified),
        limitations=list(result.limitations),
    )


def _paths(title: str, paths: Sequence[str] | None) -> Iterator[Block]:
    if paths:
        yield Heading(title, len(paths))
        yield from listed(paths, "none")


def _who(result: Return) -> Iterator[Block]:
    """What contracts without an attestation say of who did the work."""
    if result.agent:
        yield field("agent", plain(result.agent))
    if result.session_id:
        yield field("session", plain(result.session_id))
    if result.confidence is not None:
        yield field("confidence", Content(f"{result.confidence:.2f}"))
