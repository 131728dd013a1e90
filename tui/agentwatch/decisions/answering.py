"""Which answers a request takes: asked before one is signed, and again by whoever hands it to the program. Pure."""

from __future__ import annotations

from collections import Counter

from agentwatch.decisions.record import Asked, Params, Record
from agentwatch.delegation.decision import Action
from agentwatch.delegation.request import Request
from agentwatch.text import quoted


def asked_of(request: Request) -> Asked:
    """The request as a record names it."""
    return Asked(request.source, request.session_id, request.nonce, request.kind, request.input_sha256)


def answers(record: Record, request: Request) -> bool:
    """Whether a verified record is about this very request, and says nothing that it does not take."""
    is_its_own = record.request == asked_of(request) and record.decision_id == request.request_id
    return is_its_own and refusal(request, record.action, record.params, record.note) is None


def refusal(request: Request, action: Action, params: Params, note: str = "") -> str | None:
    """Why a request does not take this answer, in one sentence; None where it does."""
    if action not in request.actions:
        taken = " and ".join(request.actions)
        why = f": {request.why_not}" if request.why_not else ""
        return f"it does not take {action} here{why}{f'; it takes {taken}' if taken else ''}"
    if note and not (action is Action.DENY and request.words):
        return "no words get to the program with this: leave them out"
    if params.rule is not None and params.rule not in request.rules:
        return f"{quoted(params.rule)} is none of the rules that it offers"
    return _unanswered(request, params) if action is Action.ANSWER else None


def _unanswered(request: Request, params: Params) -> str | None:
    asked = {query.question: query for query in request.queries}
    if len(asked) != len(request.queries):
        return "it asks the same question twice, so no answer would be clear: answer it in its program"
    given = Counter(one.question for one in params.answers)
    for question in given:
        if question not in asked:
            return f"it does not ask {quoted(question or '')}"
    for question, query in asked.items():
        if not given[question]:
            return f"all of its questions have to be answered; this one is not: {quoted(question)}"
        if given[question] > 1 and not query.several:
            return f"one answer can be given to {quoted(question)}"
    if not all(one.answer.strip() for one in params.answers) or len(set(params.answers)) != len(params.answers):
        return "an answer is empty, or given twice"
    return None
