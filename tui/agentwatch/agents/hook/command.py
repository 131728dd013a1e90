"""One call of a hook: payload from standard input, answer to standard output, an exit code that never blocks."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from agentwatch.agents.hook.stop import stopped
from agentwatch.agents.hook.told import told
from agentwatch.arguments import workspace_at
from agentwatch.config import load as load_settings
from agentwatch.errors import AgentwatchError
from agentwatch.sources.claude_code.calls import DELEGATING
from agentwatch.sources.claude_code.hooks import HookCall, read_hook_call
from agentwatch.text import clean, complain, say

if TYPE_CHECKING:
    from agentwatch.agents.hook.words import Answer
    from agentwatch.composition import Load

FAILED: Final = 1
"""2 would block the agent, with our complaint as the reason."""

_PROJECT: Final = "CLAUDE_PROJECT_DIR"
_LARGEST: Final = 16 * 1024 * 1024


def run(path: str | None, load: Load) -> int:
    """Answer the call on standard input. Returns 0, or FAILED where it could not be understood."""
    call = read_hook_call(sys.stdin.buffer.read(_LARGEST + 1))
    if call is None:
        complain("agentwatch hook: no payload of a hook on standard input; nothing was held and nothing approved")
        return FAILED
    try:
        answer = _answer(call, path, load)
    except AgentwatchError as error:
        complain(clean(f"agentwatch hook: {error}; nothing was held and nothing approved"))
        return FAILED
    # ASCII only: foreign characters reach the program as escapes.
    say(json.dumps(answer))
    return 0


def _answer(call: HookCall, path: str | None, load: Load) -> Answer:
    if call.event == "SubagentStop":
        return stopped(call, _workspace(call, path), load_settings(), load)
    if call.event == "PostToolUse" and call.tool in DELEGATING:
        return told(call, _workspace(call, path), load_settings(), load)
    return {}


def _workspace(call: HookCall, path: str | None) -> Path:
    """What was said on the command line, else where the session was begun."""
    return workspace_at(path or os.environ.get(_PROJECT) or call.cwd or ".")
