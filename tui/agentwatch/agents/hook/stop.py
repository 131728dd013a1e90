"""SubagentStop: a child may stop that did its work; one that failed, or breaks its contract, is held."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from agentwatch.agents.hook.child import child_that_stops, is_bad, with_its_file
from agentwatch.agents.hook.journal import LET_GO, Entry, Journal
from agentwatch.config import Settings
from agentwatch.place import state_directory
from agentwatch.sources.claude_code.hooks import HookCall

if TYPE_CHECKING:
    from agentwatch.agents.hook.words import Answer
    from agentwatch.composition import Load


def stopped(call: HookCall, workspace: Path, settings: Settings, load: Load) -> Answer:
    """The answer to a child that is about to stop. Blocks for at most `hook_wait` seconds and a few more."""
    journal = Journal(state_directory(workspace))
    child = with_its_file(child_that_stops(call), workspace, settings, load)
    row = journal.row(child.session_id, child.agent_id) if call.stop_hook_active else []
    if row or is_bad(child.state(settings)):
        from agentwatch.agents.hook.held import held  # half of what a hook would load

        return held(call, child, row, workspace, settings)
    journal.add(Entry(call.event, child.session_id, child.agent_id, child.task_id, LET_GO, "", ""))
    return {}
