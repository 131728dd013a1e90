"""Pages over the details: one claimed file, with what git says has changed in it, and one entry of a transcript."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Final

from textual import work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.content import Content
from textual.widgets import Static

from agentwatch.app.actions import Home, Place, bindings
from agentwatch.app.editor import HEADS
from agentwatch.app.messages import Inspect, ReadStep
from agentwatch.app.screens.detailed import MonitorScreen
from agentwatch.app.widgets.details.blocks import (
    FAINT,
    Block,
    Text,
    caution,
    faint,
    heading,
    in_color,
    markdown,
    plain,
    text,
)
from agentwatch.app.widgets.details.documents import MARKED, Listing, read_git
from agentwatch.app.widgets.details.page import Page
from agentwatch.app.widgets.details.tabs import about, claimed
from agentwatch.app.widgets.footer import Footer
from agentwatch.delegation.claims import Claim
from agentwatch.evidence.inspect import difference, file_text
from agentwatch.sources.files.walk import to_name
from agentwatch.sources.sessions.entries import EntryKind
from agentwatch.sources.sessions.following import Outcome, Step, WholeStep, step_of, written
from agentwatch.text import clean_lines
from agentwatch.view import looks, times

if TYPE_CHECKING:
    from agentwatch.monitor import Monitor

_OUTCOMES: Final = {
    Outcome.OPEN: ("no result yet", "$state-working"),
    Outcome.DONE: ("", ""),
    Outcome.FAILED: ("✗ failed", "$text-error"),
    Outcome.REFUSED: ("⊘ refused: it was not allowed to run", "$text-warning"),
}


def _head_of(claim: Claim) -> Content:
    """The name of a claim, its verdict, and what that rests on."""
    return Content.assemble(
        claimed(claim).stylize("bold"), "\n", in_color(looks.VERDICTS[claim.verdict]), "   ", about(claim)
    )


class _PageScreen(MonitorScreen[None]):
    """A head, a page, and the way back."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(Home.INSPECT)

    DEFAULT_CSS = "_PageScreen #page-head { height: auto; max-height: 8; padding: 0 1 1 1; }"

    def __init__(self, monitor: Monitor, clock: Callable[[], float], task_id: str | None) -> None:
        super().__init__(monitor, clock)
        self._task_id = task_id
        self._head = Static(id="page-head", markup=False)
        self._page = Page()
        self.footer = Footer(Place.INSPECT, is_useless=self.is_out_of_question)

    @property
    def task_id(self) -> str | None:
        return self._task_id

    def compose(self) -> ComposeResult:
        yield from (self.header, self._head, self._page, self.footer)

    def on_mount(self) -> None:
        self._page.focus()
        self._page.show([text(faint("reading…"))], keep=False)
        self.read()

    @work(exclusive=True)
    async def read(self) -> None:
        """Show what there is now, from the first line that a claim names."""
        head, blocks = await asyncio.to_thread(self.write)
        self._head.update(head)
        self._page.show(blocks, keep=False)
        marked = next((at for at, line in enumerate(self._page.lines) if line.startswith(MARKED)), 0)
        self._page.scroll_to(y=max(marked - 3, 0), animate=False)

    def write(self) -> tuple[Content, list[Block]]:
        """The head and the page. Blocks."""
        raise NotImplementedError

    def action_back(self) -> None:
        self.leave()


