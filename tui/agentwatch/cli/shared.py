"""Steps that commands share: find their subject, read it, print it, and ask before they act."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from agentwatch.arguments import workspaces_at
from agentwatch.composition import desk_of, monitor_of_host, scanned, shown_worktrees
from agentwatch.config import Settings
from agentwatch.errors import ExitCode, UsageError
from agentwatch.monitor import Monitor
from agentwatch.sources import Problem, complain_of
from agentwatch.text import clean, complain, indented, say, whole
from agentwatch.view.words import plural
from agentwatch.workspaces import Place, Places

if TYPE_CHECKING:
    from agentwatch.decisions.form import Fact
    from agentwatch.decisions.ledger import DecisionMade
    from agentwatch.decisions.service import DecisionService
    from agentwatch.remote.address import Address
    from agentwatch.remote.host import Fleet

PLACEHOLDER: Final = "TEXT"
"""The placeholder for words of the operator in a printed line."""


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
    if addresses and session is not None:
        raise UsageError("--session is about sessions of this machine: a host tells of all of its own")
    return workspaces_at(paths) if paths else (), list(dict.fromkeys(addresses))


@contextmanager
def connected(addresses: Sequence[Address]) -> Iterator[Fleet | None]:
    """The fleet behind some addresses, connected meanwhile; None without any. Raises UsageError and DecisionError."""
    if not addresses:
        yield None
        return
    from agentwatch.remote.host import Fleet

    fleet = Fleet(addresses)
    try:
        fleet.found()
        yield fleet
    finally:
        fleet.close()


def places_in(fleet: Fleet | None) -> Sequence[Place]:
    """The workspaces of a fleet as they are known now."""
    return fleet.find().places if fleet is not None else ()


def scanned_in(fleet: Fleet, place: Place, settings: Settings, passphrase: Callable[[], str] | None = None) -> Monitor:
    """A monitor that has looked at a workspace of a fleet. Blocks, and writes nothing."""
    monitor = monitor_of_host(fleet, place, settings, passphrase)
    monitor.scan()
    monitor.written = fleet.address(place.workspace)
    monitor.directory = fleet.directory(place.workspace) or monitor.written
    return monitor


@contextmanager
def target_of(word: str, settings: Settings, session: str | None = None) -> Iterator[tuple[Place, Fleet | None]]:
    """One workspace: a directory, an address, or the name of a host with one workspace; and where it is on a host, its
    fleet. Raises as `targets_of`."""
    workspaces, addresses = targets_of([word], settings, session)
    with connected(addresses) as fleet:
        found = [*map(Place, workspaces), *places_in(fleet)]
        if len(found) != 1:
            known = ", ".join(fleet.address(one.workspace) for one in found) if fleet else ""
            raise UsageError(f"{word} names {f'several workspaces: give one of {known}' if known else 'none'}")
        yield found[0], fleet


@contextmanager
def deciding_in(word: str, settings: Settings) -> Iterator[Callable[[], Monitor]]:
    """How to look at one workspace, as in `target_of`, with a desk that can sign. Raises as that does."""
    with target_of(word, settings) as (place, fleet):
        if fleet is not None:
            monitor = scanned_in(fleet, place, settings, passphrase())
            yield lambda: monitor
        else:
            desk = desk_of(place.workspace, settings, passphrase())
            yield partial(scanned, place.workspace, settings, desk=desk, inspects=False, requests=True, dates=True)


def print_workspaces(
    options: Namespace,
    settings: Settings,
    print_one: Callable[[Monitor, Namespace, Callable[[Any], None]], int],
    open_desk: Callable[[Path], DecisionService | None],
) -> int:
    """Print each workspace with `print_one`, which gets a monitor of it and what takes its JSON document; of one
    alone, also its worktrees.

    Of several, each has its path above it, or its name where it is on a host. As JSON they are one document, in which
    each task names its workspace; the documents of worktrees stand in that of the one that was asked for. Returns the
    highest exit code.
    """
    here, addresses = targets_of(options.paths or ["."], settings, options.session)
    documents, codes, worktrees = list[dict[str, Any]](), list[int](), Places(())
    with connected(addresses) as fleet:
        far = places_in(fleet)
        is_one = len(here) + len(far) == 1
        if is_one and here:
            worktrees = shown_worktrees(here[0], settings, options.session)
        places = [*map(Place, here), *far, *worktrees.places]
        for number, place in enumerate(places):
            if not options.json and len(places) > 1:
                name = place.name if place in far else None
                say(f"{chr(10) if number else ''}{clean(name or str(place.workspace))}")
            if fleet is not None and place in far:
                monitor = scanned_in(fleet, place, settings)
            else:
                desk = open_desk(place.workspace)
                monitor = scanned(place.workspace, settings, options.session, desk=desk, requests=True)
            codes.append(print_one(monitor, options, documents.append))
    if options.json:
        for document in documents[is_one:]:
            document["tasks"] = [{**task, "workspace": document["workspace"]} for task in document["tasks"]]
        several = {"schema_version": 1, "workspaces": documents}
        say(indented({**documents[0], "worktrees": documents[1:]} if is_one else several))
    for complaint in worktrees.complaints:
        complain(clean(complaint))
    return max(codes, default=ExitCode.DONE)


def report_problems(problems: Sequence[Problem]) -> int:
    """Say on standard error what could not be read. Returns the exit code: 1 where there is something."""
    complain_of(problems)
    return ExitCode.NOT if problems else ExitCode.DONE


def fact_lines(facts: Iterable[Fact]) -> Iterator[str]:
    """The lines of a preview."""
    for label, parts in facts:
        yield f"  {label:<11}{' '.join(words for words, _ in parts)}"


def barred(title: str, text: str) -> Iterator[str]:
    """All of a foreign text below its title, each line of it behind a bar."""
    yield from ("", f"  {title}:")
    for piece in whole(text):
        yield f"    {piece.text}" if piece.counted else f"  {'│ ' if piece.begins else '│›'}{piece.text}"


def refuse_placeholder(*words: str | None) -> None:
    """Raises UsageError where one of the operator's words is one that stands for them in a printed line."""
    for word in {*words} & {PLACEHOLDER, "MODE"}:
        raise UsageError(f"not recorded: {word} stands for words of yours; write them in its place")


