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
from collections.abc import Sequence
from pathlib import Path
from typing import Final, TextIO

from agentwatch.agents.hook.journal import UNANSWERED, Journal, JournalEntry
from agentwatch.decisions.record import Record
from agentwatch.delegation.decision import Action
from agentwatch.delegation.request import (
    Given,
    Option,
    Query,
    Request,
    RequestKind,
    RequestStage,
    input_text,
    request_id_of,
)
from agentwatch.requests.holding import Holder
from agentwatch.requests.reading import given_as, in_line, read
from agentwatch.requests.store import Offer, RequestError
from agentwatch.sources.sessions.fields import Fields, inner, listed, mapping, number, object_in, text
from agentwatch.state import is_shown, state_directory, workspace_id
from agentwatch.text import clean, complain

FAILED: Final = 1
_POLL_SECONDS: Final = 0.02
_REST_SECONDS: Final = 0.5
"""Between two looks for an answer where no screen shows the workspace."""

_LARGEST: Final = 16 * 1024 * 1024
_SHOWN_IF_TOO_LARGE: Final = 4_000
_ENDS: Final = {one.value: one for one in (RequestStage.DELIVERED, RequestStage.UNKNOWN, RequestStage.GONE)}
_ENDS["elsewhere"] = RequestStage.ELSEWHERE
_IN_DIFFS: Final = frozenset({"diff", "filepath", "filePath", "content", "oldString", "newString", "patchText"})
"""What is said of a call whose effect the program shows as a diff."""
_NAMES: Final = {"opencode": "OpenCode", "kilo": "Kilo"}


def run(descriptor: int = 0, out: TextIO | None = None) -> int:
    """Offer the request that is read until it has ended. Returns 0, or FAILED where it cannot be offered."""
    plugin = _Plugin(descriptor, out or sys.stdout)
    told = plugin.first()
    holders: dict[Path, Holder] = {}
    while not plugin.is_over:
        holder: Holder | None = None
        try:
            workspace = _watched(text(told, "directory"))
            holder = holders.setdefault(workspace, Holder(workspace, name=f"{text(told, 'program')} plugin"))
            with _offered(told, workspace, holder) as offer:
                told = _held(told, workspace, holder, offer, plugin)
        except (RequestError, ValueError) as error:
            complain(clean(f"agentwatch hook: {error}; it is answered in its program"))
            if holder is not None:
                _note(told, workspace, str(error))
            return FAILED
        if holder.trouble:
            _note(told, workspace, holder.trouble)
    return 0


def _note(told: Fields, workspace: Path, trouble: str) -> None:
    """Write down why an answer did not get through: nobody reads what the plugin's processes say."""
    asked, program = inner(told, "asked"), text(told, "program") or ""
    session = text(asked, "sessionID") or ""
    # Under no agent's name, as of Claude Code's hook.
    entry = JournalEntry(program, session, "", session, UNANSWERED, text(asked, "permission") or "question", trouble)
    Journal(state_directory(workspace)).add(entry)


def _held(told: Fields, workspace: Path, holder: Holder, offer: Offer, plugin: _Plugin) -> Fields:
    """Hold it until it has ended, or has to be offered anew: then as the result tells of it."""
    state, shows, asks = state_directory(workspace), False, 0
    while not plugin.is_over:
        if not asks:
            shows = is_shown(state)
            if not shows and _watched(text(told, "directory")) != workspace:
                return told
        asks = (asks + 1) % round(1 / _POLL_SECONDS) if shows else 0
        for line in plugin.wait(_POLL_SECONDS if shows else _REST_SECONDS):
            if "result" in line:
                offer.end(_ENDS.get(str(line["result"]), RequestStage.GONE))
                plugin.is_over = True
            elif (number(line, "others") or 0) > offer.request.ends_others:
                # Who decides on what was shown before does not know that a denial ends more.
                return {**told, "others": line["others"], "nonce": f"{text(told, 'nonce')}+"}
        record = holder.look(offer) if not plugin.is_over else None
        if record is not None:
            _answered(record, holder, offer, plugin)
    return told


def _answered(record: Record, holder: Holder, offer: Offer, plugin: _Plugin) -> None:
    """Give the plugin the answer, and wait for what the program did with it."""
    try:
        plugin.say(_answer(record, offer.request))
    except OSError:
        # Nobody read it.
        plugin.is_over = True
        return
    while not plugin.is_over:
        for line in plugin.wait(None):
            stage = _ENDS.get(str(line.get("result")))
            if stage is RequestStage.DELIVERED:
                holder.delivered(record)
            if stage is not None:
                offer.end(stage, record.operator if stage is RequestStage.DELIVERED else "")
    # The program has ended, or the plugin, and the answer may have counted before that.
    offer.end(RequestStage.UNKNOWN)


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


