"""Lets the operator answer requests of Claude Code (by a hook) and of OpenCode and Kilo (by a plugin) in agentwatch.

On any failure nothing is printed, so that the program shows its own prompt. An answer is made only from the input of
this process and the signed decision, never from a file that somebody else could write.

The plugin (`opencode.js`) and this process exchange lines of JSON. The plugin sends a request, reads the operator's
answer, passes the answer to the program, and reports whether the program accepted it. While the plugin waits, the
program shows its own prompt, except for a request of a grandchild.
"""

from __future__ import annotations

import json
import os
import select
import sys
import time
from contextlib import suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread
from typing import TYPE_CHECKING, Any, TextIO

from agentwatch.agents.hook.journal import add_unanswered
from agentwatch.config import Settings
from agentwatch.delegation.decision import Action, CallArgument, Query, Request, RequestKind, RequestStage
from agentwatch.requests.store import (
    Offer,
    RequestError,
    RequestStore,
    make_given,
    make_request,
    read,
    read_queries,
    to_one_line,
)
from agentwatch.sources.claude_code import ASKS, NAME, HookCall
from agentwatch.sources.sessions.fields import Fields, Tail, list_at, nested, number, object_in, objects, text, time_at
from agentwatch.state import is_shown, state_directory, workspace_id

if TYPE_CHECKING:
    from agentwatch.decisions.record import Params, Record
    from agentwatch.requests.holding import Holder

_STARTED_AS = "CLAUDE_CODE_ENTRYPOINT"
_TERMINAL = "cli"  # a session that was started this way shows its prompt while a hook holds the request

_HEAD = 8 * 1024 * 1024  # only so many bytes at the end of a transcript are searched for the call of a request

PLAN = "ExitPlanMode"
_QUESTION = "AskUserQuestion"
_SHELL = "Bash"
_MCP = "mcp__"
_DENIED = "The operator said no."  # the model reads this if the operator wrote no note

_JOINED = ", "
_UNCLEAR = "its questions cannot be told apart, or read, so it can be answered only in its terminal"
_PATTERN = frozenset("*:()\\\n")  # a rule with one of these characters would also allow other commands

_DONE = {
    _SHELL: ("command",),
    "Write": ("file_path", "content"),
    "Edit": ("file_path", "old_string", "new_string"),
    "NotebookEdit": ("notebook_path", "new_source"),
    "WebFetch": ("url",),
}  # for each tool, the arguments that say what a call would do; for any other tool all arguments are shown
_POLL_SECONDS = 0.05
_LARGEST = 16 * 1024 * 1024
_ENDS = {
    "delivered": RequestStage.DELIVERED,
    "elsewhere": RequestStage.ELSEWHERE,
    "unknown": RequestStage.UNKNOWN,
    "gone": RequestStage.GONE,
}
# Arguments that are not shown if the program gives a diff.
_IN_DIFFS = frozenset({"diff", "filepath", "filePath", "content", "oldString", "newString", "patchText"})
_NAMES = {"opencode": "OpenCode", "kilo": "Kilo"}


# Claude Code


def answer_request(call: HookCall, workspace: Path, settings: Settings) -> None:
    """Wait for the operator's answer to a permission or a question, and print it. Without an answer print nothing.

    A plan can be approved only in the terminal. If the program shows its own prompt at the same time, the request is
    held as long as the program allows. Any other request is held for `hook_prompt` seconds.
    """
    at = time.time()
    is_bounded = bool(call.agent_id) or os.environ.get(_STARTED_AS, _TERMINAL) != _TERMINAL
    if settings.hook_when == "never" or call.tool == PLAN or (is_bounded and settings.hook_prompt <= 0):
        return
    trouble = ""
    try:
        asked = AskedCall(call, at)
        if asked.is_answered():
            return
        request = request_of(call, workspace, asked, at=at, until=at + settings.hook_prompt if is_bounded else None)
        with RequestStore(workspace).offer(request) as offer:
            trouble = _hold_request(call, workspace, asked, offer)
    except (RequestError, ValueError) as error:
        trouble = str(error)
    if trouble:
        add_unanswered(workspace, call.event, call.session_id, call.tool or "", trouble)


