"""The rules by which a tree judges what it is told: those of the settings where the workspace is."""

from __future__ import annotations

from typing import Final, NamedTuple

LOW_CONFIDENCE: Final = 0.5
"""report-contract: results of which the child itself is less sure than this are for a human to look at."""

DEFAULT_MAX_RETRIES: Final = 1
"""A parent retries a child once. (A child's own retries are 0, so it never appears here.)"""


class Limits(NamedTuple):
    """From when on a task is told: minutes that it works, tokens that it has used, tokens together with all below it,
    and the same call so many times in a row. 0: never."""

    minutes: float = 0.0
    tokens: int = 0
    subtree_tokens: int = 0
    repeats: int = 0


class Rules(NamedTuple):
    """How a tree judges.

    `strict` makes a return that breaks its contract count as failed; `stale_after` is in seconds; a completed report
    whose confidence is below `low_confidence` asks for a review. With `demands`, a child of a session that ends without
    a contract counts as failed. Tasks without a sign of life since `history_before` (epoch seconds) are past. A working
    task that has passed one of the `limits` asks.
    """

    strict: bool = True
    stale_after: float = 600.0
    max_retries: int = DEFAULT_MAX_RETRIES
    low_confidence: float = LOW_CONFIDENCE
    demands: bool = False
    history_before: float = float("-inf")
    limits: Limits = Limits()
