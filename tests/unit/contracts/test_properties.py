"""Any text is read to its end, always with the same result, and its findings can be shown."""

import copy
import itertools
import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentwatch.contracts.reading import read_document
from agentwatch.contracts.shapes import OpenDocument
from tests.unit.contracts.documents import (
    FAILURE,
    META,
    PACKET,
    PARTIAL,
    REPORT,
    RETURN,
    SUBAGENT,
    SUBAGENT_FAILED,
    TODOS,
    put,
    text_of,
)

NAMES = ("x.json", "x.md", "x.return.json", "x.handoff.json", "x.todos.md", "a/.return-meta.json", "handoffs/x.md")
JSON_BASES = (PACKET, SUBAGENT, SUBAGENT_FAILED, META, REPORT)
RETURNS = (RETURN, FAILURE, PARTIAL)
TEXT_BASES = (*RETURNS, TODOS, f"```json\n{text_of(PACKET)}```\n\n{TODOS}")
ODD = (
    *("completed", "researched", "", "..", "/a", "\x1b[0m", "\ud800", "{x}", "## Status", "state: ERROR", "- state: x"),
    *("```", "~~~", "- [ ] x", "files_created:", "- ../a", "{", "---", "**summary**: a. B. c", "\u2028"),
    *("limitations: x", "### Evidence", "\x1b]0;x\x07", "state = x, summary: y"),
)

anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=6) | st.sampled_from([*ODD, 10**30]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)


def check(text: str, name: str, **how: bool) -> OpenDocument | None:
    """Read a text twice, check what holds for every text, and return the document."""
    document = read_document(text, name, **how)
    if document is None:
        return None
    assert read_document(text, name, **how) == document
    lines = [one.line or 0 for one in document.findings if one.rule != "DOC010"]
    assert lines == sorted(lines)
    assert all(0 <= line <= len(text.replace("\r\n", "\n").replace("\r", "\n").split("\n")) for line in lines)
    for one in document.findings:
        assert one.message.isprintable()
        assert len(one.message) < 600
    return document


def rules_of(document: OpenDocument | None) -> list[str]:
    assert document is not None
    return [one.rule for one in document.findings]


def places(value: Any, at: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    found = [at] if at else []
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in entries:
        found += places(child, (*at, key))
    return found


@st.composite
def mutated_objects(draw: st.DrawFn) -> str:
    document = copy.deepcopy(draw(st.sampled_from(JSON_BASES)))
    for _ in range(draw(st.integers(1, 3))):
        *way, last = draw(st.sampled_from(places(document)))
        node = document
        for step in way:
            node = node[step]
        node[last] = draw(anything)
        if draw(st.booleans()) and len(document) > 1:
            del node[last]
    return json.dumps(document, indent=draw(st.sampled_from([None, 2])))


@st.composite
def mutated_texts(draw: st.DrawFn) -> str:
    lines = draw(st.sampled_from(TEXT_BASES)).split("\n")
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(lines)))
        lines[at : at + draw(st.integers(0, 1))] = draw(
            st.lists(st.sampled_from(ODD) | st.text(max_size=12), max_size=1)
        )
    return draw(st.sampled_from(["\n", "\r\n", "\r"])).join(lines)


any_text = st.text(st.characters()) | st.text('#`~{}[]":, \n\r-*statusevidn_:0', max_size=80)


@pytest.mark.parametrize("texts", [any_text, mutated_objects(), mutated_texts()], ids=range(3))
@given(data=st.data())
def test_any_text_is_read_without_an_error(texts, data):
    text = data.draw(texts)
    for name in NAMES:
        check(text, name)
    check(text, "", embedded=True)
    check(text, "", handed_over=True)


@given(
    st.text(alphabet='{}[]",:0123456789.eE+-tfnrualse \n\\', max_size=40)
    | st.builds(json.dumps, anything, indent=st.sampled_from([None, 2]))
)
def test_json_is_recognised_as_the_parser_does(text):
    is_json = False
    with suppress(ValueError):
        json.loads(text)
        is_json = True
    rules = set(rules_of(check(text, "x.return.json")))
    assert is_json or rules & {"DOC001", "DOC002", "DOC007", "DOC012"}
    assert not (is_json and rules & {"DOC001", "DOC002", "DOC007"})


@pytest.mark.parametrize("document", JSON_BASES)
def test_keys_written_in_escapes_are_those_keys(document):
    text = escaped = json.dumps(document)
    for key in document:
        escaped = escaped.replace(f'"{key}":', '"' + "".join(f"\\u{ord(letter):04x}" for letter in key) + '":')
    plain = check(text, "odd.json")
    assert plain is not None
    assert check(escaped, "odd.json") == plain


@pytest.mark.parametrize("document", [*JSON_BASES, *RETURNS])
def test_a_document_cut_anywhere_is_unknown_or_broken(document):
    whole = document if isinstance(document, str) else text_of(document).rstrip()
    end = whole.index("files_modified:") if isinstance(document, str) else len(whole)
    found = [check(whole[:length], "odd.md" if isinstance(document, str) else "odd.json") for length in range(end)]
    # A text that was recognised at some length stays recognised when it grows.
    recognised = list(itertools.dropwhile(lambda file: file is None, found))
    assert recognised
    for cut in recognised:
        assert isinstance(document, str) or rules_of(cut) == ["DOC002"]
        assert cut is not None
        assert cut.has_error


@pytest.mark.parametrize("document", RETURNS)
def test_a_return_that_breaks_off_between_parts_is_incomplete(document):
    for part in ("## Deliverables", "## Evidence", "## Runtime Attestation", "files_created:", "files_modified:", None):
        cut = check(document[: document.index(part) if part else None], "x.return.md")
        assert cut is not None
        assert cut.complete == (part is None), part


def test_a_thousand_findings_are_counted_and_not_listed():
    document = check(text_of(put("artifacts", [{"type": "x", "path": 1}] * 900)(SUBAGENT)), "x.json")
    rules = rules_of(document)
    assert {rules.count(rule) for rule in ("SUB016", "SUB019", "SUB021")} == {20}
    assert rules[-1] == "DOC010"
    assert document is not None
    assert str(3 * (900 - 20)) in document.findings[-1].message


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        '{"status": "completed", "artifacts": [' + "1," * 75_000 + '1], "summary": "A. B."}',
        '{"report_metadata": {' + ",".join(f'"k{number}": {number}' for number in range(20_000)) + "}}",
        '{"task_id": "a", "objective": "b", "evidence": ' + "[" * 100_000,
        '{"task_id": "a", "objective": "' + "x. Y" * 60_000 + '", "risks": []}',
        "## Status\nstate: SUCCESS\n" + "summary: a, state: b " * 10_000,
        "## Status\nstate: SUCCESS\n\n## Deliverables\n" + "- a.md\n" * 25_000,
        "## Status\nstate: ERROR\n\n## Evidence\n" + "-" * 250_000,
        "## Status\nstate: SUCCESS\n\n## Runtime Attestation\nfiles_created:\n" + "- ../a, `b`\n" * 20_000,
        "## Status\nsummary: " + " " * 250_000 + "x",
        "## Status\n" + "state: SUCCESS\n" * 15_000,
        *(part * 50_000 for part in ("#", " #", "\n", "```\n", "`", "- [ ] a\n", "**", "{", "<a>", "_")),
    ],
    ids=range(20),
)
def test_a_long_text_of_anything_is_read(text):
    for name in ("x.todos.md", "x.return.json", "x.return.md"):
        read_document(text, name)
    read_document(text, "", embedded=True)
