"""The file of what was put aside: many writers, torn and strange lines, undo, and a file that stays short."""

from __future__ import annotations

import errno
import json
import os
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentwatch.aside import NAME
from agentwatch.aside.records import Kind, read, written
from agentwatch.aside.shelf import AsideError, Shelf
from agentwatch.delegation.events import Event, Looked, Noted
from agentwatch.delegation.task import Aside, Put
from agentwatch.disk import Disk

DAY = 86_400.0


class Clock:
    """A clock that goes on by a second each time that it is looked at."""

    def __init__(self, at: float = 1_000_000.0) -> None:
        self.at = at

    def __call__(self) -> float:
        self.at += 1.0
        return self.at


class Tree:
    """What the observations of one shelf come to."""

    def __init__(self) -> None:
        self.asides: dict[str, Aside] = {}
        self.looked_at: float | None = None

    def take(self, events: Iterator[Event] | list[Event]) -> None:
        for one in events:
            if isinstance(one, Noted):
                self.asides[one.path] = one.aside
            elif isinstance(one, Looked):
                self.looked_at = one.at

    @property
    def known(self) -> dict[str, Aside]:
        return {task_id: aside for task_id, aside in self.asides.items() if aside != Aside()}


def screen(state: Path | None, clock: Callable[[], float] | None = None, **more: Any) -> tuple[Shelf, Tree]:
    """A shelf that was begun, and what it tells; without its thread."""
    shelf, tree = Shelf(state, clock=clock or Clock(), **more), Tree()
    shelf._emit = tree.take  # type: ignore[assignment]
    tree.take(shelf.begin())
    return shelf, tree


def lines(state: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (state / NAME).read_text().splitlines()]


def known(state: Path) -> dict[str, Aside]:
    """What a command reads."""
    tree = Tree()
    shelf = Shelf(state)
    tree.take(shelf.look())
    assert shelf.notice is None or "breaks off" in shelf.notice
    return tree.known


def test_a_record_is_one_line_and_the_file_is_the_users_alone(tmp_path: Path) -> None:
    state = tmp_path / "state" / "shop"
    shelf, tree = screen(state)
    assert (shelf.is_kept, tree.looked_at) == (True, 1_000_001.0)
    shelf.acknowledge({"a": "1 failed x", "b\udc80": "1 failed y"})
    shelf.snooze({"c": "1 blocked z"}, 2_000_000.0)
    assert stat.S_IMODE((state / NAME).stat().st_mode) == 0o600
    assert stat.S_IMODE(state.stat().st_mode) == 0o700
    told = lines(state)
    assert [one["record"] for one in told] == ["began", "acknowledge", "snooze"]
    assert told[0] == {"record": "began", "at": 1_000_001.0, "version": 1}
    assert (told[1]["tasks"], told[2]["until"]) == ({"a": "1 failed x", "b\udc80": "1 failed y"}, 2_000_000.0)
    assert tree.known == known(state)
    assert tree.known["c"] == Aside(Put("1 blocked z", told[2]["at"], True, 2_000_000.0))


def test_a_look_writes_nothing_and_a_first_screen_says_since_when(tmp_path: Path) -> None:
    state = tmp_path / "shop"
    assert Shelf(state).look() == []
    assert not state.exists()
    _, first = screen(state)
    _, second = screen(state, Clock(9e8))
    assert first.looked_at == second.looked_at


def test_an_undo_takes_back_the_last_one_whoever_made_it(tmp_path: Path) -> None:
    one, tree = screen(tmp_path)
    other, _ = screen(tmp_path)
    assert one.undo() is None
    one.acknowledge({"a": "m1"})
    before = known(tmp_path)
    other.snooze({"a": "m1", "b": "m2"}, None)
    undone = one.undo()
    assert undone is not None
    assert (undone.kind, set(undone.tasks)) == (Kind.SNOOZE, {"a", "b"})
    assert tree.known == known(tmp_path) == before
    undone = other.undo()
    assert undone is not None
    assert (undone.kind, set(undone.tasks)) == (Kind.ACKNOWLEDGE, {"a"})
    assert known(tmp_path) == {}
    assert one.undo() is None


class Doing(NamedTuple):
    """What one of the screens does."""

    who: int
    what: str
    tasks: frozenset[str]
    mark: str


