"""Reads a session written as text, and plays it: writes its files into a workspace at their times.

A line `@ +SECONDS VERB PATH` is a stage direction; SECONDS is the pause before it. The lines up to the next direction
are its content. Lines that begin with `@@` are remarks.

| verb | what happens |
| --- | --- |
| `write` | the file appears whole, by a rename |
| `todo` | the file is written again with the checkboxes as in the lines given |

A line `@ cast TASK HANDOFF PATTERN…` says which files belong to a task: its handoff, or `-` for none, and patterns. A
line `@ on ACTION… TASK` begins a scene, which is played once the operator has decided so about the task, or about any
task for `*`. If several scenes fit, the first is played. A decision fills in the `$name`s in the paths and content of a
scene: see `Orchestrator`.

The demo plays a session in real time; tests and pictures play it without waiting.
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
    """The steps that follow one of these decisions about a task (`*` for any); seconds count from the decision."""

    decisions: frozenset[Action]
    task_id: str
    steps: list[Step]


class Screenplay(NamedTuple):
    """A session's steps, the scenes after decisions, and `cast`: each task's handoff path and file patterns."""

    steps: Sequence[Step]
    cast: Mapping[str, Sequence[str]]
    scenes: Sequence[Scene]

    def scene(self, decision: Action, task_id: str) -> Sequence[Step]:
        """Return the steps that follow a decision, () if no scene fits."""
        fitting = (one for one in self.scenes if decision in one.decisions and one.task_id in (task_id, "*"))
        return next((scene.steps for scene in fitting), ())

    def handoff_of(self, task_id: str) -> str | None:
        """Return the path of a task's handoff; None if the task has none or is not in the session."""
        path, *_ = self.cast.get(task_id, ("-",))
        return None if path == "-" else path

    def belongs(self, path: str, task_id: str, *, below: bool = False) -> bool:
        """Whether a file belongs to a task or, with `below`, to one below it."""
        return any(
            fnmatchcase(path, pattern)
            for owner, patterns in self.cast.items()
            if owner == task_id or (below and owner.startswith(f"{task_id}."))
            for pattern in patterns
        )


def demo_screenplay() -> Screenplay:
    """Return the session that `agentwatch demo` plays."""
    return parse(files(__package__).joinpath("checkout.screenplay").read_text(encoding="utf-8"))


def parse(text: str) -> Screenplay:
    """Parse a session. Raises ValueError with a wrong direction, KeyError for a `todo` of a file not yet written."""
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
    """Return the text with its checkboxes set as in the lines of `changes`."""
    boxes = {match[1]: match[0] for match in _CHECKBOX.finditer(changes)}
    return _CHECKBOX.sub(lambda box: boxes.get(box[1], box[0]), before)


class Player:
    """Plays steps into one workspace, which is made if it does not exist.

    It remembers how far it has played: a second call continues there. `speed` 2.0 plays twice as fast.
    Playing raises OSError if a file cannot be written.
    """

    def __init__(
        self, steps: Sequence[Step], workspace: Path, speed: float = 1.0, *, clock: Callable[[], float] = time.monotonic
    ):
        self._workspace, self._speed, self._clock = workspace, speed, clock
        self._left = list(steps)
        self.position = 0.0  # the second of the script up to which all is played

    @property
    def finished(self) -> bool:
        """Whether every step has been played."""
        return not self._left

    def run(self, wait: Callable[[float], bool], attend: Callable[[], object], every: float = math.inf) -> None:
        """Play the remaining steps at their times until all are played, or until `wait`, called with seconds, returns
        True. Blocks.

        `attend` is called at the start and then at least once in `every` seconds; it may call `cut_in`.
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
        """Add steps, timed from now, and drop the remaining steps of paths for which `instead_of` is true."""
        added = [step._replace(at_seconds=self.position + step.at_seconds) for step in steps]
        kept = [step for step in self._left if not instead_of(step.path)]
        self._left = sorted((*kept, *added), key=lambda step: step.at_seconds)

    def play(self, until: float, began: float | None = None) -> None:
        """Play the remaining steps up to the second `until` of the script, without waiting. With `began` (epoch
        seconds), files get the times that they would have if the session had begun then."""
        while self._left and self._left[0].at_seconds <= until:
            step = self._left[0]
            place = self._workspace / step.path
            place.parent.mkdir(parents=True, exist_ok=True)
            # With this ending, watchers of *.json and *.md ignore the temporary file.
            file = place.with_name(f".{place.name}.writing")
            file.write_bytes(step.text.encode())
            if began is not None:
                os.utime(file, (began + step.at_seconds,) * 2)
            file.replace(place)
            del self._left[0]
        self.position = max(self.position, until)
