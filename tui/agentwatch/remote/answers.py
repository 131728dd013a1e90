"""What a relay answers to who looks at a text, or waits for a decision: in parts, for it may be long."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from agentwatch.decisions.asking import Asker, question_about, waited
from agentwatch.decisions.reader import Question, Verified
from agentwatch.delegation.run import Message
from agentwatch.remote.frames import Ask, Reply
from agentwatch.remote.transcripts import Shown

if TYPE_CHECKING:
    from agentwatch.delegation.task import Task
    from agentwatch.monitor import Monitor

PART: Final = 128 * 1024
"""Characters of one part."""
_BY: Final = "agentwatch wait, on another machine"
_DIGITS: Final = 9


class Answers:
    """Those about the workspace that a monitor watches."""

    def __init__(self, monitor: Monitor) -> None:
        self._monitor = monitor
        self._transcripts = Shown(monitor.transcript)
        self._asker = Asker(monitor.workspace, monitor.settings, "wait")

    def find(self, ask: Ask) -> Callable[[], str | None]:
        """What finds the answer, and may block; it gives None where there is none. To be called on the event loop of
        the monitor: what the answer needs of the tree is looked at right here."""
        match ask.what:
            case "text":
                return partial(self._monitor.content, Message(0.0, ask.key, ""))
            case "transcript":
                return partial(
                    self._transcripts.answer, ask.screen, ask.key, ask.place, self._monitor.tree.runs.known(ask.key)
                )
            case "wait":
                attempt = int(ask.place) if ask.place.isdecimal() and len(ask.place) <= _DIGITS else None
                tree = self._monitor.tree
                return partial(self._wait, question_about(tree, ask.key, attempt), tree.tasks.get(ask.key), ask.key)
            case "read":
                return partial(self._read, ask.key)

    def _wait(self, question: Question, task: Task | None, task_id: str) -> str:
        """What `agentwatch wait` says now. The handoff for the next attempt is in it: no file here is read there."""
        return _written(waited(self._asker.reader.find(question), task, task_id))

    def _read(self, decision_id: str) -> str:
        """Who has waited for a decision says that it was read."""
        found = self._asker.reader.find(Question(None, decision_id=decision_id))
        trouble = self._asker.note_read(found, _BY) if isinstance(found, Verified) else "it does not hold any more"
        return _written({"pending": trouble is not None, "trouble": trouble})


def parts(ask: Ask, text: str | None) -> Iterator[Reply]:
    """The answer as it travels."""
    if text is None:
        yield Reply(ask.id)
        return
    count = max((len(text) + PART - 1) // PART, 1)
    for part in range(count):
        yield Reply(ask.id, part, count, text[part * PART : (part + 1) * PART])


def _written(document: dict[str, Any]) -> str:
    return json.dumps(document)
