"""Builds the monitors that watch workspaces, and the objects that a monitor uses."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from agentwatch.config import Settings
from agentwatch.disk import DOT
from agentwatch.monitor import Monitor
from agentwatch.sources import CombinedSource, Source
from agentwatch.sources.files.source import FilesSource, ParsedDocuments
from agentwatch.sources.sessions.registry import has_stores, home_of, open_readers
from agentwatch.sources.worktrees import worktree_made_at
from agentwatch.state import HISTORY, may_exist, read_first_watch, state_directory, user_home
from agentwatch.workspaces import Place, Places, WorkspaceFinder, Workspaces, find_worktrees, gives_row, name_workspaces

if TYPE_CHECKING:
    # These modules are slow to load, so each function imports the modules that it needs.
    from agentwatch.decisions.service import DecisionService
    from agentwatch.delegation.task import Task
    from agentwatch.history.acknowledgements import Acknowledgements
    from agentwatch.remote.address import Address
    from agentwatch.remote.desk import RemoteDesk
    from agentwatch.remote.host import Fleet
    from agentwatch.requests.codex import CodexClient
    from agentwatch.requests.inbox import Inbox
    from agentwatch.sources import Problem
    from agentwatch.sources.sessions.source import SessionsSource


def build_source(
    workspace: Path,
    settings: Settings,
    session: str | None = None,
    sessions: Source | None = None,
    *,
    dates: bool = True,
    parsed: ParsedDocuments | None = None,
) -> Source:
    """Return the source of a workspace's files and sessions. With `dates`, git says when each file was committed."""
    from agentwatch.evidence.git import commit_times

    files = FilesSource(
        workspace,
        settings,
        read_document=None if parsed is None else parsed.open,
        committed=commit_times(workspace) if dates else None,
    )
    return CombinedSource([files, sessions or open_sessions(workspace, session)]) if settings.sessions else files


def open_sessions(workspace: Path, session: str | None = None) -> SessionsSource:
    """Return a source that reads all agent sessions of a workspace, or only one `session`."""
    from agentwatch.sources.sessions.source import SessionsSource

    return SessionsSource(partial(open_readers, workspace), session)


def build_monitor(
    workspace: Path,
    settings: Settings,
    session: str | None = None,
    *,
    open_desk: Callable[[], DecisionService] | None = None,
) -> Monitor:
    """Return a monitor of a workspace for a screen or a relay. The monitor has read nothing yet."""

    def open_codex() -> CodexClient:
        from agentwatch.requests.codex import CodexClient
        from agentwatch.requests.holding import Holder

        return CodexClient(workspace, home_of("codex"), Holder(workspace, name="codex"))

    parsed = ParsedDocuments(200)
    return Monitor(
        workspace,
        settings,
        build_source(workspace, settings, session, parsed=parsed),
        time.time,
        inspects=True,
        parsed=parsed,
        remembers=True,
        open_desk=open_desk,
        open_acknowledgements=partial(build_acknowledgements, workspace),
        open_inbox=partial(build_inbox, workspace),
        open_codex=open_codex if settings.sessions and not settings.read_only else None,
        history_before=history_cutoff(workspace, settings),
    )


def history_cutoff(workspace: Path, settings: Settings) -> float:
    """Return the time (epoch seconds) at which history ends: older tasks are history. The time is `history_after`
    seconds before the first watch. If the worktree was made later, it is the time when the worktree was made."""
    first_look = min(read_first_watch(state_directory(workspace)) or math.inf, time.time())
    return max(first_look - settings.history_after, worktree_made_at(str(workspace)) or -math.inf)


def build_workspaces(
    workspaces: Sequence[Path],
    settings: Settings,
    session: str | None = None,
    *,
    addresses: Sequence[Address] = (),
    everywhere: bool = False,
) -> Workspaces:
    """Return the monitor of these workspaces. `everywhere` adds each workspace with a session in the last day."""
    places = [Place(one, name) for one, name in name_workspaces(workspaces).items()]
    finders: list[Callable[[], Places]] = []
    fleet, nowhere, noun = None, user_home(), "workspace"
    if everywhere:
        finders.append(WorkspaceFinder())
    elif len(workspaces) == 1:
        finders.append(partial(find_worktrees, workspaces[0]))
        noun = "worktree"
    if addresses:
        from agentwatch.remote.host import Fleet

        fleet = Fleet(addresses)
        places += fleet.find().places
        nowhere, noun = Path(f"/nats:{addresses[0].server}"), "host"
        finders.insert(0, fleet.find)
    elif noun == "worktree":
        places = [Place(workspaces[0])]

    def open_place(place: Place) -> Monitor:
        if fleet and place.host:
            return build_host_monitor(fleet, place, settings)
        desk = partial(build_desk, place.workspace, settings)
        return build_monitor(place.workspace, settings, session, open_desk=desk)

    return Workspaces(
        places,
        settings,
        open_place,
        finders=finders,
        noun=noun,
        workspace=places[0].workspace if places else nowhere,
        end=fleet.close if fleet else lambda: None,
    )


