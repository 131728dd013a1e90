"""The readers: each is opened once its program has a store, and readers of other packages cannot break the others."""

import json
import sys
from functools import partial
from importlib.resources import files
from pathlib import Path

import pytest

import agentwatch
from agentwatch.delegation.events import Ran
from agentwatch.sources.sessions.registry import find_databases, find_roo_storages, open_readers, session_paths
from agentwatch.sources.sessions.source import SessionsSource

VARIABLES = {
    "CLAUDE_CONFIG_DIR": "claude-code",
    "CODEX_HOME": "codex",
    "QWEN_RUNTIME_DIR": "qwen-code",
    "QWEN_HOME": "qwen-code",
    "COPILOT_HOME": "copilot",
    "GEMINI_CLI_HOME": "gemini",
}
"""The name of the reader for each variable that says where its program keeps its sessions."""


@pytest.fixture
def home(tmp_path, monkeypatch):
    for variable in (*VARIABLES, "XDG_DATA_HOME", "XDG_CONFIG_HOME", "OPENCODE_DB", "KILO_DB"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir()
    (tmp_path / "shop" / ".scribe").mkdir(parents=True)
    return tmp_path / "home"


def opened(workspace: Path, *known: str) -> list[str]:
    def broken(name: str, error: BaseException):
        raise AssertionError(name) from error

    return [reader.name for reader in open_readers(workspace, known, broken)]


def test_a_reader_comes_once_its_program_has_a_store(home, tmp_path):
    assert opened(tmp_path) == []
    (home / ".codex").mkdir()
    (home / ".qwen").mkdir()
    (home / ".config/Code - Insiders/User/globalStorage/kilocode.kilo-code/tasks").mkdir(parents=True)
    assert opened(tmp_path) == ["codex", "qwen-code", "roo"]
    assert opened(tmp_path, "codex", "qwen-code", "roo") == []


@pytest.mark.parametrize("variable", VARIABLES)
def test_a_program_may_keep_its_sessions_elsewhere(home, tmp_path, monkeypatch, variable):
    assert home.is_dir()
    # For Gemini CLI the variable names another home.
    directory = tmp_path / "elsewhere" / (".gemini" if variable == "GEMINI_CLI_HOME" else "")
    directory.mkdir(parents=True)
    monkeypatch.setenv(variable, str(tmp_path / "elsewhere"))
    assert VARIABLES[variable] in opened(tmp_path)
    (place,) = session_paths()[VARIABLES[variable]]
    assert place.parent == directory


@pytest.mark.parametrize(
    "place",
    [
        "{settings}/Code/User/globalStorage/rooveterinaryinc.roo-cline",
        "{settings}/An editor of tomorrow/User/globalStorage/made.of-roo",
        ".vscode-server/data/User/globalStorage/rooveterinaryinc.roo-cline",
        ".local/share/code-server/User/globalStorage/kilocode.kilo-code",
        ".vscode-mock/global-storage",
    ],
)
def test_the_storages_of_all_editors_are_found(home, place):
    path = home / place.format(settings="Library/Application Support" if sys.platform == "darwin" else ".config")
    for storage in (path, path.with_name("saoudrizwan.claude-dev")):
        (storage / "tasks").mkdir(parents=True)
    assert path in find_roo_storages(home)
    assert path.with_name("saoudrizwan.claude-dev") not in find_roo_storages(home)


def test_each_program_and_channel_is_a_database_of_its_own(home, monkeypatch):
    share = home / ".local" / "share"
    found = {
        "opencode": "opencode/opencode.db",
        "opencode-dev": "opencode/opencode-dev.db",
        "opencode-mine": "mine.db",
        "kilo": "kilo/kilo.db",
        "kilo-opencode-dev": "kilo/opencode-dev.db",
        "kilo-team": "kilo/team.db",
    }
    for name in (*found.values(), "opencode/opencode.db-wal", "opencode/other.db"):
        (share / name).parent.mkdir(parents=True, exist_ok=True)
        (share / name).touch()
    monkeypatch.setenv("OPENCODE_DB", str(share / "mine.db"))
    monkeypatch.setenv("KILO_DB", "team.db")
    assert list(find_databases().items()) == [(name, share / path) for name, path in found.items()]
    monkeypatch.setenv("XDG_DATA_HOME", str(home / "data"))
    assert find_databases() == {"opencode-mine": share / "mine.db"}


# Readers that other packages ship

BROKEN = """
import sys
from dataclasses import replace
from agentwatch.delegation.events import Run, RunState
from agentwatch.sources.sessions.reader import Change, Found, Progress

RUN = Run(source="rubbish", session_id="s", parent_session=None, state=RunState.WORKING, place="/x", started_at=1.0,
          updated_at=2.0)

class Reader:
    trouble, progress = None, Progress(0, 0)
    def __init__(self, name, *given): self.name, self.given = name, given
    def read(self, seconds): return self.given
    def found(self): return [Found(self.name, "/x", len(self.given))]
    def text(self, digest): raise KeyError(digest)
    def close(self): pass

class Leaves(Reader):
    def read(self, seconds): sys.exit("enough")

class Odd(Reader):
    def __init__(self, name, error): super().__init__(name); self.error = error
    def read(self, seconds): raise self.error

def refuses(workspace): raise LookupError("no such workspace")
def nothing(workspace): return None
def leaves(workspace): return Leaves("leaves")
def sound(workspace): return Reader("sound", Change("k", replace(RUN, source="sound")))
def no_changes(workspace): return Reader("no_changes", 7)
def odd_state(workspace): return Reader("odd_state", Change("k", replace(RUN, source="odd_state", state="dancing")))
def imposter(workspace): return Reader("imposter", Change("k", replace(RUN, source="claude-code")))
def coloured(workspace): return Odd("coloured", OSError("\\x1b[31m" + "x" * 5000))
def taken(workspace): return Reader("codex")
"""

SAID = {
    "refuses": "LookupError: no such workspace",
    "missing": "AttributeError: module 'agentwatch_broken' has no attribute 'missing'",
    "leaves": "SystemExit: enough",
    "no_changes": "TypeError: cannot unpack non-iterable int object",
    "odd_state": "ValueError: `run` is no run of a session",
    "imposter": "ValueError: it gives a run of 'claude-code', which it is not",
    "coloured": f"OSError: ␛[31m{'x' * 285}…",
    "taken": "ValueError: another source has its name, codex",
}
"""The words of the health line about readers that raise errors, or return rubbish."""


def install(site: Path, module: str, code: str, *names: str):
    """Install a module, with entry points."""
    described = site / f"{module}-1.0.dist-info"
    described.mkdir(parents=True)
    (site / f"{module}.py").write_text(code, encoding="utf-8")
    (described / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: 1.0\n", encoding="utf-8")
    entries = "".join(f"{name} = {module}:{name}\n" for name in names)
    (described / "entry_points.txt").write_text(f"[agentwatch.sources]\n{entries}", encoding="utf-8")


def example() -> str:
    """Return the code of the reader in the manual."""
    text = (files(agentwatch) / "manual" / "source.md").read_text(encoding="utf-8")
    section = text.split("<!-- a source of your own -->")[1].split("<!-- /a source of your own -->")[0]
    return section.split("```python\n")[1].split("```")[0]


def test_readers_that_raise_or_return_rubbish_hide_no_others(home, tmp_path, monkeypatch):
    install(tmp_path / "site", "agentwatch_broken", BROKEN, "sound", "nothing", *SAID)
    install(tmp_path / "site", "agentwatch_scribe", example(), "ScribeReader")
    monkeypatch.syspath_prepend(tmp_path / "site")
    kept = {"began": 100.0, "last": 200.0, "asked": "Go."}
    (tmp_path / "shop" / ".scribe" / "lead.json").write_text(json.dumps(kept), encoding="utf-8")
    assert home.is_dir()
    source = SessionsSource(partial(open_readers, tmp_path / "shop"))
    batch = source.scan()
    assert {one.path for one in batch.events if isinstance(one, Ran)} == {"scribe:lead", "sound:k"}
    said = {problem.source: problem.message for problem in source.problems}
    assert said == {name: f"cannot be used ({why})" for name, why in SAID.items()}
    assert source.content("0" * 64) is None
    assert "KeyError" in {problem.source: problem.message for problem in source.problems}["sound"]
    source.close()
