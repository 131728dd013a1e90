"""What a command is: its name, its words, what it takes and what runs it, each said once.

Its parser, its line in `agentwatch --help` and what a shell completes are made of that.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from agentwatch.arguments import Parser, did_you_mean, parser, plain, workspaces_at
from agentwatch.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

    from agentwatch.config import Settings
    from agentwatch.decisions.desk import Desk
    from agentwatch.monitor import Monitor
    from agentwatch.remote.address import Address
    from agentwatch.sources.sessions.selection import Selection

COMMANDS: Final[dict[str, Command]] = {}
"""By name. What watches a workspace has no name."""

_EXIT_CODES: Final = (
    "exit codes: 0 fine, 1 error findings, a task that needs you (tree --fail), or something that could not be read"
    " (tree: with --fail), 2 wrong usage"
)
_GROUPS: Final = ("watch", "print and go", "decide", "for agents")
_COLUMN: Final = 19


class Argument(NamedTuple):
    """One argument. `wishes` are argparse's. Of those that have `ways` only one may be given; with True, one must be.

    `offers` is what completion looks up for it, `choices` are all that it can be.
    """

    names: tuple[str, ...]
    wishes: dict[str, Any]
    offers: str = ""
    choices: Sequence[str] = ()
    ways: bool | None = None

    @property
    def is_option(self) -> bool:
        return self.names[0].startswith("-")

    @property
    def is_flag(self) -> bool:
        return "action" in self.wishes and self.wishes["action"] != "append"


def argument(
    name: str,
    metavar: str,
    words: str,
    *,
    short: str = "",
    offers: str = "",
    choices: Sequence[str] = (),
    also: Mapping[str, str] | None = None,
    **wishes: Any,
) -> Argument:
    """An argument with a value, and its words in the help. `also` are other names for some of the `choices`."""
    if choices:
        wishes["type"] = _one_of_these(choices, also or {})
        metavar = metavar or f"{{{','.join(choices)}}}"
    names = (name, short) if short else (name,)
    return Argument(names, {"metavar": metavar, "help": words, **wishes}, offers, choices)


def flag(name: str, words: str, *, short: str = "", **wishes: Any) -> Argument:
    """An option that is there or not."""
    return Argument((name, short) if short else (name,), {"action": "store_true", "help": words, **wishes})


def seconds(text: str) -> float:
    """The type of an argument that is a span of time."""
    from agentwatch.view.times import seconds_of

    span = seconds_of(text)
    if span is not None:
        return span
    raise argparse.ArgumentTypeError(f"{text!r} is no time; write 90m, 12h or 7d")


def one_of(*arguments: Argument, required: bool = False) -> tuple[Argument, ...]:
    """Arguments of which only one may be given, or has to be."""
    return tuple(one._replace(ways=required) for one in arguments)


class Command:
    """A decorator of what runs a command, whose docstring is what the help says; it gets what was given on the line.

    `usage` and `summary` are its line in the overview, under the heading `group`; the name is the first word of `usage`
    unless that is an argument. `codes` says how it ends. One that `stays` runs for long. What stands behind `--` is
    kept under the name `behind` where there is one: a list, or None. `wrong` is the exit code of wrong usage.
    """

    run: Callable[[argparse.Namespace], int]

    def __init__(
        self,
        group: str,
        usage: str,
        summary: str,
        *takes: Argument,
        codes: str = _EXIT_CODES,
        stays: bool = False,
        behind: str = "",
        wrong: int = UsageError.exit_code,
    ) -> None:
        self.name = "" if usage.startswith("[") else usage.split(maxsplit=1)[0]
        self.group, self.usage, self.summary, self.takes, self.codes = group, usage, summary, takes, codes
        self.stays, self.behind, self._wrong = stays, behind, wrong

    def __call__(self, run: Callable[[argparse.Namespace], int]) -> Callable[[argparse.Namespace], int]:
        self.run = run
        COMMANDS[self.name] = self
        return run

    def start(self, words: Sequence[str]) -> int:
        """Run it with what stands behind its name. Returns its exit code; raises AgentwatchError."""
        behind = None
        if self.behind and "--" in words:
            # argparse would take a second `--`, which is somebody else's, for its own.
            at = list(words).index("--")
            words, behind = words[:at], words[at + 1 :]
        try:
            options = self.parser().parse_intermixed_args(words)
            setattr(options, self.behind or "behind", behind)
            return self.run(options)
        except UsageError as error:
            error.exit_code = self._wrong
            raise

    def parser(self) -> Parser:
        """Reads its arguments, and writes its help."""
        says = "\n".join(line.strip() for line in (self.run.__doc__ or "").splitlines())
        made = parser(self.name, says if self.name else f"{says}\n\n{_overview()}", self.codes, raw=not self.name)
        ways: dict[bool | None, Any] = {None: made}
        for one in self.takes:
            if one.ways is not None and one.ways not in ways:
                ways[one.ways] = made.add_mutually_exclusive_group(required=one.ways)
            ways[one.ways].add_argument(*one.names, **one.wishes)
        made.known = ["--help", *(name for one in self.takes if one.is_option for name in one.names)]
        if self.behind:
            made.usage = f"{made.format_usage().removeprefix('usage: ').rstrip()} [-- {self.behind.upper()} ...]"
        return made


class Targets(NamedTuple):
    """What a command is about: workspaces of this machine, by their real paths, and addresses on others."""

    workspaces: Sequence[Path]
    addresses: Sequence[Address] = ()


def targets_of(words: Sequence[str], settings: Settings) -> Targets:
    """Directories, addresses and names of hosts, each once; of none, the directory where we are. Raises
    WorkspaceError, UsageError and ConfigError."""
    if not (settings.hosts or any(map(_is_far, words))):
        return Targets(workspaces_at(words))
    from agentwatch.remote.address import Address, is_address, named, parse

    hosts, paths, addresses = named(settings.hosts), list[str](), list[Address]()
    for word in words or ["."]:
        if word in hosts:
            addresses += hosts[word]
        elif is_address(word):
            addresses.append(parse(word))
        else:
            paths.append(word)
    return Targets(workspaces_at(paths) if paths else (), list(dict.fromkeys(addresses)))


def target_of(word: str, settings: Settings) -> Path | Address:
    """One workspace: a directory, an address, or the name of a host with one workspace. Raises as `targets_of`."""
    workspaces, addresses = targets_of([word], settings)
    if len(addresses) > 1:
        known = ", ".join(one.written for one in addresses)
        raise UsageError(f"{word} names several workspaces: give one of {known}")
    return addresses[0] if addresses else workspaces[0]


def _is_far(word: str) -> bool:
    """Whether a word is an address; raises UsageError where it was meant for one."""
    if ":" in word and not os.path.lexists(word) and "://" not in word:
        from agentwatch.remote.address import meant

        if question := meant(word):
            raise UsageError(f"{word} is neither a directory nor an address; {question}")
    return "://" in word


PATH: Final = argument("path", "PATH", "the workspace (default: here)", nargs="?", default=".")
PATHS: Final = argument("paths", "PATH", "the workspaces (default: here)", nargs="*")
PLACE: Final = argument(
    "path", "PATH", "the workspace (default: here), an address on another machine, or your name for it",
    nargs="?", default=".", offers="hosts",
)  # fmt: skip
PLACES: Final = argument(
    "paths", "PATH", "the workspaces (default: here), addresses on other machines, or your names for them",
    nargs="*", offers="hosts",
)  # fmt: skip


SESSIONS: Final = (
    argument("--since", "TIME", "only what was active in this time: 90m, 12h, 7d", type=seconds),
    argument("--session", "ID", "of the agents' sessions, only the one whose id begins so"),
)


def load() -> Settings:
    """The operator's settings. Raises ConfigError."""
    # Like all that no argument needs, imported where it is used.
    from agentwatch.config import load

    return load()


