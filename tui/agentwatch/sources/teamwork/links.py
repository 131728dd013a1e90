"""Who asked for whom: the conversation that a role names as its parent, found among the roles.

A role does not write down its own conversation. It shows in the names of its timers, at times in that of its directory,
in the roster of the role that started it, and in what those say that it started in its turn. Teams replace an
orchestrator by a new one in the same directory, so a directory may have several.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from posixpath import basename, dirname
from typing import Final, NamedTuple

from agentwatch.sources.teamwork.briefing import ID, RosterRow
from agentwatch.sources.teamwork.roles import Role

_PREFIX: Final = re.compile(r"^teamwork_preview_")
_CONVERSATION: Final = re.compile(f"^{ID}$")

_Rosters = Mapping[str, Mapping[str, RosterRow]]
"""For each role with a roster: the rows that go by the name of another role's directory, by that name."""


class RoleLink(NamedTuple):
    """The role that asked for another one, by what that is known, and the row of its roster, if it has one."""

    parent: str
    basis: str
    member: RosterRow | None = None


def links_of(roles: Mapping[str, Role]) -> dict[str, RoleLink]:
    """The link of each role that has a parent."""
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
    # Whoever started a role is the parent that this role names: that conversation is one of its own.
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
