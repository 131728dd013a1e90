"""Several workspaces being watched as one: which there are, and a monitor that is made of a monitor for each."""

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
from agentwatch.sources import FILES, CombinedSource, Health, health_of, together
from agentwatch.sources.worktrees import used_worktrees
from agentwatch.state import shown, state_directory, user_home
from agentwatch.text import words_of
from agentwatch.view.words import plural

if TYPE_CHECKING:
    import asyncio

    from agentwatch.delegation.tree import JoinedTree
    from agentwatch.history.acknowledgements import Acknowledgements

_SEARCH_SECONDS = 2.0
_EVERYWHERE_SECONDS = 10.0  # Between two searches for workspaces: in a repository or on hosts, and through all stores
_MOST = 40  # workspaces that `--all` watches at once: each has threads, a history and watches of its own
_DAY = 86_400.0  # seconds in which a session was alive that it shows

_TURN_SECONDS = 0.5  # A workspace whose first scan takes longer than this keeps the next one waiting no longer
_TITLE = 30  # characters up to which the header names all workspaces; beyond it says how many there are


class Place(NamedTuple):
    """A workspace to be watched, and the name of its top row. One that `comes` goes when it is not found any more; one
    that `waits` has its row once something in it is not past. `host`: another machine, as the operator calls it, or a
    server of so many `hosts`."""

    workspace: Path
    name: str | None = None
    comes: bool = False
    waits: bool = False
    host: str = ""
    hosts: int = 1


class Places(NamedTuple):
    """The workspaces that there are now, and a sentence for each that cannot be watched."""

    places: Sequence[Place]
    complaints: Sequence[str] = ()


def names_of(workspaces: Collection[Path]) -> dict[Path, str]:
    """The names of top rows: the last part of a path, and of those that share it as many as tell them apart."""
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
    """The other worktrees of a repository, as they are now."""
    others = used_worktrees(workspace)
    names = names_of([workspace, *others])
    return Places([Place(one, names[one], comes=True, waits=True) for one in others])


class Everywhere:
    """Finds every workspace in which a session was alive in the last day; one that was found stays."""

    def __init__(self) -> None:
        self._found: dict[Path, Place] = {}

    def __call__(self) -> Places:
        from agentwatch.sources.sessions.registry import sessions_alive, workspaces_in

        alive = workspaces_in(sessions_alive(time.time() - _DAY), _is_part)
        home = user_home()
        # Everything that the user has lies there: nobody works in all of it.
        wide = {place for place in alive if place == home or place in home.parents}
        newest = sorted(alive.keys() - wide, key=lambda place: -alive[place])
        self._found = {place: one for place, one in self._found.items() if place.is_dir()}
        new = [place for place in newest if place not in self._found]
        names = names_of([*self._found, *new])
        self._found |= {place: Place(place, names[place], comes=True) for place in new[: _MOST - len(self._found)]}
        complaints = [f"Sessions in {place} are not shown: name a directory below it" for place in sorted(wide)]
        if more := len(names) - len(self._found):
            complaints.append(f"{plural(more, 'more workspace')} with sessions: {_MOST} are shown at once")
        return Places(list(self._found.values()), complaints)


def _is_part(whole: str, part: str) -> bool:
    """Whether what happens in a directory is shown with another one."""
    from agentwatch.sources.sessions.store import holds

    home = str(user_home())
    return not f"{home}/".startswith(f"{whole.rstrip('/')}/") and holds(whole, part)


_Emit = Callable[[Set[str] | Exception], None]


@dataclass(slots=True, eq=False)
class _Part:
    """One workspace. `scope` is that of its tasks in the tree, None before they are shown."""

    place: Place
    monitor: Monitor
    scope: str | None = None
    running: asyncio.Task[None] | None = None

    def name(self, sentence: str) -> str:
        """A sentence about it, with its name."""
        return sentence if self.place.name is None else f"{self.place.name}: {sentence}"

    @property
    def is_lost(self) -> bool:
        return self.monitor.tree.lost_since is not None

    @property
    def is_unread(self) -> bool:
        """Whether it is on a host that has said nothing of it so far."""
        return bool(self.place.host) and not self.is_lost and self.monitor.health.mode == "starting"


