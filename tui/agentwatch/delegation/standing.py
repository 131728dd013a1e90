"""Finds the state of a task, its question to the operator, and its retries.

A task may have 1 + `max_retries` attempts. No I/O. The texts that are quoted from agents are untrusted.
"""

import math
import re
from collections.abc import Collection, Iterable, Sequence
from hashlib import blake2b
from posixpath import basename, dirname
from sys import intern

from agentwatch.contracts.shapes import Finding, Outcome, Return, Severity
from agentwatch.delegation import links
from agentwatch.delegation.decision import (
    ENDING,
    RESUMING,
    SAYS_SO,
    SPECS,
    Action,
    Request,
    RequestKind,
    RequestStage,
    Stage,
)
from agentwatch.delegation.events import Activity, ActivityKind, Aside, Run, RunState, Seen, Verdict, merge_claims
from agentwatch.delegation.task import Attempt, Retry, Shown, State, Task, is_begun
from agentwatch.text import clean_call, clean_name, omission_mark

_RUN_REASONS = {
    RunState.SUBMITTED: "asked for; no sign of life yet",
    RunState.WORKING: "its process runs",
    RunState.ENDED: "it ended; its answer follows no contract",
    RunState.FAILED: "it failed, and the session store does not say why",
    RunState.CANCELED: "it was aborted",
}

_REQUEST_WORDS = {
    RequestKind.PERMISSION: "asks for a permission",
    RequestKind.QUESTION: "asks a question",
    RequestKind.FORM: "has a form to fill in",
}

_DEMANDS = frozenset({"criterion", "must_create", "required_evidence"})  # kinds of claims that the handoff demands

FITTER = "fitter"  # the mode that repairs the line, not the work

MITIGATED_MAX_RETRIES = 2  # after a material mitigation (changed inputs, reduced scope, corrected constraints)

HAVE_FAILED = frozenset({State.FAILED, State.INVALID})


def is_final(version: Seen | None) -> bool:
    """Tell whether a return says how the attempt ended. A return with `in_progress` does not."""
    document = version.document if version else None
    return isinstance(document, Return) and document.outcome is not Outcome.WORKING


def state_of(attempt: Attempt, *, strict: bool, demands: bool) -> State:
    """Return the state of an attempt by its handoff, return and run. `strict` and `demands` are settings of `Rules`."""
    returned, result, run = attempt.returned, attempt.result, attempt.run
    if strict and (answers_another_session(attempt) or attempt.rival):
        return State.INVALID
    # The last words of a failed run are not its return.
    if run and (not result or run.state in (RunState.FAILED, RunState.CANCELED)):
        if run.state is not RunState.ENDED:
            return State.BLOCKED if run.waiting else State(run.state.value)
        is_broken = run.parent_session and (run.said is None or demands)
        return State.INVALID if is_broken else State.COMPLETED
    if not returned or not result:
        return State.SUBMITTED
    is_broken = strict and any(finding.severity is Severity.ERROR for finding in returned.findings)
    if is_broken or result.outcome is None or attempt.ended_without_result:
        return State.INVALID
    return State(result.outcome.value)


def answers_another_session(attempt: Attempt) -> bool:
    """Tell whether handoff and return have different session ids (subagent-return, validation rule 4)."""
    sessions = {one.session_id for one in (attempt.packet, attempt.result) if one}
    return len(sessions - {None}) > 1


def own_state(task: Task) -> State:
    """Return a task's state, regardless of the tasks below. A decision outranks the return. A request outranks both."""
    state, decision, result, run = task.latest.state, task.binding, task.result, task.run
    if decision:
        is_partial = result is not None and result.outcome is Outcome.PARTIAL
        state = State(SPECS[decision.action].state or ("partial" if is_partial else "completed"))
    if task.request:
        return state if state is State.CANCELED else State.BLOCKED
    if not run or not run.waiting or state is not State.BLOCKED:
        return state
    answered = (one.ended_at for one in task.requests if one.stage is not RequestStage.GONE)
    return State.WORKING if max(filter(None, answered), default=0.0) >= run.updated_at else state


