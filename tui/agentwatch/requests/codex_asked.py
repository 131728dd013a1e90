"""What the app server of Codex asks, as a request that the operator can answer, and the answer to it. Pure.

The protocol is experimental: a request with anything in it that is not known here is shown, and answered in Codex.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from agentwatch.decisions.record import Params
from agentwatch.delegation.decision import Action
from agentwatch.delegation.request import Given, Option, Query, Request, RequestKind, input_text, request_id_of
from agentwatch.requests.reading import in_line, read
from agentwatch.sources.codex.codex_reader import NAME
from agentwatch.sources.codex.entries import MCP
from agentwatch.sources.sessions.fields import Fields, inner, listed, mapping, number, text

COMMAND: Final = "item/commandExecution/requestApproval"
PATCH: Final = "item/fileChange/requestApproval"
QUESTION: Final = "item/tool/requestUserInput"
SERVER: Final = "mcpServer/elicitation/request"
"""A form of an MCP server, or leave to call a tool of it."""
PERMISSIONS: Final = "item/permissions/requestApproval"
METHODS: Final = frozenset({COMMAND, PATCH, QUESTION, SERVER, PERMISSIONS})
"""What a human is asked. Other requests are for the program that began the session."""

CHANGE: Final = "fileChange"
CALL: Final = "mcpToolCall"
_IDS: Final = frozenset({"threadId", "turnId", "itemId", "startedAtMs"})
_KNOWN: Final = {
    COMMAND: _IDS
    | {"kind", "environmentId", "reason", "command", "cwd", "commandActions", "availableDecisions"}
    | {"proposedExecpolicyAmendment", "proposedNetworkPolicyAmendments"},
    PATCH: _IDS | {"reason"},
    QUESTION: _IDS | {"questions", "isBlocking"},
    SERVER: _IDS | {"serverName", "mode", "_meta", "message", "requestedSchema"},
}
"""Keys whose values are understood here; all others must be null."""

_TOOL: Final = "mcp_tool_call"
_ASKED: Final = frozenset({"id", "header", "question", "isOther", "isSecret", "options"})
_VERSION: Final = re.compile(r"[^/\s]+/(\d{1,6})\.(\d{1,6})\.(\d{1,6})(?=[\s-]|\Z)")
_TRIED: Final = frozenset({(0, 169)})
"""Versions whose requests and answers were tried."""

_OF_DIFFS: Final = "@+- \\"
"""How the lines of a diff begin, but for empty ones."""

_UNKNOWN: Final = "agentwatch does not know this kind of request: answer it in Codex"
_UNSEEN: Final = "Codex does not say what it would change, so it can be answered only in Codex"
_UNCLEAR: Final = "Codex does not say which of its calls it is about, so it can be answered only in Codex"
_TWICE: Final = "it asks the same question twice, so it can be answered only in Codex"
_HIDDEN: Final = "it asks for a secret, which is given only in Codex"
_FORM: Final = "a form of an MCP server is filled in only in Codex"


class Asked(NamedTuple):
    """A request as it came, the items of its thread that are in progress, by id, whether its command runs where the
    operator expects it, in the workspace, and how often it was asked again after an answer that got lost."""

    method: str
    params: Fields
    items: Mapping[str, Fields]
    is_usual: bool = True
    again: int = 0


def version_of(answer: Fields) -> str:
    """The version in the answer to `initialize`; "" where it is none."""
    found = _VERSION.match(text(answer, "userAgent") or "")
    return ".".join(found.groups()) if found is not None else ""


def is_tried(version: str) -> bool:
    """Whether the requests of this version are known here."""
    return tuple(int(part) for part in version.split(".")[:2] if part) in _TRIED


def request_of(asked: Asked, workspace_id: str, now: float) -> Request | None:
    """The request; None where it does not say whose it is. `now` is for one without a time. Raises ValueError where its
    input has no one spelling."""
    params = asked.params
    thread, turn = text(params, "threadId"), text(params, "turnId")
    if thread is None or turn is None:
        return None
    item = _item_id(asked)
    given: dict[str, Any] = dict(params)
    changes = listed(asked.items.get(item or "", {}), "changes") if asked.method == PATCH else ()
    if asked.method == PATCH:
        given["changes"] = list(changes)
    spelled, digest = input_text(given)
    queries = _queries(params) if asked.method == QUESTION else ()
    why_not = _why_not(asked, item, queries, changes)
    shown, beside = _read(asked, queries, changes)
    # Without an item it may not be told from another one: it is shown, and never answered.
    nonce = "/".join((thread, turn, item or f"of-{digest[:16]}", *([f"again-{asked.again}"] if asked.again else [])))
    began = number(params, "startedAtMs")
    kind = RequestKind.PERMISSION
    actions: tuple[Action, ...] = (Action.ALLOW, Action.DENY)
    if asked.method == QUESTION:
        kind, actions = RequestKind.QUESTION, (Action.ANSWER,)
    elif asked.method == SERVER and not _is_tool(params):
        kind = RequestKind.FORM
    return Request(
        request_id=request_id_of(workspace_id, NAME, thread, nonce, digest),
        source=NAME,
        session_id=thread,
        nonce=nonce,
        kind=kind,
        tool=_tool(asked),
        input=spelled,
        input_sha256=digest,
        shown=shown,
        beside=beside,
        said=text(params, "reason") or "",
        queries=queries or (),
        asked_at=now if began is None or not 0 < began <= now * 1000 else began / 1000,
        actions=() if why_not else actions,
        why_not=why_not,
        call_id=item,
        covered_by=_covered_by(params),
    )


def answer_of(asked: Asked, request: Request, action: Action, params: Params) -> dict[str, Any] | None:
    """What the server is answered for a decision about this very request; None where it would not understand it."""
    if action not in request.actions:
        return None
    match asked.method, action:
        case (method, Action.ALLOW | Action.DENY) if method in (COMMAND, PATCH):
            return {"decision": "accept" if action is Action.ALLOW else "decline"}
        case (method, Action.ALLOW) if method == SERVER:
            return {"action": "accept", "content": {}}
        case (method, Action.DENY) if method == SERVER:
            return {"action": "decline", "content": None}
        case (method, Action.ANSWER) if method == QUESTION:
            keys = {query.question: query.key for query in request.queries}
            chosen: dict[str, list[str]] = {key: [] for key in keys.values()}
            for one in params.answers:
                if one.question not in keys:
                    return None
                chosen[keys[one.question]].append(one.answer)
            complete = all(len(answers) == 1 for answers in chosen.values())
            return {"answers": {key: {"answers": answers} for key, answers in chosen.items()}} if complete else None
    return None


def _item_id(asked: Asked) -> str | None:
    """The call that it is about. A server's request does not say: it is the one such call that is in progress."""
    if asked.method != SERVER:
        return text(asked.params, "itemId")
    if not _is_tool(asked.params):
        return None
    meta = inner(asked.params, "_meta")
    called = text(asked.params, "serverName"), text(meta, "tool_name"), meta.get("tool_params")
    found = [key for key, item in asked.items.items() if _called(item) == called]
    return found[0] if len(found) == 1 else None


