"""A claimed file on screen: its text and lines, its difference, and what becomes of it while it is looked at."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from threading import Event

import pytest
from tests.app.scenes import Scene
from tests.app.stage import Stage, stage
from tests.unit.evidence.repository import Repository

from agentwatch.app.screens import inspect as inspect_module
from agentwatch.app.screens.inspect import InspectScreen
from agentwatch.app.screens.main import MainScreen
from agentwatch.app.widgets.details.page import Page
from agentwatch.delegation.claims import Claim, Verdict
from agentwatch.evidence.inspect import Inspection

V, C = Verdict.VERIFIED, Verdict.CONTRADICTED
RETURN = "returns/job.return.md"


def claim(path: str, verdict: Verdict = V, lines: tuple[int, int] | None = None, *, file: bool = True) -> Claim:
    return Claim("created", path, verdict, "the reason", lines, path if file else None)


@asynccontextmanager
async def looking_at(
    workspace: Path, *claims: Claim, changed: dict[str, float] | None = None, wait: bool = True
) -> AsyncIterator[Stage]:
    """The page of the first claim of a task's return, else of its first change."""
    scene = Scene()
    scene.handoff("job", ago=60)
    scene.returned("job", ago=30)
    scene.checked(RETURN, *claims, changed=changed)
    async with stage(scene=scene, observations=scene.take(), workspace=str(workspace), size=(120, 30)) as s:
        await s.press("5", "tab", "enter")
        assert isinstance(s.app.screen, InspectScreen)
        if wait:
            await s.until(lambda: "reading…" not in s.text())
        yield s


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "shop"
    folder.mkdir()
    return folder


async def test_the_file_is_shown_with_its_claim_and_the_claimed_lines_marked(workspace: Path) -> None:
    (workspace / "a.py").write_text("".join(f"line({number})\n" for number in range(1, 101)))
    async with looking_at(workspace, claim("a.py", C, (60, 61))) as s:
        assert "a.py:60-61" in s.text()
        assert "⚑ false   created   the reason" in s.text()
        await s.until(lambda: "line(60)" in s.text())
        assert s.line("line(59)").strip().startswith("59 │")
        assert s.line("line(60)").strip().startswith("▌  60 │")
        assert s.line("line(61)").strip().startswith("▌  61 │")
        assert s.line("line(62)").strip().startswith("62 │")


async def test_a_key_shows_what_git_says_and_the_file_again(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "shop", tmp_path / "home")
    repository.init()
    repository.write("a.py", "one\ntwo\nthree\n")
    repository.commit()
    repository.write("a.py", "one\n2\nthree\n")
    async with looking_at(repository.root, claim("a.py")) as s:
        assert "Difference since the handoff" in s.text()
        await s.press("d")
        await s.until(lambda: "- 2 │ two" in s.text())
        assert "+ 2 │ 2" in s.text()
        assert "Difference since the handoff +1 −1" in s.text()
        await s.press("tab")
        await s.until(lambda: "+ 2 │ 2" not in s.text())
        assert "  2 │ 2" in s.text()


