"""Watches several workspaces as one: finds them, and joins their monitors in one monitor."""

from __future__ import annotations

import os
import time
from collections.abc import AsyncIterator, Callable, Collection, Sequence, Set
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from agentwatch.config import Settings
from agentwatch.delegation.task import Task
from agentwatch.monitor import Monitor
from agentwatch.sources import FILES, CombinedSource, Health, combine_health, health_of
from agentwatch.sources.worktrees import find_ready_worktrees
from agentwatch.state import mark_shown, state_directory, user_home
from agentwatch.text import describe_error
from agentwatch.view.words import plural

if TYPE_CHECKING:
    import asyncio

    from agentwatch.delegation.tree import JoinedTree
    from agentwatch.history.acknowledgements import Acknowledgements

_SEARCH_SECONDS = 2.0  # between two searches for worktrees or hosts
_EVERYWHERE_SECONDS = 10.0  # between two searches through all session stores
_MOST = 40  # the most workspaces that `--all` watches at once: each needs threads, a history and file watches
_DAY = 86_400.0  # `--all` shows sessions that were alive in the last so many seconds

_TURN_SECONDS = 0.5  # the longest that the first scan of a workspace delays the next workspace
_TITLE = 30  # the most characters for the names of all workspaces in the header; if longer, it shows their number


class Place(NamedTuple):
    """A workspace to watch, and the name of its top row. If it `comes`, it is removed once it is not found any more; if
    it `waits`, it has no row before something in it is not past. `host`: another machine by the operator's name, or a
    server that stands for so many `hosts`."""

    workspace: Path
    name: str | None = None
    comes: bool = False
    waits: bool = False
    host: str = ""
    hosts: int = 1


class Places(NamedTuple):
    """The workspaces found now, and a sentence for each that cannot be watched."""

    places: Sequence[Place]
    complaints: Sequence[str] = ()


def name_workspaces(workspaces: Collection[Path]) -> dict[Path, str]:
    """Return the names of top rows: the last part of each path, and more parts if several paths share it."""
    names: dict[Path, str] = {}
    for workspace in workspaces:
        parts = workspace.parts
        for count in range(1, len(parts) + 1):
            name = str(Path(*parts[-count:]))
            if sum(other.parts[-count:] == parts[-count:] for other in workspaces) == 1:
                break
        names[workspace] = name or str(workspace)
    return names


def find_worktrees(workspace: Path) -> Places:
    """Return the other worktrees of a repository, as they are now."""
    others = find_ready_worktrees(workspace)
    names = name_workspaces([workspace, *others])
    return Places([Place(one, names[one], comes=True, waits=True) for one in others])


class WorkspaceFinder:
    """Finds every workspace in which a session was alive in the last day, and keeps those found before."""

    def __init__(self) -> None:
        self._found: dict[Path, Place] = {}

    def __call__(self) -> Places:
        from agentwatch.sources.sessions.registry import find_live_directories, find_workspaces

        alive = find_workspaces(find_live_directories(time.time() - _DAY), _is_shown_within)
        home = user_home()
        # The home directory and those above it hold all files of the user, so they are no workspaces.
        wide = {place for place in alive if place == home or place in home.parents}
        newest = sorted(alive.keys() - wide, key=lambda place: -alive[place])
        self._found = {place: one for place, one in self._found.items() if place.is_dir()}
        new = [place for place in newest if place not in self._found]
        names = name_workspaces([*self._found, *new])
        self._found |= {place: Place(place, names[place], comes=True) for place in new[: _MOST - len(self._found)]}
        complaints = [f"Sessions in {place} are not shown: name a directory below it" for place in sorted(wide)]
        if more := len(names) - len(self._found):
            complaints.append(f"{plural(more, 'more workspace')} with sessions: {_MOST} are shown at once")
        return Places(list(self._found.values()), complaints)


def _is_shown_within(whole: str, part: str) -> bool:
    """Whether the directory `part` is shown as a part of `whole`; the home and those above it have no parts."""
    from agentwatch.sources.sessions.store import contains

    home = str(user_home())
    return not f"{home}/".startswith(f"{whole.rstrip('/')}/") and contains(whole, part)


_Emit = Callable[[Set[str] | Exception], None]


