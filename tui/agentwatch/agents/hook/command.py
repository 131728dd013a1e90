"""One call of a hook: payload from standard input, answer to standard output, an exit code that never blocks.

Each call loads only what it needs: the operator sees what a program asks as soon as that is there.
"""

import json
import os
import sys
from typing import Any

from agentwatch.arguments import workspace_at
from agentwatch.config import load as load_settings
from agentwatch.errors import AgentwatchError
from agentwatch.sources.claude_code import ASKS, read_hook_call
from agentwatch.state import is_shown, state_directory
from agentwatch.text import complain, say

FAILED = 1  # 2 would block the agent, with our complaint as the reason

_PROJECT = "CLAUDE_PROJECT_DIR"
_LARGEST = 16 * 1024 * 1024
_NOTHING_DONE = "nothing was held and nothing approved"


def run(path: str | None) -> int:
    """Answer the call on standard input. Returns 0, or FAILED where it could not be understood.

    The workspace is `path`, else where the session was begun.
    """
    call = read_hook_call(sys.stdin.buffer.read(_LARGEST + 1))
    if not call:
        complain(f"agentwatch hook: no payload of a hook on standard input; {_NOTHING_DONE}")
        return FAILED
    answer: dict[str, Any] = {}
    try:
        if call.event in (ASKS, "SubagentStop", "PostToolUse"):
            workspace = workspace_at(path or os.environ.get(_PROJECT) or call.cwd or ".")
            if call.event == ASKS:
                if is_shown(state_directory(workspace)):
                    from agentwatch.agents.hook.requests import ask

                    ask(call, workspace, load_settings())
                return 0
            from agentwatch.agents.hook.child import answer_call

            answer = answer_call(call, workspace, load_settings())
    except AgentwatchError as error:
        complain(f"agentwatch hook: {error}; {_NOTHING_DONE}")
        return 0 if call.event == ASKS else FAILED
    # ASCII only: foreign characters reach the program as escapes.
    say(json.dumps(answer))
    return 0
