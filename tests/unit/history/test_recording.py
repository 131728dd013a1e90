"""A recording holds what the history holds, and a damaged or hostile one is read as far as it goes."""

import json
import re
import stat
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from queue import SimpleQueue

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentwatch.contracts.shapes import Finding, Handoff, Severity
from agentwatch.delegation.events import (
    Aside,
    Checked,
    Claim,
    Event,
    Gone,
    Noted,
    Put,
    Ran,
    Rules,
    RunState,
    Seen,
    StartedBy,
    Tick,
    Turn,
    Verdict,
)
from agentwatch.delegation.tree import Tree
from agentwatch.errors import UsageError
from agentwatch.history.recording import outline_of, read_recording, read_version, recording_lines, write_new
from agentwatch.sources import Batch, Health
from agentwatch.sources.playback import Playback
from agentwatch.sources.sessions.reader import message
from agentwatch.view.document import tree_document
from tests.unit.delegation.asking import decided, ran, request, requested
from tests.unit.delegation.asking import session as started
from tests.unit.delegation.events import Recorder, handoff, returned
from tests.unit.delegation.test_interleaving import drawn_steps, record
from tests.unit.history.recorded import META, Workspace, digest_of, meta, packet

HOSTILE = "x\x1b]52;c;aGk=\x07\u202e\udcff[/red]"
FINDING = Finding("SRC001", Severity.WARNING, "not UTF-8")


def session() -> tuple[Workspace, list[Event]]:
    workspace = Workspace()
    events: list[Event] = [
        workspace.seen("x.handoff.json", packet("x"), FINDING),
        Tick(9, 9.0),
        workspace.seen(META, meta("blocked")),
        workspace.gone("x.handoff.json"),
        workspace.seen(META, meta("implemented", "sess_2", HOSTILE)),
    ]
    return workspace, events


def exported(tmp_path: Path, text_of: Callable[[str], str | None] | None = None) -> Path:
    workspace, events = session()
    path = tmp_path / "shop.jsonl"
    write_new(path, recording_lines("shop", events, text_of or workspace.text_of))
    return path


def changed(path: Path, number: int, line: str | bytes) -> Path:
    """The recording with another line `number`, counted from 1."""
    lines = path.read_bytes().splitlines()
    lines[number - 1] = line if isinstance(line, bytes) else line.encode()
    path.write_bytes(b"\n".join(lines) + b"\n")
    return path


@pytest.mark.parametrize("has_texts", [True, False])
def test_what_is_read_is_what_was_written(tmp_path, *, has_texts):
    workspace, events = session()
    path = exported(tmp_path, None if has_texts else lambda _: None)
    read = read_recording(path)
    assert read.workspace == "shop"
    kept = [one for one in events if isinstance(one, Seen | Gone)]
    assert list(read.events) == [one._replace(seq=seq) for seq, one in enumerate(kept)]
    texts = {digest: read.texts.get(digest) for digest in workspace.texts}
    assert texts == (workspace.texts if has_texts else dict.fromkeys(texts))
    header, first, *_, last = path.read_text("ascii").splitlines()
    assert json.loads(header) == {"agentwatch_recording": 1, "workspace": "shop"}
    assert json.loads(first)["text"] == (packet("x") if has_texts else None)
    assert set(json.loads(last)) == {"at", "path", "digest", "text", "outline"}
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def run_of(workspace: Workspace) -> Ran:
    """A session's child that was handed a packet, and answered twice."""
    first, second = meta("partial"), meta("implemented", "sess_1", HOSTILE)
    workspace.texts |= {digest_of(text): text for text in (packet("x"), first)}
    said, earlier, prompt = message(second, 30.0), message(first, 20.0), message(packet("x"), 9.0)
    turn = Turn(9.0, prompt, state=RunState.ENDED, said=earlier, ended_at=20.0)
    more = {"prompt": prompt, "said": said, "rounds": (turn, Turn(21.0, prompt, StartedBy.PARENT))}
    return ran(started(parent_session="s0", updated_at=1_060.0, **more))


