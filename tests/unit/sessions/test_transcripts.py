"""Transcripts of all programs: their entries, however they are followed, and changes of their files meanwhile."""

import json

from agentwatch.delegation.events import Run, RunState
from agentwatch.sources.sessions.entries import (
    Entry,
    EntryKind,
    LinesTranscript,
    Outcome,
    RunTranscript,
    TranscriptEnd,
    format_arguments,
    one_line,
)
from agentwatch.sources.sessions.fields import Fields
from tests.unit.sessions.store import PROGRAMS
from tests.unit.sessions.test_conformance import built, every_store, transcripts


@every_store
def test_a_transcript_has_the_prompt_the_return_and_each_step(program):
    with built(program) as store:
        store.finish()
        watch = store.watch()
        watch.look()
        shown, told = transcripts(watch), 0
        for run in (ran.run for ran in watch.runs.values()):
            messages = [one for one in (run.prompt, run.said) if one is not None and run.session_id in shown]
            texts = [entry.text.strip() for entry in shown[run.session_id].entries()] if messages else []
            for message in messages:
                assert (watch.source.content(message.digest) or "").strip() in texts, run
                told += 1
        assert told >= 8
        for transcript in shown.values():
            look = transcript.read_end()
            for step in look.steps:
                whole = transcript.read_step(step)
                assert whole.said.kind is step.kind
                if step.kind is not EntryKind.CALL:
                    assert one_line(whole.said.text) == step.about
                if step.answered is not None:
                    assert one_line(whole.result.text) == step.result


@every_store
def test_following_and_coming_late_show_the_same(program):
    with built(program) as store:
        watch = store.watch()
        followed: dict[str, RunTranscript] = {}
        looks: dict[str, TranscriptEnd] = {}
        for _ in store.story:
            watch.look()
            followed = transcripts(watch) | followed
            looks |= {session: look for session, one in followed.items() if (look := one.read_end()) is not None}
        late = store.watch()
        late.look()
        assert len(followed) >= 6
        for session, transcript in transcripts(late).items():
            assert looks[session] == transcript.read_end(), session
            assert not looks[session].trouble


def test_a_place_outside_the_store_is_not_read(tmp_path):
    secret = tmp_path / "secret.jsonl"
    secret.write_text("{}\n")
    for program in PROGRAMS.keys() - {"opencode"}:
        with built(program) as store:
            store.finish()
            watch = store.watch()
            watch.look()
            run = Run(
                source=program,
                session_id="secret",
                parent_session=None,
                state=RunState.WORKING,
                place=str(secret),
                started_at=0.0,
                updated_at=0.0,
            )
            assert watch.source.transcript(run) is None


def entries_in(fields: Fields) -> list[Entry]:
    """Read records of the tests: `{"words": …}`, `{"call": id, "given": …}`, `{"result": id, "text": …}`."""
    if "call" in fields:
        return [Entry(1.0, EntryKind.CALL, "", str(fields["call"]), "Bash", {"command": str(fields.get("given", ""))})]
    if "result" in fields:
        text, failed = str(fields.get("text", "")), fields.get("failed") is True
        return [Entry(3.0, EntryKind.RESULT, text, str(fields["result"]), failed=failed)]
    return [Entry(2.0, EntryKind.WORDS, str(fields["words"]))] if "words" in fields else []


def test_only_the_end_of_a_long_file_is_followed(tmp_path):
    records: list[dict[str, object]] = [{"words": f"{number} " + "long " * 20_000} for number in range(60)]
    records += [{"call": "a", "given": "make"}, {"words": "long"}, {"result": "a", "text": "made\nit", "failed": True}]
    path = tmp_path / "a.jsonl"
    path.write_text("".join(f"{json.dumps(record)}\n" for record in records))
    transcript = LinesTranscript(path, lambda: entries_in)
    look = transcript.read_end()
    assert look.steps[-3].about.startswith("59 long")
    assert 30 < len(look.steps) < 50
    call = look.steps[-2]
    assert (call.about, call.outcome, call.result, call.ended_at) == ("make", Outcome.FAILED, "made it", 3.0)
    whole = transcript.read_step(call)
    assert (format_arguments(whole.said.given), whole.result.text) == ("make", "made\nit")


def test_a_text_that_is_repeated_at_once_is_shown_once(tmp_path):
    records = [
        {"call": "a", "given": "make"},
        {"call": "b", "given": "make"},
        *({"words": one} for one in ("made", "made", "it")),
    ]
    path = tmp_path / "a.jsonl"
    path.write_text("".join(f"{json.dumps(record)}\n" for record in records) + "broken\n")
    transcript = LinesTranscript(path, lambda: entries_in)
    look = transcript.read_end()
    assert [one.about for one in look.steps] == ["make", "make", "made", "it"]
    assert [one.text for one in transcript.entries()] == ["", "", "made", "it"]
    assert transcript.read_step(look.steps[0]._replace(place=(0, 1))) is None


def test_arguments_are_shown_one_below_the_other():
    assert format_arguments({"only": "a\nb"}) == "a\nb"
    assert format_arguments({"a": "x", "b": [1], "c": "y\nz"}) == "a: x\nb:\n[\n  1\n]\n\nc:\ny\nz\n"
