"""Names by key, in the order in which they came."""

from __future__ import annotations

from collections.abc import Collection, Set
from typing import Final

Key = tuple[str, ...]

_NOBODY: Final = frozenset[str]()


class Groups:
    """Nearly every key has one name, which is stored as it is."""

    def __init__(self) -> None:
        self._groups: dict[Key, str | dict[str, None]] = {}

    def of(self, *key: str) -> Set[str]:
        """The names of a key."""
        group = self._groups.get(key)
        return _NOBODY if group is None else {group} if isinstance(group, str) else group.keys()

    def move(self, name: str, before: Collection[Key], after: Collection[Key]) -> None:
        """A name that had some keys has others now."""
        for key in before:
            group = self._groups.get(key)
            if key not in after and group is not None:
                if isinstance(group, dict):
                    group.pop(name, None)
                if not group or group == name:
                    del self._groups[key]
        for key in after:
            group = self._groups.setdefault(key, name)
            if isinstance(group, dict):
                group[name] = None
            elif group != name:
                self._groups[key] = {group: None, name: None}
