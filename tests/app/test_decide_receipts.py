"""How far a decision has got stands on its task: in its row, in its details, in the attempts."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.app.scenes import NOW, Scene
from tests.app.stage import Stage, stage

from agentwatch.app.decision_words import receipt_line, short, warning
from agentwatch.contracts.shapes import Outcome
from agentwatch.delegation.decision import Action, Decision, Receipt
from agentwatch.delegation.decision import Stage as Step
from agentwatch.delegation.observation import Decided
from agentwatch.view.words import UNREAD_SECONDS

API = "checkout.implement.api"


def decision(*steps: tuple[Step, float], action: Action = Action.RETRY, **changes: object) -> Decision:
    """A decision about the failed task of the sketch; each step with its age in seconds."""
    receipts = tuple(Receipt(step, NOW - age, "agentwatch wait" if step is Step.READ else "") for step, age in steps)
    return Decision(
        decision_id="d1",
        task_id=API,
        attempt=1,
        handoff_sha256=None,
        return_sha256=None,
        action=action,
        at=receipts[0].at,
        receipts=receipts,
        note="use v3",
        **changes,
    )  # type: ignore[arg-type]


RECORDED, DELIVERED, READ, ACTED = Step.RECORDED, Step.DELIVERED, Step.READ, Step.ACTED


@pytest.mark.parametrize(
    ("made", "line", "row"),
    [
        (decision((RECORDED, 9)), "retry · recorded 9s ago", "∙ recorded"),
        (
            decision((RECORDED, 130), (DELIVERED, 130)),
            "retry · recorded 2m ago · delivered",
            "→ delivered",
        ),
        (
            decision((RECORDED, 130), (DELIVERED, 130), (READ, 12)),
            "retry · recorded 2m ago · delivered · read by agentwatch wait 12s ago · attempt 2 not seen yet",
            "◉ read 12s",
        ),
        (
            decision((RECORDED, 130), (DELIVERED, 130), (READ, 12), (ACTED, 0)),
            "retry · recorded 2m ago · delivered · read by agentwatch wait 12s ago · acted just now",
            "✓ acted",
        ),
        (decision((RECORDED, 700), (DELIVERED, 700)), "retry · recorded 11m ago · delivered", "! unread 11m"),
        (decision((RECORDED, 9), waits="recorded, not delivered: x"), "retry · recorded 9s ago", "! undelivered"),
        (
            decision((RECORDED, 9), action=Action.ESCALATE, mode="debug\x1b[2J"),
            "escalate to debug␛[2J · recorded 9s ago",
            "∙ recorded",
        ),
    ],
)
def test_a_decision_says_how_far_it_has_got(made: Decision, line: str, row: str) -> None:
    assert (receipt_line(made, NOW).plain, " ".join(short(made, NOW))) == (line, row)


def test_what_an_agent_only_says_is_told_as_that() -> None:
    made = decision((RECORDED, 9), (READ, 9))
    claimed = replace(made, receipts=(made.receipts[0], made.receipts[1]._replace(claimed=True)))
    assert "read by agentwatch wait (an agent says so)" in receipt_line(claimed, NOW).plain


def test_a_decision_that_nobody_reads_is_a_warning_with_the_way_to_fix_it() -> None:
    made = decision((RECORDED, 200), (DELIVERED, UNREAD_SECONDS - 1))
    assert warning(made, NOW) is None
    told = warning(made, NOW + 1)
    assert told is not None
    assert told.startswith("not read for 3m: is an agent waiting for it, with `agentwatch wait`?")
    assert warning(decision((RECORDED, 900), (DELIVERED, 900), (READ, 800)), NOW) is None


async def decided(s: Stage, made: Decision) -> None:
    """Let the tree know of a decision about the return that is there."""
    latest = s.app.monitor.tree.tasks[API].latest
    assert latest is not None
    assert latest.handoff is not None
    assert latest.returned is not None
    about = replace(made, handoff_sha256=latest.handoff.digest, return_sha256=latest.returned.digest)
    s.source.push([Decided(0, about.at, about.decision_id, about)])
    await s.until(lambda: s.app.monitor.tree.tasks[API].decision)


async def test_the_row_tells_of_the_decision_instead_of_the_ask() -> None:
    async with stage() as s:
        s.tree.select(API)
        await s.until(lambda: "NEEDS YOU" in s.line("▌"))
        await decided(s, decision((RECORDED, 20), (DELIVERED, 20)))
        await s.until(lambda: "→ delivered" in s.line("▌"))
        assert "NEEDS YOU" not in s.line("▌")
        await s.until(lambda: "retry · recorded 20s ago · delivered" in s.text())


async def test_its_age_goes_on_and_becomes_a_warning() -> None:
    now = [NOW]
    async with stage(clock=lambda: now[0]) as s:
        s.tree.select(API)
        await decided(s, decision((RECORDED, 20), (DELIVERED, 20)))
        await s.until(lambda: "→ delivered" in s.line("▌"))
        now[0] += 200
        s.main.tick()
        await s.until(lambda: "! unread 3m" in s.line("▌"))
        await s.until(lambda: "not read for 3m: is an agent waiting" in s.text())


@pytest.mark.parametrize("size", [(140, 40), (80, 24)])
async def test_the_attempts_say_what_was_decided_about_each(size: tuple[int, int]) -> None:
    async with stage(size=size) as s:
        s.tree.select(API)
        await decided(s, decision((RECORDED, 20), (DELIVERED, 20), (READ, 10), (ACTED, 5)))
        s.scene.handoff(API, "Build it, schema first", ago=5, attempt=2)
        s.scene.returned(API, Outcome.WORKING, ago=1, attempt=2)
        await s.see(API)
        await s.press("7")
        await s.until(lambda: "decided retry · recorded 20s ago" in s.text())
        # The row is that of the next attempt.
        assert "acted" not in next(line for line in s.text().splitlines() if "api" in line)


async def test_notices_of_the_ledger_are_told_once_and_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    notices: list[str] = []
    monkeypatch.setattr("agentwatch.monitor.Monitor.notices", property(lambda _monitor: notices))
    async with stage(scene=Scene(), observations=Scene().take()) as s:
        notices.append("the ledger is damaged: \x1b[2J put it back")
        s.main.tick()
        s.main.tick()
        await s.until(lambda: "the ledger is damaged: ␛[2J" in s.text())
        assert len(s.app._notifications) == 1
        await s.press("!")
        # In the list, and in the notification, which both screens show in one place.
        await s.until(lambda: s.text().count("the ledger is damaged") == 2)
