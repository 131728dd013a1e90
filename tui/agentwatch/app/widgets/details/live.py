"""The live tab: the transcript of a task's run, one line a step, newest below. It follows until one scrolls up."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Final

from textual import on
from textual.app import ComposeResult
from textual.content import Content
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Input, Static

from agentwatch.app.widgets.details.blocks import Block, faint, text
from agentwatch.app.widgets.details.live_log import LiveLog
from agentwatch.app.widgets.details.view import View
from agentwatch.delegation.run import RunState
from agentwatch.delegation.task import Task
from agentwatch.sources.sessions.follower import Follower
from agentwatch.sources.sessions.following import Look, RunTranscript

if TYPE_CHECKING:
    from agentwatch.delegation.tree import Tree

_LONGEST_SEARCH: Final = 100
_FAMILY: Final = 2_000
"""Tasks below that are looked through for the name of one."""


def write(view: View) -> Iterator[Block]:
    """Why there is no transcript, and what there is instead."""
    task, run = view.task, view.task.run
    if run is None:
        yield text(faint("Only files speak of this task, so there is no transcript."))
    else:
        yield text(faint("No transcript of its own is to be had. Its parent's may tell; a recording has none."))
    instead = [
        "its checklist is in Handoff" if task.todos else "",
        "what it returned is in Return" if task.result or (run and run.said) else "",
    ]
    words = " and ".join(filter(None, instead))
    if words:
        yield text(faint(f"{words[0].upper()}{words[1:]}."))


class LiveTab(Widget):
    """Follows one transcript, in a thread of its own as long as it is shown."""

    DEFAULT_CSS = """
    LiveTab { layout: vertical; height: 1fr; padding: 0 0 0 1; display: none; }
    LiveTab #live-state { height: 1; text-wrap: nowrap; text-overflow: ellipsis; }
    LiveTab Input { display: none; height: 1; border: none; padding: 0; background: $background; }
    """

    @dataclass
    class Told(Message):
        """The thread has looked."""

        transcript: RunTranscript
        look: Look

    class Changed(Message):
        """There is, or is no more, something that the keys are about."""

    def __init__(self) -> None:
        super().__init__()
        self.lines = LiveLog()
        self.transcript: RunTranscript | None = None
        self._search = Input(compact=True, placeholder="words", max_length=_LONGEST_SEARCH, select_on_focus=False)
        self._state = Static(id="live-state", markup=False)
        self._follower = Follower(lambda transcript, look: self.post_message(self.Told(transcript, look)))
        self._key: Hashable = None
        self._is_reading = True
        """The thread has not told yet what is there, or what was before."""
        self._names: dict[str, str] = {}

    def compose(self) -> ComposeResult:
        yield self.lines
        yield self._search
        yield self._state

    def show(self, view: View) -> bool:
        """Show the transcript of a task, or how it stands by now. False where there is none."""
        run = view.task.run
        key = (run.source, run.session_id, run.place) if run is not None else None
        if key != self._key:
            self._key = key
            self.transcript = view.transcript(run) if run is not None else None
            self._is_reading = True
            self._names.clear()
            self._search.value = ""
            self.lines.begin()
            self._follower.follow(self.transcript)
            self._say()
        if self.transcript is None or run is None:
            return False

        def name_of(digest: str) -> str:
            if digest not in self._names and (name := _name(view.tree, view.task, digest)):
                self._names[digest] = name
            return self._names.get(digest, "")

        is_working = run.state is RunState.WORKING and not run.process_gone
        self.lines.pose(view.now, name_of, is_working=is_working)
        return True

    def leave(self) -> None:
        """It is not shown any more."""
        self._key, self.transcript = None, None
        self._follower.follow(None)

    def on_unmount(self) -> None:
        self._follower.follow(None)

    # Searching

    def search(self) -> None:
        """Write what is looked for."""
        self._search.display = True
        self._search.focus()
        self._say()

    def leave_search(self) -> bool:
        """Show all steps again; False where all are shown."""
        if not self._search.display:
            return False
        self._search.value = ""
        self._search.display = False
        self.lines.seek("")
        self.lines.focus()
        return True

    @on(Input.Changed)
    def _seek(self, event: Input.Changed) -> None:
        event.stop()
        self.lines.seek(event.value)

    @on(Input.Submitted)
    def _keep(self, event: Input.Submitted) -> None:
        event.stop()
        if self._search.value.strip():
            self.lines.focus()
        else:
            self.leave_search()

    # What the thread tells

    @on(Told)
    def _take(self, event: Told) -> None:
        event.stop()
        if event.transcript is not self.transcript:
            return
        had_steps, self._is_reading = bool(self.lines.look.steps), False
        self.lines.take(event.look)
        self._say()
        if had_steps != bool(event.look.steps):
            self.post_message(self.Changed())

    @on(LiveLog.Moved)
    def _moved(self, event: LiveLog.Moved) -> None:
        event.stop()
        if self.lines.wants_older and not self._is_reading and not self.lines.look.trouble:
            self._is_reading = True
            self._follower.ask_for_older()
        self._say()

    def _say(self) -> None:
        """How it stands, in one line below."""
        log, look = self.lines, self.lines.look
        if self._is_reading and not look.steps:
            self._state.update(faint("reading…"))
            return
        parts: list[Content] = []
        if self._search.display and self._search.value.strip():
            parts.append(faint(f"{len(log.steps):,} of {len(look.steps):,} match, esc shows all"))
        if look.trouble:
            words = f"{look.trouble}{': this is what it said.' if look.steps else '.'}"
            parts.append(Content.styled(words, "$text-warning"))
        elif not log.follows:
            new = f"{log.unseen:,} new below, " if log.unseen else ""
            parts.append(Content.styled(f"not following: {new}the end follows again", "$text-warning"))
        else:
            parts.append(faint("following" if look.steps else "It has said nothing yet."))
        if self._is_reading and log.scroll_offset.y == 0:
            parts.append(faint("reading what was before…"))
        self._state.update(faint("   ").join(parts))


def _name(tree: Tree, task: Task, digest: str) -> str:
    """What the task below is called that was given these words."""
    below = list(task.children)
    # It grows while it is gone through: the nearest come first.
    for child_id in islice(below, _FAMILY):
        if (child := tree.tasks.get(child_id)) is None:
            continue
        prompts = (attempt.run.prompt for attempt in child.attempts if attempt.run is not None)
        if any(prompt is not None and prompt.digest == digest for prompt in prompts):
            return child.title
        below += child.children
    return ""
