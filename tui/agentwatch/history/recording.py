"""Writes and reads recordings: files of JSON lines with the events of a session, to replay the session anywhere.

Also writes the outline of a document, which is its parsed form as text. An outline has the version of the contracts, a
letter for the kind of document, and JSON. An outline is untrusted when it is read."""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from agentwatch.contracts.shapes import Document, Finding, Handoff, Return, TodoList
from agentwatch.delegation.decision import Decision, Request
from agentwatch.delegation.events import Aside, Checked, Claim, Decided, Event, Gone, Noted, Ran, Requested, Run, Seen
from agentwatch.errors import UsageError
from agentwatch.sources.sessions.reader import adapter_of, is_time, messages_of, validate_run

if TYPE_CHECKING:
    from pydantic import TypeAdapter

VERSION = 1

# The most characters of an outline. If an outline is longer, only the text of the document is kept.
_LONGEST_OUTLINE = 32_768
# The most bytes of a line and of an unpacked text, ten times the largest document that is read by default.
_LONGEST = 64 * 1024 * 1024
_DIGITS = 8  # characters of the version of the contracts
_KINDS = {"h": Handoff, "r": Return, "t": TodoList}
# The events that are written unchanged: the key in the file, the class, and the type of the last field.
_PLAIN = {
    "claims": (Checked, tuple[Claim, ...]),
    "decision": (Decided, Decision),
    "request": (Requested, Request),
    "aside": (Noted, Aside),
}
_DIGEST = re.compile(r"[0-9a-f]{64}\Z")


def pack_text(text: str) -> bytes:
    """Return the compressed text. Lone surrogates (half characters) are kept."""
    return zlib.compress(text.encode("utf-8", "surrogatepass"))


def unpack_text(packed: object) -> str | None:
    """Return the text that `pack_text` compressed. Return None if the data is damaged."""
    if isinstance(packed, bytes):
        with suppress(zlib.error, UnicodeDecodeError):
            opened = zlib.decompressobj()
            data = opened.decompress(packed, _LONGEST)
            return data.decode("utf-8", "surrogatepass") if opened.eof else None
    return None


@cache
def contracts_version() -> str:
    """Return a short digest that changes whenever the code of the contracts changes."""
    import agentwatch.contracts

    files = sorted(Path(agentwatch.contracts.__path__[0]).glob("*.[pt][yx]*"))
    code = [f"{file.name} {file.stat().st_size} {file.stat().st_mtime_ns}\n" for file in files]
    return hashlib.sha256("".join(code).encode()).hexdigest()[:_DIGITS]


def outline_of(seen: Seen) -> str | None:
    """Return the outline of a document. Return None if the outline would be too long."""
    kind = next(letter for letter, shape in _KINDS.items() if isinstance(seen.document, shape))
    parts = seen.document, seen.findings, seen.incomplete
    outline = contracts_version() + kind + _outline_shape(kind).dump_json(parts, exclude_defaults=True).decode()
    return outline if len(outline) <= _LONGEST_OUTLINE else None


def read_version(path: str, outline: object, text_of: Callable[[], object]) -> Document | None:
    """Return a recorded document. If the contracts have changed, parse its text again if possible."""
    outlined = None
    if isinstance(outline, str):
        with suppress(ValueError, KeyError):
            shape = _outline_shape(outline[_DIGITS : _DIGITS + 1])
            document, findings, incomplete = shape.validate_json(outline[_DIGITS + 1 :])
            outlined = Document(document, findings, not incomplete)
            if outline.startswith(contracts_version()):
                return outlined
    # Imported late: the models of the contracts are slow to load.
    from agentwatch.contracts.reading import read_document
    from agentwatch.contracts.rules import PREFIXES

    reading = read_document(text, path) if isinstance(text := text_of(), str) else None
    if reading is None or not (reading.document.recognised or isinstance(reading.document, Return)):
        return outlined
    # The source found these faults in the bytes of the file, so the text no longer shows them.
    source_faults = [one for one in outlined.findings if one.rule[:3] not in PREFIXES] if outlined else []
    return Document(reading.document, (*source_faults, *reading.findings), reading.complete)


@cache
def _outline_shape(kind: str) -> TypeAdapter[Any]:
    # Use one shape for each kind of document: trying all shapes would take longer than parsing the text again.
    return adapter_of(tuple[_KINDS[kind], tuple[Finding, ...], bool])  # type: ignore[valid-type]


def read_object(line: str | bytes) -> dict[str, Any]:
    """Return the JSON object in a line. Raise ValueError with the reason if there is none."""
    try:
        fields = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"no JSON ({error})") from error
    if not isinstance(fields, dict):
        raise ValueError("no JSON object")  # noqa: TRY004  all reasons are of one kind
    return fields


class Recording(NamedTuple):
    """A recording that was read. All of it is untrusted."""

    workspace: str
    events: tuple[Event, ...]
    texts: Mapping[str, str]  # the recorded texts by digest
    history_before: float = -math.inf  # tasks without a sign of life after this time (epoch seconds) were history