def agent_of(task: Task) -> str | None:
    """Return the agent that a task's session, return, handoff or delegation path names. Return None if unknown."""
    run, packet, result = task.run, task.packet, task.result
    if not run and not result and not packet:
        return None if task.requests else task.task_id.rpartition("/")[2]
    by_return = (links.author_of(result) or result.mode) if result else None
    return (run.agent if run else None) or by_return or (packet.mode if packet else None)


def title(task: Task) -> str:
    """Return the short name (untrusted) of a task. It is never blank."""
    task_id, parent, run, packet, result = task.task_id, task.parent_id, task.run, task.packet, task.result
    name = basename(task_id) or task_id
    if parent and task_id.startswith(parent + "."):
        name = task_id[len(parent) + 1 :]
    elif task.id_in_program in (packet and packet.task_id, result and result.task_id):
        # A document states this id, so a slash in it does not separate a directory.
        name = task_id
    elif run:
        words = run.prompt.opening if run.prompt and task.is_session else ""
        if given := next((one for one in (run.title, words, run.agent) if one and one.strip()), None):
            return given
        name = task_id
    elif task.requests and not task.attempts:
        return f"{task.requests[0].source.partition('-')[0]} · {clean_name(task_id)}"
    elif not parent and task.agent:
        directory, separator, extra = task_id.partition("#")
        directory = dirname(directory) if basename(directory) == task.agent else directory
        name = (basename(directory) or name) + separator + extra
    return clean_name(name if name.strip() else task_id)


def reason_of(task: Task) -> str:
    """Describe why a task has its state."""
    words = _main_reason_of(task)
    if any(one.expired for one in task.latest.decisions[-1:]):
        words += "; what was decided about it has expired"
    if fault := task.handoff_fault:
        words += f"; its handoff breaks the contract: {fault}"
    # Interned to save memory: very many tasks share a few reasons.
    return intern(words + ("; its files were deleted since" if task.deleted and "deleted" not in words else ""))


def process_words(run: Run | None) -> str:
    """Describe whether the process of a run still runs."""
    if not run or run.process_gone is None:
        return "whether its process still runs is not known"
    return "its process is gone" if run.process_gone else _RUN_REASONS[RunState.WORKING]


def dispute_words(task: Task) -> str | None:
    """Describe which two returns of the latest attempt contradict each other. Return None if no returns do."""
    attempt, result = task.latest, task.result
    if not attempt.rival or not attempt.returned or not result:
        return None
    rival = attempt.rival.document
    there = f"{attempt.rival.path} {rival.reported_state if isinstance(rival, Return) else None}"
    return f"two returns speak of it and disagree: {attempt.returned.path} says {result.reported_state}, {there}"


def _main_reason_of(task: Task) -> str:
    attempt, result, run, request = task.latest, task.result, task.run, task.request
    if task.state is State.UNKNOWN:
        return "its host cannot be reached"
    if task.inferred:
        return "no file speaks of it: inferred from a delegation path, its state is that of the tasks below"
    if task.state is State.CANCELED and task.own_state is not State.CANCELED:
        return "it was taken back before it returned: its files were deleted"
    if task.ended_with and task.own_state is State.CANCELED:
        return f"{task.ended_with} was aborted, and with it what was open below"
    if request and task.own_state is State.BLOCKED:
        if not request.waits_for_operator:
            return "its program has not got your answer yet"
        where = "" if request.actions else ", which is answered in its own session"
        return f"its program {_REQUEST_WORDS[request.kind]}{where}"
    if decision := task.binding:
        receipt = decision.receipt
        stage = "carried out" if receipt.stage is Stage.ACTED else receipt.stage
        decided = f"decided: {decision.words}" if decision.by_other else SPECS[decision.action].decided
        return f"{decided}; the decision is {stage}{SAYS_SO if receipt.claimed else ''}"
    if run and (not result or run.reason or run.waiting):
        return _reason_of_run(task, run)
    if not result:
        if task.state is State.WORKING:
            return "its checklist has moved" if is_begun(task.todos) else "it has handed work on"
        return "handed off; no sign of life yet"
    word = result.reported_state
    if task.state is State.INVALID and (words := dispute_words(task)):
        return words
    if attempt.ended_without_result:
        return f"it ended without a result: its return still says {word}"
    if task.state is State.INVALID:
        errors = sum(placed.severity is Severity.ERROR for placed in task.findings)
        said = f"it says {word}" if word else "it states no status"
        return f"the return breaks its contract ({errors} error{'s' * (errors != 1)}), so it counts as failed; {said}"
    return f"the return says {word}" if word else "the return states no status"


