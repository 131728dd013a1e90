"""An operator who looks elsewhere is notified once, for several tasks together, in harmless words, and by one route."""

import re
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from unicodedata import category

import pytest
from textual import events
from textual.message import Message

from agentwatch.app.notifying import (
    MIN_OPEN,
    PAUSE,
    START,
    NotificationQueue,
    Notifier,
    desktop_command,
    notification_sequence,
    notification_words,
)
from agentwatch.config import Settings
from agentwatch.contracts.shapes import Outcome
from agentwatch.delegation.decision import Request
from agentwatch.delegation.events import RunState, Verdict
from agentwatch.delegation.standing import request_words
from agentwatch.delegation.task import Attempt, Shown, State, Task
from agentwatch.sources import Batch
from tests.app.scenes import NOW, Scene, monitor_of
from tests.app.stage import stage
from tests.unit.delegation.asking import request
from tests.unit.delegation.events import ROOT, ran

EVIL = "\x1b]0;owned\x07\x9b;777;\\033<b>&lt;\u202e\n\r\t--exec='x' \U000e0041"


class Screen:
    """A queue of notifications with a clock, and tasks that change."""

    def __init__(self):
        self.at = 100.0
        self.tasks: dict[str, Task] = {}
        self.queue = NotificationQueue(self.at, NOW)
        self.queue.set_focus(here=False)

    def ask(self, task_id: str, ask: str = "retry?", *requests: Request, attempt: int = 1, ago: float = 0) -> Task:
        task = Task(task_id, task_id, updated_at=NOW - ago, attempts=[Attempt(attempt, State.FAILED)])
        task.question = task.ask = request_words(requests[0]) if requests else ask
        task.requests, task.own_state = requests, State.BLOCKED if requests else State.FAILED
        self.tasks[task_id] = task
        assert self.after(0) == []
        return task

    def after(self, seconds: float) -> list[str]:
        """Let time pass, and return the ids of the tasks about which the operator is then notified."""
        self.at += seconds
        return [task.task_id for task in self.queue.take_due(self.at, list(self.tasks.values()))]


def told(seconds: float, *tasks: str) -> Callable[[Screen], object]:
    def check(screen: Screen):
        assert screen.after(seconds) == [*tasks]

    return check


def ask(*given: str, attempt: int = 1, ago: float = 0) -> Callable[[Screen], object]:
    return lambda screen: screen.ask(*given[:2], attempt=attempt, ago=ago)


def look(*, here: bool) -> Callable[[Screen], object]:
    return lambda screen: screen.queue.set_focus(here=here)


FIRST = [ask("api"), told(MIN_OPEN, "api")]
STORIES = {
    "once, after a while": [ask("api"), told(MIN_OPEN - 0.1), told(0.2, "api"), ask("api"), told(3_600)],
    "together": [ask("api"), told(1), ask("ui"), told(MIN_OPEN, "api", "ui")],
    "gone at once": [ask("api"), told(1), lambda screen: screen.tasks.clear(), told(60)],
    "a pause between two": [*FIRST, ask("ui"), told(PAUSE - 0.1), ask("docs"), told(MIN_OPEN, "ui", "docs")],
    "another question": [*FIRST, ask("api", "answer: which?"), told(PAUSE, "api")],
    "another attempt": [*FIRST, ask("api", attempt=2), told(PAUSE, "api")],
    "looked at": [look(here=True), ask("api"), told(MIN_OPEN), look(here=False), ask("ui"), told(MIN_OPEN, "ui")],
    "left too early": [look(here=True), ask("api"), told(MIN_OPEN / 2), look(here=False), told(MIN_OPEN, "api")],
    "there at the start": [
        ask("api", ago=5), told(START / 2), ask("ui", ago=START), ask("docs", ago=-1), told(PAUSE, "docs"),
        # This stands for an old return of which a claim has become false, which is news.
        told(START), ask("old", ago=3_600), told(PAUSE, "old"),
    ],
}  # fmt: skip


@pytest.mark.parametrize("name", STORIES)
def test_an_operator_is_notified_once_of_each_new_question(name):
    screen = Screen()
    for step in STORIES[name]:
        step(screen)


def test_without_focus_events_typing_delays_notifications():
    screen = Screen()
    screen.queue = NotificationQueue(screen.at, NOW)
    screen.ask("api")
    for _ in range(3):
        screen.queue.record_key(screen.at)
        assert screen.after(PAUSE - 1) == []
    assert screen.after(1) == ["api"]


def test_a_gone_process_and_another_turn_are_news():
    screen = Screen()
    one = screen.ask("api")
    changes: list[tuple[dict[str, object], list[str]]] = [
        ({}, ["api"]),
        ({"gone": True}, ["api"]),
        ({"attempts": [Attempt(1, run=replace(ROOT, updated_at=NOW))]}, ["api"]),
        ({"gone": False, "shown": Shown.IDLE}, ["api"]),
        ({"ended_at": NOW + 9}, ["api"]),
        ({"shown": Shown.FALSE, "verdict": Verdict.CONTRADICTED}, ["api"]),
        ({"ask": "two claims are false"}, []),
    ]
    one.attempts[0].run = ROOT
    for change, told_of in changes:
        for name, value in change.items():
            setattr(one, name, value)
        screen.after(0)
        assert screen.after(PAUSE) == told_of, change


