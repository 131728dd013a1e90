"""PermissionRequest: the operator answers where the request is seen, while a screen shows the workspace.

Whatever goes wrong, nothing is printed: then the program's own prompt stands, or appears. Where nobody watches, the
process ends before it has loaded what an answer needs.
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from agentwatch.agents.hook.journal import UNANSWERED, Journal, JournalEntry
from agentwatch.config import load as load_settings
from agentwatch.sources.claude_code.hooks import HookCall
from agentwatch.state import is_shown, state_directory, workspace_id

if TYPE_CHECKING:
    from agentwatch.agents.hook.asked import Ask
    from agentwatch.agents.hook.following import AskedCall
    from agentwatch.delegation.request import Request
    from agentwatch.requests.store import RequestStore

HELD_SECONDS: Final = 24 * 3600
"""The longest that a request is held whose prompt stands in the program meanwhile: `init` has the program end it."""

HOLDER: Final = "claude hook"
_CALL_SECONDS: Final = 0.5
"""So long after it has asked, the program may write its call down."""

_PAUSE_SECONDS: Final = 0.05
_TERMINAL: Final = "cli"
"""How a session was started whose prompt is known to stand while it is held."""

_PRINTING: Final = "sdk-cli"
"""That of `claude -p`, which has no prompt: what nobody answers is denied."""


def asked(call: HookCall, workspace: Path) -> None:
    """Answer the request of a call on standard output, or print nothing. Blocks while there may be one."""
    at = time.time()
    state = state_directory(workspace)
    if not is_shown(state):
        return
    settings = load_settings()
    is_bounded = call.agent_id is not None or _started_as() != _TERMINAL
    if settings.hook_when != "never" and not (is_bounded and settings.hook_prompt <= 0):
        _hold(call, workspace, state, at, at + settings.hook_prompt if is_bounded else None)


def _hold(call: HookCall, workspace: Path, state: Path, at: float, until: float | None) -> None:
    # What an answer needs takes longer to load than all that is done where nobody watches.
    from agentwatch.agents.hook.asked import PLAN, Ask, answer_of
    from agentwatch.agents.hook.following import AskedCall, Asking, Waits
    from agentwatch.delegation.request import RequestStage, input_text
    from agentwatch.requests.holding import Holder
    from agentwatch.requests.store import RequestError

    asking = Asking(os.environ.get("CLAUDE_PID"))
    is_plan = call.tool == PLAN
    holder = Holder(workspace, name=HOLDER, state=state)
    try:
        transcript = AskedCall(call, at, None if is_plan else input_text(call.given)[1])
        if _is_answered(transcript, at + (_CALL_SECONDS if os.path.exists(call.transcript or "") else 0.0)):
            return
        plan = transcript.given.get("plan") if is_plan else None
        ask = Ask(
            at,
            until,
            nonce=input_text(transcript.call_id)[1] if transcript.call_id is not None else _own_nonce(),
            hidden=call.agent_id is not None,
            unattended=_started_as() == _PRINTING,
            call_id=transcript.call_id,
            plan=plan if isinstance(plan, str) else "",
            cwd="" if os.path.realpath(call.cwd or workspace) == os.path.realpath(workspace) else call.cwd or "",
        )
        request = _request(call, workspace, ask, holder.store)
        if request is None:
            return
        with holder.offer(request) as offer:
            waits = Waits(asking, transcript)
            record = holder.hold(offer, waits)
            answer = answer_of(call, record.action, record.params, record.note) if record is not None else None
            if record is not None and answer is not None and _print(answer):
                holder.delivered(record)
                offer.end(RequestStage.DELIVERED, by=record.operator)
            elif waits.is_answered:
                offer.end(RequestStage.ELSEWHERE)
    except (RequestError, ValueError) as error:
        holder.trouble = str(error)
    if holder.trouble:
        # Under no agent's name: how often one was sent back in a row is counted there.
        about = call.event, call.session_id, "", call.agent_id or call.session_id
        Journal(state).add(JournalEntry(*about, UNANSWERED, call.tool or "", holder.trouble))


def _request(call: HookCall, workspace: Path, ask: Ask, store: RequestStore) -> Request | None:
    """The request, None where it has ended already.

    Two hooks of one call, of the user's settings and of the project's, make the same one, and hold it together. One
    that ended before this was asked is of an equal call, which nothing tells from this one yet.
    """
    from agentwatch.agents.hook.asked import request_of

    request = request_of(call, workspace_id(workspace), ask)
    known = store.find(request.request_id)
    if known is not None and not known.is_open:
        if (known.ended_at or 0.0) >= ask.at:
            return None
        request = request_of(call, workspace_id(workspace), ask._replace(nonce=_own_nonce()))
    return request


def _own_nonce() -> str:
    return os.urandom(16).hex()


def _is_answered(transcript: AskedCall, until: float) -> bool:
    """Looks the call up, which the program may write down a moment after it asks."""
    while not transcript.is_answered():
        if transcript.call_id is not None or time.time() >= until:
            return False
        time.sleep(_PAUSE_SECONDS)
    return True


def _started_as() -> str:
    return os.environ.get("CLAUDE_CODE_ENTRYPOINT", _TERMINAL)


def _print(answer: dict[str, object]) -> bool:
    """Whether the program was given all of it."""
    # ASCII only: foreign characters reach the program as escapes.
    data = (json.dumps(answer) + "\n").encode("ascii")
    try:
        while data:
            data = data[os.write(1, data) :]
    except OSError:
        return False
    return True
