"""Offers the requests of Codex to the operator. agentwatch is a second client of Codex's app server.

The server asks all of its clients, and takes the first answer. Codex's own prompt stays open until then. A request's id
is valid only on one connection, so the answer is sent on the same connection. Messages are JSON-RPC, one in each text
frame of a WebSocket on a Unix socket. The protocol is experimental. If a request has fields that agentwatch does not
know, it is shown, but must be answered in Codex.
"""

from __future__ import annotations

import json
import os
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentwatch import __version__
from agentwatch.background import BackgroundThread
from agentwatch.decisions.record import Record
from agentwatch.delegation.decision import Action, Request, RequestKind, RequestStage, canonical_input
from agentwatch.delegation.events import Event
from agentwatch.requests.holding import Holder
from agentwatch.requests.store import Offer, RequestError, make_request, read, read_queries, to_one_line
from agentwatch.sources.codex import MCP, NAME
from agentwatch.sources.sessions.fields import Fields, as_object, list_at, nested, text
from agentwatch.sources.sessions.store import contains

if TYPE_CHECKING:
    from websockets.sync.client import ClientConnection

_SOCKET = Path("app-server-control", "app-server-control.sock")
_LOOK_SECONDS = 2.0  # between two attempts to find the socket
_IDLE_SECONDS = 0.25
_HELD_SECONDS = 0.05  # between two attempts to find an answer
_ANSWER_SECONDS = 10.0  # the time within which the server must answer a call
_LARGEST = 32 * 1024 * 1024
_TRIED = "0.169."  # versions whose requests and answers were tried

COMMAND = "item/commandExecution/requestApproval"
PATCH = "item/fileChange/requestApproval"
QUESTION = "item/tool/requestUserInput"
SERVER = "mcpServer/elicitation/request"  # a form of an MCP server, or a permission to call one of its tools

# The methods that ask a human, each with the keys that agentwatch understands. All other keys must be null. Requests
# with other methods are for the program that began the session.
METHODS = {
    COMMAND: {
        *("kind", "environmentId", "reason", "command", "cwd", "commandActions", "availableDecisions"),
        *("proposedExecpolicyAmendment", "proposedNetworkPolicyAmendments"),
    },
    PATCH: {"reason", "changes"},
    QUESTION: {"questions", "isBlocking"},
    SERVER: {"serverName", "mode", "_meta", "message", "requestedSchema"},
}

_IDS = {"threadId", "turnId", "itemId", "startedAtMs"}
_OF_QUESTIONS = {"id", "header", "question", "isOther", "isSecret", "options"}
_PERMIT = (Action.ALLOW, Action.DENY)
_DECISIONS = {Action.ALLOW: {"decision": "accept"}, Action.DENY: {"decision": "decline"}}
_OF_SERVERS = {Action.ALLOW: {"action": "accept", "content": {}}, Action.DENY: {"action": "decline", "content": None}}
_TOOLS = {COMMAND: "exec_command", PATCH: "apply_patch", QUESTION: "request_user_input"}
_OF_CALLS = ("type", "server", "tool", "arguments")
_OF_DIFFS = "@+- \\"  # each line of a diff begins with one of these characters

_ONLY_THERE = "agentwatch does not know all of what Codex asks here: answer it in Codex"


@dataclass(slots=True)
class _Held:
    """A request that Codex sent on this connection. `sent` is the decision that was sent back, or None."""

    method: str
    request: Request
    offer: Offer
    sent: Record | None = None


