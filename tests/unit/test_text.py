"""Foreign text is safe to show: no part of it can act on the terminal, hide, or pass for something else."""

import io
import json
import re
import sys
import unicodedata
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import get_character_cell_size

from agentwatch.text import (
    LINE_LIMIT,
    clean,
    clean_call,
    clean_lines,
    clean_name,
    count_unseen,
    describe_error,
    has_hidden_blanks,
    indented_json,
    print_error,
    print_text,
    quote_text,
    safe_pieces,
)

SMALL = {chr(code) for code in (*range(0x1161, 0x1200), *range(0xD7B0, 0xD7FC), *range(0x1F3FB, 0x1F400))}
"""Letters and signs without a width of their own, which are counted like marks."""
UNSAFE = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
hostile = st.one_of(
    st.text(st.characters(), max_size=60),
    st.lists(
        st.sampled_from(
            ["\x1b]52;c;aGk=\x07", "\x9b2J", "\u202e", "\u2028", "\ud800", "\u200b", "\U000e0041", "[/]", "e", "\u0301"]
        )
    ).map("".join),
)


FINE = (
    "\u1112\u1161\u11ab\u1100\u1173\u11af \ud558\u11ab",  # Hangul, in its parts
    "\u0e01\u0e47 \u0915\u094d\u0937\u093f \u1019\u1039\u1018 \u05e9\u05c1 \u0643\u0650",
    "1\ufe0f\u20e3 \u2139\ufe0f \u26a0\ufe0f \U0001f44d\U0001f3fd",
    "e\u0301 \u0438\u0306 日本語 [@click=app.quit]x[/]",
)


@given(hostile)
def test_no_character_that_can_act_or_hide_is_left(text):
    shown, run = clean(text), 0
    for character in shown:
        assert unicodedata.category(character) not in UNSAFE
        assert character.isprintable()
        run = run + 1 if unicodedata.category(character) in {"Mn", "Me", "Mc"} else 0
        assert run <= 2, "more marks than stand on a character"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31m", "␛[31m"),
        ("\x7f\x00", "<U+007F>␀"),
        ("\x9b31m", "<U+009B>31m"),
        ("a\u202eb", "a<U+202E>b"),
        ("one\ntwo\r\nthree\rfour\tfive", "one two three four  five"),
        ("no\u00a0break\u3000wide", "no break wide"),
        ("z\u0301\u0301\u0301\u0301", "z\u0301\u0301<+2 marks>"),
        ("\ud800", "<U+D800>"),
        *[(text, text) for text in FINE],
        ("a\u200db", "a<U+200D>b"),
        ("a\u200d\U0001f600", "a<U+200D>\U0001f600"),
        ("\U0001f600\u200d\u200d\U0001f600", "\U0001f600<U+200D><U+200D>\U0001f600"),
        ("\U0001f3f4\U000e0067\U000e007f", "\U0001f3f4<U+E0067><U+E007F>"),
    ],
)
def test_hostile_characters_are_shown_and_not_dropped(text, shown):
    assert clean(text) == shown


def test_a_line_of_ten_megabytes_is_cut_before_it_is_looked_at():
    assert len(clean("\x1b" * 10_000_000)) == LINE_LIMIT


def test_long_texts_are_cut_and_say_how_much():
    lines, note = clean_lines("x\n" * 3_000)
    most = "2,000 lines of 4,000 characters, and 256 KiB"
    assert (len(lines), note) == (2_000, f"truncated: of 6,000 characters at most {most} are shown")
    lines, note = clean_lines("x" * 400_000)
    assert note == f"truncated: of 400,000 characters at most {most} are shown"
    lines, note = clean_lines("ok\n" + "y" * 5_000)
    assert (len(lines), note) == (2, f"truncated: of 5,003 characters at most {most} are shown")
    assert clean_lines("a\r\nb") == (["a", "b"], None)
    assert clean_lines("a\nb\nc", max_characters=4)[1] is not None


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a b", "a b"),
        ("a\nb", "a␊b"),
        ("a\r\nb", "a␍␊b"),
        ("a\tb", "a␉b"),
        ("a\u00a0b", "a<U+00A0>b"),
        ("a\x1fb", "a␟b"),
        (" a", "␠a"),
        ("a\ufe00", "a<U+FE00>"),
        ("a\u3164b", "a<U+3164>b"),
        ("👨\u200d👩", "👨<U+200D>👩"),
        ("a  ", "a␠␠"),
        ("", ""),
        ("abcdef", "abc…"),
    ],
)
def test_names_that_differ_in_a_blank_look_different(text, shown):
    assert clean_name(text, 4) == shown if text == "abcdef" else clean_name(text) == shown
    assert quote_text(text) == f"“{clean_name(text, 80)}”"


