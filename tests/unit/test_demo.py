"""The demo: its session holds every ingredient it promises, and leaves nothing behind."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from agentwatch.composition import monitor_of
from agentwatch.config import Settings
from agentwatch.contracts.reading import read_document
from agentwatch.contracts.shapes import Document, Return, Severity
from agentwatch.delegation.events import Rules, Seen, Tick
from agentwatch.delegation.task import State
from agentwatch.delegation.tree import Tree
from agentwatch.demo import DemoSession, child, demo_script, session
from agentwatch.demo.screenplay import parse
from agentwatch.demo.script import Append, Delete, MakeDirectory, Player, Rename, Script, Write
from agentwatch.errors import UsageError, WorkspaceError

if TYPE_CHECKING:
    from collections.abc import Callable

NON_COMPLIANT = "verify/prices.return.md"
LOW_CONFIDENCE = "verify/load.return.json"
FALSE_CLAIM = "docs/runbooks/payment-failures.md"
DEADLINE_SECONDS = 20.0


@dataclass(frozen=True)
class Told:
    """A document that the session shows: when, where, and what the contracts read in it."""

    at: float
    path: str
    reading: Document


def session_documents() -> list[Told]:
    """Every document of the session in the order in which it is complete."""
    texts: dict[str, str] = {}
    told = []
    for step in demo_script().steps:
        action = step.action
        if not isinstance(action, Write | Append):
            continue
        before = texts.get(action.path, "") if isinstance(action, Append) else ""
        texts[action.path] = before + action.text
        half = isinstance(action, Write) and not action.atomic
        reading = None if half else read_document(texts[action.path], action.path)
        if reading is not None:
            told.append(Told(step.at_seconds, action.path, reading))
    return told


def delegation(until: float = float("inf")) -> Tree:
    """The tree of the session after `until` seconds, its silences judged as the demo asks for."""
    tree = Tree(Rules(stale_after=session.STALE_SECONDS))
    end = min(until, demo_script().duration)
    for seq, told in enumerate(told for told in session_documents() if told.at <= until):
        digest = sha256(repr(told.reading).encode()).hexdigest()
        tree.apply(Seen(seq, told.at, told.path, digest, told.reading.document, told.reading.findings))
    tree.apply(Tick(1_000, end))
    return tree


def eventually(condition: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.005)
    return True


@pytest.fixture
def final(tmp_path: Path) -> Path:
    """A workspace that holds the last state of the session."""
    Player(demo_script(), tmp_path).play_all()
    return tmp_path


# The documents


def test_no_document_says_that_it_is_of_another_day() -> None:
    for told in session_documents():
        if isinstance(told.reading.document, Return):
            assert told.reading.document.stated_at is None, told.path


def test_every_document_keeps_its_contract_but_the_one_that_is_meant_to_break_it() -> None:
    broken = {}
    for told in session_documents():
        assert told.reading.complete, told.path
        if told.reading.findings:
            broken[told.path] = {finding.severity for finding in told.reading.findings}
    assert broken == {NON_COMPLIANT: {Severity.ERROR}, LOW_CONFIDENCE: {Severity.WARNING}}


def test_every_handoff_return_and_checklist_is_recognised(final: Path) -> None:
    known = {told.path for told in session_documents()}
    named = {
        path.relative_to(final).as_posix()
        for pattern in ("handoffs/*", "returns/*", "**/*handoff*", "**/*return*", "**/*.todos.md")
        for path in final.glob(pattern)
        if path.is_file()
    }
    assert named <= known


def test_every_claimed_file_exists_but_the_one_that_was_never_written(final: Path) -> None:
    claimed = {
        path
        for told in session_documents()
        if isinstance(told.reading.document, Return)
        for path in (*told.reading.document.files_created, *told.reading.document.artifacts)
    }
    assert {path for path in claimed if not (final / path).is_file()} == {FALSE_CLAIM}


# The tree


def test_the_session_ends_in_states_that_stay_interesting() -> None:
    tree = delegation()
    assert {task_id: task.state for task_id, task in tree.tasks.items() if not task.inferred} == {
        "checkout": State.WORKING,
        "checkout.plan": State.COMPLETED,
        "checkout.docs": State.COMPLETED,
        "checkout.implement": State.WORKING,
        "checkout.implement.schema": State.COMPLETED,
        "checkout.implement.api": State.COMPLETED,
        "checkout.implement.ui": State.PARTIAL,
        "checkout.implement.ui.form": State.COMPLETED,
        "checkout.implement.ui.summary": State.COMPLETED,
        "checkout.implement.payments": State.BLOCKED,
        "checkout.implement.receipts": State.COMPLETED,
        "checkout.verify": State.WORKING,
        "checkout.verify.e2e": State.WORKING,
        "checkout.verify.prices": State.INVALID,
        "checkout.verify.load": State.COMPLETED,
        "specs/042_vat_rules/vat-researcher": State.COMPLETED,
    }
    assert {task.task_id for task in tree.asking()} >= {"checkout.implement.payments", "checkout.verify.prices"}


def test_somebody_is_needed_within_ten_seconds_and_somebody_else_much_later() -> None:
    assert not list(delegation(until=6.0).asking())
    assert [task.task_id for task in delegation(until=8.0).asking()] == ["checkout.implement.api"]
    assert [task.task_id for task in delegation(until=30.0).asking()] == ["checkout.implement.api"]


def test_one_task_falls_silent_and_no_other_does() -> None:
    stale = {
        task.task_id
        for at in range(5, int(demo_script().duration) + 1, 5)
        for task in delegation(float(at)).tasks.values()
        if task.stale
    }
    assert stale == {"checkout.verify.e2e"}


# The pace


def test_the_first_three_seconds_move_and_no_pause_is_longer_than_three() -> None:
    times = [step.at_seconds for step in demo_script().steps]
    assert len({at for at in times if at <= 3.0}) >= 4
    assert max(later - earlier for earlier, later in pairwise(times)) <= 3.0
    assert 100.0 <= times[-1] <= 140.0


# The screenplay


def session_of(text: str) -> Script:
    return parse(text).script


def test_a_screenplay_gives_its_steps_in_time() -> None:
    script = session_of(
        "@@ a remark\n@ +0.5 write a.md\n# Title\n\n- [ ] one\n- [ ] two\n\n"
        "@ +1 todo a.md\n- [x] two\n@ +0.2 rename a.md -> b.md\n@ +0 delete b.md\n@ +0.3 inplace c\nc\n@ +1 mkdir d\n"
    )
    assert [(step.at_seconds, step.action) for step in script.steps] == [
        (0.5, Write("a.md", "# Title\n\n- [ ] one\n- [ ] two\n")),
        (1.5, Write("a.md", "# Title\n\n- [ ] one\n- [x] two\n")),
        (1.7, Rename("a.md", "b.md")),
        (1.7, Delete("b.md")),
        (2.0, Write("c", "c\n", atomic=False)),
        (3.0, MakeDirectory("d")),
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("@ 1 write a\n", "line 1: write a stage direction as"),
        ("x\n@ +1 sing a\n", "line 2: 'sing' is no stage direction"),
        ("@ +1 rename a\n", "line 1: 'rename' is no stage direction"),
        ("@ +1 todo a\n- [x] b\n", "line 1: the file has no todo 'b'"),
        ("@ +1 todo a\n* b\n", r"line 1: '\* b' is no line of a checklist"),
        ("@ +1 write ../a\n", "no path inside the workspace"),
        ("@ on dance a\n", "line 1: a scene is 'on' one or more of retry, escalate, abort, respond, accept"),
        ("@ on retry\n", "line 1: write a stage direction as"),
        ("@ on retry a\n\n@ +1 write a\n$mode $atempt\n", r"line 4: a decision has no \$atempt; there are answer, "),
        ("@ on retry a\n@ +1 write $what\n", r"line 2: a decision has no \$what"),
    ],
)
def test_a_screenplay_that_cannot_be_played_says_where(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse(text)


# The session


def test_the_demo_plays_into_a_workspace_of_its_own_and_removes_it() -> None:
    with DemoSession(speed=2_000.0, once=True) as workspace:
        assert workspace.name == "shop"
        assert eventually(lambda: "Collect the returns" in _text(workspace / "handoffs/checkout.implement.md"))
        kept = workspace
    assert not kept.parent.exists()


def test_once_leaves_the_last_state_on_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "PAUSE_SECONDS", 0.0)
    Player(demo_script(), tmp_path).play_all()
    with DemoSession(speed=5_000.0, once=True) as workspace:
        assert eventually(lambda: "- [x] Collect the returns" in _text(workspace / "handoffs/checkout.implement.md"))
        assert _files(workspace) == _files(tmp_path)


def test_a_child_that_says_that_all_tests_pass_after_a_run_that_failed_is_caught() -> None:
    demo = DemoSession(speed=5_000.0, once=True)
    with demo as workspace:
        monitor = monitor_of(workspace, Settings(), sessions=demo.sessions())
        assert eventually(lambda: "- [x] Collect the returns" in _text(workspace / "handoffs/checkout.implement.md"))

        def is_caught() -> bool:
            monitor.scan()
            task = monitor.tree.tasks.get(child.TASK)
            return task is not None and task.contradicted

        assert eventually(is_caught)
        task = monitor.tree.tasks[child.TASK]
        assert task.parent_id == "checkout.verify"
        assert not task.findings
        assert [(claim.kind, claim.path, claim.verdict.value) for claim in task.claims] == [
            ("summary", "all 214 tests pass", "contradicted"),
            ("evidence", "`npm test` \u2014 214 passed, 0 failed", "contradicted"),
            ("criterion", "All unit tests pass", "unverifiable"),
        ]
        assert [deed.what for deed in task.unsaid] == ["git push origin checkout"]
        assert task.ask is not None
        assert task.ask.startswith("a claim is false: all 214 tests pass")


def test_without_once_it_starts_over_in_an_empty_workspace(monkeypatch: pytest.MonkeyPatch) -> None:
    rewound = threading.Event()
    left: list[dict[str, bytes]] = []
    rewind = Player.rewind

    def spy(player: Player) -> None:
        rewind(player)
        left.append(_files(player._workspace))
        rewound.set()

    monkeypatch.setattr(session, "PAUSE_SECONDS", 0.001)
    monkeypatch.setattr(session, "EMPTY_SECONDS", 0.001)
    monkeypatch.setattr(Player, "rewind", spy)
    with DemoSession(speed=5_000.0) as workspace:
        assert rewound.wait(DEADLINE_SECONDS)
        assert eventually((workspace / "handoffs/checkout.md").exists)
    assert left[0] == {}


def test_the_workspace_is_removed_when_the_block_fails() -> None:
    kept = None

    def fail() -> None:
        nonlocal kept
        with DemoSession() as workspace:
            kept = workspace
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert kept is not None
    assert not kept.parent.exists()
    assert not _is_playing()


def test_a_demo_that_cannot_write_says_so_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(player: Player, *_attending: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Player, "run", full)
    with pytest.raises(WorkspaceError, match=r"No space left on device.*free space"), DemoSession():
        assert eventually(lambda: not _is_playing())


def test_a_demo_lies_below_the_state_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr("tempfile.tempdir", "/dev/null")
    with DemoSession(once=True) as workspace:
        assert workspace.is_relative_to(tmp_path / "state")
    assert not workspace.parent.exists()
    monkeypatch.setenv("XDG_STATE_HOME", "/dev/null")
    with pytest.raises(WorkspaceError, match="set XDG_STATE_HOME to another place"), DemoSession():
        pass


@pytest.mark.parametrize("speed", [0.0, -1.0, float("nan"), float("inf")])
def test_a_demo_speed_that_cannot_be_played_is_a_usage_error(speed: float) -> None:
    with pytest.raises(UsageError, match="above 0"):
        DemoSession(speed=speed)


def _is_playing() -> bool:
    return any(thread.name == "agentwatch-demo" for thread in threading.enumerate())


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.exists() else ""


def _files(workspace: Path) -> dict[str, bytes]:
    """What the play has written: `AGENTS.md` is there from the beginning."""
    paths = (path for path in workspace.rglob("*") if path.is_file() and path.name != "AGENTS.md")
    return {path.relative_to(workspace).as_posix(): path.read_bytes() for path in paths}
