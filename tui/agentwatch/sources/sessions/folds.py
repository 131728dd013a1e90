"""What transcripts came to when they were last read, for the next process: it reads on from there.

Beside an agent that works, one of many files has a line more at each call. A file is taken as it was read while it has
the attributes that it had then. If it has others, it is read on as long as it begins with the same bytes, by their
checksum: to compare them takes a tenth of the time of taking them in. Else it is read anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final, Generic, NamedTuple

from agentwatch.delegation.run import Message
from agentwatch.kept.index import Index, packed, unpacked
from agentwatch.sources.sessions.growing import F, Growing
from agentwatch.sources.sessions.tail import Mark

WORTH: Final = 4 * 1024 * 1024
"""Bytes that are read faster than what they came to is kept, or taken up again."""


class Keeping:
    """Makes messages of the texts of one file, and knows where they stand."""

    def __init__(self, remember: Callable[[str, float, int], Message]) -> None:
        self._remember = remember
        self.places: dict[str, int] = {}
        """The offset of the line of each, by digest."""

    def __call__(self, text: str, at: float, offset: int) -> Message:
        message = self._remember(text, at, offset)
        self.places[message.digest] = offset
        return message

    def __reduce__(self) -> tuple[type[Keeping], tuple[()]]:
        """Where it is packed, it stands for that of the file."""
        return Keeping, ()


class _Known(NamedTuple):
    """What a file came to, packed, where the texts of it stand, and how far it was read."""

    mark: Mark
    places: dict[str, int]
    fold: bytes


class Folds(Generic[F]):
    """Those of the files of one reader, by path: of a `name`, `about` a store and a workspace.

    They are made of `kinds`; none: nothing is kept. `note` takes path, digest and offset of each text in a file that is
    gone on with.
    """

    def __init__(
        self, name: str, about: Sequence[object], kinds: Sequence[type], note: Callable[[str, str, int], None]
    ) -> None:
        self._index = Index[str, _Known](f"sessions of {name}", about, (_Known, Mark), worth=1)
        self._kinds = kinds
        self._note = note

    def load(self, size: int) -> None:
        """Files of so many bytes are to be read."""
        if self._kinds and size >= WORTH:
            self._index.load(1)

    def go_on(self, path: str, growing: Growing[F], keep: Keeping) -> None:
        """Let a file be read on from where it was read up to."""
        known = self._index.get(path)
        if known is None:
            return
        try:
            fold = unpacked(known.fold, self._kinds, {Keeping: lambda: keep})
        except ValueError:
            return
        if not growing.tail.go_on(known.mark):
            return
        growing.fold = fold
        keep.places |= known.places
        for digest, offset in known.places.items():
            self._note(path, digest, offset)

    def save(self, files: Iterable[tuple[str, Growing[F], Keeping]]) -> None:
        """Leave what these came to, if it is worth it."""
        read = [file for file in files if file[1].tail.taken]
        if not self._kinds or sum(growing.tail.taken for _, growing, _ in read) < WORTH:
            return
        for path, growing, keep in read:
            mark = growing.tail.mark()
            if mark is not None:
                self._index.put(path, _Known(mark, dict(keep.places), packed(growing.fold, self._kinds)))
                growing.tail.taken = 0
        self._index.save()
