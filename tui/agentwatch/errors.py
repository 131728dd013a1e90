"""Errors that a person can do something about.

AgentwatchError
├── UsageError        the command line or the place it was run in is wrong      exit 2
├── ConfigError       the configuration file is wrong: file, line, what to do   exit 2
└── WorkspaceError    the workspace cannot be watched or read                   exit 2
"""

from __future__ import annotations


class AgentwatchError(Exception):
    """Ends a command with its message and exit code; never with a traceback."""

    exit_code = 2


class UsageError(AgentwatchError):
    """The command line asks for something that cannot be done."""


class ConfigError(AgentwatchError):
    """The configuration does not hold together; the message names file, line and what to do."""


class WorkspaceError(AgentwatchError):
    """The workspace does not exist, is no directory or cannot be read."""
