"""A recording holds the same as the history, is read as far as possible, and shows the tree at each of its moments."""

import json
import stat
from collections.abc import Callable, Sequence
from pathlib import Path
from queue import SimpleQueue

import pytest
from hypothesis import assume, given
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
from agentwatch.history.recording import outline_of, read_recording, read_version, recording_lines, write_new_file
from agentwatch.sources import Batch
from agentwatch.sources.playback import Playback
from agentwatch.sources.sessions.reader import message
from agentwatch.view.document import tree_document
from tests.unit.delegation.asking import decided, ran, request, requested
from tests.unit.delegation.asking import session as started
from tests.unit.delegation.events import Recorder, returned
from tests.unit.delegation.test_interleaving import drawn_steps, record
from tests.unit.history.recorded import META, Workspace, digest_of, meta, packet

HOSTILE = "x\x1b]52;c;aGk=\x07\u202e\udcff[/red]"
FINDING = Finding("SRC001", Severity.WARNING, "not UTF-8")


def session() -> tuple[Workspace, list[Event]]:
    workspace = Workspace()
    events = [
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
    write_new_file(path, recording_lines("shop", events, text_of or workspace.text_of))
    return path


@pytest.mark.parametrize("has_texts", [True, False])
def test_a_recording_is_read_as_it_was_written(tmp_path, *, has_texts):
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
    """Return the run of a session's child that was handed a packet, and answered twice."""
    first, second = meta("partial"), meta("implemented", "sess_1", HOSTILE)
    workspace.texts |= {digest_of(text): text for text in (packet("x"), first)}
    said, earlier, prompt = message(second, 30.0), message(first, 20.0), message(packet("x"), 9.0)
    turn = Turn(9.0, prompt, state=RunState.ENDED, said=earlier, ended_at=20.0)
    more = {"prompt": prompt, "said": said, "rounds": (turn, Turn(21.0, prompt, StartedBy.PARENT))}
    return ran(started(parent_session="s0", updated_at=1_060.0, **more))


def test_a_session_is_read_again_with_the_texts_that_are_kept(tmp_path):
    workspace = Workspace()
    one = run_of(workspace)
    plain = [
        requested(request()),
        decided(request()),
        Checked(0, 9.0, "x", "a" * 64, (Claim("created", "a.py", Verdict.CONTRADICTED, "missing", (1, 2)),)),
        Noted(0, 9.0, "x", Aside(Put("mark", 9.0, snoozed=True))),
    ]
    events = [one, *plain, one._replace(run=None)]
    write_new_file(tmp_path / "r", recording_lines("shop", events, workspace.text_of, 7.0))
    read = read_recording(tmp_path / "r")
    assert read.history_before == 7.0
    assert [one._replace(seq=0) for one in read.events] == [one._replace(seq=0) for one in (one, *plain)]  # type: ignore[attr-defined]
    said = [digest_of(text) for text in (packet("x"), meta("partial"), meta("implemented", "sess_1", HOSTILE))]
    assert [read.texts.get(digest) for digest in said] == [packet("x"), meta("partial"), None]


def test_no_file_is_replaced_and_no_half_of_one_left(tmp_path):
    def interrupted():
        yield "{}"
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_new_file(tmp_path / "shop.jsonl", interrupted())
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "r").write_text("mine")
    for place in ("r", "nowhere/r", "."):
        with pytest.raises(UsageError, match="give another"):
            write_new_file(tmp_path / place, [])
    assert (tmp_path / "r").read_text() == "mine"


SEEN = {"at": 1.0, "path": "a.json", "digest": "a" * 64, "text": packet("a"), "outline": None}


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('{"at": 1.0, "pa', "no JSON"),
        ("[" * 100_000, "nested too deeply|no JSON"),
        ("[]", "no JSON object"),
        ('{"at": NaN}', "`at` is no time"),
        (json.dumps({**SEEN, "at": 1e300}), "`at` is no time"),
        (json.dumps({**SEEN, "path": 7}), "no path"),
        (json.dumps({**SEEN, "digest": "a"}), "`digest` is neither"),
        (json.dumps({**SEEN, "text": "# Only prose"}), "neither `text` nor `outline`"),
        (json.dumps({**SEEN, "text": None, "outline": "--------h{"}), "neither `text` nor `outline`"),
    ],
)
def test_an_error_in_a_recording_names_its_line(tmp_path, line, words):
    path = exported(tmp_path)
    first, second, _, *others = path.read_text("ascii").splitlines()
    path.write_text("\n".join([first, second, line, *others]))
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
def test_a_file_that_is_no_recording_is_refused(tmp_path, content, words):
    (tmp_path / "r").write_text(content)
    with pytest.raises(UsageError, match=words):
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


# Playing it


class Clock:
    """A clock that moves only when the test moves it."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


def playback_of(events: Sequence[Event]) -> tuple[Playback, Clock]:
    clock = Clock()
    return Playback(events, lambda digest: f"text of {digest}", 2.0, monotonic=clock), clock


def played_at(*times: float) -> tuple[Playback, Clock]:
    """Return a playback at double speed of events made at these times, each of a file of its own."""
    return playback_of(
        [Seen(seq, at, f"{seq}.json", f"{seq:064x}", Handoff(f"t{seq}", "")) for seq, at in enumerate(times)]
    )


def test_a_playback_has_its_speed_and_stops_at_the_end():
    playback, clock = played_at(1_000, 1_001, 1_002)
    for seconds, number, at in (
        (0, 1, 1_000),
        (0.25, 1, 1_000.5),
        (0.25, 2, 1_001),
        (0.25, 2, 1_001.5),
        (60, 3, 1_002),
    ):
        clock.now += seconds
        assert (playback.position.number, playback.position.at) == (number, at)
    assert not playback.position.playing
    playback.toggle_playing()
    assert (playback.position.number, playback.position.at, playback.position.playing) == (1, 1_000, True)
    playback.change_speed(0.5)
    clock.now += 0.5
    assert playback.position.at == 1_000.5
    playback.step(1)
    clock.now += 60
    assert (playback.position.number, playback.position.at, playback.position.playing) == (2, 1_001, False)
    # The second event was found later than the first, and written before it.
    playback, _ = played_at(1_000, 990, 1_002)
    assert (playback.position.number, playback.position.at) == (2, 1_000)


def tree_at(events: Sequence[Event], at: float) -> Tree:
    tree = Tree(Rules(stale_after=3.0))
    for event in [*events, Tick(0, at)]:
        tree.apply(event)
    return tree


@given(st.lists(drawn_steps, min_size=1, max_size=14), st.lists(st.integers(-14, 14), max_size=8))
def test_at_each_position_the_tree_is_that_of_its_moment(steps, moves):
    events = [one for one in record(steps) if isinstance(one, Seen | Gone)]
    assume(events)
    playback, batches, taken = playback_of(events)[0], SimpleQueue[Batch](), list[Event]()
    playback.toggle_playing()
    playback.start(batches.put)
    for move in [0, *moves]:
        playback.step(move)
        health = None
        while health != playback.health:
            batch = batches.get(timeout=10)
            health, taken = batch.health, [*([] if batch.starts_over else taken), *batch.events]
            assert health.mode == "replay"
        shown, then = (tree_at(some, playback.clock()) for some in (taken, events[: playback.position.number]))
        assert tree_document(shown, "/w") == tree_document(then, "/w")
        assert playback.clock() == playback.position.at
    playback.stop()
