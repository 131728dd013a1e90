"""The arguments of the commands for agents. What a command needs is imported when it runs."""

from __future__ import annotations

from argparse import ArgumentTypeError
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from agentwatch.arguments import add_workspace, parser, workspace_at
from agentwatch.config import load as load_settings
from agentwatch.deciding.codes import OF_CHECKS
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
    words.add_argument(
        "--agent",
        type=_program,
        metavar="NAME",
        help=f"{', '.join(_PROGRAMS)} (default: those that are recognised here)",
    )
    words.add_argument("--write", action="store_true", help="write them, each file with a backup beside it")
    words.add_argument("--remove", action="store_true", help="take out what was written; shown only, without --write")
    options = words.parse_intermixed_args(arguments)
    workspace = workspace_at(options.path)
    from agentwatch.agents.setup.command import run  # noqa: PLC0415

    return run(workspace, options.agent, load_settings(), write=options.write, remove=options.remove)


def _doctor(arguments: Sequence[str], _load: Load) -> int:
    said = "Check that agentwatch can work here. With -- CMD, try what an agent started by CMD could do to decisions."
    words = parser("doctor", said, OF_CHECKS)
    add_workspace(words)
    words.usage = "agentwatch doctor [-h] [PATH] [-- CMD ...]"
    # argparse would take a second `--`, which is the sandbox's, for its own.
    mine, behind = _split(arguments)
    options = words.parse_intermixed_args(mine)
    if behind is not None and not behind:
        raise UsageError("behind -- goes what starts the agent's sandbox, such as: -- bwrap --ro-bind / / --")
    workspace = workspace_at(options.path)
    from agentwatch.agents.setup.starts import checks  # noqa: PLC0415
    from agentwatch.deciding.doctor import examine, examine_sandbox  # noqa: PLC0415

    if behind is not None:
        return examine_sandbox(workspace, behind)
    return examine(workspace, load_settings(), checks(workspace))


def _split(arguments: Sequence[str]) -> tuple[Sequence[str], Sequence[str] | None]:
    if "--" not in arguments:
        return arguments, None
    at = list(arguments).index("--")
    return arguments[:at], arguments[at + 1 :]


def _program(name: str) -> str:
    known = {"claude": "claude-code"} | {one: one for one in _PROGRAMS}
    if name.lower() in known:
        return known[name.lower()]
    from difflib import get_close_matches  # noqa: PLC0415

    near = get_close_matches(name.lower(), known, 1)
    meant = f"did you mean {known[near[0]]}? " if near else ""
    raise ArgumentTypeError(f"no agent program {name!r} is known; {meant}there are {', '.join(_PROGRAMS)}")


COMMANDS: Final[Mapping[str, Callable[[Sequence[str], Load], int]]] = {
    "doctor": _doctor,
    "hook": _hook,
    "init": _init,
    "mcp": _mcp,
}
