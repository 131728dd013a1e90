"""A message arrives unchanged: a carrier can lose it, but can neither make one up nor change one."""

import dataclasses
import json
import types
import zlib
from collections.abc import Mapping
from contextlib import suppress
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from agentwatch.decisions.envelope import seal
from agentwatch.delegation.events import Gone
from agentwatch.remote.protocol import (
    LARGEST,
    PROTOCOL,
    Entry,
    Frame,
    Hello,
    Observed,
    Verifier,
    VersionError,
    frame_to_json,
    pack_frame,
    read_frame,
    sign_frame,
    unpack_frame,
)
from tests.broker import new_key

TEXTS = st.text(st.characters(codec="utf-8"), max_size=6)
PLAIN = {
    str: TEXTS,
    float: st.floats(-1e9, 2e11) | st.sampled_from([0.0, -0.0, 1.0]),
    int: st.integers(-(1 << 40), 1 << 40),
}


def any_of(shape: Any) -> st.SearchStrategy[Any]:
    """Return a strategy for the values of a type."""
    origin, arguments = get_origin(shape), get_args(shape)
    if origin in (Union, types.UnionType):
        return st.one_of(*map(any_of, arguments))
    if origin is tuple and arguments[-1] is Ellipsis:
        return st.lists(any_of(arguments[0]), max_size=2).map(tuple)
    if origin is tuple:
        return st.tuples(*map(any_of, arguments))
    if origin in (dict, Mapping):
        return st.dictionaries(TEXTS, any_of(arguments[1]), max_size=2)
    if origin is Annotated:
        return st.just("s-1")
    if shape is Entry:
        return st.sampled_from([*Entry.model_fields]).flatmap(
            lambda name: any_of(get_type_hints(Entry)[name].__args__[0]).map(lambda one: Entry(**{name: one}))
        )
    if isinstance(shape, type) and issubclass(shape, BaseModel):
        hints = get_type_hints(shape, include_extras=True)
        return st.builds(shape, **{name: any_of(hints[name]) for name in shape.model_fields})
    if dataclasses.is_dataclass(shape) or hasattr(shape, "_fields"):
        names = getattr(shape, "_fields", None) or [one.name for one in dataclasses.fields(shape)]
        return st.deferred(lambda: st.builds(shape, **{name: any_of(get_type_hints(shape)[name]) for name in names}))
    return PLAIN.get(shape, st.from_type(shape))


KEY, OTHER = new_key(), new_key()
FRAMES = st.one_of(*map(any_of, get_args(Frame)))
HELLO = Hello(protocol=PROTOCOL, agentwatch="1", host="b", host_key=KEY.public.text, epoch="e", began_at=1.0, now=2.0)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=10,
)


def verifier() -> Verifier:
    return Verifier("build1", KEY.public, lambda _key: "")


@given(FRAMES)
def test_a_frame_comes_back_as_it_was_in_one_line(frame):
    assert b"\n" not in frame_to_json(frame)
    assert (
        read_frame(frame_to_json(frame))
        == unpack_frame(pack_frame(frame))
        == verifier().read(sign_frame(frame, KEY))
        == frame
    )


def damaged(value: Any, path: list[int], other: Any) -> Any:
    """Return JSON with another value at one place."""
    if not path or not isinstance(value, dict | list) or not value:
        return other
    keys = list(value) if isinstance(value, dict) else list(range(len(value)))
    key = keys[path[0] % len(keys)]
    changed = dict(value) if isinstance(value, dict) else list(value)
    changed[key] = damaged(value[key], path[1:], other)  # type: ignore[index,call-overload]
    return changed


@given(FRAMES, st.lists(st.integers(0, 20), min_size=1, max_size=8), JSON)
def test_a_damaged_frame_is_refused_with_a_reason_or_understood(frame, path, other):
    with suppress(ValueError):
        understood = read_frame(json.dumps(damaged(json.loads(frame_to_json(frame)), path, other)).encode())
        # A frame that was understood can be sent again.
        assert read_frame(frame_to_json(understood)).kind == understood.kind


@given(st.binary(max_size=60) | JSON.map(lambda value: json.dumps(value).encode()))
def test_invalid_bytes_are_refused_with_a_reason(data):
    with suppress(ValueError):
        read_frame(data)
    assert verifier().read(data) is None


@pytest.mark.parametrize(
    "data",
    [
        b"[" * 100_000,
        b" " * (LARGEST + 1),
        b'{"kind":"observed","workspace":"w","epoch":"e","after":0,"upto":NaN}',
        b'{"kind":"observed","workspace":"w","epoch":"e","after":0,"upto":1.0}',
        b'{"kind":"observed","workspace":"w","epoch":"e","after":0,"upto":true}',
        b'{"kind":"observed","workspace":7,"epoch":"e","after":0,"upto":1}',
        b'{"kind":"observed","epoch":"e","after":0,"upto":1}',
        b'{"kind":"watch","screen":"*","sent":1}',
        b'{"kind":"watch","screen":"x 0\\r\\nPUB a","sent":1}',
        b'{"kind":"watch","screen":"s\\n","sent":1}',
        b'{"kind":"watch","screen":"' + b"s" * 65 + b'","sent":1}',
        b'{"kind":"weather","sun":true}',
    ],
)
def test_a_text_that_is_no_frame_is_refused(data):
    with pytest.raises(ValueError):  # noqa: PT011  any reason will do
        read_frame(data)


def test_unknown_keys_of_a_frame_are_ignored():
    entry = Entry(gone=Gone(1, 5.0, "a.json"))
    fields = json.loads(frame_to_json(Observed(workspace="w", epoch="e", after=0, upto=1, entries=(entry,))))
    fields["more"] = fields["entries"][0]["more"] = 1
    known = read_frame(json.dumps(fields).encode())
    assert isinstance(known, Observed)
    assert known.entries == (entry,)


@pytest.mark.parametrize("protocol", [[3, 0], [4, 1], 5, ["x", 1]])
def test_another_protocol_is_refused_with_a_reason(protocol):
    data = json.dumps({"kind": "hello", "protocol": protocol, "agentwatch": "9.8", "host": "build1"}).encode()
    with pytest.raises(VersionError) as raised:
        read_frame(data)
    assert "the relay there (agentwatch 9.8) speaks another protocol than this" in str(raised.value)


@given(st.data())
def test_a_message_with_one_changed_bit_is_not_read(data):
    message = bytearray(sign_frame(HELLO, KEY))
    place = data.draw(st.integers(0, len(message) * 8 - 1))
    message[place // 8] ^= 1 << place % 8
    assert verifier().read(bytes(message)) is None


def test_a_signed_decision_is_no_message_nor_the_reverse():
    payload = b"=" + frame_to_json(HELLO)
    about = b"DSSEv1 44 application/vnd.agentwatch.decision.v1+json %d %s" % (len(payload), payload)
    for message in (KEY.private.sign(about) + bytes.fromhex(KEY.public.keyid) + payload, seal(payload, KEY)):
        assert verifier().read(message) is None
    assert verifier().read(sign_frame(HELLO, OTHER)) is None


def test_a_message_that_would_fill_the_memory_is_not_unpacked():
    with pytest.raises(ValueError, match="too large"):
        unpack_frame(b"z" + zlib.compress(bytes(LARGEST * 4)))
