"""A claim that rests on a command: the call is shown with its verdict, its place and what came of it, safely."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.app.scenes import NOW, Scene
from tests.app.stage import Stage, stage

from agentwatch.app.screens.step import StepScreen
from agentwatch.delegation.claims import Call, Claim, Deed, DeedKind, Verdict
from agentwatch.sources.sessions.doing import Ended, Entry, EntryKind
from agentwatch.sources.sessions.following import RunTranscript

RETURN = "returns/job.return.md"
CALL = Call("claude-code", "child", (1, 0), (1, 1), NOW - 40)
LIE = Claim("evidence", "`pytest -q` 412 passed", Verdict.CONTRADICTED, "its output says 399", call=CALL)
COMMANDS = [("ls", 0, "src"), ("pytest -q", 1, "[@click=app.quit()]13 failed[/]\x1b[31m, 399 passed in 4.00s")]


class MadeTranscript(RunTranscript):
    """The commands as the records of a transcript, two seconds each."""

    def records(self) -> Iterator[tuple[int, Sequence[Entry]]]:
        for number, (line, code, output) in enumerate(COMMANDS):
            at, call = 1_000.0 + 2 * number, f"call-{number}"
            began = Entry(at, EntryKind.CALL, call=call, tool="Bash", given={"command": line}, cwd="/shop")
            ended = Ended(code, output)
            over = Entry(at + 1, EntryKind.RESULT, output, call=call, failed=bool(code), ended=ended)
            yield number, [began, over]

    def entries(self) -> Iterator[Entry]:
        return (entry for _, record in self.records() for entry in record)

    def _read(self) -> bool:
        return False

    def _entries_at(self, place: int) -> Sequence[Entry]:
        return next(record for at, record in self.records() if at == place)


def scene_of(*claims: Claim, unsaid: tuple[Deed, ...] = ()) -> Scene:
    scene = Scene()
    scene.handoff("job", ago=60)
    scene.returned("job", ago=30)
    scene.ran("child", source="claude-code")
    scene.checked(RETURN, *claims, unsaid=unsaid)
    return scene


async def until(s: Stage, words: str) -> None:
    await s.until(lambda: words in s.text())


async def test_enter_shows_the_call_that_a_claim_rests_on(tmp_path: Path) -> None:
    scene = scene_of(LIE)
    async with stage(scene=scene, observations=scene.take(), workspace=str(tmp_path), size=(120, 30)) as s:
        s.source.transcripts["child"] = lambda: MadeTranscript(Path())
        s.tree.select("job")
        await s.press("5", "tab", "enter")
        assert isinstance(s.app.screen, StepScreen)
        await until(s, "pytest -q")
        shown = s.text()
        assert "⚑ false   evidence   its output says 399" in shown
        assert "Bash" in shown
        assert "✗ failed" in shown
        assert "in child.jsonl, byte 1" in shown
        # What it printed is neither obeyed nor passed on.
        assert "[@click=app.quit()]13 failed[/]" in shown
        assert "\x1b" not in shown
        await s.press("escape")
        assert not isinstance(s.app.screen, StepScreen)


async def test_a_transcript_that_is_gone_is_said_to_be(tmp_path: Path) -> None:
    scene = scene_of(LIE)
    async with stage(scene=scene, observations=scene.take(), workspace=str(tmp_path), size=(120, 30)) as s:
        s.tree.select("job")
        await s.press("5", "tab", "enter")
        await until(s, "Its transcript is not to be had any more")


async def test_what_was_done_and_not_said_is_listed_and_shown(tmp_path: Path) -> None:
    deed = Deed(DeedKind.PUSH, "git push [b]origin[/b]", CALL)
    scene = scene_of(unsaid=(deed,))
    async with stage(scene=scene, observations=scene.take(), workspace=str(tmp_path), size=(120, 30)) as s:
        s.source.transcripts["child"] = lambda: MadeTranscript(Path())
        s.tree.select("job")
        await s.press("5")
        await until(s, "Done and not said  1")
        assert "push        git push [b]origin[/b]" in s.text()
        await s.press("tab", "enter")
        await until(s, "in child.jsonl, byte 1")
