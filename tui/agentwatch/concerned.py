"""Which of the documents of a workspace can speak of a task, and whether what has changed since a look can."""

from __future__ import annotations

import json
import os
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Sequence
from functools import cached_property
from hashlib import sha256
from itertools import chain
from stat import S_ISDIR
from typing import TYPE_CHECKING, Final

from agentwatch.delegation.identity import slot
from agentwatch.kept.answers import MOST_CHANGED, paths_in
from agentwatch.sources.files.names import is_candidate, pruning, to_path
from agentwatch.sources.files.read import FileRefusedError, read_file
from agentwatch.sources.files.scan import list_directory

if TYPE_CHECKING:
    from agentwatch.contracts.shapes import Reading
    from agentwatch.history.since import Came, Part

_PLAIN: Final = re.compile(r"[\w.:-]+", re.ASCII)
_HIDDEN: Final = ("\\u", "<!--")
"""Behind these, a text may say what is not to be found in it: letters by their numbers, words with a comment inside."""


class Concerned:
    """Recognises the documents that can speak of a task, and those that decide whose they are: all that lie around
    them, and all of the same content, which tell how old they are. Whatever else there is is no document to it.

    Which those are shows only while they are read: while some were missed, all have to be read again. What is recalled
    of the history is read as the files are.
    """

    def __init__(self, task_id: str, places: Collection[str] = (), texts: Collection[str] = ()) -> None:
        self._task_id = task_id
        # Escapes and comments aside, a document that states an id holds this part of it as it is.
        self._core = max(_PLAIN.findall(task_id), key=len, default="")
        self._alone = re.compile(f"(?<![0-9A-Za-z]){re.escape(self._core)}(?![0-9A-Za-z])")
        self._places = set(places)
        self._texts = set(texts)
        self._passed: dict[str, set[str]] | None = None
        """By place, the texts that were passed over; None: nothing was read yet."""
        self._holders: dict[str, str] = {}
        """By text, a document that holds or held it."""
        self.is_unsure = False
        """Whether others may decide what a history tells of these documents: which was moved, and where to."""
        self._part: Part | None = None
        self._has_news = False
        """Whether a document was read that is not in the history as it is."""

    def recognise(self, text: str, path: str) -> Reading | None:
        place, known = slot(path)[0], _digest(text)
        if not self._may_be_in(place) and not self._may_speak(text):
            if self._passed is not None:
                self._passed[place].add(known)
            return None
        self._places.add(place)
        self._texts.add(known)
        # Most are passed over, and the models of the contracts take a while to load.
        from agentwatch.contracts.reading import read_document

        reading = read_document(text, path)
        if reading is not None:
            self._has_news = True
            # A history knows the bytes. Those that are no UTF-8 cannot be told from the text.
            self._hold(path, known, _digest(f"\ufeff{text}"))
            self.is_unsure |= "\ufffd" in text
        return reading

    def recalls(self, path: str, digest: str | None, said: str, text_of: Callable[[str], str | None]) -> bool:
        """Whether it matters that a file held this, which `said` so much; None: that it was gone."""
        place = slot(path)[0]
        if not self._may_be_in(place) and not self._may_speak(said):
            if self._passed is not None:
                self._passed[place].add(digest or "")
            return False
        self._places.add(place)
        if digest is not None:
            text = text_of(digest)
            self.is_unsure |= text is None or "\ufffd" in text
            self._hold(path, digest, digest if text is None else _digest(text))
        return True

    def has_missed(self) -> bool:
        """Whether something has to be read (again). What was passed over is forgotten."""
        passed, self._passed = self._passed, defaultdict(set)
        had_news, self._has_news = self._has_news, False
        if passed is None:
            return True
        missed = {
            place for place, texts in passed.items() if place in self._places or not texts.isdisjoint(self._texts)
        }
        self._places |= missed
        self._has_news = had_news and not missed
        return bool(missed)

    def told(self) -> Sequence[object]:
        """What it is made of again, as JSON, when all has been read."""
        return self._task_id, sorted(self._places), sorted(self._texts)

    def passes(self, path: str, text: str | None) -> bool:
        """Whether a document is of no concern, with this text; None: there is none any more."""
        if self._may_be_in(slot(path)[0]):
            return False
        return text is None or not (self._may_speak(text) or _digest(text) in self._texts)

    def recalled(self, part: Part | None) -> None:
        """This part of the history was recalled."""
        self._part = part

    @property
    def part(self) -> Part | None:
        """What of a history decides about it, when all has been read; None where the files do, too."""
        return None if self._has_news else self._part

    def _hold(self, path: str, *digests: str) -> None:
        for digest in digests:
            self._texts.add(digest)
            self.is_unsure |= self._holders.setdefault(digest, path) != path

    def passes_all(self, came: Sequence[Came] | None) -> bool:
        """Whether nothing is of concern that has come into the history; None: that is not known."""
        return came is not None and all(
            not (self._may_be_in(slot(one.path)[0]) or one.digest in self._texts or self._may_speak(one.said))
            for one in came
        )

    def _may_be_in(self, place: str) -> bool:
        """Whether a document of this task directory may be of the task though it does not say so."""
        if not place or place in self._places or self._task_id == place:
            return True
        return self._task_id.startswith((f"{place}/", f"{place}#"))

    def _may_speak(self, text: str) -> bool:
        if any(mark in text for mark in _HIDDEN):
            return True
        if "\\" in text:
            return self._core in text or self._core in text.replace("\\", "")
        return self._core in text and self._alone.search(text) is not None