def _hold_request(call: HookCall, workspace: Path, asked: AskedCall, offer: Offer) -> str:
    """Hold a request until it is answered. Return why an answer did not get through, or ""."""
    # Imported after the offer was made, so that the operator sees the request sooner.
    from agentwatch.requests.holding import Holder

    holder = Holder(workspace, name="claude hook")

    def is_still_open() -> bool:
        has_ended = asked.is_answered()
        if asked.call_id and asked.call_id != offer.request.call_id:
            offer.write_call_id(asked.call_id)
        return has_reader() and not has_ended

    decided = holder.wait_for_answer(offer, is_still_open)
    answer = decided and hook_output(call, decided.action, decided.params, decided.note)
    if decided and answer and _print_answer(answer):
        holder.record_delivered(decided)
        offer.end(RequestStage.DELIVERED, by=decided.operator)
    elif not decided and asked.is_answered():
        offer.end(RequestStage.ELSEWHERE)
    return holder.trouble


def _print_answer(answer: dict[str, object]) -> bool:
    """Print an answer. Return whether the program has received all of it."""
    # The JSON is ASCII. All other characters are escaped.
    data = (json.dumps(answer) + "\n").encode("ascii")
    try:
        while data:
            data = data[os.write(1, data) :]
    except OSError:
        return False
    return True


# The request


def request_of(call: HookCall, workspace: Path, asked: AskedCall, *, at: float, until: float | None) -> Request:
    """Return the request for a call, with a random nonce. Raise ValueError if the call cannot be written as JSON."""
    tool, given, why_not = call.tool or "", call.given, ""
    is_question = tool == _QUESTION
    queries = _read_questions(given) if is_question else ()
    actions: tuple[Action, ...] = (Action.ANSWER if queries else Action.ALLOW, Action.DENY)
    if is_question and not queries:
        actions, why_not = (Action.DENY,), _UNCLEAR
    shown, beside = _show_call(tool, given)
    if tool == _SHELL and os.path.realpath(call.cwd or workspace) != os.path.realpath(workspace):
        beside = (make_given("cwd", call.cwd), *beside)
    return make_request(
        given,
        workspace_id(workspace),
        NAME,
        call.agent_id or call.session_id,
        os.urandom(16).hex(),
        kind=RequestKind.QUESTION if is_question else RequestKind.PERMISSION,
        tool=tool,
        shown="\n".join(query.question for query in queries) or shown,
        said=text(given, "description") or "",
        beside=() if queries else beside,
        queries=queries,
        asked_at=at,
        until=until,
        prompt_hidden=bool(call.agent_id),
        actions=actions,
        why_not=why_not,
        words=True,
        rules=tuple(grantable_rules(call)),
        call_id=asked.call_id,
        covered_by="; ".join(f"the rule {rule}" for rule in _suggested_rules(call)),
    )


def hook_output(call: HookCall, action: Action, params: Params, note: str) -> dict[str, Any] | None:
    """Return the output of the hook for a decision. Return None if the decision does not fit the call."""
    decision: dict[str, Any] | None = None
    if action is Action.DENY:
        decision = {"behavior": "deny", "message": note.strip() or _DENIED}
    elif action is Action.ALLOW and call.tool != _QUESTION:
        decision = {"behavior": "allow"}
        if params.rule:
            if params.rule not in (rules := grantable_rules(call)):
                return None
            kept = {"type": "addRules", "rules": [rules[params.rule]], "behavior": "allow", "destination": "session"}
            decision["updatedPermissions"] = [kept]
    elif action is Action.ANSWER and call.tool == _QUESTION and (answers := _answers_by_question(call.given, params)):
        decision = {"behavior": "allow", "updatedInput": {**call.given, "answers": answers}}
    return decision and {"hookSpecificOutput": {"hookEventName": ASKS, "decision": decision}}