def refuse_uneven(option: str, answers: Sequence[str], questions: Sequence[str]) -> None:
    """Raises UsageError where there is not one answer for each question."""
    if len(answers) != len(questions):
        given = f"{plural(len(answers), 'answer')} to {plural(len(questions), 'question')}"
        asked = "".join(f"\n  {number}. {clean(one, 300)}" for number, one in enumerate(questions, 1))
        raise UsageError(f"not recorded: {given}; give one {option} for each, in this order:{asked}")


def desk_in(monitor: Monitor) -> DecisionService:
    """The desk that a monitor was opened with. Raises UsageError where there is none."""
    if monitor.clerk is None:
        raise UsageError("nothing can be decided here")
    return monitor.clerk.desk


def say_recorded(made: DecisionMade, what: str) -> None:
    """Say what is in the ledger now, or was before."""
    record = made.record
    before = "" if made.fresh else f"before: {clean(record.operator, 60)} said {record.action} at {record.created_at}; "
    say(f"recorded: {before}{what} {record.decision_id}")
    if made.doubt is not None:
        complain(clean(made.doubt))


def require_yes(options: Namespace) -> None:
    """Raises UsageError where nobody can be asked and the command line says no `--yes`."""
    if not (options.yes or (sys.stdin.isatty() and sys.stdout.isatty())):
        raise UsageError("there is no terminal to ask on; say --yes")


def confirmed(question: str) -> bool:
    """Ask on the terminal. Only `y` or `yes` is a yes, and nothing that was typed before the question."""
    import termios

    # First this, as passphrases are asked for: after the question an answer could be thrown away.
    termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)
    sys.stdout.write(f"\n{question} [y/N] ")
    sys.stdout.flush()
    return sys.stdin.readline().strip().casefold() in ("y", "yes")


def passphrase() -> Callable[[], str] | None:
    """A function that asks on the terminal for the passphrase of the signing key; None where there is no terminal."""
    from getpass import getpass

    return partial(getpass, "Passphrase of the key that signs decisions: ") if sys.stdin.isatty() else None
