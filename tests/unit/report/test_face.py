"""`agentwatch report` as a command: formats, places, and nothing written but the report."""

import math
import time

import pytest

from agentwatch.cli import run
from agentwatch.contracts.reading import read_document
from agentwatch.demo.script import Player, demo_screenplay


@pytest.fixture
def workspace(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    place = tmp_path / "shop"
    place.mkdir()
    Player(demo_screenplay().steps, place).play(math.inf, time.time() - 120.0)
    return place


def test_a_report_in_the_workspace_is_taken_for_no_document(workspace, capsys):
    for format_ in ("md", "json", "html"):
        assert run(["report", str(workspace), "--format", format_]) == 0
        text = capsys.readouterr().out
        for name in (f"report.{format_}", f"shop.report.{format_}", f"handoffs/shop.{format_}"):
            reading = read_document(text, name)
            # Called as reports of agents are, it is asked about; nothing but its name says that it is one.
            assert reading is None or not reading.document.recognised, (format_, name)