def test_each_request_is_notified_once_with_its_command():
    screen = Screen()
    first, equal = request(1, "npm test", asked_at=NOW), request(2, "npm test", asked_at=NOW + 9)
    assert notification_words([screen.ask("api", "", first)], 0.0) == "api needs you: allow? Bash  npm test"
    assert screen.after(MIN_OPEN) == ["api"]
    screen.ask("api", "", equal, first)
    assert screen.after(PAUSE) == ["api"]
    # One of two requests that were already notified is no news.
    screen.ask("api", "", first)
    assert screen.after(PAUSE) == []
    # A new request is news, even if it equals the one before and follows at once.
    screen.ask("api", "", request(3, "npm test", asked_at=NOW + 19))
    assert screen.after(PAUSE) == ["api"]
    # Two new requests at once are one notification about their task.
    screen.ask("api", "", request(4, "npm test"), request(5, "npm run lint"))
    assert screen.after(PAUSE) == ["api"]


@pytest.mark.parametrize(("asked", "changed"), [(9, -9), (-9, 9)])
def test_questions_and_changes_since_the_start_are_news(asked, changed):
    screen = Screen()
    screen.ask("api", "", request(1, "npm test", asked_at=NOW + asked), ago=-changed)
    assert screen.after(MIN_OPEN) == ["api"]


def test_the_words_name_the_tasks_and_are_a_short_harmless_line():
    screen = Screen()
    tasks = [screen.ask(name, "retry? 1 retry left; really") for name in ("api", "ui", "docs", "db", "e2e")]
    assert notification_words(tasks[:1], 0.0) == "api needs you: retry? 1 retry left, really"
    assert notification_words(tasks[:3], 0.0) == "3 tasks need you: api, ui, docs"
    assert notification_words(tasks, 0.0) == "5 tasks need you: api, ui, docs and 2 more"
    tasks[0].shown = tasks[1].shown = Shown.IDLE
    assert notification_words(tasks[:2], 0.0) == "2 tasks have ended their turn: api, ui"
    assert notification_words(tasks[1:3], 0.0) == "docs needs you: retry? 1 retry left, really"
    assert (
        notification_words([Task("a", "api", host="build1", ask="x", question="x")], 0.0) == "build1: api needs you: x"
    )
    tasks = [Screen().ask(EVIL + "x" * 10_000 + str(n), EVIL + "y" * 100_000) for n in range(5)]
    for text in (notification_words(tasks, 0.0), notification_words(tasks[:1], 0.0)):
        assert not {character for character in text if category(character) in ("Cc", "Cf", "Zl", "Zp")}
        assert not set(";<>&\\") & set(text)
        assert len(text) < 300


@pytest.mark.parametrize(
    ("environment", "sequence"),
    [
        ({"TERM": "xterm-256color"}, "\x1b]777;notify;a b;c\x1b\\"),
        ({"TERM_PROGRAM": "iTerm.app"}, "\x1b]9;a b: c\x1b\\"),
        ({"LC_TERMINAL": "iTerm2", "SSH_CONNECTION": "1"}, "\x1b]9;a b: c\x1b\\"),
        ({"TMUX": "/tmp/tmux-1/default,1,0", "TERM_PROGRAM": "tmux"}, ""),
    ],
)
def test_a_terminal_is_asked_in_one_of_its_languages(environment, sequence):
    assert notification_sequence("a b", "c", environment) == sequence


SEND = ["notify-send", "--app-name=agentwatch", "--", "head", "text"]


@pytest.mark.parametrize(
    ("settings", "environment", "command"),
    [
        (Settings(), {"DISPLAY": ":0"}, SEND),
        (Settings(), {"WAYLAND_DISPLAY": "wayland-0"}, SEND),
        (Settings(), {}, None),
        (Settings(), {"DISPLAY": ":0", "PATH": "nowhere"}, None),
        (Settings(), {"DISPLAY": "localhost:10", "SSH_CONNECTION": "1"}, None),
        (Settings(notify_desktop=True), {}, SEND),
        (Settings(notify_desktop=False, notify_command=("ring",)), {"DISPLAY": ":0"}, None),
        (Settings(notify_command=("ring", "-x")), {}, ["ring", "-x", "head: text"]),
    ],
)
def test_the_desktop_is_notified_if_there_is_one(settings, environment, command, tmp_path):
    (tmp_path / "notify-send").touch(mode=0o755)
    made = desktop_command(settings, {"PATH": str(tmp_path)} | environment)
    assert (made and made("head", "text")) == command


