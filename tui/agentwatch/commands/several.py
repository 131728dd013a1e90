"""What a command prints of several workspaces: of each what it prints of one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from agentwatch.text import clean, indented, say

SCHEMA_VERSION: Final = 1


def print_each(
    workspaces: Sequence[Path], print_one: Callable[[Path, Callable[[dict[str, Any]], None]], int], *, as_json: bool
) -> int:
    """Print each workspace with `print_one`, which gets the workspace, and what prints its JSON document.

    Of several, each has its path above it; as JSON they are one document, in which each task names its workspace.
    Returns the highest exit code.
    """
    if len(workspaces) == 1:
        return print_one(workspaces[0], lambda document: say(indented(document)))
    documents: list[dict[str, Any]] = []
    codes = []
    for number, workspace in enumerate(workspaces):
        if not as_json:
            say(f"{chr(10) if number else ''}{clean(str(workspace))}")
        codes.append(print_one(workspace, documents.append))
    if as_json:
        for document in documents:
            document["tasks"] = [{**task, "workspace": document["workspace"]} for task in document["tasks"]]
        say(indented({"schema_version": SCHEMA_VERSION, "workspaces": documents}))
    return max(codes)
