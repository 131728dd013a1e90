"""The player: what it writes, when, with which times, and where it refuses to write."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentwatch.demo.script import Player, Step
from agentwatch.errors import WorkspaceError

SESSION = (
    Step(0.0, "handoffs/a.json", "{}\n"),
    Step(2.0, "work/deep/draft.md", "naïve ✓\n"),
    Step(7.0, "handoffs/a.json", '{"amended": true}\n'),
)
LEFT = {
    "handoffs": None,
    "handoffs/a.json": b'{"amended": true}\n',
    "work": None,
    "work/deep": None,
    "work/deep/draft.md": "naïve ✓\n".encode(),
}


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


@pytest.mark.parametrize(("speed", "ends_after"), [(1.0, 7.0), (2.0, 3.5), (0.5, 14.0)])
def test_the_speed_divides_the_times(tmp_path: Path, speed: float, ends_after: float) -> None:
    clock = FakeTime()
    Player(SESSION, tmp_path, speed, clock=clock).run(clock)
    assert clock.now - 100.0 == pytest.approx(ends_after)


@pytest.mark.parametrize("path", ["out/x", "out/deep/x", "../x", "/dev/null/x"])
def test_nothing_is_written_outside_of_the_workspace(tmp_path: Path, path: str) -> None:
    workspace, outside = tmp_path / "shop", tmp_path / "outside"
    workspace.mkdir()
    outside.mkdir()
    (workspace / "out").symlink_to(outside)
    with pytest.raises(WorkspaceError, match="link"):
        Player([Step(0, path, "x")], workspace).play_all()
    assert tree(outside) == {}
    assert not (tmp_path / "x").exists()


def test_rewinding_removes_what_the_script_made_and_what_was_cut_in(tmp_path: Path) -> None:
    player = Player(SESSION, tmp_path)
    player.play_all(until=3.0)
    player.cut_in([Step(0.5, "cut/in.md", "in\n")], instead_of=lambda path: path == "handoffs/a.json")
    player.play_all()
    assert (tmp_path / "handoffs/a.json").read_text("utf-8") == "{}\n"
    assert (tmp_path / "cut/in.md").exists()
    (tmp_path / "work/mine.txt").write_bytes(b"mine")
    player.rewind()
    assert tree(tmp_path) == {"work": None, "work/mine.txt": b"mine"}
    (tmp_path / "work/mine.txt").unlink()
    player.play_all()
    assert tree(tmp_path) == LEFT


def test_what_is_cut_in_plays_from_now_on_among_the_rest(tmp_path: Path) -> None:
    clock, asked = FakeTime(), list[float]()
    player = Player(SESSION, tmp_path, 2.0, clock=clock)

    def attend() -> None:
        asked.append(clock.now - 100.0)
        if (tmp_path / "work").exists() and not (tmp_path / "cut").exists():
            player.cut_in([Step(1.0, "cut/in.md", "in\n")])

    player.run(clock, attend, every=0.8)
    assert player.finished
    assert (tmp_path / "cut/in.md").exists()
    assert asked[:4] == pytest.approx([0.0, 0.0, 0.8, 1.0])