def grantable_rules(call: HookCall) -> dict[str, dict[str, str]]:
    """Return the rules that the operator may grant for the rest of the session, by the names that the screen shows.
    The program suggests some rules. One more rule allows the exact command. The values are in the program's format."""
    # A rule without content allows all calls of a tool. Offer it only for an MCP tool, which does one thing.
    found = {
        name: rule
        for name, rule in _suggested_rules(call).items()
        if rule["toolName"] == call.tool and ("ruleContent" in rule or name.startswith(_MCP))
    }
    command = text(call.given, "command") or ""
    if call.tool == _SHELL and command.strip() == command and _PATTERN.isdisjoint(command or "*"):
        found[f"{_SHELL}({command})"] = {"toolName": _SHELL, "ruleContent": command}
    return found


def _suggested_rules(call: HookCall) -> dict[str, dict[str, str]]:
    rules = [
        {key: value for key in ("toolName", "ruleContent") if (value := text(rule, key)) is not None}
        for one in call.suggestions
        if (one.get("type"), one.get("behavior")) == ("addRules", "allow")
        for rule in objects(one, "rules")
    ]
    return {
        f"{rule['toolName']}({rule['ruleContent']})" if "ruleContent" in rule else rule["toolName"]: rule
        for rule in rules
        if "toolName" in rule
    }


def _read_questions(given: Fields) -> tuple[Query, ...]:
    """Return the questions, or () if they are unclear. If a label has a comma, only one choice is allowed."""
    return tuple(
        one._replace(several=False) if any(_JOINED in option.label for option in one.options) else one
        for one in read_queries(given, several="multiSelect")
    )


def _answers_by_question(given: Fields, params: Params) -> dict[str, str] | None:
    """Return the answers by question, or {} if an answer is missing. Return None if an answer fits no question."""
    chosen: dict[str | None, list[str]] = {query.question: [] for query in _read_questions(given)}
    for one in params.answers:
        if one.question not in chosen:
            return None
        chosen[one.question].append(one.answer)
    return {str(question): _JOINED.join(answers) for question, answers in chosen.items() if all(chosen.values())}


def _show_call(tool: str, given: Fields) -> tuple[str, tuple[CallArgument, ...]]:
    """Return a text that shows the effect of a call, and the other arguments of the call."""
    names = _DONE.get(tool, ())
    parts = [given.get(name) for name in names]
    if tool == "Edit" and all(isinstance(part, str) for part in parts):
        path, *texts = map(str, parts)
        lines = (f"{sign}{line}" for sign, one in zip("-+", texts, strict=True) for line in one.split("\n"))
        parts = [path, "\n".join(lines)]
    return read(given, *parts, known={*names, *(["description"] if text(given, "description") is not None else [])})


# The program, while its request is held


class AskedCall:
    """Finds the call of a request in the agent's transcript: the id of the call, and whether the call was answered.

    The request came at `since` (epoch seconds). An earlier result belongs to an earlier, equal call.
    """

    def __init__(self, call: HookCall, since: float):
        self.call_id: str | None = None
        self._call, self._since, self._is_answered = call, since, False
        path = Path(call.transcript or os.devnull)
        if call.agent_id:
            path = path.with_suffix("") / "subagents" / f"agent-{call.agent_id}.jsonl"
        size = 0
        with suppress(OSError, ValueError):
            size = path.stat().st_size
        self._tail = Tail(path, position=max(size - _HEAD, 0), read_record=_read_record)

    def is_answered(self) -> bool:
        """Read the new lines of the transcript. Tell whether the call has a result, and so was answered."""
        asked = self._call.tool, self._call.given
        with suppress(OSError, ValueError):
            for fields in (line.record or {} for line in self._tail.read(_HEAD).lines):
                for block in objects(nested(fields, "message"), "content"):
                    if block.get("type") == "tool_use" and (block.get("name"), block.get("input")) == asked:
                        self.call_id, self._is_answered = text(block, "id"), False
                    elif self.call_id and text(block, "tool_use_id") == self.call_id:
                        self._is_answered = (time_at(fields) or 0.0) >= self._since
                        self.call_id = self.call_id if self._is_answered else None
        return self._is_answered


