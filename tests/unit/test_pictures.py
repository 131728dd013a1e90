"""The pictures that README and manual show are there, and the recorded decision is a cast that players understand."""

from __future__ import annotations

import itertools
import json
import re
from pathlib import Path
from xml.etree import ElementTree

import pyte
import pytest
from screenshots import record

from tests.unit.test_manual import MANUAL

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted(MANUAL.glob("*.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_each_picture_of_a_page_is_there_and_can_be_drawn(page: Path) -> None:
    for target in re.findall(r"!\[[^]]+\]\(([^)]+)\)", page.read_text("utf-8")):
        picture = (page.parent / target).read_text("utf-8")
        assert ElementTree.fromstring(picture).tag.endswith("svg")
        assert "@font-face" not in picture
        assert "<script" not in picture


def test_the_decision_is_a_cast_from_the_failure_to_the_second_attempt() -> None:
    lines = (ROOT / "screenshots" / "decision.cast").read_text("utf-8").splitlines()
    header, *events = map(json.loads, lines)
    assert (header["version"], header["width"], header["height"]) == (2, record.COLUMNS, record.LINES)
    times = [at for at, _, _ in events]
    assert times == sorted(times)
    assert all(after - before <= record.LONGEST_PAUSE + 0.01 for before, after in itertools.pairwise(times))
    assert 10 < times[-1] < 60
    assert {kind for _, kind, _ in events} == {"o"}
    screen = pyte.Screen(record.COLUMNS, record.LINES)
    stream = pyte.Stream(screen)
    wanted = ["NEEDS YOU", "◆ ↻ Retry", "raise the time-out first", "· acted"]
    for _, _, text in events:
        assert "/home/" not in text
        stream.feed(text)
        if wanted and any(wanted[0] in line for line in screen.display):
            wanted.pop(0)
    assert not wanted


def test_the_cast_and_the_picture_are_made_of_what_a_terminal_wrote(tmp_path: Path) -> None:
    recorder = record.Recorder(tmp_path)
    recorder.events = [(10.0, "one"), (10.5, "two"), (60.0, "three")]
    header, *events = map(json.loads, record.cast(recorder))
    assert header["version"] == 2
    assert events == [[0.0, "o", "one"], [0.5, "o", "two"], [0.5 + record.LONGEST_PAUSE, "o", "three"]]
    recorder._stream.feed("\x1b[1;31m✗ <failed>\x1b[0m & done".encode())
    recorder.take(2.0)
    recorder.take(3.0)
    recorder._state.cleanup()
    picture = "\n".join(record.picture(recorder.frames))
    root = ElementTree.fromstring(picture)
    texts = [(text.text, text.get("fill")) for text in root.iter("{http://www.w3.org/2000/svg}text")]
    assert texts[0] == ("✗ <failed>", "#e06c75")
    assert len(texts) == 4
    assert "animation:5s" in picture
    assert "@keyframes k1{0%{visibility:hidden}40.000%{visibility:visible}100.000%{visibility:hidden}}" in picture
