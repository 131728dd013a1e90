"""Several workspaces being watched as one: a monitor that is made of a monitor for each."""

from __future__ import annotations

import os
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from agentwatch.config import Settings
from agentwatch.delegation.joined import JoinedTree
from agentwatch.delegation.run import Message, Run
from agentwatch.delegation.task import Task, Version
from agentwatch.monitor import Monitor, Update
from agentwatch.place import state_directory
from agentwatch.places import SEARCH_SECONDS, Place, Places, Search
from agentwatch.presence import shown
from agentwatch.sources.health import FILES, Health, Problem, health_of, together
from agentwatch.sources.source import CombinedSource
from agentwatch.text import words_of
from agentwatch.view.words import plural

if TYPE_CHECKING:
    import asyncio

    from agentwatch.history.acknowledgements import Acknowledgements
    from agentwatch.sources.sessions.following import RunTranscript

_TURN_SECONDS: Final = 0.5
"""A workspace whose first scan takes longer than this keeps the next one waiting no longer."""
_TICK_SECONDS: Final = (1.0, 60.0)
"""As a monitor has it, for all workspaces but the first."""
_TITLE: Final = 30
"""Characters up to which the header names all workspaces; beyond it says how many there are."""


@dataclass(slots=True)
class _Part:
    """One workspace. `scope` is that of its tasks in the tree, None before they are shown."""

    place: Place
    monitor: Monitor
    health: Health | None = None
    """The last that was taken into account."""
    scope: str | None = None
    running: asyncio.Task[None] | None = None