def _read_record(line: bytes) -> dict[str, Any] | None:
    """Return the JSON object in a line, or None. This reader loads no slow module."""
    return dict(object_in(line.decode("utf-8", "replace"))) or None


def has_reader() -> bool:
    """Tell whether the program that reads standard output is still running."""
    pipe = select.poll()
    pipe.register(1, 0)
    return not pipe.poll(0)


# OpenCode and Kilo


def hold_for_plugin(descriptor: int = 0, out: TextIO | None = None) -> int:
    """Read a request from the plugin, and offer it to the operator until the request has ended. Return exit code 0."""
    plugin = _Plugin(descriptor, out or sys.stdout)
    message = plugin.read()
    while message and not plugin.has_ended:
        message = _offer_request(message, plugin)
    return 0


def _offer_request(message: Fields, plugin: _Plugin) -> Fields:
    """Offer a request to the operator until it has ended. Return {}, or a changed request to offer instead."""
    workspace, program = _find_watched(message), text(message, "program") or ""
    anew: Fields = {}
    trouble = ""
    try:
        with RequestStore(workspace).offer(read_plugin_request(message, workspace)) as offer:
            from agentwatch.requests.holding import Holder

            holder = Holder(workspace, name=f"{program} plugin")
            anew = _hold_for_plugin(message, holder, offer, plugin)
            trouble = holder.trouble
    except (RequestError, ValueError) as error:
        trouble = str(error)
    if trouble:
        asked = nested(message, "asked")
        kind = text(asked, "permission") or "question"
        add_unanswered(workspace, program, text(asked, "sessionID") or "", kind, trouble)
    return anew


def _hold_for_plugin(message: Fields, holder: Holder, offer: Offer, plugin: _Plugin) -> Fields:
    while True:
        line = plugin.read(_POLL_SECONDS)
        if plugin.has_ended:
            return {}
        if "result" in line:
            offer.end(_ENDS.get(str(line["result"]), RequestStage.GONE))
            return {}
        if (number(line, "others") or 0) > offer.request.ends_others:
            # A denial would now end more requests than the screen says, so offer the request anew.
            return {**message, "others": line["others"], "nonce": f"{text(message, 'nonce')}+"}
        if record := holder.take_answer(offer):
            with suppress(OSError):  # the plugin may be gone
                plugin.send(_plugin_reply(record, offer.request))
                stage = None
                while not stage and not plugin.has_ended:
                    stage = _ENDS.get(str(plugin.read().get("result")))
                if stage is RequestStage.DELIVERED:
                    holder.record_delivered(record)
                # If the program ended without a result, nobody knows whether it accepted the answer.
                offer.end(stage or RequestStage.UNKNOWN, record.operator if stage is RequestStage.DELIVERED else "")
            return {}


def _plugin_reply(record: Record, request: Request) -> Fields:
    """Return the message that brings a decision to the plugin. An approval is valid for one call only."""
    about = json.loads(request.input)["asked"]["id"]
    if record.action is Action.ALLOW:
        return {"id": about, "reply": "once"}
    if record.action is Action.DENY:
        return {"id": about, "reply": "reject", "message": record.note, "others": request.ends_others}
    given = record.params.answers
    answers = [[one.answer for one in given if one.question == query.question] for query in request.queries]
    return {"id": about, "reply": "answers", "answers": answers}


