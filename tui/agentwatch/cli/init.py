"""Show the lines that make an agent program hand off, return and wait the agentwatch way; --write writes them."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Set
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Final

from agentwatch.agents.setup import run as set_up
from agentwatch.arguments import workspace_at
from agentwatch.cli.command import PATH, argument, flag
from agentwatch.composition import sessions_of
from agentwatch.config import Settings, load

_PROGRAMS: Final = ("claude-code", "opencode", "kilo", "codex", "generic")
ARGUMENTS: Final = (
    PATH,
    argument(
        "--agent",
        "NAME",
        f"{', '.join(_PROGRAMS)} (default: those that are recognised here)",
        choices=_PROGRAMS,
        also={"claude": "claude-code"},
    ),
    flag("--write", "write them, each file with a backup beside it"),
    flag("--remove", "take out what was written; shown only, without --write"),
)
EXIT_CODES: Final = "exit codes: 0 done or shown, 1 something is left to be added by hand, 2 wrong usage"


def run(options: Namespace) -> int:
    """Show or write what the programs of a workspace need."""
    workspace, settings = workspace_at(options.path), load()
    sources = partial(_read_sources, workspace, settings)
    return set_up(workspace, options.agent, settings, write=options.write, remove=options.remove, sources=sources)


def _read_sources(workspace: Path, settings: Settings) -> Set[str]:
    """The names of the readers that know a session of a workspace. Blocks."""
    if not settings.sessions:
        return frozenset()
    with closing(sessions_of(workspace)) as source:
        source.scan()
        return {one.source for one in source.found() if one.sessions}
