"""The live tab: it stays where one scrolls to, keeps what was there, and lends all of it to a pager."""

import json
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager, nullcontext
from pathlib import Path

import pytest

from agentwatch.app import editor
from agentwatch.app.app import AgentwatchApp
from agentwatch.app.widgets.details.pane import LiveLog, line_of
from agentwatch.delegation.events import Message, Ran, Run, RunState
from agentwatch.sources.sessions.entries import EntryKind, LinesTranscript, Outcome, Step
from agentwatch.sources.sessions.fields import digest_of
from tests.app.scenes import NOW
from tests.app.stage import Stage, stage
from tests.unit.sessions.test_transcripts import entries_in as words_in

ROOT = "session"


def entries_in(fields: object) -> list[object]:
    """Those of the tests of transcripts, at the time of the scene."""
    return [entry._replace(at=NOW - 60 + entry.at) for entry in words_in(fields)]


def run(session: str, parent: str | None = None, prompt: str = "Build it.") -> Run:
    return Run(
        source="claude-code",
        session_id=session,
        parent_session=parent,
        state=RunState.WORKING,
        place=f"/store/{session}.jsonl",
        started_at=NOW - 60,
        updated_at=NOW - 1,
        title=f"the {session}",
        prompt=Message(NOW - 60, digest_of(prompt), prompt),
    )


class Live:
    """A session on the stage whose transcript is a file of the test."""

    def __init__(self, s: Stage, path: Path):
        self.s = s
        self.path = path

    @property
    def log(self) -> LiveLog:
        return self.s.details.log_page

    def add(self, *records: dict[str, object]):
        with self.path.open("a") as file:
            file.writelines(json.dumps(record) + "\n" for record in records)

    def words(self, first: int, last: int):
        self.add(*({"words": f"word {number}"} for number in range(first, last)))

    async def until_shown(self, words: str):
        await self.s.until(lambda: words in self.s.text())


@asynccontextmanager
async def live(
    tmp_path: Path, before: Callable[[Live], None] = lambda _: None, size: tuple[int, int] = (140, 40)
) -> AsyncIterator[Live]:
    path = tmp_path / "session.jsonl"
    path.touch()
    child = run("child", ROOT, "Look at it.")
    seen = [Ran(1, NOW - 60, f"claude-code:{ROOT}", run(ROOT)), Ran(2, NOW - 50, "claude-code:child", child)]
    async with stage(seen, size) as s:
        one = Live(s, path)
        before(one)
        s.source.transcripts[ROOT] = lambda: LinesTranscript(path, lambda: entries_in)
        s.tree.select(ROOT) if ROOT in s.row_ids() else None
        await s.press("2")
        yield one


async def test_it_stays_where_one_scrolls_to_until_the_end_is_wanted(tmp_path):
    async with live(tmp_path, lambda one: one.words(0, 90)) as one:
        await one.until_shown("word 89")
        await one.s.press("tab", "pageup", "pageup")
        await one.until_shown("not following")
        top = one.s.text().splitlines()[10]
        one.words(90, 95)
        await one.s.until(lambda: len(one.log.steps) == 95)
        assert one.s.text().splitlines()[10] == top
        assert "word 94" not in one.s.text()
        await one.s.press("end")
        await one.until_shown("word 94")
        assert "not following" not in one.s.text()
        one.words(95, 96)
        await one.until_shown("word 95")


async def test_the_pager_gets_all_of_it(tmp_path, monkeypatch):
    read: list[object] = []

    def run(command: list[str], lines: Iterable[str]) -> int:
        read.extend([command, "\n".join(lines)])
        return 0

    monkeypatch.setenv("PAGER", "view -R")
    monkeypatch.setattr(editor, "run", run)
    monkeypatch.setattr(AgentwatchApp, "suspend", lambda _: nullcontext())
    async with live(tmp_path) as one:
        one.add({"call": "a", "given": "make\nit"}, {"result": "a", "text": "\x1b[2Jmade"}, {"words": "Done."})
        await one.until_shown("Done.")
        await one.s.press("tab", "p")
        await one.s.until(lambda: read)
    assert read[0] == ["view", "-R"]
    assert "calls Bash\n    make\n    it\n" in read[1]
    assert "came back\n    ␛[2Jmade\n" in read[1]
    assert "words\n    Done.\n" in read[1]


async def test_at_its_end_it_says_why_it_cannot_be_read(tmp_path):
    async with live(tmp_path, lambda one: one.words(0, 3)) as one:
        await one.until_shown("following")
        one.path.unlink()
        await one.s.until(lambda: "following" not in one.s.text() and "gone" in one.s.text())
        assert "word 2" in one.s.text()


async def test_another_task_ends_a_search_and_the_tree_keeps_the_focus(tmp_path):
    async with live(tmp_path, lambda one: one.words(0, 20)) as one:
        await one.until_shown("word 19")
        await one.s.press("tab", "/", *"word", "space", "1", "enter")
        await one.until_shown("11 of 20 match")
        await one.s.press("tab", "j")
        await one.s.until(lambda: "match" not in one.s.text())
        assert one.s.tree.has_focus


@pytest.mark.parametrize("width", [20, 40, 56, 120])
def test_no_line_is_wider_than_there_is_room(width):
    for words in ("short", "long " * 60, "漢字" * 90):
        for outcome in Outcome:
            step = Step((0, 0), EntryKind.CALL, NOW - 100, "Bash", words, outcome, words, NOW)
            assert line_of(step, width, NOW).cell_length <= width
        assert line_of(Step((0, 0), EntryKind.WORDS, NOW, about=words), width, NOW).cell_length <= width


def test_a_mark_says_what_a_line_is_and_how_it_came_out():
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
        assert words in line_of(step, 80, NOW).plain
    assert "○ Bash" in line_of(lines["◐ Bash make"], 80, NOW, is_working=False).plain
    assert line_of(call, 80, NOW).plain.endswith("1m")
