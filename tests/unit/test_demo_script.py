"""The player: what it writes, when, with which times, and where it refuses to write."""

from __future__ import annotations

import os
import threading
import time
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
    halves,
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


def test_two_plays_leave_the_same_bytes(tmp_path: Path) -> None:
    Player(SESSION, tmp_path / "waiting", clock=(clock := FakeTime())).run(clock)
    Player(SESSION, tmp_path / "at once").play_all()
    assert tree(tmp_path / "waiting") == tree(tmp_path / "at once")


def test_playing_until_a_second_includes_that_second_and_nothing_later(tmp_path: Path) -> None:
    player = Player(SESSION, tmp_path)
    player.play_all(until=2.0)
    assert sorted(tree(tmp_path)) == ["handoffs", "handoffs/a.json", "work", "work/deep", "work/draft.md"]
    assert not player.finished


def test_a_second_call_goes_on_where_the_first_one_stopped(tmp_path: Path) -> None:
    player = Player(SESSION, tmp_path)
    player.play_all(until=2.0)
    (tmp_path / "handoffs/a.json").unlink()
    player.play_all(until=5.5)
    assert "handoffs/a.json" not in tree(tmp_path)
    assert (tmp_path / "docs/final.md").read_text(encoding="utf-8") == "naïve ✓\nmore\n"


@pytest.mark.parametrize(("speed", "ends_after"), [(1.0, 7.0), (2.0, 3.5), (0.5, 14.0)])
def test_the_speed_divides_the_times(tmp_path: Path, speed: float, ends_after: float) -> None:
    clock = FakeTime()
    Player(SESSION, tmp_path, speed, clock=clock).run(clock)
    assert clock.now - 100.0 == pytest.approx(ends_after)


def test_a_slow_step_does_not_delay_the_later_ones(tmp_path: Path) -> None:
    clock = FakeTime()
    ticks = iter([100.0, 100.0, 100.0 + 6.5])

    def late() -> float:
        clock.now = next(ticks, clock.now)
        return clock.now

    Player(SESSION, tmp_path, clock=late).run(clock)
    assert clock.now == pytest.approx(107.0)


def test_playing_against_the_clock_goes_on_from_the_second_that_was_played_up_to(tmp_path: Path) -> None:
    clock = FakeTime()
    player = Player(SESSION, tmp_path, clock=clock)
    player.play_all(until=4.5)
    player.run(clock)
    assert clock.now - 100.0 == pytest.approx(2.5)
    assert player.finished


def test_a_stop_between_two_steps_leaves_the_later_one_unplayed(tmp_path: Path) -> None:
    clock = FakeTime(stop_at=2.5)
    player = Player(SESSION, tmp_path, clock=clock)
    player.run(clock)
    assert (tmp_path / "work/draft.md").read_text(encoding="utf-8") == "naïve ✓\n"
    assert not player.finished


def test_a_set_stop_ends_a_thread_that_waits_for_a_far_step(tmp_path: Path) -> None:
    stop = threading.Event()
    player = Player(Script((Step(3_600.0, Write("late.md", "late\n")),)), tmp_path)
    thread = threading.Thread(target=player.run, args=(stop,), daemon=True)
    thread.start()
    stop.set()
    thread.join(timeout=10)
    assert not thread.is_alive()
    assert tree(tmp_path) == {}


def test_an_atomic_write_replaces_the_file_and_one_in_place_keeps_it(tmp_path: Path) -> None:
    file = tmp_path / "a.md"
    file.write_text("before\n", encoding="utf-8")
    with file.open("rb") as reader:
        Player(Script((Step(0, Write("a.md", "after\n")),)), tmp_path).play_all()
        assert reader.read() == b"before\n"
    with file.open("rb") as reader:
        Player(Script((Step(0, Write("a.md", "in place\n", atomic=False)),)), tmp_path).play_all()
        assert reader.read() == b"in place\n"
    assert sorted(tree(tmp_path)) == ["a.md"]


