"""Holds what Codex asks in a workspace: a second client of the app server that its terminal program talks to.

The server asks all of its clients, and the first answer counts; the program's own prompt stands meanwhile. A request is
answered on the connection that it came by, and ids of requests mean nothing beyond that: they are counted from 0.
"""

from __future__ import annotations

import json
import os
import stat
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from agentwatch import __version__
from agentwatch.background import Background
from agentwatch.decisions.record import Record
from agentwatch.delegation.events import Event
from agentwatch.delegation.request import Request, RequestStage
from agentwatch.requests.box import BoxError, Offer
from agentwatch.requests.codex_asked import CALL, CHANGE, METHODS, Asked, answer_of, is_tried, request_of, version_of
from agentwatch.requests.codex_wire import Wire, WireError, connected
from agentwatch.requests.holding import Holder
from agentwatch.sources.sessions.fields import Fields, inner, listed, mapping, text
from agentwatch.sources.sessions.store import holds

_SOCKET: Final = Path("app-server-control", "app-server-control.sock")
_LOOK_SECONDS: Final = 2.0
"""Between two looks for a socket."""
_MOST_SECONDS: Final = 32.0
"""Between two attempts at a socket that does not serve us."""
_IDLE_SECONDS: Final = 0.25
_HELD_SECONDS: Final = 0.05
"""Between two looks for an answer."""
_MOST_THREADS: Final = 500
_MOST_ITEMS: Final = 100
_DEEPEST: Final = 20


@dataclass(slots=True)
class _Held:
    """A request of the connection. `sent` is the decision that it was answered with, which the server has not said yet
    that it took."""

    rpc_id: object
    asked: Asked
    request: Request
    offer: Offer
    sent: Record | None = None


class CodexClient(Background[Sequence[Event]]):
    """Runs in a thread of its own. `home` is `$CODEX_HOME`, there or not. What it offers, an inbox sees."""

    thread_name = "agentwatch-codex"

    def __init__(self, workspace: Path, home: Path, holder: Holder, clock: Callable[[], float] = time.time) -> None:
        super().__init__()
        self.refused = ""
        """Why something that Codex asks is not offered, one sentence. May quote foreign text."""
        self._workspace = os.path.realpath(workspace)
        self._socket = home / _SOCKET
        self._holder = holder
        self._clock = clock
        self._pause = _LOOK_SECONDS
        self._lost = set[str]()

    def _run(self, emit: Callable[[Sequence[Event]], None]) -> None:
        del emit
        tried: tuple[int, int] | None = None
        again_at = 0.0
        while not self._stopped:
            found = self._found()
            if found is not None and (found != tried or time.monotonic() >= again_at):
                self._pause = _LOOK_SECONDS if found != tried else min(2 * self._pause, _MOST_SECONDS)
                tried = found
                self._attempt()
                again_at = time.monotonic() + self._pause
            # One that does not serve us, or has ended without a word, is tried again.
            self._rest(_LOOK_SECONDS)

    def _found(self) -> tuple[int, int] | None:
        """Which socket there is."""
        try:
            status = os.stat(self._socket)  # noqa: PTH116
        except OSError:
            return None
        # Whose socket it is decides whom we would answer.
        is_ours = stat.S_ISSOCK(status.st_mode) and status.st_uid == os.geteuid()
        return (status.st_ino, status.st_ctime_ns) if is_ours else None

    def _attempt(self) -> None:
        """Serve one connection until it ends."""
        with suppress(WireError), connected(self._socket) as wire:
            _Connection(self, wire).serve()

    @property
    def notice(self) -> str | None:
        """Why something that Codex asks cannot be answered here, one sentence. May quote foreign text."""
        return self.refused or self._holder.trouble or None

    # What a connection asks of it

    @property
    def is_stopped(self) -> bool:
        return self._stopped

    def served(self) -> None:
        """A connection has begun as it should: once it is lost, the next one is soon."""
        self._pause, self.refused = _LOOK_SECONDS, ""

    def place(self, directory: str | None) -> str | None:
        """A directory as it is, if it is the workspace or lies below it; None if it does not."""
        with suppress(OSError, ValueError):
            if directory is not None and os.path.isabs(directory):  # noqa: PTH117
                place = os.path.realpath(directory)
                return place if holds(self._workspace, place) else None
        return None

    def is_workspace(self, directory: str | None) -> bool:
        return self.place(directory) == self._workspace

    def request(self, asked: Asked) -> Request | None:
        with suppress(ValueError):
            while True:
                request = request_of(asked, self._holder.box.workspace_id, self._clock())
                if request is None or request.request_id not in self._lost:
                    return request
                asked = asked._replace(again=asked.again + 1)
        return None

    def offer(self, request: Request) -> Offer | None:
        try:
            return self._holder.offer(request)
        except BoxError as error:
            self.refused = f"Codex: {error}"
            return None

    def ended(self, held: _Held, stage: RequestStage, by: str = "") -> None:
        """A request is held no more. Whether an answer that nothing was heard of was taken, nobody can say; where it
        was not, the server asks again, and what it asks is another request."""
        if stage is RequestStage.GONE and held.sent is not None:
            stage = RequestStage.UNKNOWN
            self._lost.add(held.request.request_id)
        held.offer.end(stage, by)

    def look(self, offer: Offer) -> Record | None:
        return self._holder.look(offer)

    def delivered(self, record: Record) -> None:
        self._holder.delivered(record)


