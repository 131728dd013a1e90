"""Check handoffs and returns against their contracts."""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final, NamedTuple

from pydantic import Field

from agentwatch.cli.command import argument, format_of
from agentwatch.contracts.shapes import Contract, Document, Finding, Return, Severity
from agentwatch.decisions.delivery import forged
from agentwatch.decisions.errors import DecisionError
from agentwatch.delegation.links import ARTIFACT_MISSING, finding_of, promises_artifacts
from agentwatch.errors import UsageError
from agentwatch.evidence.disk import FileKind, beside, look, place_of
from agentwatch.sources.files.read import NOT_READABLE, FileRefusedError, read_file
from agentwatch.sources.files.walk import join, looks_like_ours, pruning, to_path, walk
from agentwatch.text import clean, complain, indented, say
from agentwatch.view.document import Document as JsonObject
from agentwatch.view.document import FindingDoc
from agentwatch.view.words import plural

ARGUMENTS: Final = (
    argument("paths", "PATH", "files, or directories that are searched", nargs="+"),
    format_of("text", "json", "github"),
)
_EXCERPT: Final = 100


class _File(NamedTuple):
    """A file to check: the path to show, where reading it starts, and its name from there. `is_named`: on the command
    line. `closed` says why it is a directory that cannot be listed."""

    path: str
    root: str
    relative: str
    is_named: bool = False
    closed: str = ""


class CheckedFile(JsonObject):
    """The findings of one file. `contract` and `state` are null where it could not be read."""

    path: str
    contract: Contract | None
    state: str | None
    findings: list[FindingDoc]
    lines: list[str] = Field(default=[], exclude=True)


class CheckedDoc(JsonObject):
    """`agentwatch check --format json`."""

    files: list[CheckedFile]


def run(options: Namespace) -> int:
    """Check files, and what looks like a handoff or return in directories; print the findings.

    Returns 1 where there is an error finding, else 0: a file that is named and is neither handoff nor return is said,
    and is no error. Raises UsageError for a path that is not there.
    """
    paths: list[str] = options.paths
    checked: list[CheckedFile] = []
    for file in _files(paths):
        judged = _check_file(file)
        if judged is not None:
            checked.append(judged)
        elif file.is_named:
            complain(f"{clean(file.path)}: not checked, because it is neither a handoff nor a return by any contract")
    checked += (one for path in dict.fromkeys(paths) if os.path.isdir(path) for one in _forged(path))
    if options.format == "json":
        say(indented(CheckedDoc(files=checked).model_dump(mode="json")))
    else:
        (_print_github if options.format == "github" else _print_text)(checked)
    return int(any(finding.severity is Severity.ERROR for file in checked for finding in file.findings))


def _files(paths: Sequence[str]) -> Iterable[_File]:
    """The files to check, each once, those of a directory in the order of their names, and what cannot be listed."""
    for path in paths:
        if not os.path.lexists(path):
            raise UsageError(f"{clean(path)}: no such file or directory")
    files: dict[str, _File] = {}
    for path in paths:
        # resolve() would follow a link, which must not be read.
        lone = Path(os.path.abspath(path))  # noqa: PTH100
        found = [_File(to_path(path), os.path.realpath(lone.parent), lone.name, is_named=True)]
        if os.path.isdir(path) and not os.path.islink(path):
            found, root, base = [], os.path.realpath(path), str(Path(path))
            start = "" if base == "." else f"{base.rstrip('/')}/"
            for place, listing in walk(root, pruning(None)):
                closed = os.strerror(listing.errno or 0) if isinstance(listing, OSError) else ""
                names = [place] if isinstance(listing, OSError) else [join(place, name) for name in listing[1]]
                found += (_File(to_path(f"{start}{one}" if one else base), root, one, closed=closed) for one in names)
        for one in sorted(found, key=lambda one: one.relative):
            files.setdefault(f"{one.root}/{one.relative}", one)
    return files.values()


def _forged(directory: str) -> Iterator[CheckedFile]:
    """Findings for files among the decisions of a directory that are none."""
    # What it imports takes a while to load.
    from agentwatch.composition import known_desk
    from agentwatch.decisions.delivery import MIRROR

    desk = known_desk(Path(os.path.realpath(directory)))
    if desk is None:
        return
    try:
        for one in desk.forged():
            yield _unread(to_path(str(Path(directory, MIRROR, one.name))), forged(one.why))
    except DecisionError as error:
        complain(f"{clean(directory)}: its decisions were not checked: {clean(str(error))}")


def _unread(path: str, finding: Finding) -> CheckedFile:
    return CheckedFile(path=path, contract=None, state=None, findings=[FindingDoc.of(finding, path=path)])