def recording_lines(
    workspace: str, events: Iterable[Event], text_of: Callable[[str], str | None], history_before: float | None = None
) -> Iterator[str]:
    """Yield the lines of a recording. `text_of` returns the text of a digest, or None if the text is lost."""
    line = {} if history_before is None else {"history_before": history_before}
    yield json.dumps({"agentwatch_recording": VERSION, "workspace": workspace, **line}) + "\n"
    for one in events:
        fields: dict[str, object]
        match one:
            case Checked() | Decided() | Requested() | Noted():
                name, shape = next((name, shape) for name, (kind, shape) in _PLAIN.items() if isinstance(one, kind))
                digest = {"digest": one.digest} if isinstance(one, Checked) else {}
                fields = {**digest, name: adapter_of(shape).dump_python(one[-1], mode="json")}
            case Gone():
                fields = {"digest": None}
            case Seen(digest=digest):
                fields = {"digest": digest, "text": text_of(digest), "outline": outline_of(one)}
            case Ran(run=Run() as run):
                texts = {message.digest: text_of(message.digest) for message in messages_of(run)}
                fields = {"run": asdict(run), "texts": texts}
            case _:
                continue
        yield json.dumps({"at": one.at, "path": one.path, **fields}) + "\n"


def write_new_file(path: Path, pieces: Iterable[str]) -> None:
    """Write a text into a new file that only the user can read. If this fails, remove the file and raise UsageError."""
    try:
        with open(
            path, "x", encoding="utf-8", newline="\n", opener=lambda path, flags: os.open(path, flags, 0o600)
        ) as file:
            try:
                file.writelines(pieces)
                file.flush()
            except BaseException:
                # Remove the file after any failure, because half a recording is useless.
                path.unlink(missing_ok=True)
                raise
    except FileExistsError as error:
        raise UsageError(f"{path}: there is such a file already; give another name or remove it") from error
    except OSError as error:
        raise UsageError(f"{path}: cannot be written ({error.strerror}); give another place") from error


def read_recording(path: Path) -> Recording:
    """Read a recording. Raise UsageError if a line is unreadable or there is no event."""
    events: list[Event] = []
    texts: dict[str, str] = {}
    number = 1
    try:
        with path.open("rb") as file:
            workspace, history_before = _read_head(path, file.readline(_LONGEST))
            for number, line in enumerate(iter(lambda: file.readline(_LONGEST), b""), start=2):  # noqa: B007
                event, given = _read_event(read_object(line), len(events))
                events.append(event)
                texts |= given
    except OSError as error:
        raise UsageError(f"{path}: cannot be read ({error.strerror}); give a file that can be read") from error
    except ValueError as error:
        raise UsageError(f"{path}:{number}: {error}; export the recording again") from error
    if not events:
        raise UsageError(f"{path}: it holds nothing to replay; export a longer one")
    return Recording(workspace, tuple(events), texts, history_before)


def _read_head(path: Path, line: bytes) -> tuple[str, float]:
    with suppress(ValueError):
        header = read_object(line)
        if header.get("agentwatch_recording") == VERSION:
            before = header.get("history_before")
            return str(header.get("workspace") or "recording"), float(before) if is_time(before) else -math.inf
    raise UsageError(f"{path}:1: no recording of agentwatch; make one with `agentwatch log --export FILE`")


def _read_event(fields: Mapping[str, Any], seq: int) -> tuple[Event, dict[str, str]]:
    """Return the event in a line, and its texts by digest. Raise ValueError with the reason."""
    at, path, digest = fields.get("at"), fields.get("path"), fields.get("digest", "")
    if not is_time(at) or not isinstance(path, str) or not path:
        raise ValueError("`at` is no time in seconds since 1970, or `path` is no path")
    at = float(at)
    for name, (kind, shape) in _PLAIN.items():
        if name in fields:
            try:
                value = adapter_of(shape).validate_python(fields[name])
            except ValueError as error:
                raise ValueError(f"`{name}` is none that agentwatch writes") from error
            return kind(seq, at, path, *([str(digest)] if kind is Checked else []), value), {}
    if digest is None:
        return Gone(seq, at, path), {}
    if "run" in fields:
        texts = fields.get("texts")
        texts = texts if isinstance(texts, dict) else {}
        return Ran(seq, at, path, validate_run(fields["run"])), {
            key: one for key, one in texts.items() if isinstance(one, str)
        }
    if not isinstance(digest, str) or not _DIGEST.match(digest):
        raise ValueError("`digest` is neither null nor a sha256 in hex")
    text = fields.get("text")
    text = text if isinstance(text, str) else None
    reading = read_version(path, fields.get("outline"), lambda: text)
    if reading is None:
        raise ValueError("neither `text` nor `outline` is that of a document")
    seen = Seen(seq, at, path, digest, reading.document, reading.findings, not reading.complete)
    return seen, {} if text is None else {digest: text}
