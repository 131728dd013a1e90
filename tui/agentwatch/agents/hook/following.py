"""The program that asked, while its request is held: whether it still runs, and whether it was answered there."""

from __future__ import annotations

import os
import re
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

from agentwatch.delegation.request import input_text
from agentwatch.sources.claude_code.hooks import HookCall
from agentwatch.sources.sessions.fields import Fields, inner, listed, mapping, moment, text
from agentwatch.sources.sessions.tail import Tail

_LOOK_SECONDS: Final = 0.25
_HEAD: Final = 8 * 1024 * 1024
"""Bytes at the end of a transcript in which the call stands that is asked about."""

_NAME: Final = re.compile(r"[\w@.-]{1,128}")
_PID: Final = re.compile(r"[1-9][0-9]{0,9}")
_START: Final = 19
"""Index of a process's start time in `/proc/<pid>/stat`, counted behind its name; its state is the first."""
_DEAD: Final = ("Z", "X")
_NOTHING: Final[Fields] = {}


class AskedCall:
    """The call in the transcript of its agent: for the receipt, and to end where it was answered in the program.

    Of several that are equal the program asks about the first one of a message that has no result.
    """

    def __init__(self, call: HookCall, since: float, digest: str | None) -> None:
        """It was asked about at a time in epoch seconds: results of before are those of others.

        `digest` is that of its input, None where the payload has not the input of the call.
        """
        self._tool = call.tool
        self._since = since
        self._digest = digest
        self._message: object = None
        self._calls: dict[str, Fields] = {}
        """The equal ones of the last message, but for those that were answered before."""
        self._answered: set[str] = set()
        self._tail = _tail(call)

    @property
    def call_id(self) -> str | None:
        return next(iter(self._calls), None)

    @property
    def given(self) -> Fields:
        """What it was called with, by the transcript."""
        return next(iter(self._calls.values()), _NOTHING)

    def is_answered(self) -> bool:
        """Reads what the transcript got since the last look. What cannot be read says nothing."""
        with suppress(OSError, ValueError):
            for line in self._tail.read(_HEAD).lines if self._tail is not None else ():
                self._take(line.record or {})
        return self.call_id in self._answered

    def _take(self, fields: Fields) -> None:
        message = inner(fields, "message")
        for block in map(mapping, listed(message, "content")):
            call_id = text(block, "id") or ""
            if block.get("type") == "tool_result":
                call_id = text(block, "tool_use_id") or ""
                if (moment(fields) or 0.0) < self._since:
                    self._calls.pop(call_id, None)
                elif call_id in self._calls:
                    self._answered.add(call_id)
            elif block.get("type") == "tool_use" and block.get("name") == self._tool and self._is_it(block):
                if message.get("id") != self._message:
                    self._message, self._calls = message.get("id"), {}
                self._calls[call_id] = inner(block, "input")

    def _is_it(self, block: Fields) -> bool:
        with suppress(ValueError):
            return self._digest is None or input_text(inner(block, "input"))[1] == self._digest
        return False


class Asking:
    """The process that asked: it is gone where it ended, was killed, or its number is another's."""

    def __init__(self, pid: str | None) -> None:
        self._parent = os.getppid()
        self._pid = int(pid) if pid is not None and _PID.fullmatch(pid) else None
        self._start = _began(self._pid)

    def runs(self) -> bool:
        if os.getppid() != self._parent:
            return False
        if self._pid is None:
            return True
        try:
            os.kill(self._pid, 0)
        except (ProcessLookupError, OverflowError):
            return False
        except OSError:
            return True
        return _began(self._pid) == self._start


class Waits:
    """Whether the program waits for the answer still. Looks now and then, and costs nothing between."""

    def __init__(self, asking: Asking, asked: AskedCall) -> None:
        self.is_answered = False
        self._asking = asking
        self._asked = asked
        self._at = time.monotonic()

    def __call__(self) -> bool:
        now = time.monotonic()
        if now - self._at < _LOOK_SECONDS:
            return True
        self._at = now
        self.is_answered = self._asked.is_answered()
        return not self.is_answered and self._asking.runs()


def _tail(call: HookCall) -> Tail | None:
    """The end of the transcript of the agent that asks; None where it is not known."""
    if call.transcript is None or "\0" in call.transcript:
        return None
    path = Path(call.transcript)
    if call.agent_id is not None:
        if not _NAME.fullmatch(call.agent_id):
            return None
        path = path.with_suffix("") / "subagents" / f"agent-{call.agent_id}.jsonl"
    position = 0
    with suppress(OSError):
        size = path.stat().st_size
        if size > _HEAD:
            with path.open("rb") as file:
                file.seek(size - _HEAD)
                position = size - _HEAD + len(file.readline())
    return Tail(path, position=position)


def _began(pid: int | None) -> str | None:
    """When a process began, as `/proc` has it; "" for one that is dead, None where that cannot be told."""
    with suppress(OSError, IndexError):
        words = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace").rpartition(")")[2].split()
        return "" if words[0] in _DEAD else words[_START]
    return None
