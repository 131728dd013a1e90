"""The player: what it writes, when, with which times, and where it refuses to write."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from agentwatch.demo.script import (
    Append,
    Delete,
    MakeDirectory,
    Player,
    Rename,
    Script,
    Step,
    Write,
)
from agentwatch.errors import WorkspaceError

SESSION = Script(
    (
        Step(0.0, Write("handoffs/a.json", "{}\n")),
        Step(1.0, MakeDirectory("work/deep")),
        Step(2.0, Write("work/draft.md", "naïve ✓\n", atomic=False)),
        Step(3.0, Append("work/draft.md", "more\n")),
        Step(4.0, Rename("work/draft.md", "docs/final.md")),
        Step(5.0, Write("scratch/x.txt", "x\n")),
        Step(6.0, Delete("scratch")),
        Step(7.0, Write("handoffs/a.json", '{"amended": true}\n')),
    )
)


class FakeTime:
    """A clock, and a stop event whose waiting moves the clock instead of taking time."""

    def __init__(self, stop_at: float = float("inf")) -> None:
        self.now = 100.0
        self.stop_at = 100.0 + stop_at

    def __call__(self) -> float:
        return self.now

    def wait(self, timeout: float | None = None) -> bool:
        assert timeout is not None
        if self.now + timeout >= self.stop_at:
            self.now = self.stop_at
            return True
        self.now += timeout
        return False


def tree(directory: Path) -> dict[str, bytes | None]:
    """Relative path to content; None for a directory."""
    return {
        path.relative_to(directory).as_posix(): path.read_bytes() if path.is_file() else None
        for path in sorted(directory.rglob("*"))
    }


def test_a_session_leaves_what_its_steps_say(tmp_path: Path) -> None:
    Player(SESSION, tmp_path / "shop").play_all()
    assert tree(tmp_path / "shop") == {
        "docs": None,
        "docs/final.md": "naïve ✓\nmore\n".encode(),
        "handoffs": None,
        "handoffs/a.json": b'{"amended": true}\n',
        "work": None,
        "work/deep": None,
    }


@pytest.mark.parametrize(("speed", "ends_after"), [(1.0, 7.0), (2.0, 3.5), (0.5, 14.0)])
def test_the_speed_divides_the_times(tmp_path: Path, speed: float, ends_after: float) -> None:
    clock = FakeTime()
    Player(SESSION, tmp_path, speed, clock=clock).run(clock)
    assert clock.now - 100.0 == pytest.approx(ends_after)


def test_a_set_stop_ends_a_thread_that_waits_for_a_far_step(tmp_path: Path) -> None:
    stop = threading.Event()
    player = Player(Script((Step(3_600.0, Write("late.md", "late\n")),)), tmp_path)
    thread = threading.Thread(target=player.run, args=(stop,), daemon=True)
    thread.start()
    stop.set()
    thread.join(timeout=10)
    assert not thread.is_alive()
    assert tree(tmp_path) == {}


@pytest.mark.parametrize("path", ["/etc/passwd", "../x", "a/../../x", "a/..", "", ".", "C:/x", "a\\..\\x", "a\0b"])
def test_paths_out_of_the_workspace_are_refused(path: str) -> None:
    for make in (
        lambda: Write(path, ""),
        lambda: Append(path, ""),
        lambda: Delete(path),
        lambda: MakeDirectory(path),
        lambda: Rename(path, "b"),
        lambda: Rename("a", path),
    ):
        with pytest.raises(ValueError, match="no p"):
            make()


@pytest.mark.parametrize(
    "action",
    [
        Write("out/x", "x"),
        Write("out/deep/x", "x", atomic=False),
        Append("out/victim", "x"),
        Delete("out/victim"),
        MakeDirectory("out/made"),
        Rename("out/victim", "here"),
        Rename("inside", "out/x"),
        Append("file", "x"),
        Write("file", "x", atomic=False),
    ],
)
def test_a_link_out_of_the_workspace_is_refused(tmp_path: Path, action: Write) -> None:
    workspace, outside = tmp_path / "shop", tmp_path / "outside"
    workspace.mkdir()
    outside.mkdir()
    (outside / "victim").write_bytes(b"kept")
    (workspace / "inside").write_bytes(b"")
    (workspace / "out").symlink_to(outside)
    (workspace / "file").symlink_to(outside / "victim")
    with pytest.raises(WorkspaceError, match="link"):
        Player(Script((Step(0, action),)), workspace).play_all()
    assert tree(outside) == {"victim": b"kept"}


def test_rewinding_removes_only_what_the_script_makes(tmp_path: Path) -> None:
    player = Player(SESSION, tmp_path)
    player.play_all()
    (tmp_path / "work/mine.txt").write_bytes(b"mine")
    player.rewind()
    assert tree(tmp_path) == {"work": None, "work/mine.txt": b"mine"}


# What is cut in


def test_what_is_cut_in_plays_from_now_on_among_the_rest(tmp_path: Path) -> None:
    clock = FakeTime()
    player = Player(SESSION, tmp_path, clock=clock)
    player.play_all(until=3.5)
    player.cut_in([Step(1.0, Write("cut/in.md", "in\n")), Step(60.0, Write("late.md", "late\n"))])
    player.play_all(until=4.4)
    assert not (tmp_path / "cut").exists()
    player.play_all(until=4.5)
    assert (tmp_path / "cut/in.md").exists()
    player.run(clock)
    assert player.finished
    assert (tmp_path / "late.md").exists()
    assert clock.now - 100.0 == pytest.approx(63.5 - 4.5)


def test_what_was_to_come_of_some_paths_is_left_out_instead(tmp_path: Path) -> None:
    player = Player(SESSION, tmp_path)
    player.play_all(until=3.0)
    player.cut_in([Step(0.5, Write("handoffs/a.json", "ours\n"))], instead_of=lambda path: path.startswith("handoffs/"))
    player.play_all()
    assert (tmp_path / "handoffs/a.json").read_text(encoding="utf-8") == "ours\n"
    assert (tmp_path / "docs/final.md").exists()


def test_rewinding_removes_what_was_cut_in_and_forgets_it(tmp_path: Path) -> None:
    player = Player(SESSION, tmp_path / "twice")
    player.play_all(until=3.0)
    player.cut_in([Step(0.5, Write("cut/in.md", "in\n"))], instead_of=lambda path: path == "work/draft.md")
    player.play_all()
    player.rewind()
    assert tree(tmp_path / "twice") == {}
    player.play_all()
    Player(SESSION, tmp_path / "once").play_all()
    assert tree(tmp_path / "twice") == tree(tmp_path / "once")


def test_whoever_attends_is_asked_first_and_then_at_least_so_often_and_may_cut_in(tmp_path: Path) -> None:
    clock = FakeTime()
    player = Player(
        Script((Step(1.0, Write("a.md", "a\n")), Step(3.0, Write("b.md", "b\n")))), tmp_path, 2.0, clock=clock
    )
    asked: list[float] = []

    def attend() -> None:
        asked.append(clock.now - 100.0)
        if (tmp_path / "b.md").exists() and not (tmp_path / "c.md").exists():
            player.cut_in([Step(0.0, Write("c.md", "c\n"))])

    player.run(clock, attend, every=0.4)
    assert asked == pytest.approx([0.0, 0.4, 0.5, 0.9, 1.3, 1.5, 1.5])
    assert sorted(tree(tmp_path)) == ["a.md", "b.md", "c.md"]
