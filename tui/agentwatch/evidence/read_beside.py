"""What the second process does: it reads the files that it is told of, and tells what is in them; see `beside`."""

from __future__ import annotations

import os
import sys
import time
from contextlib import suppress
from functools import partial
from importlib import import_module
from typing import IO, Final

from agentwatch.contracts.reading import read_and_open
from agentwatch.evidence.beside import LENGTH, Job, kinds
from agentwatch.evidence.claims import told_by
from agentwatch.kept.index import packed, unpacked
from agentwatch.kept.keeping import is_young
from agentwatch.sources.files.names import to_path
from agentwatch.sources.files.read import FileRefusedError, read_file
from agentwatch.sources.files.readings import Known, ReadBeside

_CHUNK: Final = 100
"""Files that are told at once: at most as many are read twice where the two meet."""

_MODELS: Final = ("drift", "handoff", "return_format")
"""What most documents are judged by, and what takes long to load."""


def main() -> None:
    """Read the files that standard input names, and write to standard output what was in them."""
    # An interrupt is for the other one, which then ends this one.
    with suppress(KeyboardInterrupt, OSError):
        # While it is not known yet what to read: the first document would wait for that.
        for name in _MODELS:
            import_module(f"agentwatch.contracts.{name}")
        tell(unpacked(sys.stdin.buffer.read(), ()), sys.stdout.buffer)
    # Nothing is left to say, and nobody to say it to.
    os._exit(0)


def tell(job: Job, stream: IO[bytes]) -> None:
    """Read these files, and write what was in them."""
    root, max_bytes, beginning, paths, tells, first = job
    read, made_of = partial(_read, root, max_bytes, beginning, tells), kinds(tells=tells)
    paths = [*paths[:first], *paths[first:][::-1]]
    for start in range(0, len(paths), _CHUNK):
        found = [one for path in paths[start : start + _CHUNK] if (one := read(path)) is not None]
        data = packed(found, made_of)
        stream.write(LENGTH.pack(len(data)) + data)
        stream.flush()


def _read(root: str, max_bytes: int, beginning: str, tells: bool, path: str) -> ReadBeside | None:
    """What is in a file; None where it is better read again."""
    looked_at = time.time()
    name = to_path(f"{beginning}{path}")
    try:
        file = read_file(root, path, max_bytes)
        if is_young(file.changed_ns, file.mtime_ns, looked_at):
            return None
        opened = read_and_open(file.text, name)
        told = told_by(opened) if tells and opened is not None else None
    except (FileRefusedError, FileNotFoundError):
        return None
    except Exception:  # noqa: BLE001  the other process says what is to be said of that
        return None
    if opened is None:
        return ReadBeside(path, Known(file.fingerprint, file.digest, file.findings, None))
    return ReadBeside(path, Known(file.fingerprint, file.digest, file.findings, opened.reading), file.text, told)
