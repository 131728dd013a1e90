"""Arguments: what each command takes, and which face it starts. A face is imported only when it runs.

Whatever `--help` does not need is imported where it is used: that answer should cost little more than an interpreter.
"""

from __future__ import annotations

import argparse
import gc
import os
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from agentwatch import __version__
from agentwatch import arguments as arguments_of
from agentwatch.arguments import Parser, add_workspace, workspace_at
from agentwatch.errors import AgentwatchError, UsageError

if TYPE_CHECKING:
    from pathlib import Path

    from agentwatch.config import Settings
    from agentwatch.decisions.desk import Desk
    from agentwatch.delegation.observation import Observation
    from agentwatch.monitor import Monitor
    from agentwatch.sources.sessions.selection import Selection

_DESCRIPTION: Final = """\
Watch coding agents delegate. agentwatch shows the live tree of handoffs and returns in a workspace,
checks every return against its contract, and points at what needs you.

watch:
  agentwatch [PATH]          watch a workspace (default: this directory)
  agentwatch demo            watch a demo session, to see what it looks like
  agentwatch replay FILE     play a recorded session, with pause, step and speed

print and go:
  agentwatch tree [PATH]     print the tree once, as text or --json
  agentwatch log [PATH]      print every state change of files and sessions; --follow goes on
  agentwatch report [PATH]   write the session's account as Markdown, HTML or JSON
  agentwatch check PATH ...  check handoffs and returns like a linter
  agentwatch rules           list the rules that are checked
  agentwatch sources [PATH]  say which agents' sessions are read, and what is skipped

decide:
  agentwatch pending [PATH]  print what needs you, and the command that answers it
  agentwatch decide TASK     retry, escalate, abort, respond or accept
  agentwatch verify [FILE]   verify a decision, or all of them
  agentwatch keys            show the key that signs your decisions, or change it
  agentwatch doctor          check this machine, or with -- CMD an agent's sandbox

for agents:
  agentwatch wait TASK       wait for your decision, and print it as JSON
  agentwatch claim DECISION  claim it, so that only one carries it out
  agentwatch init [PATH]     show or --write what makes an agent hand off, return and wait this way
  agentwatch mcp [PATH]      serve handoffs, returns and decisions to agents, over MCP
  agentwatch hook            answer a hook of Claude Code

agentwatch help lists the topics of the manual, agentwatch help tutorial is its first.
`agentwatch COMMAND --help` tells more. A directory named like a command is watched as ./NAME.
"""

_EXIT_CODES: Final = (
    "exit codes: 0 fine, 1 error findings, a task that needs you (tree --fail), or something that could not be read"
    " (tree: with --fail), 2 wrong usage"
)

_FOR_AGENTS: Final = ("doctor", "hook", "init", "mcp")
_OF_DECISIONS: Final = ("claim", "decide", "keys", "pending", "verify", "wait")

_MOST_PROBLEMS: Final = 20
"""Lines of a recording whose problem is told."""


def run(arguments: Sequence[str]) -> int:
    """Run a command line. Returns the exit code: 0, 1 (findings), 2 (usage, configuration, workspace) or 74, where the
    system refuses what nobody has foreseen, such as to write the output."""
    command = _COMMANDS.get(arguments[0]) if arguments else None
    try:
        try:
            return command(arguments[1:]) if command else _watch(arguments)
        finally:
            # What is still in the buffer may meet a closed pipe or a full disk as well.
            if sys.stdout is not None:
                sys.stdout.flush()
    except AgentwatchError as error:
        from agentwatch.text import clean, complain  # noqa: PLC0415

        complain("\n".join(clean(line) for line in f"agentwatch: {error}".splitlines()))
        return error.exit_code
    except BrokenPipeError:
        # The reader (`| head`) has seen enough.
        _discard_output()
        return 0
    except OSError as error:
        from agentwatch.decisions.errors import reason, remedy  # noqa: PLC0415
        from agentwatch.text import clean, complain  # noqa: PLC0415

        place = f"{error.filename}: " if isinstance(error.filename, str) else ""
        complain(clean(f"agentwatch: {place}{reason(error)}; {remedy(error)}, then try again"))
        _discard_output()
        return os.EX_IOERR
    except KeyboardInterrupt:
        return 130


def _discard_output() -> None:
    """Python would complain once more while it closes the stream."""
    if sys.stdout is not None:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _parser(name: str, description: str, *, raw: bool = False) -> Parser:
    return arguments_of.parser(name, description, _EXIT_CODES, raw=raw)