def scan_workspace(
    workspace: Path,
    settings: Settings,
    session: str | None = None,
    *,
    sessions: Source | None = None,
    desk: DecisionService | None = None,
    inspects: bool = True,
    requests: bool = False,
    dates: bool = False,
    about: str | None = None,
) -> Monitor:
    """Return a monitor that has read a workspace once. If `about` is a task id, other tasks may be missing. Blocks."""
    state = state_directory(workspace)
    if sessions is None and settings.sessions and not has_stores():
        settings = settings._replace(sessions=False)
    # A command reads all documents before it checks the first document, so the cache must hold many.
    parsed, remembers = ParsedDocuments(100_000) if inspects else None, may_exist(state / HISTORY)
    monitor = Monitor(
        workspace,
        settings,
        build_source(workspace, settings, session, sessions, dates=inspects or dates, parsed=parsed),
        time.time,
        inspects=inspects,
        parsed=parsed,
        remembers=remembers,
        open_desk=None if desk is None else lambda: desk,
        open_acknowledgements=partial(build_acknowledgements, workspace) if remembers else None,
        open_inbox=partial(build_inbox, workspace) if requests and may_exist(state / "requests") else None,
        history_before=history_cutoff(workspace, settings),
    )
    monitor.scan(about)
    return monitor


def find_shown_worktrees(workspace: Path, settings: Settings, session: str | None = None) -> Places:
    """Find the other worktrees of the repository. Return those with a task that is not history. Blocks."""
    found = find_worktrees(workspace)

    def is_shown(place: Place) -> bool:
        desk = find_desk(place.workspace)
        tree = scan_workspace(place.workspace, settings, session, desk=desk, inspects=False, dates=True).tree
        return any(map(gives_row, tree.tasks.values()))

    return found._replace(places=list(filter(is_shown, found.places)))


# A function that loads a workspace, with the same arguments as `scan_workspace`.
Load = Callable[..., Monitor]


def find_task(
    workspace: Path, settings: Settings, task_id: str, load: Load, *, inspects: bool = False
) -> tuple[Task | None, Sequence[Problem]]:
    """Return a task (None if unknown) and the problems in reading. With `inspects`, first check the task's claims."""
    # A check needs the dates of the handoffs, and the names of the files that other tasks wrote. So load all tasks.
    monitor = load(workspace, settings, inspects=False, dates=inspects, about=None if inspects else task_id)
    if inspects:
        check_claims(monitor, [task_id])
    return monitor.tree.tasks.get(task_id), monitor.problems


def check_claims(monitor: Monitor, task_ids: Iterable[str]) -> None:
    """Check the claims of some tasks in a monitor that was built without checks. Blocks."""
    from agentwatch.evidence.inspector import Inspector

    inspector, tree = Inspector(monitor.workspace, monitor.content, monitor.transcript), monitor.tree
    tree.apply(*inspector.check(inspector.find_new_targets(tree, task_ids)))


def build_desk(workspace: Path, settings: Settings, passphrase: Callable[[], str] | None = None) -> DecisionService:
    """Return the decision service of a workspace. The service calls `passphrase` if the signing key is encrypted."""
    from datetime import timedelta

    from agentwatch.decisions.service import DecisionService

    lifetime = timedelta(seconds=settings.retry_expires_after)
    return DecisionService(workspace, passphrase=passphrase, read_only=settings.read_only, lifetime=lifetime)


def find_desk(workspace: Path) -> DecisionService | None:
    """Return a read-only decision service. Return None if nothing was ever decided in the workspace."""
    if not (may_exist(state_directory(workspace) / "decisions") or may_exist(workspace / DOT / "decisions")):
        return None
    from agentwatch.decisions.service import DecisionService

    return DecisionService(workspace, read_only=True)


def build_acknowledgements(workspace: Path) -> Acknowledgements:
    """Return the store of acknowledged and snoozed tasks of a workspace."""
    from agentwatch.history.acknowledgements import Acknowledgements

    return Acknowledgements(state_directory(workspace))


def build_inbox(workspace: Path) -> Inbox:
    """Return the inbox, which reads the requests of agent programs in a workspace."""
    from agentwatch.requests.inbox import Inbox
    from agentwatch.requests.store import RequestStore

    return Inbox(RequestStore(workspace))


def build_host_monitor(
    fleet: Fleet, place: Place, settings: Settings, passphrase: Callable[[], str] | None = None
) -> Monitor:
    """Return a monitor of a workspace on another machine. Acknowledgements are stored on this machine."""
    source = fleet.open_source(place.workspace)

    def open_desk() -> RemoteDesk:
        from datetime import timedelta

        from agentwatch.remote.desk import RemoteDesk

        lifetime, known = timedelta(seconds=settings.retry_expires_after), lambda: source.workspace_id
        return RemoteDesk(source.host, known, place.workspace, lifetime=lifetime, passphrase=passphrase)

    return Monitor(
        place.workspace,
        settings,
        source,
        time.time,
        open_desk=open_desk,
        open_acknowledgements=partial(build_acknowledgements, place.workspace),
        host=place.host,
    )
