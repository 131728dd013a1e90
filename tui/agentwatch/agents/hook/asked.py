"""What a PermissionRequest asks, as a request that the operator can answer, and the answer to the program. Pure.

What is printed is made of the payload that this process was given, and of the decision about it: never of a file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from agentwatch.decisions.record import Params
from agentwatch.delegation.decision import Action
from agentwatch.delegation.request import Given, Option, Query, Request, RequestKind, input_text, request_id_of
from agentwatch.requests.reading import given_as, read
from agentwatch.sources.claude_code import NAME
from agentwatch.sources.claude_code.hooks import ASKS, HookCall
from agentwatch.sources.sessions.fields import Fields, listed, mapping, text

PLAN: Final = "ExitPlanMode"
_QUESTION: Final = "AskUserQuestion"
_SHELL: Final = "Bash"
_MCP: Final = "mcp__"
DENIED: Final = "The operator said no."
"""To the model, where the operator gave no words."""

_JOINED: Final = ", "
_IN_TERMINAL: Final = "a plan can be approved only in its terminal; here you can send it back with words"
_TWICE: Final = "it asks the same question twice, so it can be answered only in its terminal"
_ODD: Final = "its questions are not as Claude Code writes them, so it can be answered only in its terminal"
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

Rules = Mapping[str, dict[str, str]]
"""By what the operator reads, the rule as the program has it."""


class Ask(NamedTuple):
    """When it was asked, and until when the program is held (epoch seconds; None: as long as the program lets it).

    `plan` is that of an ExitPlanMode, whose payload lacks it. `cwd` is where a command runs, if not in the workspace.
    `hidden`: the program shows nothing meanwhile.
    `unattended`: it has no prompt at all, and denies what nobody answers.
    """

    at: float
    until: float | None
    nonce: str
    hidden: bool = False
    unattended: bool = False
    call_id: str | None = None
    plan: str = ""
    cwd: str = ""


def request_of(call: HookCall, workspace_id: str, ask: Ask) -> Request:
    """The request. Raises ValueError where its input has no one spelling."""
    spelled, digest = input_text(call.given)
    tool, session = call.tool or "", call.agent_id or call.session_id
    is_question = tool == _QUESTION
    queries = _queries(call.given) if is_question else ()
    actions: tuple[Action, ...] = (Action.ALLOW, Action.DENY)
    why_not = _NO_TERMINAL if ask.unattended else ""
    if is_question:
        is_clear = queries is not None and len({query.question for query in queries}) == len(queries)
        why_not = "" if is_clear else _ODD if queries is None else _TWICE
        actions = (Action.ANSWER, Action.DENY) if is_clear else (Action.DENY,)
    elif tool == PLAN:
        actions, why_not = (Action.DENY,), _IN_TERMINAL
    shown, beside = _read(tool, {**call.given, "plan": ask.plan} if ask.plan else call.given)
    if ask.cwd and tool == _SHELL:
        beside = (given_as("cwd", ask.cwd), *beside)
    return Request(
        request_id=request_id_of(workspace_id, NAME, session, ask.nonce, digest),
        source=NAME,
        session_id=session,
        nonce=ask.nonce,
        kind=RequestKind.QUESTION if is_question else RequestKind.PERMISSION,
        tool=tool,
        input=spelled,
        input_sha256=digest,
        shown="\n".join(query.question for query in queries or ()) or shown,
        said=text(call.given, "description") or "",
        beside=() if queries else beside,
        queries=queries or (),
        asked_at=ask.at,
        until=ask.until,
        prompt_hidden=ask.hidden,
        actions=actions,
        why_not=why_not,
        words=True,
        rules=tuple(rules_of(call)),
        call_id=ask.call_id,
        covered_by=_covered_by(call),
    )


def answer_of(call: HookCall, action: Action, params: Params, note: str) -> dict[str, Any] | None:
    """What is printed for a decision about this very call; None where the program would not understand it."""
    match action:
        case Action.DENY:
            decision: dict[str, Any] = {"behavior": "deny", "message": note.strip() or DENIED}
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


def rules_of(call: HookCall) -> Rules:
    """What could be allowed until the session ends: the rules that the program suggests, and the very command."""
    found: dict[str, dict[str, str]] = {}
    for suggestion in call.suggestions:
        if suggestion.get("type") == "addRules" and suggestion.get("behavior") == "allow":
            for rule in map(mapping, listed(suggestion, "rules")):
                tool, content = text(rule, "toolName"), text(rule, "ruleContent")
                # A tool's name alone would allow all that it can do; that of a server can do no other thing.
                if tool is not None and tool == call.tool and (content is not None or tool.startswith(_MCP)):
                    found |= _rule(tool, content)
    command = text(call.given, "command")
    if call.tool == _SHELL and command is not None and _PATTERN.isdisjoint(command) and command.strip() == command:
        found |= _rule(_SHELL, command)
    return found


def _rule(tool: str, content: str | None) -> dict[str, dict[str, str]]:
    if content is None:
        return {tool: {"toolName": tool}}
    return {f"{tool}({content})": {"toolName": tool, "ruleContent": content}}


def _covered_by(call: HookCall) -> str:
    """What the program itself suggests, in its own words; "" where it suggests nothing."""
    return "; ".join(dict.fromkeys(words for one in call.suggestions for words in _suggested(one)))


def _suggested(suggestion: Fields) -> Iterator[str]:
    match suggestion.get("type"):
        case "addRules" if suggestion.get("behavior") == "allow":
            for rule in map(mapping, listed(suggestion, "rules")):
                if (tool := text(rule, "toolName")) is not None:
                    yield f"the rule {next(iter(_rule(tool, text(rule, 'ruleContent'))))}"
        case "setMode" if (mode := text(suggestion, "mode")) is not None:
            yield f"the mode {mode}"
        case "addDirectories":
            for directory in listed(suggestion, "directories"):
                if isinstance(directory, str):
                    yield f"access to {directory}"


def _queries(given: Fields) -> tuple[Query, ...] | None:
    """None where a question is not as it must be."""
    found = []
    for asked in map(mapping, listed(given, "questions")):
        question, options = text(asked, "question"), list(map(mapping, listed(asked, "options")))
        labels = [text(option, "label") for option in options]
        if question is None or None in labels:
            return None
        several = asked.get("multiSelect") is True and not any(_JOINED in (label or "") for label in labels)
        offered = tuple(Option(str(one["label"]), text(one, "description") or "") for one in options)
        found.append(Query(question, text(asked, "header") or "", offered, several))
    return tuple(found) or None


def _answers(given: Fields, params: Params) -> dict[str, str] | None:
    """By question, the answer, several labels as the program joins them itself. None where one would not be clear."""
    chosen: dict[str, list[str]] = {query.question: [] for query in _queries(given) or ()}
    for one in params.answers:
        if one.question not in chosen:
            return None
        chosen[one.question].append(one.answer)
    return {question: _JOINED.join(answers) for question, answers in chosen.items()} if all(chosen.values()) else None


def _read(tool: str, given: Fields) -> tuple[str, tuple[Given, ...]]:
    """What the call would do, and what it is given besides."""
    names = _DONE.get(tool, ())
    parts = [given.get(name) for name in names]
    if tool == "Edit":
        path, old, new = parts
        parts = [path, _change(old, new) if isinstance(old, str) and isinstance(new, str) else None]
    return read(given, *parts, known={*names, *(["description"] if text(given, "description") is not None else [])})


def _change(old: str, new: str) -> str:
    return "\n".join([*(f"-{line}" for line in old.split("\n")), *(f"+{line}" for line in new.split("\n"))])
