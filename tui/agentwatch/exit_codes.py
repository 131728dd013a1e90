"""The exit codes of the commands about decisions: one table for all of them."""

from __future__ import annotations

from typing import Final

DONE: Final = 0
NOT: Final = 1
"""Problems were found, or the operator did not want to, or the policy does not allow it."""
PENDING: Final = 3
EXPIRED: Final = 4
REFUSED: Final = 5
TAKEN: Final = 6
CHANGED: Final = 7
"""These are those of `RequestGoneError`, `AlreadyDecidedError` and `ReturnChangedError`: 4, 6 and 7."""

UNASKED: Final = 8
"""The task asks nothing: waiting would never end."""

OF_WAIT: Final = (
    "exit codes: 0 decided, 3 pending: call again, 4 the decision has expired: the operator must decide again,"
    " 5 pending, and fake decisions were refused: call again, 8 nothing is asked of the operator: go on, 2 wrong usage"
)
OF_CLAIM: Final = (
    "exit codes: 0 it is yours to carry out, 6 somebody else has it, 3 there is no such decision (yet), 4 it has"
    " expired, 5 a fake was refused, 2 wrong usage, or nothing can be written"
)
OF_DECIDE: Final = (
    "exit codes: 0 recorded, 1 you said no, or the retry policy does not allow it, 6 decided before, and differently, 7"
    " the return is not the one you looked at, 2 wrong usage, or the key or the disk refused"
)
OF_ANSWER: Final = (
    "exit codes: 0 recorded, 1 you said no, or the request does not take this answer, 4 nobody waits for an answer any"
    " more, 6 answered before, and differently, 2 wrong usage, or the key or the disk refused"
)
OF_ATTEST: Final = (
    "exit codes: 0 signed, 1 signed, and something could not be read, 2 wrong usage, or the key or the disk refused"
)
OF_CHECKS: Final = "exit codes: 0 all is well, 1 something is not, 2 wrong usage"
OF_PENDING: Final = "exit codes: 0 printed, 1 printed, and something could not be read, 2 wrong usage"
OF_ACK: Final = "exit codes: 0 put aside, or taken back, 1 nothing was, 2 wrong usage, or nothing can be written"
OF_KEYS: Final = "exit codes: 0 done, 2 wrong usage, or the key or the disk refused"
