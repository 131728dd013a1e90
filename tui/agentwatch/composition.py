"""What a monitor is made of, for every command that looks at a workspace."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence, Set
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

from agentwatch import history
from agentwatch.config import Settings
from agentwatch.dot_directory import NAME as DOT
from agentwatch.evidence.commits import Commits
from agentwatch.far import far_monitor, fleet_of
from agentwatch.monitor import Monitor
from agentwatch.monitors import Monitors, has_row
from agentwatch.place import is_there, state_directory, user_home
from agentwatch.places import Place, Places, names_of
from agentwatch.presence import first_watched, note_first_watch
from agentwatch.sources.files.settings import DEFAULT_PRUNED, FilesSettings
from agentwatch.sources.files.source import MOST_TEXT_BYTES, ONE_LOOK_BYTES, FilesSource
from agentwatch.sources.sessions.registry import Registry, home_of
from agentwatch.sources.sessions.source import KeptSessions, SessionsSource
from agentwatch.sources.source import CombinedSource, Source
from agentwatch.sources.worktrees import NoRepositoryError, Worktrees, made_at

if TYPE_CHECKING:
    from agentwatch.decisions.desk import Desk
    from agentwatch.delegation.task import Task
    from agentwatch.evidence.claims import ParsedClaims
    from agentwatch.history.acknowledgements import Acknowledgements
    from agentwatch.remote.address import Address
    from agentwatch.requests.codex import CodexClient
    from agentwatch.requests.source import Inbox
    from agentwatch.sources.health import Problem
    from agentwatch.sources.sessions.selection import Selection


class FoundTask(NamedTuple):
    """A task, None where there is none, and what could not be read."""

    task: Task | None
    problems: Sequence[Problem]


def source_of(
    workspace: Path,
    settings: Settings,
    selection: Selection | None = None,
    sessions: Source | None = None,
    *,
    dates: bool = False,
    parsed: ParsedClaims | None = None,
) -> Source:
    """The files of a workspace, and the agents' sessions in it unless the settings leave them out.

    With `dates`, what is there at first is as old as it says itself, or git. `parsed` reads the documents for one
    look.
    """
    files = FilesSource(
        workspace,
        FilesSettings(
            pruned=DEFAULT_PRUNED if settings.pruned is None else settings.pruned,
            max_bytes=settings.max_bytes,
            force_polling=settings.poll,
        ),
        read_document=None if parsed is None else parsed.read,
        committed=Commits(workspace).time_of if dates else None,
        text_bytes=MOST_TEXT_BYTES if parsed is None else ONE_LOOK_BYTES,
    )
    return CombinedSource([files, sessions or sessions_of(workspace, selection)]) if settings.sessions else files


def sessions_of(workspace: Path, selection: Selection | None = None) -> SessionsSource:
    """The agents' sessions in a workspace."""
    since = selection.since if selection is not None else None
    registry = Registry(workspace, since)
    return SessionsSource(registry.open, selection, heard=registry.heard)


def read_sources(workspace: Path, settings: Settings) -> Set[str]:
    """The names of the readers that know a session of a workspace. Blocks."""
    if not settings.sessions:
        return frozenset()
    source = sessions_of(workspace)
    try:
        source.scan()
        return {one.source for one in source.found() if one.sessions}
    finally:
        source.close()


def monitor_of(
    workspace: Path,
    settings: Settings,
    selection: Selection | None = None,
    *,
    remembers: bool = False,
    inspects: bool = True,
    open_desk: Callable[[], Desk] | None = None,
    open_inbox: Callable[[], Inbox] | None = None,
    sessions: Source | None = None,
) -> Monitor:
    """A monitor of the files and the agents' sessions of a workspace, or these `sessions`; it has not looked yet."""
    first = _first_watched(workspace)

    def open_shelf() -> Acknowledgements:
        if remembers and not settings.read_only:
            note_first_watch(state_directory(workspace), first)
        return shelf_of(workspace if remembers else None, settings)

    source = source_of(workspace, settings, selection, sessions, dates=True)
    history_before = _history_before(workspace, settings, first) if remembers else float("-inf")
    return Monitor(
        workspace,
        settings,
        source,
        time.time,
        inspects=inspects,
        remembers=remembers,
        open_desk=open_desk,
        open_shelf=open_shelf,
        open_inbox=open_inbox or (partial(inbox_of, workspace) if remembers else None),
        open_codex=partial(codex_of, workspace) if remembers and settings.sessions and not settings.read_only else None,
        history_before=history_before,
        since=selection.since if selection else None,
    )


