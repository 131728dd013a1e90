"""The text of a claimed file and its difference, for the screen."""

import pytest

from agentwatch.evidence.git import MAX_SHOWN, difference, file_text
from tests.unit.evidence.repository import AFTER, HANDED_OFF


def test_a_long_text_is_cut_and_said_to_be(plain):
    plain.write("x.md", "x" * (MAX_SHOWN + 1))
    shown = file_text(plain.root, "x.md")
    assert (len(shown.text), shown.truncated) == (MAX_SHOWN, True)


@pytest.mark.parametrize("path", ["/etc/passwd", "../x", "~/x", "", "a\0b", "link", "gone", ".", "binary"])
def test_a_file_that_must_not_be_shown_has_a_reason_instead(plain, path):
    (plain.root / "link").symlink_to("/etc/passwd")
    (plain.root / "binary").write_bytes(b"a\0b")
    for shown in (file_text(plain.root, path), difference(plain.root, path, HANDED_OFF)):
        assert shown.text == ""
        assert shown.problem


def test_the_difference_is_since_the_commit_at_the_handoff(repository):
    repository.write("tracked.md", "one\n", at=AFTER)
    assert "sees no difference" in difference(repository.root, "tracked.md", None).problem
    repository.write("tracked.md", "two\n", at=AFTER)
    repository.commit(at=AFTER)
    repository.write("tracked.md", "three\n", at=AFTER)
    since_handoff = difference(repository.root, "tracked.md", HANDED_OFF).text
    since_commit = difference(repository.root, "tracked.md", None).text
    assert ("-one\n+three\n" in since_handoff, "-two\n+three\n" in since_commit) == (True, True)


@pytest.mark.parametrize("path", ["*.md", ":(top)tracked.md", ":/tracked.md"])
def test_a_path_is_no_pattern_for_git(repository, path):
    repository.write("tracked.md", "two\n", at=AFTER)
    assert difference(repository.root, path, HANDED_OFF).text == ""
