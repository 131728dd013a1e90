"""What happens in which order while the app starts."""

from __future__ import annotations

import asyncio

from tests.app.scenes import monitor_of, shop

from agentwatch.app.app import AgentwatchApp


async def test_the_first_frame_is_told_before_the_first_scan_begins_and_its_end_is_told() -> None:
    monitor, _ = monitor_of(shop().take())
    app = AgentwatchApp(monitor)
    told: list[tuple[str, bool]] = []
    settled = asyncio.Event()
    app.when_shown = lambda: told.append(("shown", bool(monitor.tree.tasks)))

    def settle() -> None:
        told.append(("settled", bool(monitor.tree.tasks)))
        settled.set()

    app.when_settled = settle
    async with app.run_test():
        await asyncio.wait_for(settled.wait(), 30)
    assert told == [("shown", False), ("settled", True)]
