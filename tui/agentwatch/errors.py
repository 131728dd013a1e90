"""Errors that a user can fix, and the exit codes of commands."""

from enum import IntEnum


class ExitCode(IntEnum):
    """Exit codes of the commands."""

    DONE = 0
    NOT = 1  # there are problems, nothing matches, or the operator said no
    PENDING = 3  # the operator has not decided yet
    UNREACHED = 3  # another machine cannot be reached
    EXPIRED = 4  # the decision has expired
    REFUSED = 5  # no decision yet, and forged decisions were refused
    TAKEN = 6  # another agent has claimed the decision
    UNASKED = 8  # the task needs no decision, so a wait would never end


class AgentwatchError(Exception):
    """An error that the user can correct. The command prints the message and ends with `exit_code`."""

    exit_code = 2


class UsageError(AgentwatchError):
    """The command line asks for something that cannot be done."""


class ConfigError(AgentwatchError):
    """The settings are wrong or cannot be read. The message names the file and the mistake."""


class NoMatchError(AgentwatchError):
    """Nothing matches what the user asked for."""

    exit_code = ExitCode.NOT


class WorkspaceError(AgentwatchError):
    """The workspace does not exist, is no directory, or cannot be read or written."""
