"""Parts of this repository that others use on a code host: the pre-commit hook, the action, the templates."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from agentwatch.sources.files.read import is_named_like_document
from tests.unit.agents.documents import packet

ROOT = Path(__file__).parents[2]
FILES = [ROOT / ".pre-commit-hooks.yaml", *sorted((ROOT / ".github").rglob("*.yml"))]
ACTION = ROOT / ".github/actions/check/action.yml"
SHELL = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c"]
"""The command that `shell: bash` means in an action."""


def read(path: Path) -> Any:
    return yaml.safe_load(path.read_text("utf-8"))


def step(name: str) -> dict[str, Any]:
    (found,) = [one for one in read(ACTION)["runs"]["steps"] if one["name"] == name]
    assert found["shell"] == "bash"
    return dict(found)


def test_the_hook_checks_what_is_picked_from_a_directory():
    (hook,) = read(ROOT / ".pre-commit-hooks.yaml")
    pattern = re.compile(hook["files"])
    names = (
        "a.handoff.json", "x/A.Return.MD", "handoffs/a.json", "d/returns/b.markdown", "a.report.json", "todos.md",
        "x/a.todos.md", "returning.md", "handoff-7.json", "report.json", "a.md", "src/handoff.py", "returns/a.txt",
        "handoffs/x/a.md", "myreturns/a.md", "return/x.json", "x.handoff.json/readme.md",
    )  # fmt: skip
    assert [name for name in names if pattern.search(name)] == [name for name in names if is_named_like_document(name)]


def test_no_word_from_outside_is_put_into_a_script():
    for path in FILES:
        for script in re.findall(r"run: *(?:\|\n((?: {8,}.*\n?)+)|(.*))", path.read_text("utf-8")):
            assert "${{" not in "".join(script)


@pytest.mark.parametrize(
    ("paths", "code"), [(".", 1), ("good", 0), ("\ngood\nbad dir\n", 1), ("nothing", 2), ("-x", 2)]
)
def test_the_action_marks_the_lines_that_break_a_contract(paths, code, tmp_path):
    for name, text in {"good/a.handoff.json": packet(), "bad dir/a.handoff.json": '{"task_id": "a"}'}.items():
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text(text, "utf-8")
    (tmp_path / "temp/agentwatch/bin").mkdir(parents=True)
    command = tmp_path / "temp/agentwatch/bin/agentwatch"
    command.write_text(f'#!/bin/sh\nPYTHONPATH={ROOT / "tui"} exec {sys.executable} -m agentwatch "$@"\n', "utf-8")
    command.chmod(0o755)
    environment = {**os.environ, "PATHS": paths, "RUNNER_TEMP": str(tmp_path / "temp")}
    done = subprocess.run(
        [*SHELL, step("Check")["run"]], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == code, done.stderr
    assert ("::error file=bad dir/a.handoff.json" in done.stdout) == (code == 1)


def test_the_action_installs_this_repository(tmp_path):
    """The steps run unchanged, with a Python that notes its arguments."""
    python = tmp_path / "python"
    python.write_text(
        '#!/bin/sh\nmkdir -p "$3/bin"\nprintf \'#!/bin/sh\\necho "$@"\\n\' > "$3/bin/pip"\nchmod +x "$3/bin/pip"\n',
        "utf-8",
    )
    python.chmod(0o755)
    environment = {"PATH": os.environ["PATH"], "PYTHON": str(python), "RUNNER_TEMP": str(tmp_path / "a b")}
    done = subprocess.run(
        [*SHELL, step("Install agentwatch")["run"]],
        env={**environment, "GITHUB_ACTION_PATH": str(ACTION.parent)}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert Path(done.stdout.split()[-1]).resolve() == ROOT