tasks = st.frozensets(st.sampled_from("abcde"), min_size=1, max_size=4)
whats = st.sampled_from(["acknowledge", "snooze", "for a while", "seen", "undo", "look", "restart", "torn", "short"])
histories = st.lists(
    st.builds(Doing, st.integers(0, 1), whats, tasks, st.sampled_from(["m1", "m2", "m3"])), max_size=25
)


@given(histories)
def test_two_screens_come_to_the_same_and_an_undo_restores_exactly(history: list[Doing]) -> None:
    clock = Clock()
    with TemporaryDirectory() as directory:
        state = Path(directory)
        screens = [screen(state, clock), screen(state, clock)]
        # What counted before each of the records that can still be undone.
        before: list[dict[str, Aside]] = []
        for number, (who, what, names, mark) in enumerate(history):
            shelf, tree = screens[who]
            marks = dict.fromkeys(names, mark)
            now = known(state)
            match what:
                case "acknowledge" | "snooze" | "for a while":
                    if what == "acknowledge":
                        shelf.acknowledge(marks)
                    else:
                        shelf.snooze(marks, None if what == "snooze" else 2e6)
                    before.append(now)
                case "seen":
                    shelf._put(read(json.dumps({"record": "seen", "at": clock(), "tasks": marks}).encode()))
                case "undo":
                    assert (shelf.undo() is None) == (not before)
                    if before:
                        restored = before.pop()
                        puts = {name: aside.put for name, aside in known(state).items() if aside.put is not None}
                        assert puts == {name: aside.put for name, aside in restored.items() if aside.put is not None}
                case "restart":
                    screens[who] = screen(state, clock)
                case "torn":
                    with (state / NAME).open("ab") as file:
                        file.write(b'{"record":"acknowledge","at":1,"tasks":{"a":"m%d' % number)
                case "short":
                    shorten(shelf)
                case _:
                    tree.take(shelf.look())
        for shelf, tree in screens:
            tree.take(shelf.look())
            assert tree.known == known(state)
            assert shelf.notice is None or "breaks off" in shelf.notice


def shorten(shelf: Shelf) -> None:
    """Have the file written anew, if anything in it counts no more."""
    with shelf._place.make() as directory, directory.locked():
        shelf._tell(shelf._read_in(directory))
        data = b"".join(map(written, shelf._book.shortened(shelf._clock())))
        directory.replace(NAME, data)
        shelf._tell(shelf._start_over(data))


def test_a_line_that_breaks_off_is_told_and_goes_with_the_next_record(tmp_path: Path) -> None:
    shelf, tree = screen(tmp_path)
    shelf.acknowledge({"a": "m"})
    with (tmp_path / NAME).open("ab") as file:
        file.write(b'{"record":"undo","at":3,"undo')
    tree.take(shelf.look())
    again, _ = screen(tmp_path)
    assert set(tree.known) == {"a"}
    for one in (shelf, again):
        assert one.notice is not None
        assert f"{tmp_path / NAME}, line 3 breaks off and does not count" in one.notice
    again.acknowledge({"b": "m"})
    tree.take(shelf.look())
    assert (shelf.notice, again.notice) == (None, None)
    assert set(tree.known) == set(known(tmp_path)) == {"a", "b"}
    assert b"undo" not in (tmp_path / NAME).read_bytes()


