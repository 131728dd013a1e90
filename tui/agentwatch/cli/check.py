"""The command that checks handoffs and returns against their contracts."""

import os
import re
from argparse import Namespace
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from agentwatch.cli.command import argument, command
from agentwatch.console import STRONG, Part, print_line
from agentwatch.contracts.reading import read_document
from agentwatch.contracts.shapes import Contract, Return, Severity
from agentwatch.delegation.links import ARTIFACT_MISSING, is_fenced, make_finding, promises_artifacts, slot_of
from agentwatch.errors import UsageError
from agentwatch.evidence.disk import FileKind, moved_places, place_of, read_facts
from agentwatch.sources.files.read import (
    NOT_READABLE,
    FileRefusedError,
    event_path,
    is_candidate,
    is_named_like_document,
    join,
    make_prune_test,
    read_file,
    walk,
)
from agentwatch.text import clean, indented_json, print_error, print_text
from agentwatch.view.document import Document as JsonObject
from agentwatch.view.document import FindingDoc
from agentwatch.view.words import SEVERITIES, plural


class _File(NamedTuple):
    """A file to check, at `relative` below the directory `root`. `is_named` tells whether the command line names it.
    If it is a directory that cannot be listed, `list_error` says why."""

    path: str
    root: str
    relative: str
    is_named: bool = False
    list_error: str = ""

    @property
    def place(self) -> str:
        return f"{self.root}/{self.relative}"


class CheckedFile(JsonObject):
    """The findings of one file. `contract` and `state` are null if the file could not be read."""

    path: str
    contract: Contract | None
    state: str | None
    findings: list[FindingDoc]


class CheckedDoc(JsonObject):
    """The output of `agentwatch check --format json`."""

    files: list[CheckedFile]


@command(
    argument("paths", "PATH", "files, or directories that are searched", nargs="+"),
    argument("--format", None, "default: text", choices=("text", "json", "github"), default="text"),
    exit_codes="exit codes: 0 fine, 1 error findings, or something could not be read, 2 wrong usage",
)
def check(options: Namespace) -> int:
    """Check handoffs and returns against their contracts."""
    checked: list[CheckedFile] = []
    for file in _find_files(options.paths):
        checked_file = _check_file(file)
        if checked_file:
            checked.append(checked_file)
        elif file.is_named:
            print_error(f"{file.path}: not checked, because it is neither a handoff nor a return by any contract")
    counts = Counter(finding.severity for file in checked for finding in file.findings)
    if options.format == "json":
        print_text(indented_json(CheckedDoc(files=checked).model_dump(mode="json")))
    else:
        for finding in (finding for file in checked for finding in file.findings):
            if options.format == "github":
                print_text(_github_line(finding))
            else:
                print_line(*_text_line(finding))
    if options.format == "text":
        found = ", ".join(plural(counts[one], one) for one in (Severity.ERROR, Severity.WARNING))
        print_text(f"{plural(len(checked), 'file')} checked: {found if counts else 'nothing found'}")
    return int(counts[Severity.ERROR] > 0)


def _find_files(paths: Sequence[str]) -> Iterable[_File]:
    """Return the files to check and the directories that cannot be listed, without repeats. May raise UsageError."""
    files: dict[str, _File] = {}
    for path in paths:
        if not os.path.lexists(path):
            raise UsageError(f"{clean(path)}: no such file or directory")
        # Do not call resolve(): it would follow a symbolic link, and the target of a link must not be read.
        unresolved = Path(os.path.abspath(path))  # noqa: PTH100
        found = [_File(event_path(path), os.path.realpath(unresolved.parent), unresolved.name, is_named=True)]
        if os.path.isdir(path) and not os.path.islink(path):
            found, root = [], os.path.realpath(path)
            for place, listing in walk(root, make_prune_test(None)):
                list_error = os.strerror(listing.errno or 0) if isinstance(listing, OSError) else ""
                names = [place] if isinstance(listing, OSError) else [join(place, name) for name in listing[1]]
                found += (_File(event_path(str(Path(path, one))), root, one, list_error=list_error) for one in names)
        for one in sorted(found, key=lambda one: one.relative):
            files.setdefault(one.place, one)
    return files.values()


