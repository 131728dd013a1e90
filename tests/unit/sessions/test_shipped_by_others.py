"""Readers that other packages ship: the example of the manual as it stands there, and some that are broken."""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path

import pytest

import agentwatch
from agentwatch.delegation.observation import Ran
from agentwatch.delegation.tree import DelegationTree
from agentwatch.sources.sessions.registry import Registry
from agentwatch.sources.sessions.source import SessionsSource
from tests.unit.sessions.conformance import packet, report

BROKEN = """
from agentwatch.sources.sessions.reader import Progress

class Raises:
    name, trouble, progress = "raises", None, Progress(0, 0)
    def read(self, seconds): return ()
    def found(self): raise OSError("of no use")
    places = text = close = found

def refuses(workspace): raise LookupError("no such workspace")
def nothing(workspace): return None
def number(workspace): return 7
def raises(workspace): return Raises()
"""


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for variable in ("HOME", "CLAUDE_CONFIG_DIR", "XDG_DATA_HOME", "XDG_CONFIG_HOME", "CODEX_HOME"):
        monkeypatch.setenv(variable, str(tmp_path / "home"))
    (tmp_path / "shop" / ".scribe").mkdir(parents=True)
    return tmp_path / "shop"


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str, str], None]:
    """Installs a package of one module, with entry points."""

    def install(module: str, code: str, entries: str) -> None:
        site = tmp_path / f"site of {module}"
        described = site / f"{module}-1.0.dist-info"
        described.mkdir(parents=True)
        (site / f"{module}.py").write_text(code, encoding="utf-8")
        (described / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: 1.0\n", encoding="utf-8")
        (described / "entry_points.txt").write_text(f"[agentwatch.sources]\n{entries}", encoding="utf-8")
        monkeypatch.syspath_prepend(site)

    return install


def example() -> str:
    """The reader in the manual."""
    text = (files(agentwatch) / "manual" / "source.md").read_text(encoding="utf-8")
    section = text.split("<!-- a source of your own -->")[1].split("<!-- /a source of your own -->")[0]
    return section.split("```python\n")[1].split("```")[0]


def source_of(workspace: Path) -> SessionsSource:
    return SessionsSource(Registry(workspace).open)


def keep(workspace: Path, session: str, **kept: object) -> None:
    path = workspace / ".scribe" / f"{session}.json"
    path.write_text(json.dumps({"began": 100.0, "last": 200.0, "asked": "Go."} | kept), encoding="utf-8")


def test_the_reader_of_the_guide_shows_sessions(workspace: Path, install: Callable[[str, str, str], None]) -> None:
    install("agentwatch_scribe", example(), "scribe = agentwatch_scribe:ScribeReader\n")
    keep(workspace, "lead")
    keep(workspace, "one", parent="lead", asked=packet("shop.api"), answer=report(), state="done")
    keep(workspace, "two", parent="lead", asked=packet("shop.page"), answer=report(), state="aborted")
    (workspace / ".scribe" / "half.json").write_text('{"began": ', encoding="utf-8")
    source, tree = source_of(workspace), DelegationTree()
    for observation in source.scan().observations:
        tree.apply(observation)
    shown = {task.task_id: (task.parent_id, task.state.value) for task in tree.tasks.values()}
    assert shown == {
        "lead": (None, "working"),
        "shop.api": ("lead", "completed"),
        "shop.page": ("lead", "canceled"),
    }
    assert [*map(str, source.problems)] == ["scribe: half.json is not understood (JSONDecodeError)"]
    assert [(found.sessions, found.children) for found in source.found() if found.source == "scribe"] == [(1, 2)]
    returned = tree.tasks["shop.api"].attempts[0].returned
    assert returned is not None
    assert source.content(returned.digest) == report()
    assert source.scan().observations == ()
    (workspace / ".scribe" / "two.json").unlink()
    (gone,) = source.scan().observations
    assert isinstance(gone, Ran)
    assert (gone.path, gone.run) == ("scribe:two", None)
    source.close()


def test_those_that_are_broken_are_said_and_hide_nobody(
    workspace: Path, install: Callable[[str, str, str], None]
) -> None:
    functions = ("refuses", "nothing", "number", "raises", "missing")
    install("agentwatch_broken", BROKEN, "".join(f"{name} = agentwatch_broken:{name}\n" for name in functions))
    install("agentwatch_scribe", example(), "scribe = agentwatch_scribe:ScribeReader\n")
    keep(workspace, "lead")
    source = source_of(workspace)
    batch = source.scan()
    assert source.found()
    assert [observation.path for observation in batch.observations if isinstance(observation, Ran)] == ["scribe:lead"]
    said = " ".join(map(str, source.problems))
    assert "refuses: cannot be used (LookupError: no such workspace)" in said
    assert "number: cannot be used (TypeError: what it gives is no SessionReader)" in said
    assert "raises: cannot be used (OSError: of no use)" in said
    assert "missing: cannot be used (AttributeError:" in said
    assert "nothing" not in said
    assert "refuses: cannot be used" in batch.health.detail
    source.close()
