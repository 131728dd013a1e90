"""Task ids as file names. An id is foreign: it may hold slashes, dots that climb, control characters, or be endless."""

from __future__ import annotations

import hashlib
from typing import Final
from urllib.parse import quote

from agentwatch.delegation.identity import slot

_LONGEST: Final = 150
"""Characters of a stem: with its ending, and that of the file it is written to first, it stays below 255 bytes."""


def stem_of(task_id: str) -> str:
    """The stem of a task's files, different for different ids. `shop.api` stays as it is.

    What is not a letter, a digit or one of `._-~` is written as `%` and its UTF-8 bytes in hex. Raises ValueError where
    the id is empty.

    >>> stem_of("shop.api"), stem_of("../etc"), stem_of("a/b")
    ('shop.api', '%2E.%2Fetc', 'a%2Fb')
    """
    if not task_id:
        raise ValueError("the task id is empty")
    stem = quote(task_id, safe="._-", errors="surrogatepass")
    if len(stem) > _LONGEST:
        digest = hashlib.sha256(task_id.encode("utf-8", "surrogatepass")).hexdigest()[:32]
        stem = f"{stem[:_LONGEST]}-{digest}"
    # A hidden file, an option on a command line, or a stem that would be read as that of another task.
    if stem[0] in ".-" or slot(f"handoffs/{stem}.handoff.json")[1] != stem:
        stem = f"%{ord(stem[0]):02X}{stem[1:]}"
    return stem
