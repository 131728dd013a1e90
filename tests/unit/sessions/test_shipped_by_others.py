"""Readers that other packages ship: the example of the manual as it stands there, and some that are broken."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

import agentwatch
from agentwatch.delegation.events import Ran
from agentwatch.delegation.tree import Tree
from agentwatch.sources.sessions.reader import SessionReader
from agentwatch.sources.sessions.registry import Registry
from agentwatch.sources.sessions.source import SessionsSource
from tests.unit.sessions.checks import CHECKS, Build
from tests.unit.sessions.store import GARBAGE, Store, packet, report

BROKEN = """
import sys
from dataclasses import replace
from pathlib import Path
from agentwatch.delegation.run import Run, RunState
from agentwatch.sources.sessions.reader import Change, Found, Progress

RUN = Run(source="rubbish", session_id="s", parent_session=None, state=RunState.WORKING, place="/x", started_at=1.0,
          updated_at=2.0)

class Reader:
    trouble, progress = None, Progress(0, 0)
    def __init__(self, name, *given): self.name, self.given = name, given
    def read(self, seconds): return self.given
    def found(self): return [Found(self.name, "/x", len(self.given))]
    def text(self, digest): return None
    def close(self): pass

class Leaves(Reader):
    def read(self, seconds): sys.exit("enough")

class Unsayable(Exception):
    def __str__(self): raise RuntimeError("not to be said")
    __repr__ = __str__

class Odd(Reader):
    def __init__(self, name, error): super().__init__(name); self.error = error
    def read(self, seconds): raise self.error

class Wordless(Reader):
    def text(self, digest): raise KeyError(digest)

class Raises:
    name, trouble, progress = "raises", None, Progress(0, 0)
    def read(self, seconds): return ()
    def found(self): raise OSError("of no use")
    places = text = close = found

def refuses(workspace): raise LookupError("no such workspace")
def nothing(workspace): return None
def number(workspace): return 7
def raises(workspace): return Raises()
def leaves(workspace): return Leaves("leaves")
def wordless(workspace): return Wordless("wordless", Change("k", replace(RUN, source="wordless")))
def no_changes(workspace): return Reader("no_changes", "text")
def no_run(workspace): return Reader("no_run", Change("k", 7))
def odd_time(workspace): return Reader("odd_time", Change("k", replace(RUN, source="odd_time", updated_at="never")))
def odd_state(workspace): return Reader("odd_state", Change("k", replace(RUN, source="odd_state", state="dancing")))
def imposter(workspace): return Reader("imposter", Change("k", replace(RUN, source="claude-code")))
def unsayable(workspace): return Odd("unsayable", Unsayable())
def unsaid(workspace): raise Unsayable
def coloured(workspace): return Odd("coloured", OSError("\\x1b[31m" + "x" * 5000))
def no_name(workspace): return Reader(7)
def taken(workspace): return Reader("codex")
def twice(workspace): return Reader("wordless")
"""

SAID = {
    "leaves": "SystemExit: enough",
    "no_changes": "TypeError: it gives no Change of a Run",
    "no_run": "TypeError: it gives no Change of a Run",
    "odd_time": "ValueError: `run` is no run of a session",
    "odd_state": "ValueError: `run` is no run of a session",
    "imposter": "ValueError: it gives a run of 'claude-code', which it is not",
    "unsayable": "an error that cannot be printed",
    "unsaid": "an error that cannot be printed",
    "coloured": f"OSError: ␛[31m{'x' * 285}…",
    "no_name": "TypeError: its name is no text of at most 40 characters",
    "taken": "ValueError: another source has its name, codex",
    "twice": "ValueError: another source has its name, wordless",
}
"""What the health line says of those that raise, or talk rubbish."""


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
    source, tree = source_of(workspace), Tree()
    for event in source.scan().events:
        tree.apply(event)
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
    assert source.scan().events == ()
    (workspace / ".scribe" / "two.json").unlink()
    (gone,) = source.scan().events
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
    assert [event.path for event in batch.events if isinstance(event, Ran)] == ["scribe:lead"]
    said = " ".join(map(str, source.problems))
    assert "refuses: cannot be used (LookupError: no such workspace)" in said
    assert "number: cannot be used (TypeError: what it gives is no SessionReader)" in said
    assert "raises: cannot be used (OSError: of no use)" in said
    assert "missing: cannot be used (AttributeError:" in said
    assert "nothing" not in said
    assert "refuses: cannot be used" in batch.health.detail
    source.close()


def test_one_that_raises_or_talks_rubbish_is_named(workspace: Path, install: Callable[[str, str, str], None]) -> None:
    names = ("wordless", *SAID)
    install("agentwatch_broken", BROKEN, "".join(f"{name} = agentwatch_broken:{name}\n" for name in names))
    install("agentwatch_scribe", example(), "scribe = agentwatch_scribe:ScribeReader\n")
    keep(workspace, "lead")
    source = source_of(workspace)
    batch = source.scan()
    assert {one.path for one in batch.events if isinstance(one, Ran)} == {"scribe:lead", "wordless:k"}
    said = {problem.source: problem.message for problem in source.problems}
    assert said == {name: f"cannot be used ({why})" for name, why in SAID.items()}
    assert all(name in batch.health.detail for name in list(said)[:1])
    assert source.content("0" * 64) is None
    assert "KeyError" in {problem.source: problem.message for problem in source.problems}["wordless"]
    source.close()


def scribe(reader: type[SessionReader]) -> Build:
    """The story as the program of the manual keeps it."""

    def build(root: Path) -> Store:
        workspace, place = root / "shop", root / "shop" / ".scribe"
        place.mkdir(parents=True)

        def write(session: str, **fields: object) -> None:
            written = place / f"{session}.new"
            written.write_text(json.dumps({"began": 100.0, "last": 200.0, "asked": "Go."} | fields))
            written.rename(place / f"{session}.json")

        def story() -> Iterator[None]:
            yield write("lead")
            yield write("1", parent="lead", asked=packet("shop.api"))
            yield write("1", parent="lead", asked=packet("shop.api"), answer=report(), state="done")
            yield write("2", parent="lead", asked=packet("shop.page"), answer=report("PARTIAL"), state="aborted")
            yield write("3", parent="lead", asked=packet("shop.pay"), state="failed")
            yield write("4", parent="lead", asked=packet("shop.pay"))
            yield write("other")

        return Store(
            workspace,
            place,
            reader=lambda: reader(workspace),
            story=story(),
            spoil=lambda random: (place / f"junk-{random.randrange(99)}.json").write_bytes(random.choice(GARBAGE)),
            forget=(place / "other.json").unlink,
            tasks={"shop.api": ["completed"], "shop.page": ["canceled"], "shop.pay": ["failed", "working"]},
        )

    return build


@pytest.mark.parametrize("check", CHECKS)
def test_the_reader_of_the_manual_keeps_all_promises(check: Callable[[Build], None]) -> None:
    namespace: dict[str, Any] = {}
    exec(example(), namespace)
    check(scribe(namespace["ScribeReader"]))
