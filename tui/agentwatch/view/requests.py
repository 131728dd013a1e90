"""Words for the requests of programs: how far they have got, and where they are answered."""

from agentwatch.delegation.decision import Action, Permitter, Request, RequestKind, RequestStage
from agentwatch.delegation.task import Task
from agentwatch.text import indented
from agentwatch.view.times import duration
from agentwatch.view.words import GONE, THERE, plural, why_not

_INIT = frozenset({"claude-code", "opencode", "kilo"})
"""The sources for whose programs `init` makes it possible to answer here; they have the same names there."""

_ELSEWHERE = {
    Permitter.PERSON: "in the program",
    Permitter.HOOK: "by a hook, not with your answer",
    Permitter.RULE: "by a rule of the program",
    Permitter.UNKNOWN: "elsewhere",
}


def standing_words(request: Request, now: float) -> str:
    """How far it has got, in our own words."""
    did = _did(request)
    match request.stage:
        case RequestStage.OFFERED:
            return left_words(request, now) or "waits for you"
        case RequestStage.DECIDED:
            return f"{did}, not delivered yet"
        case RequestStage.DELIVERED:
            return f"{did} and delivered; what came of it is not known yet"
        case RequestStage.ACTED:
            return f"{did} by you"
        case RequestStage.ELSEWHERE:
            who = _ELSEWHERE[Permitter(request.by)] if request.by in list(Permitter) else "in the program"
            return f"{_did(request) if request.allowed is not None else 'answered'} {who}"
        case RequestStage.UNKNOWN:
            return f"{did} by you; whether that counted is not known: the connection to its program broke"
    late = "; your answer came too late" if request.allowed is not None else ""
    return f"gone: {GONE}{late}"


def left_words(request: Request, now: float) -> str:
    """How long it can be answered here, and what is then; "" where it does not end, or has ended."""
    if request.until is None or not request.can_answer:
        return ""
    left = duration(max(request.until - now, 0.0))
    if request.prompt_hidden:
        return f"its prompt appears in its terminal in {left}"
    return f"can be answered here for {left}"


def denial_words(request: Request) -> list[str]:
    """Sentences about all that a denial ends besides what is asked."""
    if Action.DENY not in request.actions:
        return []
    said = []
    if request.ends_others:
        said.append(f"a denial ends {plural(request.ends_others, 'other open request')} of its session, too")
    if request.ends_turn:
        said.append(f"a denial{' without words' if request.words else ''} ends the turn of its agent")
    return said


def whole_input(request: Request) -> str:
    """The exact input, as it is read; "" where what is shown of it besides is all of it."""
    import json

    try:
        value = json.loads(request.input)
    except (ValueError, RecursionError):
        value = request.input
    parts = list(value.values()) if isinstance(value, dict) else [value]
    if all(part in (request.shown, request.said) for part in parts):
        return ""
    return value if isinstance(value, str) else indented(value)


def where(task: Task) -> str:
    """Where what a task asks of a person is answered, and why not here; "" where it can be answered here, or nothing
    is asked. Of what a holder says, foreign."""
    if (request := task.request) is not None:
        return (why_not(request) or "") if request.waits_for_operator else ""
    run = task.run
    if run is None or not task.asked_there:
        return ""
    is_able = run.source in _INIT
    return f"{THERE}; `agentwatch init --agent {run.source}` lets you answer here" if is_able else THERE


def _did(request: Request) -> str:
    if not request.allowed:
        return "answered" if request.allowed is None else "denied"
    return "allowed" if request.kind is RequestKind.PERMISSION else "answered"