def read_plugin_request(message: Fields, workspace: Path) -> Request:
    """Return the request in a message of the plugin. Raise ValueError if the message has no request."""
    asked, call, begun = nested(message, "asked"), nested(message, "call"), text(message, "directory") or workspace
    source, session_id, nonce = text(message, "program") or "", text(asked, "sessionID"), text(message, "nonce")
    if source not in _NAMES or not session_id or not nonce:
        raise ValueError("the plugin told of no request")
    said = text(nested(asked, "metadata"), "description") or text(call, "description") or ""
    actions: tuple[Action, ...]
    beside: tuple[CallArgument, ...] = ()
    if is_question := message.get("kind") == "question":
        queries = read_queries(asked, several="multiple")
        shown = "\n".join(query.question for query in queries) or read(asked)[0]
        actions = (Action.ANSWER, Action.DENY) if queries else (Action.DENY,)
    else:
        queries, (shown, beside) = (), _show_asked(asked, call, said)
        actions = (Action.ALLOW, Action.DENY) if shown else ()
        if os.path.realpath(begun) != os.path.realpath(workspace):
            beside = (make_given("cwd", begun), *beside)
    return make_request(
        {"asked": asked, "call": call},
        workspace_id(workspace),
        source,
        session_id,
        nonce,
        kind=RequestKind.QUESTION if is_question else RequestKind.PERMISSION,
        tool=text(asked, "permission") or "question",
        shown=shown or ", ".join(map(to_one_line, _texts_in(asked, "patterns"))),
        beside=beside,
        said=said,
        queries=queries,
        asked_at=(number(message, "at") or 0) / 1000,
        actions=actions,
        why_not="" if actions else f"{_NAMES[source]} does not tell what the call would do: answer it there.",
        words=not is_question,
        ends_others=int(number(message, "others") or 0),
        ends_turn=True,
        call_id=text(nested(asked, "tool"), "callID"),
        covered_by=", ".join(_texts_in(asked, "always")),
    )


def _show_asked(asked: Fields, call: Fields, said: str) -> tuple[str, tuple[CallArgument, ...]]:
    """Return the command, patch or path of a call ("" if unknown), and the other arguments of the call."""
    metadata = nested(asked, "metadata")
    if metadata.keys() == {"mcpInput"}:
        return read(nested(metadata, "mcpInput"))
    patterns = [one for one in _texts_in(asked, "patterns") if one != "*"]
    # Usually the arguments of the program and of the model are equal. Add the model's arguments that differ.
    differing = {f"{key} of the call": value for key, value in call.items() if metadata.get(key, value) != value}
    given = {**call, **metadata, **differing}
    known = {key for key, value in given.items() if (key, value) in (("description", said), ("patterns", patterns))}
    command, diff, path = (text(metadata, key) for key in ("command", "diff", "filepath"))
    parts: list[str] = []
    if diff:
        parts, known = [*filter(None, [path]), diff], known | _IN_DIFFS
    elif command and text(asked, "permission") == "bash":
        parts, known = [command], {*known, "command"}
    elif len(patterns) == 1:
        parts = [to_one_line(patterns[0])]
        known |= {key for key, value in given.items() if value in patterns}
    elif patterns:
        given = {"patterns": patterns, **given}
    return read(given, *parts, known=known) if given or parts else ("", ())


def _texts_in(fields: Fields, key: str) -> list[str]:
    return [one for one in list_at(fields, key) if isinstance(one, str)]


def _find_watched(message: Fields) -> Path:
    """Find the nearest directory that is shown: the program's, or a parent. If none is shown, return the program's."""
    begun = Path("/", text(message, "directory") or "")
    return next((place for place in (begun, *begun.parents) if is_shown(state_directory(place))), begun)


class _Plugin:
    """Exchanges messages with the plugin. `has_ended` is true after the program has closed the pipe."""

    def __init__(self, descriptor: int, out: TextIO):
        self.has_ended = False
        self._out = out
        self._lines = SimpleQueue[bytes]()
        Thread(target=self._receive, args=(os.dup(descriptor),), daemon=True).start()

    def _receive(self, descriptor: int) -> None:
        with open(descriptor, "rb") as lines:
            while (line := lines.readline(_LARGEST)).endswith(b"\n"):
                self._lines.put(line)
        self._lines.put(b"")

    def read(self, seconds: float | None = None) -> Fields:
        """Return the next message. Return {} if it is malformed, or if none comes within so many seconds."""
        try:
            line = self._lines.get(timeout=seconds)
        except Empty:
            return {}
        self.has_ended = not line
        return object_in(line.decode("utf-8", "replace"))

    def send(self, answer: Fields) -> None:
        """Send a message. Raise OSError if the plugin is gone."""
        self._out.write(f"{json.dumps(answer)}\n")
        self._out.flush()