class Operator:
    """A notifier on a workspace with failed tasks; the test holds its terminal, bell and clock."""

    def __init__(self, settings: Settings):
        self.at = 100.0
        self.written: list[str] = []
        self.monitor = monitor_of(settings=settings, workspace="/home/kim/my;shop")[0]
        clocks: dict[str, Callable[[], float]] = {"clock": lambda: NOW, "steady": lambda: self.at}
        write = self.written.append
        self.notifier = Notifier(self.monitor, write, lambda: write("bell"), environment={}, **clocks)
        self.notifier.queue.set_focus(here=False)
        self.notifier.notify()

    def fail(self, *task_ids: str):
        scene = Scene()
        for task_id in task_ids:
            scene.handoff(task_id, ago=10)
            scene.returned(task_id, Outcome.FAILED, ago=0)
        self.monitor.apply_batch(Batch(scene.take(), self.monitor.health))
        self.tell()

    def tell(self):
        for _ in range(2):
            self.notifier.notify()
            self.at += PAUSE


def until(holds: Callable[[], object]):
    end = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.01)


def ringing(log: Path) -> tuple[str, ...]:
    script = f"import sys; open({str(log)!r}, 'a').write(repr(sys.argv[1:]) + '\\n')"
    return (sys.executable, "-c", script)


TITLES = ["\x1b]0;agentwatch: my,shop\x1b\\", "\x1b]0;(1) agentwatch: my,shop\x1b\\"]
ASKED = "\x1b]777;notify;agentwatch my,shop;api needs you: retry, escalate or abort? 1 retry left\x1b\\"


@pytest.mark.parametrize(
    ("settings", "written"),
    [
        (Settings(), [*TITLES, "bell", ASKED]),
        (Settings(notify_terminal=True, notify_command=("true",), notify_title=False), ["bell", ASKED]),
        (Settings(notify_terminal=False, notify_title=False), ["bell"]),
    ],
)
def test_title_bell_and_terminal_follow_the_settings(settings, written):
    operator = Operator(settings)
    operator.fail("api")
    assert operator.written == written


def test_a_command_takes_the_place_of_the_terminal(tmp_path):
    log = tmp_path / "log"
    operator = Operator(Settings(notify_command=ringing(log), notify_bell=False, notify_title=False))
    operator.fail("api", "$(touch owned) `x 'y'")
    until(lambda: log.exists() and log.read_text())
    assert log.read_text() == repr(["agentwatch my,shop: 2 tasks need you: api, $(touch owned) `x 'y'"]) + "\n"
    assert operator.written == operator.monitor.notices == []


@pytest.mark.parametrize("command", [("no-such-program",), ("nul\0",), (sys.executable, "-c", "raise SystemExit(3)")])
def test_the_terminal_takes_the_place_of_a_command_that_fails(command):
    operator = Operator(Settings(notify_command=tuple(command)))
    operator.fail("api")
    until(lambda: operator.monitor.notices)
    assert operator.written == [*TITLES, "bell"]
    operator.fail("ui")
    assert operator.written[-1].startswith("\x1b]777;notify;agentwatch my,shop;ui needs you")
    assert [one[:40] for one in operator.monitor.notices] == ["No desktop notifications from now on: " + command[0][:2]]


async def test_the_app_hands_focus_keys_and_changes_on(tmp_path):
    at, log = [100.0], tmp_path / "log"
    log.touch()
    async with stage(scene=Scene(), settings=Settings(notify_command=ringing(log)), steady=lambda: at[0]) as s:
        told = []
        steps: list[tuple[Message | str, str, bool]] = [
            (events.AppBlur(), "away", True),
            (events.AppFocus(), "here", False),
            (events.AppBlur(), "left", True),
            ("j", "typing", False),
            (events.AppBlur(), "gone", True),
        ]
        for step, task_id, is_told in steps:
            await s.press(step) if isinstance(step, str) else s.app.post_message(step)
            s.scene.handoff(task_id, ago=1)
            s.scene.returned(task_id, Outcome.FAILED, ago=0)
            await s.see(task_id)
            for _ in range(2):
                assert s.app.notifier is not None
                s.app.notifier.notify()
                at[0] += PAUSE
            told.extend([task_id] * is_told)
            # The log has no other notifications, and each is about one task.
            await s.until(lambda: re.findall(r"shop: (\w+) needs you", log.read_text()) == told)


@pytest.mark.parametrize("turns", [True, False])
def test_the_end_of_a_turn_rings_if_the_settings_ask_for_it(turns):
    operator = Operator(Settings(notify_turns=turns, notify_title=False, notify_terminal=True))
    ended = replace(ROOT, state=RunState.ENDED, started_at=NOW, updated_at=NOW, ended_at=NOW)
    operator.monitor.apply_batch(Batch(tuple(ran(ended)), operator.monitor.health))
    operator.tell()
    told = "\x1b]777;notify;agentwatch my,shop;the session has ended its turn\x1b\\"
    assert operator.written == (["bell", told] if turns else [])
