"""Arguments and composition: what each command is made of. A face is imported only when it runs.

Whatever `--help` does not need is imported where it is used: that answer should cost little more than an interpreter.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, NoReturn

from agentwatch import __version__
from agentwatch.errors import AgentwatchError, UsageError, WorkspaceError

if TYPE_CHECKING:
    from pathlib import Path

    from agentwatch.config import Settings
    from agentwatch.monitor import Monitor
    from agentwatch.sources.files.settings import FilesSettings

_DESCRIPTION: Final = """\
Watch coding agents delegate. agentwatch shows the live tree of handoffs and returns in a workspace,
checks every return against its contract, and points at what needs you.

commands:
  agentwatch [PATH]          watch a workspace (default: this directory)
  agentwatch demo            watch a demo session, to see what it looks like
  agentwatch tree [PATH]     print the tree once, as text or --json
  agentwatch log [PATH]      print every state change that was ever observed
  agentwatch check PATH ...  check handoffs and returns like a linter
  agentwatch rules           list the rules that are checked

`agentwatch COMMAND --help` tells more. A directory named like a command is watched as ./NAME.
"""

_EXIT_CODES: Final = "exit codes: 0 fine, 1 error findings or a task that needs you (--fail), 2 wrong usage"


class _Parser(argparse.ArgumentParser):
    """Wrong arguments end like every other usage error."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message}\n{self.format_usage().strip()}\ntry: {self.prog} --help")


def run(arguments: Sequence[str]) -> int:
    """Run a command line. Returns the exit code: 0, 1 (findings) or 2 (usage, configuration, workspace)."""
    command = _COMMANDS.get(arguments[0]) if arguments else None
    try:
        return command(arguments[1:]) if command else _watch(arguments)
    except AgentwatchError as error:
        from agentwatch.text import clean, complain  # noqa: PLC0415

        complain("\n".join(clean(line) for line in f"agentwatch: {error}".splitlines()))
        return error.exit_code
    except BrokenPipeError:
        # The reader (`| head`) has seen enough. Python would complain once more while it closes the stream.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        return 130


def _parser(name: str, description: str, *, raw: bool = False) -> _Parser:
    return _Parser(
        prog=f"agentwatch {name}".strip(),
        description=description,
        epilog=_EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter if raw else argparse.HelpFormatter,
        allow_abbrev=False,
    )


def _watch(arguments: Sequence[str]) -> int:
    parser = _parser("", _DESCRIPTION, raw=True)
    parser.add_argument("path", nargs="?", default=".", metavar="PATH", help="the workspace (default: here)")
    parser.add_argument("--version", "-V", action="version", version=f"agentwatch {__version__}")
    parser.add_argument("--read-only", action="store_true", help="write nothing into the workspace")
    _add_screen_options(parser)
    options = parser.parse_args(arguments)
    _require_terminal()
    workspace = _workspace(options.path)
    from dataclasses import replace  # noqa: PLC0415

    settings = _settings(options)
    settings = replace(settings, read_only=options.read_only or settings.read_only)
    return _show(workspace, settings, keeps=True)


def _demo(arguments: Sequence[str]) -> int:
    parser = _parser("demo", "Play a believable session of about two minutes into a temporary workspace and watch it.")
    parser.add_argument("--speed", type=float, default=1.0, metavar="X", help="play X times as fast (default: 1)")
    parser.add_argument("--once", action="store_true", help="play once and stay at the end, instead of starting over")
    _add_screen_options(parser)
    options = parser.parse_args(arguments)
    _require_terminal()
    settings = _settings(options)
    from dataclasses import replace  # noqa: PLC0415

    from agentwatch.demo.session import DemoSession  # noqa: PLC0415

    session = DemoSession(options.speed, options.once)
    with session as workspace:
        return _show(workspace, replace(settings, stale_after=session.stale_after))