def test_a_last_line_without_its_end_counts_when_it_is_whole(tmp_path: Path) -> None:
    shelf, tree = screen(tmp_path)
    shelf.acknowledge({"a": "m"})
    path = tmp_path / NAME
    path.write_bytes(path.read_bytes()[:-1])
    assert set(known(tmp_path)) == {"a"}
    shelf.acknowledge({"b": "m"})
    assert [one["record"] for one in lines(tmp_path)] == ["began", "acknowledge", "acknowledge"]
    assert set(tree.known) == set(known(tmp_path)) == {"a", "b"}


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (b"\x00\xff", "it is no JSON"),
        pytest.param(b"[" * 100_000, "it is no JSON", id="deep"),
        (b"[]", "it is no JSON object"),
        (b'{"record":"approve","at":1}', "does not know it"),
        (b'{"record":["undo"],"at":1}', "does not know it"),
        (b'{"record":"began","at":1,"version":2}', "does not know it"),
        (b'{"record":"seen"}', "a time in it is wrong"),
        (b'{"record":"seen","at":NaN,"tasks":{}}', "a time in it is wrong"),
        (b'{"record":"seen","at":1e300,"tasks":{}}', "a time in it is wrong"),
        (b'{"record":"snooze","at":1,"until":"x","tasks":{}}', "a time in it is wrong"),
        (b'{"record":"seen","at":1,"tasks":[]}', "a field of it is wrong"),
        (b'{"record":"seen","at":1,"tasks":{"a":1}}', "a field of it is wrong"),
        (b'{"record":"undo","at":1,"undoes":7}', "a field of it is wrong"),
        (b'{"record":"acknowledge","at":1,"name":{},"tasks":{"a":"m"}}', "a field of it is wrong"),
    ],
)
def test_a_strange_line_is_told_and_loses_nothing(tmp_path: Path, line: bytes, why: str) -> None:
    shelf, _ = screen(tmp_path)
    shelf.acknowledge({"a": "m"})
    path = tmp_path / NAME
    whole = path.read_bytes()
    path.write_bytes(whole + line + b"\n")
    shelf.acknowledge({"b": "m"})
    for one in (shelf, screen(tmp_path)[0]):
        assert one.notice is not None
        assert f"{path}, line 3: " in one.notice
        assert why in one.notice
        assert "mend it, or remove it" in one.notice
    shorten_with_strangers(shelf)
    assert line + b"\n" in path.read_bytes()
    path.write_bytes(b"".join(one for one in path.read_bytes().splitlines(keepends=True) if one != line + b"\n"))
    assert set(known(tmp_path)) > {"a", "b"}
    shelf.look()
    assert shelf.notice is None


def test_every_strange_line_is_counted_and_the_first_is_named(tmp_path: Path) -> None:
    shelf, _ = screen(tmp_path)
    path = tmp_path / NAME
    with path.open("ab") as file:
        file.write(b"[]\noops\n7\n{")
    shelf.look()
    assert shelf.notice == (
        f"{path}, line 2: it is no JSON object; and 2 more lines do not count, and all others do: mend or remove them; "
        f"{path}, line 5 breaks off and does not count: what you put aside next replaces it"
    )
    shelf.acknowledge({"a": "m"})
    assert shelf.notice is not None
    assert "breaks off" not in shelf.notice
    path.write_bytes(path.read_bytes().replace(b"oops\n7\n", b""))
    shelf.look()
    assert shelf.notice.startswith(f"{path}, line 2: it is no JSON object, so this line")


def shorten_with_strangers(shelf: Shelf) -> None:
    """Fill the file with what counts no more, until it is written anew."""
    size = 0
    for _ in range(600):
        shelf._put(read(json.dumps({"record": "seen", "at": 1e6, "tasks": {"x" * 2_000: "m"}}).encode()))
        assert shelf.path is not None
        before, size = size, shelf.path.stat().st_size
        if size < before:
            return
    raise AssertionError("the file was never written anew")


def test_a_long_file_is_written_anew_and_others_follow(tmp_path: Path) -> None:
    clock = Clock()
    shelf, tree = screen(tmp_path, clock)
    other, others = screen(tmp_path, clock)
    for number in range(200):
        shelf.acknowledge({"a": f"m{number}", f"t{number}": "m"})
    others.take(other.look())
    shorten_with_strangers(shelf)
    others.take(other.look())
    assert tree.known == others.known == known(tmp_path)
    assert (tmp_path / NAME).stat().st_size < 64 * 1024
    assert sum("a" in one.get("tasks", {}) for one in lines(tmp_path)) == 51, "what cannot be undone is said once"
    assert len(tree.known) == 202
    # The latest fifty can be undone, and restore what was before.
    for number in range(199, 149, -1):
        assert known(tmp_path)["a"].put == tree.known["a"].put
        assert tree.known["a"].put is not None
        assert tree.known["a"].put.mark == f"m{number}"
        assert other.undo() is not None
        tree.take(shelf.look())
    assert tree.known["a"].put is not None
    assert tree.known["a"].put.mark == "m149"
    assert shelf.undo() is None


def test_what_was_looked_at_long_ago_is_forgotten_and_not_new(tmp_path: Path) -> None:
    clock = Clock()
    shelf, tree = screen(tmp_path, clock)
    began = tree.looked_at
    clock.at += 40 * DAY
    shelf._put(read(json.dumps({"record": "seen", "at": clock.at, "tasks": {"now": "m"}}).encode()))
    shorten_with_strangers(shelf)
    again, told = screen(tmp_path, clock)
    assert began is not None
    assert told.looked_at == tree.looked_at == pytest.approx(clock.at - 30 * DAY, abs=1_000)
    assert set(told.known) == {"now"}
    assert again.notice is None