def _reason_of_run(task: Task, run: Run) -> str:
    if task.waits_for_background:
        return "the session waits for its background work"
    if run.waiting and task.own_state is State.BLOCKED:
        return "it waits for an answer in its own session"
    if run.state is RunState.WORKING and run.process_gone is not False:
        heard = f"it worked when it was last heard of; {process_words(run)}"
        return f"{heard}; {run.reason}" if run.reason else heard
    if run.reason:
        return run.reason
    if run.state is RunState.ENDED and task.is_session:
        return "the session is idle"
    return "it ended without a word" if run.state is RunState.ENDED and not run.said else _RUN_REASONS[run.state]


# The state, with regard to the tasks below


# If nothing is known about its process, a session is idle (the operator's turn) for so many seconds.
IDLE = 3_600.0

# The tools (in lower case) with which an agent hands work on. Their calls end when the work is done.
_HAND_ON = frozenset({"task", "agent", "spawn_agent", "wait", "wait_agent", "new_task", "invoke_agent"})


def state_with_below(task: Task) -> State:
    """Return the state of a task, with regard to the tasks below. A task that has handed work on is working."""
    if task.inferred:
        states = (one.state for one in task.below.counts) if task.below else ()
        return max(states, key=lambda state: state.urgency, default=State.SUBMITTED)
    if task.deleted and task.own_state in (State.SUBMITTED, State.WORKING) and not task.open_below:
        # The agent that handed out the task has deleted its files before anybody began.
        return State.CANCELED
    if task.below and (task.own_state is State.SUBMITTED or task.waits_for_background):
        return State.WORKING
    return task.own_state


def is_process_gone(task: Task) -> bool:
    """Tell whether a task is working although its process is gone."""
    run = task.run
    if not run or not run.process_gone or task.own_state is not State.WORKING:
        return False
    # If its files changed over a minute after its session last showed life, somebody still works on it.
    return task.updated_at <= run.updated_at + 60.0


def silence_begins_at(task: Task, seconds: float) -> float:
    """Return when a working task will have been silent for `seconds`. Return infinity if it waits or does not work.
    Return minus infinity if its process is gone."""
    if task.state is not State.WORKING:
        return math.inf
    if task.run and task.run.process_gone:
        return -math.inf
    waits = task.below and any(one.state.is_open and one.state is not State.WORKING for one in task.below.counts)
    return math.inf if waits or task.alive_at is None else task.alive_at + seconds


def only_waits_for_others(doing: Activity | None) -> bool:
    """Tell whether an agent does nothing but wait for agents to which it has handed work."""
    return not doing or (doing.kind is ActivityKind.TOOL and not doing.over and doing.what.casefold() in _HAND_ON)