def _called(item: Fields) -> tuple[str | None, str | None, object]:
    is_call = item.get("type") == CALL
    return (text(item, "server"), text(item, "tool"), item.get("arguments")) if is_call else (None, None, None)


def _why_not(asked: Asked, item: str | None, queries: tuple[Query, ...] | None, changes: Iterable[object]) -> str:
    """Why it is answered in Codex only; "" where it can be answered here."""
    params, known = asked.params, _KNOWN.get(asked.method, frozenset())
    if not known or any(value is not None for key, value in params.items() if key not in known):
        return _UNKNOWN
    match asked.method:
        case method if method == SERVER:
            if not _is_tool(params):
                return _FORM
            schema = inner(params, "requestedSchema")
            if text(params, "mode") != "form" or schema != {"type": "object", "properties": {}}:
                return _UNKNOWN
            return _UNCLEAR if item is None else ""
        case _ if item is None:
            return _UNKNOWN
        case method if method == COMMAND:
            is_plain = text(params, "kind") == "command" and text(params, "command") is not None
            return "" if is_plain and "accept" in listed(params, "availableDecisions") else _UNKNOWN
        case method if method == PATCH:
            return "" if _patch(changes) else _UNSEEN
    if not queries:
        return _UNKNOWN
    if any(mapping(one).get("isSecret") is not False for one in listed(params, "questions")):
        return _HIDDEN
    is_clear = all(len({getattr(one, name) for one in queries}) == len(queries) for name in ("question", "key"))
    return "" if is_clear else _TWICE


