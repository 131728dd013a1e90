"""The reader of teamwork: one run for each role of a workspace."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from posixpath import basename
from typing import Final

from agentwatch.delegation.run import Message, Run, RunState
from agentwatch.sources.files.read import FileRefusedError, read_file
from agentwatch.sources.sessions.reader import Change, Found, Progress, StoreReader, Texts
from agentwatch.sources.teamwork.roles import (
    BRIEFING,
    HANDOFF,
    PROGRESS,
    TOP,
    Role,
    RoleLink,
    links_of,
    places_of_roles,
    read_role,
)

NAME: Final = "teamwork"
_FAILED: Final = ("failed", "crashed", "error", "dead", "stuck", "killed", "hung", "timed out", "timeout")


class TeamworkReader(StoreReader):
    """Implements SessionReader. A role's directory is its session; it is looked at anew on every call."""

    def __init__(self, workspace: Path) -> None:
        super().__init__(NAME, Texts(self._text_in))
        self._workspace = workspace.resolve()
        self._roles: dict[str, Role] = {}
        self._troubles: list[str] = []

    @property
    def trouble(self) -> str | None:
        """The first file that is not read."""
        return next(filter(None, (*self._troubles, *(role.trouble for role in self._roles.values()))), None)

    @property
    def progress(self) -> Progress:
        """All is read on each call: the files are small."""
        return Progress(0, 0)

    def read(self, seconds: float) -> Sequence[Change]:  # noqa: ARG002  a few milliseconds for a hundred roles
        """The roles that have changed, and those whose parent has."""
        roles: dict[str, Role] = {}
        for name, place in self._places().items():
            known = self._roles.get(name)
            role = read_role(self._workspace, name, place, known, told=self._told, troubles=self._troubles)
            if role is not None:
                roles[name] = role
        if roles.keys() == self._roles.keys() and all(role is self._roles[name] for name, role in roles.items()):
            return ()
        self._roles = roles
        links = links_of(roles)
        return self._give({name: self._run(role, links.get(name)) for name, role in roles.items()})

    def found(self) -> Sequence[Found]:
        """The directory of the roles, if there are any."""
        said = self.trouble or ""
        return [self._found(self._workspace / TOP, said, self._given.values())] if self._roles or said else []

    def _places(self) -> dict[str, str]:
        self._troubles.clear()
        try:
            return places_of_roles(self._workspace)
        except OSError as error:
            self._troubles.append(f"{TOP} cannot be read: {os.strerror(error.errno or 0)}.")
            # What was there may be there still.
            return {name: role.place for name, role in self._roles.items()}

    def _told(self, text: str, at: float, path: str) -> Message:
        return self._texts.message(text, at, self._workspace / path, key=path)

    def _text_in(self, path: Path) -> Sequence[str]:
        try:
            return [read_file(self._workspace, str(path.relative_to(self._workspace))).text]
        except FileRefusedError:
            return []

    def _run(self, role: Role, link: RoleLink | None) -> Run:
        status = link.member.status if link is not None and link.member is not None else ""
        state, reason = _state(role), ""
        has_ended = state is RunState.ENDED
        if not has_ended and status.startswith(_FAILED):
            state, reason = RunState.FAILED, f"The team roster of its parent says: {status}"
        elif has_ended and role.failing:
            state, reason = RunState.FAILED, f"Its handoff says: {role.failing}"
        return Run(
            source=NAME,
            session_id=role.name,
            parent_session=link.parent if link is not None else None,
            state=state,
            place=str(self._workspace / role.place),
            started_at=role.started_at,
            updated_at=role.updated_at,
            ended_at=role.ended_at if has_ended else None,
            link=link.basis if link is not None else "",
            reason=reason,
            title=basename(role.place),
            agent=role.briefing.archetype,
            prompt=role.prompt,
            said=role.said if has_ended else None,
            todos=role.todos,
            doing=role.doing,
        )


def _state(role: Role) -> RunState:
    if HANDOFF in role.files and not role.briefing.goes_on:
        return RunState.ENDED
    # A briefing is written by the role itself, and so is its progress: either shows that it has begun.
    return RunState.WORKING if role.files.keys() & {PROGRESS, BRIEFING} else RunState.SUBMITTED
