"""Requests are seen as they were offered while they are held; the holder gets the operator's answer once."""

import json
import os
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentwatch.decisions.record import Params
from agentwatch.delegation.decision import Action, CallArgument, Option, Query, Request, RequestStage, Stage
from agentwatch.delegation.events import Event, Requested
from agentwatch.requests.inbox import Inbox
from agentwatch.requests.store import MOST_ENDED, RequestError, RequestStore, parse, to_bytes
from agentwatch.state import workspace_id
from tests.unit.decisions.made import NOON, QUICK, at
from tests.unit.requests.asked import Place, question, request

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)


def file_of(place: Place) -> Path:
    (file,) = place.store.directory.glob("*.json")
    return file


def test_a_request_is_read_as_it_was_offered_until_it_ends(place):
    asked = question(place.workspace, until=5.5, rules=("Bash(ls)",), call_id="toolu_1", ends_others=2, ends_turn=True)
    with place.store.offer(asked) as offer:
        assert place.store.read() == [asked]
        assert place.store.find(asked.request_id) == asked
        assert offer.is_unreplaced()
        assert file_of(place).stat().st_mode & 0o777 == 0o600
        assert place.store.directory.stat().st_mode & 0o777 == 0o700
        offer.end(RequestStage.DELIVERED, by="ada")
    (ended,) = place.store.read()
    assert ended.ended_at is not None
    assert ended == replace(asked, stage=RequestStage.DELIVERED, by="ada", ended_at=ended.ended_at)
    assert place.store.problems == []


def test_the_first_end_of_two_holders_counts(place):
    asked = request(place.workspace)
    with place.store.offer(asked) as one:
        with place.store.offer(asked) as other:
            assert (one.is_unreplaced(), other.is_unreplaced()) == (True, True)
        assert place.store.read() == [asked], "open until both have let go"
        with place.store.offer(asked) as other:
            one.end(RequestStage.DELIVERED, by="ada")
            other.end(RequestStage.ELSEWHERE)
    assert [read.stage for read in place.store.read()] == [RequestStage.DELIVERED]


@given(TEXTS, TEXTS, TEXTS, st.lists(st.tuples(TEXTS, TEXTS, st.booleans()), max_size=3), st.none() | st.floats(0, 2e9))
def test_any_text_is_written_and_read_again(command, said, nonce, asked, until):
    workspace = Path("/shop")
    queries = tuple(Query(text, label, (Option(label, text),), several) for text, label, several in asked)
    rest = {"queries": queries, "beside": (CallArgument(said, command),), "until": until, "rules": (said,)}
    made = request(workspace, command, said=said, nonce=nonce or "n", **rest)
    assert parse(to_bytes(made, workspace_id(workspace)), workspace_id(workspace)) == made


def rewritten(**changes: Any) -> Callable[[Path], object]:
    """Return a function that rewrites the file with other values."""

    def write(file: Path):
        document = json.loads(file.read_bytes()) | changes
        file.write_text(json.dumps(document, ensure_ascii=False, separators=(",", ":")) + "\n", "utf-8")

    return write


SPOILED: dict[str, Callable[[Path], object]] = {
    "another id": rewritten(request_id="0" * 32),
    "another input": rewritten(input='{"command":"rm -rf ."}'),
    "input in another spelling": rewritten(input='{"command": "touch x"}'),
    "nested input": rewritten(input="[" * 100_000),
    "a later version": rewritten(version=2),
    "time true": rewritten(asked_at=True),
    "until for ever": rewritten(until=1e300),
    "a query that is none": rewritten(queries=[{"question": "q", "header": "", "options": [1]}]),
    "more": rewritten(more=1),
    "cut off": lambda file: os.truncate(file, 20),
    "empty": lambda file: os.truncate(file, 0),
    "huge": lambda file: os.truncate(file, 10**10),
    "a copy": lambda file: file.rename(file.with_name("0" * 32 + ".json")),
    "a stray": lambda file: file.rename(file.with_name("notes.txt")),
    "a link": lambda file: file.symlink_to(file.rename(file.parent.parent / "x")),
    "a pipe": lambda file: file.unlink() or os.mkfifo(file),
    "a directory": lambda file: file.unlink() or file.mkdir(),
}


