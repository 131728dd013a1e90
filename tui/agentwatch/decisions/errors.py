"""Why a decision is not taken, in sentences that say what is true and what to do.

DecisionError
├── RecordError              it cannot be written down as it is
├── NotAllowedError          the retry policy does not allow it
├── AlreadyDecidedError      this very attempt was decided before, otherwise (in `record`)
├── ReturnChangedError       the return is not the one the operator looked at
├── NotRecordedError         it is certainly not in the ledger
├── UncertainError           whether it is in the ledger cannot be told
├── LedgerError              the ledger cannot be read, or something is wrong with what is in it
└── KeyProblemError          the signing key is missing, locked, or not private enough
    └── KeyMissingError      there is none (any more)
"""

from __future__ import annotations

import errno
import os

from agentwatch.errors import AgentwatchError


class DecisionError(AgentwatchError):
    """A decision is not taken, or a record of one is not accepted."""


class RecordError(DecisionError):
    """A record does not have the form that DESIGN.md gives it."""


class NotAllowedError(DecisionError):
    """The policy of error-propagation forbids the decision."""

    exit_code = 1


class ReturnChangedError(DecisionError):
    """The return is not the one that was decided about."""

    exit_code = 7


class NotRecordedError(DecisionError):
    """Nothing was recorded."""


class UncertainError(DecisionError):
    """The disk does not tell whether the decision was recorded; deciding the same again is safe."""


class LedgerError(DecisionError):
    """The ledger cannot be used as it is."""


class KeyProblemError(DecisionError):
    """The signing key cannot be used as it is."""


class KeyMissingError(KeyProblemError):
    """There is no signing key."""


def reason(error: OSError) -> str:
    """What the system says, in words."""
    return error.strerror or (os.strerror(error.errno) if error.errno else str(error))


def remedy(error: OSError) -> str:
    """What to do about it, in words."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return "free space"
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return "make it writable for you"
    return "check the disk"
