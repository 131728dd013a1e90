"""The operator's editor: which command, and that no file name becomes one."""

import sys

import pytest

from agentwatch.app.editor import command_words, run


@pytest.mark.parametrize(
    ("named", "words"),
    [
        (["code --wait", "vi"], ["code", "--wait"]),
        ([None, "", "'my editor' -n"], ["my editor", "-n"]),
        (["vi 'x"], []),
        ([None], []),
    ],
)
def test_the_first_that_is_named_is_taken(named, words, tmp_path):
    assert command_words(named, ["vi"], str(tmp_path)) == words


def test_where_nothing_is_set_it_is_what_is_usual_if_there_is_one(tmp_path):
    (tmp_path / "more").touch(mode=0o755)
    assert command_words([None], ["less", "more"], str(tmp_path)) == ["more"]


def test_the_file_is_one_argument_and_never_a_command(tmp_path):
    seen = tmp_path / "seen.txt"
    script = f"import sys, pathlib; pathlib.Path({str(seen)!r}).write_text(repr(sys.argv[1:])); sys.exit(3)"
    file = tmp_path / "-rf $(touch owned); x.md"
    assert run([sys.executable, "-c", script, str(file)]) == 3
    assert seen.read_text("utf-8") == repr([str(file)])


def test_an_editor_that_is_not_there_raises(tmp_path):
    with pytest.raises(FileNotFoundError):
        run([str(tmp_path / "none")])


def test_lines_are_given_to_a_command_that_may_end_before_their_end(tmp_path):
    seen = tmp_path / "seen.txt"
    script = f"import sys, pathlib; pathlib.Path({str(seen)!r}).write_text(sys.stdin.readline())"
    assert run([sys.executable, "-c", script], (f"line {number}" for number in range(1_000_000))) == 0
    assert seen.read_text("utf-8") == "line 0\n"
