"""Each rule, broken alone, gives exactly its own finding at its own line; and the catalogue is whole."""

import json
import re

import pytest
from jsonschema import Draft202012Validator

from agentwatch.contracts.reading import read_document
from tests.goldens.documents.test_documents import rules, schema
from tests.unit.contracts.cases import CASES, TABLES
from tests.unit.contracts.documents import line_with

RULES = {rule["id"]: rule for rule in rules()}
SHOWN_ELSEWHERE = ("DOC010", "SRC", "LNK", "DEC")
"""How rules begin that no document breaks by itself: tests of files, trees, runs and decisions show them."""


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_a_rule_broken_alone_gives_only_its_finding(case):
    valid, broken = (read_document(text, case.name, embedded=case.embedded) for text in (case.valid_text, case.text))
    assert valid is not None
    assert broken is not None
    assert valid.findings == ()
    line = case.at if isinstance(case.at, int) else line_with(case.text, case.at)
    found = [(one.rule, one.line, one.severity) for one in broken.findings]
    assert found == [(case.rule, line, RULES[case.rule]["severity"])]
    assert "{" not in broken.findings[0].message, "a placeholder was left open"


def test_every_rule_is_broken_by_a_case():
    assert {case.rule for case in CASES} == {rule for rule in RULES if not rule.startswith(SHOWN_ELSEWHERE)}


OF_TABLES = {each["name"]: each for each in TABLES}
IN_TABLES = [case for case in CASES if case.name in OF_TABLES and not case.rule.startswith(("DOC", "HOF061"))]


@pytest.mark.parametrize("case", IN_TABLES, ids=lambda case: case.id)
def test_the_schema_refuses_errors_of_fields_alone(case):
    each = OF_TABLES[case.name]
    valid = Draft202012Validator(schema(each["contract"])).is_valid
    assert valid(json.loads(case.valid_text))
    kinds = {kind for rule, kind, *_ in each["rows"] if rule == case.rule}
    refused = bool(kinds) and (RULES[case.rule]["severity"] == "error" or kinds == {"case"})
    assert valid(json.loads(case.text)) is not refused


@pytest.mark.parametrize("contract", [each["contract"] for each in TABLES])
def test_the_schema_is_one_of_its_draft(contract):
    Draft202012Validator.check_schema(schema(contract))


def test_ids_are_stable_in_form_and_grouped_by_contract():
    assert all(re.fullmatch(r"(?:DOC|HOF|TOD|RET|ERR|SUB|MET|REP|SRC|LNK|DEC)\d{3}", rule) for rule in RULES)
    grouped = {(rule["id"][:3], rule["contract"]) for rule in RULES.values()}
    assert len(grouped) == len({group for group, _ in grouped})


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_a_rule_says_everything_that_explaining_needs(rule):
    assert all(rule[field].strip() for field in ("section", "title", "message", "why"))
    assert rule["message"][-1] in ".;"
