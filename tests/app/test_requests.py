"""A program's question is answered as it was shown: only that request, once, and never in advance."""

import time
from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path

import pytest

from agentwatch.app.widgets.details.blocks import Page
from agentwatch.decisions.record import Answer
from agentwatch.delegation.decision import CallArgument, Option, Query, Request, RequestKind
from tests.app.stage import Office, box_of, office
from tests.journeys.made import handoff
from tests.unit.requests import asked

WORKING = {"api.handoff.json": handoff()}
"""The file of a task that is at work."""


def permission(root: Path, *command: str, ask: Callable[..., Request] = asked.request, **changes: object) -> Request:
    (root / "shop").mkdir(exist_ok=True)
    now = {"source": "claude-code", "session_id": "shop.api", "asked_at": time.time()}
    return ask(root / "shop", *command, **(now | changes))


def question(root: Path, **changes: object) -> Request:
    return permission(root, ask=asked.question, **changes)


@asynccontextmanager
async def asking(
    root: Path, *requests: Request, files: dict[str, str] = WORKING, size: tuple[int, int] = (140, 40)
) -> AsyncIterator[Office]:
    """Run the app on a workspace whose programs ask these requests."""
    with ExitStack() as offers:
        for one in requests:
            offers.enter_context(box_of(root).offer(one))
        async with office(root, files, size) as s:
            await s.until(lambda: len(s.app.monitor.tree.requests) == len(requests))
            await s.pilot.pause()
            yield s


async def test_every_question_is_answered_before_the_key_counts(tmp_path):
    async with asking(tmp_path, question(tmp_path)) as s:
        await s.open("a")
        await s.press("down", "ctrl+s")
        assert "all of its questions have to be answered; this one is not:" in s.words()
        assert s.entries() == ()
        # The key moved the focus to the question that lacks an answer.
        await s.press("down", "space", "down", "space", "space", "tab", *"x")
        await s.record()
        (entry,) = s.entries()
        assert entry.record.params.answers == asked.ANSWERED.answers


async def test_a_question_for_one_answer_takes_only_one(tmp_path):
    query = Query("Which?", options=(Option("A"), Option("B")))
    async with asking(tmp_path, question(tmp_path, queries=(query,))) as s:
        await s.open("a")
        await s.press("down", "tab", *"mine", "ctrl+s")
        assert "one answer can be given to “Which?”" in s.words()
        await s.press(*["backspace"] * 4)
        await s.record()
        assert s.entries()[0].record.params.answers == (Answer("Which?", "A"),)


async def test_the_dialog_says_what_a_denial_ends_and_where_always_is(tmp_path):
    asked = permission(tmp_path, ends_others=2, ends_turn=True, why_not="It has no terminal.")
    async with asking(tmp_path, asked) as s:
        await s.open("a")
        assert "a denial ends 2 other open requests of its session, too" in s.text()
        assert "It has no terminal." in s.text()
        await s.press("space")
        await s.shows("ctrl+s allows it, this once (“always”: only in its program)")


async def test_another_request_never_takes_its_place(tmp_path):
    first = permission(tmp_path, "touch first")
    async with asking(tmp_path, first) as s:
        await s.open("a")
        now = time.time()
        with box_of(tmp_path).offer(permission(tmp_path, "touch second", asked_at=now + 1, until=now + 3_600)):
            await s.shows("■ 1 other request: ")
            await s.press("space")
            await s.record()
        assert [entry.record.decision_id for entry in s.entries()] == [first.request_id]


async def test_the_first_that_can_be_answered_here_is_answered(tmp_path):
    now = time.time()
    newest = permission(tmp_path, "touch y", session_id="other", asked_at=now, actions=(), why_not="only there")
    async with asking(tmp_path, newest, permission(tmp_path, asked_at=now - 5)) as s:
        first, second = s.app.monitor.tree.queue
        assert second == "shop.api"
        await s.open("a", first)


async def test_the_keys_of_attempts_answer_no_request(tmp_path):
    async with asking(tmp_path, permission(tmp_path)) as s:
        for key in ("y", "x"):
            await s.press(key)
            assert "Allow?" not in s.text()
            await s.press("escape")
        assert s.entries() == ()


