"""Finds workspaces. Watches several workspaces at once, and joins their trees."""

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

_SEARCH_SECONDS = 2.0  # seconds between two searches for worktrees or hosts
_EVERYWHERE_SECONDS = 10.0  # seconds between two searches through all session stores
_MOST = 40  # the most workspaces that `--all` watches at once: each workspace needs threads and file watches
_DAY = 86_400.0  # `--all` shows sessions that were alive within so many seconds

_TURN_SECONDS = 0.5  # the longest wait for the first reading of a workspace, before the next workspace is watched
_TITLE = 30  # the most characters of all names in the title; above that, the title says how many there are


class Place(NamedTuple):
    """A workspace to watch, with the name of its top row on the screen.

    If `vanishes`, the workspace is removed when a search no longer finds it. If `starts_hidden`, it has no row until it
    has a task that is not history. `host` names another machine, or a server that connects `hosts` machines.
    """

    workspace: Path
    name: str | None = None
    vanishes: bool = False
    starts_hidden: bool = False
    host: str = ""
    hosts: int = 1


class Places(NamedTuple):
    """The workspaces that a search found. `complaints` are sentences about workspaces that cannot be shown."""

    places: Sequence[Place]
    complaints: Sequence[str] = ()


def name_workspaces(workspaces: Collection[Path]) -> dict[Path, str]:
    """Return a short name for each workspace: the last part of its path, or more parts if two names would be equal."""
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
    """Return the other worktrees of a workspace's repository."""
    others = find_ready_worktrees(workspace)
    names = name_workspaces([workspace, *others])
    return Places([Place(one, names[one], vanishes=True, starts_hidden=True) for one in others])


class WorkspaceFinder:
    """Finds all workspaces in which a session was alive in the last day. A workspace that was found once is kept."""

    def __init__(self) -> None:
        self._found: dict[Path, Place] = {}

    def __call__(self) -> Places:
        from agentwatch.sources.sessions.registry import find_live_directories, find_workspaces

        alive = find_workspaces(find_live_directories(time.time() - _DAY), _is_shown_within)
        home = user_home()
        # The home directory and its parents are no workspaces, because they contain all files of the user.
        wide = {place for place in alive if place == home or place in home.parents}
        newest = sorted(alive.keys() - wide, key=lambda place: -alive[place])
        self._found = {place: one for place, one in self._found.items() if place.is_dir()}
        new = [place for place in newest if place not in self._found]
        names = name_workspaces([*self._found, *new])
        self._found |= {place: Place(place, names[place], vanishes=True) for place in new[: _MOST - len(self._found)]}
        complaints = [f"Sessions in {place} are not shown: name a directory below it" for place in sorted(wide)]
        if more := len(names) - len(self._found):
            complaints.append(f"{plural(more, 'more workspace')} with sessions: {_MOST} are shown at once")
        return Places(list(self._found.values()), complaints)


def _is_shown_within(whole: str, part: str) -> bool:
    """Tell whether the workspace `whole` shows the directory `part`. The home and its parents show nothing."""
    from agentwatch.sources.sessions.store import contains

    home = str(user_home())
    return not f"{home}/".startswith(f"{whole.rstrip('/')}/") and contains(whole, part)


_Emit = Callable[[Set[str] | Exception], None]


@dataclass(slots=True, eq=False)
class _Member:
    """One of the watched workspaces. `scope` is the prefix of its task ids in the joined tree, or None if hidden."""

    place: Place
    monitor: Monitor
    scope: str | None = None
    watching: asyncio.Task[None] | None = None

    def prefix_name(self, sentence: str) -> str:
        """Put the workspace's name before a sentence."""
        return sentence if self.place.name is None else f"{self.place.name}: {sentence}"

    @property
    def is_lost(self) -> bool:
        return self.monitor.tree.lost_since is not None

    @property
    def is_unread(self) -> bool:
        """Whether the workspace is on a host that has not sent its tasks yet."""
        return bool(self.place.host) and not self.is_lost and self.monitor.health.mode == "starting"


