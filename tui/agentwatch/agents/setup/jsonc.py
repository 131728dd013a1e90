"""JSON, with the comments and trailing commas that some programs allow, as places in its text: edits can keep it."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any, Final

_DEEPEST: Final = 100
_BLANK: Final = re.compile(r"(?:[ \t\r\n]+|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_STRING: Final = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"')
_PLAIN: Final = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null")


class BrokenError(ValueError):
    """The text is no JSON, even with comments. The message says where."""


@dataclass(slots=True)
class Node:
    """One value: its place in the text, what it is, and what is in it.

    `keys` are those of an object, and where each begins; a member begins at its key, an entry of an array at itself.
    `comma` is the place of the comma behind the last of them, None where there is none.
    """

    start: int
    end: int
    value: Any
    children: list[Node] = field(default_factory=list)
    keys: list[tuple[str, int]] = field(default_factory=list)
    comma: int | None = None

    def get(self, key: str) -> Node | None:
        """The value of a key; of one that stands twice the last, as programs read it."""
        found = [child for (name, _), child in zip(self.keys, self.children, strict=True) if name == key]
        return found[-1] if found else None

    def begin(self, index: int) -> int:
        """Where the member or entry of this number begins."""
        return self.keys[index][1] if self.keys else self.children[index].start


def scan(text: str) -> Node:
    """The places in a text. Raises BrokenError."""
    start = blank(text, 1 if text.startswith("\ufeff") else 0)
    node = _value(text, start, 0)
    if blank(text, node.end) != len(text):
        raise BrokenError(f"{_line(text, node.end)}: something stands behind the end")
    return node


def _value(text: str, at: int, depth: int) -> Node:
    if depth > _DEEPEST:
        raise BrokenError(f"{_line(text, at)}: nested too deep")
    if text[at : at + 1] == "{":
        return _container(text, at, depth, is_object=True)
    if text[at : at + 1] == "[":
        return _container(text, at, depth, is_object=False)
    found = _STRING.match(text, at) or _PLAIN.match(text, at)
    if found is None:
        raise BrokenError(f"{_line(text, at)}: a value is missing")
    try:
        return Node(at, found.end(), json.loads(found[0]))
    except ValueError as error:
        raise BrokenError(f"{_line(text, at)}: {error}") from error


def _container(text: str, at: int, depth: int, *, is_object: bool) -> Node:
    node = Node(at, at, {} if is_object else [])
    end = "}" if is_object else "]"
    position = blank(text, at + 1)
    while text[position : position + 1] != end:
        if node.children and node.comma is None:
            raise BrokenError(f"{_line(text, position)}: a comma or `{end}` is missing")
        if is_object:
            key = _STRING.match(text, position)
            colon = blank(text, key.end()) if key is not None else position
            if key is None or text[colon : colon + 1] != ":":
                raise BrokenError(f"{_line(text, position)}: a key and its colon are missing")
            node.keys.append((json.loads(key[0]), position))
            position = blank(text, colon + 1)
        child = _value(text, position, depth + 1)
        node.children.append(child)
        if is_object:
            node.value[node.keys[-1][0]] = child.value
        else:
            node.value.append(child.value)
        position = blank(text, child.end)
        node.comma = None
        if text[position : position + 1] == ",":
            node.comma, position = position, blank(text, position + 1)
    node.end = position + 1
    return node


def blank(text: str, at: int) -> int:
    """The place behind white space and comments."""
    found = _BLANK.match(text, at)
    return found.end() if found is not None else at


def _line(text: str, at: int) -> str:
    return f"line {text.count(chr(10), 0, at) + 1}"