@pytest.mark.parametrize(
    "why", ["approve the plan there", "what it asks is too long to be read here: answer it in its program"]
)
async def test_a_request_that_cannot_be_answered_here_says_where(tmp_path, why):
    asks = permission(tmp_path, actions=(), why_not=why)
    if "long" in why:
        asks = question(tmp_path, queries=(Query("Which?", options=(Option("A"), Option("B" * 2_001))),))
    async with asking(tmp_path, asks) as s:
        await s.press("a")
        await s.pilot.pause()
        assert not s.in_dialog
        await s.until(lambda: f"Answer “shop.api”: {why}." in s.told)
        assert ("its program" in why) or why in s.text()


async def test_foreign_words_stay_behind_the_bar_and_are_whole(tmp_path):
    command = "touch a \x1b[2J[bold]b[/]\n╔═ ◆ Allow ═╗\n" + "y" * 9_000 + "END"
    call = permission(
        tmp_path, command, said="ctrl+s is safe", tool="Ba[red]sh”", beside=(CallArgument("cwd", '"/x"'),)
    )
    async with asking(tmp_path, call) as s:
        await s.open("a")
        assert "besides the call it is given “cwd”" in s.words()
        lines = s.dialog.query_one(Page).lines
        assert all("┊" in line for line in lines)
        assert "[bold]b[/]" in lines[0]
        assert 'besides      ┊ cwd: "/x"' in lines
        text = "".join(line.split("┊", 1)[1][1:] for line in lines)
        assert "y" * 9_000 + "END" in text
        assert '“Ba[red]sh"”' in s.text()
        assert "\x1b" not in s.text()


@pytest.mark.parametrize("between", ["", "\n" * 60, " " * 3_000], ids=["nothing", "lines", "blanks"])
async def test_a_call_whose_end_is_in_sight_is_allowed_at_once(between, tmp_path):
    async with asking(tmp_path, permission(tmp_path, f"ls{between};rm -rf ~")) as s:
        await s.open("a")
        await s.press("space")
        await s.shows("ctrl+s allows it")
        assert "ls" in s.text()
        assert "rm -rf ~" in s.text()
        await s.record()
        assert len(s.entries()) == 1


async def test_a_call_that_was_read_before_an_answer_is_chosen_is_read(tmp_path):
    async with asking(tmp_path, permission(tmp_path, "echo\n" * 60 + "rm"), size=(80, 24)) as s:
        await s.open("a")
        page = s.dialog.query_one(Page)
        page.scroll_end(animate=False)
        await s.pilot.pause()
        page.scroll_home(animate=False)
        await s.press("space")
        await s.shows("ctrl+s allows it")


async def test_a_call_too_long_to_be_read_can_only_be_denied(tmp_path):
    async with asking(tmp_path, permission(tmp_path, "ls\n" * 5_000)) as s:
        await s.open("a")
        await s.press("space")
        await s.shows("too long to be read here")
        await s.press("down")
        await s.shows("ctrl+s denies it")


async def test_a_request_says_how_long_it_can_be_answered(tmp_path):
    now = time.time()
    files = {**WORKING, "ui.handoff.json": handoff("shop.ui")}
    soon = permission(tmp_path, "git push", session_id="shop.ui", asked_at=now - 5, until=now + 90)
    async with asking(tmp_path, permission(tmp_path, "ls"), soon, files=files, size=(80, 11)) as s:
        # The request of shop.api is newer and has no time limit. It does not hide this one, even under the cursor.
        await s.until(lambda: "■ shop.ui  allow? Bash  git push" in s.text() and "1m left" in s.text())
        s.tree.select("shop.api")
        await s.until(lambda: "▌" in s.line("■ shop.api"))
        assert "■ shop.ui  allow? Bash  git push" in s.text()


async def test_a_form_asks_and_is_no_permission(tmp_path):
    form = permission(tmp_path, "Which colour?", kind=RequestKind.FORM, actions=(), why_not="it is filled in there")
    async with asking(tmp_path, form) as s:
        await s.shows("its program has a form")
        assert "NEEDS YOU  asks" in s.text()
        assert "fill in? Bash" in s.words()
        assert "allow?" not in s.text()