def shown_state_of(task: Task, now: float, stale_after: float) -> Shown:
    """Return the state that people see. It depends on the task's state, claims and process, and on the tasks below."""
    state, counts = task.state, task.below.counts if task.below else ()
    if task.inferred and state is not State.UNKNOWN:
        return max((one.shown for one in counts), key=lambda one: one.urgency, default=Shown(state))
    if task.contradicted and not task.binding:
        return Shown.FALSE
    ended_turn = task.is_session and task.own_state is State.COMPLETED and state is not State.UNKNOWN
    if not ended_turn and state not in (State.SUBMITTED, State.WORKING):
        return Shown(state)
    if task.gone:
        return Shown.GONE
    if any(one.shown is Shown.WORKING for one in counts):
        return Shown.WORKING
    awaited = any((one.shown.is_open and not one.past) or (one.asks and not ended_turn) for one in counts)
    if awaited and not _works_itself(task, now - stale_after):
        return Shown.WAITING
    if ended_turn:
        return Shown.IDLE if now < idle_until(task) else Shown.COMPLETED
    return Shown.SUBMITTED if state is State.SUBMITTED else Shown.SILENT if task.stale else Shown.WORKING


def _works_itself(task: Task, since: float) -> bool:
    """Tell whether the agent of a task has itself worked since a time. Work of the tasks below does not count."""
    if task.own_state is not State.WORKING or task.updated_at < since:
        return False
    if task.run:
        return not only_waits_for_others(task.last_doing)
    return task.updated_at > (task.below.active_at if task.below else 0.0)


def idle_until(task: Task) -> float:
    """Return the time (epoch seconds) until which an idle session waits for the operator."""
    run = task.run
    if not run or run.process_gone or run.one_shot:
        return -math.inf
    return math.inf if run.process_gone is False else (run.ended_at or run.updated_at) + IDLE


# Since when a task is in its state


def since_of(task: Task, children: Sequence[Task]) -> float | None:
    """Return when a task reached its shown state (epoch seconds). Return None if unknown."""
    since = task.lost_since if task.shown is Shown.UNKNOWN else _find_since(task, children)
    return task.alive_at if since is None else since


def _find_since(task: Task, children: Sequence[Task]) -> float | None:
    shown, latest, run = task.shown, task.latest, task.run
    if task.inferred:
        # If the children work or are in trouble, take the earliest of their times. Otherwise take the latest.
        pick = min if shown.urgency > Shown.FALSE.urgency else max
        return pick(_drop_unknown(one.since for one in children if one.shown is shown), default=None)
    if (decided := decided_at(task)) is not None:
        return decided
    match shown:
        case Shown.CANCELED if task.deleted and task.own_state is not State.CANCELED:
            return task.deleted_at
        case Shown.SUBMITTED:
            return latest.started_at
        case Shown.WORKING:
            return _works_since(task, children)
        case Shown.WAITING:
            # It has waited since the last agent stopped, but not before its first child was handed out.
            own = task.updated_at if not run else task.last_doing.at if task.last_doing else None
            given = (one.attempts[0].started_at for one in children if one.shown.is_open and one.attempts)
            first = min(_drop_unknown(given), default=None)
            return max(_drop_unknown([first, own, task.ended_at, *map(_stopped_at, children)]), default=None)
        case Shown.GONE:
            return max([task.updated_at, *_drop_unknown(one.since for one in children if one.shown is shown)])
        case Shown.SILENT:
            return None
        case Shown.BLOCKED if task.request:
            return min(one.asked_at for one in task.requests if one.is_open)
        case Shown.INVALID if latest.rival:
            return max(latest.rival.at, task.ended_at or 0.0)
    ended = task.ended_at if task.ended_at is not None or not run else run.updated_at
    if shown in (Shown.FALSE, Shown.COMPLETED, Shown.PARTIAL):
        # A claim may turn false, or true again, long after the return.
        return max(_drop_unknown([ended, task.verdict_at]), default=None)
    return ended


def ended_at(attempt: Attempt) -> float | None:
    """Return when an attempt ended (epoch seconds): with its return, its run or a decision. Return None if unknown."""
    returned, run, decision = attempt.returned, attempt.run, attempt.binding
    if attempt.state not in (State.SUBMITTED, State.WORKING):
        if returned:
            return returned.at
        if run and run.ended_at is not None:
            return run.ended_at
    return decision.at if decision and decision.action in ENDING else None


