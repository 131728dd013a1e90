"""Who rests so that others can work."""

from __future__ import annotations

import threading

import pytest

from agentwatch import background
from agentwatch.background import Pace


@pytest.mark.parametrize("in_thread", [False, True], ids=["a command", "a thread"])
def test_a_thread_rests_for_the_screen_and_a_command_for_nobody(
    monkeypatch: pytest.MonkeyPatch, in_thread: bool
) -> None:
    rests, over = list[float](), threading.Event()
    monkeypatch.setattr(background.time, "sleep", rests.append)
    other = threading.Thread(target=over.wait)
    other.start()
    thread = threading.Thread(target=background.let_others_work)
    thread.run() if not in_thread else thread.start()
    if in_thread:
        thread.join()
    over.set()
    other.join()
    assert bool(rests) is in_thread


def test_what_goes_on_takes_its_share_and_debt_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(background.time, "monotonic", lambda: now[0])
    pace, taken = Pace(0.25, 1.0, 10.0), 1.0
    pace.spend(1.0)
    assert pace.rest == 0.0, "the credit"
    while now[0] < 1_100.0:
        pace.spend(0.1)
        taken += 0.1
        now[0] += 0.1 + pace.rest
    assert taken == pytest.approx(250.0, rel=0.02)
    pace.spend(1_000.0)
    assert pace.rest == 4.0
    now[0] += 4.0
    assert pace.rest == 0.0
