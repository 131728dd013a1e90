"""The commands that look: what watches, plays and prints. A face is imported only when it runs.

Whatever `--help` does not need is imported where it is used: that answer should cost little more than an interpreter.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from agentwatch import __version__
from agentwatch.arguments import workspace_at
from agentwatch.cli.command import (
    COMMANDS,
    PATH,
    PLACE,
    PLACES,
    Argument,
    Command,
    Targets,
    argument,
    flag,
    load,
    one_of,
    scanned,
    seconds,
    target_of,
    targets_of,
)
from agentwatch.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

    from agentwatch.config import Settings
    from agentwatch.delegation.observation import Observation
    from agentwatch.monitor import Monitor
    from agentwatch.sources.sessions.selection import Selection

_WATCH: Final = partial(Command, "watch")
_PRINT: Final = partial(Command, "print and go")

_IN_JSON: Final = ("handoff-packet", "subagent-return", "return-meta", "report-contract")
"""The contracts that have a schema; `contracts.rules` takes a while to load."""
_IN_MARKDOWN: Final = "return-format"
_DAY: Final = 86_400.0
_MOST_PROBLEMS: Final = 20
"""Lines of a recording whose problem is told."""


_JSON: Final = flag("--json", "print the documented JSON (schema_version 1)")
_SPEED: Final = argument("--speed", "X", "play X times as fast (default: 1)", type=float, default=1.0)
_THEME: Final = argument("--theme", "NAME", "the colours; the palette (ctrl+p) lists them", offers="themes")
_POLL: Final = flag("--poll", "look again regularly instead of asking the system for events")
SESSIONS: Final = (
    argument("--since", "TIME", "only what was active in this time: 90m, 12h, 7d", type=seconds),
    argument("--session", "ID", "of the agents' sessions, only the one whose id begins so"),
)


def _format(*names: str, default: str = "") -> Argument:
    return argument(
        "--format",
        "{" + ",".join(names) + "}",
        f"default: {default or names[0]}",
        choices=names,
        default=None if default else names[0],
    )


@_WATCH(
    "[PATH ...]", "watch workspaces (default: this directory)", PLACES,
    flag("--version", "print the version", short="-V", action="version", version=f"agentwatch {__version__}"),
    flag("--all", "watch every workspace in which a session was alive in the last day, or --since"),
    flag("--hosts", "watch the workspaces on other machines that your settings name, too"),
    flag("--read-only", "write nothing into the workspace"), *SESSIONS, _THEME, _POLL,
)  # fmt: skip
def _watch(options: argparse.Namespace) -> int:
    """Watch coding agents delegate. agentwatch shows the live tree of handoffs and returns in a workspace,
    checks every return against its contract, and points at what needs you. Of several workspaces, each has a row."""
    _require_terminal()
    if options.all and options.paths:
        raise UsageError("give either workspaces or --all\ntry: agentwatch --help")
    settings = _settings(options)
    if options.hosts and not settings.hosts:
        raise UsageError("your settings name no hosts: `agentwatch help machines` says how, or give an address")
    # Who asks for the hosts means those; who always sees them means the workspace here, too.
    is_for_hosts = options.all or (options.hosts and not options.paths)
    workspaces, addresses = Targets(()) if is_for_hosts else targets_of(options.paths, settings)
    if options.hosts or (settings.remote_always and not options.paths):
        addresses = targets_of([name for name, _ in settings.hosts], settings).addresses
    settings = settings._replace(read_only=options.read_only or settings.read_only)
    everywhere = (options.since or _DAY) if options.all else None

    from agentwatch.app.run import run
    from agentwatch.composition import watched

    selection = selection_of(options)
    return run(watched(workspaces, settings, selection, addresses=addresses, everywhere=everywhere))


@_WATCH(
    "demo", "watch a demo session, to see what it looks like", _SPEED,
    flag("--once", "play once and stay at the end, instead of starting over"), _THEME, _POLL,
)  # fmt: skip
def _demo(options: argparse.Namespace) -> int:
    """Play a believable session of about two minutes into a temporary workspace and watch it."""
    _require_terminal()
    settings = _settings(options)
    from agentwatch.app.run import demo
    from agentwatch.composition import monitor_of
    from agentwatch.demo.session import DemoSession

    session = DemoSession(options.speed, options.once)
    with session as workspace:
        # The window's title counts; nobody is to be called because of a play.
        silent = settings._replace(notify_bell=False, notify_terminal=False, notify_desktop=False)
        played = silent._replace(stale_after=session.stale_after, read_only=False)
        monitor = monitor_of(workspace, played, open_desk=session.open_desk, open_inbox=session.open_inbox)
        return demo(monitor, session.hold, session.stay, lambda: session.starts_over_in)


@_WATCH(
    "replay FILE", "play a recorded session, with pause, step and speed",
    argument("file", "FILE", "a recording, written by `agentwatch log --export FILE`", nargs="?"),
    argument("--workspace", "PATH",
             "play what is kept of this workspace, and the agents' sessions in it, instead of a file"),
    _SPEED, *SESSIONS, _THEME,
)  # fmt: skip
def _replay(options: argparse.Namespace) -> int:
    """Play a recorded session on the screen, with pause, step and speed."""
    if (options.file is None) == (options.workspace is None):
        raise UsageError("give either a recording or --workspace PATH\ntry: agentwatch replay --help")
    if options.file is not None and selection_of(options) is not None:
        raise UsageError("a recording is played as it is: --since and --session go with --workspace PATH")
    if not 0 < options.speed < math.inf:
        raise UsageError(f"a speed of {options.speed} cannot be played; give a number above 0, such as 2")
    _require_terminal()
    if options.file is not None:
        return _play_file(options)
    workspace = workspace_at(options.workspace)
    from agentwatch.commands.log import past_of
    from agentwatch.sources.health import complain_of

    with past_of(workspace, load(), selection_of(options)) as past:
        complain_of(past.problems)
        return _play(workspace, options, past.observations, past.text)


def _play_file(options: argparse.Namespace) -> int:
    from pathlib import Path

    from agentwatch.history.export import read
    from agentwatch.text import clean, complain

    recording = read(Path(options.file))
    for problem in recording.problems[:_MOST_PROBLEMS]:
        complain(clean(problem))
    if len(recording.problems) > _MOST_PROBLEMS:
        complain(f"{len(recording.problems) - _MOST_PROBLEMS} more lines were left out")
    return _play(Path(recording.workspace), options, recording.observations, recording.text)


def _play(
    workspace: Path,
    options: argparse.Namespace,
    observations: Sequence[Observation],
    text_of: Callable[[str], str | None],
) -> int:
    from agentwatch.app.run import replay
    from agentwatch.history.story import story
    from agentwatch.monitor import Monitor
    from agentwatch.sources.playback import Playback

    playback = Playback(story(observations, time.time()), text_of, options.speed)
    monitor = Monitor(workspace, _settings(options), playback, clock=playback.clock, keeps_deleted=True)
    return replay(monitor, playback)


@_PRINT(
    "tree [PATH ...]", "print the tree once, as text or --json", PLACES, _JSON,
    flag("--fail", "exit with 1 when a task needs the operator, or not all can be read"),
    argument("--where", "QUERY", "only the tasks that match, with those above them: 'state:failed since:1h'",
             default=""), *SESSIONS,
)  # fmt: skip
def _tree(options: argparse.Namespace) -> int:
    """Print the delegation tree of a workspace once; of several, each below its path."""
    workspaces, addresses = targets_of(options.paths, load())
    from agentwatch.commands.several import print_each
    from agentwatch.commands.tree import print_tree
    from agentwatch.composition import shown_worktrees
    from agentwatch.far import far_off
    from agentwatch.monitors import Places

    def print_one(workspace: Path, say_document: Callable[[dict[str, Any]], None]) -> int:
        is_far = workspace in far.places
        looked = far.scanned(workspace, load(), selection_of(options)) if is_far else _looked_at(workspace, options)
        monitor, left_out = looked, 0
        if not (monitor.host or monitor.tree.totals.tasks or options.json or selection_of(options) is None):
            # Nobody has counted the sessions that were not asked for: most of them were not even read.
            left_out = scanned(workspace, load(), inspects=False).tree.totals.tasks
        wishes = {"as_json": options.json, "fail": options.fail, "where": options.where}
        return print_tree(monitor, left_out=left_out, say_document=say_document, **wishes)

    def find() -> Places:
        return shown_worktrees(workspaces[0], load(), selection_of(options)) if workspaces else Places(())

    with far_off(addresses) as far:
        return print_each([*workspaces, *far.places], print_one, as_json=options.json, names=far.names, find=find)


@_PRINT(
    "log [PATH]", "print every state change of files and sessions; --follow goes on", PLACE,
    flag("--json", "one JSON object a line"),
    flag("--activity", "also what working tasks do: each call, words and todo"),
    *one_of(flag("--follow", "go on with each change as it happens, until ctrl+c", short="-f"),
            argument("--export", "FILE", "write what was observed into a new FILE, for `replay FILE`")),
    *SESSIONS, stays=True,
)  # fmt: skip
def _log(options: argparse.Namespace) -> int:
    """Print every state change of the workspace's files, sessions and decisions, in order."""
    target = target_of(options.path, load())
    from agentwatch.commands.log import export_log, follow_host, print_log

    if isinstance(target, tuple):
        if not options.follow or selection_of(options) is not None:
            raise UsageError(
                f"{target.written}: its host has the past: run `agentwatch log` there, or say --follow only"
            )
        from agentwatch.far import far_off

        with far_off([target]) as far:
            return follow_host(far.source(far.only(target)), load(), as_json=options.json, activity=options.activity)
    workspace = target

    if options.export is not None:
        return export_log(workspace, load(), selection_of(options), options.export)
    return print_log(
        workspace,
        load(),
        selection_of(options),
        as_json=options.json,
        follow=options.follow,
        activity=options.activity,
    )


