"""What an agent does is what the last record of its transcript says."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentwatch.delegation.run import Activity, ActivityKind
from tests.unit.claude_code.building import SESSION, Store


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path)


def doing(store: Store) -> Activity:
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
    assert (now.kind, now.what, now.about, now.over, now.repeats) == (ActivityKind.TOOL, tool, about, False, 1)
    log.got("u1", "ok")
    assert doing(store) == now._replace(over=True)
