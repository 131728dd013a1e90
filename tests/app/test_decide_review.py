"""Several tasks are decided one after another, each with a look and a key of its own."""

from __future__ import annotations

from pathlib import Path

from tests.app.deciding import Office, handoff, office, returned
from tests.app.stage import stage

from agentwatch.delegation.decision import Action

THREE = {
    f"{name}.{kind}": text
    for name in ("a", "b", "c")
    for kind, text in (("handoff.json", handoff(name)), ("return.md", returned(task_id=name)))
}


async def reviewed(s: Office, place: str) -> None:
    await s.until(lambda: s.in_dialog and place in s.text().splitlines()[bottom(s)])


def bottom(s: Office) -> int:
    return next((number for number, line in enumerate(s.text().splitlines()) if "╚" in line), 0)


async def test_a_review_goes_through_all_that_need_the_operator(tmp_path: Path) -> None:
    async with office(tmp_path, THREE) as s:
        await s.until(lambda: len(s.app.monitor.tree.asking()) == 3)
        asking = [task.task_id for task in s.app.monitor.tree.asking()]
        await s.press("R")
        await reviewed(s, "1 of 3")
        # Why it is there, and that something else can be decided.
        question = s.app.monitor.tree.tasks[asking[0]].question or ""
        assert question
        assert question[:40] in s.text()
        assert "f2" in s.text().splitlines()[-1]
        # The key that was held down for the first decides nothing about the second.
        await s.ready()
        await s.press("ctrl+s")
        await reviewed(s, "2 of 3")
        await s.press("ctrl+s", "ctrl+s")
        assert [entry.record.task_id for entry in s.entries()] == asking[:1]
        await s.press("ctrl+n")
        await reviewed(s, "3 of 3")
        await s.record()
        assert not s.in_dialog
        assert [entry.record.task_id for entry in s.entries()] == [asking[0], asking[2]]
        assert {entry.record.action for entry in s.entries()} == {Action.RETRY}
        assert "Review over: 2 decided, 1 left as they were." in s.toasts


async def test_escape_ends_the_review(tmp_path: Path) -> None:
    async with office(tmp_path, THREE) as s:
        await s.until(lambda: len(s.app.monitor.tree.asking()) == 3)
        await s.press("R")
        await reviewed(s, "1 of 3")
        await s.press("escape")
        assert not s.in_dialog
        assert s.entries() == ()
        await s.until(lambda: "Review over: 0 decided, 3 left as they were." in s.toasts)


async def test_marked_tasks_are_reviewed_in_the_order_of_their_marks(tmp_path: Path) -> None:
    async with office(tmp_path, THREE) as s:
        await s.until(lambda: len(s.app.monitor.tree.asking()) == 3)
        for task_id in ("c", "a", "b"):
            s.tree.select(task_id)
            await s.press("m")
        await s.press("m")
        assert s.tree.marked == ("c", "a")
        assert s.line(" c ").startswith("◆")
        await s.press("R")
        await reviewed(s, "1 of 2")
        assert "“c”" in s.line("task ")
        await s.record()
        await reviewed(s, "2 of 2")
        # What is decided is marked no more; what is left stays marked.
        await s.press("ctrl+n")
        assert s.tree.marked == ("a",)


async def test_a_task_that_somebody_decided_meanwhile_is_left_out(tmp_path: Path) -> None:
    async with office(tmp_path, THREE) as s:
        await s.until(lambda: len(s.app.monitor.tree.asking()) == 3)
        first, second, _ = s.app.monitor.tree.asking()
        subject = s.desk.subject(second)
        await s.press("R")
        await reviewed(s, "1 of 3")
        s.another_desk().decide(subject, Action.ABORT, returned=lambda: subject.return_sha256)
        await s.until(lambda: s.app.monitor.tree.tasks[second.task_id].decision)
        await s.press("ctrl+n")
        await reviewed(s, "3 of 3")
        assert "already decided" in s.toasts
        assert first.task_id != second.task_id


async def test_nothing_can_be_decided_where_nobody_would_carry_it_out() -> None:
    async with stage() as s:
        assert " r retry " not in s.text()
        await s.press("r")
        await s.until(lambda: "Nothing can be decided here" in s.text())
