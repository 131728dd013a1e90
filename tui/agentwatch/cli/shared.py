"""Steps that commands share: find workspaces, read and print workspaces, and look up tasks."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from functools import partial
from getpass import getpass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from agentwatch.arguments import workspaces_at
from agentwatch.composition import build_host_monitor, find_desk, find_shown_worktrees, scan_workspace
from agentwatch.config import Settings, load
from agentwatch.errors import ExitCode, NoMatchError, UsageError
from agentwatch.monitor import Monitor
from agentwatch.sources import Problem, print_problems
from agentwatch.text import clean, indented_json, print_error, print_text, quote_text
from agentwatch.workspaces import Place

if TYPE_CHECKING:
    from agentwatch.decisions.service import DecisionService
    from agentwatch.delegation.task import Task
    from agentwatch.remote.address import Address
    from agentwatch.remote.host import Fleet

PLACEHOLDER = "TEXT"  # stands for the operator's own words in a printed command line


class Subject(NamedTuple):
    """A workspace that a command reads. If the workspace is on another machine, `fleet` is the connection."""

    place: Place
    settings: Settings
    session: str | None = None
    fleet: Fleet | None = None

    def scan(
        self,
        open_desk: Callable[[Path], DecisionService | None] = find_desk,
        passphrase: Callable[[], str] | None = None,
        *,
        inspects: bool = True,
    ) -> Monitor:
        """Return a monitor that has read the workspace. Blocks. For a host, ignore `open_desk` and `inspects`."""
        workspace, fleet = self.place.workspace, self.fleet
        if not fleet:
            desk, about = open_desk(workspace), (workspace, self.settings, self.session)
            return scan_workspace(*about, desk=desk, inspects=inspects, dates=True, requests=True)
        monitor = build_host_monitor(fleet, self.place, self.settings, passphrase)
        monitor.scan()
        monitor.written = fleet.address_of(workspace)
        monitor.directory = fleet.directory_of(workspace) or monitor.written
        return monitor


def resolve_targets(
    words: Sequence[str], settings: Settings, session: str | None = None
) -> tuple[Sequence[Path], Sequence[Address]]:
    """Return the directories (as real paths) and the addresses that the words name, without repeats. Raise UsageError
    if there are both addresses and a `session`. May also raise WorkspaceError or ConfigError."""
    if not (settings.hosts or any(":" in word for word in words)):
        return workspaces_at(words) if words else (), ()
    from agentwatch.remote.address import Address, is_address, parse, read_hosts

    hosts, paths, addresses = read_hosts(settings.hosts), list[str](), list[Address]()
    for word in words:
        if word in hosts:
            addresses += hosts[word]
        elif is_address(word):
            addresses.append(parse(word))
        else:
            paths.append(word)
    if addresses and session:
        raise UsageError("--session is about sessions of this machine: a host tells of all of its own")
    return workspaces_at(paths) if paths else (), list(dict.fromkeys(addresses))


@contextmanager
def open_subjects(words: Sequence[str], settings: Settings, session: str | None = None) -> Iterator[list[Subject]]:
    """Yield the workspaces that the words name, without repeats. Connections to other machines close at the end. May
    raise DecisionError or the errors of `resolve_targets`."""
    workspaces, addresses = resolve_targets(words, settings, session)
    here = [Subject(Place(one), settings, session) for one in workspaces]
    if not addresses:
        yield here
        return
    from agentwatch.remote.host import Fleet

    with closing(Fleet(addresses)) as fleet:
        fleet.wait_and_find()
        yield [*here, *(Subject(one, settings, session, fleet) for one in fleet.find().places)]


@contextmanager
def open_subject(word: str, settings: Settings, session: str | None = None) -> Iterator[Subject]:
    """Yield the workspace that a word names. Raise UsageError if the word names no workspace or several."""
    with open_subjects([word], settings, session) as found:
        if len(found) != 1:
            known = ", ".join(one.fleet.address_of(one.place.workspace) for one in found if one.fleet)
            raise UsageError(f"{word} names {f'several workspaces: give one of {known}' if known else 'none'}")
        yield found[0]


def other_worktrees(subjects: Sequence[Subject]) -> tuple[list[Subject], Sequence[str]]:
    """If the only subject is a local workspace, return its repository's other worktrees, and complaints. Blocks."""
    if len(subjects) != 1 or subjects[0].fleet:
        return [], ()
    (one,) = subjects
    found = find_shown_worktrees(one.place.workspace, one.settings, one.session)
    return [one._replace(place=place) for place in found.places], found.complaints


