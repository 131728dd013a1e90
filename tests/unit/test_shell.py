"""Command lines to copy are exact for the shell, and send no sequences to the terminal."""

import os
import shutil
import subprocess

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agentwatch.shell import command_line, distrust_workspace, find_program
from agentwatch.text import clean

BASH = shutil.which("bash")
ARGUMENTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))


@given(st.lists(ARGUMENTS, max_size=3))
def test_a_line_is_safe_to_show(words):
    line = command_line(words)
    assert clean(line, len(line)) == line
    assert "\n" not in line
    assert command_line(["decide", "shop.api"]) == "decide shop.api"


@pytest.mark.skipif(BASH is None, reason="needs bash")
@given(ARGUMENTS)
@example("\udcff\udc80")
@example("\x1b]0;x\x07\n")
def test_the_shell_reads_any_word_back(word):
    done = subprocess.run([str(BASH), "-c", command_line(["printf", "%s\\0", word])], capture_output=True, check=True)
    assert done.stdout == os.fsencode(word) + b"\0"


def test_a_word_that_no_argument_can_hold_is_refused():
    for word in ("b\0c", "\ud800"):
        with pytest.raises(ValueError, match=r"NUL|surrogates"):
            command_line(["wait", "--", word])


def test_programs_come_only_from_places_no_agent_can_write(tmp_path):
    places = {name: tmp_path / name for name in ("open", "work", "bin", "more")}
    for place in places.values():
        place.mkdir()
        for name in ("tool", "linked"):
            (place / name).touch(mode=0o755)
    places["open"].chmod(0o777)
    distrust_workspace(places["work"])
    (places["bin"] / "linked").unlink()
    (places["bin"] / "linked").symlink_to(places["work"] / "linked")
    path = os.pathsep.join(["relative", *map(str, places.values())])
    assert find_program("tool", path) == str(places["bin"] / "tool")
    assert find_program("linked", path) == str(places["more"] / "linked"), "where a link leads counts, too"
    assert find_program("./tool", path) is None
    (tmp_path / ".git").touch()
    assert find_program("tool", path) is None
