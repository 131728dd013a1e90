"""Plays a session into a workspace: real files, written, amended, renamed and deleted at their times.

The demo plays it against the clock; tests and pictures play it without waiting. The same script always leaves
the same bytes under the same names, unless something is cut in.
"""

from __future__ import annotations

import math
import os
import shutil
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import TYPE_CHECKING, Protocol

from agentwatch.errors import WorkspaceError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


@dataclass(frozen=True, slots=True)
class Action:
    """Something done to a file. A path that is not relative to the workspace, with `/`, is refused with ValueError."""

    path: str

    def __post_init__(self) -> None:
        for path in self.paths:
            parts = PurePosixPath(path).parts
            if not parts or ".." in parts or PurePosixPath(path).is_absolute() or "\0" in path:
                raise ValueError(f"{path!r} is no path inside the workspace; give a relative one without '..'")
            if PureWindowsPath(path).drive or "\\" in path:
                raise ValueError(f"{path!r} is no portable path; separate its parts with '/'")

    @property
    def paths(self) -> tuple[str, ...]:
        """The names that it touches; the last one is there afterwards, if any is."""
        return (self.path,)


@dataclass(frozen=True, slots=True)
class Write(Action):
    """Puts `text` into the file, as UTF-8: by a rename, or in place, where readers can see it half done."""

    text: str
    atomic: bool = True


@dataclass(frozen=True, slots=True)
class Append(Action):
    """Puts `text` at the end of the file, in place."""

    text: str


@dataclass(frozen=True, slots=True)
class Delete(Action):
    """Removes the file, or the directory with all that is in it; does nothing if it is not there."""


@dataclass(frozen=True, slots=True)
class Rename(Action):
    """Moves a file or a directory; a file that has the new name already is replaced."""

    to: str

    @property
    def paths(self) -> tuple[str, ...]:
        return self.path, self.to


@dataclass(frozen=True, slots=True)
class MakeDirectory(Action):
    """Makes the directory and those above it."""


@dataclass(frozen=True, slots=True)
class Step:
    """One action, `at_seconds` after the session began."""

    at_seconds: float
    action: Action


def halves(at_seconds: float, path: str, text: str, pause_seconds: float) -> tuple[Step, Step]:
    """Two steps that write a file as a slow writer does: until the pause is over it holds the first half."""
    middle = len(text) // 2
    return (
        Step(at_seconds, Write(path, text[:middle], atomic=False)),
        Step(at_seconds + pause_seconds, Append(path, text[middle:])),
    )


@dataclass(frozen=True, slots=True)
class Script:
    """The steps of a session in the order of their times; any other order is refused with ValueError."""

    steps: tuple[Step, ...]

    def __post_init__(self) -> None:
        before = 0.0
        for step in self.steps:
            if not before <= step.at_seconds < math.inf:
                raise ValueError(f"a step at {step.at_seconds} s follows one at {before} s; order them")
            before = step.at_seconds

    @property
    def duration(self) -> float:
        """Seconds from the beginning to the last step."""
        return self.steps[-1].at_seconds if self.steps else 0.0


class Stop(Protocol):
    """What `run` needs of a `threading.Event`."""

    def wait(self, timeout: float | None = None) -> bool: ...


