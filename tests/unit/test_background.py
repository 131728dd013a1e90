"""Who rests so that others can work."""

from __future__ import annotations

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
