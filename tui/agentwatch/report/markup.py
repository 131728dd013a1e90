"""HTML that cannot be broken out of: an element's children are text unless this module made them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from html import escape
from typing import Final

from agentwatch.text import clean

_EMPTY: Final = frozenset({"input", "meta"})


@dataclass(frozen=True, slots=True)
class Html:
    """Markup of our own. Only `element`, `joined` and code without foreign text make one."""

    source: str


Child = Html | str | None


def element(name: str, /, *children: Child, **attributes: str | bool | None) -> Html:
    """An element. A `str`, child or attribute, is foreign text: made visible by `clean`, then escaped.

    Attributes are written as in Python: `class_`, `aria_label`; True stands alone, None and False are left out.
    """
    opening = name + "".join(_attribute(key, value) for key, value in attributes.items())
    if name in _EMPTY:
        return Html(f"<{opening}>")
    return Html(f"<{opening}>{joined(children).source}</{name}>")


def joined(children: Iterable[Child]) -> Html:
    """Several pieces, one after the other."""
    return Html("".join(_source(child) for child in children if child is not None))


def text(foreign: str, limit: int | None = None) -> Html:
    """Foreign text on one line, cut after `limit` characters. It cannot change the direction of what is beside it."""
    return element("bdi", clean(foreign, limit))


def _source(child: Html | str) -> str:
    return child.source if isinstance(child, Html) else escape(clean(child), quote=True)


def _attribute(key: str, value: str | bool | None) -> str:
    if value is None or value is False:
        return ""
    name = key.rstrip("_").replace("_", "-")
    return f" {name}" if value is True else f' {name}="{_source(value)}"'
