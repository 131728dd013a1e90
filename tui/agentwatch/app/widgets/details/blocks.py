"""Blocks of untrusted text (Markdown, documents, sources, differences), and the page that shows the blocks.

markdown-it-py is not used, because it needs 0.8 s for 16 KiB of hostile input. The Markdown scanner in this module
looks at each character a bounded number of times. It shows a link as text and address, and HTML as written. Before
that, `agentwatch.text` removes control characters.
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
_QUOTED = 13  # cells of the column with the labels of quotations
TRUNCATED = "truncated: "  # begins the line that says that something was cut
MAX_LINES = 4_000  # the most lines of all blocks together
# The most lines and characters of one Markdown string. A usual note of an agent has one or two screens.
_MARKDOWN_LIMITS = 1_000, 64 * 1024
_MAX_INDENT = 8  # the most cells of indent in a Markdown list

ACCENT = "bold $text-accent"
FAINT = ".details--faint"  # a component class of the screens, which is dim in a theme of sixteen colours
_CODE = "$text-secondary"
_ADDRESS = "$text-muted underline"
NOTHING = Content("")

_HEADING = re.compile(r"(#{1,6})(?: +|$)")
_ITEM = re.compile(r"([-*+]|\d{1,9}[.)]) +")
_FENCE = re.compile(r"`{3,}|~{3,}")
# No part of the pattern matches its own end character. So a failed match looks at each character only a few times.
_INLINE = re.compile(
    r"(?<!`)(`{1,3})(?P<code>[^`]+)\1(?!`)"
    r"|(?P<mark>(?P<stars>\*{1,3})|~~|(?<![^\W_])__?)(?=\S)(?P<inner>(?(stars)[^*]|[^~_])+)(?<=\S)(?P=mark)(?!(?<=_)\w)"
    r"|!?\[(?P<words>[^\[\]]*)\]\((?P<address>[^()\s]+)\)"
)
_EMPHASIS = {"*": "italic", "_": "italic", "**": "bold", "__": "bold", "***": "bold italic", "~~": "strike"}
MAX_DEPTH = 8  # the most levels of a JSON value that are shown; only the Raw tab shows all
_LABEL_PAIRS = (
    "reported_state=state error_code=error error_message=message retry_recommended=retry retry_hint=hint task_id=task "
    "agent_name=agent agent_type=agent session_id=session delegation_path=path delegation_depth=depth "
    "duration_seconds=seconds execution_time_seconds=seconds confidence_level=confidence token_usage=tokens "
    "verbosity_level=level parent_task_id=parent decision_id=decision handoff_schema=schema phase_count=phases "
    "estimated_hours=hours findings_count=findings requires_user_review=review review_reason=because "
    "phases_completed=phases_done phases_total=phases identified_gaps=gaps attestation=runtime_attestation "
    "runtime_model_reported=model runtime_mode_reported=mode files_created=created files_modified=modified "
    "limitations=limits more=more_that_it_says"
)
# The labels of keys whose label differs from the key.
_LABELS = dict(pair.split("=") for pair in _LABEL_PAIRS.split())
_MARKS = {"blockers": ("■", "$state-blocked"), "recommendations": ("→", FAINT), "identified_gaps": ("○", FAINT)}
_REQUIRED_WORDS = {"required": "must read", "must_create": "must create"}
MARKED = "▌"  # stands before the lines that a claim names
_PLAIN_LOOK = Look(" ", "", "text")
_CLAIMED_LOOK = Look(MARKED, "", "text-accent")
_MAX_FINDINGS = 3  # the most findings that are shown below one line of source
# A string ends at its quotation mark or at the end of the line. So a match looks at each character at most twice.
_SOURCE = re.compile(
    r'(?P<title>^#{1,6}\s.*)|(?P<key>"(?:[^"\\]|\\.)*"(?=\s*:)|^[-* ]*\w[\w .-]{0,40}\**(?=:(?:\s|$)))'
    r'|(?P<string>"(?:[^"\\]|\\.)*"?)'
)
_STYLES = {"title": "bold", "key": "$text-primary", "string": "$text-success"}
_FENCES = re.compile(r"(?m)^(```.*\n)")
_HUNK = re.compile(r"@@ -(\d{1,9})(?:,\d{1,9})? \+(\d{1,9})(?:,\d{1,9})? @@ ?(.*)")
_SIGNS = {"+": "$text-success", "-": "$text-error", " ": ""}


class Line(NamedTuple):
    """One line on screen. `entry` is the claim or the step that the line belongs to, for the cursor to select.
    A line with an `entry` begins with a blank, where the cursor is drawn."""

    content: Content
    entry: Hashable = None


class Block(Protocol):
    """A part of a page."""

    def lines(self, width: int) -> Iterator[Line]:
        """Yield the lines of the block, none wider than `width` cells."""


class Text(NamedTuple):
    """A paragraph. `first` is put before the first line, and `rest` before each further line.

    If `wrap` is False, lines are broken at the edge instead of between words.
    """

    content: Content
    first: Content = NOTHING
    rest: str = ""
    wrap: bool = True
    entry: Hashable = None

    def lines(self, width: int) -> Iterator[Line]:
        content, first, rest = self.content, self.first, Content(self.rest)
        if first.cell_length > max(width // 2, rest.cell_length):
            # A long label leaves no room on its line, so the content goes below.
            yield from (Line(part, self.entry) for part in first.rstrip().wrap(width))
            first = rest
        room = max(width - max(first.cell_length, rest.cell_length), 8)
        # Wrap only if needed, because wrapping costs by far the most time.
        is_short = content.cell_length <= room
        for part in [content] if is_short else content.wrap(room) if self.wrap else content.fold(room):
            yield Line(first + part, self.entry)
            first = rest


class Quotation(NamedTuple):
    """A whole untrusted text with a label of ours. Each line begins with `┊`, or with `┊›` if it continues a line.

    If `wrap` is False, lines are broken at the edge instead of between words.
    """

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
    """Rows in aligned columns. The last column wraps. If the other columns need over half the width, it goes below."""

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
    """Return the lines of all blocks, at most `MAX_LINES`. Needless blank lines are left out."""
    laid: list[Line] = []
    for line in chain.from_iterable(block.lines(max(width, 1)) for block in blocks):
        if len(laid) >= MAX_LINES:
            laid.append(Line(faint(f"{TRUNCATED}the first {MAX_LINES:,} lines are shown")))
            break
        if line.content or (laid and laid[-1].content):
            laid.append(line)
    return laid if not laid or laid[-1].content else laid[:-1]


def safe_line(text: str, limit: int = LINE_LIMIT) -> Content:
    """Return an untrusted string as safe content of one line."""
    return Content(clean_row(text, limit))


def summary_line(text: str) -> Content:
    """Return an untrusted string as safe content of one line, without the marks of Markdown."""
    return Content(clean_summary(text, LINE_LIMIT))


def faint(text: str) -> Content:
    """Return safe words in the faint style."""
    return Content.styled(text, FAINT)


def look_words(look: Look, words: str = "") -> Content:
    """Return the glyph and the word of `look` in its colour. If `words` are given, they replace the word."""
    return Content.styled(f"{look.glyph} {words or look.word}", f"${look.color}")


GAP = Text(NOTHING)  # a blank line; several in a row become one


def paragraph(content: Content, indent: int = 0) -> Text:
    """Return a paragraph with an indent."""
    return Text(content, Content(" " * indent), " " * indent)


def remark(words: str) -> Text:
    """Return a paragraph of safe words in the faint style."""
    return paragraph(faint(words))


def caution(words: str, indent: int = 0) -> Text:
    """Return a paragraph of safe words in the colour of warnings."""
    return paragraph(Content.styled(words, "$text-warning"), indent)


def heading(title: str, number: int | None = None, note: Content = NOTHING) -> Iterator[Text]:
    """Yield a blank line and the title of a section. The number of its items and a note come after the title."""
    counted = "" if number is None else f"  {number:,}"
    yield GAP
    yield Text(Content.assemble((title, "bold"), (counted, FAINT), "  " if note else "", note))


def fields(*pairs: tuple[str, str | Content | Iterable[Text] | None]) -> Iterator[Text]:
    """Yield labels with their values: untrusted strings, safe content, or paragraphs. Skip empty values."""
    for label, value in pairs:
        lead, content = faint(label.ljust(LABEL_WIDTH)), safe_line(value) if isinstance(value, str) else value
        for part in [Text(content)][: len(content)] if isinstance(content, Content) else content or ():
            yield part._replace(first=lead + part.first, rest=" " * LABEL_WIDTH + part.rest)
            lead = Content(" " * LABEL_WIDTH)


def remark_left_out(count: int, most: int, where: str = "") -> Iterator[Text]:
    """Yield a remark on how many of `count` items are not shown, if there are more than `most`."""
    if count > most:
        yield remark(f"… and {count - most:,} more{where}")


def bullet_list(items: Sequence[str], marker: str = "•", style: str = FAINT, most: int = MAX_LINES) -> Iterator[Text]:
    """Yield a list of at most `most` untrusted Markdown strings."""
    for item in items[:most]:
        yield from markdown(item, Content.styled(f"{marker} ", style), "  ")
    yield from remark_left_out(len(items), most)


# Markdown


def markdown(text: str, first: Content = NOTHING, rest: str = "") -> Iterator[Text]:
    """Yield a paragraph for each line of an untrusted Markdown string. `first` is put before the first paragraph, and
    `rest` before each further paragraph. If the string was cut, a last paragraph says so."""
    for part in _paragraphs(text):
        yield part._replace(first=first + part.first, rest=rest + part.rest)
        first = Content(rest)


def _paragraphs(text: str) -> Iterator[Text]:
    lines, note = clean_lines(text.strip("\r\n"), *_MARKDOWN_LIMITS)
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
            yield Text(inline_markdown(line[item.end() :]), Content.assemble(indent, (marker, FAINT)), hanging)
        elif line and raw.startswith(" ") and hanging:
            yield Text(inline_markdown(line), Content(hanging), hanging)
        else:
            hanging = ""
            if title := _HEADING.match(line):
                yield Text(inline_markdown(line[title.end() :].rstrip("# ")).stylize_before("bold"))
            elif not line.startswith("|"):
                yield Text(inline_markdown(line))
            elif line.strip(" :|-"):
                yield Text(inline_markdown(" │ ".join(cell.strip() for cell in line.strip("|").split("|"))), rest="  ")
    if note:
        yield Text(faint(note))


def inline_markdown(text: str) -> Content:
    """Return a sanitised line of Markdown as content, with emphasis and code. A link becomes its text and address."""
    pieces: list[Content | str | tuple[str, str]] = []
    position = 0
    for found in _INLINE.finditer(text):
        pieces.append(text[position : found.start()])
        position = found.end()
        if found["code"]:
            pieces.append((found["code"].strip(" ") or " ", _CODE))
        elif found["inner"]:
            pieces.append(inline_markdown(found["inner"]).stylize(_EMPHASIS[found["mark"]]))
        else:
            pieces += [f"{found['words']} (", (found["address"], _ADDRESS), ")"]
    return Content.assemble(*pieces, text[position:])


# Documents of a contract


def document_blocks(values: dict[str, Any]) -> Iterator[Block]:
    """Yield the blocks of a document, given as a dictionary. Values in `status` or `report_metadata` come first."""
    for name in ("status", "report_metadata"):
        if isinstance(values.get(name), dict):
            values = {**values.pop(name), **values}
    yield from markdown(values.pop("objective", None) or "")
    if "context_map" in values:
        # `findings` has the context map a second time, as a list of pairs.
        values["findings"].pop("context_map", None)
    values.pop("todos", None)
    parts = {key: value for key, value in values.items() if isinstance(value, (dict, list, tuple))}
    yield from _value_fields({key: value for key, value in values.items() if key not in parts})
    for key, value in parts.items():
        yield from _section_blocks(key, value)


def _section_blocks(key: str, value: Any) -> Iterator[Block]:
    items = () if isinstance(value, dict) else value
    yield from heading(_label(key).capitalize(), len(items) or None)
    if isinstance(value, dict) and key in ("metadata", "attestation"):
        yield from _value_fields(value)
    elif items and all(isinstance(item, str) for item in items):
        yield from bullet_list(items, *_MARKS.get(key, ("•", FAINT)))
    elif items and all(isinstance(item, dict) and ("path" in item or "location" in item) for item in items):
        yield _table(items)
    else:
        yield from _outline(value)


def _label(key: str) -> str:
    return clean(_LABELS.get(key, key).replace("_", " "), 60)


def _value_fields(values: Mapping[str, Any]) -> Iterator[Text]:
    return fields(*((_label(key), list(_outline(value))) for key, value in values.items()))


def _table(items: Sequence[Mapping[str, Any]]) -> Table:
    """Return a table with a row for each file. The first column says whether the file is required."""
    keys = sorted(dict.fromkeys(key for item in items for key in item), key=lambda key: key not in _REQUIRED_WORDS)
    rows = [[_cell(key, item.get(key)) for key in keys] for item in items]
    return Table(["" if key in _REQUIRED_WORDS else key for key in keys], rows)


def _cell(key: str, value: object) -> Content:
    if key in _REQUIRED_WORDS:
        return Content(f"● {_REQUIRED_WORDS[key]}") if value else faint("○ optional")
    return (
        faint("-") if value is None else safe_line(str(value)) if key == "path" else inline_markdown(clean(str(value)))
    )


def _outline(value: object, first: Content = NOTHING, rest: str = "", depth: int = 0) -> Iterator[Text]:
    """Yield any JSON value as an indented outline. Strings in the value are Markdown."""
    if isinstance(value, str):
        yield from markdown(value, first, rest)
    elif not isinstance(value, (dict, list)) or not value:
        yield Text(safe_line("none" if value in ({}, []) else json.dumps(value), 400), first, rest)
    elif depth >= MAX_DEPTH:
        yield Text(Content("… deeper than is shown: see Raw"), first, rest)
    else:
        inner_indent = rest + "  "
        pairs = value.items() if isinstance(value, dict) else ((None, inner) for inner in value)
        for key, inner in pairs:
            label = faint("• " if key is None else f"{_label(key)}  ")
            if key is not None and (isinstance(inner, (dict, list)) or "\n" in str(inner).strip()):
                yield Text(label, first, rest)
                yield from _outline(inner, Content(inner_indent), inner_indent, depth + 1)
            else:
                yield from _outline(inner, first + label, inner_indent, depth + 1)
            first = Content(rest)


# The source of a document


def _numbered(sign: Content, number: str, source: Content) -> Text:
    """Return a line of source with a sign and the line number before it."""
    gutter = Content.assemble(sign, (f" {number} │ ", FAINT))
    return Text(source, gutter, "│ ".rjust(len(gutter)))


def source_lines(
    source: Sequence[str], findings: Mapping[int, Sequence[Finding]] = {}, marked: tuple[int, int] = (0, -1)
) -> Iterator[Text]:
    """Yield safe lines of source in colour, with line numbers. Below a line come the messages of its findings.
    `findings` are by line number. `marked` are the first and the last line that a claim names."""
    digits = len(str(len(source)))
    for number, line in enumerate(source, 1):
        found = findings.get(number, ())[:_MAX_FINDINGS]
        worst = [look for kind, look in SEVERITIES.items() if any(one.severity is kind for one in found)]
        look = _CLAIMED_LOOK if marked[0] <= number <= marked[1] else [*worst, _PLAIN_LOOK][0]
        content = Content(line)
        for part in _SOURCE.finditer(line):
            content = content.stylize(_STYLES[part.lastgroup or ""], *part.span())
        yield _numbered(Content.styled(look.glyph, f"${look.color}"), f"{number:>{digits}}", content)
        for finding in found:
            color, indent = f"${SEVERITIES[finding.severity].color}", " " * (digits + 3)
            words = Content.assemble(safe_line(finding.rule, 20), "  ", safe_line(finding.message, 400)).stylize(color)
            yield Text(words, Content.styled(f"{indent}╰ ", color), f"{indent}  ")


class Change(NamedTuple):
    """A line of a difference. `sign` is `+`, `-`, a blank, or "" for words between two changes.

    `number` is the line number: in the old text for `-`, and otherwise in the new text.
    """

    sign: str
    number: int
    text: str


class Difference(NamedTuple):
    """The changes from one text to another, safe to show. `note` says how much was cut, or is None."""

    rows: Sequence[Change]
    note: str | None = None

    @property
    def counts(self) -> Content:
        """The numbers of added and removed lines."""
        added, removed = (sum(row.sign == sign for row in self.rows) for sign in "+-")
        return Content.assemble((f"+{added:,}", _SIGNS["+"]), " ", (f"−{removed:,}", _SIGNS["-"]))

    @property
    def blocks(self) -> list[Block]:
        """The changes in the colours of git, and the note."""
        digits = len(str(max((row.number for row in self.rows), default=0)))
        blocks: list[Block] = [
            _numbered(Content.styled(sign, _SIGNS[sign]), f"{number:>{digits}}", Content.styled(words, _SIGNS[sign]))
            if sign
            else remark(f"  {'⋮':>{digits}}   {words}".rstrip())
            for sign, number, words in self.rows
        ]
        return [*blocks, *([caution(self.note)] if self.note else [])]


def format_alike(before: str, after: str) -> tuple[str, str]:
    """Return two documents with their JSON laid out alike, so that a comparison shows only real changes."""
    parts = [_FENCES.split(one) for one in (before, after)]
    if len(parts[0]) != len(parts[1]):
        return before, after
    old, new = map("".join, zip(*map(_format_json_alike, *parts), strict=True))
    return old, new


def compare_texts(before: str, after: str) -> Difference:
    """Return the changes from one document to another, line by line. This may take some milliseconds."""
    old, old_note = clean_lines(before.removesuffix("\n"))
    new, new_note = clean_lines(after.removesuffix("\n"))
    return Difference(list(_parse_diff(unified_diff(old, new, lineterm=""))), new_note or old_note)


def _format_json_alike(before: str, after: str) -> tuple[str, str]:
    """Return two JSON texts with the same layout. If a text is no JSON, return both unchanged."""
    try:
        old, new = json.loads(before), json.loads(after)
        values = old, _order_keys(new, old)
        spelled = [json.dumps(one, indent=2, ensure_ascii=False) + "\n" for one in values]
    except (ValueError, RecursionError):
        return before, after
    return spelled[0], spelled[1]


def _order_keys(value: Any, other: Any) -> Any:
    """Return a JSON value with its keys in the order of the keys of another value."""
    if isinstance(value, list) and isinstance(other, list):
        return [*map(_order_keys, value, other), *value[len(other) :]]
    if not (isinstance(value, dict) and isinstance(other, dict)):
        return value
    shared = [key for key in other if key in value]
    is_same = shared == [key for key in value if key in other]
    return {
        key: _order_keys(value[key], other.get(key)) for key in (value if is_same else dict.fromkeys([*shared, *value]))
    }


def parse_git_diff(text: str) -> Difference:
    """Return the changes in the output of `git diff` for one file."""
    lines, note = clean_lines(text.removesuffix("\n"))
    return Difference(list(_parse_diff(lines)), note)


def _parse_diff(lines: Iterable[str]) -> Iterator[Change]:
    """Yield the changes of a unified diff of one file. Ignore the head before the first hunk."""
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


def update_words(line: Static, words: Content) -> None:
    """Show words in a widget, unless it shows them already. Lay out the screen only if the height may change."""
    if not (isinstance(line.content, Content) and words.is_same(line.content)):
        is_as_high = line.styles.text_wrap == "nowrap" and str(line.content).count("\n") == words.plain.count("\n")
        line.update(words, layout=not is_as_high)


class Page(ScrollView, can_focus=True, inherit_bindings=False):
    """A page of blocks, which is laid out again when the width changes.

    If an entry (`Line.entry`) has a line in sight, the cursor is on an entry in sight.
    """

    BINDINGS = bindings(Home.LINES)

    # Always keep room for the scrollbar: otherwise all lines would be wrapped again when it appears.
    DEFAULT_CSS = """
    Page {
        height: 1fr; padding: 0 0 0 1; text-wrap: nowrap; text-overflow: ellipsis;
        overflow-x: hidden; overflow-y: auto; scrollbar-gutter: stable; scrollbar-size-vertical: 1;
    }
    """

    chosen: reactive[Hashable] = reactive(None)  # the entry under the cursor, None if there is no entry
    max_width = 120  # the most cells of a line, because wider text is hard to read

    def __init__(self) -> None:
        super().__init__()
        self._blocks: Sequence[Block] = ()
        self._lines: Sequence[Line] = ()
        self.places: dict[Hashable, int] = {}  # the number of the first line of each entry

    @property
    def allow_select(self) -> bool:
        return True

    @property
    def lines(self) -> tuple[str, ...]:
        """The plain text of each line."""
        return tuple(self.line_at(number).content.plain for number in range(self.virtual_size.height))

    @property
    def height(self) -> int:
        """The number of lines in sight."""
        return self.scrollable_content_region.height

    @property
    def top(self) -> int:
        """The number of the first line in sight."""
        return int(self.scroll_offset.y)

    def line_at(self, number: int) -> Line:
        """Return one line of the page. Behind the end of the page, return a blank line."""
        return self._lines[number] if number < len(self._lines) else Line(NOTHING)

    def line_count_of(self, blocks: int) -> int:
        """Return how many lines the first `blocks` quotations take. Each quotation begins without a leading blank."""
        ends = [number for number, line in enumerate(self.lines) if number and not line.startswith(" ")]
        return ends[blocks - 1] if len(ends) >= blocks else len(self.lines)

    def show(self, blocks: Sequence[Block], *, keep_position: bool) -> None:
        """Show other blocks. With `keep_position`, do not scroll. Otherwise go to the beginning."""
        self._blocks = blocks
        if not keep_position:
            self.chosen = None
            self.scroll_to(y=0, animate=False, force=True, immediate=True)
        self.lay_out()

    def on_resize(self) -> None:
        self.lay_out()

    def lay_out(self) -> None:
        """Lay out the blocks in the present width."""
        width = min(self.scrollable_content_region.width, self.max_width)
        if width > 0:
            before, self._lines = self._lines, lay_out(self._blocks, width)
            places: dict[Hashable, int] = {}
            for number, line in enumerate(self._lines):
                if line.entry is not None:
                    places.setdefault(line.entry, number)
            self.set_places(places, Size(width, len(self._lines)))
            both = zip(self._lines, before, strict=False)
            if len(before) != len(self._lines) or not all(new.content.is_same(old.content) for new, old in both):
                self.refresh()

    def set_places(self, places: dict[Hashable, int], size: Size) -> None:
        """Set the places of the entries. If the entry with the cursor is gone, move the cursor to an entry in sight."""
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

    # Moving. There is no animation, because a held key would run ahead of the animation.

    def action_move_by(self, step: int) -> None:
        """Move the cursor to the next entry (`step` 1) or the previous (-1). At either end, scroll by a line."""
        entries = list(self.places)
        at = entries.index(self.chosen) + step if self.chosen in self.places else -1
        if 0 <= at < len(entries):
            self.choose(entries[at])
        else:
            self.scroll_relative(y=step, animate=False, immediate=True)

    def choose(self, entry: Hashable) -> None:
        """Put the cursor on an entry, and scroll the entry into sight."""
        self.chosen = entry
        # An entry has at most two lines.
        self.scroll_to_region(Region(0, self.places[entry], 1, 2), animate=False, immediate=True)

    def action_move_pages(self, pages: int) -> None:
        # Keep one line of the previous page in sight.
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
        # Textual's own handlers run after this handler and set `has_focus`.
        self.call_next(self.refresh)

    def render_line(self, y: int) -> Strip:
        width, number = self.scrollable_content_region.width, self.top + y
        content, entry = self.line_at(number)
        if not content:
            return Strip.blank(width, self.visual_style.rich_style).apply_offsets(0, number)
        if span := self.text_selection.get_span(number) if self.text_selection else None:
            selected = Style.from_styles(self.screen.get_component_styles("screen--selection"))
            content = content.stylize(selected, span[0], len(content) if span[1] < 0 else span[1])
        if entry is not None and entry == self.chosen and self.has_focus:
            padded = content.pad_right(max(width - content.cell_length, 0))
            # In a theme of sixteen colours, the row is reversed. All parts of a reversed row need the same colours.
            content = (
                Content.styled("▌" + padded.plain[1:], "reverse")
                if self.app.native_ansi_color
                else Content.assemble(("▌", "$text-accent"), padded[1:]).stylize_before("on $cursor-row")
            )
        strips = Visual.to_strips(self, content, width, 1, self.visual_style, apply_selection=False, pad=True)
        return strips[0].apply_offsets(0, number)

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        return selection.extract("\n".join(self.lines)), "\n"
