"""Requests on the screen: what presses most is found first, and told apart from others."""

import time

from tests.app.test_requests import WORKING, asking, permission
from tests.journeys.made import handoff

from agentwatch.delegation.request import RequestKind


async def test_a_request_says_how_long_it_can_be_answered(tmp_path):
    now = time.time()
    files = {**WORKING, "ui.handoff.json": handoff("shop.ui")}
    soon = permission(tmp_path, "git push", session_id="shop.ui", asked_at=now - 5, until=now + 90)
    async with asking(tmp_path, permission(tmp_path, "ls"), soon, files=files, size=(80, 11)) as (s, _):
        # The other one is newer, and waits for as long as it takes; so, too, where the cursor is on it.
        await s.until(lambda: "■ shop.ui  allow? Bash  git push" in s.text() and "1m left" in s.text())
        s.tree.select("shop.api")
        await s.until(lambda: "▌" in s.line("■ shop.api"))
        assert "■ shop.ui  allow? Bash  git push" in s.text()


async def test_a_form_asks_and_is_no_permission(tmp_path):
    form = permission(tmp_path, "Which colour?", kind=RequestKind.FORM, actions=(), why_not="it is filled in there")
    async with asking(tmp_path, form) as (s, _):
        await s.until(lambda: "its program has a form" in s.text())
        assert "NEEDS YOU  asks" in s.text()
        assert "fill in? Bash" in s.words
        assert "allow?" not in s.text()
