"""Tasks that were put aside or looked at: many writers, undo, an older file, and failed writing."""

import json
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentwatch.delegation.events import Aside, Event, Looked, Noted, Put
from agentwatch.history.acknowledgements import OLD_NAME, AcknowledgeError, Acknowledgements
from agentwatch.state import HISTORY


class Screen:
    """Acknowledgements, and the state that follows from their events; each is a second later than the one before."""

    def __init__(self, state: Path):
        self.all = Acknowledgements(state, clock=count(1_000_000.0).__next__)
        self.asides: dict[str, Aside] = {}
        self.looked_at: float | None = None
        self.apply(self.all.read_first())

    def apply(self, events: Sequence[Event]):
        for one in events:
            if isinstance(one, Noted):
                self.asides[one.path] = one.aside
            elif isinstance(one, Looked):
                self.looked_at = one.at

    @property
    def known(self) -> dict[str, Aside]:
        self.apply(self.all.read_changes())
        return {task_id: aside for task_id, aside in self.asides.items() if aside != Aside()}

    def poll(self):
        """Write the pending acknowledgements."""
        self.apply(self.all.poll())


def known(state: Path) -> dict[str, Aside]:
    """Return the tasks that are put aside, as a command reads them."""
    all_ = Acknowledgements(state)
    return {one.path: one.aside for one in all_.read_changes() if isinstance(one, Noted) and one.aside != Aside()}


def puts(state: Path) -> dict[str, Put]:
    return {task_id: aside.put for task_id, aside in known(state).items() if aside.put is not None}


def test_tasks_put_aside_are_known_everywhere(tmp_path):
    state = tmp_path / "state" / "shop"
    assert Acknowledgements(state).read_changes() == []
    assert not state.exists()
    screen, other = Screen(state), Screen(state)
    assert screen.looked_at == other.looked_at is not None
    screen.all.mark_seen({"c": "1 blocked"})
    screen.poll()
    screen.all.acknowledge({"a": "1 failed x", "b\udc80": "1 failed y"})
    screen.all.snooze({"c": "1 blocked z"}, 2_000_000.0)
    assert screen.known == other.known == known(state)
    assert screen.known.keys() == {"a", "b\udc80", "c"}
    put, seen = screen.known["c"]
    assert (put._replace(at=0.0), seen) == (Put("1 blocked z", 0.0, True, 2_000_000.0), "1 blocked")


tasks = st.frozensets(st.sampled_from("abcde"), min_size=1, max_size=4)
whats = st.sampled_from(["acknowledge", "snooze", "seen", "undo", "restart"])
steps = st.lists(st.tuples(st.integers(0, 1), whats, tasks, st.sampled_from(["m1", "m2"])), max_size=12)


@given(steps)
def test_two_screens_agree_and_an_undo_restores_exactly(history):
    with TemporaryDirectory() as directory:
        state = Path(directory)
        screens = [Screen(state), Screen(state)]
        before: list[dict[str, Put]] = []
        for who, what, names, mark in history:
            screen, marks, now = screens[who], dict.fromkeys(names, mark), puts(state)
            match what:
                case "acknowledge" | "snooze":
                    screen.all.acknowledge(marks) if what == "acknowledge" else screen.all.snooze(marks, 2e6)
                    before.append(now)
                case "seen":
                    screen.all.mark_seen(marks)
                    screen.poll()
                case "undo":
                    assert (screen.all.undo() is None) == (not before)
                    assert puts(state) == (before.pop() if before else now)
                case "restart":
                    screens[who] = Screen(state)
        assert screens[0].known == screens[1].known == known(state)


def test_a_failed_write_is_tried_again(tmp_path, monkeypatch):
    screen, connect = Screen(tmp_path), sqlite3.connect
    # The time-out is short, so that the test does not wait long for the lock.
    monkeypatch.setattr(sqlite3, "connect", lambda *words, **more: connect(*words, **{**more, "timeout": 0.001}))
    with closing(connect(tmp_path / HISTORY, isolation_level=None)) as blocker:
        blocker.execute("BEGIN IMMEDIATE")
        with pytest.raises(AcknowledgeError, match=r"nothing is put aside: .*; see to that, and try again"):
            screen.all.acknowledge({"a": "m"})
        screen.all.mark_seen({"b": "m"})
        screen.poll()
        assert "nothing is put aside" in (screen.all.notice or "")
    screen.poll()
    assert (known(tmp_path).keys(), screen.all.notice) == ({"b"}, None)


def test_a_damaged_history_is_reported_and_begun_anew(tmp_path):
    (tmp_path / HISTORY).write_bytes(b"broken" * 1_000)
    all_ = Acknowledgements(tmp_path)
    assert all_.read_changes() == []
    assert "cannot be read" in (all_.notice or "")
    screen = Screen(tmp_path)
    screen.all.acknowledge({"a": "m"})
    assert "set aside as history.corrupt-" in (screen.all.notice or "")
    (tmp_path / HISTORY).unlink()
    assert screen.known == {}
    screen.all.acknowledge({"b": "m"})
    assert screen.known.keys() == {"b"}


OLD = [
    {"record": "began", "at": 5.0, "version": 1},
    {"record": "acknowledge", "at": 6.0, "name": "n1", "tasks": {"a": "m1", "b\udc80": "m2"}},
    {"record": "snooze", "at": 7.0, "name": "n2", "until": 9.5, "tasks": {"c": "m3"}},
    {"record": "seen", "at": 8.0, "tasks": {"d": "m4"}},
    [],
    {"record": "snooze", "at": 1, "name": "n9", "until": "x", "tasks": {"a": "m"}},
    {"record": "undo", "at": 9.0, "undoes": "n2"},
    {"record": "over", "at": 9.5, "tasks": {"a": "m1"}},
]


def test_the_file_of_an_earlier_version_is_taken_over_once(tmp_path):
    text = "".join(f"{json.dumps(line)}\n" for line in OLD) + '{"record":"undo","at":3,"undo'
    (tmp_path / OLD_NAME).write_text(text)
    old = {"a": Aside(Put("m1", 6.0)), "b\udc80": Aside(Put("m2", 6.0)), "d": Aside(None, "m4")}
    assert known(tmp_path) == old
    assert (tmp_path / OLD_NAME).read_text() == text
    screen = Screen(tmp_path)
    assert (screen.known, screen.looked_at) == (old, 5.0)
    screen.all.acknowledge({"e": "m5"})
    assert {path.name for path in tmp_path.iterdir()} == {".lock", HISTORY, "put-aside.imported.jsonl"}
    undone = [screen.all.undo() for _ in range(2)]
    assert [one.tasks[0] for one in undone if one] == ["e", "a"]
    assert (known(tmp_path), Screen(tmp_path).looked_at) == ({"d": old["d"]}, 5.0)
