"""The errors of decisions. Each message says what is wrong and what the operator can do."""

import errno

from agentwatch.errors import AgentwatchError


class DecisionError(AgentwatchError):
    """A decision was not recorded, or a file with a decision is not accepted."""


class RecordError(DecisionError):
    """A decision cannot be written as a record, or a file does not have the form of a record."""


class OtherWorkspaceError(RecordError):
    """The decision was made for another workspace."""


class NotAllowedError(DecisionError):
    """The decision is against the rules, for example a retry when no retry is left."""

    exit_code = 1


class ReturnChangedError(DecisionError):
    """The return has changed since the operator saw it."""

    exit_code = 7


class RequestGoneError(DecisionError):
    """The program does not wait for an answer to this request any more."""

    exit_code = 4


class NotRecordedError(DecisionError):
    """The decision is certainly not in the ledger."""


class UncertainError(DecisionError):
    """After a disk error, nobody knows whether the decision was recorded. It is safe to decide the same again."""


class UnreachableError(DecisionError):
    """The host that should record the decision cannot be reached. Nothing was sent."""


class NoAnswerError(DecisionError):
    """The decision was sent to a host, but the host does not answer. It may have recorded the decision."""


class LedgerError(DecisionError):
    """The ledger cannot be read, or a file in it is faulty."""


class KeyProblemError(DecisionError):
    """A key is missing, encrypted, malformed, or open to other users."""


class KeyMissingError(KeyProblemError):
    """A key was never made, or its file is gone."""


def reason(error: OSError) -> str:
    """Return the system's message about a disk error."""
    return error.strerror or str(error)


_REMEDIES = {
    **dict.fromkeys((errno.ENOSPC, errno.EDQUOT), "free space"),
    **dict.fromkeys((errno.EACCES, errno.EPERM, errno.EROFS), "make it writable for you"),
    errno.EWOULDBLOCK: "end it",
}


def remedy(error: OSError) -> str:
    """Return advice for the user about a disk error, for example to free space."""
    return _REMEDIES.get(error.errno or 0, "check the disk")