def is_unconcerned(told: bytes, changed: Sequence[str], names: bytes) -> bool:
    """Whether what was said of some tasks holds though these paths have changed. `told` is what matters of all paths
    that were looked at: what was told when some were passed over, and what matters however it changes. `names` are all
    of them.
    """
    passed_over, needed = json.loads(told)
    if not all(passed_over) or any(one[0] != passed_over[0][0] for one in passed_over):
        return False
    where = passed_over[0][0]
    tasks = [Concerned(*one[1]) for one in passed_over]
    histories = [one[2] for one in passed_over if one[2] is not None]
    of_history = {f"{history}{suffix}" for history, _ in histories for suffix in ("", "-wal", "-shm")}
    if not of_history.isdisjoint(changed):
        from agentwatch.history.since import came_since  # a database takes a while to load

        # All have looked at the same one.
        if len(histories) != len(tasks) or not all(
            task.passes_all(came_since(history, part)) for task, (history, part) in zip(tasks, histories, strict=True)
        ):
            return False
        changed = [path for path in changed if path not in of_history]
    return _Changes(tasks, *where, needed=frozenset(needed), names=names).are_passed(changed)


class _Changes:
    """Changes in the workspace of some tasks; these directories are not entered (`pruned`), and no larger files read.
    What is `needed` matters however it changes, and `names` are all paths that had been looked at."""

    def __init__(
        self,
        tasks: Sequence[Concerned],
        root: str,
        pruned: Collection[str],
        max_bytes: int,
        *,
        needed: Collection[str],
        names: bytes,
    ) -> None:
        self._tasks = tasks
        self._root = root
        self._prefix = root if root.endswith("/") else f"{root}/"
        self._is_pruned = pruning(frozenset(pruned))
        self._max_bytes = max_bytes
        self._needed = needed
        self._names = names

    def are_passed(self, changed: Sequence[str]) -> bool:
        """Whether neither these paths are of concern nor what has come with them."""
        waiting, looked_at = [*changed], 0
        while waiting:
            looked_at += 1
            came = self._look(waiting.pop())
            if came is None or looked_at > MOST_CHANGED:
                return False
            waiting += came
        return True

    @cached_property
    def _known(self) -> frozenset[str]:
        return frozenset(chain.from_iterable(paths_in(self._names)))

    def _look(self, path: str) -> Sequence[str] | None:
        """What has come with a path, None where it is of concern."""
        # Whoever is given a workspace tries whether it can be entered.
        path = path.removesuffix("/.")
        is_inside = path.startswith(self._prefix)
        name = path[len(self._prefix) :] if is_inside else ""
        if path in self._needed or not (is_inside or path == self._root):
            return None
        if any(map(self._is_pruned, name.split("/"))):
            return None
        try:
            status = os.lstat(path)
        except (FileNotFoundError, NotADirectoryError):
            # Of a directory, all that was in it has changed, too.
            is_passed = any(one.startswith(f"{path}/") for one in self._known) or self._passes(name, None)
            return () if is_passed else None
        try:
            if S_ISDIR(status.st_mode):
                return self._came_into(path, is_root=not name)
            text = read_file(self._root, name, self._max_bytes).text
        except (OSError, FileRefusedError):
            return None
        return () if is_candidate(name) and self._passes(name, text) else None

    def _passes(self, name: str, text: str | None) -> bool:
        return all(task.passes(to_path(name), text) for task in self._tasks)

    def _came_into(self, directory: str, *, is_root: bool) -> Sequence[str]:
        """What is in a directory that was not looked at. Raises OSError, also where it is another workspace by now."""
        listing = list_directory(directory, self._is_pruned, None if is_root else _refuse)
        prefix = self._prefix if is_root else f"{directory}/"
        inside = (prefix + name for name in chain(listing.directories, listing.candidates))
        return [path for path in inside if path not in self._known]


def _refuse(directory: str) -> bool:
    raise OSError(f"{directory} is perhaps another workspace by now")


def _digest(text: str) -> str:
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
