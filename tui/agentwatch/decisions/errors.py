"""The errors of decisions. Each message says what is wrong and what the operator can do."""

import errno

from agentwatch.errors import AgentwatchError


class DecisionError(AgentwatchError):
    """A decision was not made, or the record of a decision is not accepted."""


class RecordError(DecisionError):
    """A record cannot be written, or a file does not have the form of a record."""


class OtherWorkspaceError(RecordError):
    """The record is about another workspace."""


class NotAllowedError(DecisionError):
    """The policy of error-propagation forbids the decision."""

    exit_code = 1


class ReturnChangedError(DecisionError):
    """The return is no longer the one that the operator looked at."""

    exit_code = 7


class RequestGoneError(DecisionError):
    """Nobody waits for an answer to the request any more."""

    exit_code = 4


class NotRecordedError(DecisionError):
    """The decision is certainly not in the ledger."""


class UncertainError(DecisionError):
    """After a disk error, nobody can tell whether the decision was recorded. Deciding the same again is safe."""


class UnreachableError(DecisionError):
    """The host that must record the decision is unreachable, and nothing was sent."""


class NoAnswerError(DecisionError):
    """A host does not answer, so nobody knows whether the host has recorded the decision."""


class LedgerError(DecisionError):
    """The ledger cannot be read, or its content is faulty."""


class KeyProblemError(DecisionError):
    """The signing key is missing, locked, or not private enough."""


class KeyMissingError(KeyProblemError):
    """A key does not exist, or does not exist any more."""


def reason(error: OSError) -> str:
    """Return the system's message about an error of the disk."""
    return error.strerror or str(error)


_REMEDIES = {
    **dict.fromkeys((errno.ENOSPC, errno.EDQUOT), "free space"),
    **dict.fromkeys((errno.EACCES, errno.EPERM, errno.EROFS), "make it writable for you"),
    errno.EWOULDBLOCK: "end it",
}


def remedy(error: OSError) -> str:
    """Return in words how the user can remedy an error of the disk."""
    return _REMEDIES.get(error.errno or 0, "check the disk")
