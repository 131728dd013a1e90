"""Announces decisions to idle sessions of OpenCode, by one message to its server, so that they wake up and ask.

The message is a pointer and decides nothing: the decision is the signed file that `agentwatch wait` reads. It is sent
once: a file in `<state directory>/announced/` is made before it is, so nobody who shares the state sends it again,
and where nobody can tell whether it arrived it counts as sent. All is done in threads, so nothing waits for it.
"""

from __future__ import annotations

import http.client
import json
import os
import re
import threading
import time
from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, urlsplit

from agentwatch.decisions.record import written
from agentwatch.delegation.run import RunState
from agentwatch.delegation.task import Task
from agentwatch.delegation.tree import Tree
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

_AGAIN_SECONDS: Final = 60.0
"""After a failure, until the next attempt."""

_SOURCE: Final = "opencode"
"""What the names of its databases begin with."""

Note = Callable[[str, str], None]
"""Takes a decision's id and what is to be said of it."""


class AnnouncingError(AgentwatchError):
    """It is not announced, or nobody knows."""


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
            why = f"{self._marks.path} cannot be written ({error})"
            raise AnnouncingError(f"OpenCode is not told of the decision about {task_id}: {why}") from error

    def _announce(self, marks: Directory, name: str, session: str, task_id: str) -> str:
        try:
            wait = command_line([*launcher(), "wait", "--", task_id, str(self._workspace)])
        except ValueError as error:
            raise AnnouncingError(f"OpenCode cannot be told of the decision about {task_id}: {error}") from error
        going_on = self._going_on(session)
        at = written(datetime.now(UTC))
        try:
            marks.publish(name, _content(session, at, sent=False))
        except FileExistsError:
            return _mark(marks, name)
        said = (
            f"agentwatch: the operator has decided about {task_id}. Run `{wait}` in your shell, and do what it says."
            " This message itself decides nothing."
        )
        body = going_on | {"parts": [{"type": "text", "text": said}]}
        status, _ = self._ask("POST", f"/session/{quote(session, safe='')}/prompt_async", body)
        if not http.client.OK <= status < http.client.MULTIPLE_CHOICES:
            marks.remove(name)
            raise AnnouncingError(f"OpenCode at {self._url} refused the message about {task_id} (HTTP {status})")
        marks.replace(name, _content(session, at, sent=True))
        return _mark(marks, name)

    def _going_on(self, session: str) -> dict[str, Any]:
        """As which agent and with which model it goes on. Without them OpenCode would take its defaults, so that a
        session which only plans would begin to build."""
        status, answer = self._ask("GET", f"/session/{quote(session, safe='')}", None)
        if status == http.client.NOT_FOUND:
            raise AnnouncingError(f"OpenCode at {self._url} has no session {session}")
        if status == http.client.UNAUTHORIZED:
            raise AnnouncingError(f"OpenCode at {self._url} asks for a password: set OPENCODE_SERVER_PASSWORD")
        agent, model = text(answer, "agent"), inner(answer, "model")
        provider, name = text(model, "providerID"), text(model, "id")
        if status != http.client.OK or agent is None or provider is None or name is None:
            why = f"does not say as which agent {session} works (HTTP {status})"
            raise AnnouncingError(f"OpenCode at {self._url} {why}")
        return {"agent": agent, "model": {"providerID": provider, "modelID": name}}

    def _ask(self, method: str, path: str, body: object) -> tuple[int, Fields]:
        """(status, JSON object) of one answer; no proxy is used and no redirection followed."""
        data = None if body is None else json.dumps(body).encode("ascii")
        with closing(http.client.HTTPConnection(self._host, self._port, timeout=_SECONDS)) as connection:
            try:
                connection.request(method, path, data, self._headers)
                answer = connection.getresponse()
                value = json.loads(answer.read(_LARGEST) or b"null")
            except (OSError, http.client.HTTPException) as error:
                why = str(error) or type(error).__name__
                raise AnnouncingError(f"OpenCode at {self._url} does not answer ({why})") from error
            except (ValueError, RecursionError):
                value = None
        return answer.status, mapping(value)


class Herald:
    """Announces each decision once, to the session that asked for the task. `note` is called in another thread."""

    def __init__(self, announcer: Announcer, note: Note) -> None:
        self.notice: str | None = None
        """Why the last announcement failed, one sentence; it may quote foreign text. None where it did not."""
        self._announcer = announcer
        self._note = note
        self._waiting: set[str] = set()
        """Tasks with a decision that no agent has read and nobody has announced."""
        self._not_before: dict[str, float] = {}
        """By decision; infinite while it is being announced."""

    def look(self, tree: Tree, changed: Iterable[str]) -> None:
        """See what is to be announced now. `changed` are the tasks that have changed since the call before."""
        for task_id in changed:
            task = tree.tasks.get(task_id)
            decision = task.binding if task is not None else None
            if decision is None or decision.is_read or decision.waits or decision.announced:
                self._waiting.discard(task_id)
            else:
                self._waiting.add(task_id)
        for task_id in self._waiting:
            task = tree.tasks[task_id]
            session, decision = idle_parent(tree, task), task.binding
            if session is None or decision is None:
                continue
            if time.monotonic() >= self._not_before.get(decision.decision_id, 0.0):
                self._not_before[decision.decision_id] = float("inf")
                given = session, task_id, decision.decision_id
                threading.Thread(target=self._announce, args=given, name="agentwatch-herald", daemon=True).start()

    def _announce(self, session: str, task_id: str, decision_id: str) -> None:
        try:
            self._note(decision_id, self._announcer.announce(session, task_id, decision_id))
            self.notice = None
        except AnnouncingError as error:
            self.notice = str(error)
            self._not_before[decision_id] = time.monotonic() + _AGAIN_SECONDS


def idle_parent(tree: Tree, task: Task) -> str | None:
    """The session of OpenCode that asked for a task and waits for its human by now; None where there is none.

    One that works is left alone: it will ask by itself, and a second process would work in it at the same time.
    """
    run, parent = task.run, tree.tasks.get(task.parent_id or "")
    above = parent.run if parent is not None else None
    if run is None or above is None or run.parent_session != above.session_id:
        return None
    is_idle = above.state is RunState.ENDED and run.source == above.source and run.source.startswith(_SOURCE)
    return above.session_id if is_idle else None


def _content(session: str, at: str, *, sent: bool) -> bytes:
    return (json.dumps({"version": 1, "session": session, "at": at, "sent": sent}) + "\n").encode("ascii")


def _mark(marks: Directory, name: str) -> str:
    """What is known of an announcement, "" where there was none."""
    try:
        mark = json.loads(marks.read(name, _LARGEST_MARK))
    except FileNotFoundError:
        return ""
    except (ValueError, RecursionError):
        mark = None
    was_sent = isinstance(mark, dict) and mark.get("sent") is True
    return "announced in its OpenCode session" if was_sent else "perhaps announced in its OpenCode session"
