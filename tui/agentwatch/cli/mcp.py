"""Serve handoffs, returns and the operator's decisions to agents: an MCP server over standard input and output."""

from __future__ import annotations

import gc
from argparse import Namespace
from typing import Final

from agentwatch.arguments import workspace_at
from agentwatch.cli.command import PATH
from agentwatch.composition import repeated_load
from agentwatch.config import load
from agentwatch.shell import needing

ARGUMENTS: Final = (PATH,)
EXIT_CODES: Final = "exit codes: 0 the client has gone, 2 wrong usage, or the SDK is not installed"
_SDK: Final = ("mcp", "mcp_types")


def run(options: Namespace) -> int:
    """Serve until the client goes."""
    gc.enable()
    workspace, settings = workspace_at(options.path), load()
    with needing("mcp", "the MCP server needs the MCP SDK, version 2", _SDK):
        from agentwatch.agents.server.server import serve
    return serve(workspace, settings, repeated_load())
