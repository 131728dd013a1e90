"""What a task asks of the operator, in which order tasks ask, and what is past.

Texts quoted from documents are foreign and still unsanitised here: faces clean them when they show them.
"""

from __future__ import annotations

from typing import Final

from agentwatch.contracts.shapes import Outcome, Severity
from agentwatch.delegation.claims import Verdict, merged
from agentwatch.delegation.decision import ENDING, Action
from agentwatch.delegation.indexes import Ordered
from agentwatch.delegation.problems import missing_artifacts
from agentwatch.delegation.reasons import dispute
from agentwatch.delegation.request import Request, RequestKind
from agentwatch.delegation.requests import rank
from agentwatch.delegation.retry import FITTER, budget_words, failed_alike, is_line_fault, is_restored, mitigated
from agentwatch.delegation.rules import LOW_CONFIDENCE
from agentwatch.delegation.task import State, Task
from agentwatch.text import left_out, verbatim

_LONGEST_WORD: Final = 40
"""Characters that are quoted of what a child calls its state."""

_LONGEST_SHOWN: Final = 300
"""Characters of a command or a question that a task asks with."""
_LONGEST_NAMES: Final = 60
"""Characters of the names of what a call is given besides."""

_ACCEPTABLE: Final = frozenset({State.COMPLETED, State.PARTIAL, State.INVALID})


_LOST: Final = 1
"""More than less than nothing, which is what all others hold up."""
_FIRST: Final = 1 << 40
"""More than any task holds up: an open request holds a live agent."""


class Asking(Ordered[tuple[float, ...]]):
    """The tasks that need the operator: open requests first, then who holds up most, then who has asked last, and
    at last as they stand in the tree. Behind all of them, those whose host cannot be reached."""

    def ask(
        self,
        task_id: str,
        holds: int,
        since: float,
        first_seq: int,
        request: Request | None = None,
        *,
        is_lost: bool = False,
    ) -> None:
        """A task asks: so many others wait for it, it has asked since then (epoch seconds), and its program asks so."""
        if is_lost:
            self.put(task_id, (_LOST, -holds, -since, first_seq))
        elif request is not None and request.waits_for_operator:
            turn, when = rank(request)
            self.put(task_id, (turn - _FIRST, when))
        else:
            self.put(task_id, (-holds, -since, first_seq))


def ask(task: Task, verdict: Verdict | None, low_confidence: float = LOW_CONFIDENCE) -> str | None:
    """The one question the operator has to answer for this task, None where there is none."""
    result, latest, state = task.result, task.latest, task.own_state
    if (request := task.request) is not None and state is State.BLOCKED:
        waiting = sum(one.waits_for_operator for one in task.requests)
        more = f" (+{waiting - 1:,} more)" if waiting > 1 else ""
        return f"{request_words(request)}{more}" if waiting else None
    if task.run is not None and task.run.waiting and state is State.BLOCKED:
        return f"it waits in its own session: {task.run.waiting}"
    if latest is None or task.inferred or task.is_session or task.binding is not None or task.ended_with is not None:
        return None
    if result is not None and state is State.BLOCKED:
        blocker = next(iter(result.blockers), None) or result.error_message
        others = len(result.blockers) - 1
        more = f" (+{others:,} more question{'s' if others > 1 else ''})" if others > 0 else ""
        return f"answer: {blocker}{more}" if blocker else "blocked, and does not say by what: answer or abort"
    was_accepted = latest.superseded and latest.superseded[-1].action is Action.ACCEPT
    if result is not None and was_accepted and state in _ACCEPTABLE:
        return "the return changed since you accepted it: look at it again, then accept or retry"
    if state is State.INVALID:
        child = task.agent or "the child"
        if result is None:
            return f"{child} ended without a return; retry, or accept it as it is"
        if (words := dispute(task)) is not None:
            return f"{words}; look at both, then retry, or accept the first as it is"
        if latest.ended_without_result:
            return f"{child} ended without a result; retry, or accept it as it is"
        return f"{_broken(task)}: retry, or accept it as it is"
    if state is State.FAILED:
        return _ask_after_failure(task)
    if verdict is Verdict.CONTRADICTED:
        return _ask_about_lies(task)
    if latest.unasked:
        whose = "nobody" if latest.run is None else "another session"
        end = "let it go on, or abort" if state.is_open else "accept, or retry"
        return f"{whose} handed out attempt {task.attempt}, and the one before failed: {end}"
    if result is None:
        return None
    if result.review_reason is not None and state in (State.PARTIAL, State.COMPLETED):
        return f"review: {result.review_reason}" if result.review_reason else "the child asks for a review"
    if result.confidence is not None and result.confidence < low_confidence and state is State.COMPLETED:
        return f"review: the child is not sure of its result (confidence {result.confidence:g})"
    return None


