"""A holder gets the operator's answer to what it holds, once, and nothing else."""

import threading
import time
from collections.abc import Callable

import pytest

from agentwatch.decisions.record import Params, Record
from agentwatch.delegation.decision import Action, Request, Stage
from agentwatch.requests.holding import Holder
from agentwatch.requests.store import Offer
from tests.unit.requests.asked import Place, request

FOR_EVER = 10.0


def held(holder: Holder, offer: Offer, seconds: float = FOR_EVER) -> Record | None:
    """What the holder gets in that time."""
    end = time.monotonic() + seconds
    return holder.hold(offer, lambda: time.monotonic() < end)


def after(action: Callable[[], object]) -> threading.Timer:
    timer = threading.Timer(0.1, action)
    timer.start()
    return timer


def test_the_answer_comes_to_who_holds_the_request(place):
    holder = place.holder()
    asked = request(place.workspace)
    with place.watched(), holder.store.offer(asked) as offer:
        timer = after(lambda: place.answer(asked, Action.DENY, note="Use build/."))
        record = held(holder, offer)
        timer.join()
        assert record is not None
        assert (record.action, record.note, record.decision_id) == (Action.DENY, "Use build/.", asked.request_id)
        holder.delivered(record)
        stages = [one.stage for one in place.desk().receipts([record])[record.decision_id]]
        assert stages == [Stage.RECORDED, Stage.DELIVERED]
        assert holder.trouble == ""
    assert list(place.workspace.iterdir()) == []


@pytest.mark.parametrize("end", ["nobody watches", "it goes on without", "until", "nobody watches any more"])
def test_holding_ends_with_nothing_where_nobody_can_answer_in_time(place, end):
    holder = place.holder()
    until = time.time() + 0.1 if end == "until" else None
    with holder.store.offer(request(place.workspace, until=until)) as offer:
        if end == "nobody watches":
            assert holder.hold(offer, lambda: True) is None
        elif end == "it goes on without":
            with place.watched():
                assert holder.hold(offer, lambda: False) is None
        elif end == "until":
            with place.watched():
                assert holder.hold(offer, lambda: True) is None
        else:
            watched = place.watched()
            watched.__enter__()
            timer = after(lambda: watched.__exit__(None, None, None))
            assert holder.hold(offer, lambda: True) is None
            timer.join()


def equal(place: Place, asked: Request, **changes: object) -> Request:
    values = {"nonce": asked.nonce, "session_id": asked.session_id} | changes
    return request(place.workspace, **values)  # type: ignore[arg-type]


def test_an_answer_from_before_is_none_where_an_id_comes_again(place):
    asked = request(place.workspace, asked_at=time.time())
    place.answer(asked)
    time.sleep(1.1)
    again = equal(place, asked, asked_at=time.time())
    assert again.request_id == asked.request_id
    holder = place.holder()
    with holder.store.offer(again) as offer:
        assert holder.look(offer) is None


def test_an_answer_after_the_time_of_the_request_is_none(place):
    asked = request(place.workspace, until=time.time() + 0.2)
    holder = place.holder()
    with holder.store.offer(asked) as offer:
        place.answer(asked)
        time.sleep(0.25)
        assert holder.look(offer) is None


def test_keys_in_the_workspace_sign_no_answer(place):
    place.configuration = place.workspace / "config"
    holder, asked = place.holder(), request(place.workspace)
    with holder.store.offer(asked) as offer:
        place.answer(asked)
        assert holder.look(offer) is None
        assert "lies in the workspace" in holder.trouble


def test_what_the_request_does_not_offer_is_none_even_if_it_is_signed(place):
    holder = place.holder()
    generous = request(place.workspace, rules=("Bash(*)",), actions=(Action.ALLOW, Action.DENY))
    for held_one, params in (
        (equal(place, generous), Params(rule="Bash(*)")),
        (equal(place, generous, actions=(Action.DENY,), command="ls"), None),
    ):
        with holder.store.offer(held_one) as offer:
            signed = equal(place, held_one, rules=("Bash(*)",), command=held_one.shown)
            place.answer(signed, Action.ALLOW, params)
            assert holder.look(offer) is None
