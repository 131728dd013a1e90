"""Messages through pipes arrive whole or not at all, wherever the pipe breaks and whatever a shell says before."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import suppress
from queue import Queue

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from agentwatch.remote.pipe import GREETING, CutError, LinkState, StdioEnd, Writer, framed, messages

SECONDS = 60


def arrived(data: bytes) -> tuple[list[bytes], str]:
    """The messages that come out of a pipe with this in it, and how it ends."""
    incoming, outgoing = os.pipe()
    with os.fdopen(outgoing, "wb", 0) as pipe:
        threading.Thread(target=lambda: (pipe.write(data), pipe.close()), daemon=True).start()
        found: list[bytes] = []
        try:
            for message in messages(incoming):
                found.append(message)  # noqa: PERF402  it ends by an exception
        except CutError as error:
            return found, str(error)
        finally:
            os.close(incoming)
    raise AssertionError("it has no end")


@given(st.lists(st.binary(max_size=20), max_size=5), st.binary(max_size=40), st.integers(0, 200))
def test_wherever_it_is_cut_whole_messages_have_arrived_and_no_part_of_one(
    sent: list[bytes], noise: bytes, cut: int
) -> None:
    assume(GREETING not in noise)
    data = noise + GREETING + b"".join(map(framed, sent))
    found, why = arrived(data[: min(cut, len(data))])
    assert found == sent[: len(found)]
    assert why == "the connection has ended"
    assert arrived(data) == (sent, "the connection has ended")


@pytest.fixture
def pipes() -> Iterator[list[int]]:
    made = [*os.pipe(), *os.pipe()]
    yield made
    for one in made:
        with suppress(OSError):
            os.close(one)


def test_the_end_of_a_relay_ends_with_its_screen(pipes: list[int]) -> None:
    there_in, here_out, _, there_out = pipes
    states = Queue[LinkState]()
    end = StdioEnd(there_in, there_out)
    end.start(lambda _: None, states.put)
    Writer(here_out).stop()
    os.close(here_out)
    assert states.get(timeout=SECONDS) == LinkState(up=False, words="the connection has ended", fatal=True)
    end.stop()


def test_who_does_not_read_holds_nobody_up_and_gets_what_has_room(pipes: list[int]) -> None:
    writer = Writer(pipes[1])
    for _ in range(200):
        writer.send(bytes(1_000_000))
    writer.stop(0)
    os.close(pipes[0])


def test_what_waits_when_it_is_stopped_never_gets_into_the_file_that_takes_the_number() -> None:
    here, there = os.pipe()
    writer = Writer(there)
    writer.send(bytes(1_000_000))
    writer.stop(0)
    os.close(there)
    # The next file that is opened has the number.
    other, again = os.pipe()
    numbers = [other, again]
    assert there in numbers
    with os.fdopen(here, "rb") as pipe:
        assert pipe.read() == GREETING + framed(bytes(1_000_000))
    os.set_blocking(other, False)
    with pytest.raises(BlockingIOError):
        os.read(other, 1)
    for one in numbers:
        os.close(one)
