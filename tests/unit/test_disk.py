"""Files that are whole or not there, in directories that cannot be swapped under them."""

import errno
import fcntl
import os
import threading
import time
from itertools import count

import pytest
import time_machine

from agentwatch.disk import DOT, TEMPORARY, Directory, Disk, LockedError, fingerprint_at, open_dot_directory
from tests.unit.files.watching import descriptors


def test_a_published_file_replaces_nothing(tmp_path):
    with Directory.open(tmp_path) as directory:
        directory.publish("a", b"first")
        with pytest.raises(FileExistsError):
            directory.publish("a", b"second")
        assert directory.read("a", 10) == b"first"
        directory.replace("a", b"third", 0o644)
        assert directory.read("a", 10) == b"third"
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o644


def test_a_private_directory_is_made_and_synced_once(tmp_path):
    synced = []

    class Counting(Disk):
        def fsync(self, descriptor):
            synced.append(descriptor)

    place, disk = tmp_path / "a" / "b" / "c", Counting()
    with pytest.raises(FileNotFoundError):
        Directory.open(place, disk)
    Directory.open_or_make(place, disk).close()
    assert (tmp_path / "a" / "b" / "c").stat().st_mode & 0o777 == 0o700
    assert len(synced) == 3
    Directory.open_or_make(place, disk).close()
    assert len(synced) == 3


def test_a_waiter_gets_a_lock_when_it_is_released(tmp_path):
    got = threading.Event()

    def wait():
        with Directory.open(tmp_path) as other, other.locked():
            got.set()

    with Directory.open(tmp_path) as directory:
        waiting = threading.Thread(target=wait)
        with directory.locked():
            waiting.start()
            waiting.join(0.02)
            assert not got.is_set()
        waiting.join(10)
        assert got.is_set()


def test_a_lock_that_is_never_released_is_an_error(tmp_path, monkeypatch):
    monkeypatch.setattr(time, "monotonic", count(0.0, 60.0).__next__)
    with (
        Directory.open(tmp_path) as directory,
        Directory.open(tmp_path) as other,
        directory.locked(),
        pytest.raises(LockedError),
        other.locked(),
    ):
        pass


def test_a_file_is_held_before_it_has_its_name(tmp_path):
    with Directory.open(tmp_path) as directory:
        held = directory.replace_and_lock("a.json", b"{}")
        with (tmp_path / "a.json").open("r+b") as other, pytest.raises(BlockingIOError):
            fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.close(held)
        with (tmp_path / "a.json").open("r+b") as other:
            fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_a_sweep_removes_only_what_a_killed_writer_left(tmp_path):
    old, new, other = (tmp_path / name for name in (f"{TEMPORARY}old", f"{TEMPORARY}new", "kept"))
    for file in (old, new, other):
        file.write_text("x")
    for file in (old, other):
        os.utime(file, (time.time() - 61,) * 2)
    with Directory.open(tmp_path) as directory:
        # A clock that is ahead does not make a file old.
        with time_machine.travel(time.time() + 3_600):
            directory.remove_abandoned()
        assert sorted(tmp_path.iterdir()) == sorted([new, other])
        directory.remove_abandoned(0)
        assert list(tmp_path.iterdir()) == [other]


@pytest.mark.parametrize(("code", "fails"), [(errno.EINVAL, False), (errno.EIO, True)])
def test_a_directory_that_cannot_be_synced_is_a_fault(tmp_path, code, fails):
    class Unsynced(Disk):
        def fsync(self, descriptor):
            raise OSError(code, "no")

    with Directory.open(tmp_path, disk=Unsynced()) as directory:
        if fails:
            with pytest.raises(OSError, match="no"):
                directory.sync()
        else:
            directory.sync()


def test_a_directory_of_ours_that_git_would_take_is_not_given(tmp_path):
    class Full(Disk):
        def open(self, path, flags, mode=0o777, *, dir_fd=None):
            if flags & os.O_CREAT:
                raise OSError(errno.ENOSPC, "No space left on device")
            return os.open(path, flags, mode, dir_fd=dir_fd)

    before = descriptors()
    with pytest.raises(OSError, match="No space left"):
        open_dot_directory(tmp_path, make=True, disk=Full())
    assert descriptors() == before
    with open_dot_directory(tmp_path, make=True):
        assert (tmp_path / DOT / ".gitignore").read_text() == "*\n"


def test_a_missing_file_has_no_fingerprint(tmp_path):
    (tmp_path / "a").touch()
    assert fingerprint_at(tmp_path / "a")
    assert [fingerprint_at(one) for one in (tmp_path / "b", "\0")] == [None, None]