def _offered(told: Fields, workspace: Path, holder: Holder) -> Offer:
    """Raises RequestError where it cannot be offered, ValueError where it is no request."""
    request = request_of(told, workspace)
    try:
        return holder.offer(request)
    except RequestError:
        if len(request.input) <= _SHOWN_IF_TOO_LARGE:
            raise
        shown = f"{request.shown[:_SHOWN_IF_TOO_LARGE]} […]"
        why = f"It is too large to be shown whole here: answer it in {_program(told)}."
        return holder.offer(_request(told, workspace, {"id": request.nonce}, shown=shown, why_not=why))


def request_of(told: Fields, workspace: Path) -> Request:
    """The request that the plugin tells of, as of one workspace. Raises ValueError where it is none."""
    asked, call = inner(told, "asked"), inner(told, "call")
    whole = {"asked": asked, "call": call}
    if told.get("kind") == "question":
        queries = tuple(map(_query, listed(asked, "questions")))
        wordings = {query.question for query in queries}
        is_clear = bool(queries) and len(wordings) == len(queries)
        return _request(
            told,
            workspace,
            whole,
            kind=RequestKind.QUESTION,
            tool="question",
            shown="\n".join(query.question for query in queries),
            queries=queries,
            actions=(Action.ANSWER, Action.DENY) if is_clear else (Action.DENY,),
        )
    metadata = inner(asked, "metadata")
    said = text(metadata, "description") or text(call, "description") or ""
    shown, beside = _read(asked, call, said)
    if (begun := text(told, "directory")) is not None and os.path.realpath(begun) != os.path.realpath(workspace):
        beside = (given_as("cwd", begun), *beside)
    why = "" if shown else f"{_program(told)} does not tell what the call would do: answer it there."
    return _request(
        told,
        workspace,
        whole,
        shown=shown or ", ".join(map(in_line, _words(asked, "patterns"))),
        beside=beside,
        said=said,
        actions=() if why else (Action.ALLOW, Action.DENY),
        why_not=why,
        words=True,
        ends_others=int(number(told, "others") or 0),
        covered_by=", ".join(_words(asked, "always")),
    )


def _request(told: Fields, workspace: Path, whole: object, **rest: object) -> Request:
    asked = inner(told, "asked")
    source, session_id, nonce = text(told, "program"), text(asked, "sessionID"), text(told, "nonce")
    if source not in _NAMES or session_id is None or nonce is None:
        raise ValueError("the plugin told of no request")
    spelled, digest = input_text(whole)
    return Request(
        **{  # type: ignore[arg-type]
            "request_id": request_id_of(workspace_id(workspace), source, session_id, nonce, digest),
            "source": source,
            "session_id": session_id,
            "nonce": nonce,
            "kind": RequestKind.PERMISSION,
            "tool": text(asked, "permission") or "",
            "input": spelled,
            "input_sha256": digest,
            "asked_at": (number(told, "at") or 0) / 1000,
            "call_id": text(inner(asked, "tool"), "callID"),
            "ends_turn": True,
            **rest,
        }
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


def _query(value: object) -> Query:
    query = mapping(value)
    options = [mapping(one) for one in listed(query, "options")]
    return Query(
        question=text(query, "question") or "",
        header=text(query, "header") or "",
        options=tuple(Option(text(one, "label") or "", text(one, "description") or "") for one in options),
        several=query.get("multiple") is True,
    )


def _words(fields: Fields, key: str) -> Sequence[str]:
    return [one for one in listed(fields, key) if isinstance(one, str)]


def _program(told: Fields) -> str:
    return _NAMES[text(told, "program") or ""]


def _watched(directory: str | None) -> Path:
    """The workspace whose screen would show it: where the program was begun, or the next one above that is watched."""
    if directory is None or not Path(directory).is_absolute():
        raise ValueError("the plugin told of no directory")
    begun = Path(directory)
    return next((place for place in (begun, *begun.parents) if is_shown(state_directory(place))), begun)


class _Plugin:
    """What the plugin says, as it comes. `is_over`: it has ended, and the program with it, or waits no more."""

    def __init__(self, descriptor: int, out: TextIO) -> None:
        self.is_over = False
        self._descriptor = descriptor
        self._out = out
        self._rest = b""
        self._before: list[Fields] = []

    def say(self, answer: Fields) -> None:
        """Raises OSError where nobody reads it."""
        self._out.write(f"{json.dumps(answer)}\n")
        self._out.flush()

    def first(self) -> Fields:
        while not (self._before or self.is_over):
            self._before = list(self.wait(None))
        return self._before.pop(0) if self._before else {}

    def wait(self, seconds: float | None) -> Sequence[Fields]:
        """The lines that are there by then; none where nothing was said."""
        before, self._before = self._before, []
        if before or not select.select([self._descriptor], [], [], seconds)[0]:
            return before
        said = os.read(self._descriptor, 1 << 20)
        *lines, self._rest = (self._rest + said).split(b"\n")
        if not said or len(self._rest) > _LARGEST:
            self.is_over = True
        return [object_in(line.decode("utf-8", "replace")) for line in lines]
