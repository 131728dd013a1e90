"""The command line: finds the command, runs it, and reports errors."""

import os
import sys
from collections.abc import Sequence

from agentwatch.cli.command import COMMANDS, start
from agentwatch.errors import AgentwatchError

__all__ = ["COMMANDS", "run", "start"]


def run(arguments: Sequence[str]) -> int:
    """Run a command line and return its exit code. The code is 74 after a system error, such as a full disk."""
    try:
        try:
            name = arguments[0] if arguments else ""
            return start(name, arguments[1:]) if name and name in COMMANDS else start("", arguments)
        finally:
            # Flush inside the `try`, because a flush fails on a closed pipe or a full disk.
            if sys.stdout is not None:
                sys.stdout.flush()
    except AgentwatchError as error:
        code, message = error.exit_code, str(error)
    except OSError as error:
        from agentwatch.decisions.errors import reason, remedy

        if sys.stdout is not None:
            # Redirect standard output, or Python would print another error when it closes the broken stream.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):
            # The reader, such as `head`, has closed the pipe because it has enough.
            return 0
        place = f"{error.filename}: " if isinstance(error.filename, str) else ""
        code, message = os.EX_IOERR, f"{place}{reason(error)}; {remedy(error)}, then try again"
    from agentwatch.text import print_error

    for line in f"agentwatch: {message}".splitlines():
        print_error(line)
    return code
