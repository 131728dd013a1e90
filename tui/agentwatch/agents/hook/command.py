"""One call of a hook: payload from standard input, answer to standard output, an exit code that never blocks.

A child that did its work may stop, and its parent hears nothing. One that failed or breaks its contract is for `held`.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from agentwatch.agents.hook.child import child_that_returned, child_that_stops, is_bad, with_its_file
from agentwatch.agents.hook.journal import LET_GO, Journal, JournalEntry
from agentwatch.arguments import workspace_at
from agentwatch.config import Settings
from agentwatch.config import load as load_settings
from agentwatch.errors import AgentwatchError
from agentwatch.place import state_directory
from agentwatch.sources.claude_code.hooks import HookCall, read_hook_call
from agentwatch.sources.claude_code.transcript import DELEGATING
from agentwatch.text import clean, complain, say

if TYPE_CHECKING:
    from agentwatch.agents.hook.words import HookAnswer
    from agentwatch.composition import Load

FAILED: Final = 1
"""2 would block the agent, with our complaint as the reason."""

_PROJECT: Final = "CLAUDE_PROJECT_DIR"
_LARGEST: Final = 16 * 1024 * 1024


def run(path: str | None, load: Load) -> int:
    """Answer the call on standard input. Returns 0, or FAILED where it could not be understood.

    The workspace is `path`, else where the session was begun.
    """
    call = read_hook_call(sys.stdin.buffer.read(_LARGEST + 1))
    if call is None:
        complain("agentwatch hook: no payload of a hook on standard input; nothing was held and nothing approved")
        return FAILED
    hook = stopped if call.event == "SubagentStop" else told
    answer: HookAnswer = {}
    try:
        if hook is stopped or (call.event == "PostToolUse" and call.tool in DELEGATING):
            workspace = workspace_at(path or os.environ.get(_PROJECT) or call.cwd or ".")
            answer = hook(call, workspace, load_settings(), load)
    except AgentwatchError as error:
        complain(clean(f"agentwatch hook: {error}; nothing was held and nothing approved"))
        return FAILED
    # ASCII only: foreign characters reach the program as escapes.
    say(json.dumps(answer))
    return 0


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
    child = child_that_returned(call)
    child = with_its_file(child, workspace, settings, load) if child is not None else None
    if child is None or not is_bad(child.state(settings)):
        return {}
    from agentwatch.agents.hook.held import told_parent  # as above, and most children return well

    return told_parent(call, child, workspace, settings)
