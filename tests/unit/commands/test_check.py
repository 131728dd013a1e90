"""`agentwatch check` and `agentwatch rules`: what they print and how they end."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

import agentwatch
from agentwatch.agents.documents import EXAMPLES
from agentwatch.cli import run, start
from agentwatch.contracts.reading import read_document
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


def files_of(output: str) -> list[dict[str, Any]]:
    document = json.loads(output)
    assert document.keys() == {"files"}
    found: list[dict[str, Any]] = document["files"]
    return found


CONTRACTS_IN_JSON = ("handoff-packet", "subagent-return", "return-meta", "report-contract")


@pytest.mark.parametrize("contract", CONTRACTS_IN_JSON)
def test_the_schema_of_a_contract_has_a_valid_example(contract, capsys):
    assert run(["schema", contract]) == 0
    schema = json.loads(capsys.readouterr().out)
    assert (schema["$schema"], schema["title"]) == ("https://json-schema.org/draft/2020-12/schema", contract)
    reading = read_document(json.dumps(schema["examples"][0]), "x.json")
    assert reading is not None
    assert (reading.contract, reading.findings) == (contract, ())


def test_the_contract_without_a_schema_has_an_example():
    manual = Path(agentwatch.__file__).parent / "manual" / "contracts.md"
    assert re.findall("```markdown\n(.*?)```", manual.read_text("utf-8"), re.DOTALL) == [EXAMPLES["return-format"]]


def test_another_report_is_checked_only_beside_a_handoff(workspace, capsys):
    write("jest.report.json", '{"status": "passed"}')
    assert check(["."], "json") == 0
    assert files_of(capsys.readouterr().out) == []
    write("jest.handoff.json", text_of(PACKET))
    assert check(["."], "json") == 1
    assert [file["path"] for file in files_of(capsys.readouterr().out)] == ["jest.handoff.json", "jest.report.json"]


def test_a_missing_artifact_is_an_error_unless_archived(workspace, capsys):
    artifacts = [{"type": "plan", "path": "specs/7_x/plans/p.md", "summary": "the plan"}]
    write("specs/7_x/x.return.json", text_of(put("artifacts", artifacts)(SUBAGENT)))
    assert check(["specs"]) == 1
    out = capsys.readouterr().out
    assert "LNK007 error" in out
    assert "specs/7_x/plans/p.md is not on disk" in out
    assert "x.return.json:" in out

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
