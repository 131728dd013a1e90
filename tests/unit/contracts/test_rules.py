"""Each rule, broken alone, gives exactly its own finding at its own line; and the catalogue is whole."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any, Final

import pytest
from jsonschema import Draft202012Validator

from tests.goldens.documents import adapter, table
from tests.unit.contracts.cases import CASES, TABLES, Case
from tests.unit.contracts.documents import line_with

VALID: Final = list({(case.name, case.valid_text): None for case in CASES if not case.embedded})
RULES: Final = {rule["id"]: rule for rule in adapter.rules()}
SHOWN_ELSEWHERE: Final = ("DOC010", "SRC", "LNK", "DEC")
"""How rules begin that no document breaks by itself: tests of files, trees, runs and decisions show them."""


@pytest.fixture(scope="module")
def findings(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Any]]:
    """The findings of each case by its number, and those of each valid document by `valid` and its number."""
    root = Path(os.path.realpath(tmp_path_factory.mktemp("rules")))
    home, broken, valid, session = (root / name for name in ("home", "broken", "valid", "session"))
    for directory in (home, broken, valid, session):
        directory.mkdir()
    some = [table.Case("", case.name, case.text, "returned" if case.embedded else "file") for case in CASES]
    table.write_files(broken, some)
    table.write_files(valid, [table.Case("", name, text) for name, text in VALID])
    table.write_children(home, session, some)
    found = {}
    for workspace, before in ((broken, ""), (valid, "valid ")):
        for file in adapter.checked(home, workspace):
            number = int(Path(file["path"]).relative_to(workspace).parts[0])
            # That an artifact is not on disk is no matter of the document.
            found[f"{before}{number}"] = [one for one in file["findings"] if one["rule"] != "LNK007"]
    for task in adapter.tasks(home, session):
        for one in task["findings"]:
            found.setdefault(str(int(one["path"].rpartition("_")[2])), []).append(one)
    return found


@pytest.mark.parametrize("number", range(len(CASES)), ids=lambda number: CASES[number].id)
def test_a_rule_broken_alone_gives_only_its_finding(number: int, findings: dict[str, list[Any]]) -> None:
    case = CASES[number]
    line = case.at if isinstance(case.at, int) else line_with(case.text, case.at)
    severity = RULES[case.rule]["severity"]
    found = findings[str(number)]
    assert [(one["rule"], one["line"], one["severity"]) for one in found] == [(case.rule, line, severity)]
    assert "{" not in found[0]["message"], "a placeholder was left open"


@pytest.mark.parametrize("number", range(len(VALID)), ids=lambda number: f"{number}-{VALID[number][0]}")
def test_its_twin_breaks_no_rule(number: int, findings: dict[str, list[Any]]) -> None:
    assert findings[f"valid {number}"] == []


def test_every_rule_is_broken_by_a_case() -> None:
    assert {case.rule for case in CASES} == {rule for rule in RULES if not rule.startswith(SHOWN_ELSEWHERE)}


OF_TABLES: Final = {each["name"]: each for each in TABLES}
IN_TABLES: Final = [case for case in CASES if case.name in OF_TABLES and not case.rule.startswith(("DOC", "HOF061"))]


@pytest.mark.parametrize("case", IN_TABLES, ids=lambda case: case.id)
def test_the_schema_refuses_errors_of_fields_alone(case: Case) -> None:
    each = OF_TABLES[case.name]
    valid = Draft202012Validator(adapter.schema(each["contract"])).is_valid
    assert valid(json.loads(case.valid_text))
    kinds = {kind for rule, kind, *_ in each["rows"] if rule == case.rule}
    refused = bool(kinds) and (RULES[case.rule]["severity"] == "error" or kinds == {"case"})
    assert valid(json.loads(case.text)) is not refused


@pytest.mark.parametrize("contract", [each["contract"] for each in TABLES])
def test_the_schema_is_one_of_its_draft(contract: str) -> None:
    Draft202012Validator.check_schema(adapter.schema(contract))


def test_ids_are_stable_in_form_and_grouped_by_contract() -> None:
    assert all(re.fullmatch(r"(?:DOC|HOF|TOD|RET|ERR|SUB|MET|REP|SRC|LNK|DEC)\d{3}", rule) for rule in RULES)
    grouped = {(rule["id"][:3], rule["contract"]) for rule in RULES.values()}
    assert len(grouped) == len({group for group, _ in grouped})


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_a_rule_says_everything_that_explaining_needs(rule: dict[str, str]) -> None:
    assert all(rule[field].strip() for field in ("section", "title", "message", "why"))
    assert rule["message"][-1] in ".;"
