"""What files and sessions tell of a workspace as a file: JSON lines, for a bug report and to be replayed anywhere.

The first line is `{"agentwatch_recording": 1, "workspace": "shop"}`, the version of the format and the name of the
directory. Every other line is an observation, in the order observed: `at` (seconds since the epoch), `path`, `digest`
(null where the file was gone), and of what it held `text` (null where it is not kept any more) and `outline`, which
stands for it then. A run of a session store is a line with its latest state: `at`, `path`, `run` (the fields of `Run`),
and `texts` by their digests, null where they are not kept. So is a request of a program: `at`, `path`, `request` (what
is remembered of it). A reader trusts nothing in it.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple

from agentwatch.delegation.events import Event, Gone, Ran, Requested, Seen
from agentwatch.delegation.request import Request
from agentwatch.delegation.run import Run
from agentwatch.errors import UsageError
from agentwatch.history.outline import content_of, outline_of, pack, unpack
from agentwatch.history.shapes import parsed, request_fields, request_of
from agentwatch.sources.sessions.checked import is_time, messages, run_of

VERSION: Final = 1

Recorded = Seen | Gone | Ran | Requested

_LONGEST_LINE: Final = 64 * 1024 * 1024
"""Bytes. A document of the largest size that is read by default takes a tenth of it."""

_DIGEST: Final = re.compile(r"[0-9a-f]{64}\Z")


class Recording(NamedTuple):
    """What a file holds. `problems` has a sentence for each line that was left out. All texts are foreign."""

    workspace: str
    events: tuple[Recorded, ...]
    packed: Mapping[str, bytes]
    problems: tuple[str, ...]

    def text(self, digest: str) -> str | None:
        """The text of a version, None where it is not in the recording."""
        return unpack(self.packed.get(digest))


def lines(workspace: str, events: Iterable[Event], text_of: Callable[[str], str | None]) -> Iterator[str]:
    """The lines of a recording, without their ends. `text_of` gives the text of a digest, None where it is lost."""
    yield json.dumps({"agentwatch_recording": VERSION, "workspace": workspace})
    for one in events:
        fields: dict[str, object]
        match one:
            case Gone():
                fields = {"digest": None}
            case Seen(digest=digest):
                fields = {"digest": digest, "text": text_of(digest), "outline": outline_of(one)}
            case Ran(run=Run() as run):
                texts = {message.digest: text_of(message.digest) for message in messages(run)}
                fields = {"run": asdict(run), "texts": texts}
            case Requested(request=Request() as request):
                fields = {"request": request_fields(request)}
            case _:
                continue
        yield json.dumps({"at": one.at, "path": one.path, **fields})


def write(path: Path, lines: Iterable[str]) -> int:
    """Write the lines of a recording into a new file; how many observations there are in it. Raises as `write_new`."""
    return write_new(path, (line + "\n" for line in lines)) - 1


def write_new(path: Path, pieces: Iterable[str]) -> int:
    """Write a text into a new file that only its owner may read; how many pieces it had.

    Raises UsageError where there is such a file already, be it a link or a pipe, or where it cannot be written. Nothing
    is left then.
    """
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except FileExistsError as error:
        raise UsageError(f"{path}: there is such a file already; give another name or remove it") from error
    except OSError as error:
        raise UsageError(f"{path}: cannot be written ({error.strerror}); give another place") from error
    written = 0
    try:
        with open(descriptor, "w", encoding="utf-8", newline="\n") as file:  # noqa: PTH123  it is open already
            for piece in pieces:
                file.write(piece)
                written += 1
    except BaseException as error:
        with suppress(OSError):
            path.unlink()
        if isinstance(error, OSError):
            raise UsageError(f"{path}: cannot be written ({error.strerror}); give another place") from error
        raise
    return written


def read(path: Path) -> Recording:
    """Read a recording. A line that cannot be understood is left out and told in `problems`.

    Raises UsageError where the file cannot be read, is no recording, or has no observation in it.
    """
    events: list[Recorded] = []
    packed: dict[str, bytes] = {}
    problems: list[str] = []
    try:
        with path.open("rb") as file:
            workspace = _workspace(path, file.readline(_LONGEST_LINE))
            for number, line in enumerate(_lines(file), start=2):
                try:
                    event, texts = _observation(line, len(events))
                except ValueError as error:
                    problems.append(f"{path}:{number}: {error}; the line is left out, export the recording again")
                    continue
                events.append(event)
                for digest, text in texts.items():
                    packed.setdefault(digest, pack(text))
    except OSError as error:
        raise UsageError(f"{path}: cannot be read ({error.strerror}); give a file that can be read") from error
    if not events:
        raise UsageError(problems[0] if problems else f"{path}: it holds nothing to replay; export a longer one")
    return Recording(workspace, tuple(events), packed, tuple(problems))


def _lines(file: BinaryIO) -> Iterator[bytes | None]:
    """The lines that are left; None for one that is too long."""
    while line := file.readline(_LONGEST_LINE):
        if line.endswith(b"\n") or len(line) < _LONGEST_LINE:
            yield line
            continue
        while (rest := file.readline(_LONGEST_LINE)) and not rest.endswith(b"\n"):
            pass
        yield None


def _workspace(path: Path, line: bytes) -> str:
    try:
        header = parsed(line)
        version, workspace = header["agentwatch_recording"], header.get("workspace")
    except (ValueError, KeyError) as error:
        raise UsageError(
            f"{path}:1: no recording of agentwatch; make one with `agentwatch log --export FILE`"
        ) from error
    if version != VERSION:
        raise UsageError(f"{path}:1: a recording of another version ({version!r}); update agentwatch to replay it")
    return workspace if isinstance(workspace, str) and workspace else "recording"


def _observation(line: bytes | None, seq: int) -> tuple[Recorded, dict[str, str]]:
    """One observation and its texts by their digests. Raises ValueError with the reason."""
    if line is None:
        raise ValueError(f"longer than {_LONGEST_LINE // 1024 // 1024} MiB")
    fields = parsed(line)
    at, path, digest = fields.get("at"), fields.get("path"), fields.get("digest", "")
    if not is_time(at):
        raise ValueError("`at` is no time in seconds since 1970")
    if not isinstance(path, str) or not path:
        raise ValueError("`path` is no path of a file")
    if "run" in fields:
        texts = fields.get("texts")
        texts = texts if isinstance(texts, dict) else {}
        return Ran(seq, float(at), path, run_of(fields["run"])), {
            key: text for key, text in texts.items() if isinstance(text, str)
        }
    if "request" in fields:
        return Requested(seq, float(at), path, request_of(fields["request"])), {}
    if digest is None:
        return Gone(seq, float(at), path), {}
    if not isinstance(digest, str) or not _DIGEST.match(digest):
        raise ValueError("`digest` is neither null nor a sha256 in hex")
    text, outline = (value if isinstance(value := fields.get(key), str) else None for key in ("text", "outline"))
    content = content_of(path, text, outline)
    if content is None:
        raise ValueError("neither `text` nor `outline` is that of a document")
    return Seen(seq, float(at), path, digest, *content), {} if text is None else {digest: text}
