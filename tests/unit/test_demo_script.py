"""The player: what it writes, when, with which times, and where it refuses to write."""

import pytest

from agentwatch.demo.script import Player, Step

SESSION = (
    Step(0.0, "handoffs/a.json", "{}\n"),
    Step(2.0, "work/deep/draft.md", "naïve ✓\n"),
    Step(7.0, "handoffs/a.json", '{"amended": true}\n'),
)


class FakeTime:
    """A clock, and a stop event whose waiting moves the clock instead of taking time."""

    def __init__(self, stop_at: float = float("inf")):
        self.now = 100.0
        self.stop_at = 100.0 + stop_at

    def __call__(self) -> float:
        return self.now

    def wait(self, timeout: float) -> bool:
        if self.now + timeout >= self.stop_at:
            self.now = self.stop_at
            return True
        self.now += timeout
        return False


@pytest.mark.parametrize(("speed", "ends_after"), [(1.0, 7.0), (2.0, 3.5), (0.5, 14.0)])
def test_the_speed_divides_the_times(tmp_path, speed, ends_after):
    clock = FakeTime()
    Player(SESSION, tmp_path, speed, clock=clock).run(clock.wait, lambda: None)
    assert clock.now - 100.0 == pytest.approx(ends_after)


def test_what_is_cut_in_plays_from_now_on_among_the_rest(tmp_path):
    clock, asked = FakeTime(), list[float]()
    player = Player(SESSION, tmp_path, 2.0, clock=clock)

    def attend():
        asked.append(clock.now - 100.0)
        if (tmp_path / "work").exists() and not (tmp_path / "cut").exists():
            player.cut_in([Step(1.0, "cut/in.md", "in\n")])

    player.run(clock.wait, attend, every=0.8)
    assert player.finished
    assert (tmp_path / "cut/in.md").exists()
    assert asked[:4] == pytest.approx([0.0, 0.0, 0.8, 1.0])