def _stopped_at(task: Task) -> float | None:
    if task.shown is not Shown.SUBMITTED:
        return task.ended_at or task.since
    return ended_at(task.attempts[-2]) if len(task.attempts) > 1 else None


def _works_since(task: Task, children: Sequence[Task]) -> float | None:
    """Return when the current work began, or when it went on after an answer."""
    run, latest = task.run, task.latest
    began = latest.began_at
    if run and task.is_session and run.rounds:
        began = run.rounds[-1].began_at
    own = max(_drop_unknown([began, *(one.ended_at for one in task.requests)]), default=None)
    working = (one for one in children if one.shown is Shown.WORKING and one.since)
    first = min(working, key=lambda one: one.since or 0.0, default=None)
    # A child that works in its first attempt, without a break so far, is part of its parent's work.
    is_part = first and first.attempt == 1 and first.since == first.latest.began_at
    if not first or (task.own_state is State.WORKING and (is_part or not only_waits_for_others(task.last_doing))):
        return own
    return first.since


def _drop_unknown(times: Iterable[float | None]) -> list[float]:
    return [one for one in times if one is not None]


def decided_at(task: Task) -> float | None:
    """Return when a decision gave a task its present state. Return None if no decision did."""
    decision = task.binding
    state = SPECS[decision.action].state if decision else None
    # An acceptance keeps the state that the return gives. An open request outranks the acceptance.
    return decision.at if decision and (state == task.own_state or not (state or task.request)) else None


# Questions to the operator


_ASKING_STATES = (Shown.BLOCKED, Shown.GONE, Shown.FALSE, Shown.FAILED, Shown.INVALID)  # by urgency


def queue_rank(task: Task) -> tuple[float, ...]:
    """Return the sort key of a task that needs the operator. Open requests come first, then tasks by their state. Tasks
    of unreachable hosts come last."""
    request, is_lost, kinds = task.request, task.lost_since is not None, (*_ASKING_STATES, task.shown)
    if request and request.waits_for_operator and not is_lost:
        return 0, *request.urgency
    asked_at = task.ended_at or task.alive_at or 0.0
    return 1 + is_lost, kinds.index(task.shown), -task.open_below, -asked_at, task.first_seq


def question_of(task: Task, low_confidence: float) -> str | None:
    """Return the one question that the operator has to answer for a task, or None."""
    result, latest, state = task.result, task.latest, task.own_state
    if (request := task.request) and state is State.BLOCKED:
        waiting = sum(one.waits_for_operator for one in task.requests)
        more = f" (+{waiting - 1:,} more)" if waiting > 1 else ""
        return f"{request_words(request)}{more}" if waiting else None
    if task.need_in_program:
        return f"it waits in its own session: {task.need_in_program}"
    if task.inferred or task.is_session or task.binding or task.ended_with:
        return None
    if result and state is State.BLOCKED:
        blocker = next(iter(result.blockers), None) or result.error_message
        if not blocker:
            return "blocked, and does not say by what: answer or abort"
        return f"answer: {blocker}{_more_questions(len(result.blockers) - 1)}"
    was_accepted = latest.superseded and latest.superseded[-1].action is Action.ACCEPT
    if result and was_accepted and state in (State.COMPLETED, State.PARTIAL, State.INVALID):
        return "the return changed since it was accepted: look at it again, then accept or retry"
    if state is State.INVALID:
        child = task.agent or "the child"
        if words := dispute_words(task):
            return f"{words}; look at both, then retry, or accept the first as it is"
        if not latest.returned or latest.ended_without_result:
            return f"{child} ended without a {'return' if not result else 'result'}; retry, or accept it as it is"
        errors = [one for one in latest.returned.findings if one.severity is Severity.ERROR]
        faults = f": {errors[0].message.partition('; ')[0]}" if errors else ""
        more = f" (+{len(errors) - 1} more)" if len(errors) > 1 else ""
        return f"its return breaks the contract{faults}{more}: retry, or accept it as it is"
    if state is State.FAILED:
        return _question_after_failure(task)
    if task.contradicted:
        return _question_about_claims(task)
    if latest.unasked and state is not State.CANCELED:
        end = "let it go on, or abort" if state.is_open else "accept, or retry"
        return f"nobody handed out attempt {task.attempt}, and the one before failed: {end}"
    if not result:
        return None
    if result.review_reason and state in (State.PARTIAL, State.COMPLETED):
        return f"review: {result.review_reason}"
    if result.confidence is not None and result.confidence < low_confidence and state is State.COMPLETED:
        return f"review: the child is not sure of its result (confidence {result.confidence:g})"
    return None


