"""The record of a decision: one spelling, and nothing else is read."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentwatch.decisions.errors import RecordError
from agentwatch.decisions.record import (
    LARGEST,
    LARGEST_SIGNED,
    Answer,
    Mitigation,
    Params,
    Subject,
    parse,
    time_of,
    written,
)
from agentwatch.delegation.decision import Action
from tests.unit.decisions.made import HANDOFF, RETURN, record

KEYS = [
    *("version", "workspace_id", "seq", "prev_sha256", "decision_id", "task_id", "attempt", "handoff_sha256"),
    *("return_sha256", "action", "params", "note", "operator", "created_at", "expires_at"),
]
TEXTS = st.text(st.characters(exclude_categories=["Cs"]))


def test_the_id_is_that_of_the_design() -> None:
    spelled = f'["w","größe",2,null,"{RETURN}"]'
    assert Subject("w", "größe", 2, None, RETURN).decision_id == hashlib.sha256(spelled.encode()).hexdigest()[:32]


def test_a_decision_after_the_fitter_is_another_one_and_says_after_which() -> None:
    before = record()
    subject = Subject(before.workspace_id, "a.b", 1, HANDOFF, RETURN, before.decision_id)
    again = record(decision_id=subject.decision_id, after=before.decision_id)
    assert again.decision_id != before.decision_id
    assert list(json.loads(again.to_bytes())) == [*KEYS, "after"]
    assert parse(again.to_bytes()) == again
    assert again.subject == subject
    for after in (None, "", "d" * 31, before.decision_id.upper()):
        with pytest.raises(RecordError):
            parse(json.dumps(again.document() | {"after": after}, separators=(",", ":")).encode())


@given(TEXTS, TEXTS, st.lists(st.tuples(st.none() | TEXTS, TEXTS), min_size=1))
def test_what_was_written_is_read_again(note: str, task_id: str, answers: list[tuple[str | None, str]]) -> None:
    made = record(
        task_id=task_id or "a",
        note=note,
        action=Action.RESPOND,
        params=Params(answers=tuple(Answer(*answer) for answer in answers)),
        expires_at="2030-01-08T12:00:00Z",
    )
    assert parse(made.to_bytes()) == made
    assert made.to_bytes() == record(**values(made)).to_bytes()


def values(made: Any) -> dict[str, Any]:
    return {name: getattr(made, name) for name in KEYS}


@pytest.mark.parametrize(
    ("action", "params", "words"),
    [
        (Action.ACCEPT, Params(mitigation=Mitigation.REDUCED_SCOPE), "mitigation means nothing for"),
        (Action.ACCEPT, Params(handoff=""), "handoff means nothing for"),
        (Action.RETRY, Params(mode="x"), "mode means nothing for"),
        (Action.RETRY, Params(report="x"), "report means nothing for"),
        (Action.RETRY, Params(answers=(Answer(None, "x"),)), "answers means nothing for"),
        (Action.ESCALATE, Params(), "escalate needs mode"),
        (Action.ESCALATE, Params(mode=""), "must not be empty"),
        (Action.RESPOND, Params(), "respond needs answers"),
        (Action.RETRY, Params(handoff="\ud800"), "half a character"),
        (Action.RESPOND, Params(answers=(Answer("\ud800", "x"),)), "half a character"),
        (Action.RESPOND, Params(answers=(Answer(None, "\ud800"),)), "half a character"),
    ],
)
def test_a_parameter_that_does_not_fit_the_action_is_refused(action: Action, params: Params, words: str) -> None:
    with pytest.raises(RecordError, match=words):
        record(action=action, params=params).to_bytes()


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("version", 0),
        ("version", 2),
        ("version", True),
        ("version", 1.0),
        ("version", "1"),
        ("workspace_id", ""),
        ("workspace_id", 1),
        ("seq", 0),
        ("seq", True),
        ("seq", 2.0),
        ("seq", 2**53),
        ("prev_sha256", None),
        ("prev_sha256", "x"),
        ("prev_sha256", "A" * 64),
        ("decision_id", "0" * 32),
        ("decision_id", "0" * 31),
        ("decision_id", None),
        ("task_id", ""),
        ("task_id", None),
        ("attempt", 0),
        ("attempt", "1"),
        ("handoff_sha256", "0" * 63),
        ("return_sha256", 5),
        ("return_sha256", "٠" * 64),
        ("action", "approve"),
        ("action", None),
        ("action", ["retry"]),
        ("note", None),
        ("operator", ""),
        ("operator", 1),
        ("created_at", None),
        ("created_at", 5),
        ("created_at", "2030-01-01"),
        ("created_at", "2030-01-01T12:00:00+00:00"),
        ("created_at", "2030-02-30T12:00:00Z"),
        ("created_at", "2030-1-01T12:00:00Z"),
        ("expires_at", "soon"),
        ("params", None),
        ("params", []),
        ("params", {}),
        ("params", {"mitigation": None, "handoff": None, "mode": None, "answers": None, "report": None}),
        ("params", {"mitigation": "hope", "handoff": None, "mode": None, "answers": [], "report": None}),
        ("params", {"mitigation": None, "handoff": 1, "mode": None, "answers": [], "report": None}),
        ("params", {"mitigation": None, "handoff": None, "mode": None, "answers": [{}], "report": None}),
        ("params", {"mitigation": None, "handoff": None, "mode": None, "answers": ["x"], "report": None}),
    ],
)
def test_a_field_that_is_not_what_it_must_be_is_refused(field: str, value: object) -> None:
    document = record().document()
    document[field] = value
    with pytest.raises(RecordError):
        parse(compact(document))


def compact(document: object) -> bytes:
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()


def respelled(change: Callable[[bytes], bytes]) -> bytes:
    before = record().to_bytes()
    after = change(before)
    assert after != before
    return after


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"null",
        b"[]",
        b"\xff",
        b"[" * 100_000,
        b'{"version":1}',
        b'{"version":' + b"9" * 5_000 + b"}",
        respelled(lambda data: data + b" "),
        respelled(lambda data: data.replace(b'"seq":2', b'"seq": 2')),
        respelled(lambda data: data.replace(b'"seq":2', b'"seq":2,"seq":2')),
        respelled(lambda data: data.replace(b'"seq":2', b'"seq":NaN')),
        respelled(lambda data: data.replace(b'"seq":2', b'"seq":2.0')),
        respelled(lambda data: data.replace(b'"a.b"', b'"\\u0061.b"')),
        respelled(lambda data: data.replace(b'"note":"once more"', b'"note":"\\ud800"')),
        respelled(lambda data: data.replace(b'"expires_at":null', b'"expires_at":null,"more":1')),
        respelled(lambda data: data.replace(b',"expires_at":null', b"")),
        respelled(lambda data: b'{"expires_at":null,' + data[1:].replace(b',"expires_at":null', b"")),
    ],
)
def test_any_other_spelling_is_refused(data: bytes) -> None:
    with pytest.raises(RecordError):
        parse(data)


def test_a_later_version_is_told_from_a_broken_record() -> None:
    with pytest.raises(RecordError, match=r"version .* update agentwatch"):
        parse(b'{"version":7,"something":"new"}')


def test_a_record_that_is_too_large_is_neither_written_nor_read() -> None:
    fits = record(params=Params(handoff="x" * (LARGEST - 1_000)))
    assert parse(fits.to_bytes()) == fits
    with pytest.raises(RecordError, match="shorten the handoff"):
        record(params=Params(handoff="x" * LARGEST)).to_bytes()
    with pytest.raises(RecordError, match="larger"):
        parse(b" " * (LARGEST_SIGNED + 1))


def test_half_a_character_in_a_task_id_is_refused_in_words() -> None:
    with pytest.raises(RecordError, match="half a character"):
        _ = Subject("w", "\ud800", 1, None, None).decision_id
    with pytest.raises(RecordError, match="half a character"):
        record(note="\udc80").to_bytes()


def test_a_record_holds_until_it_expires() -> None:
    made = record(expires_at="2030-01-08T12:00:00Z")
    end = time_of("2030-01-08T12:00:00Z")
    assert not made.is_expired(end - timedelta(seconds=1))
    assert made.is_expired(end)
    assert not record().is_expired(datetime.max.replace(tzinfo=UTC))


def test_times_are_written_in_utc() -> None:
    tokyo = timezone(timedelta(hours=9))
    assert written(datetime(2030, 1, 1, 21, 0, 0, 999_999, tzinfo=tokyo)) == "2030-01-01T12:00:00Z"
    with pytest.raises(ValueError, match="form"):
        time_of("2030-01-1T12:00:00Z")