class _Connection:
    """One connection to the server, from its first message to its end; whatever it holds ends with it."""

    def __init__(self, client: CodexClient, wire: Wire) -> None:
        self._client = client
        self._wire = wire
        self._version = ""
        self._threads: dict[str, Fields] = {}
        self._followed: dict[str, dict[str, Fields]] = {}
        """By thread that waits, its items in progress."""
        self._held: dict[str, _Held] = {}

    def serve(self) -> None:
        """Raises WireError once it is lost."""
        try:
            self._begin()
            while not self._client.is_stopped:
                pause = _HELD_SECONDS if self._held else _IDLE_SECONDS
                self._take_all(pause)
                for key in list(self._held):
                    self._look(key)
        finally:
            for held in self._held.values():
                self._client.ended(held, RequestStage.GONE)

    def _begin(self) -> None:
        name = {"name": "agentwatch", "title": "agentwatch", "version": __version__}
        capabilities = {"experimentalApi": True}
        self._version = version_of(self._wire.call("initialize", clientInfo=name, capabilities=capabilities))
        self._wire.send({"method": "initialized"})
        self._client.served()
        loaded = [one for one in listed(self._wire.call("thread/loaded/list"), "data") if isinstance(one, str)]
        for thread in loaded[:_MOST_THREADS]:
            self._stands(thread, inner(self._read(thread), "status"))

    # Threads

    def _read(self, thread: str) -> Fields:
        """A thread as it is; empty where the server does not know it."""
        found = inner(self._wire.call("thread/read", threadId=thread), "thread")
        if text(found, "id") == thread:
            self._threads[thread] = found
        return found

    def _is_ours(self, thread: str) -> bool:
        """Whether it works in the workspace, or was asked for by one that does."""
        for _ in range(_DEEPEST):
            found = self._threads.get(thread) or self._read(thread)
            if text(found, "id") is None or found.get("ephemeral") is True:
                return False
            if self._client.place(text(found, "cwd")) is not None:
                return True
            above = text(found, "parentThreadId")
            if above is None:
                return False
            thread = above
        return False

    def _stands(self, thread: str, status: Fields) -> None:
        """A thread has this status now: it is followed as long as it waits."""
        if status.get("type") == "active" and listed(status, "activeFlags"):
            if thread not in self._followed and self._is_ours(thread):
                self._follow(thread)
        elif self._followed.pop(thread, None) is not None:
            for key in [key for key, held in self._held.items() if held.request.session_id == thread]:
                self._end(key, RequestStage.GONE)
            self._wire.ask("thread/unsubscribe", threadId=thread)

    def _follow(self, thread: str) -> None:
        if not is_tried(self._version):
            version = f"This version of Codex ({self._version})" if self._version else "This version of Codex"
            self._client.refused = f"{version} is not known here, so what it asks is answered in it: update agentwatch"
            return
        self._followed[thread] = {}
        page = {"limit": 1, "itemsView": "full"}
        found = self._wire.call("thread/resume", threadId=thread, excludeTurns=True, initialTurnsPage=page)
        for turn in listed(inner(found, "initialTurnsPage"), "data"):
            for item in listed(mapping(turn), "items"):
                self._progress(thread, mapping(item))

    def _progress(self, thread: str, item: Fields) -> None:
        """An item is like this now."""
        items, item_id = self._followed.get(thread), text(item, "id")
        if items is None or item_id is None or item.get("type") not in (CHANGE, CALL):
            return
        if item.get("status") == "inProgress" and len(items) < _MOST_ITEMS:
            items[item_id] = item
        else:
            items.pop(item_id, None)

    # Messages

    def _take_all(self, seconds: float) -> None:
        """Take what has come, and what comes within so many seconds at most."""
        while True:
            message = self._wire.receive(seconds)
            if message is None:
                return
            self._take(message)
            seconds = 0

    def _take(self, message: Fields) -> None:
        method, params = text(message, "method"), mapping(message.get("params"))
        thread = text(params, "threadId") or ""
        if method is not None and "id" in message:
            if method in METHODS and thread in self._followed:
                is_usual = self._client.is_workspace(text(params, "cwd"))
                self._asked(message["id"], Asked(method, params, dict(self._followed[thread]), is_usual))
            return
        match method:
            case "serverRequest/resolved":
                self._resolved(thread, _key(params.get("requestId")))
            case "thread/status/changed":
                self._stands(thread, inner(params, "status"))
            case "item/started" | "item/completed":
                self._progress(thread, inner(params, "item"))
            case "item/fileChange/patchUpdated":
                # What was shown is not what would be done now.
                item_id = text(params, "itemId")
                self._followed.get(thread, {}).pop(item_id or "", None)
                for key, held in list(self._held.items()):
                    if held.request.session_id == thread and held.request.call_id == item_id:
                        self._end(key, RequestStage.GONE)
            case "thread/closed" | "thread/deleted":
                self._threads.pop(thread, None)
                self._stands(thread, {})

    def _asked(self, rpc_id: object, asked: Asked) -> None:
        key, request = _key(rpc_id), self._client.request(asked)
        before = self._held.get(key)
        if before is not None:
            if request is not None and before.request.request_id == request.request_id:
                return
            self._end(key, RequestStage.GONE)
        if request is not None and (offer := self._client.offer(request)) is not None:
            self._held[key] = _Held(rpc_id, asked, request, offer)

    def _resolved(self, thread: str, key: str) -> None:
        held = self._held.get(key)
        if held is None or held.request.session_id != thread:
            return
        if held.sent is None:
            self._end(key, RequestStage.ELSEWHERE)
        else:
            self._client.delivered(held.sent)
            self._end(key, RequestStage.DELIVERED, by=held.sent.operator)

    def _end(self, key: str, stage: RequestStage, by: str = "") -> None:
        self._client.ended(self._held.pop(key), stage, by)

    def _look(self, key: str) -> None:
        """Answer a request, if the operator has decided about it."""
        held = self._held.get(key)
        if held is None or held.sent is not None or not held.request.actions:
            return
        record = self._client.look(held.offer)
        if record is None:
            return
        # It may have been answered, or be over, by now.
        self._take_all(0)
        result = answer_of(held.asked, held.request, record.action, record.params)
        if self._held.get(key) is held and result is not None:
            held.sent = record
            self._wire.send({"id": held.rpc_id, "result": result})


def _key(rpc_id: object) -> str:
    """The id of a request as it is written: 0 is neither "0" nor false."""
    return json.dumps(rpc_id, default=str)