def request_words(request: Request) -> str:
    """Return the question of a request in one line, with the exact command, patch or path. Cuts are marked."""
    query = request.queries[0] if request.queries else None
    if request.kind is RequestKind.PERMISSION or not query:
        # Put further arguments before the command, because a long command is cut.
        beside = f" + {_shorten(', '.join(one.name for one in request.beside), 60)}" if request.beside else ""
        lead = "allow?" if request.kind is RequestKind.PERMISSION else "fill in?"
        words = f"{lead} {_shorten(request.tool)}{beside}  {_shorten(request.shown)}".rstrip()
    else:
        words = f"answer: {_shorten(query.question)}{_more_questions(len(request.queries) - 1)}"
    return words if request.actions else f"it waits in its own session: {words}"


def _more_questions(questions: int) -> str:
    return f" (+{questions:,} more question{'s' if questions > 1 else ''})" if questions > 0 else ""


def _shorten(text: str, longest: int = 300) -> str:
    more = len(text) - longest
    return clean_call(text[:longest]) + (omission_mark(more, "character") if more > 0 else "")


def is_past(task: Task, history_before: float) -> bool:
    """Tell whether a task is past: no open request, and no sign of life or open decision since `history_before`."""
    alive_at = task.alive_at if task.inferred else task.updated_at
    if not alive_at or alive_at >= history_before or (task.run and task.run.process_gone is False):
        return False
    if any(one.is_open for one in task.requests):
        return False
    decided = (one for attempt in task.attempts for one in attempt.decisions)
    return all(one.at < history_before for one in decided if one.action not in ENDING)


def _question_about_claims(task: Task) -> str:
    false = [claim for claim in merge_claims(task.claims) if claim.verdict is Verdict.CONTRADICTED]
    # Prefer a false claim to an unmet demand of the handoff, because the child itself made the claim.
    first = min(false, key=lambda claim: claim.kind in _DEMANDS)
    lead = "a demand of the handoff is not met" if first.kind in _DEMANDS else "a claim is false"
    more = f", and {len(false) - 1} more" if len(false) > 1 else ""
    is_broken = bool(links.missing_artifacts(task))
    advice = (
        "so its return breaks the contract: retry, or accept it as it is"
        if is_broken
        else "look at it, then accept, retry or answer"
    )
    return f"{lead}: {first.path} ({first.detail}){more}; {advice}"


def _question_after_failure(task: Task) -> str:
    retry = task.retry
    if not retry.remaining:
        more = "; a material mitigation earns one more" if retries_if_mitigated(task).remaining else ""
        return f"no retry left ({retry.max_retries} used): escalate to another mode, or abort{more}"
    if is_restored(task):
        question = f"retry? the {FITTER} has restored the line;"
    elif is_line_fault(task) and not retry.restored:
        return f"a line fault: escalate to the {FITTER}?"
    elif has_failed_alike(task):
        return "escalate? it failed twice in the same way"
    elif retry.recommended is False:
        return "escalate or abort? the child advises against a retry"
    else:
        question = "retry? the child recommends it;" if retry.recommended else "retry, escalate or abort?"
    return f"{question} {retries_left_words(retry)}"


