"""Pictures of the whole screen, the clock standing still. `pytest tests/snapshots --snapshot-update` renews them."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from time import monotonic

import pytest
from tests.app.scenes import LIVE, NOW, Scene, ToldSource, monitor_of, shop, two_days
from tests.unit.delegation import asking
from textual.pilot import Pilot
from textual.widgets import Input

from agentwatch.app.app import AgentwatchApp
from agentwatch.app.dialogs.decision import DecisionScreen
from agentwatch.app.dialogs.document import Document
from agentwatch.app.dialogs.request import RequestScreen
from agentwatch.app.screens.main import MainScreen
from agentwatch.app.widgets.details.page import Page
from agentwatch.app.widgets.task_tree import TaskTree
from agentwatch.config import Settings
from agentwatch.contracts.shapes import Outcome
from agentwatch.decisions.desk import Desk
from agentwatch.delegation.claims import Claim, Verdict
from agentwatch.delegation.observation import Observation
from agentwatch.delegation.request import Option, Query, Request
from agentwatch.monitor import Monitor
from agentwatch.sources.health import Health

Compare = Callable[..., bool]


@pytest.fixture(autouse=True)
def utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def app_on(observations: tuple[Observation, ...], theme: str | None = None, health: Health = LIVE) -> AgentwatchApp:
    monitor, _source = monitor_of(observations, settings=Settings(theme=theme), health=health)
    return AgentwatchApp(monitor, clock=lambda: NOW)


def pressing(*keys: str) -> Callable[[Pilot[None]], object]:
    """Wait until everything stands, then press the keys."""

    async def press(pilot: Pilot[None]) -> None:
        app = pilot.app
        assert isinstance(app, AgentwatchApp)
        end = monotonic() + 10
        main = app.screen
        assert isinstance(main, MainScreen)
        while main.details is None or not app.is_settled:
            assert monotonic() < end
            await pilot.pause(0.01)
        for key in keys:
            await pilot.press(key)
            await pilot.pause()
        await pilot.pause(0.05)
        # What a thread reads is there.
        while any("reading…" in strip.text for strip in app.screen._compositor.render_strips()):
            assert monotonic() < end
            await pilot.pause(0.01)

    return press


@pytest.mark.parametrize("theme", ["agentwatch-dark", "agentwatch-light", "agentwatch-contrast", "agentwatch-ansi"])
def test_wide(snap_compare: Compare, theme: str) -> None:
    assert snap_compare(app_on(shop().take(), theme), terminal_size=(140, 40), run_before=pressing("n"))


@pytest.mark.parametrize("size", [(80, 24), (40, 12)], ids=["80x24", "40x12"])
def test_narrow(snap_compare: Compare, size: tuple[int, int]) -> None:
    assert snap_compare(app_on(shop().take()), terminal_size=size, run_before=pressing("n"))


def test_a_page_of_details(snap_compare: Compare) -> None:
    assert snap_compare(app_on(shop().take()), terminal_size=(80, 24), run_before=pressing("n", "enter"))


FIRST, SECOND = "returns/api1.return.md", "returns/api2.return.md"
TEXT = """## Status
state: {state}
summary: {summary}

## Evidence
- pytest: {tests}

