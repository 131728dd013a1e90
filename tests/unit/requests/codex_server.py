"""A fake app server of Codex 0.169.0: a WebSocket on a Unix socket, threads that wait, and clients that listen."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from websockets.exceptions import ConnectionClosed
from websockets.sync.server import Server, ServerConnection, unix_serve

THREAD, TURN = "01a2030c-4a76-77a3-b361-f98ad6ce0756", "01a2030c-4a9b-7120-905f-4024fdbbde0a"
COMMAND = "item/commandExecution/requestApproval"
PATCH = "item/fileChange/requestApproval"
QUESTION = "item/tool/requestUserInput"
SERVER = "mcpServer/elicitation/request"
CHANGES = [
    {"path": "/dev/app/a.txt", "kind": {"type": "update", "move_path": None}, "diff": "@@ -1 +1 @@\n-one\n+uno\n"},
    {"path": "/dev/app/new.txt", "kind": {"type": "add"}, "diff": "hello\nworld\n"},
]


def command(words: str = "touch ../x", item: str = "call_1", **changes: Any) -> dict[str, Any]:
    """Return the parameters of a request about a command."""
    return {
        "kind": "command",
        "turnId": TURN,
        "itemId": item,
        "startedAtMs": int(time.time() * 1000),
        "environmentId": "local",
        "reason": "Make a file outside?",
        "command": f"/bin/bash -lc '{words}'",
        "commandActions": [{"type": "unknown", "command": words}],
        "proposedExecpolicyAmendment": words.split(),
        "availableDecisions": ["accept", {"acceptWithExecpolicyAmendment": {"execpolicy_amendment": []}}, "cancel"],
    } | changes


def patch(item: str = "call_1") -> dict[str, Any]:
    """Return the parameters of a request about a patch, whose changes are in its item."""
    started = int(time.time() * 1000)
    return {"turnId": TURN, "itemId": item, "startedAtMs": started, "reason": None, "grantRoot": None}


def change(item: str = "call_1", changes: object = CHANGES) -> dict[str, Any]:
    return {"type": "fileChange", "id": item, "changes": changes, "status": "inProgress"}


def question(*keys: str, **changes: Any) -> dict[str, Any]:
    """Return the parameters of a request with a question for each key; its text is `Which KEY?`."""
    options = [{"label": "SQLite", "description": "One file."}, {"label": "Redis", "description": "A server."}]
    asked = {"header": "Cache", "isOther": True, "isSecret": False, "options": options}
    questions = [{"id": key, "question": f"Which {key}?", **(asked | changes)} for key in keys or ("store",)]
    return {"turnId": TURN, "itemId": "call_1", "questions": questions, "isBlocking": False, "autoResolutionMs": None}


def tool_call(**given: object) -> dict[str, Any]:
    """Return the parameters of a request about a tool of an MCP server; they do not name the call."""
    meta = {"codex_approval_kind": "mcp_tool_call", "persist": ["session", "always"], "tool_name": "ask_user"}
    return {
        "turnId": TURN,
        "serverName": "rig",
        "mode": "form",
        "_meta": meta | {"tool_params": given},
        "message": 'Allow the rig MCP server to run tool "ask_user"?',
        "requestedSchema": {"type": "object", "properties": {}},
    }


def calling(item: str = "call_1", **given: object) -> dict[str, Any]:
    call = {"server": "rig", "tool": "ask_user", "arguments": given}
    return {"type": "mcpToolCall", "id": item, "status": "inProgress", **call}


def form() -> dict[str, Any]:
    schema = {"type": "object", "properties": {"color": {"type": "string", "enum": ["blue", "red"]}}}
    return tool_call() | {"_meta": None, "message": "Which colour?", "requestedSchema": schema}


class AppServer:
    """`answers` holds the id and the result of each answer to a waiting request, `late` those of the others."""

    def __init__(self, home: Path, directory: Path, version: str = "0.169.0"):
        self.socket = home / "app-server-control" / "app-server-control.sock"
        self.socket.parent.mkdir(parents=True, exist_ok=True)
        self.answers: list[tuple[object, Any]] = []
        self.late: list[tuple[object, Any]] = []
        self.said: list[str] = []
        """The methods that clients called."""
        self.threads: dict[str, dict[str, Any]] = {}
        self.items: dict[str, list[dict[str, Any]]] = {}
        self.takes: Callable[[object], bool] = lambda _rpc_id: True
        """Whether an answer to a request gets through."""
        self._version = version
        self._pending: dict[int, dict[str, Any]] = {}
        self._followers: dict[str, list[ServerConnection]] = {}
        self._clients: list[ServerConnection] = []
        self._next = 0
        self._lock = threading.RLock()
        self._server: Server | None = None
        self.thread(THREAD, directory)

    def __enter__(self) -> AppServer:
        self._server = unix_serve(self._serve, str(self.socket), compression=None)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object):
        assert self._server is not None
        self._server.shutdown()
        self.disconnect()

    def disconnect(self):
        for client in list(self._clients):
            with suppress(OSError):
                client.socket.shutdown(2)

    def thread(self, thread: str, directory: Path):
        self.threads[thread] = {"id": thread, "cwd": str(directory), "parentThreadId": None, "turns": []}

    def ask(self, method: str, params: dict[str, Any], thread: str = THREAD, *items: dict[str, Any]) -> int:
        """Ask a human something, and return the id of the request."""
        with self._lock:
            for item in items:
                self.items.setdefault(thread, []).append(item)
                self._tell(thread, "item/started", item=item, turnId=TURN)
            rpc_id, self._next = self._next, self._next + 1
            if method == COMMAND:
                params = {"cwd": self.threads[thread]["cwd"]} | params
            self._pending[rpc_id] = {"id": rpc_id, "method": method, "params": {"threadId": thread, **params}}
            self._status(thread)
            for client in self._followers.get(thread, []):
                self.send(client, self._pending[rpc_id])
            return rpc_id

    def resolve(self, rpc_id: int):
        """End a request as if somebody had answered it."""
        with self._lock:
            pending = self._pending.pop(rpc_id, None)
            if pending is not None:
                thread = pending["params"]["threadId"]
                self._tell(thread, "serverRequest/resolved", requestId=rpc_id)
                self._status(thread)

    def tell(self, message: object):
        """Send this frame to every client."""
        for client in list(self._clients):
            self.send(client, message)

    def send(self, client: ServerConnection, message: object):
        with suppress(ConnectionClosed):
            client.send(message if isinstance(message, (str, bytes)) else json.dumps(message))

    def _tell(self, thread: str, method: str, **params: Any):
        for client in self._followers.get(thread, []):
            self.send(client, {"method": method, "params": {"threadId": thread, **params}})

    def _status_of(self, thread: str) -> dict[str, Any]:
        waits = [one for one in self._pending.values() if one["params"]["threadId"] == thread]
        flags = {"waitingOnUserInput" if one["method"] == QUESTION else "waitingOnApproval" for one in waits}
        return {"type": "active", "activeFlags": sorted(flags)} if waits else {"type": "idle"}

    def _status(self, thread: str):
        status = {"threadId": thread, "status": self._status_of(thread)}
        self.tell({"method": "thread/status/changed", "params": status})

    def _serve(self, client: ServerConnection):
        self._clients.append(client)
        try:
            for frame in client:
                with self._lock:
                    self._take(client, json.loads(frame))
        except ConnectionClosed:
            pass
        finally:
            with self._lock:
                self._clients.remove(client)
                for followers in self._followers.values():
                    if client in followers:
                        followers.remove(client)

    def _take(self, client: ServerConnection, message: dict[str, Any]):
        method, params = message.get("method"), message.get("params", {})
        if method is None:
            rpc_id = message["id"]
            if rpc_id not in self._pending:
                self.late.append((rpc_id, message["result"]))
            elif self.takes(rpc_id):
                self.answers.append((rpc_id, message["result"]))
                self.resolve(rpc_id)
            return
        self.said.append(method)
        if "id" not in message:
            return
        thread = params.get("threadId", "")
        result: dict[str, Any] = {}
        match method:
            case "initialize":
                result = {"userAgent": f"codex-tui/{self._version} (Debian 12.0.0; x86_64) xterm (agentwatch; 1)"}
            case "thread/loaded/list":
                result = {"data": list(self.threads), "nextCursor": None}
            case "thread/read":
                result = {"thread": self.threads[thread] | {"status": self._status_of(thread)}}
            case "thread/resume":
                turn = {"id": TURN, "items": self.items.get(thread, []), "status": "inProgress"}
                result = {"thread": self.threads[thread], "initialTurnsPage": {"data": [turn]}}
                self._followers.setdefault(thread, []).append(client)
            case "thread/unsubscribe":
                with suppress(ValueError):
                    self._followers.get(thread, []).remove(client)
        self.send(client, {"id": message["id"], "result": result})
        if method == "thread/resume":
            for pending in self._pending.values():
                if pending["params"]["threadId"] == thread:
                    self.send(client, pending)
