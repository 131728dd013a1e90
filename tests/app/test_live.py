"""The live tab: it stays at its place after scrolling, keeps the text that it has shown, and lends it to a pager."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from agentwatch.app.widgets.details.pane import step_line
from agentwatch.sources.sessions.entries import EntryKind, LinesTranscript, Outcome, Step
from tests.app.scenes import NOW, Scene
from tests.app.stage import Stage, stage
from tests.unit.sessions.test_transcripts import entries_in as words_in


def entries_in(fields: object) -> list[object]:
    """Return the entries that the tests of transcripts read in a record, at the time of the scene."""
    return [entry._replace(at=NOW - 60 + entry.at) for entry in words_in(fields)]


def add(path: Path, *records: dict[str, object]):
    with path.open("a") as file:
        file.writelines(json.dumps(record) + "\n" for record in records)


def words(first: int, last: int) -> list[dict[str, object]]:
    return [{"words": f"word {number}"} for number in range(first, last)]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "session.jsonl"


@asynccontextmanager
async def live(path: Path, *records: dict[str, object]) -> AsyncIterator[Stage]:
    """Open the live tab of a session whose transcript is `path`; another session is below it."""
    add(path, *records)
    scene = Scene()
    scene.ran("session", "the session")
    scene.ran("child", "the child", parent_session="session")
    async with stage(scene=scene) as s:
        s.source.read = lambda run: LinesTranscript(path, lambda: entries_in) if run.title == "the session" else None
        s.tree.select("session")
        await s.press("2")
        yield s


async def test_the_live_tab_stays_at_its_place_until_end_is_pressed(path):
    async with live(path, *words(0, 90)) as s:
        await s.shows("word 89")
        await s.press("tab", "pageup", "pageup")
        await s.shows("not following")
        top = s.text().splitlines()[10]
        add(path, *words(90, 95))
        await s.until(lambda: len(s.details.log_page.steps) == 95)
        assert s.text().splitlines()[10] == top
        assert "word 94" not in s.text()
        await s.press("end")
        await s.shows("word 94")
        assert "not following" not in s.text()
        add(path, *words(95, 96))
        await s.shows("word 95")


async def test_the_pager_gets_the_whole_transcript(path, tmp_path, monkeypatch):
    (pager := tmp_path / "pager").write_text('#!/bin/sh\n(echo "$@"; cat) > "$0.log"\n')
    pager.chmod(0o755)
    monkeypatch.setenv("PAGER", str(tmp_path / "none"))
    async with live(path, {"call": "a", "given": "make\nit"}, {"result": "a", "text": "\x1b[2Jmade"}) as s:
        add(path, {"words": "Done."})
        await s.shows("Done.")
        await s.press("tab", "p")
        await s.until(lambda: any("none could not be started: No such file" in one for one in s.told))
        monkeypatch.setenv("PAGER", f"{pager} -R")
        await s.press("p")
        log = tmp_path / "pager.log"
        await s.until(lambda: log.exists() and "words\n    Done.\n" in log.read_text("utf-8"))
    read = log.read_text("utf-8")
    assert read.startswith("-R\n")
    assert "calls Bash\n    make\n    it\n" in read
    assert "came back\n    ␛[2Jmade\n" in read


async def test_the_live_tab_says_that_a_transcript_is_gone(path):
    async with live(path, *words(0, 3)) as s:
        await s.shows("following")
        path.unlink()
        await s.hides("following")
        await s.shows("gone", "word 2")


async def test_another_task_ends_a_search_and_the_tree_keeps_the_focus(path):
    async with live(path, *words(0, 20)) as s:
        await s.shows("word 19")
        await s.press("tab", "/", *"word", "space", "1", "enter")
        await s.shows("11 of 20 match")
        await s.press("tab", "j")
        await s.hides("match")
        assert s.tree.has_focus


@pytest.mark.parametrize("width", [20, 40, 56, 120])
def test_no_line_is_wider_than_there_is_room(width):
    for words in ("short", "long " * 60, "漢字" * 90):
        for outcome in Outcome:
            step = Step((0, 0), EntryKind.CALL, NOW - 100, "Bash", words, outcome, words, NOW)
            assert step_line(step, width, NOW).cell_length <= width
        assert step_line(Step((0, 0), EntryKind.WORDS, NOW, about=words), width, NOW).cell_length <= width


def test_a_mark_shows_the_kind_and_the_result_of_a_line():
    call = Step((0, 0), EntryKind.CALL, NOW - 100, "Bash", "make", Outcome.DONE, "made", NOW)
    lines = {
        "✓ Bash make  → made": call,
        "≡ Todo 1/2 read": call._replace(tool="Todo", about="1/2 read", is_checklist=True),
        "✗ Bash make": call._replace(outcome=Outcome.FAILED, result=""),
        "⊘ Bash make": call._replace(outcome=Outcome.REFUSED, result=""),
        "◐ Bash make": call._replace(outcome=Outcome.OPEN, result=""),
        "› make": Step((0, 0), EntryKind.PROMPT, NOW, about="make"),
        "✓ Edit …/src/billing/export/form.tsx  → The file": call._replace(
            tool="Edit",
            about="/opt/shop/src/billing/export/form.tsx",
            result="The file was changed as it was asked for",
        ),
        "· make": Step((0, 0), EntryKind.THOUGHT, NOW, about="make"),
        "! make": Step((0, 0), EntryKind.NOTE, NOW, about="make"),
    }
    for words, step in lines.items():
        assert words in step_line(step, 80, NOW).plain
    assert "○ Bash" in step_line(lines["◐ Bash make"], 80, NOW, is_working=False).plain
    assert step_line(call, 80, NOW).plain.endswith("1m")
