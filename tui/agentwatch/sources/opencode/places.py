"""Where the databases of OpenCode and Kilo Code lie."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from agentwatch.place import is_there

_PROGRAMS: Final = {"opencode": ("OPENCODE_DB", ("opencode",)), "kilo": ("KILO_DB", ("kilo", "opencode"))}
"""By program: the variable that names another database, and the stems of the names in the program's directory."""


class Store(NamedTuple):
    """A database that is there. `name` is the name of its source: `opencode`, `kilo`, `opencode-<channel>`."""

    name: str
    database: Path


def find_stores(environment: Mapping[str, str], home: Path) -> list[Store]:
    """The databases of the user whose home and environment are given, the usual one of a program first.

    `$XDG_DATA_HOME/opencode/opencode.db` and `…/kilo/kilo.db`, their channels beside them (`opencode-dev.db`), and
    the one that `$OPENCODE_DB` or `$KILO_DB` names. Both programs use `~/.local/share` on every system.
    """
    stores: list[Store] = []
    for program, (variable, stems) in _PROGRAMS.items():
        for path in _databases(_share(environment, home) / program, stems, environment.get(variable, "")):
            if all(store.database != path for store in stores):
                stores.append(Store(_name(program, path, stores), path))
    return stores


def usual_places(environment: Mapping[str, str], home: Path) -> dict[str, Path]:
    """The usual database of each program, there or not."""
    share = _share(environment, home)
    return {program: share / program / f"{stems[0]}.db" for program, (_, stems) in _PROGRAMS.items()}


def _share(environment: Mapping[str, str], home: Path) -> Path:
    data = environment.get("XDG_DATA_HOME", "")
    return Path(data) if data.startswith("/") else home / ".local" / "share"


def _databases(directory: Path, stems: tuple[str, ...], chosen: str) -> Iterator[Path]:
    candidates = [directory / f"{stems[0]}.db"]
    for stem in stems:
        with suppress(OSError):
            candidates += sorted(directory.glob(f"{stem}-*.db"))
    if chosen and chosen != ":memory:":
        candidates.append(directory / chosen)
    for path in candidates:
        # Also what is no file, or cannot be looked at: its reader says so.
        if is_there(path):
            yield path


def _name(program: str, path: Path, stores: list[Store]) -> str:
    """The stem where it tells the program, so that channels are told apart; never the same twice."""
    name = path.stem if path.stem.startswith(program) else f"{program}-{path.stem}"
    taken = {store.name for store in stores}
    return next(one for one in (name, *(f"{name}-{number}" for number in range(2, 1000))) if one not in taken)
