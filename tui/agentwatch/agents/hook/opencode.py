"""One request of OpenCode or Kilo, as their plugin (`opencode.js`) tells of it: offered until it is answered, and no
longer than the program waits.

The plugin writes lines of JSON: the request, then what becomes of it. It reads one line, the operator's answer, gives
it to the program, and says whether that took it. The program's own prompt is there all the time, but for a grandchild.
"""

from __future__ import annotations

import json
import os
import select
import sys
import time
from collections import deque
from pathlib import Path
from typing import Any, Final, TextIO

from agentwatch.agents.hook.journal import UNANSWERED, Journal, JournalEntry
from agentwatch.decisions.record import Record
from agentwatch.delegation.decision import Action
from agentwatch.delegation.request import Given, Request, RequestKind, RequestStage
from agentwatch.requests.holding import Holder
from agentwatch.requests.reading import given_as, in_line, queries_in, read, request_about
from agentwatch.requests.store import Offer, RequestError
from agentwatch.sources.sessions.fields import Fields, inner, listed, number, object_in, text
from agentwatch.state import is_shown, state_directory, workspace_id
from agentwatch.text import clean, complain

FAILED: Final = 1
_POLL_SECONDS: Final = 0.02
_REST_SECONDS: Final = 0.5
"""Between two looks for a screen, and for an answer where none shows the workspace."""

_LARGEST: Final = 16 * 1024 * 1024
_ENDS: Final = {
    "delivered": RequestStage.DELIVERED,
    "elsewhere": RequestStage.ELSEWHERE,
    "unknown": RequestStage.UNKNOWN,
    "gone": RequestStage.GONE,
}
_IN_DIFFS: Final = frozenset({"diff", "filepath", "filePath", "content", "oldString", "newString", "patchText"})
"""What is said of a call whose effect the program shows as a diff."""
_NAMES: Final = {"opencode": "OpenCode", "kilo": "Kilo"}


def run(descriptor: int = 0, out: TextIO | None = None) -> int:
    """Offer the request that is read until it has ended. Returns 0, or FAILED where it cannot be offered."""
    plugin, holder, workspace = _Plugin(descriptor, out or sys.stdout), None, Path()
    told = plugin.first()
    try:
        while told and not plugin.has_ended():
            workspace = _watched(told)
            holder = Holder(workspace, name=f"{text(told, 'program')} plugin")
            with holder.offer(request_of(told, workspace)) as offer:
                before, told = told, _hold(told, workspace, holder, offer, plugin)
            if holder.trouble:
                _note(before, workspace, holder.trouble)
    except (RequestError, ValueError) as error:
        complain(clean(f"agentwatch hook: {error}; it is answered in its program"))
        if holder is not None:
            _note(told, workspace, str(error))
        return FAILED
    return 0


def _note(told: Fields, workspace: Path, trouble: str) -> None:
    """Write down why an answer did not get through: nobody reads what the plugin's processes say."""
    asked, program = inner(told, "asked"), text(told, "program") or ""
    session = text(asked, "sessionID") or ""
    # Under no agent's name, as of Claude Code's hook.
    entry = JournalEntry(program, session, "", session, UNANSWERED, text(asked, "permission") or "question", trouble)
    Journal(state_directory(workspace)).add(entry)


def _hold(told: Fields, workspace: Path, holder: Holder, offer: Offer, plugin: _Plugin) -> Fields:
    """Hold it until it has ended: then {}. Else, as it has to be offered anew."""
    state, shows, looked_at = state_directory(workspace), False, 0.0
    while not plugin.has_ended():
        if time.monotonic() - looked_at >= _REST_SECONDS:
            looked_at, shows = time.monotonic(), is_shown(state)
            if not shows and _watched(told) != workspace:
                return told
        line = plugin.next(_POLL_SECONDS if shows else _REST_SECONDS) or {}
        if "result" in line:
            offer.end(_ENDS.get(str(line["result"]), RequestStage.GONE))
            break
        if (number(line, "others") or 0) > offer.request.ends_others:
            # Who decides on what was shown before does not know that a denial ends more.
            return {**told, "others": line["others"], "nonce": f"{text(told, 'nonce')}+"}
        record = holder.look(offer) if not plugin.has_ended() else None
        if record is not None:
            _give(record, holder, offer, plugin)
            break
    return {}


def _give(record: Record, holder: Holder, offer: Offer, plugin: _Plugin) -> None:
    """Give the plugin the answer, and wait for what the program did with it."""
    try:
        plugin.say(_answer(record, offer.request))
    except OSError:
        # Nobody read it.
        return
    stage = None
    while stage is None and not plugin.has_ended():
        stage = _ENDS.get(str((plugin.next(None) or {}).get("result")))
    if stage is RequestStage.DELIVERED:
        holder.delivered(record)
    # Without a word: the program has ended, or the plugin, and the answer may have counted before that.
    offer.end(stage or RequestStage.UNKNOWN, record.operator if stage is RequestStage.DELIVERED else "")


def _answer(record: Record, request: Request) -> Fields:
    """What the plugin is told: never more than once, and never anything but what was decided."""
    about = json.loads(request.input)["asked"]["id"]
    if record.action is Action.ALLOW:
        return {"id": about, "reply": "once"}
    if record.action is Action.DENY:
        return {"id": about, "reply": "reject", "message": record.note, "others": request.ends_others}
    given = record.params.answers
    answers = [[one.answer for one in given if one.question == query.question] for query in request.queries]
    return {"id": about, "reply": "answers", "answers": answers}


