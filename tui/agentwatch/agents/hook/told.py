"""PostToolUse of Task and Agent: the parent is told what the operator decided about its child, or that it must wait."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from agentwatch.agents.hook.child import Child, child_that_returned, is_bad, with_its_file
from agentwatch.config import Settings
from agentwatch.delegation.task import State
from agentwatch.sources.claude_code.hooks import HookCall

if TYPE_CHECKING:
    from agentwatch.agents.hook.words import Answer
    from agentwatch.composition import Load


def told(call: HookCall, workspace: Path, settings: Settings, load: Load) -> Answer:
    """The answer to a parent whose child has just come back. Does not wait."""
    child = child_that_returned(call)
    if child is None:
        return {}
    child = with_its_file(child, workspace, settings, load)
    state = child.state(settings)
    return _told(call, child, state, workspace, settings) if is_bad(state) else {}


def _told(call: HookCall, child: Child, state: State, workspace: Path, settings: Settings) -> Answer:
    # Half of what a hook would load, and most children return well.
    from agentwatch.agents.hook import words
    from agentwatch.agents.hook.inbox import READER, Inbox
    from agentwatch.agents.hook.journal import TOLD, Entry, Journal
    from agentwatch.decisions.reader import Verified

    desk = Inbox(workspace, settings)
    journal = Journal(desk.state)
    found = desk.find(child, journal.carried_out(child.session_id, child.agent_id))
    decision_id = None
    if isinstance(found, Verified):
        decision_id = found.record.decision_id
        desk.note_read(found, f"{READER}, session {child.session_id}"[:200])
        said = words.decided(found.record, desk.hand_out(found.record), workspace)
        why = f"the operator decided to {found.record.action.value}"
    else:
        said, why = words.undecided(child, state, workspace), f"it is {state}, and nobody has decided"
    journal.add(Entry(call.event, child.session_id, child.agent_id, child.task_id, TOLD, state, why, decision_id))
    return words.context(call.event, said)
