"""Steps that commands share: find their subject, read it, print it, and ask before they act."""

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
from agentwatch.composition import known_desk, monitor_of_host, scanned, shown_worktrees
from agentwatch.config import Settings, load
from agentwatch.errors import ExitCode, NoMatchError, UsageError
from agentwatch.monitor import Monitor
from agentwatch.sources import Problem, complain_of
from agentwatch.text import clean, complain, indented, quoted, say
from agentwatch.workspaces import Place

if TYPE_CHECKING:
    from agentwatch.decisions.service import DecisionService
    from agentwatch.delegation.task import Task
    from agentwatch.remote.address import Address
    from agentwatch.remote.host import Fleet

PLACEHOLDER = "TEXT"  # The placeholder for words of the operator in a printed line


class Subject(NamedTuple):
    """A workspace that a command is about, with the fleet that tells of it where it is on another machine."""

    place: Place
    settings: Settings
    session: str | None = None
    fleet: Fleet | None = None

    def scan(
        self,
        open_desk: Callable[[Path], DecisionService | None] = known_desk,
        passphrase: Callable[[], str] | None = None,
        *,
        inspects: bool = True,
    ) -> Monitor:
        """A monitor that has looked once; the desk and whether it `inspects` are for this machine. Blocks."""
        workspace, fleet = self.place.workspace, self.fleet
        if not fleet:
            desk, about = open_desk(workspace), (workspace, self.settings, self.session)
            return scanned(*about, desk=desk, inspects=inspects, dates=True, requests=True)
        monitor = monitor_of_host(fleet, self.place, self.settings, passphrase)
        monitor.scan()
        monitor.written = fleet.address(workspace)
        monitor.directory = fleet.directory(workspace) or monitor.written
        return monitor


def targets_of(
    words: Sequence[str], settings: Settings, session: str | None = None
) -> tuple[Sequence[Path], Sequence[Address]]:
    """The real paths of directories, addresses and those that hosts are named for, each once; a `session` may be asked
    for only here. Raises WorkspaceError, UsageError and ConfigError."""
    if not (settings.hosts or any(":" in word for word in words)):
        return workspaces_at(words) if words else (), ()
    from agentwatch.remote.address import Address, is_address, named, parse

    hosts, paths, addresses = named(settings.hosts), list[str](), list[Address]()
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
def subjects_of(words: Sequence[str], settings: Settings, session: str | None = None) -> Iterator[list[Subject]]:
    """The workspaces that are named, each once; other machines are connected meanwhile. Raises as `targets_of`, and
    DecisionError."""
    workspaces, addresses = targets_of(words, settings, session)
    here = [Subject(Place(one), settings, session) for one in workspaces]
    if not addresses:
        yield here
        return
    from agentwatch.remote.host import Fleet

    with closing(Fleet(addresses)) as fleet:
        fleet.found()
        yield [*here, *(Subject(one, settings, session, fleet) for one in fleet.find().places)]


@contextmanager
def subject_of(word: str, settings: Settings, session: str | None = None) -> Iterator[Subject]:
    """One workspace: a directory, an address, or the name of a host with one workspace. Raises as `subjects_of`."""
    with subjects_of([word], settings, session) as found:
        if len(found) != 1:
            known = ", ".join(one.fleet.address(one.place.workspace) for one in found if one.fleet)
            raise UsageError(f"{word} names {f'several workspaces: give one of {known}' if known else 'none'}")
        yield found[0]


def worktrees_of(subjects: Sequence[Subject]) -> tuple[list[Subject], Sequence[str]]:
    """The other worktrees that are shown with one workspace of this machine, and what is wrong with them. Blocks."""
    if len(subjects) != 1 or subjects[0].fleet:
        return [], ()
    (one,) = subjects
    found = shown_worktrees(one.place.workspace, one.settings, one.session)
    return [one._replace(place=place) for place in found.places], found.complaints


def print_workspaces(
    options: Namespace,
    print_one: Callable[[Monitor, Namespace, Callable[[Any], None]], int],
    open_desk: Callable[[Path], DecisionService | None] = known_desk,
) -> int:
    """Print each workspace with `print_one`, which gets a monitor of it and what takes its JSON document; of one
    alone, also its worktrees.

    Of several, each has its path above it, or its name where it is on a host. As JSON they are one document, in which
    each task names its workspace, and so is one on a host; the documents of worktrees stand in that of the one that was
    asked for. Returns the highest exit code. Raises NoMatchError where a session is asked for that none of them has.
    """
    documents, codes = list[dict[str, Any]](), [0]
    with subjects_of(options.paths or ["."], load(), options.session) as asked:
        worktrees, complaints = worktrees_of(asked)
        subjects = [*asked, *worktrees]
        monitors: Iterable[Monitor] = (one.scan(open_desk) for one in subjects)
        if options.session:
            require_session(options.session, monitors := list(monitors))
        for number, (one, monitor) in enumerate(zip(subjects, monitors, strict=True)):
            if not options.json and len(subjects) > 1:
                name = one.place.name if one.fleet else None
                say(f"{chr(10) if number else ''}{clean(name or str(one.place.workspace))}")
            codes += [print_one(monitor, options, documents.append), unreached(monitor)]
    if options.json:
        is_one = len(asked) == 1 and not asked[0].fleet
        for document in documents[is_one:]:
            document["tasks"] = [{**task, "workspace": document["workspace"]} for task in document["tasks"]]
        complete = all(document["complete"] for document in documents)
        several = {"schema_version": 1, "complete": complete, "workspaces": documents}
        say(indented({**documents[0], "worktrees": documents[1:]} if is_one else several))
    for complaint in complaints:
        complain(complaint)
    return max(codes)


def require_session(session: str | None, monitors: Iterable[Monitor]) -> None:
    """Raises NoMatchError where a session is asked for that none of these monitors has seen."""
    if session and not any(one.tree.runs.all for one in monitors):
        raise NoMatchError(f"nothing matches: no session here has an id that begins with {quoted(session, 60)}")


def unreached(monitor: Monitor) -> int:
    """The exit code of a command that has told what was seen: it says whether a host could not be reached."""
    return ExitCode.DONE if monitor.tree.lost_since is None else ExitCode.UNREACHED


def report_problems(problems: Sequence[Problem]) -> int:
    """Say on standard error what could not be read. Returns the exit code: 1 where there is something."""
    complain_of(problems)
    return ExitCode.NOT if problems else ExitCode.DONE


def task_in(monitor: Monitor, task_id: str) -> Task:
    """A task of a monitor that has looked, once is said what could not be read. Raises UsageError where it is none."""
    complain_of(monitor.health.problems)
    if task_id not in monitor.tree.tasks:
        unseen = f"no task {quoted(task_id)} is seen in {clean(str(monitor.workspace))}"
        raise UsageError(f"{unseen}; `agentwatch pending` lists those that need you")
    return monitor.tree.tasks[task_id]


def desk_in(monitor: Monitor) -> DecisionService:
    """The desk that a monitor was opened with. Raises UsageError where there is none."""
    if not monitor.clerk:
        raise UsageError("nothing can be decided here")
    return monitor.clerk.desk


def passphrase() -> Callable[[], str] | None:
    """A function that asks on the terminal for the passphrase of the signing key; None where there is no terminal."""
    return partial(getpass, "Passphrase of the key that signs decisions: ") if sys.stdin.isatty() else None
