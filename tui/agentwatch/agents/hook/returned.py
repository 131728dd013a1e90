"""A child that stops, and a parent whose child has come back: what is answered to each.

A child that did its work may stop, and its parent hears nothing. One that failed or breaks its contract is for `held`.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from agentwatch.agents.hook.child import child_that_returned, child_that_stops, is_bad, with_its_file
from agentwatch.agents.hook.journal import LET_GO, Journal, JournalEntry
from agentwatch.config import Settings
from agentwatch.sources.claude_code.hooks import HookCall
from agentwatch.sources.claude_code.transcript import DELEGATING
from agentwatch.state import state_directory

if TYPE_CHECKING:
    from agentwatch.agents.hook.words import HookAnswer
    from agentwatch.composition import Load


def stopped(call: HookCall, workspace: Path, settings: Settings, load: Load) -> HookAnswer:
    """SubagentStop: the answer to a child that is about to stop. Blocks for at most `hook_wait` seconds and a few."""
    journal = Journal(state_directory(workspace))
    child = with_its_file(child_that_stops(call), workspace, settings, load)
    row = journal.row(child.session_id, child.agent_id) if call.stop_hook_active else []
    if row or is_bad(child.state(settings)):
        from agentwatch.agents.hook.held import held  # half of what a hook would load

        return held(call, child, row, workspace, settings)
    journal.add(JournalEntry(call.event, child.session_id, child.agent_id, child.task_id, LET_GO, "", ""))
    return {}


def told(call: HookCall, workspace: Path, settings: Settings, load: Load) -> HookAnswer:
    """PostToolUse of Task and Agent: the answer to a parent whose child has just come back. Does not wait."""
    child = child_that_returned(call) if call.tool in DELEGATING else None
    child = with_its_file(child, workspace, settings, load) if child is not None else None
    if child is None or not is_bad(child.state(settings)):
        return {}
    from agentwatch.agents.hook.held import told_parent  # as above, and most children return well

    return told_parent(call, child, workspace, settings)
