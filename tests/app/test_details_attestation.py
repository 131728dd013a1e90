"""The attestation tab on a running app: claims and a cursor on them, unclaimed changes, mode and model."""

from __future__ import annotations

import re

import pytest
from details_tasks import shown_text
from tests.app.scenes import Scene
from tests.app.stage import Stage, stage

from agentwatch.app.screens.inspect import InspectScreen
from agentwatch.app.widgets.details.page import Page
from agentwatch.delegation.claims import Claim, Verdict
from agentwatch.delegation.run import Run, RunState
from agentwatch.monitor import Monitor

RETURN = "returns/job.return.md"
SMALL = (140, 24)


def claims(count: int, verdict: Verdict = Verdict.VERIFIED) -> tuple[Claim, ...]:
    return tuple(Claim("created", f"{n}.py", verdict, f"reason {n}", None, f"{n}.py") for n in range(count))


def job(mode: str | None = "code") -> Scene:
    scene = Scene()
    scene.handoff("job", ago=60, mode=mode)
    scene.returned("job", ago=30, created=("0.py",), limits=("Only Linux was tried.",))
    return scene


def page(s: Stage) -> Page:
    return s.details.query_one(Page)


def under_cursor(s: Stage) -> str:
    lines = [line for line in s.text().splitlines() if "│▌" in line.replace(" ", "")]
    return lines[0] if lines else ""


async def test_claims_are_listed_the_false_ones_first() -> None:
    scene = job()
    lie = Claim("modified", "lie.py", Verdict.CONTRADICTED, "missing: no such file", (3, 9), "lie.py")
    scene.checked(RETURN, *claims(2), lie)
    async with stage(scene=scene) as s:
        await s.press("5")
        lines = shown_text(s.details).split("\n")
        at = lines.index("Claims  3  ✓ 2  ⚑ 1")
        assert lines[at + 1].split() == ["⚑", "false", "lie.py:3-9"]
        assert lines[at + 2] == "    modified   missing: no such file"
        assert lines[at + 3].split() == ["✓", "verified", "0.py"]
        assert "created     1 file" in lines
        assert "modified    none" in lines


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ("code", "✓ as the handoff asked"),
        ("architect", "! differs: the handoff asked for architect"),
        (None, "? unverifiable: the handoff names no mode"),
    ],
)
async def test_the_reported_mode_is_held_against_the_handoff(asked: str | None, words: str) -> None:
    scene = job(asked)
    scene.checked(RETURN, *claims(1))
    async with stage(scene=scene) as s:
        await s.press("5")
        assert f"mode code {words}" in " ".join(shown_text(s.details).split())
        assert "model       openai/gpt-5.2   ? unverifiable" in shown_text(s.details)
        assert "limits      • Only Linux was tried." in shown_text(s.details)


@pytest.mark.parametrize(
    ("recorded", "words"),
    [("gpt-5.2", "✓ as recorded"), ("gpt-5-mini", "! differs: recorded as gpt-5-mini")],
)
async def test_the_reported_model_is_held_against_the_one_that_ran(recorded: str, words: str) -> None:
    scene = job()
    scene.checked(RETURN, *claims(1))
    async with stage(scene=scene) as s:
        task = s.app.monitor.tree.tasks["job"]
        task.attempts[0].run = Run(
            source="agents",
            session_id="s",
            parent_session="p",
            state=RunState.ENDED,
            place="/store",
            started_at=0.0,
            updated_at=1.0,
            model=recorded,
        )
        await s.press("5")
        assert f"model openai/gpt-5.2 {words}" in " ".join(shown_text(s.details).split())
        await s.press("1")
        overview = re.sub(r"\s+", " ", shown_text(s.details))
        differs = recorded != "gpt-5.2"
        assert (f"model openai/gpt-5.2 mode code {words}" in overview, "(attested)" in overview) == (
            differs,
            not differs,
        )


async def test_what_nobody_claims_is_listed_by_who_may_have_done_it() -> None:
    scene = job()
    scene.handoff("other", ago=40)
    scene.checked(RETURN, *claims(1), changed={"0.py": 50, "alone.py": 50, "among.py": 35, RETURN: 30})
    async with stage(scene=scene, size=(170, 40)) as s:
        await s.press("5")
        text = shown_text(s.details)
        alone = text[text.index("Unclaimed changes  1") : text.index("Unattributed changes  1")]
        assert "± alone.py" in alone
        assert "± among.py" in text[text.index("Unattributed changes  1") :]
        assert "± 0.py" not in text
        assert RETURN not in text
        assert "Attestation ±1" in s.text()