def _is_tool(params: Fields) -> bool:
    return inner(params, "_meta").get("codex_approval_kind") == _TOOL


def _tool(asked: Asked) -> str:
    """As the rollout names it."""
    match asked.method:
        case method if method == COMMAND:
            return "exec_command"
        case method if method == PATCH:
            return "apply_patch"
        case method if method == QUESTION:
            return "request_user_input"
        case method if method == SERVER:
            tool = text(inner(asked.params, "_meta"), "tool_name") if _is_tool(asked.params) else None
            return f"{MCP}{text(asked.params, 'serverName') or ''}__{tool or 'elicitation'}"
    return "request_permissions"


def _queries(params: Fields) -> tuple[Query, ...] | None:
    """None where a question is not as it must be."""
    found = []
    for asked in map(mapping, listed(params, "questions")):
        question, key = text(asked, "question"), text(asked, "id")
        options = [mapping(option) for option in listed(asked, "options")]
        labels = [text(option, "label") for option in options]
        if question is None or key is None or None in labels or not asked.keys() <= _ASKED:
            return None
        offered = tuple(Option(str(one["label"]), text(one, "description") or "") for one in options)
        found.append(Query(question, text(asked, "header") or "", offered, key=key))
    return tuple(found) or None


def _read(asked: Asked, queries: tuple[Query, ...] | None, changes: Iterable[object]) -> tuple[str, tuple[Given, ...]]:
    """The command, patch or call itself, whole, and what it is given besides."""
    params = asked.params
    match asked.method:
        case method if method == COMMAND:
            usual = {"cwd": params.get("cwd") if asked.is_usual else None, "environmentId": "local"}
            others = {key: params[key] for key in usual if params.get(key) not in (None, usual[key])}
            if (command := text(params, "command")) is not None:
                return read(others, command)
        case method if method == PATCH and (patch := _patch(changes)):
            return patch, ()
        case method if method == QUESTION and queries:
            return "\n".join(query.question for query in queries), ()
        case method if method == SERVER and _is_tool(params):
            return read(inner(inner(params, "_meta"), "tool_params"))
        case method if method == SERVER and (message := text(params, "message")) is not None:
            return message, ()
    return read(params)


def _patch(changes: Iterable[object]) -> str:
    """The changes of files, each below its path; "" where one of them is not known whole."""
    parts = []
    for change in map(mapping, changes):
        path, kind, diff = text(change, "path"), mapping(change.get("kind")), change.get("diff")
        how = {"add": "+", "delete": "-", "update": ""}.get(str(kind.get("type")))
        if path is None or how is None or not isinstance(diff, str) or not change.keys() <= {"path", "kind", "diff"}:
            return ""
        move = text(kind, "move_path")
        parts.append(f"{kind['type']} {in_line(path)}" + (f", as {in_line(move)}" if move is not None else ""))
        lines = diff.removesuffix("\n").split("\n") if diff else []
        # No line of it looks like the path of another file.
        parts += [f"{how or ('' if one[:1] in _OF_DIFFS else ' ')}{one}" for one in lines]
    return "\n".join(parts)


def _covered_by(params: Fields) -> str:
    rule = [part for part in listed(params, "proposedExecpolicyAmendment") if isinstance(part, str)]
    return f"{' '.join(rule)} …" if rule else ""