class Workspaces(Monitor):
    """Watches the workspaces at `places`; `finds`, called again and again, say which others there are."""

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
        # No task of a workspace can be called so: its id would be the key of another's.
        from agentwatch.delegation.tree import JoinedTree  # commands that look once need none

        self.tree = JoinedTree(f"\0{os.urandom(6).hex()}.")
        self._open_one, self._finds, self._end = open_one, finds, end
        self.pause = _EVERYWHERE_SECONDS if noun == "workspace" else _SEARCH_SECONDS
        self._noun = noun
        self._parts: dict[Path, _Part] = {}
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
        if (place := self.tree.place(task_id)) is not None:
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
        """Start each when the one before has looked at what it has; then search for others, again and again."""
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
        except Exception as error:  # noqa: BLE001  it is raised where updates are waited for
            emit(error)

    async def _watch(self, part: _Part, emit: _Emit) -> None:
        import asyncio

        try:
            with ExitStack() as stack:
                if not part.place.host:
                    # Hooks wait for a decision only where somebody can see what it is about.
                    await asyncio.to_thread(stack.enter_context, shown(state_directory(part.place.workspace)))
                async for changed in part.monitor.updates():
                    emit(self._apply_part(part, changed))
        except Exception as error:  # noqa: BLE001  nobody waits for this task
            if part.place.name is None:
                emit(error)
            else:
                # The others go on.
                self.complaints.append(part.name(f"watching has ended ({words_of(error)})"))
                emit(frozenset())

    def _open(self, place: Place) -> set[str]:
        """Returns what is shown of it at once."""
        part = self._parts[place.workspace] = _Part(place, self._open_one(place))
        return set() if place.waits else self._show(part)

    def _show(self, part: _Part) -> set[str]:
        place = part.place
        part.scope, keys = self.tree.show(part.monitor.tree, place.name, str(place.workspace), _why(part))
        return keys

    def _apply_part(self, part: _Part, changed: Set[str]) -> Set[str]:
        """These tasks of one workspace have changed. Returns what that changes here."""
        tree, keys = part.monitor.tree, set[str]()
        if part.scope is not None:
            keys = self.tree.update(part.scope, tree, changed, _why(part))
        elif any(has_row(task) for key in changed if (task := tree.tasks.get(key))):
            keys = self._show(part)
        self._look_at_parts()
        return keys

    def _apply_places(self, found: Places) -> Set[str]:
        """These are the workspaces that there are besides those asked for."""
        self._places = found
        wanted = {place.workspace: place for place in found.places}
        changed = set()
        for workspace in [one for one, part in self._parts.items() if part.place.comes and one not in wanted]:
            part = self._parts.pop(workspace)
            if part.running is not None:
                part.running.cancel()
            if part.scope is not None:
                changed |= self.tree.drop(part.scope)
        for place in wanted.values():
            if place.workspace not in self._parts:
                changed |= self._open(place)
        self._look_at_parts()
        return changed

    def _look_at_parts(self) -> None:
        parts = list(self._parts.values())
        self.clerk = next((part.monitor.clerk for part in parts if part.monitor.clerk), None)
        known = [(part.place, _health_of(part)) for part in parts]
        # One that comes with others, or is elsewhere, is read behind them.
        seen = [health for place, health in known if not (place.comes or place.host) or health.mode != "starting"]
        if known:
            self.health = together(seen or [health for _, health in known])
        elif self._places is not None:
            self.health = Health("live", "no session of an agent was alive")


def has_row(task: Task) -> bool:
    """Whether a workspace that only comes with others has a row, because of this task."""
    return bool(task.alive_at) and not task.past


def _why(part: _Part) -> str:
    """Why nothing is known of a workspace on another machine, or nothing yet; "" where all is well."""
    return part.monitor.health.detail if part.place.host and (part.is_lost or part.is_unread) else ""


def _health_of(part: _Part) -> Health:
    """How well a workspace is seen; what cannot be read says in which one, unless that names the host already."""
    health = part.monitor.health
    if not health.problems or part.is_lost:
        return health
    named = (one._replace(source=FILES, message=part.name(str(one))) for one in health.problems)
    return health_of(health.mode, health.detail, tuple(named))
