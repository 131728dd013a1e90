"""Words that several faces share."""

from __future__ import annotations

from typing import Final

from agentwatch.delegation.task import Basis

BASES: Final = {
    Basis.PACKET: "its packet names the parent",
    Basis.SESSION: "the session store links the two",
    Basis.DELEGATION_PATH: "its delegation path leads through the parent",
    Basis.DOTTED_PREFIX: "the parent's id is the beginning of its id",
    Basis.DIRECTORY: "it lies in the parent's directory",
    Basis.NONE: "nothing names a parent",
}
"""Why a task stands below its parent."""


def plural(count: int, noun: str) -> str:
    """`1 task`, `2 tasks`, `1,024 tasks`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"