@given(hostile)
def test_a_name_is_as_safe_as_any_text_and_shown_the_same_again(text):
    assert clean(clean_name(text)) == clean_name(text) == clean_name(clean_name(text))


def test_printing_never_fails(monkeypatch):
    for name, write in (("stdout", print_text), ("stderr", print_error)):
        stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
        monkeypatch.setattr(sys, name, stream)
        write("✓ done")
        stream.flush()
        assert stream.buffer.getvalue() == b"\\u2713 done\n"  # type: ignore[attr-defined]
    monkeypatch.setattr(sys, "stderr", None)
    print_error("nobody hears this")


def test_text_far_behind_blanks_is_shown_near():
    pieces = list(safe_pieces("ls\n" + " \n" * 58 + "x" * 9_000 + " " * 3_000 + "; rm -rf ~\n\nend"))
    assert pieces[:2] == [("ls", True, False), ("<58 empty lines>", True, True)]
    assert [piece.begins for piece in pieces[2:5]] == [True, False, False]
    assert "".join(piece.text for piece in pieces[2:5]) == "x" * 9_000 + "<3,000 blanks>; rm -rf ~"
    assert [piece.text for piece in pieces[5:]] == ["", "end"]


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("./gradlew\rtest", "./gradlew␍test"),
        ("rm\u00a0a\u3000b\u2003c\u2800d\u3164e", "rm<U+00A0>a<U+3000>b<U+2003>c<U+2800>d<U+3164>e"),
        ("echo hi # note\nrm -rf ~", "echo hi # note␊rm -rf ~"),
        ("  x `id` \\ ", "  x `id` \\␠"),
        ("a" + "\u0301" * 500 + "b", "a\u0301\u0301<+498 marks>b"),
        ("a" + "\u0301" * 3, "a\u0301\u0301<+1 mark>"),
        ("rm\u1161\u11ab -rf", "rm<U+1161><U+11AB> -rf"),
        ("\u1100\u1161\u1161\u1161\u1161x", "\u1100\u1161\u1161<+2 marks>x"),
        ("a\u1039b", "a<U+1039>b"),
        ("\U00018b00\U00016fe4", "\U00018b00<U+16FE4>"),
        ("\U0001d158\U0001d159", "\U0001d158<U+1D159>"),
        ("\u0301\u094d", "\u0301<U+094D>"),
    ],
)
def test_every_part_of_a_call_that_runs_is_visible(text, seen):
    assert clean_call(text) == seen == clean(seen)
    assert [piece.text for piece in safe_pieces(text)] == ([seen] if "\n" not in text else seen.split("␊"))


@pytest.mark.parametrize(
    "text",
    ["<3,000 blanks>", "<58 empty lines>", "<U+200B>", "<+498 marks>", "<+1 mark>", "<+9 characters>", "a␊b", "␠"],
)
def test_no_text_of_a_call_looks_like_a_count_or_a_sign_of_ours(text):
    assert text not in clean_call(text)
    assert [piece.text for piece in safe_pieces(text)] == [clean_call(text)]
    assert clean_call("a <b 3> <<EOF <U+> <3 x> 2>&1") == "a <b 3> <<EOF <U+> <3 x> 2>&1"


