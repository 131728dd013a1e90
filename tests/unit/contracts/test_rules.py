"""Each rule, broken alone, gives only its own finding, at its line; and rules hold every sentence of the documents."""

import json
import re
from collections import defaultdict
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest
from jsonschema import Draft202012Validator

from agentwatch.contracts.reading import read_document
from tests.goldens.documents import test_documents as adapter
from tests.goldens.documents.test_documents import THEMES, cases_of
from tests.goldens.trees.test_trees import topics
from tests.unit.contracts.cases import CASES, TABLES

RULES = {rule["id"]: rule for rule in adapter.rules()}
SHOWN_ELSEWHERE = ("DOC010", "SRC", "LNK", "DEC")
"""Prefixes of rules that no single document breaks: the tests of files, trees, runs and decisions break them."""


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.rule)
def test_a_rule_broken_alone_gives_only_its_finding(case):
    valid, broken = (read_document(text, case.name, embedded=case.embedded) for text in (case.valid_text, case.text))
    assert valid is not None
    assert broken is not None
    assert valid.findings == ()
    found = [(one.rule, one.line, one.severity) for one in broken.findings]
    assert found == [(case.rule, case.line, RULES[case.rule]["severity"])]
    assert "{" not in broken.findings[0].message, "a placeholder was left open"


def test_every_rule_is_broken_by_a_case_and_is_explained():
    assert {case.rule for case in CASES} == {rule for rule in RULES if not rule.startswith(SHOWN_ELSEWHERE)}
    contracts = defaultdict(set)
    for name, rule in RULES.items():
        group = re.fullmatch(r"(DOC|HOF|TOD|RET|ERR|SUB|MET|REP|SRC|LNK|DEC)\d{3}", name)
        assert group, name
        contracts[group[1]].add(rule["contract"])
        assert all(rule[field].strip() for field in ("section", "title", "message", "why")), name
        assert rule["message"][-1] in ".;"
    assert all(len(some) == 1 for some in contracts.values()), "a group is of one contract"


OF_TABLES = {each["name"]: each for each in TABLES}
IN_TABLES = [case for case in CASES if case.name in OF_TABLES and not case.rule.startswith(("DOC", "HOF061"))]


@cache
def validator(contract: str) -> Draft202012Validator:
    schema = adapter.schema(contract)
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)


@pytest.mark.parametrize("case", IN_TABLES, ids=lambda case: case.rule)
def test_the_schema_refuses_errors_of_fields_alone(case):
    each = OF_TABLES[case.name]
    valid = validator(each["contract"]).is_valid
    assert valid(json.loads(case.valid_text))
    kinds = {kind for rule, kind, *_ in each["rows"] if rule == case.rule}
    refused = bool(kinds) and (RULES[case.rule]["severity"] == "error" or kinds == {"case"})
    assert valid(json.loads(case.text)) is not refused


# The table of the documents' normative sentences

UNIT = Path(__file__).parents[1]
CLAIMS = json.loads((UNIT.parent / "goldens" / "verdicts" / "files_data.json").read_text())
GOLDENS = {
    *(f"{theme}#{case.id}" for theme in THEMES for case in cases_of(theme)),
    *(f"{topic}#{name}".replace(" ", "_") for one in topics() for topic, name, _ in one.values),
    *(f"files#{name}".replace(" ", "_") for name in CLAIMS),
}
"""The names of golden cases by suite: documents, trees, and claims against files."""


class Row(NamedTuple):
    document: str
    sentence: str
    level: str
    rules: set[str]
    others: set[str]
    note: str


def rows() -> list[Row]:
    found, document = [], ""
    for line in (Path(__file__).parent / "normative.md").read_text().splitlines():
        if line.startswith("## "):
            document = line.removeprefix("## ")
        elif line.startswith("| ") and not line.startswith(("| section |", "| --- |")):
            _, sentence, level, proofs, note = (cell.strip() for cell in line.strip("|").split("|"))
            rules = {proof for proof in proofs.split() if proof in RULES}
            found.append(Row(document, sentence, level, rules, {*proofs.split()} - rules - {"-"}, note))
    return found


ROWS = rows()


@pytest.mark.parametrize("level", ["must", "should", "may", "says"])
def test_a_sentence_is_held_as_severely_as_it_speaks(level):
    for row in (row for row in ROWS if row.level == level):
        assert row.rules or row.others or row.note, f"a sentence that nothing holds says why: {row}"
        severities = {RULES[rule]["severity"] for rule in row.rules}
        if level == "must":
            assert "error" in severities or row.others, f"nothing makes this an error: {row}"
        elif level in ("should", "may"):
            assert "error" not in severities, f"a SHOULD is never an error: {row}"
        for test in row.others - GOLDENS:
            path, name = test.split("::")
            assert re.search(rf"^def {name}\(", (UNIT / path).read_text(), re.MULTILINE), test


def test_every_rule_holds_a_sentence_and_every_error_a_must():
    counts = [sum(row.document == document for row in ROWS) for document in {row.document for row in ROWS}]
    assert (len(counts), sorted(counts)[1] >= 30, sum(counts) >= 230) == (6, True, True)
    assert {row.level for row in ROWS} == {"must", "should", "may", "says"}
    of_documents = {rule for rule in RULES if not rule.startswith(("SRC", "DEC"))}
    assert {rule for row in ROWS for rule in row.rules} == of_documents
    of_musts = {rule for row in ROWS if row.level == "must" for rule in row.rules}
    assert {rule for rule in of_documents if RULES[rule]["severity"] == "error"} <= of_musts
