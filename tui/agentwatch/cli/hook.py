"""Answer one call of a hook of Claude Code: its payload on standard input, the answer on standard output."""

from __future__ import annotations

from argparse import Namespace
from typing import TYPE_CHECKING, Any, Final

from agentwatch.cli.command import argument, flag

if TYPE_CHECKING:
    from agentwatch.monitor import Monitor

ARGUMENTS: Final = (
    argument("path", "PATH", "the workspace (default: $CLAUDE_PROJECT_DIR, else the payload's cwd)", nargs="?"),
    flag("--plugin", "hold one request of OpenCode or Kilo, for their plugin"),
)
WRONG_USAGE: Final = 1
EXIT_CODES: Final = "exit codes: 0 answered, 1 not understood; never 2, which would block the agent"


def run(options: Namespace) -> int:
    """Answer a call; each loads only what it needs."""
    if options.plugin:
        from agentwatch.agents.hook.opencode import run as hold

        return hold()
    from agentwatch.agents.hook.command import run as answer

    return answer(options.path, _scanned)


def _scanned(*about: Any, **options: Any) -> Monitor:
    from agentwatch.composition import scanned

    return scanned(*about, **options)
