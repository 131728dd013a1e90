"""Who rests so that others can work."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator

import pytest

from agentwatch import background


@pytest.fixture
def rests(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[float]]:
    """The rests that are taken, while another thread is there."""
    taken, over = list[float](), threading.Event()
    other = threading.Thread(target=over.wait)
    other.start()
    monkeypatch.setattr(background.time, "sleep", taken.append)
    yield taken
    over.set()
    other.join()


def test_a_command_does_not_rest_for_its_own_helpers(rests: list[float]) -> None:
    background.let_others_work()
    assert not rests


def test_a_thread_rests_for_the_screen(rests: list[float]) -> None:
    thread = threading.Thread(target=background.let_others_work)
    thread.start()
    thread.join()
    assert rests


def test_a_key_goes_first_until_it_is_answered() -> None:
    keys = background._KeysFirst()
    assert not keys.is_on
    keys.begin()
    assert keys.is_on
    keys.end()
    assert not keys.is_on


def test_what_waits_for_a_key_goes_on_though_nobody_says_that_it_is_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(background.time, "monotonic", lambda: now[0])
    keys, was_on = background._KeysFirst(), list[bool]()
    for _ in range(100):
        now[0] += 0.03
        keys.begin()
        was_on.append(keys.is_on)
    assert 0.1 < was_on.count(False) / len(was_on) < 0.5


async def test_what_passes_a_key_by_goes_on_when_it_is_answered() -> None:
    keys = background._KeysFirst()
    keys.begin()
    passing = asyncio.create_task(keys.pass_by())
    await asyncio.sleep(0.01)
    assert not passing.done()
    keys.end()
    await passing


def refused(_thread: threading.Thread) -> None:
    raise RuntimeError("can't start new thread")


@pytest.mark.parametrize("starts", [True, False], ids=["a thread", "no thread"])
def test_what_is_done_meanwhile_is_there_when_it_is_asked_for(monkeypatch: pytest.MonkeyPatch, starts: bool) -> None:
    if not starts:
        monkeypatch.setattr(threading.Thread, "start", refused)
    with background.meanwhile(threading.current_thread) as result:
        pass
    assert (result() is threading.main_thread()) is not starts


@pytest.mark.parametrize("starts", [True, False], ids=["a thread", "no thread"])
def test_what_fails_meanwhile_fails_where_it_is_asked_for(monkeypatch: pytest.MonkeyPatch, starts: bool) -> None:
    if not starts:
        monkeypatch.setattr(threading.Thread, "start", refused)
    with background.meanwhile(lambda: {}["asked"]) as result, pytest.raises(KeyError, match="asked"):
        result()


def test_what_is_done_meanwhile_has_ended_when_what_follows_fails() -> None:
    goes_on, ended = threading.Event(), list[bool]()

    def work() -> None:
        goes_on.wait(20.0)
        ended.append(True)

    def fails() -> None:
        goes_on.set()
        raise ValueError

    with pytest.raises(ValueError), background.meanwhile(work):  # noqa: PT011
        fails()
    assert ended
