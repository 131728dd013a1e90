"""Members and entries put into a JSON text, and taken out, without touching a byte of the rest. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from functools import reduce
from json import JSONDecodeError
from typing import Any, Final, NamedTuple, NoReturn

from agentwatch.contracts.json_text import Node

_UNIT: Final = "  "
_BLANK: Final = re.compile(r"(?:[ \t\r\n]+|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_COMMENT: Final = re.compile(r'("(?:[^"\\]|\\.)*")|//[^\n]*|/\*.*?\*/', re.DOTALL)
_LAST_COMMA: Final = re.compile(r'("(?:[^"\\]|\\.)*"|[\[{]\s*,)|,(?=\s*[}\]])', re.DOTALL)
_BREAK: Final = re.compile(r"[ \t]*\r?\n")


class BrokenError(ValueError):
    """The text is no JSON, even with comments. The message says where."""


def commented(text: str) -> Node:
    """JSON with the comments and trailing commas that some programs allow. Raises BrokenError."""
    bare = f" {text[1:]}" if text.startswith("\ufeff") else text
    plain = _LAST_COMMA.sub(_blanked, _COMMENT.sub(_blanked, bare))
    try:
        json.loads(plain, parse_constant=_refused)
    except JSONDecodeError as error:
        raise BrokenError(f"line {error.lineno}: {error.msg}") from error
    except (ValueError, RecursionError) as error:
        raise BrokenError(f"it cannot be read: {error}") from error
    return Node(plain, len(plain) - len(plain.lstrip()))


def _blanked(match: re.Match[str]) -> str:
    # The same length and the same lines, so that every offset stays true.
    return match[1] or re.sub(r"[^\n]", " ", match[0])


def _refused(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number of JSON")


class JsonMember(NamedTuple):
    """`path[:-1]` names an object, `path[-1]` the key of ours in it."""

    path: tuple[str, ...]
    value: Any


class JsonEntry(NamedTuple):
    """`path` names an array; `is_ours` knows an entry of ours in it, also one of before."""

    path: tuple[str, ...]
    value: Any
    is_ours: Callable[[Any], bool]


Wish = JsonMember | JsonEntry


def added(text: str, wishes: Sequence[Wish]) -> str:
    """The text with all of the wishes fulfilled; the same text where they are. Raises BrokenError."""
    return reduce(_added, wishes, text)


def removed(text: str, wishes: Sequence[Wish]) -> str:
    """The text without what is ours, and without objects and arrays that held nothing else. Raises BrokenError."""
    return reduce(_removed, reversed(wishes), text)


def _added(text: str, wish: Wish) -> str:
    node = _needing(commented(text), dict)
    path = wish.path[:-1] if isinstance(wish, JsonMember) else wish.path
    for depth, key in enumerate(path):
        part = node.part(key)
        if part is None:
            value: Any = {wish.path[-1]: wish.value} if isinstance(wish, JsonMember) else [wish.value]
            for inner in reversed(path[depth + 1 :]):
                value = {inner: value}
            return _put(text, node, key, value)
        is_array = isinstance(wish, JsonEntry) and depth == len(path) - 1
        node = _needing(part, list if is_array else dict)
    if isinstance(wish, JsonMember):
        there = node.part(wish.path[-1])
        if there is None:
            return _put(text, node, wish.path[-1], wish.value)
        return text if there.value == wish.value else _replaced(text, there, wish.value)
    mine = _ours(node, wish)
    if not mine:
        return _put(text, node, None, wish.value)
    if mine[1:]:
        return _added(_cut(text, node, mine[-1]), wish)
    old = node.parts[mine[0]]
    return text if old.value == wish.value else _replaced(text, old, wish.value)


def _ours(node: Node, wish: JsonEntry) -> list[int]:
    return [index for index, part in enumerate(node.parts) if wish.is_ours(part.value)]


def _removed(text: str, wish: Wish) -> str:
    trail: list[tuple[Node, int]] = []
    node = commented(text)
    path = wish.path
    for key in path:
        indexes = [index for index, part in enumerate(node.parts) if part.step == key]
        if not indexes:
            return text
        trail.append((node, indexes[-1]))
        node = node.parts[indexes[-1]]
    if isinstance(wish, JsonEntry):
        mine = _ours(node, wish)
        if not mine:
            return text
        if mine[1:]:
            return _removed(_cut(text, node, mine[-1]), wish)
        trail.append((node, mine[0]))
    # What holds nothing but ours, not even a comment, was made for it.
    while len(trail) > 1 and _is_alone(text, trail[-1][0], trail[-2][0].parts[trail[-2][1]].begins):
        trail.pop()
    return _cut(text, *trail[-1])


def _is_alone(text: str, node: Node, key: int) -> bool:
    """Whether nothing stands in the node beside one child, and nothing between its key and itself. No key of ours has
    a slash, so that one there is that of a comment."""
    if len(node.parts) != 1 or "/" in text[key : node.start]:
        return False
    around = text[node.start + 1 : node.parts[0].begins] + text[node.parts[0].end : node.end - 1]
    return around.strip() in ("", ",")


def _cut(text: str, node: Node, index: int) -> str:
    """Without one member or entry, the comma that it needed, and its lines."""
    start, end = node.parts[index].begins, node.parts[index].end
    if index + 1 < len(node.parts):
        comma = _blank(text, end)
        return text[:start] + (text[end:comma] + text[comma + 1 :]).lstrip()
    last = _last_comma(text, node)
    before = node.parts[index - 1].end if index else node.start + 1
    kept = text[before:start]
    if index:
        comma = _blank(text, before)
        # Where a trailing comma was used before, it is one again.
        kept = text[before:comma] + ("," if last is not None else "") + text[comma + 1 : start]
    behind = text[end:] if last is None else text[end:last] + text[last + 1 :]
    kept = kept.rstrip()
    if "//" in kept.rpartition("\n")[2] and not _BREAK.match(behind):
        # A comment goes to the end of its line, and that was behind what is cut.
        kept += "\n"
    return text[:before] + kept + behind


def _put(text: str, node: Node, key: str | None, value: Any) -> str:
    """A new last member or entry."""
    newline = "\r\n" if "\r\n" in text else "\n"
    indent, unit = _indents(text, node)
    lines = json.dumps(value, indent=unit, ensure_ascii=False).split("\n")
    if key is not None:
        lines[0] = f"{json.dumps(key, ensure_ascii=False)}: {lines[0]}"
    new = newline.join(f"{indent}{line}" for line in lines)
    inside = text[: node.end - 1].rstrip()
    closing = text[len(inside) : node.end - 1]
    if "\n" not in closing:
        closing = newline + indent.removesuffix(unit)
    if node.parts and _last_comma(text, node) is not None:
        # A trailing comma stays one.
        new += ","
    elif node.parts:
        # Behind the value itself: a comment may stand between it and the end.
        last = node.parts[-1].end
        inside = inside[:last] + "," + inside[last:]
    return f"{inside}{newline}{new}{closing}{text[node.end - 1 :]}"


def _last_comma(text: str, node: Node) -> int | None:
    """The place of the comma behind all parts, None where there is none."""
    behind = _blank(text, node.parts[-1].end)
    return behind if text[behind] == "," else None


def _blank(text: str, at: int) -> int:
    """The place behind white space and comments."""
    blank = _BLANK.match(text, at)
    return blank.end() if blank is not None else at


def _replaced(text: str, node: Node, value: Any) -> str:
    newline = "\r\n" if "\r\n" in text else "\n"
    indent = _indent_at(text, node.start)
    lines = json.dumps(value, indent=_unit(text), ensure_ascii=False).split("\n")
    return text[: node.start] + f"{newline}{indent}".join(lines) + text[node.end :]


def _indents(text: str, node: Node) -> tuple[str, str]:
    """(that of what stands in the node, one step)."""
    unit = _unit(text)
    if node.parts and "\n" in text[node.start : node.parts[0].begins]:
        return _indent_at(text, node.parts[0].begins), unit
    return _indent_at(text, node.start) + unit, unit


def _indent_at(text: str, at: int) -> str:
    line = text[text.rfind("\n", 0, at) + 1 : at]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _unit(text: str) -> str:
    indented = re.search(r"^([ \t]+)[\"\[{]", text, re.MULTILINE)
    return indented[1] if indented is not None else _UNIT


def _needing(node: Node, kind: type[dict[str, Any]] | type[list[Any]]) -> Node:
    if not isinstance(node.value, kind):
        raise BrokenError(f"there is no {'object' if kind is dict else 'array'} where one is expected")
    return node
