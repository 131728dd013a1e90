"""Reading files that may be anything."""

from __future__ import annotations

import errno
import hashlib
import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from agentwatch.contracts.shapes import Severity
from agentwatch.disk import Disk
from agentwatch.sources.files.read import (
    CHANGING,
    NOT_READABLE,
    NOT_REGULAR,
    OUTSIDE,
    SYMBOLIC_LINK,
    TOO_LARGE,
    BehindLinkError,
    FileRefusedError,
    read_file,
)
from tests.unit.files.watching import descriptors


def refused(rule: str, match: str | None = None) -> pytest.RaisesExc[FileRefusedError]:
    """The file is refused, for this rule."""
    return pytest.raises(FileRefusedError, match=match, check=lambda error: error.rule == rule)


def test_a_file_comes_with_the_digest_of_its_bytes(tmp_path: Path) -> None:
    path = tmp_path / "a" / "x.json"
    path.parent.mkdir()
    path.write_bytes(b'{"a": "\xc3\xa4"}\r\n')
    read = read_file(tmp_path, "a/x.json")
    status = path.stat()
    assert read.text == '{"a": "ä"}\r\n'
    assert read.digest == hashlib.sha256(path.read_bytes()).hexdigest()
    assert read.fingerprint[:2] == (status.st_mtime_ns, status.st_ctime_ns)
    assert read.findings == ()


