"""The log without a screen: every state change, from the history and from now on, and the history as a file."""

from __future__ import annotations

import json
import select
import signal
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Final, NoReturn

from agentwatch.config import Settings
from agentwatch.delegation.observation import Observation
from agentwatch.delegation.tree import DelegationTree
from agentwatch.errors import WorkspaceError
from agentwatch.history.export import lines, write
from agentwatch.history.keeper import recall
from agentwatch.history.log import Change, Changes, document, line
from agentwatch.history.store import History
from agentwatch.sources.health import Batch
from agentwatch.sources.source import Source
from agentwatch.text import clean, complain, say

_KEPT: Final = "it is kept while `agentwatch` watches the workspace"

_LOOK_SECONDS: Final = 0.5
"""How often `log --follow` looks whether somebody still reads what it prints."""


def print_log(workspace: Path, settings: Settings, *, as_json: bool, source: Source | None = None) -> int:
    """Print the state changes that the history of a workspace holds, one a line. Nothing is written.

    With a `source`, those that it sees come after them as they happen, until nobody reads the output any more.
    """
    recalled = recall(workspace)
    log = _Log(settings, as_json=as_json)
    for observation in recalled.observations:
        log.take(observation)
    if recalled.notice:
        complain(f"agentwatch: {clean(recalled.notice)}")
    if source is not None:
        source.remember(recalled.files)
        _follow(source, log)
    elif not recalled.observations and not recalled.notice:
        complain(f"no history of {clean(str(workspace))} yet: {_KEPT}")
    return 0


def export_log(workspace: Path, file: str) -> int:
    """Write what the history of a workspace holds into a new file. Raises WorkspaceError where there is none."""
    history = History.open_read_only(workspace)
    observations = history.observations() if history else []
    if history is None or not observations:
        raise WorkspaceError(f"{workspace}: no history to export: {(history and history.notice) or _KEPT}")
    count = write(Path(file), lines(workspace.name, observations, history.text))
    history.close()
    say(f"{count:,} observations in {clean(file)}. The texts of the documents are in it: read it before you send it.")
    return 0


class _Log:
    """Prints what observations change, whether they come from the history or from a source."""

    def __init__(self, settings: Settings, *, as_json: bool) -> None:
        self._tree = DelegationTree(strict=settings.strict)
        self._changes = Changes(self._tree)
        self._as_json = as_json

    def take(self, observation: Observation) -> None:
        """Print what this observation changes."""
        self._print(self._changes.after(self._tree.apply(observation), observation.at))

    def take_together(self, observations: Iterable[Observation]) -> None:
        """Print what these change together, a line a task: what happened meanwhile, nobody saw in its order."""
        changed: set[str] = set()
        for observation in observations:
            changed |= self._tree.apply(observation)
        now = time.time()
        times = {task_id: self._last_sign(task_id, now) for task_id in changed}
        for task_id in sorted(changed, key=lambda task_id: (times[task_id], task_id)):
            self._print(self._changes.after([task_id], times[task_id]))

    def _last_sign(self, task_id: str, now: float) -> float:
        """When the files of a task were written last; now where it is gone."""
        task = self._tree.tasks.get(task_id)
        return now if task is None else max(task.updated_at, task.below.active_at if task.below else 0.0)

    def _print(self, changes: Iterable[Change]) -> None:
        for change in changes:
            say(json.dumps(document(change)) if self._as_json else line(change))


def _follow(source: Source, log: _Log) -> None:
    """Print what has changed since the history was written, then what changes from now on."""
    signal.signal(signal.SIGTERM, _end)
    missed: list[Observation] = []
    looking = True
    for batch in _batches(source):
        if not looking:
            for observation in batch.observations:
                log.take(observation)
            continue
        missed += batch.observations
        looking = batch.health.mode == "starting"
        if not looking:
            log.take_together(missed)


def _batches(source: Source) -> Iterator[Batch]:
    """What a source sees, until nobody reads the output any more. Trouble is told on standard error."""
    batches: SimpleQueue[Batch] = SimpleQueue()
    told = ""
    source.start(batches.put)
    try:
        while _is_read():
            sys.stdout.flush()
            try:
                batch = batches.get(timeout=_LOOK_SECONDS)
            except Empty:
                continue
            trouble = batch.health.detail if batch.health.mode == "degraded" else ""
            if trouble and trouble != told:
                complain(f"agentwatch: {clean(trouble)}")
            told = trouble
            yield batch
    finally:
        source.stop()


def _is_read() -> bool:
    """Whether somebody still reads standard output: a closed pipe is noticed before there is something to write."""
    poll = select.poll()
    poll.register(sys.stdout.fileno(), 0)
    return not poll.poll(0)


def _end(number: int, _frame: object) -> NoReturn:
    raise SystemExit(128 + number)
