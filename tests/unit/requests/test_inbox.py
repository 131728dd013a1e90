"""A monitor knows what programs ask, as long as somebody holds it, and answers what was shown."""

from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace

from agentwatch.delegation.decision import RequestStage
from agentwatch.delegation.events import Event, Requested
from agentwatch.requests.inbox import Inbox
from tests.unit.requests.asked import request


def told(events: Sequence[Event]) -> list[tuple[str, RequestStage | None]]:
    return [(one.path, one.request and one.request.stage) for one in events if isinstance(one, Requested)]


def test_each_change_is_told_once(place):
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


def test_an_offer_ends_the_rest_of_whoever_waits_for_it(place):
    inbox, asked = Inbox(place.store), request(place.workspace)
    with closing(inbox):
        assert inbox.poll() == []
        assert inbox.waiter is not None
        with place.store.offer(asked):
            assert inbox.waiter.wait(60).paths == {f"{asked.request_id}.json"}
            assert told(inbox.poll()) == [(asked.request_id, RequestStage.OFFERED)]
            assert not inbox.waiter.wait(0.2).paths, "to look at it is no news"


def test_what_was_open_and_is_held_no_more_ended_when_that_was_seen(place, monkeypatch):
    now = [100.0]
    inbox, asked = Inbox(place.store, clock=lambda: now[0]), request(place.workspace)
    offer = place.store.offer(asked)
    inbox.look()
    with monkeypatch.context() as change:
        # As if it was killed: it writes no end.
        change.setattr(place.store, "workspace_id", None)
        offer.end(RequestStage.GONE)
    now[0] = 200.0
    (ended,) = inbox.look()
    assert ended.request == replace(asked, stage=RequestStage.GONE, ended_at=200.0)
    now[0] = 300.0
    assert inbox.look() == []


def test_it_says_why_a_request_cannot_be_answered_any_more(place):
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
