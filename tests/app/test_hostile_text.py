"""Foreign text in every place: the app lives, only plain characters are drawn, and no markup becomes an action."""

import pytest
from rich.segment import Segment
from rich.style import Style
from textual.color import Color
from textual.content import Content
from textual.widgets import Static

from agentwatch.app.terminal import TerminalGuard
from agentwatch.contracts.shapes import Outcome
from agentwatch.sources import Health
from tests.app.scenes import HOSTILE, Scene
from tests.app.stage import Stage, stage


def poisoned(*texts: str) -> Scene:
    """Each text in every field that a document has."""
    scene = Scene()
    for text in texts:
        scene.handoff(f"root {text}", text, done="x- ")
        for state in ("failed", "blocked"):
            scene.handoff(f"{state} {text}", text, parent=f"root {text}")
        said = {"agent": text, "summary": text, "hint": text, "code": text, "retry": True, "created": (text,)}
        scene.returned(f"failed {text}", Outcome.FAILED, **said)
        scene.returned(f"blocked {text}", Outcome.BLOCKED, agent=text, blockers=(text, text))
        scene.unreadable(f"returns/{text}.return.md", text)
    return scene


def check(s: Stage):
    for strip in s.strips():
        for segment in strip:
            assert segment.text.isprintable(), segment
            assert segment.style is None or segment.style.link is None
            assert segment.style is None or "@click" not in segment.style.meta


@pytest.mark.parametrize("size", [(80, 24), (140, 40)])
async def test_hostile_text_is_only_text(size):
    texts = list(HOSTILE.values())[size[0] == 80 :: 2]
    text = texts[0] + texts[2]
    health = Health("degraded", f"cannot watch {text}")
    async with stage(scene=poisoned(*texts), size=size, health=health, workspace=f"/home/kim/{text[:80]}") as s:
        for other in texts:
            check(s)
            s.tree.select(f"failed {other}")
            assert s.cursor == f"failed {other}"
            for key in ("enter", *"23456", "escape", "c"):
                await s.press(key)
                check(s)
        for keys in (["!"], ["escape", "C"], ["/", "r", "o"], ["enter", "s"]):
            await s.press(*keys)
            check(s)
        assert s.app.is_running
        assert not s.app._exit


def test_the_guard_replaces_the_unprintable_and_takes_links_away():
    segments = [
        Segment("plain ✓ 日本"),
        Segment("a\x1b[31mb\u202e\n"),
        Segment("link", Style(link="https://evil.example", bold=True)),
    ]
    kept, replaced, unlinked = TerminalGuard().apply(segments, Color(0, 0, 0))
    assert kept is segments[0]
    assert replaced.text == "a�[31mb� "
    assert unlinked.style is not None
    assert unlinked.style.link is None
    assert unlinked.style.bold


async def test_the_guard_stands_behind_every_widget():
    async with stage(size=(80, 24)) as s:
        await s.main.mount(Static(Content("\x1b]0;x\x07")))
        await s.until(lambda: "�]0;x" in s.text())
        check(s)
