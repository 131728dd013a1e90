"""One call of a hook: payload from standard input, answer to standard output, an exit code that never blocks.

A child that did its work may stop, and its parent hears nothing. One that failed or breaks its contract is for `held`.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from agentwatch.arguments import workspace_at
from agentwatch.config import Settings
from agentwatch.config import load as load_settings
from agentwatch.errors import AgentwatchError
from agentwatch.sources.claude_code.hooks import ASKS, HookCall, read_hook_call
from agentwatch.state import is_shown, state_directory
from agentwatch.text import clean, complain, say

if TYPE_CHECKING:
    from agentwatch.agents.hook.held import HookAnswer
    from agentwatch.composition import Load

FAILED: Final = 1
"""2 would block the agent, with our complaint as the reason."""

_PROJECT: Final = "CLAUDE_PROJECT_DIR"
_LARGEST: Final = 16 * 1024 * 1024
_NOTHING_DONE: Final = "nothing was held and nothing approved"


def run(path: str | None, load: Load) -> int:
    """Answer the call on standard input. Returns 0, or FAILED where it could not be understood.

    The workspace is `path`, else where the session was begun.
    """
    call = read_hook_call(sys.stdin.buffer.read(_LARGEST + 1))
    if call is None:
        complain(f"agentwatch hook: no payload of a hook on standard input; {_NOTHING_DONE}")
        return FAILED
    try:
        answer = _answer(call, path, load)
    except AgentwatchError as error:
        complain(clean(f"agentwatch hook: {error}; {_NOTHING_DONE}"))
        return 0 if call.event == ASKS else FAILED
    if answer is not None:
        # ASCII only: foreign characters reach the program as escapes.
        say(json.dumps(answer))
    return 0


def _answer(call: HookCall, path: str | None, load: Load) -> HookAnswer | None:
    """The output at the end; None where there is none, or it is out already. Each event loads what it needs."""
    if call.event not in (ASKS, "SubagentStop", "PostToolUse"):
        return {}
    workspace = workspace_at(path or os.environ.get(_PROJECT) or call.cwd or ".")
    if call.event != ASKS:
        return (answer_stop if call.event == "SubagentStop" else tell_parent)(call, workspace, load_settings(), load)
    if is_shown(state_directory(workspace)):
        from agentwatch.agents.hook.permission import ask

        ask(call, workspace, load_settings())
    return None


def answer_stop(call: HookCall, workspace: Path, settings: Settings, load: Load) -> HookAnswer:
    """SubagentStop: the answer to a child that is about to stop. Blocks for at most `hook_wait` seconds and a few."""
    from agentwatch.agents.hook.child import child_that_stops, is_bad
    from agentwatch.agents.hook.journal import LET_GO, Journal, JournalEntry

    journal = Journal(state_directory(workspace))
    child = child_that_stops(call).with_file(workspace, settings, load)
    row = journal.row(child.session_id, child.agent_id) if call.stop_hook_active else []
    if row or is_bad(child.state(settings)):
        from agentwatch.agents.hook.held import hold_child  # half of what a hook would load

        return hold_child(call, child, row, workspace, settings)
    journal.add(JournalEntry(call.event, child.session_id, child.agent_id, child.task_id, LET_GO, "", ""))
    return {}


def tell_parent(call: HookCall, workspace: Path, settings: Settings, load: Load) -> HookAnswer:
    """PostToolUse of Task and Agent: the answer to a parent whose child has just come back. Does not wait."""
    from agentwatch.agents.hook.child import child_that_returned, is_bad

    child = child_that_returned(call)
    child = child.with_file(workspace, settings, load) if child is not None else None
    if child is None or not is_bad(child.state(settings)):
        return {}
    from agentwatch.agents.hook.held import tell_of_child  # as above, and most children return well

    return tell_of_child(call, child, workspace, settings)
