"""The directories of the roles of a team, each read again when one of its files has changed.

They lie in `.agents/`, or in `.agents/teamwork/` since 2026.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from posixpath import basename
from typing import Final

from agentwatch.contracts.shapes import Todo
from agentwatch.delegation.run import Message
from agentwatch.sources.files.read import FileRefusedError, FileText, read_file
from agentwatch.sources.files.rules import NOT_READABLE
from agentwatch.sources.files.scan import fingerprint
from agentwatch.sources.teamwork.briefing import Briefing, checklist, first_time, last_visited, read_briefing

TOP: Final = ".agents"
NEWER: Final = ".agents/teamwork"
_MOST_ROLES: Final = 1_000
# `.agents/` is also where other programs look for what agents are to read: a command there may be called handoff.md.
_NO_ROLES: Final = frozenset(
    {"agents", "commands", "docs", "instructions", "plugins", "prompts", "rules", "skills", "templates", "workflows"}
)

BRIEFING: Final = "BRIEFING.md"
PROGRESS: Final = "progress.md"
HANDOFF: Final = "handoff.md"
REQUESTS: Final = ("ORIGINAL_REQUEST.md", "DISPATCH.md", "original_prompt.md", BRIEFING)
"""Where the task stands, the best first: newer teams dispatch, the oldest kept a prompt, and a few roles have nothing
but a briefing."""
NAMES: Final = (*REQUESTS, PROGRESS, HANDOFF)

_A_DAY: Final = 86_400.0
_EARLIEST: Final = 946_684_800.0
"""The year 2000: no agent worked before."""


@dataclass(slots=True)
class Role:
    """What the files of a role's directory say. Times are seconds since the epoch, texts are foreign."""

    name: str
    place: str
    """The directory, from the workspace on: `.agents/mapper`, or `.agents` itself."""
    files: dict[str, int] = field(default_factory=dict)
    """The files that are there, and a fingerprint of each as it was read."""
    briefing: Briefing = field(default_factory=Briefing)
    prompt: Message | None = None
    said: Message | None = None
    todos: tuple[Todo, ...] | None = None
    started_at: float = 0.0
    updated_at: float = 0.0
    ended_at: float | None = None
    trouble: str | None = None


def places_of_roles(root: Path) -> dict[str, str]:
    """The directories that may be those of roles, from the workspace on, by the role's name; raises OSError.

    The role that watches over a team has at times no directory of its own, and a briefing beside those of the others.
    """
    return dict(_listed(root, TOP)) | dict(_listed(root, NEWER))


def _listed(root: Path, above: str) -> Iterator[tuple[str, str]]:
    try:
        with os.scandir(root / above) as entries:
            is_directory = {entry.name: entry.is_dir(follow_symlinks=False) for entry in entries}
    except (FileNotFoundError, NotADirectoryError):
        return
    if is_directory.get(BRIEFING) is False:
        yield basename(above), above
    names = [name for name in sorted(is_directory) if is_directory[name] and _may_be_role(root, above, name)]
    for name in names[:_MOST_ROLES]:
        yield f"{above}/{name}".removeprefix(f"{TOP}/"), f"{above}/{name}"


def _may_be_role(root: Path, above: str, name: str) -> bool:
    if f"{above}/{name}" == NEWER:
        return False
    return name not in _NO_ROLES or os.path.lexists(root / above / name / BRIEFING)


def read_role(
    root: Path,
    name: str,
    place: str,
    known: Role | None,
    *,
    told: Callable[[str, float, str], Message],
    troubles: list[str],
) -> Role | None:
    """The role in a directory; `known` itself where nothing has changed, None where it has none of the files.

    `told` makes a message of a text, its time, and the path of its file below `root`. Why it cannot be read at all is
    added to `troubles`.
    """
    stamps: dict[str, int] = {}
    for file in NAMES:
        try:
            status = (root / place / file).stat(follow_symlinks=False)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            troubles.append(f"{place} cannot be read: {os.strerror(error.errno or 0)}.")
            # What was known may still be so.
            return known
        stamps[file] = fingerprint(status)
    if not stamps:
        return None
    if known is not None and known.files == stamps:
        return known
    role = Role(name, place, stamps)
    texts: dict[str, FileText] = {}
    for file in stamps:
        try:
            texts[file] = read_file(root, f"{place}/{file}")
        except FileRefusedError as error:
            role.trouble = f"{os.path.join(place, file)}: {error.message}"  # noqa: PTH118  it is a sentence
            if known is not None and error.rule is NOT_READABLE:
                troubles.append(role.trouble)
                return known
        except FileNotFoundError:
            continue
    if not texts:
        troubles += [role.trouble] if role.trouble is not None else []
        return None
    _fill(role, texts, told)
    return role


def _fill(role: Role, texts: dict[str, FileText], told: Callable[[str, float, str], Message]) -> None:
    written = {file: text.mtime_ns / 1e9 for file, text in texts.items()}
    if BRIEFING in texts:
        role.briefing = read_briefing(texts[BRIEFING].text)
    request = next((file for file in REQUESTS if file in texts), None)
    if PROGRESS in texts:
        role.todos = checklist(texts[PROGRESS].text)
    said = [last_visited(text.text) if file == PROGRESS else first_time(text.text) for file, text in texts.items()]
    role.updated_at = _believed([time for time in said if time is not None], max(written.values()))
    asked = first_time(texts[request].text) if request is not None else None
    oldest = min(written.values())
    role.started_at = min(asked, oldest) if asked is not None and asked > _EARLIEST else min(oldest, role.updated_at)
    if request is not None:
        role.prompt = told(texts[request].text, role.started_at, f"{role.place}/{request}")
    if HANDOFF in texts:
        role.ended_at = max(min(written[HANDOFF], role.updated_at), role.started_at)
        role.said = told(texts[HANDOFF].text, role.ended_at, f"{role.place}/{HANDOFF}")


def _believed(said: list[float], written: float) -> float:
    """The last sign of life. Agents guess the time, so that of the files counts, unless it is a day later: then they
    were copied or checked out."""
    last = max(said, default=written)
    return last if _EARLIEST < last < written - _A_DAY else written
