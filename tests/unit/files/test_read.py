"""Which files of a workspace are found, and how files with any content are read."""

import errno
import hashlib
import os
import stat
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentwatch.contracts.shapes import Severity
from agentwatch.disk import Disk
from agentwatch.sources.files.read import (
    CHANGING,
    DEFAULT_PRUNED,
    NOT_READABLE,
    NOT_REGULAR,
    OUTSIDE,
    SYMBOLIC_LINK,
    TOO_LARGE,
    BehindLinkError,
    FileRefusedError,
    event_path,
    is_named_like_document,
    make_prune_test,
    read_file,
    system_name,
    walk,
)
from tests.unit.files.watching import candidates, descriptors, write


class Acting(Disk):
    """Does something before each file is opened, and before each piece of it is read."""

    def __init__(self, *, opens: Callable[[], object] = lambda: None, reads: Callable[[int], object] = lambda _: None):
        self.opens, self.reads, self.pieces, self.most = opens, reads, 0, 1 << 20

    def open(self, path: str, flags: int, mode: int = 0, *, dir_fd: int | None = None) -> int:  # type: ignore[override]
        if dir_fd is not None:
            self.opens()
        return os.open(path, flags, mode, dir_fd=dir_fd)

    def read(self, descriptor: int, length: int) -> bytes:  # type: ignore[override]
        self.pieces += 1
        self.reads(self.pieces)
        return os.read(descriptor, min(length, self.most))


def refused(rule: str, match: str | None = None, *, lasting: bool = True) -> pytest.RaisesExc[FileRefusedError]:
    """Expect that the file is refused, for this rule."""
    return pytest.raises(
        FileRefusedError, match=match, check=lambda error: (error.rule, error.lasting) == (rule, lasting)
    )


@pytest.mark.parametrize(
    ("data", "text", "lines"),
    [
        (b'{"a": "\xc3\xa4"}\r\n', '{"a": "ä"}\r\n', []),
        (b"\xef\xbb\xbf{}", "{}", []),
        (b"one\ntwo\n\xff\xfethree\n", "one\ntwo\n��three\n", [("SRC006", Severity.WARNING, 3)]),
    ],
)
def test_a_file_comes_as_text_with_the_digest_of_its_bytes(tmp_path, data, text, lines):
    path = tmp_path / "a" / "x.json"
    path.parent.mkdir()
    path.write_bytes(data)
    read, status = read_file(tmp_path, "a/x.json"), path.stat()
    assert (read.text, read.digest) == (text, hashlib.sha256(data).hexdigest())
    assert read.fingerprint[:2] == (status.st_mtime_ns, status.st_ctime_ns)
    assert [(finding.rule, finding.severity, finding.line) for finding in read.findings] == lines


def test_a_file_that_is_not_there_is_no_refusal(tmp_path):
    (tmp_path / "file").touch()
    write(tmp_path / "real" / "x.json", "{}")
    (tmp_path / "link").symlink_to("real")
    # A linked root is no refusal either; a path through a link inside the workspace is an error.
    for root, name in (
        (tmp_path, "x.json"),
        (tmp_path, "a/x.json"),
        (tmp_path, "file/x.json"),
        (tmp_path / "link", "x.json"),
    ):
        with pytest.raises(FileNotFoundError):
            read_file(root, name)
    with pytest.raises(BehindLinkError):
        read_file(tmp_path, "link/x.json")


@pytest.mark.parametrize(
    "name", ["../x.json", "a/../../x.json", "/etc/hostname", "", ".", "a//x.json", "x.json/", "x\0.json"]
)
def test_a_path_that_is_no_path_below_the_root_is_refused(tmp_path, name):
    with refused(OUTSIDE):
        read_file(tmp_path, name)


def make_socket(path: Path):
    os.mknod(path, stat.S_IFSOCK)


@pytest.mark.parametrize(
    ("make", "words"), [(os.mkfifo, "a named pipe"), (make_socket, "a socket"), (Path.mkdir, "a directory")]
)
def test_only_regular_files_are_opened(tmp_path, make, words):
    make(tmp_path / "x.json")
    unopened = Acting(opens=pytest.fail)
    with refused(NOT_REGULAR, match=words):
        read_file(tmp_path, "x.json", disk=unopened)
    with refused(NOT_REGULAR, match="a character device"):
        read_file("/dev", "zero", disk=unopened)