def _watch(arguments: Sequence[str]) -> int:
    parser = _parser("", _DESCRIPTION, raw=True)
    add_workspace(parser)
    parser.add_argument("--version", "-V", action="version", version=f"agentwatch {__version__}")
    parser.add_argument("--read-only", action="store_true", help="write nothing into the workspace")
    _add_session_options(parser)
    _add_screen_options(parser)
    options = parser.parse_intermixed_args(arguments)
    _require_terminal()
    workspace = workspace_at(options.path)
    settings = _settings(options)
    settings = settings._replace(read_only=options.read_only or settings.read_only)

    def open_desk() -> Desk:
        # In a thread, behind the first frame.
        from agentwatch.composition import desk_of  # noqa: PLC0415

        return desk_of(workspace, settings)

    from agentwatch.app.run import run as run_app  # noqa: PLC0415
    from agentwatch.composition import monitor_of  # noqa: PLC0415
    from agentwatch.place import state_directory  # noqa: PLC0415
    from agentwatch.presence import shown  # noqa: PLC0415

    # Hooks wait for a decision only where somebody can see what it is about.
    with shown(state_directory(workspace)):
        return run_app(monitor_of(workspace, settings, _selection(options), remembers=True, open_desk=open_desk))


def _demo(arguments: Sequence[str]) -> int:
    parser = _parser("demo", "Play a believable session of about two minutes into a temporary workspace and watch it.")
    parser.add_argument("--speed", type=float, default=1.0, metavar="X", help="play X times as fast (default: 1)")
    parser.add_argument("--once", action="store_true", help="play once and stay at the end, instead of starting over")
    _add_screen_options(parser)
    options = parser.parse_intermixed_args(arguments)
    _require_terminal()
    settings = _settings(options)
    from agentwatch.demo.session import DemoSession  # noqa: PLC0415

    session = DemoSession(options.speed, options.once)
    with session as workspace:
        # The window's title counts; nobody is to be called because of a play.
        silent = settings._replace(notify_bell=False, notify_terminal=False, notify_desktop=False)
        played = silent._replace(stale_after=session.stale_after, read_only=False)
        from agentwatch.app.run import demo  # noqa: PLC0415
        from agentwatch.composition import monitor_of  # noqa: PLC0415

        return demo(monitor_of(workspace, played, open_desk=session.open_desk), session.hold)


def _tree(arguments: Sequence[str]) -> int:
    parser = _parser("tree", "Print the delegation tree of a workspace once.")
    add_workspace(parser)
    parser.add_argument("--json", action="store_true", help="print the documented JSON (schema_version 1)")
    parser.add_argument(
        "--fail", action="store_true", help="exit with 1 when a task needs the operator, or not all can be read"
    )
    _add_session_options(parser)
    options = parser.parse_intermixed_args(arguments)
    workspace = workspace_at(options.path)
    from agentwatch.composition import known_desk, scanned  # noqa: PLC0415
    from agentwatch.config import load  # noqa: PLC0415
    from agentwatch.headless.tree import print_tree  # noqa: PLC0415

    monitor = scanned(workspace, load(), _selection(options), desk=known_desk(workspace))
    return print_tree(monitor, as_json=options.json, fail=options.fail)


def _log(arguments: Sequence[str]) -> int:
    parser = _parser("log", "Print every state change of the workspace's files, sessions and decisions, in order.")
    add_workspace(parser)
    parser.add_argument("--json", action="store_true", help="one JSON object a line")
    ways = parser.add_mutually_exclusive_group()
    ways.add_argument("--follow", "-f", action="store_true", help="go on with each change as it happens, until ctrl+c")
    ways.add_argument("--export", metavar="FILE", help="write what was observed into a new FILE, for `replay FILE`")
    _add_session_options(parser)
    options = parser.parse_intermixed_args(arguments)
    workspace = workspace_at(options.path)
    from agentwatch.config import load  # noqa: PLC0415
    from agentwatch.headless.log import export_log, print_log  # noqa: PLC0415

    if options.export is not None:
        return export_log(workspace, load(), _selection(options), options.export)
    return print_log(workspace, load(), _selection(options), as_json=options.json, follow=options.follow)


