"""The live tab: it follows a transcript, stays where one scrolls to, and says how everything came out."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from tests.app.scenes import NOW
from tests.app.stage import Stage, stage
from tests.unit.sessions.test_transcripts import entries_in as words_in
from textual.app import App
from textual.content import Content

from agentwatch.app import pager
from agentwatch.app.screens.inspect import StepScreen
from agentwatch.app.screens.task import TaskScreen
from agentwatch.app.widgets.details.live import LiveLog, Pose, _call, line_of
from agentwatch.delegation.events import Ran
from agentwatch.delegation.run import Message, Run, RunState
from agentwatch.sources.sessions import following
from agentwatch.sources.sessions.doing import EntryKind
from agentwatch.sources.sessions.fields import digest_of
from agentwatch.sources.sessions.following import LinesTranscript, Outcome, Step

ROOT = "session"


def entries_in(fields: object) -> list[object]:
    """Those of the tests of transcripts, at the time of the scene, and calls of agents."""
    from agentwatch.sources.sessions.doing import Entry
    from agentwatch.sources.sessions.fields import mapping, text

    record = mapping(fields)
    if (prompt := text(record, "agent")) is not None:
        given = {"description": "look", "prompt": prompt}
        return [Entry(NOW - 50, EntryKind.CALL, "", "agent", "Agent", given)]
    moved = [entry._replace(at=NOW - 60 + entry.at) for entry in words_in(record)]
    return [entry._replace(refused=record.get("refused") is True) for entry in moved]


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

    def __init__(self, s: Stage, path: Path) -> None:
        self.s = s
        self.path = path

    @property
    def log(self) -> LiveLog:
        return self.details.live_tab.page

    @property
    def details(self) -> object:
        screen = self.s.app.screen
        return screen.details if isinstance(screen, TaskScreen) else self.s.details

    def add(self, *records: dict[str, object]) -> None:
        with self.path.open("a") as file:
            file.writelines(json.dumps(record) + "\n" for record in records)

    def words(self, first: int, last: int) -> None:
        self.add(*({"words": f"word {number}"} for number in range(first, last)))

    async def until_shown(self, words: str) -> None:
        await self.s.until(lambda: words in self.s.text())

    async def until_known(self, words: str) -> None:
        await self.s.until(lambda: any(words in line for line in self.log.lines))


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
        s.source.transcripts[ROOT] = lambda: LinesTranscript(path, entries_in)
        s.tree.select(ROOT) if ROOT in s.tree.row_ids() else None
        await s.press("2")
        yield one


async def test_what_is_written_is_shown_at_once_newest_below(tmp_path: Path) -> None:
    async with live(tmp_path) as one:
        await one.until_shown("It has said nothing yet.")
        one.words(0, 3)
        await one.until_shown("word 2")
        lines = [line for line in one.s.text().splitlines() if "word" in line]
        assert [line.split()[-1] for line in lines] == ["0", "1", "2"]
        assert "following" in one.s.text()
        one.words(3, 100)
        await one.until_shown("word 99")
        assert "word 3 " not in one.s.text()


async def test_a_call_gets_its_result_in_its_line(tmp_path: Path) -> None:
    async with live(tmp_path) as one:
        one.add({"call": "a", "given": "npm test"}, {"call": "b", "given": "rm -rf build"})
        await one.until_shown("npm test")
        assert "◐ Bash npm test" in one.s.line("npm test")
        one.add({"result": "a", "text": "3 failed", "failed": True})
        await one.until_shown("✗ Bash npm test  → 3 failed")
        one.add({"result": "b", "text": "not allowed", "failed": True, "refused": True})
        await one.until_shown("⊘ Bash rm -rf build  → not allowed")


@pytest.mark.parametrize("key", ["end", "G"])
async def test_it_stays_where_one_scrolls_to_until_the_end_is_asked_for(tmp_path: Path, key: str) -> None:
    async with live(tmp_path, lambda one: one.words(0, 90)) as one:
        await one.until_shown("word 89")
        await one.s.press("tab", "pageup", "pageup")
        await one.until_shown("not following")
        top = one.s.text().splitlines()[10]
        one.words(90, 95)
        await one.until_shown("5 new below")
        assert one.s.text().splitlines()[10] == top
        assert "word 94" not in one.s.text()
        await one.s.press(key)
        await one.until_shown("word 94")
        assert "not following" not in one.s.text()
        one.words(95, 96)
        await one.until_shown("word 95")


async def test_moving_up_by_one_ends_following_and_down_again_begins_it(tmp_path: Path) -> None:
    async with live(tmp_path, lambda one: one.words(0, 5)) as one:
        await one.until_shown("word 4")
        await one.s.press("tab", "k")
        assert not one.log.follows
        await one.s.press("j")
        assert one.log.follows


async def test_the_wheel_ends_following_and_begins_it_again(tmp_path: Path) -> None:
    async with live(tmp_path, lambda one: one.words(0, 90)) as one:
        await one.until_shown("word 89")
        one.log.scroll_to(y=20, animate=False)
        await one.until_shown("not following")
        one.log.scroll_to(y=one.log.max_scroll_y, animate=False)
        await one.s.until(lambda: one.log.follows)


async def test_what_was_before_is_read_when_one_scrolls_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(following, "_WINDOW", 64 * 1024)
    async with live(tmp_path, lambda one: one.words(0, 10_000)) as one:
        await one.until_shown("word 9999")
        count = len(one.log.steps)
        assert count < 10_000
        await one.s.press("tab", "home")
        first = one.log.chosen
        await one.s.until(lambda: len(one.log.steps) > count)
        # The line stays under the cursor.
        assert one.log.chosen == first
        assert one.log.scroll_offset.y > 0


async def test_enter_opens_an_entry_whole(tmp_path: Path) -> None:
    async with live(tmp_path) as one:
        one.add({"call": "a", "given": "first line\nsecond line"}, {"words": "## Done\n\nall of it"})
        await one.until_shown("Done all of it")
        await one.s.press("tab", "k", "enter")
        assert isinstance(one.s.app.screen, StepScreen)
        await one.until_shown("second line")
        assert "There is none yet." in one.s.text()
        one.add({"result": "a", "text": "made\nboth"})
        await one.until_shown("both")
        await one.s.press("escape", "j", "enter")
        await one.until_shown("all of it")
        assert "##" not in one.s.text()


async def test_a_click_twice_opens_an_entry(tmp_path: Path) -> None:
    async with live(tmp_path, lambda one: one.words(0, 2)) as one:
        await one.until_shown("word 1")
        await one.s.pilot.click(LiveLog, offset=(5, 0), times=2)
        await one.s.until(lambda: isinstance(one.s.app.screen, StepScreen))
        await one.until_shown("word 0")


async def test_a_search_shows_what_matches_and_esc_all_again(tmp_path: Path) -> None:
    async with live(tmp_path, lambda one: one.words(0, 30)) as one:
        await one.until_shown("word 29")
        await one.s.press("tab", "/", *"Word 2")
        await one.until_shown("11 of 30 match")
        assert "word 13" not in one.s.text()
        await one.s.press("enter", "k")
        chosen = one.log.chosen
        assert chosen is not None
        assert one.log.current(chosen).about == "word 28"
        await one.s.press("escape")
        await one.until_shown("word 13")
        assert one.log.chosen == chosen
        assert one.s.in_details
        await one.s.press("escape")
        assert not one.s.in_details


async def test_a_search_that_is_left_empty_shows_all(tmp_path: Path) -> None:
    async with live(tmp_path, lambda one: one.words(0, 3)) as one:
        await one.until_shown("word 2")
        await one.s.press("tab", "/", "x")
        await one.until_shown("0 of 3 match")
        await one.s.press("backspace", "enter")
        assert one.s.app.focused is one.log
        assert len(one.log.steps) == 3


async def test_elsewhere_the_key_of_the_search_is_that_of_the_filter(tmp_path: Path) -> None:
    async with live(tmp_path) as one:
        await one.s.press("1", "tab", "/")
        assert one.s.main.filter_bar.display


async def test_what_was_there_stays_when_the_transcript_goes(tmp_path: Path) -> None:
    async with live(tmp_path, lambda one: one.words(0, 3)) as one:
        await one.until_shown("word 2")
        one.path.unlink()
        await one.until_shown("Its file is gone: this is what it said.")
        assert "word 2" in one.s.text()


async def test_a_task_of_files_says_what_it_has_instead() -> None:
    async with stage() as s:
        s.tree.select("checkout.implement.api")
        await s.press("2")
        await s.until(lambda: "Only files speak of this task" in s.text())
        assert "Return." in s.text()


async def test_a_session_without_a_transcript_says_so(tmp_path: Path) -> None:
    async with live(tmp_path, lambda one: one.words(0, 3)) as one:
        await one.until_shown("word 2")
        one.s.tree.select("child")
        one.s.tree.select(one.s.tree.row_ids()[-1])
        await one.until_shown("No transcript of its own")
        one.s.tree.select(one.s.tree.row_ids()[0])
        await one.until_shown("word 2")


async def test_a_child_is_named_where_it_is_called(tmp_path: Path) -> None:
    async with live(tmp_path) as one:
        one.add({"agent": "Look at it."}, {"agent": "Another one."})
        await one.until_shown("Agent ▸ the child  look")
        assert "◐ Agent look" in one.s.text()


def test_a_child_that_is_called_what_it_is_to_do_is_named_once() -> None:
    step = Step("1", 1.0, EntryKind.CALL, tool="Task", about="Write the form")
    assert _call(step, 60, "Write the form").plain == "Task ▸ Write the form"
    assert _call(step, 60, "writer").plain == "Task ▸ writer  Write the form"


async def test_the_page_of_a_narrow_screen_has_it_too(tmp_path: Path) -> None:
    async with live(tmp_path, lambda one: one.words(0, 50), size=(80, 24)) as one:
        assert isinstance(one.s.app.screen, TaskScreen)
        await one.until_shown("word 49")
        await one.s.press("k")
        await one.until_shown("not following")
        await one.s.press("/", *"word 7")
        await one.until_shown("1 of 50 match")
        await one.s.press("escape")
        assert isinstance(one.s.app.screen, TaskScreen)
        await one.s.press("escape")
        assert not isinstance(one.s.app.screen, TaskScreen)


def is_followed() -> bool:
    return any(thread.name == "agentwatch-live" for thread in threading.enumerate())


async def test_nothing_is_followed_when_another_tab_is_shown(tmp_path: Path) -> None:
    async with live(tmp_path, lambda one: one.words(0, 3)) as one:
        await one.until_shown("word 2")
        assert is_followed()
        await one.s.press("1")
        await one.s.until(lambda: not is_followed())
        await one.s.press("2")
        await one.until_shown("word 2")


async def test_foreign_text_is_made_safe(tmp_path: Path) -> None:
    async with live(tmp_path) as one:
        one.add({"words": "a\x1b[31mred\u202e [bold]b[/]"})
        await one.until_shown("␛[31mred<U+202E> [bold]b[/]")
        await one.s.press("tab", "enter")
        await one.until_shown("␛[31mred<U+202E>")


async def test_the_pager_gets_all_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []

    def lend(_: App[object], command: list[str], path: Path, advice: str) -> str | None:
        read.extend([*command, path.read_text(), oct(path.parent.stat().st_mode & 0o777), advice])
        return None

    monkeypatch.setenv("PAGER", "view -R")
    monkeypatch.setattr(pager, "lend", lend)
    monkeypatch.setattr("tempfile.tempdir", "/dev/null")  # not into a directory that is shared
    async with live(tmp_path) as one:
        one.add({"call": "a", "given": "make\nit"}, {"result": "a", "text": "\x1b[2Jmade"}, {"words": "Done."})
        await one.until_shown("Done.")
        await one.s.press("tab", "p")
        await one.s.until(lambda: read)
    assert read[:2] == ["view", "-R"]
    assert "calls Bash\n    make\n    it\n" in read[2]
    assert "came back\n    ␛[2Jmade\n" in read[2]
    assert "says\n    Done.\n" in read[2]
    assert read[3] == "0o700"


async def test_a_terminal_that_cannot_be_handed_over_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PAGER", "less")
    async with live(tmp_path, lambda one: one.words(0, 1)) as one:
        await one.until_shown("word 0")
        await one.s.press("tab", "p")
        await one.until_shown("cannot be handed over")


def test_the_pager_is_that_of_the_environment(tmp_path: Path) -> None:
    (tmp_path / "more").touch(mode=0o755)
    assert pager.pager_command({"PAGER": "bat -p"}) == ["bat", "-p"]
    assert pager.pager_command({"PATH": str(tmp_path)}) == ["more"]
    assert pager.pager_command({"PATH": os.devnull}) == []
    with pytest.raises(ValueError, match="quotation"):
        pager.pager_command({"PAGER": "'less"})


# Lines


def line(width: int = 80, **fields: object) -> Content:
    step = Step((0, 0), EntryKind.CALL, NOW - 100)._replace(**fields)
    return line_of(step, Pose(width, NOW, 8))


def styles(content: Content, words: str) -> set[str]:
    at = content.plain.index(words)
    return {str(span.style) for span in content.spans if span.start <= at < span.end}


def test_what_failed_is_coloured_and_what_was_refused_is_struck_through() -> None:
    failed = line(tool="Bash", about="make", outcome=Outcome.FAILED, result="no rule")
    assert "$text-error" in styles(failed, "✗")
    assert "$text-error" in styles(failed, "no rule")
    refused = line(tool="Bash", about="make", outcome=Outcome.REFUSED, result="no")
    assert "strike" in styles(refused, "Bash make")
    assert "⊘" in refused.plain
    assert "strike" not in styles(failed, "Bash make")


@pytest.mark.parametrize("width", [20, 40, 56, 80, 120])
@pytest.mark.parametrize("words", ["short", "long " * 60, "漢字" * 90])
def test_no_line_is_wider_than_there_is_room(width: int, words: str) -> None:
    for outcome in Outcome:
        told = line(width, tool="Bash", about=words, result=words, outcome=outcome, ended_at=NOW)
        assert told.cell_length <= width
    assert line(width, kind=EntryKind.WORDS, about=words).cell_length <= width


def test_a_call_says_how_long_it_took_or_has_been_running() -> None:
    over = line(tool="Bash", about="make", ended_at=NOW - 58, outcome=Outcome.DONE)
    assert over.plain.endswith("42s")
    assert line(tool="Bash", about="make", outcome=Outcome.OPEN).plain.endswith("1m")
    stopped = line_of(Step((0, 0), EntryKind.CALL, NOW - 100, outcome=Outcome.OPEN), Pose(80, NOW, 8, False))
    assert "○" in stopped.plain
    assert not stopped.plain.endswith("1m")


async def test_lines_use_the_room_that_there_is_now(tmp_path: Path) -> None:
    async with live(tmp_path, lambda one: one.words(0, 3), size=(80, 24)) as one:
        long = "a very long line of words " * 3
        one.add({"words": long})
        await one.until_shown("a very long line")
        await one.s.resize(40, 24)
        await one.s.until(lambda: long.strip() not in one.s.text() and "a very" in one.s.text())
        await one.s.resize(99, 24)
        await one.until_shown(long.strip())