class Workspaces(Monitor):
    """Watches several workspaces with one joined tree. The functions `finders` search for more workspaces."""

    tree: JoinedTree

    def __init__(
        self,
        places: Sequence[Place],
        settings: Settings,
        open_monitor: Callable[[Place], Monitor],
        *,
        finders: Sequence[Callable[[], Places]] = (),
        noun: str = "workspace",
        workspace: Path | None = None,
        end: Callable[[], None] = lambda: None,
    ):
        super().__init__(workspace or places[0].workspace, settings, CombinedSource([]), time.time)
        from agentwatch.delegation.tree import JoinedTree  # imported late, because most commands do not need it

        # The prefix has a NUL and random digits, so that no task id equals a key of the joined tree.
        self.tree = JoinedTree(f"\0{os.urandom(6).hex()}.")
        self._open_monitor, self._finders, self._end = open_monitor, finders, end
        self.pause = _EVERYWHERE_SECONDS if noun == "workspace" else _SEARCH_SECONDS
        self._noun = noun
        self._members: dict[Path, _Member] = {}
        self._places: Places | None = None
        for place in places:
            self._add_place(place)

    @property
    def title(self) -> str:
        members = self._members.values()
        if not members:
            return f"every {self._noun}"
        names = [member.place.name or "" for member in members if member.scope and not member.place.host]
        local, many = " ".join(f"{name}/" for name in names), plural(len(names), self._noun)
        if any(member.scope == "" for member in members):
            local = f"{super().title} + {many}" if names else super().title
        elif len(local) > _TITLE:
            local = many
        hosts = {member.place.host: member.place.hosts for member in members if member.place.host}
        unknown = {member.place.host: member.place.hosts for member in members if member.is_lost or member.is_unread}
        total, read = sum(hosts.values()), sum(hosts.values()) - sum(unknown.values())
        count = plural(total, "host") if hosts else ""
        return " + ".join(filter(None, (local, f"{read:,} of {count}" if unknown else count)))

    @property
    def connecting(self) -> int:
        members = self._members.values()
        return sum({member.place.host: member.place.hosts for member in members if member.is_unread}.values())

    @property
    def all_acknowledgements(self) -> list[Acknowledgements]:
        return [shelf for member in self._members.values() for shelf in member.monitor.all_acknowledgements]

    @property
    def notices(self) -> list[str]:
        own = [member.prefix_name(sentence) for member in self._members.values() for sentence in member.monitor.notices]
        found = self._places.complaints if self._places else ()
        return [*own, *found, *self.complaints]

    @property
    def is_settled(self) -> bool:
        return all(member.monitor.is_settled for member in self._members.values())

    @property
    def watched(self) -> str:
        if not self._members:
            return "every directory in which a session of an agent was alive of late"
        return f"{', '.join(map(str, self._members))} and everything below"

    def monitor_of_row(self, task_id: str) -> Monitor:
        rows = (one.monitor for one in self._members.values() if one.scope and task_id.startswith(one.scope))
        return next(rows, self)

    def reconnect(self) -> list[str]:
        return list(dict.fromkeys(name for member in [*self._members.values()] for name in member.monitor.reconnect()))

    def resolve_task(self, task_id: str) -> tuple[Monitor, str]:
        if (place := self.tree.locate(task_id)) is not None:
            for member in self._members.values():
                if member.monitor.tree is place[0]:
                    return member.monitor, place[1]
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
            running = [watching, *(member.watching for member in self._members.values() if member.watching is not None)]
            for one in running:
                one.cancel()
            await asyncio.gather(*running, return_exceptions=True)
            await asyncio.shield(asyncio.to_thread(self._end))

    async def _watch_all(self, emit: _Emit) -> None:
        """Start to watch one workspace after the other, then search repeatedly for more workspaces."""
        import asyncio

        try:
            while True:
                for member in [member for member in self._members.values() if member.watching is None]:
                    member.watching = asyncio.create_task(self._watch(member, emit))
                    until = time.monotonic() + _TURN_SECONDS
                    is_here = not member.place.host
                    while is_here and member.monitor.health.mode == "starting" and time.monotonic() < until:  # noqa: ASYNC110
                        await asyncio.sleep(0.02)
                if not self._finders:
                    return
                every = await asyncio.to_thread(lambda: [find() for find in self._finders])
                found = Places([one for each in every for one in each[0]], [one for each in every for one in each[1]])
                if found != self._places:
                    emit(self._apply_places(found))
                if all(member.watching for member in self._members.values()):
                    await asyncio.sleep(self.pause)
        except Exception as error:  # noqa: BLE001  `updates` raises it
            emit(error)

    async def _watch(self, member: _Member, emit: _Emit) -> None:
        import asyncio

        try:
            with ExitStack() as stack:
                if not member.place.host:
                    # Hooks wait for a decision only if this mark says that a screen shows the workspace.
                    await asyncio.to_thread(stack.enter_context, mark_shown(state_directory(member.place.workspace)))
                async for changed in member.monitor.updates():
                    emit(self._apply_member(member, changed))
        except Exception as error:  # noqa: BLE001  nobody awaits this asyncio task
            if member.place.name is None:
                emit(error)
            else:
                # The other workspaces are still watched.
                self.complaints.append(member.prefix_name(f"watching has ended ({describe_error(error)})"))
                emit(frozenset())

    def _add_place(self, place: Place) -> set[str]:
        """Add a workspace. Return the ids of its tasks, or no ids if the workspace starts hidden."""
        member = self._members[place.workspace] = _Member(place, self._open_monitor(place))
        return set() if place.starts_hidden else self._show_member(member)

    def _show_member(self, member: _Member) -> set[str]:
        place = member.place
        reason = _unread_reason(member)
        member.scope, keys = self.tree.add_tree(member.monitor.tree, place.name, str(place.workspace), reason)
        return keys

    def _apply_member(self, member: _Member, changed: Set[str]) -> Set[str]:
        """Put the changed tasks of one workspace into the joined tree. Return their ids in the joined tree."""
        tree, keys = member.monitor.tree, set[str]()
        if member.scope is not None:
            keys = self.tree.update_tree(member.scope, tree, changed, _unread_reason(member))
        elif any(gives_row(task) for key in changed if (task := tree.tasks.get(key))):
            keys = self._show_member(member)
        self._update_health()
        return keys

    def _apply_places(self, found: Places) -> Set[str]:
        """Add the workspaces that a search found, and remove those that vanished. Return the ids of changed tasks."""
        self._places = found
        wanted = {place.workspace: place for place in found.places}
        changed = set()
        for workspace in [key for key, one in self._members.items() if one.place.vanishes and key not in wanted]:
            member = self._members.pop(workspace)
            if member.watching is not None:
                member.watching.cancel()
            if member.scope is not None:
                changed |= self.tree.remove_tree(member.scope)
        for place in wanted.values():
            if place.workspace not in self._members:
                changed |= self._add_place(place)
        self._update_health()
        return changed

    def _update_health(self) -> None:
        members = list(self._members.values())
        self.decision_watcher = next(filter(None, (one.monitor.decision_watcher for one in members)), None)
        known = [(member.place, _health_of(member)) for member in members]
        # If a workspace may vanish or is on a host, ignore its health until its first reading has ended.
        seen = [health for place, health in known if not (place.vanishes or place.host) or health.mode != "starting"]
        if known:
            self.health = combine_health(seen or [health for _, health in known])
        elif self._places is not None:
            self.health = Health("live", "no session of an agent was alive")


def gives_row(task: Task) -> bool:
    """Tell whether this task is a reason to show a hidden workspace."""
    return bool(task.alive_at) and not task.past


def _unread_reason(member: _Member) -> str:
    """Return why a workspace on another machine cannot be read now. Return "" for any other workspace."""
    return member.monitor.health.detail if member.place.host and (member.is_lost or member.is_unread) else ""


def _health_of(member: _Member) -> Health:
    """Return the health of a workspace. Each problem names the workspace, unless the host is unreachable."""
    health = member.monitor.health
    if not health.problems or member.is_lost:
        return health
    named = (one._replace(source=FILES, message=member.prefix_name(str(one))) for one in health.problems)
    return health_of(health.mode, health.detail, tuple(named))
