"""The working directories of projects: a file in the directory of each names one, or a file of all projects does."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Final

from agentwatch.sources.sessions.fields import inner, text
from agentwatch.sources.sessions.tail import open_regular, record

_ROOT: Final = ".project_root"
_ALL: Final = "projects.json"
_LARGEST: Final = 4 * 1024 * 1024


class Roots:
    """Called with the path of a project. What has not changed costs a look at its time."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[int, str | None]] = {}

    def __call__(self, project: str) -> str | None:
        """The real path of its working directory, None where nothing names one. Raises OSError where what names it can
        not be read, and was not read before."""
        named = self._named(f"{project}/{_ROOT}", project)
        return named or self._named(f"{project.rsplit(os.sep, 2)[0]}/{_ALL}", f"{_ALL} {project}")

    def _named(self, path: str, key: str) -> str | None:
        known = self._known.get(key)
        try:
            changed = os.stat(path, follow_symlinks=False).st_mtime_ns  # noqa: PTH116  asked again and again
            if known is None or known[0] != changed:
                known = self._known[key] = changed, _read(path, key.rpartition(os.sep)[2])
        except FileNotFoundError:
            return None
        except OSError:
            if known is None:
                raise
        return known[1]


def _read(path: str, project: str) -> str | None:
    """The directory that a file names, for a project where it names those of all."""
    with os.fdopen(open_regular(Path(path)), "rb") as file:
        data = file.read(_LARGEST)
    if path.endswith(_ALL):
        names = inner(record(data) or {}, "projects")
        named = next((place for place in names if text(names, place) == project), None)
    else:
        named = data.decode("utf-8", "replace").strip()
    if named is not None and (not named.startswith("/") or "\0" in named):
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL), path)
    return os.path.realpath(named) if named is not None else None
