"""One entry of a transcript, whole: what was said, or what a tool was given and gave back."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.content import Content
from textual.widgets import Static

from agentwatch.app.actions import Home, Place, bindings
from agentwatch.app.leaving import leave
from agentwatch.app.messages import Inspect, ReadStep, TreeUpdated
from agentwatch.app.screens.detailed import MonitorScreen
from agentwatch.app.widgets.details.attestation import Entry
from agentwatch.app.widgets.details.blocks import (
    Block,
    Gap,
    Heading,
    Line,
    Rich,
    caution,
    faint,
    in_color,
    plain,
    text,
)
from agentwatch.app.widgets.details.page import Page
from agentwatch.app.widgets.footer import Footer
from agentwatch.sources.sessions.doing import EntryKind
from agentwatch.sources.sessions.following import WholeStep
from agentwatch.sources.sessions.steps import Outcome, Step, step_of, written
from agentwatch.text import clean_lines
from agentwatch.view import looks, times

if TYPE_CHECKING:
    from agentwatch.delegation.claims import Call, Claim
    from agentwatch.monitor import Monitor

_HEADS: Final = {
    EntryKind.WORDS: "words",
    EntryKind.PROMPT: "what it was told",
    EntryKind.THOUGHT: "a thought",
    EntryKind.NOTE: "a note of the program",
}
_OUTCOMES: Final = {
    Outcome.OPEN: ("no result yet", "$state-working"),
    Outcome.DONE: ("", ""),
    Outcome.FAILED: ("✗ failed", "$text-error"),
    Outcome.REFUSED: ("⊘ refused: it was not allowed to run", "$text-warning"),
}


def reading_of(monitor: Monitor, wanted: Inspect, call: Call) -> ReadStep | None:
    """How to read a call that an entry of a task's attestation rests on; None where its transcript is not to be had."""
    own, task_id = monitor.of(wanted.task_id)
    run = own.tree.runs.of_call(call)
    transcript = own.transcript(run) if run is not None else None
    if run is None or transcript is None:
        return None
    task = own.tree.tasks.get(task_id)
    claims = looks.claims_of(task) if task is not None else []
    claim = next((one for one in claims if Entry.of(one) == wanted.entry), None)
    step = Step(call.place, EntryKind.CALL, call.at, answered=call.answered)
    name = run.place.rpartition("/")[2]
    unit = "byte" if name.endswith(".jsonl") else "record"
    return ReadStep(transcript, lambda: step, f"{name}, {unit} {call.place[0]:,}", claim)


class Verbatim(NamedTuple):
    """Safe lines as they are; longer ones go on below."""

    source: str

    def lines(self, width: int) -> Iterator[Line]:
        cleaned, note = clean_lines(self.source.rstrip())
        for line in cleaned:
            yield from (Line(part) for part in Content(line).fold(width)) if line else iter([Line(Content(""))])
        if note:
            yield from caution(note).lines(width)


def _of_claim(claim: Claim) -> Content:
    verdict, kind = in_color(looks.VERDICTS[claim.verdict]), faint(claim.kind.replace("_", " "))
    reason = faint(plain(claim.detail).plain)
    return Content.assemble(plain(claim.path).stylize("bold"), "\n", verdict, "   ", kind, "   ", reason)


class StepScreen(MonitorScreen[None]):
    """Shows an entry of the transcript; as long as a call has no result, it waits for that."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(Home.INSPECT)

    DEFAULT_CSS = "StepScreen #step-head { height: auto; max-height: 8; padding: 0 1 1 1; }"

    def __init__(self, monitor: Monitor, clock: Callable[[], float], wanted: ReadStep, task_id: str | None) -> None:
        super().__init__(monitor, clock)
        self._wanted = wanted
        self._task_id = task_id
        self._step: Step | None = None
        self._whole: WholeStep | None = None
        self._is_reading = False
        self._head = Static(id="step-head", markup=False)
        self._page = Page()
        self.footer = Footer(Place.INSPECT, is_useless=self.is_out_of_question)

    @property
    def task_id(self) -> str | None:
        return self._task_id

    def compose(self) -> ComposeResult:
        yield self.header
        yield self._head
        yield self._page
        yield self.footer

    def on_mount(self) -> None:
        self._page.focus()
        self._page.show(self._write, keep=False)
        self._look()

    def tick(self) -> None:
        super().tick()
        if self._step is None or (self._step.outcome is Outcome.OPEN and not self._wanted.place):
            self._look()

    def refresh_tasks(self, event: TreeUpdated) -> None:
        """What an entry says does not depend on the tree."""

    def is_useless(self, command_id: str) -> bool:
        return command_id in ("inspect.switch", "edit", "copy") or super().is_useless(command_id)

    def action_back(self) -> None:
        leave(self)

    def action_switch(self) -> None:
        """There is nothing to switch to."""

    def _look(self) -> None:
        step = self._wanted.current() or self._step
        if step is not None and step != self._step and not self._is_reading:
            self._is_reading = True
            self.run_worker(self._read(step))

    async def _read(self, step: Step) -> None:
        whole = await asyncio.to_thread(self._wanted.transcript.whole, step)
        self._is_reading = False
        if whole is not None and not step.tool and step.kind is EntryKind.CALL:
            # It was not the transcript that was looked at: only now is known what stands there.
            step = step_of(step.place, whole.said, step.answered, whole.result)
        self._step, self._whole = step, whole or self._whole
        self._head.update(self._said())
        self._page.show(self._write, keep=True)

    def _said(self) -> Content:
        step = self._step
        if step is None:
            return Content("")
        is_call = step.kind is EntryKind.CALL
        what = plain(step.tool).stylize("bold") if is_call else Content.styled(_HEADS[step.kind], "bold")
        parts = [what, faint(times.local(step.at)) if step.at else Content("")]
        if step.ended_at is not None and step.at:
            parts.append(faint(f"took {times.span(step.ended_at - step.at)}"))
        words, style = _OUTCOMES[step.outcome]
        head = Content("   ").join([part for part in [*parts, Content.styled(words, style)] if part])
        if self._wanted.place:
            head = Content.assemble(head, "\n", faint(f"in {plain(self._wanted.place).plain}"))
        return head if (claim := self._wanted.claim) is None else Content.assemble(_of_claim(claim), "\n", head)

    def _write(self) -> Iterator[Block]:
        step, whole = self._step, self._whole
        if step is None:
            yield text(faint("reading…"))
        elif whole is None:
            yield caution("It is not in the transcript any more. Its line said:")
            yield text(plain(step.about))
        elif whole.said.kind is EntryKind.CALL:
            yield Heading("Given")
            yield Verbatim(written(whole.said.given)) if whole.said.given else text(faint("nothing"))
            yield Heading("Result")
            if whole.result is None:
                yield text(faint("There is none yet."))
            else:
                yield Verbatim(whole.result.text) if whole.result.text.strip() else text(faint("It gave nothing back."))
        elif whole.said.kind is EntryKind.WORDS:
            yield Rich(whole.said.text)
        else:
            yield Verbatim(whole.said.text)
        yield Gap()
