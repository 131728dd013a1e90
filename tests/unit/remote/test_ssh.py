"""The words that ssh is given, and what is made of those that it says."""

import shlex

import pytest

from agentwatch.remote.address import parse
from agentwatch.remote.pipe import command, reason


def test_the_shell_gets_paths_quoted_and_ssh_no_option():
    hostile = "/srv/-rf '; touch pwned; '$(x)\n"
    made = command(parse("ssh://kim@[::1]:2222/srv"), [hostile, "~/shop"])
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
    said = reason(code, lines, "build1", "the connection has ended")
    assert words in said
    assert len(said) < 500
    assert said.isprintable()