class InspectScreen(_PageScreen):
    """Shows the file of a claim, or its difference; each is read anew when it comes to the front."""

    def __init__(self, monitor: Monitor, clock: Callable[[], float], task_id: str, claim: Claim) -> None:
        super().__init__(monitor, clock, task_id)
        task = monitor.tree.tasks.get(task_id)
        self._since = task.latest.handed_off_at if task and task.latest else None
        self._claim = claim
        self._shows_changes = False
        self._workspace = monitor.of(task_id)[0].workspace
        self.inspected: Path | None = None
        """The file that is shown, None if there is none that may be."""

    def action_switch(self) -> None:
        """From the file to its difference and back."""
        self._shows_changes = not self._shows_changes
        self.read()

    def write(self) -> tuple[Content, list[Block]]:
        titles = "File", f"Difference since the {'last commit' if self._since is None else 'handoff'}"
        styles = (FAINT, "bold") if self._shows_changes else ("bold", FAINT)
        tabs = Content("   ").join(map(Content.styled, titles, styles))
        name, blocks = to_name(self._claim.file or self._claim.path), list[Block]()
        if self._shows_changes:
            found = difference(self._workspace, name, self._since)
            changes = read_git(found.text)
            blocks = [text(changes.counted), *changes.noted] if changes.rows else []
        else:
            found = file_text(self._workspace, name)
            self.inspected = None if found.problem else self._workspace / name
            if found.text:
                lines, note = clean_lines(found.text.removesuffix("\n"))
                cut = note or ("truncated: the file is longer than is shown" if found.truncated else "")
                blocks = [Listing(lines, marked=self._claim.lines or (0, -1)), *([caution(cut)] if cut else [])]
        nothing = text(Content(found.problem or "There is no text to show."))
        return Content.assemble(_head_of(self._claim), "\n\n", tabs), blocks or [nothing]


def reading_of(monitor: Monitor, wanted: Inspect) -> ReadStep | None:
    """How to read the call that a claim rests on; None where its transcript is not to be had."""
    (own, _), call = monitor.of(wanted.task_id), wanted.claim.call
    run = next(iter(own.tree.runs.of_session((call.source, call.session_id))), None) if call is not None else None
    transcript = own.transcript(run) if run is not None else None
    if call is None or run is None or transcript is None:
        return None
    step = Step(call.place, EntryKind.CALL, call.at, answered=call.answered)
    name = run.place.rpartition("/")[2]
    unit = "byte" if name.endswith(".jsonl") else "record"
    return ReadStep(transcript, step, f"{name}, {unit} {call.place[0]:,}", wanted.claim)


class StepScreen(_PageScreen):
    """Shows an entry of the transcript, as it stands there now."""

    def __init__(self, monitor: Monitor, clock: Callable[[], float], wanted: ReadStep, task_id: str | None) -> None:
        super().__init__(monitor, clock, task_id)
        self._wanted = wanted

    def is_useless(self, command_id: str) -> bool:
        return command_id in ("inspect.switch", "edit", "copy") or super().is_useless(command_id)

    def write(self) -> tuple[Content, list[Block]]:
        step, place, claim = self._wanted.step, self._wanted.place, self._wanted.claim
        whole = self._wanted.transcript.whole(step)
        if whole is not None and not step.tool and step.kind is EntryKind.CALL:
            # Nobody has looked at the transcript: only now is known what stands there.
            step = step_of(step.place, whole.said, step.answered, whole.result)
        parts = [
            (plain(step.tool).plain if step.kind is EntryKind.CALL else HEADS[step.kind], "bold"),
            (times.local(step.at) if step.at else "", FAINT),
            ("" if step.ended_at is None else f"took {times.span(step.ended_at - step.at)}", FAINT),
            _OUTCOMES[step.outcome],
        ]
        head = Content("   ").join(Content.styled(*part) for part in parts if part[0])
        where = f"\nin {plain(place).plain}" if place else ""
        of_claim = _head_of(claim) + Content("\n") if isinstance(claim, Claim) else ""
        return Content.assemble(of_claim, head, (where, FAINT)), list(_write_step(step, whole))


def _write_step(step: Step, whole: WholeStep | None) -> Iterator[Block]:
    if whole is None:
        yield caution("It is not in the transcript any more. Its line said:")
        yield text(plain(step.about))
    elif whole.said.kind is EntryKind.CALL:
        result = "There is none yet." if whole.result is None else whole.result.text.strip() or "It gave nothing back."
        yield from heading("Given")
        yield from _verbatim(written(whole.said.given) or "nothing")
        yield from heading("Result")
        yield from _verbatim(result)
    elif whole.said.kind is EntryKind.WORDS:
        yield from markdown(whole.said.text)
    else:
        yield from _verbatim(whole.said.text)


def _verbatim(source: str) -> Iterator[Block]:
    """Safe lines as they are; longer ones go on below."""
    lines, note = clean_lines(source.rstrip())
    yield from (Text(Content(line), wrap=False) for line in lines)
    yield from [caution(note)] if note else []