def _replay(arguments: Sequence[str]) -> int:
    parser = _parser("replay", "Play a recorded session on the screen, with pause, step and speed.")
    words = "a recording, written by `agentwatch log --export FILE`"
    parser.add_argument("file", nargs="?", metavar="FILE", help=words)
    words = "play what is kept of this workspace, and the agents' sessions in it, instead of a file"
    parser.add_argument("--workspace", metavar="PATH", help=words)
    parser.add_argument("--speed", type=float, default=1.0, metavar="X", help="play X times as fast (default: 1)")
    _add_session_options(parser)
    _add_theme_option(parser)
    options = parser.parse_intermixed_args(arguments)
    if (options.file is None) == (options.workspace is None):
        raise UsageError("give either a recording or --workspace PATH\ntry: agentwatch replay --help")
    if options.file is not None and _selection(options) is not None:
        raise UsageError("a recording is played as it is: --since and --session go with --workspace PATH")
    if not 0 < options.speed < float("inf"):
        raise UsageError(f"a speed of {options.speed} cannot be played; give a number above 0, such as 2")
    _require_terminal()
    return _play_file(options) if options.file is not None else _play_workspace(options)


def _play_file(options: argparse.Namespace) -> int:
    from pathlib import Path  # noqa: PLC0415

    from agentwatch.history.export import read  # noqa: PLC0415
    from agentwatch.text import clean, complain  # noqa: PLC0415

    recording = read(Path(options.file))
    for problem in recording.problems[:_MOST_PROBLEMS]:
        complain(clean(problem))
    if len(recording.problems) > _MOST_PROBLEMS:
        complain(f"{len(recording.problems) - _MOST_PROBLEMS} more lines were left out")
    return _play(Path(recording.workspace), options, recording.observations, recording.text)


def _play_workspace(options: argparse.Namespace) -> int:
    workspace = workspace_at(options.workspace)
    from agentwatch.config import load  # noqa: PLC0415
    from agentwatch.headless.past import past_of  # noqa: PLC0415
    from agentwatch.sources.health import complain_of  # noqa: PLC0415

    with past_of(workspace, load(), _selection(options)) as past:
        complain_of(past.problems)
        return _play(workspace, options, past.observations, past.text)


def _play(
    workspace: Path,
    options: argparse.Namespace,
    observations: Sequence[Observation],
    text_of: Callable[[str], str | None],
) -> int:
    from agentwatch.app.run import replay  # noqa: PLC0415
    from agentwatch.history.story import story  # noqa: PLC0415
    from agentwatch.monitor import Monitor  # noqa: PLC0415
    from agentwatch.sources.playback import Playback  # noqa: PLC0415

    playback = Playback(story(observations, time.time()), text_of, options.speed)
    return replay(Monitor(workspace, _settings(options), playback, clock=playback.clock), playback)


def _list_sources(arguments: Sequence[str]) -> int:
    parser = _parser("sources", "Say which agents' sessions were found where, what is read, what is skipped and why.")
    add_workspace(parser)
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_intermixed_args(arguments)
    workspace = workspace_at(options.path)
    from agentwatch.composition import sessions_of  # noqa: PLC0415
    from agentwatch.headless.stores import print_sources  # noqa: PLC0415
    from agentwatch.sources.sessions.registry import looked_in  # noqa: PLC0415

    return print_sources(sessions_of(workspace), looked_in(workspace), as_json=options.json)


def _check(arguments: Sequence[str]) -> int:
    parser = _parser("check", "Check handoffs and returns against their contracts.")
    parser.add_argument("paths", nargs="+", metavar="PATH", help="files, or directories that are searched")
    parser.add_argument("--format", choices=("text", "json", "github"), default="text", help="default: text")
    options = parser.parse_intermixed_args(arguments)
    from agentwatch.linting import check  # noqa: PLC0415

    return check(options.paths, options.format)


def _rules(arguments: Sequence[str]) -> int:
    parser = _parser("rules", "List the rules, or explain one.")
    parser.add_argument("--explain", metavar="ID", help="why the rule is there, with a right and a wrong example")
    parser.add_argument("--format", choices=("text", "json"), default="text", help="default: text")
    options = parser.parse_intermixed_args(arguments)
    from agentwatch.linting import explain, list_rules  # noqa: PLC0415

    return explain(options.explain) if options.explain else list_rules(options.format)


