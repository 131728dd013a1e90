"""Pages over the details: one claimed file, with what git says has changed in it, and one entry of a transcript."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Final

from textual import events, on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.content import Content
from textual.widgets import Static, Tab, Tabs

from agentwatch.app.actions import Home, Place, bindings
from agentwatch.app.editor import HEADS
from agentwatch.app.markdown_safe import Text, markdown
from agentwatch.app.messages import Inspect, ReadStep
from agentwatch.app.screens.detailed import MonitorScreen
from agentwatch.app.widgets.details.blocks import Block, caution, faint, heading, plain, text
from agentwatch.app.widgets.details.page import Page
from agentwatch.app.widgets.details.source import MARKED, Listing, language_of_file, read_git
from agentwatch.app.widgets.details.tabs import Entry, claimed, verdict_line
from agentwatch.app.widgets.footer import Footer
from agentwatch.evidence.inspect import difference, file_text
from agentwatch.sources.files.walk import to_name
from agentwatch.sources.sessions.entries import EntryKind
from agentwatch.sources.sessions.following import Outcome, Step, WholeStep, step_of, written
from agentwatch.text import clean_lines
from agentwatch.view import looks, times

if TYPE_CHECKING:
    from agentwatch.delegation.claims import Call, Claim
    from agentwatch.monitor import Monitor

_ABOVE: Final = 3
"""Lines that are shown above the claimed ones."""
_OUTCOMES: Final = {
    Outcome.OPEN: ("no result yet", "$state-working"),
    Outcome.DONE: ("", ""),
    Outcome.FAILED: ("✗ failed", "$text-error"),
    Outcome.REFUSED: ("⊘ refused: it was not allowed to run", "$text-warning"),
}


def _claim_of(monitor: Monitor, wanted: Inspect) -> Claim | None:
    """The claim that an entry of a task's attestation stands for; None where it is none, or is not there any more."""
    task = monitor.tree.tasks.get(wanted.task_id)
    claims = looks.claims_of(task) if task is not None else []
    return next((claim for claim in claims if Entry.of(claim) == wanted.entry), None)


