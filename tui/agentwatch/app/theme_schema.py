"""The schema of a theme file, and the check that a file of the operator's own has to pass."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from typing import Annotated, Any, Final

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, create_model
from pydantic_core import PydanticCustomError
from textual.color import Color, ColorParseError

from agentwatch.delegation.task import State

COLORS: Final = (
    *("background", "panel", "foreground", "muted", "line", "cursor"),
    *("accent", "primary", "secondary", "success", "warning", "error"),
)
"""What things are drawn in. Words stand in `foreground` and `muted` on `background`, `panel` and `cursor`."""
STATES: Final = (*(state for state in State if state is not State.UNKNOWN), "stale", "contradicted")
"""What has a colour as a task's state."""

_SHOWN: Final = 5
"""Mistakes of one file that are told; the rest is counted."""


def _color(value: str) -> str:
    try:
        Color.parse(value)
    except ColorParseError:
        words = "is no colour: write #rrggbb, a CSS colour name or an ansi_… name"
        raise PydanticCustomError("no_color", words) from None
    return value


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


def _section(title: str, names: Iterable[str]) -> type[_Section]:
    """Keys that each have a colour, all of them needed."""
    fields: dict[str, Any] = {str(name): (Annotated[str, AfterValidator(_color)], ...) for name in names}
    return create_model(title, __base__=_Section, **fields)


ThemeFile: Final = create_model(
    "ThemeFile",
    __base__=_Section,
    name=(str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,39}$")),
    dark=(bool, ...),
    ansi=(bool, False),
    colors=(_section("Colors", COLORS), ...),
    states=(_section("States", STATES), ...),
)


def check_theme(text: str) -> dict[str, Any]:
    """The content of a theme file. Raises ValueError with a message that names each wrong key."""
    try:
        return ThemeFile.model_validate(tomllib.loads(text)).model_dump()
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"is not TOML: {error}") from None
    except ValidationError as error:
        mistakes = error.errors(include_url=False, include_input=False)
        shown = [f"{'.'.join(map(str, mistake['loc']))} {mistake['msg']}" for mistake in mistakes[:_SHOWN]]
        if len(mistakes) > _SHOWN:
            shown.append(f"and {len(mistakes) - _SHOWN} more")
        raise ValueError("; ".join(shown)) from None