class Monitors(Monitor):
    """Watches the workspaces at these `places`, the first one first, each with the monitor that `open_one` makes.

    `find`, which is called in a thread and again while it runs, says which others there are, again `pause` seconds
    later; `noun` is what each of these is called. `workspace` is the one that the command is about: else the first.
    `end` is called in a thread when nothing is watched any more.
    """

    tree: JoinedTree

    def __init__(
        self,
        places: Sequence[Place],
        settings: Settings,
        open_one: Callable[[Place], Monitor],
        *,
        find: Callable[[], Places] | None = None,
        noun: str = "workspace",
        pause: float = SEARCH_SECONDS,
        workspace: Path | None = None,
        end: Callable[[], None] = lambda: None,
    ) -> None:
        super().__init__(workspace or places[0].workspace, settings, CombinedSource([]), time.time)
        # No task of a workspace can be called so: its id would be the key of another's.
        self.tree = JoinedTree(f"\0{os.urandom(6).hex()}.")
        self._open_one = open_one
        self._search = Search(find, pause) if find is not None else None
        self._noun = noun
        self._parts: dict[Path, _Part] = {}
        self._places: Places | None = None
        """What was found last, None before the first search."""
        self._end = end
        for place in places:
            self._open(place)

    @property
    def title(self) -> str:
        names = [part.place.name or "" for part in self._parts.values() if part.scope and not part.place.host]
        if not self._parts:
            return f"every {self._noun}"
        if any(part.scope == "" for part in self._parts.values()):
            local = super().title + (f" + {plural(len(names), self._noun)}" if names else "")
        else:
            local = " ".join(f"{name}/" for name in names)
            local = local if len(local) <= _TITLE else plural(len(names), self._noun)
        return " + ".join(filter(None, (local, self._hosts)))

    @property
    def _hosts(self) -> str:
        """How many hosts there are, and how many of them can be reached."""
        hosts = [part for part in self._parts.values() if part.place.host]
        every = {part.place.host for part in hosts}
        lost = {part.place.host for part in hosts if part.monitor.tree.lost_since is not None}
        count = plural(len(every), "host") if every else ""
        return f"{len(every - lost):,} of {count}" if lost else count

    @property
    def problems(self) -> tuple[Problem, ...]:
        return tuple(problem for part in self._parts.values() for problem in part.monitor.problems)

    @property
    def shelves(self) -> list[Acknowledgements]:
        return [shelf for part in self._parts.values() for shelf in part.monitor.shelves]

    @property
    def notices(self) -> list[str]:
        own = [_from(part, sentence) for part in self._parts.values() for sentence in part.monitor.notices]
        return [*own, *(self._places.complaints if self._places else ()), *self.complaints]

    @property
    def said(self) -> list[str]:
        unread = ((part, str(problem)) for part in self._parts.values() for problem in part.monitor.health.problems)
        return [*self.notices, *(_from(part, sentence) for part, sentence in unread)]

    @property
    def is_settled(self) -> bool:
        return all(part.monitor.is_settled for part in self._parts.values())

    @property
    def watched(self) -> str:
        if not self._parts:
            return "every directory in which a session of an agent was alive of late"
        return f"{', '.join(str(place) for place in self._parts)} and everything below"

    def of(self, task_id: str) -> tuple[Monitor, str]:
        place = self.tree.place(task_id)
        if place is not None:
            for part in self._parts.values():
                if part.monitor.tree is place.tree:
                    return part.monitor, place.task_id
        return self, task_id

    def content(self, version: Version | Message) -> str | None:
        texts = (part.monitor.content(version) for part in list(self._parts.values()))
        return next((text for text in texts if text is not None), None)

    def transcript(self, run: Run) -> RunTranscript | None:
        transcripts = (part.monitor.transcript(run) for part in list(self._parts.values()))
        return next((one for one in transcripts if one is not None), None)

    def scan(self) -> None:
        """Nobody looks at several workspaces once through one monitor."""
        raise NotImplementedError

    async def updates(self) -> AsyncIterator[Update]:
        import asyncio

        turn = asyncio.Lock()
        arrived: asyncio.Queue[Update | BaseException] = asyncio.Queue()

        async def watch(part: _Part) -> None:
            try:
                with ExitStack() as stack:
                    if not part.place.host:
                        # Hooks wait for a decision only where somebody can see what it is about.
                        await asyncio.to_thread(stack.enter_context, shown(state_directory(part.place.workspace)))
                    part.monitor.turn = turn
                    async for update in part.monitor.updates():
                        arrived.put_nowait(self._take(part, update))
            except Exception as error:  # noqa: BLE001  nobody waits for this task
                if part.place.name is None:
                    arrived.put_nowait(error)
                else:
                    # The others go on.
                    self.complaints.append(_from(part, f"watching has ended ({words_of(error)})"))
                    arrived.put_nowait(Update(frozenset(), structure=False))

        async def watch_all() -> None:
            """Start each when the one before has looked at what it has: the first rows wait for none of the others."""
            try:
                while True:
                    for part in [part for part in self._parts.values() if part.running is None]:
                        part.running = asyncio.create_task(watch(part))
                        if not part.place.host:
                            await _settling(part.monitor)
                    if self._search is None:
                        return
                    places = await self._search.look()
                    if places != self._places:
                        self._places = places
                        arrived.put_nowait(self._take_places(places))
                    if all(part.running for part in self._parts.values()):
                        await self._search.rest()
            except Exception as error:  # noqa: BLE001
                arrived.put_nowait(error)
            finally:
                if self._search is not None:
                    self._search.close()

        watching = asyncio.create_task(watch_all())
        try:
            while True:
                update = await arrived.get()
                if isinstance(update, BaseException):
                    raise update
                yield update
        finally:
            watching.cancel()
            running = [part.running for part in self._parts.values() if part.running is not None]
            for one in running:
                one.cancel()
            await asyncio.gather(watching, *running, return_exceptions=True)
            await asyncio.shield(asyncio.to_thread(self._end))

    def _open(self, place: Place) -> _Part:
        monitor = self._open_one(place)
        monitor.in_sight = partial(self._in_sight_of, monitor)
        if self._parts:
            # The first tells what time it is.
            monitor.tick_seconds = _TICK_SECONDS
        part = self._parts[place.workspace] = _Part(place, monitor)
        if (gone := _gone(place)) in self.complaints:
            self.complaints.remove(gone)
        if not place.waits:
            self._show(part)
        return part

    def _in_sight_of(self, monitor: Monitor) -> list[str]:
        places = map(self.tree.place, self.in_sight())
        return [place.task_id for place in places if place is not None and place.tree is monitor.tree]

    def _show(self, part: _Part) -> set[str]:
        place = part.place
        part.scope, keys = self.tree.show(part.monitor.tree, name=place.name, workspace=str(place.workspace))
        if place.host:
            self.tree.explain(part.scope, _why(part))
            keys |= self.tree.update(part.scope, (), moved=False)
        return keys

    def _take(self, part: _Part, update: Update) -> Update:
        """One workspace has changed."""
        tasks, changed, structure = part.monitor.tree.tasks, set[str](), self.tree.structure
        if part.scope is not None:
            self.tree.swap(part.scope, part.monitor.tree)
            self.tree.explain(part.scope, _why(part))
            changed = self.tree.update(part.scope, update.changed, moved=update.structure)
        elif any(has_row(task) for key in update.changed if (task := tasks.get(key))):
            changed = self._show(part)
        if part.health is not part.monitor.health or (self.clerk is None) != (part.monitor.clerk is None):
            part.health = part.monitor.health
            self._look_at_parts()
        return Update(frozenset(changed), update.structure or self.tree.structure != structure)

    def _take_places(self, found: Places) -> Update:
        """These are the workspaces that there are besides those asked for."""
        wanted = {place.workspace: place for place in found.places}
        changed: set[str] = set()
        for workspace, part in list(self._parts.items()):
            if part.place.comes and workspace not in wanted:
                changed |= self._close(part)
        for workspace, place in wanted.items():
            if workspace not in self._parts:
                part = self._open(place)
                changed |= {part.scope} if part.scope else set()
        self._look_at_parts()
        return Update(frozenset(changed), structure=True)

    def _close(self, part: _Part) -> set[str]:
        """A workspace is not there any more. Returns what is shown of it no more."""
        del self._parts[part.place.workspace]
        if part.running is not None:
            part.running.cancel()
        if part.scope is None:
            return set()
        if not part.place.host:
            self.complaints.append(_gone(part.place))
        elif part.monitor.tree.tasks:
            self.complaints.append(f"{part.place.name} is not relayed any more")
        return self.tree.drop(part.scope)

    def _look_at_parts(self) -> None:
        parts = list(self._parts.values())
        self.clerk = next((part.monitor.clerk for part in parts if part.monitor.clerk is not None), None)
        # What comes with others is read behind them.
        only_comes = all(part.place.comes for part in parts)
        known = ((_health_of(part), only_comes or not part.place.comes) for part in parts)
        if told := [health for health, is_asked_for in known if is_asked_for or health.mode != "starting"]:
            self.health = together(told)
        elif self._places is not None:
            self.health = Health("live", "no session of an agent was alive")


