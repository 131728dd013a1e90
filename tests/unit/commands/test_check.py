"""Documents and statements about them: `check`, `schema`, `attest` and `verify`, their output and exit codes."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from agentwatch.agents.documents import EXAMPLES
from agentwatch.cli import run, start
from agentwatch.contracts.reading import read_document
from agentwatch.decisions.keys import Keys
from agentwatch.manual import read_page
from tests.homes import live_in
from tests.unit.agents.documents import packet, returned
from tests.unit.contracts.documents import META, PACKET, SUBAGENT, put, text_of


def check(paths: list[str], output: str = "text") -> int:
    return start("check", ["--format", output, "--", *paths])


@pytest.fixture
def workspace(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(path: str, text: str):
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text(text, encoding="utf-8")


@pytest.mark.parametrize("contract", ["handoff-packet", "subagent-return", "return-meta", "report-contract"])
def test_the_schema_of_a_contract_has_a_valid_example(contract, capsys):
    assert run(["schema", contract]) == 0
    schema = json.loads(capsys.readouterr().out)
    assert (schema["$schema"], schema["title"]) == ("https://json-schema.org/draft/2020-12/schema", contract)
    reading = read_document(json.dumps(schema["examples"][0]), "x.json")
    assert reading is not None
    assert (reading.contract, reading.findings) == (contract, ())


def test_the_contract_without_a_schema_has_an_example():
    assert re.findall("```markdown\n(.*?)```", read_page("contracts"), re.DOTALL) == [EXAMPLES["return-format"]]


def test_another_report_is_checked_only_beside_a_handoff(workspace, capsys):
    write("jest.report.json", '{"status": "passed"}')
    assert check(["."], "json") == 0
    assert json.loads(capsys.readouterr().out) == {"files": []}
    write("jest.handoff.json", text_of(PACKET))
    assert check(["."], "json") == 1
    files = json.loads(capsys.readouterr().out)["files"]
    assert [file["path"] for file in files] == ["jest.handoff.json", "jest.report.json"]


def test_a_missing_artifact_is_an_error_unless_archived(workspace, capsys):
    artifacts = [{"type": "plan", "path": "specs/7_x/plans/p.md", "summary": "the plan"}]
    write("specs/7_x/x.return.json", text_of(put("artifacts", artifacts)(SUBAGENT)))
    assert check(["specs"]) == 1
    assert "LNK007 error" in (out := capsys.readouterr().out)
    assert "specs/7_x/plans/p.md is not on disk" in out
    write("specs/7_x/.return-meta.json", text_of(put("artifacts", artifacts)(META)))
    assert check(["specs/7_x/.return-meta.json"]) == 0
    assert "LNK007 warning" in capsys.readouterr().out
    write("specs/7_x/plans/p.md", "the plan")
    assert check(["specs"]) == 0
    Path("specs/archive").mkdir()
    Path("specs/7_x").rename("specs/archive/7_x")
    assert check(["."]) == 0


def test_paths_are_those_of_the_git_repository(workspace, monkeypatch):
    artifacts = [{"type": "plan", "path": "docs/p.md", "summary": "the plan"}]
    write("repo/specs/x.return.json", text_of(put("artifacts", artifacts)(SUBAGENT)))
    write("elsewhere/a", "")
    monkeypatch.chdir("elsewhere")
    assert check(["../repo/specs/x.return.json"]) == 0
    write("../repo/.git/HEAD", "")
    assert check(["../repo/specs/x.return.json"]) == 1
    write("../repo/docs/p.md", "the plan")
    assert check(["../repo/specs/x.return.json"]) == 0


@pytest.fixture
def signed(tmp_path, monkeypatch):
    """Return a workspace with three tasks, the first with a false claim, and a statement of each beside it."""
    live_in(tmp_path, monkeypatch)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    made = tmp_path / "shop"
    (made / "docs").mkdir(parents=True)
    (made / "docs" / "api.md").write_text("The design.\n", "utf-8")
    for task in ("a", "b", "c"):
        (made / f"{task}.handoff.json").write_text(packet(task_id=task), "utf-8")
    truth = returned("SUCCESS")
    lie = truth.replace("files_created:\n- (none)", "files_created:\n- none.md")
    for task, text in (("a", lie), ("b", truth)):
        (made / f"{task}.return.md").write_text(text, "utf-8")
    assert run(["attest", "--all", str(made), "-o", str(tmp_path / "shop.jsonl")]) == 0
    return made


@pytest.mark.parametrize("instead", ["nothing", "a pipe", "a link"])
def test_a_document_that_cannot_be_compared_is_no_success(signed, capsys, instead):
    statement, document = signed.with_suffix(".jsonl"), signed / "b.return.md"
    document.rename(signed.with_suffix(".md"))
    if instead == "a pipe":
        os.mkfifo(document)
    elif instead == "a link":
        document.symlink_to(signed.with_suffix(".md"))
    assert run(["verify", str(statement), str(signed)]) == 1
    words = "✗ subject: “b.return.md” cannot be compared: it is not here any more, or cannot be read"
    assert words in capsys.readouterr().out


def test_the_verifier_in_the_manual_refuses_another_key(signed):
    (code,) = re.findall("```python\n(.*?)```", read_page("statements"), re.DOTALL)

    def stranger(keys: Keys) -> tuple[int, list[str]]:
        words = [sys.executable, "-W", "ignore", "-c", code, keys.show().text, str(signed.with_suffix(".jsonl"))]
        ran = subprocess.run(words, capture_output=True, text=True, check=False)
        return ran.returncode, ran.stdout.splitlines()

    assert stranger(Keys()) == (0, ["a completed, contradicted", "b completed", "c submitted"])
    other = Keys(signed / "other")
    other.create()
    assert stranger(other) == (1, [])
