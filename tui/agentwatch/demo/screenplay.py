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
"""

from __future__ import annotations

import re
from importlib.resources import files
from typing import TYPE_CHECKING, Final

from agentwatch.sources.replay import Action, Delete, MakeDirectory, Rename, Script, Step, Write, halves

if TYPE_CHECKING:
    from collections.abc import Iterator

_DIRECTION: Final = re.compile(r"@ \+(?P<pause>\d+(?:\.\d+)?) (?P<verb>[a-z]+) (?P<path>\S+)(?: -> (?P<to>\S+))?")
_CHECKBOX: Final = re.compile(r"- \[[ x-]\] (?P<text>.+)")
_HALF_SECONDS: Final = 0.8


def demo_script() -> Script:
    """The session that `agentwatch demo` plays."""
    return parse(files(__package__).joinpath("checkout.screenplay").read_text(encoding="utf-8"))


def parse(text: str) -> Script:
    """The script of a screenplay. Raises ValueError with the line that cannot be understood."""
    steps: list[Step] = []
    written: dict[str, str] = {}
    clock = 0.0
    for line, direction, lines in _scenes(text):
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


def _scenes(text: str) -> Iterator[tuple[int, re.Match[str], str]]:
    """Each direction with its line number (from 1) and its content, which ends in one line feed."""
    opened: tuple[int, re.Match[str]] | None = None
    content: list[str] = []
    for number, line in enumerate([*text.splitlines(), "@ end"], start=1):
        if line.startswith("@@"):
            continue
        if not line.startswith("@ "):
            content.append(line)
            continue
        if opened:
            yield *opened, "\n".join(content).strip("\n") + "\n"
        content = []
        direction = _DIRECTION.fullmatch(line)
        if direction is None and line != "@ end":
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
