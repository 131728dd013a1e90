"""The files source: what is in a workspace now, once or from now on."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from agentwatch.contracts.shapes import Reading
from agentwatch.delegation.observation import Observation
from agentwatch.errors import WorkspaceError
from agentwatch.sources.files.catalogue import Catalogue
from agentwatch.sources.files.content import ContentStore
from agentwatch.sources.files.dating import Committed, Dating
from agentwatch.sources.files.documents import Documents, KnownFile, Reader
from agentwatch.sources.files.names import to_name, to_path
from agentwatch.sources.files.settings import FilesSettings
from agentwatch.sources.files.watcher import Emit, OpenBackend, Watcher, open_backend
from agentwatch.sources.health import Batch, health_of

_JOIN_SECONDS: Final = 1.0
_RECHECK_SECONDS: Final = 0.05


class FilesSource:
    """Watches the files of one workspace in a thread of its own, from `start` to `stop`.

    `read_document` recognises a document in a text, given with its path; by default that of the contracts. `committed`
    tells of what is there at first when it was committed.
    """

    def __init__(
        self,
        root: Path,
        settings: FilesSettings | None = None,
        *,
        read_document: Reader | None = None,
        open_backend: OpenBackend = open_backend,
        committed: Committed | None = None,
    ) -> None:
        self._root = os.path.realpath(root)
        self._settings = settings or FilesSettings()
        self._open_backend = open_backend
        self._contents = ContentStore(self._root)
        recognise, self._dating = read_document or _recognise, Dating(committed)
        self._documents = Documents(self._root, self._settings, recognise, self._contents.put, self._dating)
        self._watcher: Watcher | None = None
        self._thread: threading.Thread | None = None

    def remember(self, files: Mapping[str, KnownFile], looked_at: float | None = None) -> None:
        """Take over what was known of the files when it was last looked, by their paths: what has not changed since
        is not read, and not observed again; what is not there any more is observed to be gone. Before `start`.

        `looked_at` is when that was, in seconds since the epoch; None where nobody ever did.
        """
        if looked_at is not None:
            self._dating.looked(looked_at)
        for path, file in files.items():
            name = to_name(path)
            if file.digest and file.at is not None:
                self._dating.remember(name, file.digest, file.at)
            self._documents.files[name] = file
            if file.digest:
                self._contents.place(file.digest, name)

    def known(self) -> dict[str, KnownFile]:
        """What to remember, by path. Any thread may call it."""
        return {to_path(name): file for name, file in list(self._documents.files.items())}

    def start(self, emit: Emit) -> None:
        """Begin. `emit` is called in the source's thread with every batch, the first one right away and empty.

        Once `emit` raises RuntimeError, as a closed event loop does, nobody listens any more and the source ends.
        """
        self._watcher = Watcher(self._root, self._settings, self._documents, emit=emit, open_backend=self._open_backend)
        self._thread = threading.Thread(target=self._watcher.run, name="agentwatch-files", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End, within a second."""
        if self._watcher is not None and self._thread is not None:
            self._watcher.wake()
            self._thread.join(_JOIN_SECONDS)

    def scan(self) -> Batch:
        """What the workspace holds now, in the order in which it was written.

        Half-written files are given the time to be completed that watching gives them. Raises WorkspaceError where
        there is no workspace.
        """
        if not os.path.isdir(self._root):
            raise WorkspaceError(f"{self._root} is no directory. Give the directory in which the agents work.")
        documents = self._documents
        catalogue = Catalogue(self._root, self._settings.pruned, documents, watch=_ignore, unwatch=_ignore)
        catalogue.scan()
        observations: list[Observation] = documents.made()
        while True:
            while catalogue.waiting:
                observations += catalogue.drain(time.monotonic() + 1.0)
            if not documents.withheld:
                break
            time.sleep(_RECHECK_SECONDS)
            catalogue.mark_withheld()
        health = health_of("live", "Looked once", catalogue.problems, catalogue.directories, catalogue.files)
        return Batch(tuple(observations), health)

    def content(self, digest: str) -> str | None:
        """The text of a document that was emitted with this digest, None where it is lost.

        Any thread may call it. It may read one file, of at most `max_bytes`.
        """
        return self._contents.get(digest)


def scan_once(root: Path, settings: FilesSettings | None = None, *, read_document: Reader | None = None) -> Batch:
    """`FilesSource.scan` for those who need nothing else of the source."""
    return FilesSource(root, settings, read_document=read_document).scan()


def _ignore(_path: str) -> None:
    """Nothing is watched when everything is looked at once."""


def _recognise(text: str, path: str) -> Reading | None:
    # In the source's thread: the models of the contracts take as long to load as a screen to appear.
    from agentwatch.contracts.reading import read_document

    return read_document(text, path)