@dataclass(slots=True, eq=False)
class _Member:
    """One workspace. `scope` is the prefix of its task ids in the joined tree, None before its tasks are shown."""

    place: Place
    monitor: Monitor
    scope: str | None = None
    running: asyncio.Task[None] | None = None

    def name(self, sentence: str) -> str:
        """Put the workspace's name, if it has one, before a sentence."""
        return sentence if self.place.name is None else f"{self.place.name}: {sentence}"

    @property
    def is_lost(self) -> bool:
        return self.monitor.tree.lost_since is not None

    @property
    def is_unread(self) -> bool:
        """Whether the workspace is on a host that has not reported on it so far."""
        return bool(self.place.host) and not self.is_lost and self.monitor.health.mode == "starting"


class Workspaces(Monitor):
    """Watches the workspaces at `places` and those that the functions `finds`, called repeatedly, return."""

    tree: JoinedTree

    def __init__(
        self,
        places: Sequence[Place],
        settings: Settings,
        open_one: Callable[[Place], Monitor],
        *,
        finds: Sequence[Callable[[], Places]] = (),
        noun: str = "workspace",
        workspace: Path | None = None,
        end: Callable[[], None] = lambda: None,
    ):
        super().__init__(workspace or places[0].workspace, settings, CombinedSource([]), time.time)
        from agentwatch.delegation.tree import JoinedTree  # not needed by commands that look once

        # A prefix with NUL and random digits, so that no task id of a workspace equals a key of the joined tree.
        self.tree = JoinedTree(f"\0{os.urandom(6).hex()}.")
        self._open_one, self._finds, self._end = open_one, finds, end
        self.pause = _EVERYWHERE_SECONDS if noun == "workspace" else _SEARCH_SECONDS
        self._noun = noun
        self._parts: dict[Path, _Member] = {}
        self._places: Places | None = None
        for place in places:
            self._open(place)

    @property
    def title(self) -> str:
        parts = self._parts.values()
        if not parts:
            return f"every {self._noun}"
        names = [part.place.name or "" for part in parts if part.scope and not part.place.host]
        local, many = " ".join(f"{name}/" for name in names), plural(len(names), self._noun)
        if any(part.scope == "" for part in parts):
            local = f"{super().title} + {many}" if names else super().title
        elif len(local) > _TITLE:
            local = many
        hosts = {part.place.host: part.place.hosts for part in parts if part.place.host}
        unknown = {part.place.host: part.place.hosts for part in parts if part.is_lost or part.is_unread}
        total, read = sum(hosts.values()), sum(hosts.values()) - sum(unknown.values())
        count = plural(total, "host") if hosts else ""
        return " + ".join(filter(None, (local, f"{read:,} of {count}" if unknown else count)))

    @property
    def connecting(self) -> int:
        parts = self._parts.values()
        return sum({part.place.host: part.place.hosts for part in parts if part.is_unread}.values())

    @property
    def shelves(self) -> list[Acknowledgements]:
        return [shelf for part in self._parts.values() for shelf in part.monitor.shelves]

    @property
    def notices(self) -> list[str]:
        own = [part.name(sentence) for part in self._parts.values() for sentence in part.monitor.notices]
        found = self._places.complaints if self._places else ()
        return [*own, *found, *self.complaints]

    @property
    def is_settled(self) -> bool:
        return all(part.monitor.is_settled for part in self._parts.values())

    @property
    def watched(self) -> str:
        if not self._parts:
            return "every directory in which a session of an agent was alive of late"
        return f"{', '.join(map(str, self._parts))} and everything below"

    def behind(self, task_id: str) -> Monitor:
        rows = (part.monitor for part in self._parts.values() if part.scope and task_id.startswith(part.scope))
        return next(rows, self)

    def reconnect(self) -> list[str]:
        return list(dict.fromkeys(name for part in [*self._parts.values()] for name in part.monitor.reconnect()))

    def of(self, task_id: str) -> tuple[Monitor, str]:
        if (place := self.tree.locate(task_id)) is not None:
            for part in self._parts.values():
                if part.monitor.tree is place[0]:
                    return part.monitor, place[1]
        return self, task_id

    async def updates(self) -> AsyncIterator[Set[str]]:
        import asyncio

        arrived = asyncio.Queue[Set[str] | Exception]()
        watching = asyncio.create_task(self._watch_all(arrived.put_nowait))
        try:
            while True:
                changed = await arrived.get()
                if isinstance(changed, Exception):
                    raise changed
                yield changed
        finally:
            running = [watching, *(part.running for part in self._parts.values() if part.running is not None)]
            for one in running:
                one.cancel()
            await asyncio.gather(*running, return_exceptions=True)
            await asyncio.shield(asyncio.to_thread(self._end))

    async def _watch_all(self, emit: _Emit) -> None:
        """Start each workspace after the first scan of the one before; then search repeatedly for other workspaces."""
        import asyncio

        try:
            while True:
                for part in [part for part in self._parts.values() if part.running is None]:
                    part.running = asyncio.create_task(self._watch(part, emit))
                    until = time.monotonic() + _TURN_SECONDS
                    is_here = not part.place.host
                    while is_here and part.monitor.health.mode == "starting" and time.monotonic() < until:  # noqa: ASYNC110
                        await asyncio.sleep(0.02)
                if not self._finds:
                    return
                every = await asyncio.to_thread(lambda: [find() for find in self._finds])
                found = Places([one for each in every for one in each[0]], [one for each in every for one in each[1]])
                if found != self._places:
                    emit(self._apply_places(found))
                if all(part.running for part in self._parts.values()):
                    await asyncio.sleep(self.pause)
        except Exception as error:  # noqa: BLE001  `updates` raises it
            emit(error)

    async def _watch(self, part: _Member, emit: _Emit) -> None:
        import asyncio

        try:
            with ExitStack() as stack:
                if not part.place.host:
                    # The lock tells hooks that somebody sees this workspace: only then they wait for a decision.
                    await asyncio.to_thread(stack.enter_context, mark_shown(state_directory(part.place.workspace)))
                async for changed in part.monitor.updates():
                    emit(self._apply_part(part, changed))
        except Exception as error:  # noqa: BLE001  nobody waits for this task
            if part.place.name is None:
                emit(error)
            else:
                # Watching one of several workspaces has failed: the others go on.
                self.complaints.append(part.name(f"watching has ended ({describe_error(error)})"))
                emit(frozenset())

    def _open(self, place: Place) -> set[str]:
        """Start with a new workspace, and return the ids of its tasks that are shown at once."""
        part = self._parts[place.workspace] = _Member(place, self._open_one(place))
        return set() if place.waits else self._show(part)

    def _show(self, part: _Member) -> set[str]:
        place = part.place
        part.scope, keys = self.tree.add_tree(part.monitor.tree, place.name, str(place.workspace), _unread_reason(part))
        return keys

    def _apply_part(self, part: _Member, changed: Set[str]) -> Set[str]:
        """Take in the changed tasks of one workspace, and return the ids of changed tasks in the joined tree."""
        tree, keys = part.monitor.tree, set[str]()
        if part.scope is not None:
            keys = self.tree.update_tree(part.scope, tree, changed, _unread_reason(part))
        elif any(gives_row(task) for key in changed if (task := tree.tasks.get(key))):
            keys = self._show(part)
        self._look_at_parts()
        return keys

    def _apply_places(self, found: Places) -> Set[str]:
        """Add and remove workspaces so that they match those found, and return the ids of changed tasks."""
        self._places = found
        wanted = {place.workspace: place for place in found.places}
        changed = set()
        for workspace in [one for one, part in self._parts.items() if part.place.comes and one not in wanted]:
            part = self._parts.pop(workspace)
            if part.running is not None:
                part.running.cancel()
            if part.scope is not None:
                changed |= self.tree.remove_tree(part.scope)
        for place in wanted.values():
            if place.workspace not in self._parts:
                changed |= self._open(place)
        self._look_at_parts()
        return changed

    def _look_at_parts(self) -> None:
        parts = list(self._parts.values())
        self.clerk = next((part.monitor.clerk for part in parts if part.monitor.clerk), None)
        known = [(part.place, _health_of(part)) for part in parts]
        # A workspace that only comes with others, or is on another machine, counts only once it has been read.
        seen = [health for place, health in known if not (place.comes or place.host) or health.mode != "starting"]
        if known:
            self.health = combine_health(seen or [health for _, health in known])
        elif self._places is not None:
            self.health = Health("live", "no session of an agent was alive")


def gives_row(task: Task) -> bool:
    """Whether this task gives a row to a workspace that only comes with others."""
    return bool(task.alive_at) and not task.past


def _unread_reason(part: _Member) -> str:
    """Return why nothing is known of a workspace on another machine, or not yet; "" if all is well."""
    return part.monitor.health.detail if part.place.host and (part.is_lost or part.is_unread) else ""


def _health_of(part: _Member) -> Health:
    """Return the health of a workspace; its problems name the workspace, unless its host is unreachable."""
    health = part.monitor.health
    if not health.problems or part.is_lost:
        return health
    named = (one._replace(source=FILES, message=part.name(str(one))) for one in health.problems)
    return health_of(health.mode, health.detail, tuple(named))