@_PRINT(
    "report [PATH]", "write the session's account as Markdown, HTML or JSON", PATH,
    _format("md", "json", "html", default="by the ending of FILE, else md"),
    argument("--output", "FILE", "default: standard output"), *SESSIONS,
)  # fmt: skip
def _report(options: argparse.Namespace) -> int:
    """Write the account of a session, for a pull request or a post-mortem."""
    from agentwatch.composition import shown_worktrees
    from agentwatch.report.face import write_report

    workspace = workspace_at(options.path)
    monitor, found = _looked_at(workspace, options), shown_worktrees(workspace, load(), selection_of(options))
    others = [_looked_at(place.workspace, options) for place in found.places]
    return write_report(monitor, options.format, options.output, now=time.time(), others=others)


@_PRINT(
    "check PATH ...", "check handoffs and returns like a linter",
    argument("paths", "PATH", "files, or directories that are searched", nargs="+"),
    _format("text", "json", "github"),
)  # fmt: skip
def _check(options: argparse.Namespace) -> int:
    """Check handoffs and returns against their contracts."""
    from agentwatch.commands.check import check

    return check(options.paths, options.format)


@_PRINT(
    "rules", "list the rules that are checked",
    argument("--explain", "ID", "why the rule is there, with a right and a wrong example", offers="rules"),
    argument("--schema", "CONTRACT", f"its JSON Schema: {', '.join(_IN_JSON)}", choices=(*_IN_JSON, _IN_MARKDOWN)),
    _format("text", "json"),
)  # fmt: skip
def _rules(options: argparse.Namespace) -> int:
    """List the rules, explain one, or print the JSON Schema of a contract."""
    from agentwatch.commands.check import explain, list_rules, print_schema

    if options.schema == _IN_MARKDOWN:
        raise UsageError(
            "return-format is Markdown and has no JSON Schema; `agentwatch help contracts` has a whole example,"
            " and `agentwatch check FILE` judges yours"
        )
    if options.schema:
        return print_schema(options.schema)
    return explain(options.explain) if options.explain else list_rules(options.format)


