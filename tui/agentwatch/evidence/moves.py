"""Where a claimed file lies after a directory was moved that holds it and its return. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence


def beside(path: str, returned: str, former: Iterable[str] = ()) -> list[str]:
    """The places where a file may be that was claimed as `path`, the likeliest first.

    `returned` is where its return lies now, `former` where it lay before. Without those, the return lies in a directory
    that the path names, too, and which has got deeper or less deep since: `specs/7/x.md` in `specs/archive/7/`.
    """
    parts, into = path.split("/"), returned.split("/")[:-1]
    places = [*_moved_along(parts, into, former), *_deeper(parts, into)]
    return [place for place in dict.fromkeys("/".join(one) for one in places) if place != path]


def _moved_along(parts: list[str], into: list[str], former: Iterable[str]) -> Iterator[list[str]]:
    for name in former:
        old, new = name.split("/")[:-1], list(into)
        # What stands at the end of both was inside of what was moved.
        while old and new and old[-1] == new[-1]:
            old.pop()
            new.pop()
        start = len(old)
        if parts[:start] == old:
            yield [*new, *parts[start:]]


def _deeper(parts: list[str], into: list[str]) -> Iterator[list[str]]:
    for end in range(len(into), 0, -1):
        for start in range(len(parts) - 1, 0, -1):
            old, new = parts[:start], into[:end]
            if old[-1] == new[-1] and (_is_within(old, new) or _is_within(new, old)):
                yield [*new, *parts[start:]]


def _is_within(some: Sequence[str], all_of_them: Sequence[str]) -> bool:
    """The names stand among the others, in their order."""
    rest = iter(all_of_them)
    return all(name in rest for name in some)
