"""All workspaces in which a session of an agent was alive of late."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Final

from agentwatch.place import user_home
from agentwatch.places import Place, Places, names_of
from agentwatch.sources.sessions.alive import AliveSessions, workspaces_in
from agentwatch.sources.sessions.store import holds
from agentwatch.view.words import plural

_MOST: Final = 40
"""Workspaces that `--all` watches at once: each has threads, a history and watches of its own."""
PAUSE_SECONDS: Final = 10.0
"""Between two searches through all stores."""


class Everywhere:
    """Finds every workspace in which a session of an agent was alive for `seconds` at most. What was found once stays,
    as long as it is there."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._sessions = AliveSessions()
        self._found: dict[Path, Place] = {}

    def __call__(self) -> Places:
        alive = workspaces_in(self._sessions.since(time.time() - self._seconds), _is_part)
        home = user_home()
        # Everything that the user has lies there: nobody works in all of it.
        wide = {place for place in alive if place == home or place in home.parents}
        newest = sorted(alive.keys() - wide, key=lambda place: -alive[place])
        self._found = {place: one for place, one in self._found.items() if place.is_dir()}
        new = [place for place in newest if place not in self._found]
        names = names_of([*self._found, *new])
        self._found |= {place: Place(place, names[place], comes=True) for place in new[: _MOST - len(self._found)]}
        told = [f"Sessions in {place} are not shown: name a directory below it" for place in sorted(wide)]
        if more := len(names) - len(self._found):
            told.append(f"{plural(more, 'more workspace')} with sessions: {_MOST} are shown at once")
        return Places(list(self._found.values()), told)


def _is_part(whole: str, part: str) -> bool:
    """Whether what happens in a directory is shown with another one."""
    home = str(user_home())
    return not f"{home}/".startswith(f"{whole.rstrip('/')}/") and holds(whole, part)
