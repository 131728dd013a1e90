"""Errors that a person can do something about, and the exit codes of commands."""

from enum import IntEnum


class ExitCode(IntEnum):
    """Those of the commands about decisions. NOT: problems were found, or it was not wanted, or is not allowed;
    UNREACHED: another machine could not be; UNASKED: the task asks nothing, so that waiting would never end."""

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
    """The configuration does not hold together; the message names file, line and what to do."""


class NoMatchError(AgentwatchError):
    """There is none of what was asked for."""

    exit_code = ExitCode.NOT


class WorkspaceError(AgentwatchError):
    """The workspace does not exist, is no directory or cannot be read."""
