"""Messages larger than a server takes arrive whole, or not at all."""

from __future__ import annotations

import random

import pytest
from agentwatch.remote.nats_parts import HEADER, Joiner, cut

LARGEST = 4096


@pytest.mark.parametrize("size", [0, 1, LARGEST - 1024, LARGEST - 1023, LARGEST, 10 * LARGEST])
def test_parts_in_any_order_and_doubled_are_the_whole_again(size: int) -> None:
    data = random.Random(size).randbytes(size)
    parts = list(cut(data, LARGEST))
    assert all(len(part) + len(str(header)) <= LARGEST for _, part, header in parts)
    assert (parts[0][2] is None) == (size <= LARGEST - 1024)
    shuffled = parts * 2 if len(parts) > 1 else parts
    random.Random(1).shuffle(shuffled)
    joiner = Joiner()
    assert data in [joiner.add("host", part, header) for _, part, header in shuffled]


def test_parts_of_two_hosts_and_two_messages_do_not_mix() -> None:
    messages = [b"a" * 9000, b"b" * 9000, b"c" * 9000]
    rows = [list(cut(one, LARGEST)) for one in messages]
    joiner = Joiner()
    whole = [
        joiner.add(f"host {at % 2}", part, header)
        for row in zip(*rows, strict=True)
        for at, (_, part, header) in enumerate(row)
    ]
    assert [one for one in whole if one is not None] == messages


def test_parts_that_never_become_a_whole_take_no_more_than_so_much_memory() -> None:
    joiner, part = Joiner(), bytes(1 << 20)
    for number in range(200):
        assert joiner.add("host", part, {HEADER: f"{number} 0 2"}) is None
    assert joiner.held <= 64 << 20


@pytest.mark.parametrize(
    "header", ["", "x", "a 0", "a 1 1", "a 0 0", "a -1 2", "a 0 99999999999", "a ² 3", "a 0 2 3 4"]
)
def test_a_header_that_says_nothing_true_is_passed_over(header: str) -> None:
    assert Joiner().add("host", b"part", {HEADER: header}) is None