def _check_file(file: _File) -> CheckedFile | None:
    try:
        if file.closed:
            raise FileRefusedError(NOT_READABLE, reason=file.closed)  # noqa: TRY301  it is refused like any other
        text = read_file(file.root, file.relative)
    except FileRefusedError as refused:
        # What a file holds that cannot be read is not known, whatever it is called.
        is_told = file.is_named or looks_like_ours(file.relative) or refused.rule == NOT_READABLE
        return _unread(file.path, refused.finding) if is_told else None
    except FileNotFoundError:
        # Deleted since it was listed: there is nothing to check any more.
        return None
    # Only here: the models are slow to load.
    from agentwatch.contracts.reading import read_document

    reading = read_document(text.text, file.path)
    if reading is None:
        return None
    # Only its name says that it is a report, as other programs call theirs.
    if not reading.document.recognised and reading.contract is Contract.REPORT_CONTRACT:
        stem = f"{file.root}/{file.relative[: -len('.report.json')]}"
        if not any(os.path.lexists(f"{stem}.handoff{end}") for end in (".json", ".md")):
            return None
    findings = (*text.findings, *reading.findings)
    missing = _missing(file, reading.document) if isinstance(reading.document, Return) else ()
    lines: list[str] = []
    if findings or missing:
        lines = text.text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    severity = Severity.WARNING if reading.contract is ARTIFACT_MISSING.warns_in else ARTIFACT_MISSING.severity
    for path in missing:
        line = next((number for number, text_of_line in enumerate(lines, 1) if path in text_of_line), None)
        findings += (replace(finding_of(ARTIFACT_MISSING, path), severity=severity, line=line),)
    documents = [FindingDoc.of(finding, path=file.path) for finding in findings]
    return CheckedFile(
        path=file.path, contract=reading.contract, state=_state(reading), findings=documents, lines=lines
    )


def _missing(file: _File, document: Return) -> tuple[str, ...]:
    """The artifacts of a completed return that are nowhere in its project: rule 6 of subagent-return.

    Their paths are relative to the project. Finished work may have been archived as a whole, so such a path
    is looked for beside the return, too. Where the project begins is not known of a lone file: then none is.
    """
    project = _project(file) if promises_artifacts(document) else None
    if project is None:
        return ()
    returned = f"{file.root}/{file.relative}"[len(project) :].strip("/")
    places = {path: place_of(path, project).relative for path in document.artifacts}
    meant = {path: [place, *beside(place, returned)] for path, place in places.items() if place is not None}
    return tuple(
        path for path, some in meant.items() if all(look(project, one).kind is FileKind.MISSING for one in some)
    )


def _project(file: _File) -> str | None:
    """The directory that paths in a return are relative to: that of git, else where the command was called."""
    place = Path(file.root, file.relative).parent
    for above in (place, *place.parents):
        if os.path.lexists(above / ".git"):
            return str(above)
    here = os.path.realpath(".")
    if place.is_relative_to(here):
        return here
    return None if file.is_named else file.root


def _state(reading: Document) -> str | None:
    """The state of a task that has only this document: that of the delegation tree; None where it makes no task."""
    if not isinstance(reading.document, Return):
        return "submitted" if reading.document.recognised else None
    if reading.has_error or reading.document.outcome is None:
        return "invalid"
    return reading.document.outcome.value


def _print_text(checked: list[CheckedFile]) -> None:
    counts = {Severity.ERROR: 0, Severity.WARNING: 0}
    for file in checked:
        for finding in file.findings:
            counts[finding.severity] += 1
            place = clean(file.path) + (f":{finding.line}" if finding.line else "")
            say(f"{place}: {finding.rule} {finding.severity} {clean(finding.message)}")
            for line in _excerpt(file.lines, finding.line):
                say(line)
    if any(counts.values()):
        outcome = ": " + ", ".join(plural(count, severity.value) for severity, count in counts.items())
    else:
        sessions = "what agents wrote in their own sessions, `agentwatch tree` checks, and `sources` says where that is"
        outcome = ", nothing found" if checked else f": there is no handoff and no return; {sessions}"
    say(f"{plural(len(checked), 'file')} checked{outcome}")


def _excerpt(lines: Sequence[str], number: int | None) -> list[str]:
    """The line of the file, safe to show, and a mark below what stands in it."""
    if number is None or not 1 <= number <= len(lines):
        return []
    shown = clean(lines[number - 1].rstrip(), _EXCERPT)
    gutter = " " * len(str(number))
    text = shown.lstrip(" ")
    indent = len(shown) - len(text)
    return [f"  {number} | {shown}", f"  {gutter} | {' ' * indent}{'^' * max(len(text), 1)}"]


def _print_github(checked: list[CheckedFile]) -> None:
    for file in checked:
        for finding in file.findings:
            line = f",line={finding.line}" if finding.line else ""
            path = _property(clean(file.path))
            title = _property(finding.rule)
            say(f"::{finding.severity} file={path}{line},title={title}::{_data(clean(finding.message))}")


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
