"""The log without a screen: every state change, of the past and from now on, and all of it as a file."""

from __future__ import annotations

import json
import select
import signal
import sys
import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Final, NoReturn

from agentwatch.commands.past import KEPT, NOTHING, past_of
from agentwatch.composition import known_desk, sessions_of, source_of
from agentwatch.config import Settings
from agentwatch.delegation.observation import Observation, Tick
from agentwatch.history.export import lines, write
from agentwatch.history.keeper import recall
from agentwatch.history.log import StateChange, StateChanges, document, line
from agentwatch.history.story import story
from agentwatch.monitor import tree_by
from agentwatch.place import state_directory
from agentwatch.sources.health import Batch, Health, Problem, complain_of
from agentwatch.sources.source import Source
from agentwatch.text import clean, complain, say

if TYPE_CHECKING:
    from agentwatch.sources.sessions.selection import Selection

_LOOK_SECONDS: Final = 0.5
"""How often `log --follow` looks for decisions, and whether somebody still reads what it prints."""


def print_log(
    workspace: Path, settings: Settings, selection: Selection | None = None, *, as_json: bool, follow: bool
) -> int:
    """Print the state changes that the history of a workspace, its decisions and the agents' sessions in it tell, one a
    line. Nothing is written.

    With `follow`, others come after them as they happen, until nobody reads the output any more.
    """
    recalled = recall(workspace)
    sessions = sessions_of(workspace, selection) if settings.sessions else None
    runs, health = sessions.scan() if sessions is not None else Batch((), Health("live", ""))
    decisions = _decisions(workspace)
    log = _Log(settings, as_json=as_json)
    log.take(story([*recalled.observations, *runs, *next(decisions)], time.time()))
    problems = [*health.problems]
    if recalled.notice:
        problems.append(Problem("history", str(state_directory(workspace)), recalled.notice))
    if follow:
        source = source_of(workspace, settings, sessions=sessions)
        source.remember(recalled.files, recalled.looked_at)
        complain_of(problems)
        _follow(source, decisions, log, problems)
        problems.clear()
    elif not recalled.observations and not runs and not problems:
        complain(f"{clean(str(workspace))}: {NOTHING}: {KEPT}")
    if sessions is not None:
        sessions.close()
    complain_of(problems)
    return 1 if problems else 0


def export_log(workspace: Path, settings: Settings, selection: Selection | None, file: str) -> int:
    """Write what is known of a workspace's past into a new file. Raises WorkspaceError if there is nothing."""
    with past_of(workspace, settings, selection) as past:
        count = write(Path(file), lines(workspace.name, past.observations, past.text))
        problems = past.problems
    words = "The texts of documents and sessions are in it: read it before you send it."
    say(f"{count:,} observations in {clean(file)}. {words}")
    complain_of(problems)
    return 1 if problems else 0


class _Log:
    """Prints what observations change, whether they are of the past or come from a source."""

    def __init__(self, settings: Settings, *, as_json: bool) -> None:
        # As the screen does: a task outlives its files.
        self._tree = tree_by(settings, remembers=True)
        self._changes = StateChanges(self._tree)
        self._as_json = as_json

    def take(self, observations: Iterable[Observation]) -> None:
        """Print what each of these changes."""
        self._print(self._changes.tell(observations))

    def take_together(self, observations: Iterable[Observation]) -> None:
        """Print what these change together, a line a task: what happened meanwhile, nobody saw in its order."""
        for observation in observations:
            self._tree.take(observation)
        now = time.time()
        for at, task_id in sorted((self._last_sign(task_id, now), task_id) for task_id in self._tree.settle()):
            self._print(self._changes.after([task_id], at))

    def _last_sign(self, task_id: str, now: float) -> float:
        """When the files of a task were written last; now if it is gone."""
        task = self._tree.tasks.get(task_id)
        return now if task is None or task.alive_at is None else task.alive_at

    def _print(self, changes: Iterable[StateChange]) -> None:
        for change in changes:
            say(json.dumps(document(change)) if self._as_json else line(change))


def _decisions(workspace: Path) -> Iterator[Sequence[Observation]]:
    """All decisions at first, then on each call the new ones."""
    while (desk := known_desk(workspace)) is None:
        yield ()
    # Signatures take a while to load.
    from agentwatch.decisions.clerk import Clerk

    clerk = Clerk(desk)
    known: tuple[int | None, ...] = ()
    while True:
        places = desk.changes()
        yield clerk.look(mirror=False) if places != known else ()
        known = places


def _follow(source: Source, decisions: Iterator[Sequence[Observation]], log: _Log, told: Collection[Problem]) -> None:
    """Print what has changed since the history was written, then what changes from now on."""
    signal.signal(signal.SIGTERM, _end)
    missed: list[Observation] = []
    looking = True
    for batch in _batches(source, told):
        # The time that passes ends a decision that nobody reads.
        observations = [*batch.observations, *next(decisions), Tick(0, time.time())]
        if not looking:
            log.take(observations)
            continue
        missed += observations
        looking = batch.health.mode == "starting"
        if not looking:
            log.take_together(missed)


def _batches(source: Source, told: Collection[Problem]) -> Iterator[Batch]:
    """What a source sees, until nobody reads the output any more; at times, nothing. What it cannot read is told on
    stderr, unless it was `told` before."""
    batches: SimpleQueue[Batch] = SimpleQueue()
    batch = Batch((), Health("starting", ""))
    source.start(batches.put)
    try:
        while _is_read():
            sys.stdout.flush()
            try:
                batch = batches.get(timeout=_LOOK_SECONDS)
            except Empty:
                yield Batch((), batch.health)
                continue
            complain_of([problem for problem in batch.health.problems if problem not in told])
            told = batch.health.problems
            yield batch
    finally:
        source.stop()


def _is_read() -> bool:
    """Whether standard output is still read. This notices a closed pipe before there is something to write."""
    if sys.stdout is None:
        return False
    poll = select.poll()
    poll.register(sys.stdout.fileno(), 0)
    return not poll.poll(0)


def _end(number: int, _frame: object) -> NoReturn:
    raise SystemExit(128 + number)
