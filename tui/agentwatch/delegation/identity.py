"""Which task a document speaks of: file names and contents to task ids. Pure functions.

Order of the answers (DESIGN.md, "Linking"): the document's own `task_id`; the handoff the file belongs to
(`files`); the task directory and the agent; the file itself.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from posixpath import basename, dirname, split
from sys import intern
from typing import Final

from agentwatch.contracts.shapes import Contract, Fields, Handoff, Return, TodoList
from agentwatch.delegation.events import Seen

_KINDS: Final = "handoff|return|todos"
_SUFFIX: Final = re.compile(rf"(?:^|[._-])(?:{_KINDS})(?:[._-]?\d+)?$", re.IGNORECASE)
_PREFIX: Final = re.compile(rf"^(?:{_KINDS})[._-](?=.)", re.IGNORECASE)
_EXTENSION: Final = re.compile(r"(?:\.report)?\.json$|\.(?:md|markdown)$", re.IGNORECASE)
_ANSWER: Final = re.compile(r"(?:^|[._-])(?:handoff|return)(?:[._-]|$)", re.IGNORECASE)
_FOLDERS: Final = frozenset({"handoffs", "returns", "todos"})

# `.return-meta.json` is the file of a task directory; `.return-meta-b.json` is that of a teammate in the same one.
_META: Final = (
    r"^\.?(?:(?P<before>[a-z0-9]+(?:[-_][a-z0-9]+)*)-)?(?:return-meta|meta(?:-builder)?-return)(?:[-.](?P<after>.+))?$",
    r"^\.?(?P<before>orchestrator-handoff|phase\d+-handoff)(?:[-.](?P<after>.+))?$",
)
_SESSION_SUFFIX: Final = re.compile(r"[-.]?sess_.*$", re.IGNORECASE)

Slot = tuple[str, str]
"""(directory, stem): files with equal slots are about the same task, `("jobs", "api")` for `jobs/handoffs/api.json`."""


def slot(path: str) -> Slot:
    """The slot of a file; the stem is empty for general names such as `handoff.json`, `return-2.md`, `todos.md`.

    >>> slot("jobs/api.handoff.json") == slot("jobs/returns/api.md") == ("jobs", "api")
    True
    """
    directory, name = split(path)
    if basename(directory) in _FOLDERS:
        directory = dirname(directory)
    name = _EXTENSION.sub("", name)
    # Interned, for many files lie in one directory.
    return intern(directory), "" if _variant(name) == "" else _PREFIX.sub("", _SUFFIX.sub("", name))


def variant(path: str) -> str | None:
    """What a file of the return-meta family adds to its name: "" for the plain name, None outside the family."""
    return _variant(_EXTENSION.sub("", basename(path)))


def _variant(name: str) -> str | None:
    for match in (re.match(pattern, name, re.IGNORECASE) for pattern in _META):
        if match is not None:
            return "-".join(filter(None, (match["before"], _SESSION_SUFFIX.sub("", match["after"] or ""))))
    return None


def agent_of(document: Return) -> str | None:
    """The agent that wrote a return: the last element of its delegation path, else what it calls itself."""
    return document.delegation_path[-1] if document.delegation_path else document.agent


def is_under_contract(path: str) -> bool:
    """Whether a file is a handoff or a return by its name, or in the folder that it lies in: it must be readable.

    >>> is_under_contract("job/x.return.md"), is_under_contract("job/x.todos.md")
    (True, False)
    """
    name, folder = _EXTENSION.sub("", basename(path)), basename(dirname(path))
    return _ANSWER.search(name) is not None or variant(path) is not None or folder in _FOLDERS - {"todos"}


def own_id(document: Fields) -> str | None:
    """The task id a document states itself."""
    return None if isinstance(document, TodoList) else document.task_id or None


def fallback_id(path: str, document: Fields) -> str:
    """The task id of a document that states none and lies beside no handoff."""
    directory, stem = slot(path)
    if isinstance(document, Return) and document.contract in (Contract.SUBAGENT_RETURN, Contract.RETURN_META):
        extra = variant(path)
        place = in_directory(directory, agent_of(document)) or stem or basename(path)
        return f"{place}#{extra}" if extra else place
    return in_directory(directory, stem) or _EXTENSION.sub("", basename(path))


def in_directory(directory: str, name: str | None) -> str:
    """The id of the task that `name` does in a task directory."""
    return "/".join(part for part in (directory, name) if part)


def dotted_prefixes(task_id: str) -> list[str]:
    """The dotted prefixes of a task id, longest first: `a.b.c` gives `a.b`, `a`."""
    prefixes = []
    end = task_id.rfind(".")
    while end > 0:
        prefixes.append(task_id[:end])
        end = task_id.rfind(".", 0, end)
    return prefixes


def place_of(versions: Sequence[Seen]) -> str | None:
    """The task directory: where the task was first handed off, else where it was first returned."""
    for kind in (Handoff, Return):
        for version in versions:
            if isinstance(version.document, kind):
                return slot(version.path)[0]
    return None
