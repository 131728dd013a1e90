"""Reads a screenplay: a session written down as text, its files in the order in which they appear.

A line `@ +SECONDS VERB PATH` is a stage direction; the pause before it comes first. The lines up to the next
direction are its content. Lines that begin with `@@` are remarks.

| verb | what happens |
| --- | --- |
| `write` | the file appears whole, by a rename |
| `inplace` | the file is written in place |
| `halves` | the file is written in place, its second half 0.8 s later |
| `todo` | the file is written again with the checkboxes of the lines given |
| `rename` | `PATH -> NEW` |
| `delete`, `mkdir` | as they say |

A line `@ cast TASK HANDOFF PATTERN…` says which files are the task's, its handoff first, or `-` if it has none. A
line `@ on ACTION… TASK` begins a scene: what happens once the operator has decided so about the task, `*` for any. Of
several the first is played. In a scene's paths and content stand `$name`s of `WORDS`, which the decision fills in.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from importlib.resources import files
from string import Template
from typing import Final, NamedTuple

from agentwatch.delegation.decision import Action as Decision
from agentwatch.demo.script import Action, Delete, MakeDirectory, Rename, Script, Step, Write, halves

WORDS: Final = frozenset({"answer", "attempt", "ending", "file", "handoff", "mode", "report", "task"})
"""What a scene can name of a decision: see `Orchestrator`, which fills it in."""

_CAST: Final = re.compile(r"@ cast (?P<task>\S+)(?P<files>( \S+)+)")
_SCENE: Final = re.compile(r"@ on (?P<actions>[a-z]+( [a-z]+)*) (?P<task>\S+)")
_DIRECTION: Final = re.compile(r"@ \+(?P<pause>\d+(?:\.\d+)?) (?P<verb>[a-z]+) (?P<path>\S+)(?: -> (?P<to>\S+))?")
_CHECKBOX: Final = re.compile(r"- \[[ x-]\] (?P<text>.+)")
_HALF_SECONDS: Final = 0.8

_Line = tuple[int, str]
"""A line with its number, from 1."""


class Scene(NamedTuple):
    """What happens after one of these decisions about a task, or about any for `*`; seconds count from then."""

    decisions: frozenset[Decision]
    task_id: str
    script: Script


class Screenplay(NamedTuple):
    """A session, the scenes that follow decisions, and which files are whose: patterns, the handoff's path first."""

    script: Script
    cast: Mapping[str, tuple[str, ...]]
    scenes: tuple[Scene, ...]

    def scene(self, decision: Decision, task_id: str) -> Script | None:
        """What is played after this decision; None if nothing more happens."""
        fitting = (one for one in self.scenes if decision in one.decisions and one.task_id in (task_id, "*"))
        return next((scene.script for scene in fitting), None)

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
    """What `agentwatch demo` plays."""
    return parse(files(__package__).joinpath("checkout.screenplay").read_text(encoding="utf-8"))


def demo_script() -> Script:
    """The session that `agentwatch demo` plays if nobody decides anything."""
    return demo_screenplay().script


def parse(text: str) -> Screenplay:
    """Raises ValueError with the line that cannot be understood."""
    cast: dict[str, tuple[str, ...]] = {}
    headings: list[tuple[frozenset[Decision], str]] = []
    blocks: list[list[_Line]] = [[]]
    for number, line in enumerate(text.splitlines(), start=1):
        if role := _CAST.fullmatch(line):
            cast[role["task"]] = tuple(role["files"].split())
        elif heading := _SCENE.fullmatch(line):
            headings.append((_decisions(heading["actions"], number), heading["task"]))
            blocks.append([])
        elif not line.startswith("@@"):
            blocks[-1].append((number, line))
    session = _script(blocks.pop(0))
    scenes = [Scene(*heading, _script(block)) for heading, block in zip(headings, blocks, strict=True)]
    for scene, block in zip(scenes, blocks, strict=True):
        _check_words(scene.script, block)
    return Screenplay(session, cast, tuple(scenes))


def _decisions(words: str, line: int) -> frozenset[Decision]:
    try:
        return frozenset(Decision(word) for word in words.split())
    except ValueError:
        raise ValueError(f"line {line}: a scene is 'on' one or more of {', '.join(Decision)}") from None


def _check_words(script: Script, block: list[_Line]) -> None:
    texts = [text for step in script.steps for text in (step.action.path, getattr(step.action, "text", ""))]
    used = {name for text in texts for name in Template(text).get_identifiers()}
    if unknown := used - WORDS:
        line = next(number for number, line in block if f"${min(unknown)}" in line)
        raise ValueError(f"line {line}: a decision has no ${min(unknown)}; there are {', '.join(sorted(WORDS))}")


def _script(block: Iterable[_Line]) -> Script:
    steps: list[Step] = []
    written: dict[str, str] = {}
    clock = 0.0
    for line, direction, lines in _directions(block):
        path, verb = direction["path"], direction["verb"]
        clock = round(clock + float(direction["pause"]), 3)
        content = _ticked(written.get(path, ""), lines, line) if verb == "todo" else lines
        if verb in ("write", "inplace", "halves", "todo"):
            written[path] = content
        if verb == "halves":
            steps.extend(halves(clock, path, content, _HALF_SECONDS))
        else:
            steps.append(Step(clock, _action(direction, content, line)))
    # The second half of a file may come after the next file.
    return Script(tuple(sorted(steps, key=lambda step: step.at_seconds)))


def _action(direction: re.Match[str], content: str, line: int) -> Action:
    path, to = direction["path"], direction["to"]
    match direction["verb"]:
        case "write" | "todo":
            return Write(path, content)
        case "inplace":
            return Write(path, content, atomic=False)
        case "delete":
            return Delete(path)
        case "mkdir":
            return MakeDirectory(path)
        case "rename" if to:
            return Rename(path, to)
        case verb:
            raise ValueError(f"line {line}: {verb!r} is no stage direction, or lacks its '-> NEW'")


def _directions(block: Iterable[_Line]) -> Iterator[tuple[int, re.Match[str], str]]:
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
            raise ValueError(f"line {number}: write a stage direction as '@ +SECONDS VERB PATH'")
        opened = (number, direction) if direction else None


def _ticked(before: str, changes: str, line: int) -> str:
    """The text with the checkboxes of the lines given, which must be in it."""
    boxes: dict[str, str] = {}
    for change in changes.splitlines():
        match = _CHECKBOX.fullmatch(change)
        if match is None:
            raise ValueError(f"line {line}: {change!r} is no line of a checklist")
        boxes[match["text"]] = change
    lines = []
    for text in before.splitlines():
        match = _CHECKBOX.fullmatch(text)
        lines.append(boxes.pop(match["text"], text) if match else text)
    if boxes:
        raise ValueError(f"line {line}: the file has no todo {next(iter(boxes))!r}")
    return "\n".join(lines) + "\n"