@pytest.mark.parametrize(
    ("target", "rule", "severity"),
    [
        ("../secret", OUTSIDE, Severity.ERROR),
        ("../root-side/x.json", OUTSIDE, Severity.ERROR),
        ("/etc/hostname", OUTSIDE, Severity.ERROR),
        ("real.json", SYMBOLIC_LINK, Severity.WARNING),
        ("x.json", SYMBOLIC_LINK, Severity.WARNING),
    ],
)
def test_a_link_is_refused_unread(tmp_path, target, rule, severity):
    for path in ("secret", "root/real.json"):
        write(tmp_path / path, "{}")
    (tmp_path / "root" / "x.json").symlink_to(target)
    with refused(rule) as caught:
        read_file(tmp_path / "root", "x.json")
    assert (caught.value.finding.rule, caught.value.finding.severity) == (rule, severity)


def test_a_file_that_says_it_is_empty_is_read_to_the_limit():
    # The files of /proc say that they hold 0 bytes.
    assert read_file("/proc", "version").text.startswith("Linux")
    with refused(TOO_LARGE):
        read_file("/proc", "version", max_bytes=5)


def test_a_file_that_comes_in_pieces_is_whole_and_no_larger(tmp_path):
    text, disk = "".join(f"line {number}\n" for number in range(5_000)), Acting()
    (tmp_path / "x.json").write_text(text)
    disk.most = 777
    assert read_file(tmp_path, "x.json", len(text), disk).text == text
    with refused(TOO_LARGE):
        read_file(tmp_path, "x.json", len(text) - 1, disk)
    os.truncate(tmp_path / "x.json", 1024**3)
    with refused(TOO_LARGE, match="1,073,741,824 bytes, and at most 1,048,576"):
        read_file(tmp_path, "x.json", disk=Acting(reads=pytest.fail))


@pytest.mark.usefixtures("without_root_rights")
def test_permissions_are_respected(tmp_path):
    (tmp_path / "x.json").touch(mode=0)
    write(tmp_path / "shut" / "x.json", "")
    (tmp_path / "shut").chmod(0)
    for name in ("x.json", "shut/x.json"):
        with refused(NOT_READABLE, match="Permission denied"):
            read_file(tmp_path, name)
    (tmp_path / "shut").chmod(0o700)
    with refused(NOT_READABLE, lasting=False):
        read_file(tmp_path, f"{'n' * 300}/x.json")


@pytest.mark.parametrize(
    ("number", "rule"),
    [(errno.EIO, NOT_READABLE), (errno.ENFILE, NOT_READABLE), (errno.EMFILE, NOT_READABLE), (errno.ENXIO, CHANGING)],
)
def test_errors_of_the_machine_are_refusals_that_may_pass(tmp_path, number, rule):
    (tmp_path / "x.json").touch()

    def fail():
        raise OSError(number, os.strerror(number))

    with refused(rule, lasting=False):
        read_file(tmp_path, "x.json", disk=Acting(opens=fail))


@pytest.mark.parametrize(
    ("swap", "rule"),
    [(lambda path: path.symlink_to("/etc/hostname"), OUTSIDE), (os.mkfifo, NOT_REGULAR), (make_socket, NOT_REGULAR)],
)
def test_a_file_swapped_between_look_and_opening_is_refused(tmp_path, swap, rule):
    path = tmp_path / "x.json"
    path.write_text("{}")

    def exchange():
        if path.is_file() and not path.is_symlink():
            path.unlink()
            swap(path)

    with refused(rule):
        read_file(tmp_path, "x.json", disk=Acting(opens=exchange))


@pytest.mark.parametrize("is_replaced", [False, True])
def test_a_file_that_changes_while_it_is_read_is_read_again(tmp_path, is_replaced):
    path, other = tmp_path / "x.json", tmp_path / "y.json"
    path.write_text("old")

    def change(piece):
        if piece == 1:
            (other if is_replaced else path).write_text("newer")
            if is_replaced:
                other.rename(path)

    read = read_file(tmp_path, "x.json", disk=Acting(reads=change))
    assert (read.text, read.fingerprint[3]) == ("newer", path.stat().st_ino)
    with refused(CHANGING, lasting=False):
        read_file(tmp_path, "x.json", disk=Acting(reads=lambda piece: path.write_text("x" * piece)))


