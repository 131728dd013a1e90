"""What is said arrives as it was said, and what nobody can have said is refused in a sentence."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any, get_args

import pytest
from agentwatch.remote.frames import (
    LARGEST,
    PROTOCOL,
    Ask,
    Frame,
    Hello,
    Item,
    Observed,
    VersionError,
    Watch,
    frame_of,
    to_bytes,
)
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.remote.shapes import any_of

from agentwatch.delegation.events import Gone

FRAMES = st.one_of(*(any_of(shape) for shape in get_args(Frame) if shape is not Hello)).map(
    lambda frame: frame._replace(screen="s-1") if isinstance(frame, Watch | Ask) else frame
)
HELLOS = any_of(Hello).map(lambda hello: hello._replace(protocol=PROTOCOL))
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=10,
)


@given(FRAMES | HELLOS)
def test_a_frame_comes_back_as_it_was_in_one_line(frame: Frame) -> None:
    data = to_bytes(frame)
    assert b"\n" not in data
    assert frame_of(data) == frame


def damaged(value: Any, path: list[int], other: Any) -> Any:
    """JSON in which something else stands at a place."""
    if not path or not isinstance(value, dict | list) or not value:
        return other
    keys = list(value) if isinstance(value, dict) else list(range(len(value)))
    key = keys[path[0] % len(keys)]
    changed = dict(value) if isinstance(value, dict) else list(value)
    changed[key] = damaged(value[key], path[1:], other)  # type: ignore[index,call-overload]
    return changed


@given(FRAMES | HELLOS, st.lists(st.integers(0, 20), min_size=1, max_size=8), JSON)
def test_what_is_damaged_is_refused_with_a_reason_or_understood(frame: Frame, path: list[int], other: Any) -> None:
    data = json.dumps(damaged(json.loads(to_bytes(frame)), path, other)).encode()
    with suppress(ValueError):
        understood = frame_of(data)
        if understood is not None:
            # What was understood can be said again.
            assert frame_of(to_bytes(understood)) == understood


@given(st.binary(max_size=60) | JSON.map(lambda value: json.dumps(value).encode()))
def test_bytes_that_nobody_said_raise_nothing_but_a_reason(data: bytes) -> None:
    with suppress(ValueError):
        frame_of(data)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"[" * 100_000, "nested too deeply"),
        (b" " * (LARGEST + 1), "too large"),
        (b'{"kind":"reset","workspace":"w","epoch":"e","upto":NaN}', "NaN is no number"),
        (b'{"kind":"reset","workspace":"w","epoch":"e","upto":1.0}', "no whole number"),
        (b'{"kind":"reset","workspace":"w","epoch":"e","upto":true}', "no whole number"),
        (b'{"kind":"reset","workspace":"w","epoch":"e","upto":1' + b"0" * 5_000 + b"}", "digits"),
        (b'{"kind":"reset","workspace":7,"epoch":"e","upto":1}', "'7' is no text"),
        (b'{"kind":"reset","epoch":"e","upto":1}', "Reset without workspace"),
        (b'{"kind":"watch","screen":"*","sent":1}', "no screen has such an id"),
        (b'{"kind":"watch","screen":"x 0\\r\\nPUB a","sent":1}', "no screen has such an id"),
        (b'{"kind":"watch","screen":"' + b"s" * 65 + b'","sent":1}', "no screen has such an id"),
        (b'{"kind":"beat","epoch":"e","now":1e999,"marks":{},"echo":{}}', "no number"),
    ],
)
def test_a_reason_says_what_is_wrong(data: bytes, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        frame_of(data)


def test_what_another_version_says_besides_is_passed_over() -> None:
    assert frame_of(b'{"kind":"weather","sun":true}') is None
    fields = json.loads(to_bytes(Observed("w", "e", 0, 1, 5.0, (Item(1, 0, Gone(1, 5.0, "a.json")),))))
    fields["more"] = fields["items"][0]["event"]["more"] = 1
    known = frame_of(json.dumps(fields).encode())
    assert isinstance(known, Observed)
    assert known.items[0].event == Gone(1, 5.0, "a.json")


def hello(major: int, minor: int) -> bytes:
    said = {"kind": "hello", "protocol": [major, minor], "agentwatch": "9.8", "host": "build1", "host_key": "k"}
    return json.dumps({**said, "epoch": "e", "began_at": 1.0, "now": 2.0, "workspaces": []}).encode()


def test_versions_that_differ_by_one_minor_understand_each_other() -> None:
    major, minor = PROTOCOL
    for other in (minor, minor + 1, minor - 1):
        assert isinstance(frame_of(hello(major, other)), Hello)


@pytest.mark.parametrize(("major", "minor", "where"), [(3, 2, "here"), (4, 0, "here"), (2, 0, "there")])
def test_other_versions_are_named_and_who_has_to_be_updated(major: int, minor: int, where: str) -> None:
    with pytest.raises(VersionError) as raised:
        frame_of(hello(major, minor))
    assert str(raised.value) == (
        f"the relay there speaks protocol {major}.{minor} (agentwatch 9.8), and this agentwatch"
        f" {PROTOCOL[0]}.{PROTOCOL[1]}: update agentwatch {where}"
    )
