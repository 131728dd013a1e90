"""The requests of programs: the operator answers where they are seen, by the hook of Claude Code or by a plugin.

Whatever goes wrong, nothing is printed: then the program's own prompt stands, or appears. An answer is made of
the payload that this process was given, and of the decision about it: never of a file.

The plugin of OpenCode and Kilo (`opencode.js`) writes lines of JSON: a request, then what becomes of it. It reads one
line, the operator's answer, gives it to the program, and says whether that took it. The program's own prompt is there
all the time, but for a grandchild.
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
from agentwatch.delegation.decision import Action, Given, Query, Request, RequestKind, RequestStage
from agentwatch.requests.store import (
    Offer,
    RequestError,
    RequestStore,
    given_as,
    in_line,
    queries_in,
    read,
    request_about,
)
from agentwatch.sources.claude_code import ASKS, NAME, HookCall
from agentwatch.sources.sessions.fields import Fields, Tail, inner, listed, moment, number, object_in, objects, text
from agentwatch.state import is_shown, state_directory, workspace_id

if TYPE_CHECKING:
    from agentwatch.decisions.record import Params, Record
    from agentwatch.requests.holding import Holder

_STARTED_AS = "CLAUDE_CODE_ENTRYPOINT"
_TERMINAL = "cli"  # How a session was started whose prompt is known to stand while it is held

_HEAD = 8 * 1024 * 1024  # Bytes at the end of a transcript in which the call stands that is asked about

PLAN = "ExitPlanMode"
_QUESTION = "AskUserQuestion"
_SHELL = "Bash"
_MCP = "mcp__"
_DENIED = "The operator said no."  # To the model, where the operator gave no words

_JOINED = ", "
_UNCLEAR = "its questions cannot be told apart, or read, so it can be answered only in its terminal"
_PATTERN = frozenset("*:()\\\n")  # With one of these in it, a command is no rule for itself alone

_DONE = {
    _SHELL: ("command",),
    "Write": ("file_path", "content"),
    "Edit": ("file_path", "old_string", "new_string"),
    "NotebookEdit": ("notebook_path", "new_source"),
    "WebFetch": ("url",),
}  # By tool, the arguments that say what a call would do. Of other tools, all do.
_POLL_SECONDS = 0.05
_LARGEST = 16 * 1024 * 1024
_ENDS = {
    "delivered": RequestStage.DELIVERED,
    "elsewhere": RequestStage.ELSEWHERE,
    "unknown": RequestStage.UNKNOWN,
    "gone": RequestStage.GONE,
}
# Arguments of a call whose effect the program shows as a diff.
_IN_DIFFS = frozenset({"diff", "filepath", "filePath", "content", "oldString", "newString", "patchText"})
_NAMES = {"opencode": "OpenCode", "kilo": "Kilo"}


# Claude Code


def ask(call: HookCall, workspace: Path, settings: Settings) -> None:
    """Answer the request of a call on standard output, or print nothing. Blocks while there may be one.

    A plan can be approved only in its terminal. A request whose prompt stands meanwhile is held as long as the program
    lets it, any other one for seconds.
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
            trouble = _hold(call, workspace, asked, offer)
    except (RequestError, ValueError) as error:
        trouble = str(error)
    if trouble:
        add_unanswered(workspace, call.event, call.session_id, call.tool or "", trouble)


def _hold(call: HookCall, workspace: Path, asked: AskedCall, offer: Offer) -> str:
    """Hold what is offered until it is answered, here or in the program. Returns why an answer did not get through."""
    # It takes longer to load than the operator should wait for the offer.
    from agentwatch.requests.holding import Holder

    holder = Holder(workspace, name="claude hook")

    def goes_on() -> bool:
        has_ended = asked.is_answered()
        if asked.call_id and asked.call_id != offer.request.call_id:
            offer.note_call(asked.call_id)
        return is_heard() and not has_ended

    decided = holder.hold(offer, goes_on)
    answer = decided and answer_of(call, decided.action, decided.params, decided.note)
    if decided and answer and _print(answer):
        holder.delivered(decided)
        offer.end(RequestStage.DELIVERED, by=decided.operator)
    elif not decided and asked.is_answered():
        offer.end(RequestStage.ELSEWHERE)
    return holder.trouble


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


