"""PermissionRequest: the operator answers where the request is seen, while a screen shows the workspace.

Whatever goes wrong, nothing is printed: then the program's own prompt stands, or appears. What is printed is made of
the payload that this process was given, and of the decision about it: never of a file.
"""

from __future__ import annotations

import json
import os
import re
import select
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Final

from agentwatch.agents.hook.journal import UNANSWERED, Journal, JournalEntry
from agentwatch.config import Settings
from agentwatch.decisions.record import Params
from agentwatch.delegation.decision import Action
from agentwatch.delegation.request import Given, Query, Request, RequestKind, RequestStage, input_text
from agentwatch.requests.holding import Holder
from agentwatch.requests.reading import given_as, queries_in, read, request_about
from agentwatch.requests.store import RequestError
from agentwatch.sources.claude_code import NAME
from agentwatch.sources.claude_code.hooks import ASKS, HookCall
from agentwatch.sources.sessions.fields import Fields, inner, listed, mapping, moment, text
from agentwatch.sources.sessions.tail import Tail
from agentwatch.state import state_directory

_CALL_SECONDS: Final = 0.5
"""So long after it has asked, the program may write its call down."""

_PAUSE_SECONDS: Final = 0.05
_LOOK_SECONDS: Final = 0.25
_STARTED_AS: Final = "CLAUDE_CODE_ENTRYPOINT"
_TERMINAL: Final = "cli"
"""How a session was started whose prompt is known to stand while it is held."""

_PRINTING: Final = "sdk-cli"
"""That of `claude -p`, which has no prompt: what nobody answers is denied."""

_HEAD: Final = 8 * 1024 * 1024
"""Bytes at the end of a transcript in which the call stands that is asked about."""

_AGENT_ID: Final = re.compile(r"[\w@.-]{1,128}")
PLAN: Final = "ExitPlanMode"
_QUESTION: Final = "AskUserQuestion"
_SHELL: Final = "Bash"
_MCP: Final = "mcp__"
_DENIED: Final = "The operator said no."
"""To the model, where the operator gave no words."""

_JOINED: Final = ", "
_IN_TERMINAL: Final = "a plan can be approved only in its terminal; here you can send it back with words"
_UNCLEAR: Final = "its questions cannot be told apart, or read, so it can be answered only in its terminal"
_NO_TERMINAL: Final = "its session has no terminal: what you do not answer in time is denied"
_PATTERN: Final = frozenset("*:()\\\n")
"""With one of these in it, a command is no rule for itself alone."""

_DONE: Final = {
    _SHELL: ("command",),
    "Write": ("file_path", "content"),
    "Edit": ("file_path", "old_string", "new_string"),
    "NotebookEdit": ("notebook_path", "new_source"),
    "WebFetch": ("url",),
    PLAN: ("plan",),
}
"""By tool, the arguments that say what a call would do. Of other tools, all do."""


def ask(call: HookCall, workspace: Path, settings: Settings) -> None:
    """Answer the request of a call on standard output, or print nothing. Blocks while there may be one.

    A request whose prompt stands meanwhile is held as long as the program lets it, any other one for seconds.
    """
    at, started_as = time.time(), os.environ.get(_STARTED_AS, _TERMINAL)
    is_bounded = call.agent_id is not None or started_as != _TERMINAL
    if settings.hook_when == "never" or (is_bounded and settings.hook_prompt <= 0):
        return
    state = state_directory(workspace)
    holder = Holder(workspace, name="claude hook", state=state)
    try:
        asked = AskedCall(call, at)
        if not _is_answered(asked, at + (_CALL_SECONDS if os.path.exists(call.transcript or "") else 0.0)):
            until = at + settings.hook_prompt if is_bounded else None
            make = partial(request_of, call, workspace, holder.store.workspace_id, asked, at=at, until=until)
            # Two hooks of one call, of the user's settings and of the project's, make the same one, and hold it
            # together. One that ended before this was asked is of an equal call, which nothing tells from this one yet.
            known = holder.store.find((request := make()).request_id)
            if known is None or known.is_open:
                _hold(call, asked, request, holder)
            elif (known.ended_at or 0.0) < at:
                _hold(call, asked, make(is_anew=True), holder)
    except (RequestError, ValueError) as error:
        holder.trouble = str(error)
    if holder.trouble:
        # Under no agent's name: how often one was sent back in a row is counted there.
        about = call.event, call.session_id, "", call.agent_id or call.session_id
        Journal(state).add(JournalEntry(*about, UNANSWERED, call.tool or "", holder.trouble))


