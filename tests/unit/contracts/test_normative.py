"""The table of the documents' normative sentences: what it names is there, and an error breaks a must, nothing else."""

import json
import re
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.goldens.documents.test_documents import THEMES, cases_of, rules
from tests.goldens.trees.test_trees import topics

_TABLE = Path(__file__).parent / "normative.md"
_UNIT = Path(__file__).parents[1]
_GOLDENS = _UNIT.parent / "goldens"
_RULES = {rule["id"]: rule for rule in rules() if not rule["id"].startswith(("SRC", "DEC"))}
_DOCUMENTS = {"handoff-packet", "return-format", "subagent-return", "report-contract", "error-propagation"}
_CLAIMS = json.loads((_GOLDENS / "verdicts" / "files_data.json").read_text(encoding="utf-8"))
_CASES = {
    *(f"{theme}#{case.id}" for theme in THEMES for case in cases_of(theme)),
    *(f"{topic}#{name}".replace(" ", "_") for one in topics() for topic, name, _ in one.values),
    *(f"files#{name}".replace(" ", "_") for name in _CLAIMS),
}
"""By suite: documents, trees, and claims against files."""


class Row(NamedTuple):
    document: str
    section: str
    sentence: str
    level: str
    proofs: list[str]
    note: str

    @property
    def rules(self) -> list[str]:
        return [proof for proof in self.proofs if "::" not in proof and "#" not in proof]

    @property
    def cases(self) -> set[str]:
        return {proof for proof in self.proofs if "#" in proof}

    @property
    def tests(self) -> list[str]:
        return [proof for proof in self.proofs if "::" in proof]


def _rows() -> list[Row]:
    rows, document = [], ""
    for line in _TABLE.read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            document = line.removeprefix("## ")
        elif line.startswith("| ") and not line.startswith(("| section |", "| --- |")):
            section, sentence, level, proofs, note = (cell.strip() for cell in line.strip("|").split("|"))
            rows.append(Row(document, section, sentence, level, [] if proofs == "-" else proofs.split(), note))
    return rows


ROWS = _rows()


def test_every_document_is_in_the_table_with_its_sentences():
    counts = {document: sum(row.document == document for row in ROWS) for document in _DOCUMENTS}
    assert min(counts.values()) >= 30, counts
    assert sum(counts.values()) >= 230, counts
    assert {row.document for row in ROWS} == {*_DOCUMENTS, "beside the documents"}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.document}: {row.sentence}")
def test_what_holds_a_sentence_is_there_and_as_severe_as_it(row):
    assert row.level in ("must", "should", "may", "says")
    assert row.proofs or row.note, "a sentence that nothing holds says why"
    severities = {_RULES[rule]["severity"] for rule in row.rules}
    assert row.cases <= _CASES
    if row.level == "must":
        assert "error" in severities or row.tests or row.cases, "nothing makes this an error"
    elif row.level in ("should", "may"):
        assert "error" not in severities, "a SHOULD is never an error"
    for test in row.tests:
        path, name = test.split("::")
        source = (_UNIT / path).read_text(encoding="utf-8")
        assert re.search(rf"^def {name}\(", source, re.MULTILINE), test


def test_every_rule_holds_a_sentence_and_every_error_a_must():
    assert {rule for row in ROWS for rule in row.rules} == _RULES.keys()
    of_musts = {rule for row in ROWS if row.level == "must" for rule in row.rules}
    assert {rule for rule in _RULES if _RULES[rule]["severity"] == "error"} <= of_musts
