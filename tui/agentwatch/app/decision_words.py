"""Tells which decisions are possible now, and describes recorded decisions in words."""

from textual.content import Content

from agentwatch.delegation.decision import OF_ATTEMPTS, SAYS_SO, SPECS, Action, Decision, Stage
from agentwatch.delegation.standing import FITTER, calls_fitter
from agentwatch.delegation.task import Task
from agentwatch.delegation.tree import Tree
from agentwatch.text import clean_row
from agentwatch.view.words import ago, claimed_words, is_pending, is_unread, short_span, stage_words, where_to_answer

ACTIONS = {f"decide.{action}": action for action in OF_ATTEMPTS}  # the decisions about an attempt, by command id

_GLYPHS = {Stage.RECORDED: "∙", Stage.DELIVERED: "→", Stage.READ: "◉", Stage.ACTED: "✓"}


def can_answer(task: Task) -> bool:
    """Return whether the operator can answer any request of the task now, on this machine."""
    return any(one.is_answerable for one in task.requests)


def task_to_answer(tree: Tree, task_id: str | None, now: float) -> str | None:
    """Return the id of the task that the answer key opens. If the selected task cannot be answered, the key opens the
    first task with a request that can be answered. Return None if no task can be answered."""
    task = tree.tasks.get(task_id or "")
    if task and why_not(task, Action.RESPOND, now) is None:
        return task_id
    return next((one for one in tree.queue if can_answer(tree.tasks[one])), None)


def why_not(task: Task, action: Action, now: float) -> str | None:
    """Return why an action is not possible for a task, in lower case. Return None if the action is possible."""
    if task.workspace:
        return "this row is a workspace; go to one of its tasks"
    if action is Action.RESPOND and (request := task.request) is not None:
        if can_answer(task):
            return None
        return where_to_answer(task) or f"it is answered already: {stage_words(request, now)}"
    if (decision := task.binding) is not None:
        said = f"you said {decision.action} {ago(decision.at, now)}"
        return f"already decided: {said}; you can decide about the next attempt"
    from agentwatch.decisions import policy, record  # not needed for the first frame

    return policy.why_impossible(task, action, record.Mitigation.CHANGED_INPUTS)


def short_progress(decision: Decision, now: float) -> str:
    """Return a few words on how far a decision has got, for a row of the tree."""
    if decision.waits:
        return "! undelivered"
    age = short_span(now - decision.receipt.at)
    if is_unread(decision, now):
        return f"! unread {age}"
    stage = decision.receipt.stage
    said = "says " if decision.receipt.claimed else ""
    return f"{_GLYPHS[stage]} {said}{stage}{f' {age}' if stage is Stage.READ else ''}"


def receipt_line(decision: Decision, now: float) -> Content:
    """Return a line with a decision and the age of each receipt. An age that equals the age before it is left out."""
    spec = SPECS[decision.action]
    mode = f" to {clean_row(decision.mode, 40)}" if decision.mode else ""
    words, age = [Content.styled(f"{clean_row(decision.words, 100)}{mode}", "bold")], ""
    for receipt in decision.receipts:
        by = f" by {clean_row(receipt.by, 40)}" if receipt.stage is Stage.READ and receipt.by else ""
        before, age = age, ago(receipt.at, now)
        claimed = SAYS_SO if receipt.claimed else ""
        words.append(Content(f"{receipt.stage}{by}{'' if age == before else f' {age}'}{claimed}"))
    if decision.receipt.stage is Stage.READ and is_pending(decision) and not spec.ends:
        to_fitter = calls_fitter(decision.action, decision.mode)
        awaited = f"the {FITTER}" if to_fitter else f"attempt {decision.attempt + 1}"
        words.append(Content(claimed_words(decision) or f"{awaited} not seen yet"))
    return Content(" · ").join(words)


def decision_warning(decision: Decision, now: float) -> str | None:
    """Return a warning if a decision does not reach its agent, or None if all is well."""
    if decision.waits:
        return f"{clean_row(decision.waits, 300)}"
    if is_unread(decision, now):
        age = short_span(now - decision.receipt.at)
        return (
            f"not read for {age}: is an agent waiting for it, with `agentwatch wait`? `agentwatch init` sets that up."
            " An agent can also read .agentwatch/decisions/"
        )
    return None
