"""Each rule, broken alone, gives exactly its own finding at its own line; and the catalogue is whole."""

from __future__ import annotations

import json
import re
import string

import pytest
from jsonschema import Draft202012Validator

from agentwatch.contracts.reading import read_document
from agentwatch.contracts.rows import Table
from agentwatch.contracts.rules import OTHERWISE, RULES
from agentwatch.contracts.shapes import Severity
from tests.unit.contracts.cases import CASES, TABLES, Case
from tests.unit.contracts.documents import line_with, open_document

BASES = list({(case.name, case.valid_text): None for case in CASES})


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_a_rule_broken_alone_gives_exactly_its_finding_at_its_line(case: Case) -> None:
    reading = read_document(case.text, case.name, embedded=case.embedded)

    assert reading is not None, "no longer recognised"
    line = case.at if isinstance(case.at, int) else line_with(case.text, case.at)
    assert [(finding.rule, finding.line) for finding in reading.findings] == [(case.rule, line)]
    assert reading.findings[0].severity is RULES[case.rule].severity
    assert "{" not in reading.findings[0].message, "a placeholder was left open"


@pytest.mark.parametrize(("name", "text"), BASES)
def test_the_documents_that_are_broken_are_valid_before(name: str, text: str) -> None:
    reading = read_document(text, name)

    assert reading is not None
    assert (reading.findings, reading.complete) == ((), True)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_a_document_that_breaks_a_rule_still_opens_as_its_model(case: Case) -> None:
    before, after = (open_document(text, case.name, embedded=case.embedded) for text in (case.valid_text, case.text))

    assert after is not None
    assert type(after) is type(before)


def test_every_rule_is_broken_by_a_case() -> None:
    # DOC010 counts the findings of the others: it has a test of its own.
    assert {case.rule for case in CASES} == set(RULES) - {"DOC010"}


OF_TABLES = [case for case in CASES if case.name in TABLES and case.rule[:3] != "DOC" and case.rule != "HOF061"]


@pytest.mark.parametrize("case", OF_TABLES, ids=lambda case: case.id)
def test_the_schema_refuses_what_is_an_error_in_a_field_or_another_word_and_nothing_else(case: Case) -> None:
    table = TABLES[case.name]
    valid = Draft202012Validator(table.schema()).is_valid
    assert valid(json.loads(case.valid_text))
    kinds = {kind for row in table.rows for kind, rule in row.rules.items() if rule == case.rule}
    refused = bool(kinds) and (RULES[case.rule].severity is Severity.ERROR or kinds == {"case"})
    assert valid(json.loads(case.text)) is not refused


@pytest.mark.parametrize("table", TABLES.values(), ids=lambda table: table.contract)
def test_the_schema_is_one_of_its_draft(table: Table) -> None:
    Draft202012Validator.check_schema(table.schema())


def test_ids_are_stable_in_form_and_grouped_by_contract() -> None:
    assert all(re.fullmatch(r"(?:DOC|HOF|TOD|RET|ERR|SUB|MET|REP)\d{3}", rule) for rule in RULES)
    contracts = {
        rule.id[:3]: {other.contract for other in RULES.values() if other.id[:3] == rule.id[:3]}
        for rule in RULES.values()
    }
    assert all(len(found) == 1 for found in contracts.values())


@pytest.mark.parametrize("rule", RULES.values(), ids=lambda rule: rule.id)
def test_a_rule_says_everything_that_explaining_needs(rule: object) -> None:
    for field in ("section", "title", "message", "why"):
        assert getattr(rule, field).strip(), field
    assert getattr(rule, "message")[-1] in ".;"  # noqa: B009 - the parameter is typed as object for its id
    assert list(string.Formatter().parse(getattr(rule, "message")))  # noqa: B009


def test_every_error_says_why_it_is_one() -> None:
    assert [rule.id for rule in RULES.values() if rule.why == OTHERWISE and rule.severity is Severity.ERROR] == []
