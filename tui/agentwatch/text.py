"""Makes untrusted text safe to show: all text of agents and programs passes through this module first.

Control characters and invisible characters are replaced by visible ones, so that the operator notices them.
"""

import re
import sys
import unicodedata
from collections.abc import Iterable, Iterator
from enum import StrEnum
from functools import lru_cache, partial
from itertools import groupby
from typing import NamedTuple, TextIO

_MAX_MARKS = 2  # the most combining marks on one character; more would cover the lines around it

# The most characters shown of one line. The screen takes seconds to lay out a longer line.
LINE_LIMIT = 4_000

TEXT_LIMIT = 256 * 1024
LINES_LIMIT = 2_000

_UNSAFE = ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")  # Unicode's categories of control and invisible characters

# A joiner between two emoji makes one emoji, whose width differs between terminals. This joiner is dropped, because it
# hides nothing. Any other joiner is made visible.
_PICTURE = "[\u2190-\u21ff\u2600-\u27bf\u2b00-\u2bff\U0001f000-\U0001faff]"
_JOINER = f"(?<={_PICTURE})(\ufe0f?)\u200d(?={_PICTURE})"

# Invisible characters of other categories: Default_Ignorable_Code_Point, and characters without a shape.
_UNSEEN = (
    "\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200d\u2800\u3164\ufe00-\ufe0f\uffa0\ufffc"
    "\U00013441\U00013442\U00016fe4\U0001d159\U000e0100-\U000e01ef"
)
_HIDDEN = re.compile(f"[{_UNSEEN}]")
# Variation selectors choose the look of an emoji, a digit or the letter ℹ. Any other selector is made visible.
_SELECTORS = "\ufe0e\ufe0f"
# Skin tones, which have no width of their own behind an emoji.
_TONES = "\U0001f3fb\U0001f3fc\U0001f3fd\U0001f3fe\U0001f3ff"
_SELECTED = frozenset("0123456789#*\u2139")

# Vowels and finals of Hangul are legible only behind the first letter of their syllable.
_VOWELS_AND_FINALS = "\u1161-\u11ff\ud7b0-\ud7c6\ud7cb-\ud7fb"
_JAMO = re.compile(f"[{_VOWELS_AND_FINALS}]")
_STRAY_JAMO = re.compile(f"(?<![\u1100-\u115e\ua960-\ua97c\uac00-\ud7a3{_VOWELS_AND_FINALS}])[{_VOWELS_AND_FINALS}]+")
_ANY_BASE = re.compile(
    "[\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\u2de0-\u2dff\ufe20-\ufe2f]"
)  # combining marks that are visible on any character; other marks may be invisible on letters of another script
_SCRIPTS = "\u0530"  # from this character on, scripts have combining marks of their own

_BLANK = re.compile(rf"[^\S ]|\A +| +\Z|[{_UNSEEN}]")
_MANY = 40
_MANY_BLANKS = re.compile(rf"[^\S\n]{{{_MANY},}}")
_BLANK_IN_CALL = re.compile(
    rf"[\s{_UNSEEN}]{{{_MANY},}}|[^\S ]| +\Z|[{_UNSEEN}\u2400-\u2421]"
    r"|<(?=U\+[0-9A-F]{4,6}>|\+?[\d,]+ (?:mark|blank|empty line|character)s?>)"
)  # in the text of a program's call: matches blanks to replace, and text that imitates a replacement

_MOST_EMPTY = 3  # up to this number of empty lines in a row are shown; more are replaced by their number
_SEEN = re.compile(rf"[^\s{_UNSEEN}]")

# Nearly every string is printable ASCII, which is always safe.
_PLAIN = re.compile(r"[\x20-\x7e]*\Z")


_LOWER = str.maketrans("ABCDEFGHIJKLMNOPQRSTUVWXYZ", "abcdefghijklmnopqrstuvwxyz")


def fold_case(text: str) -> str:
    """Return the text with A to Z in lower case. Full case folding would turn some other letters into `s` or `k`."""
    return text.translate(_LOWER)


@lru_cache(maxsize=4096)
def _show_character(character: str) -> str:
    """Return the safe form of a character. Return "" for a mark whose safe form depends on the character before it."""
    category = unicodedata.category(character)
    if category in _UNSAFE or (_HIDDEN.match(character) and character not in _SELECTORS):
        return _make_visible(character)
    if category[0] == "M" or character in _TONES or _JAMO.match(character):
        return ""
    # Special spaces (no-break, ideographic, thin) become a plain space, because they look like one.
    return " " if category == "Zs" else character