def test_thousands_are_put_aside_in_no_time(tmp_path: Path) -> None:
    shelf, tree = screen(tmp_path)
    shelf.acknowledge({f"task-{number}": f"1 failed {number:012x}" for number in range(5_000)})
    for number in range(500):
        shelf.acknowledge({f"task-{number}": "2 failed"})
    assert len(tree.known) == len(known(tmp_path)) == 5_000
    assert tree.known["task-499"].put is not None
    assert tree.known["task-499"].put.mark == "2 failed"


def test_a_file_that_is_gone_takes_with_it_what_it_held_and_begins_anew(tmp_path: Path) -> None:
    shelf, tree = screen(tmp_path)
    shelf.acknowledge({"a": "m"})
    (tmp_path / NAME).unlink()
    tree.take(shelf.look())
    assert tree.known == {}
    shelf.acknowledge({"b": "m"})
    assert [one["record"] for one in lines(tmp_path)] == ["began", "acknowledge"]
    assert lines(tmp_path)[0]["at"] == tree.looked_at
    assert set(tree.known) == {"b"}


@pytest.mark.parametrize("kind", ["directory", "pipe", "link", "long"])
def test_what_is_no_file_is_told_and_nothing_is_put_aside(tmp_path: Path, kind: str) -> None:
    path = tmp_path / NAME
    if kind == "directory":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "link":
        path.symlink_to("elsewhere")
    else:
        with path.open("wb") as file:
            file.truncate(33 * 1024 * 1024)
    shelf, tree = screen(tmp_path)
    assert shelf.notice is not None
    assert str(path) in shelf.notice
    with pytest.raises(AsideError, match="nothing is put aside: "):
        shelf.acknowledge({"a": "m"})
    assert (tree.known, tree.looked_at) == ({}, 1_000_001.0)
    if kind != "directory":
        path.unlink()
    else:
        path.rmdir()
    shelf.acknowledge({"a": "m"})
    assert (set(tree.known), shelf.notice) == ({"a"}, None)


def test_a_full_disk_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    class Full(Disk):
        is_full = False

        def write(self, descriptor: int, data: Any) -> int:  # type: ignore[override]
            if not self.is_full:
                return os.write(descriptor, data)
            if len(data) < 20:
                raise OSError(errno.ENOSPC, "No space left on device")
            return os.write(descriptor, data[:10])

    disk = Full()
    shelf, tree = screen(tmp_path, disk=disk)
    shelf.acknowledge({"a": "m"})
    before = (tmp_path / NAME).read_bytes()
    disk.is_full = True
    with pytest.raises(AsideError, match="No space left on device; see to that, and try again"):
        shelf.acknowledge({"b": "m"})
    assert (tmp_path / NAME).read_bytes() == before
    assert set(tree.known) == {"a"}


@pytest.mark.parametrize("state", [True, False])
def test_what_may_not_be_written_counts_here_only(tmp_path: Path, state: bool) -> None:
    writer, _ = screen(tmp_path)
    writer.acknowledge({"a": "m"})
    before = (tmp_path / NAME).read_bytes()
    shelf, tree = screen(tmp_path if state else None, writes=False)
    assert not shelf.is_kept
    shelf.acknowledge({"b": "m"})
    shelf.snooze({"a": "n"}, None)
    assert {name: aside.put.mark for name, aside in tree.known.items() if aside.put} == {"a": "n", "b": "m"}
    assert shelf.undo() is not None
    writer.acknowledge({"c": "m"})
    (tmp_path / NAME).write_bytes(b"\n".join(reversed((tmp_path / NAME).read_bytes().split(b"\n"))).lstrip() + b"\n")
    tree.take(shelf.look())
    assert set(tree.known) == ({"a", "b", "c"} if state else {"b"})
    assert len((tmp_path / NAME).read_bytes()) > len(before)
    assert shelf.undo() is not None
    assert (tmp_path / NAME).read_bytes().count(b"undo") == 0


# Its thread


def until(holds: Callable[[], bool], seconds: float = 10.0) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.005)


def test_another_screen_knows_within_a_second(tmp_path: Path) -> None:
    one, other, tree = Shelf(tmp_path), Shelf(tmp_path), Tree()
    for shelf in (one, other):
        shelf.begin()
    one.start(lambda _: None)
    other.start(tree.take)  # type: ignore[arg-type]
    try:
        began = time.monotonic()
        one.acknowledge({"a": "m"})
        until(lambda: "a" in tree.known)
        assert time.monotonic() - began < 5.0
        one.see({"b": "m"})
        until(lambda: "b" in tree.known)
    finally:
        one.stop()
        other.stop()