class CodexClient(BackgroundThread[Sequence[Event]]):
    """Offers the requests of Codex to the operator, in its own thread. `home` is `$CODEX_HOME`, and may not exist."""

    thread_name = "agentwatch-codex"

    _refused = ""
    _version = ""

    def __init__(self, workspace: Path, home: Path, holder: Holder):
        super().__init__()
        self._workspace = os.path.realpath(workspace)
        self._socket = home / _SOCKET
        self._holder = holder
        # Requests that agentwatch has answered. If Codex repeats a request, it must be answered in Codex.
        self._answered = set[str]()
        # The state of the present connection:
        self._wire: Wire
        self._followed: dict[str, dict[str, Fields]] = {}  # Codex's open items by their ids, by conversation
        self._held: dict[object, _Held] = {}

    @property
    def notice(self) -> str | None:
        """A sentence that says why a request of Codex cannot be answered here, or None. May quote untrusted text."""
        return self._refused or self._holder.trouble or None

    def _run(self, emit: Callable[[Sequence[Event]], None]) -> None:
        del emit
        while not self._stopped:
            # The owner of the socket gets the answers, so connect only to a socket of this user.
            with suppress(OSError):
                if self._socket.is_socket() and self._socket.stat().st_uid == os.geteuid():
                    self._connect()
            self._rest(_LOOK_SECONDS)

    def _connect(self) -> None:
        # Loaded late because most users do not have Codex's socket.
        from websockets.exceptions import WebSocketException
        from websockets.sync.client import unix_connect

        options: dict[str, Any] = {"open_timeout": _ANSWER_SECONDS, "close_timeout": 1, "max_size": _LARGEST}
        with (
            suppress(OSError, EOFError, ValueError, RecursionError, WebSocketException),
            unix_connect(str(self._socket), "ws://localhost/", compression=None, **options) as link,
        ):
            self.serve(Wire(link))

    def serve(self, wire: Wire) -> None:
        """Offer a connection's requests and send the answers. Raises the wire's error once the connection is lost."""
        self._wire, self._followed = wire, {}
        name = {"name": "agentwatch", "title": "agentwatch", "version": __version__}
        try:
            answer = wire.call("initialize", clientInfo=name, capabilities={"experimentalApi": True})
            # `codex-tui/0.169.0 (Debian …) …`
            self._version = (text(answer, "userAgent") or "").partition("/")[2].partition(" ")[0]
            self._refused = ""
            wire.send({"method": "initialized"})
            for thread in list_at(wire.call("thread/loaded/list"), "data"):
                self._update_thread(str(thread), nested(self._read_thread(str(thread)), "status"))
            while not self._stopped:
                self._handle_all(_HELD_SECONDS if self._held else _IDLE_SECONDS)
                for rpc_id in list(self._held):
                    self._send_answer(rpc_id)
        finally:
            for rpc_id in list(self._held):
                self._end_request(rpc_id)

    # Threads

    def _read_thread(self, thread: str) -> Fields:
        return nested(self._wire.call("thread/read", threadId=thread), "thread")

    def _update_thread(self, thread: str, status: Fields) -> None:
        """Follow a thread of the workspace if it waits for a human. Otherwise stop following the thread."""
        if not (status.get("type") == "active" and list_at(status, "activeFlags")):
            if self._followed.pop(thread, None) is not None:
                self._end_requests(thread)
                self._wire.call("thread/unsubscribe", threadId=thread)
        elif thread not in self._followed:
            place = text(self._read_thread(thread), "cwd") or ""
            if place.startswith(os.sep) and contains(self._workspace, os.path.realpath(place)):
                self._follow_thread(thread)

    def _follow_thread(self, thread: str) -> None:
        if not self._version.startswith(_TRIED):
            which = f"This version of Codex ({self._version or 'unknown'})"
            self._refused = f"{which} is unknown to this agentwatch: answer in Codex, or update agentwatch"
            return
        self._followed[thread] = {}
        page = {"limit": 1, "itemsView": "full"}
        found = self._wire.call("thread/resume", threadId=thread, excludeTurns=True, initialTurnsPage=page)
        for turn in list_at(nested(found, "initialTurnsPage"), "data"):
            for item in list_at(as_object(turn), "items"):
                self._update_item(thread, as_object(item))

    def _update_item(self, thread: str, item: Fields) -> None:
        items, item_id = self._followed.get(thread, {}), text(item, "id") or ""
        items.pop(item_id, None)
        if item.get("status") == "inProgress":
            items[item_id] = item

    # Messages

    def _handle_all(self, seconds: float) -> None:
        """Handle all messages that have come. If there are none, wait at most `seconds` for the first message."""
        while (message := self._wire.receive(seconds)) is not None:
            self._handle_message(message)
            seconds = 0

    def _handle_message(self, message: Fields) -> None:
        method, params = text(message, "method"), as_object(message.get("params"))
        thread, item_id = text(params, "threadId") or "", text(params, "itemId")
        match method:
            case "serverRequest/resolved":
                rpc_id = params.get("requestId")
                held = self._held.get(rpc_id) if type(rpc_id) in (int, str) else None
                if held and held.request.session_id == thread:
                    self._end_request(rpc_id, is_resolved=True)
            case "thread/status/changed":
                self._update_thread(thread, nested(params, "status"))
            case "thread/closed" | "thread/deleted":
                self._update_thread(thread, {})
            case "item/started" | "item/completed":
                self._update_item(thread, nested(params, "item"))
            case "item/fileChange/patchUpdated":
                # The patch has changed, so a request that showed the old patch ends.
                self._followed.get(thread, {}).pop(item_id or "", None)
                self._end_requests(thread, item_id)
            case str() if method in METHODS and thread in self._followed:
                self._offer_request(message.get("id"), method, params, self._followed[thread])

    def _offer_request(self, rpc_id: object, method: str, params: Fields, items: Mapping[str, Fields]) -> None:
        if type(rpc_id) not in (int, str):
            return
        before = self._held.get(rpc_id)
        try:
            request = _request_of(method, params, items, self._workspace, self._holder.store.workspace_id)
            if before:
                if request and before.request.request_id == request.request_id:
                    return
                self._end_request(rpc_id)
            if request and request.request_id not in self._answered:
                self._held[rpc_id] = _Held(method, request, self._holder.store.offer(request))
        except (RequestError, ValueError) as error:
            self._refused = f"what Codex asks is not offered: {error}"

    def _send_answer(self, rpc_id: object) -> None:
        held = self._held.get(rpc_id)
        if held is None or held.sent or not held.request.actions:
            return
        record = self._holder.take_answer(held.offer)
        if record is None:
            return
        # Read new messages first, because the request may have ended by now.
        self._handle_all(0)
        if self._held.get(rpc_id) is held:
            held.sent = record
            self._answered.add(held.request.request_id)
            result = (_OF_SERVERS if held.method == SERVER else _DECISIONS).get(record.action, {})
            if held.method == QUESTION:
                chosen = {one.question: one.answer for one in record.params.answers}
                answers = {query.key: {"answers": [chosen[query.question]]} for query in held.request.queries}
                result = {"answers": answers}
            self._wire.send({"id": rpc_id, "result": result})

    def _end_requests(self, thread: str, call_id: str | None = None) -> None:
        """Stop offering the requests of a thread. If `call_id` is given, stop only those about this call."""
        for key, held in list(self._held.items()):
            if held.request.session_id == thread and call_id in (None, held.request.call_id):
                self._end_request(key)

    def _end_request(self, rpc_id: object, *, is_resolved: bool = False) -> None:
        """Stop offering a request. If an answer was sent but not confirmed, the request's stage becomes UNKNOWN."""
        held = self._held.pop(rpc_id)
        if held.sent is None:
            held.offer.end(RequestStage.ELSEWHERE if is_resolved else RequestStage.GONE)
        elif is_resolved:
            self._holder.record_delivered(held.sent)
            held.offer.end(RequestStage.DELIVERED, by=held.sent.operator)
        else:
            held.offer.end(RequestStage.UNKNOWN)


