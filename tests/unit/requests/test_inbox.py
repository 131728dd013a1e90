"""A monitor knows what programs ask, as long as somebody holds it, and answers what was shown."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from queue import SimpleQueue

import pytest

from agentwatch.background import Worker
from agentwatch.config import Settings
from agentwatch.decisions.errors import RequestGoneError
from agentwatch.delegation.decision import Action
from agentwatch.delegation.events import Event, Requested
from agentwatch.delegation.request import RequestStage
from agentwatch.monitor import Monitor
from agentwatch.requests.source import Inbox
from agentwatch.sources.files.source import FilesSource
from tests.unit.requests.asked import Place, request


def told(events: Sequence[Event]) -> list[tuple[str, RequestStage | None]]:
    return [(one.path, one.request and one.request.stage) for one in events if isinstance(one, Requested)]


def test_each_change_is_told_once(place: Place) -> None:
    inbox, asked = Inbox(place.store), request(place.workspace)
    assert inbox.look() == []
    with place.store.offer(asked) as offer:
        assert told(inbox.look()) == [(asked.request_id, RequestStage.OFFERED)]
        assert inbox.look() == []
        offer.end(RequestStage.DELIVERED)
    assert told(inbox.look()) == [(asked.request_id, RequestStage.DELIVERED)]
    assert inbox.look() == []
    (place.store.directory / f"{asked.request_id}.json").unlink()
    assert inbox.look() == []


def test_what_was_open_and_is_held_no_more_ended_when_that_was_seen(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [100.0]
    inbox, asked = Inbox(place.store, clock=lambda: now[0]), request(place.workspace)
    offer = place.store.offer(asked)
    inbox.look()
    with monkeypatch.context() as change:
        # As if it was killed: it writes no end.
        change.setattr(place.store, "end", lambda *_: None)
        offer.end(RequestStage.GONE)
    now[0] = 200.0
    (ended,) = inbox.look()
    assert ended.request == replace(asked, stage=RequestStage.GONE, ended_at=200.0)
    now[0] = 300.0
    assert inbox.look() == []


def test_a_worker_tells_what_is_offered_and_that_it_ended(place: Place) -> None:
    inbox, asked = Inbox(place.store), request(place.workspace)
    seen: SimpleQueue[Sequence[Event]] = SimpleQueue()
    worker = Worker(inbox)
    worker.start(seen.put)
    try:
        with place.store.offer(asked):
            assert told(seen.get(timeout=10)) == [(asked.request_id, RequestStage.OFFERED)]
        assert told(seen.get(timeout=10)) == [(asked.request_id, RequestStage.GONE)]
    finally:
        worker.stop()
    assert not any(thread.name == "agentwatch-parts" for thread in threading.enumerate())


def test_it_says_why_a_request_cannot_be_answered_any_more(place: Place) -> None:
    inbox, asked = Inbox(place.store), request(place.workspace)
    assert "nobody waits" in (inbox.gone(asked) or "")
    with place.store.offer(asked):
        assert inbox.gone(asked) is None
        assert inbox.gone(replace(asked, stage=RequestStage.DECIDED, by="ada", allowed=True)) is None
        assert "look at it again" in (inbox.gone(replace(asked, shown="ls")) or "")
    assert "nobody waits" in (inbox.gone(asked) or "")
    with place.store.offer(asked) as offer:
        offer.end(RequestStage.ELSEWHERE)
    assert "answered elsewhere" in (inbox.gone(asked) or "")


def monitor_of(place: Place) -> Monitor:
    source = FilesSource(place.workspace)
    return Monitor(
        place.workspace, Settings(), source, lambda: 0.0, open_desk=place.desk, open_inbox=partial(Inbox, place.store)
    )


async def test_a_monitor_shows_a_request_and_answers_it(place: Place) -> None:
    monitor, asked, holder = monitor_of(place), request(place.workspace), place.holder()
    with holder.offer(asked) as offer:
        monitor.scan()
        known = monitor.tree.request(asked.request_id)
        assert known is not None
        made = await monitor.answer(known.request, Action.DENY, None, "No.")
        assert (made.record.task_id, made.record.attempt) == (known.task_id, 1)
        record = holder.look(offer)
        assert record is not None
        assert record.note == "No."
        offer.end(RequestStage.DELIVERED)
        with pytest.raises(RequestGoneError, match="nobody waits"):
            await monitor.answer(request(place.workspace, nonce=asked.nonce, command="other"), Action.ALLOW, None, "")
