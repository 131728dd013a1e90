"""What a command prints of several workspaces: of each what it prints of one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from agentwatch.text import clean, complain, indented, say
from agentwatch.workspaces import Places

SCHEMA_VERSION: Final = 1


def print_each(
    workspaces: Sequence[Path],
    print_one: Callable[[Path, Callable[[Mapping[str, Any]], None]], int],
    *,
    as_json: bool,
    names: Mapping[Path, str] = MappingProxyType({}),
    find: Callable[[], Places] = lambda: Places(()),
) -> int:
    """Print each workspace with `print_one`, which gets the workspace, and what prints its JSON document; of one alone,
    also the worktrees that `find` finds.

    Of several, each has its path above it, or its name where it is one of `names`. As JSON they are one document, in
    which each task names its workspace; the documents of worktrees stand in that of the one that was asked for. Returns
    the highest exit code.
    """
    is_one = len(workspaces) == 1
    found = find() if is_one else Places(())
    workspaces = [*workspaces, *(place.workspace for place in found.places)]
    documents: list[dict[str, Any]] = []
    codes = []
    for number, workspace in enumerate(workspaces):
        if not as_json and len(workspaces) > 1:
            say(f"{chr(10) if number else ''}{clean(names.get(workspace, str(workspace)))}")
        codes.append(print_one(workspace, lambda one: documents.append(dict(one))))
    if as_json:
        for document in documents[is_one:]:
            document["tasks"] = [{**task, "workspace": document["workspace"]} for task in document["tasks"]]
        several = {"schema_version": SCHEMA_VERSION, "workspaces": documents}
        say(indented({**documents[0], "worktrees": documents[1:]} if is_one else several))
    for complaint in found.complaints:
        complain(clean(complaint))
    return max(codes)
