"""What took long to find out, not looked for again while nothing changes that it came from. For hooks, whose own words
nobody keeps."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from agentwatch.kept import answers, looks

if TYPE_CHECKING:
    from agentwatch.kept.answers import Question

T = TypeVar("T")


def remembered(about: Sequence[str], find: Callable[[], T], write: Callable[[T], Any], read: Callable[[Any], T]) -> T:
    """What was found before of all that this is `about`, else what is found now. `write` makes JSON of it, and `read`
    makes it of JSON; it raises ValueError, KeyError or TypeError for what is no such thing. See `looks.holds`."""
    key = answers.key_of(about, speaks=False)
    # Who notes already keeps what comes of this.
    place = answers.place_of(key) if looks.is_installed() and not looks.is_noting() else ""
    if not place:
        return find()
    kept = answers.read(place, key, _ask_git, _is_unconcerned)
    if kept is not None:
        try:
            return read(json.loads(bytes(kept[1])))
        except (ValueError, KeyError, TypeError):
            # Another version has written it.
            pass
    found: list[T] = []

    def look() -> bytes:
        found.append(find())
        return json.dumps(write(found[0])).encode()

    from agentwatch.kept.keeping import remember

    remember(place, key, look)
    return found[0]


# These take a while to load, and mostly nothing has changed.


def _ask_git(workspace: str, questions: list[Question]) -> list[str]:
    from agentwatch.evidence.plumbing import ask_again

    return ask_again(workspace, questions)


def _is_unconcerned(told: bytes, changed: Sequence[str], names: bytes) -> bool:
    from agentwatch.concerned import is_unconcerned

    return is_unconcerned(told, changed, names)
