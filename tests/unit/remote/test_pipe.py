"""Messages through pipes arrive whole or not at all, at whatever byte the pipe breaks and whatever a shell prints
before; and the words to and from ssh."""

import os
import shlex
import struct
import threading
from contextlib import suppress

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from agentwatch.remote.address import parse
from agentwatch.remote.pipe import GREETING, Writer, explain_end, read_messages, relay_command


def framed(message: bytes) -> bytes:
    return struct.pack(">I", len(message)) + message


def arrived(data: bytes) -> tuple[list[bytes], str]:
    """Return the messages that come out of a pipe with this data, and how the pipe ends."""
    incoming, outgoing = os.pipe()
    with os.fdopen(outgoing, "wb", 0) as pipe:
        threading.Thread(target=lambda: (pipe.write(data), pipe.close()), daemon=True).start()
        found: list[bytes] = []
        try:
            for message in read_messages(incoming):
                found.append(message)  # noqa: PERF402  it ends by an exception
        except OSError as error:
            return found, str(error)
        finally:
            os.close(incoming)
    raise AssertionError("it has no end")


@given(st.lists(st.binary(max_size=20), max_size=5), st.binary(max_size=40), st.integers(0, 200))
def test_wherever_it_is_cut_no_part_of_a_message_arrives(sent, noise, cut):
    assume(GREETING not in noise)
    data = noise + GREETING + b"".join(map(framed, sent))
    found, why = arrived(data[: min(cut, len(data))])
    assert found == sent[: len(found)]
    assert why == "the connection has ended"
    assert arrived(data) == (sent, "the connection has ended")


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (bytes(300_000), "something else than a relay answers there"),
        (GREETING + b"\x7f" * 300_000, "the connection has ended"),
        (GREETING + b"\xff" * 300_000, "the connection has ended"),
    ],
)
def test_a_program_that_is_no_relay_is_soon_given_up(data, why):
    assert arrived(data) == ([], why)


def test_data_that_waits_at_the_end_gets_into_no_other_file():
    here, there = os.pipe()
    writer = Writer(there)
    writer.send(bytes(1_000_000))
    writer.stop(0)
    os.close(there)
    # The next pipe gets the same descriptor number.
    other, again = os.pipe()
    assert there in (other, again)
    with os.fdopen(here, "rb") as pipe:
        assert pipe.read() == GREETING + framed(bytes(1_000_000))
    os.set_blocking(other, False)
    with suppress(BlockingIOError):
        pytest.fail(f"{os.read(other, 1)!r} was written")
    for one in (other, again):
        os.close(one)


def test_the_shell_gets_paths_quoted_and_ssh_no_option():
    hostile = "/srv/-rf '; touch pwned; '$(x)\n"
    made = relay_command(parse("ssh://kim@[::1]:2222/srv"), [hostile, "~/shop"])
    assert made[-3:-1] == ["--", "::1"]
    assert made[made.index("-p") + 1 : made.index("-p") + 4] == ["2222", "-l", "kim"]
    assert shlex.split(made[-1])[-2:] == [hostile, "~/shop"]


@pytest.mark.parametrize(
    ("code", "lines", "words"),
    [
        (127, ["sh: 1: exec: agentwatch: not found"], "agentwatch is not installed on build1"),
        (255, ["ssh: Could not resolve hostname build1"], "Could not resolve hostname build1: `ssh build1` in a"),
        (255, ["kim@build1: Permission denied (publickey)."], "(publickey): `ssh build1` in a terminal says more"),
        (255, ["", ""], "ssh could not connect"),
        (1, ["agentwatch: the key is locked"], "the key is locked"),
        (1, ["\x1b]0;owned\x07\u202e" + "y" * 4_000], "yyy"),
        (0, [], "the connection has ended"),
    ],
)
def test_a_reason_is_the_last_line_that_says_one_and_what_to_do(code, lines, words):
    said = explain_end(code, lines, "build1", "the connection has ended")
    assert words in said
    assert len(said) < 500
    assert said.isprintable()
