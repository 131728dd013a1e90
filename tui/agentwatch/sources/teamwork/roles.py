"""The directories of the roles of a team, each read again when one of its files has changed, and who asked for whom.

They lie in `.agents/`, or in `.agents/teamwork/` since 2026.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from posixpath import basename, dirname
from typing import Final, NamedTuple

from agentwatch.contracts.shapes import Todo
from agentwatch.delegation.run import Doing, Message, todo_moved
from agentwatch.sources.files.read import FileRefusedError, FileText, read_file
from agentwatch.sources.files.rules import NOT_READABLE
from agentwatch.sources.files.scan import fingerprint
from agentwatch.sources.teamwork.briefing import (
    ID,
    Briefing,
    RosterRow,
    checklist,
    failing_status,
    first_time,
    last_visited,
    read_briefing,
)

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

_PREFIX: Final = re.compile(r"^teamwork_preview_")
_CONVERSATION: Final = re.compile(f"^{ID}$")

_Rosters = Mapping[str, Mapping[str, RosterRow]]
"""For each role with a roster: the rows that go by the name of another role's directory, by that name."""


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
    failing: str = ""
    """The status of its handoff, where that follows no contract and says that the work failed."""
    todos: tuple[Todo, ...] | None = None
    doing: Doing | None = None
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
    before = known.todos if known is not None else None
    role.doing = todo_moved(before, role.todos, role.updated_at) or (known.doing if known is not None else None)
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
        if role.said.reading is None:
            role.failing = failing_status(texts[HANDOFF].text)


def _believed(said: list[float], written: float) -> float:
    """The last sign of life. Agents guess the time, so that of the files counts, unless it is a day later: then they
    were copied or checked out."""
    last = max(said, default=written)
    return last if _EARLIEST < last < written - _A_DAY else written


class RoleLink(NamedTuple):
    """The role that asked for another one, by what that is known, and the row of its roster, if it has one."""

    parent: str
    basis: str
    member: RosterRow | None = None


def links_of(roles: Mapping[str, Role]) -> dict[str, RoleLink]:
    """The link of each role that has a parent: the conversation that it names, found among the roles.

    A role does not write down its own conversation. It shows in the names of its timers, at times in that of its
    directory, in the roster of the role that started it, and in what those say that it started in its turn. Teams
    replace an orchestrator by a new one in the same directory, so a directory may have several."""
    plain = {(dirname(role.place), _plain(basename(role.place))): name for name, role in roles.items()}
    members = {name: _members(role, plain) for name, role in roles.items() if role.briefing.roster}
    owners = _owners(roles, members)
    listed = {name: owner for owner, rows in members.items() for name in rows}
    started = {owners[one]: name for name, role in roles.items() for one in role.briefing.started if one in owners}
    links: dict[str, RoleLink] = {}
    for name, role in roles.items():
        named = next((owners[parent] for parent in role.briefing.parents if parent in owners), None)
        if named is not None and named != name:
            parent, basis = named, "the parent that its BRIEFING.md names"
        elif name in listed:
            parent, basis = listed[name], "the team roster of its parent"
        elif started.get(name, name) != name:
            parent, basis = started[name], "the BRIEFING.md of its parent, which names it"
        elif role.briefing.parents and len(members) == 1 and name not in members and not role.briefing.started:
            parent, basis = next(iter(members)), "the only team roster there is"
        else:
            continue
        links[name] = RoleLink(parent, basis, members.get(parent, {}).get(name))
    return links


def _owners(roles: Mapping[str, Role], members: _Rosters) -> dict[str, str]:
    """The role that each conversation is one of, as far as it can be told."""
    owners: dict[str, str] = {}
    for name, role in roles.items():
        for conversation in (*role.briefing.own, *_CONVERSATION.findall(basename(role.place).lower())):
            owners.setdefault(conversation, name)
    for rows in members.values():
        for child, member in rows.items():
            if member.conversation is not None:
                owners.setdefault(member.conversation, child)
    # A role names the parent that started it: that conversation is one of its own.
    for name, rows in members.items():
        _own_by_children(name, rows, roles, owners)
    for name, role in roles.items():
        _name_started(role, members, roles, owners)
        _own_by_children(name, [owners[one] for one in role.briefing.started if one in owners], roles, owners)
    return owners


def _own_by_children(name: str, children: Iterable[str], roles: Mapping[str, Role], owners: dict[str, str]) -> None:
    for child in children:
        for parent in roles[child].briefing.parents[:1] if child != name else ():
            owners.setdefault(parent, name)


def _name_started(role: Role, members: _Rosters, roles: Mapping[str, Role], owners: dict[str, str]) -> None:
    """An orchestrator may name its own conversation as its parent: it is the one that was started as that."""
    for conversation in role.briefing.started:
        itself = [name for name in members if conversation in roles[name].briefing.parents]
        if conversation not in owners and len(itself) == 1:
            owners[conversation] = itself[0]


def _members(owner: Role, plain: Mapping[tuple[str, str], str]) -> dict[str, RosterRow]:
    members: dict[str, RosterRow] = {}
    for member in owner.briefing.roster:
        name = plain.get((dirname(owner.place), _plain(member.agent)))
        if name is not None and name != owner.name:
            members.setdefault(name, member)
    return members


def _plain(name: str) -> str:
    return _PREFIX.sub("", re.sub(r"[^0-9a-z]+", "_", name.lower()).strip("_"))
