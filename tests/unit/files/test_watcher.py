"""Waiting for events of the system: which are told, and what happens where there are none."""

import errno
import os
import shutil
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from agentwatch.sources.files import watcher as watcher_module
from agentwatch.sources.files.watcher import Changes, Watcher
from tests.unit.files.watching import PATIENCE, write

if sys.platform == "linux":
    from inotify_simple import INotify
else:
    pytest.skip("only Linux has inotify", allow_module_level=True)


@pytest.fixture
def watcher(tmp_path):
    watcher = Watcher(str(tmp_path))
    watcher.watch("")
    yield watcher
    watcher.close()


def told(watcher: Watcher) -> set[str]:
    """The paths that are told until no more are."""
    paths: set[str] = set()
    while (changes := watcher.wait(0.05)) != Changes():
        paths |= changes.paths
    return paths


def replace(path: Path, text: str):
    path.with_suffix(".tmp").write_text(text)
    path.with_suffix(".tmp").rename(path)


ACTS: list[tuple[Callable[[Path], object], set[str]]] = [
    (lambda root: (root / "a.json").write_text("one"), {"a.json"}),
    (lambda root: replace(root / "a.json", "two"), {"a.json"}),
    (lambda root: (root / "a.json").chmod(0o600), {"a.json"}),
    (lambda root: (root / "a.json").read_text(), set()),
    (lambda root: list(root.iterdir()), set()),
    (lambda root: (root / "build.log").write_text("noise"), set()),
    (lambda root: (root / "a.json").unlink(), {"a.json"}),
    (lambda root: (root / os.fsdecode(b"\xff.json")).touch(), {"\udcff.json"}),
    (lambda root: (root / "d").mkdir(), {"d"}),
    (lambda root: (root / "d" / "unwatched.json").touch(), set()),
    (lambda root: (root / "d").rename(root / "e"), {"d", "e"}),
    (lambda root: shutil.rmtree(root / "e"), {"e"}),
]


def test_what_changes_right_in_a_directory_is_told(watcher, tmp_path):
    for act, expected in ACTS:
        act(tmp_path)
        assert told(watcher) == expected


def test_a_directory_made_again_or_moved_is_told_under_its_name(watcher, tmp_path, tmp_path_factory):
    aside = tmp_path_factory.mktemp("aside")
    for turn, change in enumerate(("make", "again", "move", "exchange")):
        name = "b" if change == "move" else "a"
        if change == "again":
            shutil.rmtree(tmp_path / "a")
        if change == "move":
            (tmp_path / "a").rename(tmp_path / "b")
        else:
            if change == "exchange":
                (tmp_path / "b").rename(aside / "b")
            (tmp_path / "a").mkdir()
        watcher.watch(name)
        # The kernel gives the same watch for the same directory.
        watcher.unwatch("a" if change == "move" else "b")
        watcher.watch("not there")
        told(watcher)
        write(tmp_path / name / f"{turn}.json", "")
        assert told(watcher) == {f"{name}/{turn}.json"}
    (aside / "b" / "x.json").touch()
    assert told(watcher) == set()


def test_waking_ends_a_wait_at_once(watcher):
    began = time.monotonic()
    assert watcher.wait(0.0) == watcher.wait(0.01) == Changes()
    watcher.wake()
    thread = threading.Timer(0.05, watcher.wake)
    thread.start()
    assert watcher.wait(10 * PATIENCE) == watcher.wait(10 * PATIENCE) == Changes()
    assert time.monotonic() - began < PATIENCE
    thread.join()


def test_at_a_limit_of_the_system_it_says_that_events_were_lost(tmp_path, monkeypatch):
    def full(*_arguments: object, **_options: object):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(INotify, "__init__", full)
    watcher = Watcher(str(tmp_path))
    watcher.watch("")
    assert watcher.polling.startswith("Polling, because the system gives no more file watches (No space left")
    assert watcher.wait(PATIENCE) == Changes(lost=True)
    watcher.watch("")
    assert watcher.wait(0.0) == Changes()
    watcher.close()
    watcher.close()
    watcher.wake()


def test_without_inotify_it_says_that_there_was_a_change(tmp_path, monkeypatch):
    monkeypatch.setattr(watcher_module, "HAS_INOTIFY", False)
    watcher, end = Watcher(str(tmp_path)), time.monotonic() + PATIENCE
    watcher.watch("")
    while watcher.wait(0.2) != Changes(lost=True):
        assert time.monotonic() < end
        write(tmp_path / "a.return.md", "x")
    watcher.close()
