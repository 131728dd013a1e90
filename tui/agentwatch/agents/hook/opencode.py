"""One request of OpenCode or Kilo, as their plugin (`opencode.js`) tells of it: offered until it is answered, and no
longer than the program waits.

The plugin writes lines of JSON: the request, then what becomes of it. It reads one line, the operator's answer, gives
it to the program, and says whether that took it. The program's own prompt is there all the time, but for a grandchild.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Final, TextIO

from agentwatch.agents.hook.journal import Journal
from agentwatch.decisions.record import Record
from agentwatch.delegation.decision import Action
from agentwatch.delegation.request import Given, Request, RequestKind, RequestStage
from agentwatch.requests.holding import Holder
from agentwatch.requests.reading import given_as, in_line, queries_in, read, request_about
from agentwatch.requests.store import Offer, RequestError
from agentwatch.sources.sessions.fields import Fields, inner, listed, number, object_in, text
from agentwatch.state import is_shown, state_directory, workspace_id

_POLL_SECONDS: Final = 0.05
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
    """Offer the request that is read until it has ended. Returns 0: nobody reads what the plugin's processes say."""
    plugin = _Plugin(descriptor, out or sys.stdout)
    told: Fields = {}
    while not (told or plugin.has_ended()):
        told = plugin.read()
    while told and not plugin.has_ended():
        told = _offer(told, plugin)
    return 0


def _offer(told: Fields, plugin: _Plugin) -> Fields:
    """Offer a request until it has ended: then {}. Else, as it has to be offered anew."""
    workspace, program = _watched(told), text(told, "program") or ""
    anew: Fields = {}
    holder = Holder(workspace, name=f"{program} plugin")
    try:
        with holder.offer(request_of(told, workspace)) as offer:
            anew = _hold(told, workspace, holder, offer, plugin)
    except (RequestError, ValueError) as error:
        holder.trouble = str(error)
    if holder.trouble:
        asked = inner(told, "asked")
        kind = text(asked, "permission") or "question"
        Journal(workspace).add_unanswered(program, text(asked, "sessionID") or "", kind, holder.trouble)
    return anew


def _hold(told: Fields, workspace: Path, holder: Holder, offer: Offer, plugin: _Plugin) -> Fields:
    while not plugin.has_ended():
        if not is_shown(state_directory(workspace)) and _watched(told) != workspace:
            return told
        line = plugin.read(_POLL_SECONDS)
        if "result" in line:
            offer.end(_ENDS.get(str(line["result"]), RequestStage.GONE))
            break
        if (number(line, "others") or 0) > offer.request.ends_others:
            # Who decides on what was shown before does not know that a denial ends more.
            return {**told, "others": line["others"], "nonce": f"{text(told, 'nonce')}+"}
        record = None if plugin.has_ended() else holder.look(offer)
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
        stage = _ENDS.get(str(plugin.read().get("result")))
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
    asked, call, begun = inner(told, "asked"), inner(told, "call"), text(told, "directory") or workspace
    source, session_id, nonce = text(told, "program") or "", text(asked, "sessionID"), text(told, "nonce")
    if source not in _NAMES or session_id is None or nonce is None:
        raise ValueError("the plugin told of no request")
    said = text(inner(asked, "metadata"), "description") or text(call, "description") or ""
    actions: tuple[Action, ...]
    beside: tuple[Given, ...] = ()
    if is_question := told.get("kind") == "question":
        queries = queries_in(asked, several="multiple")
        shown = "\n".join(query.question for query in queries) or read(asked)[0]
        actions = (Action.ANSWER, Action.DENY) if queries else (Action.DENY,)
    else:
        queries, (shown, beside) = (), _read(asked, call, said)
        actions = (Action.ALLOW, Action.DENY) if shown else ()
        if os.path.realpath(begun) != os.path.realpath(workspace):
            beside = (given_as("cwd", begun), *beside)
    return request_about(
        {"asked": asked, "call": call},
        workspace_id(workspace),
        source,
        session_id,
        nonce,
        kind=RequestKind.QUESTION if is_question else RequestKind.PERMISSION,
        tool=text(asked, "permission") or "question",
        shown=shown or ", ".join(map(in_line, _words(asked, "patterns"))),
        beside=beside,
        said=said,
        queries=queries,
        asked_at=(number(told, "at") or 0) / 1000,
        actions=actions,
        why_not="" if actions else f"{_NAMES[source]} does not tell what the call would do: answer it there.",
        words=not is_question,
        ends_others=int(number(told, "others") or 0),
        ends_turn=True,
        call_id=text(inner(asked, "tool"), "callID"),
        covered_by=", ".join(_words(asked, "always")),
    )


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
    begun = Path("/", text(told, "directory") or "")
    return next((place for place in (begun, *begun.parents) if is_shown(state_directory(place))), begun)


class _Plugin:
    """The messages of the plugin as they come."""

    def __init__(self, descriptor: int, out: TextIO) -> None:
        self._has_ended = False
        self._out = out
        self._lines = SimpleQueue[bytes]()
        Thread(target=self._receive, args=(os.dup(descriptor),), daemon=True).start()

    def _receive(self, descriptor: int) -> None:
        with open(descriptor, "rb") as lines:
            while (line := lines.readline(_LARGEST)).endswith(b"\n"):
                self._lines.put(line)
        self._lines.put(b"")

    def has_ended(self) -> bool:
        """Whether it has, and the program with it."""
        return self._has_ended

    def read(self, seconds: float | None = None) -> Fields:
        """The next line; {} for what is none, and where none has come by then."""
        try:
            line = self._lines.get(timeout=seconds)
        except Empty:
            return {}
        self._has_ended = not line
        return object_in(line.decode("utf-8", "replace"))

    def say(self, answer: Fields) -> None:
        """Raises OSError where nobody reads it."""
        self._out.write(f"{json.dumps(answer)}\n")
        self._out.flush()
