"""A recording is played at its own pace, and wherever one goes in it, the tree is the one of then."""

from collections.abc import Callable, Sequence
from queue import SimpleQueue

from hypothesis import given
from hypothesis import strategies as st

from agentwatch.delegation.events import Event, Gone, Rules, Seen, Tick
from agentwatch.delegation.tree import Tree
from agentwatch.sources import Batch, Health
from agentwatch.sources.playback import Playback
from agentwatch.view.document import tree_document
from tests.unit.delegation.events import handoff
from tests.unit.delegation.test_interleaving import drawn_steps, record

STALE_AFTER = 3.0


class Time:
    """A clock that goes on when it is told to."""

    def __init__(self):
        self.now = 100.0

    def __call__(self) -> float:
        return self.now

    def passes(self, seconds: float):
        self.now += seconds


def at_times(*times: float) -> list[Seen]:
    """Observations of one file each, made at these times."""
    return [Seen(seq, at, f"{seq}.json", f"{seq:064x}", handoff(f"t{seq}")) for seq, at in enumerate(times)]


def playback_of(events: Sequence[Event], speed: float = 1.0) -> tuple[Playback, Time]:
    time = Time()
    return Playback(events, lambda digest: f"text of {digest}", speed, monotonic=time), time


def played(playback: Playback) -> tuple[int, float]:
    position = playback.position
    return position.number, position.at


# Pause, step and speed


def test_it_plays_at_its_speed_and_stops_at_the_end():
    playback, time = playback_of(at_times(1_000, 1_001, 1_002), speed=2)
    assert played(playback) == (1, 1_000)
    time.passes(0.25)
    assert played(playback) == (1, 1_000.5)
    time.passes(0.25)
    assert played(playback) == (2, 1_001)
    playback.change_speed(0.5)
    time.passes(0.5)
    assert played(playback) == (2, 1_001.5)
    time.passes(60)
    assert played(playback) == (3, 1_002)
    assert not playback.position.playing
    playback.play()
    assert (played(playback), playback.position.playing) == ((1, 1_000), True)
    playback.step(1)
    time.passes(60)
    assert (played(playback), playback.position.playing) == ((2, 1_001), False)
    # Found later, and written before.
    playback, _ = playback_of(at_times(1_000, 990, 1_002))
    assert played(playback) == (2, 1_000)


# The source


class Screen:
    """A tree that takes what a playback emits, as the monitor does."""

    def __init__(self, events: Sequence[Event]):
        self.playback, self.time = playback_of(events)
        self.tree = Tree(Rules(stale_after=STALE_AFTER))
        self.batches: SimpleQueue[Batch] = SimpleQueue()
        self.playback.play()
        self.playback.start(self.batches.put)
        self.take()

    def go(self, move: Callable[[], None]):
        """Move, and take all that comes until it is told where that led."""
        move()
        while self.take() != self.playback.place:
            pass

    def take(self) -> Health:
        batch = self.batches.get(timeout=10)
        assert batch.health.mode == "replay"
        if batch.anew:
            self.tree = Tree(Rules(stale_after=STALE_AFTER))
        for event in batch.events:
            self.tree.apply(event)
        self.tree.apply(Tick(0, self.playback.clock()))
        return batch.health


def tree_at(events: Sequence[Event], at: float) -> Tree:
    tree = Tree(Rules(stale_after=STALE_AFTER))
    for event in [*events, Tick(0, at)]:
        tree.apply(event)
    return tree


@given(st.lists(drawn_steps, min_size=1, max_size=14), st.lists(st.integers(-14, 14), max_size=8))
def test_wherever_one_goes_the_tree_is_the_one_of_then(steps, moves):
    events = [one for one in record(steps) if isinstance(one, Seen | Gone)]
    if not events:
        return
    screen = Screen(events)
    for move in moves:
        screen.go(lambda move=move: screen.playback.step(move))  # type: ignore[misc]
        number, at = played(screen.playback)
        assert tree_document(screen.tree, "/w") == tree_document(tree_at(events[:number], at), "/w")
    screen.playback.stop()
