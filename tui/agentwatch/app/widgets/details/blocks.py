"""Blocks that lay themselves out into lines of a given width: foreign Markdown, documents, sources and differences;
and the page that draws their lines.

markdown-it-py is not used, because hostile input of 16 KiB took it 0.8 s; the scanner here looks at each character a
bounded number of times. A link or an image is shown as its text and address and cannot be clicked; unknown markup, such
as HTML, is shown as written. Every line passes `agentwatch.text` first, so that no control character gets here.
"""

import json
import re
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from difflib import unified_diff
from itertools import chain
from typing import Any, NamedTuple, Protocol

from textual import events, on
from textual.content import Content
from textual.geometry import Region, Size
from textual.reactive import reactive
from textual.scroll_view import ScrollView
from textual.selection import Selection
from textual.strip import Strip
from textual.style import Style
from textual.visual import Visual
from textual.widgets import Static

from agentwatch.app.actions import Home, bindings
from agentwatch.contracts.shapes import Finding
from agentwatch.text import LINE_LIMIT, clean, clean_lines, clean_row, clean_summary, safe_pieces
from agentwatch.view.words import SEVERITIES, Look

LABEL_WIDTH = 12
_QUOTED = 13  # cells of the column with the labels of foreign words
TRUNCATED = "truncated: "  # the beginning of our line that says that something was cut
MAX_LINES = 4_000  # the most lines of all blocks together
# The most lines and characters of one Markdown string; an agent's note has one or two screens.
_MARKDOWN = 1_000, 64 * 1024
_MAX_INDENT = 8  # the most columns of nesting: deeper lists would leave no room for their text

ACCENT = "bold $text-accent"
FAINT = ".details--faint"  # a component class of the screens, so that it is dim in a theme of sixteen colours
_CODE = "$text-secondary"
_ADDRESS = "$text-muted underline"
NOTHING = Content("")

_HEADING = re.compile(r"(#{1,6})(?: +|$)")
_ITEM = re.compile(r"([-*+]|\d{1,9}[.)]) +")
_FENCE = re.compile(r"`{3,}|~{3,}")
# No part may hold its own end character, so that a failed match looks at each character only a few times.
_INLINE = re.compile(
    r"(?<!`)(`{1,3})(?P<code>[^`]+)\1(?!`)"
    r"|(?P<mark>(?P<stars>\*{1,3})|~~|(?<![^\W_])__?)(?=\S)(?P<inner>(?(stars)[^*]|[^~_])+)(?<=\S)(?P=mark)(?!(?<=_)\w)"
    r"|!?\[(?P<words>[^\[\]]*)\]\((?P<address>[^()\s]+)\)"
)
_EMPHASIS = {"*": "italic", "_": "italic", "**": "bold", "__": "bold", "***": "bold italic", "~~": "strike"}
MAX_DEPTH = 8  # the most levels of a JSON value that are written out; only the Raw tab shows deeper ones
_RENAMED = (
    "reported_state=state error_code=error error_message=message retry_recommended=retry retry_hint=hint task_id=task "
    "agent_name=agent agent_type=agent session_id=session delegation_path=path delegation_depth=depth "
    "duration_seconds=seconds execution_time_seconds=seconds confidence_level=confidence token_usage=tokens "
    "verbosity_level=level parent_task_id=parent decision_id=decision handoff_schema=schema phase_count=phases "
    "estimated_hours=hours findings_count=findings requires_user_review=review review_reason=because "
    "phases_completed=phases_done phases_total=phases identified_gaps=gaps attestation=runtime_attestation "
    "runtime_model_reported=model runtime_mode_reported=mode files_created=created files_modified=modified "
    "limitations=limits more=more_that_it_says"
)
# The labels of keys that are not shown under their own names.
_LABELS = dict(pair.split("=") for pair in _RENAMED.split())
_MARKS = {"blockers": ("■", "$state-blocked"), "recommendations": ("→", FAINT), "identified_gaps": ("○", FAINT)}
_MUST = {"required": "must read", "must_create": "must create"}
MARKED = "▌"  # stands before the lines that a claim names
_UNMARKED = Look(" ", "", "text")
_NAMED = Look(MARKED, "", "text-accent")
_MESSAGES = 3  # the most findings below one line of source, because a hostile line can break any number of rules
# A string ends at its quotation mark or at the end of the line, so that a match looks at each character at most twice.
_SOURCE = re.compile(
    r'(?P<title>^#{1,6}\s.*)|(?P<key>"(?:[^"\\]|\\.)*"(?=\s*:)|^[-* ]*\w[\w .-]{0,40}\**(?=:(?:\s|$)))'
    r'|(?P<string>"(?:[^"\\]|\\.)*"?)'
)
_STYLES = {"title": "bold", "key": "$text-primary", "string": "$text-success"}
_FENCES = re.compile(r"(?m)^(```.*\n)")
_HUNK = re.compile(r"@@ -(\d{1,9})(?:,\d{1,9})? \+(\d{1,9})(?:,\d{1,9})? @@ ?(.*)")
_SIGNS = {"+": "$text-success", "-": "$text-error", " ": ""}


