"""PostToolUse of Task and Agent: the parent is told what the operator decided about its child, or that it must wait."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from agentwatch.agents.hook import words
from agentwatch.agents.hook.child import child_that_returned, task_of_files
from agentwatch.agents.hook.desk import READER, Desk
from agentwatch.agents.hook.journal import TOLD, Entry, Journal
from agentwatch.config import Settings
from agentwatch.decisions.reader import Verified
from agentwatch.delegation.decision import Stage
from agentwatch.sources.claude_code.hooks import HookCall

if TYPE_CHECKING:
    from agentwatch.deciding.loading import Load


def told(call: HookCall, workspace: Path, settings: Settings, load: Load) -> words.Answer:
    """The answer to a parent whose child has just come back. Does not wait."""
    child = child_that_returned(call)
    if child is None:
        return {}
    if child.returned is None and child.packet is not None:
        child = child.with_file(task_of_files(child, workspace, settings, load))
    broken = child.breaks_its_contract(strict=settings.strict, demands=settings.require_contract)
    if not broken and not child.reports_failure:
        return {}
    desk = Desk(workspace, settings)
    found = desk.find(child)
    returned = child.returned
    state = "invalid" if broken or returned is None or returned.outcome is None else returned.outcome.value
    decision_id = None
    if isinstance(found, Verified):
        decision_id = found.record.decision_id
        desk.mark(decision_id, Stage.READ, f"{READER}, session {child.session_id}"[:200])
        said = words.decided(found.record, desk.hand_out(found.record))
        why = f"the operator decided to {found.record.action.value}"
    else:
        said, why = words.undecided(child, state), f"it is {state}, and nobody has decided"
    Journal(desk.state).add(
        Entry(call.event, child.session_id, child.agent_id, child.task_id, TOLD, state, why, decision_id)
    )
    return words.context(call.event, said)