def request_words(request: Request) -> str:
    """What a request asks, in a line: the very command, patch or path, visibly cut."""
    query = request.queries[0] if request.queries else None
    if request.kind is RequestKind.PERMISSION or query is None:
        # Before the command, which may be long: what is cut off must not be that there is more to it.
        beside = f" + {_cut(', '.join(one.name for one in request.beside), _LONGEST_NAMES)}" if request.beside else ""
        lead = "allow?" if request.kind is RequestKind.PERMISSION else "fill in?"
        words = f"{lead} {_cut(request.tool)}{beside}  {_cut(request.shown)}".rstrip()
    else:
        others = len(request.queries) - 1
        words = f"answer: {_cut(query.question)}"
        words += f" (+{others:,} more question{'s' if others > 1 else ''})" if others else ""
    return words if request.actions else f"it waits in its own session: {words}"


def _cut(text: str, longest: int = _LONGEST_SHOWN) -> str:
    more = len(text) - longest
    return verbatim(text[:longest]) + (left_out(more, "character") if more > 0 else "")


def is_past(task: Task, line: float, *other_signs: float) -> bool:
    """Whether a task is as it was before the line (epoch seconds): since then there was no sign of life of its own (of
    what is below it, where it is only named), none of these others, and no decision that somebody is to carry out."""
    alive_at = task.alive_at if task.inferred else task.updated_at
    if not alive_at or alive_at >= line or (task.run is not None and task.run.process_gone is False):
        return False
    if any(sign >= line for sign in other_signs) or any(one.is_open for one in task.requests):
        return False
    decided = (one for attempt in task.attempts for one in attempt.decisions)
    return all(one.at < line for one in decided if one.action not in ENDING)


def is_history(run: Task, line: float) -> bool:
    """Whether a task without a parent is past with all that is below it, and nothing of that asks."""
    below = run.below
    is_silent = below is None or (below.active_at < line and not below.needs_operator)
    return run.past and not run.needs_operator and is_silent


def ask_to_mend(path: str) -> str:
    """What a task asks of which a handoff or a return is there and is not read."""
    return f"{path} is not read, so what it says is not known: mend it, or remove it"


_DEMANDED: Final = {
    "criterion": "a success criterion is not met",
    "constraint": "a constraint is broken",
    "must_create": "a demand of the handoff is not met",
    "required_evidence": "a demand of the handoff is not met",
}
"""What is wrong where something that the handoff demands is not so; by the kind of the claim."""


def _ask_about_lies(task: Task) -> str:
    false = [claim for claim in merged(task.claims) if claim.verdict is Verdict.CONTRADICTED]
    # What the child itself says comes first: of what the handoff demands, it need have said nothing.
    false.sort(key=lambda claim: claim.kind in _DEMANDED)
    what = _DEMANDED.get(false[0].kind, "a claim is false")
    others = len(false) - 1
    more = f", and {others} more" if others else ""
    do = "look at it, then accept, retry or answer"
    if missing_artifacts(task):
        do = "so its return breaks the contract: retry, or accept it as it is"
    return f"{what}: {false[0].path} ({false[0].detail}){more}; {do}"


def _broken(task: Task) -> str:
    """By what a return breaks its contract, and what the child says in it of a failure."""
    result, returned = task.result, task.latest.returned if task.latest is not None else None
    findings = returned.findings if returned is not None else ()
    faults = [one.message.partition("; ")[0] for one in findings if one.severity is Severity.ERROR]
    words = "its return breaks the contract"
    if faults:
        words += f": {faults[0]}{f' (+{len(faults) - 1} more)' if len(faults) > 1 else ''}"
    if result is None or result.outcome is not Outcome.FAILED:
        return words
    advice = {True: " and recommends a retry", False: " and advises against a retry", None: ""}
    return f"{words}; it says {(result.reported_state or 'failed')[:_LONGEST_WORD]}{advice[task.retry.recommended]}"


def _ask_after_failure(task: Task) -> str:
    retry = task.retry
    if not retry.remaining:
        more = "; a material mitigation earns one more" if mitigated(task).remaining else ""
        return f"no retry left ({retry.max_retries} used): escalate to another mode, or abort{more}"
    if is_restored(task):
        question = f"retry? the {FITTER} has restored the line;"
    elif is_line_fault(task) and not retry.restored:
        question = f"a line fault: escalate to the {FITTER}?"
    elif failed_alike(task):
        question = "escalate? it failed twice in the same way;"
    elif retry.recommended is None:
        question = "retry, escalate or abort?"
    elif retry.recommended:
        question = "retry? the child recommends it;"
    else:
        question = "escalate or abort? the child advises against a retry;"
    return f"{question} {budget_words(retry)}"