def request_of(call: HookCall, workspace: Path, asked: AskedCall, *, at: float, until: float | None) -> Request:
    """The request about a call, known by this process alone. Raises ValueError."""
    tool, given, why_not = call.tool or "", call.given, ""
    is_question = tool == _QUESTION
    queries = _queries(given) if is_question else ()
    actions: tuple[Action, ...] = (Action.ANSWER if queries else Action.ALLOW, Action.DENY)
    if is_question and not queries:
        actions, why_not = (Action.DENY,), _UNCLEAR
    shown, beside = _read_call(tool, given)
    if tool == _SHELL and os.path.realpath(call.cwd or workspace) != os.path.realpath(workspace):
        beside = (given_as("cwd", call.cwd), *beside)
    return request_about(
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
        rules=tuple(rules_of(call)),
        call_id=asked.call_id,
        covered_by="; ".join(f"the rule {rule}" for rule in _suggested(call)),
    )


def answer_of(call: HookCall, action: Action, params: Params, note: str) -> dict[str, Any] | None:
    """The output for a decision about this very call; None where the program would not understand it."""
    decision: dict[str, Any] | None = None
    if action is Action.DENY:
        decision = {"behavior": "deny", "message": note.strip() or _DENIED}
    elif action is Action.ALLOW and call.tool != _QUESTION:
        decision = {"behavior": "allow"}
        if params.rule:
            if params.rule not in (rules := rules_of(call)):
                return None
            kept = {"type": "addRules", "rules": [rules[params.rule]], "behavior": "allow", "destination": "session"}
            decision["updatedPermissions"] = [kept]
    elif action is Action.ANSWER and call.tool == _QUESTION and (answers := _answers(call.given, params)):
        decision = {"behavior": "allow", "updatedInput": {**call.given, "answers": answers}}
    return decision and {"hookSpecificOutput": {"hookEventName": ASKS, "decision": decision}}


def rules_of(call: HookCall) -> dict[str, dict[str, str]]:
    """The permissions that could last until the session ends, by what the operator reads, as the program has it:
    the rules that it suggests, and the very command."""
    # A tool's name alone would allow all that it can do; that of a server can do no other thing.
    found = {
        name: rule
        for name, rule in _suggested(call).items()
        if rule["toolName"] == call.tool and ("ruleContent" in rule or name.startswith(_MCP))
    }
    command = text(call.given, "command") or ""
    if call.tool == _SHELL and command.strip() == command and _PATTERN.isdisjoint(command or "*"):
        found[f"{_SHELL}({command})"] = {"toolName": _SHELL, "ruleContent": command}
    return found


def _suggested(call: HookCall) -> dict[str, dict[str, str]]:
    """The rules that the program itself would offer, by name."""
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


def _queries(given: Fields) -> tuple[Query, ...]:
    """() where they are not clear. Where labels could not be told apart when joined, one is chosen."""
    return tuple(
        one._replace(several=False) if any(_JOINED in option.label for option in one.options) else one
        for one in queries_in(given, several="multiSelect")
    )


def _answers(given: Fields, params: Params) -> dict[str, str] | None:
    """By question, the answer, several labels as the program joins them itself. None where one would not be clear."""
    chosen: dict[str | None, list[str]] = {query.question: [] for query in _queries(given)}
    for one in params.answers:
        if one.question not in chosen:
            return None
        chosen[one.question].append(one.answer)
    return {str(question): _JOINED.join(answers) for question, answers in chosen.items() if all(chosen.values())}


def _read_call(tool: str, given: Fields) -> tuple[str, tuple[Given, ...]]:
    """The call's effect, and its other arguments."""
    names = _DONE.get(tool, ())
    parts = [given.get(name) for name in names]
    if tool == "Edit" and all(isinstance(part, str) for part in parts):
        path, *texts = map(str, parts)
        lines = (f"{sign}{line}" for sign, one in zip("-+", texts, strict=True) for line in one.split("\n"))
        parts = [path, "\n".join(lines)]
    return read(given, *parts, known={*names, *(["description"] if text(given, "description") is not None else [])})


# The program, while its request is held


