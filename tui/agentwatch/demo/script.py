"""Reads a scripted session, and plays it: writes each file into a workspace at its time.

A line `@ +SECONDS VERB PATH` writes a file, after a pause of so many seconds. The lines up to the next `@` line are the
content of the file. Lines that begin with `@@` are remarks.

| verb | what happens |
| --- | --- |
| `write` | the file appears whole, by a rename |
| `todo` | the file is written again, with the checkboxes of the given lines |

A line `@ cast TASK HANDOFF PATTERN…` says which files belong to a task. HANDOFF is `-` if the task has no handoff.

A line `@ on ACTION… TASK` begins a scene. The scene is played when the operator takes one of these decisions about the
task. `*` as TASK means any task. If several scenes fit, the first scene is played. A `$name` in a scene is replaced by
a value from the decision: see `Orchestrator`.

The demo plays a session in real time. Tests and pictures play it without waiting.
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
    """A file that is written or replaced `at_seconds` after the session began."""

    at_seconds: float
    path: str
    text: str


class Scene(NamedTuple):
    """The steps that follow one of `decisions` about a task (`*` is any task). Seconds count from the decision."""

    decisions: frozenset[Action]
    task_id: str
    steps: list[Step]


class Screenplay(NamedTuple):
    """A scripted session. `cast` has the path of each task's handoff and the patterns of the task's files."""

    steps: Sequence[Step]
    cast: Mapping[str, Sequence[str]]
    scenes: Sequence[Scene]

    def scene_steps(self, decision: Action, task_id: str) -> Sequence[Step]:
        """Return the steps that follow a decision, or () if no scene fits."""
        fitting = (one for one in self.scenes if decision in one.decisions and one.task_id in (task_id, "*"))
        return next((scene.steps for scene in fitting), ())

    def handoff_of(self, task_id: str) -> str | None:
        """Return the path of a task's handoff. Return None if the task has no handoff or is not in the session."""
        path, *_ = self.cast.get(task_id, ("-",))
        return None if path == "-" else path

    def belongs_to(self, path: str, task_id: str, *, below: bool = False) -> bool:
        """Tell whether a file belongs to a task. With `below`, files of the tasks below it count, too."""
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
    """Parse a session. Raise ValueError if a line is wrong. Raise KeyError if a `todo` has no file to change."""
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
                written[path] = _set_checkboxes(written[path], content) if verb == "todo" else content
                scenes[-1].steps.append(Step(clock, path, written[path]))
            case _:
                raise ValueError(direction)
    return Screenplay(scenes[0].steps, cast, scenes[1:])


def _set_checkboxes(before: str, changes: str) -> str:
    """Return the text with its checkboxes set as in the lines of `changes`."""
    boxes = {match[1]: match[0] for match in _CHECKBOX.finditer(changes)}
    return _CHECKBOX.sub(lambda box: boxes.get(box[1], box[0]), before)


class Player:
    """Plays steps into a workspace. The workspace is created if it does not exist.

    A call of `run` or `play` continues where the previous call ended. Both raise OSError if a file cannot be written. A
    `speed` of 2.0 is twice as fast.
    """

    def __init__(
        self, steps: Sequence[Step], workspace: Path, speed: float = 1.0, *, clock: Callable[[], float] = time.monotonic
    ):
        self._workspace, self._speed, self._clock = workspace, speed, clock
        self._remaining = list(steps)
        self.position = 0.0  # all steps up to this second of the script are played

    @property
    def is_finished(self) -> bool:
        """Tell whether every step has been played."""
        return not self._remaining

    def run(self, wait: Callable[[float], bool], handle_news: Callable[[], object], every: float = math.inf) -> None:
        """Play the remaining steps at their times. `wait` gets seconds to wait, and returns True to stop early. Blocks.

        `handle_news` is called at the start, and then at least once in `every` seconds. It may call `insert_steps`.
        """
        began = self._clock() - self.position / self._speed
        handle_news()
        while self._remaining:
            due = self._remaining[0].at_seconds
            left = max(0.0, began + due / self._speed - self._clock())
            if wait(min(left, every)):
                return
            self.play(max(due if left <= every else 0.0, (self._clock() - began) * self._speed))
            handle_news()

    def insert_steps(self, steps: Iterable[Step], instead_of: Callable[[str], bool] = lambda _path: False) -> None:
        """Add steps. Their times count from now. Drop the remaining steps of paths for which `instead_of` is true."""
        added = [step._replace(at_seconds=self.position + step.at_seconds) for step in steps]
        kept = [step for step in self._remaining if not instead_of(step.path)]
        self._remaining = sorted((*kept, *added), key=lambda step: step.at_seconds)

    def play(self, until: float, began: float | None = None) -> None:
        """Play the remaining steps up to the second `until` of the script, without waiting. With `began` (epoch
        seconds), the files get times as if the session had begun at that time."""
        while self._remaining and self._remaining[0].at_seconds <= until:
            step = self._remaining[0]
            place = self._workspace / step.path
            place.parent.mkdir(parents=True, exist_ok=True)
            # With this ending, watchers of *.json and *.md ignore the temporary file.
            file = place.with_name(f".{place.name}.writing")
            file.write_bytes(step.text.encode())
            if began is not None:
                os.utime(file, (began + step.at_seconds,) * 2)
            file.replace(place)
            del self._remaining[0]
        self.position = max(self.position, until)
