"""Pages over the details: one claimed file, with what git says has changed in it, and one entry of a transcript."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple

from textual import on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.content import Content
from textual.widgets import Static, Tab, Tabs

from agentwatch.app.actions import Home, Place, bindings
from agentwatch.app.guards import leave
from agentwatch.app.markdown_safe import Line, markdown
from agentwatch.app.messages import Inspect, ReadStep, TreeUpdated
from agentwatch.app.screens.detailed import MonitorScreen
from agentwatch.app.widgets.details.blocks import GAP, Block, caution, faint, heading, plain, text
from agentwatch.app.widgets.details.page import Page
from agentwatch.app.widgets.details.source import MARKED, Difference, Listing, language_of_file, read_git
from agentwatch.app.widgets.details.tabs import Entry, claimed, verdict_line
from agentwatch.app.widgets.footer import Footer
from agentwatch.evidence.disk import trace
from agentwatch.evidence.inspect import Inspection, difference, file_text
from agentwatch.sources.files.walk import to_name
from agentwatch.sources.sessions.doing import EntryKind
from agentwatch.sources.sessions.following import Outcome, Step, WholeStep, step_of, written
from agentwatch.text import clean_lines
from agentwatch.view import looks, times

if TYPE_CHECKING:
    from agentwatch.delegation.claims import Call, Claim
    from agentwatch.monitor import Monitor

_ABOVE: Final = 3
"""Lines that are shown above the claimed ones."""
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


def _claim_of(monitor: Monitor, wanted: Inspect) -> Claim | None:
    """The claim that an entry of a task's attestation stands for; None where it is none, or is not there any more."""
    task = monitor.tree.tasks.get(wanted.task_id)
    claims = looks.claims_of(task) if task is not None else []
    return next((claim for claim in claims if Entry.of(claim) == wanted.entry), None)


