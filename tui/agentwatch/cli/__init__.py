"""The command line: finds the command, runs it, and says what went wrong."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from agentwatch.arguments import did_you_mean
from agentwatch.cli.command import COMMANDS, start
from agentwatch.errors import AgentwatchError, UsageError

__all__ = ["COMMANDS", "run", "start"]


def run(arguments: Sequence[str]) -> int:
    """Run a command line. Returns the exit code: 0, 1 (findings), 2 (usage, configuration, workspace) or 74, where the
    system refuses what nobody has foreseen, such as to write the output."""
    try:
        try:
            return _run(arguments)
        finally:
            # What is still in the buffer may meet a closed pipe or a full disk as well.
            if sys.stdout is not None:
                sys.stdout.flush()
    except AgentwatchError as error:
        from agentwatch.text import clean, complain

        complain("\n".join(clean(line) for line in f"agentwatch: {error}".splitlines()))
        return error.exit_code
    except OSError as error:
        return _explain_refusal(error)


def _run(arguments: Sequence[str]) -> int:
    name = arguments[0] if arguments else ""
    if name and name in COMMANDS:
        return start(name, arguments[1:])
    is_word = not name.startswith("-") and os.sep not in name and not os.path.lexists(name)
    meant = did_you_mean(name, filter(None, COMMANDS)) if is_word else ""
    if meant:
        from agentwatch.config import load

        if name not in dict(load().hosts):
            raise UsageError(f"{name} is neither a command nor a directory; {meant}\ntry: agentwatch --help")
    return start("", arguments)


def _explain_refusal(error: OSError) -> int:
    """Say what the system refuses that nobody has foreseen. Returns the exit code."""
    code = 0
    # Where a pipe is closed, the reader (`| head`) has seen enough.
    if not isinstance(error, BrokenPipeError):
        from agentwatch.decisions.errors import reason, remedy
        from agentwatch.text import clean, complain

        place = f"{error.filename}: " if isinstance(error.filename, str) else ""
        complain(clean(f"agentwatch: {place}{reason(error)}; {remedy(error)}, then try again"))
        code = os.EX_IOERR
    if sys.stdout is not None:
        # Python would complain once more while it closes the stream.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return code
