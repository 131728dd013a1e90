"""A session written down as text, and the player that writes its files into a workspace at their times.

A line `@ +SECONDS VERB PATH` is a stage direction; the pause before it comes first. The lines up to the next
direction are its content. Lines that begin with `@@` are remarks.

| verb | what happens |
| --- | --- |
| `write` | the file appears whole, by a rename |
| `todo` | the file is written again with the checkboxes of the lines given |

A line `@ cast TASK HANDOFF PATTERN…` says which files are the task's, its handoff first, or `-` if it has none. A
line `@ on ACTION… TASK` begins a scene: what happens once the operator has decided so about the task, `*` for any. Of
several the first is played. In a scene's paths and content stand `$name`s of `WORDS`, which the decision fills in.

The demo plays it against the clock; tests and pictures play it without waiting. The same script always leaves the same
bytes under the same names, unless something is cut in.
"""

from __future__ import annotations

import math
import os
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from fnmatch import fnmatchcase
from importlib.resources import files
from pathlib import Path, PurePosixPath
from string import Template
from typing import Final, NamedTuple, Protocol

from agentwatch.delegation.decision import Action
from agentwatch.errors import WorkspaceError

WORDS: Final = frozenset({"answer", "attempt", "ending", "file", "handoff", "mode", "report", "task"})
"""The fields of a decision that a scene can name: see `Orchestrator`, which fills it in."""

_CAST: Final = re.compile(r"@ cast (?P<task>\S+)(?P<files>( \S+)+)")
_SCENE: Final = re.compile(r"@ on (?P<actions>[a-z]+( [a-z]+)*) (?P<task>\S+)")
_DIRECTION: Final = re.compile(r"@ \+(?P<pause>\d+(?:\.\d+)?) (?P<verb>write|todo) (?P<path>\S+)")
_CHECKBOX: Final = re.compile(r"- \[[ x-]\] (?P<text>.+)")


class Step(NamedTuple):
    """A file that appears, or is replaced, `at_seconds` after the session began."""

    at_seconds: float
    path: str
    text: str


class Scene(NamedTuple):
    """The scenes that follow one of these decisions about a task, or about any for `*`; seconds count from then."""

    decisions: frozenset[Action]
    task_id: str
    steps: Sequence[Step]


class Screenplay(NamedTuple):
    """A session, the scenes that follow decisions, and which files are whose: patterns, the handoff's path first."""

    steps: Sequence[Step]
    cast: Mapping[str, tuple[str, ...]]
    scenes: Sequence[Scene]

    def scene(self, decision: Action, task_id: str) -> Sequence[Step]:
        """The events that follow this decision, none if nothing more happens."""
        fitting = (one for one in self.scenes if decision in one.decisions and one.task_id in (task_id, "*"))
        return next((scene.steps for scene in fitting), ())

    def handoff_of(self, task_id: str) -> str | None:
        """The path of the handoff of a task; None if it has none, or has no part in the session."""
        path, *_ = self.cast.get(task_id, ("-",))
        return None if path == "-" else path

    def belongs(self, path: str, task_id: str, *, below: bool = False) -> bool:
        """Whether a file is that of a task, or with `below` of one below it."""
        return any(
            fnmatchcase(path, pattern)
            for owner, patterns in self.cast.items()
            if owner == task_id or (below and owner.startswith(f"{task_id}."))
            for pattern in patterns
        )


def demo_screenplay() -> Screenplay:
    """The session that `agentwatch demo` plays."""
    return parse(files(__package__).joinpath("checkout.screenplay").read_text(encoding="utf-8"))


def demo_script() -> Sequence[Step]:
    """The session that `agentwatch demo` plays if nobody decides anything."""
    return demo_screenplay().steps


def parse(text: str) -> Screenplay:
    """Raises ValueError with the line that cannot be understood."""
    cast: dict[str, tuple[str, ...]] = {}
    headings: list[tuple[frozenset[Action], str]] = []
    blocks: list[list[tuple[int, str]]] = [[]]
    for number, line in enumerate(text.splitlines(), start=1):
        if role := _CAST.fullmatch(line):
            cast[role["task"]] = tuple(role["files"].split())
        elif heading := _SCENE.fullmatch(line):
            try:
                headings.append((frozenset(map(Action, heading["actions"].split())), heading["task"]))
            except ValueError as error:
                raise ValueError(f"line {number}: {error}") from None
            blocks.append([])
        elif not line.startswith("@@"):
            blocks[-1].append((number, line))
    for number, line in (one for block in blocks[1:] for one in block):
        if unknown := set(Template(line).get_identifiers()) - WORDS:
            raise ValueError(f"line {number}: a decision has no ${min(unknown)}; there are {', '.join(sorted(WORDS))}")
    session, *scenes = [list(_steps(block)) for block in blocks]
    return Screenplay(session, cast, [Scene(*one, steps) for one, steps in zip(headings, scenes, strict=True)])


def _steps(block: Iterable[tuple[int, str]]) -> Iterator[Step]:
    written: dict[str, str] = {}
    clock = 0.0
    for line, direction, text in _directions(block):
        path = direction["path"]
        clock = round(clock + float(direction["pause"]), 3)
        written[path] = _ticked(written.get(path, ""), text, line) if direction["verb"] == "todo" else text
        yield Step(clock, path, written[path])


