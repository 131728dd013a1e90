"""A recording holds what the history holds, and a damaged or hostile one is read as far as it goes."""

from __future__ import annotations

import json
import re
import stat
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from agentwatch.contracts.shapes import Finding, Severity
from agentwatch.delegation.events import Event, Gone, Ran, Seen, Tick
from agentwatch.delegation.run import Asker, Round, Run, RunState
from agentwatch.errors import UsageError
from agentwatch.history.export import lines, read, write
from agentwatch.sources.sessions.reader import message
from agentwatch.view.document import tree_document
from tests.unit.history.recorded import META, Workspace, digest_of, meta, packet, tree_of

HOSTILE = "x\x1b]52;c;aGk=\x07\u202e\udcff[/red]"


def session() -> tuple[Workspace, list[Event]]:
    workspace = Workspace()
    events: list[Event] = [
        workspace.seen("x.handoff.json", packet("x")),
        Tick(9, 9.0),
        workspace.seen(META, meta("blocked")),
        workspace.gone("x.handoff.json"),
        workspace.seen(META, meta("implemented", "sess_2", HOSTILE)),
    ]
    return workspace, events


def exported(tmp_path: Path, text_of: Callable[[str], str | None] | None = None) -> Path:
    workspace, events = session()
    path = tmp_path / "shop.jsonl"
    assert write(path, lines("shop", events, text_of or workspace.text_of)) == 4
    return path


def changed(path: Path, number: int, line: str | bytes) -> Path:
    """The recording with another line `number`, counted from 1."""
    all_lines = path.read_bytes().splitlines()
    all_lines[number - 1] = line if isinstance(line, bytes) else line.encode()
    path.write_bytes(b"\n".join(all_lines) + b"\n")
    return path


def without_seq(events: list[Event] | tuple[Event, ...]) -> list[Event]:
    return [
        Gone(0, one.at, one.path)
        if isinstance(one, Gone)
        else Seen(0, one.at, one.path, one.digest, one.document, one.findings, one.incomplete)
        for one in events
        if isinstance(one, Seen | Gone)
    ]


def test_what_is_read_is_what_was_written(tmp_path: Path) -> None:
    workspace, events = session()
    recording = read(exported(tmp_path))
    assert recording.workspace == "shop"
    assert recording.problems == ()
    assert without_seq(recording.events) == without_seq(events)
    assert [one.seq for one in recording.events] == [0, 1, 2, 3]
    assert {digest: recording.text(digest) for digest in workspace.texts} == workspace.texts
    assert recording.text("0" * 64) is None


def test_a_text_that_was_dropped_leaves_its_outline(tmp_path: Path) -> None:
    _, events = session()
    recording = read(exported(tmp_path, lambda _: None))
    kept = [one for one in events if isinstance(one, Seen | Gone)]
    assert tree_document(tree_of([*recording.events]), "/w") == tree_document(tree_of([*kept]), "/w")
    assert all(recording.text(one.digest) is None for one in recording.events if isinstance(one, Seen))


def run_of(workspace: Workspace) -> Ran:
    """A session's child that was handed a packet, and answered twice."""
    first, second = meta("partial"), meta("implemented", "sess_1", "x\x1b]0;owned\x07\u202e")
    workspace.texts |= {digest_of(text): text for text in (packet("x"), first)}
    said, earlier = message(second, 30.0, key="k"), message(first, 20.0, key="k")
    prompt = message(packet("x"), 9.0, key="k")
    run = Run(
        source="agents",
        session_id="s1",
        parent_session="s0",
        state=RunState.ENDED,
        place="/home/kim/store",
        started_at=10.0,
        updated_at=30.0,
        ended_at=30.0,
    )
    rounds = (Round(9.0, prompt, state=RunState.ENDED, said=earlier, ended_at=20.0), Round(21.0, prompt, Asker.PARENT))
    return Ran(1, 30.0, "agents:s1", replace(run, prompt=prompt, said=said, rounds=rounds))


def test_a_session_is_written_and_read_again_with_the_texts_that_are_kept(tmp_path: Path) -> None:
    workspace = Workspace()
    ran = run_of(workspace)
    assert write(tmp_path / "r", lines("shop", [ran, Ran(2, 31.0, "agents:s2", None)], workspace.text_of)) == 1
    recording = read(tmp_path / "r")
    assert (recording.events, recording.problems) == ((ran._replace(seq=0),), ())
    assert ran.run is not None
    (prompt, said, earlier) = ran.run.prompt, ran.run.said, ran.run.earlier[0]
    assert prompt is not None
    assert said is not None
    assert [recording.text(one.digest) for one in (prompt, earlier, said)] == [packet("x"), meta("partial"), None]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"state": "asleep"}, "`run` is no run"),
        ({"session_id": None}, "`run` is no run"),
        ({"prompt": "do it"}, "`run` is no run"),
        ({"rounds": [{"prompt": None}]}, "`run` is no run"),
        ({"rounds": [{"began_at": 1e300}]}, "a time in `run`"),
        ({"started_at": 1e300}, "a time in `run`"),
        ({"ended_at": -1.0}, "a time in `run`"),
        ({"said": {"at": 1e300, "digest": "a", "opening": ""}}, "a time in `run`"),
    ],
)
def test_a_session_that_cannot_be_is_left_out_and_told(tmp_path: Path, change: dict[str, object], words: str) -> None:
    workspace = Workspace()
    line = next(text for text in lines("shop", [run_of(workspace)], workspace.text_of) if '"run"' in text)
    whole = json.loads(line)
    path = changed(exported(tmp_path), 3, json.dumps({**whole, "run": {**whole["run"], **change}}))
    recording = read(path)
    assert len(recording.events) == 3
    (problem,) = recording.problems
    assert problem.startswith(f"{path}:3: {words}")