@pytest.mark.parametrize("name", SPOILED)
def test_invalid_files_in_the_box_are_reported_and_not_believed(place, name):
    with place.store.offer(request(place.workspace)) as offer:
        SPOILED[name](file_of(place))
        assert place.store.read() == []
        (problem,) = place.store.problems
        assert "remove it" in problem
        assert not offer.is_unreplaced()


def test_nothing_is_offered_or_believed_inside_of_the_workspace(tmp_path):
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    (tmp_path / "link").symlink_to(workspace)
    for state in (workspace, workspace / "deep" / "below", tmp_path / "link" / "below"):
        box = RequestStore(workspace, state=state, disk=QUICK)
        with pytest.raises(RequestError, match="lies in the workspace"):
            box.offer(request(workspace))
        assert box.read() == []
        assert "lies in the workspace" in box.problems[0]
    assert list(workspace.iterdir()) == []


def test_a_box_that_is_open_to_others_is_not_used(place):
    with place.store.offer(request(place.workspace)):
        place.store.directory.chmod(0o755)
        assert place.store.read() == []
        assert "chmod 700" in place.store.problems[0]
        with pytest.raises(RequestError, match="chmod 700"):
            place.store.offer(request(place.workspace))


def test_a_request_too_large_or_without_text_is_not_offered(place):
    with pytest.raises(RequestError, match="bytes"):
        place.store.offer(request(place.workspace, "x" * 600_000))
    with pytest.raises(RequestError, match="cannot be written"):
        place.store.offer(request(place.workspace, said="\ud800"))
    with pytest.raises(RequestError, match="none that could be answered"):
        to_bytes(request(place.workspace), "another")


def test_a_limited_number_of_ended_requests_is_kept(place):
    with place.store.offer(asked := request(place.workspace)):
        for number in range(2 * MOST_ENDED):
            with place.store.offer(request(place.workspace, asked_at=1.0 + number)):
                pass
        ended = [one.asked_at for one in place.store.read() if one.stage is RequestStage.GONE]
        assert MOST_ENDED <= len(ended) < 2 * MOST_ENDED
        assert (ended[-1], asked in place.store.read()) == (2 * MOST_ENDED, True)


def after(action: Callable[[], object]) -> threading.Timer:
    timer = threading.Timer(0.1, action)
    timer.start()
    return timer


def test_the_holder_of_a_request_gets_the_answer(place):
    holder = place.holder()
    asked = request(place.workspace, until=time.time() + 10)
    with place.watched(), holder.store.offer(asked) as offer:
        timer = after(lambda: place.answer(asked, Action.DENY, note="Use build/."))
        record = holder.wait_for_answer(offer, lambda: True)
        timer.join()
        assert record is not None
        assert (record.action, record.note, record.decision_id) == (Action.DENY, "Use build/.", asked.request_id)
        holder.record_delivered(record)
        stages = [one.stage for one in place.desk().receipts([record])[record.decision_id]]
        assert stages == [Stage.RECORDED, Stage.DELIVERED]
        assert holder.trouble == ""
    assert list(place.workspace.iterdir()) == []


def test_holding_ends_if_nobody_can_answer_in_time(place):
    holder = place.holder()
    with (
        holder.store.offer(request(place.workspace)) as offer,
        holder.store.offer(request(place.workspace, until=time.time() + 0.1)) as short,
        ExitStack() as watched,
    ):
        assert holder.wait_for_answer(offer, lambda: True) is None, "nobody watches"
        watched.enter_context(place.watched())
        assert holder.wait_for_answer(offer, lambda: False) is None, "it goes on without"
        assert holder.wait_for_answer(short, lambda: True) is None, "its time is over"
        timer = after(watched.close)
        assert holder.wait_for_answer(offer, lambda: True) is None, "nobody watches any more"
        timer.join()


def equal(place: Place, asked: Request, **changes: object) -> Request:
    values = {"nonce": asked.nonce, "session_id": asked.session_id} | changes
    return request(place.workspace, **values)  # type: ignore[arg-type]