def watched(
    workspaces: Sequence[Path],
    settings: Settings,
    selection: Selection | None = None,
    *,
    addresses: Sequence[Address] = (),
    everywhere: float | None = None,
) -> Monitors:
    """A monitor for the screen: of a workspace and the other worktrees of its repository, or of several as one tree.

    With `addresses`, of workspaces on other machines, too; with `everywhere`, of all workspaces in which a session was
    alive in so many seconds before. It has not looked yet.
    """
    fleet = fleet_of(addresses) if addresses else None

    def open_one(place: Place) -> Monitor:
        own = None if selection is None else selection.anew()
        if fleet is not None and place.host:
            return far_monitor(fleet, place, settings, own)
        workspace = place.workspace
        # The desk in a thread, behind the first frame.
        return monitor_of(workspace, settings, own, remembers=True, open_desk=lambda: desk_of(workspace, settings))

    find: Callable[[], Places] | None
    if fleet is not None:
        finds: list[Callable[[], Places]] = [fleet.find] if fleet.is_growing else []
        if everywhere is not None:
            from agentwatch.everywhere import Everywhere

            finds.append(Everywhere(everywhere))
        elif len(workspaces) == 1:
            finds.append(_worktrees(workspaces[0]))
        names = names_of(workspaces)
        places = [*(Place(one, names[one]) for one in workspaces), *fleet.find().places]
        find = partial(_all_of, finds) if finds else None
        broker = Path(f"/nats:{addresses[0].server}")
        workspace = places[0].workspace if places else broker
        return Monitors(places, settings, open_one, find=find, noun="host", workspace=workspace, end=fleet.close)
    if everywhere is not None:
        # All stores are looked through.
        from agentwatch.everywhere import PAUSE_SECONDS, Everywhere

        find = Everywhere(everywhere)
        return Monitors([], settings, open_one, find=find, pause=PAUSE_SECONDS, workspace=user_home())
    if len(workspaces) == 1:
        find = _worktrees(workspaces[0])
        return Monitors([Place(workspaces[0])], settings, open_one, find=find, noun="worktree")
    return Monitors([Place(one, name) for one, name in names_of(workspaces).items()], settings, open_one)


def _all_of(finds: Sequence[Callable[[], Places]]) -> Places:
    found = [find() for find in finds]
    return Places(
        [place for one in found for place in one.places], [words for one in found for words in one.complaints]
    )


def _worktrees(workspace: Path) -> Callable[[], Places]:
    """Finds the other worktrees of its repository, as they are then."""
    worktrees = Worktrees(str(workspace))

    def find() -> Places:
        try:
            others = [Path(one) for one in worktrees()]
        except NoRepositoryError as error:
            return Places((), [f"Other worktrees of this repository are not shown: {error}"])
        names = names_of([workspace, *others])
        places = [Place(one, names[one], comes=True, waits=True) for one in others]
        return Places(places, heard=[Path(one) for one in worktrees.heard])

    return find


def shown_worktrees(workspace: Path, settings: Settings, selection: Selection | None = None) -> Places:
    """The other worktrees of its repository that have a row on a screen: in each, something is not past. Blocks."""
    found = _worktrees(workspace)()
    shown = []
    for place in found.places:
        own, desk = selection and selection.anew(), known_desk(place.workspace)
        tree = scanned(place.workspace, settings, own, desk=desk, inspects=False, dates=True).tree
        if any(map(has_row, tree.tasks.values())):
            shown.append(place)
    return found._replace(places=shown)


def scanned(
    workspace: Path,
    settings: Settings,
    selection: Selection | None = None,
    *,
    sessions: Source | None = None,
    desk: Desk | None = None,
    inspects: bool = True,
    requests: bool = False,
    dates: bool = False,
) -> Monitor:
    """A monitor that has looked once, with the history of the workspace. Blocks, and writes nothing.

    `sessions` takes the place of a source of its own. With `requests` it knows what programs ask the operator, which is
    nothing for agents. Who wants to know only how things stand now does not inspect, and asks nobody how old they are
    unless it says `dates`.
    """
    state, parsed = state_directory(workspace), None
    has_acknowledgements = any(is_there(state / name) for name in (history.NAME, history.OLD_NAME))
    if inspects:
        # The models of the contracts take a while to load.
        from agentwatch.evidence.claims import ParsedClaims

        parsed = ParsedClaims()
    monitor = Monitor(
        workspace,
        settings,
        source_of(workspace, settings, selection, sessions, dates=inspects or dates, parsed=parsed),
        time.time,
        inspects=inspects,
        parsed=parsed,
        # A database takes a while to load.
        remembers=is_there(state / history.NAME),
        open_desk=None if desk is None else lambda: desk,
        open_shelf=(lambda: shelf_of(workspace, settings)) if has_acknowledgements else None,
        open_inbox=partial(inbox_of, workspace) if requests and is_there(state / "requests") else None,
        history_before=_history_before(workspace, settings, _first_watched(workspace)),
        since=selection.since if selection else None,
    )
    monitor.scan()
    return monitor