def test_what_the_source_found_in_the_bytes_is_kept(tmp_path: Path) -> None:
    workspace = Workspace()
    finding = Finding("SRC001", Severity.WARNING, "not UTF-8")
    seen = workspace.seen("x.handoff.json", packet("x"), finding)
    write(tmp_path / "r", lines("shop", [seen], workspace.text_of))
    first = read(tmp_path / "r").events[0]
    assert isinstance(first, Seen)
    assert finding in first.findings


def test_a_recording_is_a_few_plain_lines_for_its_owner_only(tmp_path: Path) -> None:
    path = exported(tmp_path)
    header, first, *_, last = path.read_text("ascii").splitlines()
    assert json.loads(header) == {"agentwatch_recording": 1, "workspace": "shop"}
    assert json.loads(first)["text"] == packet("x")
    assert set(json.loads(last)) == {"at", "path", "digest", "text", "outline"}
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_file_that_is_there_is_never_replaced(tmp_path: Path) -> None:
    (tmp_path / "r").write_text("mine", "utf-8")
    with pytest.raises(UsageError, match="there is such a file already"):
        write(tmp_path / "r", [])
    assert (tmp_path / "r").read_text("utf-8") == "mine"


def test_half_a_recording_is_not_left_behind(tmp_path: Path) -> None:
    def interrupted() -> Iterator[str]:
        yield "{}"
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write(tmp_path / "shop.jsonl", interrupted())
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("place", ["nowhere/r", "."])
def test_a_place_that_cannot_be_written_is_told(tmp_path: Path, place: str) -> None:
    with pytest.raises(UsageError, match="give another"):
        write(tmp_path / place, [])


SEEN = {"at": 1.0, "path": "a.json", "digest": "a" * 64, "text": packet("a"), "outline": None}


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (b'{"at": 1.0, "pa', "no JSON"),
        (b"\xff\xfe", "no JSON"),
        (b"[" * 100_000, "nested too deeply|no JSON"),
        (b"", "no JSON"),
        (b"[]", "no JSON object"),
        (b'{"at": NaN}', "NaN is no number"),
        (json.dumps({**SEEN, "at": 1e300}), "`at` is no time"),
        (json.dumps({**SEEN, "at": True}), "`at` is no time"),
        (json.dumps({**SEEN, "at": -1}), "`at` is no time"),
        (json.dumps({**SEEN, "at": 10**300}), "`at` is no time"),
        (json.dumps({**SEEN, "path": 7}), "`path` is no path"),
        (json.dumps({**SEEN, "digest": "a"}), "`digest` is neither"),
        (json.dumps({"at": 1.0, "path": "a.json"}), "`digest` is neither"),
        (json.dumps({**SEEN, "text": "# Only prose"}), "neither `text` nor `outline`"),
        (json.dumps({**SEEN, "text": None, "outline": "--------h{"}), "neither `text` nor `outline`"),
        (json.dumps({**SEEN, "text": ["x"], "outline": {"x": 1}}), "neither `text` nor `outline`"),
    ],
)
def test_a_bad_line_is_told_with_its_place_and_costs_nothing_else(
    tmp_path: Path, line: str | bytes, words: str
) -> None:
    path = changed(exported(tmp_path), 3, line)
    recording = read(path)
    assert len(recording.events) == 3
    (problem,) = recording.problems
    assert problem.startswith(f"{path}:3: ")
    assert problem.endswith("; the line is left out, export the recording again")
    assert re.search(words, problem)


def test_a_recording_that_was_cut_off_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    path = exported(tmp_path)
    path.write_bytes(path.read_bytes()[:-40])
    recording = read(path)
    assert len(recording.events) == 3
    assert len(recording.problems) == 1


def test_a_line_that_is_too_long_is_skipped_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = changed(exported(tmp_path), 3, json.dumps({**SEEN, "text": "x" * 100_000}))
    monkeypatch.setattr("agentwatch.history.export._LONGEST_LINE", 10_000)
    recording = read(path)
    assert len(recording.events) == 3
    assert [problem.partition(": ")[0] for problem in recording.problems] == [f"{path}:3"]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", ":1: no recording of agentwatch"),
        ("# Notes\n", ":1: no recording of agentwatch"),
        ('{"schema_version": 1}\n', ":1: no recording of agentwatch"),
        ('{"agentwatch_recording": 2}\n', ":1: a recording of another version (2); update agentwatch"),
        ('{"agentwatch_recording": 1}\n', "it holds nothing to replay"),
        ('{"agentwatch_recording": 1}\nx\n', ":2: no JSON"),
    ],
)
def test_what_is_no_recording_is_refused_with_what_to_do(tmp_path: Path, content: str, words: str) -> None:
    path = tmp_path / "r"
    path.write_text(content, "utf-8")
    with pytest.raises(UsageError) as caught:
        read(path)
    assert words in str(caught.value)


def test_a_file_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(UsageError, match="cannot be read"):
            read(path)
