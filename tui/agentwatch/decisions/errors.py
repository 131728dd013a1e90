"""The reasons why a decision is not taken, in sentences that say what is true and what to do."""

import errno

from agentwatch.errors import AgentwatchError


class DecisionError(AgentwatchError):
    """A decision is not taken, or a record of one is not accepted; `AlreadyDecidedError` is in `record`."""


class RecordError(DecisionError):
    """A record cannot be written as it is, or does not have the form that DESIGN.md prescribes."""


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
    """The disk does not tell whether the decision was recorded; deciding the same again is safe."""


class UnreachableError(DecisionError):
    """The host that must record the decision is unreachable, and nothing was sent."""


class NoAnswerError(DecisionError):
    """A host does not answer, so nobody knows whether it has the decision; the message says so."""


class LedgerError(DecisionError):
    """The ledger cannot be read, or its content is faulty."""


class KeyProblemError(DecisionError):
    """The signing key is missing, locked, or not private enough."""


class KeyMissingError(KeyProblemError):
    """There is no signing key (any more)."""


def reason(error: OSError) -> str:
    """Return the system's message, in words."""
    return error.strerror or str(error)


_REMEDIES = {
    **dict.fromkeys((errno.ENOSPC, errno.EDQUOT), "free space"),
    **dict.fromkeys((errno.EACCES, errno.EPERM, errno.EROFS), "make it writable for you"),
    errno.EWOULDBLOCK: "end it",
}


def remedy(error: OSError) -> str:
    """Return the remedy, in words."""
    return _REMEDIES.get(error.errno or 0, "check the disk")