def request_of(told: Fields, workspace: Path) -> Request:
    """The request that the plugin tells of, as of one workspace. Raises ValueError where it is none."""
    asked, call = inner(told, "asked"), inner(told, "call")
    source, session_id, nonce = text(told, "program"), text(asked, "sessionID"), text(told, "nonce")
    if source is None or source not in _NAMES or session_id is None or nonce is None:
        raise ValueError("the plugin told of no request")
    values = _question(asked) if told.get("kind") == "question" else _permission(told, asked, call, workspace)
    values |= {"asked_at": (number(told, "at") or 0) / 1000, "call_id": text(inner(asked, "tool"), "callID")}
    whole = {"asked": asked, "call": call}
    return request_about(whole, workspace_id(workspace), source, session_id, nonce, ends_turn=True, **values)


def _question(asked: Fields) -> dict[str, Any]:
    queries = queries_in(asked, several="multiple") or ()
    is_clear = bool(queries) and len({query.question for query in queries}) == len(queries)
    return {
        "kind": RequestKind.QUESTION,
        "tool": "question",
        "shown": "\n".join(query.question for query in queries),
        "queries": queries,
        "actions": (Action.ANSWER, Action.DENY) if is_clear else (Action.DENY,),
    }


def _permission(told: Fields, asked: Fields, call: Fields, workspace: Path) -> dict[str, Any]:
    said = text(inner(asked, "metadata"), "description") or text(call, "description") or ""
    shown, beside = _read(asked, call, said)
    if (begun := text(told, "directory")) is not None and os.path.realpath(begun) != os.path.realpath(workspace):
        beside = (given_as("cwd", begun), *beside)
    program = _NAMES[text(told, "program") or ""]
    return {
        "kind": RequestKind.PERMISSION,
        "tool": text(asked, "permission") or "",
        "shown": shown or ", ".join(map(in_line, _words(asked, "patterns"))),
        "beside": beside,
        "said": said,
        "actions": (Action.ALLOW, Action.DENY) if shown else (),
        "why_not": "" if shown else f"{program} does not tell what the call would do: answer it there.",
        "words": True,
        "ends_others": int(number(told, "others") or 0),
        "covered_by": ", ".join(_words(asked, "always")),
    }


def _read(asked: Fields, call: Fields, said: str) -> tuple[str, tuple[Given, ...]]:
    """The command, the patch or the path itself, and what the call is given besides; "" where nothing says that."""
    metadata = inner(asked, "metadata")
    if metadata.keys() == {"mcpInput"}:
        return read(inner(metadata, "mcpInput"))
    patterns = [one for one in _words(asked, "patterns") if one != "*"]
    # What the program says of a call, and what the model gave it, are mostly the same.
    twice = {f"{key} of the call": value for key, value in call.items() if metadata.get(key, value) != value}
    given = {**call, **metadata, **twice}
    known = {key for key, value in given.items() if (key, value) in (("description", said), ("patterns", patterns))}
    command, diff, path = (text(metadata, key) for key in ("command", "diff", "filepath"))
    if diff is not None:
        return read(given, *filter(None, [path, diff]), known=known | _IN_DIFFS)
    if command is not None and text(asked, "permission") == "bash":
        return read(given, command, known={*known, "command"})
    if len(patterns) == 1:
        known |= {key for key, value in given.items() if value in patterns}
        return read(given, in_line(patterns[0]), known=known)
    given = {"patterns": patterns, **given} if patterns else given
    return read(given) if given else ("", ())


def _words(fields: Fields, key: str) -> list[str]:
    return [one for one in listed(fields, key) if isinstance(one, str)]


def _watched(told: Fields) -> Path:
    """The workspace whose screen would show it: where the program was begun, or the next one above that is watched."""
    directory = text(told, "directory")
    if directory is None or not Path(directory).is_absolute():
        raise ValueError("the plugin told of no directory")
    begun = Path(directory)
    return next((place for place in (begun, *begun.parents) if is_shown(state_directory(place))), begun)


class _Plugin:
    """The messages of the plugin as they come."""

    def __init__(self, descriptor: int, out: TextIO) -> None:
        self._has_ended = False
        self._descriptor = descriptor
        self._out = out
        self._rest = b""
        self._lines = deque[bytes]()

    def has_ended(self) -> bool:
        """Whether it has, and the program with it."""
        return self._has_ended

    def say(self, answer: Fields) -> None:
        """Raises OSError where nobody reads it."""
        self._out.write(f"{json.dumps(answer)}\n")
        self._out.flush()

    def first(self) -> Fields:
        """The first line, {} where none ever comes."""
        line = None
        while line is None and not self._has_ended:
            line = self.next(None)
        return line or {}

    def next(self, seconds: float | None) -> Fields | None:
        """The next line; None where none has come by then."""
        if not self._lines and select.select([self._descriptor], [], [], seconds)[0]:
            data = os.read(self._descriptor, 1 << 20)
            *lines, self._rest = (self._rest + data).split(b"\n")
            self._lines += lines
            self._has_ended = not data or len(self._rest) > _LARGEST
        return object_in(self._lines.popleft().decode("utf-8", "replace")) if self._lines else None
