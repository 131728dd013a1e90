"""The attestation tab: what the return says of itself, what the evidence says of every claim, what nobody claims."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from textual.content import Content

from agentwatch.app.widgets.details import wording
from agentwatch.app.widgets.details.blocks import (
    Block,
    Field,
    Gap,
    Heading,
    faint,
    field,
    listed,
    plain,
    rich_list,
    text,
)
from agentwatch.app.widgets.details.claim_rows import ChangeRow, ClaimRow
from agentwatch.app.widgets.details.claims import artifact_table, attestation_fields
from agentwatch.app.widgets.details.view import READING, View
from agentwatch.contracts.return_format import AttestationSection, ReturnFormat
from agentwatch.contracts.return_meta import ReturnMeta
from agentwatch.contracts.shapes import Contract, Return
from agentwatch.contracts.subagent_return import SubagentReturn
from agentwatch.delegation.claims import Verdict
from agentwatch.delegation.task import Attempt, Task
from agentwatch.view import looks
from agentwatch.view.runtime import Agreement, Compared, mode_of, model_of
from agentwatch.view.words import plural

_WITHOUT: Final[dict[Contract, str]] = {
    Contract.SUBAGENT_RETURN: "There is no attestation in this contract (subagent-return): it names artifacts, but no "
    "model, no mode and no modified files.",
    Contract.RETURN_META: "There is no attestation in this contract (return-meta): it names artifacts, but no model "
    "and no mode.",
    Contract.REPORT_CONTRACT: "There is no attestation in this contract (report-contract): it names no model, no mode "
    "and no files.",
}


_AGREEMENT_COLORS: Final = {Agreement.MATCHES: "state-completed", Agreement.DIFFERS: "text-warning"}
_ALONE: Final = "changed while this attempt ran alone, and no return claims them"
_AMONG: Final = "changed while several ran, and no return claims them"
_SHOWN: Final = 100
"""Files that nobody claims that are listed."""


def write(view: View) -> Iterator[Block]:
    """The blocks of the tab."""
    yield from _attested(view)
    yield from _evidence(view.task)
    unclaimed = view.tree.unclaimed(view.task)
    if unclaimed is not None:
        yield from _changes("Unclaimed changes", _ALONE, unclaimed.alone, "$text-warning")
        yield from _changes("Unattributed changes", _AMONG, unclaimed.unattributed, "")


def _evidence(task: Task) -> Iterator[Block]:
    """Every claim with its verdict, the false ones first."""
    claims = task.claims
    if not claims:
        return
    tally = []
    for verdict in Verdict:
        look = looks.VERDICTS[verdict]
        if count := sum(claim.verdict is verdict for claim in claims):
            tally.append(Content.styled(f"{look.glyph} {count:,}", f"${look.color}"))
    yield Heading("Claims", len(claims), Content("  ").join(tally))
    yield from map(ClaimRow, looks.claims_of(task))


def _changes(title: str, why: str, paths: Sequence[str], style: str) -> Iterator[Block]:
    if not paths:
        return
    yield Heading(title, len(paths))
    yield text(faint(why))
    yield from (ChangeRow(path, style) for path in paths[:_SHOWN])
    if len(paths) > _SHOWN:
        yield text(faint(f"… and {len(paths) - _SHOWN:,} more"))


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
    opened = view.opened(attempt.returned)
    if opened is None:
        yield READING
        return
    document = opened.model
    if result.contract is Contract.RETURN_FORMAT:
        attested = document.attestation if isinstance(document, ReturnFormat) else None
        yield from _attestation(view, attempt, attested or _remembered(result))
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


def _attestation(view: View, attempt: Attempt, attested: AttestationSection) -> Iterator[Block]:
    """The runtime attestation, each part with what can be said of it. The claimed files follow among the claims."""
    if not view.task.claims:
        yield from attestation_fields(attested)
        return
    packet = attempt.packet or view.task.packet
    yield field("model", _reported(model_of(attested.runtime_model_reported, attempt.run), wording.MODEL_WORDS))
    yield field("mode", _reported(mode_of(attested.runtime_mode_reported, packet), wording.MODE_WORDS))
    for label, paths in (("created", attested.files_created), ("modified", attested.files_modified)):
        count = plural(len(paths), "file") if paths else "none" if paths is not None else "not reported"
        yield field(label, Content(count) if paths else faint(count))
    if attested.limitations:
        yield Field("limits", tuple(rich_list(attested.limitations)))


def _reported(one: Compared, words: Mapping[Agreement, str]) -> Content:
    """A reported model or mode, and how it compares. To differ is no lie: the child itself says so."""
    if not one.reported:
        return faint("not reported")
    color = _AGREEMENT_COLORS.get(one.agreement, "text-muted")
    verdict = Content.styled(words[one.agreement], f"${color}")
    if one.agreement is Agreement.DIFFERS:
        verdict += plain(one.known or "", 60)
    return Content.assemble(plain(one.reported), "   ", verdict)


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
