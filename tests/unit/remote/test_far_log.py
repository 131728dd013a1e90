"""The past of a workspace on another machine, as a log: what was so before somebody asked is no news."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator
from typing import Any

import pytest
from tests.unit.delegation.events import Recorder, handoff, returned

from agentwatch.cli import log as module
from agentwatch.cli.log import print_log_of_host
from agentwatch.config import Settings
from agentwatch.delegation.events import Event, Lost, Ruled, Rules
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


def test_a_claim_that_was_false_before_is_no_news_and_one_that_is_found_false_is(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    see = Recorder()
    asked, first = see.seen("a.json", handoff("a")), see.seen("a.return.md", returned("completed", task_id="a"))
    known = [Ruled(0, 2_000_000_000.0, Rules()), asked, first, see.checked(first.path, first.digest, "contradicted")]
    second = see.seen("b.return.md", returned("completed", task_id="b"))
    found = see.checked(second.path, second.digest, "contradicted")
    again = Batch((*known, second, found), LIVE, anew=True)
    assert Told(known, Batch((second,), LIVE), Batch((found,), LIVE), again).log(monkeypatch, follow=True) == 0
    said = [line.split(None, 2)[1:] for line in capsys.readouterr().out.splitlines()]
    assert [words for name, words in said if name == "a" and "0.py" in words] == []
    assert len([words for name, words in said if name == "b" and "0.py" in words]) == 1


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
