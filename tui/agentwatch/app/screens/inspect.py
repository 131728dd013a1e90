"""One claimed file: its text with the claimed lines marked, or what git says has changed in it since the handoff."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.content import Content
from textual.widgets import Static

from agentwatch.app.actions import Home, Place, bindings
from agentwatch.app.leaving import leave
from agentwatch.app.messages import Inspect, TreeUpdated
from agentwatch.app.screens.detailed import MonitorScreen
from agentwatch.app.widgets.details.attestation import Entry, claimed
from agentwatch.app.widgets.details.blocks import Block, Gap, caution, faint, in_color, plain, text
from agentwatch.app.widgets.details.head import Count, TabBar
from agentwatch.app.widgets.details.highlighting import language_of_file
from agentwatch.app.widgets.details.listing import MARKED, Difference, Listing, read_git
from agentwatch.app.widgets.details.page import Page
from agentwatch.app.widgets.footer import Footer
from agentwatch.evidence.disk import trace
from agentwatch.evidence.inspect import Inspection, difference, file_text
from agentwatch.sources.files.walk import to_name
from agentwatch.text import clean_lines
from agentwatch.view import looks

if TYPE_CHECKING:
    from agentwatch.delegation.claims import Claim
    from agentwatch.monitor import Monitor

_ABOVE: Final = 3
"""Lines that are shown above the claimed ones."""


class _Seen(NamedTuple):
    """What was seen: the file, and its difference where that was asked for. `lost` says why the file is no more."""

    file: Inspection
    difference: Difference | str | None = None
    lost: str = ""


class InspectScreen(MonitorScreen[None]):
    """Shows the file of an entry of the attestation, and follows it while it changes.

    Reading and asking git happen in a thread. Where the file vanishes, what it held stays.
    """

    BINDINGS: ClassVar[list[BindingType]] = bindings(Home.INSPECT)

    DEFAULT_CSS = "InspectScreen #inspect-head { height: auto; max-height: 6; padding: 0 1 1 1; }"

    def __init__(self, monitor: Monitor, clock: Callable[[], float], wanted: Inspect) -> None:
        super().__init__(monitor, clock)
        self._entry = entry = wanted.entry
        self._task_id = wanted.task_id
        self._workspace = monitor.of(wanted.task_id)[0].workspace
        self._claim = self._find_claim()
        self._file = entry.path if not entry.kind else self._claim.file if self._claim else None
        self._trace: object = None
        self._look: _Seen | None = None
        self._looking = False
        self._head = Static(id="inspect-head", markup=False)
        since = "last commit" if self._handed_off_at is None else "handoff"
        self._bar = TabBar((("file", "File"), ("difference", f"Difference since the {since}")))
        self._page = Page()
        self.footer = Footer(Place.INSPECT, is_useless=self.is_out_of_question)

    @property
    def task_id(self) -> str:
        return self._task_id

    @property
    def inspected(self) -> Path | None:
        """The file that is shown, None if there is none that may be."""
        is_there = self._look is not None and not self._look.file.problem and not self._look.lost
        return self._workspace / to_name(self._file) if self._file and is_there else None

    def compose(self) -> ComposeResult:
        yield self.header
        yield self._head
        yield self._bar
        yield self._page
        yield self.footer

    def on_mount(self) -> None:
        self._page.focus()
        self._show_head()
        self._show(keep=False)
        self._look_again()

    def tick(self) -> None:
        super().tick()
        self._look_again()

    def action_back(self) -> None:
        leave(self)

    def action_switch(self) -> None:
        """From the file to its difference and back."""
        self._turn("file" if self._bar.active == "difference" else "difference")

    @on(TabBar.Chosen)
    def _chosen(self, event: TabBar.Chosen) -> None:
        self._turn(event.tab_id)

    def _turn(self, tab_id: str) -> None:
        self._bar.active = tab_id
        # A commit may have changed the difference, and not the file.
        self._trace = None
        self._show(keep=False)
        self._look_again()

    def refresh_tasks(self, event: TreeUpdated) -> None:
        if self.task_id in event.changed:
            self._claim = self._find_claim() or self._claim
            self._show_head()

    # Looking

    @property
    def _handed_off_at(self) -> float | None:
        task = self._monitor.tree.tasks.get(self.task_id)
        latest = task.latest if task else None
        return latest.handed_off_at if latest else None

    def _find_claim(self) -> Claim | None:
        task = self._monitor.tree.tasks.get(self.task_id)
        return next(
            (claim for claim in (looks.claims_of(task) if task else ()) if Entry.of(claim) == self._entry), None
        )

    def _look_again(self) -> None:
        """Read the file again if it has changed."""
        if self._file is not None and not self._looking:
            self._looking = True
            self.run_worker(self._read(to_name(self._file), wants_difference=self._bar.active == "difference"))

    async def _read(self, name: str, *, wants_difference: bool) -> None:
        workspace = self._workspace
        now = await asyncio.to_thread(trace, f"{workspace}/{name}")
        before = self._look
        if before is None or now != self._trace or (wants_difference and before.difference is None):
            file = await asyncio.to_thread(file_text, workspace, name)
            changes = None
            if wants_difference:
                changes = await asyncio.to_thread(_difference, workspace, name, self._handed_off_at)
            if file.problem and before is not None and not before.file.problem:
                self._look = _Seen(before.file, changes, lost=file.problem)
            else:
                self._look = _Seen(file, changes)
            self._trace = now
            self._show(keep=before is not None)
            if before is None:
                self.call_after_refresh(self._go_to_lines)
        self._looking = False

    # Showing

    def _show_head(self) -> None:
        claim = self._claim
        path = claimed(self._entry.path, self._entry.lines).stylize("bold")
        if claim is None:
            words = "no return claims this change" if not self._entry.kind else "this claim is not there any more"
            self._head.update(Content.assemble(path, "\n", (f"± {words}", "$text-warning")))
            return
        verdict = in_color(looks.VERDICTS[claim.verdict])
        kind = faint(claim.kind.replace("_", " "))
        self._head.update(Content.assemble(path, "\n", verdict, "   ", kind, "   ", faint(plain(claim.detail).plain)))

    def _show(self, *, keep: bool) -> None:
        look = self._look
        if look is not None and isinstance(look.difference, Difference):
            self._bar.counts = {"difference": Count(f"+{look.difference.added} −{look.difference.removed}", "")}
        self._page.show(self._write, keep=keep)

    def _go_to_lines(self) -> None:
        """Bring the claimed lines into view."""
        marked = next((number for number, line in enumerate(self._page.lines) if line.startswith(MARKED)), 0)
        self._page.scroll_to(y=max(marked - _ABOVE, 0), animate=False)

    def _write(self) -> Iterator[Block]:
        look = self._look
        if self._file is None:
            reason = plain(self._claim.detail).plain if self._claim else "the claim names none"
            yield text(Content(f"There is no file to show: {reason}."))
        elif look is None or (self._bar.active == "difference" and look.difference is None):
            yield text(faint("reading…"))
        else:
            if look.lost:
                yield caution(f"{look.lost} This is what was there last.")
                yield Gap()
            if self._bar.active == "file":
                yield from self._write_file(look.file)
            elif isinstance(look.difference, str):
                yield text(Content(look.difference))
            elif look.difference is not None:
                yield from look.difference.noted

    def _write_file(self, file: Inspection) -> Iterator[Block]:
        if file.problem:
            yield text(Content(file.problem))
            return
        if not file.text:
            yield text(faint("The file is empty."))
            return
        lines, note = clean_lines(file.text.removesuffix("\n"))
        language = language_of_file(self._file or "", len(file.text))
        yield Listing(lines, language, marked=self._entry.lines)
        if note or file.truncated:
            yield caution(note or "truncated: the file is longer than is shown")


def _difference(workspace: Path, name: str, handed_off_at: float | None) -> Difference | str:
    """What git says, ready to be shown, or in words why it says nothing. Blocks."""
    inspection = difference(workspace, name, handed_off_at)
    if inspection.problem:
        return inspection.problem
    changes = read_git(inspection.text, language_of_file(name, len(inspection.text)))
    return changes if changes.rows else "git sees a change, but the text is the same: perhaps its mode has changed."