def _hold(call: HookCall, asked: AskedCall, request: Request, holder: Holder) -> None:
    """Offer a request, and print the answer to it."""
    looked_at, is_answered = time.monotonic(), False

    def goes_on() -> bool:
        """Whether the program waits still; looks now and then."""
        nonlocal looked_at, is_answered
        if time.monotonic() - looked_at < _LOOK_SECONDS:
            return True
        looked_at, is_answered = time.monotonic(), asked.is_answered()
        return not is_answered and is_heard()

    with holder.offer(request) as offer:
        decided = holder.hold(offer, goes_on)
        answer = answer_of(call, decided.action, decided.params, decided.note) if decided is not None else None
        if decided is not None and answer is not None and _print(answer):
            holder.delivered(decided)
            offer.end(RequestStage.DELIVERED, by=decided.operator)
        elif is_answered:
            offer.end(RequestStage.ELSEWHERE)


def _print(answer: dict[str, object]) -> bool:
    """Whether the program was given all of it."""
    # ASCII only: foreign characters reach the program as escapes.
    data = (json.dumps(answer) + "\n").encode("ascii")
    try:
        while data:
            data = data[os.write(1, data) :]
    except OSError:
        return False
    return True


# The request


def request_of(
    call: HookCall,
    workspace: Path,
    workspace_id: str,
    asked: AskedCall,
    *,
    at: float,
    until: float | None,
    is_anew: bool = False,
) -> Request:
    """The request; `is_anew`: not that which its call had before. Raises ValueError."""
    tool, given = call.tool or "", call.given
    queries = _queries(given) if tool == _QUESTION else ()
    actions: tuple[Action, ...] = (Action.ALLOW, Action.DENY)
    why_not = _NO_TERMINAL if os.environ.get(_STARTED_AS) == _PRINTING else ""
    if tool == _QUESTION:
        is_clear = bool(queries) and len({query.question for query in queries}) == len(queries)
        actions = (Action.ANSWER, Action.DENY) if is_clear else (Action.DENY,)
        why_not = why_not if is_clear else _UNCLEAR
    elif tool == PLAN:
        # Its payload lacks the plan.
        given = {**given, **{key: asked.given[key] for key in ("plan",) if key in asked.given}}
        actions, why_not = (Action.DENY,), _IN_TERMINAL
    shown, beside = _read(tool, given)
    if tool == _SHELL and os.path.realpath(call.cwd or workspace) != os.path.realpath(workspace):
        beside = (given_as("cwd", call.cwd), *beside)
    return request_about(
        call.given,
        workspace_id,
        NAME,
        call.agent_id or call.session_id,
        input_text(asked.call_id)[1] if asked.call_id is not None and not is_anew else os.urandom(16).hex(),
        kind=RequestKind.QUESTION if tool == _QUESTION else RequestKind.PERMISSION,
        tool=tool,
        shown="\n".join(query.question for query in queries) or shown,
        said=text(call.given, "description") or "",
        beside=() if queries else beside,
        queries=queries,
        asked_at=at,
        until=until,
        prompt_hidden=call.agent_id is not None,
        actions=actions,
        why_not=why_not,
        words=True,
        rules=tuple(rules_of(call)),
        call_id=asked.call_id,
        covered_by="; ".join(f"the rule {rule}" for rule in dict(_suggested(call))),
    )


def answer_of(call: HookCall, action: Action, params: Params, note: str) -> dict[str, Any] | None:
    """The output for a decision about this very call; None where the program would not understand it."""
    match action:
        case Action.DENY:
            decision: dict[str, Any] = {"behavior": "deny", "message": note.strip() or _DENIED}
        case Action.ALLOW if call.tool not in (_QUESTION, PLAN):
            decision = {"behavior": "allow"}
            if params.rule is not None:
                rule = rules_of(call).get(params.rule)
                if rule is None:
                    return None
                kept = {"type": "addRules", "rules": [rule], "behavior": "allow", "destination": "session"}
                decision["updatedPermissions"] = [kept]
        case Action.ANSWER if call.tool == _QUESTION:
            answers = _answers(call.given, params)
            if answers is None:
                return None
            decision = {"behavior": "allow", "updatedInput": {**call.given, "answers": answers}}
        case _:
            return None
    return {"hookSpecificOutput": {"hookEventName": ASKS, "decision": decision}}


def rules_of(call: HookCall) -> dict[str, dict[str, str]]:
    """The permissions that could last until the session ends, by what the operator reads, as the program has it:
    the rules that it suggests, and the very command."""
    # A tool's name alone would allow all that it can do; that of a server can do no other thing.
    found = {
        name: rule
        for name, rule in _suggested(call)
        if rule["toolName"] == call.tool and ("ruleContent" in rule or name.startswith(_MCP))
    }
    command = text(call.given, "command")
    if call.tool == _SHELL and command is not None and _PATTERN.isdisjoint(command) and command.strip() == command:
        found[f"{_SHELL}({command})"] = {"toolName": _SHELL, "ruleContent": command}
    return found