def unseen(seen: str) -> str:
    """Return the text behind its shown form, if nothing in it is counted."""
    signs = re.compile(r"<U\+([0-9A-F]{4,6})>|([\u2400-\u2420])|\u2421")
    return signs.sub(lambda sign: chr(int(sign[1], 16)) if sign[1] else chr(ord(sign[2] or "\u247f") - 0x2400), seen)


@given(
    st.text(st.sampled_from("<U+2BA0>, +1mark\u200b␊\n\r\t\u00a0") | st.characters(), max_size=39)
    | st.lists(st.sampled_from(["<", "U+200B", ">", "+1 mark", "9 blanks", " ", "\u200b", "␠"])).map("".join)
)
def test_calls_that_differ_look_different(text):
    is_counted = any(unicodedata.category(one).startswith("M") or one in SMALL for one in text) or re.search(
        r"\s{40}", text
    )
    assert is_counted or unseen(clean_call(text, len(text))) == text


def spans(text: str) -> list[str]:
    """Return the characters of ranges such as `180B-180F`."""
    ends = ([int(code, 16) for code in word.split("-")] for word in text.split())
    return [chr(code) for span in ends for code in range(span[0], span[-1] + 1)]


IGNORABLE = spans(
    "00AD 034F 061C 115F-1160 17B4-17B5 180B-180F 200B-200F 202A-202E 2060-206F 3164 FE00-FE0F FEFF FFA0 FFF0-FFF8"
    " 1BCA0-1BCA3 1D173-1D17A E0000-E0FFF"
)
"""Default_Ignorable_Code_Point of Unicode 15.1, as this Python may know another version."""
BLANK = spans("2800 FFFC 13441-13442 16FE4 1D159")
MARKS = spans("0300-036F 0483-0489 1AB0-1AFF 1DC0-1DFF 20D0-20FF 2DE0-2DFF FE20-FE2F")
"""Marks that are visible on any letter, except the ignorable one among the first."""
PICTURED = spans("FE0E-FE0F 1F3FB-1F3FF")


def test_no_text_holds_an_invisible_character():
    planes = map(chr, (*range(0x40000), *range(0xE0000, 0xF0000)))  # the others hold no characters
    narrow = {character for character in planes if get_character_cell_size(character) == 0}
    hidden = {*IGNORABLE, *BLANK, *narrow} - {*MARKS, "\n", "\r", "\t"} | {"\u034f"}
    shows = (clean, clean_name, clean_call, lambda text: "".join(one.text for one in safe_pieces(text)))
    for show, around in product(shows, ("a{}b", "{}b", "a {}", "\u20ac{}")):
        left = {one for one in hidden if one in show(around.format(one))}
        # Behind a sign that is no letter, these characters choose how it looks.
        assert left <= ({*PICTURED} if around[0] == "\u20ac" else set()), (around, ascii(left))


@pytest.mark.parametrize(
    ("text", "count"),
    [("a\U000e0162\U000e0163b", 2), ("x\u2800\u3164", 2), ("é\n", 0), ("☎\ufe0f 1\ufe0f", 0), ("👩\u200d🔬", 0)],
)
def test_characters_that_an_editor_shows_as_nothing_are_counted(text, count):
    assert count_unseen(text) == count


def test_any_error_can_be_put_into_words():
    class SilentError(Exception):
        def __str__(self):
            raise RuntimeError

    assert describe_error(ValueError("a\x1b[2Jb")) == "ValueError: a␛[2Jb"
    assert describe_error(SilentError()) == "an error that cannot be printed"


@pytest.mark.parametrize("text", ["\x7f", "ä\u202e", "\ud800"])
def test_json_for_a_terminal_is_ascii(text):
    written = indented_json({"a": text})
    assert written.isascii()
    assert written.replace("\n", "").isprintable()
    assert json.loads(written) == {"a": text}


def test_blanks_and_empty_lines_that_are_counted_hide():
    assert [has_hidden_blanks(text) for text in ("a\nb", f"a{' ' * 5_000}b", "a" + "\n" * 300)] == [False, True, True]
