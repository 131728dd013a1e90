"""The files source: what is in a workspace now, once or from now on, and the texts that were seen there."""

from __future__ import annotations

import math
import os
import sys
import threading
import time
from collections import OrderedDict
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from agentwatch.contracts.shapes import Reading
from agentwatch.delegation.events import Event
from agentwatch.errors import WorkspaceError
from agentwatch.sources import Batch, Source, Stirred, health_of
from agentwatch.sources.files.catalogue import Catalogue
from agentwatch.sources.files.dating import Committed, Dating
from agentwatch.sources.files.documents import Documents, KnownFile, Reader
from agentwatch.sources.files.names import to_name, to_path
from agentwatch.sources.files.read import FileRefusedError, read_file
from agentwatch.sources.files.settings import FilesSettings
from agentwatch.sources.files.watch import OpenBackend, open_backend
from agentwatch.sources.files.watcher import Emit, Watcher

_JOIN_SECONDS: Final = 1.0
_RECHECK_SECONDS: Final = 0.05

MOST_TEXT_BYTES: Final = 1024 * 1024
"""What a file does not hold any more is in the history, too: this is for what is looked at now."""
ONE_LOOK_BYTES: Final = 64 * 1024 * 1024
"""For a process that looks once and ends: then each text is needed once more, for its evidence."""
_MOST_PLACES: Final = 200_000
_TEXT_OVERHEAD: Final = 280
"""Bytes that a text costs beside itself: key and links of the dictionary."""


class ContentStore:
    """Texts of the files below `root`, of at most `limit` bytes: the others are read again. Any thread may call it."""

    def __init__(self, root: str, limit: int = MOST_TEXT_BYTES, places: int = _MOST_PLACES) -> None:
        self._root = root
        self._limit = limit
        self._limit_of_places = places
        self._bytes = 0
        self._texts: OrderedDict[str, str] = OrderedDict()
        self._held: dict[str, str] = {}
        """By path, the digest of what the file holds."""
        self._places: dict[str, str] = {}
        """By digest, a file that holds it."""
        self._lock = threading.Lock()

    def put(self, digest: str, text: str | None, path: str) -> None:
        """Keep a text, by the digest of the bytes it was read from; `path` is the file's name relative to the root.
        None: it was not read, and only its place is remembered."""
        with self._lock:
            if text is not None:
                if digest in self._texts:
                    self._drop(digest)
                self._texts[digest] = text
                self._bytes += sys.getsizeof(text) + _TEXT_OVERHEAD
                while self._bytes > self._limit and len(self._texts) > 1:
                    self._drop(next(iter(self._texts)))
            self._place(digest, path)

    def get(self, digest: str) -> str | None:
        """The text of a digest, None where it is neither kept nor in its file any more. It may read that file."""
        with self._lock:
            kept = self._texts.get(digest)
            if kept is not None:
                self._texts.move_to_end(digest)
            place = self._places.get(digest)
        if kept is not None or place is None:
            return kept
        try:
            read = read_file(self._root, place)
        except (FileRefusedError, FileNotFoundError):
            return None
        return read.text if read.digest == digest else None

    def _place(self, digest: str, path: str) -> None:
        self._leave(path)
        self._held[path] = digest
        self._places[digest] = path
        if len(self._held) > self._limit_of_places:
            self._leave(next(iter(self._held)))

    def _leave(self, path: str) -> None:
        before = self._held.pop(path, None)
        if before is not None and self._places.get(before) == path:
            del self._places[before]

    def _drop(self, digest: str) -> None:
        dropped = self._texts.pop(digest, None)
        if dropped is not None:
            self._bytes -= sys.getsizeof(dropped) + _TEXT_OVERHEAD


class FilesSource(Source):
    """Watches the files of one workspace in a thread of its own, from `start` to `stop`.

    `read_document` recognises a document in a text, given with its path; by default that of the contracts. `committed`
    tells of what is there at first when it was committed. So much text is kept, in bytes.
    """

    def __init__(
        self,
        root: Path,
        settings: FilesSettings | None = None,
        *,
        read_document: Reader | None = None,
        open_backend: OpenBackend = open_backend,
        committed: Committed | None = None,
        text_bytes: int = MOST_TEXT_BYTES,
    ) -> None:
        self._root = os.path.realpath(root)
        self._settings = settings or FilesSettings()
        self._open_backend = open_backend
        self._contents = ContentStore(self._root, text_bytes)
        recognise, self._dating = read_document or _recognise, Dating(committed)
        self._documents = Documents(self._root, self._settings, recognise, self._contents.put, self._dating)
        self._watcher: Watcher | None = None
        self._thread: threading.Thread | None = None
        self._stirred: Stirred = lambda _: None

    def remember(self, files: Mapping[str, KnownFile], looked_at: float | None = None) -> None:
        """Take over what was known of the files at the last look, by path, before `start`: what has not changed since
        is neither read nor observed again. What is not `shown` was gone. `looked_at` is when that was (epoch seconds),
        None where it never was. Where no file is known, the first look is perhaps still going on.
        """
        if looked_at is not None and files:
            self._dating.looked(looked_at)
        for path, file in files.items():
            name, is_gone = to_name(path), bool(file.digest) and file.shown is None
            if file.digest and file.at is not None:
                self._dating.remember(name, file.digest, file.at, is_gone=is_gone)
            if is_gone:
                continue
            self._documents.files[name] = file
            if file.digest:
                self._contents.put(file.digest, None, name)

    def known(self) -> dict[str, KnownFile]:
        if self._watcher is not None and self._watcher.is_stuck:
            # What it has looked at and not told must be looked at again.
            return {}
        return {to_path(name): file for name, file in list(self._documents.files.items())}

    def hear(self, stirred: Stirred) -> None:
        self._stirred = stirred

    def start(self, emit: Emit) -> None:
        """Begin. `emit` gets every batch in the source's thread, the first one right away and empty.
        Once it raises RuntimeError, as a closed event loop does, nobody listens any more and the source ends."""
        self._watcher = Watcher(self._root, self._settings, self._documents, emit=emit, open_backend=self._open_backend)
        self._watcher.stirred = self._stirred
        self._thread = threading.Thread(target=self._watcher.run, name="agentwatch-files", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        if self._watcher is not None and self._thread is not None:
            self._watcher.wake()
            self._thread.join(_JOIN_SECONDS)

    def scan(self) -> Batch:
        """What the workspace holds now, in the order in which it was written; half-written files are waited for.
        Raises WorkspaceError where there is no workspace."""
        if not os.path.isdir(self._root):
            raise WorkspaceError(f"{self._root} is no directory. Give the directory in which the agents work.")
        documents = self._documents
        catalogue = Catalogue(self._root, self._settings.pruned, documents, looks_once=True)
        catalogue.scan()
        events: list[Event] = documents.made()
        while True:
            while catalogue.waiting:
                events += catalogue.drain(time.monotonic() + 1.0)
            if documents.next_due == math.inf:
                break
            time.sleep(_RECHECK_SECONDS)
            catalogue.mark_due(math.inf)
        health = health_of("live", "Looked once", catalogue.problems, catalogue.directories, catalogue.files)
        return Batch(tuple(events), health)

    def content(self, digest: str) -> str | None:
        return self._contents.get(digest)


def _recognise(text: str, path: str) -> Reading | None:
    # In the source's thread: the models of the contracts take as long to load as a screen to appear.
    from agentwatch.contracts.reading import read_document

    return read_document(text, path)
