"""The answers of a relay to who looks at a text or a transcript, or waits for a decision: in parts, for they may be
long."""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Final

from agentwatch.decisions.reader import Asker, Question, Verified, question_about, waited
from agentwatch.delegation.run import Message, Run
from agentwatch.remote.protocol import Ask, Reply
from agentwatch.remote.texts import parsed, sign_of, written
from agentwatch.sources.sessions.entries import Entry
from agentwatch.sources.sessions.following import Look, RunTranscript, Step, WholeStep

if TYPE_CHECKING:
    from agentwatch.delegation.task import Task
    from agentwatch.monitor import Monitor

PART: Final = 128 * 1024
"""Characters of one part."""
_BY: Final = "agentwatch wait, on another machine"
_DIGITS: Final = 9
_MOST_OPEN: Final = 8
_MOST_ENTRIES: Final = 20_000


class Answers:
    """Those about the workspace that a monitor watches."""

    def __init__(self, monitor: Monitor) -> None:
        self._monitor = monitor
        self._asker = Asker(monitor.workspace, monitor.settings, "wait")
        self._lock = threading.Lock()
        self._open: OrderedDict[tuple[str, str], tuple[RunTranscript, Look]] = OrderedDict()

    def find(self, ask: Ask) -> Callable[[], str | None]:
        """The function that finds the answer, and may block; it gives None where there is none. To be called on the
        event loop of the monitor: the tree is looked at right here."""
        tree = self._monitor.tree
        match ask.what:
            case "text":
                return partial(self._monitor.content, Message(0.0, ask.key, ""))
            case "transcript":
                return partial(self.look_at, ask.screen, ask.key, ask.place, tree.runs.known(ask.key))
            case "wait":
                attempt = int(ask.place) if ask.place.isdecimal() and len(ask.place) <= _DIGITS else None
                return partial(self._wait, question_about(tree, ask.key, attempt), tree.tasks.get(ask.key), ask.key)
            case "read":
                return partial(self._read, ask.key)

    def _wait(self, question: Question, task: Task | None, task_id: str) -> str:
        """The document of `agentwatch wait`. The handoff for the next attempt is in it: no file here is read there."""
        return json.dumps(waited(self._asker.reader.find(question), task, task_id))

    def _read(self, decision_id: str) -> str:
        """Note that somebody who has waited for a decision has read it."""
        found = self._asker.reader.find(Question(None, decision_id=decision_id))
        trouble = self._asker.note_read(found, _BY) if isinstance(found, Verified) else "it does not hold any more"
        return json.dumps({"pending": trouble is not None, "trouble": trouble})

    def look_at(self, screen: str, key: str, place: str, run: Run | None) -> str | None:
        """The answer to a screen about the transcript of a run, which is here as it is now, None where it is gone. None
        where there is no transcript. Blocks."""
        with self._lock:
            known = self._open.pop((screen, key), None)
            if known is None:
                opened = self._monitor.transcript(run) if run is not None else None
                if opened is None:
                    return None
                known = opened, Look()
            transcript, look = known
            what, _, rest = place.partition(" ")
            if what == "whole":
                step: Step | None = parsed(Step, rest)
                found = transcript.whole(step) if step is not None else None
                answer = "" if found is None else written(WholeStep, found)
            elif what == "entries":
                entries = tuple(islice(transcript.entries(), _MOST_ENTRIES))
                answer = written(tuple[Entry, ...], entries)
            else:
                look = transcript.older() if what == "older" else transcript.look() or look
                answer = written(Look, look)
                if rest == sign_of(answer):
                    answer = ""
            self._open[screen, key] = transcript, look
            while len(self._open) > _MOST_OPEN:
                self._open.popitem(last=False)
            return answer


def parts(ask: Ask, text: str | None) -> Iterator[Reply]:
    """The answer as it travels."""
    if text is None:
        yield Reply(id=ask.id)
        return
    text = text.encode("utf-8", "replace").decode()
    count = max((len(text) + PART - 1) // PART, 1)
    for part in range(count):
        yield Reply(id=ask.id, part=part, parts=count, data=text[part * PART : (part + 1) * PART])