## Runtime Attestation
runtime_model_reported: openai/gpt-5.2
runtime_mode_reported: code
files_created:
- src/api.py
- tests/test_api.py
files_modified:
- (none)
limitations:
- Refunds are not there yet.
"""
PACKET = """{{
  "task_id": "api",
  "objective": "{objective}",
  "constraints": ["No new dependencies"],
  "notes": [{notes}]
}}
"""


def retried(workspace: Path) -> AgentwatchApp:
    """A task that was retried and now says that a part is done; two of its claims are in doubt."""
    scene = Scene()
    scene.handoff("api", "Build the checkout API", ago=900, attempt=1, mode="code")
    scene.returned("api", Outcome.FAILED, ago=600, attempt=1, summary="The migration timed out.")
    scene.handoff("api", "Build the checkout API, schema first", ago=500, attempt=2, mode="architect")
    limits = ("Refunds are not there yet.",)
    scene.returned("api", Outcome.PARTIAL, ago=120, attempt=2, summary="The endpoint answers 201.", limits=limits)
    scene.handoff("docs", "Write the guide", ago=200)
    scene.checked(
        SECOND,
        Claim("created", "src/api.py", Verdict.VERIFIED, "exists, new since the handoff", None, "src/api.py"),
        Claim("created", "tests/test_api.py", Verdict.CONTRADICTED, "missing: no such file in the workspace"),
        Claim("evidence", "src/api.py", Verdict.VERIFIED, "exists, with lines 5-6", (5, 6), "src/api.py"),
        Claim("evidence", "pytest: 14 passed", Verdict.UNVERIFIABLE, "a command, a result or a reference, not a path"),
        changed={"src/api.py": 400, "config.toml": 400, "src/other.py": 150},
    )
    monitor, source = monitor_of(scene.take(), workspace=str(workspace))
    first = TEXT.format(state="ERROR", summary="The migration timed out.", tests="2 passed, 12 failed")
    second = TEXT.format(state="PARTIAL", summary="The endpoint answers 201.", tests="14 passed")
    asked = PACKET.format(objective="Build the checkout API", notes='"Prices are in cents"')
    amended = PACKET.format(
        objective="Build the checkout API, schema first", notes='"Prices are in cents", "The time-out is 600 s now"'
    )
    handoffs = (scene.digests[f"handoffs/api{number}.handoff.md"] for number in (1, 2))
    texts = (asked, amended, first, second)
    source.texts = dict(zip((*handoffs, scene.digests[FIRST], scene.digests[SECOND]), texts, strict=True))
    return AgentwatchApp(monitor, clock=lambda: NOW)


@pytest.mark.parametrize("size", [(140, 40), (80, 24)], ids=["140x40", "80x24"])
@pytest.mark.parametrize("keys", [("5", "tab", "j"), ("7",)], ids=["attestation", "attempts"])
def test_what_is_claimed_and_what_was_changed(
    snap_compare: Compare, size: tuple[int, int], keys: tuple[str, ...]
) -> None:
    pressed = keys if size[0] > 100 else tuple(key for key in keys if key != "tab")
    assert snap_compare(retried(Path("/home/kim/shop")), terminal_size=size, run_before=pressing(*pressed))


def test_an_inspected_file(snap_compare: Compare, tmp_path: Path) -> None:
    workspace = tmp_path / "shop"
    (workspace / "src").mkdir(parents=True)
    lines = ["from decimal import Decimal", "", "", "def total(cart: dict[str, int]) -> int:", "    # Cents, always."]
    (workspace / "src" / "api.py").write_text("\n".join([*lines, '    return sum(cart.values())  # "int"', ""]))
    keys = pressing("5", "tab", "j", "j", "j", "enter")
    assert snap_compare(retried(workspace), terminal_size=(100, 20), run_before=keys)


def deciding(theme: str | None = None, *more: Observation) -> AgentwatchApp:
    """The sketch's session with a desk, on which nothing was decided yet. Its arming clock is always far ahead."""
    scene = shop()
    source = ToldSource((*scene.take(), *more))
    packet = {"task_id": "checkout.implement.api", "objective": "Build the checkout API against schema v3"}
    evidence = [{"path": "docs/api.md", "purpose": "the design", "required": True}]
    rest = {"evidence": evidence, "success_criteria": ["The tests pass"], "risks": [], "notes": ["Prices are in cents"]}
    source.texts[scene.digests["handoffs/checkout.implement.api.handoff.md"]] = json.dumps(packet | rest, indent=2)
    workspace, home = Path("/home/kim/shop"), Path("/home/kim")
    desk = Desk(workspace, state=home / "state", configuration=home / "configuration", read_only=True)
    monitor = Monitor(workspace, Settings(theme=theme), source, lambda: NOW, open_desk=lambda: desk)
    return AgentwatchApp(monitor, clock=lambda: NOW, steady=count().__next__)


async def until_checked(pilot: Pilot[None], words: str) -> None:
    """Wait until these words are in the document, it was checked, and the return was read."""
    end = monotonic() + 10
    document, said = pilot.app.screen.query_one(Document), pilot.app.screen.query_one("#words Page", Page)
    while words not in document.text or document.problems != [] or not said.lines:
        assert monotonic() < end
        await pilot.pause(0.01)
    await pilot.pause(0.1)


