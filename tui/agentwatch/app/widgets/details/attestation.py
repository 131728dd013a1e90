"""The attestation tab: what the return says of itself, what the evidence says of every claim, what nobody speaks of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from textual.content import Content

from agentwatch.app.markdown_safe import Paragraph
from agentwatch.app.widgets.details.blocks import (
    WIDE,
    Block,
    Column,
    Field,
    Gap,
    Heading,
    Line,
    Table,
    Text,
    faint,
    field,
    fields,
    in_color,
    left_out,
    listed,
    plain,
    rich_line,
    rich_list,
    text,
)
from agentwatch.app.widgets.details.view import READING, View
from agentwatch.contracts.json_returns import Artifact, MetaArtifact, ReturnMeta, SubagentReturn
from agentwatch.contracts.return_format import AttestationSection, ReturnFormat
from agentwatch.contracts.shapes import Contract, Return
from agentwatch.delegation.claims import Call, Claim, Deed, Verdict
from agentwatch.delegation.task import Attempt, Task
from agentwatch.view import looks
from agentwatch.view.words import Agreement, Compared, mode_of, model_of, plural

MODEL_WORDS: Final = {
    Agreement.MATCHES: "✓ as recorded",
    Agreement.DIFFERS: "! differs: recorded as ",
    Agreement.UNKNOWN: "? unverifiable: no source says",
}
"""How a reported model compares; behind the last word of DIFFERS comes the other one."""
MODE_WORDS: Final = {
    Agreement.MATCHES: "✓ as the handoff asked",
    Agreement.DIFFERS: "! differs: the handoff asked for ",
    Agreement.UNKNOWN: "? unverifiable: the handoff names no mode",
}
_AGREEMENT_COLORS: Final = {Agreement.MATCHES: "$state-completed", Agreement.DIFFERS: "$text-warning"}
_MISSING: Final = {
    Contract.SUBAGENT_RETURN: "it names artifacts, but no model, no mode and no modified files",
    Contract.RETURN_META: "it names artifacts, but no model and no mode",
    Contract.REPORT_CONTRACT: "it names no model, no mode and no files",
}
"""What contracts without an attestation leave out."""
_ALONE: Final = "changed while this attempt ran alone, and no return claims them"
_AMONG: Final = "changed while several ran, and no return claims them"
_UNSAID: Final = "what this attempt did by its tools, and its return does not speak of"
_DEED: Final = 12
"""Cells of the column with what kind of deed it is."""
_UNCHECKED: Final = "not checked yet"
_SHOWN: Final = 100
"""Files that nobody claims that are listed."""
_MARK: Final = "  "
"""In front of every line of an entry; the cursor's mark takes its first cell."""
_VERDICT: Final = 16
"""Cells of the column with the verdicts."""


def write(view: View) -> Iterator[Block]:
    """The blocks of the tab."""
    yield from _attested(view)
    if view.task.claims:
        yield from _claims(view.task)
    elif view.checks and view.returned is view.task.latest is not None and not view.task.is_checked:
        yield Heading("Claims", note=faint(_UNCHECKED))
    yield from _deeds(view.task)
    unclaimed = view.tree.unclaimed(view.task)
    if unclaimed is not None:
        yield from _changes("Unclaimed changes", _ALONE, unclaimed.alone, "$text-warning")
        yield from _changes("Unattributed changes", _AMONG, unclaimed.unattributed, "$text-muted")


# What the return says


def _attested(view: View) -> Iterator[Block]:
    attempt = view.returned
    result = attempt.result if attempt else None
    if attempt is None or attempt.returned is None or result is None:
        yield text(faint("Nothing has come back yet, so nothing is attested."))
        return
    yield from view.older(attempt, "has not returned yet; this is what", " said")
    opened = view.opened(attempt.returned)
    if opened is None:
        yield READING
        return
    document = opened.model
    if result.contract is Contract.RETURN_FORMAT:
        attested = document.attestation if isinstance(document, ReturnFormat) else None
        yield from _attestation(view, attempt, attested or _remembered(result))
        return
    yield text(faint(f"There is no attestation in this contract ({result.contract}): {_MISSING[result.contract]}."))
    yield Gap()
    yield from fields(
        ("agent", result.agent),
        ("session", result.session_id),
        ("confidence", None if result.confidence is None else f"{result.confidence:.2f}"),
    )
    files = document if isinstance(document, ReturnMeta) else result
    if isinstance(document, (SubagentReturn, ReturnMeta)):
        yield from artifact_table(document.artifacts)
    else:
        yield from paths("Artifacts", result.artifacts)
    yield from paths("Files created", files.files_created)
    yield from paths("Files modified", files.files_modified)


def _attestation(view: View, attempt: Attempt, attested: AttestationSection) -> Iterator[Block]:
    """The runtime attestation, each part with what can be said of it. The claimed files follow among the claims."""
    if not view.task.claims:
        yield from attestation_fields(attested)
        return
    packet = attempt.packet or view.task.packet
    yield field("model", _reported(model_of(attested.runtime_model_reported, attempt.run), MODEL_WORDS))
    yield field("mode", _reported(mode_of(attested.runtime_mode_reported, packet), MODE_WORDS))
    for label, files in (("created", attested.files_created), ("modified", attested.files_modified)):
        none = "none" if files is not None else "not reported"
        yield field(label, Content(plural(len(files), "file")) if files else faint(none))
    yield from _limits(attested)