def test_a_session_is_read_again_with_the_texts_that_are_kept(tmp_path):
    workspace = Workspace()
    one = run_of(workspace)
    plain: list[Event] = [
        requested(request()),
        decided(request()),
        Checked(0, 9.0, "x", "a" * 64, (Claim("created", "a.py", Verdict.CONTRADICTED, "missing", (1, 2)),)),
        Noted(0, 9.0, "x", Aside(Put("mark", 9.0, snoozed=True))),
    ]
    events = [one, *plain, one._replace(run=None)]
    write_new(tmp_path / "r", recording_lines("shop", events, workspace.text_of, 7.0))
    read = read_recording(tmp_path / "r")
    assert read.history_before == 7.0
    assert [one._replace(seq=0) for one in read.events] == [one._replace(seq=0) for one in (one, *plain)]  # type: ignore[attr-defined]
    said = [digest_of(text) for text in (packet("x"), meta("partial"), meta("implemented", "sess_1", HOSTILE))]
    assert [read.texts.get(digest) for digest in said] == [packet("x"), meta("partial"), None]


def test_no_file_is_replaced_and_no_half_of_one_left(tmp_path):
    def interrupted() -> Iterator[str]:
        yield "{}"
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_new(tmp_path / "shop.jsonl", interrupted())
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "r").write_text("mine", "utf-8")
    for place in ("r", "nowhere/r", "."):
        with pytest.raises(UsageError, match="give another"):
            write_new(tmp_path / place, [])
    assert (tmp_path / "r").read_text("utf-8") == "mine"


SEEN = {"at": 1.0, "path": "a.json", "digest": "a" * 64, "text": packet("a"), "outline": None}


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (b'{"at": 1.0, "pa', "no JSON"),
        (b"[" * 100_000, "nested too deeply|no JSON"),
        (b"[]", "no JSON object"),
        (b'{"at": NaN}', "`at` is no time"),
        (json.dumps({**SEEN, "at": 1e300}), "`at` is no time"),
        (json.dumps({**SEEN, "path": 7}), "no path"),
        (json.dumps({**SEEN, "digest": "a"}), "`digest` is neither"),
        (json.dumps({**SEEN, "text": "# Only prose"}), "neither `text` nor `outline`"),
        (json.dumps({**SEEN, "text": None, "outline": "--------h{"}), "neither `text` nor `outline`"),
    ],
)
def test_a_bad_line_is_told_with_its_place(tmp_path, line, words):
    path = changed(exported(tmp_path), 3, line)
    with pytest.raises(UsageError, match=words) as error:
        read_recording(path)
    assert str(error.value).startswith(f"{path}:3: ")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ('{"schema_version": 1}\n', ":1: no recording of agentwatch"),
        ('{"agentwatch_recording": 2}\n', ":1: no recording of agentwatch"),
        ('{"agentwatch_recording": 1}\n', "it holds nothing to replay"),
    ],
)
def test_what_is_no_recording_is_refused_with_what_to_do(tmp_path, content, words):
    (tmp_path / "r").write_text(content, "utf-8")
    with pytest.raises(UsageError, match=re.escape(words)):
        read_recording(tmp_path / "r")


def test_a_version_that_is_nothing_today_stays_what_it_was():
    seen = Recorder().seen("a.handoff.json", returned("completed"))
    reading = read_version(seen.path, outline_of(seen), lambda: '{"ok": true}')
    assert reading is not None
    assert reading.document == seen.document


def test_a_version_of_other_contracts_is_read_anew():
    finding = Finding("SRC006", Severity.WARNING, "not UTF-8", 3)
    outline = outline_of(Workspace().seen("a.json", packet("a"), finding)) or ""
    reading = read_version("a.json", f"{'-' * 8}{outline[8:]}", lambda: packet("b"))
    assert reading is not None
    assert isinstance(reading.document, Handoff)
    assert (reading.document.task_id, reading.findings[:1]) == ("b", (finding,))


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
