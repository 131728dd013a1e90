"""A session written down as text, and the player that writes its files into a workspace at their times.

A line `@ +SECONDS VERB PATH` is a stage direction; the pause before it comes first. The lines up to the next
direction are its content. Lines that begin with `@@` are remarks.

| verb | what happens |
| --- | --- |
| `write` | the file appears whole, by a rename |
| `todo` | the file is written again with the checkboxes of the lines given |

A line `@ cast TASK HANDOFF PATTERN…` says which files are the task's, its handoff first, or `-` if it has none. A
line `@ on ACTION… TASK` begins a scene: what happens once the operator has decided so about the task, `*` for any. Of
several the first is played. In a scene's paths and content stand `$name`s, which the decision fills in: see
`Orchestrator`.

The demo plays it against the clock; tests and pictures play it without waiting.
"""

import math
import os
import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

from agentwatch.delegation.decision import Action

_REMARK = re.compile(r"^@@.*\n", re.MULTILINE)
_DIRECTION = re.compile(r"^@ ", re.MULTILINE)
_CHECKBOX = re.compile(r"- \[[ x-]\] (.+)")


class Step(NamedTuple):
    """A file that appears, or is replaced, `at_seconds` after the session began."""

    at_seconds: float
    path: str
    text: str


class Scene(NamedTuple):
    """The steps that follow one of these decisions about a task, or about any for `*`; seconds count from then."""

    decisions: frozenset[Action]
    task_id: str
    steps: list[Step]


class Screenplay(NamedTuple):
    """A session, the scenes that follow decisions, and which files are whose: patterns, the handoff's path first."""

    steps: Sequence[Step]
    cast: Mapping[str, Sequence[str]]
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


def parse(text: str) -> Screenplay:
    """Raises ValueError with a direction that cannot be understood, KeyError for a todo of a file that is not there."""
    cast: dict[str, Sequence[str]] = {}
    scenes = [Scene(frozenset(), "", [])]
    written: dict[str, str] = {}
    clock = 0.0
    for part in _DIRECTION.split(_REMARK.sub("", text))[1:]:
        direction, _, content = part.partition("\n")
        content = content.strip("\n") + "\n"
        match direction.split():
            case ["cast", task, *patterns]:
                cast[task] = patterns
            case ["on", *actions, task]:
                scenes.append(Scene(frozenset(map(Action, actions)), task, []))
                written, clock = {}, 0.0
            case [pause, "write" | "todo" as verb, path]:
                clock = round(clock + float(pause), 3)
                written[path] = _ticked(written[path], content) if verb == "todo" else content
                scenes[-1].steps.append(Step(clock, path, written[path]))
            case _:
                raise ValueError(direction)
    return Screenplay(scenes[0].steps, cast, scenes[1:])


def _ticked(before: str, changes: str) -> str:
    """The text with the checkboxes of the lines given."""
    boxes = {match[1]: match[0] for match in _CHECKBOX.finditer(changes)}
    return _CHECKBOX.sub(lambda box: boxes.get(box[1], box[0]), before)


class Player:
    """Plays steps into one workspace, which is made if it does not exist.

    It remembers how far it has played: a second call goes on from there. `speed` 2.0 plays twice as fast.
    Playing raises OSError where a file cannot be written.
    """

    def __init__(
        self, steps: Sequence[Step], workspace: Path, speed: float = 1.0, *, clock: Callable[[], float] = time.monotonic
    ):
        self._workspace, self._speed, self._clock = workspace, speed, clock
        self._left = list(steps)
        self.position = 0.0  # The second of the script that it has got to

    @property
    def finished(self) -> bool:
        """Every step has been played."""
        return not self._left

    def run(self, wait: Callable[[float], bool], attend: Callable[[], object], every: float = math.inf) -> None:
        """Plays what is left at its times, until all is played or `wait`, which takes seconds, says that it has to
        stop. Blocks its thread.

        `attend` is called first, and then at least `every` so many seconds: it may `cut_in`.
        """
        began = self._clock() - self.position / self._speed
        attend()
        while self._left:
            due = self._left[0].at_seconds
            left = max(0.0, began + due / self._speed - self._clock())
            if wait(min(left, every)):
                return
            self.play(max(due if left <= every else 0.0, (self._clock() - began) * self._speed))
            attend()

    def cut_in(self, steps: Iterable[Step], instead_of: Callable[[str], bool] = lambda _path: False) -> None:
        """Plays these as well, their times counted from now; what was to come of some paths is left out instead."""
        added = [step._replace(at_seconds=self.position + step.at_seconds) for step in steps]
        kept = [step for step in self._left if not instead_of(step.path)]
        self._left = sorted((*kept, *added), key=lambda step: step.at_seconds)

    def play(self, until: float, began: float | None = None) -> None:
        """Plays what is left up to the second `until` of the script, without waiting. Files are as old as if it had
        begun then (seconds since the epoch); None leaves them as they are written."""
        while self._left and self._left[0].at_seconds <= until:
            step = self._left[0]
            place = self._workspace / step.path
            place.parent.mkdir(parents=True, exist_ok=True)
            # The ending keeps watchers of *.json and *.md from taking the temporary file for a document.
            file = place.with_name(f".{place.name}.writing")
            file.write_bytes(step.text.encode())
            if began is not None:
                os.utime(file, (began + step.at_seconds,) * 2)
            file.replace(place)
            del self._left[0]
        self.position = max(self.position, until)