def _help(arguments: Sequence[str]) -> int:
    parser = _parser("help", "Read the manual.")
    parser.add_argument("topic", nargs="?", metavar="TOPIC", help="a topic, or a command (default: list the topics)")
    options = parser.parse_intermixed_args(arguments)
    from agentwatch.manual import print_page, topics  # noqa: PLC0415

    if options.topic in _COMMANDS and options.topic not in topics():
        return _COMMANDS[options.topic](["--help"])
    return print_page(options.topic)


def _report(arguments: Sequence[str]) -> int:
    parser = _parser("report", "Write the account of a session, for a pull request or a post-mortem.")
    add_workspace(parser)
    formats = "default: by the ending of FILE, else md"
    parser.add_argument("--format", choices=("md", "json", "html"), help=formats)
    parser.add_argument("--output", metavar="FILE", help="default: standard output")
    _add_session_options(parser)
    options = parser.parse_intermixed_args(arguments)
    workspace = workspace_at(options.path)
    from agentwatch.composition import known_desk, scanned  # noqa: PLC0415
    from agentwatch.config import load  # noqa: PLC0415
    from agentwatch.report.face import write_report  # noqa: PLC0415

    monitor = scanned(workspace, load(), _selection(options), desk=known_desk(workspace))
    return write_report(monitor, options.format, options.output, now=time.time())


def _decisions(name: str, arguments: Sequence[str]) -> int:
    from agentwatch.deciding.commands import COMMANDS  # noqa: PLC0415

    return COMMANDS[name](arguments, _scanned)


def _for_agents(name: str, arguments: Sequence[str]) -> int:
    from agentwatch.agents.commands import COMMANDS  # noqa: PLC0415

    if name == "mcp":
        from agentwatch.composition import Repeated  # noqa: PLC0415

        return COMMANDS[name](arguments, Repeated())
    return COMMANDS[name](arguments, _scanned)


def _scanned(workspace: Path, settings: Settings, *, desk: Desk | None = None, inspects: bool = True) -> Monitor:
    # Not before a command has understood its arguments.
    from agentwatch.composition import scanned  # noqa: PLC0415

    return scanned(workspace, settings, desk=desk, inspects=inspects)


_COMMANDS: Final[dict[str, Callable[[Sequence[str]], int]]] = {
    "check": _check,
    "demo": _demo,
    "help": _help,
    "log": _log,
    "replay": _replay,
    "report": _report,
    "rules": _rules,
    "sources": _list_sources,
    "tree": _tree,
    **{name: partial(_decisions, name) for name in _OF_DECISIONS},
    **{name: partial(_for_agents, name) for name in _FOR_AGENTS},
}


def _add_theme_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--theme", metavar="NAME", help="the colours; the palette (ctrl+p) lists them")


def _add_screen_options(parser: argparse.ArgumentParser) -> None:
    _add_theme_option(parser)
    words = "look again regularly instead of asking the system for events"
    parser.add_argument("--poll", action="store_true", help=words)


def _settings(options: argparse.Namespace) -> Settings:
    from agentwatch.config import load  # noqa: PLC0415

    settings = load()
    poll = getattr(options, "poll", False) or settings.poll
    return settings._replace(theme=options.theme or settings.theme, poll=poll)


def _require_terminal() -> None:
    # The screen library draws on standard error, so that one counts as well.
    if not all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr)):
        raise UsageError("the screen needs a terminal; `agentwatch tree` prints the tree without one")
    # A fifth of the time until the first frame would go by looking for garbage; from then on the app has it looked for.
    gc.disable()


def _selection(options: argparse.Namespace) -> Selection | None:
    if options.since is None and options.session is None:
        return None
    from agentwatch.sources.sessions.selection import Selection  # noqa: PLC0415

    return Selection(None if options.since is None else time.time() - options.since, options.session)


def _add_session_options(parser: argparse.ArgumentParser) -> None:
    words = "of the agents' sessions, only those active in this time: 90m, 12h, 7d"
    parser.add_argument("--since", type=_seconds, metavar="TIME", help=words)
    parser.add_argument("--session", metavar="ID", help="of the agents' sessions, only the one whose id begins so")


def _seconds(text: str) -> float:
    units = {"s": 1.0, "m": 60.0, "h": 3_600.0, "d": 86_400.0}
    try:
        seconds = float(text[:-1]) * units[text[-1:]]
    except (KeyError, ValueError):
        seconds = -1.0
    if not 0 <= seconds < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is no time; write 90m, 12h or 7d")
    return seconds