class _PageScreen(MonitorScreen[None]):
    """A head, a page, and the way back."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(Home.INSPECT)

    DEFAULT_CSS = """
    _PageScreen #page-head { height: auto; max-height: 8; padding: 0 1 1 1; }
    _PageScreen Tab { color: $text-muted; }
    _PageScreen Tab.-active { color: $foreground; text-style: bold; }
    _PageScreen Underline > .underline--bar { color: $text-accent; background: $border-blurred; }
    """

    def __init__(self, monitor: Monitor, clock: Callable[[], float], task_id: str | None, *tabs: Tab) -> None:
        super().__init__(monitor, clock)
        self._task_id = task_id
        self._head = Static(id="page-head", markup=False)
        self._tabs = Tabs(*tabs)
        self._tabs.can_focus, self._tabs.display = False, bool(tabs)
        self._page = Page()
        self.footer = Footer(Place.INSPECT, is_useless=self.is_out_of_question)

    @property
    def task_id(self) -> str | None:
        return self._task_id

    def compose(self) -> ComposeResult:
        yield from (self.header, self._head, self._tabs, self._page, self.footer)

    def on_mount(self) -> None:
        self._page.focus()
        self._page.show([text(faint("reading…"))], keep=False)

    def action_back(self) -> None:
        self.leave()


class InspectScreen(_PageScreen):
    """Shows the file of a claim, and its difference; each is read anew when it comes to the front."""

    def __init__(self, monitor: Monitor, clock: Callable[[], float], wanted: Inspect) -> None:
        task = monitor.tree.tasks.get(wanted.task_id)
        self._since = task.latest.handed_off_at if task and task.latest else None
        since = "last commit" if self._since is None else "handoff"
        tabs = Tab("File", id="file"), Tab(f"Difference since the {since}", id="difference")
        super().__init__(monitor, clock, wanted.task_id, *tabs)
        self._wanted = wanted
        self._claim = _claim_of(monitor, wanted)
        self._file = self._claim.file if self._claim else None
        self._workspace = monitor.of(wanted.task_id)[0].workspace
        self.inspected: Path | None = None
        """The file that is shown, None if there is none that may be."""

    def on_mount(self) -> None:
        entry, claim = self._wanted.entry, self._claim
        about = verdict_line(claim) if claim else Content.styled("this claim is not there any more", "$text-warning")
        self._head.update(Content.assemble(claimed(entry.path, entry.lines).stylize("bold"), "\n", about))

    def action_switch(self) -> None:
        """From the file to its difference and back."""
        self._tabs.active = "file" if self._tabs.active == "difference" else "difference"

    @on(Tabs.TabActivated)
    @work(exclusive=True)
    async def _read(self) -> None:
        if self._file is None:
            reason = plain(self._claim.detail).plain if self._claim else "the claim names none"
            self._page.show([text(Content(f"There is no file to show: {reason}."))], keep=False)
            return
        name, lines = to_name(self._file), self._wanted.entry.lines
        write = self._changes if self._tabs.active == "difference" else self._listing
        self._page.show(await asyncio.to_thread(write, name), keep=False)
        marked = next((at for at, line in enumerate(self._page.lines) if lines and line.startswith(MARKED)), 0)
        self._page.scroll_to(y=max(marked - _ABOVE, 0), animate=False)

    def _listing(self, name: str) -> list[Block]:
        """The text of the file. Blocks."""
        file = file_text(self._workspace, name)
        self.inspected = None if file.problem else self._workspace / name
        if file.problem or not file.text:
            return [text(Content(file.problem or "The file is empty."))]
        lines, note = clean_lines(file.text.removesuffix("\n"))
        cut = note or ("truncated: the file is longer than is shown" if file.truncated else "")
        listing = Listing(lines, language_of_file(name, len(file.text)), marked=self._wanted.entry.lines)
        return [listing, *([caution(cut)] if cut else [])]

    def _changes(self, name: str) -> list[Block]:
        """The words of git about the file, or in words why there are none. Blocks."""
        inspection = difference(self._workspace, name, self._since)
        changes = read_git(inspection.text, language_of_file(name, len(inspection.text)))
        if inspection.problem or not changes.rows:
            return [text(Content(inspection.problem or "git sees a change of its mode, and none of its text."))]
        return [text(changes.counted), *changes.noted]


# An entry of a transcript


def reading_of(monitor: Monitor, wanted: Inspect, call: Call) -> ReadStep | None:
    """How to read a call that an entry of a task's attestation rests on; None where its transcript is not to be had."""
    own, task_id = monitor.of(wanted.task_id)
    run = next(iter(own.tree.runs.of_session((call.source, call.session_id))), None)
    transcript = own.transcript(run) if run is not None else None
    if run is None or transcript is None:
        return None
    step = Step(call.place, EntryKind.CALL, call.at, answered=call.answered)
    name = run.place.rpartition("/")[2]
    unit = "byte" if name.endswith(".jsonl") else "record"
    claim = _claim_of(own, Inspect(task_id, wanted.entry))
    return ReadStep(transcript, step, f"{name}, {unit} {call.place[0]:,}", claim)


def _verbatim(source: str) -> Iterator[Block]:
    """Safe lines as they are; longer ones go on below."""
    lines, note = clean_lines(source.rstrip())
    yield from (Text(Content(line), wrap=False) for line in lines)
    yield from [caution(note)] if note else []


class StepScreen(_PageScreen):
    """Shows an entry of the transcript, as it stands there now."""

    def __init__(self, monitor: Monitor, clock: Callable[[], float], wanted: ReadStep, task_id: str | None) -> None:
        super().__init__(monitor, clock, task_id)
        self._wanted = wanted

    def is_useless(self, command_id: str) -> bool:
        return command_id in ("inspect.switch", "edit", "copy") or super().is_useless(command_id)

    @on(events.Mount)
    @work
    async def _read(self) -> None:
        step = self._wanted.step
        whole = await asyncio.to_thread(self._wanted.transcript.whole, step)
        if whole is not None and not step.tool and step.kind is EntryKind.CALL:
            # Nobody has looked at the transcript: only now is known what stands there.
            step = step_of(step.place, whole.said, step.answered, whole.result)
        self._head.update(self._about(step))
        self._page.show(list(_write_step(step, whole)), keep=False)

    def _about(self, step: Step) -> Content:
        is_call = step.kind is EntryKind.CALL
        parts = [plain(step.tool).stylize("bold") if is_call else Content.styled(HEADS[step.kind], "bold")]
        if step.at:
            parts.append(faint(times.local(step.at)))
            if step.ended_at is not None:
                parts.append(faint(f"took {times.span(step.ended_at - step.at)}"))
        if _OUTCOMES[step.outcome][0]:
            parts.append(Content.styled(*_OUTCOMES[step.outcome]))
        lines = [Content("   ").join(parts)]
        if self._wanted.place:
            lines.append(faint(f"in {plain(self._wanted.place).plain}"))
        if (claim := self._wanted.claim) is not None:
            lines = [plain(claim.path).stylize("bold"), verdict_line(claim), *lines]
        return Content("\n").join(lines)


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