def _check_file(file: _File) -> CheckedFile | None:
    """Check one file. Return None if it is neither a handoff nor a return."""
    try:
        if file.list_error:
            raise FileRefusedError(NOT_READABLE, reason=file.list_error)  # noqa: TRY301  handled below like a refused file
        text = read_file(file.root, file.relative)
    except FileRefusedError as refused:
        # An unreadable file may be a handoff or a return, so report it under any name.
        is_reported = file.is_named or is_named_like_document(file.relative) or refused.rule == NOT_READABLE
        findings = [FindingDoc.fill(refused.finding, path=file.path)]
        return CheckedFile(path=file.path, contract=None, state=None, findings=findings) if is_reported else None
    except FileNotFoundError:
        # The file was deleted after it was listed.
        return None
    reading = read_document(text.text, file.path)
    if not reading:
        return None
    document, state = reading.document, "submitted" if reading.document.recognised else None
    # Files of other programs may have a report's name, and text in a code fence may be an example. Check such files
    # only near a handoff.
    is_named_report = not document.recognised and reading.contract is Contract.REPORT_CONTRACT
    if (is_named_report or is_fenced(document)) and not _is_beside_handoff(file.place):
        return None
    found = [*text.findings, *reading.findings]
    if isinstance(document, Return):
        state = "invalid" if reading.has_error or not document.outcome else document.outcome.value
        severity = Severity.WARNING if reading.contract is ARTIFACT_MISSING.warns_in else ARTIFACT_MISSING.severity
        for path in _missing_artifacts(file, document):
            line = next((number for number, words in enumerate(text.text.splitlines(), 1) if path in words), None)
            found.append(replace(make_finding(ARTIFACT_MISSING, path), severity=severity, line=line))
    findings = [FindingDoc.fill(finding, path=file.path) for finding in found]
    return CheckedFile(path=file.path, contract=reading.contract, state=state, findings=findings)


_HANDOFF = re.compile(r"(?:[/.]handoff|/handoffs/[^/]+)\.(?:json|md)$", re.IGNORECASE)


def _is_beside_handoff(place: str) -> bool:
    """Tell whether a nearby handoff has the same name (without the ending), or is the only other document nearby."""
    directory = Path(place).parent
    neighbours = map(str, (*directory.glob("*"), *directory.parent.glob("handoffs/*")))
    beside = [one for one in neighbours if is_candidate(one)]
    handoffs = [one for one in beside if _HANDOFF.search(one)]
    is_only = len(handoffs) == 1 and len(beside) == 2 and not place.lower().endswith(".report.json")
    return is_only or slot_of(place) in map(slot_of, handoffs)


def _missing_artifacts(file: _File, document: Return) -> Iterator[str]:
    """Yield the missing artifacts of a completed return, by rule 6 of the contract subagent-return.

    An artifact's path is relative to the git work tree. Without git, it is relative to the current directory or, if the
    return is not below that, to the directory on the command line. Look beside the return, too: work may be archived.
    """
    place, here = Path(file.place), Path.cwd().resolve()
    projects = [one for one in place.parents if os.path.lexists(one / ".git")]
    if place.is_relative_to(here):
        projects.append(here)
    elif not file.is_named:
        projects.append(Path(file.root))
    if not (projects and promises_artifacts(document)):
        return
    project = projects[0]
    for path in document.artifacts:
        artifact = place_of(path, str(project)).relative
        places = [] if artifact is None else [artifact, *moved_places(artifact, str(place.relative_to(project)))]
        if places and all(read_facts(str(project), one).kind is FileKind.MISSING for one in places):
            yield path


def _text_line(finding: FindingDoc) -> list[Part | str]:
    place = clean(finding.path) + (f":{finding.line}" if finding.line else "")
    severity = finding.severity, SEVERITIES[finding.severity].color
    return [(place, STRONG), f": {finding.rule} ", severity, f" {clean(finding.message)}"]


def _github_line(finding: FindingDoc) -> str:
    """Return a line that makes GitHub show the finding beside the code."""
    line = f",line={finding.line}" if finding.line else ""
    path = _escape(clean(finding.path), "%\r\n:,")
    message = _escape(clean(finding.message), "%\r\n")
    return f"::{finding.severity} file={path}{line},title={finding.rule}::{message}"


def _escape(text: str, characters: str) -> str:
    return "".join(f"%{ord(one):02X}" if one in characters else one for one in text)
