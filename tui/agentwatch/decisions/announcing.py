"""Announces a decision to an idle session of OpenCode, by one message to its server, so that it wakes up and asks.

The message is a pointer and decides nothing: the decision is the signed file that `agentwatch wait` reads. It is sent
once: a file in `<state directory>/announced/` is made before it is, so nobody who shares the state sends it again,
and where nobody can tell whether it arrived it counts as sent.
"""

from __future__ import annotations

import http.client
import json
import os
import re
from base64 import b64encode
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final
from urllib.parse import quote, urlsplit

from agentwatch.decisions.record import written
from agentwatch.disk import DISK, Directory, Disk, PrivateDirectory
from agentwatch.errors import AgentwatchError
from agentwatch.shell import command_line, launcher
from agentwatch.sources.sessions.fields import Fields, inner, mapping, text

NAME: Final = "announced"

_SECONDS: Final = 5.0
"""For one question to the server."""

_LARGEST: Final = 1024 * 1024
_LARGEST_MARK: Final = 4096
_TASK_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@+-]{0,127}")
"""Ids that are safe in a shell, and too poor to say anything to a model."""


class AnnouncingError(AgentwatchError):
    """It is not announced, or nobody knows."""


@dataclass(frozen=True, slots=True)
class _Session:
    """As whom and with which model a session goes on. Without them OpenCode would take its defaults, so that one which
    only plans would begin to build."""

    agent: str
    model: Mapping[str, str]


class Announcer:
    """Speaks to the server at `url`, which is on this computer, about a workspace and its `state` directory.

    Where the server asks for a password, it is taken from the same variables of the environment as its own.
    """

    def __init__(
        self, url: str, workspace: Path, state: Path, disk: Disk = DISK, environment: Mapping[str, str] | None = None
    ) -> None:
        environment = os.environ if environment is None else environment
        parts = urlsplit(url)
        self._host, self._port = parts.hostname or "", parts.port
        self._url, self._workspace = url, workspace
        self._marks = PrivateDirectory(state / NAME, disk)
        self._headers = {"content-type": "application/json"}
        password = environment.get("OPENCODE_SERVER_PASSWORD")
        if password:
            user = environment.get("OPENCODE_SERVER_USERNAME") or "opencode"
            self._headers["authorization"] = f"Basic {b64encode(f'{user}:{password}'.encode()).decode()}"

    def announce(self, session: str, task_id: str, decision_id: str) -> str:
        """Tell a session, unless it was told before. Returns what to say of that. Blocks; raises AnnouncingError."""
        if not _TASK_ID.fullmatch(task_id):
            raise AnnouncingError("its task id could be misread in a shell, so OpenCode is not told of the decision")
        name = f"{decision_id}.json"
        try:
            with self._marks.make() as marks:
                return _mark(marks, name) or self._announce(marks, name, session, task_id)
        except OSError as error:
            raise AnnouncingError(
                f"OpenCode is not told of the decision about {task_id}: {self._marks.path} cannot be written ({error})"
            ) from error

    def _announce(self, marks: Directory, name: str, session: str, task_id: str) -> str:
        who = self._session(session)
        at = written(datetime.now(UTC))
        try:
            marks.publish(name, _content(session, at, sent=False))
        except FileExistsError:
            return _mark(marks, name)
        wait = command_line([*launcher(), "wait", "--", task_id, str(self._workspace)])
        said = (
            f"agentwatch: the operator has decided about {task_id}. Run `{wait}` in your shell, and do what it says."
            " This message itself decides nothing."
        )
        body = {"agent": who.agent, "model": who.model, "parts": [{"type": "text", "text": said}]}
        status, _ = self._ask("POST", f"/session/{quote(session, safe='')}/prompt_async", body)
        if not http.client.OK <= status < http.client.MULTIPLE_CHOICES:
            marks.remove(name)
            raise AnnouncingError(f"OpenCode at {self._url} refused the message about {task_id} (HTTP {status})")
        marks.replace(name, _content(session, at, sent=True))
        return _mark(marks, name)

    def _session(self, session: str) -> _Session:
        status, found = self._ask("GET", f"/session/{quote(session, safe='')}", None)
        if status == http.client.NOT_FOUND:
            raise AnnouncingError(f"OpenCode at {self._url} has no session {session}")
        if status == http.client.UNAUTHORIZED:
            raise AnnouncingError(f"OpenCode at {self._url} asks for a password: set OPENCODE_SERVER_PASSWORD")
        agent, model = text(found, "agent"), inner(found, "model")
        provider, name = text(model, "providerID"), text(model, "id")
        if status != http.client.OK or agent is None or provider is None or name is None:
            raise AnnouncingError(
                f"OpenCode at {self._url} does not say as which agent {session} works (HTTP {status})"
            )
        return _Session(agent, {"providerID": provider, "modelID": name})

    def _ask(self, method: str, path: str, body: object) -> tuple[int, Fields]:
        """(status, JSON object) of one answer; no proxy is used and no redirection followed."""
        data = None if body is None else json.dumps(body).encode("ascii")
        with closing(http.client.HTTPConnection(self._host, self._port, timeout=_SECONDS)) as connection:
            try:
                connection.request(method, path, data, self._headers)
                answer = connection.getresponse()
                found = json.loads(answer.read(_LARGEST) or b"null")
            except (OSError, http.client.HTTPException) as error:
                raise AnnouncingError(
                    f"OpenCode at {self._url} does not answer ({str(error) or type(error).__name__})"
                ) from error
            except (ValueError, RecursionError):
                found = None
        return answer.status, mapping(found)


def _content(session: str, at: str, *, sent: bool) -> bytes:
    return (json.dumps({"version": 1, "session": session, "at": at, "sent": sent}) + "\n").encode("ascii")


def _mark(marks: Directory, name: str) -> str:
    """What is known of an announcement, "" where there was none."""
    try:
        found = json.loads(marks.read(name, _LARGEST_MARK))
    except FileNotFoundError:
        return ""
    except (ValueError, RecursionError):
        found = None
    was_sent = isinstance(found, dict) and found.get("sent") is True
    return "announced in its OpenCode session" if was_sent else "perhaps announced in its OpenCode session"
