"""Steps that commands share: find their subject, read it, print it, and ask before they act."""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from agentwatch.arguments import workspaces_at
from agentwatch.composition import scanned, shown_worktrees
from agentwatch.config import Settings
from agentwatch.errors import ExitCode, UsageError
from agentwatch.monitor import Monitor
from agentwatch.sources import Problem, complain_of
from agentwatch.text import clean, complain, indented, say, whole
from agentwatch.workspaces import Places

if TYPE_CHECKING:
    from agentwatch.cli.hosts import RemoteWorkspaces
    from agentwatch.decisions.form import Fact
    from agentwatch.decisions.service import LocalService
    from agentwatch.remote.address import Address

PLACEHOLDER: Final = "TEXT"
"""The placeholder for words of the operator in a printed line."""
_SCHEMA_VERSION: Final = 1


def targets_of(words: Sequence[str], settings: Settings) -> tuple[Sequence[Path], Sequence[Address]]:
    """The real paths of directories, addresses and those that hosts are named for, each once; of none, the directory
    where we are. Raises WorkspaceError, UsageError and ConfigError."""
    if not (settings.hosts or any(":" in word for word in words)):
        return workspaces_at(words), ()
    from agentwatch.remote.address import Address, is_address, named, parse

    hosts, paths, addresses = named(settings.hosts), list[str](), list[Address]()
    for word in words or ["."]:
        if word in hosts:
            addresses += hosts[word]
        elif is_address(word):
            addresses.append(parse(word))
        else:
            paths.append(word)
    return workspaces_at(paths) if paths else (), list(dict.fromkeys(addresses))


@contextmanager
def target_of(word: str, settings: Settings) -> Iterator[tuple[Path, RemoteWorkspaces | None]]:
    """One workspace: a directory, an address, or the name of a host with one workspace; and where it is on a host, its
    connection. Raises as `targets_of`."""
    workspaces, addresses = targets_of([word], settings)
    if len(addresses) > 1:
        known = ", ".join(one.written for one in addresses)
        raise UsageError(f"{word} names several workspaces: give one of {known}")
    with _connected(addresses) as far:
        yield workspaces[0] if far is None else far.only(addresses[0]), far


def _connected(addresses: Sequence[Address]) -> AbstractContextManager[RemoteWorkspaces | None]:
    if not addresses:
        return nullcontext()
    from agentwatch.cli.hosts import connected

    return connected(addresses)


def selection_of(options: Namespace, *, is_far: bool = False) -> str | None:
    """The sessions that are asked for, in a workspace here or on a host. Raises UsageError."""
    if options.session is None:
        return None
    if is_far:
        raise UsageError("--session is about sessions of this machine: a host tells of all of its own")
    session: str = options.session
    return session


def print_workspaces(
    options: Namespace,
    settings: Settings,
    print_one: Callable[[Monitor, Namespace, Callable[[Any], None]], int],
    open_desk: Callable[[Path], LocalService | None],
    *,
    with_worktrees: bool = True,
) -> int:
    """Print each workspace with `print_one`, which gets a monitor of it and what takes its JSON document; of one
    alone, also its worktrees.

    Of several, each has its path above it, or its name where it is on a host. As JSON they are one document, in which
    each task names its workspace; the documents of worktrees stand in that of the one that was asked for. Returns the
    highest exit code.
    """
    here, addresses = targets_of(options.paths, settings)
    documents, codes = list[dict[str, Any]](), list[int]()
    with _connected(addresses) as far:
        places, names = (far.places, far.names) if far is not None else ({}, {})
        workspaces = [*here, *places]
        is_one = len(workspaces) == 1
        found = Places(())
        if is_one and here and with_worktrees:
            found = shown_worktrees(here[0], settings, selection_of(options))
        workspaces += [place.workspace for place in found.places]
        for number, workspace in enumerate(workspaces):
            if not options.json and len(workspaces) > 1:
                say(f"{chr(10) if number else ''}{clean(names.get(workspace, str(workspace)))}")
            if far is not None and workspace in places:
                selection_of(options, is_far=True)
                monitor = far.scanned(workspace, settings)
            else:
                desk = open_desk(workspace)
                monitor = scanned(workspace, settings, selection_of(options), desk=desk, requests=True)
            codes.append(print_one(monitor, options, documents.append))
    if options.json:
        for document in documents[is_one:]:
            document["tasks"] = [{**task, "workspace": document["workspace"]} for task in document["tasks"]]
        several = {"schema_version": _SCHEMA_VERSION, "workspaces": documents}
        say(indented({**documents[0], "worktrees": documents[1:]} if is_one else several))
    for complaint in found.complaints:
        complain(clean(complaint))
    return max(codes)


def report_problems(problems: Sequence[Problem]) -> int:
    """Say on standard error what could not be read. Returns the exit code: 1 where there is something."""
    complain_of(problems)
    return ExitCode.NOT if problems else ExitCode.DONE


def use_task_as_path(options: Namespace, complaint: str) -> None:
    """Take TASK for PATH where no task is meant. Raises UsageError with the complaint where it is no directory."""
    if options.task is not None:
        if options.path != "." or not os.path.isdir(options.task):
            raise UsageError(complaint)
        options.path, options.task = options.task, None


def fact_lines(facts: Iterable[Fact]) -> Iterator[str]:
    """The lines of a preview."""
    for label, parts in facts:
        yield f"  {label:<11}{' '.join(words for words, _ in parts)}"


def barred(text: str) -> Iterator[str]:
    """All of a foreign text, each line of it behind a bar."""
    for piece in whole(text):
        yield f"    {piece.text}" if piece.counted else f"  {'│ ' if piece.begins else '│›'}{piece.text}"


def refuse_placeholder(*words: str) -> None:
    """Raises UsageError where one of the operator's words is the one that stands for them in a printed line."""
    if PLACEHOLDER in words:
        raise UsageError(f"not recorded: {PLACEHOLDER} stands for words of yours; write them in its place")


def is_on_terminal() -> bool:
    """Whether somebody can be asked."""
    return sys.stdin.isatty() and sys.stdout.isatty()


def confirmed(question: str) -> bool:
    """Ask on the terminal. Only `y` or `yes` is a yes, and nothing that was typed before the question."""
    import termios

    # First this, as passphrases are asked for: after the question an answer could be thrown away.
    termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)
    sys.stdout.write(f"\n{question} [y/N] ")
    sys.stdout.flush()
    typed = sys.stdin.readline()
    if not typed.endswith("\n"):
        say("")
    return typed.strip().casefold() in ("y", "yes")


def passphrase() -> Callable[[], str] | None:
    """A function that asks on the terminal for the passphrase of the signing key; None where there is no terminal."""
    from getpass import getpass

    return partial(getpass, "Passphrase of the key that signs decisions: ") if sys.stdin.isatty() else None
