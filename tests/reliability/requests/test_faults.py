"""Every system call fails in turn, once and for good: a request is offered or it is not, and its answer is given at
most once."""

from agentwatch.decisions.record import Record
from agentwatch.delegation.decision import RequestStage
from agentwatch.disk import Disk
from agentwatch.requests.holding import Holder
from agentwatch.requests.store import RequestError, RequestStore
from tests.reliability.decisions.disks import Failing
from tests.reliability.decisions.test_faults import ERRORS
from tests.unit.requests.asked import Place, request


def cases(place: Place) -> list[Failing]:
    counting = Failing()
    assert took(place, counting) is not None
    assert counting.count > 50
    return [
        Failing(at, number, for_good=for_good)
        for at in range(1, counting.count + 1)
        for number in ERRORS
        for for_good in (False, True)
    ]


def took(place: Place, disk: Disk) -> Record | None:
    """What a holder gets that works on this disk. The operator's disk is sound."""
    asked = request(place.workspace)
    given = {"state": place.state, "configuration": place.configuration, "disk": disk}
    holder = Holder(place.workspace, name="test", **given)  # type: ignore[arg-type]
    try:
        with holder.store.offer(asked) as offer:
            place.answer(asked)
            record = holder.look(offer)
            if record is not None:
                assert record.decision_id == asked.request_id
                holder.delivered(record)
                offer.end(RequestStage.DELIVERED, by=record.operator)
            else:
                assert holder.trouble or not offer.is_whole()
    except RequestError:
        record = None
    # Whatever was left there is sound, and nobody holds it any more.
    box = RequestStore(place.workspace, state=place.state)
    left = box.find(asked.request_id)
    assert box.problems == []
    assert left is None or not left.is_open
    if record is not None:
        with box.offer(asked) as again:
            assert place.holder().look(again) is None
    return record


def test_whatever_fails_an_answer_is_given_to_its_request_once_or_not_at_all(tmp_path):
    counts = {True: 0, False: 0}
    for number, disk in enumerate(cases(Place(tmp_path / "sound"))):
        if number % 40 == 0:
            place = Place(tmp_path / f"{number}")
        counts[took(place, disk) is not None] += 1
    assert min(counts.values()) > 20
