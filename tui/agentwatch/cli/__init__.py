"""The command line: finds the command, runs it, and says what went wrong."""

import os
import sys
from collections.abc import Sequence

from agentwatch.cli.command import COMMANDS, start
from agentwatch.errors import AgentwatchError

__all__ = ["COMMANDS", "run", "start"]


def run(arguments: Sequence[str]) -> int:
    """Run a command line. Returns the exit code: that of the command, or 74 where the system refuses what nobody has
    foreseen, such as to write the output."""
    try:
        try:
            name = arguments[0] if arguments else ""
            return start(name, arguments[1:]) if name and name in COMMANDS else start("", arguments)
        finally:
            # The rest of the buffer may meet a closed pipe or a full disk as well.
            if sys.stdout is not None:
                sys.stdout.flush()
    except AgentwatchError as error:
        code, message = error.exit_code, str(error)
    except OSError as error:
        from agentwatch.decisions.errors import reason, remedy

        if sys.stdout is not None:
            # Python would complain once more while it closes the stream.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):
            # The reader (`| head`) has seen enough.
            return 0
        place = f"{error.filename}: " if isinstance(error.filename, str) else ""
        code, message = os.EX_IOERR, f"{place}{reason(error)}; {remedy(error)}, then try again"
    from agentwatch.text import complain

    for line in f"agentwatch: {message}".splitlines():
        complain(line)
    return code
