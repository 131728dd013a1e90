"""Edits of JSON texts: what they add is there, and nothing else is another."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentwatch.agents.setup.splice import BrokenError, JsonEntry, JsonMember, added, commented, removed

MEMBER = JsonMember(("mcp", "agentwatch"), {"command": ["agentwatch", "mcp"], "enabled": True})
ENTRY = JsonEntry(("hooks", "Stop"), {"ours": 1}, lambda entry: isinstance(entry, dict) and "ours" in entry)
WISHES = (MEMBER, ENTRY)

blanks = st.sampled_from(["", " ", "\n", "\n  ", "\t", " // a, note\n", "/* {, } */", "\r\n"])
scalars = (
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.floats(allow_nan=False, allow_infinity=False)
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)
others = st.dictionaries(st.text(max_size=4).filter(lambda key: key not in ("mcp", "hooks")), values, max_size=3)
documents = st.builds(
    lambda rest, mcp, stop: rest | mcp | stop,
    others,
    st.just({}) | st.builds(lambda inner: {"mcp": inner}, others),
    st.just({}) | st.builds(lambda inner: {"hooks": {"Stop": inner}}, st.lists(values, max_size=2)),
)


@st.composite
def spelled(draw: st.DrawFn, value: Any) -> str:
    """A JSON value with blanks, comments and trailing commas wherever they may be."""
    if isinstance(value, dict):
        parts = [
            f"{draw(blanks)}{json.dumps(key)}{draw(blanks)}:{draw(blanks)}{draw(spelled(one))}{draw(blanks)}"
            for key, one in value.items()
        ]
        ends = "{}"
    elif isinstance(value, list):
        parts = [f"{draw(blanks)}{draw(spelled(one))}{draw(blanks)}" for one in value]
        ends = "[]"
    else:
        return json.dumps(value, ensure_ascii=draw(st.booleans()))
    comma = "," + draw(blanks) if parts and draw(st.booleans()) else draw(blanks) if not parts else ""
    return f"{ends[0]}{','.join(parts)}{comma}{ends[1]}"


@given(st.data(), documents)
def test_any_text_gets_what_is_wished_and_keeps_the_rest(data: st.DataObject, document: dict[str, Any]) -> None:
    text = data.draw(blanks) + data.draw(spelled(document)) + data.draw(blanks)
    assert commented(text).value == document
    done = added(text, WISHES)
    found = commented(done).value
    assert found["mcp"].pop("agentwatch") == MEMBER.value
    assert ENTRY.value in found["hooks"]["Stop"]
    found["hooks"]["Stop"].remove(ENTRY.value)
    assert {key: one for key, one in found.items() if one not in ({}, {"Stop": []})} == {
        key: one for key, one in document.items() if one not in ({}, {"Stop": []})
    }
    # Not a character of the text is lost, whatever it means: comments are somebody's words.
    rest = iter(done)
    assert all(character in rest for character in text if not character.isspace())
    assert added(done, WISHES) == done


@given(st.data(), documents)
def test_any_text_loses_what_was_added_and_nothing_else(data: st.DataObject, document: dict[str, Any]) -> None:
    text = data.draw(spelled(document))
    left = removed(added(text, WISHES), WISHES)
    full = {key: one for key, one in commented(left).value.items() if one not in ({}, {"Stop": []})}
    assert full == {key: one for key, one in document.items() if one not in ({}, {"Stop": []})}
    assert removed(left, WISHES) == left
    assert left.count("a, note") == text.count("a, note")


@pytest.mark.parametrize(
    "text",
    ["", "{", "{]", '{"a" 1}', '{"a": }', '{"a": 1 "b": 2}', "{} {}", "[1,,2]", "{'a': 1}", "[" * 5000, "nul", "{,}"],
)
def test_what_is_no_json_is_refused(text: str) -> None:
    with pytest.raises(BrokenError):
        commented(text)


@pytest.mark.parametrize("text", ["[]", "1", '{"mcp": 1}', '{"hooks": {"Stop": {}}}'])
def test_a_text_of_another_shape_is_refused(text: str) -> None:
    with pytest.raises(BrokenError):
        added(text, WISHES)


def test_an_old_one_of_ours_is_replaced_in_its_place() -> None:
    text = '{"hooks": {"Stop": [1, {"ours": 0}, 2]}, "mcp": {"agentwatch": 1, "b": 2}}'
    found = commented(added(text, WISHES)).value
    assert found == {"hooks": {"Stop": [1, {"ours": 1}, 2]}, "mcp": {"agentwatch": MEMBER.value, "b": 2}}
    assert list(found["mcp"]) == ["agentwatch", "b"]