@lru_cache(maxsize=4096)
def _is_visible_on(mark: str, base: str) -> bool:
    """Tell whether a combining mark is visible on `base`, the character before it, which may be ""."""
    if mark in _SELECTORS and base in _SELECTED:
        return True
    if mark in _SELECTORS or mark in _TONES:
        return not base.isascii() and unicodedata.category(base)[0] in "PS"
    if _ANY_BASE.match(mark) or _JAMO.match(mark):
        return True
    return base >= _SCRIPTS and unicodedata.category(base)[0] == "L"


def _make_safe(text: str) -> str:
    if _PLAIN.match(text):
        return text
    text = _STRAY_JAMO.sub(_make_visible, re.sub(_JOINER, r"\1", text))
    shown: list[str] = []
    base, marks = "", 0
    for character in [*text, ""]:  # the "" adds the omission mark of the last character
        if character and not _show_character(character) and _is_visible_on(character, base):
            marks += 1
            if marks <= _MAX_MARKS:
                shown.append(character)
            continue
        if marks > _MAX_MARKS:
            shown.append(omission_mark(marks - _MAX_MARKS, "mark"))
        replacement = character and (_show_character(character) or _make_visible(character))
        base, marks = replacement[-1:], 0
        shown.append(replacement)
    return "".join(shown)


def count_unseen(text: str) -> int:
    """Return the number of characters that would be invisible if an editor showed the text unchanged."""
    text = re.sub(_JOINER, r"\1", text)
    return 0 if text.isascii() else len(_HIDDEN.findall(text)) - len(_HIDDEN.findall(_make_safe(text)))


def omission_mark(number: int, what: str) -> str:
    """Return a mark such as `<+3 marks>` in place of omitted characters."""
    return f"<+{number:,} {what}{'s' if number > 1 else ''}>"


def clean(text: str, limit: int = LINE_LIMIT) -> str:
    """Return a text as one safe line of at most `limit` characters. Never parse the result as markup."""
    cut = len(text) > limit
    text = text[: max(limit - 1, 0)] if cut else text
    text = _make_safe(text.replace("\r\n", " ").replace("\n", " ").replace("\r", " ").replace("\t", "  "))
    return text + "…" if cut else text


def clean_name(text: str, limit: int = LINE_LIMIT) -> str:
    """Return an id or a name as one safe line. Special blanks become visible, so that different ids look different."""
    return clean(_BLANK.sub(_make_visible, text[: limit + 1]), limit)


def clean_call(text: str, limit: int = LINE_LIMIT) -> str:
    """Return a program's call as safe text for the operator to judge. Replace many blanks in a row by their number."""
    cut = len(text) > limit
    text = _BLANK_IN_CALL.sub(_show_blanks, text[: max(limit - 1, 0)] if cut else text)
    return _make_safe(text) + ("…" if cut else "")


def _show_blanks(blanks: re.Match[str]) -> str:
    return f"<{len(blanks[0]):,} blanks>" if len(blanks[0]) >= _MANY else _make_visible(blanks)


def _make_visible(blanks: re.Match[str] | str) -> str:
    codes = map(ord, blanks if isinstance(blanks, str) else blanks[0])
    return "".join(chr(0x2400 + code) if code <= 0x20 else f"<U+{code:04X}>" for code in codes)


def clean_lines(
    text: str, max_lines: int = LINES_LIMIT, max_characters: int = TEXT_LIMIT
) -> tuple[list[str], str | None]:
    """Return the safe lines of a text. Also return a sentence that says how the text was cut, or None if it was not."""
    lines = text[:max_characters].replace("\r\n", "\n").split("\n")
    note = None
    if len(text) > max_characters or len(lines) > max_lines or any(len(line) > LINE_LIMIT for line in lines):
        most = f"{max_lines:,} lines of {LINE_LIMIT:,} characters, and {max_characters // 1024} KiB"
        note = f"truncated: of {len(text):,} characters at most {most} are shown"
    return [clean(line) for line in lines[:max_lines]], note


class Piece(NamedTuple):
    """A piece of a text. It begins or continues a line. If `counted`, it gives the number of omitted empty lines."""

    text: str
    begins: bool = True
    counted: bool = False


def safe_pieces(text: str) -> Iterator[Piece]:
    """Yield a whole untrusted text in safe pieces. Many blanks or empty lines are replaced by their number."""
    lines = text.removesuffix("\n").split("\n")
    for is_empty, group in groupby(lines, key=lambda line: _SEEN.search(line) is None):
        some = list(group)
        if is_empty and len(some) > _MOST_EMPTY:
            yield Piece(f"<{len(some):,} empty lines>", counted=True)
            continue
        for line in (clean_call(one, len(one)) for one in some):
            for start in range(0, max(len(line), 1), LINE_LIMIT):
                yield Piece(line[start : start + LINE_LIMIT], begins=start == 0)


