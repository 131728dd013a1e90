"""Serve handoffs, returns and the operator's decisions to agents: an MCP server over standard input and output."""

from __future__ import annotations

import gc
from argparse import Namespace
from pathlib import Path
from typing import Any, Final

from agentwatch.arguments import workspace_at
from agentwatch.cli.command import PATH
from agentwatch.composition import Load, scanned, sessions_of
from agentwatch.config import Settings, load
from agentwatch.monitor import Monitor
from agentwatch.shell import needing
from agentwatch.sources.sessions.source import SessionsSource

ARGUMENTS: Final = (PATH,)
EXIT_CODES: Final = "exit codes: 0 the client has gone, 2 wrong usage, or the SDK is not installed"
_SDK: Final = ("mcp", "mcp_types")


def run(options: Namespace) -> int:
    """Serve until the client goes."""
    gc.enable()
    workspace, settings = workspace_at(options.path), load()
    with needing("mcp", "the MCP server needs the MCP SDK, version 2", _SDK):
        from agentwatch.agents.server import serve
    return serve(workspace, settings, _repeated_load())


def _repeated_load() -> Load:
    """`scanned` for a server: of the agents' sessions it reads what is new. Any thread may call it."""
    sessions: dict[Path, SessionsSource] = {}

    def load(workspace: Path, settings: Settings, **more: Any) -> Monitor:
        source = sessions.setdefault(workspace, sessions_of(workspace))
        return scanned(workspace, settings, sessions=source, **more)

    return load
