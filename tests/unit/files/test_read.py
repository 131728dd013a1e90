"""Reading files that may be anything."""

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
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "x.json").write_text("{}")
    (tmp_path / "link").symlink_to("real")
    for root, name in ((tmp_path, "x.json"), (tmp_path, "a/x.json"), (tmp_path, "file/x.json")):
        with pytest.raises(FileNotFoundError):
            read_file(root, name)
    # Nor where the root is a link; behind another one lies what its path does not say.
    with pytest.raises(FileNotFoundError):
        read_file(tmp_path / "link", "x.json")
    with pytest.raises(BehindLinkError):
        read_file(tmp_path, "link/x.json")


@pytest.mark.parametrize(
    "name", ["../x.json", "a/../../x.json", "/etc/hostname", "", ".", "a//x.json", "x.json/", "x\0.json"]
)
def test_a_path_that_is_no_path_below_the_root_is_refused(tmp_path, name):
    with refused(OUTSIDE):
        read_file(tmp_path, name)


def make_socket(path: Path):
    with socket.socket(socket.AF_UNIX) as server:
        # The name of a socket is limited to about a hundred bytes: bind beside it and move it there.
        here = Path.cwd()
        os.chdir(path.parent)
        try:
            server.bind(path.name)
        finally:
            os.chdir(here)


@pytest.mark.parametrize(
    ("make", "words"), [(os.mkfifo, "a named pipe"), (make_socket, "a socket"), (Path.mkdir, "a directory")]
)
def test_only_regular_files_are_opened(tmp_path, make, words):
    make(tmp_path / "x.return.md")
    with refused(NOT_REGULAR, match=words):
        read_file(tmp_path, "x.return.md")


def test_devices_are_not_opened(monkeypatch):
    opened: list[str] = []
    real_open = os.open

    def recording_open(path: str, flags: int, mode: int = 0, *, dir_fd: int | None = None) -> int:
        opened.append(path)
        return real_open(path, flags, mode, dir_fd=dir_fd)

    monkeypatch.setattr(Disk, "open", staticmethod(recording_open))
    with refused(NOT_REGULAR, match="a character device"):
        read_file(Path("/dev"), "zero")
    assert "zero" not in opened


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
    (root := tmp_path / "root").mkdir()
    for path in (tmp_path / "secret", root / "real.json"):
        path.write_text("{}")
    (root / "x.json").symlink_to(target)
    with refused(rule) as caught:
        read_file(root, "x.json")
    assert (caught.value.finding.rule, caught.value.finding.severity) == (rule, severity)


def test_a_file_that_says_it_is_empty_is_read_to_the_limit():
    # The files of /proc say that they hold 0 bytes.
    assert read_file("/proc", "version").text.startswith("Linux")
    with refused(TOO_LARGE):
        read_file("/proc", "version", max_bytes=5)


def test_a_file_that_comes_in_pieces_is_whole(tmp_path, monkeypatch):
    text = "".join(f"line {number}\n" for number in range(5_000))
    (tmp_path / "x.md").write_text(text)
    read = os.read
    monkeypatch.setattr(Disk, "read", staticmethod(lambda descriptor, length: read(descriptor, min(length, 777))))
    assert read_file(tmp_path, "x.md", len(text)).text == text
    with refused(TOO_LARGE):
        read_file(tmp_path, "x.md", len(text) - 1)


def test_a_huge_file_is_refused_without_reading_it(tmp_path, monkeypatch):
    with (tmp_path / "x.json").open("wb") as file:
        file.truncate(1024**3)
    monkeypatch.setattr(Disk, "read", None)
    with refused(TOO_LARGE, match="1,073,741,824 bytes, and at most 1,048,576"):
        read_file(tmp_path, "x.json")


@pytest.mark.usefixtures("without_root_rights")
def test_permissions_are_respected(tmp_path):
    (tmp_path / "x.json").touch(mode=0)
    (tmp_path / "shut").mkdir()
    (tmp_path / "shut" / "x.json").touch()
    (tmp_path / "shut").chmod(0)
    for name in ("x.json", "shut/x.json"):
        with refused(NOT_READABLE, match="Permission denied") as caught:
            read_file(tmp_path, name)
        assert caught.value.lasting
    (tmp_path / "shut").chmod(0o700)
    with refused(NOT_READABLE):
        read_file(tmp_path, f"{'n' * 300}/x.json")


def on_open(monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]):
    """Do something whenever `x.json` is about to be opened."""
    real_open = os.open

    def acting_open(path: str, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        if path == "x.json":
            act()
        return real_open(path, flags, mode, dir_fd=dir_fd)

    monkeypatch.setattr(Disk, "open", staticmethod(acting_open))


@pytest.mark.parametrize(
    ("number", "rule"),
    [(errno.EIO, NOT_READABLE), (errno.ENFILE, NOT_READABLE), (errno.EMFILE, NOT_READABLE), (errno.ENXIO, CHANGING)],
)
def test_errors_of_the_machine_are_refusals_that_may_pass(tmp_path, monkeypatch, number, rule):
    (tmp_path / "x.json").touch()

    def fail():
        raise OSError(number, os.strerror(number))

    on_open(monkeypatch, fail)
    with refused(rule) as caught:
        read_file(tmp_path, "x.json")
    assert not caught.value.lasting


@pytest.mark.parametrize(
    ("swap", "rule"),
    [(lambda path: path.symlink_to("/etc/hostname"), OUTSIDE), (os.mkfifo, NOT_REGULAR), (make_socket, NOT_REGULAR)],
)
def test_a_file_swapped_between_look_and_opening_is_refused(tmp_path, monkeypatch, swap, rule):
    path = tmp_path / "x.json"
    path.write_text("{}")

    def exchange():
        if path.is_file() and not path.is_symlink():
            path.unlink()
            swap(path)

    on_open(monkeypatch, exchange)
    with refused(rule):
        read_file(tmp_path, "x.json")


def during_reads(monkeypatch: pytest.MonkeyPatch, act: Callable[[int], object]):
    """Call `act` with 1, 2, … before each read of a piece of a file."""
    real_read, counts = os.read, iter(range(1, 1_000))

    def acting_read(descriptor: int, length: int) -> bytes:
        act(next(counts))
        return real_read(descriptor, length)

    monkeypatch.setattr(Disk, "read", staticmethod(acting_read))


@pytest.mark.parametrize("is_replaced", [False, True])
def test_a_file_that_changes_while_it_is_read_is_read_again(tmp_path, monkeypatch, is_replaced):
    path, other = tmp_path / "x.json", tmp_path / "y.json"
    path.write_text("old")

    def change(count: int):
        if count == 1:
            (other if is_replaced else path).write_text("newer")
            if is_replaced:
                other.rename(path)

    during_reads(monkeypatch, change)
    read = read_file(tmp_path, "x.json")
    assert (read.text, read.fingerprint[3]) == ("newer", path.stat().st_ino)


def test_a_file_that_never_rests_is_refused_for_now(tmp_path, monkeypatch):
    path = tmp_path / "x.json"
    path.write_text("x")
    during_reads(monkeypatch, lambda count: path.write_text("x" * count))
    with refused(CHANGING) as caught:
        read_file(tmp_path, "x.json")
    assert not caught.value.lasting


def test_descriptors_are_given_back_whatever_happens(tmp_path):
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