class AskedCall:
    """The call in the transcript of its agent: for the receipt, and to end where it was answered in the program.

    It was asked about at a time in epoch seconds: results of before are those of equal calls.
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
        self._tail = Tail(path, position=max(size - _HEAD, 0), read_record=_record)

    def is_answered(self) -> bool:
        """Reads what the transcript got since the last look. A part that cannot be read says nothing."""
        asked = self._call.tool, self._call.given
        with suppress(OSError, ValueError):
            for fields in (line.record or {} for line in self._tail.read(_HEAD).lines):
                for block in objects(inner(fields, "message"), "content"):
                    if block.get("type") == "tool_use" and (block.get("name"), block.get("input")) == asked:
                        self.call_id, self._is_answered = text(block, "id"), False
                    elif self.call_id and text(block, "tool_use_id") == self.call_id:
                        self._is_answered = (moment(fields) or 0.0) >= self._since
                        self.call_id = self.call_id if self._is_answered else None
        return self._is_answered


def _record(line: bytes) -> dict[str, Any] | None:
    """A line as the JSON object that it holds, None where it holds none; without what takes long to load."""
    return dict(object_in(line.decode("utf-8", "replace"))) or None


def is_heard() -> bool:
    """Whether somebody still reads what is printed: the program has its end of the pipe as long as it lives."""
    pipe = select.poll()
    pipe.register(1, 0)
    return not pipe.poll(0)


# OpenCode and Kilo


def hold_for_plugin(descriptor: int = 0, out: TextIO | None = None) -> int:
    """Offer the request that is read until it has ended. Returns 0: nobody reads what the plugin's processes say."""
    plugin = _Plugin(descriptor, out or sys.stdout)
    told = plugin.read()
    while told and not plugin.has_ended:
        told = _offer(told, plugin)
    return 0


def _offer(told: Fields, plugin: _Plugin) -> Fields:
    """Offer a request until it has ended: then {}. Else, as it has to be offered anew."""
    workspace, program = _watched(told), text(told, "program") or ""
    anew: Fields = {}
    trouble = ""
    try:
        with RequestStore(workspace).offer(request_told(told, workspace)) as offer:
            from agentwatch.requests.holding import Holder

            holder = Holder(workspace, name=f"{program} plugin")
            anew = _hold_for_plugin(told, holder, offer, plugin)
            trouble = holder.trouble
    except (RequestError, ValueError) as error:
        trouble = str(error)
    if trouble:
        asked = inner(told, "asked")
        kind = text(asked, "permission") or "question"
        add_unanswered(workspace, program, text(asked, "sessionID") or "", kind, trouble)
    return anew


def _hold_for_plugin(told: Fields, holder: Holder, offer: Offer, plugin: _Plugin) -> Fields:
    while True:
        line = plugin.read(_POLL_SECONDS)
        if plugin.has_ended:
            return {}
        if "result" in line:
            offer.end(_ENDS.get(str(line["result"]), RequestStage.GONE))
            return {}
        if (number(line, "others") or 0) > offer.request.ends_others:
            # A decision on the request as it was shown before does not know that a denial ends more.
            return {**told, "others": line["others"], "nonce": f"{text(told, 'nonce')}+"}
        if record := holder.look(offer):
            # Nobody may read it.
            with suppress(OSError):
                plugin.say(_reply(record, offer.request))
                stage = None
                while not stage and not plugin.has_ended:
                    stage = _ENDS.get(str(plugin.read().get("result")))
                if stage is RequestStage.DELIVERED:
                    holder.delivered(record)
                # Without a word: the program has ended, or the plugin, and the answer may have counted before that.
                offer.end(stage or RequestStage.UNKNOWN, record.operator if stage is RequestStage.DELIVERED else "")
            return {}


def _reply(record: Record, request: Request) -> Fields:
    """The words to the plugin: never more than once, and never anything but what was decided."""
    about = json.loads(request.input)["asked"]["id"]
    if record.action is Action.ALLOW:
        return {"id": about, "reply": "once"}
    if record.action is Action.DENY:
        return {"id": about, "reply": "reject", "message": record.note, "others": request.ends_others}
    given = record.params.answers
    answers = [[one.answer for one in given if one.question == query.question] for query in request.queries]
    return {"id": about, "reply": "answers", "answers": answers}


