"""Command lines to copy are exact for the shell, and order nothing from the terminal."""

import os
import shutil
import subprocess

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agentwatch.shell import command_line
from agentwatch.text import clean

BASH = shutil.which("bash")
ARGUMENTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))


@given(st.lists(ARGUMENTS, max_size=3))
def test_a_line_is_safe_to_show(words):
    line = command_line(words)
    assert clean(line, len(line)) == line
    assert "\n" not in line


@pytest.mark.skipif(BASH is None, reason="needs bash")
@given(ARGUMENTS)
@example("\udcff\udc80")
@example("\x1b]0;x\x07\n")
def test_the_shell_reads_any_word_back(word):
    done = subprocess.run([str(BASH), "-c", command_line(["printf", "%s\\0", word])], capture_output=True, check=True)
    assert done.stdout == os.fsencode(word) + b"\0"


def test_a_plain_id_stays_as_it_is():
    assert command_line(["agentwatch", "decide", "shop.api"]) == "agentwatch decide shop.api"


def test_a_word_that_no_argument_can_hold_is_refused():
    for word in ("b\0c", "\ud800"):
        with pytest.raises(ValueError, match=r"NUL|surrogates"):
            command_line(["wait", "--", word])