def test_what_was_looked_at_is_written_in_few_records_and_all_of_it_at_the_end(tmp_path: Path) -> None:
    shelf, tree = Shelf(tmp_path), Tree()
    shelf.begin()
    shelf.start(tree.take)  # type: ignore[arg-type]
    for number in range(100):
        shelf.see({f"t{number}": "m"})
        time.sleep(0.001)
    shelf.stop()
    assert len(known(tmp_path)) == len(tree.known) == 100
    assert len(lines(tmp_path)) <= 4


def test_what_is_over_stays_over_and_what_is_put_aside_anew_does_not_end_with_it(tmp_path: Path) -> None:
    shelf, tree = screen(tmp_path)
    shelf.acknowledge({"a": "1 failed x", "b": "1 failed y", "c": "1 failed z"})
    over = {one: put for one in "abc" if (put := tree.asides[one].put) is not None}
    shelf.acknowledge({"b": "1 failed y"})
    shelf.see({"c": "1 completed"})
    for one in (over, over):
        shelf.end(one)
        shelf._stopped = False
        shelf.start(tree.take)  # type: ignore[arg-type]
        shelf.stop()
    told = known(tmp_path)
    assert (told["a"].put, told["a"].seen) == (None, ""), "new, whatever it looks like"
    assert told["b"].put is not None
    assert (told["c"].put, told["c"].seen) == (None, "1 completed")
    assert told == tree.known
    (tmp_path / NAME).write_bytes(b"".join(map(written, shelf._book.shortened(1_000_100.0))))
    assert known(tmp_path) == told
    assert [one["record"] for one in lines(tmp_path)].count("over") == 1
    shelf.look()
    shelf.undo()
    shelf.undo()
    assert all(one.put is None for one in known(tmp_path).values())


def test_what_cannot_be_written_is_told_and_tried_again(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path)
    shelf.begin()
    (tmp_path / NAME).unlink()
    (tmp_path / NAME).mkdir()
    shelf.see({"a": "m"})
    shelf.start(lambda _: None)
    until(lambda: "nothing is put aside" in (shelf.notice or ""))
    (tmp_path / NAME).rmdir()
    shelf.stop()
    assert set(known(tmp_path)) == {"a"}


def test_nobody_needs_to_listen(tmp_path: Path) -> None:
    def gone(_: object) -> None:
        raise RuntimeError("the loop is closed")

    shelf = Shelf(tmp_path)
    shelf.begin()
    shelf.start(gone)
    shelf.acknowledge({"a": "m"})
    shelf.see({"b": "m"})
    shelf.stop()
    assert set(known(tmp_path)) == {"a", "b"}
    assert threading.active_count() < 50


WRITER = """
import sys
from pathlib import Path
from agentwatch.aside.shelf import Shelf
shelf = Shelf(Path(sys.argv[1]))
shelf.begin()
for number in range(40):
    shelf.acknowledge({f"{sys.argv[2]}-{number}": "m"})
    if number % 4 == 3:
        shelf.undo()
"""


@pytest.mark.slow
def test_many_processes_write_at_once_and_nothing_is_lost(tmp_path: Path) -> None:
    def run(name: str) -> int:
        return subprocess.run([sys.executable, "-c", WRITER, str(tmp_path), name], check=True).returncode

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(run, "abcd"))
    told = lines(tmp_path)
    assert [one["record"] for one in told].count("began") == 1
    assert [one["record"] for one in told].count("acknowledge") == 160
    undone = [one["undoes"] for one in told if one["record"] == "undo"]
    assert len(undone) == len(set(undone)) == 40
    assert len(known(tmp_path)) == 120


@pytest.mark.slow
def test_a_killed_writer_harms_nothing(tmp_path: Path) -> None:
    shelf, tree = screen(tmp_path)
    for number in range(25):
        writer = subprocess.Popen([sys.executable, "-c", WRITER.replace("40", "4000"), str(tmp_path), f"w{number}"])
        time.sleep(0.2 + number * 0.003)
        writer.kill()
        writer.wait()
        shelf.acknowledge({f"mine-{number}": "m"})
    assert shelf.notice is None
    assert {f"mine-{number}" for number in range(25)} <= set(known(tmp_path))
    assert tree.known == known(tmp_path)