def request_told(told: Fields, workspace: Path) -> Request:
    """The request that the plugin tells of, as of one workspace. Raises ValueError where it is none."""
    asked, call, begun = inner(told, "asked"), inner(told, "call"), text(told, "directory") or workspace
    source, session_id, nonce = text(told, "program") or "", text(asked, "sessionID"), text(told, "nonce")
    if source not in _NAMES or not session_id or not nonce:
        raise ValueError("the plugin told of no request")
    said = text(inner(asked, "metadata"), "description") or text(call, "description") or ""
    actions: tuple[Action, ...]
    beside: tuple[Given, ...] = ()
    if is_question := told.get("kind") == "question":
        queries = queries_in(asked, several="multiple")
        shown = "\n".join(query.question for query in queries) or read(asked)[0]
        actions = (Action.ANSWER, Action.DENY) if queries else (Action.DENY,)
    else:
        queries, (shown, beside) = (), _read_asked(asked, call, said)
        actions = (Action.ALLOW, Action.DENY) if shown else ()
        if os.path.realpath(begun) != os.path.realpath(workspace):
            beside = (given_as("cwd", begun), *beside)
    return request_about(
        {"asked": asked, "call": call},
        workspace_id(workspace),
        source,
        session_id,
        nonce,
        kind=RequestKind.QUESTION if is_question else RequestKind.PERMISSION,
        tool=text(asked, "permission") or "question",
        shown=shown or ", ".join(map(in_line, _words(asked, "patterns"))),
        beside=beside,
        said=said,
        queries=queries,
        asked_at=(number(told, "at") or 0) / 1000,
        actions=actions,
        why_not="" if actions else f"{_NAMES[source]} does not tell what the call would do: answer it there.",
        words=not is_question,
        ends_others=int(number(told, "others") or 0),
        ends_turn=True,
        call_id=text(inner(asked, "tool"), "callID"),
        covered_by=", ".join(_words(asked, "always")),
    )


def _read_asked(asked: Fields, call: Fields, said: str) -> tuple[str, tuple[Given, ...]]:
    """The command, the patch or the path itself, and what the call is given besides; "" where nothing says that."""
    metadata = inner(asked, "metadata")
    if metadata.keys() == {"mcpInput"}:
        return read(inner(metadata, "mcpInput"))
    patterns = [one for one in _words(asked, "patterns") if one != "*"]
    # The words of the program on a call, and those of the model, are mostly the same.
    twice = {f"{key} of the call": value for key, value in call.items() if metadata.get(key, value) != value}
    given = {**call, **metadata, **twice}
    known = {key for key, value in given.items() if (key, value) in (("description", said), ("patterns", patterns))}
    command, diff, path = (text(metadata, key) for key in ("command", "diff", "filepath"))
    parts: list[str] = []
    if diff:
        parts, known = [*filter(None, [path]), diff], known | _IN_DIFFS
    elif command and text(asked, "permission") == "bash":
        parts, known = [command], {*known, "command"}
    elif len(patterns) == 1:
        parts = [in_line(patterns[0])]
        known |= {key for key, value in given.items() if value in patterns}
    elif patterns:
        given = {"patterns": patterns, **given}
    return read(given, *parts, known=known) if given or parts else ("", ())


def _words(fields: Fields, key: str) -> list[str]:
    return [one for one in listed(fields, key) if isinstance(one, str)]


def _watched(told: Fields) -> Path:
    """The workspace whose screen would show it: where the program was begun, or the next one above that is watched."""
    begun = Path("/", text(told, "directory") or "")
    return next((place for place in (begun, *begun.parents) if is_shown(state_directory(place))), begun)


class _Plugin:
    """The messages of the plugin as they come; it `has_ended` together with its program."""

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
        """The next line; {} for what is none, and where none has come by then."""
        try:
            line = self._lines.get(timeout=seconds)
        except Empty:
            return {}
        self.has_ended = not line
        return object_in(line.decode("utf-8", "replace"))

    def say(self, answer: Fields) -> None:
        """Raises OSError where nobody reads it."""
        self._out.write(f"{json.dumps(answer)}\n")
        self._out.flush()
