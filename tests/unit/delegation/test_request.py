"""What identifies a request: its exact input, and who asked it where."""

from __future__ import annotations

import hashlib

import pytest

from agentwatch.delegation.decision import OF_ATTEMPTS, OF_REQUESTS, Action
from agentwatch.delegation.request import input_text, request_id_of


def test_equal_inputs_have_one_spelling_whatever_the_order_of_their_keys() -> None:
    one, two = input_text({"b": 1, "a": "ä"}), input_text({"a": "ä", "b": 1})
    assert one == two == ('{"a":"ä","b":1}', hashlib.sha256('{"a":"ä","b":1}'.encode()).hexdigest())
    assert input_text({"a": "1"}) != input_text({"a": 1})


@pytest.mark.parametrize("value", [float("nan"), "\ud800", {"a": {1}}, {1: 0, "a": 0}])
def test_an_input_without_a_spelling_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match=r"JSON|surrogate"):
        input_text(value)


def test_an_input_that_is_nested_too_deep_is_refused() -> None:
    value: object = 0
    for _ in range(100_000):
        value = [value]
    with pytest.raises(ValueError, match="JSON"):
        input_text(value)


def test_the_id_of_a_request_depends_on_each_of_its_parts_and_on_where_they_end() -> None:
    parts = ["workspace", "claude", "session", "nonce", "0" * 64]
    ids = {request_id_of(*parts)}
    for place in range(5):
        ids.add(request_id_of(*parts[:place], parts[place] + "1", *parts[place + 1 :]))
    ids.add(request_id_of("workspac", "eclaude", *parts[2:]))
    assert len(ids) == 7
    assert all(len(one) == 32 and set(one) <= set("0123456789abcdef") for one in ids)


def test_every_action_is_of_an_attempt_or_of_a_request() -> None:
    assert tuple(Action) == OF_ATTEMPTS + OF_REQUESTS
