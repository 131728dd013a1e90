"""Words about decisions that were made, and about those that can be made."""

from textual.content import Content

from agentwatch.delegation.decision import OF_ATTEMPTS, SAYS_SO, SPECS, Action, Decision, Stage
from agentwatch.delegation.standing import FITTER, calls_fitter
from agentwatch.delegation.task import Task
from agentwatch.delegation.tree import Tree
from agentwatch.text import clean_row
from agentwatch.view.words import ago, duration, is_on_its_way, is_unread, standing_words, taken_words, where

ACTIONS = {f"decide.{action}": action for action in OF_ATTEMPTS}  # the actions of the deciding commands

_GLYPHS = {Stage.RECORDED: "∙", Stage.DELIVERED: "→", Stage.READ: "◉", Stage.ACTED: "✓"}


def can_answer(task: Task) -> bool:
    """Whether any request of the task can be answered here and now."""
    return any(one.can_answer for one in task.requests)


def to_answer(tree: Tree, task_id: str | None, now: float) -> str | None:
    """Return the id of the task to answer: the selected one if it asks something that can be answered here, else the
    one with the first request. None if there is none."""
    task = tree.tasks.get(task_id or "")
    if task and why_not(task, Action.RESPOND, now) is None:
        return task_id
    return next((one for one in tree.queue if can_answer(tree.tasks[one])), None)


def why_not(task: Task, action: Action, now: float) -> str | None:
    """Return why a task does not allow an action with any parameters, as a lower-case sentence; None if it does."""
    if task.workspace:
        return "this row is a workspace; go to one of its tasks"
    if action is Action.RESPOND and (request := task.request) is not None:
        if can_answer(task):
            return None
        return where(task) or f"it is answered already: {standing_words(request, now)}"
    if (decision := task.binding) is not None:
        said = f"you said {decision.action} {ago(decision.at, now)}"
        return f"already decided: {said}; you can decide about the next attempt"
    from agentwatch.decisions import policy, record  # not needed for the first frame

    return policy.why_not(task, action, record.Mitigation.CHANGED_INPUTS)


def short(decision: Decision, now: float) -> str:
    """Return short words on how far a decision has got, for a row of the tree."""
    if decision.waits:
        return "! undelivered"
    age = duration(now - decision.receipt.at)
    if is_unread(decision, now):
        return f"! unread {age}"
    stage = decision.receipt.stage
    said = "says " if decision.receipt.claimed else ""
    return f"{_GLYPHS[stage]} {said}{stage}{f' {age}' if stage is Stage.READ else ''}"


def receipt_line(decision: Decision, now: float) -> Content:
    """Return a decision and its steps so far, each with its age unless that is the age of the step before."""
    spec = SPECS[decision.action]
    mode = f" to {clean_row(decision.mode, 40)}" if decision.mode else ""
    words, age = [Content.styled(f"{clean_row(decision.words, 100)}{mode}", "bold")], ""
    for receipt in decision.receipts:
        by = f" by {clean_row(receipt.by, 40)}" if receipt.stage is Stage.READ and receipt.by else ""
        before, age = age, ago(receipt.at, now)
        claimed = SAYS_SO if receipt.claimed else ""
        words.append(Content(f"{receipt.stage}{by}{'' if age == before else f' {age}'}{claimed}"))
    if decision.receipt.stage is Stage.READ and is_on_its_way(decision) and not spec.ends:
        to_fitter = calls_fitter(decision.action, decision.mode)
        awaited = f"the {FITTER}" if to_fitter else f"attempt {decision.attempt + 1}"
        words.append(Content(taken_words(decision) or f"{awaited} not seen yet"))
    return Content(" · ").join(words)


def warning(decision: Decision, now: float) -> str | None:
    """Return a sentence on what the operator can do about a decision that does not proceed; None if all is well."""
    if decision.waits:
        return f"{clean_row(decision.waits, 300)}"
    if is_unread(decision, now):
        age = duration(now - decision.receipt.at)
        return (
            f"not read for {age}: is an agent waiting for it, with `agentwatch wait`? `agentwatch init` sets that up."
            " An agent can also read .agentwatch/decisions/"
        )
    return None