@_PRINT(
    "sources [PATH]", "say which agents' sessions are read, and what is skipped", PATH, flag("--json", "print JSON")
)
def _sources(options: argparse.Namespace) -> int:
    """Say which agents' sessions were found where, what is read, what is skipped and why."""
    workspace = workspace_at(options.path)
    from agentwatch.commands.sources import print_sources
    from agentwatch.composition import sessions_of
    from agentwatch.sources.sessions.registry import looked_in

    return print_sources(sessions_of(workspace), looked_in(workspace), as_json=options.json)


@_PRINT(
    "help [TOPIC]", "read the manual; without TOPIC, list its topics",
    argument("topic", "TOPIC", "a topic, or a command (default: list the topics)", nargs="?", offers="topics"),
)  # fmt: skip
def _help(options: argparse.Namespace) -> int:
    """Read the manual."""
    from agentwatch.manual import print_page, topics

    if options.topic in COMMANDS and options.topic not in topics():
        return COMMANDS[options.topic].start(["--help"])
    return print_page(options.topic)


@_PRINT(
    "completion SHELL", "print what makes bash, zsh or fish complete all of this",
    argument("shell", "SHELL", "bash, zsh or fish", choices=("bash", "zsh", "fish")), behind="words",
)  # fmt: skip
def _completion(options: argparse.Namespace) -> int:
    """Print a script that makes a shell complete commands, options, task ids, modes, rules, agents and themes.
    With -- WORD ..., print what the last word of a command line could be."""
    from agentwatch.cli.completion import offer, print_script

    return print_script(options.shell) if options.words is None else offer(options.shell, options.words)


def _looked_at(workspace: Path, options: argparse.Namespace) -> Monitor:
    """The workspace, its sessions and what is decided, as they are now."""
    from agentwatch.composition import known_desk

    return scanned(workspace, load(), selection_of(options), desk=known_desk(workspace))


def _settings(options: argparse.Namespace) -> Settings:
    settings = load()
    poll = getattr(options, "poll", False) or settings.poll
    return settings._replace(theme=options.theme or settings.theme, poll=poll)


def _require_terminal() -> None:
    # The screen library draws on standard error, so that one counts as well.
    streams = {"input": sys.stdin, "output": sys.stdout, "error": sys.stderr}
    others = [f"standard {name}" for name, stream in streams.items() if stream is None or not stream.isatty()]
    if others:
        said = f"{' and '.join(others)} {'is' if len(others) == 1 else 'are'} none"
        raise UsageError(f"the screen needs a terminal, and {said}; `agentwatch tree` prints the tree without one")


def selection_of(options: argparse.Namespace) -> Selection | None:
    if options.since is None and options.session is None:
        return None
    from agentwatch.sources.sessions.selection import Selection

    return Selection(None if options.since is None else time.time() - options.since, options.session)
