"""Errors that a user can fix, and the exit codes of commands."""

from enum import IntEnum


class ExitCode(IntEnum):
    """Exit codes of the commands. NOT: problems were found, or the user said no, or something is not allowed;
    UNREACHED: another machine could not be reached; UNASKED: the task asks nothing, so a wait would never end."""

    DONE = 0
    NOT = 1
    PENDING = 3
    UNREACHED = 3
    EXPIRED = 4
    REFUSED = 5
    TAKEN = 6
    UNASKED = 8


class AgentwatchError(Exception):
    """Ends a command with its message and exit code; never with a traceback."""

    exit_code = 2


class UsageError(AgentwatchError):
    """The command line asks for something that cannot be done."""


class ConfigError(AgentwatchError):
    """The configuration is wrong; the message names the file, the line and what to do."""


class NoMatchError(AgentwatchError):
    """Nothing matches the request."""

    exit_code = ExitCode.NOT


class WorkspaceError(AgentwatchError):
    """The workspace does not exist, is no directory or cannot be read."""