class _PageScreen(MonitorScreen[None]):
    """A head, a page, and the way back; it looks again each second."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(Home.INSPECT)

    DEFAULT_CSS = """
    _PageScreen #page-head { height: auto; max-height: 8; padding: 0 1 1 1; }
    _PageScreen Tab { color: $text-muted; }
    _PageScreen Tab.-active { color: $foreground; text-style: bold; }
    _PageScreen Underline > .underline--bar { color: $text-accent; background: $border-blurred; }
    """

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
        yield self.header
        yield self._head
        yield self._page
        yield self.footer

    def on_mount(self) -> None:
        self._page.focus()
        self.look()

    def tick(self) -> None:
        super().tick()
        self.look()

    def look(self) -> None:
        """Read what is shown, where it may be another."""
        raise NotImplementedError

    def refresh_tasks(self, event: TreeUpdated) -> None:
        """Show what has changed in the tree."""

    def action_back(self) -> None:
        leave(self)

    def action_switch(self) -> None:
        """There is nothing to switch to."""


# A file


class _Seen(NamedTuple):
    """A file as it was read, and its difference where that was asked for. `lost` says why the file is no more."""

    file: Inspection
    difference: Difference | str | None = None
    lost: str = ""


class InspectScreen(_PageScreen):
    """Shows the file of an entry of the attestation, and follows it while it changes.

    Reading and asking git happen in a thread. Where the file vanishes, what it held stays.
    """

    def __init__(self, monitor: Monitor, clock: Callable[[], float], wanted: Inspect) -> None:
        super().__init__(monitor, clock, wanted.task_id)
        self._wanted, self._entry = wanted, wanted.entry
        self._workspace = monitor.of(wanted.task_id)[0].workspace
        self._claim = _claim_of(monitor, wanted)
        self._file = self._entry.path if not self._entry.kind else self._claim.file if self._claim else None
        self._trace: object = None
        self._seen: _Seen | None = None
        self._is_reading = False
        task = monitor.tree.tasks.get(wanted.task_id)
        self._since = task.latest.handed_off_at if task and task.latest else None
        since = "last commit" if self._since is None else "handoff"
        self._tabs = Tabs(Tab("File", id="file"), Tab(f"Difference since the {since}", id="difference"))
        self._tabs.can_focus = False

    @property
    def inspected(self) -> Path | None:
        """The file that is shown, None if there is none that may be."""
        is_there = self._seen is not None and not self._seen.file.problem and not self._seen.lost
        return self._workspace / to_name(self._file) if self._file and is_there else None

    def compose(self) -> ComposeResult:
        yield self.header
        yield self._head
        yield self._tabs
        yield self._page
        yield self.footer

    def on_mount(self) -> None:
        self._show_head()
        self._show(keep=False)

    def action_switch(self) -> None:
        """From the file to its difference and back."""
        self._tabs.active = "file" if self._tabs.active == "difference" else "difference"

    @on(Tabs.TabActivated)
    def _turn(self) -> None:
        # A commit may have changed the difference, and not the file.
        self._trace = None
        self._show(keep=False)
        self.look()

    def refresh_tasks(self, event: TreeUpdated) -> None:
        if self.task_id in event.changed:
            self._claim = _claim_of(self._monitor, self._wanted) or self._claim
            self._show_head()

    def look(self) -> None:
        if self._file is not None and not self._is_reading:
            self._is_reading = True
            self._read(to_name(self._file), wants_difference=self._tabs.active == "difference")

    @work
    async def _read(self, name: str, *, wants_difference: bool) -> None:
        workspace, before = self._workspace, self._seen
        now = await asyncio.to_thread(trace, f"{workspace}/{name}")
        if before is None or now != self._trace or (wants_difference and before.difference is None):
            file = await asyncio.to_thread(file_text, workspace, name)
            changes = await asyncio.to_thread(_difference, workspace, name, self._since) if wants_difference else None
            is_lost = bool(file.problem) and before is not None and not before.file.problem
            self._seen = _Seen(before.file, changes, file.problem) if before and is_lost else _Seen(file, changes)
            self._trace = now
            self._show(keep=before is not None)
            if before is None:
                marked = next((at for at, line in enumerate(self._page.lines) if line.startswith(MARKED)), 0)
                self._page.scroll_to(y=max(marked - _ABOVE, 0), animate=False)
        self._is_reading = False

    def _show_head(self) -> None:
        path = claimed(self._entry.path, self._entry.lines).stylize("bold")
        words = "this claim is not there any more" if self._entry.kind else "no return claims this change"
        about = verdict_line(self._claim) if self._claim else Content.styled(f"± {words}", "$text-warning")
        self._head.update(Content.assemble(path, "\n", about))

    def _show(self, *, keep: bool) -> None:
        if self._seen is not None and isinstance(changes := self._seen.difference, Difference):
            tab = self._tabs.query_one("#difference", Tab)
            tab.label = Content(f"{tab.label_text.partition('  ')[0]}  {changes.counts}")
        self._page.show(list(self._write()), keep=keep)

    def _write(self) -> Iterator[Block]:
        seen, is_file = self._seen, self._tabs.active != "difference"
        if self._file is None:
            reason = plain(self._claim.detail).plain if self._claim else "the claim names none"
            yield text(Content(f"There is no file to show: {reason}."))
        elif seen is None or (not is_file and seen.difference is None):
            yield text(faint("reading…"))
        else:
            if seen.lost:
                yield caution(f"{seen.lost} This is what was there last.")
                yield GAP
            if isinstance(seen.difference, Difference) and not is_file:
                yield from seen.difference.noted
            elif words := seen.file.problem if is_file else seen.difference:
                yield text(Content(str(words)))
            elif not seen.file.text:
                yield text(faint("The file is empty."))
            else:
                lines, note = clean_lines(seen.file.text.removesuffix("\n"))
                language = language_of_file(self._file, len(seen.file.text))
                yield Listing(lines, language, marked=self._entry.lines)
                if note or seen.file.truncated:
                    yield caution(note or "truncated: the file is longer than is shown")


def _difference(workspace: Path, name: str, since: float | None) -> Difference | str:
    """The words of git, ready to be shown, or in words why there are none. Blocks."""
    inspection = difference(workspace, name, since)
    if inspection.problem:
        return inspection.problem
    changes = read_git(inspection.text, language_of_file(name, len(inspection.text)))
    return changes if changes.rows else "git sees a change, but the text is the same: perhaps its mode has changed."


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
    return ReadStep(transcript, lambda: step, f"{name}, {unit} {call.place[0]:,}", claim)


class Verbatim(NamedTuple):
    """Safe lines as they are; longer ones go on below."""

    source: str

    def lines(self, width: int) -> Iterator[Line]:
        cleaned, note = clean_lines(self.source.rstrip())
        for line in cleaned:
            yield from (Line(part) for part in Content(line).fold(width)) if line else [Line(Content(""))]
        if note:
            yield from caution(note).lines(width)


class StepScreen(_PageScreen):
    """Shows an entry of the transcript; as long as a call has no result, it waits for that."""

    def __init__(self, monitor: Monitor, clock: Callable[[], float], wanted: ReadStep, task_id: str | None) -> None:
        super().__init__(monitor, clock, task_id)
        self._wanted = wanted
        self._step: Step | None = None
        self._whole: WholeStep | None = None
        self._is_reading = False

    def on_mount(self) -> None:
        self._page.show([text(faint("reading…"))], keep=False)

    def is_useless(self, command_id: str) -> bool:
        return command_id in ("inspect.switch", "edit", "copy") or super().is_useless(command_id)

    def look(self) -> None:
        if self._step is None or (self._step.outcome is Outcome.OPEN and not self._wanted.place):
            step = self._wanted.current() or self._step
            if step is not None and step != self._step and not self._is_reading:
                self._is_reading = True
                self._read(step)

    @work
    async def _read(self, step: Step) -> None:
        whole = await asyncio.to_thread(self._wanted.transcript.whole, step)
        self._is_reading = False
        if whole is not None and not step.tool and step.kind is EntryKind.CALL:
            # Nobody has looked at the transcript: only now is known what stands there.
            step = step_of(step.place, whole.said, step.answered, whole.result)
        self._step, self._whole = step, whole or self._whole
        self._head.update(self._about(step))
        self._page.show(list(self._write(step)), keep=True)

    def _about(self, step: Step) -> Content:
        is_call = step.kind is EntryKind.CALL
        parts = [plain(step.tool).stylize("bold") if is_call else Content.styled(_HEADS[step.kind], "bold")]
        if step.at:
            parts.append(faint(times.local(step.at)))
            if step.ended_at is not None:
                parts.append(faint(f"took {times.span(step.ended_at - step.at)}"))
        if words := _OUTCOMES[step.outcome][0]:
            parts.append(Content.styled(words, _OUTCOMES[step.outcome][1]))
        head = Content("   ").join(parts)
        if self._wanted.place:
            head = Content.assemble(head, "\n", faint(f"in {plain(self._wanted.place).plain}"))
        if (claim := self._wanted.claim) is not None:
            path = plain(claim.path).stylize("bold")
            head = Content.assemble(path, "\n", verdict_line(claim), "\n", head)
        return head

    def _write(self, step: Step) -> Iterator[Block]:
        whole = self._whole
        if whole is None:
            yield caution("It is not in the transcript any more. Its line said:")
            yield text(plain(step.about))
        elif whole.said.kind is EntryKind.CALL:
            yield from heading("Given")
            yield Verbatim(written(whole.said.given)) if whole.said.given else text(faint("nothing"))
            yield from heading("Result")
            if whole.result is None:
                yield text(faint("There is none yet."))
            else:
                yield Verbatim(whole.result.text) if whole.result.text.strip() else text(faint("It gave nothing back."))
        elif whole.said.kind is EntryKind.WORDS:
            yield from markdown(whole.said.text)
        else:
            yield Verbatim(whole.said.text)
