"""The commands and their arguments as data. Parsers, help and completion are made from this data."""

import argparse
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, NamedTuple, NoReturn

from agentwatch.errors import UsageError

# The groups of commands, with a summary for each usage. The command that watches a workspace has no name.
GROUPS = {
    "watch": {
        "relay [PATH ...]": "show this machine's workspaces on other machines",
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
        "completion SHELL": "print a script that completes all of this in a shell",
    },
    "decide": {
        "pending [PATH ...]": "print the tasks that need you, with commands that answer",
        "decide TASK": "decide what happens to a task that waits for you",
        "answer REQUEST": "answer a request of a program: allow, deny, choose",
        "ack [TASK]": "have a task ask no more until it changes; no decision",
        "keys": "show the key that signs your decisions, or change it; trust keys of others",
        "fleet": "prepare a NATS server for hosts that only dial out",
        "doctor": "check this machine, or with --nats a server of a fleet",
        "attest TASK": "sign how a task stands, for others to verify",
        "verify [FILE]": "verify a decision, statements, or the ledger",
    },
    "for agents": {
        "wait TASK": "wait for the operator's decision, and print it as JSON",
        "claim DECISION": "claim a decision, so that only one agent carries it out",
        "init [PATH]": "make an agent hand off, return and wait this way",
        "mcp [PATH]": "serve handoffs, returns and decisions to agents, over MCP",
        "hook": "answer a hook of Claude Code",
    },
}

# The summary of each command, by its name.
COMMANDS = {
    "" if usage.startswith("[") else usage.split()[0]: summary
    for group in GROUPS.values()
    for usage, summary in group.items()
}
# The module of each command that has no module of its own name.
_MODULES = {
    "": "screen",
    "ack": "pending",
    "answer": "decide",
    "attest": "verify",
    "demo": "screen",
    "replay": "screen",
    "help": "manual",
    "rules": "manual",
    "schema": "manual",
    "claim": "wait",
    "fleet": "relay",
    "hook": "agents",
    "init": "agents",
    "mcp": "agents",
}
HOST_EXIT_CODES = (
    "exit codes: 0 printed, 1 nothing matches, or something could not be read, 2 wrong usage, 3 a host could not be"
    " reached"
)
_WORD_MARK = "\0"  # marks a word behind `--`, which is never an option; no real argument contains NUL
_END_OPTION = "-\0"  # replaces `--`, so that an option before `--` does not take a word behind `--` as its value


class Argument(NamedTuple):
    """An argument with its options for argparse. In a set whose arguments exclude each other, `required` tells whether
    an argument of the set must be given. Otherwise `required` is None."""

    names: Sequence[str]
    options: dict[str, Any]
    required: bool | None = None

    @property
    def is_option(self) -> bool:
        return self.names[0].startswith("-")


class Command(NamedTuple):
    """A command. Its function `run` returns the exit code. The docstring of `run` is the help text."""

    run: Callable[[argparse.Namespace], int]
    arguments: Sequence[Argument]
    exit_codes: str
    wrong_usage: int


def command(
    *arguments: Argument, exit_codes: str = "exit codes: 0 fine, 2 wrong usage", wrong_usage: int = 2
) -> Callable[[Callable[[argparse.Namespace], int]], Command]:
    """Return a decorator that turns a function into a command."""
    return lambda run: Command(run, arguments, exit_codes, wrong_usage)


def argument(names: str, metavar: str | None, text: str, **options: Any) -> Argument:
    """Return an argument that takes a value. `names` are separated by spaces, and `text` is shown in the help."""
    if not names.startswith("-"):
        options["type"] = _strip_mark
    return Argument(names.split(), {"metavar": metavar, "help": text, **options})


def flag(names: str, text: str, **options: Any) -> Argument:
    """Return an option that takes no value."""
    return Argument(names.split(), {"action": "store_true", "help": text, **options})


def one_of(*arguments: Argument, required: bool = False) -> tuple[Argument, ...]:
    """Make the arguments exclude each other. If `required`, one of the arguments must be given."""
    return tuple(one._replace(required=required) for one in arguments)


def parse_span(text: str) -> float:
    """Convert a time span such as `90m` to seconds, for argparse."""
    from agentwatch.view.words import parse_span

    span = parse_span(text)
    if span is None:
        raise argparse.ArgumentTypeError(f"{text!r} is no time; write 90m, 12h or 7d")
    return span


def _strip_mark(word: str) -> str:
    return word.removeprefix(_WORD_MARK)


PATH = argument("path", "PATH", "the workspace (default: here)", nargs="?", default=".")
PLACE = argument(
    "path",
    "PATH",
    "the workspace (default: here), an address on another machine, or your name for it",
    nargs="?",
    default=".",
)
PLACES = argument(
    "paths", "PATH", "the workspaces (default: here), addresses on other machines, or your names for them", nargs="*"
)
TASK = argument("task", "TASK", "the task id")
YES = flag("--yes", "do not ask")
SESSION = argument("--session", "ID", "show only the session whose id begins with this")
CREDS = argument("--creds", "FILE", "log in with this .creds file of NATS, or this nkey seed (default: your key)")


class Parser(argparse.ArgumentParser):
    """A parser that raises UsageError for wrong arguments."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message.replace(_WORD_MARK, '')}\n{self.format_usage().strip()}\ntry: {self.prog} --help")


def load_command(name: str) -> Command:
    """Import the module of a command, and return the command."""
    found: Command = getattr(import_module(f"agentwatch.cli.{_MODULES.get(name, name)}"), name or "watch")
    return found


def parse(name: str, words: Sequence[str]) -> argparse.Namespace:
    """Parse the arguments of a command, in any order. Words behind `--` are never options. May raise UsageError."""
    words = list(words)
    if "--" in words:
        # argparse parses intermixed arguments twice. Before Python 3.12, the second pass does not see `--` any more.
        at = words.index("--")
        words[at:] = [_END_OPTION, *(_WORD_MARK + word for word in words[at + 1 :])]
    return _make_parser(name).parse_intermixed_args(words)


def start(name: str, words: Sequence[str]) -> int:
    """Run a command with its arguments, and return its exit code. May raise AgentwatchError."""
    found = load_command(name)
    try:
        return found.run(parse(name, words))
    except UsageError as error:
        error.exit_code = found.wrong_usage
        raise


def _make_parser(name: str) -> Parser:
    found = load_command(name)
    text = (found.run.__doc__ or "").strip()
    parser = Parser(
        prog=f"agentwatch {name}".strip(),
        description=text if name else text.replace("\n    ", "\n") + f"\n\n{_overview()}",
        epilog=found.exit_codes,
        formatter_class=argparse.HelpFormatter if name else argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument(_END_OPTION, action="store_true", dest="end", help=argparse.SUPPRESS)
    groups: dict[bool | None, Any] = {None: parser}
    for one in found.arguments:
        if one.required is not None and one.required not in groups:
            groups[one.required] = parser.add_mutually_exclusive_group(required=one.required)
        groups[one.required].add_argument(*one.names, **one.options)
    return parser


def _overview() -> str:
    groups = [
        "\n".join((f"{group}:", *(f"  agentwatch {usage:<19}{summary}" for usage, summary in commands.items())))
        for group, commands in GROUPS.items()
    ]
    more = "`agentwatch help` lists the topics of the manual, `agentwatch help tutorial` is its first.\n"
    more += "`agentwatch COMMAND --help` tells more. A directory named like a command is watched as ./NAME."
    return "\n\n".join((*groups, more))
