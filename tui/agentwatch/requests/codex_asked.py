"""A question of Codex's app server, as a request that the operator can answer, and the answer to it.

The protocol is experimental: a request with anything in it that is not known here is shown, and answered in Codex.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any, Final

from agentwatch.decisions.record import Params
from agentwatch.delegation.decision import Action
from agentwatch.delegation.request import Option, Query, Request, RequestKind, input_text, request_id_of
from agentwatch.requests.reading import in_line, read
from agentwatch.sources.codex.codex_reader import NAME
from agentwatch.sources.codex.rollout import MCP
from agentwatch.sources.sessions.fields import Fields, inner, listed, mapping, number, text

COMMAND: Final = "item/commandExecution/requestApproval"
PATCH: Final = "item/fileChange/requestApproval"
QUESTION: Final = "item/tool/requestUserInput"
SERVER: Final = "mcpServer/elicitation/request"
"""A form of an MCP server, or leave to call a tool of it."""

METHODS: Final = {
    COMMAND: {
        *("kind", "environmentId", "reason", "command", "cwd", "commandActions", "availableDecisions"),
        *("proposedExecpolicyAmendment", "proposedNetworkPolicyAmendments"),
    },
    PATCH: {"reason", "changes"},
    QUESTION: {"questions", "isBlocking"},
    SERVER: {"serverName", "mode", "_meta", "message", "requestedSchema"},
}
"""Methods that ask a human, with keys whose values are understood here: all others must be null. Other requests are
for the program that began the session."""

_IDS: Final = {"threadId", "turnId", "itemId", "startedAtMs"}
_OF_QUESTIONS: Final = {"id", "header", "question", "isOther", "isSecret", "options"}
_PERMIT: Final = (Action.ALLOW, Action.DENY)
_DECISIONS: Final = {Action.ALLOW: {"decision": "accept"}, Action.DENY: {"decision": "decline"}}
_OF_SERVERS: Final[dict[Action, dict[str, Any]]] = {
    Action.ALLOW: {"action": "accept", "content": {}},
    Action.DENY: {"action": "decline", "content": None},
}
_TOOLS: Final = {COMMAND: "exec_command", PATCH: "apply_patch", QUESTION: "request_user_input"}
_OF_CALLS: Final = ("type", "server", "tool", "arguments")
_VERSION: Final = re.compile(r"[^/\s]+/(\d+\.\d+\.\d+)")
_OF_DIFFS: Final = "@+- \\"
"""How the lines of a diff begin, but for empty ones."""

_ONLY_THERE: Final = "agentwatch does not know all of what Codex asks here: answer it in Codex"


def version_of(answer: Fields) -> str:
    """The version in the answer to `initialize`; "" where it is none."""
    found = _VERSION.match(text(answer, "userAgent") or "")
    return found[1] if found is not None else ""


def request_of(
    method: str, params: Fields, items: Mapping[str, Fields], *, workspace: str, workspace_id: str, now: float
) -> Request | None:
    """The request; None where it does not say whose it is. `items` are those of its thread that are in progress, by id,
    `now` is for one without a time. Raises ValueError where its input has no one spelling."""
    thread, turn, item = text(params, "threadId"), text(params, "turnId"), text(params, "itemId")
    if thread is None or turn is None:
        return None
    given = dict(params)
    if method == PATCH:
        given["changes"] = listed(items.get(item or "", {}), "changes")
    spelled, digest = input_text(given)
    values = {"call_id": item, **_read(method, given, items, workspace)}
    is_known = all(value is None or key in METHODS[method] | _IDS for key, value in given.items())
    if not (is_known and values["actions"] and values["call_id"]):
        values |= {"actions": (), "why_not": _ONLY_THERE}
    # Without an item it may not be told from another one: it is shown, and never answered.
    nonce = f"{thread}/{turn}/{values['call_id'] or f'of-{digest[:16]}'}"
    began = (number(params, "startedAtMs") or 0.0) / 1000
    rule = [part for part in listed(params, "proposedExecpolicyAmendment") if isinstance(part, str)]
    return Request(
        **{
            "request_id": request_id_of(workspace_id, NAME, thread, nonce, digest),
            "source": NAME,
            "tool": _TOOLS.get(method, ""),
            "session_id": thread,
            "nonce": nonce,
            "kind": RequestKind.PERMISSION,
            "input": spelled,
            "input_sha256": digest,
            "said": text(params, "reason") or "",
            "asked_at": began if 0 < began <= now else now,
            "covered_by": f"{' '.join(rule)} …" if rule else "",
            **values,
        }
    )


def answer_of(method: str, request: Request, action: Action, params: Params) -> dict[str, Any]:
    """The answer to the server for a decision that this very request takes."""
    if method == QUESTION:
        chosen = {one.question: one.answer for one in params.answers}
        return {"answers": {query.key: {"answers": [chosen[query.question]]} for query in request.queries}}
    return dict((_OF_SERVERS if method == SERVER else _DECISIONS)[action])


def _read(method: str, given: Fields, items: Mapping[str, Fields], workspace: str) -> dict[str, Any]:
    """The tool, as the rollout names it, and the command, patch or call itself, whole. No actions where it is not clear
    what would be answered."""
    if method == COMMAND and (command := text(given, "command")) is not None:
        is_plain = given.get("kind") == "command" and "accept" in listed(given, "availableDecisions")
        is_local = is_plain and given.get("environmentId") in (None, "local")
        is_usual = os.path.realpath(text(given, "cwd") or workspace) == workspace
        shown, beside = read({} if is_usual else {"cwd": given["cwd"]}, command)
        return {"shown": shown, "beside": beside, "actions": _PERMIT if is_local else ()}
    if method == PATCH and (shown := _patch(given)):
        return {"shown": shown, "actions": _PERMIT}
    if method == QUESTION and (queries := _queries(given)):
        is_secret = any(mapping(one).get("isSecret") is not False for one in listed(given, "questions"))
        is_clear = all(len({query[at] for query in queries}) == len(queries) for at in (0, -1))
        return {
            "kind": RequestKind.QUESTION,
            "shown": "\n".join(query.question for query in queries),
            "queries": queries,
            "actions": (Action.ANSWER,) if is_clear and not is_secret else (),
        }
    if method == SERVER:
        return _server(given, items)
    shown, beside = read(given)
    return {"shown": shown, "beside": beside, "actions": ()}


def _server(given: Fields, items: Mapping[str, Fields]) -> dict[str, Any]:
    server, meta = text(given, "serverName"), inner(given, "_meta")
    tool, arguments = text(meta, "tool_name"), meta.get("tool_params")
    if meta.get("codex_approval_kind") != "mcp_tool_call":
        shown = text(given, "message") or read(given)[0]
        return {"tool": f"{MCP}{server}__elicitation", "kind": RequestKind.FORM, "shown": shown, "actions": ()}
    # It does not say which call it is about: that is the one such call that is in progress.
    called = ("mcpToolCall", server, tool, arguments)
    calls = [key for key, item in items.items() if tuple(map(item.get, _OF_CALLS)) == called]
    is_plain = given.get("mode") == "form" and given.get("requestedSchema") == {"type": "object", "properties": {}}
    shown, beside = read(mapping(arguments))
    return {
        "tool": f"{MCP}{server}__{tool}",
        "shown": shown,
        "beside": beside,
        "actions": _PERMIT if is_plain else (),
        "call_id": calls[0] if len(calls) == 1 else None,
    }


def _queries(given: Fields) -> tuple[Query, ...]:
    """() where a question is not as it must be."""
    found = []
    for asked in map(mapping, listed(given, "questions")):
        question, key = text(asked, "question"), text(asked, "id")
        options = [mapping(option) for option in listed(asked, "options")]
        labels = [text(option, "label") for option in options]
        if question is None or key is None or None in labels or not asked.keys() <= _OF_QUESTIONS:
            return ()
        offered = tuple(Option(str(one["label"]), text(one, "description") or "") for one in options)
        found.append(Query(question, text(asked, "header") or "", offered, key=key))
    return tuple(found)


def _patch(given: Fields) -> str:
    """The changes of files, each below its path; "" where one of them is not known whole."""
    parts = []
    for change in map(mapping, listed(given, "changes")):
        path, kind, diff = text(change, "path"), inner(change, "kind"), change.get("diff")
        how = {"add": "+", "delete": "-", "update": ""}.get(str(kind.get("type")))
        if path is None or how is None or not isinstance(diff, str) or len(change) > len(("path", "kind", "diff")):
            return ""
        move = text(kind, "move_path")
        parts.append(f"{kind['type']} {in_line(path)}" + (f", as {in_line(move)}" if move is not None else ""))
        lines = diff.removesuffix("\n").split("\n") if diff else []
        # No line of it looks like the path of another file.
        parts += [f"{how or ('' if one[:1] in _OF_DIFFS else ' ')}{one}" for one in lines]
    return "\n".join(parts)