class Wire:
    """A connection to the app server. An unreadable message raises an error: it may say that a request has ended."""

    _last = 0

    def __init__(self, link: ClientConnection):
        self._link = link
        self._waiting: deque[Fields] = deque()  # messages that came while `call` waited for an answer

    def call(self, method: str, **params: object) -> Fields:
        """Call a method and return its result. If the server answers with an error, the result is empty. Other messages
        that come first are kept for `receive`."""
        self._last += 1
        self.send({"id": self._last, "method": method, "params": params})
        end = time.monotonic() + _ANSWER_SECONDS
        while (message := self._read(end - time.monotonic())) is not None:
            if "method" not in message and message.get("id") == self._last:
                return nested(message, "result")
            self._waiting.append(message)
        raise TimeoutError(f"no answer to {method}")

    def send(self, message: dict[str, Any]) -> None:
        self._link.send(json.dumps({"jsonrpc": "2.0", **message}))

    def receive(self, seconds: float) -> Fields | None:
        """Return the next message, or None if no message comes within this time."""
        return self._waiting.popleft() if self._waiting else self._read(seconds)

    def _read(self, seconds: float) -> Fields | None:
        try:
            return as_object(json.loads(self._link.recv(timeout=max(seconds, 0.0))))
        except TimeoutError:
            return None


