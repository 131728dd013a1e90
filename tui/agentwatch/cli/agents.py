"""The commands that serve agent programs: the hook, the MCP server, and `init`, which sets programs up."""

import json
import os
import sys
from argparse import Namespace
from typing import Any

from agentwatch.arguments import workspace_at
from agentwatch.cli.command import PATH, argument, command, flag
from agentwatch.config import load
from agentwatch.errors import AgentwatchError
from agentwatch.sources.claude_code import ASKS, read_hook_call
from agentwatch.state import is_shown, state_directory
from agentwatch.text import print_error, print_text

_PROGRAMS = ("claude-code", "opencode", "kilo", "codex", "generic")
_FAILED = 1  # not 2, because exit code 2 would block the agent, with our message as the reason
_MOST_BYTES = 16 * 1024 * 1024
_NOTHING_DONE = "nothing was held and nothing approved"


@command(
    argument("path", "PATH", "the workspace (default: $CLAUDE_PROJECT_DIR, else the payload's cwd)", nargs="?"),
    flag("--plugin", "hold one request of OpenCode or Kilo, for their plugin"),
    exit_codes="exit codes: 0 answered, 1 not understood; never 2, which would block the agent",
    wrong_usage=_FAILED,
)
def hook(options: Namespace) -> int:
    """Answer a call of a Claude Code hook: read it from standard input, and print the answer."""
    # Modules are imported late, so that the operator sees a request as soon as possible.
    if options.plugin:
        from agentwatch.agents.hook.requests import hold_for_plugin

        return hold_for_plugin()
    call = read_hook_call(sys.stdin.buffer.read(_MOST_BYTES + 1))
    if not call:
        print_error(f"agentwatch hook: no payload of a hook on standard input; {_NOTHING_DONE}")
        return _FAILED
    answer: dict[str, Any] = {}
    try:
        if call.event in (ASKS, "SubagentStop", "PostToolUse"):
            # Without PATH, the workspace is the directory in which the session began.
            workspace = workspace_at(options.path or os.environ.get("CLAUDE_PROJECT_DIR") or call.cwd or ".")
            if call.event == ASKS:
                if is_shown(state_directory(workspace)):
                    from agentwatch.agents.hook.requests import answer_request

                    answer_request(call, workspace, load())
                return 0
            from agentwatch.agents.hook.child import answer_call

            answer = answer_call(call, workspace, load())
    except AgentwatchError as error:
        print_error(f"agentwatch hook: {error}; {_NOTHING_DONE}")
        return 0 if call.event == ASKS else _FAILED
    print_text(json.dumps(answer))  # ASCII only: all other characters become escapes
    return 0


@command(PATH, exit_codes="exit codes: 0 the client has gone, 2 wrong usage, or the SDK is not installed")
def mcp(options: Namespace) -> int:
    """Serve handoffs, returns and the operator's decisions to agents: an MCP server over standard input and output."""
    import gc
    from functools import partial

    from agentwatch.composition import open_sessions, scan_workspace
    from agentwatch.shell import require_extra

    gc.enable()
    workspace, settings = workspace_at(options.path), load()
    with require_extra("mcp", "the MCP server needs the MCP SDK, version 2", ("mcp", "mcp_types")):
        from agentwatch.agents.server import serve
    # All calls share one source of sessions, so that each call reads only what is new.
    return serve(workspace, settings, partial(scan_workspace, sessions=open_sessions(workspace)))


@command(
    PATH,
    argument("--agent", "NAME", f"{', '.join(_PROGRAMS)} (default: those that are recognised here)", choices=_PROGRAMS),
    flag("--write --yes", "do not ask"),
    flag("--remove", "take out what was written"),
    exit_codes="exit codes: 0 done or shown, 1 you said no, or something is left to be added by hand, 2 wrong usage",
)
def init(options: Namespace) -> int:
    """Prepare an agent program to hand off, return and wait for decisions: list the changes, ask once, and write
    them. If nobody can be asked, show each line, and write only with --write."""
    from agentwatch.agents.setup import set_up
    from agentwatch.console import ask_to_confirm, is_terminal

    workspace, write = workspace_at(options.path), options.write
    confirm = ask_to_confirm if is_terminal() and sys.stdin.isatty() and not write else None
    return set_up(workspace, options.agent, load(), write=write, remove=options.remove, confirm=confirm)
