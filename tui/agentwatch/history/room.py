"""Which texts of a history go first where there is no room for all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from agentwatch.delegation.events import Seen
from agentwatch.delegation.task import Version
from agentwatch.delegation.tree import Tree


def superseded(versions: Sequence[Seen], sizes: Mapping[str, int], limit: int) -> list[str]:
    """The digests whose texts to drop so that at most `limit` bytes stay, oldest first.

    `versions` are all that are known, in order; `sizes` the bytes of each text that is kept. Never dropped, even if
    more than `limit` bytes stay: the handoff and the return of the latest attempt of each task, and the last content
    of each file that is not an earlier attempt. An attempt that waits for a decision (failed, invalid, blocked) has
    no successor, so it is the latest.
    """
    excess = sum(sizes.values()) - limit
    if excess <= 0:
        return []
    kept = _kept(versions)
    # A content that came back is as young as its last appearance.
    ages = {seen.digest: age for age, seen in enumerate(versions)}
    dropped = []
    for digest in sorted(sizes, key=lambda digest: (ages.get(digest, -1), digest)):
        if excess <= 0:
            break
        if digest not in kept:
            dropped.append(digest)
            excess -= sizes[digest]
    return dropped


def _kept(versions: Sequence[Seen]) -> set[str]:
    tree = Tree()
    tree.apply(*versions)
    latest: set[str] = set()
    earlier: set[tuple[str, str]] = set()
    for task in tree.tasks.values():
        for attempt in task.attempts:
            parts = [part for part in (attempt.handoff, attempt.returned) if part is not None]
            if attempt is task.latest:
                latest.update(part.digest for part in parts)
            else:
                earlier.update(_key(part) for part in parts)
    last = {seen.path: seen for seen in versions}
    return latest | {seen.digest for seen in last.values() if _key(seen) not in earlier}


def _key(version: Seen | Version) -> tuple[str, str]:
    return version.path, version.digest
