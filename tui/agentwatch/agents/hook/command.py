"""One call of a hook: payload from standard input, answer to standard output, an exit code that never blocks."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from agentwatch.arguments import workspace_at
from agentwatch.config import load as load_settings
from agentwatch.errors import AgentwatchError
from agentwatch.sources.claude_code.hooks import ASKS, HookCall, read_hook_call
from agentwatch.text import clean, complain, say

if TYPE_CHECKING:
    from agentwatch.agents.hook.words import HookAnswer
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
    answer: HookAnswer = {}
    try:
        if call.event == ASKS:
            from agentwatch.agents.hook.permission import asked  # each event loads what it needs

            asked(call, _workspace(path, call))
            return 0
        answer = _answer(call, path, load)
    except AgentwatchError as error:
        complain(clean(f"agentwatch hook: {error}; {_NOTHING_DONE}"))
        return 0 if call.event == ASKS else FAILED
    # ASCII only: foreign characters reach the program as escapes.
    say(json.dumps(answer))
    return 0


def _workspace(path: str | None, call: HookCall) -> Path:
    return workspace_at(path or os.environ.get(_PROJECT) or call.cwd or ".")


def _answer(call: HookCall, path: str | None, load: Load) -> HookAnswer:
    if call.event == "SubagentStop":
        from agentwatch.agents.hook.returned import stopped

        return stopped(call, _workspace(path, call), load_settings(), load)
    if call.event == "PostToolUse":
        from agentwatch.agents.hook.returned import told

        return told(call, _workspace(path, call), load_settings(), load)
    return {}