def scanned(
    workspace: Path,
    settings: Settings,
    selection: Selection | None = None,
    *,
    desk: Desk | None = None,
    inspects: bool = True,
    requests: bool = True,
    dates: bool = False,
) -> Monitor:
    """A workspace as it is now, for the operator; see `composition.scanned`."""
    from agentwatch.composition import scanned

    return scanned(workspace, settings, selection, desk=desk, inspects=inspects, requests=requests, dates=dates)


def selection_of(options: argparse.Namespace, addresses: Sequence[Address] = ()) -> Selection | None:
    """What `SESSIONS` say, for workspaces here and behind these addresses. Raises UsageError."""
    if options.since is None and options.session is None:
        return None
    if options.session is not None and addresses:
        raise UsageError("--session is about sessions of this machine: a host tells of all of its own")
    from agentwatch.sources.sessions.selection import Selection

    return Selection(None if options.since is None else time.time() - options.since, options.session)


def _overview() -> str:
    groups = {group: [f"{group}:"] for group in _GROUPS}
    for one in COMMANDS.values():
        groups[one.group].append(f"  agentwatch {one.usage:<{_COLUMN}}{one.summary}")
    more = "`agentwatch help` lists the topics of the manual, `agentwatch help tutorial` is its first.\n"
    more += "`agentwatch COMMAND --help` tells more. A directory named like a command is watched as ./NAME."
    return "\n\n".join((*map("\n".join, groups.values()), more))


def _one_of_these(choices: Sequence[str], also: Mapping[str, str]) -> Callable[[str], str]:
    def chosen(word: str) -> str:
        said = plain(word).lower()
        choice = also.get(said, said)
        if choice in choices:
            return choice
        meant = did_you_mean(said, choices, also)
        raise argparse.ArgumentTypeError(f"{plain(word)!r} is none of {', '.join(choices)}{meant and f'; {meant}'}")

    return chosen