async def test_a_difference_asked_for_while_the_file_is_read_comes_after_it(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reading, may_end = Event(), Event()

    def slow(*where: object) -> Inspection:
        reading.set()
        may_end.wait(10)
        return Inspection("text\n")

    monkeypatch.setattr(inspect_module, "file_text", slow)
    async with looking_at(workspace, claim("a.py"), wait=False) as s:
        await s.until(reading.is_set)
        await s.press("d")
        may_end.set()
        await s.until(lambda: "git cannot show the difference" in s.text())


async def test_without_git_the_difference_is_a_sentence(workspace: Path) -> None:
    (workspace / "a.py").write_text("x\n")
    async with looking_at(workspace, claim("a.py")) as s:
        await s.press("d")
        await s.until(lambda: "git cannot show the difference: not in a git repository." in s.text())


async def test_a_file_that_changes_is_shown_as_it_is_now(workspace: Path) -> None:
    (workspace / "a.py").write_text("before\n")
    async with looking_at(workspace, claim("a.py")) as s:
        assert "before" in s.text()
        (workspace / "a.py").write_text("after the change\n")
        await s.until(lambda: "after the change" in s.text())


async def test_a_file_that_vanishes_stays_on_screen_and_may_come_back(workspace: Path) -> None:
    (workspace / "a.py").write_text("the last words\n")
    async with looking_at(workspace, claim("a.py")) as s:
        (workspace / "a.py").unlink()
        await s.until(lambda: "There is no such file now. This is what was there last." in s.text())
        assert "the last words" in s.text()
        (workspace / "a.py").write_text("back again\n")
        await s.until(lambda: "back again" in s.text())
        assert "no such file" not in s.text()


async def test_a_task_that_vanishes_leaves_the_page(workspace: Path) -> None:
    (workspace / "a.py").write_text("text\n")
    async with looking_at(workspace, claim("a.py")) as s:
        s.scene.gone("handoffs/job.handoff.md")
        s.scene.gone(RETURN)
        s.source.push(s.scene.take())
        await s.until(lambda: not s.app.monitor.tree.tasks)
        await s.press("d", "d")
        assert "text" in s.text()
        await s.press("escape")
        assert isinstance(s.app.screen, MainScreen)


async def test_a_verdict_that_turns_turns_here_too(workspace: Path) -> None:
    (workspace / "a.py").write_text("text\n")
    async with looking_at(workspace, claim("a.py")) as s:
        assert "✓ verified" in s.text()
        s.scene.checked(RETURN, claim("a.py", C))
        s.source.push(s.scene.take())
        await s.until(lambda: "⚑ false" in s.text())


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("none.py", "There is no such file now."),
        ("folder", "This is a directory, not a file, and is not opened."),
        ("pipe", "This is a named pipe, not a file, and is not opened."),
        ("data.bin", "This is a binary file: there is no text to show."),
        ("huge.log", "This holds 8,388,609 bytes, and at most 8,388,608 are read."),
        ("out", "This leads out of the workspace and is not read."),
        ("empty.py", "The file is empty."),
    ],
)
async def test_what_is_no_text_is_said_in_plain_words(workspace: Path, name: str, words: str) -> None:
    (workspace / "folder").mkdir()
    os.mkfifo(workspace / "pipe")
    (workspace / "data.bin").write_bytes(b"\x7fELF\0\0\1")
    (workspace / "empty.py").touch()
    (workspace / "out").symlink_to("/etc/hostname")
    with (workspace / "huge.log").open("wb") as huge:
        huge.truncate(8 * 1024 * 1024 + 1)
    async with looking_at(workspace, claim(name)) as s:
        assert words in s.text()
        assert s.app.screen.inspected is None or name == "empty.py"


async def test_a_claim_without_a_file_says_why(workspace: Path) -> None:
    outside = Claim("created", "../x", C, "outside the workspace: it leaves it by `..`")
    async with looking_at(workspace, outside) as s:
        assert "There is no file to show: outside the workspace: it leaves it by `..`." in s.text()
        await s.press("d")
        assert "There is no file to show" in s.text()


async def test_a_long_file_is_cut_and_said_to_be(workspace: Path) -> None:
    (workspace / "a.log").write_text("line\n" * 3_000)
    async with looking_at(workspace, claim("a.log")) as s:
        await s.press("end")
        assert "truncated: the first 2,000 lines of 3,000 are shown" in s.text()


async def test_nothing_of_a_file_reaches_the_terminal_as_it_is(workspace: Path) -> None:
    (workspace / "a.md").write_text("\x1b]52;c;aGk=\x07[@click=app.quit]x[/] [/] \u202e\n```python\n")
    async with looking_at(workspace, claim("a.md")) as s:
        assert "[@click=app.quit]x[/] [/]" in s.text()
        assert not {"\x1b", "\x07", "\u202e"} & set(s.text())


async def test_the_name_and_not_the_content_says_how_a_file_is_coloured(workspace: Path) -> None:
    colored = {}
    for name in ("a.py", "a.txt"):
        (workspace / name).write_text('def f(): return "x"  # why\n')
        async with looking_at(workspace, claim(name)) as s:
            page = s.app.screen.query_one(Page)
            colored[name] = len({segment.style for segment in page.render_line(0) if segment.text.strip()})
    assert colored["a.py"] > colored["a.txt"]


async def test_a_change_that_nobody_claims_is_looked_at_as_well(workspace: Path) -> None:
    (workspace / "sly.py").write_text("hidden = True\n")
    async with looking_at(workspace, changed={"sly.py": 45}) as s:
        assert "± no return claims this change" in s.text()
        assert "hidden = True" in s.text()


async def test_the_inspected_file_is_what_edit_and_copy_are_about(workspace: Path) -> None:
    (workspace / "a.py").write_text("text\n")
    async with looking_at(workspace, claim("a.py")) as s:
        await s.press("c")
        await s.until(lambda: s.app.clipboard == str(workspace / "a.py"))
