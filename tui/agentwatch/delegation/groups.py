"""Sets of names by key, for indexes in which nearly every key has one: an empty set alone weighs 216 bytes."""

from __future__ import annotations

from collections.abc import Set
from typing import Final, Generic, TypeVar

_Key = TypeVar("_Key")

_NOBODY: Final[frozenset[str]] = frozenset()


class Groups(Generic[_Key]):
    """Names by key. Empty groups are forgotten."""

    def __init__(self) -> None:
        self._groups: dict[_Key, str | set[str]] = {}
        """A group of one is that one itself."""

    def of(self, key: _Key) -> Set[str]:
        """The names under a key, to be read before the group changes."""
        found = self._groups.get(key, _NOBODY)
        return {found} if isinstance(found, str) else found

    def add(self, key: _Key, name: str) -> None:
        """Put a name under a key, where it may stand already."""
        found = self._groups.get(key)
        if found is None:
            self._groups[key] = name
        elif isinstance(found, set):
            found.add(name)
        elif found != name:
            self._groups[key] = {found, name}

    def discard(self, key: _Key, name: str) -> None:
        """Take a name away from a key, if it is there."""
        found = self._groups.get(key)
        if isinstance(found, set):
            found.discard(name)
            if not found:
                del self._groups[key]
        elif found == name:
            del self._groups[key]
