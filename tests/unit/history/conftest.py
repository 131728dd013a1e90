"""Every history that a test has opened is closed at its end."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from agentwatch.history.store import History


@pytest.fixture(autouse=True)
def every_history_is_closed(
    monkeypatch: pytest.MonkeyPatch, every_database_that_is_opened_is_closed: None
) -> Iterator[None]:
    opened: list[History] = []
    really = History.__init__

    def opening(history: History, *arguments: Any, **more: Any) -> None:
        opened.append(history)
        really(history, *arguments, **more)

    monkeypatch.setattr(History, "__init__", opening)
    yield
    for history in opened:
        history.close()
