"""The line at the top: the workspace, whether it is live, the tasks that go on now, those that are new or need you."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from rich.cells import cell_len
from textual.reactive import var

from agentwatch.app.theming import Palette
from agentwatch.app.widgets.line import LineWidget, Part, Parts, apart, clip, width_of
from agentwatch.delegation.task import Shown
from agentwatch.sources import Health
from agentwatch.text import shown
from agentwatch.view.words import LOOKS, plural

# Those that go on first, then those that went wrong; those that are over come last.
_GOING_ON = (Shown.WORKING, Shown.WAITING, Shown.SILENT, Shown.UNKNOWN, Shown.SUBMITTED)
_DECIDED = (Shown.RETRYING, Shown.ESCALATED)
_WRONG = (Shown.BLOCKED, Shown.GONE, Shown.FAILED, Shown.INVALID, Shown.PARTIAL, Shown.FALSE)
_COUNTED = (*_GOING_ON, *_DECIDED, *_WRONG, Shown.IDLE, Shown.COMPLETED, Shown.CANCELED)
_GAP = 2  # Cells at the right of the counts that stay free
_ROOMY = 100  # Cells from which the mark stands as far from the workspace's name as the counts do from each other
# Mark and colour of each.
_MODES = {
    "live": ("●", "state-completed"),
    "starting": ("○", ""),
    "polling": ("◍", "state-partial"),
    "degraded": ("▲", "state-failed"),
    "replay": ("▷", "state-partial"),
}


class Facts(NamedTuple):
    """All that the header shows, and that the keys follow from besides the selected task. `title` is foreign.

    `present` says what those tasks are that are counted: the `now` that go on, where those are not all.
    """

    title: str = ""
    health: Health = Health("starting", "")
    connecting: int = 0
    read_only: bool = False
    tasks: int = 0
    now: int = 0
    present: Mapping[Shown, int] = MappingProxyType({})
    verified: int = 0
    notices: int = 0
    new: int = 0
    asking: int = 0
    marked: int = 0
    keys: tuple[object, ...] = ()


class Header(LineWidget):
    """The header of one screen."""

    facts: var[Facts] = var(Facts())

    def watch_facts(self) -> None:
        self.redraw()

    def make_lines(self, width: int, palette: Palette) -> list[Parts]:
        facts, tasks, now, mode = self.facts, self.facts.tasks, self.facts.now, self.facts.health.mode
        why = shown(facts.health.detail, 300) if mode in ("polling", "degraded") else ""
        if connecting := facts.connecting if mode in ("live", "starting") else 0:
            mode = "starting"
        mark, color = _MODES[mode]
        style = palette.states.get(color, palette.muted)
        title = Part(clip(shown(facts.title), max(width // 5, 8)), palette.muted)
        # By the room alone: the mark stays where it is when the gaps behind it become tight.
        program = [Part(" agentwatch", palette.strong), Part("  "), title, Part("   " if width >= _ROOMY else "  ")]
        place, sign = [Part(" "), title, Part("  ")], Part(mark, style)
        word = f"connecting to {plural(connecting, 'host')}" if connecting else mode
        health = [sign, Part(f" {word}", palette.muted if mode == "live" else style)]
        total = [Part("  read only", palette.muted)] if facts.read_only else []
        if tasks or not (connecting or mode == "degraded"):
            total.append(Part(f"   {f'now {now:,}' if now < tasks else plural(tasks, 'task')}"))
        counts, wide = (_counts(gap, facts, palette) for gap in (" ", "   "))
        right = _needs(facts, palette)
        # From the fullest to the barest. The counts give way to a reason.
        ways = [
            [*program, *health, *total, Part(""), *wide],
            [*program, *health, *total, Part("  "), *counts],
            [*place, *health, *total, Part("  "), *counts],
            [*place, sign, Part(""), *counts],
        ]
        least = min(cell_len(why) + 2, width // 3) if why else 0
        for line in ways:
            room = width - width_of([*line, *right]) - _GAP
            if room >= (least if health[1] in line else 0):
                break
        while room < 0 and len(line) > len(place) + 2:
            # A count that does not fit goes, the last one first: cut, it would say another number.
            room += width_of(line[-2:])
            del line[-2:]
        if why and health[1] in line:
            line.insert(line.index(health[1]) + 1, Part(": " + clip(why, room - 2), palette.muted))
        return [apart(line, right, width)]


def _counts(gap: str, facts: Facts, palette: Palette) -> Parts:
    """How many tasks are what, each behind a gap; where that is wide, with all that belongs to a count."""
    parts: Parts = []
    for key in _COUNTED:
        if count := facts.present.get(key):
            face, verified = LOOKS[key], facts.verified if key is Shown.COMPLETED else 0
            words = f" {face.word}" if key is Shown.FALSE else f" ({verified:,} verified)" if verified else ""
            parts.append(Part(f"{gap}{face.glyph} ", palette.states[face.color]))
            parts.append(Part(f"{count:,}{words if len(gap) > 1 else ''}"))
    if facts.notices:
        parts.append(Part(f"{gap}⚠ {facts.notices:,}", palette.states["state-stale"], "screen.notices"))
    return parts


def _needs(facts: Facts, palette: Palette) -> Parts:
    count, new = facts.asking, facts.new
    parts: Parts = []
    if new:
        parts += [Part(f"{new:,} new", palette.accent, "screen.go_unseen(1)"), Part("   " if count else " ")]
    if count:
        words = f"{count:,} need you" if count > 1 else "1 needs you"
        parts += [Part(words, palette.needs, "screen.go_asking(1)"), Part(" ")]
    return parts
