"""The past of a workspace on another machine, as a log: what was so before somebody asked is no news."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator
from typing import Any

import pytest
from tests.unit.delegation.events import Recorder, handoff

from agentwatch.cli import log as module
from agentwatch.cli.log import print_log_of_host
from agentwatch.config import Settings
from agentwatch.delegation.events import Event, Lost
from agentwatch.sources import Batch, Health

LIVE = Health("live", "")


class Told:
    """A source of which this is known, and then this is told."""

    def __init__(self, known: list[Event], *news: Batch) -> None:
        self.known, self.news = known, news

    def scan(self) -> Batch:
        return Batch(tuple(self.known), LIVE)

    def log(self, monkeypatch: pytest.MonkeyPatch, *, follow: bool) -> int:
        def batches(*_: object) -> Iterator[Batch]:
            yield from self.news

        monkeypatch.setattr(module, "_batches", batches)
        source: Any = self
        return print_log_of_host(source, Settings(), Namespace(json=False, follow=follow, activity=False, since=None))


def test_without_follow_what_cannot_be_read_is_said_and_is_the_exit_code(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    see = Recorder()
    told = Told([see.seen("a.json", handoff("a")), Lost(3, 1_900_000_000.0)])
    told.scan = lambda: Batch(  # type: ignore[method-assign]
        tuple(told.known), LIVE._replace(problems=(module.Problem("files", "", "build1 cannot be reached: off"),))
    )
    assert told.log(monkeypatch, follow=False) == 1
    said = capsys.readouterr()
    assert " a " in said.out
    assert "build1 cannot be reached: off" in said.err
