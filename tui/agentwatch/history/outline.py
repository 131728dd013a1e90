"""What a version says, written down small: read again at the next start without its text, which may be dropped.

An outline is the version of the contracts, a letter for the kind of document, and JSON. One that had to be cut, of a
document with very long texts, has no version: it is used only where there is no text.
"""

from __future__ import annotations

import hashlib
import zlib
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from agentwatch.contracts.shapes import Document, Finding, Handoff, Return, Severity, TodoList
from agentwatch.delegation.events import Seen

if TYPE_CHECKING:
    from pydantic import TypeAdapter

_LONGEST: Final = 8_192
"""Characters of an outline. Ids are never cut: a longer outline is not kept, and the version goes with its text."""

_PROSE: Final = 200
_UNPACKED_LIMIT: Final = 64 * 1024 * 1024
_VERSION: Final = 8
_NO_VERSION: Final = "-" * _VERSION
_IDS: Final = ("task_id", "attempt", "session_id", "agent", "mode", "delegation_path")
_OF_RETRIES: Final = ("error_code", "retry_recommended")
_KINDS: Final[dict[str, type[Document]]] = {"h": Handoff, "r": Return, "t": TodoList}


class Content(NamedTuple):
    """What a version says: the document, what is wrong with it, and whether it broke off."""

    document: Document
    findings: tuple[Finding, ...]
    incomplete: bool


def pack(text: str) -> bytes:
    # A lone surrogate cannot be encoded otherwise; a text that holds one is as old as the file it came from.
    # A smaller window than usual: 64 KB of working memory in place of 268, which would leave holes in the heap.
    packer = zlib.compressobj(6, zlib.DEFLATED, 13, 6)
    return packer.compress(text.encode("utf-8", "surrogatepass")) + packer.flush()


def unpack(packed: object) -> str | None:
    """The text again, None where it is damaged."""
    if not isinstance(packed, bytes):
        return None
    opened = zlib.decompressobj()
    try:
        data = opened.decompress(packed, _UNPACKED_LIMIT)
        return data.decode("utf-8", "surrogatepass") if opened.eof else None
    except (zlib.error, UnicodeDecodeError):
        return None


@cache
def contracts_version() -> str:
    """Changes whenever the code that judges documents does: what an older one said is not to be relied on."""
    import agentwatch.contracts

    code = hashlib.sha256()
    for module in sorted(Path(agentwatch.contracts.__path__[0]).rglob("*.py")):
        status = module.stat()
        code.update(f"{module.name} {status.st_size} {status.st_mtime_ns}\n".encode())
    return code.hexdigest()[:_VERSION]


def outline_of(seen: Seen) -> str | None:
    """The outline of a version, None where it would be too long."""
    outline = contracts_version() + _written(Content(seen.document, seen.findings, seen.incomplete))
    if len(outline) > _LONGEST:
        outline = _NO_VERSION + _written(Content(_cut(seen.document), _kept(seen.findings), seen.incomplete))
    return outline if len(outline) <= _LONGEST else None


def current(outline: str | None) -> Content | None:
    """What an outline says, None unless today's contracts would say the same of the text."""
    return _read(outline) if outline is not None and outline.startswith(contracts_version()) else None


def content_of(path: str, text: str | None, outline: str | None) -> Content | None:
    """Read a version again: its text by today's contracts, else its outline. None where neither can be read."""
    # In the worker: the models of the contracts take as long to load as a screen to appear.
    from agentwatch.contracts.reading import read_document

    noted = _read(outline) if outline is not None else None
    reading = None if text is None else read_document(text, path)
    if reading is None or not (reading.document.recognised or isinstance(reading.document, Return)):
        return noted
    # What the source found in the bytes cannot be seen in the text any more.
    of_the_source = _of_the_source(noted.findings) if noted is not None else ()
    return Content(reading.document, (*of_the_source, *reading.findings), not reading.complete)


def _written(content: Content) -> str:
    kind = next(letter for letter, shape in _KINDS.items() if isinstance(content.document, shape))
    return kind + _shape(kind).dump_json(tuple(content), exclude_defaults=True).decode()


def _read(outline: str) -> Content | None:
    kind = outline[_VERSION : _VERSION + 1]
    if kind not in _KINDS:
        return None
    try:
        parts = _shape(kind).validate_json(outline[_VERSION + 1 :])
    except ValueError:
        # A damaged file: what cannot be read any more is left out.
        return None
    return Content(*parts)


@cache
def _shape(kind: str) -> TypeAdapter[Any]:
    from pydantic import TypeAdapter

    # One shape for each kind: trying one after the other would cost more than reading the text again.
    return TypeAdapter(tuple[_KINDS[kind], tuple[Finding, ...], bool])  # type: ignore[valid-type]


def _kept(findings: tuple[Finding, ...]) -> tuple[Finding, ...]:
    """One error is enough to tell that a version breaks its contract."""
    error = next((finding for finding in findings if finding.severity is Severity.ERROR), None)
    of_the_source = _of_the_source(findings)
    kept = of_the_source if error is None or error in of_the_source else (*of_the_source, error)
    return tuple(replace(finding, message=finding.message[:_PROSE]) for finding in kept)


def _of_the_source(findings: tuple[Finding, ...]) -> tuple[Finding, ...]:
    if not findings:
        return ()
    from agentwatch.contracts.rules import PREFIXES

    return tuple(finding for finding in findings if finding.rule[:3] not in PREFIXES)


def _cut(document: Document) -> Document:
    """A document without its long texts and lists."""
    if isinstance(document, Handoff):
        return replace(document, objective=_short(document.objective), todos=None)
    if isinstance(document, TodoList):
        return TodoList(())
    cut = Return(document.contract, document.reported_state, document.outcome, summary=_short(document.summary))
    return replace(cut, **{name: getattr(document, name) for name in _IDS + _OF_RETRIES})


def _short(text: str | None) -> str | None:
    return None if text is None else text[:_PROSE]