def find_task(workspace: Path, settings: Settings, task_id: str, load: Load, *, inspects: bool = False) -> FoundTask:
    """A task of a workspace as it is now; with `inspects`, its claims are checked, and those of no other."""
    # When its handoff was given tells which claims are true.
    monitor = load(workspace, settings, inspects=False, dates=inspects)
    if inspects:
        check_claims(monitor, [task_id])
    return FoundTask(monitor.tree.tasks.get(task_id), monitor.problems)


def check_claims(monitor: Monitor, task_ids: Iterable[str]) -> None:
    """Check what some tasks claim, of a monitor that has looked and inspects nothing. Blocks."""
    # A hook checks nothing.
    from agentwatch.evidence.inspector import Inspector

    inspector, tree = Inspector(monitor.workspace, monitor.content, None, monitor.transcript), monitor.tree
    checks = inspector.check(inspector.news_of(tree, task_ids))
    tree.apply(*(one.observed(0, tree.now) for one in checks))


def _first_watched(workspace: Path) -> float:
    """When the workspace was first watched; where it never was, this look is the first. Epoch seconds."""
    now, noted = time.time(), first_watched(state_directory(workspace))
    return now if noted is None else min(noted, now)


def _history_before(workspace: Path, settings: Settings, first: float) -> float:
    """What was silent since then is past: since long before the first watch, or since before the worktree was made."""
    return max(first - settings.history_after, made_at(str(workspace)) or float("-inf"))


class Load(Protocol):
    """Loads a workspace, with its history. Blocks, and writes nothing."""

    def __call__(
        self,
        workspace: Path,
        settings: Settings,
        *,
        desk: Desk | None = None,
        inspects: bool = True,
        dates: bool = False,
    ) -> Monitor:
        """With a `desk` the tree knows the decisions; with `inspects` it knows which claims are false. `dates` as
        `scanned` has it."""


class Repeated:
    """`scanned` for a server, which looks each time that it is asked: of the agents' sessions it reads what is new.

    Any thread may call it.
    """

    def __init__(self) -> None:
        self._sessions: dict[Path, KeptSessions] = {}

    def __call__(
        self,
        workspace: Path,
        settings: Settings,
        *,
        desk: Desk | None = None,
        inspects: bool = True,
        dates: bool = False,
    ) -> Monitor:
        sessions = self._sessions.setdefault(workspace, KeptSessions(sessions_of(workspace)))
        return scanned(workspace, settings, sessions=sessions, desk=desk, inspects=inspects, dates=dates)


def desk_of(workspace: Path, settings: Settings, passphrase: Callable[[], str] | None = None) -> Desk:
    """The operator's desk, as the settings have it. `passphrase` is asked where the key is encrypted."""
    from datetime import timedelta

    # Signatures take a while to load.
    from agentwatch.decisions.desk import Desk
    from agentwatch.old_cache import remove_old_cache

    if not settings.read_only:
        remove_old_cache()
    lifetime = timedelta(seconds=settings.expires_after)
    return Desk(workspace, passphrase=passphrase, read_only=settings.read_only, lifetime=lifetime)


def shelf_of(workspace: Path | None, settings: Settings) -> Acknowledgements:
    """What the operator has put aside in a workspace; without one, only what is put aside from now on, and kept by
    nobody."""
    # A database takes a while to load.
    from agentwatch.history.acknowledgements import Acknowledgements

    return Acknowledgements(None if workspace is None else state_directory(workspace), writes=not settings.read_only)


def inbox_of(workspace: Path) -> Inbox:
    """What programs ask in a workspace."""
    # It needs the library of JSON.
    from agentwatch.requests.box import Box
    from agentwatch.requests.source import Inbox

    return Inbox(Box(workspace))


def codex_of(workspace: Path) -> CodexClient:
    """What Codex asks in a workspace, held as long as it runs."""
    # Signatures take a while to load.
    from agentwatch.requests.codex import CodexClient
    from agentwatch.requests.holding import Holder

    return CodexClient(workspace, home_of("codex"), Holder(workspace, name="codex"))


def known_desk(workspace: Path) -> Desk | None:
    """The decisions of a workspace where there are any, or what looks like some, for reading."""
    if not (is_there(state_directory(workspace) / "decisions") or is_there(workspace / DOT / "decisions")):
        return None
    # Signatures take a while to load.
    from agentwatch.decisions.desk import Desk

    return Desk(workspace, read_only=True)
