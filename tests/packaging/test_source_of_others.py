"""The project in the manual, as somebody else would have it: built, installed beside agentwatch and used."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from importlib.resources import files

import pytest

import agentwatch

Run = Callable[..., str]


def block(name: str) -> str:
    """A file of the project in the manual."""
    text = (files(agentwatch) / "manual" / "source.md").read_text("utf-8")
    return text.split(f"<!-- {name} -->\n")[1].split(f"<!-- /{name} -->")[0].partition("\n")[2].rsplit("```", 1)[0]


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    made = tmp_path_factory.mktemp("scribe")
    (made / "agentwatch_scribe.py").write_text(block("a source of your own"), "utf-8")
    (made / "pyproject.toml").write_text(block("pyproject.toml"), "utf-8")
    return made


@pytest.fixture(scope="module")
def run(project, wheel):
    """Runs a Python in which both are installed, from their wheels."""
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", str(project)]
    subprocess.run(build, check=True, capture_output=True)
    wheels = [str(wheel.filename), *map(str, (project / "dist").glob("*.whl"))]
    install = ["install", "--quiet", "--no-deps", "--no-index", "--target", str(project / "site"), *wheels]
    subprocess.run([sys.executable, "-m", "pip", *install], check=True, capture_output=True)
    home = {name: str(project / "home") for name in ("HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME")}

    def run(*words: str) -> str:
        environment = {**os.environ, **home, "PYTHONPATH": str(project / "site")}
        done = subprocess.run(
            [sys.executable, *words], cwd=project, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return run


def test_sessions_of_a_program_that_another_package_reads(run, project):
    assert str(project / "site") in run("-c", "import agentwatch; print(agentwatch.__file__)")
    (project / ".scribe").mkdir()
    kept = {"began": 100.0, "last": 200.0, "asked": "Go."}
    (project / ".scribe" / "lead.json").write_text(json.dumps(kept), "utf-8")
    (project / ".scribe" / "one.json").write_text(
        json.dumps(kept | {"parent": "lead", "state": "done", "answer": "Done."}), "utf-8"
    )
    told = json.loads(run("-m", "agentwatch", "tree", "--json"))
    assert [(one["task_id"], one["parent_id"], one["state"]) for one in told["tasks"]] == [
        ("lead", None, "working"),
        ("one", "lead", "completed"),
    ]
    (scribe,) = (
        one for one in json.loads(run("-m", "agentwatch", "sources", "--json"))["sources"] if one["source"] == "scribe"
    )
    assert (scribe["sessions"], scribe["children"], scribe["skipped"]) == (1, 1, "")
