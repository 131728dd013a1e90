"""What an agent does is what the last record of its transcript says."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentwatch.delegation.run import Doing, DoingKind
from tests.unit.claude_code.building import SESSION, Store


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path)


def doing(store: Store) -> Doing:
    """What the session does now."""
    found = store.runs()[SESSION].doing
    assert found is not None
    return found


CALLS: list[tuple[str, dict[str, object], str]] = [
    ("Bash", {"description": "Run the tests", "command": "npm test\n-- --watch=false"}, "npm test"),
    ("Edit", {"file_path": "{work}/src/form.tsx", "old_string": "a"}, "src/form.tsx"),
    ("Read", {"file_path": "/etc/hosts"}, "/etc/hosts"),
    ("NotebookEdit", {"notebook_path": "{work}/a.ipynb"}, "a.ipynb"),
    ("Grep", {"path": "{work}/src", "pattern": "TODO|FIXME"}, "TODO|FIXME"),
    ("WebFetch", {"prompt": "What is new?", "url": "https://example.org"}, "https://example.org"),
    ("Agent", {"prompt": "All of it.", "description": "Count the seeds"}, "Count the seeds"),
    ("Skill", {"skill": "deploy", "args": "now"}, "deploy"),
    ("mcp__shop__find", {"limit": 5, "term": "seeds", "path": "x"}, "seeds"),
    ("AskUserQuestion", {"questions": [{"question": "Which one?"}]}, "Which one?"),
    ("Bash", {"command": "x" * 300}, "x" * 199 + "…"),
    ("Strange", {"odd": [1, 2]}, ""),
]


@pytest.mark.parametrize(("tool", "given", "about"), CALLS)
def test_a_call_goes_by_its_main_argument(store: Store, tool: str, given: dict[str, object], about: str) -> None:
    log = store.session()
    log.asked("Go.")
    work = str(store.workspace)
    log.used(
        tool,
        "u1",
        **{key: value.format(work=work) if isinstance(value, str) else value for key, value in given.items()},
    )
    now = doing(store)
    assert (now.kind, now.what, now.about, now.over, now.repeats) == (DoingKind.TOOL, tool, about, False, 1)
    log.got("u1", "ok")
    assert doing(store) == now._replace(over=True)


def test_words_and_the_next_prompt_take_the_place_of_a_call(store: Store) -> None:
    log = store.session()
    log.asked("Go.")
    assert store.runs()[SESSION].doing is None
    log.used("Bash", "u1", command="make")
    log.got("u1", "ok")
    log.said("\nNow the docs.\nThen the rest.", stop="tool_use")
    assert doing(store)[1:4] == (DoingKind.WORDS, "", "Now the docs.")
    log.said("All done.")
    log.asked("Once more.")
    assert store.runs()[SESSION].doing is None


def test_of_several_calls_the_one_that_still_runs_is_told(store: Store) -> None:
    log = store.session()
    log.asked("Go.")
    uses = [{"type": "tool_use", "id": f"u{n}", "name": "Bash", "input": {"command": f"make {n}"}} for n in (1, 2)]
    log.answered([dict(use) for use in uses], "tool_use")
    assert doing(store).about == "make 2"
    log.got("u2", "ok")
    assert (doing(store).about, doing(store).over) == ("make 1", False)
    log.got("u1", "ok")
    assert doing(store).over


def test_the_same_call_in_a_row_is_counted_whatever_is_said_between(store: Store) -> None:
    log = store.session()
    log.asked("Go.")
    for number in range(5):
        log.said("Again.", stop="tool_use")
        log.used("Bash", f"u{number}", command="make", timeout=5)
        log.got(f"u{number}", "error 1")
    assert doing(store)[2:] == ("Bash", "make", True, 5)
    log.used("Bash", "v1", timeout=5, command="make")
    assert doing(store).repeats == 6
    log.used("Bash", "v2", timeout=6, command="make")
    assert doing(store).repeats == 1
    log.used("Bash", "v3", timeout=5, command="make")
    assert doing(store).repeats == 1


def test_a_todo_that_is_ticked_is_told_then_one_that_is_begun(store: Store) -> None:
    log = store.session()
    log.asked("Go.")

    def write(*statuses: str) -> tuple[str, bool]:
        names = ("Read", "Write", "Test")
        todos = [{"content": name, "status": status} for name, status in zip(names, statuses, strict=True)]
        log.used("TodoWrite", "u1", todos=todos)
        log.got("u1", "ok")
        now = doing(store)
        assert now.kind is DoingKind.TODO
        return now.about, now.over

    assert write("completed", "in_progress", "pending") == ("Write", False)
    assert write("completed", "completed", "in_progress") == ("Write", True)
    assert write("completed", "completed", "completed") == ("Test", True)


def test_a_todo_that_is_updated_by_its_number_is_told(store: Store) -> None:
    log = store.session()
    log.asked("Go.")
    log.used("TaskCreate", "u1", subject="Write the tests")
    assert doing(store)[1:4] == (DoingKind.TOOL, "TaskCreate", "Write the tests")
    log.got("u1", "Task #1 created")
    log.used("TaskUpdate", "u2", taskId="1", status="in_progress")
    assert doing(store)[1:5] == (DoingKind.TODO, "", "Write the tests", False)
    log.used("TaskUpdate", "u3", taskId="1", status="completed")
    assert doing(store)[1:5] == (DoingKind.TODO, "", "Write the tests", True)