def _reported(one: Compared, words: Mapping[Agreement, str]) -> Content:
    """A reported model or mode, and how it compares. To differ is no lie: the child itself says so."""
    if not one.reported:
        return faint("not reported")
    verdict = Content.styled(words[one.agreement], _AGREEMENT_COLORS.get(one.agreement, "$text-muted"))
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


def attestation_fields(attestation: AttestationSection) -> Iterator[Block]:
    """A runtime attestation: what is None was not reported, an empty list says that there are none."""
    for label, value in (("model", attestation.runtime_model_reported), ("mode", attestation.runtime_mode_reported)):
        yield field(label, plain(value) if value else faint("not reported"))
    for label, files in (("created", attestation.files_created), ("modified", attestation.files_modified)):
        yield Field(label, tuple(listed(files or (), "none" if files is not None else "not reported")))
    yield from _limits(attestation)


def _limits(attestation: AttestationSection) -> Iterator[Block]:
    if attestation.limitations:
        yield Field("limits", tuple(rich_list(attestation.limitations)))


def artifact_table(artifacts: Sequence[Artifact | MetaArtifact] | None) -> Iterator[Block]:
    """Artifacts as type, path and summary."""
    if artifacts is None:
        return
    yield Heading("Artifacts", len(artifacts))
    if not artifacts:
        yield text(faint("none"))
        return
    rows = [
        (plain(one.type, 20) if one.type else faint("-"), plain(one.path or "-"), rich_line(one.summary or "-"))
        for one in artifacts
    ]
    yield Table((Column("type"), Column("path", flexible=True), Column("summary", flexible=True)), rows)


def paths(title: str, files: Sequence[str] | None) -> Iterator[Block]:
    """A section of foreign paths; none if there are none."""
    if files:
        yield Heading(title, len(files))
        yield from listed(files, "none")


# What the evidence says


class Entry(NamedTuple):
    """What the cursor stands on: a claim, or a changed file that no return claims, which has no kind. `call` is what
    was done, where a verdict rests on that, or where that is all there is to tell."""

    kind: str
    path: str
    lines: tuple[int, int] | None
    call: Call | None = None

    @classmethod
    def of(cls, claim: Claim) -> Entry:
        return cls(claim.kind, claim.path, claim.lines, claim.call)


def claimed(path: str, lines: tuple[int, int] | None) -> Content:
    """A foreign path, and the lines of it that are meant."""
    if lines is None:
        return plain(path)
    first, last = lines
    return plain(path) + Content(f":{first}" if first == last else f":{first}-{last}")


def _claims(task: Task) -> Iterator[Block]:
    """Every claim with its verdict, the false ones first."""
    claims = looks.claims_of(task)
    counts = Counter(claim.verdict for claim in claims)
    tally = [in_color(looks.VERDICTS[verdict], f"{counts[verdict]:,}") for verdict in Verdict if counts[verdict]]
    yield Heading("Claims", len(claims), Content("  ").join(tally))
    yield from map(_ClaimRow, claims)


class _ClaimRow(NamedTuple):
    """A claim: verdict and path, and below them its kind and the reason."""

    claim: Claim

    def lines(self, width: int) -> Iterator[Line]:
        claim = self.claim
        verdict = in_color(looks.VERDICTS[claim.verdict])
        path, below = claimed(claim.path, claim.lines), _MARK * 2
        about = Content.assemble(faint(claim.kind.replace("_", " ")), "   ", faint(plain(claim.detail).plain))
        if width >= WIDE:
            lead = Content.assemble(_MARK, verdict.pad_right(_VERDICT - verdict.cell_length))
            parts = [Paragraph(path, lead, " " * len(lead))]
        else:
            parts = [Paragraph(verdict, Content(_MARK), _MARK), Paragraph(path, Content(below), below)]
        for part in (*parts, Paragraph(about, Content(below), below)):
            for line in Text(part).lines(width):
                yield line._replace(choice=Entry.of(claim))


def _deeds(task: Task) -> Iterator[Block]:
    if task.unsaid:
        yield Heading("Done and not said", len(task.unsaid))
        yield text(faint(_UNSAID))
        yield from (_DeedRow(deed) for deed in task.unsaid[:_SHOWN])
        yield from left_out(len(task.unsaid), _SHOWN)


class _DeedRow(NamedTuple):
    """Something that was done and that the return does not speak of."""

    deed: Deed

    def lines(self, width: int) -> Iterator[Line]:
        deed = self.deed
        lead = Content.assemble(_MARK, faint(deed.kind.ljust(_DEED)))
        for line in Text(Paragraph(plain(deed.what), lead, " " * len(lead))).lines(width):
            yield line._replace(choice=Entry(deed.kind, deed.what, None, deed.call))


def _changes(title: str, why: str, files: Sequence[str], color: str) -> Iterator[Block]:
    if files:
        yield Heading(title, len(files))
        yield text(faint(why))
        yield from (_ChangeRow(path, color) for path in files[:_SHOWN])
        yield from left_out(len(files), _SHOWN)


class _ChangeRow(NamedTuple):
    """A changed file that no return claims; `color` is that of its sign."""

    path: str
    color: str

    def lines(self, width: int) -> Iterator[Line]:
        lead = Content.assemble(_MARK, ("± ", self.color))
        for line in Text(Paragraph(plain(self.path), lead, " " * len(lead))).lines(width):
            yield line._replace(choice=Entry("", self.path, None))
