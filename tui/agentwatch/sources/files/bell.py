"""Rings for those who wait until something happens in a directory: one thread, and one inotify, for a whole process."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from agentwatch.sources.files.watch import Backend, WatchError

_LONG: Final = 3_600.0
_REST_SECONDS: Final = 0.02
"""After something has happened: what is written in one go rings once."""

Ring = Callable[[], None]


class Bell:
    """Any thread may call it. A directory need not be there yet. Where the system tells nothing, it does not work, and
    everybody has to look."""

    def __init__(self) -> None:
        self.works = sys.platform == "linux"
        self._lock = threading.Lock()
        self._listening: dict[Ring, tuple[Path, ...]] = {}
        self._changes = 0
        """How often somebody has begun or ceased to listen."""
        self._thread: threading.Thread | None = None
        self._backend: Backend | None = None

    @contextmanager
    def heard(self, directories: Sequence[Path], ring: Ring) -> Iterator[None]:
        """Call `ring`, in the thread of the bell, whenever something happens right in one of these directories, and
        once it hears what happens there."""
        if not (self.works and directories):
            yield
            return
        self._change(lambda: self._listening.update({ring: tuple(map(Path.absolute, directories))}))
        try:
            yield
        finally:
            self._change(lambda: self._listening.pop(ring, None))

    def _change(self, change: Callable[[], object]) -> None:
        with self._lock:
            change()
            self._changes += 1
            if self._thread is None and self._listening:
                self._thread = threading.Thread(target=self._run, name="agentwatch-bell", daemon=True)
                self._thread.start()
            elif self._backend is not None:
                self._backend.wake()

    def _run(self) -> None:
        """Until nobody listens. A backend that was woken waits no more: for those who listen now there is another."""
        while True:
            with self._lock:
                listening, changes = dict(self._listening), self._changes
                if not (listening and self.works):
                    self._thread = None
                    break
                try:
                    self._backend = _open()
                except WatchError:
                    self.works = False
                    continue
            try:
                self._listen(self._backend, listening, changes)
            except WatchError:
                self.works = False
            finally:
                with self._lock:
                    backend, self._backend = self._backend, None
                backend.close()
        for ring in listening:
            ring()

    def _listen(self, backend: Backend, listening: Mapping[Ring, tuple[Path, ...]], changes: int) -> None:
        places = {directory for directories in listening.values() for directory in directories}
        ways = places.union(*(place.parents for place in places))
        comes = True
        while changes == self._changes:
            if comes:
                for place in places:
                    backend.watch(os.fspath(_nearest(place)).lstrip("/"))
            heard = backend.wait(0.0 if comes else _LONG)
            happened = {Path("/", path) for path in heard.paths}
            touched = happened | {path.parent for path in happened}
            for ring, directories in listening.items():
                if comes or not touched.isdisjoint(directories):
                    ring()
            # Such a directory, or one on the way to it, has come or gone, or nobody knows what else has happened.
            comes = heard.lost or not happened.isdisjoint(ways)
            time.sleep(_REST_SECONDS)


def _open() -> Backend:
    # Not everywhere, so it is loaded where it is.
    from agentwatch.sources.files.inotify_backend import WHOLE, InotifyBackend

    return InotifyBackend("/", _concerns, WHOLE)


def _concerns(name: str) -> bool:
    """Whether a file in a directory of ours tells anything: the history and the locks are written all the time."""
    return not name.startswith(("history", ".")) and not name.endswith(".lock")


def _nearest(directory: Path) -> Path:
    """The directory, or what there is on the way to it."""
    return next(place for place in (directory, *directory.parents) if os.path.isdir(place))


BELL: Final = Bell()
"""The one of this process."""