def gone_question(task: Task, when: str = "") -> str:
    """Return the question of a task whose process is gone. `when` is a phrase such as "12m ago"."""
    said = f"process gone {when}".rstrip()
    if task.is_session:
        count = task.open_below
        below = f", and {count} task{'' if count == 1 else 's'} below had not ended" if count else ""
        return f"{said}{below}: resume the session in its own program, or abort?"
    return f"{said}: {'retry' if task.retry.remaining else 'escalate'} or abort?"


def asks_about_process(task: Task, parent: Task | None) -> bool:
    """Tell whether the operator must be asked about a process that is gone. Only the topmost task of a process asks."""
    return task.gone and not task.past and not (parent is not None and parent.gone)


def mark_of(task: Task) -> str:
    """Return a short text that changes when the attempt, the state or the question of a task changes."""
    # Leave out numbers and the names of claims, so that the mark does not change with each written file.
    question = "a claim is false" if task.contradicted else re.sub(r"\d+(?: tasks?\b)?", "#", task.question or "")
    latest, run = task.latest, task.run
    files = (one and one.digest for one in (latest.handoff, latest.returned, latest.rival))
    facts: list[object] = [question, *files]
    if run:
        # A run may wait twice in the same way, or lose its process twice. Only the time tells the two cases apart.
        is_at_rest = run.waiting or task.gone
        facts += [run.session_id, run.state, run.ended_at, run.updated_at if is_at_rest else None]
    for decision in latest.decisions[-1:]:
        facts += [decision.decision_id, decision.at, decision.expired, decision.over]
    # When one request has been answered, the mark changes, so that the other requests are shown as new.
    facts += [one.request_id for one in task.requests if one.is_open]
    digest = blake2b(repr(facts).encode(errors="surrogatepass"), digest_size=6).hexdigest()
    return f"{task.attempt} {task.own_state} {digest}"


def changed_at(task: Task) -> float:
    """Return when a task last showed life, ended, or got another verdict (epoch seconds)."""
    return max(task.updated_at, task.ended_at or 0.0, task.verdict_at or 0.0)


def update_attention(task: Task, aside: Aside, looked_at: float, now: float) -> None:
    """Set whether a task is acknowledged, snoozed and seen. All three end when the mark of the task changes."""
    put, seen = aside
    mark = None if aside == Aside() else mark_of(task)
    is_same = put is not None and put.mark == mark
    task.acknowledged, task.snoozed_until = False, None
    if put and is_same and put.ends_at > now and task.question:
        task.acknowledged = not put.snoozed
        if put.snoozed:
            task.snoozed_until = put.ends_at
            task.due = min(task.due, put.ends_at)
    is_news = (task.question is not None or not task.state.is_open) and not (task.inferred or task.past)
    is_decided = bool(task.binding or task.ended_with) and not task.request
    is_old = changed_at(task) <= looked_at if seen is None else seen == mark
    task.seen = not is_news or is_decided or is_old or is_same


# Retries


def retries_of(task: Task, *, max_retries: int, restored: Collection[float]) -> Retry:
    """Return a task's retries under the policy. `restored` has the times when a fitter repaired the production line."""
    allowed = 1 + _count_begun_retries(task, max(restored)) if restored else max_retries
    recommended, hint = (task.result.retry_recommended, task.result.retry_hint) if task.result else (None, None)
    return Retry(allowed, max(allowed - _count_used_retries(task), 0), recommended, hint, bool(restored))


def retries_left_words(retry: Retry) -> str:
    """Return a phrase with the number of remaining retries: `1 retry left` or `1 of 2 retries left`."""
    if retry.remaining == retry.max_retries:
        return f"{retry.remaining} {'retry' if retry.remaining == 1 else 'retries'} left"
    return f"{retry.remaining} of {retry.max_retries} retries left"