def has_row(task: Task) -> bool:
    """Whether a workspace that only comes with others has a row, because of this task."""
    return bool(task.alive_at) and not task.past


def _gone(place: Place) -> str:
    """What is told of a workspace that is not there any more, for as long as it is not."""
    return f"{place.name} is not watched any more: {place.workspace} was removed"


def _why(part: _Part) -> str:
    """Why nothing is known of a workspace on another machine, or nothing yet; "" where all is well."""
    health = part.monitor.health
    is_known = part.monitor.tree.lost_since is None and health.mode != "starting"
    return "" if is_known or not part.place.host else health.detail


def _health_of(part: _Part) -> Health:
    """How well a workspace is seen; what cannot be read says in which one, unless all of it is out of reach: that names
    the host already."""
    health = part.monitor.health
    if not health.problems or part.monitor.tree.lost_since is not None:
        return health
    named = (one._replace(source=FILES, message=_from(part, str(one))) for one in health.problems)
    return health_of(health.mode, health.detail, tuple(named), health.directories, health.files)


def _from(part: _Part, sentence: str) -> str:
    return f"{part.place.name}: {sentence}" if part.place.name is not None else sentence


async def _settling(monitor: Monitor) -> None:
    """Wait for the end of its first scan, not for long."""
    import asyncio

    until = time.monotonic() + _TURN_SECONDS
    while monitor.health.mode == "starting" and time.monotonic() < until:  # noqa: ASYNC110  not long
        await asyncio.sleep(0.02)
