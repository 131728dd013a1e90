"""The commands, and the arguments of each as data, from which its parser, its help and its completion are made."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping, Sequence
from functools import partial
from importlib import import_module
from typing import Any, Final, NamedTuple, NoReturn

from agentwatch.arguments import did_you_mean
from agentwatch.errors import UsageError

GROUPS: Final = {
    "watch": {
        "relay [PATH ...]": "tell screens on other machines what is seen here",
        "[PATH ...]": "watch workspaces (default: this directory)",
        "demo": "watch a demo session, to see what it looks like",
        "replay FILE": "play a recorded session, with pause, step and speed",
    },
    "print and go": {
        "tree [PATH ...]": "print the tree once, as text or --json",
        "log [PATH]": "print every state change of files and sessions; --follow goes on",
        "report [PATH ...]": "write the session's account as Markdown, HTML or JSON",
        "check PATH ...": "check handoffs and returns like a linter",
        "rules": "list the rules that are checked",
        "sources [PATH]": "say which agents' sessions are read, and what is skipped",
        "schema [NAME]": "print a JSON schema; without NAME, list them",
        "help [TOPIC]": "read the manual; without TOPIC, list its topics",
        "completion SHELL": "print what makes bash, zsh or fish complete all of this",
    },
    "decide": {
        "pending [PATH ...]": "print what needs you, and the command that answers it",
        "decide TASK": "retry, escalate, abort, respond or accept",
        "answer REQUEST": "answer what a program asks: allow, deny, choose",
        "ack [TASK]": "have a task ask no more until it changes; no decision",
        "keys": "show the key that signs your decisions, or change it; trust keys of others",
        "fleet": "prepare a NATS server for hosts that only dial out",
        "doctor": "check this machine, or with --nats a server of a fleet",
        "attest TASK": "sign how a task stands, for others to verify",
        "verify [FILE]": "verify a decision, statements, or the ledger",
    },
    "for agents": {
        "wait TASK": "wait for your decision, and print it as JSON",
        "claim DECISION": "claim it, so that only one carries it out",
        "init [PATH]": "show or --write what makes an agent hand off, return and wait this way",
        "mcp [PATH]": "serve handoffs, returns and decisions to agents, over MCP",
        "hook": "answer a hook of Claude Code",
    },
}
"""By group and usage. Watching a workspace has no name."""

COMMANDS: Final = {
    "" if usage.startswith("[") else usage.split()[0]: summary
    for group in GROUPS.values()
    for usage, summary in group.items()
}
"""By name."""
_EXIT_CODES: Final = (
    "exit codes: 0 fine, 1 error findings, a task that needs you (tree --fail), or something that could not be read"
    " (tree: with --fail), 2 wrong usage"
)
_COLUMN: Final = 19
_NO_TERMINAL: Final = 80
_DATA: Final = "\0"
"""Before a word that is no option, whatever it looks like; no argument that a system hands over holds it."""

_END: Final = "-\0"
"""In the place of `--`: an option, so that no other takes a word behind it for its value."""


def load_command(name: str) -> Any:
    """The module of a command: `ARGUMENTS`, `run`, its help as docstring, and maybe `EXIT_CODES` and more."""
    return import_module(f"agentwatch.cli.{name or 'watch'}")


class Argument(NamedTuple):
    """One argument, with options of argparse. Of those that have `ways` only one may be given; with True, one must be.

    `offers` is what completion looks up for it, `choices` are all that it can be.
    """

    names: tuple[str, ...]
    options: dict[str, Any]
    offers: str = ""
    choices: Sequence[str] = ()
    ways: bool | None = None

    @property
    def is_option(self) -> bool:
        return self.names[0].startswith("-")


def argument(
    name: str,
    metavar: str,
    text: str,
    *,
    short: str = "",
    offers: str = "",
    choices: Sequence[str] = (),
    also: Mapping[str, str] | None = None,
    **options: Any,
) -> Argument:
    """An argument with a value, and its text in the help. `also` are other names for some of the `choices`."""
    if choices:
        options["type"] = partial(_choice, choices, also or {})
        metavar = metavar or f"{{{','.join(choices)}}}"
    elif not name.startswith("-"):
        options.setdefault("type", _plain)
    return Argument((name, short) if short else (name,), {"metavar": metavar, "help": text, **options}, offers, choices)


def flag(name: str, text: str, *, short: str = "", **options: Any) -> Argument:
    """An option that is there or not."""
    return Argument((name, short) if short else (name,), {"action": "store_true", "help": text, **options})


def one_of(*arguments: Argument, required: bool = False) -> tuple[Argument, ...]:
    """Arguments of which only one may be given, or has to be."""
    return tuple(one._replace(ways=required) for one in arguments)


def format_of(*names: str, default: str = "") -> Argument:
    """In which format it prints; the first one, unless the `default` says how it is found."""
    text = f"default: {default or names[0]}"
    return argument("--format", "", text, choices=names, default=None if default else names[0])


def seconds(text: str) -> float:
    """The type of an argument that is a span of time."""
    from agentwatch.view.times import seconds_of

    span = seconds_of(text)
    if span is None:
        raise argparse.ArgumentTypeError(f"{text!r} is no time; write 90m, 12h or 7d")
    return span


def _choice(choices: Sequence[str], also: Mapping[str, str], word: str) -> str:
    typed = _plain(word).lower()
    choice = also.get(typed, typed)
    if choice in choices:
        return choice
    meant = did_you_mean(typed, choices, also)
    raise argparse.ArgumentTypeError(f"{_plain(word)!r} is none of {', '.join(choices)}{meant and f'; {meant}'}")


def _plain(word: str) -> str:
    """A word as it was written, also one from behind `--`."""
    return word.removeprefix(_DATA)


PATH: Final = argument("path", "PATH", "the workspace (default: here)", nargs="?", default=".")
PLACE: Final = argument(
    "path",
    "PATH",
    "the workspace (default: here), an address on another machine, or your name for it",
    nargs="?",
    default=".",
)
PLACES: Final = argument(
    "paths",
    "PATH",
    "the workspaces (default: here), addresses on other machines, or your names for them",
    nargs="*",
)
TASK: Final = argument("task", "TASK", "the task id", offers="tasks")
YES: Final = flag("--yes", "do not ask")
SESSION: Final = argument("--session", "ID", "of the agents' sessions, only the one whose id begins so")
CREDS: Final = argument(
    "--creds", "FILE", "log in with this .creds file of NATS, or seed of an nkey (default: with your key)"
)
THEME: Final = argument("--theme", "NAME", "the colours; the palette (ctrl+p) lists them")
POLL: Final = flag("--poll", "look again regularly instead of asking the system for events")
SPEED: Final = argument("--speed", "X", "play X times as fast (default: 1)", type=float, default=1.0)


class Parser(argparse.ArgumentParser):
    """Wrong arguments end like every other usage error, and nothing behind `--` is an option, on any Python."""

    known: Sequence[str] = ()
    """The options there are, for who has nearly written one of them."""

    def parse_intermixed_args(self, args: Sequence[str] | None = None, namespace: Any = None) -> argparse.Namespace:  # type: ignore[override]
        """Options and positional arguments in any order. Raises UsageError."""
        # argparse parses them twice, and before Python 3.12 forgets `--` in between.
        words = list(args or ())
        if "--" in words:
            at = words.index("--")
            words[at:] = [_END, *(_DATA + word for word in words[at + 1 :])]
        for word in words:
            name = word.partition("=")[0]
            # As argparse tells options apart, and before it misses what this one stands for.
            is_unknown = word.startswith("--") and name not in self.known and " " not in word
            if is_unknown and (meant := did_you_mean(name, self.known)):
                self.error(f"unrecognized arguments: {word}; {meant}")
        options: argparse.Namespace = super().parse_intermixed_args(words, namespace)
        return options

    def error(self, message: str) -> NoReturn:
        message = message.replace(_DATA, "")
        raise UsageError(f"{message}\n{self.format_usage().strip()}\ntry: {self.prog} --help")


def parser_of(name: str) -> Parser:
    """Reads the arguments of a command, and writes its help."""
    module = load_command(name)
    formatter = argparse.HelpFormatter if name else argparse.RawDescriptionHelpFormatter
    parser = Parser(
        prog=f"agentwatch {name}".strip(),
        usage=getattr(module, "USAGE", None),
        description=module.__doc__ if name else f"{module.__doc__}\n{_overview()}",
        epilog=getattr(module, "EXIT_CODES", _EXIT_CODES),
        formatter_class=partial(formatter, width=_columns() - 2),
        allow_abbrev=False,
    )
    parser.add_argument(_END, action="store_true", dest="end", help=argparse.SUPPRESS)
    groups: dict[bool | None, Any] = {None: parser}
    for one in module.ARGUMENTS:
        if one.ways not in groups:
            groups[one.ways] = parser.add_mutually_exclusive_group(required=one.ways)
        groups[one.ways].add_argument(*one.names, **one.options)
    parser.known = ["--help", *(name for one in module.ARGUMENTS if one.is_option for name in one.names)]
    return parser


def start(name: str, words: Sequence[str]) -> int:
    """Run a command with the words behind its name. Returns its exit code; raises AgentwatchError."""
    module = load_command(name)
    try:
        code: int = module.run(parser_of(name).parse_intermixed_args(words))
    except UsageError as error:
        error.exit_code = getattr(module, "WRONG_USAGE", error.exit_code)
        raise
    return code


def _overview() -> str:
    groups = []
    for group, commands in GROUPS.items():
        lines = (f"  agentwatch {usage:<{_COLUMN}}{summary}" for usage, summary in commands.items())
        groups.append("\n".join((f"{group}:", *lines)))
    more = "`agentwatch help` lists the topics of the manual, `agentwatch help tutorial` is its first.\n"
    more += "`agentwatch COMMAND --help` tells more. A directory named like a command is watched as ./NAME."
    return "\n\n".join((*groups, more))


def _columns() -> int:
    """The width of the terminal, as `shutil` finds it, which takes 3 ms to load."""
    text = os.environ.get("COLUMNS", "")
    try:
        return (int(text) if text.isdecimal() else 0) or os.get_terminal_size().columns or _NO_TERMINAL
    except OSError:
        return _NO_TERMINAL