def _suggested(call: HookCall) -> Iterator[tuple[str, dict[str, str]]]:
    """The rules that the program itself would offer, each with its name."""
    for suggestion in call.suggestions:
        if suggestion.get("type") == "addRules" and suggestion.get("behavior") == "allow":
            for rule in map(mapping, listed(suggestion, "rules")):
                tool, content = text(rule, "toolName"), text(rule, "ruleContent")
                if tool is not None and content is not None:
                    yield f"{tool}({content})", {"toolName": tool, "ruleContent": content}
                elif tool is not None:
                    yield tool, {"toolName": tool}


def _queries(given: Fields) -> tuple[Query, ...]:
    """() where a question is not as it must be. Where labels could not be told apart when joined, one is chosen."""
    return tuple(
        one._replace(several=False) if any(_JOINED in option.label for option in one.options) else one
        for one in queries_in(given, several="multiSelect") or ()
    )


def _answers(given: Fields, params: Params) -> dict[str, str] | None:
    """By question, the answer, several labels as the program joins them itself. None where one would not be clear."""
    chosen: dict[str | None, list[str]] = {query.question: [] for query in _queries(given)}
    for one in params.answers:
        if one.question not in chosen:
            return None
        chosen[one.question].append(one.answer)
    answers = {str(question): _JOINED.join(answers) for question, answers in chosen.items()}
    return answers if all(chosen.values()) else None


def _read(tool: str, given: Fields) -> tuple[str, tuple[Given, ...]]:
    """The call's effect, and its other arguments."""
    names = _DONE.get(tool, ())
    parts = [given.get(name) for name in names]
    if tool == "Edit":
        path, old, new = parts
        parts = [path, _change(old, new) if isinstance(old, str) and isinstance(new, str) else None]
    return read(given, *parts, known={*names, *(["description"] if text(given, "description") is not None else [])})


def _change(old: str, new: str) -> str:
    return "\n".join([*(f"-{line}" for line in old.split("\n")), *(f"+{line}" for line in new.split("\n"))])


# The program, while its request is held


class AskedCall:
    """The call in the transcript of its agent: for the receipt, and to end where it was answered in the program.

    Of several that are equal the program asks about the first one of a message that has no result. It was asked about
    at a time in epoch seconds: results of before are those of others.
    """

    def __init__(self, call: HookCall, since: float) -> None:
        self._tool = call.tool
        self._since = since
        # The payload of a plan has not the input of its call.
        self._digest = None if call.tool == PLAN else input_text(call.given)[1]
        self._message: object = None
        self._calls: dict[str, Fields] = {}
        """The equal ones of the last message, but for those that were answered before."""
        self._answered: set[str] = set()
        self._tail = _tail(call)

    @property
    def call_id(self) -> str | None:
        return next(iter(self._calls), None)

    @property
    def given(self) -> Fields:
        """The input of its call, by the transcript."""
        return next(iter(self._calls.values()), {})

    def is_answered(self) -> bool:
        """Reads what the transcript got since the last look. What cannot be read says nothing."""
        with suppress(OSError, ValueError):
            for line in self._tail.read(_HEAD).lines if self._tail is not None else ():
                self._apply(line.record or {})
        return self.call_id in self._answered

    def _apply(self, fields: Fields) -> None:
        message = inner(fields, "message")
        for block in map(mapping, listed(message, "content")):
            call_id = text(block, "id") or ""
            if block.get("type") == "tool_result":
                call_id = text(block, "tool_use_id") or ""
                if (moment(fields) or 0.0) < self._since:
                    self._calls.pop(call_id, None)
                elif call_id in self._calls:
                    self._answered.add(call_id)
            elif block.get("type") == "tool_use" and block.get("name") == self._tool and self._is_equal(block):
                if message.get("id") != self._message:
                    self._message, self._calls = message.get("id"), {}
                self._calls[call_id] = inner(block, "input")

    def _is_equal(self, block: Fields) -> bool:
        with suppress(ValueError):
            return self._digest is None or input_text(inner(block, "input"))[1] == self._digest
        return False


def _is_answered(asked: AskedCall, until: float) -> bool:
    """Look the call up, which the program may write down a moment after it asks."""
    while not asked.is_answered():
        if asked.call_id is not None or time.time() >= until:
            return False
        time.sleep(_PAUSE_SECONDS)
    return True


def _tail(call: HookCall) -> Tail | None:
    """The end of the transcript of the agent that asks; None where it is not known."""
    if call.transcript is None or "\0" in call.transcript:
        return None
    path = Path(call.transcript)
    if call.agent_id is not None:
        if not _AGENT_ID.fullmatch(call.agent_id):
            return None
        path = path.with_suffix("") / "subagents" / f"agent-{call.agent_id}.jsonl"
    with suppress(OSError):
        return Tail(path, position=max(path.stat().st_size - _HEAD, 0))
    return Tail(path)


def is_heard(descriptor: int = 1) -> bool:
    """Whether somebody still reads what is printed: the program has its end of the pipe as long as it lives."""
    pipe = select.poll()
    pipe.register(descriptor, 0)
    return not pipe.poll(0)
