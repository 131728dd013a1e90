"""The arguments of the commands for agents. What a command needs is imported when it runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from agentwatch.arguments import add_workspace, parser, workspace_at
from agentwatch.config import load as load_settings
from agentwatch.errors import UsageError
from agentwatch.text import clean, complain

if TYPE_CHECKING:
    from agentwatch.deciding.loading import Load

_OF_MCP: Final = "exit codes: 0 the client has gone, 2 wrong usage, or the SDK is not installed"
_OF_HOOK: Final = "exit codes: 0 answered, 1 not understood; never 2, which would block the agent"
_OF_INIT: Final = "exit codes: 0 done or shown, 1 something is left to be added by hand, 2 wrong usage"
_PROGRAMS: Final = ("claude-code", "opencode", "kilo", "codex", "generic")
_SDK: Final = "mcp"


def _mcp(arguments: Sequence[str], load: Load) -> int:
    said = (
        "Serve handoffs, returns and the operator's decisions to agents: an MCP server over standard input and output."
    )
    words = parser("mcp", said, _OF_MCP)
    add_workspace(words)
    options = words.parse_intermixed_args(arguments)
    workspace = workspace_at(options.path)
    settings = load_settings()
    try:
        from agentwatch.agents.server.server import serve  # noqa: PLC0415
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] not in (_SDK, "mcp_types"):
            raise
        raise UsageError(
            "the MCP server needs the MCP SDK, version 2: install it where agentwatch is, with"
            " pip install 'agentwatch[mcp]'"
        ) from error
    return serve(workspace, settings, load)


def _hook(arguments: Sequence[str], load: Load) -> int:
    said = "Answer one call of a hook of Claude Code: its payload on standard input, the answer on standard output."
    words = parser("hook", said, _OF_HOOK)
    where = "the workspace (default: $CLAUDE_PROJECT_DIR, else the payload's cwd)"
    words.add_argument("path", nargs="?", metavar="PATH", help=where)
    try:
        options = words.parse_intermixed_args(arguments)
    except UsageError as error:
        # The exit code of usage errors would block every agent.
        complain(clean(f"agentwatch hook: {error}"))
        return 1
    from agentwatch.agents.hook.command import run  # noqa: PLC0415

    return run(options.path, load)


def _init(arguments: Sequence[str], _load: Load) -> int:
    said = (
        "Show the lines that make an agent program hand off, return and wait the agentwatch way; --write writes them."
    )
    words = parser("init", said, _OF_INIT)
    add_workspace(words)
    words.add_argument("--agent", choices=_PROGRAMS, help="default: those that are recognised in the workspace")
    words.add_argument("--write", action="store_true", help="write them, each file with a backup beside it")
    words.add_argument("--remove", action="store_true", help="take out what was written; shown only, without --write")
    options = words.parse_intermixed_args(arguments)
    workspace = workspace_at(options.path)
    from agentwatch.agents.setup.command import run  # noqa: PLC0415

    return run(workspace, options.agent, load_settings(), write=options.write, remove=options.remove)


COMMANDS: Final[Mapping[str, Callable[[Sequence[str], Load], int]]] = {
    "hook": _hook,
    "init": _init,
    "mcp": _mcp,
}