async def test_nothing_is_said_of_changes_where_there_are_none() -> None:
    scene = job()
    scene.checked(RETURN, *claims(1), changed={"0.py": 50})
    async with stage(scene=scene) as s:
        await s.press("5")
        assert "changes" not in shown_text(s.details)


async def test_claims_that_come_later_appear() -> None:
    async with stage(scene=job()) as s:
        await s.press("5")
        assert "Claims" not in shown_text(s.details)
        assert "enter inspect" not in s.text()
        s.scene.checked(RETURN, *claims(2))
        s.source.push(s.scene.take())
        await s.until(lambda: "Claims  2" in shown_text(s.details))
        await s.press("tab")
        assert "enter inspect" in s.text()


async def test_claims_that_are_not_checked_yet_do_not_look_like_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Monitor, "checks", True)
    async with stage(scene=job(), size=SMALL) as s:
        await s.press("5")
        await s.until(lambda: "Claims  not checked yet" in shown_text(s.details))
        s.scene.checked(RETURN)
        s.source.push(s.scene.take())
        await s.until(lambda: "Claims" not in shown_text(s.details))


async def test_the_cursor_goes_over_the_claims_and_stays_in_sight() -> None:
    scene = job()
    scene.checked(RETURN, *claims(30))
    async with stage(scene=scene, size=SMALL) as s:
        await s.press("5", "tab")
        while "0.py" not in under_cursor(s):
            await s.press("j")
        for number in range(1, 30):
            await s.press("down" if number % 2 else "j")
            assert f"{number}.py" in under_cursor(s)
        await s.press("k")
        assert "28.py" in under_cursor(s)
        await s.press("home")
        assert page(s).scroll_offset.y == 0
        await s.press("end")
        assert "29.py" in under_cursor(s)


async def test_the_cursor_is_bound_to_its_claim() -> None:
    scene = job()
    scene.checked(RETURN, *claims(5))
    async with stage(scene=scene) as s:
        await s.press("5", "tab", "j", "j")
        assert "2.py" in under_cursor(s)
        lie = Claim("modified", "lie.py", Verdict.CONTRADICTED, "missing", None, "lie.py")
        s.scene.checked(RETURN, *claims(5), lie)
        s.source.push(s.scene.take())
        await s.until(lambda: "lie.py" in shown_text(s.details))
        assert "2.py" in under_cursor(s)
        s.scene.checked(RETURN, *claims(2), lie)
        s.source.push(s.scene.take())
        await s.until(lambda: "2.py" not in shown_text(s.details))
        assert "1.py" in under_cursor(s)


async def test_without_the_focus_there_is_no_cursor() -> None:
    scene = job()
    scene.checked(RETURN, *claims(5))
    async with stage(scene=scene) as s:
        await s.press("5", "tab")
        assert under_cursor(s)
        await s.press("tab")
        assert not under_cursor(s)


async def test_a_click_chooses_a_claim_and_two_open_it() -> None:
    scene = job()
    scene.checked(RETURN, *claims(5))
    async with stage(scene=scene) as s:
        await s.press("5")
        row = next(y for y, line in enumerate(s.text().splitlines()) if "3.py" in line)
        await s.pilot.click(offset=(90, row))
        await s.pilot.pause()
        assert "3.py" in under_cursor(s)
        await s.pilot.click(offset=(90, row), times=2)
        await s.pilot.pause()
        assert isinstance(s.app.screen, InspectScreen)
        await s.until(lambda: "There is no such file now." in s.text())
        assert "3.py" in s.text()


async def test_on_a_screen_of_its_own_the_keys_are_the_same() -> None:
    scene = job()
    scene.checked(RETURN, *claims(3))
    async with stage(scene=scene, size=(80, 24)) as s:
        await s.press("enter", "5")
        await s.until(lambda: "enter inspect" in s.text())
        await s.press("1")
        await s.until(lambda: "enter inspect" not in s.text())
        await s.press("5", "enter")
        assert isinstance(s.app.screen, InspectScreen)
        await s.press("escape", "escape")
        assert s.app.screen is s.main
