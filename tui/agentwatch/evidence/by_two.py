"""The returns of one look, checked by two processes where they are many: a copy of this one checks the second half.

What it finds is what this one would have found: no verdict depends on another return, unless both are the same text.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import IO, TYPE_CHECKING, Final

from agentwatch.cores import has_two_cores
from agentwatch.delegation.claims import Change, Claim
from agentwatch.evidence.targets import Checks, Target
from agentwatch.forked import Forked, may_fork
from agentwatch.kept import looks
from agentwatch.kept.index import packed, unpacked

if TYPE_CHECKING:
    from agentwatch.evidence.one_look import OneLook

Check = Callable[[Sequence[Target]], list[Checks]]

MANY: Final = 1_000
"""Returns that take longer to check than to tell what was found."""
_PATIENCE: Final = 1.0
_MORE_PATIENCE: Final = 3.0
"""How long the other one may take longer than this one: so many seconds, and as often as long as this one took."""


def check_all(targets: Sequence[Target], check: Check, one_look: OneLook) -> list[Checks]:
    """What `check` finds about all of them."""
    middle = len(targets) // 2
    mine, theirs = targets[:middle], targets[middle:]
    other = _begin(mine, theirs, check, one_look)
    if other is None:
        return check(targets)
    began = time.monotonic()
    found = check(mine)
    data = other.told(_PATIENCE + _MORE_PATIENCE * (time.monotonic() - began))
    with suppress(ValueError):
        more, known, looked_at = unpacked(data, _kinds())
        one_look.take_told(known)
        looks.take(looked_at)
        return found + list(more)
    return found + check(theirs)


def _begin(mine: Sequence[Target], theirs: Sequence[Target], check: Check, one_look: OneLook) -> Forked | None:
    if len(theirs) < MANY // 2 or not (may_fork() and has_two_cores()) or any(one.runs for one in theirs):
        return None
    if not {one.returned.digest for one in mine}.isdisjoint(one.returned.digest for one in theirs):
        return None

    def work(told: IO[bytes]) -> None:
        found: list[Checks] = []
        looked_at = looks.told_by(lambda: found.extend(check(theirs)))
        told.write(packed((found, one_look.told(), looked_at), _kinds()))

    with suppress(OSError):
        return Forked(work)
    return None


def _kinds() -> tuple[type, ...]:
    from agentwatch.evidence.one_look import CLAIM_KINDS

    return Checks, Claim, Change, *CLAIM_KINDS
