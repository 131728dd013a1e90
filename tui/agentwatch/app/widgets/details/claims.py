"""What a return claims to have made: shown in the same way by the return tab and the attestation tab."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from agentwatch.app.widgets.details.blocks import (
    Block,
    Column,
    Field,
    Heading,
    Table,
    faint,
    field,
    listed,
    plain,
    rich_line,
    rich_list,
    text,
)
from agentwatch.contracts.return_format import AttestationSection
from agentwatch.contracts.return_meta import MetaArtifact
from agentwatch.contracts.subagent_return import Artifact


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


def attestation_fields(attestation: AttestationSection) -> Iterator[Block]:
    """A runtime attestation: what is None was not reported, an empty list says that there are none."""
    for label, value in (("model", attestation.runtime_model_reported), ("mode", attestation.runtime_mode_reported)):
        yield field(label, plain(value) if value else faint("not reported"))
    for label, paths in (("created", attestation.files_created), ("modified", attestation.files_modified)):
        yield Field(label, tuple(listed(paths or (), "none" if paths is not None else "not reported")))
    if attestation.limitations:
        yield Field("limits", tuple(rich_list(attestation.limitations)))
