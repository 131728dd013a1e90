"""Whether a claimed path stays inside the repository, judged by its letters alone."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from agentwatch.contracts.findings import MAX_ENTRIES, shown

if TYPE_CHECKING:
    from agentwatch.contracts.findings import Judgement

_SCHEME_OR_DRIVE: Final = re.compile(
    r"[A-Z]:|[a-z]:[\\/]|[A-Za-z][A-Za-z0-9+.-]*://|(?i:data|file|ftp|git|https?|mailto|repo|ssh|urn|vscode):"
)
# As shells write them; a file may well be called `$slug.tsx`.
_VARIABLE: Final = re.compile(r"\$(?:[A-Z_][A-Z0-9_]*(?![A-Za-z0-9.])|\{|\(|env:)|%[A-Za-z_][A-Za-z0-9_()]*%")
# Nearly every path is one of these, and needs no closer look.
_PLAIN: Final = re.compile(r"[A-Za-z0-9_.-][A-Za-z0-9_./-]*\Z")
_LONGEST: Final = 4_096
_SEPARATORS: Final = re.compile(r"[\\/]")


def why_not_relative(path: str) -> str | None:
    """Why a path is not repo-relative, as half a sentence for a message; None where it is."""
    if len(path) <= _LONGEST and ".." not in path and _PLAIN.match(path):
        return None
    if len(path) > _LONGEST:
        return "it is longer than a path can be"
    if not path.strip():
        return "it is empty"
    path = path.strip()
    if path[0] in "/\\":
        return "it is absolute"
    if path[0] == "~":
        return "it starts in a home directory"
    if _SCHEME_OR_DRIVE.match(path):
        return "it names a drive or a scheme"
    if _VARIABLE.match(path):
        return "it starts with a variable"
    if "\0" in path:
        return "it holds a NUL character"
    depth = 0
    for part in _SEPARATORS.split(path):
        if part == "..":
            depth -= 1
        elif part not in ("", "."):
            depth += 1
        if depth < 0:
            return "it leaves the repository by `..`"
    return None


def judge_paths(rule: str, key: str, top: dict[str, Any], judgement: Judgement) -> None:
    """Note each `path` in the list of objects at `key` that is not repo-relative; an empty one breaks another rule."""
    entries = top.get(key)
    for index, entry in enumerate(entries[:MAX_ENTRIES] if isinstance(entries, list) else ()):
        path = entry.get("path") if isinstance(entry, dict) else None
        if isinstance(path, str) and path.strip() and (reason := why_not_relative(path)):
            judgement.add(rule, (key, index, "path"), value=shown(path), reason=reason)
