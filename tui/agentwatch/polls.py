"""What `wait` said while nothing was decided, said again for as long as nothing changes: agents ask over and over.

Such an answer says that nobody has decided, whatever is written in it: its exit code is none of a decision.
"""

from __future__ import annotations

import sys

from agentwatch.kept.answers import key_of, place_of, read, write

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from agentwatch.kept.answers import Ask

_PENDING, _UNASKED = 3, 8
"""As `exit_codes` has them, which takes a while to load."""
_IS_UNASKED = b'"unasked": true'
"""How the document says that nothing is asked. No text in it can: a quote in one is escaped."""


def polled(arguments: Sequence[str], run: Callable[[], int], ask: Ask) -> int:
    """Say what was said before where that holds, else `run`, and keep what it says. Returns the exit code.

    Raises OSError where it cannot be written.
    """
    key = key_of(arguments)
    place = place_of(key)
    if not place or sys.stdout is None or sys.stderr is None:
        return run()
    kept = read(place, key, ask, _is_unconcerned)
    if kept is not None:
        write(kept)
        return _UNASKED if _IS_UNASKED in bytes(kept[1]) else _PENDING
    from agentwatch.kept.keeping import noted

    code = _PENDING

    def told() -> int:
        nonlocal code
        code = run()
        return 0 if code in (_PENDING, _UNASKED) else -1

    noted(place, key, told)
    return code


def _is_unconcerned(told: bytes, changed: Sequence[str], names: bytes) -> bool:
    from agentwatch.concerned import is_unconcerned  # mostly nothing has changed

    return is_unconcerned(told, changed, names)
