"""Where themes lie: found without the screen, for who completes their names."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path


def themes_folder() -> Path:
    """The folder of the shipped themes: in the package, or in a checkout at its top."""
    # `importlib.resources` would load what reads archives, before the first frame.
    packaged = Path(__file__).parents[1] / "themes"
    return packaged if packaged.is_dir() else Path(__file__).parents[3] / "themes"


def theme_names(own: Path) -> Iterator[str]:
    """The names in all theme files, shipped and in the operator's own folder; of those that cannot be read, none."""
    for file in (*themes_folder().iterdir(), *(own.iterdir() if own.is_dir() else ())):
        try:
            name = tomllib.loads(file.read_text("utf-8")).get("name")
        except (OSError, ValueError):
            continue
        if isinstance(name, str):
            yield name
