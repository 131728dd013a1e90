"""Errors that a user can fix, and the exit codes of commands."""

from enum import IntEnum


class ExitCode(IntEnum):
    """Exit codes of the commands. NOT means that problems were found, or that something is not allowed or not wanted.
    UNREACHED: another machine cannot be reached. UNASKED: the task needs no decision, so a wait would never end."""

    DONE = 0
    NOT = 1
    PENDING = 3
    UNREACHED = 3
    EXPIRED = 4
    REFUSED = 5
    TAKEN = 6
    UNASKED = 8


class AgentwatchError(Exception):
    """An error that the user can correct. The command prints its message and ends with its exit code."""

    exit_code = 2


class UsageError(AgentwatchError):
    """The command line asks for something that cannot be done."""


class ConfigError(AgentwatchError):
    """The settings are wrong. The message names the file, the line and the remedy."""


class NoMatchError(AgentwatchError):
    """Nothing matches the request."""

    exit_code = ExitCode.NOT


class WorkspaceError(AgentwatchError):
    """The workspace does not exist, is no directory, or cannot be read or written."""