def test_descriptors_are_given_back_whatever_happens(tmp_path):
    write(tmp_path / "a" / "good.json", "{}")
    write(tmp_path / "a" / "large.json", "x" * 100)
    (tmp_path / "a" / "link.json").symlink_to("good.json")
    os.mkfifo(tmp_path / "a" / "pipe.json")
    (tmp_path / "b").symlink_to("a")
    before = descriptors()
    for name in ("a/good.json", "a/large.json", "a/link.json", "a/pipe.json", "b/good.json", "a/none.json", "c/x.json"):
        try:
            read_file(tmp_path, name, max_bytes=50)
        except (FileRefusedError, FileNotFoundError):
            continue
    assert descriptors() == before


# Names


@pytest.mark.parametrize(
    ("files", "are_found"),
    [
        ("a.json b/c.md b/.hidden/d.JSON .claude/e.markdown target/g.json x.json/y.json", True),
        ("f.py json a.json.tmp a.jsonl README md a.json~", False),
    ],
)
def test_documents_are_found_everywhere_by_their_names(tmp_path, files, are_found):
    write(tmp_path / ".gitignore", "*\n")
    for name in files.split():
        write(tmp_path / name, "")
    assert set(candidates(tmp_path)) == (set(files.split()) if are_found else set())


@pytest.mark.parametrize(
    ("paths", "are_ours"),
    [
        ("a/x.handoff.json HANDOFF.md .return-meta.json x.todos.md x.report.json todos.md handoffs/a.json", True),
        ("package.json a/handoffs/readme.txt handoff.py returns/a/b.json my-todos.json report.json", False),
    ],
)
def test_names_of_handoffs_returns_and_todos_look_like_ours(paths, are_ours):
    assert {is_named_like_document(path) for path in paths.split()} == {are_ours}


def test_pruned_directories_and_links_are_not_entered(tmp_path):
    for name in DEFAULT_PRUNED:
        write(tmp_path / "a" / name / "x.json", "")
    write(tmp_path / "a" / "y.json", "")
    (tmp_path / "everything").symlink_to("/")
    (tmp_path / "myself").symlink_to(".")
    assert list(candidates(tmp_path)) == ["a/y.json"]
    ((_, refused),) = walk(f"{tmp_path}/everything", make_prune_test(frozenset()))
    assert isinstance(refused, OSError)
    names = ("node_modules", "build-x", "cache1", "build", "node_modules2", "cachex")
    assert [*filter(make_prune_test(frozenset({"node_modules", "build-*", "cache[0-9]"})), names)] == [*names[:3]]


def test_a_tree_deeper_than_python_can_recurse_is_walked(tmp_path):
    depth, before = sys.getrecursionlimit() + 100, descriptors()
    write(tmp_path / "d" / "x.json", "")
    for _ in range(depth - 1):
        (tmp_path / "above").mkdir()
        (tmp_path / "d").rename(tmp_path / "above" / "d")
        (tmp_path / "above").rename(tmp_path / "d")
    assert [found.count("d/") for found in candidates(tmp_path)] == [depth]
    assert descriptors() == before
    # Python's own cleaning up after the tests cannot recurse so deep either.
    for _ in range(depth - 1):
        (tmp_path / "d" / "d").rename(tmp_path / "above")
        (tmp_path / "d").rmdir()
        (tmp_path / "above").rename(tmp_path / "d")


@given(st.binary(max_size=20).filter(lambda name: b"\0" not in name) | st.text("\\xf0e", max_size=12).map(str.encode))
def test_a_path_can_be_encoded_and_leads_back_to_the_name(name):
    path = event_path(os.fsdecode(name))
    path.encode()
    assert os.fsencode(system_name(path)) == name
    assert event_path(os.fsdecode(b"caf\xe9/\xff.json")) == r"caf\xe9/\xff.json"


@pytest.mark.parametrize("is_other_worktree", [False, True])
def test_another_work_tree_below_is_empty(tmp_path, is_other_worktree):
    write(tmp_path / "other" / ".git", "gitdir: elsewhere\n")
    write(tmp_path / "other" / "a.return.md", "")
    found = dict(walk(str(tmp_path), lambda _: False, is_other_worktree=lambda _: is_other_worktree))
    assert found["other"] == ([], [] if is_other_worktree else ["a.return.md"])