def test_the_name_is_only_there_with_the_whole_content(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[bytes] = []
    replace = Path.replace

    def spy(source: Path, target: Path) -> Path:
        assert not target.exists()
        assert source.suffix not in (".json", ".md")
        seen.append(source.read_bytes())
        return replace(source, target)

    monkeypatch.setattr(Path, "replace", spy)
    Player(Script((Step(0, Write("a.json", '{"whole": true}')),)), tmp_path).play_all()
    assert seen == [b'{"whole": true}']


def test_halves_show_a_file_that_breaks_off_until_the_pause_is_over(tmp_path: Path) -> None:
    text = '{"status": "completed"}\n'
    player = Player(Script(halves(1.0, "r.json", text, 0.5)), tmp_path)
    player.play_all(until=1.2)
    partial = (tmp_path / "r.json").read_text(encoding="utf-8")
    assert partial
    assert partial != text
    assert text.startswith(partial)
    player.play_all()
    assert (tmp_path / "r.json").read_text(encoding="utf-8") == text


def test_times_of_files_are_those_of_the_session(tmp_path: Path) -> None:
    Player(SESSION, tmp_path).play_all(started_at=1_700_000_000.0)
    assert (tmp_path / "docs/final.md").stat().st_mtime == 1_700_000_003.0
    assert (tmp_path / "handoffs/a.json").stat().st_mtime == 1_700_000_007.0


def test_without_a_start_the_moment_played_up_to_is_now(tmp_path: Path) -> None:
    before = time.time()
    Player(SESSION, tmp_path).play_all(until=30.0)
    after = time.time()
    assert before - 23.001 <= (tmp_path / "handoffs/a.json").stat().st_mtime <= after - 22.999


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


def test_what_a_person_deleted_does_not_stop_the_play(tmp_path: Path) -> None:
    player = Player(SESSION, tmp_path / "shop")
    player.play_all(until=3.0)
    (tmp_path / "shop").rename(tmp_path / "gone")
    player.play_all()
    assert sorted(tree(tmp_path / "shop")) == ["docs", "handoffs", "handoffs/a.json"]


def test_rewinding_removes_only_what_the_script_makes(tmp_path: Path) -> None:
    player = Player(SESSION, tmp_path)
    player.play_all()
    (tmp_path / "work/mine.txt").write_bytes(b"mine")
    player.rewind()
    assert tree(tmp_path) == {"work": None, "work/mine.txt": b"mine"}


@pytest.mark.parametrize("until", [0.0, 3.0, 5.0, 7.0])
def test_a_rewound_session_plays_as_the_first_time(tmp_path: Path, until: float) -> None:
    player = Player(SESSION, tmp_path / "twice")
    player.play_all(until=until)
    player.rewind()
    assert tree(tmp_path / "twice") == {}
    player.play_all()
    Player(SESSION, tmp_path / "once").play_all()
    assert tree(tmp_path / "twice") == tree(tmp_path / "once")


@pytest.mark.parametrize("times", [(1.0, 0.5), (-1.0,), (float("nan"),), (float("inf"),)])
def test_steps_out_of_order_are_refused(times: tuple[float, ...]) -> None:
    with pytest.raises(ValueError, match="order"):
        Script(tuple(Step(at, Delete("x")) for at in times))


@pytest.mark.parametrize("speed", [0.0, -1.0, float("inf"), float("nan")])
def test_a_speed_that_cannot_be_played_is_refused(tmp_path: Path, speed: float) -> None:
    with pytest.raises(ValueError, match="above 0"):
        Player(SESSION, tmp_path, speed)


def test_an_empty_script_has_no_duration_and_is_over_at_once(tmp_path: Path) -> None:
    player = Player(Script(()), tmp_path)
    player.run(threading.Event())
    assert player.finished
    assert Script(()).duration == 0.0


def test_a_file_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "work")
    with pytest.raises(OSError, match="work"):
        Player(SESSION, tmp_path).play_all()


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
