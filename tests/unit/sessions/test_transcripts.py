"""Transcripts of all programs: what is told, however one has followed, and what happens to files meanwhile."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from agentwatch.delegation.run import Run, RunState
from agentwatch.sources.sessions import following
from agentwatch.sources.sessions.entries import Entry, EntryKind
from agentwatch.sources.sessions.fields import Fields
from agentwatch.sources.sessions.following import (
    LinesTranscript,
    Look,
    Outcome,
    RunTranscript,
    Step,
    one_line,
    written,
)
from tests.unit.sessions.store import Store, Watch
from tests.unit.sessions.stores.claude_code import claude_code
from tests.unit.sessions.stores.codex import codex
from tests.unit.sessions.stores.copilot import copilot
from tests.unit.sessions.stores.gemini import gemini
from tests.unit.sessions.stores.opencode import opencode
from tests.unit.sessions.stores.qwen import qwen
from tests.unit.sessions.stores.roo import roo
from tests.unit.sessions.test_conformance import built

Build = Callable[[Path], Store]
with_transcripts = pytest.mark.parametrize("build", [claude_code, codex, copilot, gemini, opencode, qwen, roo])


def runs_of(watch: Watch) -> list[Run]:
    return [ran.run for ran in watch.runs.values() if ran.run is not None]


def transcripts(watch: Watch) -> dict[str, RunTranscript]:
    found = {run.session_id: watch.source.transcript(run) for run in runs_of(watch)}
    return {session: transcript for session, transcript in found.items() if transcript is not None}


def known(transcript: RunTranscript) -> list[Step]:
    look = transcript.look()
    assert look is not None
    return list(look.steps)


@with_transcripts
def test_what_was_handed_over_and_back_stands_in_the_transcript(build: Build) -> None:
    with built(build) as store:
        store.finish()
        watch = store.watch()
        watch.look()
        shown = transcripts(watch)
        told = 0
        for run in runs_of(watch):
            if run.session_id not in shown:
                continue
            entries = list(shown[run.session_id].entries())
            for message in (run.prompt, run.said):
                if message is not None:
                    text = watch.source.content(message.digest)
                    assert text is not None
                    assert text.strip() in [entry.text.strip() for entry in entries], (run, text)
                    told += 1
        assert told >= 8


@with_transcripts
def test_whoever_follows_from_the_beginning_sees_what_a_late_one_sees(build: Build) -> None:
    with built(build) as store:
        watch = store.watch()
        followed: dict[str, RunTranscript] = {}
        looks: dict[str, Look] = {}
        for _ in store.story:
            watch.look()
            for run in runs_of(watch):
                if run.session_id not in followed and (one := watch.source.transcript(run)) is not None:
                    followed[run.session_id] = one
            for session, transcript in followed.items():
                look = transcript.look()
                if look is not None:
                    looks[session] = look
        late = store.watch()
        late.look()
        assert len(followed) >= 6
        for session, transcript in transcripts(late).items():
            assert list(looks[session].steps) == known(transcript), session
            assert not looks[session].trouble


@with_transcripts
def test_each_step_can_be_had_whole(build: Build) -> None:
    with built(build) as store:
        store.finish()
        watch = store.watch()
        watch.look()
        for transcript in transcripts(watch).values():
            for step in known(transcript):
                whole = transcript.whole(step)
                assert whole is not None
                assert whole.said.kind is step.kind
                if step.kind is not EntryKind.CALL:
                    assert one_line(whole.said.text) == step.about
                if step.answered is not None:
                    assert whole.result is not None
                    assert one_line(whole.result.text) == step.result


@with_transcripts
def test_no_spoilt_store_makes_a_transcript_raise(build: Build) -> None:
    random = Random(7)
    with built(build) as store:
        store.finish()
        watch = store.watch()
        watch.look()
        shown = transcripts(watch)
        for _ in range(40):
            store.spoil(random)
            for transcript in shown.values():
                look = transcript.look()
                for step in look.steps[-3:] if look is not None else ():
                    transcript.whole(step)
                list(transcript.entries())


def test_a_place_outside_the_store_is_not_read(tmp_path: Path) -> None:
    secret = tmp_path / "secret.jsonl"
    secret.write_text("{}\n")
    for build in (claude_code, codex, copilot, gemini, qwen, roo):
        with built(build) as store:
            store.finish()
            watch = store.watch()
            watch.look()
            for source in ("claude-code", "codex", "copilot", "gemini", "qwen-code", "roo"):
                run = Run(
                    source=source,
                    session_id="secret",
                    parent_session=None,
                    state=RunState.WORKING,
                    place=str(secret),
                    started_at=0.0,
                    updated_at=0.0,
                )
                assert watch.source.transcript(run) is None


# Files of lines


def entries_in(fields: Fields) -> list[Entry]:
    """Records of the tests: `{"words": …}`, `{"call": id, "given": …}`, `{"result": id, "text": …}`."""
    if "call" in fields:
        return [Entry(1.0, EntryKind.CALL, "", str(fields["call"]), "Bash", {"command": str(fields.get("given", ""))})]
    if "result" in fields:
        text, failed = str(fields.get("text", "")), fields.get("failed") is True
        return [Entry(3.0, EntryKind.RESULT, text, str(fields["result"]), failed=failed)]
    return [Entry(2.0, EntryKind.WORDS, str(fields["words"]))] if "words" in fields else []


class File:
    """A file of such records."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.touch()

    def add(self, *records: dict[str, object], torn: bool = False) -> None:
        with self.path.open("a") as file:
            file.write("\n".join(json.dumps(record) for record in records) + ("" if torn else "\n"))

    def words(self, first: int, last: int) -> None:
        self.add(*({"words": f"word {number}"} for number in range(first, last)))

    def follow(self) -> LinesTranscript:
        return LinesTranscript(self.path, lambda: entries_in)


@pytest.fixture
def file(tmp_path: Path) -> File:
    return File(tmp_path / "a.jsonl")


def test_of_a_long_file_the_end_is_followed(file: File, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(following, "_WINDOW", 900)
    file.words(0, 40)
    file.add(
        {"call": "a", "given": "make"}, {"words": "long " * 100}, {"result": "a", "text": "made\nit", "failed": True}
    )
    transcript = file.follow()
    look = transcript.look()
    assert look is not None
    assert [step.about for step in look.steps[-3:-1]] == ["word 39", "make"]
    assert len(look.steps) < 20
    call = look.steps[-2]
    assert (call.outcome, call.result, call.ended_at) == (Outcome.FAILED, "made it", 3.0)
    whole = transcript.whole(call)
    assert whole is not None
    assert whole.result is not None
    assert (written(whole.said.given), whole.result.text) == ("make", "made\nit")