class Line(NamedTuple):
    """One line on screen. Lines with the same `choice` form an entry that the cursor can select; they begin with a
    blank for the cursor's mark."""

    content: Content
    choice: Hashable = None


class Block(Protocol):
    """A part of a tab."""

    def lines(self, width: int) -> Iterator[Line]:
        """Yield the lines of the block, none wider than `width` cells."""


class Text(NamedTuple):
    """A paragraph: `first` is put before its first line, `rest` before the others.

    `wrap` is False for code, which is broken at the edge instead of between words.
    """

    content: Content
    first: Content = NOTHING
    rest: str = ""
    wrap: bool = True
    choice: Hashable = None

    def lines(self, width: int) -> Iterator[Line]:
        content, first, rest = self.content, self.first, Content(self.rest)
        if first.cell_length > max(width // 2, rest.cell_length):
            # A long key leaves no room beside it, so its value goes below.
            yield from (Line(part, self.choice) for part in first.rstrip().wrap(width))
            first = rest
        room = max(width - max(first.cell_length, rest.cell_length), 8)
        # Wrap only if needed, because that costs by far the most.
        is_short = content.cell_length <= room
        for part in [content] if is_short else content.wrap(room) if self.wrap else content.fold(room):
            yield Line(first + part, self.choice)
            first = rest


class Quotation(NamedTuple):
    """A whole foreign text beside a label of ours. Each line begins behind a bar; a continuation has another bar.
    If `wrap` is False, lines are broken at the edge instead of between words."""

    label: str
    source: str
    wrap: bool = False

    def lines(self, width: int) -> Iterator[Line]:
        under = " " * _QUOTED
        first = faint(f"{self.label:<{_QUOTED}}┊ ")
        for piece in safe_pieces(self.source):
            part = Content.styled(piece.text, FAINT if piece.counted else "")
            yield from Text(part, first if piece.begins else faint(f"{under}┊›"), f"{under}┊›", self.wrap).lines(width)
            first = faint(f"{under}┊ ")


class Table(NamedTuple):
    """Rows in aligned columns. The last column wraps; if the others take over half of the width, it goes below them."""

    titles: Sequence[str]
    rows: Sequence[Sequence[Content]]

    def lines(self, width: int) -> Iterator[Line]:
        rows = [list(map(faint, self.titles)), *self.rows]
        sizes = [max(cell.cell_length for cell in column) + 2 for column in zip(*rows, strict=True)][:-1]
        indent = " " * (sum(sizes) if sum(sizes) <= width // 2 else 2)
        for *fixed, last in rows if any(self.titles) else rows[1:]:
            cells = (cell.pad_right(size - cell.cell_length) for cell, size in zip(fixed, sizes, strict=True))
            yield from Text(last, NOTHING.join(cells), indent).lines(width)


def lay_out(blocks: Iterable[Block], width: int) -> list[Line]:
    """Return the lines of all blocks, at most `MAX_LINES`, without blank lines at the edges or two in a row."""
    laid: list[Line] = []
    for line in chain.from_iterable(block.lines(max(width, 1)) for block in blocks):
        if len(laid) >= MAX_LINES:
            laid.append(Line(faint(f"{TRUNCATED}the first {MAX_LINES:,} lines are shown")))
            break
        if line.content or (laid and laid[-1].content):
            laid.append(line)
    return laid if not laid or laid[-1].content else laid[:-1]


def plain(text: str, limit: int = LINE_LIMIT) -> Content:
    """Return a foreign string as content of one line."""
    return Content(clean_row(text, limit))


def gist(text: str) -> Content:
    """Return a foreign string that may be Markdown as content of one line, without its marks."""
    return Content(clean_summary(text, LINE_LIMIT))


def faint(text: str) -> Content:
    """Return safe words in the faint style."""
    return Content.styled(text, FAINT)


def in_color(look: Look, words: str = "") -> Content:
    """Return the glyph and the word of a look, or `words` instead of the word, in its colour."""
    return Content.styled(f"{look.glyph} {words or look.word}", f"${look.color}")


GAP = Text(NOTHING)  # a blank line; several in a row count as one


def text(content: Content, indent: int = 0) -> Text:
    """Return a plain paragraph."""
    return Text(content, Content(" " * indent), " " * indent)


def remark(words: str) -> Text:
    """Return a paragraph of safe words in the faint style."""
    return text(faint(words))


def caution(words: str, indent: int = 0) -> Text:
    """Return a paragraph of safe words in the colour of warnings."""
    return text(Content.styled(words, "$text-warning"), indent)


def heading(title: str, number: int | None = None, note: Content = NOTHING) -> Iterator[Text]:
    """Yield a blank line and the title of a section, followed by the `number` of items and a note."""
    counted = "" if number is None else f"  {number:,}"
    yield GAP
    yield Text(Content.assemble((title, "bold"), (counted, FAINT), "  " if note else "", note))


def fields(*pairs: tuple[str, str | Content | Iterable[Text] | None]) -> Iterator[Text]:
    """Yield labels with their values, which are foreign strings, content, or paragraphs; skip empty values."""
    for label, value in pairs:
        lead, content = faint(label.ljust(LABEL_WIDTH)), plain(value) if isinstance(value, str) else value
        for part in [Text(content)][: len(content)] if isinstance(content, Content) else content or ():
            yield part._replace(first=lead + part.first, rest=" " * LABEL_WIDTH + part.rest)
            lead = Content(" " * LABEL_WIDTH)


def left_out(count: int, most: int, where: str = "") -> Iterator[Text]:
    """Yield a remark on how many of `count` are not shown, and `where` they are, if there are more than `most`."""
    if count > most:
        yield remark(f"… and {count - most:,} more{where}")


def listed(items: Sequence[str], marker: str = "•", style: str = FAINT, most: int = MAX_LINES) -> Iterator[Text]:
    """Yield a list of at most `most` foreign Markdown strings."""
    for item in items[:most]:
        yield from markdown(item, Content.styled(f"{marker} ", style), "  ")
    yield from left_out(len(items), most)


# Markdown


def markdown(text: str, first: Content = NOTHING, rest: str = "") -> Iterator[Text]:
    """Yield a paragraph for each line of a foreign Markdown string, with `first` before the first paragraph and `rest`
    before the others. If the string was cut, the last says so."""
    for part in _paragraphs(text):
        yield part._replace(first=first + part.first, rest=rest + part.rest)
        first = Content(rest)


def _paragraphs(text: str) -> Iterator[Text]:
    lines, note = clean_lines(text.strip("\r\n"), *_MARKDOWN)
    fence = hanging = ""
    for raw in lines:
        line = raw.strip()
        if fence:
            if line.startswith(fence) and not line.strip(fence[0]):
                fence = ""
            else:
                yield Text(Content.styled(raw, _CODE), Content("  "), "  ", wrap=False)
        elif (opening := _FENCE.match(line)) and "`" not in line[opening.end() :]:
            fence = opening[0]
        elif item := _ITEM.match(line):
            indent = " " * min(len(raw) - len(raw.lstrip()), _MAX_INDENT)
            marker = "• " if item[1] in "-*+" else f"{item[1]} "
            hanging = indent + " " * len(marker)
            yield Text(inline(line[item.end() :]), Content.assemble(indent, (marker, FAINT)), hanging)
        elif line and raw.startswith(" ") and hanging:
            yield Text(inline(line), Content(hanging), hanging)
        else:
            hanging = ""
            if title := _HEADING.match(line):
                yield Text(inline(line[title.end() :].rstrip("# ")).stylize_before("bold"))
            elif not line.startswith("|"):
                yield Text(inline(line))
            elif line.strip(" :|-"):
                yield Text(inline(" │ ".join(cell.strip() for cell in line.strip("|").split("|"))), rest="  ")
    if note:
        yield Text(faint(note))


def inline(text: str) -> Content:
    """Return one sanitised line of Markdown as content, with emphasis, code, and links as text and address."""
    pieces: list[Content | str | tuple[str, str]] = []
    position = 0
    for found in _INLINE.finditer(text):
        pieces.append(text[position : found.start()])
        position = found.end()
        if found["code"]:
            pieces.append((found["code"].strip(" ") or " ", _CODE))
        elif found["inner"]:
            pieces.append(inline(found["inner"]).stylize(_EMPHASIS[found["mark"]]))
        else:
            pieces += [f"{found['words']} (", (found["address"], _ADDRESS), ")"]
    return Content.assemble(*pieces, text[position:])


# Documents of a contract


def document(values: dict[str, Any]) -> Iterator[Block]:
    """Yield the blocks of a document, given as its values; those of its status or metadata come first."""
    for name in ("status", "report_metadata"):
        if isinstance(values.get(name), dict):
            values = {**values.pop(name), **values}
    yield from markdown(values.pop("objective", None) or "")
    if "context_map" in values:
        # The findings have it again, as a list of pairs.
        values["findings"].pop("context_map", None)
    values.pop("todos", None)
    parts = {key: value for key, value in values.items() if isinstance(value, (dict, list, tuple))}
    yield from _values({key: value for key, value in values.items() if key not in parts})
    for key, value in parts.items():
        yield from _part(key, value)


def _part(key: str, value: Any) -> Iterator[Block]:
    items = () if isinstance(value, dict) else value
    yield from heading(_label(key).capitalize(), len(items) or None)
    if isinstance(value, dict) and key in ("metadata", "attestation"):
        yield from _values(value)
    elif items and all(isinstance(item, str) for item in items):
        yield from listed(items, *_MARKS.get(key, ("•", FAINT)))
    elif items and all(isinstance(item, dict) and ("path" in item or "location" in item) for item in items):
        yield _table(items)
    else:
        yield from _outline(value)


def _label(key: str) -> str:
    return clean(_LABELS.get(key, key).replace("_", " "), 60)


def _values(values: Mapping[str, Any]) -> Iterator[Text]:
    return fields(*((_label(key), list(_outline(value))) for key, value in values.items()))


def _table(items: Sequence[Mapping[str, Any]]) -> Table:
    """Return a table of files or places with the words about each; whether it is required comes first."""
    keys = sorted(dict.fromkeys(key for item in items for key in item), key=lambda key: key not in _MUST)
    rows = [[_cell(key, item.get(key)) for key in keys] for item in items]
    return Table(["" if key in _MUST else key for key in keys], rows)


def _cell(key: str, value: object) -> Content:
    if key in _MUST:
        return Content(f"● {_MUST[key]}") if value else faint("○ optional")
    return faint("-") if value is None else plain(str(value)) if key == "path" else inline(clean(str(value)))


def _outline(value: object, first: Content = NOTHING, rest: str = "", depth: int = 0) -> Iterator[Text]:
    """Yield any JSON value, whose shape its agent chose, as an indented outline. Strings in it are Markdown."""
    if isinstance(value, str):
        yield from markdown(value, first, rest)
    elif not isinstance(value, (dict, list)) or not value:
        yield Text(plain("none" if value in ({}, []) else json.dumps(value), 400), first, rest)
    elif depth >= MAX_DEPTH:
        yield Text(Content("… deeper than is shown: see Raw"), first, rest)
    else:
        deeper = rest + "  "
        pairs = value.items() if isinstance(value, dict) else ((None, inner) for inner in value)
        for key, inner in pairs:
            label = faint("• " if key is None else f"{_label(key)}  ")
            if key is not None and (isinstance(inner, (dict, list)) or "\n" in str(inner).strip()):
                yield Text(label, first, rest)
                yield from _outline(inner, Content(deeper), deeper, depth + 1)
            else:
                yield from _outline(inner, first + label, deeper, depth + 1)
            first = Content(rest)


# The source of a document


def _numbered(sign: Content, number: str, source: Content) -> Text:
    """Return one line of source behind a sign and its number."""
    gutter = Content.assemble(sign, (f" {number} │ ", FAINT))
    return Text(source, gutter, "│ ".rjust(len(gutter)))


def listing(
    source: Sequence[str], findings: Mapping[int, Sequence[Finding]] = {}, marked: tuple[int, int] = (0, -1)
) -> Iterator[Text]:
    """Yield safe lines with their numbers, each coloured by itself in linear time. A line with a finding has a mark in
    the gutter and the message below. `marked` is the inclusive range of lines that a claim names."""
    digits = len(str(len(source)))
    for number, line in enumerate(source, 1):
        found = findings.get(number, ())[:_MESSAGES]
        worst = [look for kind, look in SEVERITIES.items() if any(one.severity is kind for one in found)]
        look = _NAMED if marked[0] <= number <= marked[1] else [*worst, _UNMARKED][0]
        content = Content(line)
        for part in _SOURCE.finditer(line):
            content = content.stylize(_STYLES[part.lastgroup or ""], *part.span())
        yield _numbered(Content.styled(look.glyph, f"${look.color}"), f"{number:>{digits}}", content)
        for finding in found:
            color, indent = f"${SEVERITIES[finding.severity].color}", " " * (digits + 3)
            message = Content.assemble(plain(finding.rule, 20), "  ", plain(finding.message, 400)).stylize(color)
            yield Text(message, Content.styled(f"{indent}╰ ", color), f"{indent}  ")


class Change(NamedTuple):
    """A line of a difference. `sign` is `+`, `-`, a blank, or "" for words between two changes.

    `number` is the line's number in the old text for `-`, else in the new one.
    """

    sign: str
    number: int
    text: str


class Difference(NamedTuple):
    """The changes from one text to another, safe to show. `note` says how much was cut, None if nothing was."""

    rows: Sequence[Change]
    note: str | None = None

    @property
    def counted(self) -> Content:
        """The numbers of added and removed lines."""
        added, removed = (sum(row.sign == sign for row in self.rows) for sign in "+-")
        return Content.assemble((f"+{added:,}", _SIGNS["+"]), " ", (f"−{removed:,}", _SIGNS["-"]))

    @property
    def noted(self) -> list[Block]:
        """The changes in the colours of git, and the note if something was cut."""
        digits = len(str(max((row.number for row in self.rows), default=0)))
        blocks: list[Block] = [
            _numbered(Content.styled(sign, _SIGNS[sign]), f"{number:>{digits}}", Content.styled(words, _SIGNS[sign]))
            if sign
            else remark(f"  {'⋮':>{digits}}   {words}".rstrip())
            for sign, number, words in self.rows
        ]
        return [*blocks, *([caution(self.note)] if self.note else [])]


def laid_out_alike(before: str, after: str) -> tuple[str, str]:
    """Return two documents with the same layout and order of keys in their JSON, so that only real changes differ."""
    parts = [_FENCES.split(one) for one in (before, after)]
    if len(parts[0]) != len(parts[1]):
        return before, after
    old, new = map("".join, zip(*map(_spelled_alike, *parts), strict=True))
    return old, new


def compare(before: str, after: str) -> Difference:
    """Return the changes from one document to another, line by line. Blocks for some milliseconds."""
    old, old_note = clean_lines(before.removesuffix("\n"))
    new, new_note = clean_lines(after.removesuffix("\n"))
    return Difference(list(_changes(unified_diff(old, new, lineterm=""))), new_note or old_note)


def _spelled_alike(before: str, after: str) -> tuple[str, str]:
    """Return two JSON texts laid out alike; if one is no JSON, return both unchanged."""
    try:
        old, new = json.loads(before), json.loads(after)
        values = old, _ordered(new, old)
        spelled = [json.dumps(one, indent=2, ensure_ascii=False) + "\n" for one in values]
    except (ValueError, RecursionError):
        return before, after
    return spelled[0], spelled[1]


def _ordered(value: Any, like: Any) -> Any:
    """Return a JSON value with its keys in the order of another value, if the order of shared keys differs."""
    if isinstance(value, list) and isinstance(like, list):
        return [*map(_ordered, value, like), *value[len(like) :]]
    if not (isinstance(value, dict) and isinstance(like, dict)):
        return value
    shared = [key for key in like if key in value]
    is_same = shared == [key for key in value if key in like]
    return {
        key: _ordered(value[key], like.get(key)) for key in (value if is_same else dict.fromkeys([*shared, *value]))
    }


def read_git(text: str) -> Difference:
    """Return the changes in the output of `git diff` for one file."""
    lines, note = clean_lines(text.removesuffix("\n"))
    return Difference(list(_changes(lines)), note)


def _changes(lines: Iterable[str]) -> Iterator[Change]:
    """Yield the changes of a unified diff of one file, ignoring its head before the first hunk."""
    old = new = 0
    for line in lines:
        sign = line[:1] or " "
        if hunk := _HUNK.match(line):
            if old or new:
                yield Change("", 0, hunk[3])
            old, new = int(hunk[1]), int(hunk[2])
        elif (old or new) and sign in _SIGNS:
            yield Change(sign, old if sign == "-" else new, line[1:])
            old, new = old + (sign != "+"), new + (sign != "-")
        elif sign == "\\" or line.startswith("Binary files "):
            yield Change("", 0, line.removeprefix("\\ "))


# The page of the blocks


def show_words(line: Static, words: Content) -> None:
    """Show words in a widget; skip equal words, and skip the layout if a text without wrapping keeps its height."""
    if not (isinstance(line.content, Content) and words.is_same(line.content)):
        is_as_high = line.styles.text_wrap == "nowrap" and str(line.content).count("\n") == words.plain.count("\n")
        line.update(words, layout=not is_as_high)


class Page(ScrollView, can_focus=True, inherit_bindings=False):
    """Lines of blocks, laid out again when the width changes.

    If lines belong to entries (`Line.choice`), the cursor is on an entry in sight.
    """

    BINDINGS = bindings(Home.LINES)

    # The gutter is always there, because a scrollbar that comes and goes would wrap everything anew.
    DEFAULT_CSS = """
    Page {
        height: 1fr; padding: 0 0 0 1; text-wrap: nowrap; text-overflow: ellipsis;
        overflow-x: hidden; overflow-y: auto; scrollbar-gutter: stable; scrollbar-size-vertical: 1;
    }
    """

    chosen: reactive[Hashable] = reactive(None)  # the entry under the cursor, None if there are none
    max_width = 120  # the most cells of a line: in wider text it is hard to find the next line

    def __init__(self) -> None:
        super().__init__()
        self._blocks: Sequence[Block] = ()
        self._lines: Sequence[Line] = ()
        self.places: dict[Hashable, int] = {}  # the first line of each entry, in order

    @property
    def allow_select(self) -> bool:
        return True

    @property
    def lines(self) -> tuple[str, ...]:
        """The plain text of each line."""
        return tuple(self.line(number).content.plain for number in range(self.virtual_size.height))

    @property
    def height(self) -> int:
        """The number of lines in sight."""
        return self.scrollable_content_region.height

    @property
    def top(self) -> int:
        """The first line in sight."""
        return int(self.scroll_offset.y)

    def line(self, number: int) -> Line:
        """Return one line of the page, a blank one behind its end."""
        return self._lines[number] if number < len(self._lines) else Line(NOTHING)

    def end_of(self, blocks: int) -> int:
        """Return how many lines the first `blocks` quotations take; each begins with a label, not with a blank."""
        ends = [number for number, line in enumerate(self.lines) if number and not line.startswith(" ")]
        return ends[blocks - 1] if len(ends) >= blocks else len(self.lines)

    def show(self, blocks: Sequence[Block], *, keep: bool) -> None:
        """Show blocks; with `keep`, stay at the present line, otherwise go to the beginning."""
        self._blocks = blocks
        if not keep:
            self.chosen = None
            self.scroll_to(y=0, animate=False, force=True, immediate=True)
        self.lay_out()

    def on_resize(self) -> None:
        self.lay_out()

    def lay_out(self) -> None:
        """Lay the lines out in the present width."""
        width = min(self.scrollable_content_region.width, self.max_width)
        if width > 0:
            before, self._lines = self._lines, lay_out(self._blocks, width)
            places: dict[Hashable, int] = {}
            for number, line in enumerate(self._lines):
                if line.choice is not None:
                    places.setdefault(line.choice, number)
            self.place(places, Size(width, len(self._lines)))
            both = zip(self._lines, before, strict=False)
            if len(before) != len(self._lines) or not all(new.content.is_same(old.content) for new, old in both):
                self.refresh()

    def place(self, places: dict[Hashable, int], size: Size) -> None:
        """Set the places of the entries. If the cursor's entry is gone, the first entry in sight gets the cursor."""
        self.places, self.virtual_size = places, size
        self._choose_in_sight()

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        self._choose_in_sight()

    def _choose_in_sight(self) -> None:
        last = self.top + self.height - 1
        if self.height and not self.top <= self.places.get(self.chosen, -1) <= last:
            seen = [entry for entry, line in self.places.items() if self.top <= line <= last]
            below = self.places.get(self.chosen, -1) > last
            self.chosen = seen[-1 if below else 0] if seen else None

    # Moving, without animation, so that a held key does not run ahead of the drawing.

    def action_move_by(self, step: int) -> None:
        """Move the cursor by one entry, or scroll by a line if there is no further entry."""
        entries = list(self.places)
        at = entries.index(self.chosen) + step if self.chosen in self.places else -1
        if 0 <= at < len(entries):
            self.choose(entries[at])
        else:
            self.scroll_relative(y=step, animate=False, immediate=True)

    def choose(self, entry: Hashable) -> None:
        """Put the cursor on an entry, and scroll it into sight."""
        self.chosen = entry
        # An entry has at most two lines.
        self.scroll_to_region(Region(0, self.places[entry], 1, 2), animate=False, immediate=True)

    def action_move_pages(self, pages: int) -> None:
        # A page is one line less than the height, so that one line stays in sight.
        self.scroll_relative(y=pages * max(self.height - 1, 1), animate=False, immediate=True)

    def action_first_line(self) -> None:
        self._go_to_end(0, 0)

    def action_last_line(self) -> None:
        self._go_to_end(-1, self.max_scroll_y)

    def _go_to_end(self, at: int, y: float) -> None:
        self.scroll_to(y=y, animate=False, immediate=True)
        if self.places:
            self.choose(list(self.places)[at])

    # Drawing

    @on(events.Focus)
    @on(events.Blur)
    def _draw_cursor(self) -> None:
        # Wait for the widget's own handlers, which run after this one and set `has_focus`.
        self.call_next(self.refresh)

    def render_line(self, y: int) -> Strip:
        width, number = self.scrollable_content_region.width, self.top + y
        content, choice = self.line(number)
        if not content:
            return Strip.blank(width, self.visual_style.rich_style).apply_offsets(0, number)
        if span := self.text_selection.get_span(number) if self.text_selection else None:
            selected = Style.from_styles(self.screen.get_component_styles("screen--selection"))
            content = content.stylize(selected, span[0], len(content) if span[1] < 0 else span[1])
        if choice is not None and choice == self.chosen and self.has_focus:
            padded = content.pad_right(max(width - content.cell_length, 0))
            # A reversed row needs the same colours in all parts, so with the terminal's colours they lose their own.
            content = (
                Content.styled("▌" + padded.plain[1:], "reverse")
                if self.app.native_ansi_color
                else Content.assemble(("▌", "$text-accent"), padded[1:]).stylize_before("on $cursor-row")
            )
        strips = Visual.to_strips(self, content, width, 1, self.visual_style, apply_selection=False, pad=True)
        return strips[0].apply_offsets(0, number)

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        return selection.extract("\n".join(self.lines)), "\n"