def test_an_old_answer_does_not_count_if_an_id_comes_again(place):
    asked, holder = request(place.workspace, asked_at=NOON.timestamp()), place.holder()
    with at(NOON):
        place.answer(asked)
    again = equal(place, asked, asked_at=NOON.timestamp() + 2)
    assert again.request_id == asked.request_id
    with at(NOON + timedelta(seconds=2)), holder.store.offer(again) as offer:
        assert holder.take_answer(offer) is None


def test_an_answer_after_the_time_of_the_request_does_not_count(place):
    asked, holder = request(place.workspace, until=NOON.timestamp() + 1), place.holder()
    with holder.store.offer(asked) as offer:
        with at(NOON):
            place.answer(asked)
        with at(NOON + timedelta(seconds=2)):
            assert holder.take_answer(offer) is None


def test_keys_in_the_workspace_sign_no_answer(place):
    place.configuration = place.workspace / "config"
    holder, asked = place.holder(), request(place.workspace)
    with holder.store.offer(asked) as offer:
        place.answer(asked)
        assert holder.take_answer(offer) is None
        assert "lies in the workspace" in holder.trouble


def test_a_signed_action_that_was_not_offered_does_not_count(place):
    holder = place.holder()
    generous = request(place.workspace, rules=("Bash(*)",))
    for asked, params in (
        (equal(place, generous), Params(rule="Bash(*)")),
        (equal(place, generous, actions=(Action.DENY,), command="ls"), None),
    ):
        with holder.store.offer(asked) as offer:
            place.answer(replace(asked, rules=generous.rules, actions=generous.actions), Action.ALLOW, params)
            assert holder.take_answer(offer) is None


def told(events: Sequence[Event]) -> list[tuple[str, RequestStage | None]]:
    return [(one.path, one.request and one.request.stage) for one in events if isinstance(one, Requested)]


def test_each_change_of_a_request_is_emitted_once(place):
    inbox, asked = Inbox(place.store), request(place.workspace)
    assert inbox.read_changes() == []
    with place.store.offer(asked) as offer:
        assert told(inbox.read_changes()) == [(asked.request_id, RequestStage.OFFERED)]
        assert inbox.read_changes() == []
        offer.end(RequestStage.DELIVERED)
    assert told(inbox.read_changes()) == [(asked.request_id, RequestStage.DELIVERED)]
    assert inbox.read_changes() == []
    (place.store.directory / f"{asked.request_id}.json").unlink()
    assert inbox.read_changes() == []


def test_an_offer_wakes_whoever_waits_for_requests(place):
    inbox, asked = Inbox(place.store), request(place.workspace)
    with closing(inbox):
        assert inbox.poll() == []
        assert inbox.waiter is not None
        with place.store.offer(asked):
            assert inbox.waiter.wait(60).paths == {f"{asked.request_id}.json"}
            assert told(inbox.poll()) == [(asked.request_id, RequestStage.OFFERED)]
            assert not inbox.waiter.wait(0.2).paths, "to look at it is no news"


def test_a_request_without_a_holder_ended_when_that_was_seen(place):
    now = [100.0]
    inbox, asked = Inbox(place.store, clock=lambda: now[0]), request(place.workspace)
    offer = place.store.offer(asked)
    inbox.read_changes()
    # The holder ends as if it had been killed: it cannot write an end.
    place.store.directory.chmod(0o755)
    offer.end(RequestStage.GONE)
    place.store.directory.chmod(0o700)
    now[0] = 200.0
    (ended,) = inbox.read_changes()
    assert ended.request == replace(asked, stage=RequestStage.GONE, ended_at=200.0)
    now[0] = 300.0
    assert inbox.read_changes() == []


def test_a_request_that_is_over_says_why(place):
    inbox, asked = Inbox(place.store), request(place.workspace)
    assert "nobody waits" in (inbox.why_gone(asked) or "")
    with place.store.offer(asked):
        assert inbox.why_gone(asked) is None
        assert inbox.why_gone(replace(asked, stage=RequestStage.DECIDED, by="ada", allowed=True)) is None
        assert "look at it again" in (inbox.why_gone(replace(asked, shown="ls")) or "")
    assert "nobody waits" in (inbox.why_gone(asked) or "")
    with place.store.offer(asked) as offer:
        offer.end(RequestStage.ELSEWHERE)
    assert "answered elsewhere" in (inbox.why_gone(asked) or "")
