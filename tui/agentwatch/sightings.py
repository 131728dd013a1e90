"""One task as a look at a workspace shows it, with no more of a look than that needs.

Agents ask about one task at a time, in a hook or with `wait`, while others write: to read and fold all of 5,000 takes
seconds each time. So only those documents are recognised that can speak of the task, and what is found is kept until
something changes.
"""

from __future__ import annotations

import json
import math
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from agentwatch.config import Settings
from agentwatch.delegation.attempt import Attempt
from agentwatch.delegation.identity import slot
from agentwatch.delegation.task import State, Task, Version
from agentwatch.history import schema
from agentwatch.kept import answers, looks
from agentwatch.place import is_there, state_directory
from agentwatch.remote.codec import decoder, encoder
from agentwatch.sources.health import Problem

if TYPE_CHECKING:
    from agentwatch.composition import Load
    from agentwatch.contracts.shapes import Reading
    from agentwatch.kept.answers import Question
    from agentwatch.monitor import Monitor

_PLAIN: Final = re.compile(r"[\w.:-]+", re.ASCII)
_HIDDEN: Final = ("\\u", "<!--")
"""Behind these, a text may say what is not to be found in it: letters by their numbers, words with a comment inside."""


class Sighting(NamedTuple):
    """What is told of a task: its own state, what is open about it, and its latest return."""

    own_state: State
    question: str | None
    returned: Version | None

    def task(self, task_id: str) -> Task:
        """The task, as far as that."""
        attempts = [Attempt(1, returned=self.returned)]
        return Task(task_id, title=task_id, own_state=self.own_state, question=self.question, attempts=attempts)


class Sighted(NamedTuple):
    """A task, None where there is none, and what could not be read."""

    task: Task | None
    problems: Sequence[Problem]


def sighted(workspace: Path, settings: Settings, task_id: str, load: Load, *, inspects: bool = False) -> Sighted:
    """A task as `load` shows it, which is called if need be. Of the task holds what a `Sighting` tells."""
    about = ["task", task_id, str(workspace), repr(settings), str(inspects)]
    key = answers.key_of(about, speaks=False)
    # Who notes already keeps what comes of this.
    place = answers.place_of(key) if looks.is_installed() and not looks.is_noting() else ""
    kept = answers.read(place, key, _ask_git) if place else None
    if kept is not None and (known := _known(kept[1], task_id)) is not None:
        return known
    found: Sighted | None = None

    def look() -> bytes:
        nonlocal found
        found = _look(workspace, settings, task_id, load, inspects=inspects)
        return _written(found)

    if place:
        from agentwatch.kept.keeping import remember

        remember(place, key, look)
    return found or _look(workspace, settings, task_id, load, inspects=inspects)


def _look(workspace: Path, settings: Settings, task_id: str, load: Load, *, inspects: bool) -> Sighted:
    # What others claim changes nothing about it. When its handoff was given tells which claims are true.
    wishes: dict[str, Any] = {"inspects": False, "dates": True} if inspects else {"inspects": False}
    is_whole = False
    # What is remembered of a file is held against what it says now.
    if not is_there(state_directory(workspace) / schema.NAME):
        concerned = Concerned(task_id)
        while concerned.has_missed():
            monitor = load(workspace, settings, recognise=concerned.recognise, **wishes)
        task = monitor.tree.tasks.get(task_id)
        # One that is only named stands as those below it do, and a session asks about those that it has begun.
        is_whole = task is None or not (task.inferred or any(attempt.run for attempt in task.attempts))
    if not is_whole:
        monitor = load(workspace, settings, **wishes)
        task = monitor.tree.tasks.get(task_id)
    if inspects:
        check_claims(monitor, [task_id])
    # The look has told until when it holds.
    looks.holds(math.inf)
    return Sighted(task, monitor.problems)


def check_claims(monitor: Monitor, task_ids: Iterable[str]) -> None:
    """Check what some tasks claim, of a monitor that has looked and inspects nothing. Blocks."""
    # A hook checks nothing.
    from agentwatch.evidence.inspector import Inspector

    inspector, tree = Inspector(monitor.workspace, monitor.content, None, monitor.transcript), monitor.tree
    checks = inspector.check(inspector.news_of(tree, task_ids))
    tree.take_all([one.observed(0, tree.now) for one in checks])
    tree.settle()


class Concerned:
    """Recognises the documents that can speak of a task, and those that decide whose they are: all that lie around
    them, and all of the same content, which tell how old they are. Whatever else there is is no document to it.

    Which those are shows only while they are read: while some were missed, all have to be read again.
    """

    def __init__(self, task_id: str) -> None:
        self._task_id = task_id
        # Escapes and comments aside, a document that states an id holds this part of it as it is.
        self._core = max(_PLAIN.findall(task_id), key=len, default="")
        self._places = set[str]()
        self._texts = set[int]()
        self._passed: dict[str, set[int]] | None = None
        """By place, the texts that were passed over; None: nothing was read yet."""

    def recognise(self, text: str, path: str) -> Reading | None:
        place, known = slot(path)[0], hash(text)
        if place not in self._places and not self._may_be_in(place) and not self._may_speak(text):
            if self._passed is not None:
                self._passed[place].add(known)
            return None
        self._places.add(place)
        self._texts.add(known)
        # Most are passed over, and the models of the contracts take a while to load.
        from agentwatch.contracts.reading import read_document

        return read_document(text, path)

    def has_missed(self) -> bool:
        """Whether something has to be read (again). What was passed over is forgotten."""
        passed, self._passed = self._passed, defaultdict(set)
        if passed is None:
            return True
        missed = {
            place for place, texts in passed.items() if place in self._places or not texts.isdisjoint(self._texts)
        }
        self._places |= missed
        return bool(missed)

    def _may_be_in(self, place: str) -> bool:
        """Whether a document of this task directory may be of the task though it does not say so."""
        return not place or self._task_id == place or self._task_id.startswith((f"{place}/", f"{place}#"))

    def _may_speak(self, text: str) -> bool:
        if self._core in text or any(mark in text for mark in _HIDDEN):
            return True
        return "\\" in text and self._core in text.replace("\\", "")


def _ask_git(workspace: str, questions: list[Question]) -> list[str]:
    # It takes a while to load.
    from agentwatch.evidence.plumbing import ask_again

    return ask_again(workspace, questions)


def _written(sighted: Sighted) -> bytes:
    task, sighting = sighted.task, None
    if task is not None:
        returned = task.latest.returned if task.latest is not None else None
        sighting = encoder(Sighting)(Sighting(task.own_state, task.question, returned))
    return json.dumps([sighting, [list(problem) for problem in sighted.problems]]).encode()


def _known(written: bytes, task_id: str) -> Sighted | None:
    """A task that was kept, None where it cannot be read."""
    try:
        sighting, problems = json.loads(written)
        told = [Problem(*problem) for problem in problems]
        if sighting is None:
            return Sighted(None, told)
        return Sighted(cast("Sighting", decoder(Sighting)(sighting)).task(task_id), told)
    except (ValueError, KeyError, TypeError):
        return None
