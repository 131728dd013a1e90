"""Loads themes from TOML files, checks the operator's own themes, and makes the styles of one theme.

The operator's own themes are in `$XDG_CONFIG_HOME/agentwatch/themes/*.toml`. Such a theme replaces the shipped
theme of the same name.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from rich.color import Color as RichColor
from rich.style import Style
from textual.color import Color, ColorParseError
from textual.theme import Theme

from agentwatch.text import clean

DEFAULT_THEME = "agentwatch-dark"
# The theme for terminals with sixteen colours. Other themes show states in nearly the same colour on such a terminal.
SIXTEEN_COLOURS = "agentwatch-ansi"

# The colours of a theme. Text is drawn in `foreground` and `muted` on `background`, `panel` and `cursor`.
_COLORS = "background panel foreground muted line cursor accent primary secondary success warning error"
_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,39}")
# For each colour of a theme file: the theme variables (Textual's and our own) that get this colour.
_VARIABLES = {
    "background": "footer-background scrollbar-background scrollbar-background-hover scrollbar-background-active"
    " scrollbar-corner-color input-cursor-foreground",
    "foreground": "text block-cursor-foreground block-cursor-blurred-foreground input-cursor-background",
    "muted": "text-muted text-disabled foreground-muted border scrollbar-hover scrollbar-active",
    "line": "line border-blurred scrollbar",
    "cursor": "cursor-row block-cursor-background block-cursor-blurred-background block-hover-background",
    **{name: f"text-{name}" for name in ("primary", "secondary", "accent", "success", "warning", "error")},
}


def themes_folder() -> Path:
    """Return the folder of the shipped themes: in the installed package, or at the top of a checkout."""
    # `importlib.resources` would load many modules before the first frame.
    packaged = Path(__file__).parents[1] / "themes"
    return packaged if packaged.is_dir() else Path(__file__).parents[3] / "themes"


@cache
def shipped_themes() -> tuple[Theme, ...]:
    """Return the themes of the package. The tests have checked them, so they are not checked again."""
    files = sorted(themes_folder().glob("*.toml"))
    return tuple(make_theme(tomllib.loads(file.read_text("utf-8"))) for file in files)


def user_themes(folder: Path) -> tuple[list[Theme], list[str]]:
    """Return the operator's own themes, and a sentence for each theme file that cannot be used."""
    themes: list[Theme] = []
    failures: list[str] = []
    for file in sorted(folder.glob("*.toml")) if folder.is_dir() else ():
        try:
            themes.append(make_theme(check_theme(file.read_text("utf-8"))))
        except (OSError, ValueError) as error:
            failures.append(f"{clean(file.name, 60)}: {clean(str(error), 300)}")
    return themes, failures


def check_theme(text: str) -> dict[str, Any]:
    """Check the content of a theme file and return it. Raises ValueError with the names of the wrong keys."""
    from agentwatch.delegation.task import State  # not needed for the first frame

    data = tomllib.loads(text)
    states = [*(state.value for state in State if state is not State.UNKNOWN), "stale", "contradicted"]
    wrong_keys = [] if _NAME.fullmatch(str(data.get("name"))) else ["name"]
    for section, names in (("colors", _COLORS.split()), ("states", states)):
        colors = data.get(section)
        colors = colors if isinstance(colors, dict) else {}
        wrong_keys += (f"{section}.{one}" for one in names if not _is_color(colors.get(one)))
        wrong_keys += (f"{section}.{one}" for one in colors if one not in names)
    if wrong_keys:
        raise ValueError(f"missing, unknown, or no colour (#rrggbb, a CSS or an ansi_… name): {', '.join(wrong_keys)}")
    return data


def _is_color(value: object) -> bool:
    try:
        Color.parse(str(value))
    except ColorParseError:
        return False
    return True


def make_theme(data: Mapping[str, Any]) -> Theme:
    """Return a Textual theme, made from the checked content of a theme file."""
    colors: dict[str, str] = data["colors"]
    ansi = bool(data.get("ansi", False))
    variables = {f"state-{state}": color for state, color in data["states"].items()}
    variables |= {name: colors[color] for color, names in _VARIABLES.items() for name in names.split()}
    variables["input-cursor-text-style"] = "reverse" if ansi else "none"
    if ansi:
        variables |= {"block-cursor-text-style": "reverse", "block-cursor-blurred-text-style": "reverse"}
    own = {name: color for name, color in colors.items() if name not in ("muted", "line", "cursor")}
    return Theme(
        name=data["name"],
        dark=bool(data.get("dark")),
        ansi=ansi,
        surface=colors["background"],
        variables=variables,
        **own,  # type: ignore[arg-type]
    )


class Palette(NamedTuple):
    """The styles of a theme. Text is drawn in `base` plus another style. Only `base` and `cursor` set a background."""

    base: Style
    cursor: Style
    muted: Style
    line: Style
    accent: Style
    needs_you: Style
    strong: Style
    states: Mapping[str, Style]
    ansi: bool

    @classmethod
    def from_variables(cls, variables: Mapping[str, str], *, ansi: bool) -> Palette:
        """Make the styles from a theme's variables. `ansi` is for a theme with the terminal's sixteen colours."""

        def parse_color(name: str) -> RichColor:
            return Color.parse(variables[name]).rich_color

        return cls(
            base=Style(color=parse_color("foreground"), bgcolor=parse_color("background")),
            cursor=Style(reverse=True) if ansi else Style(bgcolor=parse_color("cursor-row")),
            muted=Style(dim=True) if ansi else Style(color=parse_color("text-muted")),
            line=Style(color=parse_color("line")),
            accent=Style(color=parse_color("accent")),
            needs_you=Style(bold=True, reverse=True) if ansi else Style(color=parse_color("accent"), bold=True),
            strong=Style(bold=True),
            states={name: Style(color=parse_color(name)) for name in variables if name.startswith("state-")},
            ansi=ansi,
        )