def _request_of(
    method: str, params: Fields, items: Mapping[str, Fields], workspace: str, workspace_id: str
) -> Request | None:
    """Return the request in a message, or None if the message names no thread or turn. `items` are the thread's items
    in progress, by id. Raises ValueError if the input cannot be written as JSON."""
    thread, turn, item = text(params, "threadId"), text(params, "turnId"), text(params, "itemId")
    if thread is None or turn is None:
        return None
    given = dict(params)
    if method == PATCH:
        given["changes"] = list_at(items.get(item or "", {}), "changes")
    values = {"call_id": item, **_read_call(method, given, items, workspace)}
    is_known = all(value is None or key in METHODS[method] | _IDS for key, value in given.items())
    if not (is_known and values["actions"] and values["call_id"]):
        values |= {"actions": (), "why_not": _ONLY_THERE}
    # A request without an item's id may be confused with another request. So it is shown, but never answered.
    nonce = f"{thread}/{turn}/{values['call_id'] or f'of-{canonical_input(given)[1][:16]}'}"
    values = {
        "tool": _TOOLS.get(method, ""),
        "kind": RequestKind.PERMISSION,
        "said": text(params, "reason") or "",
        "asked_at": time.time(),
        **values,
    }
    return make_request(given, workspace_id, NAME, thread, nonce, **values)


def _read_call(method: str, given: Fields, items: Mapping[str, Fields], workspace: str) -> dict[str, Any]:
    """Return the fields of a request that depend on its method, such as the command or patch to show. If it is not
    clear what an answer would permit, `actions` is empty."""
    if method == COMMAND and (command := text(given, "command")) is not None:
        is_plain = given.get("kind") == "command" and "accept" in list_at(given, "availableDecisions")
        is_local = is_plain and given.get("environmentId") in (None, "local")
        is_usual = os.path.realpath(text(given, "cwd") or workspace) == workspace
        shown, beside = read({} if is_usual else {"cwd": given["cwd"]}, command)
        return {"shown": shown, "beside": beside, "actions": _PERMIT if is_local else ()}
    if method == PATCH and (shown := _patch_text(given)):
        return {"shown": shown, "actions": _PERMIT}
    if method == QUESTION and (queries := read_queries(given, key="id")):
        asked = [as_object(one) for one in list_at(given, "questions")]
        is_known = all(
            one.get("isSecret") is False and one.keys() <= _OF_QUESTIONS and text(one, "id") for one in asked
        )
        is_clear = all(len({query[at] for query in queries}) == len(queries) for at in (0, -1))
        return {
            "kind": RequestKind.QUESTION,
            "shown": "\n".join(query.question for query in queries),
            "queries": queries,
            "actions": (Action.ANSWER,) if is_clear and is_known else (),
        }
    if method == SERVER:
        return _read_server(given, items)
    shown, beside = read(given)
    return {"shown": shown, "beside": beside, "actions": ()}


def _read_server(given: Fields, items: Mapping[str, Fields]) -> dict[str, Any]:
    server, meta = text(given, "serverName"), nested(given, "_meta")
    tool, arguments = text(meta, "tool_name"), meta.get("tool_params")
    if meta.get("codex_approval_kind") != "mcp_tool_call":
        shown = text(given, "message") or read(given)[0]
        return {"tool": f"{MCP}{server}__elicitation", "kind": RequestKind.FORM, "shown": shown, "actions": ()}
    # The request does not name its call. The call is found if only one call in progress has this tool and these
    # arguments.
    called = ("mcpToolCall", server, tool, arguments)
    calls = [key for key, item in items.items() if tuple(map(item.get, _OF_CALLS)) == called]
    is_plain = given.get("mode") == "form" and given.get("requestedSchema") == {"type": "object", "properties": {}}
    shown, beside = read(as_object(arguments))
    return {
        "tool": f"{MCP}{server}__{tool}",
        "shown": shown,
        "beside": beside,
        "actions": _PERMIT if is_plain else (),
        "call_id": calls[0] if len(calls) == 1 else None,
    }


def _patch_text(given: Fields) -> str:
    """Return the changes of files as text, each below its path, or "" if a change is not fully known."""
    parts = []
    for change in map(as_object, list_at(given, "changes")):
        path, kind, diff = text(change, "path"), nested(change, "kind"), change.get("diff")
        how = {"add": "+", "delete": "-", "update": ""}.get(str(kind.get("type")))
        if path is None or how is None or not isinstance(diff, str) or len(change) > len(("path", "kind", "diff")):
            return ""
        move = text(kind, "move_path")
        parts.append(f"{kind['type']} {to_one_line(path)}" + (f", as {to_one_line(move)}" if move is not None else ""))
        lines = diff.removesuffix("\n").split("\n") if diff else []
        # Each line begins with `+`, `-` or a blank, so that no line looks like the path of another file.
        parts += [f"{how or ('' if one[:1] in _OF_DIFFS else ' ')}{one}" for one in lines]
    return "\n".join(parts)
