"""HTML that cannot be broken out of: an element's children are text unless they were made here. Pieces of the page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

from agentwatch.text import LINE_LIMIT, clean, clean_lines
from agentwatch.view.looks import Look
from agentwatch.view.times import iso, utc

_EMPTY: Final = frozenset({"input", "meta"})
_PROSE_LINES: Final = 60
_COLORS: Final = {"text-error": "failed", "text-warning": "partial", "text-muted": "submitted"}


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


def text(foreign: str, limit: int = LINE_LIMIT) -> Html:
    """Foreign text on one line, cut after `limit` characters. It cannot change the direction of what is beside it."""
    return element("bdi", clean(foreign, limit))


def _source(child: Html | str) -> str:
    return child.source if isinstance(child, Html) else escape(clean(child), quote=True)


def _attribute(key: str, value: str | bool | None) -> str:
    if value is None or value is False:
        return ""
    name = key.rstrip("_").replace("_", "-")
    return f" {name}" if value is True else f' {name}="{_source(value)}"'


def anchor(number: int) -> str:
    """The place of a task's details in the page: its number, for an id is foreign text."""
    return f"task-{number + 1}"


def color(look: Look) -> str:
    """The colour of a look, as the style names it."""
    return _COLORS.get(look.color) or look.color.removeprefix("state-")


def badge(look: Look) -> Html:
    """Glyph and word in their colour; screen readers get the word alone."""
    glyph = element("span", look.glyph, aria_hidden="true")
    return element("span", glyph, f" {look.word}", class_=f"badge c-{color(look)}")


def code(foreign: str, limit: int = 400) -> Html:
    """An id or a path."""
    return element("code", text(foreign, limit))


def prose(foreign: str) -> Html:
    """A text with its lines."""
    lines, note = clean_lines(foreign, max_lines=_PROSE_LINES, max_characters=8_192)
    # The style keeps line feeds; each line is safe by itself, and `element` would make one line of them.
    body = [piece for line in lines for piece in (Html("\n"), text(line))][1:]
    said = element("span", f" ({note})", class_="faint") if note else None
    return element("p", *body, said, class_="prose", dir="auto")


def when(at: float | None) -> Html:
    """A moment, also for machines."""
    return element("time", utc(at), datetime=iso(at))


def table(head: Sequence[str], rows: Iterable[Sequence[Child]], class_: str | None = None) -> Html:
    """A table that scrolls by itself if it is too wide; on a narrow page each cell names its column."""
    heads = element("tr", *(element("th", title, scope="col") for title in head))
    body = [
        element("tr", *(element("td", cell, data_label=title) for title, cell in zip(head, row, strict=True)))
        for row in rows
    ]
    whole = element("table", element("thead", heads), element("tbody", *body))
    return element("div", whole, class_=f"table {class_}" if class_ else "table")