class Player:
    """Plays one script into one workspace, which is made if it does not exist.

    It remembers how far it has played: a second call goes on from there. `speed` 2.0 plays twice as fast.
    Playing and rewinding raise OSError where a file cannot be written or removed, and WorkspaceError where a
    link leads out of the workspace.
    """

    def __init__(
        self, script: Script, workspace: Path, speed: float = 1.0, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        if not 0 < speed < math.inf:
            raise ValueError(f"a speed of {speed} cannot be played; give a number above 0")
        self._script = script
        self._workspace = workspace
        self._speed = speed
        self._clock = clock
        self._left = list(script.steps)
        self._cut_in: list[Step] = []
        self._position = 0.0

    @property
    def position(self) -> float:
        """The second of the script that it has got to."""
        return self._position

    @property
    def finished(self) -> bool:
        """Every step has been played."""
        return not self._left

    def run(self, stop: Stop, attend: Callable[[], object] = lambda: None, every: float = math.inf) -> None:
        """Plays what is left at its times, until all is played or `stop` is set. Blocks its thread.

        `attend` is called first, and then at least `every` so many seconds: it may `cut_in`.
        """
        began = self._clock() - self._position / self._speed
        attend()
        while not self.finished:
            wait = max(0.0, began + self._left[0].at_seconds / self._speed - self._clock())
            if stop.wait(min(wait, every)):
                return
            if wait <= every:
                self._play_next(None)
            self._position = max(self._position, (self._clock() - began) * self._speed)
            attend()

    def cut_in(self, steps: Iterable[Step], instead_of: Callable[[str], bool] = lambda _path: False) -> None:
        """Plays these as well, their times counted from now; what was to come of some paths is left out instead."""
        added = [replace(step, at_seconds=self._position + step.at_seconds) for step in steps]
        self._cut_in += added
        kept = [step for step in self._left if not instead_of(step.action.path)]
        self._left = sorted((*kept, *added), key=lambda step: step.at_seconds)

    def play_all(self, until: float | None = None, started_at: float | None = None) -> None:
        """Plays what is left without waiting, up to and including the second `until` of the script.

        Files get the modification times they would have had if the session had begun at `started_at` (seconds
        since the epoch); None lets it begin so that the moment played up to is now.
        """
        end = self._script.duration if until is None else until
        if started_at is None:
            started_at = time.time() - end
        while not self.finished and self._left[0].at_seconds <= end:
            self._play_next(started_at)
        self._position = max(self._position, end)

    def rewind(self) -> None:
        """Removes what was put into the workspace, nothing else; the next call plays the script from the start."""
        made: set[PurePosixPath] = set()
        for step in (*self._script.steps, *self._cut_in):
            name = PurePosixPath(step.action.paths[-1])
            made.update((name, *name.parents[:-1]))
        # Deepest first. A directory that holds something of somebody else stays.
        for path in sorted(made, key=lambda path: (-len(path.parts), path)):
            place = self._place(str(path))
            if place.is_dir() and not place.is_symlink():
                with suppress(OSError):
                    place.rmdir()
            else:
                place.unlink(missing_ok=True)
        self._left, self._cut_in = list(self._script.steps), []
        self._position = 0.0

    def _place(self, path: str, *, follows: bool = False) -> Path:
        """Where a path lies. `follows`: the action goes through a link of this name instead of replacing it."""
        place = self._workspace / path
        if not (place if follows else place.parent).resolve().is_relative_to(self._workspace.resolve()):
            raise WorkspaceError(f"{path} leads out of {self._workspace} by a link; remove that link")
        return place

    def _play_next(self, started_at: float | None) -> None:
        step = self._left[0]
        action = step.action
        modified_at = None if started_at is None else started_at + step.at_seconds
        follows = isinstance(action, Append | MakeDirectory) or (isinstance(action, Write) and not action.atomic)
        place = self._place(action.path, follows=follows)
        match action:
            case Write(text=text, atomic=atomic):
                place.parent.mkdir(parents=True, exist_ok=True)
                _write(place, text.encode(), atomic=atomic, modified_at=modified_at)
            case Append(text=text):
                place.parent.mkdir(parents=True, exist_ok=True)
                with place.open("ab") as file:
                    file.write(text.encode())
                _set_time(place, modified_at)
            case Delete():
                if place.is_dir() and not place.is_symlink():
                    shutil.rmtree(place)
                else:
                    place.unlink(missing_ok=True)
            case Rename(to=to):
                target = self._place(to)
                target.parent.mkdir(parents=True, exist_ok=True)
                # The operator may have deleted the file: then there is nothing to move.
                with suppress(FileNotFoundError):
                    place.replace(target)
            case MakeDirectory():
                place.mkdir(parents=True, exist_ok=True)
        del self._left[0]
        self._position = max(self._position, step.at_seconds)


def _write(place: Path, content: bytes, *, atomic: bool, modified_at: float | None) -> None:
    # The ending keeps watchers of *.json and *.md from taking the temporary file for a document.
    file = place.with_name(f".{place.name}.writing") if atomic else place
    file.write_bytes(content)
    _set_time(file, modified_at)
    if atomic:
        file.replace(place)


def _set_time(place: Path, modified_at: float | None) -> None:
    if modified_at is not None:
        os.utime(place, (modified_at, modified_at))