@pytest.mark.parametrize("size", [(140, 40), (80, 24), (40, 12)], ids=["140x40", "80x24", "40x12"])
@pytest.mark.parametrize(
    "keys", [("r", *"schema v3 is in db/", "ctrl+t"), ("x", "right", "tab", *"out of scope")], ids=["retry", "abort"]
)
def test_a_decision(
    snap_compare: Compare, size: tuple[int, int], keys: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    # The operator's name stands in the report.
    monkeypatch.setenv("LOGNAME", "kim")

    async def press(pilot: Pilot[None]) -> None:
        app = pilot.app
        assert isinstance(app, AgentwatchApp)
        await pressing()(pilot)
        app.screen.query_one(TaskTree).select("checkout.implement.api")
        end = monotonic() + 10
        while app.monitor.clerk is None:
            assert monotonic() < end
            await pilot.pause(0.01)
        await pilot.press(keys[0])
        while not isinstance(app.screen, DecisionScreen):
            assert monotonic() < end
            await pilot.pause(0.01)
        for field in app.screen.query(Input):
            field.cursor_blink = False
        await pilot.press(*keys[1:])
        await until_checked(pilot, "".join(key for key in keys[1:] if len(key) == 1))

    assert snap_compare(deciding(), terminal_size=size, run_before=press)


COMMAND = """npm test -- --watch=false &&
  rm -rf node_modules/.cache"""
PERMISSION = asking.request(
    7,
    COMMAND,
    session_id="checkout.implement.ui",
    asked_at=NOW - 41,
    until=NOW + 20,
    prompt_hidden=True,
    said="Runs the tests once, and clears the cache",
    words=True,
    rules=("Bash(npm test *)",),
    ends_others=1,
    covered_by="the rule Bash(npm *)",
)
QUESTION = asking.question(
    8,
    session_id="checkout.implement.ui",
    asked_at=NOW - 41,
    queries=(
        Query("Which store?", "Store", (Option("SQLite", "One file, no server."), Option("Redis"))),
        Query("Which checks?", options=(Option("Lint"), Option("Types")), several=True),
    ),
    words=True,
)


@pytest.mark.parametrize(
    ("theme", "size"),
    [
        ("agentwatch-dark", (140, 40)),
        ("agentwatch-light", (140, 40)),
        ("agentwatch-dark", (80, 24)),
        ("agentwatch-ansi", (40, 12)),
    ],
    ids=["dark-140x40", "light-140x40", "dark-80x24", "ansi-40x12"],
)
@pytest.mark.parametrize(
    ("asked", "keys"),
    [(PERMISSION, ("space",)), (QUESTION, ("down", "tab", "tab", "down", "space"))],
    ids=["permission", "question"],
)
def test_a_request(
    snap_compare: Compare, asked: Request, keys: tuple[str, ...], theme: str, size: tuple[int, int]
) -> None:
    async def press(pilot: Pilot[None]) -> None:
        app = pilot.app
        assert isinstance(app, AgentwatchApp)
        await pressing()(pilot)
        end = monotonic() + 10
        while app.monitor.clerk is None or not app.monitor.tree.requests:
            assert monotonic() < end
            await pilot.pause(0.01)
        await pilot.press("a")
        while not isinstance(app.screen, RequestScreen) or app.screen.seen_at is None:
            assert monotonic() < end
            await pilot.pause(0.01)
        for field in app.screen.query(Input):
            field.cursor_blink = False
        await pilot.press(*keys)
        await pilot.pause(0.2)

    assert snap_compare(deciding(theme, asking.requested(asked)), terminal_size=size, run_before=press)


def test_a_filter(snap_compare: Compare) -> None:
    assert snap_compare(app_on(shop().take()), terminal_size=(80, 24), run_before=pressing("/", *"code", "enter"))


def test_collapsed(snap_compare: Compare) -> None:
    assert snap_compare(app_on(shop().take()), terminal_size=(80, 24), run_before=pressing("C", "l", "C"))


def test_help(snap_compare: Compare) -> None:
    assert snap_compare(app_on(shop().take()), terminal_size=(100, 60), run_before=pressing("?"))


@pytest.mark.parametrize("theme", ["agentwatch-dark", "agentwatch-light", "agentwatch-ansi"])
def test_the_timeline(snap_compare: Compare, theme: str) -> None:
    assert snap_compare(app_on(shop().take(), theme), terminal_size=(140, 40), run_before=pressing("n", "t"))


def test_the_timeline_of_two_days(snap_compare: Compare) -> None:
    assert snap_compare(app_on(two_days().take()), terminal_size=(80, 24), run_before=pressing("t", "j"))


def test_an_empty_workspace(snap_compare: Compare) -> None:
    health = Health("polling", "the kernel's watch limit is reached: raise fs.inotify.max_user_watches")
    assert snap_compare(app_on((), health=health), terminal_size=(120, 24), run_before=pressing())


@pytest.mark.parametrize("size", [(140, 40), (80, 24)], ids=["140x40", "80x24"])
def test_a_query_with_a_wrong_word(snap_compare: Compare, size: tuple[int, int]) -> None:
    keys = [*"agent:code", "space", *"stat:failed"]
    assert snap_compare(app_on(shop().take()), terminal_size=size, run_before=pressing("/", *keys))