def _directions(block: Iterable[tuple[int, str]]) -> Iterator[tuple[int, re.Match[str], str]]:
    """Each direction with its line number and its content, which ends in one line feed."""
    opened: tuple[int, re.Match[str]] | None = None
    content: list[str] = []
    for number, line in (*block, (0, "@ end")):
        if not line.startswith("@ "):
            content.append(line)
            continue
        if opened:
            yield *opened, "\n".join(content).strip("\n") + "\n"
        content = []
        direction = _DIRECTION.fullmatch(line)
        if direction is None and number:
            raise ValueError(f"line {number}: write a stage direction as '@ +SECONDS write|todo PATH'")
        opened = (number, direction) if direction else None


def _ticked(before: str, changes: str, line: int) -> str:
    """The text with the checkboxes of the lines given, which must be in it."""
    boxes = {match["text"]: match[0] for match in map(_CHECKBOX.fullmatch, changes.splitlines()) if match}
    lines = []
    for text in before.splitlines():
        match = _CHECKBOX.fullmatch(text)
        lines.append(boxes.pop(match["text"], text) if match else text)
    if boxes:
        raise ValueError(f"line {line}: the file has no todo {next(iter(boxes))!r}")
    return "\n".join(lines) + "\n"


class Stop(Protocol):
    """What `run` needs of a `threading.Event`."""

    def wait(self, timeout: float | None = None) -> bool: ...


class Player:
    """Plays steps into one workspace, which is made if it does not exist.

    It remembers how far it has played: a second call goes on from there. `speed` 2.0 plays twice as fast.
    Playing and rewinding raise OSError where a file cannot be written or removed, and WorkspaceError where a
    path or a link leads out of the workspace.
    """

    def __init__(
        self, steps: Sequence[Step], workspace: Path, speed: float = 1.0, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._steps = steps
        self._workspace = workspace
        self._speed = speed
        self._clock = clock
        self._left = list(steps)
        self._cut_in: list[Step] = []
        self.position = 0.0
        """The second of the script that it has got to."""

    @property
    def finished(self) -> bool:
        """Every step has been played."""
        return not self._left

    def run(self, stop: Stop, attend: Callable[[], object] = lambda: None, every: float = math.inf) -> None:
        """Plays what is left at its times, until all is played or `stop` is set. Blocks its thread.

        `attend` is called first, and then at least `every` so many seconds: it may `cut_in`.
        """
        began = self._clock() - self.position / self._speed
        attend()
        while not self.finished:
            wait = max(0.0, began + self._left[0].at_seconds / self._speed - self._clock())
            if stop.wait(min(wait, every)):
                return
            if wait <= every:
                self._play_next(None)
            self.position = max(self.position, (self._clock() - began) * self._speed)
            attend()

    def cut_in(self, steps: Iterable[Step], instead_of: Callable[[str], bool] = lambda _path: False) -> None:
        """Plays these as well, their times counted from now; what was to come of some paths is left out instead."""
        added = [step._replace(at_seconds=self.position + step.at_seconds) for step in steps]
        self._cut_in += added
        kept = [step for step in self._left if not instead_of(step.path)]
        self._left = sorted((*kept, *added), key=lambda step: step.at_seconds)

    def play_all(self, until: float | None = None, started_at: float | None = None) -> None:
        """Plays what is left without waiting, up to and including the second `until` of the script.

        Files get the modification times they would have had if the session had begun at `started_at` (seconds
        since the epoch); None lets it begin so that the moment played up to is now.
        """
        end = self._steps[-1].at_seconds if until is None else until
        if started_at is None:
            started_at = time.time() - end
        while not self.finished and self._left[0].at_seconds <= end:
            self._play_next(started_at)
        self.position = max(self.position, end)

    def rewind(self) -> None:
        """Removes what was put into the workspace, nothing else; the next call plays the script from the start."""
        made = {PurePosixPath(step.path) for step in (*self._steps, *self._cut_in)}
        for path in made:
            self._place(str(path)).unlink(missing_ok=True)
        # Deepest first. A directory that holds something of somebody else stays.
        for path in sorted({above for path in made for above in path.parents[:-1]}, key=lambda path: -len(path.parts)):
            with suppress(OSError):
                self._place(str(path)).rmdir()
        self._left, self._cut_in = list(self._steps), []
        self.position = 0.0

    def _place(self, path: str) -> Path:
        place = self._workspace / path
        if not place.parent.resolve().is_relative_to(self._workspace.resolve()):
            raise WorkspaceError(f"{path} leads out of {self._workspace}; remove the link that does")
        return place

    def _play_next(self, started_at: float | None) -> None:
        step = self._left[0]
        place = self._place(step.path)
        place.parent.mkdir(parents=True, exist_ok=True)
        # The ending keeps watchers of *.json and *.md from taking the temporary file for a document.
        file = place.with_name(f".{place.name}.writing")
        file.write_bytes(step.text.encode())
        if started_at is not None:
            os.utime(file, (started_at + step.at_seconds,) * 2)
        file.replace(place)
        del self._left[0]
        self.position = max(self.position, step.at_seconds)
