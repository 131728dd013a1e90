"""JSON is read with the line of each place, and as far as it goes."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agentwatch.contracts.findings import Judgement
from agentwatch.contracts.json_source import JsonSource
from agentwatch.contracts.json_text import MAX_DEPTH, MAX_TOKENS, Node, Scan, space

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=20,
)

TEXT = """\
{
  "name": "bed",
  "rows": [
    {"plant": "leek"},
    {
      "plant": "kale"
    }
  ],
  "size": {"width": 2,
    "length": 9}
}
"""


def rules(text: str) -> list[tuple[str, int | None]]:
    source = JsonSource(text)
    judgement = Judgement()
    source.judge(judgement)
    return [(finding.rule, finding.line) for finding in judgement.findings(source.line_of)]


@given(values, st.sampled_from([None, 0, 2]))
def test_the_scanner_reads_what_the_parser_reads(value: Any, indent: int | None) -> None:
    text = json.dumps(value, indent=indent)
    found = Scan(text)

    assert found.broken is None
    assert found.value == json.loads(text)


@given(values, st.sampled_from([None, 0, 2]), st.booleans())
def test_a_node_finds_the_places_that_the_scanner_finds(value: Any, indent: int | None, ascii_only: bool) -> None:
    text = "\n " + json.dumps(value, indent=indent, ensure_ascii=ascii_only)

    node = Node(text, space(text, 0))
    assert node.value == value
    assert {location: node.offset_of(location) for location in Scan(text).places} == Scan(text).places


@given(values, st.data())
def test_the_scanner_takes_every_prefix_for_cut_or_whole(value: Any, data: st.DataObject) -> None:
    text = json.dumps(value)
    prefix = text[: data.draw(st.integers(0, len(text) - 1))]
    found = Scan(prefix)

    try:
        whole = json.loads(prefix)
    except ValueError:
        assert found.broken is not None
        assert found.broken.at_end
    else:
        assert (found.broken, found.value) == (None, whole)


@given(st.text(alphabet='{}[]",:0123456789.eE+-tfnrualse \n\\', max_size=40))
@example('{"a":1,}')
@example("[1,]")
@example('{"a" "b"}')
@example("[,1]")
@example('{,"a":1}')
@example('{"a":1 "b":2}')
@example("01")
@example("1.")
@example("-")
@example('"\\u12')
@example('"\\x"')
@example('"a\nb"')
@example("[1] 2")
def test_the_scanner_and_the_parser_agree_on_what_is_json(text: str) -> None:
    found = Scan(text)

    try:
        value = json.loads(text)
    except ValueError:
        assert found.broken is not None
    else:
        assert found.broken is None
        assert found.value == value or found.not_finite


@pytest.mark.parametrize(
    ("location", "line"),
    [
        ((), 1),
        (("name",), 2),
        (("rows",), 3),
        (("rows", 0), 4),
        (("rows", 0, "plant"), 4),
        (("rows", 1), 5),
        (("rows", 1, "plant"), 6),
        (("size",), 9),
        (("size", "length"), 10),
        (("size", "height"), 9),
        (("rows", 7, "plant"), 3),
        (("colour",), 1),
    ],
)
def test_a_place_has_the_line_of_its_key_or_of_what_encloses_it(location: tuple[str | int, ...], line: int) -> None:
    assert JsonSource(TEXT).line_of(location) == line
    assert JsonSource(TEXT, first_line=5).line_of(location) == line + 4


def test_lines_are_counted_right_in_any_order() -> None:
    source = JsonSource(TEXT)

    assert [source.line_of((key,)) for key in ("size", "name", "rows", "size")] == [9, 2, 3, 9]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('{"a": 1}', []),
        ('{"a": 1,\n"a": 2}', [("DOC004", 2)]),
        ('{"a": {"b": 1,\n"b": 2},\n"a": 1}', [("DOC004", 2), ("DOC004", 3)]),
        ('{"a":\nNaN}', [("DOC005", 2)]),
        ('{"a":\n-Infinity, "b": 1e999}', [("DOC005", 2), ("DOC005", 2)]),
        ('{"a":\n' + "9" * 5_000 + "}", [("DOC005", 2)]),
        ('{"a": 1}\n{}', [("DOC007", 2)]),
        ('{"a": 1}\n\x00', [("DOC007", 2)]),
        ('{"a": 1\n', [("DOC002", 1)]),
        ('{"a": "x', [("DOC002", 1)]),
        ('{"a": tr', [("DOC002", 1)]),
        ('{\n"a": "x\ny"}', [("DOC001", 2)]),
        ('{"a": 1,\n// no\n"b": 2}', [("DOC001", 2)]),
        ('{"a": "\ufffd"}', [("DOC003", 1)]),
        ('{"a":\n"\\udc00"}', [("DOC003", 2)]),
        ('{"a": "\\ud83d\\ude00 \\\\ud800"}', []),
    ],
)
def test_what_is_wrong_with_the_text_itself(text: str, found: list[tuple[str, int | None]]) -> None:
    assert rules(text) == found


@pytest.mark.parametrize("depth", [MAX_DEPTH + 1, 2_000, 100_000])
@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ('{"a":', "}")])
@pytest.mark.parametrize("closed", [True, False])
def test_brackets_without_end_are_one_finding(depth: int, opening: str, closing: str, closed: bool) -> None:
    text = '{"status": "completed", "more": ' + opening * depth + ("1" + closing * depth + "}" if closed else "")
    source = JsonSource(text)
    found = rules(text)

    assert source.value["status"] == "completed"
    # The C parser sees that a shallow one is cut; of a deep one nobody knows.
    assert [rule for rule, _ in found] == ["DOC006"]
    assert source.complete


def test_a_document_at_the_limit_of_depth_is_fine() -> None:
    assert rules("[" * MAX_DEPTH + "]" * MAX_DEPTH) == []


def test_surrogate_halves_become_characters_that_can_be_written() -> None:
    assert JsonSource('{"a": "\\ud800\\ud83d\\ude00"}').value == {"a": "\ufffd\U0001f600"}


def test_a_place_behind_the_last_token_that_is_looked_at_has_the_line_of_what_encloses_it() -> None:
    text = "{\n" + "".join(f'"k{number}": 1,\n' for number in range(MAX_TOKENS)) + '"last": 1}'

    assert JsonSource(text).line_of(("k1",)) == 3
    assert JsonSource(text).line_of(("last",)) == 1


def test_a_break_behind_the_last_token_that_is_looked_at_is_still_found() -> None:
    text = "{\n" + "".join(f'"k{number}": 1,\n' for number in range(MAX_TOKENS)) + '"last" 1}'

    assert rules(text) == [("DOC001", MAX_TOKENS + 2)]


@pytest.mark.parametrize(
    "unit", ['{"a":1,"a":', '"\\u', "[[],", '{"a":[', "NaN,", '"x', "\\", "\n", ",", "1e400,", '{"a', "tru", "[{},"]
)
def test_a_megabyte_of_anything_is_scanned_to_one_answer(unit: str) -> None:
    text = "[" + unit * (1_000_000 // len(unit))
    found = Scan(text)

    assert found.broken is not None or found.gave_up or found.too_deep is not None
    assert rules(text)
