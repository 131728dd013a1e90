"""The line at the top: the workspace, whether watching works, and counts of tasks."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from rich.cells import cell_len
from textual.reactive import var

from agentwatch.app.theming import Palette
from agentwatch.app.widgets.line import LineWidget, Part, Parts, clip, join_ends, width_of
from agentwatch.delegation.task import Shown
from agentwatch.sources import Health
from agentwatch.text import clean_row
from agentwatch.view.words import LOOKS, plural

# The order of the counts: tasks that go on, tasks that went wrong, tasks that are over.
_GOING_ON = (Shown.WORKING, Shown.WAITING, Shown.SILENT, Shown.UNKNOWN, Shown.SUBMITTED)
_DECIDED = (Shown.RETRYING, Shown.ESCALATED)
_WRONG = (Shown.BLOCKED, Shown.GONE, Shown.FAILED, Shown.INVALID, Shown.PARTIAL, Shown.FALSE)
_COUNTED = (*_GOING_ON, *_DECIDED, *_WRONG, Shown.IDLE, Shown.COMPLETED, Shown.CANCELED)
_GAP = 2  # cells that stay free to the right of the counts
_ROOMY = 100  # cells: from this width on, the gap before the health mark is wide
# The health mark and its colour for each health mode.
_MODES = {
    "live": ("●", "state-completed"),
    "starting": ("○", ""),
    "polling": ("◍", "state-partial"),
    "degraded": ("▲", "state-failed"),
    "replay": ("▷", "state-partial"),
}


class Facts(NamedTuple):
    """The values that header and footer show, apart from the selected task. `title` is untrusted.

    `now` is the number of tasks in the group NOW. `present` has the number of these tasks in each state.
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
    footer_facts: tuple[object, ...] = ()


class Header(LineWidget):
    """The header of one screen."""

    facts: var[Facts] = var(Facts())

    def watch_facts(self) -> None:
        self.redraw()

    def make_lines(self, width: int, palette: Palette) -> list[Parts]:
        facts, tasks, now, mode = self.facts, self.facts.tasks, self.facts.now, self.facts.health.mode
        why = clean_row(facts.health.detail, 300) if mode in ("polling", "degraded") else ""
        if connecting := facts.connecting if mode in ("live", "starting") else 0:
            mode = "starting"
        mark, color = _MODES[mode]
        style = palette.states.get(color, palette.muted)
        title = Part(clip(clean_row(facts.title), max(width // 5, 8)), palette.muted)
        # This gap depends only on the width, so that the mark keeps its place.
        full_title = [Part(" agentwatch", palette.strong), Part("  "), title, Part("   " if width >= _ROOMY else "  ")]
        short_title, mark_part = [Part(" "), title, Part("  ")], Part(mark, style)
        word = f"connecting to {plural(connecting, 'host')}" if connecting else mode
        health = [mark_part, Part(f" {word}", palette.muted if mode == "live" else style)]
        total = [Part("  read only", palette.muted)] if facts.read_only else []
        if tasks or not (connecting or mode == "degraded"):
            total.append(Part(f"   {f'now {now:,}' if now < tasks else plural(tasks, 'task')}"))
        counts, wide = (_count_parts(gap, facts, palette) for gap in (" ", "   "))
        right = _attention_parts(facts, palette)
        # Take the first variant that fits. A problem with watching needs room for its reason, so the counts get narrow.
        variants = [
            [*full_title, *health, *total, Part(""), *wide],
            [*full_title, *health, *total, Part("  "), *counts],
            [*short_title, *health, *total, Part("  "), *counts],
            [*short_title, mark_part, Part(""), *counts],
        ]
        least = min(cell_len(why) + 2, width // 3) if why else 0
        for line in variants:
            room = width - width_of([*line, *right]) - _GAP
            if room >= (least if health[1] in line else 0):
                break
        while room < 0 and len(line) > len(short_title) + 2:
            # Drop counts at the end until the line fits. A count that is cut would show a wrong number.
            room += width_of(line[-2:])
            del line[-2:]
        if why and health[1] in line:
            line.insert(line.index(health[1]) + 1, Part(": " + clip(why, room - 2), palette.muted))
        return [join_ends(line, right, width)]


def _count_parts(gap: str, facts: Facts, palette: Palette) -> Parts:
    """Return the counts of tasks by state, each after `gap`. With a wide gap, some counts have words, too."""
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


def _attention_parts(facts: Facts, palette: Palette) -> Parts:
    count, new = facts.asking, facts.new
    parts: Parts = []
    if new:
        parts += [Part(f"{new:,} new", palette.accent, "screen.go_unseen(1)"), Part("   " if count else " ")]
    if count:
        words = f"{count:,} need you" if count > 1 else "1 needs you"
        parts += [Part(words, palette.needs_you, "screen.go_asking(1)"), Part(" ")]
    return parts