def test_a_byte_order_mark_is_dropped_from_the_text_only(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_bytes(b"\xef\xbb\xbf{}")
    read = read_file(tmp_path, "x.json")
    assert (read.text, read.digest) == ("{}", hashlib.sha256(b"\xef\xbb\xbf{}").hexdigest())


def test_bytes_that_are_not_utf8_are_replaced_and_told_with_their_line(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_bytes(b"one\ntwo\n\xff\xfethree\n")
    read = read_file(tmp_path, "x.json")
    assert read.text == "one\ntwo\n��three\n"
    assert [(finding.rule, finding.severity, finding.line) for finding in read.findings] == [
        ("SRC006", Severity.WARNING, 3)
    ]


def test_a_file_that_is_not_there_is_no_refusal(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for name in ("x.json", "a/x.json", "file/x.json"):
        with pytest.raises(FileNotFoundError):
            read_file(tmp_path, name)


@pytest.mark.parametrize(
    "name", ["../x.json", "a/../../x.json", "/etc/hostname", "", ".", "a//x.json", "x.json/", "x\0.json"]
)
def test_a_path_that_is_no_path_below_the_root_is_refused(tmp_path: Path, name: str) -> None:
    with refused(OUTSIDE):
        read_file(tmp_path, name)


def make_fifo(path: Path) -> None:
    os.mkfifo(path)


def make_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        # The name of a socket is limited to about a hundred bytes: bind beside it and move it there.
        here = Path.cwd()
        os.chdir(path.parent)
        try:
            server.bind(path.name)
        finally:
            os.chdir(here)


def make_directory(path: Path) -> None:
    path.mkdir()


@pytest.mark.parametrize(
    ("make", "words"),
    [(make_fifo, "a named pipe"), (make_socket, "a socket"), (make_directory, "a directory")],
)
def test_only_regular_files_are_opened(tmp_path: Path, make: Callable[[Path], None], words: str) -> None:
    make(tmp_path / "x.return.md")
    with refused(NOT_REGULAR, match=words):
        read_file(tmp_path, "x.return.md")


def test_devices_are_not_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    real_open = os.open

    def recording_open(path: str, flags: int, mode: int = 0, *, dir_fd: int | None = None) -> int:
        opened.append(path)
        return real_open(path, flags, mode, dir_fd=dir_fd)

    monkeypatch.setattr(Disk, "open", staticmethod(recording_open))
    with refused(NOT_REGULAR, match="a character device"):
        read_file(Path("/dev"), "zero")
    assert "zero" not in opened


def test_a_link_out_of_the_workspace_is_refused_unread(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (tmp_path / "secret").write_text("secret")
    (root / "x.json").symlink_to("../secret")
    (root / "y.json").symlink_to("/etc/hostname")
    for name in ("x.json", "y.json"):
        with refused(OUTSIDE) as caught:
            read_file(root, name)
        assert (caught.value.finding.rule, caught.value.finding.severity) == ("SRC003", Severity.ERROR)


def test_a_link_inside_the_workspace_is_a_lesser_matter(tmp_path: Path) -> None:
    (tmp_path / "real.json").write_text("{}")
    (tmp_path / "x.json").symlink_to("real.json")
    (tmp_path / "loop.json").symlink_to("loop.json")
    for name in ("x.json", "loop.json"):
        with refused(SYMBOLIC_LINK) as caught:
            read_file(tmp_path, name)
        assert (caught.value.finding.rule, caught.value.finding.severity) == ("SRC002", Severity.WARNING)


def test_nothing_is_read_through_a_directory_that_is_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "x.json").write_text("{}")
    (tmp_path / "link").symlink_to("real")
    with pytest.raises(BehindLinkError):
        read_file(tmp_path, "link/x.json")


@pytest.mark.skipif(not Path("/proc/self/status").is_file(), reason="only Linux has files that say they are empty")
def test_a_file_that_says_it_is_empty_is_read_to_its_end() -> None:
    assert read_file(f"/proc/{os.getpid()}", "status").text.startswith("Name:")


def test_a_file_that_comes_in_pieces_is_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "".join(f"line {number}\n" for number in range(5_000))
    (tmp_path / "x.md").write_text(text)
    read = os.read
    monkeypatch.setattr(Disk, "read", staticmethod(lambda descriptor, length: read(descriptor, min(length, 777))))
    assert read_file(tmp_path, "x.md", len(text)).text == text
    with refused(TOO_LARGE):
        read_file(tmp_path, "x.md", len(text) - 1)


def test_a_directory_whose_name_no_file_system_takes_is_not_readable(tmp_path: Path) -> None:
    with refused(NOT_READABLE):
        read_file(tmp_path, f"{'n' * 300}/x.json")


def test_nothing_is_read_where_the_root_is_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "x.json").write_text("{}")
    (tmp_path / "link").symlink_to("real")
    with pytest.raises(FileNotFoundError):
        read_file(tmp_path / "link", "x.json")


def test_a_huge_file_is_refused_without_reading_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with (tmp_path / "x.json").open("wb") as file:
        file.truncate(1024**3)

    def no_read(descriptor: int, length: int) -> bytes:
        raise AssertionError

    monkeypatch.setattr(Disk, "read", staticmethod(no_read))
    with refused(TOO_LARGE, match="1,073,741,824 bytes, and at most 1,048,576"):
        read_file(tmp_path, "x.json")


def test_a_file_of_exactly_the_limit_is_read(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_bytes(b"x" * 100)
    assert len(read_file(tmp_path, "x.json", max_bytes=100).text) == 100
    with refused(TOO_LARGE):
        read_file(tmp_path, "x.json", max_bytes=99)


def test_a_file_that_hides_its_size_is_read_up_to_the_limit() -> None:
    # The files of /proc say that they hold 0 bytes.
    assert read_file(Path("/proc"), "version").text.startswith("Linux")
    with refused(TOO_LARGE):
        read_file(Path("/proc"), "version", max_bytes=5)


def test_a_file_that_may_not_be_read_is_refused_for_good(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "x.json").touch()
    refuse_open(monkeypatch, 13)
    with refused(NOT_READABLE, match="Permission denied") as caught:
        read_file(tmp_path, "x.json")
    assert caught.value.lasting


@pytest.mark.usefixtures("without_root_rights")
def test_permissions_are_respected(tmp_path: Path) -> None:
    (tmp_path / "x.json").touch(mode=0)
    (tmp_path / "shut").mkdir()
    (tmp_path / "shut" / "x.json").touch()
    (tmp_path / "shut").chmod(0)
    for name in ("x.json", "shut/x.json"):
        with refused(NOT_READABLE, match="Permission denied"):
            read_file(tmp_path, name)
    (tmp_path / "shut").chmod(0o700)


@pytest.mark.parametrize("number", [5, 23, 24])
def test_errors_of_the_machine_are_refusals_that_may_pass(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    (tmp_path / "x.json").touch()
    refuse_open(monkeypatch, number)
    with refused(NOT_READABLE) as caught:
        read_file(tmp_path, "x.json")
    assert not caught.value.lasting


def refuse_open(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    """Let opening `x.json` fail; root may read everything, so permissions alone do not show it."""
    real_open = os.open

    def failing_open(path: str, flags: int, mode: int = 0, *, dir_fd: int | None = None) -> int:
        if path == "x.json":
            raise OSError(number, os.strerror(number))
        return real_open(path, flags, mode, dir_fd=dir_fd)

    monkeypatch.setattr(Disk, "open", staticmethod(failing_open))


def during_reads(monkeypatch: pytest.MonkeyPatch, act: Callable[[int], None]) -> None:
    """Call `act` with 1, 2, … before each read of a piece of a file."""
    real_read = os.read
    count = 0

    def acting_read(descriptor: int, length: int) -> bytes:
        nonlocal count
        count += 1
        act(count)
        return real_read(descriptor, length)

    monkeypatch.setattr(Disk, "read", staticmethod(acting_read))


def write_if(condition: bool, path: Path, text: str) -> None:
    if condition:
        path.write_text(text)


def test_a_file_that_changes_while_it_is_read_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.json"
    path.write_text("old")
    during_reads(monkeypatch, lambda count: write_if(count == 1, path, "newer"))
    assert read_file(tmp_path, "x.json").text == "newer"


def test_a_file_that_never_rests_is_refused_for_now(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.json"
    path.write_text("x")
    during_reads(monkeypatch, lambda count: write_if(True, path, "x" * count))
    with refused(CHANGING) as caught:
        read_file(tmp_path, "x.json")
    assert not caught.value.lasting


def test_a_file_replaced_while_it_is_read_gives_one_of_the_two_contents(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, other = tmp_path / "x.json", tmp_path / "y.json"
    path.write_text("old")
    other.write_text("new")

    def replace(count: int) -> None:
        if count == 1:
            other.rename(path)

    during_reads(monkeypatch, replace)
    read = read_file(tmp_path, "x.json")
    # Replacing changes the ctime of the old file, so the reader looks once more.
    assert (read.text, read.fingerprint[3]) == ("new", path.stat().st_ino)


@pytest.mark.parametrize(
    ("swap", "rule"),
    [
        (lambda path: path.symlink_to("/etc/hostname"), OUTSIDE),
        (make_fifo, NOT_REGULAR),
        (make_socket, NOT_REGULAR),
    ],
)
def test_a_file_swapped_between_the_look_and_the_opening_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, swap: Callable[[Path], None], rule: str
) -> None:
    path = tmp_path / "x.json"
    path.write_text("{}")
    real_open = os.open

    def swapping_open(name: str, flags: int, mode: int = 0, *, dir_fd: int | None = None) -> int:
        if name == "x.json" and path.is_file() and not path.is_symlink():
            path.unlink()
            swap(path)
        return real_open(name, flags, mode, dir_fd=dir_fd)

    monkeypatch.setattr(Disk, "open", staticmethod(swapping_open))
    with refused(rule):
        read_file(tmp_path, "x.json")


def test_a_file_that_is_swapped_back_each_time_is_refused_for_now(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "x.json").touch()
    refuse_open(monkeypatch, errno.ENXIO)
    with refused(CHANGING):
        read_file(tmp_path, "x.json")


def test_descriptors_are_given_back_whatever_happens(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "good.json").write_text("{}")
    (tmp_path / "a" / "large.json").write_text("x" * 100)
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