def has_hidden_blanks(text: str) -> bool:
    """Tell whether a text has many blanks or empty lines in a row, which could hide the text after them."""
    return any(piece.counted for piece in safe_pieces(text)) or _MANY_BLANKS.search(text) is not None


def shorten_paths(words: str, places: Iterable[str]) -> str:
    """Make paths in `words` relative to a workspace. `places` are the spellings of the workspace's own path."""
    for place in places:
        if len(place) > 1 and place in words:
            path = rf"(?<![\w./~-]){re.escape(place)}(?:(/+)(?=[\w.@*\[{{$-])|/*(?![\w./-]))"
            words = re.sub(path, lambda found: "" if found[1] else ".", words)
    return words


def quote_text(text: str, limit: int = 80) -> str:
    """Return untrusted text in quotation marks, for use in a sentence. The text cannot fake the closing mark."""
    return "“" + clean_name(text, limit).replace("“", '"').replace("”", '"') + "”"


# For one line of the screen

# In some terminals, a variation selector changes the width of the character before it.
_WITHOUT_SELECTORS = dict.fromkeys(range(0xFE00, 0xFE10))

# Matches only marks that are certainly Markdown. Asterisks beside a slash, dot or letter may be a glob, and underscores
# belong to names. No part may contain its own end character, so that a failed match takes linear time.
_MARKS = (
    r"(?<!`)(`{1,3})([^`]+)\1(?!`)"
    r"""|(?<![^\s(\["':;,\u0080-\U0010ffff])"""
    r"""(\*{2,3}|\*(?=[^*]*[^*\s/.]\*))(?=[\w"'“‘(\[`$#@])([^*]*[^*\s/])\3(?![0-9A-Za-z_*/])"""
)
_HEADING = r"(?m)^[ \t]*#{1,6}[ \t]+"


def clean_row(text: str, limit: int = 200) -> str:
    """Return untrusted text as one safe line whose width is the same in all terminals."""
    return clean(text, limit).translate(_WITHOUT_SELECTORS)


def clean_summary(text: str, limit: int = 200) -> str:
    """Return untrusted text as one safe line without the Markdown marks of emphasis, code and headings.

    Use it for titles, questions and hints. Use `clean_row` for a name that must be exact, such as an id.
    """
    text = text[: LINE_LIMIT + 1]
    if "*" in text or "`" in text or "#" in text:
        text = _remove_marks(re.sub(_HEADING, "", text))
    return clean_row(text, limit)


def _remove_marks(text: str) -> str:
    return re.sub(_MARKS, lambda mark: (mark[2] or _remove_marks(mark[4])).strip(" "), text)


def describe_error(error: BaseException) -> str:
    """Return the type and message of an error as safe text. Never raise, even if the error cannot be printed."""
    try:
        return clean(f"{type(error).__name__}: {error}".removesuffix(": "), 300)
    except BaseException:  # noqa: BLE001  its own `__str__` may raise anything
        return "an error that cannot be printed"


def indented_json(value: object) -> str:
    """Return a value as indented JSON. All characters outside ASCII become escapes, which are safe on a terminal."""
    # `to_json` is six times as fast as `json.dumps` with indentation.
    from pydantic_core import to_json

    try:
        return to_json(value, indent=2, ensure_ascii=True).decode().replace("\x7f", "\\u007f")
    except ValueError:  # the value contains a lone surrogate
        import json

        return json.dumps(value, indent=2)


class Mark(StrEnum):
    """The outcome of a check."""

    GOOD = "✓"
    NOTE = "!"
    BAD = "✗"


class Check(NamedTuple):
    """One check. `found` says what was found and how to correct it, and may quote untrusted text."""

    mark: Mark
    about: str
    found: str


good = partial(Check, Mark.GOOD)
note = partial(Check, Mark.NOTE)
bad = partial(Check, Mark.BAD)


def print_text(text: str) -> None:
    """Print to standard output. Escape characters that the encoding of the output lacks."""
    _print(sys.stdout, text)


def print_error(text: str) -> None:
    """Print one line to standard error. Untrusted text in it is made safe."""
    _print(sys.stderr, clean(text))


def _print(stream: TextIO | None, text: str) -> None:
    if stream is not None:
        encoding = stream.encoding or "utf-8"
        print(text.encode(encoding, "backslashreplace").decode(encoding), file=stream)