def is_retry(action: Action, attempt: Attempt) -> bool:
    """Tell whether an action is a retry. To answer a blocked child, or to resume a partial result, is no retry."""
    is_answer = action is Action.RESPOND and attempt.state is State.BLOCKED
    return action in RESUMING and not (is_answer or _is_to_be_resumed(attempt))


def _is_to_be_resumed(attempt: Attempt) -> bool:
    return attempt.state is State.PARTIAL and attempt.result is not None and attempt.result.retry_recommended is True


def calls_fitter(action: Action, mode: str | None) -> bool:
    """Tell whether a decision hands a task to the fitter, the mode that repairs the line."""
    return action is Action.ESCALATE and mode == FITTER


def is_restored(task: Task) -> bool:
    """Tell whether a fitter was called for the latest attempt, and has repaired the line."""
    return task.decision is not None and task.decision.restored


def retries_if_mitigated(task: Task) -> Retry:
    """Return the retries that a task would have after a material mitigation."""
    allowed = max(task.retry.max_retries, min(task.retry.max_retries + 1, MITIGATED_MAX_RETRIES))
    return task.retry._replace(max_retries=allowed, remaining=max(allowed - _count_used_retries(task), 0))


def is_line_fault(task: Task) -> bool:
    """Tell whether the production line (tools, checks, environment) failed, not the work. Then a fitter is needed."""
    code = task.result.error_code if task.result else None
    return code is not None and re.search(r"(?i)line[\s_-]*fault", code) is not None


def has_failed_alike(task: Task) -> bool:
    """Tell whether the last two attempts failed in the same way. Then a retry would probably fail, too."""
    failed = [attempt.result for attempt in task.attempts[-2:] if attempt.state in HAVE_FAILED and attempt.result]
    reasons = {one.error_code or one.error_message or one.summary for one in failed}
    return len(failed) == 2 and len(reasons) == 1 and reasons != {None}


def _count_used_retries(task: Task) -> int:
    # A retry counts even if the return was rewritten after the decision, because the ledger has the decision.
    rewritten = sum(one.action is Action.RETRY and not one.expired for one in task.latest.superseded)
    decided = task.binding is not None and is_retry(task.binding.action, task.latest)
    return _count_begun_retries(task) + decided + rewritten


def _count_begun_retries(task: Task, until: float = math.inf) -> int:
    # If the first attempt has the number 3, two earlier attempts were overwritten before agentwatch looked.
    last = task.attempts[0].number - 1 if task.attempts else 0
    for one in task.attempts:
        seen_at = one.returned.at if one.returned else 0.0
        if (seen_at if one.started_at is None else one.started_at) <= until:
            last = one.number
    # An attempt after a question is no retry, unless the operator decided to retry.
    others = sum(
        _is_to_be_resumed(one)
        or (one.state is State.BLOCKED and not (one.decision and one.decision.action is Action.RETRY))
        for one in task.attempts
        if one.number < last
    )
    return max(last - 1 - others, 0)


def find_overrun(task: Task) -> list[Finding]:
    """Return a finding if a task was retried more often than the policy allows."""
    attempts, allowed = task.attempts, task.retry.max_retries
    retries = sum(before.state in HAVE_FAILED and not before.decisions for before in attempts[:-1])
    handoffs = {attempt.handoff.digest if attempt.handoff else None for attempt in attempts}
    if len(handoffs) > 1 or None in handoffs:
        allowed = max(allowed, MITIGATED_MAX_RETRIES)
    if retries <= allowed:
        return []
    paths = (one.path for attempt in reversed(attempts) for one in (attempt.returned, attempt.handoff) if one)
    subject = f"{task.task_id} was retried {retries} times, and the policy allows {allowed},"
    return [links.make_finding(links.OVERRUN, subject, next(paths, ""))]