def print_workspaces(
    options: Namespace,
    print_one: Callable[[Monitor, Namespace, Callable[[Any], None]], int],
    open_desk: Callable[[Path], DecisionService | None] = find_desk,
) -> int:
    """Print each workspace with `print_one`. Its third argument is a function that takes the JSON document.

    Print the other worktrees of a single workspace, too. Each of several workspaces has a heading. As JSON,
    all workspaces are in one document. Return the highest exit code. Raise NoMatchError if no workspace has the session
    that the options name.
    """
    documents, codes = list[dict[str, Any]](), [0]
    with open_subjects(options.paths or ["."], load(), options.session) as wanted:
        worktrees, complaints = other_worktrees(wanted)
        subjects = [*wanted, *worktrees]
        monitors: Iterable[Monitor] = (one.scan(open_desk) for one in subjects)
        if options.session:
            require_session(options.session, monitors := list(monitors))
        for number, (one, monitor) in enumerate(zip(subjects, monitors, strict=True)):
            if not options.json and len(subjects) > 1:
                name = one.place.name if one.fleet else None
                print_text(f"{chr(10) if number else ''}{clean(name or str(one.place.workspace))}")
            codes += [print_one(monitor, options, documents.append), reach_code(monitor)]
    if options.json:
        is_one = len(wanted) == 1 and not wanted[0].fleet
        for document in documents[is_one:]:
            document["tasks"] = [{**task, "workspace": document["workspace"]} for task in document["tasks"]]
        complete = all(document["complete"] for document in documents)
        several = {"schema_version": 1, "complete": complete, "workspaces": documents}
        print_text(indented_json({**documents[0], "worktrees": documents[1:]} if is_one else several))
    for complaint in complaints:
        print_error(complaint)
    return max(codes)


def require_session(session: str | None, monitors: Iterable[Monitor]) -> None:
    """Raise NoMatchError if the user named a session and no monitor has seen it."""
    if session and not any(one.tree.runs.all for one in monitors):
        raise NoMatchError(f"nothing matches: no session here has an id that begins with {quote_text(session, 60)}")


def reach_code(monitor: Monitor) -> int:
    """Return the exit code that says whether the monitor's host could be reached."""
    return ExitCode.DONE if monitor.tree.lost_since is None else ExitCode.UNREACHED


def report_problems(problems: Sequence[Problem]) -> int:
    """Print the problems in reading to standard error. Return 1 if there are problems, else 0."""
    print_problems(problems)
    return ExitCode.NOT if problems else ExitCode.DONE


def require_task(monitor: Monitor, task_id: str) -> Task:
    """Print the problems in reading, and return a task of a monitor. Raise UsageError if the task is unknown."""
    print_problems(monitor.health.problems)
    if task_id not in monitor.tree.tasks:
        unseen = f"no task {quote_text(task_id)} is seen in {clean(str(monitor.workspace))}"
        raise UsageError(f"{unseen}; `agentwatch pending` lists those that need you")
    return monitor.tree.tasks[task_id]


def require_desk(monitor: Monitor) -> DecisionService:
    """Return the decision service of a monitor. Raise UsageError if the monitor has no decision service."""
    if not monitor.decision_watcher:
        raise UsageError("nothing can be decided here")
    return monitor.decision_watcher.desk


def passphrase_prompt() -> Callable[[], str] | None:
    """Return a function that asks for the signing key's passphrase. Return None if there is no terminal."""
    return partial(getpass, "Passphrase of the key that signs decisions: ") if sys.stdin.isatty() else None