def _tree(arguments: Sequence[str]) -> int:
    parser = _parser("tree", "Print the delegation tree of a workspace once.")
    parser.add_argument("path", nargs="?", default=".", metavar="PATH", help="the workspace (default: here)")
    parser.add_argument("--json", action="store_true", help="print the documented JSON (schema_version 1)")
    parser.add_argument("--fail", action="store_true", help="exit with 1 when a task needs the operator")
    options = parser.parse_args(arguments)
    workspace = _workspace(options.path)
    from agentwatch.config import load  # noqa: PLC0415
    from agentwatch.headless import print_tree  # noqa: PLC0415

    monitor = _monitor(workspace, load())
    monitor.scan()
    return print_tree(monitor, as_json=options.json, fail=options.fail)


def _log(arguments: Sequence[str]) -> int:
    parser = _parser("log", "Print every state change that was observed while the workspace was watched, in order.")
    parser.add_argument("path", nargs="?", default=".", metavar="PATH", help="the workspace (default: here)")
    parser.add_argument("--json", action="store_true", help="one JSON object a line")
    options = parser.parse_args(arguments)
    workspace = _workspace(options.path)
    from agentwatch.headless import print_log  # noqa: PLC0415

    return print_log(workspace, as_json=options.json)


def _check(arguments: Sequence[str]) -> int:
    parser = _parser("check", "Check handoffs and returns against their contracts.")
    parser.add_argument("paths", nargs="+", metavar="PATH", help="files, or directories that are searched")
    parser.add_argument("--format", choices=("text", "json", "github"), default="text", help="default: text")
    options = parser.parse_args(arguments)
    from agentwatch.linting import check  # noqa: PLC0415

    return check(options.paths, options.format)


def _rules(arguments: Sequence[str]) -> int:
    parser = _parser("rules", "List the rules, or explain one.")
    parser.add_argument("--explain", metavar="ID", help="why the rule is there, with a right and a wrong example")
    parser.add_argument("--format", choices=("text", "json"), default="text", help="default: text")
    options = parser.parse_args(arguments)
    from agentwatch.linting import explain, list_rules  # noqa: PLC0415

    return explain(options.explain) if options.explain else list_rules(options.format)


_COMMANDS: Final[dict[str, Callable[[Sequence[str]], int]]] = {
    "check": _check,
    "demo": _demo,
    "log": _log,
    "rules": _rules,
    "tree": _tree,
}


def _add_screen_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--theme", metavar="NAME", help="the colours; the palette (ctrl+p) lists them")
    words = "look again regularly instead of asking the system for events"
    parser.add_argument("--poll", action="store_true", help=words)


def _settings(options: argparse.Namespace) -> Settings:
    from dataclasses import replace  # noqa: PLC0415

    from agentwatch.config import load  # noqa: PLC0415

    settings = load()
    return replace(settings, theme=options.theme or settings.theme, poll=options.poll or settings.poll)


def _workspace(path: str) -> Path:
    from pathlib import Path  # noqa: PLC0415

    workspace = Path(path)
    if not workspace.exists():
        raise WorkspaceError(f"{path}: no such directory; give the directory that the agents work in")
    if not workspace.is_dir():
        raise WorkspaceError(f"{path}: not a directory; give the directory that the agents work in")
    return workspace.resolve()


def _require_terminal() -> None:
    # The screen library draws on standard error, so that one counts as well.
    if not all(stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr)):
        raise UsageError("the screen needs a terminal; `agentwatch tree` prints the tree without one")


def _show(workspace: Path, settings: Settings, *, keeps: bool = False) -> int:
    from agentwatch.app.run import run as run_app  # noqa: PLC0415

    return run_app(_monitor(workspace, settings, keeps=keeps))


def _monitor(workspace: Path, settings: Settings, *, keeps: bool = False) -> Monitor:
    from agentwatch.monitor import Monitor  # noqa: PLC0415
    from agentwatch.sources.files.source import FilesSource  # noqa: PLC0415

    source = FilesSource(workspace, _files_settings(settings))
    return Monitor(workspace, settings, source, clock=time.time, inspects=True, keeps=keeps)


def _files_settings(settings: Settings) -> FilesSettings:
    from agentwatch.sources.files.settings import DEFAULT_PRUNED, FilesSettings  # noqa: PLC0415

    return FilesSettings(
        pruned=DEFAULT_PRUNED if settings.pruned is None else settings.pruned,
        max_bytes=settings.max_bytes,
        force_polling=settings.poll,
    )
