"""The schema of a theme file, and the check that a file of the operator's own has to pass."""

from __future__ import annotations

import tomllib
from typing import Annotated, Any, Final

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError
from textual.color import Color, ColorParseError

_SHOWN: Final = 5
"""Mistakes of one file that are told; the rest is counted."""


def _is_color(value: str) -> str:
    try:
        Color.parse(value)
    except ColorParseError:
        raise ValueError("is no colour: write #rrggbb, a CSS colour name or an ansi_… name") from None
    return value


ColorText = Annotated[str, AfterValidator(_is_color)]


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class Colors(_Section):
    """What things are drawn in. Words stand in `foreground` and `muted` on `background`, `panel` and `cursor`."""

    background: ColorText
    panel: ColorText
    foreground: ColorText
    muted: ColorText
    line: ColorText
    cursor: ColorText
    accent: ColorText
    primary: ColorText
    secondary: ColorText
    success: ColorText
    warning: ColorText
    error: ColorText


class States(_Section):
    """The colours of the task states."""

    submitted: ColorText
    working: ColorText
    completed: ColorText
    partial: ColorText
    blocked: ColorText
    failed: ColorText
    invalid: ColorText
    retrying: ColorText
    escalated: ColorText
    canceled: ColorText
    stale: ColorText
    contradicted: ColorText


class ThemeFile(_Section):
    """A theme file."""

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9-]{0,39}$")
    dark: bool
    ansi: bool = False
    colors: Colors
    states: States


def check_theme(text: str) -> dict[str, Any]:
    """The content of a theme file. Raises ValueError with a message that names each wrong key."""
    try:
        return ThemeFile.model_validate(tomllib.loads(text)).model_dump()
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"is not TOML: {error}") from None
    except ValidationError as error:
        mistakes = error.errors(include_url=False, include_input=False)
        shown = [
            f"{'.'.join(str(part) for part in mistake['loc'])} {mistake['msg'].removeprefix('Value error, ')}"
            for mistake in mistakes[:_SHOWN]
        ]
        if len(mistakes) > _SHOWN:
            shown.append(f"and {len(mistakes) - _SHOWN} more")
        raise ValueError("; ".join(shown)) from None
