"""`agentwatch attest` signs what is seen, `verify` holds it against what is there, and `report` names it."""

import os
import subprocess
import sys
from importlib.resources import files
from pathlib import Path

import pytest

import agentwatch
from agentwatch.cli import run
from agentwatch.decisions.keys import Keys
from tests.unit.agents.documents import packet, returned


@pytest.fixture
def workspace(tmp_path, monkeypatch):
    for name in ("HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "CLAUDE_CONFIG_DIR"):
        monkeypatch.setenv(name, str(tmp_path / name))
    monkeypatch.delenv("AGENTWATCH_PUBLIC_KEY", raising=False)
    made = tmp_path / "shop"
    (made / "docs").mkdir(parents=True)
    (made / "docs" / "api.md").write_text("The design.\n", "utf-8")
    for task in ("a", "b"):
        (made / f"{task}.handoff.json").write_text(packet(task_id=task), "utf-8")
        (made / f"{task}.return.md").write_text(returned("SUCCESS"), "utf-8")
    (made / "c.handoff.json").write_text(packet(task_id="c"), "utf-8")
    return made


@pytest.fixture
def bundle(workspace, tmp_path):
    assert run(["attest", "--all", str(workspace), "-o", str(tmp_path / "all.intoto.jsonl")]) == 0
    return tmp_path / "all.intoto.jsonl"


def verify(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, str]:
    capsys.readouterr()
    code = run(["verify", *map(str, words)])
    return code, capsys.readouterr().out


@pytest.mark.parametrize("instead", ["nothing", "a pipe", "a link"])
def test_a_document_that_cannot_be_compared_is_no_success(workspace, bundle, tmp_path, capsys, instead):
    document = workspace / "b.return.md"
    document.rename(tmp_path / "elsewhere.md")
    if instead == "a pipe":
        os.mkfifo(document)
    elif instead == "a link":
        document.symlink_to(tmp_path / "elsewhere.md")
    code, out = verify(capsys, bundle, workspace)
    assert code == 1
    assert "✗ subject: “b.return.md” cannot be compared: it is not here any more, or cannot be read" in out


def lie(workspace: Path):
    text = returned("SUCCESS").replace("files_created:\n- (none)", "files_created:\n- none.md")
    (workspace / "a.return.md").write_text(text, "utf-8")


def test_the_verifier_in_the_manual_refuses_another_key(workspace, tmp_path):
    lie(workspace)
    bundle = tmp_path / "all.intoto.jsonl"
    assert run(["attest", "--all", str(workspace), "-o", str(bundle)]) == 0
    text = (files(agentwatch) / "manual" / "statements.md").read_text("utf-8")
    code = text.split("<!-- a stranger's verifier -->\n```python\n")[1].split("```")[0]

    def stranger(key: str) -> subprocess.CompletedProcess[str]:
        words = [sys.executable, "-W", "ignore", "-c", code, key, str(bundle)]
        return subprocess.run(words, capture_output=True, text=True, check=False)

    assert stranger(Keys().show().text).stdout.splitlines() == [
        "a completed, contradicted",
        "b completed",
        "c submitted",
    ]
    other = Keys(workspace / "other").create().public
    refused = stranger(other.text)
    assert (refused.returncode, refused.stdout) == (1, "")
