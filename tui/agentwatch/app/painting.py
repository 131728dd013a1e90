"""Renders the lines that have changed. Textual renders every widget between the first and the last of them, whole: a
count in the header and a row at the bottom cost it the whole screen."""

from __future__ import annotations

from collections import defaultdict

from textual._compositor import ChopsUpdate, Compositor
from textual.geometry import Region
from textual.strip import Strip


class Painter(Compositor):
    """What a screen composes with."""

    def render_partial_update(self) -> ChopsUpdate | None:
        screen, dirty = self.size.region, self._dirty_regions.copy()
        self._dirty_regions.clear()
        spans = list(self._regions_to_spans(one for region in dirty if (one := region.intersection(screen))))
        if not spans:
            return None
        wanted = defaultdict[int, list[tuple[int, int]]](list)
        for y, start, end in spans:
            wanted[y].append((start, end))
        cuts = self.cuts
        lines: list[dict[int, Strip | None]] = [{}] * len(cuts)
        for y in wanted:
            lines[y] = dict.fromkeys(cuts[y][:-1])
        # From front to back: what is covered is left out.
        for widget, (region, clip) in self.visible_widgets.items():
            shown = region.intersection(clip)
            left, right = shown.column_span
            rows = [
                y
                for y, parts in wanted.items()
                if shown.y <= y < shown.bottom
                and any(start < right and left < end for start, end in parts)
                and any(strip is None and left <= cut < right for cut, strip in lines[y].items())
            ]
            if not rows:
                continue
            first = min(rows)
            place = Region(left - region.x, first - region.y, shown.width, max(rows) - first + 1)
            strips = widget.render_lines(place)
            for y in rows:
                inside = [cut for cut in cuts[y] if left <= cut <= right]
                pieces = strips[y - first].divide([cut - left for cut in inside[1:]])
                for cut, piece in zip(inside, pieces, strict=False):
                    if lines[y].get(cut) is None:
                        lines[y][cut] = piece
        return ChopsUpdate(lines, spans, [line_cuts[1:] for line_cuts in cuts])
